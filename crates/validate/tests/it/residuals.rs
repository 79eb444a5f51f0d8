//! Files of residuals and the contexts found in them, on rows whose errors are known because the test made them.

use posix::Residency;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use std::path::Path;
use std::sync::Arc;
use trace::Op;
use validate::residuals::contexts::{Context, contexts};
use validate::residuals::{Priced, ResidualReader, ResidualWriter, Row, Seen, Source, VERSION_KEY};

const OPS: [(Op, &str, f64); 5] = [
    (Op::Open, "open", 2_000.0),
    (Op::Read, "rdc_4096", 700.0),
    (Op::Write, "wra_4096", 3_000.0),
    (Op::Close, "close", 400.0),
    (Op::Fsync, "fsync_cr_4096", 600_000.0),
];

/// A call with its state drawn by lot, measured as `measure` has it.
fn write(path: &Path, calls: u64, seed: u64, measure: impl Fn(&Row<'_>, f64) -> f64) {
    let mut dice = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut below = |n: u64| dice.next_u64() % n;
    let mut out = ResidualWriter::create(path).unwrap();
    for replay in 0..2 {
        for seq in 0..calls {
            let (op, entry, ns) = OPS[if below(50) == 0 { 4 } else { below(4) as usize }];
            let workload = ["git", "tar"][below(2) as usize];
            let target = ["ext4:8G", "xfs:8G"][below(2) as usize];
            let mut row = Row {
                source: Source { workload, target, replay },
                seq,
                op,
                priced: Some(Priced {
                    thread: 1,
                    failed: below(20) == 0,
                    bytes: if op == Op::Read { 4096 } else { 0 },
                    ns,
                    stall_ns: 0.0,
                    entry,
                    terms: vec![(entry, 1.0, ns)],
                    lookups: below(4),
                    lookup_misses: 0,
                    cached_bytes: None,
                    disk_bytes: (op == Op::Read).then_some(0),
                    new_bytes: None,
                    dirty: None,
                    pattern: None,
                    file_dirty_pages: below(8),
                    dirty_pages: below(1000),
                    dirty_files: below(20),
                    metadata_changes: below(300),
                    since_commit_ns: (seq > 100).then(|| below(1_000_000) as f64),
                }),
                seen: Some(Seen {
                    ns: 0,
                    unlike: false,
                    in_flight: 1,
                    found: (op == Op::Read).then_some(Residency { missing_bytes: 0, ..Residency::default() }),
                    burst: 1 + below(5),
                    previous_op: Some(OPS[below(5) as usize].0),
                }),
            };
            // Noise as a machine has it: a tenth up or down.
            let noise = 0.9 + below(1000) as f64 / 5000.0;
            let ns = measure(&row, ns) * noise;
            row.seen.as_mut().unwrap().ns = ns as u64;
            out.push(&row).unwrap();
        }
    }
    out.finish().unwrap();
}

fn found(calls: u64, seed: u64, measure: impl Fn(&Row<'_>, f64) -> f64) -> Vec<Context> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("r.parquet");
    write(&path, calls, seed, measure);
    let file = ResidualReader::open(&path).unwrap();
    assert_eq!(file.rows(), 2 * calls);
    let found = contexts(&file).unwrap();
    assert_eq!(found.iter().map(|c| c.calls).sum::<u64>(), 2 * calls, "each call is in one context");
    let share: f64 = found.iter().map(|c| c.share).sum();
    assert!((share - 1.0).abs() < 1e-9);
    found
}

#[test]
fn a_dear_entry_is_the_first_context() {
    for seed in [1, 2, 3] {
        // Cheap calls, half a million nanoseconds in all beside the fsyncs' many: found all the same, as they are four
        // times too dear.
        let found = found(5000, seed, |row, ns| if row.op == Op::Read { ns / 4.0 } else { ns });
        assert_eq!(found[0].conditions[0], "entry is rdc_4096", "{found:#?}");
        assert!(found[0].share > 0.4 && found[0].error_ns > 0.0, "{:?}", found[0]);
        assert_eq!(found[0].entries, [("rdc_4096".to_owned(), found[0].error_ns)]);
    }
}

#[test]
fn a_state_is_told_by_its_bound() {
    // fsyncs cost double where the log has much to carry.
    let heavy = |row: &Row<'_>| row.op == Op::Fsync && row.priced.as_ref().unwrap().metadata_changes >= 128;
    let found = found(20_000, 4, |row, ns| if heavy(row) { 2.0 * ns } else { ns });
    assert!(found[0].conditions.contains(&"metadata_changes >= 128".to_owned()), "{:#?}", found[0]);
    assert!(found[0].conditions.iter().any(|c| c.contains("fsync_cr_4096") || c == "op is fsync"), "{:#?}", found[0]);
    assert!(found[0].share > 0.8 && found[0].error_ns < 0.0);
    let ratio = found[0].measured_ns / found[0].predicted_ns;
    assert!((ratio - 2.0).abs() < 0.05, "{ratio}");
}

#[test]
fn noise_alone_has_no_states() {
    let found = found(5000, 5, |_, ns| ns);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(found[0].conditions.is_empty() && found[0].error_ns.abs() < 0.02 * found[0].measured_ns);
}

#[test]
fn where_all_is_too_dear_the_entries_still_tell_what_carries_the_error() {
    let found = found(5000, 8, |_, ns| ns / 1000.0);
    assert!(found.len() == 1 && found[0].conditions.is_empty(), "{found:#?}");
    assert_eq!(found[0].entries[0].0, "fsync_cr_4096");
}

#[test]
fn the_same_file_gives_the_same_contexts() {
    let once = || found(3000, 6, |row, ns| if row.op == Op::Open { 3.0 * ns } else { ns });
    assert_eq!(once(), once());
}

#[test]
fn row_groups_change_nothing() {
    // More rows than a row group holds.
    let found = found(40_000, 7, |row, ns| if row.source.workload == "tar" { 2.0 * ns } else { ns });
    assert_eq!(found[0].conditions[0], "workload is tar", "{:#?}", found[0]);
}

#[test]
fn other_versions_and_other_files_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, version: Option<&str>| {
        let path = dir.path().join(name);
        let schema =
            arrow_schema::Schema::new(vec![arrow_schema::Field::new("x", arrow_schema::DataType::UInt64, true)]);
        let properties = columnar::properties().build();
        let mut out = columnar::ParquetOut::create(path.clone(), Arc::new(schema), properties).unwrap();
        if let Some(version) = version {
            out.key_value(VERSION_KEY, version.to_owned());
        }
        out.finish().unwrap();
        path
    };
    let said = |path: &Path| ResidualReader::open(path).err().expect("it is refused").to_string();
    let newer = said(&write("newer", Some("2")));
    assert!(newer.contains("newer: format version 2 is not supported") && newer.contains("reads version 1"), "{newer}");
    let older = said(&write("older", Some("0")));
    assert!(older.contains("format version 0 is not supported"), "{older}");
    assert!(said(&write("other", None)).contains("not a file of residuals"));
    assert!(said(&write("columns", Some("1"))).contains("column workload: not in the file"));
    assert!(said(&dir.path().join("none")).contains("--residuals"));
}

/// The page that says what the columns mean has every column, with its meaning.
#[test]
fn the_columns_are_documented() {
    let docs = include_str!("../../../../docs/formats.md");
    for column in validate::residuals::COLUMNS {
        let line = docs
            .lines()
            .find(|line| line.starts_with(&format!("| `{}` |", column.name)) && line.contains(column.meaning));
        assert!(line.is_some(), "docs/formats.md does not say that {} is {}", column.name, column.meaning);
    }
}

/// A file that is read twice: the first read finds nothing in memory, the second all, and so is every page that was
/// written.
#[test]
fn a_replay_sees_what_the_cache_holds() {
    use posix::{CacheState, Mounted};
    use replay::{Observation, ObservationFile, ReplayOptions, Source as Trace, replay_on_observed};
    use trace::profile::Row;
    use trace::{Batch, OfdId, Snapshot, SnapshotEntry, flag};
    let mut file = SnapshotEntry::implied(b"/f"[..].into(), posix::FileKind::File);
    file.size_bytes = 1 << 20;
    let mut batch = Batch::default();
    let path = Some(batch.paths.intern(b"/f"));
    let mut add = |op, flags, offset: Option<u64>, bytes: i64| {
        let seq = batch.events.len() as u64;
        let req_bytes = offset.map(|_| bytes as u64);
        let row = Row { ofd: Some(OfdId(1)), path, flags, offset, req_bytes, ret: bytes, ..Row::new(seq, seq, op) };
        batch.events.push(row.into());
    };
    add(Op::Open, flag::READ | flag::WRITE, None, 3);
    add(Op::Read, flag::POSITIONAL, Some(512 << 10), 4096);
    add(Op::Read, flag::POSITIONAL, Some(512 << 10), 4096);
    add(Op::Write, flag::POSITIONAL, Some(0), 8192);
    add(Op::Fdatasync, 0, None, 0);
    add(Op::Fdatasync, 0, None, 0);
    add(Op::Close, flag::LAST, None, 0);
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    let target = dir.path().join("target");
    std::fs::create_dir(&target).unwrap();
    let mut mounted = Mounted::open(&target).unwrap();
    let open = || -> Result<Trace<'_>, _> { Ok(Box::new(std::iter::once(Ok(batch.clone())))) };
    let seen = ObservationFile::create_in(dir.path()).unwrap();
    let snapshot = Snapshot::from_entries(vec![file]);
    let options = ReplayOptions::default();
    let (result, seen) = replay_on_observed(&mut mounted, &snapshot, &open, &options, seen, &mut |_| {}).unwrap();
    assert_eq!((result.calls, result.differences.total), (7, 0));
    let seen: Vec<Observation> = seen.read().map(Result::unwrap).collect();
    assert!(seen.iter().map(|o| (o.seq, o.op)).eq(batch.events.iter().map(|e| (e.head.seq, e.op()))));
    assert_eq!(seen.iter().map(|o| o.latency_ns).sum::<u64>(), result.total_ns);
    let found: Vec<Option<Residency>> = seen.iter().map(|o| o.found).collect();
    assert_eq!(found[0], None, "an open has no descriptor to ask");
    if result.cache_state == CacheState::Cold {
        assert_eq!(found[1].unwrap().missing_bytes, 4096, "cold");
    }
    assert_eq!(found[2].unwrap().missing_bytes, 0, "just read");
    let dirty: Vec<_> = [3, 4, 5].iter().map(|&i: &usize| found[i].unwrap().dirty_bytes).collect();
    if dirty[0].is_some() {
        assert_eq!(dirty, [Some(0), Some(8192), Some(0)], "before the write, after it, and after the sync");
    }
    assert!(seen.iter().all(|o| o.in_flight == 1 && !o.unlike));
}

#[test]
fn what_is_not_finished_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    drop(ResidualWriter::create(&dir.path().join("r.parquet")).unwrap());
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}
