//! Bugs on purpose: rules of recovery and of the order of writes that can be broken, one at a time or several together.
//!
//! A test plants them and must find them; no option, no target and no command reaches this.

/// A rule that is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// Blocks of a partial segment are not held against its checksum, nor looked at: a write that was torn counts.
    TornCounts,
    /// A run of directory operations without its end counts.
    UnfinishedCounts,
    /// What is behind the checkpoint does not count.
    NoRollForward,
    /// Recovery writes into a segment that is empty by the checkpoint it starts from, whatever the other one leads
    /// into.
    EmptyByOne,
    /// Recovery takes a segment for clean because the log names it as next, though a checkpoint leads into it.
    NextIsClean,
    /// An inode without links in the log does not free the file.
    GoneStays,
    /// A summary does not wait for its blocks to be on the medium.
    SummaryFirst,
    /// A superblock does not wait for what it points to.
    SuperblockFirst,
    /// fsync does not wait for the log.
    FsyncReturnsEarly,
    /// The cleaner: a segment is clean as soon as one superblock knows it as empty.
    CleanAfterOne,
    /// The cleaner: a segment is discarded without waiting for the superblock that made it clean.
    DiscardFirst,
    /// Plugging holes: there is no checkpoint before it, so that the disk may still lead to what is a hole in memory.
    PlugWithoutCheckpoint,
    /// Plugging holes: the checkpoint behind it does not wait for what has gone into holes.
    CheckpointBeforeHoles,
}

/// Those that are planted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Planted(u32);

impl Planted {
    /// No bug.
    pub const NONE: Planted = Planted(0);

    /// Some of them.
    pub fn all(bugs: &[Bug]) -> Planted {
        Planted(bugs.iter().fold(0, |set, bug| set | 1 << *bug as u32))
    }

    /// Whether this one is among them.
    #[inline]
    pub(crate) fn has(self, bug: Bug) -> bool {
        self.0 & 1 << bug as u32 != 0
    }
}
