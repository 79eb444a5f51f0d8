//! `alloc96/sequential`: the sequential benchmark on the aged file systems, by file size.

use super::aged::aged;
use super::{DRIVE, MACHINE, POLICIES, describe};
use crate::{Axis, Bench, Claim, Experiment, ExperimentError, Explain, Figure, Outcome, Published, Row, Series, Unit};
use workload::seqfile::{self, Options};
use workload::{Phase, Repeat, TargetResult};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    key: "alloc96/sequential",
    title: "Sequential throughput by file size on aged file systems",
    source: "Smith and Seltzer, A Comparison of FFS Disk Allocation Policies, USENIX 1996, section 5.1, figures 4 and 5",
    runs: "Creates, reads and overwrites 32 MB in files of each size on the two aged file systems: 25 files a directory, calls of 4 MB.",
    run,
};

const KB: u64 = 1024;

/// File sizes: multiples of a block about the cluster size and the first indirect block, doubling elsewhere.
const SIZES_KB: [u64; 23] =
    [16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112, 128, 192, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768];

/// Those of the quick scale.
const QUICK_KB: [u64; 8] = [16, 56, 64, 72, 96, 104, 128, 1024];

fn options(bench: &Bench<'_>) -> Options {
    let sizes = bench.pick(QUICK_KB.as_slice(), SIZES_KB.as_slice());
    Options {
        sizes_bytes: sizes.iter().map(|kb| kb * KB).collect(),
        files_per_directory: 25,
        piece_bytes: 4 << 20,
        repeat: Repeat { seed: bench.seed(), ..Repeat::once() },
        ..Options::with_data(bench.pick(4, 32) << 20)
    }
}

/// Throughput of one file system by size.
pub(crate) struct Curves(TargetResult);

impl Curves {
    /// MiB a second in a phase at a size; not a number where it was not run.
    pub(crate) fn at(&self, phase: Phase, size_kb: u64) -> f64 {
        self.points(phase).into_iter().find(|(x, _)| *x == (size_kb * KB) as f64).map_or(f64::NAN, |(_, y)| y)
    }

    /// MiB a second by size.
    pub(crate) fn points(&self, phase: Phase) -> Vec<(f64, f64)> {
        let found = |p: &workload::PointResult| {
            let rate = p.phases.iter().find(|found| found.phase == phase)?.rate.median;
            Some((p.point.size_bytes? as f64, rate / (KB * KB) as f64))
        };
        self.0.points.iter().filter_map(found).collect()
    }
}

fn run(bench: &mut Bench<'_>) -> Result<Outcome, ExperimentError> {
    let mut curves = Vec::new();
    let mut outcome = Outcome::new();
    for (name, words) in POLICIES {
        let aged = aged(bench, words)?;
        if curves.is_empty() {
            describe(&mut outcome, aged.days);
        }
        let options = options(bench);
        let mut lab = aged.laboratory()?;
        let mut tell =
            |p: &workload::Progress<'_>| bench.report(&format!("{name}: {}", p.point), p.done, Some(p.total));
        let mut result = seqfile::run(&mut lab, &options, &mut tell)?;
        curves.extend(result.targets.pop().map(Curves));
    }
    outcome.parameter("drive", DRIVE).parameter("machine", MACHINE).parameter("metadata", "conventional");
    if let [original, realloc] = curves.as_slice() {
        rows(&mut outcome, original, realloc);
        figures(&mut outcome, original, realloc);
    }
    Ok(outcome)
}

fn rows(outcome: &mut Outcome, original: &Curves, realloc: &Curves) {
    let gain = |phase, kb| realloc.at(phase, kb) / original.at(phase, kb);
    let sizes: Vec<u64> = realloc.points(Phase::Read).iter().map(|(x, _)| *x as u64 / KB).collect();
    let (best_kb, best) = sizes
        .iter()
        .filter(|kb| **kb <= 96)
        .map(|kb| (*kb, gain(Phase::Read, *kb)))
        .fold((0, 0.0), |best, here| if here.1 > best.1 { here } else { best });
    let large: Vec<f64> = sizes.iter().filter(|kb| **kb >= 1024).map(|kb| gain(Phase::Create, *kb)).collect();
    let mean = large.iter().sum::<f64>() / large.len().max(1) as f64;
    let ratio = |what: String, published, ours| Row::new(what, Unit::Ratio, published, ours, Explain::Agrees);
    outcome
        .row(ratio(
            "reading files of 96 KB, realloc over original".into(),
            Published::exact(1.58),
            gain(Phase::Read, 96),
        ))
        .row(ratio(format!("the most up to 96 KB (here at {best_kb} KB)"), Published::exact(1.58), best))
        .row(ratio("creating files of 1 MB and more, realloc over original".into(), Published::about(1.25), mean));
    for (name, curves) in [("original", original), ("realloc", realloc)] {
        for (phase, verb) in [(Phase::Read, "read"), (Phase::Create, "create")] {
            let (before, at, after) = (curves.at(phase, 96), curves.at(phase, 104), curves.at(phase, 1024));
            outcome.claim(Claim::new(
                format!("a dip at 104 KB, {verb}, {name}"),
                at < before && at < after,
                format!("{before:.2} MiB/s at 96 KB, {at:.2} at 104 KB, {after:.2} at 1 MB"),
                Explain::Agrees,
            ));
        }
        let (before, after) = (curves.at(Phase::Overwrite, 64), curves.at(Phase::Overwrite, 72));
        outcome.claim(Claim::new(
            format!("write throughput falls after 64 KB, {name}"),
            after < before,
            format!("overwriting {before:.2} MiB/s at 64 KB, {after:.2} at 72 KB"),
            Explain::Agrees,
        ));
    }
}

fn figures(outcome: &mut Outcome, original: &Curves, realloc: &Curves) {
    let phases = [(Phase::Create, "create"), (Phase::Read, "read"), (Phase::Overwrite, "overwrite")];
    let series = phases.iter().flat_map(|(phase, panel)| {
        [("original", original), ("realloc", realloc)]
            .map(|(name, curves)| Series::in_panel(panel, name, curves.points(*phase)))
    });
    outcome.figure(Figure {
        name: "throughput".into(),
        title: "Throughput by file size on the aged file systems, MiB/s.".into(),
        x: Axis::Bytes("file size".into()),
        y: Axis::Number("MiB/s".into()),
        series: series.collect(),
    });
}
