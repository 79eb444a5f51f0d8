//! The decoder of the kernel recorder's records, on records made by hand and on damaged ones. Whether records are right
//! is judged elsewhere, by the kernel and by strace (crates/capture/tests).

use proptest::prelude::*;
use trace::kernel::Importer;
use trace::kernel::wire::{self, Kind, call_flag};
use trace::schedule::{Happened, Turn};
use trace::strace::{ImportOptions, Imported};
use trace::{Event, Op};

fn import(records: &[u8]) -> (Vec<Event>, Option<Imported>) {
    let mut events = Vec::new();
    let mut importer = Importer::new(ImportOptions { keep_removed: true, ..ImportOptions::default() });
    let mut sink = |batch: trace::Batch| {
        for event in &batch.events {
            for id in [event.path(), event.path2(), event.caller_dir(), event.caller_dir2()].into_iter().flatten() {
                let _ = batch.paths.get(id);
            }
        }
        events.extend_from_slice(&batch.events);
        Ok(())
    };
    importer.bytes(records, &mut sink).expect("the sink takes everything");
    let imported = importer.finish(&mut sink).ok();
    (events, imported)
}

fn start(records: &mut Vec<u8>) {
    let start = wire::Start { version: wire::VERSION, features: 3, monotonic_ns: 0, realtime_ns: 1 << 60 };
    wire::append(records, Kind::Start, 0, |out| start.write(out));
}

/// A pread of file 5 by thread 7.
fn pread(records: &mut Vec<u8>, start_ns: u64, dur_ns: u64) {
    let args = [3, 0, 100, 0, 0, 0];
    let call = wire::Call {
        pid: 7,
        tid: 7,
        start_ns,
        dur_ns,
        ret: 100,
        nr: 17,
        iov_bytes: wire::UNKNOWN,
        args,
        ..Default::default()
    };
    wire::append(records, Kind::Call, call_flag::FACT0, |out| {
        call.write(out);
        wire::Fact { id: 5, pos: 0, size: 0 }.write(out);
    });
}

fn fault(records: &mut Vec<u8>, start_ns: u64, dur_ns: u64) {
    let fault = wire::Fault { pid: 7, tid: 7, start_ns, dur_ns, blocked_ns: 0, id: 5, offset: 0, bytes: 4096 };
    wire::append(records, Kind::Fault, 0, |out| fault.write(out));
}

/// One fault can leave two records, of the window mapped and of the page that was waited for. Their places in the order
/// were one key, the first was never filled, and all events behind it were held back for ever and lost.
#[test]
fn two_records_of_one_moment_hold_nothing_back() {
    let mut records = Vec::new();
    start(&mut records);
    fault(&mut records, 10, 1);
    fault(&mut records, 10, 5);
    for i in 0..100 {
        pread(&mut records, 20 + i * 10, 5);
    }
    let (events, imported) = import(&records);
    assert_eq!(events.len(), 102);
    assert_eq!(imported.map(|i| i.summary.events), Some(102));
}

/// Records come in the order of returns; events in the order of starts.
#[test]
fn events_are_in_the_order_of_starts() {
    let mut records = Vec::new();
    start(&mut records);
    pread(&mut records, 200, 10);
    pread(&mut records, 100, 1000);
    fault(&mut records, 50, 2000);
    let (events, _) = import(&records);
    assert_eq!(
        events.iter().map(|e| (e.head.t_ns, e.op())).collect::<Vec<_>>(),
        [(0, Op::MapRead), (50, Op::Read), (150, Op::Read)]
    );
}

#[test]
fn losses_are_gaps() {
    let mut records = Vec::new();
    start(&mut records);
    pread(&mut records, 100, 10);
    wire::append(&mut records, Kind::Lost, 0, |out| wire::Lost { at_ns: 500, records: 42 }.write(out));
    pread(&mut records, 600, 10);
    let (_, imported) = import(&records);
    let meta = imported.expect("an import").meta();
    assert_eq!((meta.lost_events, meta.gaps.len(), meta.gaps[0].at_ns, meta.gaps[0].events), (42, 1, 400, 42));
}

#[test]
fn a_call_that_never_returned_is_unfinished() {
    let mut records = Vec::new();
    start(&mut records);
    let call = wire::Call { pid: 7, tid: 7, start_ns: 10, nr: 17, args: [3, 0, 100, 0, 0, 0], ..Default::default() };
    wire::append(&mut records, Kind::Enter, call_flag::FACT0, |out| {
        call.write(out);
        wire::Fact { id: 5, pos: 0, size: 0 }.write(out);
    });
    let (events, _) = import(&records);
    assert_eq!(
        events.iter().map(|e| (e.op(), e.head.flags & trace::flag::UNFINISHED != 0)).collect::<Vec<_>>(),
        [(Op::Read, true)]
    );
}

/// What the recorder tells of an open file.
fn told(records: &mut Vec<u8>, id: u64, ino: u64, name: &str, open_flags: u32) {
    let names_bytes = u32::try_from(name.len()).expect("a short name") + 1;
    let mode = 0o100_644;
    let file = wire::File { id, ino, dev: 8, generation: 3, nlink: 1, mode, open_flags, names_bytes, size: 500 };
    wire::append(records, Kind::File, 0, |out| {
        file.write(out);
        out.push(u8::try_from(name.len()).expect("a short name"));
        out.extend_from_slice(name.as_bytes());
    });
}

/// A call on a descriptor, of a process of one thread.
fn on_fd(records: &mut Vec<u8>, pid: u32, (nr, fd, bytes, ret): (u32, u64, u64, i64), at: u64, id: u64) {
    let args = [fd, 0, bytes, 0, 0, 0];
    let iov_bytes = wire::UNKNOWN;
    let call = wire::Call { pid, tid: pid, start_ns: at, dur_ns: 1, ret, nr, iov_bytes, args, ..Default::default() };
    wire::append(records, Kind::Call, call_flag::FACT0, |out| {
        call.write(out);
        wire::Fact { id, pos: 0, size: 500 }.write(out);
    });
}

const READ: u32 = 0;
const WRITE: u32 = 1;
const CLOSE: u32 = 3;

/// Torture in the kernel, seeds 1 and 2: a description that its sender closed before it arrived over a socket was taken
/// for another, with another offset, and its file for another once that had no name.
#[test]
fn a_description_on_its_way_is_remembered() {
    let mut records = Vec::new();
    start(&mut records);
    told(&mut records, 50, 1000, "f", 0);
    on_fd(&mut records, 7, (READ, 3, 100, 100), 10, 50);
    on_fd(&mut records, 7, (CLOSE, 3, 0, 0), 20, 50);
    on_fd(&mut records, 8, (READ, 9, 100, 100), 30, 50);
    let (events, _) = import(&records);
    assert_eq!(events.iter().map(|e| e.offset()).collect::<Vec<_>>(), [Some(0), None, Some(100)]);
    assert_eq!(events[2].ofd(), events[0].ofd());
    assert_eq!(events[2].file(), events[0].file());
}

/// Torture in the kernel, seed 2: a description from elsewhere that appends was told to write at its offset.
#[test]
fn a_description_from_elsewhere_that_appends_writes_at_the_end() {
    let mut records = Vec::new();
    start(&mut records);
    told(&mut records, 50, 1000, "f", 0o2001);
    on_fd(&mut records, 7, (WRITE, 3, 10, 10), 10, 50);
    on_fd(&mut records, 7, (WRITE, 3, 10, 10), 20, 50);
    let (events, _) = import(&records);
    assert_eq!(events.iter().map(|e| e.offset()).collect::<Vec<_>>(), [Some(500), Some(510)]);
}

/// Torture in the kernel on a loaded machine, whose thread numbers came round: something was told of a thread after its
/// end, which made it known again; whoever got its number next had its descriptors, directory and mounts.
#[test]
fn a_number_used_again_is_another_thread() {
    let mut records = Vec::new();
    start(&mut records);
    told(&mut records, 50, 1000, "f", 0);
    told(&mut records, 60, 1001, "g", 0);
    on_fd(&mut records, 9, (READ, 3, 100, 100), 10, 60);
    on_fd(&mut records, 7, (READ, 3, 100, 100), 20, 50);
    wire::append(&mut records, Kind::Exit, 0, |out| {
        wire::Exit { at_ns: 30, pid: 7, tid: 7, code: 0, ..Default::default() }.write(out);
    });
    fault(&mut records, 31, 1);
    wire::append(&mut records, Kind::Fork, wire::fork_flag::SAME_PROCESS | wire::fork_flag::SHARES_FILES, |out| {
        wire::Fork { at_ns: 40, parent_tid: 9, child_tid: 7, child_pid: 9, reserved: 0 }.write(out);
    });
    let args = [3, 0, 100, 0, 0, 0];
    let call = wire::Call { pid: 9, tid: 7, start_ns: 50, dur_ns: 1, ret: 100, nr: READ, args, ..Default::default() };
    wire::append(&mut records, Kind::Call, 0, |out| call.write(out));
    let (events, _) = import(&records);
    let (first, last) = (&events[0], &events[events.len() - 1]);
    assert_eq!((last.head.tid, last.op(), last.head.pid), (7, Op::Read, 9));
    // The descriptor is the one that it shares.
    assert_eq!((last.ofd(), last.file(), last.offset()), (first.ofd(), first.file(), Some(100)));
}

/// Two names, one inode: one file.
#[test]
fn a_file_is_known_by_its_inode() {
    let mut records = Vec::new();
    start(&mut records);
    told(&mut records, 50, 1000, "f", 0);
    told(&mut records, 60, 1000, "g", 0);
    told(&mut records, 70, 2000, "h", 0);
    for (i, id) in [50, 60, 70].into_iter().enumerate() {
        on_fd(&mut records, 7, (READ, 3 + i as u64, 1, 1), 10 * (i as u64 + 1), id);
    }
    let (events, _) = import(&records);
    assert_eq!(events[0].file(), events[1].file());
    assert_ne!(events[0].file(), events[2].file());
}

/// Torture in the kernel, seed 7, a million operations: a file whose path was too long to be told was no file at all,
/// and so was everything done to it.
#[test]
fn a_file_whose_path_is_too_long_is_known_by_its_inode() {
    let mut records = Vec::new();
    start(&mut records);
    let told_as = |records: &mut Vec<u8>, id, flags| {
        let ino = 1000;
        let file = wire::File { id, ino, dev: 8, generation: 3, nlink: 1, mode: 0o100_644, ..Default::default() };
        wire::append(records, Kind::File, flags, |out| file.write(out));
    };
    told_as(&mut records, 50, wire::file_flag::CUT);
    on_fd(&mut records, 7, (READ, 3, 100, 100), 10, 50);
    on_fd(&mut records, 7, (READ, 3, 100, 100), 20, 50);
    told(&mut records, 60, 1000, "f", 0);
    on_fd(&mut records, 7, (READ, 4, 100, 100), 30, 60);
    told_as(&mut records, 60, wire::file_flag::CUT);
    on_fd(&mut records, 7, (READ, 4, 100, 100), 40, 60);
    let (events, _) = import(&records);
    assert!(events[0].file().is_some());
    assert!(events.iter().all(|event| event.file() == events[0].file()), "one file");
    assert_eq!(events.iter().map(|e| e.offset()).collect::<Vec<_>>(), [Some(0), Some(100), Some(0), Some(100)]);
    assert_eq!((events[0].ofd(), events[2].ofd()), (events[1].ofd(), events[3].ofd()));
    assert_ne!(events[0].ofd(), events[2].ofd());
}

/// What the recorder tells of an open file by its directory: its one name, or what else stands there.
fn told_below(records: &mut Vec<u8>, id: u64, ino: u64, directory: u64, names: &[u8]) {
    let names_bytes = u32::try_from(wire::Below::BYTES + names.len()).expect("a short name");
    let file = wire::File { id, ino, dev: 8, mode: 0o100_644, names_bytes, ..Default::default() };
    wire::append(records, Kind::File, wire::file_flag::BELOW, |out| {
        file.write(out);
        wire::Below { directory }.write(out);
        out.extend_from_slice(names);
    });
}

/// Paths of all events, as they stand in the profile.
fn paths(records: &[u8]) -> Vec<String> {
    let mut paths = Vec::new();
    let mut importer = Importer::new(ImportOptions::default());
    let mut sink = |batch: trace::Batch| {
        let path = |event: &Event| event.path().map(|id| String::from_utf8_lossy(batch.paths.get(id)).into_owned());
        paths.extend(batch.events.iter().map(|event| path(event).unwrap_or_default()));
        Ok(())
    };
    importer.bytes(records, &mut sink).expect("the sink takes everything");
    importer.finish(&mut sink).expect("the sink takes everything");
    paths
}

/// A file told by its directory has the path that the directory has where the record stands: neither an older nor a
/// later one.
#[test]
fn a_file_told_by_its_directory_lies_there() {
    let mut records = Vec::new();
    start(&mut records);
    let read = |records: &mut Vec<u8>, fd, id| on_fd(records, 7, (READ, fd, 1, 1), fd * 10, id);
    told(&mut records, 90, 2, "old", 0);
    told(&mut records, 90, 2, "da\\rk", 0);
    told_below(&mut records, 50, 1000, 90, b"\x01f");
    told(&mut records, 90, 2, "later", 0);
    read(&mut records, 3, 50);
    told_below(&mut records, 51, 1001, 90, b"\x03a\\b");
    read(&mut records, 4, 51);
    // The top of the mount tree has no name.
    wire::append(&mut records, Kind::File, 0, |out| wire::File { id: 91, ino: 1, ..Default::default() }.write(out));
    told_below(&mut records, 52, 1002, 91, b"\x01g");
    read(&mut records, 5, 52);
    assert_eq!(paths(&records), ["/da\\rk/f", "/later/a\\b", "/g"]);
}

/// Where the directory was not told, or by no path, a file is known by its inode, as one whose path is too long.
#[test]
fn a_file_told_by_a_directory_without_a_path_is_known_by_its_inode() {
    let mut records = Vec::new();
    start(&mut records);
    told_below(&mut records, 50, 1000, 90, b"\x01f");
    on_fd(&mut records, 7, (READ, 3, 1, 1), 10, 50);
    let long = wire::File { id: 90, ino: 2, dev: 8, ..Default::default() };
    wire::append(&mut records, Kind::File, wire::file_flag::CUT, |out| long.write(out));
    told_below(&mut records, 51, 1000, 90, b"\x01f");
    on_fd(&mut records, 7, (READ, 4, 1, 1), 20, 51);
    let (events, _) = import(&records);
    assert!(events[0].file().is_some() && events[0].file() == events[1].file(), "{events:?}");
    assert_ne!(events[0].ofd(), events[1].ofd());
}

#[test]
fn a_file_told_by_its_directory_without_a_name_is_damaged() {
    for names in [&b""[..], b"\x05f"] {
        let mut records = Vec::new();
        start(&mut records);
        told(&mut records, 90, 2, "d", 0);
        told_below(&mut records, 50, 1000, 90, names);
        on_fd(&mut records, 7, (READ, 3, 1, 1), 10, 50);
        let (_, imported) = import(&records);
        let summary = imported.expect("an import").summary;
        assert_eq!(summary.problems.len(), 1, "{:?}", summary.problems);
        assert_eq!(summary.problems[0].reason, "a file whose names are damaged");
    }
}

/// Spools of the versions before are read, those of later ones are not.
#[test]
fn versions_that_are_read() {
    for version in 0..=wire::VERSION + 1 {
        let mut records = Vec::new();
        let first = wire::Start { version, features: 3, monotonic_ns: 0, realtime_ns: 1 << 60 };
        wire::append(&mut records, Kind::Start, 0, |out| first.write(out));
        told(&mut records, 50, 1000, "f", 0);
        on_fd(&mut records, 7, (READ, 3, 1, 1), 10, 50);
        let (_, imported) = import(&records);
        let problems = imported.expect("an import").summary.problems.len();
        assert_eq!(problems, usize::from(!(1..=3).contains(&version)), "version {version}");
    }
}

/// What a recorder says of threads and their processors, against what a profile is to hold of it.
#[test]
fn turns_of_threads() {
    let mut records = Vec::new();
    let first = wire::Start { version: wire::VERSION, features: 8, monotonic_ns: 0, realtime_ns: 1 << 60 };
    wire::append(&mut records, Kind::Start, 0, |out| first.write(out));
    told(&mut records, 50, 1000, "f", 0);
    on_fd(&mut records, 7, (READ, 3, 1, 1), 100, 50);
    let turn =
        |records: &mut Vec<u8>, flags: u16, tid: u32, waker_tid: u32, (off_ns, woke_ns, on_ns): (u64, u64, u64)| {
            let turn = wire::Turn { tid, waker_tid, off_ns, woke_ns, on_ns };
            wire::append(records, Kind::Turn, flags, |out| turn.write(out));
        };
    let fork = wire::Fork { at_ns: 200, parent_tid: 7, child_tid: 8, child_pid: 7, reserved: 0 };
    wire::append(&mut records, Kind::Fork, wire::fork_flag::SAME_PROCESS, |out| fork.write(out));
    turn(&mut records, 0, 8, 0, (200, 200, 210));
    turn(&mut records, wire::turn_flag::SLEPT, 7, 8, (220, 250, 260));
    turn(&mut records, wire::turn_flag::SLEPT, 7, 0, (270, 265, 280)); // Damaged.
    let exit = |tid: u32, at_ns: u64| wire::Exit { at_ns, tid, pid: 7, code: 0, reserved: 0 };
    wire::append(&mut records, Kind::Exit, 0, |out| exit(8, 300).write(out));
    turn(&mut records, wire::turn_flag::LAST, 8, 0, (330, 330, 330));
    wire::append(&mut records, Kind::Exit, 0, |out| exit(7, 400).write(out));
    let mut schedule = Vec::new();
    let mut importer = Importer::new(ImportOptions::default());
    let mut sink = |batch: trace::Batch| {
        schedule.extend_from_slice(&batch.schedule);
        Ok(())
    };
    importer.bytes(&records, &mut sink).expect("the sink takes everything");
    let imported = importer.finish(&mut sink).expect("an import");
    assert_eq!(imported.summary.problems.len(), 1, "{:?}", imported.summary.problems);
    let expected = [
        (8, 100, Happened::Began { parent: 7 }),
        (8, 100, Happened::Waited { until_ns: 110 }),
        (7, 120, Happened::Slept { woken_ns: 150, until_ns: 160, waker: Some(8) }),
        // After it said that it exits, it had work to do.
        (8, 230, Happened::Ended),
        // The recording ended before it did.
        (7, 300, Happened::Ended),
    ];
    let expected = expected.map(|(tid, t_ns, what)| Turn { tid, t_ns, what });
    assert_eq!(schedule, expected);
}

/// A call that the kernel will begin again was told to have failed with an error of which no program ever hears.
#[test]
fn restart_codes_are_interruptions() {
    let mut records = Vec::new();
    start(&mut records);
    on_fd(&mut records, 7, (READ, 3, 1, -512), 10, 50);
    let (events, _) = import(&records);
    assert_eq!((events[0].head.ret, events[0].head.errno), (-1, Some(posix::Errno::EINTR)));
}

/// Frames of any content.
fn any_records() -> impl Strategy<Value = (Vec<u8>, u64)> {
    let record = (
        0..Kind::ALL.len(),
        any::<u16>(),
        proptest::collection::vec(prop_oneof![Just(0u8), 0..8u8, any::<u8>()], 0..260),
    );
    proptest::collection::vec(record, 0..40).prop_map(|all| {
        let mut records = Vec::new();
        let count = all.len() as u64;
        for (kind, flags, body) in all {
            wire::append(&mut records, Kind::ALL[kind].0, flags, |out| out.extend_from_slice(&body));
        }
        (records, count)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    /// Ids that are told as directories and as files in each other, in any order: each call is on the path that its id
    /// was told by last, below what the directory's was then. Held against a table of the paths.
    #[test]
    fn files_lie_where_their_directories_did(all in proptest::collection::vec((0..6u64, proptest::option::of(0..6u64),
        0..9u32), 1..40)) {
        let mut records = Vec::new();
        start(&mut records);
        let mut table: std::collections::HashMap<u64, Option<String>> = std::collections::HashMap::new();
        let mut expected = Vec::new();
        for (i, &(id, directory, name)) in all.iter().enumerate() {
            let (id, directory) = (id + 1, directory.map(|d| d + 1));
            // A file is what it is by its inode: each its own, so that no two paths are one file.
            let ino = 100 + i as u64;
            let name = format!("n{name}");
            match directory {
                None => {
                    told(&mut records, id, ino, &name, 0);
                    table.insert(id, Some(format!("/{name}")));
                }
                Some(directory) => {
                    let names = [&[u8::try_from(name.len()).expect("a short name")], name.as_bytes()].concat();
                    told_below(&mut records, id, ino, directory, &names);
                    let above = table.get(&directory).cloned().flatten();
                    table.insert(id, above.map(|above| format!("{above}/{name}")));
                }
            }
            on_fd(&mut records, 7, (READ, 3 + i as u64, 1, 1), 10 * (i as u64 + 1), id);
            expected.push(table[&id].clone().unwrap_or_default());
        }
        prop_assert_eq!(paths(&records), expected);
    }

    #[test]
    fn records_of_any_content_are_accounted_for((records, count) in any_records()) {
        let (events, imported) = import(&records);
        if let Some(mut imported) = imported {
            prop_assert_eq!(imported.summary.lines, count);
            prop_assert_eq!(imported.summary.events, events.len() as u64);
            let _ = imported.implied_snapshot();
        }
        prop_assert!(events.iter().enumerate().all(|(i, event)| event.head.seq == i as u64));
    }

    #[test]
    fn any_bytes_end_somewhere(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = import(&bytes);
    }
}
