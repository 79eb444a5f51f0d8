//! Made-up traces and snapshots for the tests of this crate.
use posix::FileKind;
use proptest::prelude::*;
use trace::profile::{Meta, Row};
use trace::{Batch, Event, FileId, OfdId, Op, PathId, Provenance, Snapshot, SnapshotEntry};

/// Any bytes a path may hold (no NUL), with a liking for the awkward ones.
pub fn path_bytes() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![4 => 1u8..=255, 2 => Just(b'/'), 1 => Just(b'\\'), 1 => Just(b'\n'), 1 => Just(b'~')];
    proptest::collection::vec(byte, 0..40).prop_map(|mut tail| {
        let mut path = vec![b'/'];
        path.append(&mut tail);
        path
    })
}

/// The same as an entry of a snapshot has it.
pub fn entry_path() -> impl Strategy<Value = Vec<u8>> {
    path_bytes().prop_map(|path| {
        let names = trace::tree::components(&path).filter(|&name| name != b"." && name != b"..");
        let path: Vec<u8> = names.flat_map(|name| [b"/", name].concat()).collect();
        if path.is_empty() { b"/".to_vec() } else { path }
    })
}

/// What an event is made of apart from its paths; `seq` is set by [`batch_of`].
fn event() -> impl Strategy<Value = Row> {
    let numbers = (any::<u64>(), any::<u64>(), any::<u32>(), any::<u32>(), 0..Op::ALL.len(), any::<u32>());
    let results = (any::<Option<u16>>(), any::<u16>(), any::<i64>());
    let ids = any::<[Option<u64>; 4]>();
    let sizes = any::<[Option<u64>; 6]>();
    let paths = any::<[Option<u8>; 4]>();
    (numbers, results, ids, sizes, paths).prop_map(|(n, r, ids, sizes, paths)| Row {
        seq: 0,
        t_ns: n.0,
        dur_ns: n.1,
        pid: n.2,
        tid: n.3,
        op: Op::ALL[n.4],
        flags: n.5,
        mode: r.0,
        errno: r.1,
        ret: r.2,
        ofd: ids[0].map(OfdId),
        ofd2: ids[1].map(OfdId),
        file: ids[2].map(FileId),
        parent: ids[3].map(FileId),
        path: paths[0].map(|p| PathId(u32::from(p))),
        path2: paths[1].map(|p| PathId(u32::from(p))),
        caller_dir: paths[2].map(|p| PathId(u32::from(p))),
        caller_dir2: paths[3].map(|p| PathId(u32::from(p))),
        offset: sizes[0],
        offset2: sizes[1],
        req_bytes: sizes[2],
        size_before: sizes[3],
        running_ns: sizes[4],
        blocked_ns: sizes[5],
    })
}

/// Arbitrary batches with growing `seq`.
pub fn batches() -> impl Strategy<Value = Vec<Batch>> {
    let batch = (proptest::collection::vec(event(), 0..60), proptest::collection::vec(path_bytes(), 1..12));
    proptest::collection::vec(batch, 0..4).prop_map(|raw| {
        let mut seq = 0;
        raw.into_iter().map(|(events, paths)| batch_of(events, &paths, &mut seq)).collect()
    })
}

fn batch_of(events: Vec<Row>, paths: &[Vec<u8>], seq: &mut u64) -> Batch {
    let mut batch = Batch::default();
    for mut event in events {
        for id in [&mut event.path, &mut event.path2, &mut event.caller_dir, &mut event.caller_dir2] {
            *id = id.map(|n| batch.paths.intern(&paths[n.0 as usize % paths.len()]));
        }
        event.seq = *seq;
        *seq += 1 + event.t_ns % 3;
        batch.events.push(event.into());
    }
    batch
}

/// An arbitrary snapshot, in order.
pub fn snapshot() -> impl Strategy<Value = Snapshot> {
    let entry = (
        entry_path(),
        0..4usize,
        any::<[u64; 3]>(),
        any::<[u32; 3]>(),
        0..0o10000u16,
        any::<i64>(),
        path_bytes(),
        0..3usize,
    );
    proptest::collection::vec(entry, 0..40).prop_map(|raw| {
        let entries = raw.into_iter().map(|(path, kind, sizes, ids, mode, mtime_ns, target, provenance)| {
            let kind = [FileKind::File, FileKind::Directory, FileKind::Symlink, FileKind::Special][kind];
            SnapshotEntry {
                path,
                kind,
                size_bytes: sizes[0],
                mode,
                uid: ids[0],
                gid: ids[1],
                nlink: ids[2],
                ino: sizes[1],
                dev: sizes[2],
                mtime_ns,
                target: (kind == FileKind::Symlink).then_some(target),
                provenance: [Provenance::Before, Provenance::After, Provenance::Trace][provenance],
            }
        });
        Snapshot::from_entries(entries.collect())
    })
}

/// An event with its paths spelled out: what must survive a round trip, whatever the batches' boundaries and ids.
#[derive(Debug, PartialEq, Eq)]
pub struct Spelled {
    pub event: Row,
    pub paths: [Option<Vec<u8>>; 4],
}

pub fn spell(batch: &Batch) -> Vec<Spelled> {
    let text = |id: Option<PathId>| id.map(|id| batch.paths.get(id).to_vec());
    let spelled = |e: &Event| Spelled {
        paths: [text(e.path()), text(e.path2()), text(e.caller_dir()), text(e.caller_dir2())],
        event: Row { path: None, path2: None, caller_dir: None, caller_dir2: None, ..Row::from(e) },
    };
    batch.events.iter().map(spelled).collect()
}

/// A plain call of one operation.
pub fn plain(seq: u64, op: Op) -> Row {
    Row { dur_ns: 500, pid: 100, tid: 100, ..Row::new(seq, seq * 1000, op) }
}

/// A meta with something in most fields.
pub fn meta() -> Meta {
    let mut meta = Meta { clock: "CLOCK_REALTIME, microseconds".into(), coverage_share: Some(0.97), ..Meta::default() };
    meta.tracer.name = "strace".into();
    meta.tracer.options = vec!["-f".into(), "-ttt".into()];
    meta.wall_ns = Some(12_345_678);
    meta.unmodelled.insert("io_setup".into(), 3);
    meta.unparsed.lines = 2;
    meta.unparsed.first_line_numbers = vec![17, 23];
    meta
}
