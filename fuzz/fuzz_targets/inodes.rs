//! Snapshots of inodes of any rows and any description, with sound checksums: refused or read; and what is planned from one, two or three is
//! a sound plan.

#![no_main]

#[path = "common/documents.rs"]
mod documents;
#[path = "common/rows.rs"]
mod rows;

use aging::format::{Reader, Writer};
use aging::plan::snapshots::{SnapshotsOptions, plan, planned_for};
use aging::snapshot::{FORMAT_VERSION, Snapshot, SnapshotMeta};
use arrow_schema::DataType;
use libfuzzer_sys::arbitrary::Unstructured;
use libfuzzer_sys::fuzz_target;
use rows::Column;
use std::path::PathBuf;

const COLUMNS: [Column; 9] = [
    ("path", DataType::Utf8, false, &["", "a", "a/b", "a/c", "b", "c", "c/d", "c/d/e", "..", "a//b", "/", "\\x00"]),
    ("kind", DataType::Utf8, false, &["file", "file", "directory", "symlink", "special"]),
    ("size_bytes", DataType::UInt64, false, &[]),
    ("allocated_bytes", DataType::UInt64, false, &[]),
    ("ino", DataType::UInt64, false, &["rising"]),
    ("generation", DataType::UInt32, true, &[]),
    ("ctime_ns", DataType::Int64, false, &[]),
    ("mtime_ns", DataType::Int64, false, &[]),
    ("nlink", DataType::UInt32, false, &[]),
];

fuzz_target!(|input: &[u8]| {
    let mut u = Unstructured::new(input);
    let directory = std::env::temp_dir();
    let named = |name: &str| directory.join(format!("fsage-fuzz-{}-{name}", std::process::id()));
    let mut paths: Vec<PathBuf> = Vec::new();
    for n in 0..u.int_in_range(1..=3).unwrap_or(1) {
        let path = named(&format!("{n}.snapshot"));
        let written = rows::write(&path, &COLUMNS, 16, &mut u, |batches, u| {
            let meta = SnapshotMeta {
                version: FORMAT_VERSION,
                taken_ns: n * 1_000_000_000_000_000,
                total_bytes: 1 << 30,
                block_bytes: 4096,
                entries: batches.iter().map(|batch| batch.num_rows() as u64).sum(),
                ..SnapshotMeta::default()
            };
            let value = serde_json::to_value(meta).expect("JSON");
            let value = if u.ratio(1, 3).unwrap_or(false) { documents::changed(value, u) } else { value };
            let text = value.to_string();
            let sum = format!("{:08x}", crc32c::crc32c(text.as_bytes()));
            vec![("fsage.snapshot_crc32c".to_owned(), sum), ("fsage.snapshot".to_owned(), text)]
        });
        if written.is_err() {
            return;
        }
        if let Ok(snapshot) = Snapshot::read(&path) {
            let _ = snapshot.summary();
            paths.push(path);
        }
    }
    let Ok(target) = planned_for(&paths) else { return };
    let plan_path = named("x.aging");
    let Ok(mut writer) = Writer::create(&plan_path, target.capacity_bytes, target.block_bytes) else { return };
    if let Ok(meta) = plan(&paths, &SnapshotsOptions::default(), &mut writer, &mut |_| true)
        && writer.finish(meta).is_ok()
    {
        Reader::open(&plan_path).and_then(|reader| reader.verify()).expect("our own plan is sound");
    }
});
