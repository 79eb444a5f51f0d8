//! Experiments run, say the same twice, and explain themselves.
//!
//! At the quick scale by default.
//! `FSAGE_EXPERIMENT_FULL=1 cargo test --release -p fsage-experiment --test it experiments::` runs them as published,
//! and fails if one differs by more than a quarter without a sentence that says why.

use experiment::{Bench, Experiment, Outcome, Scale, Sweeps, all};
use std::sync::Mutex;

/// No experiment has more bytes, operations or anything else.
const FIGURE_MAX: f64 = 1e13;

fn run(scale: Scale, seed: u64, key: &str) -> Vec<Outcome> {
    let mut report = |_: &str, _: u64, _: Option<u64>| {};
    let mut bench = Bench::new(scale, seed, &mut report);
    let wanted = experiment::select(&[key.to_owned()]).unwrap();
    wanted
        .into_iter()
        .map(|e| experiment::run(e, &mut bench).unwrap_or_else(|why| panic!("{}: {why}", e.key)))
        .collect()
}

/// Runs the experiments that a name stands for, and looks at the form of what they say; what they found.
fn check(key: &str) -> Vec<Outcome> {
    let full = std::env::var_os("FSAGE_EXPERIMENT_FULL").is_some();
    let scale = if full { Scale::Full } else { Scale::Quick };
    let outcomes = run(scale, 1, key);
    for outcome in &outcomes {
        assert!(!outcome.parameters.is_empty(), "{}: no parameters", outcome.key);
        assert!(!outcome.rows.is_empty() || !outcome.claims.is_empty(), "{}: nothing found", outcome.key);
        for row in &outcome.rows {
            assert!(row.ours.abs() < FIGURE_MAX, "{}: {} is {}", outcome.key, row.what, row.ours);
        }
        for point in outcome.figures.iter().flat_map(|f| &f.series).flat_map(|s| &s.points) {
            let is_one = point.x.abs() < FIGURE_MAX && point.y.abs() < FIGURE_MAX;
            assert!(is_one, "{}: a point that is none", outcome.key);
        }
        let unexplained: Vec<&str> = outcome.unexplained().collect();
        assert!(!full || unexplained.is_empty(), "{}: not explained: {unexplained:?}", outcome.key);
    }
    outcomes
}

fn of<'a>(outcomes: &'a [Outcome], key: &str) -> &'a Outcome {
    outcomes.iter().find(|outcome| outcome.key == key).unwrap_or_else(|| panic!("{key} has not run"))
}

fn ours(outcome: &Outcome, what: &str) -> f64 {
    outcome.rows.iter().find(|row| row.what == what).unwrap_or_else(|| panic!("no row '{what}'")).ours
}

#[track_caller]
fn holds(outcome: &Outcome, what: &str) {
    let claim = outcome.claims.iter().find(|claim| claim.what == what);
    let claim = claim.unwrap_or_else(|| panic!("{}: nothing is said of '{what}'", outcome.key));
    assert!(claim.holds, "{}: {}: {}", outcome.key, claim.what, claim.seen);
}

#[test]
fn alloc96() {
    let found = check("alloc96/*");
    let aggregate = of(&found, "alloc96/aggregate");
    holds(aggregate, "realloc is better on every day");
    let (early, late) = (ours(aggregate, "day 1, original"), ours(aggregate, "last day, original"));
    assert!(0.75 < late && late < early && early < 0.95, "the original allocator's layout: {early}, later {late}");
    assert!(ours(aggregate, "of these, saved by realloc") > 0.35);
    let by_size = of(&found, "alloc96/by-size");
    for what in [
        "realloc is near-perfect below the cluster size: 3 to 7 blocks above 0.95",
        "files of two blocks are worse than slightly larger ones under realloc",
    ] {
        holds(by_size, what);
    }
    holds(of(&found, "alloc96/hot-files"), "realloc is faster on the files in use");
    let (hot, old) = (of(&found, "alloc96/hot-files"), of(&found, "alloc96/old-machine"));
    let same = ours(old, "Pentium, bus of 10 MB/s: reading hot files, realloc over original");
    assert!((same - ours(hot, "reading, realloc over original")).abs() < 1e-9, "with nothing changed, it is the same");
    let sequential = of(&found, "alloc96/sequential");
    for what in ["a dip at 104 KB, read, original", "a dip at 104 KB, read, realloc"] {
        holds(sequential, what);
    }
    assert!(ours(sequential, "reading files of 96 KB, realloc over original") > 1.1);
    holds(sequential, "realloc lays new files out perfectly up to 56 KB");
    let sensitivity = of(&found, "alloc96/sensitivity");
    let score = |n: u32| ours(sensitivity, &format!("{n} positions: layout score of the aged file system, original"));
    assert_eq!(score(8), late, "the base is the study's file system as the others have it");
    assert!(score(1) > score(8), "one position takes the next block where eight take the nearest");
    let begun = ours(of(&found, "alloc96/workload"), "in use at the beginning");
    assert!((0.08..0.1).contains(&begun), "9 % are in use at the beginning, as published: {begun}");
}

#[test]
fn aging97() {
    let found = check("aging97/*");
    let verify = of(&found, "aging97/verify");
    holds(verify, "files written whole: the replay tracks the original in the first half (mean difference below 0.05)");
    assert!(ours(verify, "files written whole: largest difference") < 0.05);
    assert!(ours(verify, "home directories: last day, original") < 0.95);
}

#[test]
fn the_same_seed_gives_the_same_result() {
    let first = run(Scale::Quick, 7, "alloc96/aggregate");
    assert_eq!(first, run(Scale::Quick, 7, "alloc96/aggregate"));
    assert_ne!(first, run(Scale::Quick, 8, "alloc96/aggregate"));
}

/// Which experiments run beside one, and what they have made before, changes nothing.
#[test]
fn together_and_one_after_another_are_the_same() {
    let names = ["alloc96/aggregate", "alloc96/by-size", "alloc96/workload"].map(String::from);
    let wanted = experiment::select(&names).unwrap();
    let mut report = |_: &str, _: u64, _: Option<u64>| {};
    let told = Mutex::new(Vec::new());
    let tell = |e: &Experiment, seed: u64, _| told.lock().unwrap().push((e.key, seed));
    let extent = (Scale::Quick, Sweeps::Short);
    let together = experiment::run_all(&wanted, extent, &[7], &mut report, &tell).unwrap();
    let alone: Vec<Outcome> = names.iter().flat_map(|name| run(Scale::Quick, 7, name)).collect();
    assert_eq!(together, alone);
    let mut told = told.into_inner().unwrap();
    told.sort_unstable();
    assert_eq!(told, wanted.iter().map(|e| (e.key, 7)).collect::<Vec<_>>());
}

#[test]
fn names_stand_for_experiments() {
    let keys = |names: &[&str]| -> Vec<&str> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        experiment::select(&names).unwrap().into_iter().map(|e| e.key).collect()
    };
    assert_eq!(keys(&["alloc96/by-size", "alloc96/aggregate"]), ["alloc96/aggregate", "alloc96/by-size"]);
    assert_eq!(
        keys(&["alloc96/*", "alloc96/by-size"]).len(),
        all().iter().filter(|e| e.key.starts_with("alloc96/")).count()
    );
    assert_eq!(keys(&["all"]).len(), all().len());
    assert!(experiment::select(&["alloc69/*".into()]).is_err());
}
