//! The sequential benchmark: which calls it makes, in which order, what it says of their time, and what it leaves
//! behind.

use crate::fake::{CLOSE_NS, Fake, OPEN_NS, SYNC_NS, UNLINK_NS};
use fault::{Fault as _, Kind};
use posix::{CacheState, FileKind};
use workload::seqfile::{Options, SIZES_BYTES};
use workload::{Benchmark as _, Parameters, Phase, Place, Repeat, WorkloadError};

fn options(rounds: u32, seed: u64) -> Options {
    Options {
        data_bytes: 10_000,
        sizes_bytes: vec![300, 1000, 4000],
        files_per_directory: 4,
        piece_bytes: 1024,
        until: Phase::Delete,
        repeat: Repeat { rounds, warm_up: false, seed },
    }
}

fn one_size(size: u64) -> Options {
    Options { sizes_bytes: vec![size], ..options(1, 1) }
}

#[test]
fn files_are_made_read_overwritten_and_removed_in_creation_order() {
    let mut fs = Fake::default();
    workload::run_on(&mut fs, &one_size(1000), &mut |_| {}).unwrap();
    let top = "fsage-bench-seqfile.0-0";
    let files: Vec<String> = (0..10).map(|n| format!("{top}/d{:05}/f{n:07}", n / 4)).collect();
    let mut expected: Vec<String> = vec![format!("mkdir {top}")];
    expected.extend((0..3).map(|d| format!("mkdir {top}/d{d:05}")));
    for word in ["create", "open", "rewrite"] {
        expected.push("drop".into());
        for file in &files {
            let moved = if word == "open" { "read" } else { "write" };
            expected.extend([format!("{word} {file}"), format!("{moved} {file} 1000"), format!("close {file}")]);
        }
        if word != "open" {
            expected.push("syncfs".into());
        }
    }
    expected.push("drop".into());
    expected.extend(files.iter().map(|file| format!("unlink {file}")));
    expected.push("syncfs".into());
    expected.extend((0..3).rev().map(|d| format!("rmdir {top}/d{d:05}")));
    expected.push(format!("rmdir {top}"));
    assert_eq!(fs.log, expected);
    assert!(fs.nodes().is_empty());
}

/// What is measured until then is the same, and nothing stays behind.
#[test]
fn later_phases_can_be_left_out() {
    let run = |until| {
        let mut fs = Fake::default();
        let result = workload::run_on(&mut fs, &Options { until, ..one_size(1000) }, &mut |_| {}).unwrap();
        assert!(fs.nodes().is_empty(), "{until:?} leaves something behind");
        result.targets[0].points[0].phases.clone()
    };
    let all = run(Phase::Delete);
    for (until, phases) in [(Phase::Create, 1), (Phase::Read, 2), (Phase::Overwrite, 3)] {
        assert_eq!(run(until), all[..phases], "until {until:?}");
    }
}

#[test]
fn large_files_are_moved_in_pieces() {
    let mut fs = Fake::default();
    workload::run_on(&mut fs, &one_size(4000), &mut |_| {}).unwrap();
    let first = "fsage-bench-seqfile.0-0/d00000/f0000000";
    let writes: Vec<&str> = fs.logged("write").into_iter().filter(|l| l.contains(first)).collect();
    let pieces: Vec<&str> = writes.iter().map(|line| line.rsplit(' ').next().unwrap()).collect();
    // Created and overwritten.
    assert_eq!(pieces, ["1024", "1024", "1024", "928", "1024", "1024", "1024", "928"]);
    assert_eq!(fs.logged("create").len(), 2, "10,000 bytes hold two files of 4,000");
}

#[test]
fn rates_are_those_of_the_calls_and_the_sync() {
    let mut fs = Fake::default();
    let result = workload::run_on(&mut fs, &one_size(1000), &mut |_| {}).unwrap();
    let target = &result.targets[0];
    let phase = |phase| target.phase("1000 B", phase).unwrap();
    let calls_ns = 10 * (OPEN_NS + 1000 + CLOSE_NS);
    let sync_ns = SYNC_NS + 2 * 10_000;
    let round = &phase(Phase::Create).rounds[0];
    assert_eq!((round.calls_ns, round.sync_ns, round.bytes, round.files), (calls_ns, Some(sync_ns), 10_000, 10));
    assert_eq!(phase(Phase::Create).rate.median, 10_000.0 * 1e9 / (calls_ns + sync_ns) as f64);
    assert_eq!(phase(Phase::Create).rate_without_sync.unwrap().median, 10_000.0 * 1e9 / calls_ns as f64);
    assert_eq!(phase(Phase::Overwrite).rounds[0].sync_ns, Some(sync_ns));
    assert_eq!((phase(Phase::Read).rounds[0].calls_ns, phase(Phase::Read).rounds[0].sync_ns), (calls_ns, None));
    assert_eq!(phase(Phase::Read).rate_without_sync, None);
    assert_eq!(phase(Phase::Delete).rate.median, 10.0 * 1e9 / (10 * UNLINK_NS + SYNC_NS) as f64);
    assert_eq!(target.caches.data, CacheState::Cold);
}

#[test]
fn the_seed_decides_the_order_and_nothing_else_does() {
    let log = |seed| {
        let mut fs = Fake::default();
        workload::run_on(&mut fs, &options(4, seed), &mut |_| {}).unwrap();
        fs.log
    };
    assert_eq!(log(1), log(1));
    assert_ne!(log(1), log(2));
    let sorted = |mut log: Vec<String>| {
        log.sort();
        log
    };
    assert_eq!(sorted(log(1)), sorted(log(2)));
}

#[test]
fn sizes_and_targets_take_turns_in_every_round() {
    let (mut a, mut b) = (Fake::default(), Fake::default());
    let mut turns = Vec::new();
    let parameters =
        Parameters::Seqfile(Options { repeat: Repeat { rounds: 5, warm_up: true, seed: 3 }, ..options(0, 0) });
    let mut places = [Place { name: "a".into(), fs: &mut a }, Place { name: "b".into(), fs: &mut b }];
    let result = workload::run(&parameters, &mut places, &mut |p| {
        assert_eq!((p.done, p.total), (turns.len() as u64, 2 + 5 * 6));
        turns.push(format!("{} {}", p.target, p.point));
    })
    .unwrap();
    assert_eq!(turns[..2], ["a 300 B", "b 300 B"], "a warm-up on each first");
    let rounds: Vec<Vec<String>> = turns[2..].chunks(6).map(<[String]>::to_vec).collect();
    assert!(rounds.windows(2).any(|two| two[0] != two[1]), "every round in the same order");
    for mut round in rounds {
        round.sort();
        assert_eq!(round, ["a 1000 B", "a 300 B", "a 4000 B", "b 1000 B", "b 300 B", "b 4000 B"]);
    }
    for target in &result.targets {
        for phase in target.points.iter().flat_map(|p| &p.phases) {
            assert_eq!(phase.rounds.iter().map(|r| r.round).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
        }
    }
}

#[test]
fn whatever_call_fails_nothing_stays_behind() {
    let mut fs = Fake::default();
    workload::run_on(&mut fs, &one_size(1000), &mut |_| {}).unwrap();
    for at in 0..fs.log.len() {
        if fs.log[at] == "drop" {
            continue;
        }
        let mut failing = Fake { fail_at: Some(at as u64), ..Fake::default() };
        let error = workload::run_on(&mut failing, &one_size(1000), &mut |_| {}).unwrap_err();
        let failed = failing.failed.as_deref().unwrap();
        assert!(error.to_string().contains("Input/output error"), "{failed}: {error}");
        assert_eq!(error.kind(), Kind::Environment);
        assert_eq!(failing.descriptors(), 0, "{failed}");
        // A directory that cannot be removed stays, with those above it.
        let may_stay = failed.starts_with("rmdir");
        assert!(failing.nodes().is_empty() || may_stay, "{failed}: {:?} left", failing.nodes().keys());
    }
}

#[test]
fn a_full_file_system_is_said_to_be_full_and_is_left_empty() {
    let mut fs = Fake::of_capacity(5_000);
    let error = workload::run_on(&mut fs, &one_size(1000), &mut |_| {}).unwrap_err();
    assert!(error.to_string().contains("no space left while creating a file; make room"), "{error}");
    assert!(error.to_string().contains("target 'fake'"), "{error}");
    assert_eq!(error.kind(), Kind::Environment);
    assert!(fs.nodes().is_empty());
}

#[test]
fn a_read_only_file_system_is_said_to_be_one() {
    let mut fs = Fake { read_only: true, ..Fake::default() };
    let error = workload::run_on(&mut fs, &one_size(1000), &mut |_| {}).unwrap_err();
    assert!(error.to_string().contains("read-only"), "{error}");
}

#[test]
fn what_is_there_already_is_not_touched() {
    let mut fs = Fake::default();
    fs.add("fsage-bench-seqfile.0-0", FileKind::Directory, 0, 0);
    fs.add("fsage-bench-seqfile.0-0/d00000", FileKind::Directory, 0, 0);
    fs.add("fsage-bench-seqfile.0-0/d00000/f0000000", FileKind::File, 5, 0);
    let error = workload::run_on(&mut fs, &one_size(1000), &mut |_| {}).unwrap_err();
    assert!(error.to_string().contains("is there already"), "{error}");
    assert_eq!(fs.nodes().len(), 3);
    assert!(fs.logged("unlink").is_empty());
}

#[test]
fn caches_that_cannot_be_verified_are_not_called_cold() {
    let mut fs = Fake { unverified: true, ..Fake::default() };
    let result = workload::run_on(&mut fs, &one_size(1000), &mut |_| {}).unwrap();
    let target = &result.targets[0];
    assert_eq!(target.caches.data, CacheState::Unverified);
    assert_eq!(target.points[0].phases[1].rounds[0].data_cache, CacheState::Unverified);
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let fails = |options: Options| {
        let mut fs = Fake::default();
        let error = workload::run_on(&mut fs, &options, &mut |_| {}).unwrap_err();
        assert!(matches!(error, WorkloadError::Options(_)), "{error:?}");
        assert_eq!(error.kind(), Kind::Usage);
        assert!(fs.log.is_empty());
    };
    fails(Options { sizes_bytes: vec![], ..options(1, 1) });
    fails(Options { sizes_bytes: vec![0], ..options(1, 1) });
    fails(Options { sizes_bytes: vec![10_001], ..options(1, 1) });
    fails(Options { sizes_bytes: vec![300, 300], ..options(1, 1) });
    fails(Options { files_per_directory: 0, ..options(1, 1) });
    fails(Options { piece_bytes: 0, ..options(1, 1) });
    fails(Options { data_bytes: 1 << 50, ..options(1, 1) });
    fails(options(0, 1));
}

#[test]
fn the_published_sizes_and_the_space_they_take() {
    assert!(SIZES_BYTES.is_sorted());
    let options = Options::default();
    assert_eq!((options.data_bytes, options.sizes_bytes.len()), (32 << 20, 18));
    assert_eq!(options.files_of(96 << 10), 341);
    assert_eq!(Options::with_data(100 << 10).sizes_bytes.last(), Some(&(96 << 10)));
    // 32,768 files of one block each, with metadata.
    assert_eq!(options.need_bytes(), 32768 * (4096 + 512));
    assert_eq!(options.need_inodes(), 32768 + 328 + 1);
}
