//! Changing a file's length (`ffs_truncate`, `ffs_indirtrunc`).
//!
//! The inode goes to the disk with its pointers cleared before the blocks are free for others. A file's last byte is always in a
//! block, never in a hole: growing allocates it, and so does cutting a file inside a hole. Where 4.4BSD frees the last block
//! first, blocks are freed in order of the file here.

use super::{Body, Ffs, Piece, pointers};
use crate::format::{FragAddr, NDADDR};
use crate::planted::Bug;
use crate::policy::Discard;
use kernel::{Cx, Ino, Lbn};
use pointers::Pointer;
use posix::Errno;

impl Ffs {
    /// Sets the length. What is behind it is freed; a longer file ends in a block of its own, behind a hole.
    pub(super) fn set_length(&mut self, cx: &mut Cx, ino: Ino, length: u64) -> Result<(), Errno> {
        let size = self.node(ino)?.d.size;
        if length > size {
            self.end_in_block(cx, ino, length)?;
            self.node_mut(ino)?.d.size = length;
        } else if length < size {
            if length > 0 && self.pointer(ino, (length - 1) >> self.g.bshift)? == 0 {
                self.end_in_block(cx, ino, length)?;
            }
            self.shorten(cx, ino, length)?;
        }
        Ok(())
    }

    /// Allocates the last byte that a file is to have.
    fn end_in_block(&mut self, cx: &mut Cx, ino: Ino, length: u64) -> Result<(), Errno> {
        let old_size = self.node(ino)?.d.size;
        let lbn = (length - 1) >> self.g.bshift;
        let end = ((length - 1) & u64::from(self.g.bsize - 1)) as u32 + 1;
        let target = match self.block_for_writing(cx, ino, lbn, end) {
            Ok(target) => target,
            Err(error) => {
                self.shorten(cx, ino, old_size)?;
                return Err(error);
            }
        };
        let block = self.file_block(self.node(ino)?, ino, lbn, target.piece);
        if target.fresh {
            cx.make(&block);
            cx.zero(block.id, lbn << self.g.bshift, 0);
        } else {
            cx.change(&block);
        }
        Ok(())
    }

    /// Frees what is behind a length that is not above the file's.
    pub(super) fn shorten(&mut self, cx: &mut Cx, ino: Ino, length: u64) -> Result<(), Errno> {
        let old_size = self.node(ino)?.d.size;
        let bsize = u64::from(self.g.bsize);
        let keep = length.div_ceil(bsize);
        let last = length >> self.g.bshift;
        let within = (length & (bsize - 1)) as u32;
        let old_last = if within > 0 { self.piece(ino, last)? } else { None };
        let mut freed = self.cut_pointers(ino, old_size, keep)?;
        self.node_mut(ino)?.d.size = length;
        if let Some(old) = old_last {
            self.cut_last_block(cx, ino, last, within, old, &mut freed)?;
        }
        // Blocks that are given up are not written any more; the inode comes first.
        cx.forget_from(ino, Lbn(keep as i64));
        let gone = self.cut_indirects(cx, ino, keep)?;
        match self.planted {
            Some(Bug::FreeBeforeInode) => self.update(cx, ino),
            _ => self.update_in_order(cx, ino),
        }
        // What an indirect block points to is known from the block itself: one that is not in memory is read to be given up.
        for (number, addr) in gone {
            let block = self.indirect_block(ino, number, addr);
            cx.read(&block);
            cx.forget(block.id);
            freed.push(Piece { addr, bytes: self.g.bsize });
        }
        self.free_pieces(cx, ino, &freed);
        Ok(())
    }

    /// Gives back what a file has held. A group's block is touched once for each run of pieces in it.
    pub(super) fn free_pieces(&mut self, cx: &mut Cx, ino: Ino, pieces: &[Piece]) {
        let mut at = None;
        let mut frags_of_all = 0;
        let mut rest = pieces;
        while let [piece, ..] = rest {
            let (addr, frags) = (FragAddr(piece.addr.unsigned_abs()), piece.bytes >> self.g.fshift);
            let group = self.space.group_of(addr);
            if at != Some(group) {
                cx.change(&Ffs::group_block(&self.g, group));
                self.modified = true;
                at = Some(group);
            }
            let run =
                if frags == self.g.frag { self.space.run_in_group(rest.iter().map(|piece| piece.addr)) } else { 1 };
            let (now, later) = rest.split_at(run.min(rest.len()));
            // The last one of a run may be shorter.
            let whole = now.iter().take_while(|piece| piece.bytes == self.g.bsize).count();
            self.space.free_blocks(addr, whole as u32);
            for piece in now.iter().skip(whole) {
                self.space.free(FragAddr(piece.addr.unsigned_abs()), piece.bytes >> self.g.fshift);
            }
            if self.options.discard == Discard::Discard {
                let bytes = now.iter().map(|piece| u64::from(piece.bytes)).sum();
                cx.discard(self.pbn(addr), bytes);
            }
            frags_of_all += now.iter().map(|piece| i64::from(piece.bytes >> self.g.fshift)).sum::<i64>();
            rest = later;
        }
        cx.cpu(cx.costs().allocate_ns * pieces.len() as u64);
        self.charge(ino, -frags_of_all);
    }

    /// The block that the file ends in now: its end reads as zeros, and may be given up.
    fn cut_last_block(
        &mut self,
        cx: &mut Cx,
        ino: Ino,
        lbn: u64,
        within: u32,
        old: Piece,
        freed: &mut Vec<Piece>,
    ) -> Result<(), Errno> {
        let node = self.node(ino)?;
        let bytes = self.g.block_bytes(node.d.size, lbn);
        let block = self.file_block(node, ino, lbn, old);
        if matches!(node.body, Body::File) {
            cx.change(&block);
            cx.zero(block.id, (lbn << self.g.bshift) + u64::from(within), within);
        }
        if bytes < old.bytes {
            cx.resize(block.id, bytes);
            let addr = old.addr + Pointer::from(bytes >> self.g.fshift);
            freed.push(Piece { addr, bytes: old.bytes - bytes });
        }
        Ok(())
    }

    /// Clears the pointers to all data blocks from `keep` on, and lists the blocks.
    fn cut_pointers(&mut self, ino: Ino, size: u64, keep: u64) -> Result<Vec<Piece>, Errno> {
        let g = self.g;
        let node = self.node_mut(ino)?;
        let mut freed = Vec::new();
        for (lbn, place) in (0..).zip(node.d.db.iter_mut()).skip(keep.min(NDADDR as u64) as usize) {
            let addr = std::mem::take(place);
            if addr != 0 {
                // Blocks beyond the end are whole: they were allocated for a write that then failed.
                let bytes = match g.block_bytes(size, lbn) {
                    0 => g.bsize,
                    bytes => bytes,
                };
                freed.push(Piece { addr, bytes });
            }
        }
        let Some(indirects) = &mut node.indirects else { return Ok(freed) };
        let n = g.nindir();
        for (first, leaf) in indirects.leaves.range_mut(keep.saturating_sub(n - 1).max(NDADDR as u64)..) {
            let from = keep.saturating_sub(*first).min(leaf.pointers.len() as u64) as usize;
            let cut = leaf.pointers.drain(from..).filter(|addr| *addr != 0);
            freed.extend(cut.map(|addr| Piece { addr, bytes: g.bsize }));
        }
        Ok(freed)
    }

    /// Takes the indirect blocks that reach nothing below `keep` from the file, and lists them; the others that have lost pointers
    /// are written.
    fn cut_indirects(&mut self, cx: &mut Cx, ino: Ino, keep: u64) -> Result<Vec<(i64, Pointer)>, Errno> {
        let n = self.g.nindir();
        let node = self.node_mut(ino)?;
        let Some(indirects) = &mut node.indirects else { return Ok(Vec::new()) };
        let cut = indirects.leaves.split_off(&keep.max(NDADDR as u64));
        let mut gone: Vec<(i64, Pointer)> = Vec::new();
        let mut changed = Vec::new();
        indirects.upper.retain(|number, addr| {
            let first = pointers::of_number(*number, n).map_or(0, |(first, _)| first);
            if first >= keep {
                gone.push((*number, *addr));
            }
            first < keep
        });
        gone.extend(cut.iter().map(|(first, leaf)| (-(*first as i64), leaf.addr)));
        // On the way to the last block kept, pointers behind it are cleared.
        if let Some(way) = keep.checked_sub(1).and_then(|last| pointers::way(last, n)) {
            changed.extend(way.numbers.iter().take(way.slot + 1).map(|number| (*number, indirects.addr(*number, n))));
        }
        let empty = indirects.leaves.is_empty() && indirects.upper.is_empty();
        let mut first = NDADDR as u64;
        for (slot, place) in (1_u32..).zip(node.d.ib.iter_mut()) {
            if first >= keep {
                *place = 0;
            }
            first = first.saturating_add(n.saturating_pow(slot));
        }
        if empty {
            node.indirects = None;
        }
        for (number, addr) in changed.into_iter().filter(|(_, addr)| *addr != 0) {
            let block = self.indirect_block(ino, number, addr);
            cx.change(&block);
            self.in_order(cx, block.id);
        }
        Ok(gone)
    }
}
