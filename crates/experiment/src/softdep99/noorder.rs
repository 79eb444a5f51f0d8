//! Synchronous metadata against none: what keeping order costs.

use super::{DRIVE, MACHINE, SIZE_BYTES, file_system, laboratory};
use crate::testbed::{AtSize, Sequential, make_files, sequential};
use crate::{
    Axis, Bench, Claim, Experiment, ExperimentError, Explain, Figure, Outcome, Published, Row, Series, Unit, parallel,
};
use posix::FileSystem as _;
use std::sync::Arc;
use units::show::size_name;
use workload::Phase;
use workload::seqfile::SIZES_BYTES;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    key: "softdep99/noorder",
    title: "Synchronous metadata (conventional FFS) against no order at all",
    source: SOURCE,
    runs: RUNS,
    run,
};

/// Where the modes were compared, and what is run for each.
pub(super) const SOURCE: &str =
    "McKusick and Ganger, Soft Updates, USENIX 1999, section 5; Ganger, McKusick, Soules and Patt, TOCS 18(2), 2000";
pub(super) const RUNS: &str = "the sequential benchmark by file size on empty file systems that differ in when \
                               metadata is written only; disk writes of each file created";

/// Of one mode, what each size gave.
pub(super) struct Mode {
    pub(super) rates: Vec<AtSize>,
    /// Disk writes of each file created, writing back included.
    pub(super) writes: Vec<f64>,
}

/// The file sizes: those of the benchmark up to 4 MiB, and three between.
pub(super) fn sizes(bench: &Bench<'_>) -> Vec<u64> {
    const K: u64 = 1 << 10;
    let full = || {
        let published = SIZES_BYTES.into_iter().filter(|size| *size <= 4096 * K);
        let mut sizes: Vec<u64> = published.chain([48 * K, 72 * K, 80 * K]).collect();
        sizes.sort_unstable();
        sizes
    };
    bench.pick_with(|| vec![8 * K, 64 * K, 96 * K, 104 * K, 1024 * K], full)
}

/// What the benchmark is run with.
pub(super) fn with(bench: &Bench<'_>) -> Sequential {
    Sequential {
        data_bytes: bench.pick(4 << 20, 32 << 20),
        files_per_directory: 50,
        piece_bytes: 4 << 20,
        until: Phase::Delete,
    }
}

fn run(bench: &mut Bench<'_>) -> Result<Outcome, ExperimentError> {
    let (sizes, with) = (sizes(bench), with(bench));
    let conventional = mode(bench, "conventional")?;
    let noorder = mode(bench, "noorder")?;
    Ok(outcome(&conventional, &noorder, &sizes, with))
}

/// What a mode gives at every size; the experiments of a run share it.
pub(super) fn mode(bench: &mut Bench<'_>, word: &str) -> Result<Arc<Mode>, ExperimentError> {
    let (sizes, with) = (sizes(bench), with(bench));
    bench.shared(&format!("softdep99 {word}"), |bench| measured(bench, word, &sizes, with))
}

fn measured(bench: &mut Bench<'_>, word: &str, sizes: &[u64], with: Sequential) -> Result<Mode, ExperimentError> {
    let volume = file_system(&format!("realloc,{word}"))?;
    let rates = sequential(bench, word, &volume, laboratory, sizes, with)?;
    let writes = parallel::each(bench, &format!("{word}: disk writes"), sizes, |size| {
        let files = (with.data_bytes / size).clamp(1, 500);
        let mut lab = laboratory(volume.clone())?;
        let before = lab.counters().device.writes;
        make_files(&mut lab, "d", files, *size, with.files_per_directory.into())?;
        lab.drop_caches().map_err(|error| ExperimentError::Io { doing: "writing back".to_owned(), error })?;
        Ok((lab.counters().device.writes - before) as f64 / files as f64)
    })?;
    Ok(Mode { rates, writes })
}

fn outcome(conventional: &Mode, noorder: &Mode, sizes: &[u64], with: Sequential) -> Outcome {
    let mut outcome = Outcome::new();
    outcome
        .parameter("machine", MACHINE)
        .parameter("drive", DRIVE)
        .parameter("file system", format!("{} MiB, empty, realloc, 8 KiB blocks", SIZE_BYTES >> 20))
        .parameter("data", format!("{} MiB of each size, 50 files a directory", with.data_bytes >> 20));
    let gain = |phase| Gain::of(conventional, noorder, sizes, phase);
    let (create, read, delete) = (gain(Phase::Create), gain(Phase::Read), gain(Phase::Delete));
    for size in [64 << 10, 104 << 10, 1024 << 10] {
        let name = size_name(size);
        let row = |what: &str, at: Option<f64>| {
            Row::new(format!("{what}, {name} files"), Unit::Ratio, Published::NONE, at.unwrap_or(0.0), Explain::Agrees)
        };
        outcome.row(row("create, No Order over conventional", create.at(size)));
        outcome.row(row("read, No Order over conventional", read.at(size)));
        outcome.row(row("delete, No Order over conventional", delete.at(size)));
    }
    let writes = |mode: &Mode, size: u64| at(sizes, &mode.writes, size).unwrap_or(0.0);
    for size in [64 << 10, 104 << 10, 1024 << 10] {
        for (name, mode) in [("conventional", conventional), ("No Order", noorder)] {
            let what = format!("disk writes for each {} file created, {name}", size_name(size));
            outcome.row(Row::new(what, Unit::Number, Published::NONE, writes(mode, size), Explain::Agrees));
        }
    }
    claims(&mut outcome, &create, &delete, sizes, [conventional, noorder]);
    figures(&mut outcome, &[("conventional", conventional), ("No Order", noorder)], sizes);
    outcome
}

fn claims(outcome: &mut Outcome, create: &Gain, delete: &Gain, sizes: &[u64], modes: [&Mode; 2]) {
    let (first, last) = (sizes.first().copied().unwrap_or(0), sizes.last().copied().unwrap_or(0));
    let least = create.ratios.iter().map(|(_, ratio)| *ratio).fold(f64::INFINITY, f64::min);
    outcome.claim(Claim::new(
        "create: No Order is faster than conventional at every size",
        least > 1.0,
        format!("at least {least:.2} times"),
        Explain::Agrees,
    ));
    let (small, large) = (create.at(first).unwrap_or(0.0), create.at(last).unwrap_or(0.0));
    outcome.claim(Claim::new(
        "create: the gap closes with file size",
        small > 2.0 * large && large < 1.25,
        format!("{small:.2} times at {}, {large:.2} at {}", size_name(first), size_name(last)),
        Explain::Agrees,
    ));
    let [conventional, noorder] = modes;
    let files = |size| found(&noorder.rates, size).map_or(0.0, |at| at.rate_without_sync(Phase::Delete));
    let (before, after) = (files(96 << 10), files(104 << 10));
    outcome.claim(Claim::new(
        "delete: No Order drops much when the first indirect block appears (96 to 104 KB)",
        after < 0.6 * before,
        format!("{before:.0} files/s at 96 KB, {after:.0} at 104 KB, the calls alone"),
        Explain::Agrees,
    ));
    let least = delete.ratios.iter().map(|(_, ratio)| *ratio).fold(f64::INFINITY, f64::min);
    outcome.claim(Claim::new(
        "delete: No Order is faster than conventional at every size",
        least > 1.0,
        format!("at least {least:.2} times"),
        Explain::Agrees,
    ));
    let several =
        at(sizes, &conventional.writes, first).unwrap_or(0.0) - at(sizes, &noorder.writes, first).unwrap_or(0.0);
    outcome.claim(Claim::new(
        "create: conventional needs several disk writes more for each small file",
        several >= 2.0,
        format!("{several:.2} more for each file of {}", size_name(first)),
        Explain::Agrees,
    ));
    let ratio = |size| Some(at(sizes, &conventional.writes, size)? / at(sizes, &noorder.writes, size)?);
    let (small, large) = (ratio(first).unwrap_or(0.0), ratio(last).unwrap_or(0.0));
    outcome.claim(Claim::new(
        "create: the gap in disk writes shrinks with file size",
        large < small && large < 1.5,
        format!("{small:.2} times as many at {}, {large:.2} at {}", size_name(first), size_name(last)),
        Explain::Agrees,
    ));
}

/// Creating, reading and deleting by file size, and disk writes, a curve for each mode.
pub(super) fn figures(outcome: &mut Outcome, modes: &[(&str, &Mode)], sizes: &[u64]) {
    let curves = |phase: Phase, unit: f64| {
        let of =
            |mode: &Mode| mode.rates.iter().map(|at| (at.size_bytes as f64, at.rate(phase) / unit)).collect::<Vec<_>>();
        modes.iter().map(|(name, mode)| Series::new(name, of(mode))).collect::<Vec<_>>()
    };
    let mib = (1 << 20) as f64;
    let mut add = |name: &str, title: &str, y: &str, series| {
        outcome.figure(Figure {
            name: name.to_owned(),
            title: title.to_owned(),
            x: Axis::Bytes("file size".to_owned()),
            y: Axis::Number(y.to_owned()),
            series,
        });
    };
    add("create", "Creating files", "MiB/s", curves(Phase::Create, mib));
    add("read", "Reading files", "MiB/s", curves(Phase::Read, mib));
    let without = |mode: &Mode| {
        mode.rates.iter().map(|at| (at.size_bytes as f64, at.rate_without_sync(Phase::Delete))).collect::<Vec<_>>()
    };
    let deletes = modes.iter().map(|(name, mode)| Series::new(name, without(mode))).collect();
    add("delete", "Deleting files, without writing back", "files/s", deletes);
    let writes =
        |mode: &Mode| sizes.iter().map(|size| *size as f64).zip(mode.writes.iter().copied()).collect::<Vec<_>>();
    let series = modes.iter().map(|(name, mode)| Series::new(name, writes(mode))).collect();
    add("writes", "Disk writes for each file created", "writes", series);
}

/// One mode over another, by size.
pub(super) struct Gain {
    pub(super) ratios: Vec<(u64, f64)>,
}

impl Gain {
    /// `mode` over `base`, writing back included.
    pub(super) fn of(base: &Mode, mode: &Mode, sizes: &[u64], phase: Phase) -> Gain {
        Gain::by(base, mode, sizes, |at| at.rate(phase))
    }

    /// `mode` over `base`, until the last call returned.
    pub(super) fn of_calls(base: &Mode, mode: &Mode, sizes: &[u64], phase: Phase) -> Gain {
        Gain::by(base, mode, sizes, |at| at.rate_without_sync(phase))
    }

    fn by(base: &Mode, mode: &Mode, sizes: &[u64], rate: impl Fn(&AtSize) -> f64) -> Gain {
        let ratio = |size: &u64| Some((*size, rate(found(&mode.rates, *size)?) / rate(found(&base.rates, *size)?)));
        Gain { ratios: sizes.iter().filter_map(ratio).collect() }
    }

    /// The lowest, with its size.
    pub(super) fn least(&self) -> (u64, f64) {
        let first = (0, f64::INFINITY);
        self.ratios.iter().fold(first, |least, at| if at.1 < least.1 { *at } else { least })
    }

    pub(super) fn at(&self, size: u64) -> Option<f64> {
        self.ratios.iter().find(|(at, _)| *at == size).map(|(_, ratio)| *ratio)
    }
}

pub(super) fn found(rates: &[AtSize], size_bytes: u64) -> Option<&AtSize> {
    rates.iter().find(|at| at.size_bytes == size_bytes)
}

pub(super) fn at(sizes: &[u64], values: &[f64], size: u64) -> Option<f64> {
    sizes.iter().zip(values).find(|(at, _)| **at == size).map(|(_, value)| *value)
}
