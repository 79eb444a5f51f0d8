//! The block of a file that a write needs (`lfs_balloc`).
//!
//! Nothing is placed here: a new block is counted, and [`UNWRITTEN`](super::UNWRITTEN) until the segment writer comes.

use super::pointers::{self, Leaf, Pointer};
use super::{Lfs, UNWRITTEN};
use crate::format::NDADDR;
use kernel::{Block, BlockId, Cx, Ino, Lbn};
use posix::Errno;
use ufs::live::{Backing as _, Files as _, Piece, Target};

impl Lfs {
    /// Block `lbn`, with room for the first `end` bytes of it. What was there of it is in memory if it grew.
    pub(super) fn block_for_writing(&mut self, cx: &mut Cx, ino: Ino, lbn: u64, end: u32) -> Result<Target, Errno> {
        self.fill_last_fragment(cx, ino, lbn)?;
        if lbn < NDADDR as u64 { self.direct(cx, ino, lbn, end) } else { self.indirect(cx, ino, lbn) }
    }

    /// If the file ends in fragments before block `lbn`, these become a full block.
    fn fill_last_fragment(&mut self, cx: &mut Cx, ino: Ino, lbn: u64) -> Result<(), Errno> {
        let node = self.node(ino)?;
        let last = node.d.size >> self.g.bshift;
        let old = self.g.block_bytes(node.d.size, last);
        if last >= lbn || last >= NDADDR as u64 || old == 0 || old == self.g.bsize {
            return Ok(());
        }
        let Some(addr) = node.d.db.get(last as usize).copied().filter(|addr| *addr != 0) else { return Ok(()) };
        self.lengthen(cx, ino, last, addr, (old, self.g.bsize))?;
        self.node_mut(ino)?.d.size = (last + 1) << self.g.bshift;
        Ok(())
    }

    fn direct(&mut self, cx: &mut Cx, ino: Ino, lbn: u64, end: u32) -> Result<Target, Errno> {
        let node = self.node(ino)?;
        let (size, bsize) = (node.d.size, self.g.bsize);
        let addr = node.d.db.get(lbn as usize).copied().unwrap_or(0);
        let reaches = size >= (lbn + 1) << self.g.bshift;
        if addr != 0 && reaches {
            return Ok(Target { piece: Piece { addr, bytes: bsize }, fresh: false });
        }
        let wanted = if reaches { bsize } else { end.next_multiple_of(self.g.fsize) };
        if addr == 0 {
            cx.cpu(cx.costs().allocate_ns);
            let frags = wanted >> self.g.fshift;
            self.may_take(frags.into())?;
            self.charge(ino, frags.into());
            if let Some(place) = self.node_mut(ino)?.d.db.get_mut(lbn as usize) {
                *place = UNWRITTEN;
            }
            return Ok(Target { piece: Piece { addr: UNWRITTEN, bytes: wanted }, fresh: true });
        }
        let old = self.g.block_bytes(size, lbn);
        if wanted > old {
            self.lengthen(cx, ino, lbn, addr, (old, wanted))?;
        }
        Ok(Target { piece: Piece { addr, bytes: wanted.max(old) }, fresh: false })
    }

    /// Lengthens the fragments of a block, all of which is in memory and dirty afterwards.
    fn lengthen(
        &mut self,
        cx: &mut Cx,
        ino: Ino,
        lbn: u64,
        addr: Pointer,
        (old, new): (u32, u32),
    ) -> Result<(), Errno> {
        cx.cpu(cx.costs().allocate_ns);
        let more = (new - old) >> self.g.fshift;
        self.may_take(more.into())?;
        let block = self.file_block(self.node(ino)?, ino, lbn, Piece { addr, bytes: old });
        cx.read(&block);
        cx.resize(block.id, new);
        cx.dirty(block.id);
        self.charge(ino, more.into());
        self.changed(cx, ino);
        Ok(())
    }

    /// A block behind the direct ones. The indirect blocks on the way are in memory afterwards, and will be written
    /// with it.
    fn indirect(&mut self, cx: &mut Cx, ino: Ino, lbn: u64) -> Result<Target, Errno> {
        let n = u64::from(self.g.nindir);
        let way = pointers::way(lbn, n).ok_or(Errno::EFBIG)?;
        let addr = self.pointer(ino, lbn)?;
        let target = |addr, fresh| Target { piece: Piece { addr, bytes: self.g.bsize }, fresh };
        if addr != 0 {
            let target = target(addr, false);
            self.indirects_changed(cx, ino, lbn);
            return Ok(target);
        }
        let new = target(UNWRITTEN, true);
        cx.cpu(cx.costs().allocate_ns);
        let missing =
            way.numbers.iter().take(way.slot + 1).filter(|number| self.indirect_addr(ino, **number) == 0).count();
        let frags = u64::from(self.g.frag) * (missing as u64 + 1);
        self.may_take(frags)?;
        self.charge(ino, frags as i64);
        let mut made: Vec<Block> = Vec::new();
        for (level, number) in way.numbers.iter().copied().enumerate().take(way.slot + 1) {
            if self.indirect_addr(ino, number) != 0 {
                continue;
            }
            made.push(self.indirect_block(ino, number, UNWRITTEN));
            let node = self.node_mut(ino)?;
            let indirects = node.indirects.get_or_insert_default();
            if level == way.slot {
                indirects.leaves.insert(way.leaf, Leaf { addr: UNWRITTEN, pointers: Vec::new() });
            } else {
                indirects.upper.insert(number, UNWRITTEN);
            }
            if level == 0
                && let Some(place) = node.d.ib.get_mut(way.slot)
            {
                *place = UNWRITTEN;
            }
        }
        for block in &made {
            cx.make(block);
        }
        let indirects = self.node_mut(ino)?.indirects.get_or_insert_default();
        let leaf = indirects.leaves.get_mut(&way.leaf).ok_or(Errno::EIO)?;
        if way.index >= leaf.pointers.len() {
            leaf.pointers.resize(way.index + 1, 0);
        }
        if let Some(place) = leaf.pointers.get_mut(way.index) {
            *place = UNWRITTEN;
        }
        self.indirects_changed(cx, ino, lbn);
        Ok(new)
    }

    /// The indirect blocks above a block will be written with it.
    pub(crate) fn indirects_changed(&self, cx: &mut Cx, ino: Ino, lbn: u64) {
        let Some(way) = pointers::way(lbn, u64::from(self.g.nindir)) else { return };
        if cx.cache().is_dirty(BlockId { ino, lbn: Lbn(lbn as i64) }) {
            // They have been said to be when it became so; only the disk's way to it may have been cut since.
            let leaf = way.numbers.get(way.slot).copied().unwrap_or(0);
            if cx.cache().is_dirty(BlockId { ino, lbn: Lbn(leaf) }) {
                return;
            }
        }
        for number in way.numbers.iter().take(way.slot + 1) {
            cx.change(&self.indirect_block(ino, *number, self.indirect_addr(ino, *number)));
        }
    }

    /// The bytes that block `lbn` of a file has in memory.
    pub(crate) fn bytes_of_block(&self, ino: Ino, lbn: u64) -> Result<u32, Errno> {
        Ok(self.g.block_bytes(self.node(ino)?.d.size, lbn))
    }
}
