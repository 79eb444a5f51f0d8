//! `alloc96/sensitivity`: what the study does not say of its file system, varied one thing at a time.
//!
//! How many rotational positions it told apart decides where a block goes that cannot lie behind the one before; where
//! its partition began decides in which zone of the drive it lies, and so what such a break costs: a step of the file
//! system's own track, 118 sectors, comes just in time on some tracks and just too late on others. Which files go when
//! use falls decides what holes the newest files find.

use super::aged::{Aged, Aging, aged, run_as};
use super::{DRIVE, MACHINE, POLICIES, POSITIONS, SIZE_BYTES, describe, hot_files, sequential};
use crate::{
    Axis, Bench, Experiment, ExperimentError, Explain, Figure, Outcome, Published, Row, Series, Unit, parallel,
};
use aging::plan::alloc96::Leaving;
use device::{Drive, Model};
use std::sync::Arc;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    key: "alloc96/sensitivity",
    title: "Rotational positions, the partition's place and the files that go: what the study does not say",
    source: "Smith and Seltzer, A Comparison of FFS Disk Allocation Policies, USENIX 1996, sections 4 and 5",
    runs: "Ages both file systems with 8, 4, 2 and 1 rotational positions, and reads their hot files and new files of \
           96 KB in partitions that begin at four places of the drive; ages the original with other files going.",
    run,
};

/// Rotational positions, the base first, then those that say most.
const POSITIONS_TRIED: [u32; 4] = [POSITIONS, 2, 1, 4];

/// Where partitions begin, MiB: the first two in the outermost zone and in one of about the published average; that at
/// 1,500 ends with the drive but for 45 MB.
const STARTS_MIB: [u64; 4] = [0, 1000, 500, 1500];

/// Which documents go.
const LEAVING: [(&str, Leaving); 3] = [
    ("any of its size", Leaving::AnyOfItsSize),
    ("the oldest", Leaving::TheOldest),
    ("fifty that were made one after another", Leaving::Neighbours),
];

/// The original and realloc, aged alike.
struct Pair {
    positions: u32,
    aged: [f64; 2],
    hot: [f64; 2],
    /// New files of 96 KB.
    new: [f64; 2],
    /// By start.
    starts: Vec<Start>,
}

/// Speeds in a partition, MiB/s.
struct Start {
    hot: [f64; 2],
    new: [f64; 2],
}

impl Start {
    /// What each break more costs, ms.
    fn break_ms(&self, scores: [f64; 2]) -> f64 {
        let file_ms = self.new.map(|mib_per_s| 96.0 / 1024.0 / mib_per_s * 1e3);
        let breaks = scores.map(|score| 11.0 * (1.0 - score));
        (file_ms[0] - file_ms[1]) / (breaks[0] - breaks[1])
    }
}

fn gain([original, realloc]: [f64; 2]) -> f64 {
    realloc / original
}

fn run(bench: &mut Bench<'_>) -> Result<Outcome, ExperimentError> {
    let positions = bench.sweep(&[POSITIONS, 1][..], &POSITIONS_TRIED[..3], &POSITIONS_TRIED[..]);
    let mut positions = positions.to_vec();
    positions.sort_unstable_by_key(|positions| std::cmp::Reverse(*positions));
    let mut starts = bench.sweep(&STARTS_MIB[..2], &STARTS_MIB[..2], &STARTS_MIB[..]).to_vec();
    starts.sort_unstable();
    let base = Aging::of(bench);
    // The study's pair serves other experiments too.
    let mut pairs: Vec<[Arc<Aged>; 2]> = vec![[aged(bench, POLICIES[0].1)?, aged(bench, POLICIES[1].1)?]];
    let others: Vec<(&str, Aging)> = positions
        .iter()
        .skip(1)
        .flat_map(|positions| POLICIES.map(|(_, words)| (words, Aging { positions: *positions, ..base })))
        .collect();
    let mut made = parallel::each(bench, "other rotational positions", &others, |(words, aging)| {
        run_as(words, *aging, &mut |_, _| Ok(()))
    })?
    .into_iter();
    while let (Some(original), Some(realloc)) = (made.next(), made.next()) {
        pairs.push([Arc::new(original), Arc::new(realloc)]);
    }
    let mut outcome = Outcome::new();
    describe(&mut outcome, base.days);
    outcome.parameter("positions and partitions", bench.sweeps());
    outcome.parameter("drive", DRIVE).parameter("machine", MACHINE).parameter("writes", super::WRITES);
    let mut found = Vec::new();
    for (pair, positions) in pairs.iter().zip(&positions) {
        found.push(measure(bench, pair, *positions, &starts)?);
    }
    let tracks = tracks(&starts)?;
    rows(&mut outcome, &found, &starts, &tracks);
    figures(&mut outcome, &found, &starts);
    // In the first twenty days use only rises: nothing goes.
    leaving(bench, &mut outcome, base, pairs.first().map(|pair| &*pair[0]))?;
    outcome.note(
        "Published: the aged original scores 0.766, its hot files 0.80; reading hot files gains 1.32, files of 96 KB \
         1.58. Rows of one table differ by the one thing that they name.",
    );
    Ok(outcome)
}

fn measure(
    bench: &mut Bench<'_>,
    pair: &[Arc<Aged>; 2],
    positions: u32,
    starts: &[u64],
) -> Result<Pair, ExperimentError> {
    let both = |of: &mut dyn FnMut(&Aged) -> Result<f64, ExperimentError>| {
        Ok::<_, ExperimentError>([of(&pair[0])?, of(&pair[1])?])
    };
    let mut found = Vec::new();
    for (done, start_mib) in (0_u64..).zip(starts) {
        bench.report(&format!("{positions} positions, by place of the partition"), done, Some(starts.len() as u64));
        let (sector, seed) = (start_mib * 2048, bench.seed());
        found.push(Start {
            hot: both(&mut |aged| Ok(hot_files::rates(aged, sector, false, seed)?[0]))?,
            new: both(&mut |aged| sequential::read_96(bench, aged, sector))?,
        });
    }
    Ok(Pair {
        positions,
        aged: both(&mut |aged| Ok(aged.score(aged.days)))?,
        hot: both(&mut |aged| hot_files::score(aged))?,
        new: both(&mut |aged| sequential::score_of_new_96(bench, aged))?,
        starts: found,
    })
}

/// Sectors of a track where a file system begins and where it ends, by start.
fn tracks(starts: &[u64]) -> Result<Vec<String>, ExperimentError> {
    let drive = Drive::find(DRIVE)?;
    let Model::Disk(spec) = &drive.model else { return Ok(vec![String::new(); starts.len()]) };
    let geometry = device::disk::Disk::new((**spec).clone()).geometry().clone();
    let at = |sector: u64| {
        let zone = geometry.zones().iter().rev().find(|zone| zone.first_lbn.0 <= sector);
        zone.map_or(0, |zone| zone.sectors_per_track)
    };
    let spoken = |start: &u64| {
        let (first, last) = (at(start * 2048), at(start * 2048 + SIZE_BYTES / 512 - 1));
        if first == last { format!("{first} sectors a track") } else { format!("{first} to {last} sectors a track") }
    };
    Ok(starts.iter().map(spoken).collect())
}

fn rows(outcome: &mut Outcome, found: &[Pair], starts: &[u64], tracks: &[String]) {
    let row = |what: String, unit, ours| Row::new(what, unit, Published::NONE, ours, Explain::Agrees);
    for pair in found {
        let n = pair.positions;
        for ((name, _), (aged, hot)) in POLICIES.iter().zip(pair.aged.into_iter().zip(pair.hot)) {
            outcome.row(row(format!("{n} positions: layout score of the aged file system, {name}"), Unit::Score, aged));
            outcome.row(row(format!("{n} positions: layout score of hot files, {name}"), Unit::Score, hot));
        }
        for ((start, track), mib) in pair.starts.iter().zip(tracks).zip(starts) {
            let place = format!("{n} positions, partition at {mib} MB ({track})");
            outcome.row(row(
                format!("{place}: reading hot files, realloc over original"),
                Unit::Ratio,
                gain(start.hot),
            ));
            outcome.row(row(
                format!("{place}: reading 96 KB files, realloc over original"),
                Unit::Ratio,
                gain(start.new),
            ));
            outcome.row(row(
                format!("{place}: each break more, reading 96 KB files"),
                Unit::Ns,
                start.break_ms(pair.new) * 1e6,
            ));
        }
    }
}

fn figures(outcome: &mut Outcome, found: &[Pair], starts: &[u64]) {
    let by_position =
        |of: fn(&Pair) -> f64| found.iter().map(|pair| (f64::from(pair.positions), of(pair))).collect::<Vec<_>>();
    outcome.figure(Figure {
        name: "scores".into(),
        title: "Layout score after the 300 days by the number of rotational positions.".into(),
        x: Axis::Number("rotational positions".into()),
        y: Axis::Score("layout score".into()),
        series: vec![
            Series::new("original", by_position(|pair| pair.aged[0])),
            Series::new("original, hot files", by_position(|pair| pair.hot[0])),
            Series::new("realloc", by_position(|pair| pair.aged[1])),
            Series::new("realloc, hot files", by_position(|pair| pair.hot[1])),
        ],
    });
    type Of = fn(&Start) -> [f64; 2];
    let line = |panel: &str, pair: &Pair, of: Of| {
        let points = starts.iter().zip(&pair.starts).map(|(mib, start)| (*mib as f64, gain(of(start))));
        Series::in_panel(panel, &format!("{} positions", pair.positions), points)
    };
    let panels: [(&str, Of); 2] = [("hot files", |start| start.hot), ("files of 96 KB", |start| start.new)];
    outcome.figure(Figure {
        name: "gain".into(),
        title: "Reading, realloc over original, by where the partition begins.".into(),
        x: Axis::Number("beginning of the partition, MB".into()),
        y: Axis::Ratio("realloc over original".into()),
        series: panels.iter().flat_map(|(panel, of)| found.iter().map(|pair| line(panel, pair, *of))).collect(),
    });
}

/// The original with other files going when use falls.
fn leaving(
    bench: &mut Bench<'_>,
    outcome: &mut Outcome,
    base: Aging,
    original: Option<&Aged>,
) -> Result<(), ExperimentError> {
    let tried: &[(&str, Leaving)] = bench.pick(&[], LEAVING.get(1..).unwrap_or_default());
    let made = parallel::each(bench, "other files going", tried, |(_, leaving)| {
        run_as(POLICIES[0].1, Aging { leaving: *leaving, ..base }, &mut |_, _| Ok(()))
    })?;
    for ((what, _), aged) in LEAVING.iter().zip(original.into_iter().chain(&made)) {
        let (all, hot) = (aged.score(aged.days), hot_files::score(aged)?);
        let row = |of: &str, ours| {
            Row::new(
                format!("documents that go: {what}: layout score {of}, original"),
                Unit::Score,
                Published::NONE,
                ours,
                Explain::Agrees,
            )
        };
        outcome.row(row("of all files", all)).row(row("of hot files", hot));
    }
    Ok(())
}
