//! Distances between things read one after the other: between files of a directory, and along a scan of the whole tree.
//!
//! * **Inter-file locality**: for each file with placed data and the file before it in its directory, in the order
//!   `readdir` gives, how far the start of its data is from the end of the other's.
//! * **Tree scan**: what a head would travel if a program read every file whole, depth first, entering a
//!   subdirectory where `readdir` names it (as `grep -r` or `tar` do): the jumps inside files and those between them.
//!   Reads of inodes, directories and indirect blocks are not in it: where they are cached is not known.

use serde::{Deserialize, Serialize};

/// Counts of distances by powers of two: bucket 0 holds zero, bucket k distances in [2^(k-1), 2^k).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Distances {
    /// How many were added.
    pub count: u64,
    /// Their sum, bytes.
    pub sum_bytes: u64,
    /// The largest, bytes.
    pub max_bytes: u64,
    /// Those that go towards higher addresses.
    pub forward: u64,
    /// Buckets, without the empty ones above the largest distance.
    pub buckets: Vec<u64>,
}

impl Default for Distances {
    fn default() -> Self {
        Distances { count: 0, sum_bytes: 0, max_bytes: 0, forward: 0, buckets: vec![0] }
    }
}

impl Distances {
    /// Adds the way from one address to another.
    pub fn add(&mut self, from_bytes: u64, to_bytes: u64) {
        self.add_length(from_bytes.abs_diff(to_bytes));
        self.forward += u64::from(to_bytes > from_bytes);
    }

    fn add_length(&mut self, distance: u64) {
        // At most 64.
        let bucket = (u64::BITS - distance.leading_zeros()) as usize;
        if self.buckets.len() <= bucket {
            self.buckets.resize(bucket + 1, 0);
        }
        if let Some(n) = self.buckets.get_mut(bucket) {
            *n += 1;
        }
        self.count += 1;
        self.sum_bytes = self.sum_bytes.saturating_add(distance);
        self.max_bytes = self.max_bytes.max(distance);
    }

    /// The mean; `None` of nothing.
    pub fn mean_bytes(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum_bytes as f64 / self.count as f64)
    }

    /// The share that is zero: the next file starts where the last one ended.
    pub fn adjacent_share(&self) -> Option<f64> {
        self.share_below(1)
    }

    /// The share of distances below a power of two; `None` of nothing.
    pub fn share_below(&self, power_of_two_bytes: u64) -> Option<f64> {
        let buckets = power_of_two_bytes.max(1).trailing_zeros() as usize + 1;
        let below: u64 = self.buckets.iter().take(buckets).sum();
        (self.count > 0).then(|| below as f64 / self.count as f64)
    }
}

/// The travel of a tree scan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeScan {
    /// Files with placed data.
    pub files: u64,
    /// Pieces read one after the other that did not start where the one before ended.
    pub seeks: u64,
    /// Of these, seeks inside a file.
    pub seeks_inside_files: u64,
    /// Sum of all distances, bytes.
    pub distance_bytes: u64,
    /// Of this, the distance inside files.
    pub distance_inside_files_bytes: u64,
    /// Bytes read.
    pub read_bytes: u64,
}

impl TreeScan {
    /// Seeks for each MiB read.
    pub fn seeks_per_mib(&self) -> Option<f64> {
        (self.read_bytes > 0).then(|| self.seeks as f64 / (self.read_bytes as f64 / f64::from(1 << 20)))
    }

    /// Mean distance of a seek, bytes.
    pub fn mean_seek_bytes(&self) -> Option<f64> {
        (self.seeks > 0).then(|| self.distance_bytes as f64 / self.seeks as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_end_at_powers_of_two() {
        let mut d = Distances::default();
        for to in [100, 101, 103, 104, 99] {
            d.add(100, to);
        }
        // Distances 0, 1, 3, 4, 1.
        assert_eq!(d.buckets, [1, 2, 1, 1]);
        assert_eq!((d.count, d.sum_bytes, d.max_bytes, d.forward), (5, 9, 4, 3));
        assert_eq!(d.adjacent_share(), Some(0.2));
        assert_eq!(d.share_below(2), Some(0.6));
        assert_eq!(d.share_below(4), Some(0.8));
        assert_eq!(Distances::default().share_below(4), None);
        d.add(0, u64::MAX);
        assert_eq!(d.buckets.len(), 65);
    }
}
