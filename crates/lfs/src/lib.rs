//! A log-structured file system: 4.4BSD-LFS in the on-disk format of its descendant in NetBSD (version 2, 32-bit).
//!
//! What lives here: the format, what works on images of it, the live file system with its segment writer, cleaner and
//! recovery. What may not: the operations on names and lengths, which are [`ufs::live`]'s; caches and timing, which are
//! `kernel`'s.

mod blocks;
mod checkpoint;
mod clean;
mod cleaner;
pub mod dump;
mod error;
pub mod format;
pub mod fsck;
mod ifile;
mod ifile_state;
mod image;
mod insert;
pub mod mkfs;
#[doc(hidden)]
pub mod planted;
pub mod policy;
pub mod present;
pub mod recover;
mod segment;
mod volume;

pub use blocks::{Block, EachBlock, EachPiece, file_blocks, file_data};
pub use clean::{Cleaned, clean};
pub use cleaner::CleanerCounters;
pub use device::store::{FileStore, MemoryStore, Overlay, Store};
pub use error::LfsError;
pub use fsck::fsck;
pub use ifile::Ifile;
pub use image::{Checkpoint, EachName, Image, Located, inode_at, is_lfs, locate, superblock_at};
pub use insert::{Inserter, edit};
pub use mkfs::mkfs;
#[doc(hidden)]
pub use planted::Planted;
pub use policy::Options;
pub use recover::RolledForward;
pub use ufs::edit::Edit;
pub use ufs::extract::{ExtractOptions, Extracted, extract};
pub use ufs::image::Entry;
pub use ufs::insert::{GoOn, InsertOptions, Inserted};
pub use ufs::{FormatError, text};
pub use volume::{Counters, Disagreement, Lfs};
