//! Which block leaves memory first.

use super::list::{Links, List, NONE};
use serde::{Deserialize, Serialize};

/// How the block to give up is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Replacement {
    /// The one not used for longest.
    #[default]
    Lru,
    /// An inactive list for blocks used once and an active one for those used again, which is at most as large as the
    /// inactive one (Linux since 2.4; Johnson and Shasha's 2Q, VLDB 1994, without the list of ghosts). A scan does not
    /// push out what is in use.
    TwoList,
}

/// The order in which blocks leave.
#[derive(Clone, Debug)]
pub(crate) enum Policy {
    Lru(Lru),
    TwoList(TwoList),
}

impl Policy {
    pub(crate) fn new(replacement: Replacement) -> Policy {
        match replacement {
            Replacement::Lru => Policy::Lru(Lru::default()),
            Replacement::TwoList => Policy::TwoList(TwoList::default()),
        }
    }

    #[inline]
    pub(crate) fn insert(&mut self, slot: u32, bytes: u32) {
        match self {
            Policy::Lru(lru) => lru.links.push(&mut lru.list, slot),
            Policy::TwoList(two) => two.insert(slot, bytes),
        }
    }

    #[inline]
    pub(crate) fn touch(&mut self, slot: u32) {
        match self {
            Policy::Lru(lru) => lru.links.renew(&mut lru.list, slot),
            Policy::TwoList(two) => two.touch(slot),
        }
    }

    #[inline]
    pub(crate) fn remove(&mut self, slot: u32) {
        match self {
            Policy::Lru(lru) => lru.links.remove(&mut lru.list, slot),
            Policy::TwoList(two) => two.remove(slot),
        }
    }

    /// Puts a block last in its list, without its having been used.
    pub(crate) fn renew(&mut self, slot: u32) {
        match self {
            Policy::Lru(lru) => lru.links.renew(&mut lru.list, slot),
            Policy::TwoList(two) => two.renew(slot),
        }
    }

    /// A block has another length now.
    pub(crate) fn resize(&mut self, slot: u32, bytes: u32) {
        if let Policy::TwoList(two) = self {
            two.resize(slot, bytes);
        }
    }

    /// The first to leave.
    pub(crate) fn first(&self) -> Option<u32> {
        match self {
            Policy::Lru(lru) => (lru.list.first != NONE).then_some(lru.list.first),
            Policy::TwoList(two) => two.first(),
        }
    }

    /// The one that leaves after `slot`.
    pub(crate) fn after(&self, slot: u32) -> Option<u32> {
        match self {
            Policy::Lru(lru) => lru.links.next(slot),
            Policy::TwoList(two) => two.after(slot),
        }
    }
}

/// Least recently used.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lru {
    links: Links,
    list: List,
}

/// Two lists.
#[derive(Clone, Debug, Default)]
pub(crate) struct TwoList {
    links: Links,
    slots: Vec<Place>,
    inactive: List,
    active: List,
    inactive_bytes: u64,
    active_bytes: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Place {
    bytes: u32,
    active: bool,
}

impl TwoList {
    fn insert(&mut self, slot: u32, bytes: u32) {
        if self.slots.len() <= slot as usize {
            self.slots.resize(slot as usize + 1, Place::default());
        }
        self.slots[slot as usize] = Place { bytes, active: false };
        self.links.push(&mut self.inactive, slot);
        self.inactive_bytes += u64::from(bytes);
    }

    fn touch(&mut self, slot: u32) {
        let Place { bytes, active } = self.slots[slot as usize];
        if active {
            self.links.renew(&mut self.active, slot);
        } else {
            self.links.remove(&mut self.inactive, slot);
            self.links.push(&mut self.active, slot);
            self.slots[slot as usize].active = true;
            self.inactive_bytes -= u64::from(bytes);
            self.active_bytes += u64::from(bytes);
        }
        self.balance();
    }

    /// The oldest active blocks become inactive until the active list is no larger than the other.
    fn balance(&mut self) {
        while self.active_bytes > self.inactive_bytes && self.active.first != self.active.last {
            let slot = self.active.first;
            let bytes = u64::from(self.slots[slot as usize].bytes);
            self.links.remove(&mut self.active, slot);
            self.links.push(&mut self.inactive, slot);
            self.slots[slot as usize].active = false;
            self.active_bytes -= bytes;
            self.inactive_bytes += bytes;
        }
    }

    fn remove(&mut self, slot: u32) {
        let Place { bytes, active } = self.slots[slot as usize];
        if active {
            self.links.remove(&mut self.active, slot);
            self.active_bytes -= u64::from(bytes);
        } else {
            self.links.remove(&mut self.inactive, slot);
            self.inactive_bytes -= u64::from(bytes);
        }
    }

    fn renew(&mut self, slot: u32) {
        let list = if self.slots[slot as usize].active { &mut self.active } else { &mut self.inactive };
        self.links.renew(list, slot);
    }

    fn resize(&mut self, slot: u32, bytes: u32) {
        let place = &mut self.slots[slot as usize];
        let sum = if place.active { &mut self.active_bytes } else { &mut self.inactive_bytes };
        *sum = *sum - u64::from(place.bytes) + u64::from(bytes);
        place.bytes = bytes;
    }

    fn first(&self) -> Option<u32> {
        let first = if self.inactive.is_empty() { self.active.first } else { self.inactive.first };
        (first != NONE).then_some(first)
    }

    fn after(&self, slot: u32) -> Option<u32> {
        self.links.next(slot).or_else(|| {
            let ends_inactive = !self.slots[slot as usize].active;
            (ends_inactive && !self.active.is_empty()).then_some(self.active.first)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The same with vectors: oldest first.
    #[derive(Default)]
    struct Naive {
        inactive: Vec<(u32, u32)>,
        active: Vec<(u32, u32)>,
    }

    fn sum(list: &[(u32, u32)]) -> u32 {
        list.iter().map(|(_, bytes)| bytes).sum()
    }

    impl Naive {
        fn order(&self) -> Vec<u32> {
            self.inactive.iter().chain(&self.active).map(|(slot, _)| *slot).collect()
        }

        fn take(&mut self, slot: u32) -> Option<((u32, u32), bool)> {
            for (list, active) in [(&mut self.inactive, false), (&mut self.active, true)] {
                if let Some(at) = list.iter().position(|(s, _)| *s == slot) {
                    return Some((list.remove(at), active));
                }
            }
            None
        }
    }

    fn order(policy: &Policy) -> Vec<u32> {
        std::iter::successors(policy.first(), |&slot| policy.after(slot)).collect()
    }

    fn check(two: bool, steps: Vec<(u8, u32, u32)>) -> Result<(), TestCaseError> {
        let mut policy = Policy::new(if two { Replacement::TwoList } else { Replacement::Lru });
        let mut naive = Naive::default();
        for (what, slot, bytes) in steps {
            let found = naive.take(slot);
            match (what, found) {
                (_, None) => {
                    policy.insert(slot, bytes);
                    naive.inactive.push((slot, bytes));
                }
                (0, Some(_)) => policy.remove(slot),
                (1, Some(((_, _), active))) => {
                    policy.resize(slot, bytes);
                    policy.renew(slot);
                    if active { &mut naive.active } else { &mut naive.inactive }.push((slot, bytes));
                }
                (_, Some((entry, _))) => {
                    policy.touch(slot);
                    if two { &mut naive.active } else { &mut naive.inactive }.push(entry);
                    while sum(&naive.active) > sum(&naive.inactive) && naive.active.len() > 1 {
                        let oldest = naive.active.remove(0);
                        naive.inactive.push(oldest);
                    }
                }
            }
            prop_assert_eq!(order(&policy), naive.order());
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn least_recently_used_is_what_it_says(steps in prop::collection::vec((0u8..4, 0u32..12, 1u32..9), 1..120)) {
            check(false, steps)?;
        }

        #[test]
        fn two_lists_are_what_they_say(steps in prop::collection::vec((0u8..4, 0u32..12, 1u32..9), 1..120)) {
            check(true, steps)?;
        }
    }

    #[test]
    fn a_scan_does_not_push_out_what_is_in_use() {
        for (replacement, stays) in [(Replacement::Lru, false), (Replacement::TwoList, true)] {
            let mut policy = Policy::new(replacement);
            policy.insert(0, 1);
            for slot in 1..4 {
                policy.insert(slot, 1);
            }
            policy.touch(0);
            // A memory of four blocks: each new one takes the place of the first to leave.
            for slot in 4..20 {
                let first = policy.first().expect("four blocks are there");
                policy.remove(first);
                policy.insert(slot, 1);
            }
            assert_eq!(order(&policy).contains(&0), stays, "{replacement:?}");
        }
    }
}
