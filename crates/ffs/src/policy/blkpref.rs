//! Where a block of a file should go (`ffs_blkpref`).
//!
//! Blocks go behind one another, with a gap after `maxcontig` of them where the disk and processor of the time needed
//! one to keep up. A file begins in the group of its inode; it goes on to a group with more free blocks than the
//! average when it needs its first (or second) indirect block, and again after every `maxbpg` blocks, so that no file
//! fills a group that other files of its directory would go to.

use super::{GroupSwitch, Tuning};
use crate::alloc::Space;
use crate::format::{FragAddr, GroupNo, NDADDR};

/// A block that is about to be allocated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'a> {
    /// The group of its file's inode.
    pub(crate) inode_group: GroupNo,
    /// The block in the file; of an indirect block, the data block that it is needed for.
    pub(crate) lbn: u64,
    /// What it is.
    pub(crate) role: Role,
    /// Where its pointer is among `pointers`; 0 for an indirect block.
    pub(crate) index: usize,
    /// The pointers of the same inode or indirect block; behind its end all are 0.
    pub(crate) pointers: &'a [i64],
    /// The file's 12th block, and its first indirect block: for [`GroupSwitch::Metaspace`].
    pub(crate) last_direct: i64,
    /// The first indirect block.
    pub(crate) first_indirect: i64,
}

/// What a block is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// What a file holds.
    Data,
    /// What a directory holds.
    Directory,
    /// The first indirect block.
    FirstIndirect,
    /// Any other one.
    Indirect,
}

impl Wanted<'_> {
    fn pointer(&self, before: usize) -> i64 {
        let at = self.index.checked_sub(before);
        at.and_then(|at| self.pointers.get(at)).copied().unwrap_or(0)
    }
}

/// Where it should go. 0 if that does not matter.
pub(crate) fn block_preference(space: &Space, tuning: &Tuning, switch: GroupSwitch, wanted: &Wanted<'_>) -> FragAddr {
    let first_of_group = match switch {
        GroupSwitch::Switch | GroupSwitch::Noswitch => u64::from(space.g.frag),
        GroupSwitch::Metaspace => 0,
    };
    if switch == GroupSwitch::Metaspace
        && let Some(place) = metaspace_preference(space, tuning, wanted)
    {
        return place;
    }
    let previous = wanted.pointer(1);
    if (wanted.index as u64).is_multiple_of(tuning.maxbpg) || previous == 0 {
        let group = section_group(space, tuning, switch, wanted, previous);
        return match (group, switch) {
            (None, _) => FragAddr(0),
            (Some(group), GroupSwitch::Metaspace) => data_zone(space, tuning, group),
            (Some(group), _) => space.g.group_base(group).plus(first_of_group),
        };
    }
    let frag = i64::from(space.g.frag);
    let next = previous + frag;
    let place = FragAddr(next.unsigned_abs());
    if tuning.gap_frags == 0 || (wanted.index as u64) < tuning.maxcontig || switch == GroupSwitch::Metaspace {
        return place;
    }
    // A gap, if the last maxcontig blocks have none.
    let contiguous = wanted.pointer(tuning.maxcontig as usize) + tuning.maxcontig as i64 * frag == next;
    if contiguous { place.plus(tuning.gap_frags) } else { place }
}

/// The group in which a section of a file begins.
fn section_group(
    space: &Space,
    tuning: &Tuning,
    switch: GroupSwitch,
    wanted: &Wanted<'_>,
    previous: i64,
) -> Option<GroupNo> {
    let stays = match switch {
        GroupSwitch::Switch => NDADDR as u64,
        GroupSwitch::Noswitch | GroupSwitch::Metaspace => NDADDR as u64 + space.g.nindir(),
    };
    if wanted.lbn < stays {
        return Some(wanted.inode_group);
    }
    let groups = u64::from(space.g.ncg);
    let start = if wanted.index == 0 || previous == 0 {
        u64::from(wanted.inode_group.0) + wanted.lbn / tuning.maxbpg
    } else {
        u64::from(space.g.group_of(FragAddr(previous.unsigned_abs())).0) + 1
    };
    let start = (start % groups) as usize;
    // Only the first of at least average; that there is one is how averages are.
    let average = space.total.nbfree / groups as i64;
    let good = |group: &usize| space.cs.get(*group).is_some_and(|cs| i64::from(cs.nbfree) >= average);
    let found = (start..space.cs.len()).chain(0..start).find(good)?;
    Some(GroupNo(found as u32))
}

/// What differs where metadata has a zone of its own; `None` where it does not matter.
fn metaspace_preference(space: &Space, tuning: &Tuning, wanted: &Wanted<'_>) -> Option<FragAddr> {
    let frag = u64::from(space.g.frag);
    let metadata_zone = space.g.group_data(wanted.inode_group);
    match wanted.role {
        Role::FirstIndirect if wanted.last_direct != 0 => Some(FragAddr(wanted.last_direct.unsigned_abs() + frag)),
        Role::FirstIndirect | Role::Indirect => Some(metadata_zone),
        Role::Data if wanted.lbn == NDADDR as u64 && wanted.first_indirect != 0 => {
            // Behind the first indirect block, if that is among the file's data.
            let indirect = FragAddr(wanted.first_indirect.unsigned_abs());
            let among_data = space.g.group_of(indirect) == wanted.inode_group
                && indirect >= data_zone(space, tuning, wanted.inode_group);
            among_data.then(|| indirect.plus(frag))
        }
        Role::Directory if wanted.pointer(1) == 0 || (wanted.index as u64).is_multiple_of(tuning.maxbpg) => {
            Some(metadata_zone)
        }
        Role::Data | Role::Directory => None,
    }
}

/// Where a group's data begin behind its zone of metadata (`cgdata`).
fn data_zone(space: &Space, tuning: &Tuning, group: GroupNo) -> FragAddr {
    space.g.group_data(group).plus(tuning.metaspace)
}
