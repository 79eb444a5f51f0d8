//! Bugs on purpose: ordering rules of conventional updates and of journaling, and phases of fsck, that can be broken
//! one at a time.
//!
//! A test plants one and must find it; no option, no target and no command reaches this.

/// A rule that is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// A new inode is not on the disk before its name.
    InodeAfterName,
    /// A removed name is not off the disk before its inode is freed.
    NameOutlivesInode,
    /// A file's blocks are free for others before the inode is on the disk without them.
    FreeBeforeInode,
    /// A moved fragment's old place is used again before the pointer to the new one is on the disk.
    ReuseBeforePointer,
    /// A pointer that has been written is taken for one that the disk does not have.
    PointersStayFresh,
    /// A rename removes the old name before the new one is there.
    OldNameFirst,
    /// A directory that has grown is not on the disk with its new length.
    DirectoryLengthLate,
    /// Soft Updates: a new inode or pointer does not wait for the map that has it as used.
    SoftMapLate,
    /// Soft Updates: a pointer does not wait for the data.
    SoftDataLate,
    /// Soft Updates: a file's length does not wait for its last blocks.
    SoftLengthEarly,
    /// Soft Updates: a fragment's old place is free before the pointer to the new one is on the disk.
    SoftFragmentEarly,
    /// Soft Updates: blocks are free before the inode is on the disk without them.
    SoftFreeEarly,
    /// Soft Updates: an inode's number is free before the inode is cleared on the disk.
    SoftNumberEarly,
    /// Soft Updates: a file is cut and freed before its last name is gone from the disk.
    SoftReleaseEarly,
    /// Soft Updates: a name does not wait for its inode.
    SoftNameEarly,
    /// Soft Updates: a directory is longer on the disk before there is a chunk.
    SoftChunkLate,
    /// Soft Updates: a new directory's name does not wait for its first block.
    SoftMkdirBody,
    /// Soft Updates: a new directory's name does not wait for the parent's link count.
    SoftMkdirParent,
    /// Soft Updates: links are dropped before the name is gone from the disk.
    SoftLinkEarly,
    /// Soft Updates: a rename removes the old name before the new one is on the disk.
    SoftOldNameFirst,
    /// Journaled Soft Updates: blocks do not wait for the records of what is in them.
    SujRecordLate,
    /// Journaled Soft Updates: no record of a name that is added.
    SujNoAddRef,
    /// Journaled Soft Updates: no record of a name that is removed.
    SujNoRemRef,
    /// Journaled Soft Updates: no record of a number that is taken or free, or of an inode in use without a name.
    SujNoNumber,
    /// Journaled Soft Updates: no record of space that is taken.
    SujNoNewBlock,
    /// Journaled Soft Updates: no record of space that a file has been cut by.
    SujNoFreeBlock,
    /// Journaled Soft Updates: no record of space that a block has left.
    SujNoFreeFrag,
    /// Journaled Soft Updates: the log's space is used again before what its records name is on the disk.
    SujTailEarly,
    /// Journaled Soft Updates: a moved name's old one is removed while the directory that the new one is in has none
    /// itself.
    SujOrphanedMove,
    /// Recovery of journaled Soft Updates: inodes are cleared before the maps have their blocks as free.
    SujMapsLast,
    /// Snapshots: a block is written over before its copy is on the disk.
    SnapshotCopyLate,
    /// Snapshots: what was free for a while is not kept.
    SnapshotFreedNotKept,
    /// Check in the background: space that was free in the snapshot and has been taken since is given back.
    BackgroundSpaceOfNow,
    /// Check in the background: numbers that were free in the snapshot and have been taken since are given back.
    BackgroundNumbersOfNow,
    /// Check in the background: of a link count that is too high, a link more is taken than nobody has.
    BackgroundCountsAllLinks,
    /// Check in the background: names in a directory without a name are not taken out of it.
    BackgroundNamesStay,
    /// Journaling: metadata goes to its place before the log is on the disk.
    HomeBeforeLog,
    /// Journaling: what a file has given up is free for others before that is committed.
    ReuseBeforeCommit,
    /// Journaling: the log leads to new blocks before their data is there.
    DataAfterLog,
    /// Journaling: space of the log is used again before what it held is in its place.
    CheckpointTooFar,
    /// Journaling: a block that was metadata and is given up is not taken out of the log.
    NoRevocation,
    /// Journaling: a commit comes in the midst of an operation.
    CommitWithinOperation,
    /// Journaling: fsync writes the data, and does not commit.
    FsyncWithoutCommit,
    /// Replay: a transaction is taken for whole without its checksum.
    LogChecksumIgnored,
    /// Replay: what is left of an earlier lap is taken for transactions.
    LogOldLap,
    /// Replay: the log is empty before everything is in its place.
    ReplayEmptiesFirst,
    /// fsck: no phase 1b.
    FsckNoDuplicates,
    /// fsck: phase 4 before phase 2.
    FsckLinksBeforeNames,
    /// fsck: phase 5 before phase 1, once.
    FsckGroupsFirst,
    /// fsck: what has no name is cleared, not put into `lost+found`.
    FsckNoConnectivity,
}

/// The one that is planted, if any.
pub type Planted = Option<Bug>;
