//! A log-structured file system: 4.4BSD-LFS in the on-disk format of its descendant in NetBSD (version 2, 32-bit).
//!
//! What lives here: the format, what works on images of it, the live file system with its segment writer, cleaner and recovery. What
//! may not: caches and timing, which are `kernel`'s.

pub mod format;

pub use ufs::{FormatError, text};
