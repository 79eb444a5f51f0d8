//! Conventional updates: what has an order is on the disk when the step that it belongs to is done, as in 4.4BSD.
//!
//! Besides, fragments and clusters that have moved are known as long as the disk may not know. A block that moves
//! (`ffs_realloccg`, `ffs_reallocblks`) is dirty at its new place, and so is what holds the pointer to it; its old
//! place is free at once, as in 4.4BSD. Two orders keep a crash from taking what was on the disk before: the data is at
//! its new place before a pointer leads there, and nobody else gets the old place before no pointer on the disk leads
//! there. 4.4BSD keeps neither; found by crashes of conventional updates (docs/crash.md). Nothing is written for them
//! but what is dirty anyway: a writer goes in another order, or waits, and only if one of the blocks is on its way
//! while another is wanted.
//!
//! Most moves need neither. A cluster moves when its second block has been filled, long before anything leads to it on
//! the disk. So it is known of each pointer whether it is fresh: set since the block that holds it last set out. What a
//! fresh pointer leads to may move as often as it likes, and its old place is anybody's at once.

use super::{About, Mode};
use crate::Ffs;
use crate::format::{FragAddr, NDADDR};
use crate::planted::Bug;
use crate::volume::pointers::way;
use kernel::program::IoId;
use kernel::{BlockId, Cx, Ino, Lbn};
use rustc_hash::{FxHashMap, FxHashSet};
use ufs::live::Piece;

/// What has moved, as long as the disk may not know.
#[derive(Clone, Debug, Default)]
pub(crate) struct Moves {
    moved: Vec<Moved>,
    /// The blocks that hold their pointers, and perhaps some that do no longer: who writes another block need not look
    /// through all.
    holders: FxHashSet<BlockId>,
    /// The `stretches` of their old places, likewise.
    old_places: FxHashSet<u64>,
    /// So many are kept before those are forgotten that the disk knows of.
    max_moved: usize,
    /// Fresh pointers: by the block that holds them, the blocks that they lead to.
    fresh: FxHashMap<BlockId, FxHashSet<BlockId>>,
    /// So many holders are kept before those are forgotten that are not to be written any more.
    most_holders: usize,
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
        stretches(addr, frags).any(|stretch| self.old_places.contains(&stretch))
            && self.moved.iter().any(|moved| moved.from.0 < end && addr.0 < moved.from.0 + u64::from(moved.frags))
    }
}

/// The numbers of the eights of fragments, mostly blocks, that a place touches.
fn stretches(addr: FragAddr, frags: u32) -> impl Iterator<Item = u64> {
    addr.0 / 8..(addr.0 + u64::from(frags)).div_ceil(8)
}

/// Moves, and holders of fresh pointers, that are looked through before those are forgotten that need not be kept.
const MANY: usize = 64;

/// Whether a block is dirty or on its way.
fn is_pending(cx: &Cx, id: BlockId) -> bool {
    cx.cache().is_dirty(id) || cx.io_of(id).is_some_and(|io| cx.ios().get(io).is_some())
}

/// The mode.
pub(crate) struct Conventional;

impl Mode for Conventional {
    fn in_order(fs: &mut Ffs, cx: &mut Cx, id: BlockId) {
        if fs.moves.holders.contains(&id) {
            fs.moved_data_first(cx, |holder, _| holder == id);
        }
        cx.write(fs, id, true);
    }

    /// A pointer to another place than before is fresh. One that led there already, to fewer fragments, is as it was.
    fn placed(fs: &mut Ffs, cx: &mut Cx, ino: Ino, lbn: u64, was: Piece, now: Piece) {
        if was.addr == now.addr {
            return;
        }
        let (holder, data) = fs.holder_and_data(ino, lbn);
        let Moves { fresh, most_holders, .. } = &mut fs.moves;
        if fresh.len() >= *most_holders {
            // One that is not to be written may be of a file that is gone. Forgetting too many costs a write, no more.
            fresh.retain(|holder, _| is_pending(cx, *holder));
            *most_holders = MANY.max(2 * fresh.len());
        }
        fresh.entry(holder).or_default().insert(data);
    }

    fn moved(fs: &mut Ffs, cx: &mut Cx, ino: Ino, lbn: u64, from: FragAddr, frags: u32) {
        if fs.planted == Some(Bug::ReuseBeforePointer) {
            return;
        }
        let (holder, data) = fs.holder_and_data(ino, lbn);
        let Moves { moved, holders, old_places, max_moved, fresh, .. } = &mut fs.moves;
        if fresh.get(&holder).is_some_and(|fresh| fresh.contains(&data)) {
            return;
        }
        if moved.len() >= *max_moved {
            let now_ns = cx.now_ns();
            moved.retain(|moved| moved.at_ns == now_ns || is_pending(cx, moved.holder));
            *max_moved = MANY.max(2 * moved.len());
            *holders = moved.iter().map(|moved| moved.holder).collect();
            *old_places = moved.iter().flat_map(|moved| stretches(moved.from, moved.frags)).collect();
        }
        holders.insert(holder);
        old_places.extend(stretches(from, frags));
        moved.push(Moved { from, frags, data, holder, at_ns: cx.now_ns() });
    }

    /// The pointers that it holds are on the disk from now on, or may be.
    fn sets_out(fs: &mut Ffs, _cx: &mut Cx, id: BlockId, _io: IoId) {
        if fs.planted != Some(Bug::PointersStayFresh) {
            fs.moves.fresh.remove(&id);
        }
    }

    /// The pointers of those who have left the place are on the disk first.
    fn taken(fs: &mut Ffs, cx: &mut Cx, addr: FragAddr, frags: u32) {
        if !fs.moves.concern(addr, frags) {
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
    /// The block that holds the pointer to block `lbn` of a file, and that block as the cache knows it.
    fn holder_and_data(&self, ino: Ino, lbn: u64) -> (BlockId, BlockId) {
        let holder = match way(lbn, self.g.nindir()) {
            Some(way) if lbn >= NDADDR as u64 => BlockId { ino, lbn: Lbn(-(way.leaf as i64)) },
            _ => self.inode_block(ino).id,
        };
        (holder, BlockId { ino, lbn: Lbn(lbn as i64) })
    }

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
