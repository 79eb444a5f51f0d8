//! What a file system is besides the operations: its inodes, its allocation, and the order of its updates.

use super::freed::{CutIndirects, Freed};
use super::node::{Body, Node, Piece, Sizes, Target};
use crate::directory::DirFormat;
use crate::indirect::Pointer;
use crate::{DiskInode, FileType};
use kernel::{Block, BlockId, Cx, Ino, Pbn, Volume};
use posix::Errno;
use std::ops::RangeInclusive;

/// An inode to make.
#[derive(Clone, Debug)]
pub struct NewInode {
    /// What it is.
    pub file_type: FileType,
    /// Permissions.
    pub permissions: u16,
    /// Links that it begins with.
    pub nlink: i16,
    /// A device's number, which is in the place of its first block; otherwise 0.
    pub device: u16,
    /// What the file system keeps of its contents.
    pub body: Body,
}

/// A name and what it leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name<'a> {
    /// The name.
    pub name: &'a [u8],
    /// The inode.
    pub ino: Ino,
}

/// An operation that wants to be let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// A name with a new inode.
    Create,
    /// A name with a new pipe, socket or device.
    CreateSpecial,
    /// Another name.
    Link,
    /// A name less, a directory's too.
    Remove,
    /// A name moves. Whether it takes the place of another.
    Rename {
        /// It does.
        replaces: bool,
    },
    /// Other attributes.
    Attributes,
    /// Another length.
    Length {
        /// A longer one.
        grows: bool,
    },
}

/// What a file system is besides the operations.
///
/// An operation changes everything in memory at once, and says to the backing what it has changed, at the moment and in
/// the order in which 4.4BSD writes it: these are the *ordered updates*. What the disk is told of them, and when, is
/// the backing's alone. FFS writes and waits, or does not (`ffs::integrity`); in LFS all that an operation has changed
/// reaches the disk together.
pub trait Backing: Volume + Sized {
    /// Its inodes.
    type Inode: DiskInode;
    /// What it keeps of an inode besides.
    type Own;

    /// Whether all that an operation changes reaches the disk together, or nothing of it (a log). Otherwise a link is
    /// counted before there is the name that it is for, so that a crash leaves too many, not too few.
    const ATOMIC: bool;

    // ---- in memory

    /// An inode in use.
    fn node(&self, ino: Ino) -> Result<&Node<Self::Inode, Self::Own>, Errno>;

    /// The same, to be changed.
    fn node_mut(&mut self, ino: Ino) -> Result<&mut Node<Self::Inode, Self::Own>, Errno>;

    /// Sizes of blocks and fragments.
    fn sizes(&self) -> Sizes;

    /// How directories are laid out.
    fn dir_format(&self) -> DirFormat;

    /// Seconds since 1970 that a time of an inode can be: those of 32 bits, except where inodes have more.
    fn times(&self) -> RangeInclusive<i64> {
        i32::MIN.into()..=i32::MAX.into()
    }

    /// Whether an inode's pointers point to blocks: it is no short symbolic link, and no device.
    fn has_blocks(&self, inode: &Self::Inode) -> bool;

    /// Space that an inode says it holds.
    fn held_bytes(&self, inode: &Self::Inode) -> u64;

    /// Where a pointer leads.
    fn pbn_of(&self, pointer: Pointer) -> Pbn;

    /// A list that is used again.
    fn spare_list(&mut self) -> &mut Vec<Freed>;

    /// A bug on purpose, which a test must find: whether a rename removes the old name before the new one is there.
    #[doc(hidden)]
    fn removes_old_name_first(&self) -> bool {
        false
    }

    // ---- allocation

    /// Allocates an inode near a directory, and has it in memory.
    fn new_inode(&mut self, cx: &mut Cx, dir: Ino, new: NewInode) -> Result<Ino, Errno>;

    /// An inode that holds nothing any more is free for others.
    fn free_inode(&mut self, cx: &mut Cx, ino: Ino);

    /// Block `lbn` of a file, with room for the first `end` bytes of it. What was there of it is in memory if it moved
    /// or grew.
    fn balloc(&mut self, cx: &mut Cx, ino: Ino, lbn: u64, end: u32) -> Result<Target, Errno>;

    /// Puts the target of a symbolic link in the place of the inode's pointers, if it is short enough; says whether.
    fn put_target(&mut self, ino: Ino, target: &[u8]) -> Result<bool, Errno>;

    // ---- room

    /// There is room for an operation, or is made. `ENOSPC` if there cannot be.
    fn admit(&mut self, _cx: &mut Cx, _change: Change) -> Result<(), Errno> {
        Ok(())
    }

    /// An operation is done.
    fn settle(&mut self, _cx: &mut Cx) {}

    /// Whether chunks at the end of a directory, which hold nothing in memory, are kept when a name is entered.
    fn keeps_chunks(&self, _dir: Ino) -> bool {
        false
    }

    /// An inode without links, which nobody has open, is to be freed: whether the backing does that itself, later, by
    /// [`release`](super::operations::release) again.
    fn releases_later(&mut self, _cx: &mut Cx, _ino: Ino) -> bool {
        false
    }

    /// An inode that has no links and no user is about to be freed, with all its blocks.
    fn begin_release(&mut self, _cx: &mut Cx, _ino: Ino) {}

    /// It has been.
    fn end_release(&mut self, _cx: &mut Cx) {}

    /// `EPERM` for a file of the file system's own that nobody may change, rename or remove.
    fn may_change(&self, _ino: Ino) -> Result<(), Errno> {
        Ok(())
    }

    /// Whether its bytes and its length may be changed.
    fn may_write(&self, ino: Ino) -> Result<(), Errno> {
        self.may_change(ino)
    }

    /// What is read where a file has no block of its own; `None` for zeros.
    fn shown_in_hole(&self, _ino: Ino, _lbn: u64) -> Option<Piece> {
        None
    }

    // ---- ordered updates

    /// A block of a file is in memory, and changed.
    fn change_block(&mut self, cx: &mut Cx, block: &Block) {
        cx.change(block);
    }

    /// A new inode is complete; its name comes next.
    fn inode_made(&mut self, cx: &mut Cx, ino: Ino);

    /// The target of a new symbolic link is in a block of its own, which is in memory.
    fn target_made(&mut self, cx: &mut Cx, block: BlockId);

    /// The first block of a new directory, with `.` and `..`, is in memory, and the inode has its length.
    fn directory_made(&mut self, cx: &mut Cx, dir: Ino, block: BlockId);

    /// An inode has a link more; the name comes next (of an atomic backing: has come).
    fn link_added(&mut self, cx: &mut Cx, ino: Ino);

    /// An inode has so many fewer links; the names are gone.
    fn link_dropped(&mut self, cx: &mut Cx, ino: Ino, links: i16);

    /// A name of `ino` is in a directory, in the chunk at a byte; `grown` if the directory was lengthened for it.
    fn name_added(&mut self, cx: &mut Cx, dir: Ino, at: u64, entry: Name<'_>, grown: bool) -> Result<(), Errno>;

    /// A name of `ino` is gone from a directory's chunk.
    fn name_removed(&mut self, cx: &mut Cx, dir: Ino, at: u64, entry: Name<'_>) -> Result<(), Errno>;

    /// A name, the entry at a byte, leads to `entry.ino` and no longer to `from`.
    fn name_changed(&mut self, cx: &mut Cx, dir: Ino, at: u64, from: Ino, entry: Name<'_>) -> Result<(), Errno>;

    /// A directory's `..` leads elsewhere.
    fn parent_changed(&mut self, cx: &mut Cx, dir: Ino, from: Ino, parent: Ino) -> Result<(), Errno>;

    /// Attributes have changed.
    fn attributes_changed(&mut self, cx: &mut Cx, ino: Ino);

    /// A file has the length that it was given.
    fn length_set(&mut self, cx: &mut Cx, ino: Ino);

    /// Pointers of a file are cut: of data only, and only in memory. What is taken from the list is given up; the rest
    /// comes with [`cut`](Backing::cut).
    fn pointers_cut(&mut self, _cx: &mut Cx, _ino: Ino, _freed: &mut Vec<Freed>) {}

    /// A file has been cut in memory, its length set and its blocks forgotten: it gives up what is in the list and some
    /// indirect blocks, and others have lost pointers.
    fn cut(&mut self, cx: &mut Cx, ino: Ino, freed: &mut Vec<Freed>, indirects: CutIndirects) -> Result<(), Errno>;
}
