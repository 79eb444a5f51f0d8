//! The experiments on the log-structured file system run at the quick scale, on both processors, and say the same twice.

use experiment::{Bench, Outcome, Scale};

fn run(key: &str) -> Outcome {
    let mut report = |_: &str, _: u64, _: Option<u64>| {};
    let mut bench = Bench::new(Scale::Quick, 1, &mut report);
    let wanted = experiment::select(&[key.to_owned()]).unwrap();
    experiment::run(wanted[0], &mut bench).unwrap_or_else(|why| panic!("{key}: {why}"))
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
