//! Moving a cluster into one piece before it is written (`ffs_reallocblks`; Smith and Seltzer, "A Comparison of FFS
//! Disk Allocation Policies", USENIX 1996).
//!
//! Blocks are allocated one at a time, before it is known how many will follow; but their writes are delayed. When a
//! cluster has gathered, all of it is known, and cheap to move. The kernel asks for that where a block does not lie
//! behind the one before it: first, therefore, when the *second* block of a file has been filled, and not at all for a
//! file of one block and some fragments.

use super::Clusters;
use crate::Ffs;
use crate::format::{FragAddr, NDADDR};
use crate::integrity::mode;
use crate::volume::pointers::Pointer;
use kernel::{Cx, Ino, Lbn};
use posix::Errno;
use ufs::live::{Backing as _, Files as _, Piece};

impl Ffs {
    /// Moves full blocks of a file, `blocks` of them from `first` on, whose writes are delayed, into one free cluster.
    /// Says whether they lie in one now.
    pub(crate) fn reallocate_cluster(&mut self, cx: &mut Cx, ino: Ino, first: Lbn, blocks: u32) -> bool {
        if self.options.clusters == Clusters::Original || self.g.contigsumsize == 0 || blocks == 0 {
            return false;
        }
        self.move_cluster(cx, ino, first, blocks).unwrap_or(false)
    }

    fn move_cluster(&mut self, cx: &mut Cx, ino: Ino, first: Lbn, blocks: u32) -> Result<bool, Errno> {
        let Ok(first) = u64::try_from(first.0) else { return Ok(false) };
        let mut old = std::mem::take(&mut self.moving);
        old.clear();
        let moved = self.full_blocks(ino, first, blocks, &mut old)? && self.move_blocks(cx, ino, first, &old)?;
        self.moving = old;
        Ok(moved)
    }

    /// Lists where full blocks of a file lie; `false` if one of them is a hole or shorter.
    fn full_blocks(&self, ino: Ino, first: u64, blocks: u32, list: &mut Vec<Pointer>) -> Result<bool, Errno> {
        let node = self.node(ino)?;
        let end = first + u64::from(blocks);
        let mut lbn = first;
        while lbn < end {
            let (pointers, index) = node.pointers_beside(lbn, self.g.nindir());
            let here = pointers.iter().skip(index).take((end - lbn) as usize);
            let before = list.len();
            list.extend(here);
            if list.len() == before {
                return Ok(false);
            }
            lbn += (list.len() - before) as u64;
        }
        // Of direct blocks, all before one that is full are full; others always are.
        let last = first.max((end - 1).min(NDADDR as u64 - 1));
        Ok(!list.contains(&0) && self.g.block_bytes(node.d.size, last) == self.g.bsize)
    }

    fn move_blocks(&mut self, cx: &mut Cx, ino: Ino, first: u64, old: &[Pointer]) -> Result<bool, Errno> {
        let (Some(head), Some(tail)) = (old.first(), old.last()) else { return Ok(false) };
        // If the file has gone on to another group, it is meant to.
        let group = |addr: Pointer| self.space.group_of(FragAddr(addr.unsigned_abs()));
        if group(*head) != group(*tail) {
            return Ok(false);
        }
        let preferred = self.data_preference(ino, first)?;
        cx.cpu(cx.costs().allocate_ns);
        let Ffs { g, space, .. } = self;
        let mut look = |group| {
            cx.read(&Ffs::group_block(g, group));
        };
        let Some(new) = space.allocate_cluster(preferred, old.len() as u32, &mut look) else { return Ok(false) };
        self.has_new_blocks(ino);
        mode!(self.taken(cx, new, old.len() as u32 * self.g.frag));
        self.group_changed(cx, self.space.group_of(new));
        let mut addr = new;
        for (lbn, was) in (first..).zip(old) {
            let block = self.file_block(self.node(ino)?, ino, lbn, Piece { addr: *was, bytes: self.g.bsize });
            cx.read(&block);
            self.set_pointer(cx, ino, lbn, addr.0 as Pointer)?;
            cx.relocate(block.id, self.pbn(addr));
            addr = addr.plus(self.g.frag.into());
        }
        // Old pointers may be on the disk; 4.4BSD does not wait here either.
        self.update(cx, ino);
        for (lbn, was) in (first..).zip(old) {
            mode!(self.moved(cx, ino, lbn, FragAddr(was.unsigned_abs()), self.g.frag));
        }
        if !mode!(self.frees_later()) {
            self.free_blocks(cx, old);
        }
        let (mut addr, bytes) = (new, self.g.bsize);
        for (lbn, was) in (first..).zip(old) {
            let (was, now) = (Piece { addr: *was, bytes }, Piece { addr: addr.0 as Pointer, bytes });
            mode!(self.placed(cx, ino, lbn, was, now));
            addr = addr.plus(self.g.frag.into());
        }
        Ok(true)
    }
}
