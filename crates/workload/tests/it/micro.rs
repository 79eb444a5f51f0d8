//! The micro-benchmarks of the first log-structured file system: which calls they make, and what they say of their
//! time.

use crate::fake::{CLOSE_NS, Fake, OPEN_NS, SYNC_NS, UNLINK_NS};
use fault::{Fault as _, Kind};
use posix::CacheState;
use workload::{Phase, Repeat, TargetResult, TimedBy, Unit, WorkloadError, largefile, smallfile};

fn small() -> smallfile::Options {
    smallfile::Options { files: 10, size_bytes: 1000, files_per_directory: 4, repeat: Repeat::once() }
}

fn large() -> largefile::Options {
    largefile::Options { size_bytes: 64 << 10, unit_bytes: 8 << 10, repeat: Repeat::once() }
}

fn phases(target: &TargetResult) -> Vec<Phase> {
    target.points[0].phases.iter().map(|phase| phase.phase).collect()
}

#[test]
fn small_files_are_made_read_and_deleted_in_creation_order() {
    let mut fs = Fake::default();
    let result = workload::run_on(&mut fs, &small(), &mut |_| {}).unwrap();
    let top = "fsage-bench-smallfile.0-0";
    let files: Vec<String> = (0..10).map(|n| format!("{top}/d{:05}/f{n:07}", n / 4)).collect();
    let mut expected: Vec<String> = vec![format!("mkdir {top}")];
    expected.extend((0..3).map(|d| format!("mkdir {top}/d{d:05}")));
    expected.push("drop".into());
    for file in &files {
        expected.extend([format!("create {file}"), format!("write {file} 1000"), format!("close {file}")]);
    }
    expected.extend(["syncfs".into(), "drop".into()]);
    for file in &files {
        expected.extend([format!("open {file}"), format!("read {file} 1000"), format!("close {file}")]);
    }
    expected.extend(files.iter().map(|file| format!("unlink {file}")));
    expected.push("syncfs".into());
    assert_eq!(fs.log[..expected.len()], expected);
    assert!(fs.nodes().is_empty() && fs.descriptors() == 0);

    let target = &result.targets[0];
    assert_eq!(phases(target), [Phase::Create, Phase::Read, Phase::Delete]);
    let create = &target.points[0].phases[0];
    let round = &create.rounds[0];
    let calls_ns = 10 * (OPEN_NS + 1000 + CLOSE_NS);
    assert_eq!((round.calls, round.calls_ns, round.elapsed_ns, round.files), (30, calls_ns, calls_ns, 10));
    assert_eq!((create.unit, round.timed_by), (Unit::FilesPerSecond, TimedBy::Calls));
    assert_eq!(create.rate.median, 10.0 * 1e9 / (calls_ns + SYNC_NS + 2 * 10_000) as f64);
    let delete = &target.points[0].phases[2];
    assert_eq!((delete.rounds[0].calls_ns, delete.rounds[0].data_cache), (10 * UNLINK_NS, CacheState::Warm));
    assert_eq!(target.caches.data, CacheState::Cold, "deleting finds warm caches by design");
}

#[test]
fn a_large_file_is_moved_in_units_and_at_random_within_its_bounds() {
    let mut fs = Fake::default();
    let result = workload::run_on(&mut fs, &large(), &mut |_| {}).unwrap();
    let target = &result.targets[0];
    let named = [Phase::Write, Phase::Read, Phase::RandomWrite, Phase::RandomRead, Phase::Reread];
    assert_eq!(phases(target), named);
    for phase in &target.points[0].phases {
        let round = &phase.rounds[0];
        assert_eq!((phase.unit, round.bytes, round.calls), (Unit::BytesPerSecond, 64 << 10, 10), "{:?}", phase.phase);
        assert_eq!(round.sync_ns.is_some(), matches!(phase.phase, Phase::Write | Phase::RandomWrite));
        assert_eq!(round.data_cache, CacheState::Cold);
    }
    let placed: Vec<&str> = fs.logged("pwrite");
    assert_eq!(placed.len(), 8);
    assert!(placed.iter().any(|line| !line.ends_with("@0")), "{placed:?}");
    assert_eq!((fs.logged("write").len(), fs.logged("pread").len(), fs.logged("read").len()), (8, 8, 16));
    assert!(fs.nodes().is_empty());
}

#[test]
fn the_seed_places_the_random_writes() {
    let placed = |seed| {
        let mut fs = Fake::default();
        let options = largefile::Options { repeat: Repeat { seed, ..Repeat::once() }, ..large() };
        workload::run_on(&mut fs, &options, &mut |_| {}).unwrap();
        fs.logged("pwrite").into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(placed(1), placed(1));
    assert_ne!(placed(1), placed(2));
}

#[test]
fn whichever_call_fails_descriptors_are_closed_and_files_removed() {
    let mut good = Fake::default();
    workload::run_on(&mut good, &small(), &mut |_| {}).unwrap();
    let (mut failures, mut left) = (0, 0);
    for at in 0..good.log.len() as u64 {
        let mut fs = Fake { fail_at: Some(at), ..Fake::default() };
        let Err(error) = workload::run_on(&mut fs, &small(), &mut |_| {}) else { continue };
        assert_eq!(error.kind(), Kind::Environment, "{error}");
        failures += 1;
        left += usize::from(!fs.nodes().is_empty());
        assert_eq!(fs.descriptors(), 0, "call {at}, {:?}", fs.failed);
    }
    assert!(failures > 80, "{failures}");
    // Where a call of the removal itself fails, what is below or above it stays.
    assert!(left <= 8, "{left}");
    let mut good = Fake::default();
    workload::run_on(&mut good, &large(), &mut |_| {}).unwrap();
    for at in 0..good.log.len() as u64 {
        let mut fs = Fake { fail_at: Some(at), ..Fake::default() };
        let _ = workload::run_on(&mut fs, &large(), &mut |_| {});
        assert_eq!(fs.descriptors(), 0, "call {at}, {:?}", fs.failed);
    }
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let mut fs = Fake::default();
    let refused = |result: Result<workload::BenchResult, WorkloadError>| {
        assert!(matches!(result, Err(WorkloadError::Options(_))));
    };
    refused(workload::run_on(&mut fs, &smallfile::Options { files: 0, ..small() }, &mut |_| {}));
    refused(workload::run_on(&mut fs, &smallfile::Options { size_bytes: 0, ..small() }, &mut |_| {}));
    refused(workload::run_on(&mut fs, &largefile::Options { unit_bytes: 7000, ..large() }, &mut |_| {}));
    assert!(fs.log.is_empty());
}
