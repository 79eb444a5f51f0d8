//! Reading ahead, as 4.4BSD does (`cluster_read` in `vfs_cluster.c`).
//!
//! A read is in sequence if the file's read before was of this block or the one before it. That is all it takes: 8 KB
//! read at a random place of a file with 4 KB blocks are two blocks in sequence, and start reading ahead (the quirk
//! that Seltzer et al., USENIX 1995, measured). The window starts at one block, doubles while reads go on in sequence,
//! and halves when what was read ahead has left memory before it was used.

use crate::cx::ReadAhead;
use crate::nodes::Reading;
use crate::{Block, BlockId, Cx, Ino, Lbn, Mapped, Volume};
use posix::Errno;

/// Has a block of a file in memory, and starts reading those that will be asked for. Says whether there was a block,
/// not a hole.
pub(crate) fn read<V: Volume>(volume: &mut V, cx: &mut Cx, ino: Ino, lbn: Lbn, size_bytes: u64) -> Result<bool, Errno> {
    let reader = Reader { ino, block_bytes: volume.block_bytes(), size_bytes };
    let mut state = cx.nodes.get(ino).map_or_else(Reading::default, |node| node.reading);
    let random = cx.nodes.get(ino).is_some_and(|node| node.random);
    let policy = if random { ReadAhead::None } else { cx.transfers.read_ahead };
    // The last block, which may be fragments, is read alone.
    let last = !reader.is_full(lbn.plus(1)) && (lbn.0 + 1) as u64 * u64::from(reader.block_bytes) >= size_bytes;
    let found = match policy {
        _ if last => reader.read_one(volume, cx, lbn),
        ReadAhead::None => reader.read_one(volume, cx, lbn),
        ReadAhead::Block => reader.read_and_next(volume, cx, lbn, &state),
        ReadAhead::Cluster => reader.read_cluster(volume, cx, lbn, &mut state),
    };
    state.last = lbn;
    if let Some(node) = cx.nodes.get_mut(ino) {
        node.reading = state;
    }
    found
}

struct Reader {
    ino: Ino,
    block_bytes: u32,
    size_bytes: u64,
}

impl Reader {
    fn id(&self, lbn: Lbn) -> BlockId {
        BlockId { ino: self.ino, lbn }
    }

    /// Whether a block lies wholly within the file.
    fn is_full(&self, lbn: Lbn) -> bool {
        (lbn.0 + 1) as u64 * u64::from(self.block_bytes) <= self.size_bytes
    }

    fn block(&self, lbn: Lbn, mapped: &Mapped) -> Block {
        Block::data(self.ino, lbn, mapped.pbn, mapped.bytes)
    }

    fn read_one<V: Volume>(&self, volume: &mut V, cx: &mut Cx, lbn: Lbn) -> Result<bool, Errno> {
        if cx.cache.contains(self.id(lbn)) {
            // It has been mapped when it came in.
            return Ok(cx.read(&Block::data(self.ino, lbn, crate::Pbn(0), 0)));
        }
        match volume.map(cx, self.ino, lbn, 0)? {
            None => Ok(false),
            Some(mapped) => {
                cx.read(&self.block(lbn, &mapped));
                Ok(true)
            }
        }
    }

    /// `breadn`: the block, and the next one if the one before was read last.
    fn read_and_next<V: Volume>(&self, volume: &mut V, cx: &mut Cx, lbn: Lbn, state: &Reading) -> Result<bool, Errno> {
        let found = self.read_one(volume, cx, lbn)?;
        let next = lbn.plus(1);
        if lbn.0 > 0
            && state.last == Lbn(lbn.0 - 1)
            && !cx.cache.contains(self.id(next))
            && let Some(mapped) = volume.map(cx, self.ino, next, 0)?
        {
            cx.read_run(&self.block(next, &mapped), 1, false);
        }
        Ok(found)
    }

    /// `cluster_read`.
    fn read_cluster<V: Volume>(
        &self,
        volume: &mut V,
        cx: &mut Cx,
        lbn: Lbn,
        state: &mut Reading,
    ) -> Result<bool, Errno> {
        let here = cx.cache.contains(self.id(lbn));
        if here {
            cx.read(&Block::data(self.ino, lbn, crate::Pbn(0), 0));
        }
        let in_sequence = lbn.0 != 0 && (lbn == state.last.plus(1) || lbn == state.last);
        if !in_sequence {
            state.window_blocks = 0;
            state.ahead_to = lbn;
            return if here { Ok(true) } else { self.read_one(volume, cx, lbn) };
        }
        // What to read next: this block, or the one a window ahead of it.
        let wanted = if here { lbn.plus(state.window_blocks.max(1)) } else { lbn };
        if !self.is_full(wanted) || (here && cx.cache.contains(self.id(wanted))) {
            return if here { Ok(true) } else { self.read_one(volume, cx, lbn) };
        }
        let most = (cx.transfers.largest_bytes / self.block_bytes).saturating_sub(1);
        let Some(mapped) = volume.map(cx, self.ino, wanted, most)? else { return Ok(here) };
        let ahead = self.adapt(state, lbn, wanted, mapped.ahead);
        let run = self.clip(wanted, ahead + 1);
        let read = cx.read_run(&self.block(wanted, &mapped), run, !here);
        state.ahead_to = Lbn(wanted.0 + i64::from(read) - 1);
        if here || ahead > 0 {
            return Ok(true);
        }
        // This block has no neighbour: one request for it, and one for what comes after it.
        let next = lbn.plus(1);
        if self.is_full(next)
            && !cx.cache.contains(self.id(next))
            && let Some(mapped) = volume.map(cx, self.ino, next, most)?
        {
            let ahead = self.adapt(state, lbn, next, mapped.ahead);
            let read = cx.read_run(&self.block(next, &mapped), self.clip(next, ahead + 1), false);
            state.ahead_to = Lbn(next.0 + i64::from(read) - 1);
        }
        Ok(true)
    }

    /// Makes the window smaller if what was read ahead has been lost, larger if there is more to read; returns how many
    /// blocks behind the wanted one to read with it.
    fn adapt(&self, state: &mut Reading, lbn: Lbn, wanted: Lbn, contiguous: u32) -> u32 {
        if contiguous == 0 {
            return 0;
        }
        let window = state.window_blocks;
        if wanted <= state.ahead_to {
            state.window_blocks = (window / 2).max(1);
        } else if contiguous > window && lbn != state.last {
            state.window_blocks = if window == 0 { 1 } else { (window * 2).min(contiguous) };
        }
        contiguous.min(state.window_blocks)
    }

    /// How many of `run` blocks lie wholly within the file.
    fn clip(&self, first: Lbn, run: u32) -> u32 {
        let full = (self.size_bytes / u64::from(self.block_bytes)) as i64;
        run.min(u32::try_from((full - first.0).max(0)).unwrap_or(u32::MAX))
    }
}
