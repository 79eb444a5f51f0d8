//! Split files (Smith 2001, chapter 3): files whose first data block lies in another allocation group than their inode.
//!
//! Groups are ext4's block groups, XFS's allocation groups. ext4 with `flex_bg` puts the inode tables of several groups
//! together and so lays a small file's data into another *block* group by design: there the count across *flexible*
//! groups tells more, and both are given.

use crate::geometry::Groups;
use crate::scores::distance::Distances;
use serde::{Deserialize, Serialize};

/// The split files of a file system.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SplitFiles {
    /// Files whose groups are both known.
    pub files: u64,
    /// Those split.
    pub split: u64,
    /// Those whose groups lie in different flexible groups; `None` where there are no flexible groups.
    pub split_beyond_flex: Option<u64>,
    /// How many groups apart the split ones are; `sum_bytes` and `max_bytes` are in groups.
    pub distance_groups: Distances,
}

impl SplitFiles {
    /// An empty count for a file system with these groups.
    pub fn new(groups: &Groups) -> SplitFiles {
        SplitFiles { split_beyond_flex: (groups.per_flex > 1).then_some(0), ..SplitFiles::default() }
    }

    /// Adds a file by its inode number and the address of its first data block.
    pub fn add(&mut self, groups: &Groups, ino: u64, first_bytes: u64) {
        let (Some(home), Some(data)) = (groups.of_inode(ino), groups.of_byte(first_bytes)) else { return };
        self.files += 1;
        if home == data {
            return;
        }
        self.split += 1;
        self.distance_groups.add(home, data);
        if let Some(beyond) = &mut self.split_beyond_flex {
            *beyond += u64::from(home / groups.per_flex.max(1) != data / groups.per_flex.max(1));
        }
    }

    /// The share of files that are split.
    pub fn share(&self) -> Option<f64> {
        (self.files > 0).then(|| self.split as f64 / self.files as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::{GroupKind, InodeRule};

    #[test]
    fn groups_of_inode_and_data_are_compared() {
        let groups = Groups::uniform(GroupKind::Ext4BlockGroups, 0, 1000, 8);
        let groups = Groups { inodes: InodeRule::PerGroup(10), per_flex: 4, ..groups };
        let mut split = SplitFiles::new(&groups);
        split.add(&groups, 1, 0); // group 0 and 0
        split.add(&groups, 10, 1000); // 0 and 1, one flexible group
        split.add(&groups, 11, 7999); // 1 and 7
        split.add(&groups, 81, 0); // no such group
        assert_eq!((split.files, split.split, split.split_beyond_flex), (3, 2, Some(1)));
        assert_eq!((split.distance_groups.sum_bytes, split.distance_groups.max_bytes), (7, 6));
    }
}
