//! Pages that bring results of several rooms together, or of rooms that show nothing themselves yet.
//!
//! A room's own results are shown by its module `present`; what a document is, and how it is rendered, is in
//! [`document`]. What may not live here: anything that computes a result.

pub mod aging;
mod crash;
mod ffs;

pub use self::crash::{crash_state, crashes};
pub use self::ffs::{
    checked_beside_work, checked_in_virtual_time, ffs_checked, ffs_checked_in_background, ffs_directory, ffs_free,
    ffs_free_maps, ffs_group, ffs_groups, ffs_inode, ffs_made, ffs_superblock, reverted,
};
