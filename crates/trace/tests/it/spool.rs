//! Spools: what was written comes back, whatever happened to the end of the file; nothing else does.

use crate::common::entry_path;
use fault::{Fault as _, Kind};
use posix::FileKind;
use proptest::prelude::*;
use std::fs;
use std::io::Cursor;
use std::path::Path;
use trace::profile::{Host, Tracer, Unreadable};
use trace::snapshot::Walked;
use trace::spool::{End, Frame, Header, Lost, NamesEnd, Notation, Reader, SpoolError, Subject, Writer};
use trace::{Provenance, Snapshot, SnapshotEntry};

fn header() -> Header {
    Header {
        mount_namespace: None,
        fsage_version: "0.1.0".into(),
        notation: Notation::Strace,
        tracer: Tracer { name: "strace".into(), version: "6.1".into(), options: vec!["-f".into()] },
        clock: "CLOCK_REALTIME".into(),
        subject: Subject::Command { argv: vec!["make".into(), "-j4".into()] },
        working_directory: "/home/user".into(),
        host: Host { name: "here".into(), ..Host::default() },
        boot_id: "b".into(),
        started_unix_ns: 1_700_000_000_000_000_000,
    }
}

fn walked() -> Walked {
    let entry = SnapshotEntry {
        path: b"/home/\xff\n".to_vec(),
        kind: FileKind::Symlink,
        size_bytes: 3,
        mode: 0o1777,
        uid: 1,
        gid: 2,
        nlink: 3,
        ino: u64::MAX,
        dev: 5,
        mtime_ns: -1,
        target: Some(b"../x".to_vec()),
        provenance: Provenance::Before,
    };
    let mut directory = SnapshotEntry::implied(b"/home".to_vec(), FileKind::Directory);
    directory.provenance = Provenance::Before;
    Walked {
        snapshot: Snapshot { entries: vec![directory, entry] },
        unreadable: vec![Unreadable { path: "/root".into(), error: "no".into() }],
        truncated: true,
    }
}

/// A spool with a frame of each kind, and what it holds.
fn written(path: &Path) -> Vec<Frame> {
    let mut writer = Writer::create(path, &header()).expect("a spool");
    let lost = Lost { at_unix_ns: 7, records: 9, why: "no space".into() };
    let end = End { at_unix_ns: 8, exit_status: Some(3), signal: None, tracer_lost: false };
    writer.names(&walked(), vec!["/home".into()]).expect("names");
    writer.records(b"1 0.5 close(3) = 0 <0.1>\n").expect("records");
    writer.lost(&lost).expect("a gap");
    writer.records(&[b'x'; 100_000]).expect("records");
    writer.end(&end).expect("the end");
    assert_eq!(writer.len_bytes(), fs::metadata(path).expect("a file").len());
    let walked = walked();
    vec![
        Frame::Names(walked.snapshot.entries),
        Frame::NamesEnd(NamesEnd { roots: vec!["/home".into()], unreadable: walked.unreadable, truncated: true }),
        Frame::Records(b"1 0.5 close(3) = 0 <0.1>\n".to_vec()),
        Frame::Lost(lost),
        Frame::Records(vec![b'x'; 100_000]),
        Frame::End(end),
    ]
}

/// What can be read of these bytes, and how that ended.
fn read(bytes: &[u8]) -> Result<(Vec<Frame>, Result<u64, SpoolError>), SpoolError> {
    let mut reader = Reader::new(Cursor::new(bytes.to_vec()), Path::new("s.spool"))?;
    assert_eq!(*reader.header(), header());
    let mut frames = Vec::new();
    loop {
        match reader.next_frame() {
            Ok(Some(frame)) => frames.push(frame),
            Ok(None) => return Ok((frames, Ok(reader.torn_bytes()))),
            Err(e) => return Ok((frames, Err(e))),
        }
    }
}

#[test]
fn what_was_written_is_read() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("s.spool");
    let want = written(&path);
    assert!(trace::spool::is_spool(&path) && !trace::spool::is_spool(dir.path()));
    let (frames, torn) = read(&fs::read(&path).expect("bytes")).expect("a spool");
    assert_eq!(frames, want);
    assert_eq!(torn.expect("whole"), 0);
    let again = Writer::create(&path, &header()).expect_err("it is there");
    assert!(again.to_string().contains("s.spool"), "{again}");
}

/// The format as docs/formats.md states it, read without our reader.
#[test]
fn the_format_is_the_documented_one() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("s.spool");
    written(&path);
    let bytes = fs::read(&path).expect("bytes");
    let mut rest = bytes.strip_prefix(b"fsage.spool/1\n").expect("the magic");
    let mut found = Vec::new();
    while !rest.is_empty() {
        let word = |at: usize| u32::from_le_bytes(rest[at..at + 4].try_into().expect("four bytes"));
        let (kind, raw_len, len) = (word(0), word(4) as usize, word(8) as usize);
        assert_eq!(word(16), crc32c::crc32c(&rest[..16]));
        let payload = &rest[20..20 + len];
        assert_eq!(word(12), crc32c::crc32c(payload));
        let raw = zstd::stream::decode_all(payload).expect("zstd");
        assert_eq!(raw.len(), raw_len);
        found.push((kind, raw));
        rest = &rest[20 + len..];
    }
    assert_eq!(found.iter().map(|(kind, _)| *kind).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 4, 6]);
    let text: serde_json::Value = serde_json::from_slice(&found[0].1).expect("JSON");
    assert_eq!(text["subject"]["argv"][1], "-j4");
    assert_eq!(text["notation"], "strace");
    assert_eq!(found[3].1, b"1 0.5 close(3) = 0 <0.1>\n");
    assert_eq!(serde_json::from_slice::<serde_json::Value>(&found[6].1).expect("JSON")["exit_status"], 3);
}

#[test]
fn torn_at_every_byte_the_frames_before_are_read() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("s.spool");
    let want = written(&path);
    let bytes = fs::read(&path).expect("bytes");
    let mut most = 0;
    let mut headless = 0;
    for end in 0..=bytes.len() {
        match read(&bytes[..end]) {
            Ok((frames, torn)) => {
                assert_eq!(frames, want[..frames.len()], "torn at byte {end}");
                assert!(frames.len() == most || frames.len() == most + 1, "torn at byte {end}");
                // Whole frames and what is torn off are all there is.
                let torn = torn.unwrap_or_else(|e| panic!("torn at byte {end}: {e}"));
                assert_eq!(torn == 0, frames.len() > most || (most == 0 && end == headless + 1), "torn at byte {end}");
                most = frames.len();
            }
            Err(SpoolError::NoHeader { .. }) => headless = end,
            Err(e) => panic!("torn at byte {end}: {e}"),
        }
    }
    assert_eq!(most, want.len());
}

#[test]
fn zeros_where_a_machine_went_down_are_a_torn_end() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("s.spool");
    let want = written(&path);
    let mut bytes = fs::read(&path).expect("bytes");
    bytes.extend([0; 70_000]);
    let (frames, torn) = read(&bytes).expect("a spool");
    assert_eq!((frames, torn.expect("torn")), (want, 70_000));
}

#[test]
fn a_flipped_byte_is_named_and_never_believed() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("s.spool");
    let want = written(&path);
    let bytes = fs::read(&path).expect("bytes");
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x41;
        match read(&damaged) {
            Ok((frames, Err(SpoolError::Damaged { at: place, .. }))) => {
                assert_eq!(frames, want[..frames.len()], "byte {at}");
                let place = usize::try_from(place).expect("a place in the file");
                assert!(place <= at, "byte {at}: {place}");
                // What the message advises works.
                let (cut, torn) = read(&bytes[..place]).expect("a spool");
                assert_eq!((cut, torn.expect("whole")), (frames, 0));
            }
            Ok((_, other)) => panic!("byte {at}: {other:?}"),
            Err(_) => {}
        }
    }
}

#[test]
fn other_files_are_refused_by_name() {
    let dir = tempfile::tempdir().expect("a directory");
    let refused = |bytes: &[u8]| {
        let path = dir.path().join("x.spool");
        fs::write(&path, bytes).expect("a file");
        let error = Reader::open(&path).expect_err("a refusal");
        assert_eq!(error.kind(), Kind::BadInput);
        assert!(error.to_string().contains("x.spool"), "{error}");
        error
    };
    assert!(matches!(refused(b""), SpoolError::NoHeader { .. }));
    assert!(matches!(refused(b"fsage.sp"), SpoolError::NoHeader { .. }));
    assert!(matches!(refused(b"1 0.5 close(3) = 0 <0.1>\n"), SpoolError::NotSpool { .. }));
    assert!(refused(b"fsage.spool/2\n").to_string().contains("another version (2)"));
    assert!(matches!(Reader::open(&dir.path().join("none")), Err(SpoolError::Io { .. })));
}

/// A head with right checksums that promises much costs no memory, and is no frame.
#[test]
fn lengths_are_not_believed() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("s.spool");
    written(&path);
    let bytes = fs::read(&path).expect("bytes");
    let head = |kind: u32, raw_len: u32, payload: &[u8], len: u32| {
        let mut head = [kind, raw_len, len, crc32c::crc32c(payload)].map(u32::to_le_bytes).concat();
        head.extend(crc32c::crc32c(&head).to_le_bytes());
        head
    };
    let ended = |tail: &[u8]| read(&[&bytes[..], tail].concat()).expect("a spool").1;
    assert!(ended(&head(4, u32::MAX, b"", 0)).is_err(), "unpacked length");
    assert!(ended(&head(4, 1, b"", u32::MAX)).is_err(), "packed length");
    // Sixteen mebibytes promised and not there: torn.
    assert_eq!(ended(&head(4, 1 << 24, b"", 1 << 24)).expect("torn"), 20);
    // A payload that unpacks to another length than stated.
    let packed = zstd::stream::encode_all(&[b'a'; 1000][..], 1).expect("zstd");
    let len = u32::try_from(packed.len()).expect("short");
    for raw_len in [0, 999, 1001, 1 << 24] {
        assert!(ended(&[head(4, raw_len, &packed, len), packed.clone()].concat()).is_err(), "{raw_len}");
    }
    assert_eq!(ended(&[head(4, 1000, &packed, len), packed.clone()].concat()).expect("whole"), 0);
    assert!(ended(&[head(77, 1000, &packed, len), packed.clone()].concat()).is_err(), "a kind of another version");
    assert!(ended(&[head(1, 1000, &packed, len), packed.clone()].concat()).is_err(), "a second header");
    assert!(ended(&[head(2, 1000, &packed, len), packed].concat()).is_err(), "no names");
}

/// The same name over and over took thousands of bytes for one of the spool's: 58 KB cost an import 2 GB and more.
/// Frames of a spool that is as repetitive as calls can be are read.
#[test]
fn frames_unpack_to_a_multiple_of_the_spool() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("s.spool");
    let entry = SnapshotEntry::implied(b"/a".to_vec(), FileKind::File);
    let walked = Walked { snapshot: Snapshot { entries: vec![entry; 3_000_000] }, ..Walked::default() };
    Writer::create(&path, &header()).expect("a spool").names(&walked, Vec::new()).expect("names");
    let bytes = fs::read(&path).expect("bytes");
    assert!(bytes.len() < 50_000, "{}", bytes.len());
    let (frames, ended) = read(&bytes).expect("a spool");
    assert!(!frames.is_empty() && frames.len() < 100, "{}", frames.len());
    let error = ended.expect_err("a refusal");
    assert!(error.to_string().contains("unpack to more than") && error.kind() == Kind::BadInput, "{error}");

    fs::remove_file(&path).expect("it was there");
    let mut writer = Writer::create(&path, &header()).expect("a spool");
    for first in (0..2_000_000_u64).step_by(10_000) {
        let line = |n: u64| format!("100 1700000000.{n:06} close(3</tmp/x>) = 0 <0.000012>\n");
        writer.records((first..first + 10_000).map(line).collect::<String>().as_bytes()).expect("records");
    }
    let bytes = fs::read(&path).expect("bytes");
    let (frames, ended) = read(&bytes).expect("a spool");
    let unpacked =
        frames.iter().map(|frame| if let Frame::Records(text) = frame { text.len() } else { 0 }).sum::<usize>();
    assert!(unpacked > 100_000_000 && ended.is_ok(), "{unpacked}: {ended:?}");
}

/// A name in a spool is what a profile can hold.
#[test]
fn a_name_of_a_spool_is_one_of_a_profile() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("s.spool");
    let link = |target: Vec<u8>| SnapshotEntry {
        target: Some(target),
        ..SnapshotEntry::implied(b"/l".to_vec(), FileKind::Symlink)
    };
    for (n, (target, whole)) in
        [(vec![b'a'; 65_536], true), (vec![b'a'; 65_537], false), (b"a\0".to_vec(), false)].into_iter().enumerate()
    {
        let path = path.with_extension(n.to_string());
        let walked = Walked { snapshot: Snapshot { entries: vec![link(target)] }, ..Walked::default() };
        Writer::create(&path, &header()).expect("a spool").names(&walked, Vec::new()).expect("names");
        let (_, ended) = read(&fs::read(&path).expect("bytes")).expect("a spool");
        assert_eq!(ended.is_ok(), whole, "{ended:?}");
    }
}

#[test]
fn a_follower_reads_what_is_written_while_it_is_written() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("s.spool");
    let mut writer = Writer::create(&path, &header()).expect("a spool");
    let mut reader = Reader::follow(&path, writer.growth()).expect("a reader");
    // Each frame is read before the next is written, so no reader that waits for the end would pass.
    for i in 0..100u32 {
        let records = format!("{i}\n").repeat(1 + (i as usize * 97) % 5000).into_bytes();
        writer.records(&records).expect("records");
        assert_eq!(reader.next_frame().expect("a frame"), Some(Frame::Records(records)));
    }
    let waiting = std::thread::spawn(move || reader.next_frame().expect("the end"));
    drop(writer);
    assert_eq!(waiting.join().expect("the reader"), None);
}

/// Arguments of megabytes, each byte of which is written as several, were a panic that left the spool.
#[test]
fn a_command_longer_than_a_frame_is_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("a.spool");
    let argv = vec!["\\xff".repeat(100_000); 50];
    let refused = Writer::create(&path, &Header { subject: Subject::Command { argv }, ..header() });
    let said = refused.expect_err("it is too long").to_string();
    assert!(said.contains("arguments are longer than a frame"), "{said}");
    assert!(!path.exists());
}

/// A file system with room for a little: what does not fit is cut off, what fits later stands behind whole frames.
#[test]
fn a_write_that_fails_leaves_whole_frames() {
    let dir = tempfile::tempdir().expect("a directory");
    let mounted = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=256k", "fsage-test"])
        .arg(dir.path())
        .output()
        .expect("mount(8)");
    if !mounted.status.success() {
        testkit::skip(format!("no tmpfs can be mounted: {}", String::from_utf8_lossy(&mounted.stderr)));
        return;
    }
    let outcome = std::panic::catch_unwind(|| full_disk(dir.path()));
    testkit::unmount(dir.path());
    outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
}

fn full_disk(dir: &Path) {
    let path = dir.join("s.spool");
    let ballast = dir.join("ballast");
    fs::write(&ballast, vec![1; 128 << 10]).expect("ballast");
    let mut writer = Writer::create(&path, &header()).expect("a spool");
    // Bytes that do not shrink.
    let noise = |seed: u64| -> Vec<u8> {
        use rand_core::{Rng as _, SeedableRng as _};
        let mut rng = rand_xoshiro::Xoshiro256PlusPlus::seed_from_u64(seed);
        (0..5000).flat_map(|_| rng.next_u64().to_le_bytes()).collect()
    };
    let mut want = Vec::new();
    let mut refused = 0;
    for seed in 0..8 {
        match writer.records(&noise(seed)) {
            Ok(()) => want.push(Frame::Records(noise(seed))),
            Err(e) => {
                assert_eq!(e.kind(), std::io::ErrorKind::StorageFull, "{e}");
                refused += 1;
            }
        }
        assert_eq!(fs::metadata(&path).expect("a file").len(), writer.len_bytes());
    }
    assert!(refused > 0 && !want.is_empty());
    fs::remove_file(&ballast).expect("room");
    writer.records(b"after\n").expect("there is room again");
    want.push(Frame::Records(b"after\n".to_vec()));
    drop(writer);
    let (frames, torn) = read(&fs::read(&path).expect("bytes")).expect("a spool");
    assert_eq!((frames, torn.expect("whole")), (want, 0));
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300), magic in any::<bool>()) {
        let mut all = if magic { b"fsage.spool/1\n".to_vec() } else { Vec::new() };
        all.extend(bytes);
        if let Ok(mut reader) = Reader::new(Cursor::new(all), Path::new("x")) {
            while let Ok(Some(_)) = reader.next_frame() {}
        }
    }

    #[test]
    fn any_names_come_back(
        paths in prop::collection::vec(entry_path(), 0..20),
        numbers in any::<(u64, u16, u32, i64)>(),
    ) {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("s.spool");
        let kinds = [FileKind::File, FileKind::Directory, FileKind::Symlink, FileKind::Special];
        let entries: Vec<SnapshotEntry> = paths.iter().enumerate().map(|(i, path)| SnapshotEntry {
            path: path.clone(),
            kind: kinds[i % 4],
            size_bytes: numbers.0,
            mode: numbers.1,
            uid: numbers.2,
            gid: !numbers.2,
            nlink: numbers.2 >> 1,
            ino: !numbers.0,
            dev: numbers.0 >> 1,
            mtime_ns: numbers.3,
            target: (i % 3 == 0).then(|| path.clone()),
            provenance: Provenance::Before,
        }).collect();
        let walked = Walked { snapshot: Snapshot { entries: entries.clone() }, ..Walked::default() };
        Writer::create(&path, &header()).expect("a spool").names(&walked, Vec::new()).expect("names");
        let (frames, _) = read(&fs::read(&path).expect("bytes")).expect("a spool");
        let back: Vec<SnapshotEntry> = frames.into_iter().flat_map(|frame| match frame {
            Frame::Names(names) => names,
            _ => Vec::new(),
        }).collect();
        prop_assert_eq!(back, entries);
    }
}

/// The recorder was killed while it stored the first records: it was said that "the file is empty".
#[test]
fn a_spool_cut_in_its_first_records_says_that_it_holds_none() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("cut.spool");
    let mut writer = Writer::create(&path, &header()).expect("a spool");
    writer.names(&walked(), vec!["/home".into()]).expect("names");
    let before = writer.len_bytes();
    writer.records(b"1 0.5 close(3) = 0 <0.1>\n").expect("records");
    drop(writer);
    let bytes = fs::read(&path).expect("the spool");
    fs::write(&path, &bytes[..usize::try_from(before).expect("short") + 9]).expect("the cut spool");
    let error = trace::record::import_spool(&path, &dir.path().join("out.workload"), false).expect_err("no profile");
    let text = error.to_string();
    assert!(text.contains("cut.spool: holds no records"), "{text}");
    assert_eq!(error.kind(), Kind::BadInput, "{text}");
}
