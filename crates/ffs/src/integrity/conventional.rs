//! Conventional updates: what has an order is on the disk when the step that it belongs to is done, as in 4.4BSD.
//!
//! Besides, fragments and clusters that have moved are known as long as the disk may not know. A block that moves
//! (`ffs_realloccg`, `ffs_reallocblks`) is dirty at its new place, and so is what holds the pointer to it; its old place is free
//! at once, as in 4.4BSD. Two orders keep a crash from taking what was on the disk before: the data is at its new place before a
//! pointer leads there, and nobody else gets the old place before no pointer on the disk leads there. 4.4BSD keeps neither; found
//! by crashes of conventional updates (docs/crash.md). Nothing is written for them but what is dirty anyway: a writer goes in
//! another order, or waits, and only if one of the blocks is on its way while another is wanted.

use super::{About, Mode};
use crate::Ffs;
use crate::format::{FragAddr, NDADDR};
use crate::planted::Bug;
use crate::volume::pointers::way;
use kernel::{BlockId, Cx, Ino, Lbn};

/// What has moved, as long as the disk may not know.
#[derive(Clone, Debug, Default)]
pub(crate) struct Moves {
    moved: Vec<Moved>,
    /// So many are kept before those are forgotten that the disk knows of.
    most: usize,
}

/// A piece of a file that lies elsewhere now.
#[derive(Clone, Copy, Debug)]
struct Moved {
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

impl Moves {
    /// Whether the disk may still have pointers to a place that a block has left.
    pub(crate) fn concern(&self, addr: FragAddr, frags: u32) -> bool {
        let end = addr.0 + u64::from(frags);
        self.moved.iter().any(|moved| moved.from.0 < end && addr.0 < moved.from.0 + u64::from(moved.frags))
    }
}

/// Moves that are looked through before those are forgotten that the disk knows of.
const MANY: usize = 64;

/// Whether a block is dirty or on its way.
fn is_pending(cx: &Cx, id: BlockId) -> bool {
    cx.cache().is_dirty(id) || cx.io_of(id).is_some_and(|io| cx.ios().get(io).is_some())
}

/// The mode.
pub(crate) struct Conventional;

impl Mode for Conventional {
    fn in_order(fs: &mut Ffs, cx: &mut Cx, id: BlockId) {
        fs.moved_data_first(cx, |holder, _| holder == id);
        cx.write(fs, id, true);
    }

    fn moved(fs: &mut Ffs, cx: &mut Cx, ino: Ino, lbn: u64, from: FragAddr, frags: u32) {
        if fs.planted == Some(Bug::ReuseBeforePointer) {
            return;
        }
        let Moves { moved, most } = &mut fs.moves;
        if moved.len() >= *most {
            let now_ns = cx.now_ns();
            moved.retain(|moved| moved.at_ns == now_ns || is_pending(cx, moved.holder));
            *most = MANY.max(2 * moved.len());
        }
        let holder = match way(lbn, fs.g.nindir()) {
            Some(way) if lbn >= NDADDR as u64 => BlockId { ino, lbn: Lbn(-(way.leaf as i64)) },
            _ => fs.inode_block(ino).id,
        };
        let data = BlockId { ino, lbn: Lbn(lbn as i64) };
        fs.moves.moved.push(Moved { from, frags, data, holder, at_ns: cx.now_ns() });
    }

    /// The pointers of those who have left the place are on the disk first.
    fn taken(fs: &mut Ffs, cx: &mut Cx, addr: FragAddr, frags: u32) {
        if fs.moves.moved.is_empty() {
            return;
        }
        let end = addr.0 + u64::from(frags);
        let here = |moved: &Moved| moved.from.0 < end && addr.0 < moved.from.0 + u64::from(moved.frags);
        let taken: Vec<Moved> = fs.moves.moved.iter().copied().filter(here).collect();
        for moved in &taken {
            let holder = moved.holder;
            if moved.at_ns == cx.now_ns() && holder.ino == Ino::DEVICE && fs.inodes.get(moved.data.ino.0).is_some() {
                fs.update(cx, moved.data.ino);
            }
            if is_pending(cx, holder) {
                fs.moved_data_first(cx, |of, _| of == holder);
                fs.write_now(cx, holder);
            }
        }
        fs.moves.moved.retain(|moved| !here(moved));
    }

    /// What has moved, before what holds the pointers to it.
    fn about_to_write(fs: &mut Ffs, cx: &mut Cx, about: About<'_>) {
        match about {
            About::All => fs.moved_data_first(cx, |_, _| true),
            About::File(ino) => {
                let inodes = fs.inode_block(ino).id;
                fs.moved_data_first(cx, |holder, data| data.ino == ino || holder == inodes);
            }
            About::Blocks(blocks) => fs.moved_data_first(cx, |holder, _| blocks.contains(&holder)),
        }
    }
}

impl Ffs {
    /// Writes what has moved and is wanted, by the block that the pointer is in and by its own.
    fn moved_data_first(&mut self, cx: &mut Cx, wanted: impl Fn(BlockId, BlockId) -> bool) {
        if self.moves.moved.is_empty() {
            return;
        }
        let moved = self.moves.moved.iter().filter(|moved| wanted(moved.holder, moved.data));
        for data in moved.map(|moved| moved.data).collect::<Vec<_>>() {
            self.write_now(cx, data);
        }
    }

    /// A block is on the disk when this is done.
    fn write_now(&mut self, cx: &mut Cx, id: BlockId) {
        if cx.cache().is_dirty(id) {
            cx.write(self, id, true);
        } else if let Some(io) = cx.io_of(id) {
            cx.wait_for(io);
        }
    }
}
