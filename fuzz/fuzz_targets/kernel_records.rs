//! Records of the recorder in the kernel: any bytes, or records of any content in right frames, are imported; every record is
//! accounted for, and the events are in order.

#![no_main]

mod common;

use libfuzzer_sys::fuzz_target;
use trace::kernel::{Importer, wire};
use trace::strace::ImportOptions;

/// Frames of any content: kind, flags and length of each from its first bytes.
fn framed(mut bytes: &[u8]) -> (Vec<u8>, u64) {
    let (mut records, mut count) = (Vec::new(), 0);
    while let Some((&[kind, low, high, length], rest)) = bytes.split_first_chunk::<4>() {
        let (kind, _) = wire::Kind::ALL[usize::from(kind) % wire::Kind::ALL.len()];
        let (body, rest) = rest.split_at(usize::from(length).min(rest.len()));
        wire::append(&mut records, kind, u16::from_le_bytes([low, high]), |out| out.extend_from_slice(body));
        bytes = rest;
        count += 1;
    }
    (records, count)
}

fuzz_target!(|bytes: &[u8]| {
    let Some((&first, rest)) = bytes.split_first() else { return };
    let (records, count) = if first & 1 == 0 { (rest.to_vec(), None) } else { let (r, n) = framed(rest); (r, Some(n)) };
    let mut importer = Importer::new(ImportOptions { keep_removed: true, ..ImportOptions::default() });
    let mut events = 0u64;
    let mut sink = common::counted(&mut events);
    importer.bytes(&records, &mut sink).expect("the sink takes everything");
    let finished = importer.finish(&mut sink);
    drop(sink);
    let Ok(mut imported) = finished else { return };
    if let Some(count) = count {
        assert_eq!(imported.summary.lines, count);
    }
    assert_eq!(imported.summary.events, events);
    let _ = imported.implied_snapshot();
});
