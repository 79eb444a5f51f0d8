//! Records of the recorder in the kernel: any bytes, records of any content in right frames, or files told as lying in
//! each other are imported; every record is accounted for, and the events are in order.

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

/// Few ids that are told as each other's directories and files, and read from: of each, three bytes and a name.
fn told(mut bytes: &[u8]) -> (Vec<u8>, u64) {
    let (mut records, mut count) = (Vec::new(), 0);
    while let Some((&[what, flags, length], rest)) = bytes.split_first_chunk::<3>() {
        let (name, rest) = rest.split_at(usize::from(length).min(rest.len()));
        let (id, directory) = (u64::from(what & 7), u64::from(what >> 3 & 7));
        let mut names = Vec::new();
        if flags & 8 != 0 {
            wire::Below { directory }.write(&mut names);
        }
        names.push(length);
        names.extend_from_slice(name);
        let names_bytes = u32::try_from(names.len()).expect("names are short");
        let file = wire::File { id, ino: id, mode: 0o100_644, names_bytes, ..Default::default() };
        wire::append(&mut records, wire::Kind::File, u16::from(flags & 15), |out| {
            file.write(out);
            out.extend_from_slice(&names);
        });
        let at = count * 10;
        let call = wire::Call {
            pid: 7,
            tid: 7,
            start_ns: at,
            dur_ns: 1,
            ret: 1,
            args: [id, 0, 1, 0, 0, 0],
            ..Default::default()
        };
        wire::append(&mut records, wire::Kind::Call, wire::call_flag::FACT0, |out| {
            call.write(out);
            wire::Fact { id, pos: 0, size: 9 }.write(out);
        });
        bytes = rest;
        count += 2;
    }
    (records, count)
}

fuzz_target!(|bytes: &[u8]| {
    let Some((&first, rest)) = bytes.split_first() else { return };
    let (records, count) = match first % 3 {
        0 => (rest.to_vec(), None),
        1 => {
            let (records, count) = framed(rest);
            (records, Some(count))
        }
        _ => {
            let (records, count) = told(rest);
            (records, Some(count))
        }
    };
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
