//! The live file system as far as FFS and LFS are one (`sys/ufs/ufs`): names, directories, truncation, attributes.
//!
//! Each operation is written once, in the order of 4.4BSD's steps, generic over a [`Backing`]: what a file system is
//! besides. Where things are allocated, how data is written, and when a change reaches the disk are the backing's.
//! [`volume_operations!`](crate::volume_operations) puts the operations into an implementation of [`kernel::Volume`].

mod backing;
pub mod check;
mod files;
mod freed;
mod node;
pub mod operations;
pub mod truncate;

mod names;

pub use backing::{Backing, Change, Name, NewInode};
pub use files::{Files, copy, kind_of, push_free};
pub use freed::{CutIndirects, Freed};
pub use node::{Body, Node, Piece, Sizes, Target};

use crate::Time;

/// A date, nanoseconds since 1970, as an inode has it.
pub fn time_of(date_ns: i64) -> Time {
    Time { s: date_ns.div_euclid(1_000_000_000), ns: date_ns.rem_euclid(1_000_000_000) as i32 }
}

/// The reverse.
pub fn date_of(time: Time) -> i64 {
    time.s.saturating_mul(1_000_000_000).saturating_add(time.ns.into())
}
