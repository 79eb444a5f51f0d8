//! The on-disk format: LFS version 2 with 32-bit addresses, little-endian, as NetBSD writes it.
//!
//! Each structure has a native form with `decode` and `encode` (`get` and `put` for those of an ifile block); what is
//! decoded encodes to exactly the same bytes, fields without a name included. Field names are those of NetBSD's `lfs.h`
//! without their prefixes. docs/lfs-format.md says what each means and which image it was checked against.

mod dinode;
mod geometry;
mod ifile;
mod ifile_place;
mod summary;
mod superblock;

pub use dinode::{Dinode, find_inode, inodes_of_block};
pub use geometry::{Geometry, SegNo};
pub use ifile::{
    CleanerInfo, IFILE_FLAGS, IFILE_INO, InodeMapEntry, LOST_FOUND_INO, SegmentUsage, cleaner_flags, segment_flags,
};
pub use summary::{DataSum, Finfo, Piece, SUMMARY_MAGIC, SegmentSummary, SummaryHeader, summary_flags};
pub use superblock::{LFS_MAGIC, LFS_VERSION, MAX_SUPERBLOCKS, PF_CLEAN, SB_BYTES, Superblock, SuperblockFields};
pub use ufs::directory::{
    DIRBLKSIZ, DirEntry, DirFormat, RawEntry, entry_bytes, fresh_chunk, insert, parse_chunk, remove,
};
pub use ufs::indirect::{NDADDR, NIADDR};
pub use ufs::{Disk, Endian, Field, FileType, Ino, Lbn, ROOT_INO, Time, mode};

use ufs::number;

number! {
    /// An address on disk: fragments from the beginning of the disk. 0 is none.
    FragAddr(u32)
}

impl FragAddr {
    /// Whether it is none.
    pub fn is_none(self) -> bool {
        self.0 == 0
    }

    /// The fragment `frags` further on.
    pub fn plus(self, frags: u32) -> FragAddr {
        FragAddr(self.0.saturating_add(frags))
    }
}

/// Byte order of everything.
pub const ENDIAN: Endian = Endian::Little;
/// How directories are laid out: as in FFS of 4.4BSD.
pub const DIR_FORMAT: DirFormat = DirFormat { endian: ENDIAN, old: false };
/// Byte of the first superblock; what is before it is the disk's label (`LFS_LABELPAD`).
pub const LABEL_BYTES: u32 = 8192;
/// Bytes that a superblock keeps to itself in its segment (`LFS_SBPAD`).
pub const SB_PAD_BYTES: u32 = 8192;
/// Bytes of an inode.
pub const DINODE_BYTES: u32 = 128;
/// Bytes of the pointers of an inode, where short symbolic links are kept.
pub const SYMLINK_AREA_BYTES: usize = 60;

/// The checksum of everything in LFS: exclusive or of the 16-bit words. It finds neither exchanged words nor one
/// changed twice.
pub fn cksum(bytes: &[u8]) -> u32 {
    let (words, _) = bytes.as_chunks::<2>();
    words.iter().fold(0, |sum, word| sum ^ u16::from_le_bytes(*word)).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checksum_takes_whole_words() {
        assert_eq!(cksum(&[]), 0);
        assert_eq!(cksum(&[0x34, 0x12, 0xFF, 0x00, 0x99]), 0x12CB);
        assert_eq!(cksum(&[0x34, 0x12, 0x34, 0x12]), 0);
    }
}
