//! The same sums for files of similar length: powers of two by size, and exact counts of blocks for small files.
//!
//! Exact counts matter because allocation policies act at exact counts: the second block, the cluster size, the
//! thirteenth block with its indirect block (Smith and Seltzer 1996, figure 3).

use crate::scores::file::FileLayout;
use crate::scores::score::LayoutScore;
use serde::{Deserialize, Serialize};

/// Files up to this many blocks are shown by their exact number of blocks.
pub const EXACT_BLOCKS_MAX: u64 = 32;

/// Sums over a class of files.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClassRow {
    /// The smallest and the largest file of the class: bytes in `by_size`, blocks in `by_blocks`.
    pub low: u64,
    #[allow(missing_docs)]
    pub high: u64,
    /// Files.
    pub files: u64,
    /// Sum of their lengths.
    pub bytes: u64,
    /// Files with more than one placed block: those that have a score.
    pub scored_files: u64,
    /// Placed blocks.
    pub blocks: u64,
    /// Extents.
    pub extents: u64,
    /// Files of more than one contiguous piece (a break, whether at a hole or not).
    pub broken_files: u64,
    /// Numerator and denominator of the aggregate layout score.
    pub score: LayoutScore,
    /// The aggregate layout score; `None` where nothing has one.
    pub layout_score: Option<f64>,
    /// Mean extents of a file that has any.
    pub extents_per_file: Option<f64>,
    /// Files that have a placed block.
    pub placed_files: u64,
}

impl ClassRow {
    /// Adds a file.
    pub fn add(&mut self, size_bytes: u64, layout: &FileLayout) {
        self.files += 1;
        self.bytes = self.bytes.saturating_add(size_bytes);
        self.placed_files += u64::from(layout.blocks > 0);
        self.scored_files += u64::from(layout.score.pairs > 0);
        self.blocks = self.blocks.saturating_add(layout.blocks);
        self.extents = self.extents.saturating_add(layout.extents);
        self.broken_files += u64::from(layout.jumps > 0);
        self.score.add(layout.score);
    }

    /// Fills in what follows from the sums.
    pub fn finished(mut self) -> ClassRow {
        self.layout_score = self.score.value();
        self.extents_per_file = (self.placed_files > 0).then(|| self.extents as f64 / self.placed_files as f64);
        self
    }
}

/// The rows of both tables.
#[derive(Clone, Debug)]
pub struct Classes {
    by_size: Vec<ClassRow>,
    by_blocks: Vec<ClassRow>,
}

/// 0 for an empty file, k + 1 for a size in (2^(k-1), 2^k].
fn size_class(size_bytes: u64) -> usize {
    match size_bytes {
        0 => 0,
        1 => 1,
        // At most 65: the position of the highest bit of size - 1, counted from 1, and one for the empty class.
        more => (u64::BITS - (more - 1).leading_zeros()) as usize + 1,
    }
}

fn size_bounds(class: usize) -> (u64, u64) {
    let power = |k: usize| 1u64.checked_shl(k as u32).unwrap_or(u64::MAX);
    match class {
        0 => (0, 0),
        1 => (1, 1),
        k => (power(k - 2) + 1, power(k - 1)),
    }
}

impl Default for Classes {
    fn default() -> Self {
        let by_size = (0..=65)
            .map(|class| {
                let (low, high) = size_bounds(class);
                ClassRow { low, high, ..ClassRow::default() }
            })
            .collect();
        let by_blocks = (0..=EXACT_BLOCKS_MAX).map(|n| ClassRow { low: n, high: n, ..ClassRow::default() }).collect();
        Classes { by_size, by_blocks }
    }
}

impl Classes {
    /// Adds a file to its row in each table.
    pub fn add(&mut self, size_bytes: u64, layout: &FileLayout) {
        if let Some(row) = self.by_size.get_mut(size_class(size_bytes)) {
            row.add(size_bytes, layout);
        }
        if let Some(row) = usize::try_from(layout.blocks).ok().and_then(|n| self.by_blocks.get_mut(n)) {
            row.add(size_bytes, layout);
        }
    }

    /// The rows that hold files: `(by size, by blocks)`.
    pub fn finished(self) -> (Vec<ClassRow>, Vec<ClassRow>) {
        let rows = |rows: Vec<ClassRow>| rows.into_iter().filter(|r| r.files > 0).map(ClassRow::finished).collect();
        (rows(self.by_size), rows(self.by_blocks))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_end_at_powers_of_two() {
        for (size, low, high) in [
            (0, 0, 0),
            (1, 1, 1),
            (2, 2, 2),
            (3, 3, 4),
            (4096, 2049, 4096),
            (4097, 4097, 8192),
            (u64::MAX, (1 << 63) + 1, u64::MAX),
        ] {
            assert_eq!(size_bounds(size_class(size)), (low, high), "{size}");
        }
    }

    #[test]
    fn a_file_is_in_one_row_of_each_table() {
        let mut classes = Classes::default();
        let layout =
            FileLayout { blocks: 2, extents: 2, score: LayoutScore { following: 0, pairs: 1 }, ..Default::default() };
        classes.add(8192, &layout);
        classes
            .add(8192, &FileLayout { blocks: 2, extents: 1, score: LayoutScore { following: 1, pairs: 1 }, ..layout });
        let (by_size, by_blocks) = classes.finished();
        assert_eq!((by_size.len(), by_blocks.len()), (1, 1));
        assert_eq!(by_blocks.first().map(|r| (r.low, r.files, r.layout_score)), Some((2, 2, Some(0.5))));
        assert_eq!(by_size.first().map(|r| (r.low, r.high, r.bytes)), Some((4097, 8192, 16384)));
    }
}
