//! Files whose data begin in another cylinder group than their inode (the thesis's table 3.2).

use super::{extents, group_of};
use crate::ExperimentError;
use crate::alloc96::aged::Aged;

/// Split files of a file system.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Split {
    /// Files with blocks.
    pub(super) files: u64,
    /// Of each split file, how many groups away its first block is, going round as the allocator does; sorted.
    pub(super) distances: Vec<u32>,
}

impl Split {
    pub(super) fn of(aged: &Aged) -> Result<Split, ExperimentError> {
        Split::among(aged, aged.files.iter().map(|file| file.ino))
    }

    /// Of the files modified in the last month.
    pub(super) fn of_hot(aged: &Aged) -> Result<Split, ExperimentError> {
        Split::among(aged, aged.hot_files().map(|file| file.ino))
    }

    fn among(aged: &Aged, files: impl Iterator<Item = kernel::Ino>) -> Result<Split, ExperimentError> {
        let g = aged.volume.geometry();
        let mut split = Split::default();
        for ino in files {
            let found = extents(&aged.volume, ino)?;
            let Some(first) = found.first() else { continue };
            split.files += 1;
            let (home, at) = (ino.0 / g.ipg, group_of(&aged.volume, first));
            if home != at {
                split.distances.push((at + g.ncg - home) % g.ncg);
            }
        }
        split.distances.sort_unstable();
        Ok(split)
    }

    /// How many there are.
    pub(super) fn count(&self) -> f64 {
        self.distances.len() as f64
    }

    /// The share of the files that are split.
    pub(super) fn share(&self) -> f64 {
        self.count() / self.files.max(1) as f64
    }

    /// Groups away, the mean of the split files; `None` where there are none.
    pub(super) fn mean_distance(&self) -> Option<f64> {
        let sum: u64 = self.distances.iter().map(|distance| u64::from(*distance)).sum();
        (!self.distances.is_empty()).then(|| sum as f64 / self.count())
    }

    /// The share of the split files that are more than so many groups away; `None` where there are none.
    pub(super) fn beyond(&self, groups: u32) -> Option<f64> {
        let far = self.distances.iter().filter(|distance| **distance > groups).count();
        (!self.distances.is_empty()).then(|| far as f64 / self.count())
    }

    /// How many are at most so many groups away.
    pub(super) fn within(&self, groups: u32) -> f64 {
        self.distances.iter().filter(|distance| **distance <= groups).count() as f64
    }

    /// So many times as many as another has; to none there is no ratio.
    pub(super) fn over(&self, other: &Split) -> Option<f64> {
        (!other.distances.is_empty()).then(|| self.count() / other.count())
    }
}
