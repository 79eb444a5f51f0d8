//! Any bytes in the place of one of a profile's four files, without checksums to stop them early: an error or events,
//! in bounded memory. The first byte of the input says which file is replaced.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;
use trace::profile::{Meta, Reader, Writer, WriterOptions};
use trace::schedule::{Happened, Turn};
use trace::{Batch, Snapshot};

/// A valid, unchecked profile in a directory of this process.
fn profile() -> &'static PathBuf {
    static PROFILE: OnceLock<PathBuf> = OnceLock::new();
    PROFILE.get_or_init(|| {
        let path = std::env::temp_dir().join(format!("fsage-fuzz-{}.workload", std::process::id()));
        let options = WriterOptions { overwrite: true, ..WriterOptions::default() };
        let mut writer = Writer::create(&path, options).expect("a writable temporary directory");
        writer.push(&Batch::default()).expect("space");
        writer.push_schedule(&[Turn { tid: 1, t_ns: 1, what: Happened::Ended }]).expect("space");
        writer.finish(Meta::default(), &Snapshot::default()).expect("space");
        let meta = path.join("meta.json");
        let text = fs::read(&meta).expect("written above");
        let mut value: serde_json::Value = serde_json::from_slice(&text).expect("written above");
        if let Some(object) = value.as_object_mut() {
            object.remove("meta_crc32c");
            object.remove("files");
        }
        fs::write(&meta, value.to_string()).expect("space");
        // The Parquet decoder's own panics on unchecked data are caught and become errors; libFuzzer's hook would count
        // them. One that escapes still ends the process.
        std::panic::set_hook(Box::new(|_| {}));
        path
    })
}

fuzz_target!(|input: &[u8]| {
    let Some((which, bytes)) = input.split_first() else { return };
    let file = ["trace.parquet", "snapshot.parquet", "meta.json", "schedule.parquet"][usize::from(*which) % 4];
    let at = profile().join(file);
    let whole = fs::read(&at).expect("written above");
    fs::write(&at, bytes).expect("space");
    if let Ok(reader) = Reader::open(profile()) {
        if let Ok(batches) = reader.batches() {
            for batch in batches {
                if batch.is_err() {
                    break;
                }
            }
        }
        let _ = reader.snapshot();
        let _ = reader.schedule();
        let _ = reader.rows(0, 10);
    }
    fs::write(&at, whole).expect("space");
});
