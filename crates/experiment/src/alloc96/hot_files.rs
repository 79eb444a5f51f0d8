//! `alloc96/hot-files`: the files modified in the last month of the aging, read and overwritten.

use super::aged::{Aged, aged};
use super::replay::{failed, layout_of};
use super::{DRIVE, MACHINE, POLICIES, describe};
use crate::{Axis, Bench, Claim, Experiment, ExperimentError, Explain, Figure, Outcome, Published, Row, Series, Unit};
use ffs::Ffs;
use kernel::Lab;
use layout::scores::score::LayoutScore;
use posix::{Call, FileSystem, Mode, OpenFlags};
use workload::hotfiles::{Options, Select};
use workload::{AGED_MARKER, Phase, Repeat};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    key: "alloc96/hot-files",
    title: "Reading and overwriting the files of the last month",
    source: "Smith and Seltzer, A Comparison of FFS Disk Allocation Policies, USENIX 1996, section 5.2",
    runs: "Reads the files modified in the last 30 days, directory by directory, and overwrites them, on the two aged file systems.",
    run,
};

/// What came of one file system.
pub(crate) struct Hot {
    files: u64,
    bytes: u64,
    /// Layout score of the files together.
    pub(crate) score: f64,
    /// MiB a second, reading.
    pub(crate) read_mib_per_s: f64,
    /// MiB a second, writing over them.
    pub(crate) overwrite_mib_per_s: f64,
}

fn run(bench: &mut Bench<'_>) -> Result<Outcome, ExperimentError> {
    let mut outcome = Outcome::new();
    let mut found = Vec::new();
    for (_, words) in POLICIES {
        let aged = aged(bench, words)?;
        if found.is_empty() {
            describe(&mut outcome, aged.days);
        }
        found.push(measure(bench, &aged)?);
    }
    outcome.parameter("drive", DRIVE).parameter("machine", MACHINE).parameter("metadata", "conventional");
    if let [original, realloc] = found.as_slice() {
        rows(&mut outcome, original, realloc);
    }
    Ok(outcome)
}

/// Reads the hot files of an aged file system and writes over them.
pub(crate) fn measure(bench: &mut Bench<'_>, aged: &Aged) -> Result<Hot, ExperimentError> {
    let mut score = LayoutScore::default();
    for file in aged.hot_files() {
        score.add(layout_of(&aged.volume, file.ino)?.score);
    }
    let mut lab = aged.laboratory()?;
    mark(&mut lab)?;
    let repeat = Repeat { seed: bench.seed(), ..Repeat::once() };
    let options = Options { select: Select::NewerDays(30.0), overwrite: true, repeat, ..Options::default() };
    let mut tell = |p: &workload::Progress<'_>| bench.report(p.point, p.done, Some(p.total));
    let result = workload::run_on(&mut lab, &options, &mut tell)?;
    let rate = |phase| {
        let phases = || result.targets.iter().flat_map(|t| &t.points).flat_map(|p| &p.phases);
        phases().find(|p| p.phase == phase).map_or(f64::NAN, |p| p.rate.median / 1048576.0)
    };
    Ok(Hot {
        files: aged.hot_files().count() as u64,
        bytes: aged.hot_files().map(|file| file.size_bytes).sum(),
        score: score.value().unwrap_or(f64::NAN),
        read_mib_per_s: rate(Phase::Read),
        overwrite_mib_per_s: rate(Phase::Overwrite),
    })
}

/// The benchmark overwrites only trees that aging has made, and knows them by this file.
fn mark(lab: &mut Lab<Ffs>) -> Result<(), ExperimentError> {
    let doing = || failed("marking the tree as aged");
    let open = Call::Open { at: AGED_MARKER.into(), flags: OpenFlags::CREATE_NEW, mode: Mode(0o644) };
    let fd = lab.call(&open).fd().map_err(doing())?;
    let write = Call::Write { fd, offset: None, len_bytes: 2, data: Some(b"{}") };
    lab.call(&write).result.map_err(doing())?;
    lab.call(&Call::Close { fd }).result.map_err(doing())?;
    Ok(())
}

fn rows(outcome: &mut Outcome, original: &Hot, realloc: &Hot) {
    let row = |what: &str, unit, published, ours| Row::new(what, unit, published, ours, Explain::Agrees);
    outcome.row(row("files", Unit::Count, Published::exact(929.0), original.files as f64)).row(row(
        "their bytes",
        Unit::Bytes,
        Published::exact(59.5 * 1048576.0),
        original.bytes as f64,
    ));
    for (name, hot) in [("original", original), ("realloc", realloc)] {
        outcome
            .row(row(&format!("layout score, {name}"), Unit::Score, Published::NONE, hot.score))
            .row(row(&format!("reading, {name}"), Unit::MibPerS, Published::NONE, hot.read_mib_per_s))
            .row(row(&format!("overwriting, {name}"), Unit::MibPerS, Published::NONE, hot.overwrite_mib_per_s));
    }
    let (read, overwrite) =
        (realloc.read_mib_per_s / original.read_mib_per_s, realloc.overwrite_mib_per_s / original.overwrite_mib_per_s);
    outcome.row(row("reading, realloc over original", Unit::Ratio, Published::NONE, read)).row(row(
        "overwriting, realloc over original",
        Unit::Ratio,
        Published::NONE,
        overwrite,
    ));
    let seen = format!("reading {read:.2} times as fast, overwriting {overwrite:.2} times");
    let faster = read > 1.0 && overwrite > 1.0;
    outcome.claim(Claim::new("realloc is faster on the files in use", faster, seen, Explain::Agrees));
    let series = [("original", original), ("realloc", realloc)]
        .map(|(name, hot)| Series::new(name, [(0.0, hot.read_mib_per_s), (1.0, hot.overwrite_mib_per_s)]));
    outcome.figure(Figure {
        name: "throughput".into(),
        title: "Throughput on hot files: 0 reading, 1 overwriting.".into(),
        x: Axis::Number("phase".into()),
        y: Axis::Number("MiB/s".into()),
        series: series.into(),
    });
}
