//! Any bytes as a series of surveys: what is whole of it, or an error.
#![no_main]

use layout::series::Series;
use libfuzzer_sys::fuzz_target;
use std::path::PathBuf;
use std::sync::OnceLock;

fn path() -> &'static PathBuf {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| std::env::temp_dir().join(format!("fsage-fuzz-{}.series", std::process::id())))
}

/// A file whose first frame is sound, of these bytes compressed, and whose rest is these bytes.
fn framed(bytes: &[u8]) -> Vec<u8> {
    let payload = zstd::encode_all(bytes, 1).expect("memory takes everything");
    let mut out = b"fsage.series/1\n".to_vec();
    let mut head = (payload.len() as u32).to_le_bytes().to_vec();
    head.extend(crc32c::crc32c(&payload).to_le_bytes());
    out.extend(&head);
    out.extend(crc32c::crc32c(&head).to_le_bytes());
    out.extend(payload);
    out.extend(bytes);
    out
}

fuzz_target!(|input: &[u8]| {
    let Some((which, bytes)) = input.split_first() else { return };
    let file = if which % 2 == 0 { bytes.to_vec() } else { framed(bytes) };
    std::fs::write(path(), file).expect("a writable temporary directory");
    if let Ok(series) = Series::load(path()) {
        let _ = series.summary();
    }
});
