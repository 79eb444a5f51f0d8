//! What use does to a file system's speed, under both allocators: the reason why benchmarks are to be run on aged ones.

use super::fragments::written_score;
use super::thesis::{THESIS, with_one_position};
use super::{Side, describe, rate, rates_figure, sequential, side};
use crate::alloc96;
use crate::testbed::{AtSize, sequential_shared};
use crate::{Axis, Bench, Claim, Experiment, ExperimentError, Explain, Figure, Outcome, Published, Row, Series, Unit};
use ffs::Ffs;
use units::show::size_name;
use workload::Phase;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    key: "hbench01/empty-aged",
    title: "An empty file system against an aged one, under the original allocator and under realloc",
    source: "Smith, Workload-Specific File System Benchmarks, PhD thesis, Harvard, 2001, chapter 3",
    runs: "the sequential benchmark on new file systems and on those that seven months leave, with original and with \
           realloc; the layout of files of its sizes on each; the same with the file system, drive and days of alloc96",
    run,
};

const K: u64 = 1 << 10;
/// Names of the two allocators, which are also the words of a target.
const NAMES: [&str; 2] = ["original", "realloc"];
/// How far apart two rates may be that are called identical.
const IDENTICAL: f64 = 0.01;

fn run(bench: &mut Bench<'_>) -> Result<Outcome, ExperimentError> {
    let all = [16, 32, 48, 56, 64, 72, 80, 88, 96, 104, 112, 128, 192, 256, 512, 1024, 2048, 4096].map(|kb| kb * K);
    let sizes: &[u64] = bench.pick(&[16 * K, 64 * K, 104 * K], &all);
    let original = side(bench, THESIS, NAMES[0], sizes)?;
    let realloc = side(bench, THESIS, NAMES[1], sizes)?;
    let one = [one_position(bench, NAMES[0], sizes)?, one_position(bench, NAMES[1], sizes)?];
    let mut outcome = Outcome::new();
    describe(&mut outcome, bench, &original.aged);
    outcome.parameter("compared", "original against realloc");
    rows(&mut outcome, &original, &realloc, &one, sizes);
    of_alloc96(bench, &mut outcome)?;
    let sides = [(NAMES[0], &original), (NAMES[1], &realloc)];
    outcome.figure(rates_figure("read", "Reading files", Phase::Read, sides));
    outcome.figure(rates_figure("create", "Creating files", Phase::Create, sides));
    layout(bench, &mut outcome, [&original, &realloc], sizes)?;
    Ok(outcome)
}

/// The benchmark on a new file system with one thing changed: it tells one rotational position apart.
fn one_position(bench: &mut Bench<'_>, words: &str, sizes: &[u64]) -> Result<Vec<AtSize>, ExperimentError> {
    let volume = THESIS.as_measured(&with_one_position(words)?);
    let (name, with) = (format!("{words}, empty, one rotational position"), sequential(bench));
    sequential_shared(bench, &name, &volume, |volume| THESIS.laboratory(volume), sizes, with)
}

/// Sizes that rows are of.
const SHOWN: [u64; 5] = [16 * K, 64 * K, 96 * K, 104 * K, 1024 * K];

/// The same on the file system and the drive of the earlier study, after its 300 days.
fn of_alloc96(bench: &mut Bench<'_>, outcome: &mut Outcome) -> Result<(), ExperimentError> {
    let sizes: &[u64] = bench.pick(&SHOWN[1..2], &SHOWN);
    let sides = [side(bench, alloc96::STUDY, NAMES[0], sizes)?, side(bench, alloc96::STUDY, NAMES[1], sizes)?];
    let [original, realloc] = &sides;
    for size in sizes.iter().copied() {
        let of = |found: &[AtSize]| rate(found, size, Phase::Read).unwrap_or(0.0);
        let ratios = [
            ("aged over empty, original", of(&original.on_aged) / of(&original.on_empty)),
            ("aged over empty, realloc", of(&realloc.on_aged) / of(&realloc.on_empty)),
            ("realloc over original, aged", of(&realloc.on_aged) / of(&original.on_aged)),
        ];
        for (what, ours) in ratios {
            let what = format!("with the set-up of alloc96: read, {what}, {} files", size_name(size));
            outcome.row(Row::new(what, Unit::Ratio, Published::NONE, ours, Explain::Agrees));
        }
    }
    Ok(())
}

fn rows(outcome: &mut Outcome, original: &Side, realloc: &Side, one: &[Vec<AtSize>; 2], sizes: &[u64]) {
    let row = |what: String, ours| Row::new(what, Unit::Ratio, Published::NONE, ours, Explain::Agrees);
    let of = |found: &[AtSize], size, phase| rate(found, size, phase).unwrap_or(0.0);
    for phase in [Phase::Read, Phase::Create] {
        for size in sizes.iter().copied().filter(|size| SHOWN.contains(size)) {
            let what = |what: &str| format!("{}, {what}, {} files", phase.name(), size_name(size));
            let (before, after) = (of(&original.on_empty, size, phase), of(&realloc.on_empty, size, phase));
            outcome.row(row(what("realloc over original, empty"), after / before));
            let (before_aged, after_aged) = (of(&original.on_aged, size, phase), of(&realloc.on_aged, size, phase));
            outcome.row(row(what("realloc over original, aged"), after_aged / before_aged));
            outcome.row(row(what("aged over empty, original"), before_aged / before));
            outcome.row(row(what("aged over empty, realloc"), after_aged / after));
        }
    }
    // At which size the two are farthest apart, and how far.
    let ratios = |first: &[AtSize], other: &[AtSize], phase| {
        let each = sizes.iter().map(|size| (of(other, *size, phase) / of(first, *size, phase), *size));
        each.collect::<Vec<(f64, u64)>>()
    };
    for phase in [Phase::Read, Phase::Create] {
        let farthest = |first: &[AtSize], other: &[AtSize]| {
            let apart = ratios(first, other, phase).into_iter();
            apart.max_by(|a, b| a.0.ln().abs().total_cmp(&b.0.ln().abs())).unwrap_or((1.0, 0))
        };
        let (ratio, at) = farthest(&original.on_empty, &realloc.on_empty);
        let (one_ratio, one_at) = farthest(&one[0], &one[1]);
        outcome.claim(Claim::new(
            format!("{}, empty: the two allocators are identical", phase.name()),
            (ratio - 1.0).abs() <= IDENTICAL,
            format!("realloc over original is farthest from 1 at {}: {ratio:.3}", size_name(at)),
            Explain::because(format!(
                "with one change, one rotational position instead of eight, realloc over original is farthest from 1 \
                 at {}: {one_ratio:.3}; what is left is not known",
                size_name(one_at)
            )),
        ));
    }
    for (name, side) in [(NAMES[0], original), (NAMES[1], realloc)] {
        let slower = ratios(&side.on_empty, &side.on_aged, Phase::Read);
        let (most, at) = slower.iter().copied().max_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((1.0, 0));
        outcome.claim(Claim::new(
            format!("read, {name}: an aged file system is slower at every size"),
            most < 1.0,
            format!("aged over empty is greatest at {}: {most:.3}", size_name(at)),
            Explain::because("not known"),
        ));
    }
    let better = ratios(&original.on_aged, &realloc.on_aged, Phase::Read);
    let (least, at) = better.iter().copied().min_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((1.0, 0));
    outcome.claim(Claim::new(
        "read, aged: realloc is faster at every size",
        least > 1.0,
        format!("realloc over original is least at {}: {least:.3}", size_name(at)),
        Explain::because("not known"),
    ));
}

/// Where the benchmark's own files lie, by size.
fn layout(
    bench: &mut Bench<'_>,
    outcome: &mut Outcome,
    sides: [&Side; 2],
    sizes: &[u64],
) -> Result<(), ExperimentError> {
    let mut series = Vec::new();
    for (name, side) in NAMES.into_iter().zip(sides) {
        let on: [(&str, Ffs); 2] = [("empty", THESIS.file_system(name)?), ("aged", side.aged.volume.clone())];
        for (on, volume) in on {
            let mut scores = Vec::new();
            for (done, size) in (0_u64..).zip(sizes) {
                bench.report(&format!("layout by size, {name}, {on}"), done, Some(sizes.len() as u64));
                scores.push((*size as f64, written_score(THESIS, &volume, *size)?));
            }
            let mean = scores.iter().map(|(_, score)| score).sum::<f64>() / scores.len().max(1) as f64;
            let what = format!("layout score of files of the benchmark's sizes, mean, {name}, {on}");
            outcome.row(Row::new(what, Unit::Score, Published::NONE, mean, Explain::Agrees));
            series.push(Series::in_panel(on, name, scores));
        }
    }
    outcome.figure(Figure {
        name: "layout".to_owned(),
        title: "Layout of files of each size, written on each file system".to_owned(),
        x: Axis::Bytes("file size".to_owned()),
        y: Axis::Score("layout score".to_owned()),
        series,
    });
    Ok(())
}
