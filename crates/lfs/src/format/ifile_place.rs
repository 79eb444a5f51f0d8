//! Where in the ifile the usage of a segment and the entry of an inode are.

use super::{Geometry, Ino, InodeMapEntry, SegNo, SegmentUsage};

/// Where an entry is: block of the ifile and byte in it.
fn place(index: u32, per_block: u32, first_block: u32, entry_bytes: usize) -> (u64, usize) {
    let per_block = per_block.max(1);
    (u64::from(first_block) + u64::from(index / per_block), (index % per_block) as usize * entry_bytes)
}

impl Geometry {
    /// Where the usage of a segment is: block of the ifile and byte in it.
    pub fn usage_place(&self, segment: SegNo) -> (u64, usize) {
        place(segment.0, self.sepb, self.cleansz, SegmentUsage::BYTES)
    }

    /// Where the entry of an inode is: block of the ifile and byte in it.
    pub fn map_place(&self, ino: Ino) -> (u64, usize) {
        place(ino.0, self.ifpb, self.cleansz + self.segtabsz, InodeMapEntry::BYTES)
    }

    /// Whether an inode map with an entry for this inode would fit the disk.
    pub fn can_have_inode(&self, ino: Ino) -> bool {
        self.map_place(ino).0 < u64::from(self.size_frags / self.frag)
    }

    /// Inodes that an ifile of so many blocks has entries for, in use or not.
    pub fn inodes_of_ifile(&self, blocks: u64) -> u32 {
        let map_blocks = blocks.saturating_sub(u64::from(self.cleansz + self.segtabsz));
        u32::try_from(map_blocks.saturating_mul(self.ifpb.into())).unwrap_or(u32::MAX)
    }
}
