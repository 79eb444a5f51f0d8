//! Personalities: what is planned is possible, keeps the curve, matches its distributions, and is the same every time.

use aging::format::{PlanMeta, Reader};
use aging::plan::personality::{self, Churn, Options, Personality, builtin};
use aging::plan::{self, PlanError, PlannedFor};
use aging::{DAY_NS, OpKind};
use fault::{Fault as _, Kind};
use proptest::prelude::*;
use std::path::Path;

fn options(capacity_bytes: u64, days: u32, seed: u64) -> Options {
    let planned_for = PlannedFor { capacity_bytes, block_bytes: 4096 };
    Options { planned_for, days, utilisation: None, fill: None, churn: Churn::Implied, seed, input: None }
}

fn write(path: &Path, name: &str, options: &Options) -> Result<PlanMeta, PlanError> {
    let personality = builtin::get(name).expect("one that comes with fsage");
    plan::write(path, options.planned_for, |writer| personality::plan(&personality, options, writer, &mut |_| true))
}

/// Use after every operation, as a share of the capacity, with its time in days.
fn uses(path: &Path) -> Vec<(f64, f64)> {
    let reader = Reader::open(path).expect("our own file");
    let (capacity, block) = (reader.meta().capacity_bytes as f64, reader.meta().block_bytes);
    let mut tree = aging::Tree::new();
    let (mut used, mut uses) = (0u64, Vec::new());
    for op in reader.batches(0).flat_map(|batch| batch.expect("a sound row group")) {
        let before = tree.apply(&op).expect("a possible operation").next_multiple_of(block);
        let after = match op.kind {
            OpKind::Delete => 0,
            OpKind::Create | OpKind::Append | OpKind::Truncate => tree.get(op.node).expect("alive").size_bytes,
            _ => before,
        };
        used = used + after.next_multiple_of(block) - before;
        uses.push((op.t_ns as f64 / DAY_NS as f64, used as f64 / capacity));
    }
    uses
}

#[test]
fn every_parameter_of_every_personality_names_its_source() {
    fn leaves(prefix: &str, value: &toml::Value, found: &mut Vec<String>) {
        let join = |key: &str| if prefix.is_empty() { key.to_owned() } else { format!("{prefix}.{key}") };
        match value {
            toml::Value::Table(table) => table.iter().for_each(|(key, value)| leaves(&join(key), value, found)),
            toml::Value::Array(items) if items.iter().all(toml::Value::is_table) => items.iter().for_each(|item| {
                leaves(
                    &item.get("name").and_then(toml::Value::as_str).map_or_else(|| prefix.to_owned(), join),
                    item,
                    found,
                );
            }),
            _ => found.push(prefix.to_owned()),
        }
    }
    for (name, text) in builtin::ALL {
        let personality = builtin::get(name).expect("a good file");
        assert_eq!(&personality.name, name);
        let mut table: toml::Table = text.parse().expect("TOML");
        for key in ["format_version", "name", "description", "sources"] {
            table.remove(key).expect("is there");
        }
        let mut found = Vec::new();
        leaves("", &toml::Value::Table(table), &mut found);
        assert!(found.len() > 20, "{name}: {found:?}");
        for leaf in found.iter().filter(|leaf| !leaf.ends_with(".name")) {
            let covered = |key: &String| leaf == key || leaf.starts_with(&format!("{key}."));
            assert!(personality.sources.keys().any(covered), "{name}: {leaf} names no source");
        }
        for key in personality.sources.keys() {
            let about = |leaf: &String| leaf == key || leaf.starts_with(&format!("{key}."));
            assert!(found.iter().any(about), "{name}: a source for {key}, which is not there");
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_does_not() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = |n: u32| dir.path().join(format!("{n}.aging"));
    for (name, _) in builtin::ALL {
        for (n, seed) in [(1, 5), (2, 5), (3, 6)] {
            write(&path(n), name, &options(128 << 20, 20, seed)).expect("a plan");
        }
        let [a, b, c] = [1, 2, 3].map(|n| std::fs::read(path(n)).expect("the file"));
        assert!(a == b, "{name}: two runs differ");
        assert!(a != c, "{name}: the seed has no effect");
    }
}

#[test]
fn what_is_planned_matches_what_was_asked_for() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("a.aging");
    for name in ["home", "build", "webcache"] {
        let meta = write(&path, name, &options(2 << 30, 60, 1)).expect("a plan");
        for (what, limit) in [("size_by_count", 0.05), ("created_size_by_count", 0.02), ("lifetime", 0.08)] {
            let fit = meta.fit.iter().find(|f| f.what == what).expect("is measured");
            assert!(fit.ks < limit && fit.observations > 1000, "{name}: {fit:?}");
        }
        let bytes = meta.fit.iter().find(|f| f.what == "size_by_bytes").expect("is measured");
        assert!(bytes.ks < 0.12, "{name}: {bytes:?}");
    }
}

#[test]
fn churn_is_what_was_asked_for() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("a.aging");
    for churn in [0.01, 0.05] {
        let options = Options {
            churn: Churn::BytesPerDay(churn),
            utilisation: Some(vec![[0.0, 0.7]]),
            ..options(1 << 30, 200, 3)
        };
        let meta = write(&path, "home", &options).expect("a plan");
        // Less what is there from the beginning.
        let written = meta.counts.written_bytes as f64 - 0.7 * options.planned_for.capacity_bytes as f64;
        let per_day = written / options.planned_for.capacity_bytes as f64 / 200.0;
        assert!((0.6..1.6).contains(&(per_day / churn)), "{per_day} instead of {churn}");
    }
    let bad = Options { churn: Churn::BytesPerDay(-1.0), ..options(1 << 30, 200, 3) };
    assert_eq!(write(&path, "home", &bad).expect_err("no churn").kind(), Kind::Usage);
}

#[test]
fn bad_personalities_are_refused_with_their_place() {
    let path = Path::new("mine.toml");
    let good = builtin::text("home").expect("is there");
    for (from, to, says) in [
        ("format_version = 1", "format_version = 2", "format_version: 2 is not supported"),
        ("share = 20.0", "share = \"many\"", "mine.toml: line "),
        ("share = 20.0", "share = -20.0", "stream.documents.share: -20 is not in"),
        ("share = 20.0", "shares = 20.0", "unknown field"),
        ("median_s = 8.0", "median_s = 0.0", "stream.passing.lifetime"),
        ("sigma = 1.7", "sigma = nan", "stream.passing.size: sigma"),
        ("depth_mean = 6.49", "depth_mean = inf", "directories.depth_mean"),
        ("[0.15, 0.6]", "[0.15, 1.6]", "utilisation: share 1.6"),
        ("[0.15, 0.6]", "[0.0, 0.6]", "ascend"),
        ("weekdays = [10, ", "weekdays = [", "rhythm.weekdays: 6 weights"),
        ("dies = \"together\"", "dies = \"apart\"", "line "),
    ] {
        let text = good.replacen(from, to, 1);
        assert_ne!(text, good, "{from}");
        let error = Personality::parse(path, &text).expect_err(to);
        assert!(error.to_string().contains(says), "{to}: {error}");
        assert_eq!(error.kind(), Kind::BadInput);
    }
}

/// Use is never more than half a point above the curve of a plan with these points. A falling curve is followed step by
/// step.
fn assert_below_the_curve(path: &Path, name: &str, points: Vec<[f64; 2]>) {
    let curve = personality::time::Curve::new(points);
    for (day, used) in uses(path) {
        let limit = curve.at(day).max(curve.at((day - 0.01).max(0.0))) + 0.005;
        assert!(used <= limit, "{name} day {day}: {used} instead of at most {limit}");
    }
}

/// The steps in which a falling curve is followed were spread over the whole day. Of a day on which the fall ends at
/// noon, half of them came too late: here at day 14.09.
#[test]
fn a_fall_that_ends_within_a_day_is_followed() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("a.aging");
    let points = vec![[0.0, 0.5646596513942623], [14.5, 0.33871672148548726]];
    let options = Options { utilisation: Some(points.clone()), ..options(1 << 28, 29, 16_375_137_917_826_102_316) };
    write(&path, "phone", &options).expect("a plan");
    assert_below_the_curve(&path, "phone", points);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    /// The writer checks every operation; use stays below the curve and half a point.
    #[test]
    fn any_plan_is_possible_and_keeps_below_the_curve(
        which in 0usize..8, seed in any::<u64>(), shift in 16u32..29, days in 1u32..30,
        from in 0.01f64..0.99, to in 0.01f64..0.99,
    ) {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("a.aging");
        let (name, _) = builtin::ALL[which];
        let points = vec![[0.0, from], [f64::from(days) / 2.0, to]];
        let options = Options { utilisation: Some(points.clone()), ..options(1 << shift, days, seed) };
        let meta = write(&path, name, &options).expect("a plan");
        prop_assert_eq!(meta.utilisation.len(), days as usize);
        assert_below_the_curve(&path, name, points);
    }

    /// Whatever is done to a file of ours: an error, or a personality, and no panic.
    #[test]
    fn damaged_personalities_do_not_panic(which in 0usize..8, at in any::<prop::sample::Index>(), with in "[ -~]{0,6}",
        cut in 0usize..40) {
        let (_, text) = builtin::ALL[which];
        let at = at.index(text.len());
        let end = (at + cut).min(text.len());
        if let (Some(head), Some(tail)) = (text.get(..at), text.get(end..)) {
            let _ = Personality::parse(Path::new("x.toml"), &format!("{head}{with}{tail}"));
        }
    }
}
