//! The statistics of traces small enough to count by hand.

use crate::common::{meta, plain};
use posix::FileKind;
use trace::inspect::{InspectOptions, Inspection, inspect};
use trace::profile::{Reader, Row, Writer, WriterOptions};
use trace::{Batch, FileId, OfdId, Op, Snapshot, SnapshotEntry, flag};

fn inspected(batch: &Batch, snapshot: &Snapshot) -> Inspection {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("w.workload");
    let mut writer = Writer::create(&path, WriterOptions::default()).unwrap();
    writer.push(batch).unwrap();
    writer.finish(meta(), snapshot).unwrap();
    inspect(&Reader::open(&path).unwrap(), &InspectOptions::default()).unwrap()
}

struct Script {
    batch: Batch,
}

impl Script {
    fn call(&mut self, op: Op, path: &str, file: u64, set: impl FnOnce(&mut Row)) {
        let mut event = plain(self.batch.events.len() as u64, op);
        event.file = Some(FileId(file));
        event.parent = Some(FileId(1));
        event.path = Some(self.batch.paths.intern(path.as_bytes()));
        set(&mut event);
        self.batch.events.push(event.into());
    }

    fn data(&mut self, op: Op, file: u64, ofd: u64, offset: u64, len: u64) {
        self.call(op, "/d/f", file, |e| {
            (e.ofd, e.offset, e.req_bytes, e.ret) = (Some(OfdId(ofd)), Some(offset), Some(len), len as i64);
        });
    }
}

#[test]
fn a_small_trace_counted_by_hand() {
    let mut s = Script { batch: Batch::default() };
    s.call(Op::Open, "/d/new", 2, |e| (e.flags, e.ofd) = (flag::CREATE | flag::WRITE, Some(OfdId(1))));
    s.data(Op::Write, 2, 1, 0, 4096);
    s.data(Op::Write, 2, 1, 4096, 4096);
    s.data(Op::Write, 2, 1, 100_000, 1000);
    s.call(Op::Open, "/d/old", 3, |e| {
        (e.flags, e.ofd, e.pid, e.tid) = (flag::CREATE | flag::READ, Some(OfdId(2)), 200, 201);
    });
    s.data(Op::Read, 3, 2, 0, 8192);
    s.data(Op::Read, 3, 2, 8192, 8192);
    s.data(Op::Read, 3, 2, 0, 4096);
    s.call(Op::Unlink, "/d/new", 2, |_| {});
    s.call(Op::Close, "/d/new", 2, |e| (e.flags, e.ofd) = (flag::LAST, Some(OfdId(1))));
    s.call(Op::Stat, "/d/./gone", 4, |e| (e.errno, e.ret, e.file) = (2, -1, None));
    s.call(Op::Stat, "/d/./gone", 4, |e| (e.errno, e.ret, e.file) = (2, -1, None));
    s.call(Op::Close, "/d/old", 3, |e| (e.flags, e.ofd) = (flag::LAST | flag::IMPLIED, Some(OfdId(2))));
    s.call(Op::Read, "/dev/tty", 9, |e| (e.flags, e.ret) = (flag::FOREIGN, 77));

    let snapshot = Snapshot::from_entries(vec![
        SnapshotEntry::implied(b"/d".to_vec(), FileKind::Directory),
        SnapshotEntry::implied(b"/d/old".to_vec(), FileKind::File),
    ]);
    let i = inspected(&s.batch, &snapshot);

    assert_eq!((i.calls, i.foreign_calls, i.processes, i.threads), (13, 1, 2, 2));
    assert_eq!(i.operations[0].op, "read");
    assert_eq!((i.operations[0].calls, i.operations[0].foreign), (4, 1));
    assert_eq!(i.failures.len(), 1);
    assert_eq!((i.failures[0].op, i.failures[0].name.as_str(), i.failures[0].calls), ("stat", "ENOENT", 2));

    let w = &i.writes;
    assert_eq!((w.calls, w.moved_bytes), (3, 9192));
    assert_eq!(
        (w.by_description.first_calls, w.by_description.sequential_calls, w.by_description.other_calls),
        (1, 1, 1)
    );
    assert_eq!((w.by_description.run_bytes.count, w.by_description.run_bytes.max), (2, 8192));
    assert_eq!(w.by_description.sequential_share, Some(0.5));
    assert_eq!((i.reads.calls, i.reads.requested_bytes, i.reads.by_file.sequential_bytes), (3, 20480, 8192));

    // Blocks: file 2: 0, 1, 24 written; file 3: 0-3 read, then 0 again with 1, 2, 3 in between.
    assert_eq!((i.reuse.accesses, i.reuse.first_touches, i.reuse.sampled_share), (8, 7.0, 1.0));
    assert_eq!(i.working_set_bytes, 7.0 * 4096.0);
    let bar = &i.reuse.histogram[0];
    assert_eq!((i.reuse.histogram.len(), bar.below_blocks, bar.touches), (1, 4, 1.0));
    let ratios: Vec<_> = i.reuse.miss_ratios.iter().map(|m| (m.cache_bytes, m.miss_ratio)).collect();
    assert_eq!(ratios, [(4096, 1.0), (8192, 1.0), (16384, 0.875)]);

    let f = &i.files;
    assert_eq!((f.files, f.directories, f.shared_directories), (2, 1, 1));
    assert_eq!((f.created_files, f.removed_files, f.created_and_removed_files), (1, 1, 1), "old was there before");
    assert_eq!(f.lifetimes_ns.max, 8000);
    assert_eq!((f.unlinked_open_files, f.shared_files), (1, 1), "old is opened by 200 and read by 100");
    assert_eq!((f.path_components.count, f.path_components.max), (5, 2));
    assert_eq!((i.snapshot.files, i.snapshot.directories, i.snapshot.fan_out.max), (1, 1, 1));
    assert_eq!(i.coverage.share, Some(0.97));
    assert_eq!(i.coverage.unparsed.lines, 2);
}

#[test]
fn an_empty_trace_is_no_trouble() {
    let i = inspected(&Batch::default(), &Snapshot::default());
    assert_eq!((i.calls, i.span_ns, i.reuse.miss_ratios.len()), (0, 0, 0));
    let json = serde_json::to_string(&i).unwrap();
    assert!(json.contains("\"calls\":0") && !json.contains("NaN"));
}

/// Issue 12: `inspect --latency --json` panicked on two calls of 2^63 ns, whose sum JSON did not take; a run of reads
/// that reaches past 2^64 bytes overflowed.
#[test]
fn sums_beyond_64_bits_end_at_the_largest() {
    let mut s = Script { batch: Batch::default() };
    let half = 1 << 63;
    for (n, offset) in [(0, 0), (1, half - 1), (2, u64::MAX - 1)] {
        s.data(Op::Read, 2, 1, offset, half - 1);
        let event = &mut s.batch.events[n].head;
        (event.dur_ns, event.running_ns, event.blocked_ns) = (half, Some(half), Some(half));
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("w.workload");
    let mut writer = Writer::create(&path, WriterOptions::default()).unwrap();
    writer.push(&s.batch).unwrap();
    writer.finish(meta(), &Snapshot::default()).unwrap();
    let reader = Reader::open(&path).unwrap();
    let found = serde_json::to_value(trace::inspect::latencies(&reader).unwrap()).unwrap();
    assert_eq!(found["all"]["total_ns"], u64::MAX);
    assert_eq!(found["all"]["spent"]["running_ns"], u64::MAX);
    assert_eq!(inspect(&reader, &InspectOptions::default()).unwrap().traced_ns, u64::MAX);
}
