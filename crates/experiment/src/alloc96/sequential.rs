//! `alloc96/sequential`: the sequential benchmark on the aged file systems, by file size.

use super::aged::aged;
use super::replay::failed;
use super::{DRIVE, MACHINE, POLICIES, describe};
use crate::{Axis, Bench, Claim, Experiment, ExperimentError, Explain, Figure, Outcome, Published, Row, Series, Unit};
use ffs::Ffs;
use kernel::{Ino, Lab, Volume as _};
use layout::scores::file::FileLayout;
use layout::scores::score::LayoutScore;
use posix::{Call, FileSystem as _, Mode, OpenFlags};
use workload::seqfile::Options;
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
    let (mut curves, mut scores) = (Vec::new(), Vec::new());
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
        let mut result = workload::run_on(&mut lab, &options, &mut tell)?;
        curves.extend(result.targets.pop().map(Curves));
        scores.push((name, score_of_new(&mut aged.laboratory()?, options.data_bytes)?));
    }
    outcome.parameter("drive", DRIVE).parameter("machine", MACHINE).parameter("metadata", "conventional");
    if let ([original, realloc], [(_, score), (_, better)]) = (curves.as_slice(), scores.as_slice()) {
        rows(&mut outcome, original, realloc, (*score, *better));
        figures(&mut outcome, original, realloc);
    }
    for (name, score) in scores {
        let what = format!("layout score of new files of 96 KB, {name}");
        outcome.row(Row::new(what, Unit::Score, Published::NONE, score, Explain::Agrees));
    }
    Ok(outcome)
}

/// The aggregate layout score of files of 96 KB as the benchmark makes them on an aged file system.
fn score_of_new(lab: &mut Lab<Ffs>, data_bytes: u64) -> Result<f64, ExperimentError> {
    let doing = || failed("making files of 96 KB");
    let block_bytes = u64::from(lab.volume().geometry().bsize);
    let mut score = LayoutScore::default();
    for n in 0..data_bytes / (96 * KB) {
        let dir = format!("new-{}", n / 25);
        if n % 25 == 0 {
            lab.call(&Call::Mkdir { at: dir.as_str().into(), mode: Mode(0o755) }).result.map_err(doing())?;
        }
        let path = format!("{dir}/{n}");
        let open = Call::Open { at: path.as_str().into(), flags: OpenFlags::CREATE_NEW, mode: Mode(0o644) };
        let fd = lab.call(&open).fd().map_err(doing())?;
        let write = Call::Write { fd, offset: None, len_bytes: 96 * KB, data: None };
        lab.call(&write).result.map_err(doing())?;
        let ino = lab.call(&Call::Fstat { fd }).stat().map_err(doing())?.ino;
        let extents = lab.volume().extents(Ino(ino as u32)).map_err(doing())?;
        score.add(FileLayout::of(&extents, block_bytes).score);
        lab.call(&Call::Close { fd }).result.map_err(doing())?;
    }
    Ok(score.value().unwrap_or(f64::NAN))
}

fn rows(outcome: &mut Outcome, original: &Curves, realloc: &Curves, scores: (f64, f64)) {
    let gain = |phase, kb| realloc.at(phase, kb) / original.at(phase, kb);
    let sizes: Vec<u64> = realloc.points(Phase::Read).iter().map(|(x, _)| *x as u64 / KB).collect();
    let (best_kb, best) = sizes
        .iter()
        .filter(|kb| **kb <= 96)
        .map(|kb| (*kb, gain(Phase::Read, *kb)))
        .fold((0, 0.0), |best, here| if here.1 > best.1 { here } else { best });
    let large: Vec<f64> = sizes.iter().filter(|kb| **kb >= 1024).map(|kb| gain(Phase::Create, *kb)).collect();
    let mean = large.iter().sum::<f64>() / large.len().max(1) as f64;
    let why = price_of_a_break(original, realloc, scores);
    let ratio = |what: String, published, ours| Row::new(what, Unit::Ratio, published, ours, Explain::because(&why));
    outcome
        .row(ratio(
            "reading files of 96 KB, realloc over original".into(),
            Published::exact(1.58),
            gain(Phase::Read, 96),
        ))
        .row(ratio(format!("the most up to 96 KB (here at {best_kb} KB)"), Published::exact(1.58), best));
    outcome.row(Row::new(
        "creating files of 1 MB and more, realloc over original",
        Unit::Ratio,
        Published::about(1.25),
        mean,
        Explain::Agrees,
    ));
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

/// What a place where a file is not contiguous costs a reader here, and what it would have to cost for the published ratio.
fn price_of_a_break(original: &Curves, realloc: &Curves, (score, better): (f64, f64)) -> String {
    let file_ms = |curves: &Curves| 96.0 / 1024.0 / curves.at(Phase::Read, 96) * 1e3;
    let breaks = |score: f64| 11.0 * (1.0 - score);
    let more = breaks(score) - breaks(better);
    let (slow, fast) = (file_ms(original), file_ms(realloc));
    format!(
        "a new file of 96 KB has {:.1} breaks under the original and {:.1} under realloc; each break more costs {:.1} ms here, where \
         {:.1} ms would give the published ratio. What a short seek costs, and how often the drive's buffer spares it, are \
         estimates in the model of this drive",
        breaks(score),
        breaks(better),
        (slow - fast) / more,
        0.58 * fast / more,
    )
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
