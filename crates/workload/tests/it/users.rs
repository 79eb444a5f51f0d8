//! The workloads of users and servers: scripts side by side, builds, trees and news.

use crate::fake::Fake;
use posix::FileSystem as _;
use workload::{
    BenchResult, Benchmark as _, Phase, Repeat, Round, TimedBy, Unit, WorkloadError, andrew, netnews, sdet, ssh_build,
};

fn phases(result: &BenchResult) -> Vec<Phase> {
    result.targets[0].points[0].phases.iter().map(|phase| phase.phase).collect()
}

fn round(result: &BenchResult, phase: Phase) -> &Round {
    result.targets[0].points[0].phases.iter().find(|found| found.phase == phase).unwrap().rounds.first().unwrap()
}

fn empty(fs: &Fake) -> bool {
    fs.nodes().is_empty() && fs.descriptors() == 0
}

fn shop(scripts: Vec<u32>, cpu: f64) -> sdet::Options {
    sdet::Options { scripts, commands: 30, cpu, repeat: Repeat::once() }
}

#[test]
fn scripts_are_counted_by_the_hour_of_the_clock() {
    let mut fs = Fake::default();
    let result = workload::run_on(&mut fs, &shop(vec![1, 3], 1.0), &mut |_| {}).unwrap();
    for (point, scripts) in result.targets[0].points.iter().zip([1, 3]) {
        let phase = &point.phases[0];
        let round = &phase.rounds[0];
        assert_eq!((phase.phase, phase.unit, round.timed_by), (Phase::Scripts, Unit::ScriptsPerHour, TimedBy::Clock));
        assert_eq!((round.completed, round.count("commands")), (scripts, Some(30 * scripts)));
        assert!(round.elapsed_ns > round.calls_ns, "computing is in the clock's time only");
        let rate = scripts as f64 * 3600e9 / round.elapsed_ns as f64;
        assert!((phase.rate.median - rate).abs() < 1e-6 * rate);
    }
    assert!(empty(&fs));
    let elapsed = |cpu| {
        let result = workload::run_on(&mut Fake::default(), &shop(vec![2], cpu), &mut |_| {}).unwrap();
        let round = &result.targets[0].points[0].phases[0].rounds[0];
        (round.elapsed_ns, round.calls_ns, round.calls)
    };
    let ((none, calls_ns, calls), (one, _, same)) = (elapsed(0.0), elapsed(1.0));
    assert_eq!((none, calls), (calls_ns, same), "without computing the calls are all there is");
    assert!(one > none + 2 * 30 * 5_000_000, "the least that 60 commands compute");
}

#[test]
fn a_script_that_fails_is_told_and_nothing_is_left() {
    let mut good = Fake::default();
    workload::run_on(&mut good, &shop(vec![2], 0.1), &mut |_| {}).unwrap();
    let first = good.log.iter().position(|line| line == "drop").unwrap() as u64;
    for at in (first + 1..first + 400).step_by(7) {
        let mut fs = Fake { fail_at: Some(at), ..Fake::default() };
        let error = workload::run_on(&mut fs, &shop(vec![2], 0.1), &mut |_| {}).unwrap_err();
        assert!(error.to_string().contains("Input/output error"), "{error}");
        assert!(empty(&fs), "call {at}: {:?}", fs.failed);
    }
    let refused = |options: sdet::Options| assert!(matches!(options.check(), Err(WorkloadError::Options(_))));
    refused(shop(vec![], 1.0));
    refused(shop(vec![0], 1.0));
    refused(shop(vec![2, 2], 1.0));
    refused(shop(vec![1], f64::NAN));
}

#[test]
fn a_package_is_unpacked_configured_and_built() {
    let mut fs = Fake::default();
    let options = ssh_build::Options { cpu: 1.0, repeat: Repeat::once(), packages: 1 };
    let result = workload::run_on(&mut fs, &options, &mut |_| {}).unwrap();
    assert_eq!(phases(&result), [Phase::Unpack, Phase::Configure, Phase::Build]);
    let (unpack, configure, build) =
        (round(&result, Phase::Unpack), round(&result, Phase::Configure), round(&result, Phase::Build));
    assert_eq!(unpack.files, 1 + 413, "the archive and what is in it");
    assert!(configure.files > 110 * 5 && configure.bytes < 5_000_000, "{configure:?}");
    let share = 1.0 - build.calls_ns as f64 / build.elapsed_ns as f64;
    assert!(share > 0.9, "building computes: {share}");
    assert_eq!(fs.logged("unlink").iter().filter(|line| line.ends_with("conftest.c")).count(), 110);
    assert_eq!(fs.logged("drop").len(), 1);
    assert!(fs.logged("syncfs").is_empty() && empty(&fs));
}

#[test]
fn the_five_phases_of_andrew() {
    let mut fs = Fake::default();
    let options = andrew::Options { copies: 3, users: vec![], cpu: 1.0, repeat: Repeat::once() };
    let result = workload::run_on(&mut fs, &options, &mut |_| {}).unwrap();
    assert_eq!(phases(&result), [Phase::Mkdir, Phase::Copy, Phase::Stat, Phase::Read, Phase::Compile]);
    let phases = &result.targets[0].points[0].phases;
    assert!(phases.iter().all(|phase| phase.unit == Unit::CallsPerSecond));
    assert_eq!(round(&result, Phase::Mkdir).calls, 3 * 5);
    assert_eq!(round(&result, Phase::Copy).files, 3 * 2 * 70);
    assert_eq!(round(&result, Phase::Stat).files, 3 * 70);
    let read = round(&result, Phase::Read);
    assert_eq!((read.files, read.bytes * 2), (3 * 70, round(&result, Phase::Copy).bytes));
    assert!(round(&result, Phase::Compile).elapsed_ns >= 3 * (35 * 200 + 300) * 1_000_000);
    assert!(empty(&fs));
}

/// Each user's work is what one alone does, and computing is shared: with one processor, twice as many take twice as
/// long.
#[test]
fn users_of_andrew_work_side_by_side() {
    let mut fs = Fake::default();
    let options = andrew::Options { copies: 2, users: vec![1, 2, 4], cpu: 1.0, repeat: Repeat::once() };
    let result = workload::run_on(&mut fs, &options, &mut |_| {}).unwrap();
    let rounds: Vec<&Round> = result.targets[0].points.iter().map(|point| &point.phases[0].rounds[0]).collect();
    for (round, users) in rounds.iter().zip([1, 2, 4]) {
        assert_eq!((round.completed, round.timed_by), (users, TimedBy::Clock));
        assert_eq!((round.files, round.calls), (users * rounds[0].files, users * rounds[0].calls));
        let alone_ns = 2 * (35 * 200 + 300) * 1_000_000 / u64::from(fs.environment().cpus.max(1));
        assert!(round.elapsed_ns >= users * alone_ns, "{users}: {round:?}");
    }
    assert!(empty(&fs));
    let refused = |users: Vec<u32>| {
        let options = andrew::Options { users, ..andrew::Options::quick() };
        assert!(matches!(options.check(), Err(WorkloadError::Options(_))), "{options:?}");
    };
    refused(vec![0]);
    refused(vec![2, 2]);
    refused(vec![1001]);
}

#[test]
fn articles_arrive_and_the_oldest_go() {
    let mut fs = Fake::default();
    let options = netnews::Options {
        articles: 300,
        arrivals: 250,
        expired: 200,
        groups: 7,
        repeat: Repeat::once(),
        ..netnews::Options::default()
    };
    let result = workload::run_on(&mut fs, &options, &mut |_| {}).unwrap();
    assert_eq!(phases(&result), [Phase::Unbatch, Phase::Expire]);
    let (unbatch, expire) = (round(&result, Phase::Unbatch), round(&result, Phase::Expire));
    assert_eq!((unbatch.files, expire.files), (250, 200));
    let duplicates = unbatch.count("duplicates").unwrap();
    assert!((10..45).contains(&duplicates), "a tenth of 250: {duplicates}");
    assert_eq!(expire.count("articles kept"), Some(300 + 250 - duplicates - 200));
    let of_history = |word: &str| fs.logged(word).iter().filter(|line| line.contains("/history")).count() as u64;
    assert_eq!((of_history("pread"), of_history("append")), (250, 250 - duplicates));
    // The first that came are the first to go.
    let article = |line: &&str| line.rsplit('/').next().unwrap().parse::<u32>().is_ok();
    let made: Vec<&str> = fs.logged("create").into_iter().filter(article).map(|line| &line[7..]).take(200).collect();
    let gone: Vec<&str> = fs.logged("unlink").into_iter().filter(article).map(|line| &line[7..]).take(200).collect();
    assert_eq!(made, gone);
    assert_eq!(fs.logged("rename").len(), 1 + 7);
    assert!(empty(&fs));
}

#[test]
fn the_seed_decides_everything() {
    let logs = |seed: u64| {
        let repeat = Repeat { seed, ..Repeat::once() };
        let mut fs = Fake::default();
        workload::run_on(&mut fs, &sdet::Options { repeat, ..shop(vec![2], 0.5) }, &mut |_| {}).unwrap();
        workload::run_on(&mut fs, &andrew::Options { repeat, copies: 1, users: vec![], cpu: 0.5 }, &mut |_| {})
            .unwrap();
        workload::run_on(&mut fs, &ssh_build::Options { repeat, packages: 1, cpu: 0.5 }, &mut |_| {}).unwrap();
        let news = netnews::Options {
            articles: 50,
            arrivals: 50,
            expired: 20,
            groups: 3,
            repeat,
            ..netnews::Options::default()
        };
        workload::run_on(&mut fs, &news, &mut |_| {}).unwrap();
        (fs.log, fs.clock_ns)
    };
    assert_eq!(logs(1), logs(1));
    assert_ne!(logs(1), logs(2));
}
