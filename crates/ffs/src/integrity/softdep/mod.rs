//! Soft Updates: every write is delayed, and none waits for another; what a block must not show yet is taken out of it
//! while it is written (McKusick and Ganger, "Soft Updates: A Technique for Eliminating Most Synchronous Writes in the
//! Fast Filesystem", USENIX 1999; Ganger, McKusick, Soules and Patt, TOCS 18(2), 2000).
//!
//! What lives here: the dependency records (`records`), undo (`undo`), what each change waits for and gives up
//! (`names`, `space`), and writing what must be there now (`push`). The rules that are kept:
//!
//! 1. Nothing points to a structure that is not on the disk: a pointer waits for what it leads to, a name for its
//!    inode.
//! 2. Nothing is used again while the disk points to it: space and numbers are free when the inode is on the disk
//!    without them, and links are dropped when the name is gone from the disk.
//! 3. A live thing never loses its last pointer: of a rename the old name stays until the new one is on the disk, and
//!    the place that a block has left is kept until the pointer to the new one is.
//! 4. A map has a block or an inode as used before anything points to it.
//!
//! So a crash leaves, at worst, blocks and inodes marked as used that are not, and link counts that are too high
//! (docs/soft-updates.md). Names as the sources call their records (`ffs_softdep.c`): `inodedep`, `bmsafemap`,
//! `allocdirect`, `allocindir`, `indirdep`, `freefrag`, `freeblks`, `freefile`, `pagedep`, `diradd`, `mkdir`, `dirrem`,
//! `newdirblk`.

mod deps;
mod inodes;
mod journal;
mod names;
mod pages;
mod push;
mod record;
mod space;
mod table;
mod undo;

use super::{Mode, NoOrder};
use crate::Ffs;
use crate::format::FragAddr;
pub(crate) use deps::Deps;
use kernel::program::IoId;
use kernel::{BlockId, Cx, Durability, Ino, Pbn};
use posix::Errno;
use ufs::live::{CutIndirects, Freed, Name, Piece};

/// Records for each inode that the machine keeps in memory. BSD's `max_softdeps` was eight times `desiredvnodes` in
/// 1998 and is four times now; it counts inodes with dependencies, this all records.
const RECORDS_PER_INODE: usize = 4;

/// The limit is never below the first nor above the second of these. A record with what belongs to it takes less than
/// 512 bytes of memory.
const RECORDS: std::ops::RangeInclusive<usize> = 1 << 10..=1 << 18;

/// So many records there are before whoever makes changes has to wait for the disk, until there are half as many.
fn most_records(inodes_in_memory: usize) -> usize {
    inodes_in_memory.saturating_mul(RECORDS_PER_INODE).clamp(*RECORDS.start(), *RECORDS.end())
}

/// Things on the work list that are done in one go.
const WORKED: usize = 16;

/// The mode.
pub(crate) struct SoftUpdates;

impl Mode for SoftUpdates {
    fn in_order(_fs: &mut Ffs, _cx: &mut Cx, _id: BlockId) {}

    fn begins(fs: &mut Ffs, cx: &mut Cx) {
        if fs.soft.on {
            fs.soft_operation_ends(cx);
            fs.slow_down(cx);
            if fs.wants_room_for_records() {
                fs.make_room_for_records(cx);
            }
        }
    }

    fn goes_on(fs: &mut Ffs, cx: &mut Cx, ino: Ino) {
        if fs.wants_room_for_records() {
            fs.update(cx, ino);
            fs.make_room_for_records(cx);
        }
    }

    fn ends(fs: &mut Ffs, cx: &mut Cx) {
        if fs.soft.on {
            fs.soft_operation_ends(cx);
        }
    }

    fn inode_taken(fs: &mut Ffs, _cx: &mut Cx, ino: Ino) {
        if fs.soft.on {
            fs.note_inode_taken(ino);
            fs.soft_inode_taken(ino);
        }
    }

    fn placed(fs: &mut Ffs, cx: &mut Cx, ino: Ino, lbn: u64, was: Piece, now: Piece) {
        if fs.soft.on {
            fs.note_placed(ino, lbn as i64, was, now);
            fs.soft_placed(cx, ino, lbn, was, now);
        }
    }

    fn taken(fs: &mut Ffs, _cx: &mut Cx, addr: FragAddr, frags: u32) {
        fs.note_taken(addr, frags);
    }

    fn directory_made(fs: &mut Ffs, cx: &mut Cx, dir: Ino, _block: BlockId) {
        fs.update(cx, dir);
        fs.note_directory_made(dir);
    }

    fn link_added(fs: &mut Ffs, cx: &mut Cx, ino: Ino) {
        fs.settle_names(cx, ino);
        fs.note_links(ino, 1);
        fs.update(cx, ino);
    }

    fn frees_later(fs: &Ffs) -> bool {
        fs.soft.on
    }

    fn indirect_made(fs: &mut Ffs, cx: &mut Cx, block: BlockId) {
        if fs.soft.on {
            fs.soft_indirect_made(cx, block);
        }
    }

    fn indirect_unmade(fs: &mut Ffs, _cx: &mut Cx, block: BlockId) {
        if fs.soft.on {
            fs.soft_indirect_unmade(block);
        }
    }

    fn target_made(fs: &mut Ffs, _cx: &mut Cx, block: BlockId) {
        if fs.soft.on {
            fs.soft_target_made(block);
        }
    }

    fn link_dropped(fs: &mut Ffs, cx: &mut Cx, ino: Ino, links: i16) {
        if !fs.soft.on {
            return NoOrder::link_dropped(fs, cx, ino, links);
        }
        fs.note_links_dropped(ino, links);
        fs.soft_link_dropped(cx, ino, links);
    }

    fn name_added(fs: &mut Ffs, cx: &mut Cx, dir: Ino, at: u64, entry: Name<'_>, grown: bool) -> Result<(), Errno> {
        if !fs.soft.on {
            return NoOrder::name_added(fs, cx, dir, at, entry, grown);
        }
        fs.note_entry(dir, at, entry.name, entry.ino, true);
        fs.soft_name_added(cx, dir, at, entry, grown)
    }

    fn name_removed(fs: &mut Ffs, cx: &mut Cx, dir: Ino, at: u64, entry: Name<'_>) -> Result<(), Errno> {
        if !fs.soft.on {
            return NoOrder::name_removed(fs, cx, dir, at, entry);
        }
        fs.note_entry(dir, at, entry.name, entry.ino, false);
        fs.soft_name_removed(cx, dir, at, entry)
    }

    fn name_changed(fs: &mut Ffs, cx: &mut Cx, dir: Ino, at: u64, from: Ino, entry: Name<'_>) -> Result<(), Errno> {
        if !fs.soft.on {
            return NoOrder::name_changed(fs, cx, dir, at, from, entry);
        }
        fs.note_entry(dir, at, entry.name, from, false);
        fs.note_entry(dir, at, entry.name, entry.ino, true);
        fs.soft_name_changed(cx, dir, at, from, entry)
    }

    fn parent_changed(fs: &mut Ffs, cx: &mut Cx, dir: Ino, from: Ino, parent: Ino) -> Result<(), Errno> {
        if !fs.soft.on {
            return NoOrder::parent_changed(fs, cx, dir, from, parent);
        }
        fs.note_entry(dir, 0, b"..", from, false);
        fs.note_entry(dir, 0, b"..", parent, true);
        fs.soft_parent_changed(cx, dir, from, parent)
    }

    fn keeps_chunks(fs: &Ffs, dir: Ino) -> bool {
        fs.soft.pages.concern(dir.0)
    }

    fn releases_later(fs: &mut Ffs, _cx: &mut Cx, ino: Ino) -> bool {
        fs.soft.on && fs.soft_releases_later(ino)
    }

    fn cut(fs: &mut Ffs, cx: &mut Cx, ino: Ino, freed: &mut Vec<Freed>, indirects: CutIndirects) {
        if !fs.soft.on {
            return NoOrder::cut(fs, cx, ino, freed, indirects);
        }
        fs.soft_cut(cx, ino, freed, indirects);
    }

    fn inode_freed(fs: &mut Ffs, cx: &mut Cx, ino: Ino) {
        if !fs.soft.on {
            return NoOrder::inode_freed(fs, cx, ino);
        }
        fs.note_inode_freed(ino);
        fs.soft_inode_freed(cx, ino);
    }

    fn sets_out(fs: &mut Ffs, cx: &mut Cx, id: BlockId, io: IoId) {
        if !fs.soft.on {
            return;
        }
        fs.wait_for_assumed(cx);
        fs.log_first(cx, id);
        let (keys, undone) = fs.load_up(id);
        let bytes = cx.cache().block(id).map_or(0, |block| block.bytes);
        fs.soft.set_out(io, (id, bytes), keys, undone);
    }

    fn undo(fs: &Ffs, id: BlockId, pbn: Pbn, out: &mut [u8]) {
        if fs.soft.on {
            fs.undo_block(id, pbn, out);
        }
    }

    fn arrived(fs: &mut Ffs, cx: &mut Cx, io: IoId) {
        fs.soft.assumed.remove(&io);
        let mut differ = Vec::new();
        fs.landed(io, &mut |_, id| differ.push(id));
        for block in differ.into_iter().filter_map(|id| fs.block_of(id)) {
            cx.differs(&block);
        }
    }

    fn fsync(fs: &mut Ffs, cx: &mut Cx, ino: Ino, how: Durability) -> Result<(), Errno> {
        if !fs.soft.on {
            return NoOrder::fsync(fs, cx, ino, how);
        }
        fs.soft_operation_ends(cx);
        fs.soft_fsync(cx, ino, how)
    }

    fn sync(fs: &mut Ffs, cx: &mut Cx, how: Durability) {
        if !fs.soft.on || how == Durability::Started {
            return NoOrder::sync(fs, cx, how);
        }
        fs.soft_operation_ends(cx);
        fs.make_room_for_records(cx);
    }

    fn write_back(fs: &mut Ffs, cx: &mut Cx, blocks: &[BlockId]) {
        if !fs.soft.on {
            return NoOrder::write_back(fs, cx, blocks);
        }
        fs.soft_write_back(cx, blocks);
    }

    fn mounting(fs: &mut Ffs, cx: &mut Cx) {
        if fs.options.integrity.has_log() {
            fs.mount_log(cx);
        }
    }

    fn mounted(fs: &mut Ffs, cx: &mut Cx) {
        fs.soft = Deps::in_use(most_records(cx.inode_capacity()));
        cx.tell_of_writes();
        fs.records_mounted(cx);
    }

    fn unmounted(fs: &mut Ffs, cx: &mut Cx) {
        fs.records_unmounted(cx);
    }

    fn wants_work(fs: &Ffs, _cx: &Cx) -> bool {
        !fs.soft.work.is_empty() || fs.wants_room_for_records()
    }

    fn work(fs: &mut Ffs, cx: &mut Cx, _idle: bool) -> bool {
        if fs.wants_room_for_records() {
            fs.make_room_for_records(cx);
            return true;
        }
        fs.do_work(cx, WORKED)
    }
}
