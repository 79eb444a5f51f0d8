//! Reading an unmounted ext2, ext3 or ext4 file system: superblock to directory tree, extents and free space,
//! read-only.
//!
//! The format is that of the kernel's `Documentation/filesystems/ext4` and of e2fsprogs. Read: 64bit, flex_bg, meta_bg,
//! sparse_super and sparse_super2, bigalloc, uninitialised groups, extent trees, indirect blocks, inline data, htree
//! directories (in the order that `readdir` gives: sorted by hash), and the checksums of superblock, group descriptors,
//! inodes, extent nodes, directory blocks and bitmaps.
//!
//! An image is untrusted. Every address is checked against the file system's size, which is checked against the
//! image's; every tree is read in increasing order, so that a loop is noticed; and no more mapping or directory blocks
//! are read than the file system has blocks, so that a malformed image ends in an [`Ext4Error`] that names a byte,
//! never in a panic, a hang or an allocation without bound.

mod checksum;
mod directory;
mod error;
mod features;
mod free;
mod group;
mod hash;
mod image;
mod inode;
mod map;
mod superblock;
mod survey;

pub use error::Ext4Error;
pub use image::Image;
pub use superblock::Superblock;
pub use survey::survey_image;

/// The shape of a mounted file system from its device, for what the kernel does not tell: block groups and inodes.
pub fn superblock_of(device: &std::path::Path) -> Result<Superblock, Ext4Error> {
    Superblock::read(&Image::open(device)?)
}
