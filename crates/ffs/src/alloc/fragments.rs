//! Fragments and blocks through the groups (`ffs_alloccg`, `ffs_mapsearch`, `ffs_fragextend`, `ffs_blkfree`).

use super::{Space, fewer, hash};
use crate::format::{FragAddr, GroupNo};

impl Space {
    /// `frags` fragments of one block, or a whole block: in the preferred group as near to the preference as the
    /// searches of blocks and the map find it; else in another group. `None` if there is nothing.
    pub fn allocate(
        &mut self,
        group: GroupNo,
        preferred: FragAddr,
        frags: u32,
        look: &mut dyn FnMut(GroupNo),
    ) -> Option<FragAddr> {
        let groups = self.g.ncg;
        if group.0 >= groups || !(1..=self.g.frag).contains(&frags) {
            return None;
        }
        if let Some(addr) = self.allocate_in(group.0, preferred, frags, look) {
            return Some(addr);
        }
        if let Some(found) = hash::quadratic(group.0, groups).find(|other| self.has_room(*other, frags)) {
            return self.allocate_in(found, FragAddr(0), frags, look);
        }
        let found = self.next_with_room((group.0 + 2) % groups, frags)?;
        self.allocate_in(found, FragAddr(0), frags, look)
    }

    fn has_room(&self, group: u32, frags: u32) -> bool {
        self.with_blocks.contains(group)
            || self.with_fragments.iter().skip(frags as usize).any(|set| set.contains(group))
    }

    /// The first group with room for `frags` from `from` on, going round.
    fn next_with_room(&self, from: u32, frags: u32) -> Option<u32> {
        let groups = self.g.ncg;
        let sets = std::iter::once(&self.with_blocks).chain(self.with_fragments.iter().skip(frags as usize));
        sets.filter_map(|set| set.next(from)).min_by_key(|group| (group + groups - from) % groups)
    }

    fn allocate_in(
        &mut self,
        group: u32,
        preferred: FragAddr,
        frags: u32,
        look: &mut dyn FnMut(GroupNo),
    ) -> Option<FragAddr> {
        if !self.has_room(group, frags) {
            return None;
        }
        look(GroupNo(group));
        if frags == self.g.frag {
            let frag = self.take_block(group, preferred)?;
            return Some(self.addr(group, frag));
        }
        let sums = &self.groups.get(group as usize)?.cg.h.frsum;
        // The smallest run that is long enough.
        let run = (frags..self.g.frag).find(|len| sums.get(*len as usize).is_some_and(|count| *count > 0));
        let frag = match run {
            Some(run) => self.split_run(group, preferred, run, frags)?,
            None => {
                let frag = self.take_block(group, preferred)?;
                self.free_in(group, frag + frags, self.g.frag - frags);
                frag
            }
        };
        Some(self.addr(group, frag))
    }

    /// Takes the block at an address, if it is wholly free, and gives all but its first `frags` fragments back.
    pub fn break_block(&mut self, addr: FragAddr, frags: u32, look: &mut dyn FnMut(GroupNo)) -> bool {
        let (group, frag) = self.place(addr);
        let block = frag / self.g.frag;
        let free = self.groups.get(group as usize).is_some_and(|at| at.cg.clusters.get(block as usize));
        if !free || frag % self.g.frag != 0 || !(1..self.g.frag).contains(&frags) {
            return false;
        }
        look(GroupNo(group));
        self.set_blocks(group, frag / self.g.frag, 1, false);
        self.free_in(group, frag + frags, self.g.frag - frags);
        true
    }

    /// Takes the first `frags` fragments of a run of exactly `run`: the next in the map from the byte of the preference
    /// on, or from that of the fragment allocated last.
    fn split_run(&mut self, group: u32, preferred: FragAddr, run: u32, frags: u32) -> Option<u32> {
        let (_, within) = self.place(preferred);
        let per_block = self.g.frag;
        let at = &mut self.groups[group as usize];
        let cg = &mut at.cg;
        let from = if preferred.0 != 0 { within } else { cg.frotor };
        let (bytes, start) = (cg.ndblk.div_ceil(8) as usize, from as usize / 8);
        let found = at.runs.next_byte(&cg.free, start, bytes, run);
        let byte = found.or_else(|| at.runs.next_byte(&cg.free, 0, (start + 1).min(bytes), run))?;
        cg.h.frotor = byte as u32 * 8;
        let blocks = (byte as u32 * 8..byte as u32 * 8 + 8).step_by(per_block as usize);
        let frag = blocks.into_iter().find_map(|block| {
            let map = cg.free.bits(block as usize, per_block as usize);
            first_run(map, run, per_block).map(|at| block + at)
        })?;
        cg.free.put_range(frag as usize, frags as usize, false);
        at.runs.update(&cg.free, frag);
        if let Some(count) = cg.h.frsum.get_mut(run as usize) {
            *count = fewer(*count, 1);
        }
        if run > frags
            && let Some(count) = cg.h.frsum.get_mut((run - frags) as usize)
        {
            *count += 1;
        }
        self.count(group, |cs| cs.nffree -= frags as i32);
        self.note_fragments(group);
        Some(frag)
    }

    /// Lengthens a piece of a block from `old` to `new` fragments where it lies, if what follows is free.
    pub fn extend(&mut self, addr: FragAddr, old: u32, new: u32, look: &mut dyn FnMut(GroupNo)) -> bool {
        let (group, frag) = self.place(addr);
        let per_block = self.g.frag;
        if old >= new || frag % per_block + new > per_block || self.summary(GroupNo(group)).nffree < (new - old) as i32
        {
            return false;
        }
        look(GroupNo(group));
        let at = &mut self.groups[group as usize];
        let cg = &mut at.cg;
        if !(frag + old..frag + new).all(|at| cg.free.get(at as usize)) {
            return false;
        }
        // The run that is cut: it may reach beyond what is taken.
        let room = per_block - frag % per_block;
        let end = (new..room).find(|at| !cg.free.get((frag + at) as usize)).unwrap_or(room);
        if let Some(count) = cg.h.frsum.get_mut((end - old) as usize) {
            *count = fewer(*count, 1);
        }
        if end > new
            && let Some(count) = cg.h.frsum.get_mut((end - new) as usize)
        {
            *count += 1;
        }
        cg.free.put_range((frag + old) as usize, (new - old) as usize, false);
        at.runs.update(&cg.free, frag);
        self.count(group, |cs| cs.nffree -= (new - old) as i32);
        self.note_fragments(group);
        true
    }

    /// Gives fragments of one block back, or a whole block.
    pub fn free(&mut self, addr: FragAddr, frags: u32) {
        let (group, frag) = self.place(addr);
        let at = &self.groups[group as usize];
        let (per_block, within) = (self.g.frag, frag % self.g.frag);
        let map = u32::from(at.cg.free.bits((frag - within) as usize, per_block as usize));
        let inside = within + frags <= per_block && frag + frags <= at.cg.ndblk;
        let taken = inside && map >> within & ((1 << frags) - 1) == 0;
        assert!(taken, "fragments {addr} to {} were free, or are not of one block", addr.0 + u64::from(frags));
        if frags == self.g.frag {
            self.set_blocks(group, frag / self.g.frag, 1, true);
        } else {
            self.free_in(group, frag, frags);
        }
    }

    /// How many of these blocks lie behind one another from the first on, in its group; at least 1.
    pub(crate) fn run_in_group(&self, mut blocks: impl Iterator<Item = i64>) -> usize {
        let Some(first) = blocks.next() else { return 1 };
        let (_, frag) = self.place(FragAddr(first.unsigned_abs()));
        let room = (self.g.fpg - frag) / self.g.frag;
        let behind = blocks.zip(1..i64::from(room)).take_while(|(addr, n)| *addr == first + n * i64::from(self.g.frag));
        1 + behind.count()
    }

    /// Gives blocks back that lie behind one another in one group.
    pub(crate) fn free_blocks(&mut self, addr: FragAddr, blocks: u32) {
        let (group, frag) = self.place(addr);
        let at = &self.groups[group as usize];
        let end = frag + blocks * self.g.frag;
        let taken = frag.is_multiple_of(self.g.frag)
            && end <= at.cg.ndblk
            && at.cg.free.next_set(frag as usize, end as usize).is_none();
        if taken && blocks > 0 {
            return self.set_blocks(group, frag / self.g.frag, blocks, true);
        }
        for n in 0..blocks {
            self.free(addr.plus(u64::from(n) * u64::from(self.g.frag)), self.g.frag);
        }
    }

    fn free_in(&mut self, group: u32, frag: u32, frags: u32) {
        let per_block = self.g.frag;
        let at = &mut self.groups[group as usize];
        let base = frag / per_block * per_block;
        let before = at.cg.free.bits(base as usize, per_block as usize);
        at.cg.free.put_range(frag as usize, frags as usize, true);
        at.runs.update(&at.cg.free, frag);
        let after = at.cg.free.bits(base as usize, per_block as usize);
        account_runs(&mut at.cg.h.frsum, before, per_block, false);
        account_runs(&mut at.cg.h.frsum, after, per_block, true);
        // A block reassembled is a block again. The last block of a group may be short: it never is one.
        let whole = u32::from(after).count_ones() == per_block && base + per_block <= at.cg.ndblk;
        self.count(group, |cs| {
            cs.nffree += frags as i32;
            cs.nffree -= if whole { per_block as i32 } else { 0 };
        });
        self.note_fragments(group);
        if whole {
            self.account_blocks(group, base / per_block, 1, true);
        }
    }
}

/// Where the first run of exactly `run` set bits begins in the `per_block` bits of a block.
fn first_run(map: u8, run: u32, per_block: u32) -> Option<u32> {
    (0..=per_block.checked_sub(run)?).find(|at| {
        let inside = ((1_u32 << run) - 1) << at;
        let map = u32::from(map);
        let clear_before = *at == 0 || map >> (at - 1) & 1 == 0;
        let clear_after = at + run == per_block || map >> (at + run) & 1 == 0;
        map & inside == inside && clear_before && clear_after
    })
}

/// Counts the runs of a block that is not wholly free, up or down (`ffs_fragacct`).
fn account_runs(frsum: &mut [u32; 8], map: u8, per_block: u32, up: bool) {
    let mut run = 0;
    for bit in 0..=per_block {
        if bit < per_block && map >> bit & 1 == 1 {
            run += 1;
            continue;
        }
        if run > 0
            && run < per_block as usize
            && let Some(count) = frsum.get_mut(run)
        {
            *count = if up { *count + 1 } else { fewer(*count, 1) };
        }
        run = 0;
    }
}
