//! The free-space fragmentation of fsperf, per allocation group.
//!
//! fsperf (github.com/josefbacik/fsperf, `src/frag/src/main.rs`): a btrfs block group's fragmentation is
//! 100 * (1 - largest free extent / all its free space), in per cent, and 0 if it is full; a run reports the number of
//! data block groups, how many are not 0, and mean, median, 95th and 99th percentile and extremes over *those*.
//!
//! Here the groups are whatever the file system has (btrfs data block groups, ext4 block groups, XFS allocation
//! groups); a free extent that spans groups is cut at their borders. Where no groups are known the whole list is one
//! group.

use crate::geometry::Groups;
use posix::FreeExtent;
use serde::{Deserialize, Serialize};
use stats::{median, nearest_rank};

/// The distribution over groups.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FsperfScore {
    /// Groups looked at.
    pub groups: u64,
    /// Those whose free space is in more than one extent.
    pub fragmented_groups: u64,
    /// Mean over the fragmented ones, per cent; 0 where there are none, as fsperf has it.
    pub mean_percent: f64,
    /// Median over the fragmented ones.
    pub p50_percent: f64,
    /// 95th percentile (nearest rank).
    pub p95_percent: f64,
    /// The worst.
    pub max_percent: f64,
}

#[derive(Clone, Copy, Default)]
struct Group {
    free: u64,
    largest: u64,
}

/// Computes the score; `free` in address order.
pub fn score(free: &[FreeExtent], groups: Option<&Groups>) -> FsperfScore {
    let mut sums: Vec<Group> = Vec::new();
    let mut note = |index: u64, bytes: u64| {
        let Ok(index) = usize::try_from(index) else { return };
        if sums.len() <= index {
            sums.resize(index + 1, Group::default());
        }
        if let Some(group) = sums.get_mut(index) {
            group.free = group.free.saturating_add(bytes);
            group.largest = group.largest.max(bytes);
        }
    };
    for extent in free {
        match groups {
            Some(groups) => groups.cut(extent.physical_bytes, extent.len_bytes, &mut note),
            None => note(0, extent.len_bytes),
        }
    }
    let count = groups.map_or(1, Groups::count);
    let mut percents: Vec<f64> =
        sums.iter().filter(|g| g.largest < g.free).map(|g| 100.0 * (1.0 - g.largest as f64 / g.free as f64)).collect();
    percents.sort_by(f64::total_cmp);
    let rank = |share: f64| nearest_rank(&percents, share).unwrap_or(0.0);
    let median = median(&percents).unwrap_or(0.0);
    FsperfScore {
        groups: count,
        fragmented_groups: percents.len() as u64,
        mean_percent: if percents.is_empty() { 0.0 } else { percents.iter().sum::<f64>() / percents.len() as f64 },
        p50_percent: median,
        p95_percent: rank(0.95),
        max_percent: percents.last().copied().unwrap_or(0.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::GroupKind;

    #[test]
    fn extents_are_cut_at_group_borders() {
        let groups = Groups::uniform(GroupKind::XfsAllocationGroups, 0, 100, 3);
        let free = [
            FreeExtent { physical_bytes: 0, len_bytes: 25 },
            FreeExtent { physical_bytes: 75, len_bytes: 50 }, // 25 here, 25 in the next group
            FreeExtent { physical_bytes: 200, len_bytes: 100 },
        ];
        let score = score(&free, Some(&groups));
        assert_eq!((score.groups, score.fragmented_groups), (3, 1));
        assert_eq!((score.mean_percent, score.p50_percent, score.max_percent), (50.0, 50.0, 50.0));
    }

    #[test]
    fn without_groups_the_whole_list_is_one() {
        let free = [25u64, 75].map(|len_bytes| FreeExtent { physical_bytes: 0, len_bytes });
        assert_eq!(score(&free, None).mean_percent, 25.0);
        assert_eq!(score(&[], None), FsperfScore { groups: 1, ..FsperfScore::default() });
    }
}
