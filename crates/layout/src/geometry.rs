//! The shape of a file system: its block, and its allocation groups where it has them.

use serde::{Deserialize, Serialize};

/// What kind of groups a file system has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GroupKind {
    /// Block groups of ext2, ext3 and ext4.
    Ext4BlockGroups,
    /// Allocation groups of XFS.
    XfsAllocationGroups,
    /// Data block groups of btrfs, in the address space the extents are in.
    BtrfsDataBlockGroups,
    /// Cylinder groups of FFS.
    CylinderGroups,
}

/// Where the groups lie.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ranges {
    /// All of one length, one after the other.
    Uniform {
        /// Where the first begins.
        first_bytes: u64,
        /// The length of each.
        len_bytes: u64,
        /// How many.
        count: u64,
    },
    /// `(start, length)` in address order.
    Listed(Vec<(u64, u64)>),
}

/// Which group an inode belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InodeRule {
    /// ext4: inode numbers from 1, so many in each group.
    PerGroup(u64),
    /// FFS: inode numbers from 0, so many in each group.
    FromZero(u64),
    /// XFS: the group is in the inode number's high bits, above so many others.
    HighBits(u32),
    /// Inodes belong to no group.
    Unknown,
}

/// The allocation groups of a file system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Groups {
    /// What they are.
    pub kind: GroupKind,
    /// Where they lie.
    pub ranges: Ranges,
    /// Where inodes belong.
    pub inodes: InodeRule,
    /// Groups in a flexible block group; 1 where there are none.
    pub per_flex: u64,
}

impl From<posix::GroupShape> for Groups {
    /// Those that a file system of the laboratory tells.
    fn from(shape: posix::GroupShape) -> Groups {
        let posix::GroupShape { first_bytes, len_bytes, count, inodes } = shape;
        let groups = Groups::uniform(GroupKind::CylinderGroups, first_bytes, len_bytes, count);
        Groups { inodes: InodeRule::FromZero(inodes), ..groups }
    }
}

impl Groups {
    /// Groups of one length, one after the other, without a rule for inodes.
    pub(crate) fn uniform(kind: GroupKind, first_bytes: u64, len_bytes: u64, count: u64) -> Groups {
        let ranges = Ranges::Uniform { first_bytes, len_bytes, count };
        Groups { kind, ranges, inodes: InodeRule::Unknown, per_flex: 1 }
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        match &self.ranges {
            Ranges::Uniform { count, .. } => *count,
            Ranges::Listed(list) => list.len() as u64,
        }
    }

    /// The group that holds an address.
    pub fn of_byte(&self, bytes: u64) -> Option<u64> {
        match &self.ranges {
            Ranges::Uniform { first_bytes, len_bytes, count } => {
                let group = bytes.checked_sub(*first_bytes)?.checked_div(*len_bytes)?;
                (group < *count).then_some(group)
            }
            Ranges::Listed(list) => {
                let after = list.partition_point(|(start, _)| *start <= bytes);
                let index = after.checked_sub(1)?;
                let (start, len) = list.get(index)?;
                (bytes - start < *len).then_some(index as u64)
            }
        }
    }

    /// The group an inode belongs to.
    pub fn of_inode(&self, ino: u64) -> Option<u64> {
        let group = match self.inodes {
            InodeRule::PerGroup(n) => ino.checked_sub(1)?.checked_div(n)?,
            InodeRule::FromZero(n) => ino.checked_div(n)?,
            InodeRule::HighBits(shift) => ino.checked_shr(shift)?,
            InodeRule::Unknown => return None,
        };
        (group < self.count()).then_some(group)
    }

    /// Where a group begins and ends.
    pub fn bounds(&self, group: u64) -> Option<(u64, u64)> {
        match &self.ranges {
            Ranges::Uniform { first_bytes, len_bytes, count } => {
                let start = first_bytes.checked_add(group.checked_mul(*len_bytes)?)?;
                (group < *count).then(|| (start, start.saturating_add(*len_bytes)))
            }
            Ranges::Listed(list) => {
                let (start, len) = list.get(usize::try_from(group).ok()?)?;
                Some((*start, start.saturating_add(*len)))
            }
        }
    }

    /// Cuts a piece of space at the groups' borders: `each(group, bytes)`. What lies in no group is left out.
    pub fn cut(&self, start_bytes: u64, len_bytes: u64, each: &mut dyn FnMut(u64, u64)) {
        let end = start_bytes.saturating_add(len_bytes);
        let mut at = start_bytes;
        while at < end {
            let Some(group) = self.of_byte(at) else { return };
            let Some((_, group_end)) = self.bounds(group) else { return };
            let to = group_end.min(end);
            if to <= at {
                return;
            }
            each(group, to - at);
            at = to;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listed_groups_may_have_gaps() {
        let groups = Groups {
            kind: GroupKind::BtrfsDataBlockGroups,
            ranges: Ranges::Listed(vec![(100, 50), (200, 50)]),
            inodes: InodeRule::Unknown,
            per_flex: 1,
        };
        let found: Vec<Option<u64>> = [99, 100, 149, 150, 200, 249, 250].iter().map(|&b| groups.of_byte(b)).collect();
        assert_eq!(found, [None, Some(0), Some(0), None, Some(1), Some(1), None]);
        assert_eq!(groups.of_inode(5), None);
    }

    #[test]
    fn hostile_shapes_do_not_divide_by_zero() {
        let groups = Groups::uniform(GroupKind::Ext4BlockGroups, 0, 0, 5);
        let groups = Groups { inodes: InodeRule::PerGroup(0), per_flex: 0, ..groups };
        assert_eq!((groups.of_byte(1), groups.of_inode(1)), (None, None));
        groups.cut(0, 100, &mut |_, _| unreachable!("no group holds anything"));
    }
}
