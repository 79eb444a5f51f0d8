//! Pointers and space: what a new pointer waits for, and when what was given up is free.

use super::deps::Work;
use super::record::{Key, Keys, Kind, Placed};
use crate::Ffs;
use crate::format::{FragAddr, NDADDR};
use crate::planted::Bug;
use crate::volume::pointers::{of_number, way};
use kernel::{Block, BlockId, Cx, Ino, Lbn};
use ufs::live::{CutIndirects, Files as _, Freed, Piece};

/// Where the pointer to a block is: the indirect block, if it is in one, and its place.
pub(super) fn place_of(ino: Ino, lbn: u64, n: u64) -> Option<(Option<BlockId>, usize)> {
    if lbn < NDADDR as u64 {
        return Some((None, lbn as usize));
    }
    let way = way(lbn, n)?;
    Some((Some(BlockId { ino, lbn: Lbn(-(way.leaf as i64)) }), way.index))
}

/// The place in an indirect block of the pointer to another one.
pub(super) fn index_in(above: i64, below: i64, n: u64) -> usize {
    let (Some((first, level)), Some((reached, _))) = (of_number(above, n), of_number(below, n)) else { return 0 };
    (reached.saturating_sub(first) / n.saturating_pow(level).max(1)) as usize
}

/// Where the pointer to an indirect block is.
fn place_of_indirect(block: BlockId, n: u64) -> Option<(Option<BlockId>, usize)> {
    let (first, _) = of_number(block.lbn.0, n)?;
    let way = way(first, n)?;
    let level = way.numbers.iter().take(way.slot + 1).position(|number| *number == block.lbn.0)?;
    let Some(above) = level.checked_sub(1) else { return Some((None, NDADDR + way.slot)) };
    let above = way.numbers.get(above)?;
    Some((Some(BlockId { lbn: Lbn(*above), ..block }), index_in(*above, block.lbn.0, n)))
}

impl Ffs {
    fn map_key(&self, addr: FragAddr) -> Key {
        Key::Block(Ffs::group_block(&self.g, self.space.group_of(addr)).id)
    }

    /// What a new pointer waits for: the map of its group, and what it leads to.
    fn pointer_keys(&self, addr: i64, target: BlockId) -> Keys {
        let mut keys = Keys::new();
        if self.planted != Some(Bug::SoftMapLate) {
            keys.push(self.map_key(FragAddr(addr.unsigned_abs())));
        }
        if target.lbn.0 < 0 || self.planted != Some(Bug::SoftDataLate) {
            keys.push(Key::Block(target));
        }
        keys
    }

    pub(super) fn soft_inode_taken(&mut self, ino: Ino) {
        let group = Ffs::group_block(&self.g, self.inode_group(ino)).id;
        let keys = [Key::Block(group)];
        let keys: &[Key] = if self.planted == Some(Bug::SoftMapLate) { &[] } else { &keys };
        let number = self.soft.add(Kind::NewInode(ino.0), keys);
        self.soft.inodes.make(ino.0).new = Some(number);
    }

    /// A symbolic link has its target in a block: its inode is on the disk with the pointer to that, or not at all.
    pub(super) fn soft_target_made(&mut self, block: BlockId) {
        let Some(new) = self.soft.inodes.get(block.ino.0).and_then(|dep| dep.new) else { return };
        let addr = self.pointer(block.ino, 0).unwrap_or(0);
        let keys = self.pointer_keys(addr, block);
        self.soft.wait(new, &keys);
    }

    /// A pointer to data leads elsewhere.
    pub(super) fn soft_placed(&mut self, cx: &mut Cx, ino: Ino, lbn: u64, was: Piece, now: Piece) {
        let Some((holder, index)) = place_of(ino, lbn, self.g.nindir()) else { return };
        let target = BlockId { ino, lbn: Lbn(lbn as i64) };
        let size = self.inodes.get(ino.0).map_or(0, |node| node.d.size);
        let old_size = size.min((lbn << self.g.bshift) + u64::from(was.bytes));
        self.pointer_set(cx, (ino, holder, index), target, (was, now), old_size);
    }

    /// A new indirect block has a pointer to it.
    pub(super) fn soft_indirect_made(&mut self, cx: &mut Cx, block: BlockId) {
        let n = self.g.nindir();
        let Some((holder, index)) = place_of_indirect(block, n) else { return };
        let now = Piece { addr: self.indirect_addr(block.ino, block.lbn.0), bytes: self.g.bsize };
        self.note_placed(block.ino, block.lbn.0, Piece { addr: 0, bytes: 0 }, now);
        self.pointer_set(cx, (block.ino, holder, index), block, (Piece { addr: 0, bytes: 0 }, now), 0);
    }

    pub(super) fn soft_indirect_unmade(&mut self, block: BlockId) {
        let Some((holder, index)) = place_of_indirect(block, self.g.nindir()) else { return };
        if let Some(number) = self.soft.pointer(block.ino.0, holder, index) {
            self.cancel(number);
        }
    }

    fn pointer_set(
        &mut self,
        cx: &mut Cx,
        (ino, holder, index): (Ino, Option<BlockId>, usize),
        target: BlockId,
        (was, now): (Piece, Piece),
        old_size: u64,
    ) {
        let keys = self.pointer_keys(now.addr, target);
        let moved = was.addr != 0 && was.addr != now.addr;
        let freed = || Freed { lbn: target.lbn.0, addr: was.addr, bytes: was.bytes };
        let before = self.soft.pointer(ino.0, holder, index);
        if let Some(before) = before.filter(|before| self.soft.is_held(*before)) {
            // What it was meant to lead to until now never was on the disk, but for what it has grown from.
            self.soft.wait_no_more(before);
            let mut kept = 0;
            if let Some(placed) = self.soft.placed_mut(before) {
                placed.now = now;
                if moved && placed.was.addr == was.addr {
                    kept = placed.was.bytes.min(was.bytes);
                    placed.freed.push(Freed { bytes: kept, ..freed() });
                }
            }
            self.soft.wait(before, &keys);
            if moved && kept < was.bytes {
                let addr = was.addr + i64::from(kept >> self.g.fshift);
                self.give_back(cx, &[Freed { addr, bytes: was.bytes - kept, ..freed() }]);
            }
            return;
        }
        let mut placed = Placed { was, now, old_size, freed: Vec::new() };
        if moved {
            match self.planted {
                Some(Bug::SoftFragmentEarly) => self.give_back(cx, &[freed()]),
                _ => placed.freed.push(freed()),
            }
        }
        let kind = match holder {
            None => Kind::Direct { ino: ino.0, slot: index, placed },
            Some(holder) => Kind::Indirect { holder, index, placed },
        };
        let number = self.soft.add(kind, &keys);
        self.soft.set_pointer(ino.0, holder, index, number);
    }

    /// Space is free that no inode on the disk has; it has been taken off its file's count.
    pub(super) fn give_back(&mut self, cx: &mut Cx, freed: &[Freed]) {
        self.free_pieces(cx, Ino::DEVICE, freed);
    }

    /// A file has been cut in memory.
    pub(super) fn soft_cut(&mut self, cx: &mut Cx, ino: Ino, freed: &mut Vec<Freed>, indirects: CutIndirects) {
        let mut keys = vec![Key::Inode(ino.0)];
        let changed = indirects.changed.into_iter().map(|(number, addr)| self.indirect_block(ino, number, addr));
        let changed: Vec<Block> = changed.collect();
        keys.extend(changed.iter().map(|block| Key::Block(block.id)));
        self.update(cx, ino);
        for (lbn, addr) in indirects.upper.into_iter().chain(indirects.leaves) {
            let block = self.indirect_block(ino, lbn, addr);
            cx.read(&block);
            cx.forget(block.id);
            // What it has given up before is free when the inode is on the disk without it.
            self.soft.wait_for_other(Key::Block(block.id), Key::Inode(ino.0));
            freed.push(Freed { lbn, addr, bytes: self.g.bsize });
        }
        let frags: i64 = freed.iter().map(|piece| i64::from(piece.bytes >> self.g.fshift)).sum();
        self.charge(ino, -frags);
        self.note_cut(ino, freed);
        let (first, last) = (BlockId { ino, lbn: Lbn(0) }, BlockId { ino, lbn: Lbn(i64::MAX) });
        let filled: Vec<BlockId> = self.soft.filled.range(first..=last).map(|(id, _)| *id).collect();
        for id in filled {
            self.soft.filled.remove(&id);
        }
        let unborn = self.soft.is_unborn(ino.0);
        let mut pieces = std::mem::take(freed);
        pieces.extend(self.cut_pointers(ino));
        let drops = self.cut_names(ino);
        if unborn || self.planted == Some(Bug::SoftFreeEarly) {
            self.give_back(cx, &pieces);
            self.settle_drops(&drops, &mut |_, id| cx.dirty(id));
        } else if !pieces.is_empty() || !drops.is_empty() {
            let kind = Kind::Free { ino: ino.0, freed: std::mem::take(&mut pieces), number: None, drops };
            self.soft.add(kind, &keys);
        }
        if !unborn && !changed.is_empty() {
            // No length on the disk ends where an indirect block has nothing any more. Rare, as BSD's partial
            // truncation says.
            self.force_even_clean(cx, self.inode_block(ino).id);
        }
        changed.iter().for_each(|block| cx.change(block));
        pieces.clear();
        *freed = pieces;
    }

    /// Records of pointers that are no more. Returns what these would have given up.
    fn cut_pointers(&mut self, ino: Ino) -> Vec<Freed> {
        let n = self.g.nindir();
        let Some(node) = self.inodes.get(ino.0) else { return Vec::new() };
        let mut gone = Vec::new();
        let Some(dep) = self.soft.inodes.get(ino.0) else { return Vec::new() };
        for (slot, number) in dep.slots.iter() {
            let place = node.d.db.get(slot).or_else(|| node.d.ib.get(slot.wrapping_sub(NDADDR)));
            if place.is_none_or(|addr| *addr == 0) {
                gone.push(number);
            }
        }
        for (holder, pointers) in &dep.indirects {
            let there = node.indirect_addr(*holder, n) != 0;
            let mut kept = std::collections::BTreeSet::new();
            if there && let Some(indirects) = &node.indirects {
                indirects.content(*holder, n, &mut |at, _| {
                    kept.insert(at);
                });
            }
            gone.extend(pointers.iter().filter(|(at, _)| !kept.contains(at)).map(|(_, number)| *number));
        }
        // The last block may end earlier now.
        let size = node.d.size;
        let kept = dep.slots;
        let g = self.g;
        for (slot, number) in kept.iter() {
            if let Some(placed) = self.soft.placed_mut(number) {
                placed.old_size = placed.old_size.min(size);
                if slot < NDADDR && g.block_bytes(size, slot as u64) > 0 {
                    placed.now.bytes = placed.now.bytes.min(g.block_bytes(size, slot as u64));
                }
            }
        }
        let mut freed = Vec::new();
        for number in gone {
            if let Some(record) = self.cancel(number)
                && let Kind::Direct { placed, .. } | Kind::Indirect { placed, .. } = record.kind
            {
                freed.extend(placed.freed);
            }
        }
        freed
    }

    /// Changes of a directory that is no more: its names are gone with it.
    fn cut_names(&mut self, ino: Ino) -> Vec<(u32, i16)> {
        let size = self.inodes.get(ino.0).map_or(0, |node| node.d.size);
        let page = self.soft.of_directory(ino.0);
        let mut drops = Vec::new();
        for number in page {
            if self.soft.entry(number).is_some_and(|entry| entry.chunk >= size)
                && let Some(record) = self.cancel(number)
                && let Kind::Entry(entry) = record.kind
            {
                drops.extend(entry.drops);
            }
        }
        drops
    }

    /// An inode holds nothing any more.
    pub(super) fn soft_inode_freed(&mut self, cx: &mut Cx, ino: Ino) {
        self.update(cx, ino);
        let unborn = self.soft.is_unborn(ino.0);
        if let Some(new) = self.soft.inodes.get(ino.0).and_then(|dep| dep.new) {
            self.cancel(new);
        }
        let directory = self.inodes.get(ino.0).is_some_and(|node| node.d.is_dir());
        if unborn || self.planted == Some(Bug::SoftNumberEarly) {
            self.free_number(cx, ino);
            self.note_number(ino, directory, false);
        } else {
            self.inodes.remove(ino.0);
            let kind = Kind::Free { ino: ino.0, freed: Vec::new(), number: Some(directory), drops: Vec::new() };
            self.soft.add(kind, &[Key::Inode(ino.0)]);
        }
    }

    /// Whether an inode without links has names on the disk still: it is freed when these are gone.
    pub(super) fn soft_releases_later(&mut self, ino: Ino) -> bool {
        if self.soft.releasing {
            return false;
        }
        match self.soft.inodes.get_mut(ino.0) {
            Some(dep) if dep.owed > 0 && self.planted != Some(Bug::SoftReleaseEarly) => {
                dep.released = true;
                true
            }
            _ => false,
        }
    }

    /// Does a piece of what is on the work list.
    pub(super) fn do_work(&mut self, cx: &mut Cx, most: usize) -> bool {
        let mut done = 0;
        while done < most
            && let Some(work) = self.soft.work.pop_front()
        {
            done += 1;
            match work {
                Work::Free { freed, number } => {
                    self.give_back(cx, &freed);
                    if let Some((ino, directory)) = number {
                        let group = self.inode_group(Ino(ino));
                        cx.read(&Ffs::group_block(&self.g, group));
                        self.space.free_inode(Ino(ino), directory);
                        self.note_number(Ino(ino), directory, false);
                        self.group_changed(cx, group);
                    }
                }
                Work::Release(ino) => {
                    self.soft.releasing = true;
                    ufs::live::operations::release(self, cx, Ino(ino));
                    self.soft.releasing = false;
                }
            }
        }
        done > 0
    }
}
