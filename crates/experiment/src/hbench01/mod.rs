//! Smith, *Workload-Specific File System Benchmarks*, PhD thesis, Harvard, 2001. Chapter 3: two changes to the
//! allocator of FFS, studied on aged file systems. Chapter 4: predictions held against measurements (`validation`).
//!
//! What the experiments of chapter 3 share: the set-up, a file system with realloc and the same with one choice
//! changed, each empty and aged, and where the files of the aged ones lie.

pub(crate) mod andrew;
mod changed;
pub(crate) mod empty_aged;
pub(crate) mod fragments;
pub(crate) mod noswitch;
mod split;
mod thesis;
pub(crate) mod validation;

use crate::alloc96::aged::{Aged, aged_of};
use crate::testbed::{AtSize, Sequential, sequential_shared};
use crate::{Axis, Bench, ExperimentError, Figure, Outcome, Series, Study};
use ffs::{Ffs, FragAddr};
use kernel::Volume as _;
use posix::Extent;
use std::sync::Arc;
use workload::Phase;

/// A file system with some choice of policies, empty and aged.
struct Side {
    aged: Arc<Aged>,
    on_empty: Vec<AtSize>,
    on_aged: Vec<AtSize>,
}

/// How the sequential benchmark is run.
fn sequential(bench: &Bench<'_>) -> Sequential {
    Sequential {
        data_bytes: bench.pick(4 << 20, 32 << 20),
        files_per_directory: 25,
        piece_bytes: 4 << 20,
        until: Phase::Read,
    }
}

/// Ages the file system of a study, and runs the sequential benchmark on it and on an empty one.
fn side(bench: &mut Bench<'_>, study: Study, words: &str, sizes: &[u64]) -> Result<Side, ExperimentError> {
    // Metadata is written late while it is aged, which does not change where anything goes.
    let aged = aged_of(bench, study, &format!("{words},noorder"))?;
    let (empty, volume) = (study.as_measured(&study.file_system(words)?), study.as_measured(&aged.volume));
    let with = sequential(bench);
    let mut on = |state: &str, volume: &Ffs| {
        let name = format!("{} {words}, {state}, {:?}", study.name, study.late);
        sequential_shared(bench, &name, volume, |volume| study.laboratory(volume), sizes, with)
    };
    let (on_empty, on_aged) = (on("empty", &empty)?, on("aged", &volume)?);
    Ok(Side { aged, on_empty, on_aged })
}

/// What an experiment says of its set-up.
fn describe(outcome: &mut Outcome, bench: &Bench<'_>, aged: &Aged) {
    let Study { machine, drive, days, .. } = aged.study;
    let used = aged.use_by_day.last().copied().unwrap_or(0.0);
    outcome
        .parameter("file system", thesis::DESCRIBED)
        .parameter("machine", machine)
        .parameter("drive", drive)
        .parameter(
            "workload",
            format!("{} of the first {days} days of fsage plan alloc96, in proportion to the size", aged.days),
        )
        .parameter("in use at the end", format!("{:.0} % of what users may use", used * 100.0))
        .parameter("data", format!("{} MiB of each size, 25 files a directory", bench.pick(4, 32)));
}

fn rate(found: &[AtSize], size_bytes: u64, phase: Phase) -> Option<f64> {
    found.iter().find(|at| at.size_bytes == size_bytes).map(|at| at.rate(phase)).filter(|rate| *rate > 0.0)
}

/// The other's rate over the first one's at one size.
fn gain(first: &[AtSize], other: &[AtSize], size_bytes: u64, phase: Phase) -> Option<f64> {
    Some(rate(other, size_bytes, phase)? / rate(first, size_bytes, phase)?)
}

/// Rates of each side, empty and aged, in MiB/s.
fn rates_figure<const N: usize>(name: &str, title: &str, phase: Phase, sides: [(&str, &Side); N]) -> Figure {
    let curve = |found: &[AtSize]| {
        found.iter().map(|at| (at.size_bytes as f64, at.rate(phase) / f64::from(1 << 20))).collect::<Vec<_>>()
    };
    let series = sides.iter().flat_map(|(name, side)| {
        [Series::in_panel("empty", name, curve(&side.on_empty)), Series::in_panel("aged", name, curve(&side.on_aged))]
    });
    Figure {
        name: name.to_owned(),
        title: title.to_owned(),
        x: Axis::Bytes("file size".to_owned()),
        y: Axis::Number("MiB/s".to_owned()),
        series: series.collect(),
    }
}

/// The extents of a file.
fn extents(volume: &Ffs, ino: kernel::Ino) -> Result<Vec<Extent>, ExperimentError> {
    let failed = |errno| ExperimentError::Call { doing: "looking at a file's blocks".to_owned(), errno };
    volume.extents(ino).map_err(failed)
}

/// The cylinder group of a place on the disk.
fn group_of(volume: &Ffs, extent: &Extent) -> u32 {
    let g = volume.geometry();
    g.group_of(FragAddr(extent.physical_bytes >> g.fshift)).0
}
