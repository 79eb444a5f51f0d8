//! What is in the ifile (inode 1): cleaner information, the segment usage table, the inode map.
//!
//! Its first `cleansz` blocks are [`CleanerInfo`] (one record at the beginning), the next `segtabsz` blocks
//! [`SegmentUsage`], `sepb` to a block, and the rest [`InodeMapEntry`], `ifpb` to a block. No entry crosses from a
//! block into the next.

use super::Ino;
use ufs::on_disk;

/// The ifile's inode.
pub const IFILE_INO: Ino = Ino(1);
/// The inode that newfs has for lost+found where it makes one.
pub const LOST_FOUND_INO: Ino = Ino(3);
/// Flags of the ifile's inode (`SF_IMMUTABLE`).
pub const IFILE_FLAGS: u32 = 0x0002_0000;

/// Bits of [`CleanerInfo::flags`].
pub mod cleaner_flags {
    /// The kernel has run out of clean segments.
    pub const MUST_CLEAN: u32 = 1;
}

on_disk! {
    /// What the kernel tells the cleaner (`CLEANERINFO`): the beginning of the ifile.
    pub struct CleanerInfo {
        /// Clean segments: as `nclean` of the superblock.
        0 clean: u32,
        /// The others.
        4 dirty: u32,
        /// Free fragments, as of the moment when this block was gathered for writing.
        8 bfree: i32,
        /// Fragments that can be written before cleaning must be done, likewise.
        12 avail: i32,
        /// First inode of the list of free ones; counts more than the superblock's `freehd`.
        16 free_head: u32,
        /// Last of it: freed inodes are put behind it.
        20 free_tail: u32,
        /// See [`cleaner_flags`]. Not there in older versions, which leave it 0.
        24 flags: u32,
    }
}

impl CleanerInfo {
    /// Bytes of it.
    pub const BYTES: usize = 28;
}

/// Bits of [`SegmentUsage::flags`].
pub mod segment_flags {
    /// Being written, or written since the last checkpoint: not to be cleaned.
    pub const ACTIVE: u32 = 1;
    /// Has something in it; a segment without this is clean and may be written.
    pub const DIRTY: u32 = 2;
    /// Begins with a copy of the superblock.
    pub const SUPERBLOCK: u32 = 4;
    /// Cannot be cleaned: reading it failed.
    pub const ERROR: u32 = 8;
    /// Holds no live byte: set and cleared whenever an entry is written, by its `nbytes`.
    pub const EMPTY: u32 = 0x10;
    /// Not to be used (lies where the file system has been shrunk away).
    pub const INVALID: u32 = 0x20;
}

on_disk! {
    /// How much of a segment is live (`SEGUSE`).
    pub struct SegmentUsage {
        /// Live bytes: each block counted as it lies on disk (whole fragments), each live inode as 128. Summaries,
        /// inodes that are no longer current and the superblock's room do not count.
        0 nbytes: u32,
        /// Version 1: last modified, seconds.
        4 olastmod: u32,
        /// Partial segments written to it since it was clean.
        8 nsums: u16,
        /// Inode blocks written to it since it was clean.
        10 ninos: u16,
        /// See [`segment_flags`].
        12 flags: u32,
        /// When it was last written, seconds.
        16 lastmod: u64,
    }
}

impl SegmentUsage {
    /// Bytes of it.
    pub const BYTES: usize = 24;

    /// Whether a flag is set.
    pub fn is(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }

    /// Whether it may be written from its beginning.
    pub fn is_clean(&self) -> bool {
        !self.is(segment_flags::DIRTY)
    }
}

on_disk! {
    /// Where an inode is (`IFILE`).
    pub struct InodeMapEntry {
        /// Counts up each time the inode is freed; equal to `generation` of the inode and to `version` of its file's
        /// FINFOs.
        0 version: u32,
        /// Fragment of the inode block that has it; 0 if it is not in use. The ifile's own entry is stale: its inode is
        /// at `idaddr` of the superblock.
        4 daddr: u32,
        /// Of a free inode: the next in the list, 0 for the last. Of one in use: nothing (what it was before).
        8 nextfree: u32,
        /// Last read, seconds; the inode's own time of reading may be older.
        12 atime_sec: u32,
        /// And nanoseconds.
        16 atime_nsec: u32,
    }
}

impl InodeMapEntry {
    /// Bytes of it.
    pub const BYTES: usize = 20;

    /// `nextfree` of an inode that has no name any more but is held open: to be freed at the next mount.
    pub const ORPHAN: u32 = u32::MAX;
}
