//! Moving a cluster into one piece before it is written (`ffs_reallocblks`; Smith and Seltzer, "A Comparison of FFS Disk
//! Allocation Policies", USENIX 1996).
//!
//! Blocks are allocated one at a time, before it is known how many will follow; but their writes are delayed. When a cluster
//! has gathered, all of it is known, and cheap to move. The kernel asks for that where a block does not lie behind the one
//! before it: first, therefore, when the *second* block of a file has been filled, and not at all for a file of one
//! block and some fragments.

use super::Clusters;
use crate::Ffs;
use crate::format::FragAddr;
use crate::volume::pointers;
use kernel::{Cx, Ino, Lbn};
use posix::Errno;

impl Ffs {
    /// Moves full blocks of a file, `blocks` of them from `first` on, whose writes are delayed, into one free cluster. Says
    /// whether they lie in one now.
    pub(crate) fn reallocate_cluster(&mut self, cx: &mut Cx, ino: Ino, first: Lbn, blocks: u32) -> bool {
        if self.options.clusters == Clusters::Original || self.g.contigsumsize == 0 || blocks == 0 {
            return false;
        }
        self.move_cluster(cx, ino, first, blocks).unwrap_or(false)
    }

    fn move_cluster(&mut self, cx: &mut Cx, ino: Ino, first: Lbn, blocks: u32) -> Result<bool, Errno> {
        let Ok(first) = u64::try_from(first.0) else { return Ok(false) };
        let mut old = Vec::with_capacity(blocks as usize);
        for lbn in first..first + u64::from(blocks) {
            match self.piece(ino, lbn)? {
                Some(piece) if piece.bytes == self.g.bsize => old.push((lbn, piece)),
                _ => return Ok(false),
            }
        }
        let (Some((_, head)), Some((_, tail))) = (old.first(), old.last()) else { return Ok(false) };
        // If the file has gone on to another group, it is meant to.
        let group = |addr: pointers::Pointer| self.g.group_of(FragAddr(addr.unsigned_abs()));
        if group(head.addr) != group(tail.addr) {
            return Ok(false);
        }
        let preferred = self.data_preference(ino, first)?;
        cx.cpu(cx.costs().allocate_ns);
        let g = self.g;
        let mut look = |group| {
            cx.read(&Ffs::group_block(&g, group));
        };
        let Some(new) = self.space.allocate_cluster(preferred, blocks, &mut look) else { return Ok(false) };
        self.group_changed(cx, self.space.group_of(new));
        let mut addr = new;
        for (lbn, piece) in &old {
            let block = self.file_block(self.node(ino)?, ino, *lbn, *piece);
            cx.read(&block);
            self.set_pointer(cx, ino, *lbn, addr.0 as pointers::Pointer)?;
            cx.relocate(block.id, self.pbn(addr));
            addr = addr.plus(g.frag.into());
        }
        // Old pointers may be on the disk: their blocks are as good as unwritten, and 4.4BSD does not wait here either.
        self.update(cx, ino);
        for (_, piece) in old {
            self.free(cx, piece.addr, g.frag);
        }
        Ok(true)
    }
}
