//! Any bytes as a snapshot text: an error or a snapshot that survives being written and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trace::text::snapshot::{read, write};

fuzz_target!(|bytes: &[u8]| {
    let Ok(snapshot) = read(bytes) else { return };
    let mut text = Vec::new();
    write(&snapshot, &mut text).expect("memory takes everything");
    let again = read(text.as_slice()).expect("what we write we read");
    assert_eq!(again.entries.len(), snapshot.entries.len());
});
