//! Any bytes as a spool, framed with right checksums or not: what is whole of it, or an error; and its records through
//! the importer.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::io::Cursor;
use std::path::Path;
use trace::spool::{FRAME_BYTES_MAX, Frame, Reader};
use trace::strace::{ImportOptions, Importer};

const MAGIC: &[u8] = b"fsage.spool/1\n";
const HEADER: &str = r#"{"fsage_version":"0","notation":"strace","tracer":{"name":"strace",
    "version":"6.1","options":[]},
    "clock":"",
    "subject":{"what":"processes","pids":[1]},"working_directory":"/",
    "host":{"name":"","kernel":"","cpu":"","cpus":0,"memory_bytes":0},
    "boot_id":"","started_unix_ns":0}"#;

/// A frame of these bytes with right checksums; `stated`: the length it says it unpacks to.
fn framed(kind: u32, raw: &[u8], stated: u32, out: &mut Vec<u8>) {
    let payload = zstd::bulk::compress(raw, 1).expect("memory takes everything");
    let mut head = [kind, stated, payload.len() as u32, crc32c::crc32c(&payload)].map(u32::to_le_bytes).concat();
    head.extend(crc32c::crc32c(&head).to_le_bytes());
    out.extend(head);
    out.extend(payload);
}

/// The input decides: raw bytes; raw bytes behind a sound header; or frames of any kind with any content, and a tail.
fn spool(input: &[u8]) -> Vec<u8> {
    let Some((&which, mut rest)) = input.split_first() else { return Vec::new() };
    let mut out = MAGIC.to_vec();
    match which % 4 {
        0 => return rest.to_vec(),
        1 => out.extend(rest),
        _ => {
            framed(1, HEADER.as_bytes(), HEADER.len() as u32, &mut out);
            while let [kind, skew, len, more @ ..] = rest {
                let (raw, more) = more.split_at(usize::from(*len).min(more.len()));
                // Mostly sound; now and then a length that lies.
                let stated = if *skew == 255 { u32::MAX / 7 } else { raw.len() as u32 + u32::from(*skew > 250) };
                framed(u32::from(*kind % 8), raw, stated, &mut out);
                rest = more;
            }
            out.extend(rest);
        }
    }
    out
}

fuzz_target!(|input: &[u8]| {
    let bytes = spool(input);
    let length = bytes.len() as u64;
    let Ok(mut reader) = Reader::new(Cursor::new(bytes.clone()), Path::new("x.spool")) else { return };
    let mut importer = Importer::new(ImportOptions::default());
    let mut sink = |_: trace::Batch| Ok(());
    let (mut usable, mut frames) = (true, 0u64);
    let ended = loop {
        match reader.next_frame() {
            Ok(Some(Frame::Records(records))) => {
                assert!(records.len() <= FRAME_BYTES_MAX);
                usable = usable && importer.bytes(&records, &mut sink).is_ok();
            }
            Ok(Some(_)) => {}
            Ok(None) => break true,
            Err(_) => break false,
        }
        frames += 1;
        assert!(reader.at_byte() <= length);
    };
    // Everything is accounted for: frames, and what is torn off behind them.
    if ended {
        assert_eq!(reader.at_byte() + reader.torn_bytes(), length);
    }
    if usable {
        let _ = importer.finish(&mut sink);
    }
    // What stands before the end of the last whole frame reads the same without what follows.
    let cut = usize::try_from(reader.at_byte()).expect("within the input");
    let mut again = Reader::new(Cursor::new(bytes[..cut].to_vec()), Path::new("x.spool")).expect("it had a header");
    let mut count = 0u64;
    while let Some(_) = again.next_frame().expect("whole frames") {
        count += 1;
    }
    assert_eq!((count, again.torn_bytes()), (frames, 0));
});
