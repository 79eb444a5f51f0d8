//! The free space of a file system in memory: the maps of every group, the counts that follow from them, and what finds
//! groups.

use super::groups::GroupSet;
use super::runs::RunWords;
use crate::format::{Csum, CsumTotal, CylinderGroup, FragAddr, Geometry, GroupNo, Superblock, Version};

/// A cylinder group in memory.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    /// Its structure. The map of free blocks is kept whether the format has it or not; `cs` is brought up to date by
    /// [`Space::group`].
    pub(crate) cg: CylinderGroup,
    /// Where its runs of free fragments are.
    pub(super) runs: RunWords,
    /// The longest cluster there may be (`fs_maxcluster`).
    pub(super) max_cluster: u32,
    /// Directories made in it since files last were (`fs_contigdirs`).
    pub(crate) contigdirs: u8,
}

/// What is free.
#[derive(Clone, Debug)]
pub struct Space {
    pub(crate) g: Geometry,
    pub(crate) groups: Vec<Group>,
    /// Of each group.
    pub(crate) cs: Vec<Csum>,
    /// Of all.
    pub(crate) total: CsumTotal,
    /// Groups with a free block.
    pub(super) with_blocks: GroupSet,
    /// `[n]`: groups that have a run of exactly n free fragments in a block partly used.
    pub(super) with_fragments: Vec<GroupSet>,
    /// Groups with a free inode.
    pub(super) with_inodes: GroupSet,
    /// `[n]`: groups that may have n free blocks in a row; up to `contigsumsize`.
    pub(super) with_clusters: Vec<GroupSet>,
    /// The superblock's tables of blocks by rotational position; `None` where positions are not told apart.
    pub(super) rotation: Option<Rotation>,
}

/// Blocks by rotational position within a cycle of cylinders (`fs_postbl`, `fs_rotbl`).
#[derive(Clone, Debug)]
pub(super) struct Rotation {
    /// Cylinders of a cycle.
    pub(super) cycle: u32,
    /// By cylinder of the cycle and position: the first block there, counted from the cycle's.
    pub(super) first: Vec<i16>,
    /// By block: the way to the next one at its position; 0 at the end.
    pub(super) next: Vec<u8>,
}

impl Space {
    /// From the groups of a file system. Counts that do not follow from the maps are the caller's to refuse
    /// ([`CylinderGroup::recount`]).
    pub fn new(sb: &Superblock, g: &Geometry, groups: Vec<CylinderGroup>) -> Space {
        let empty = GroupSet::new(g.ncg);
        let mut space = Space {
            g: *g,
            groups: Vec::with_capacity(groups.len()),
            cs: Vec::with_capacity(groups.len()),
            total: CsumTotal::default(),
            with_blocks: empty.clone(),
            with_fragments: vec![empty.clone(); g.frag as usize],
            with_inodes: empty.clone(),
            with_clusters: vec![empty; g.contigsumsize as usize + 1],
            rotation: rotation(sb, g),
        };
        for (number, mut cg) in (0..).zip(groups) {
            cg.keep_block_map(g);
            space.total.add(&cg.cs);
            space.cs.push(cg.cs);
            let runs = RunWords::new(&cg.free, g.fpg, g.frag);
            space.groups.push(Group { cg, runs, max_cluster: 0, contigdirs: 0 });
            space.note(number);
            space.note_fragments(number);
            space.note_clusters(number);
        }
        space
    }

    /// A group as it would be written now.
    pub fn group(&self, group: GroupNo) -> Option<CylinderGroup> {
        let mut cg = self.groups.get(group.0 as usize)?.cg.clone();
        cg.cs = self.summary(group);
        Some(cg)
    }

    /// What a group has.
    #[inline]
    pub fn summary(&self, group: GroupNo) -> Csum {
        self.cs.get(group.0 as usize).copied().unwrap_or_default()
    }

    /// What all groups have.
    pub fn total(&self) -> &CsumTotal {
        &self.total
    }

    /// Free fragments, those of whole blocks included.
    pub fn free_frags(&self) -> i64 {
        self.total.nbfree * i64::from(self.g.frag) + self.total.nffree
    }

    /// Whether every fragment of a range inside one group is free.
    pub fn is_free(&self, addr: FragAddr, frags: u32) -> bool {
        let (group, from) = self.place(addr);
        let Some(at) = self.groups.get(group as usize) else { return false };
        (from..from + frags).all(|frag| frag < at.cg.ndblk && at.cg.free.get(frag as usize))
    }

    /// Every run of free fragments of a group, in order: where it begins, counted from the group's first, and its
    /// length.
    pub fn free_runs(&self, group: GroupNo, each: &mut dyn FnMut(u32, u32)) {
        let at = &self.groups[group.0 as usize];
        let (free, end) = (&at.cg.free, at.cg.ndblk as usize);
        let mut from = 0;
        while let Some(start) = free.next_set(from, end) {
            from = free.next_clear(start, end).unwrap_or(end);
            each(start as u32, (from - start) as u32);
        }
    }

    /// The group of a fragment, and where it is in it.
    #[inline]
    pub(super) fn place(&self, addr: FragAddr) -> (u32, u32) {
        // Divisions of 32 bits are several times as fast, and most addresses have no more.
        if let Ok(addr) = u32::try_from(addr.0) {
            return (addr / self.g.fpg, addr % self.g.fpg);
        }
        let fpg = u64::from(self.g.fpg);
        ((addr.0 / fpg) as u32, (addr.0 % fpg) as u32)
    }

    /// The group of a fragment.
    #[inline]
    pub fn group_of(&self, addr: FragAddr) -> GroupNo {
        GroupNo(self.place(addr).0)
    }

    /// The address of a fragment of a group.
    #[inline]
    pub(super) fn addr(&self, group: u32, frag: u32) -> FragAddr {
        FragAddr(u64::from(group) * u64::from(self.g.fpg) + u64::from(frag))
    }

    /// Changes a group's summary, the totals with it.
    #[inline]
    pub(super) fn count(&mut self, group: u32, change: impl FnOnce(&mut Csum)) {
        let cs = &mut self.cs[group as usize];
        let old = *cs;
        change(cs);
        let new = *cs;
        self.total.ndir += i64::from(new.ndir - old.ndir);
        self.total.nbfree += i64::from(new.nbfree - old.nbfree);
        self.total.nifree += i64::from(new.nifree - old.nifree);
        self.total.nffree += i64::from(new.nffree - old.nffree);
        if (old.nbfree > 0) != (new.nbfree > 0) || (old.nifree > 0) != (new.nifree > 0) {
            self.note(group);
        }
    }

    /// A group has so many free blocks more, or fewer.
    #[inline]
    pub(super) fn count_blocks(&mut self, group: u32, more: i32) {
        let cs = &mut self.cs[group as usize];
        let had = cs.nbfree > 0;
        cs.nbfree += more;
        self.total.nbfree += i64::from(more);
        if had != (cs.nbfree > 0) {
            self.note(group);
        }
    }

    /// A group has so many directories.
    pub(crate) fn set_directories(&mut self, group: u32, ndir: i32) {
        self.count(group, |cs| cs.ndir = ndir);
    }

    fn note(&mut self, group: u32) {
        let cs = self.summary(GroupNo(group));
        self.with_blocks.put(group, cs.nbfree > 0);
        self.with_inodes.put(group, cs.nifree > 0);
    }

    /// Brings up to date which groups have runs of which lengths.
    #[inline]
    pub(super) fn note_fragments(&mut self, group: u32) {
        let at = &self.groups[group as usize];
        for (set, count) in self.with_fragments.iter_mut().zip(&at.cg.h.frsum) {
            set.put(group, *count > 0);
        }
    }
}

/// The superblock's rotational tables, where they are sound and tell positions apart.
fn rotation(sb: &Superblock, g: &Geometry) -> Option<Rotation> {
    let cycle = u32::try_from(sb.old_cpc).ok().filter(|cpc| *cpc > 0)?;
    if g.layout.version != Version::Ufs1 || g.old_nrpos <= 1 || sb.old_postblformat != 1 {
        return None;
    }
    let blocks = cycle.checked_mul(g.old_spc)? / (g.bsize / 512);
    let bytes = sb.bytes();
    let table = |offset: i32, len: usize| {
        let start = usize::try_from(offset).ok()?;
        bytes.get(start..start.checked_add(len)?)
    };
    let entries = cycle as usize * g.old_nrpos as usize;
    let first = table(sb.old_postbloff, entries * 2)?;
    let next = table(sb.old_rotbloff, blocks as usize)?;
    let first = first.chunks_exact(2).map(|pair| {
        let raw = [pair.first().copied().unwrap_or(0), pair.get(1).copied().unwrap_or(0)];
        match g.endian() {
            crate::Endian::Little => i16::from_le_bytes(raw),
            crate::Endian::Big => i16::from_be_bytes(raw),
        }
    });
    Some(Rotation { cycle, first: first.collect(), next: next.to_vec() })
}
