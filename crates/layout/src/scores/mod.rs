//! What a file's extents and a list of free extents amount to: one figure per file.
//!
//! Everything here is arithmetic on extents already read: no input or output, no file system calls. Every figure's
//! definition and source is at the door of its file, and again in `docs/layout.md`.

pub mod class;
pub mod distance;
pub mod file;
pub mod free;
pub mod fsperf;
pub mod place;
pub mod score;
pub mod split;
pub mod worst;
pub mod xfs_factor;
pub mod zfs;
