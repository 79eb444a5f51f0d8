//! Smith, *Workload-Specific File System Benchmarks*, PhD thesis, Harvard, 2001. Chapter 3: two changes to the allocator of FFS,
//! studied on aged file systems. Chapter 4: predictions held against measurements (`validation`).
//!
//! What the experiments of chapter 3 share: a file system with realloc and the same with one choice changed, each empty and aged by the
//! workload of [`alloc96`](crate::alloc96), and where the files of the aged ones lie.

pub(crate) mod andrew;
mod changed;
pub(crate) mod empty_aged;
pub(crate) mod fragments;
pub(crate) mod noswitch;
mod split;
pub(crate) mod validation;

use crate::alloc96::aged::{Aged, aged};
use crate::alloc96::{file_system, laboratory};
use crate::testbed::{AtSize, Sequential, sequential_shared};
use crate::{Axis, Bench, ExperimentError, Figure, Series};
use ffs::policy::{Integrity, Options};
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

/// Ages it, and runs the sequential benchmark on both.
fn side(bench: &mut Bench<'_>, words: &str, sizes: &[u64]) -> Result<Side, ExperimentError> {
    let with = Sequential {
        data_bytes: bench.pick(4 << 20, 32 << 20),
        files_per_directory: 25,
        piece_bytes: 4 << 20,
        until: Phase::Read,
    };
    // Metadata is written late while it is aged, which does not change where anything goes.
    let aged = aged(bench, &format!("{words},noorder"))?;
    let (empty, volume) = (file_system(words)?, as_measured(&aged.volume));
    let mut on = |state: &str, volume: &Ffs| {
        sequential_shared(bench, &format!("alloc96 {words}, {state}"), volume, laboratory, sizes, with)
    };
    let (on_empty, on_aged) = (on("empty", &empty)?, on("aged", &volume)?);
    Ok(Side { aged, on_empty, on_aged })
}

/// A copy that writes metadata in order.
fn as_measured(volume: &Ffs) -> Ffs {
    volume.clone().with_choices(Options { integrity: Integrity::Conventional, ..*volume.choices() })
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
