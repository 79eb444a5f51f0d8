//! Experiments run, say the same twice, and explain themselves.
//!
//! At the quick scale by default. `FSAGE_EXPERIMENT_FULL=1 cargo test --release -p fsage-experiment --test it experiments::` runs them as
//! published, and fails if one differs by more than a quarter without a sentence that says why.

use experiment::{Bench, Outcome, Scale, all};

fn run(scale: Scale, seed: u64, key: &str) -> Vec<Outcome> {
    let mut report = |_: &str, _: u64, _: Option<u64>| {};
    let mut bench = Bench::new(scale, seed, &mut report);
    let wanted = experiment::select(&[key.to_owned()]).unwrap();
    wanted
        .into_iter()
        .map(|e| experiment::run(e, &mut bench).unwrap_or_else(|why| panic!("{}: {why}", e.key)))
        .collect()
}

/// Runs the experiments that a name stands for, and looks at the form of what they say.
fn check(key: &str) {
    let full = std::env::var_os("FSAGE_EXPERIMENT_FULL").is_some();
    let scale = if full { Scale::Full } else { Scale::Quick };
    for outcome in &run(scale, 1, key) {
        assert!(!outcome.parameters.is_empty(), "{}: no parameters", outcome.key);
        assert!(!outcome.rows.is_empty() || !outcome.claims.is_empty(), "{}: nothing found", outcome.key);
        for row in &outcome.rows {
            assert!(row.ours.is_finite(), "{}: {} is not a number", outcome.key, row.what);
        }
        for point in outcome.figures.iter().flat_map(|f| &f.series).flat_map(|s| &s.points) {
            assert!(point.x.is_finite() && point.y.is_finite(), "{}: a point that is none", outcome.key);
        }
        let unexplained: Vec<&str> = outcome.unexplained().collect();
        assert!(!full || unexplained.is_empty(), "{}: not explained: {unexplained:?}", outcome.key);
    }
}

#[test]
fn alloc96() {
    check("alloc96/*");
}

#[test]
fn aging97() {
    check("aging97/*");
}

#[test]
fn the_same_seed_gives_the_same_result() {
    let first = run(Scale::Quick, 7, "alloc96/aggregate");
    assert_eq!(first, run(Scale::Quick, 7, "alloc96/aggregate"));
    assert_ne!(first, run(Scale::Quick, 8, "alloc96/aggregate"));
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
