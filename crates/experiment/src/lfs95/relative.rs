//! The free space of a file system against the same emptied: what throughput it leaves to files that are written into
//! it.

use super::laboratory;
use crate::testbed::{AtSize, Sequential, at_size};
use crate::{ExperimentError, alloc96};
use ffs::policy::Options;
use ffs::{Ffs, FreeMaps};
use kernel::Volume as _;
use layout::geometry::Groups;
use layout::scores::place::{FreePlace, by_place};
use workload::Phase;

/// Sizes of the files.
pub(super) const SIZES: [u64; 3] = [8 << 10, 64 << 10, 1 << 20];
/// What is compared.
pub(super) const PHASES: [Phase; 2] = [Phase::Create, Phase::Read];
/// Parts of a cylinder group in which free space is looked at, from its front to its back.
pub(super) const PARTS: u32 = 4;

/// A file system against itself emptied.
#[derive(Clone, Debug)]
pub(super) struct Relative {
    /// Share in use of what users may use.
    pub(super) used: f64,
    /// Of its free space, the share in pieces of a cluster or more.
    pub(super) in_clusters: f64,
    /// Its free space by place within a group.
    pub(super) places: Vec<FreePlace>,
    /// Over the same emptied: by phase, by size.
    pub(super) ratios: [[f64; SIZES.len()]; PHASES.len()],
}

impl Relative {
    pub(super) fn all(&self) -> impl Iterator<Item = f64> {
        self.ratios.iter().flatten().copied()
    }

    pub(super) fn mean(&self) -> f64 {
        self.all().sum::<f64>() / self.all().count().max(1) as f64
    }

    pub(super) fn worst(&self) -> f64 {
        self.all().fold(f64::INFINITY, f64::min)
    }

    /// Mean of both phases at one size.
    pub(super) fn of_size(&self, at: usize) -> f64 {
        self.ratios.iter().filter_map(|phase| phase.get(at)).sum::<f64>() / PHASES.len() as f64
    }

    /// Of the free space in the front and in the back part of the groups, what is in pieces of a cluster or more.
    pub(super) fn ends(&self) -> [f64; 2] {
        let share = |place: Option<&FreePlace>| place.and_then(|place| place.long_share()).unwrap_or(f64::NAN);
        [share(self.places.first()), share(self.places.last())]
    }
}

/// Measures free space against emptied file systems of the same shape, which it makes and measures once for each amount
/// of data.
pub(super) struct Measure {
    /// The allocator and what else a target's words choose.
    words: &'static str,
    /// Data of each size, at most.
    data_bytes: u64,
    seed: u64,
    emptied: Vec<(u64, Vec<AtSize>)>,
}

impl Measure {
    pub(super) fn new(words: &'static str, data_bytes: u64, seed: u64) -> Measure {
        Measure { words, data_bytes, seed, emptied: Vec::new() }
    }

    /// Of one file system. All that is measured have the same shape.
    ///
    /// # Errors
    /// As of the laboratory's.
    pub(super) fn of(&mut self, volume: &Ffs) -> Result<Relative, ExperimentError> {
        let maps = FreeMaps::of(volume)?;
        // All of it has to fit into what is free for users.
        let data_bytes = self.data_bytes.min(available_bytes(volume) / 4 * 3);
        let with = Sequential { data_bytes, files_per_directory: 25, piece_bytes: 1 << 20, until: Phase::Read };
        let policy = alloc96::policy(self.words)?;
        let aged = on(&maps, policy, with, self.seed)?;
        if !self.emptied.iter().any(|(bytes, _)| *bytes == data_bytes) {
            self.emptied.push((data_bytes, on(&maps.emptied()?, policy, with, self.seed)?));
        }
        let emptied = self.emptied.iter().find(|(bytes, _)| *bytes == data_bytes).map(|(_, found)| found);
        let ratio = |phase: Phase, at: usize| {
            let rate = |found: Option<&AtSize>| found.map_or(0.0, |found| found.rate(phase));
            rate(aged.get(at)) / rate(emptied.and_then(|found| found.get(at))).max(f64::MIN_POSITIVE)
        };
        let free = volume.space().free_frags() as f64;
        let (total, reserve) = (volume.tuning().dsize as f64, volume.tuning().reserve as f64);
        let shape = volume.shape();
        let cluster_bytes = volume.tuning().maxcontig * u64::from(shape.block_bytes);
        let (extents, groups) = (volume.free_extents(), shape.groups.map(Groups::from));
        let places = |parts| groups.as_ref().map_or_else(Vec::new, |g| by_place(&extents, g, parts, cluster_bytes));
        Ok(Relative {
            used: (total - free) / (total - reserve),
            in_clusters: places(1).first().and_then(FreePlace::long_share).unwrap_or(0.0),
            places: places(PARTS),
            ratios: PHASES.map(|phase| std::array::from_fn(|at| ratio(phase, at))),
        })
    }
}

fn on(maps: &FreeMaps, policy: Options, with: Sequential, seed: u64) -> Result<Vec<AtSize>, ExperimentError> {
    let volume = Ffs::from_free_maps(maps, policy)?;
    SIZES.iter().map(|size| at_size(&mut laboratory(volume.clone())?, *size, with, seed)).collect()
}

/// What is free for users.
pub(super) fn available_bytes(volume: &Ffs) -> u64 {
    let frags = volume.tuning().available(volume.space().free_frags());
    u64::try_from(frags).unwrap_or(0) << volume.geometry().fshift
}
