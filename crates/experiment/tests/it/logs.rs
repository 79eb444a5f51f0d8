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
    assert_eq!(transactions, run("lfs95/tpcb"), "threads do not show");
}

#[test]
fn micro_benchmarks() {
    assert!(ours(&run("lfs92/smallfile"), "create: LFS over FFS") > 4.0);
    let large = run("lfs92/largefile");
    assert!(ours(&large, "LFS, random write") > ours(&large, "FFS, random write"));
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
