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
    /// inactive one (Linux since 2.4; Johnson and Shasha's 2Q, VLDB 1994, without the list of ghosts). A scan does not push out what is in
    /// use.
    TwoList,
}

/// The order in which blocks leave.
#[derive(Debug)]
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
#[derive(Debug, Default)]
pub(crate) struct Lru {
    links: Links,
    list: List,
}

/// Two lists.
#[derive(Debug, Default)]
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
            return self.links.renew(&mut self.active, slot);
        }
        self.links.remove(&mut self.inactive, slot);
        self.links.push(&mut self.active, slot);
        self.slots[slot as usize].active = true;
        self.inactive_bytes -= u64::from(bytes);
        self.active_bytes += u64::from(bytes);
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
