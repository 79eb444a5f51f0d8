//! Fragments and clusters that have moved, as long as the disk may not know.
//!
//! A block that moves (`ffs_realloccg`, `ffs_reallocblks`) is dirty at its new place, and so is what holds the pointer to it; its old place
//! is free at once, as in 4.4BSD. Two orders keep a crash from taking what was on the disk before: the data is at its new place
//! before a pointer leads there, and nobody else gets the old place before no pointer on the disk leads there. 4.4BSD keeps
//! neither; found by crashes of conventional updates (docs/crash.md). Nothing is written for them but what is dirty anyway: a
//! writer goes in another order, or waits, and only if one of the blocks is on its way while another is wanted.

use super::Ffs;
use crate::format::{FragAddr, NDADDR};
use crate::planted::Bug;
use crate::policy::Integrity;
use kernel::{BlockId, Cx, Ino, Lbn};

/// A piece of a file that lies elsewhere now.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moved {
    /// Where it was.
    from: FragAddr,
    frags: u32,
    /// The block as the cache knows it.
    data: BlockId,
    /// The block that the pointer is in.
    holder: BlockId,
    /// When: until the operation ends, that block may not be marked as changed yet.
    at_ns: u64,
}

/// Moves that are looked through before those are forgotten that the disk knows of.
const MANY: usize = 64;

/// Whether a block is dirty or on its way.
fn is_pending(cx: &Cx, id: BlockId) -> bool {
    cx.cache().is_dirty(id) || cx.io_of(id).is_some_and(|io| cx.ios().get(io).is_some())
}

impl Ffs {
    /// Block `lbn` of a file has left a place; its new pointer is set before anything else is allocated.
    pub(crate) fn has_moved(&mut self, cx: &Cx, ino: Ino, lbn: u64, from: FragAddr, frags: u32) {
        if self.options.integrity != Integrity::Conventional || self.planted == Some(Bug::ReuseBeforePointer) {
            return;
        }
        if self.moved.len() >= self.moved_most {
            let now_ns = cx.now_ns();
            self.moved.retain(|moved| moved.at_ns == now_ns || is_pending(cx, moved.holder));
            self.moved_most = MANY.max(2 * self.moved.len());
        }
        let holder = match super::pointers::way(lbn, self.g.nindir()) {
            Some(way) if lbn >= NDADDR as u64 => BlockId { ino, lbn: Lbn(-(way.leaf as i64)) },
            _ => self.inode_block(ino).id,
        };
        let data = BlockId { ino, lbn: Lbn(lbn as i64) };
        self.moved.push(Moved { from, frags, data, holder, at_ns: cx.now_ns() });
    }

    /// Before what holds pointers is written, what has moved and is led to by them.
    pub(super) fn moved_data_first(&self, cx: &mut Cx, wanted: impl Fn(BlockId, BlockId) -> bool) {
        for moved in self.moved.iter().filter(|moved| wanted(moved.holder, moved.data)) {
            self.write_now(cx, moved.data);
        }
    }

    /// Before a place is given to somebody, the pointers of those who have left it.
    pub(crate) fn old_pointers_first(&mut self, cx: &mut Cx, addr: FragAddr, frags: u32) {
        if self.moved.is_empty() {
            return;
        }
        let end = addr.0 + u64::from(frags);
        let here = |moved: &Moved| moved.from.0 < end && addr.0 < moved.from.0 + u64::from(moved.frags);
        let taken: Vec<Moved> = self.moved.iter().copied().filter(here).collect();
        for moved in &taken {
            let holder = moved.holder;
            if moved.at_ns == cx.now_ns() && holder.ino == Ino::DEVICE && self.inodes.get(moved.data.ino.0).is_some() {
                self.update(cx, moved.data.ino);
            }
            if is_pending(cx, holder) {
                self.moved_data_first(cx, |of, _| of == holder);
                self.write_now(cx, holder);
            }
        }
        self.moved.retain(|moved| !here(moved));
    }

    /// A block is on the disk when this is done.
    fn write_now(&self, cx: &mut Cx, id: BlockId) {
        if cx.cache().is_dirty(id) {
            cx.write(self, id, true);
        } else if let Some(io) = cx.io_of(id) {
            cx.wait_for(io);
        }
    }
}
