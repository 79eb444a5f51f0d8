//! Bugs on purpose: ordering rules of conventional updates, and phases of fsck, that can be broken one at a time.
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
    /// A rename removes the old name before the new one is there.
    OldNameFirst,
    /// A directory that has grown is not on the disk with its new length.
    DirectoryLengthLate,
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
