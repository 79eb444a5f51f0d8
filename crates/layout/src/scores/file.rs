//! One file's extents, brought to a common form and counted.
//!
//! File systems cut a contiguous piece into several records (ext4 after 32768 blocks, XFS after 2^21 - 1), and FIEMAP
//! passes the cuts on or not, depending on what is cached. So an **extent** here is a maximal piece that is contiguous
//! both in the file and on disk and of one kind (written or not, shared or not), and the records are counted apart.

use crate::scores::score::LayoutScore;
use posix::Extent;
use serde::{Deserialize, Serialize};

/// A count of extents, their bytes in the file, and the files that have any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Files with at least one.
    pub files: u64,
    /// How many.
    pub extents: u64,
    /// Their length in the files, bytes.
    pub bytes: u64,
}

impl Tally {
    fn count(&mut self, bytes: u64) {
        self.files = 1;
        self.extents += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }

    fn add(&mut self, other: Tally) {
        self.files += other.files;
        self.extents += other.extents;
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

/// Extents that are not plain written data in a place of their own. One extent may be of several kinds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kinds {
    /// Data inside the inode or a tree node: no place of its own, not in the score.
    pub inline: Tally,
    /// Compressed or encrypted: what is on disk has another length, not in the score.
    pub encoded: Tally,
    /// Shared with another file (reflink, snapshot, deduplication); in the score of each.
    pub shared: Tally,
    /// Allocated and never written (`fallocate`); in the score.
    pub unwritten: Tally,
    /// Written and not yet allocated: no place, not in the score.
    pub delayed: Tally,
    /// The file system does not say where it is; not in the score.
    pub unknown: Tally,
}

impl Kinds {
    /// Adds another file's.
    pub fn add(&mut self, other: &Kinds) {
        self.inline.add(other.inline);
        self.encoded.add(other.encoded);
        self.shared.add(other.shared);
        self.unwritten.add(other.unwritten);
        self.delayed.add(other.delayed);
        self.unknown.add(other.unknown);
    }

    fn count(&mut self, extent: &Extent) {
        let (flags, bytes) = (extent.flags, extent.len_bytes);
        let counted = [
            (flags.inline, &mut self.inline),
            (flags.encoded, &mut self.encoded),
            (flags.shared, &mut self.shared),
            (flags.unwritten, &mut self.unwritten),
            (flags.delayed, &mut self.delayed),
            (flags.unknown && !flags.delayed, &mut self.unknown),
        ];
        for (is, tally) in counted {
            if is {
                tally.count(bytes);
            }
        }
    }
}

/// What one file's extents amount to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileLayout {
    /// Records the file system reported.
    pub records: u64,
    /// Maximal contiguous pieces of one kind that have a place.
    pub extents: u64,
    /// Pieces that would be there if each run between two holes were contiguous: what the XFS factor calls ideal.
    pub runs: u64,
    /// Blocks that have a place.
    pub blocks: u64,
    /// Their layout score.
    pub score: LayoutScore,
    /// Where the first placed block is, bytes.
    pub first_bytes: Option<u64>,
    /// The end of the last placed block, bytes.
    pub end_bytes: Option<u64>,
    /// Sum of the distances from the end of each placed piece to the start of the next, bytes.
    pub jump_bytes: u64,
    /// Pieces that do not start where the one before ended.
    pub jumps: u64,
    /// Special extents.
    pub kinds: Kinds,
}

/// Whether an extent's address can be used: written data or preallocation in blocks of its own.
fn has_place(extent: &Extent) -> bool {
    let f = extent.flags;
    !(f.inline || f.encoded || f.delayed || f.unknown)
}

impl FileLayout {
    /// Counts a file's extents. They are to be in file order, as FIEMAP and an extent tree give them; `block_bytes` is
    /// the file system's block (a zero is taken as one).
    pub fn of(extents: &[Extent], block_bytes: u64) -> FileLayout {
        let block_bytes = block_bytes.max(1);
        let mut layout = FileLayout::default();
        let mut before: Option<&Extent> = None;
        for extent in extents.iter().filter(|e| e.len_bytes > 0) {
            layout.records += 1;
            layout.kinds.count(extent);
            if has_place(extent) {
                layout.place(before, extent, block_bytes);
                before = Some(extent);
            }
        }
        layout
    }

    /// The same of the blocks alone that a file system of blocks and fragments has allocated whole, without the
    /// fragments at a file's end. A last piece that takes all the fragments of a block is one of them (`ffs_balloc` of
    /// 4.4BSD): nothing told the allocator that the file would end there.
    pub fn of_whole_blocks(extents: &[Extent], size_bytes: u64, block_bytes: u64, fragment_bytes: u64) -> FileLayout {
        let (block_bytes, fragment_bytes) = (block_bytes.max(1), fragment_bytes.max(1));
        let allocated = size_bytes.div_ceil(fragment_bytes).saturating_mul(fragment_bytes);
        let end = allocated / block_bytes * block_bytes;
        let whole = |extent: &Extent| {
            let len_bytes = extent.len_bytes.min(end.saturating_sub(extent.logical_bytes));
            (len_bytes > 0).then_some(Extent { len_bytes, ..*extent })
        };
        FileLayout::of(&extents.iter().filter_map(whole).collect::<Vec<_>>(), block_bytes)
    }

    fn place(&mut self, before: Option<&Extent>, extent: &Extent, block_bytes: u64) {
        let blocks = extent.len_bytes.div_ceil(block_bytes);
        self.blocks = self.blocks.saturating_add(blocks);
        self.score.following = self.score.following.saturating_add(blocks.saturating_sub(1));
        self.score.pairs = self.score.pairs.saturating_add(blocks.saturating_sub(1));
        if let Some(before) = before {
            let end = before.physical_bytes.saturating_add(before.len_bytes);
            let follows = extent.physical_bytes == end;
            let same_run = extent.logical_bytes == before.logical_bytes.saturating_add(before.len_bytes);
            let same_kind =
                extent.flags.unwritten == before.flags.unwritten && extent.flags.shared == before.flags.shared;
            self.score.pairs = self.score.pairs.saturating_add(1);
            self.score.following = self.score.following.saturating_add(u64::from(follows));
            self.jumps += u64::from(!follows);
            self.jump_bytes = self.jump_bytes.saturating_add(extent.physical_bytes.abs_diff(end));
            self.extents += u64::from(!(follows && same_run && same_kind));
            self.runs += u64::from(!same_run);
        } else {
            self.first_bytes = Some(extent.physical_bytes);
            self.extents += 1;
            self.runs += 1;
        }
        self.end_bytes = Some(extent.physical_bytes.saturating_add(extent.len_bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use posix::ExtentFlags;

    fn extent(logical: u64, physical: u64, len: u64) -> Extent {
        Extent {
            logical_bytes: logical * 4096,
            physical_bytes: physical * 4096,
            len_bytes: len * 4096,
            flags: ExtentFlags::default(),
        }
    }

    #[test]
    fn the_definition_block_by_block() {
        // Blocks at 10 11 12 | 20 | 21: the fourth breaks the sequence, the fifth follows.
        let layout = FileLayout::of(&[extent(0, 10, 3), extent(3, 20, 1), extent(4, 21, 1)], 4096);
        assert_eq!(layout.score, LayoutScore { following: 3, pairs: 4 });
        assert_eq!((layout.records, layout.extents, layout.runs, layout.blocks), (3, 2, 1, 5));
        assert_eq!((layout.jumps, layout.jump_bytes), (1, 7 * 4096));
        assert_eq!((layout.first_bytes, layout.end_bytes), (Some(10 * 4096), Some(22 * 4096)));
    }

    #[test]
    fn short_files_have_no_score() {
        assert_eq!(FileLayout::of(&[], 4096).score.value(), None);
        assert_eq!(FileLayout::of(&[extent(0, 7, 1)], 4096).score.value(), None);
        assert_eq!(FileLayout::of(&[extent(0, 7, 2)], 4096).score.value(), Some(1.0));
    }

    /// Blocks of 8 KB in fragments of 1 KB: of a file of 17 KB two are whole, of one of 23.5 KB all three, though the
    /// third is not full.
    #[test]
    fn a_last_piece_of_all_fragments_is_a_whole_block() {
        let of = |kb: u64, tail: u64| {
            let extents = [extent(0, 10, 4), Extent { len_bytes: tail * 1024, ..extent(4, 40, 0) }];
            let layout = FileLayout::of_whole_blocks(&extents, kb * 1024 - 512, 8192, 1024);
            (layout.blocks, layout.score)
        };
        assert_eq!(of(18, 2), (2, LayoutScore { following: 1, pairs: 1 }));
        assert_eq!(of(24, 8), (3, LayoutScore { following: 1, pairs: 2 }));
        let empty = FileLayout::of_whole_blocks(&[], 0, 8192, 1024);
        assert_eq!((empty.blocks, empty.score.value()), (0, None));
    }

    #[test]
    fn a_hole_is_skipped_and_makes_a_run_of_its_own() {
        let layout = FileLayout::of(&[extent(0, 10, 1), extent(5, 11, 1), extent(9, 14, 1)], 4096);
        assert_eq!(layout.score, LayoutScore { following: 1, pairs: 2 });
        assert_eq!((layout.extents, layout.runs), (3, 3));
    }

    #[test]
    fn a_change_of_kind_makes_an_extent_but_no_break() {
        let mut unwritten = extent(2, 12, 2);
        unwritten.flags.unwritten = true;
        let layout = FileLayout::of(&[extent(0, 10, 2), unwritten], 4096);
        assert_eq!(layout.score.value(), Some(1.0));
        assert_eq!(layout.extents, 2);
        assert_eq!(layout.kinds.unwritten, Tally { files: 1, extents: 1, bytes: 8192 });
    }

    #[test]
    fn what_has_no_place_is_counted_apart() {
        let mut encoded = extent(0, 10, 32);
        encoded.flags.encoded = true;
        let mut delayed = extent(32, 0, 4);
        (delayed.flags.delayed, delayed.flags.unknown) = (true, true);
        let layout = FileLayout::of(&[encoded, delayed], 4096);
        assert_eq!((layout.blocks, layout.extents, layout.records), (0, 0, 2));
        assert_eq!(
            (layout.kinds.encoded.extents, layout.kinds.delayed.extents, layout.kinds.unknown.extents),
            (1, 1, 0)
        );
        assert_eq!(layout.first_bytes, None);
    }
}
