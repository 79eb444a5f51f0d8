//! Free space by place within its group. Seltzer et al. (USENIX 1995, section 5) find the front of cylinder groups more
//! fragmented than their back: the allocator of FFS looks for a file's first block from the front.

use crate::geometry::Groups;
use posix::FreeExtent;

/// The free space of one part of all groups: of their first quarter, say.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FreePlace {
    /// Bytes of the part, of all groups together; what a group keeps its own structures in is among them.
    pub bytes: u64,
    /// Of them, free.
    pub free_bytes: u64,
    /// Of those, in pieces at least as long as was asked for. A piece may reach into other parts of its group, and
    /// counts whole.
    pub long_bytes: u64,
    /// Free pieces that begin in the part.
    pub pieces: u64,
}

impl FreePlace {
    /// Share of the part that is free; `None` for no part.
    pub fn free_share(&self) -> Option<f64> {
        (self.bytes > 0).then(|| self.free_bytes as f64 / self.bytes as f64)
    }

    /// Share of its free space in long pieces; `None` without free space.
    pub fn long_share(&self) -> Option<f64> {
        (self.free_bytes > 0).then(|| self.long_bytes as f64 / self.free_bytes as f64)
    }
}

/// Free space by place: `parts` parts of equal length of each group, from its front to its back, all groups taken
/// together. Pieces end at the groups' borders; those of at least `long_bytes` are long.
pub fn by_place(free: &[FreeExtent], groups: &Groups, parts: u32, long_bytes: u64) -> Vec<FreePlace> {
    let mut found = vec![FreePlace::default(); parts as usize];
    for group in 0..groups.count() {
        let Some((start, end)) = groups.bounds(group) else { continue };
        for (part, own) in (0..).zip(&mut found) {
            let (from, to) = part_of(end - start, part, parts);
            own.bytes += to - from;
        }
    }
    for extent in free {
        let mut at = extent.physical_bytes;
        groups.cut(extent.physical_bytes, extent.len_bytes, &mut |group, len| {
            let Some((start, end)) = groups.bounds(group) else { return };
            let (first, last) = (at - start, at - start + len);
            at += len;
            for (part, own) in (0..).zip(&mut found) {
                let (from, to) = part_of(end - start, part, parts);
                let inside = last.min(to).saturating_sub(first.max(from));
                own.free_bytes += inside;
                own.long_bytes += if len >= long_bytes { inside } else { 0 };
                own.pieces += u64::from((from..to).contains(&first));
            }
        });
    }
    found
}

/// Where a part of a group begins and ends, counted from the group's beginning.
fn part_of(group_bytes: u64, part: u64, parts: u32) -> (u64, u64) {
    let border = |n: u64| (u128::from(group_bytes) * u128::from(n) / u128::from(parts.max(1))) as u64;
    (border(part), border(part + 1))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::geometry::GroupKind;

    #[test]
    fn pieces_are_counted_where_they_lie() {
        let groups = Groups::uniform(GroupKind::CylinderGroups, 1000, 400, 2);
        let free = [(900, 50), (1010, 10), (1090, 220), (1350, 60), (1790, 50)];
        let free = free.map(|(physical_bytes, len_bytes)| FreeExtent { physical_bytes, len_bytes });
        let found = by_place(&free, &groups, 4, 50);
        // Of the first group: 10 short ones in front, 220 over three quarters, 50 at its end; of the second 10 at its
        // front and its end.
        let of = |at: usize| (found[at].free_bytes, found[at].long_bytes, found[at].pieces);
        assert_eq!([0, 1, 2, 3].map(of), [(30, 10, 3), (100, 100, 0), (100, 100, 0), (70, 60, 2)]);
        assert!(found.iter().all(|part| part.bytes == 200));
        assert_eq!((found[0].free_share(), found[1].long_share()), (Some(0.15), Some(1.0)));
        assert_eq!(by_place(&[], &groups, 1, 1)[0].long_share(), None);
    }
}
