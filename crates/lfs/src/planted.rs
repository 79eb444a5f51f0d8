//! Bugs on purpose: rules of recovery and of the order of writes that can be broken one at a time.
//!
//! A test plants one and must find it; no option, no target and no command reaches this.

/// A rule that is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// Blocks of a partial segment are not held against its checksum, nor looked at: a write that was torn counts.
    TornCounts,
    /// A run of directory operations without its end counts.
    UnfinishedCounts,
    /// What is behind the checkpoint does not count.
    NoRollForward,
    /// An inode without links in the log does not free the file.
    GoneStays,
    /// A summary does not wait for its blocks to be on the medium.
    SummaryFirst,
    /// A superblock does not wait for what it points to.
    SuperblockFirst,
    /// fsync does not wait for the log.
    FsyncReturnsEarly,
}

/// The one that is planted, if any.
pub type Planted = Option<Bug>;
