//! The on-disk format: structures as bytes and as native values.
//!
//! Each structure has a native form with `decode` and `encode`; what is decoded encodes to exactly the same bytes,
//! fields without a name included. Field names are those of BSD's headers without their prefixes.

mod bitmap;
mod dinode;
mod geometry;
mod group;
mod group_offsets;
mod superblock;
mod types;
mod version;

pub use bitmap::Bitmap;
pub use dinode::{Dinode, SF_SNAPSHOT, symlink_area_bytes};
pub use geometry::Geometry;
pub(crate) use group::group_cylinders;
pub use group::{CG_MAGIC, CylinderGroup, GroupFormat, GroupHeader};
pub use group_offsets::GroupOffsets;
pub(crate) use superblock::LOG_AT;
pub use superblock::{
    Csum, CsumTotal, LogPlace, SB_SIZE_MAX, Superblock, SuperblockFields, UFS1_MAGIC, UFS2_MAGIC, flags, old_flags,
};
pub use types::{FragAddr, GroupNo};
pub(crate) use ufs::Disk;
pub(crate) use ufs::directory::name_problem;
pub use ufs::directory::{
    DIRBLKSIZ, DirEntry, DirFormat, RawEntry, entry_bytes, fresh_chunk, insert, parse_chunk, remove,
};
pub use ufs::indirect::{NDADDR, NIADDR};
pub(crate) use ufs::on_disk;
pub use ufs::{Endian, Field, FileType, Ino, Lbn, ROOT_INO, Time, mode};
pub use version::{Layout, Version};

/// CRC-32C as BSD's check hashes use it: started from all ones, not inverted at the end.
pub(crate) fn check_hash(bytes: &[u8]) -> u32 {
    !crc32c::crc32c(bytes)
}

/// Check hashes that a file system keeps (`fs_metackhash`).
pub mod check_hashes {
    /// Of the superblock.
    pub const SUPERBLOCK: u32 = 1;
    /// Of cylinder groups.
    pub const GROUP: u32 = 2;
    /// Of inodes.
    pub const INODE: u32 = 4;
}
