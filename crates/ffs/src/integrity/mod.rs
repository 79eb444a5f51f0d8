//! Modes of integrity: in which order changes reach the disk, so that a crash leaves what can be made whole.
//!
//! What lives here: one mode a file, behind one trait of hooks ([`Mode`]). The file system says what it does, at the
//! moment and in the order of 4.4BSD's steps; nothing above knows which mode runs. What may not: what an operation
//! changes in memory ([`ufs::live`]), and where things go (`policy`).
//!
//! | file | mode | source |
//! |---|---|---|
//! | `conventional` | what has an order is written and waited for | 4.4BSD |
//! | `noorder` | nothing has an order | Ganger, McKusick, Soules and Patt, TOCS 18(2), 2000 |
//! | `softdep` | nothing waits; what is not safe yet is left out of a write | McKusick and Ganger, USENIX 1999 |
//! | `softdep::journal` | the same, with a log of what a crash may have lost | McKusick and Roberson, BSDCan 2010 |
//! | `journal` | changes go to a log before they go to their places | Seltzer et al., USENIX 2000 |

mod conventional;
mod journal;
mod noorder;
mod softdep;

use crate::Ffs;
use crate::format::FragAddr;
use crate::planted::Bug;
pub(crate) use conventional::{Conventional, Moves};
pub use journal::LogCounts;
pub(crate) use journal::{Journal, Journaled};
use kernel::program::IoId;
use kernel::{BlockId, Cx, Durability, Ino, Pbn};
pub(crate) use noorder::NoOrder;
use posix::Errno;
use serde::{Deserialize, Serialize};
pub(crate) use softdep::{Deps, SoftUpdates};
use ufs::live::{CutIndirects, Files as _, Freed, Name, Piece};

/// What keeps metadata consistent across a crash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Integrity {
    /// Metadata whose order matters is written at once and waited for, as in 4.4BSD.
    #[default]
    Conventional,
    /// Nothing: all writes are delayed.
    Noorder,
    /// Soft Updates: all writes are delayed, and what is not safe yet is left out of them.
    Softdep,
    /// The same with a log of records that say what a crash may have lost.
    #[serde(rename = "softdep+j")]
    SoftdepJournal,
    /// A log of metadata that is committed now and then.
    #[serde(rename = "journal=async")]
    JournalAsync,
    /// The same, committed before an operation on names or attributes returns.
    #[serde(rename = "journal=sync")]
    JournalSync,
}

impl Integrity {
    /// Whether it needs a log.
    pub fn has_log(self) -> bool {
        self.is_journaled() || self.is_softdep_journaled()
    }

    /// Whether it has a log of metadata.
    pub fn is_journaled(self) -> bool {
        matches!(self, Integrity::JournalAsync | Integrity::JournalSync)
    }

    /// Whether it is that of Soft Updates with a log of records.
    pub fn is_softdep_journaled(self) -> bool {
        self == Integrity::SoftdepJournal
    }
}

/// What is about to be written.
#[derive(Clone, Copy, Debug)]
pub(crate) enum About<'a> {
    /// Everything dirty.
    All,
    /// A file's dirty blocks, then its inode.
    File(Ino),
    /// Some blocks that the kernel wants clean.
    Blocks(&'a [BlockId]),
}

/// The hooks of a mode. Those with a body do what 4.4BSD does, as far as [`in_order`](Mode::in_order) orders anything.
pub(crate) trait Mode {
    /// A changed block whose place in the order of writes keeps the disk consistent.
    fn in_order(fs: &mut Ffs, cx: &mut Cx, id: BlockId);

    // ---- operations

    /// An operation on names, attributes or lengths begins, or a write: nothing is changed yet.
    fn begins(_fs: &mut Ffs, _cx: &mut Cx) {}

    /// A write to a file goes on: what it has written so far is complete but for the inode.
    fn goes_on(_fs: &mut Ffs, _cx: &mut Cx, _ino: Ino) {}

    /// An operation has been done. Not told of one that has failed.
    fn ends(_fs: &mut Ffs, _cx: &mut Cx) {}

    // ---- the whole file system

    /// The file system is about to be marked as in use.
    fn mounting(_fs: &mut Ffs, _cx: &mut Cx) {}

    /// The file system is in use from now on.
    fn mounted(_fs: &mut Ffs, _cx: &mut Cx) {}

    /// It has been unmounted: everything is written.
    fn unmounted(_fs: &mut Ffs, _cx: &mut Cx) {}

    /// A file's data, its inode and what leads to it are on the disk, or on their way.
    fn fsync(fs: &mut Ffs, cx: &mut Cx, ino: Ino, how: Durability) -> Result<(), Errno> {
        Self::about_to_write(fs, cx, About::File(ino));
        fs.write_file(cx, ino, how)
    }

    /// Everything is on the disk, or on its way; the superblock comes after it.
    fn sync(fs: &mut Ffs, cx: &mut Cx, how: Durability) {
        Self::about_to_write(fs, cx, About::All);
        cx.flush_all(fs, how);
    }

    /// The kernel wants some blocks clean.
    fn write_back(fs: &mut Ffs, cx: &mut Cx, blocks: &[BlockId]) {
        Self::about_to_write(fs, cx, About::Blocks(blocks));
        cx.write_in_place(fs, blocks);
    }

    /// Whether the file system's daemon has something to do: [`kernel::Volume::wants_work`].
    fn wants_work(_fs: &Ffs, _cx: &Cx) -> bool {
        false
    }

    /// Whether it will have, when nobody has called for so long.
    fn idle_work_after_ns(_fs: &Ffs) -> Option<u64> {
        None
    }

    /// It does a piece of it.
    fn work(_fs: &mut Ffs, _cx: &mut Cx, _idle: bool) -> bool {
        false
    }

    // ---- allocation

    /// A new inode has been taken, and is in memory.
    fn inode_taken(_fs: &mut Ffs, _cx: &mut Cx, _ino: Ino) {}

    /// The pointer to block `lbn` of a file has just been set; the file does not have its new length yet.
    fn placed(_fs: &mut Ffs, _cx: &mut Cx, _ino: Ino, _lbn: u64, _was: Piece, _now: Piece) {}

    /// Whether what a block has left ([`moved`](Mode::moved), then [`placed`](Mode::placed)) is given back by the mode,
    /// later.
    fn frees_later(_fs: &Ffs) -> bool {
        false
    }

    /// Space has been taken for a block, or for fragments that a block grows by, and nothing leads to it yet.
    fn taken(_fs: &mut Ffs, _cx: &mut Cx, _addr: FragAddr, _frags: u32) {}

    /// Block `lbn` of a file has left a place; its new pointer is set before anything else is allocated.
    fn moved(_fs: &mut Ffs, _cx: &mut Cx, _ino: Ino, _lbn: u64, _from: FragAddr, _frags: u32) {}

    /// A new indirect block is in memory, and what points to it is changed.
    fn indirect_made(fs: &mut Ffs, cx: &mut Cx, block: BlockId) {
        fs.in_order(cx, block);
    }

    /// The same is taken back: there was no room for what it was made for.
    fn indirect_unmade(_fs: &mut Ffs, _cx: &mut Cx, _block: BlockId) {}

    /// A new inode is complete; its name comes next.
    fn inode_made(fs: &mut Ffs, cx: &mut Cx, ino: Ino) {
        match fs.planted {
            Some(Bug::InodeAfterName) if fs.directory(ino).is_err() => fs.update(cx, ino),
            _ => fs.update_in_order(cx, ino),
        }
    }

    // ---- names

    /// The target of a new symbolic link is in a block of its own.
    fn target_made(fs: &mut Ffs, cx: &mut Cx, block: BlockId) {
        fs.in_order(cx, block);
    }

    /// A new directory has its first block, with `.` and `..`.
    fn directory_made(fs: &mut Ffs, cx: &mut Cx, dir: Ino, block: BlockId) {
        fs.update(cx, dir);
        fs.in_order(cx, block);
        fs.update_in_order(cx, dir);
    }

    /// An inode has a link more; the name that it is for comes next.
    fn link_added(fs: &mut Ffs, cx: &mut Cx, ino: Ino) {
        fs.update_in_order(cx, ino);
    }

    /// An inode has so many fewer links; the names are gone, or go in the same operation.
    fn link_dropped(fs: &mut Ffs, cx: &mut Cx, ino: Ino, _links: i16) {
        fs.update(cx, ino);
    }

    /// A name of `ino` is in a directory, in the chunk at a byte; `grown` if the directory was lengthened for it.
    fn name_added(fs: &mut Ffs, cx: &mut Cx, dir: Ino, at: u64, _entry: Name<'_>, grown: bool) -> Result<(), Errno> {
        fs.update(cx, dir);
        fs.directory_in_order(cx, dir, at)?;
        if grown && fs.planted != Some(Bug::DirectoryLengthLate) {
            fs.update_in_order(cx, dir);
        }
        Ok(())
    }

    /// A name of `ino` is gone from a directory.
    fn name_removed(fs: &mut Ffs, cx: &mut Cx, dir: Ino, at: u64, _entry: Name<'_>) -> Result<(), Errno> {
        fs.update(cx, dir);
        if fs.planted == Some(Bug::NameOutlivesInode) {
            cx.change(&fs.directory_block(dir, at)?);
            return Ok(());
        }
        fs.directory_in_order(cx, dir, at)
    }

    /// A name leads to `entry.ino` and no longer to `from`.
    fn name_changed(fs: &mut Ffs, cx: &mut Cx, dir: Ino, at: u64, _from: Ino, _entry: Name<'_>) -> Result<(), Errno> {
        fs.update(cx, dir);
        fs.directory_in_order(cx, dir, at)
    }

    /// Whether chunks at the end of a directory, which hold nothing in memory, are kept: the disk may have names in
    /// them.
    fn keeps_chunks(_fs: &Ffs, _dir: Ino) -> bool {
        false
    }

    /// A directory's `..` leads elsewhere.
    fn parent_changed(fs: &mut Ffs, cx: &mut Cx, dir: Ino, _from: Ino, _parent: Ino) -> Result<(), Errno> {
        fs.directory_in_order(cx, dir, 0)
    }

    // ---- truncation and removal

    /// An inode that has no links and no user is about to be freed, with all its blocks, outside any operation.
    fn release_begins(_fs: &mut Ffs, _cx: &mut Cx) {}

    /// It has been.
    fn release_ends(_fs: &mut Ffs, _cx: &mut Cx) {}

    /// An inode without links that nobody has open is to be freed: whether the mode does that, later.
    fn releases_later(_fs: &mut Ffs, _cx: &mut Cx, _ino: Ino) -> bool {
        false
    }

    /// A file has another length.
    fn length_set(fs: &mut Ffs, cx: &mut Cx, ino: Ino) {
        fs.update_in_order(cx, ino);
    }

    /// A file has been cut in memory: it gives up what is in the list and some indirect blocks, and others have lost
    /// pointers. The inode goes to the disk with its pointers cleared before the blocks are free for others.
    fn cut(fs: &mut Ffs, cx: &mut Cx, ino: Ino, freed: &mut Vec<Freed>, indirects: CutIndirects) {
        for (number, addr) in indirects.changed {
            let block = fs.indirect_block(ino, number, addr);
            cx.change(&block);
            fs.in_order(cx, block.id);
        }
        match fs.planted {
            Some(Bug::FreeBeforeInode) => fs.update(cx, ino),
            _ => fs.update_in_order(cx, ino),
        }
        // What an indirect block points to is known from the block itself: one that is not in memory is read to be
        // given up.
        for (lbn, addr) in indirects.upper.into_iter().chain(indirects.leaves) {
            let block = fs.indirect_block(ino, lbn, addr);
            cx.read(&block);
            cx.forget(block.id);
            freed.push(Freed { lbn, addr, bytes: fs.g.bsize });
        }
        fs.free_pieces(cx, ino, freed);
    }

    /// An inode without links holds nothing any more, and its block is in memory: its number is free for others.
    fn inode_freed(fs: &mut Ffs, cx: &mut Cx, ino: Ino) {
        fs.update(cx, ino);
        fs.free_number(cx, ino);
    }

    // ---- writing

    /// Blocks are about to be written: fsync, sync, or the kernel, which wants some of them clean.
    fn about_to_write(_fs: &mut Ffs, _cx: &mut Cx, _about: About<'_>) {}

    /// A block sets out for the disk; its bytes are made next, and changed by [`undo`](Mode::undo).
    fn sets_out(_fs: &mut Ffs, _cx: &mut Cx, _id: BlockId, _io: IoId) {}

    /// Takes what must not be on the disk yet out of a block's bytes (undo). Memory keeps it: nothing has to be done
    /// again (redo) but to write the block once more.
    fn undo(_fs: &Ffs, _id: BlockId, _pbn: Pbn, _out: &mut [u8]) {}

    /// A write of blocks is complete: what was in them is stable. Adds nothing to the program. Told only where
    /// [`mounted`](Mode::mounted) has [asked](Cx::tell_of_writes) for it.
    fn arrived(_fs: &mut Ffs, _cx: &mut Cx, _io: IoId) {}
}

/// Calls a hook of the mode in force: `mode!(self.link_added(cx, ino))`.
macro_rules! mode {
    ($fs:ident.$hook:ident($($arg:expr),*)) => {{
        use $crate::integrity::{Conventional, Integrity, Journaled, Mode as _, NoOrder, SoftUpdates};
        match $fs.options.integrity {
            Integrity::Conventional => Conventional::$hook($fs $(, $arg)*),
            Integrity::Noorder => NoOrder::$hook($fs $(, $arg)*),
            Integrity::Softdep | Integrity::SoftdepJournal => SoftUpdates::$hook($fs $(, $arg)*),
            Integrity::JournalAsync | Integrity::JournalSync => Journaled::$hook($fs $(, $arg)*),
        }
    }};
}
pub(crate) use mode;

impl Ffs {
    /// A changed block whose place in the order of writes keeps the disk consistent.
    pub(crate) fn in_order(&mut self, cx: &mut Cx, id: BlockId) {
        mode!(self.in_order(cx, id));
    }

    /// An inode has changed where the order of writes matters.
    pub(crate) fn update_in_order(&mut self, cx: &mut Cx, ino: Ino) {
        self.update(cx, ino);
        self.in_order(cx, self.inode_block(ino).id);
    }

    /// A block of a directory has changed where the order of writes matters.
    fn directory_in_order(&mut self, cx: &mut Cx, dir: Ino, at: u64) -> Result<(), Errno> {
        let block = self.directory_block(dir, at)?;
        cx.change(&block);
        self.in_order(cx, block.id);
        Ok(())
    }
}
