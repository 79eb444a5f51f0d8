//! The layout score (Smith and Seltzer 1996, *A Comparison of FFS Disk Allocation Policies*; 1997, *File System
//! Aging*).
//!
//! For a file of n > 1 blocks: the number of its blocks from the second on that directly follow their predecessor on
//! disk, divided by n - 1. A file of one block or none has no score. The aggregate over files is the sum of the
//! numerators over the sum of the denominators: weighted by block, not a mean of scores.
//!
//! Blocks are those that have a place on disk, in file order: a hole is skipped, so that the block after it is compared
//! with the last one before it. Preallocated (unwritten) blocks count: the allocator placed them.

use serde::{Deserialize, Serialize};

/// Numerator and denominator, of one file or summed over many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayoutScore {
    /// Blocks that directly follow their predecessor.
    pub following: u64,
    /// Blocks that have a predecessor: n - 1 a file.
    pub pairs: u64,
}

impl LayoutScore {
    /// The score, 0 to 1; `None` where no block has a predecessor.
    pub fn value(self) -> Option<f64> {
        (self.pairs > 0).then(|| self.following as f64 / self.pairs as f64)
    }

    /// Blocks not placed directly after their predecessor.
    pub fn breaks(self) -> u64 {
        self.pairs.saturating_sub(self.following)
    }

    /// Adds another file's blocks to the aggregate.
    pub fn add(&mut self, other: LayoutScore) {
        self.following = self.following.saturating_add(other.following);
        self.pairs = self.pairs.saturating_add(other.pairs);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_aggregate_is_weighted_by_block() {
        let mut sum = LayoutScore::default();
        assert_eq!(sum.value(), None);
        sum.add(LayoutScore { following: 1, pairs: 1 });
        sum.add(LayoutScore { following: 0, pairs: 3 });
        // A mean of scores would be 0.5.
        assert_eq!(sum.value(), Some(0.25));
        assert_eq!(sum.breaks(), 3);
    }
}
