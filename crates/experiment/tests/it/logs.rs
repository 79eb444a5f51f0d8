//! The experiments on the log-structured file system run at the quick scale, on both processors, and say the same
//! twice.

use experiment::{Bench, Outcome, Scale};
use lab::Spec;
use posix::{Call, Mode, OpenFlags};

fn run(key: &str) -> Outcome {
    let mut report = |_: &str, _: u64, _: Option<u64>| {};
    let mut bench = Bench::new(Scale::Quick, 1, &mut report);
    run_on(&mut bench, key)
}

fn run_on(bench: &mut Bench<'_>, key: &str) -> Outcome {
    let wanted = experiment::select(&[key.to_owned()]).unwrap();
    experiment::run(wanted[0], bench).unwrap_or_else(|why| panic!("{key}: {why}"))
}

#[track_caller]
fn holds(outcome: &Outcome, what: &str) {
    let claim = outcome.claims.iter().find(|claim| claim.what.contains(what));
    let claim = claim.unwrap_or_else(|| panic!("{}: nothing is said of '{what}'", outcome.key));
    assert!(claim.holds, "{}: {}: {}", outcome.key, claim.what, claim.seen);
}

fn ours(outcome: &Outcome, what: &str) -> f64 {
    outcome.rows.iter().find(|row| row.what == what).unwrap_or_else(|| panic!("no row '{what}'")).ours
}

#[test]
fn by_file_size_and_in_transactions() {
    let sizes = run("lfs95/file-size");
    assert!(ours(&sizes, "create, 1 KB files: LFS over FFS") > 5.0);
    assert!(ours(&sizes, "delete, up to 64 KB: LFS over FFS") > 4.0);
    let transactions = run("lfs95/tpcb");
    assert!(ours(&transactions, "LFS without cleaner over FFS, mean") > 1.15);
    assert!(ours(&transactions, "half full: LFS with cleaner over without") < 1.0);
    // What the disk counts knows nothing of the cleaner's account.
    for utilisation in ["50 %", "70 %"] {
        let of = |what: &str| ours(&transactions, &format!("cleaner of all of it, {utilisation} full: {what}"));
        let (account, disk) = (of("write cost"), of("write cost by what the disk was asked for"));
        assert!((disk / account - 1.0).abs() < 0.15, "{utilisation}: {account} by its account, {disk} by the disk's");
        assert!(of("longest transaction") > 1e9, "everything waits while the log is cleaned");
    }
    assert_eq!(transactions, run("lfs95/tpcb"), "threads do not show");
}

#[test]
fn micro_benchmarks() {
    assert!(ours(&run("lfs92/smallfile"), "create: LFS over FFS") > 4.0);
    let large = run("lfs92/largefile");
    assert!(ours(&large, "LFS, random write") > ours(&large, "FFS, random write"));
}

#[test]
fn hardware_of_another_study() {
    let scaled = run("lfs95/scaled");
    let slower = ours(&scaled, "Sprite's hardware: the processor so many times slower");
    assert!((2.5..3.2).contains(&slower), "28.5 and 10 MIPS: {slower}");
    assert!(ours(&scaled, "small files, create: as Sprite LFS over as SunOS FFS") > 4.0);
    assert!(scaled.rows.iter().all(|row| row.ours > 0.0 && row.ours < 1e13), "{:?}", scaled.rows);
}

/// Users who compute nothing gain by a log; whoever computes is as fast anywhere, until the disk is what all wait for.
#[test]
fn andrew_with_several_users() {
    let andrew = run("hbench01/andrew");
    let of = |what: &str| ours(&andrew, what);
    assert!(of("1 user, computing takes no time: LFS over FFS") > 1.2);
    assert!(of("1 user: LFS over FFS") < of("1 user, computing takes no time: LFS over FFS"));
    assert!(andrew.rows.iter().all(|row| (0.1..100.0).contains(&row.ours)), "{:?}", andrew.rows);
}

/// What theory and the counts of the real log say, not the simulator's own.
#[test]
fn the_simulator_agrees_with_theory() {
    let found = run("lfs92/simulator");
    let cleaned_at = ours(&found, "greedy, uniform, three quarters full: utilisation of segments cleaned");
    assert!((0.4..0.62).contains(&cleaned_at), "the publication has 55 %: {cleaned_at}");
    let over = ours(&found, "the same: write cost over 2/(1-u) of theory");
    assert!((0.75..1.25).contains(&over), "{over}");
    let bare = ours(&found, "75 % full, the publication's: write cost, greedy");
    let inodes = ours(&found, "75 % full, + inodes and summaries: write cost, greedy");
    assert!(inodes > bare, "what else is written takes room: {bare}, {inodes}");
}

#[test]
fn cleaning() {
    for key in ["lfs92/write-cost", "beyond/lfs-sweep"] {
        let outcome = run(key);
        assert!(outcome.rows.iter().all(|row| (0.0..1e13).contains(&row.ours)), "{key}");
        let costs: Vec<f64> =
            outcome.rows.iter().filter(|row| row.what.starts_with("write cost")).map(|row| row.ours).collect();
        assert!(costs.len() >= 8 && costs.iter().all(|cost| (1.0..10.0).contains(cost)), "{key}: {costs:?}");
    }
}

/// The device's record is held against what the device counts where nothing is recorded and no image is kept.
#[test]
fn two_files_on_the_disk() {
    let found = run("lfs92/two-files");
    for what in ["LFS few that are larger", "of both files together", "makes processes wait", "on the disk afterwards"]
    {
        holds(&found, what);
    }
    for name in ["FFS", "LFS"] {
        let target = &found.parameters.iter().find(|parameter| parameter.name == name).unwrap().value;
        let spec = Spec { machine: "workstation-1991".to_owned(), ..Spec::parse(target).unwrap() };
        let mut lab = spec.open().unwrap();
        let call = |lab: &mut dyn lab::Laboratory, call: &Call<'_>| lab.call(call).result.unwrap();
        for directory in ["dir1", "dir2"] {
            call(&mut *lab, &Call::Mkdir { at: directory.into(), mode: Mode(0o755) });
        }
        call(&mut *lab, &Call::SyncFs);
        lab.pause_ns(120_000_000_000);
        let before = lab.counters().device;
        for path in ["dir1/file1", "dir2/file2"] {
            let open = Call::Open { at: path.into(), flags: OpenFlags::CREATE_NEW, mode: Mode(0o644) };
            let fd = lab.call(&open).fd().unwrap();
            call(&mut *lab, &Call::Write { fd, offset: None, len_bytes: 1024, data: None });
            call(&mut *lab, &Call::Close { fd });
        }
        lab.pause_ns(120_000_000_000);
        let after = lab.counters().device;
        let of = |what: &str| ours(&found, &format!("{name}: {what}"));
        assert_eq!(of("all writes"), (after.writes - before.writes) as f64, "{name}");
        assert_eq!(of("bytes written"), (after.write_bytes - before.write_bytes) as f64, "{name}");
    }
}

#[test]
fn cleaning_in_idle_time() {
    let found = run("lfs95/idle-cleaning");
    let of = |pause: u32, cleaner: &str, what: &str| {
        ours(&found, &format!("bursts of 1024 KiB, pauses of {pause} s, cleaned {cleaner}: {what}"))
    };
    let over = "the same over bursts that nothing is cleaned for";
    assert!(of(30, "in idle time", over) > of(30, "at need", over), "pauses are of use");
    assert_eq!(of(0, "in idle time", over), of(0, "ahead of need", over), "without pauses there is no idle time");
    holds(&found, "nearly all segments are cleaned in idle time");
    assert!(of(0, "at need", "segments read to be cleaned") > 0.0 && of(0, "at need", "of them, in pauses") == 0.0);
    assert_eq!(found, run("lfs95/idle-cleaning"), "threads do not show");
}

/// What the summary takes from other experiments is what they show.
#[test]
fn regions_of_dominance() {
    let mut report = |_: &str, _: u64, _: Option<u64>| {};
    let mut bench = Bench::new(Scale::Quick, 1, &mut report);
    let sizes = run_on(&mut bench, "lfs95/file-size");
    let regions = run_on(&mut bench, "lfs95/regions");
    let create = ours(&regions, "create, new, 1 KB: LFS over FFS");
    assert_eq!(create, ours(&sizes, "create, 1 KB files: LFS over FFS"));
    holds(&regions, "of up to 64 KB, new file systems: LFS wins");
    let used = regions.rows.iter().filter(|row| row.what.contains("50 % in use,")).count();
    assert_eq!(used, 5 * 3, "four operations, reading beside a cleaner at rest, three sizes");
    assert!(regions.rows.iter().all(|row| (0.01..1000.0).contains(&row.ours)), "{:?}", regions.rows);
    assert_eq!(regions, run("lfs95/regions"), "whoever has made what they share");
}
