//! The Fast File System: its on-disk format, and what works on images of it.
//!
//! What lives here: the format of UFS1 (4.4BSD, and 4.2BSD for reading) and UFS2 in either byte order ([`mod@format`]),
//! a reader of images ([`Image`]), [`extract()`] out of them, [`mkfs()`], [`fsck()`] with BSD's five phases, and the
//! live file system ([`Ffs`]) with its allocator ([`mod@alloc`]), policies ([`policy`]) and modes of integrity
//! (`integrity`), and file systems made again from their free maps alone ([`FreeMaps`]). What may not: the operations
//! themselves, which are [`ufs::live`]'s; caches and timing, which are `kernel`'s.
//!
//! The format is that of BSD's `fs.h`, `dinode.h` and `dir.h`; docs/ffs-format.md describes it byte by byte. Everything
//! read from an image is untrusted: no value of it can make this crate panic, loop for ever, or take memory out of
//! proportion to the image.

pub mod alloc;
mod background;
pub mod dump;
mod error;
pub mod format;
pub mod fsck;
mod image;
mod insert;
mod integrity;
pub mod log;
pub mod mkfs;
#[doc(hidden)]
pub mod planted;
pub mod policy;
pub mod present;
mod reconstruct;
mod volume;

#[doc(hidden)]
pub use background::check_planted;
pub use background::{InUse, check_in_background, check_in_use, look_at_snapshot, suits_background};
pub use device::store::{FileStore, MemoryStore, Overlay, SparseStore, Store, copy_sparse};
pub use error::FfsError;
pub use format::{
    CylinderGroup, Dinode, Endian, FileType, FragAddr, Geometry, GroupNo, Ino, Layout, Lbn, Superblock, Time, Version,
};
pub use fsck::fsck;
pub use image::{EachName, EachPiece, Image, Located, Run, Search};
pub use insert::{Inserter, edit};
pub use integrity::LogCounts;
pub use mkfs::mkfs;
#[doc(hidden)]
pub use planted::Planted;
pub use reconstruct::{FreeFigures, FreeMaps};
pub use ufs::edit::Edit;
pub use ufs::extract::{ExtractOptions, Extracted, extract};
pub use ufs::image::Entry;
pub use ufs::insert::{GoOn, InsertOptions, Inserted};
pub use ufs::{FormatError, text};
pub use volume::{DataSource, Disagreement, Ffs};
