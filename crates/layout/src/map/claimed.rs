//! Which bytes several files share have been counted already: so that a block with three owners is one block on the
//! map.

use std::collections::BTreeMap;

/// Ranges kept at most: 48 MiB or so. What is shared beyond that is counted for each owner.
const RANGES_MAX: usize = 1 << 20;

/// Disjoint ranges of addresses, touching ones joined.
#[derive(Clone, Debug, Default)]
pub(super) struct Claimed {
    /// Start to end.
    ranges: BTreeMap<u64, u64>,
}

impl Claimed {
    /// Claims `start..end`; `each(start, end)` is told the parts that nobody had claimed.
    pub(super) fn claim(&mut self, start: u64, end: u64, mut each: impl FnMut(u64, u64)) {
        if start >= end {
            return;
        }
        let before = self.ranges.range(..=start).next_back().filter(|(_, e)| **e >= start).map(|(s, e)| (*s, *e));
        let (mut from, mut to) = (start, end);
        let mut at = start;
        let first = before.map_or(start, |(s, _)| s);
        let overlapping: Vec<(u64, u64)> = self.ranges.range(first..=end).map(|(s, e)| (*s, *e)).collect();
        for (s, e) in overlapping {
            if s > at {
                each(at, s);
            }
            at = at.max(e);
            (from, to) = (from.min(s), to.max(e));
            self.ranges.remove(&s);
        }
        if at < end {
            each(at, end);
        }
        if self.ranges.len() < RANGES_MAX {
            self.ranges.insert(from, to);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_byte_is_new_once(claims in proptest::collection::vec((0u64..200, 0u64..40), 1..60)) {
            let mut claimed = Claimed::default();
            let mut owned = vec![false; 256];
            for (start, len) in claims {
                let mut told = Vec::new();
                claimed.claim(start, start + len, |s, e| told.extend(s..e));
                let expected: Vec<u64> = (start..start + len).filter(|b| !owned[*b as usize]).collect();
                prop_assert_eq!(told, expected);
                (start..start + len).for_each(|b| owned[b as usize] = true);
            }
            let kept: u64 = claimed.ranges.iter().map(|(s, e)| e - s).sum();
            prop_assert_eq!(kept, owned.iter().filter(|o| **o).count() as u64);
        }
    }
}
