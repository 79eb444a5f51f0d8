//! The block of a file that a write needs: found, lengthened or allocated (`ffs_balloc`, `ffs_realloccg`).

use super::inodes::{Body, Node};
use super::{Ffs, pointers};
use crate::format::{FragAddr, NDADDR};
use crate::integrity::mode;
use crate::policy::blkpref::{Role, Wanted, block_preference};
use kernel::{BlockId, Cx, Ino, Lbn};
use pointers::Pointer;
use posix::Errno;
use ufs::live::{Backing as _, Files as _, Piece, Target};

impl Role {
    /// Of a block of what an inode holds.
    fn of(node: &Node) -> Role {
        if matches!(node.body, Body::Directory(_)) { Role::Directory } else { Role::Data }
    }
}

impl Ffs {
    /// Block `lbn`, with room for the first `end` bytes of it. What was there of it is in memory if it moved or grew.
    pub(super) fn block_for_writing(&mut self, cx: &mut Cx, ino: Ino, lbn: u64, end: u32) -> Result<Target, Errno> {
        let last = self.node(ino)?.d.size >> self.g.bshift;
        if last < lbn.min(NDADDR as u64) {
            self.fill_last_fragment(cx, ino, last)?;
        }
        if lbn < NDADDR as u64 { self.direct(cx, ino, lbn, end) } else { self.indirect(cx, ino, lbn) }
    }

    /// If the file ends in fragments, in its block `last`, these become a full block.
    fn fill_last_fragment(&mut self, cx: &mut Cx, ino: Ino, last: u64) -> Result<(), Errno> {
        let node = self.node(ino)?;
        let old = self.g.block_bytes(node.d.size, last);
        let addr = node.d.db.get(last as usize).copied().unwrap_or(0);
        if old == 0 || old == self.g.bsize || addr == 0 {
            return Ok(());
        }
        let moved = self.reallocate_fragment(cx, ino, last, old, self.g.bsize)?;
        let full = (last + 1) << self.g.bshift;
        let node = self.node_mut(ino)?;
        if let Some(place) = node.d.db.get_mut(last as usize) {
            *place = moved.addr;
        }
        mode!(self.placed(cx, ino, last, Piece { addr, bytes: old }, moved));
        let node = self.node_mut(ino)?;
        node.d.size = full;
        cx.dirty(BlockId { ino, lbn: Lbn(last as i64) });
        Ok(())
    }

    fn direct(&mut self, cx: &mut Cx, ino: Ino, lbn: u64, end: u32) -> Result<Target, Errno> {
        let node = self.node(ino)?;
        let (size, addr) = (node.d.size, node.d.db.get(lbn as usize).copied().unwrap_or(0));
        let (bsize, reaches) = (self.g.bsize, size >= (lbn + 1) << self.g.bshift);
        if addr != 0 && reaches {
            return Ok(Target { piece: Piece { addr, bytes: bsize }, fresh: false });
        }
        let wanted = if reaches { bsize } else { end.next_multiple_of(self.g.fsize) };
        let mut was = Piece { addr, bytes: 0 };
        let (piece, fresh) = if addr != 0 {
            let old = self.g.block_bytes(size, lbn);
            was.bytes = old;
            if wanted <= old {
                return Ok(Target { piece: Piece { addr, bytes: old }, fresh: false });
            }
            (self.reallocate_fragment(cx, ino, lbn, old, wanted)?, false)
        } else {
            let smart = self.smart_block(node, lbn);
            let preferred = self.preference(ino, node, lbn, Role::of(node), lbn as usize, &node.d.db);
            let addr = self.allocate(cx, ino, preferred, wanted >> self.g.fshift, smart)?;
            (Piece { addr, bytes: wanted }, true)
        };
        if let Some(place) = self.node_mut(ino)?.d.db.get_mut(lbn as usize) {
            *place = piece.addr;
        }
        mode!(self.placed(cx, ino, lbn, was, piece));
        Ok(Target { piece, fresh })
    }

    /// A block behind the direct ones; the indirect blocks on the way are made first. If there is no room for all of
    /// them, none stays.
    fn indirect(&mut self, cx: &mut Cx, ino: Ino, lbn: u64) -> Result<Target, Errno> {
        let n = self.g.nindir();
        let way = pointers::way(lbn, n).ok_or(Errno::EFBIG)?;
        let mut made = Vec::new();
        for (level, number) in way.numbers.iter().copied().enumerate().take(way.slot + 1) {
            let addr = self.node(ino)?.indirects.as_ref().map_or(0, |indirects| match level == way.slot {
                true => indirects.leaves.get(&way.leaf).map_or(0, |leaf| leaf.addr),
                false => indirects.upper.get(&number).copied().unwrap_or(0),
            });
            if addr != 0 {
                cx.read(&self.indirect_block(ino, number, addr));
                continue;
            }
            let wanted = self.indirect_preference(ino, lbn, number == -(NDADDR as i64))?;
            match self.allocate(cx, ino, wanted, self.g.frag, None) {
                Ok(addr) => {
                    made.push((number, addr));
                    self.add_indirect(cx, ino, &way, level, addr)?;
                }
                Err(error) => {
                    self.unmake_indirects(cx, ino, &made);
                    return Err(error);
                }
            }
        }
        let node = self.node(ino)?;
        let beside = node.pointers_of_leaf(way.leaf);
        if let Some(addr) = beside.get(way.index).copied().filter(|addr| *addr != 0) {
            return Ok(Target { piece: Piece { addr, bytes: self.g.bsize }, fresh: false });
        }
        let preferred = self.preference(ino, node, lbn, Role::of(node), way.index, beside);
        let addr = match self.allocate(cx, ino, preferred, self.g.frag, None) {
            Ok(addr) => addr,
            Err(error) => {
                self.unmake_indirects(cx, ino, &made);
                return Err(error);
            }
        };
        self.set_indirect_pointer(cx, ino, &way, addr)?;
        let piece = Piece { addr, bytes: self.g.bsize };
        mode!(self.placed(cx, ino, lbn, Piece { addr: 0, bytes: 0 }, piece));
        Ok(Target { piece, fresh: true })
    }

    /// Enters a new indirect block; it is on the disk before anything points to it.
    fn add_indirect(
        &mut self,
        cx: &mut Cx,
        ino: Ino,
        way: &pointers::Way,
        level: usize,
        addr: Pointer,
    ) -> Result<(), Errno> {
        let number = way.numbers.get(level).copied().unwrap_or(0);
        let block = self.indirect_block(ino, number, addr);
        cx.make(&block);
        let node = self.node_mut(ino)?;
        let indirects = node.indirects.get_or_insert_default();
        if level == way.slot {
            indirects.leaves.insert(way.leaf, pointers::Leaf { addr, pointers: Vec::new() });
        } else {
            indirects.upper.insert(number, addr);
        }
        if level == 0 {
            if let Some(place) = node.d.ib.get_mut(way.slot) {
                *place = addr;
            }
        } else if let Some(above) = way.numbers.get(level - 1) {
            cx.dirty(BlockId { ino, lbn: Lbn(*above) });
        }
        mode!(self.indirect_made(cx, block.id));
        Ok(())
    }

    fn unmake_indirects(&mut self, cx: &mut Cx, ino: Ino, made: &[(i64, Pointer)]) {
        let n = self.g.nindir();
        for (number, addr) in made {
            let block = BlockId { ino, lbn: Lbn(*number) };
            cx.forget(block);
            mode!(self.indirect_unmade(cx, block));
            if let Some(node) = self.inodes.get_mut(ino.0)
                && let Some(indirects) = &mut node.indirects
            {
                match pointers::of_number(*number, n) {
                    Some((first, 0)) => drop(indirects.leaves.remove(&first)),
                    _ => drop(indirects.upper.remove(number)),
                }
                for place in &mut node.d.ib {
                    if *place == *addr {
                        *place = 0;
                    }
                }
            }
            self.free(cx, *addr, self.g.frag);
            self.charge(ino, -i64::from(self.g.frag));
        }
    }

    /// Lengthens the fragments of block `lbn`, all of which is in memory afterwards (`ffs_realloccg`).
    fn reallocate_fragment(&mut self, cx: &mut Cx, ino: Ino, lbn: u64, old: u32, new: u32) -> Result<Piece, Errno> {
        cx.cpu(cx.costs().allocate_ns);
        if !self.may_take() {
            return Err(Errno::ENOSPC);
        }
        self.has_new_blocks(ino);
        let node = self.node(ino)?;
        let addr = node.d.db.get(lbn as usize).copied().unwrap_or(0);
        let block = self.file_block(node, ino, lbn, Piece { addr, bytes: old });
        let smart = self.smart_block(node, lbn);
        cx.read(&block);
        let (old_frags, new_frags) = (old >> self.g.fshift, new >> self.g.fshift);
        let here = FragAddr(addr.unsigned_abs());
        let (g, group) = (self.g, self.g.group_of(here));
        let mut look = |group| {
            cx.read(&Ffs::group_block(&g, group));
        };
        if self.space.extend(here, old_frags, new_frags, &mut look) {
            mode!(self.taken(cx, here.plus(old_frags.into()), new_frags - old_frags));
            self.group_changed(cx, group);
            self.charge(ino, i64::from(new_frags - old_frags));
            cx.resize(block.id, new);
            return Ok(Piece { addr, bytes: new });
        }
        let preferred = self.data_preference(ino, lbn)?;
        let smart = smart.filter(|_| new_frags < self.g.frag);
        let broken = smart.filter(|to_break| {
            let mut look = |group| {
                cx.read(&Ffs::group_block(&g, group));
            };
            self.space.break_block(*to_break, new_frags, &mut look)
        });
        let moved = match broken {
            Some(moved) => {
                mode!(self.taken(cx, moved, new_frags));
                self.group_changed(cx, g.group_of(moved));
                moved
            }
            None => {
                let asked = self.optim.request(&self.tuning, &self.space.total, new_frags, self.g.frag);
                let moved = self.find_space(cx, group, preferred, asked, None).ok_or(Errno::ENOSPC)?;
                if asked > new_frags {
                    self.free(cx, moved.plus(new_frags.into()).0 as Pointer, asked - new_frags);
                }
                moved
            }
        };
        if !mode!(self.frees_later()) {
            self.free(cx, addr, old_frags);
        }
        self.charge(ino, i64::from(new_frags) - i64::from(old_frags));
        cx.resize(block.id, new);
        cx.relocate(block.id, self.pbn(moved));
        mode!(self.moved(cx, ino, lbn, here, old_frags));
        Ok(Piece { addr: moved.0 as Pointer, bytes: new })
    }

    // ---- preferences and pointers

    /// Where a block of data should go.
    pub(crate) fn data_preference(&self, ino: Ino, lbn: u64) -> Result<FragAddr, Errno> {
        let node = self.node(ino)?;
        let (pointers, index) = node.pointers_beside(lbn, self.g.nindir());
        Ok(self.preference(ino, node, lbn, Role::of(node), index, pointers))
    }

    /// Where an indirect block should go that is needed for block `lbn`.
    fn indirect_preference(&self, ino: Ino, lbn: u64, first: bool) -> Result<FragAddr, Errno> {
        let role = if first { Role::FirstIndirect } else { Role::Indirect };
        Ok(self.preference(ino, self.node(ino)?, lbn, role, 0, &[]))
    }

    fn preference(&self, ino: Ino, node: &Node, lbn: u64, role: Role, index: usize, pointers: &[Pointer]) -> FragAddr {
        let wanted = Wanted {
            inode_group: self.inode_group(ino),
            lbn,
            role,
            index,
            pointers,
            last_direct: node.d.db.last().copied().unwrap_or(0),
            first_indirect: node.d.ib.first().copied().unwrap_or(0),
        };
        block_preference(&self.space, &self.tuning, self.options.switch, &wanted)
    }

    /// Makes a pointer lead to a block. The indirect block that it is in is changed, not written.
    pub(crate) fn set_pointer(&mut self, cx: &mut Cx, ino: Ino, lbn: u64, addr: Pointer) -> Result<(), Errno> {
        if let Some(way) = pointers::way(lbn, self.g.nindir()) {
            return self.set_indirect_pointer(cx, ino, &way, addr);
        }
        if let Some(place) = self.node_mut(ino)?.d.db.get_mut(lbn as usize) {
            *place = addr;
        }
        Ok(())
    }

    fn set_indirect_pointer(&mut self, cx: &mut Cx, ino: Ino, way: &pointers::Way, addr: Pointer) -> Result<(), Errno> {
        let indirects = self.node_mut(ino)?.indirects.as_mut();
        let leaf = indirects.and_then(|indirects| indirects.leaves.get_mut(&way.leaf)).ok_or(Errno::EIO)?;
        if way.index >= leaf.pointers.len() {
            leaf.pointers.resize(way.index + 1, 0);
        }
        if let Some(place) = leaf.pointers.get_mut(way.index) {
            *place = addr;
        }
        let leaf_addr = leaf.addr;
        let number = -(way.leaf as i64);
        cx.change(&self.indirect_block(ino, number, leaf_addr));
        Ok(())
    }
}
