//! Clusters: free blocks in a row (`ffs_clusteralloc`, `ffs_clusteracct`).

use super::{Space, fewer, hash};
use crate::format::{FragAddr, GroupNo};

impl Space {
    /// `blocks` free blocks in a row, taken: in the preferred group not before the preferred place; else anywhere in
    /// another group. `None` if no group has as many, or clusters are not counted.
    pub fn allocate_cluster(
        &mut self,
        preferred: FragAddr,
        blocks: u32,
        look: &mut dyn FnMut(GroupNo),
    ) -> Option<FragAddr> {
        let (wanted, groups) = (self.place(preferred).0.min(self.g.ncg - 1), self.g.ncg);
        if blocks == 0 || blocks > self.g.contigsumsize {
            return None;
        }
        if let Some(addr) = self.cluster_in(wanted, preferred, blocks, look) {
            return Some(addr);
        }
        for group in hash::quadratic(wanted, groups) {
            if let Some(addr) = self.cluster_in(group, FragAddr(0), blocks, look) {
                return Some(addr);
            }
        }
        // The linear part: a group that is said to have such a cluster has one, unless it is the preferred one.
        let mut from = (wanted + 2) % groups;
        for _ in 0..groups.min(3) {
            let group = self.with_clusters.get(blocks as usize)?.next(from)?;
            if let Some(addr) = self.cluster_in(group, FragAddr(0), blocks, look) {
                return Some(addr);
            }
            from = (group + 1) % groups;
        }
        None
    }

    fn cluster_in(
        &mut self,
        group: u32,
        preferred: FragAddr,
        blocks: u32,
        look: &mut dyn FnMut(GroupNo),
    ) -> Option<FragAddr> {
        if !self.with_clusters.get(blocks as usize)?.contains(group) {
            return None;
        }
        look(GroupNo(group));
        let (wanted_group, within) = self.place(preferred);
        // Not before the preference: what is read after the block before it would wait for another turn of the
        // elevator.
        let from = if preferred.0 == 0 || wanted_group != group { 0 } else { within / self.g.frag };
        let cg = &self.groups[group as usize].cg;
        let first = cg.clusters.next_run(from as usize, cg.nclusterblks as usize, blocks as usize)? as u32;
        self.set_blocks(group, first, blocks, false);
        Some(self.addr(group, first * self.g.frag))
    }

    /// The map of free blocks and the counts of clusters, of blocks in a row that have become free or used.
    pub(super) fn account_clusters(&mut self, group: u32, first: u32, blocks: u32, free: bool) {
        let most = self.g.contigsumsize as usize;
        let at = &mut self.groups[group as usize];
        let cg = &mut at.cg;
        let (first, blocks) = (first as usize, blocks as usize);
        if cg.clusters.capacity() > 0 {
            cg.clusters.put_range(first, blocks, free);
        }
        if most == 0 {
            return;
        }
        let (before, after) = cg.clusters.runs_around(first, blocks, cg.h.nclusterblks as usize, most);
        let whole = (before + blocks + after).min(most);
        let mut change = |len: usize, up: bool| {
            if let Some(count) = cg.cluster_sum.get_mut(len) {
                *count = if up { *count + 1 } else { fewer(*count, 1) };
            }
        };
        // One by one, they would join or leave the same two neighbours: what is between cancels out.
        change(whole, free);
        if before > 0 {
            change(before, !free);
        }
        if after > 0 {
            change(after, !free);
        }
        // The longest has changed if this one is longer, or was the last as long.
        let others = whole as u32 == at.max_cluster && cg.cluster_sum.get(whole).is_some_and(|count| *count > 0);
        if whole as u32 >= at.max_cluster && !others {
            self.note_clusters(group);
        }
    }

    /// Brings up to date which groups have clusters of which lengths.
    pub(super) fn note_clusters(&mut self, group: u32) {
        let at = &mut self.groups[group as usize];
        let longest = at.cg.cluster_sum.iter().rposition(|count| *count > 0).unwrap_or(0) as u32;
        if longest == at.max_cluster {
            return;
        }
        at.max_cluster = longest;
        for (len, set) in self.with_clusters.iter_mut().enumerate().skip(1) {
            set.put(group, len as u32 <= longest);
        }
    }
}
