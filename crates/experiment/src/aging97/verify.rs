//! `aging97/verify`: whether a workload made from daily snapshots ages a file system as the original workload did.
//!
//! The original is the 300-day workload on the laboratory's FFS. Of it only what a nightly job sees is kept: a snapshot at the
//! end of each day. From these a skeleton is planned (`fsage plan snapshots`), with short-lived files whose profiles come from
//! another period (the same model under another seed), as they came from another server's trace in the paper; each file goes into the
//! directory of its inode's group. The plan is replayed on an empty file system.

use super::snapshot;
use crate::alloc96::aged::{self, PLANNED_FOR};
use crate::alloc96::replay::Replay;
use crate::alloc96::{self, EPOCH_NS, MACHINE};
use crate::{Axis, Bench, Claim, Experiment, ExperimentError, Explain, Figure, Outcome, Published, Row, Series, Unit};
use aging::DAY_NS;
use aging::format::Reader;
use aging::plan::short_lived::{Number, ShortLived};
use aging::plan::snapshots::{self, Place, SnapshotsOptions};
use aging::verify::{DayPair, SelfCheck, compare_scores};
use kernel::Machine;
use layout::scores::score::LayoutScore;
use std::path::{Path, PathBuf};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    key: "aging97/verify",
    title: "Layout by day, original against a replay planned from its snapshots",
    source: "Smith and Seltzer, File System Aging, SIGMETRICS 1997, section 4; A Comparison of FFS Disk Allocation Policies, 1996, \
             section 3",
    runs: "Takes a snapshot of the aged file system each day, plans a workload from the snapshots alone, replays it and compares.",
    run,
};

/// The policies of the file server that the snapshots were of.
const WORDS: &str = "original,noorder";

fn run(bench: &mut Bench<'_>) -> Result<Outcome, ExperimentError> {
    let (days, seed) = (aged::days(bench), bench.seed());
    let room = posix::cleanup::Temporary::new()?;
    let mut paths = Vec::new();
    let original = aged::run(WORDS, days, seed, &mut |day, replay| {
        bench.report("the original, with snapshots", day.into(), Some(days.into()));
        let path = room.path().join(format!("day-{day:04}.snapshot"));
        snapshot::take(replay, day)?.write(&path)?;
        paths.push(path);
        Ok(())
    })?;
    bench.report("planning from snapshots", 0, None);
    let plan = plan(room.path(), &paths, days, seed)?;
    let planned = Reader::open(&plan)?.meta().counts.clone();
    let replayed = replay(bench, &plan, days)?;
    let pairs = original.by_day.iter().zip(&replayed).zip(1..).map(|((original, replayed), day)| DayPair {
        day: f64::from(day),
        original: original.value(),
        replayed: replayed.value(),
    });
    let check = compare_scores("alloc96", pairs.collect());
    let mut outcome = Outcome::new();
    alloc96::describe(&mut outcome, days);
    outcome.parameter("short-lived files", format!("profiles of the same model under seed {}", seed.wrapping_add(1)));
    outcome.parameter("policies", WORDS);
    outcome.parameter("operations of the original", original.file_operations.to_string());
    outcome.parameter("operations of the replay", planned.operations.to_string());
    outcome.parameter("bytes written by the replay", planned.written_bytes.to_string());
    show(&mut outcome, &check);
    Ok(outcome)
}

/// A plan from snapshots, and from the short-lived files of another period.
fn plan(room: &Path, paths: &[PathBuf], days: u32, seed: u64) -> Result<PathBuf, ExperimentError> {
    let mut go_on = |_: f64| true;
    let other = room.join("other-period.aging");
    let options = aging::plan::alloc96::Options { planned_for: PLANNED_FOR, days, seed: seed.wrapping_add(1) };
    aging::plan::write(&other, PLANNED_FOR, |writer| aging::plan::alloc96::plan(&options, writer, &mut go_on))?;
    let short_lived = ShortLived::read(&other)?;
    let options = SnapshotsOptions {
        seed,
        place: Place::Groups { count: None },
        short_lived: Some(&short_lived),
        short_lived_number: Number::EachDay,
        ..SnapshotsOptions::default()
    };
    let plan = room.join("from-snapshots.aging");
    aging::plan::write(&plan, PLANNED_FOR, |writer| snapshots::plan(paths, &options, writer, &mut go_on))?;
    Ok(plan)
}

/// The layout score at the end of each day of a replay on an empty file system.
fn replay(bench: &mut Bench<'_>, plan: &Path, days: u32) -> Result<Vec<LayoutScore>, ExperimentError> {
    let mut replay = Replay::new(alloc96::file_system(WORDS)?, &Machine::load(MACHINE)?, EPOCH_NS)?;
    let reader = Reader::open(plan)?;
    let mut by_day = Vec::with_capacity(days as usize);
    for batch in reader.batches(0) {
        for op in batch? {
            while (by_day.len() as u64) < op.t_ns / DAY_NS {
                replay.sync()?;
                by_day.push(replay.score()?);
                bench.report("the replay", by_day.len() as u64, Some(days.into()));
            }
            replay.apply(&op)?;
        }
    }
    while by_day.len() < days as usize {
        by_day.push(replay.score()?);
    }
    replay.finish("the replay of a plan from snapshots")?;
    Ok(by_day)
}

fn show(outcome: &mut Outcome, check: &SelfCheck) {
    let known = |value: Option<f64>| value.unwrap_or(f64::NAN);
    let last = check.days.last();
    let row = |what: &str, published, ours, explain| Row::new(what, Unit::Score, published, ours, explain);
    outcome
        .row(row("last day, original", Published::exact(0.68), known(last.and_then(|d| d.original)), Explain::Agrees))
        .row(row("last day, replayed", Published::exact(0.766), known(last.and_then(|d| d.replayed)), Explain::Agrees))
        .row(row(
            "replayed less original, last day",
            Published::exact(0.766 - 0.68),
            known(check.final_difference),
            Explain::because(
                "our original is itself a planned workload: it has no appends, partial rewrites and moves that snapshots do not \
                 show, and the short-lived files of the replay are of its own kind",
            ),
        ))
        .row(row("mean difference", Published::NONE, known(check.mean_difference), Explain::Agrees))
        .row(row("largest difference", Published::NONE, known(check.largest_difference), Explain::Agrees));
    let half = check.days.len() / 2;
    let first = compare_scores("first half", check.days.iter().take(half).copied().collect());
    let mean = known(first.mean_difference);
    outcome.claim(Claim::new(
        "the replay tracks the original in the first half (mean difference below 0.05)",
        mean < 0.05,
        format!("mean difference {mean:.4}, correlation over all days {:.3}", known(check.correlation)),
        Explain::Agrees,
    ));
    type Score = fn(&DayPair) -> Option<f64>;
    let series = |name: &str, score: Score| {
        Series::new(name, check.days.iter().filter_map(|d| Some((d.day, score(d)?))).collect::<Vec<_>>())
    };
    outcome.figure(Figure {
        name: "score-by-day".into(),
        title: "Aggregate layout score at the end of each day.".into(),
        x: Axis::Days("day".into()),
        y: Axis::Score("aggregate layout score".into()),
        series: vec![series("original", |d| d.original), series("replayed", |d| d.replayed)],
    });
}
