//! Whole blocks in a group (`ffs_alloccgblk`, the block part of `ffs_blkfree`).

use super::{Space, fewer};
use crate::format::FragAddr;

impl Space {
    /// A block of a group that has one: the wanted one; else one of its cylinder at the nearest rotational position
    /// after it; else the next in the map, from the preference on, or from the block allocated last if there is none in
    /// this group. Returns its first fragment, counted from the group's.
    pub(super) fn take_block(&mut self, group: u32, preferred: FragAddr) -> Option<u32> {
        let frag = self.frag_for_block(group, preferred)?;
        self.set_blocks(group, frag / self.g.frag, 1, false);
        Some(frag)
    }

    fn frag_for_block(&mut self, group: u32, preferred: FragAddr) -> Option<u32> {
        let (wanted_group, within) = self.place(preferred);
        let per_block = self.g.frag;
        let at = self.groups.get(group as usize)?;
        let from = if preferred.0 == 0 || wanted_group != group {
            at.cg.rotor
        } else {
            let wanted = within / per_block * per_block;
            if at.cg.clusters.get((wanted / per_block) as usize) {
                return Some(wanted);
            }
            if let Some(frag) = self.nearby_position(group, wanted) {
                return Some(frag);
            }
            wanted
        };
        let at = self.groups.get_mut(group as usize)?;
        // The map is searched by whole bytes (mapsearch): from the byte of the preference on, then from the beginning.
        let (start, end) = ((from / 8 * 8 / per_block) as usize, at.cg.clusters.capacity());
        let block = at.cg.clusters.next_set(start, end).or_else(|| at.cg.clusters.next_set(0, end))?;
        let frag = block as u32 * per_block;
        at.cg.h.rotor = frag;
        at.cg.h.frotor = frag;
        Some(frag)
    }

    /// The rotationally best free block in the cylinder of a block that is not free. `None` where positions are not
    /// told apart, or the cylinder is full.
    fn nearby_position(&self, group: u32, wanted: u32) -> Option<u32> {
        let rotation = self.rotation.as_ref()?;
        let cg = &self.groups.get(group as usize)?.cg;
        let (cylinder, positions) = (self.g.cylinder_of(wanted), self.g.old_nrpos);
        if cg.block_totals.get(cylinder as usize).is_none_or(|free| *free == 0) {
            return None;
        }
        let counts = cg.block_positions.get((cylinder * positions) as usize..((cylinder + 1) * positions) as usize)?;
        let start = self.g.position_of(wanted);
        let position =
            (start..positions).chain(0..start).find(|at| counts.get(*at as usize).is_some_and(|n| *n > 0))?;
        // The tables repeat every `cycle` cylinders.
        let in_cycle = cylinder % rotation.cycle;
        let base = (cylinder - in_cycle) * self.g.old_spc / (self.g.bsize / 512);
        let mut block = u32::try_from(*rotation.first.get((in_cycle * positions + position) as usize)?).ok()?;
        loop {
            if cg.clusters.get((base + block) as usize) {
                return Some((base + block) * self.g.frag);
            }
            match rotation.next.get(block as usize) {
                Some(0) | None => return None,
                Some(step) => block += u32::from(*step),
            }
        }
    }

    /// Free blocks in a row, as many as are wanted, taken: in the group in the middle of the disk, or the next one,
    /// going round, that has them.
    pub(crate) fn take_run(&mut self, blocks: u32) -> Option<FragAddr> {
        let (groups, middle) = (self.g.ncg, self.g.ncg / 2);
        for group in (middle..groups).chain(0..middle) {
            let map = &self.groups.get(group as usize)?.cg.clusters;
            if let Some(first) = map.next_run(0, map.capacity(), blocks as usize) {
                self.set_blocks(group, first as u32, blocks, false);
                return Some(self.addr(group, first as u32 * self.g.frag));
            }
        }
        None
    }

    /// The most free blocks in a row.
    pub(crate) fn longest_run(&self) -> u32 {
        let longest = |map: &crate::format::Bitmap| {
            let (mut most, mut from) = (0, 0);
            while let Some(start) = map.next_set(from, map.capacity()) {
                from = map.next_clear(start, map.capacity()).unwrap_or(map.capacity());
                most = most.max(from - start);
            }
            most
        };
        self.groups.iter().map(|group| longest(&group.cg.clusters)).max().unwrap_or(0) as u32
    }

    /// Marks whole blocks in a row as free or used, with every count of blocks.
    pub(super) fn set_blocks(&mut self, group: u32, first: u32, blocks: u32, free: bool) {
        let per_block = self.g.frag;
        let at = &mut self.groups[group as usize];
        at.cg.free.put_range((first * per_block) as usize, (blocks * per_block) as usize, free);
        self.account_blocks(group, first, blocks, free);
    }

    /// The counts of blocks in a row that have become wholly free, or are so no more.
    pub(super) fn account_blocks(&mut self, group: u32, first: u32, blocks: u32, free: bool) {
        self.account_clusters(group, first, blocks, free);
        self.count_blocks(group, if free { blocks as i32 } else { -(blocks as i32) });
        let at = &mut self.groups[group as usize];
        match (at.cg.block_totals.as_mut_slice(), at.cg.block_positions.as_mut_slice()) {
            ([], _) => {}
            // A file system made without a disk's geometry is one cylinder of one position.
            ([total], positions @ ([] | [_])) => {
                *total = if free { *total + blocks } else { fewer(*total, blocks) };
                if let Some(count) = positions.first_mut() {
                    // More blocks than can be counted stay as many as can.
                    let blocks = u16::try_from(blocks).unwrap_or(u16::MAX);
                    *count = if free { count.saturating_add(blocks) } else { count.saturating_sub(blocks) };
                }
            }
            _ => self.account_positions(group, first, blocks, free),
        }
    }

    /// The counts of blocks by cylinder and rotational position.
    #[cold]
    fn account_positions(&mut self, group: u32, first: u32, blocks: u32, free: bool) {
        let at = &mut self.groups[group as usize];
        for block in first..first + blocks {
            let frag = block * self.g.frag;
            let cylinder = self.g.cylinder_of(frag);
            let position = cylinder * self.g.old_nrpos + self.g.position_of(frag);
            if let Some(count) = at.cg.block_totals.get_mut(cylinder as usize) {
                *count = if free { *count + 1 } else { fewer(*count, 1) };
            }
            if let Some(count) = at.cg.block_positions.get_mut(position as usize) {
                *count = if free { count.saturating_add(1) } else { count.saturating_sub(1) };
            }
        }
    }
}
