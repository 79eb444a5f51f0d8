//! `aging97/verify`: whether a workload made from daily snapshots ages a file system as the original workload did.
//!
//! Two originals run on the laboratory's FFS: the 300-day workload of `alloc96`, whose files are written whole, and as
//! many days of home directories, whose files also grow, are written over in part and are moved. Of each only what a
//! nightly job sees is kept: a snapshot at the end of each day. From these a skeleton is planned
//! (`fsage plan snapshots`), with short-lived files whose profiles come from another period (the same workload under
//! another seed), as they came from another server's trace in the paper; each file goes into the directory of its
//! inode's group. The plan is replayed on an empty file system.

use super::snapshot;
use crate::alloc96::aged::{self, PLANNED_FOR};
use crate::alloc96::by_size::{BySize, Counted};
use crate::alloc96::replay::Replay;
use crate::alloc96::{self, EPOCH_NS, MACHINE};
use crate::{
    Axis, Bench, Claim, Experiment, ExperimentError, Explain, Figure, Outcome, Published, Row, Series, Unit, parallel,
};
use aging::DAY_NS;
use aging::format::Reader;
use aging::plan::PlannedFor;
use aging::plan::personality::{self, Churn, builtin};
use aging::plan::short_lived::{Number, ShortLived};
use aging::plan::snapshots::{self, Place, SnapshotsOptions};
use aging::verify::{DayPair, SelfCheck, compare_scores};
use kernel::Machine;
use layout::scores::score::LayoutScore;
use std::path::{Path, PathBuf};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    key: "aging97/verify",
    title: "Layout by day, original against a replay planned from its snapshots",
    source: "Smith and Seltzer, File System Aging, SIGMETRICS 1997, section 4; A Comparison of FFS Disk Allocation \
             Policies, 1996, section 3 and figure 1; Smith's thesis, 2001, figures 3.3 and 3.4",
    runs: "Takes a snapshot of the aged file system each day, plans a workload from the snapshots alone, replays it \
           and compares: for files that are written whole, and for files that also grow, are written over in part and \
           are moved.",
    run,
};

/// The policies of the file server that the snapshots were of.
const WORDS: &str = "original,noorder";

/// Scores after 300 days: the file server's, and that of the replay.
const PUBLISHED: [f64; 2] = [0.68, 0.766];

/// The workload that snapshots are taken of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Original {
    /// That of `alloc96`: files are written whole.
    Whole,
    /// Home directories: files grow, are written over in part and are moved besides.
    Homes,
}

impl Original {
    const ALL: [Original; 2] = [Original::Whole, Original::Homes];

    fn name(self) -> &'static str {
        match self {
            Original::Whole => "files written whole",
            Original::Homes => "home directories",
        }
    }

    /// Writes its plan.
    fn plan(self, path: &Path, days: u32, seed: u64) -> Result<(), ExperimentError> {
        let mut go_on = |_: f64| true;
        match self {
            Original::Whole => {
                let options = aging::plan::alloc96::Options { planned_for: PLANNED_FOR, days, seed };
                aging::plan::write(path, PLANNED_FOR, |writer| {
                    aging::plan::alloc96::plan(&options, writer, &mut go_on)
                })?;
            }
            Original::Homes => {
                // What users may use, as df shows it in per cent: 90 % of the whole.
                let planned_for = PlannedFor { capacity_bytes: PLANNED_FOR.capacity_bytes / 10 * 9, ..PLANNED_FOR };
                let options = personality::Options {
                    planned_for,
                    days,
                    utilisation: None,
                    fill: None,
                    churn: Churn::Implied,
                    seed,
                    input: None,
                };
                let homes = builtin::get("home")?;
                aging::plan::write(path, planned_for, |writer| {
                    personality::plan(&homes, &options, writer, &mut go_on)
                })?;
            }
        }
        Ok(())
    }
}

/// A file system at the end of a replay, and its score by day.
struct Replayed {
    by_day: Vec<LayoutScore>,
    by_size: BySize,
    operations: u64,
}

/// An original and what its snapshots made of it.
struct Pair {
    of: Original,
    original: Replayed,
    replayed: Replayed,
    check: SelfCheck,
}

fn run(bench: &mut Bench<'_>) -> Result<Outcome, ExperimentError> {
    let (days, seed) = (aged::days(bench), bench.seed());
    let pairs = parallel::each(bench, "originals and their replays", &Original::ALL, |of| pair(*of, days, seed))?;
    let mut outcome = Outcome::new();
    alloc96::describe(&mut outcome, days);
    outcome.parameter("home directories", format!("{days} days (fsage plan personality home), as full as they say"));
    outcome
        .parameter("short-lived files", format!("profiles of the same workload under seed {}", seed.wrapping_add(1)));
    outcome.parameter("policies", WORDS);
    for pair in &pairs {
        let name = pair.of.name();
        outcome.parameter(&format!("operations, {name}"), pair.original.operations.to_string());
        outcome.parameter(&format!("operations of the replay, {name}"), pair.replayed.operations.to_string());
    }
    for pair in &pairs {
        show(&mut outcome, pair);
    }
    if let [whole, homes] = pairs.as_slice() {
        differences(&mut outcome, whole, homes);
    }
    figures(&mut outcome, &pairs);
    Ok(outcome)
}

fn pair(of: Original, days: u32, seed: u64) -> Result<Pair, ExperimentError> {
    let room = posix::cleanup::Temporary::new()?;
    let (mut paths, first) = (Vec::new(), room.path().join("original.aging"));
    of.plan(&first, days, seed)?;
    let original = replay(&first, days, &mut |day, replay| {
        let path = room.path().join(format!("day-{day:04}.snapshot"));
        snapshot::take(replay, day)?.write(&path)?;
        paths.push(path);
        Ok(())
    })?;
    let other = room.path().join("other-period.aging");
    of.plan(&other, days, seed.wrapping_add(1))?;
    let again = from_snapshots(room.path(), &paths, &other, seed)?;
    let replayed = replay(&again, days, &mut |_, _| Ok(()))?;
    let both = original.by_day.iter().zip(&replayed.by_day).zip(1..);
    let days = both.map(|((original, replayed), day)| DayPair {
        day: f64::from(day),
        original: original.value(),
        replayed: replayed.value(),
    });
    let check = compare_scores(of.name(), days.collect());
    Ok(Pair { of, original, replayed, check })
}

/// A plan from snapshots, and from the short-lived files of another period.
fn from_snapshots(room: &Path, paths: &[PathBuf], other: &Path, seed: u64) -> Result<PathBuf, ExperimentError> {
    // Of the same file system: the personality is planned for what users may use of it only.
    let short_lived = ShortLived::read(other)?.of_size(PLANNED_FOR.capacity_bytes);
    let options = SnapshotsOptions {
        seed,
        place: Place::Groups { count: None },
        short_lived: Some(&short_lived),
        short_lived_number: Number::EachDay,
        ..SnapshotsOptions::default()
    };
    let plan = room.join("from-snapshots.aging");
    aging::plan::write(&plan, PLANNED_FOR, |writer| snapshots::plan(paths, &options, writer, &mut |_| true))?;
    Ok(plan)
}

/// Replays a plan on an empty file system; `each_day` sees it at the end of each day (from 1).
fn replay(plan: &Path, days: u32, each_day: aged::EachDay<'_>) -> Result<Replayed, ExperimentError> {
    let mut replay = Replay::new(alloc96::file_system(WORDS)?, &Machine::load(MACHINE)?, EPOCH_NS)?;
    let reader = Reader::open(plan)?;
    let mut by_day = Vec::with_capacity(days as usize);
    let mut end_day = |replay: &mut Replay| {
        replay.sync()?;
        by_day.push(replay.score()?);
        each_day(by_day.len() as u32, replay)?;
        Ok::<_, ExperimentError>(by_day.len() as u64)
    };
    let mut ended = 0;
    for batch in reader.batches(0) {
        for op in batch? {
            while ended < op.t_ns / DAY_NS {
                ended = end_day(&mut replay)?;
            }
            replay.apply(&op)?;
        }
    }
    while ended < u64::from(days) {
        ended = end_day(&mut replay)?;
    }
    let (files, operations) = (replay.files().collect::<Vec<_>>(), replay.file_operations());
    let volume = replay.finish("the replay of a plan")?;
    let by_size = BySize::of_files(&volume, files.iter(), Counted::All)?;
    Ok(Replayed { by_day, by_size, operations })
}

fn known(value: Option<f64>) -> f64 {
    value.unwrap_or(f64::NAN)
}

fn show(outcome: &mut Outcome, pair: &Pair) {
    let Pair { of, check, .. } = pair;
    let name = of.name();
    let last = check.days.last();
    let row = |what: &str, published, ours| {
        Row::new(format!("{name}: {what}"), Unit::Score, published, ours, Explain::unknown())
    };
    // Home directories are another workload: what is compared is how far the replay is off.
    let [server, replay] = match of {
        Original::Whole => PUBLISHED.map(Published::exact),
        Original::Homes => [Published::NONE; 2],
    };
    let rows = [
        row("last day, original", server, known(last.and_then(|d| d.original))),
        row("last day, replayed", replay, known(last.and_then(|d| d.replayed))),
        row(
            "replayed less original, last day",
            Published::exact(PUBLISHED[1] - PUBLISHED[0]),
            known(check.final_difference),
        ),
        row("mean difference", Published::NONE, known(check.mean_difference)),
        row("largest difference", Published::NONE, known(check.largest_difference)),
    ];
    for row in rows {
        outcome.row(row);
    }
    let half = check.days.len() / 2;
    let first = compare_scores("first half", check.days.iter().take(half).copied().collect());
    let mean = known(first.mean_difference);
    outcome.claim(Claim::new(
        format!("{name}: the replay tracks the original in the first half (mean difference below 0.05)"),
        mean < 0.05,
        format!("mean difference {mean:.4}, correlation over all days {:.3}", known(check.correlation)),
        Explain::unknown(),
    ));
}

/// What snapshots do not show makes the difference, if it is larger where there is such a thing.
fn differences(outcome: &mut Outcome, whole: &Pair, homes: &Pair) {
    let [a, b] = [whole, homes].map(|pair| known(pair.check.final_difference));
    outcome.claim(Claim::new(
        "a replay planned from snapshots is laid out better than its original",
        b > 0.0 && a > 0.0,
        format!("replayed less original {a:+.3} with files written whole, {b:+.3} with home directories"),
        Explain::unknown(),
    ));
}

fn figures(outcome: &mut Outcome, pairs: &[Pair]) {
    type Score = fn(&DayPair) -> Option<f64>;
    let by_day = |pair: &Pair, name: &str, score: Score| {
        let points = pair.check.days.iter().filter_map(|d| Some((d.day, score(d)?)));
        Series::in_panel(pair.of.name(), name, points)
    };
    let published = |pair: &Pair| {
        [("original, published", PUBLISHED[0]), ("replayed, published", PUBLISHED[1])]
            .map(|(name, score)| Series::published(pair.of.name(), name, [(300.0, score)]))
    };
    outcome.figure(Figure {
        name: "score-by-day".into(),
        title: "Aggregate layout score at the end of each day.".into(),
        x: Axis::Days("day".into()),
        y: Axis::Score("aggregate layout score".into()),
        series: pairs
            .iter()
            .flat_map(|pair| {
                let ours = [by_day(pair, "original", |d| d.original), by_day(pair, "replayed", |d| d.replayed)];
                ours.into_iter().chain(published(pair))
            })
            .collect(),
    });
    outcome.figure(Figure {
        name: "score-by-size".into(),
        title: "Aggregate layout score of the files of each size after the last day.".into(),
        x: Axis::Bytes("file size".into()),
        y: Axis::Score("layout score".into()),
        series: pairs
            .iter()
            .flat_map(|pair| {
                [("original", &pair.original), ("replayed", &pair.replayed)]
                    .map(|(name, side)| Series::in_panel(pair.of.name(), name, side.by_size.points()))
            })
            .collect(),
    });
}
