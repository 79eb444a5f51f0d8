//! Changing a file's length (`lfs_truncate`).
//!
//! Blocks are free at once in memory. On the disk the file has them until its inode is written again; the segments they
//! are in are not written before that (see `checkpoint`). A file's last byte is always in a block, never in a hole.

use super::{Body, Lfs, UNWRITTEN, pointers};
use crate::format::{FragAddr, NDADDR};
use kernel::{BlockId, Cx, Ino, Lbn};
use posix::Errno;

impl Lfs {
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
        self.changed(cx, ino);
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
        let block = self.file_block(self.node(ino)?, ino, lbn, target.addr, target.bytes);
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
        self.cut_pointers(cx, ino, old_size, keep)?;
        let old_bytes = if within > 0 { self.bytes_of_block(ino, last)? } else { 0 };
        self.node_mut(ino)?.d.size = length;
        if within > 0 {
            self.cut_last_block(cx, ino, last, within, old_bytes)?;
        }
        cx.forget_from(ino, Lbn(keep as i64));
        self.cut_indirects(cx, ino, keep)?;
        self.changed(cx, ino);
        Ok(())
    }

    /// The block that the file ends in now: its end reads as zeros, and it may need fewer fragments.
    fn cut_last_block(&mut self, cx: &mut Cx, ino: Ino, lbn: u64, within: u32, old_bytes: u32) -> Result<(), Errno> {
        let addr = self.pointer(ino, lbn)?;
        if addr == 0 {
            return Ok(());
        }
        let bytes = self.bytes_of_block(ino, lbn)?;
        let node = self.node(ino)?;
        let block = self.file_block(node, ino, lbn, addr, old_bytes);
        let data = matches!(node.body, Body::File);
        self.indirects_changed(cx, ino, lbn);
        cx.change(&block);
        if data {
            cx.zero(block.id, (lbn << self.g.bshift) + u64::from(within), within);
        }
        if bytes < old_bytes {
            cx.resize(block.id, bytes);
            self.charge(ino, -i64::from((old_bytes - bytes) >> self.g.fshift));
        }
        Ok(())
    }

    /// Clears the pointers to all data blocks from `keep` on, and gives the blocks up.
    fn cut_pointers(&mut self, cx: &mut Cx, ino: Ino, size: u64, keep: u64) -> Result<(), Errno> {
        let g = self.g;
        let mut on_disk = std::mem::take(&mut self.freed);
        let node = self.node_mut(ino)?;
        let mut frags = 0;
        let direct = (0..).zip(node.d.db.iter_mut().zip(node.frags.iter_mut()));
        for (lbn, (place, placed)) in direct.skip(keep.min(NDADDR as u64) as usize) {
            let (addr, placed) = (std::mem::take(place), std::mem::take(placed));
            if addr != 0 {
                // Blocks beyond the end are whole: they were allocated for a write that then failed.
                frags += match g.block_bytes(size, lbn) >> g.fshift {
                    0 => g.frag,
                    frags => frags,
                };
                on_disk.push((addr, u32::from(placed) << g.fshift));
            }
        }
        if let Some(indirects) = &mut node.indirects {
            let n = u64::from(g.nindir);
            for (first, leaf) in indirects.leaves.range_mut(keep.saturating_sub(n - 1).max(NDADDR as u64)..) {
                let from = keep.saturating_sub(*first).min(leaf.pointers.len() as u64) as usize;
                for addr in leaf.pointers.drain(from..).filter(|addr| *addr != 0) {
                    frags += g.frag;
                    on_disk.push((addr, g.bsize));
                }
            }
        }
        // Blocks that follow one another in a segment are taken off its count together (`SEGDEC` of 4.4BSD).
        let (mut last, mut runs) = (None, 0);
        for (addr, bytes) in on_disk.drain(..) {
            let segment = u32::try_from(addr).ok().and_then(|addr| g.segment_of(FragAddr(addr)));
            if last != Some(segment) {
                (last, runs) = (Some(segment), runs + 1);
            }
            self.left(addr, bytes);
        }
        self.freed = on_disk;
        self.charge(ino, -i64::from(frags));
        cx.cpu(cx.costs().allocate_ns * runs);
        Ok(())
    }

    /// Gives up the indirect blocks that reach nothing below `keep`; the others that have lost pointers are changed.
    fn cut_indirects(&mut self, cx: &mut Cx, ino: Ino, keep: u64) -> Result<(), Errno> {
        let (n, bsize, frag) = (u64::from(self.g.nindir), self.g.bsize, i64::from(self.g.frag));
        let node = self.node_mut(ino)?;
        let Some(indirects) = &mut node.indirects else { return Ok(()) };
        let cut = indirects.leaves.split_off(&keep.max(NDADDR as u64));
        let mut gone: Vec<(i64, i64)> = cut.iter().map(|(first, leaf)| (-(*first as i64), leaf.addr)).collect();
        indirects.upper.retain(|number, addr| {
            let first = pointers::of_number(*number, n).map_or(0, |(first, _)| first);
            if first >= keep {
                gone.push((*number, *addr));
            }
            first < keep
        });
        // On the way to the last block kept, pointers behind it are cleared.
        let mut changed = Vec::new();
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
        // What an indirect block points to is known from the block itself: one that is not in memory is read to be given up.
        for (number, addr) in gone {
            if addr > 0 {
                cx.read(&self.indirect_block(ino, number, addr));
            }
            cx.forget(BlockId { ino, lbn: Lbn(number) });
            self.left(addr, bsize);
            self.charge(ino, -frag);
        }
        for (number, addr) in changed.into_iter().filter(|(_, addr)| *addr != 0) {
            debug_assert!(addr != UNWRITTEN || cx.cache().contains(BlockId { ino, lbn: Lbn(number) }));
            cx.change(&self.indirect_block(ino, number, addr));
        }
        Ok(())
    }
}
