//! `alloc96/hot-files`: the files modified in the last month of the aging, read and overwritten.

use super::aged::{Aged, aged};
use super::by_size::{BySize, Counted};
use super::replay::failed;
use super::{DRIVE, MACHINE, POLICIES, describe};
use crate::{Axis, Bench, Claim, Experiment, ExperimentError, Explain, Figure, Outcome, Published, Row, Series, Unit};
use ffs::Ffs;
use kernel::Lab;
use posix::{Call, FileSystem, Mode, OpenFlags};
use workload::hotfiles::{Options, Select};
use workload::{AGED_MARKER, Phase, Repeat};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    key: "alloc96/hot-files",
    title: "Reading and overwriting the files of the last month",
    source: "Smith and Seltzer, A Comparison of FFS Disk Allocation Policies, USENIX 1996, section 5.2, table 2 and \
        figure 6",
    runs: "Reads the files modified in the last 30 days, directory by directory, and overwrites them, on the two aged \
           file systems; looks at their layout by size.",
    run,
};

/// What came of one file system.
pub(crate) struct Hot {
    files: u64,
    bytes: u64,
    /// The layout of all files, and of the hot ones by size.
    all_score: f64,
    by_size: BySize,
    whole: BySize,
    /// MiB a second, reading.
    pub(crate) read_mib_per_s: f64,
    /// MiB a second, writing over them.
    pub(crate) overwrite_mib_per_s: f64,
}

impl Hot {
    /// Layout score of the files together.
    pub(crate) fn score(&self) -> f64 {
        self.by_size.aggregate()
    }
}

/// What table 2 has of one file system.
struct Table2 {
    score: f64,
    read_mib_per_s: f64,
    overwrite_mib_per_s: f64,
}

/// Table 2: the original allocator, realloc. Megabytes a second.
const TABLE_2: [Table2; 2] = [
    Table2 { score: 0.80, read_mib_per_s: 1.65, overwrite_mib_per_s: 1.04 },
    Table2 { score: 0.96, read_mib_per_s: 2.18, overwrite_mib_per_s: 1.25 },
];

/// Reading gained 32 %, overwriting 20 %.
const TABLE_2_GAINS: [f64; 2] = [1.32, 1.20];

/// The aggregate layout score of the hot files.
///
/// # Errors
/// A file's blocks cannot be looked at.
pub(super) fn score(aged: &Aged) -> Result<f64, ExperimentError> {
    Ok(BySize::of_files(&aged.volume, aged.hot_files(), Counted::All)?.aggregate())
}

/// Reads the hot files in a partition that begins at a sector, and overwrites them if asked to: MiB a second of each.
///
/// # Errors
/// The benchmark's.
pub(super) fn rates(aged: &Aged, first_sector: u64, overwrite: bool, seed: u64) -> Result<[f64; 2], ExperimentError> {
    rates_in(aged.laboratory_at(first_sector)?, overwrite, seed)
}

/// The same in a laboratory with an aged file system.
///
/// # Errors
/// The benchmark's.
pub(super) fn rates_in(mut lab: Lab<Ffs>, overwrite: bool, seed: u64) -> Result<[f64; 2], ExperimentError> {
    mark(&mut lab)?;
    let repeat = Repeat { seed, ..Repeat::once() };
    let options = Options { select: Select::NewerDays(30.0), overwrite, repeat, ..Options::default() };
    let result = workload::run_on(&mut lab, &options, &mut |_| {})?;
    Ok([Phase::Read, Phase::Overwrite].map(|phase| {
        let phases = || result.targets.iter().flat_map(|t| &t.points).flat_map(|p| &p.phases);
        phases().find(|p| p.phase == phase).map_or(f64::NAN, |p| p.rate.median / 1048576.0)
    }))
}

fn run(bench: &mut Bench<'_>) -> Result<Outcome, ExperimentError> {
    let mut outcome = Outcome::new();
    let (mut found, mut gathered) = (Vec::new(), Vec::new());
    for (name, words) in POLICIES {
        let aged = aged(bench, words)?;
        if found.is_empty() {
            describe(&mut outcome, aged.days);
        }
        bench.report(&format!("hot files, {name}"), 0, None);
        found.push(measure(bench, &aged)?);
        gathered.push(rates_in(aged.laboratory_gathering()?, true, bench.seed())?[1]);
    }
    outcome.parameter("drive", DRIVE).parameter("machine", MACHINE).parameter("writes", super::WRITES);
    if let [original, realloc] = found.as_slice() {
        rows(&mut outcome, [original, realloc]);
        for ((name, _), ours) in POLICIES.iter().zip(gathered) {
            let what = format!("late blocks gathered: overwriting, {name}");
            outcome.row(Row::new(what, Unit::MibPerS, Published::NONE, ours, Explain::Agrees));
        }
        figures(&mut outcome, original, realloc);
    }
    Ok(outcome)
}

/// Looks at the hot files of an aged file system, reads them and writes over them.
pub(crate) fn measure(bench: &Bench<'_>, aged: &Aged) -> Result<Hot, ExperimentError> {
    let [read_mib_per_s, overwrite_mib_per_s] = rates(aged, 0, true, bench.seed())?;
    Ok(Hot {
        files: aged.hot_files().count() as u64,
        bytes: aged.hot_files().map(|file| file.size_bytes).sum(),
        all_score: aged.score(aged.days),
        by_size: BySize::of_files(&aged.volume, aged.hot_files(), Counted::All)?,
        whole: BySize::of_files(&aged.volume, aged.hot_files(), Counted::Whole)?,
        read_mib_per_s,
        overwrite_mib_per_s,
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

fn rows(outcome: &mut Outcome, found: [&Hot; 2]) {
    let row = |what: &str, unit, published, ours| Row::new(what, unit, published, ours, Explain::unknown());
    let [original, realloc] = found;
    outcome.row(row("files", Unit::Count, Published::exact(929.0), original.files as f64)).row(row(
        "their bytes",
        Unit::Bytes,
        Published::exact(59.5 * 1048576.0),
        original.bytes as f64,
    ));
    for (((name, _), table), hot) in POLICIES.iter().zip(&TABLE_2).zip(found) {
        let speed = |what: &str, published, ours| {
            row(&format!("{what}, {name}"), Unit::MibPerS, Published::exact(published), ours)
        };
        let score = hot.by_size.aggregate();
        outcome
            .row(row(&format!("layout score, {name}"), Unit::Score, Published::exact(table.score), score))
            .row(speed("reading", table.read_mib_per_s, hot.read_mib_per_s))
            .row(speed("overwriting", table.overwrite_mib_per_s, hot.overwrite_mib_per_s));
    }
    let (read, overwrite) =
        (realloc.read_mib_per_s / original.read_mib_per_s, realloc.overwrite_mib_per_s / original.overwrite_mib_per_s);
    for ((what, gain), published) in [("reading", read), ("overwriting", overwrite)].into_iter().zip(TABLE_2_GAINS) {
        let what = format!("{what}, realloc over original");
        outcome.row(row(&what, Unit::Ratio, Published::exact(published), gain));
    }
    let seen = format!("reading {read:.2} times as fast, overwriting {overwrite:.2} times");
    let faster = read > 1.0 && overwrite > 1.0;
    outcome.claim(Claim::new("realloc is faster on the files in use", faster, seen, Explain::unknown()));
    for ((name, _), hot) in POLICIES.iter().zip(found) {
        let (score, all) = (hot.by_size.aggregate(), hot.all_score);
        outcome.claim(Claim::new(
            format!("hot files are laid out better than all files are, {name}"),
            score > all,
            format!("{score:.3} against {all:.3}"),
            Explain::because(
                "which files go when use falls is not known and at random here; alloc96/sensitivity changes that, and \
                 nothing else",
            ),
        ));
    }
}

fn figures(outcome: &mut Outcome, original: &Hot, realloc: &Hot) {
    let pair = |panel: &'static str, of: fn(&Hot) -> &BySize| {
        [("original", original), ("realloc", realloc)]
            .map(|(name, hot)| Series::in_panel(panel, name, of(hot).points()))
    };
    let [whole, all] =
        [pair("blocks allocated whole", |h| &h.whole), pair("fragments counted as a block", |h| &h.by_size)];
    outcome.figure(Figure {
        name: "layout".into(),
        title: "Aggregate layout score of the hot files of each size.".into(),
        x: Axis::Bytes("file size".into()),
        y: Axis::Score("layout score".into()),
        series: whole.into_iter().chain(all).collect(),
    });
    let rates = |of: &dyn Fn(usize) -> f64| [(1.0, of(0)), (2.0, of(1))];
    let ours = [original, realloc];
    outcome.figure(Figure {
        name: "throughput".into(),
        title: "Throughput on hot files, MiB/s: 1 original, 2 realloc.".into(),
        x: Axis::Number("allocator".into()),
        y: Axis::Number("MiB/s".into()),
        series: vec![
            Series::in_panel("reading", "ours", rates(&|at| ours[at].read_mib_per_s)),
            Series::in_panel("overwriting", "ours", rates(&|at| ours[at].overwrite_mib_per_s)),
            Series::published("reading", "published", rates(&|at| TABLE_2[at].read_mib_per_s)),
            Series::published("overwriting", "published", rates(&|at| TABLE_2[at].overwrite_mib_per_s)),
        ],
    });
}
