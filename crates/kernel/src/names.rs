//! The name cache: what a name in a directory stands for, or that it stands for nothing.

use crate::Ino;
use crate::cache::{Links, List};
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::hash::BuildHasher;

/// Names last looked up, as many as there is room for.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    capacity: usize,
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// By hash of directory and name; names that share a hash are chained.
    index: FxHashMap<u64, u32>,
    links: Links,
    recency: List,
    /// Directories that were removed, each time: entries made before are of a directory that no longer is.
    removed: FxHashMap<Ino, u32>,
    pub(crate) counters: NameCounters,
}

/// How the name cache is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NameCounters {
    /// Names found, absent ones included.
    pub hits: u64,
    /// Names not found.
    pub misses: u64,
}

#[derive(Clone, Debug, Default)]
struct Slot {
    hash: u64,
    dir: Ino,
    removals: u32,
    /// `None`: there is no such name.
    ino: Option<Ino>,
    /// Another slot with the same hash; its own number at the end.
    next: u32,
    name: Name,
}

/// Names up to so many bytes lie in their slot: comparing one then costs no further access to memory.
const SHORT_BYTES: usize = 31;

#[derive(Clone, Debug, Default)]
struct Name {
    len: u8,
    short: [u8; SHORT_BYTES],
    long: Option<Box<[u8]>>,
}

impl Name {
    fn new(name: &[u8]) -> Name {
        let mut short = [0; SHORT_BYTES];
        match short.get_mut(..name.len()) {
            Some(place) => {
                place.copy_from_slice(name);
                Name { len: name.len() as u8, short, long: None }
            }
            None => Name { len: u8::MAX, short, long: Some(name.into()) },
        }
    }

    #[inline]
    fn is(&self, name: &[u8]) -> bool {
        match &self.long {
            None => usize::from(self.len) == name.len() && self.short[..name.len()] == *name,
            Some(long) => **long == *name,
        }
    }
}

impl Names {
    pub(crate) fn new(capacity: usize) -> Names {
        Names {
            capacity,
            slots: Vec::new(),
            free: Vec::new(),
            index: FxHashMap::default(),
            links: Links::default(),
            recency: List::default(),
            removed: FxHashMap::default(),
            counters: NameCounters::default(),
        }
    }

    fn removals(&self, dir: Ino) -> u32 {
        if self.removed.is_empty() { 0 } else { self.removed.get(&dir).copied().unwrap_or(0) }
    }

    fn hash(dir: Ino, name: &[u8]) -> u64 {
        FxBuildHasher.hash_one((dir, name))
    }

    fn find(&self, hash: u64, dir: Ino, name: &[u8]) -> Option<u32> {
        let mut slot = *self.index.get(&hash)?;
        loop {
            let entry = &self.slots[slot as usize];
            if entry.dir == dir && entry.name.is(name) {
                return Some(slot);
            }
            if entry.next == slot {
                return None;
            }
            slot = entry.next;
        }
    }

    /// What is known of a name: `None` nothing, `Some(None)` that there is none.
    #[inline]
    pub(crate) fn get(&mut self, dir: Ino, name: &[u8]) -> Option<Option<Ino>> {
        let found = self.find(Self::hash(dir, name), dir, name);
        let found = found.filter(|&slot| self.slots[slot as usize].removals == self.removals(dir));
        match found {
            Some(slot) => {
                self.counters.hits += 1;
                self.links.renew(&mut self.recency, slot);
                Some(self.slots[slot as usize].ino)
            }
            None => {
                self.counters.misses += 1;
                None
            }
        }
    }

    /// Notes what a name stands for.
    pub(crate) fn put(&mut self, dir: Ino, name: &[u8], ino: Option<Ino>) {
        if self.capacity == 0 {
            return;
        }
        let (hash, removals) = (Self::hash(dir, name), self.removals(dir));
        if let Some(slot) = self.find(hash, dir, name) {
            let entry = &mut self.slots[slot as usize];
            (entry.ino, entry.removals) = (ino, removals);
            return self.links.renew(&mut self.recency, slot);
        }
        if self.index_len() >= self.capacity {
            self.forget_slot(self.recency.first);
        }
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            (self.slots.len() - 1) as u32
        });
        let next = self.index.insert(hash, slot).unwrap_or(slot);
        let entry = &mut self.slots[slot as usize];
        (entry.hash, entry.dir, entry.removals, entry.ino, entry.next) = (hash, dir, removals, ino, next);
        entry.name = Name::new(name);
        self.links.push(&mut self.recency, slot);
    }

    fn index_len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// How many names are known.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.index_len()
    }

    /// A directory was removed: nothing known of its names holds for a later one with its number.
    pub(crate) fn directory_removed(&mut self, dir: Ino) {
        *self.removed.entry(dir).or_default() += 1;
    }

    fn forget_slot(&mut self, slot: u32) {
        let Slot { hash, next, .. } = self.slots[slot as usize];
        let first = self.index.get(&hash).copied().unwrap_or(slot);
        if first == slot {
            if next == slot {
                self.index.remove(&hash);
            } else {
                self.index.insert(hash, next);
            }
        } else {
            let mut before = first;
            while self.slots[before as usize].next != slot {
                before = self.slots[before as usize].next;
            }
            self.slots[before as usize].next = if next == slot { before } else { next };
        }
        self.links.remove(&mut self.recency, slot);
        self.free.push(slot);
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        let counters = self.counters;
        *self = Names { counters, ..Names::new(self.capacity) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The same by brute force: names in order of their last use.
    #[derive(Default)]
    struct Naive(Vec<(Ino, Vec<u8>, Option<Ino>)>);

    proptest! {
        #[test]
        fn is_an_lru_of_names(
            capacity in 1usize..9,
            steps in prop::collection::vec((0u8..4, 0u32..3, 0usize..6, prop::option::of(0u32..9)), 1..200),
        ) {
            let mut names = Names::new(capacity);
            let mut naive = Naive::default();
            for (what, dir, name, ino) in steps {
                // Lengths on both sides of what lies in a slot.
                let (dir, name, ino) = (Ino(dir), vec![b'x'; [1, 2, 31, 32, 33, 255][name]], ino.map(Ino));
                let at = naive.0.iter().position(|(d, n, _)| (*d, n) == (dir, &name));
                match what {
                    0 | 1 => {
                        names.put(dir, &name, ino);
                        if let Some(at) = at {
                            naive.0.remove(at);
                        } else if naive.0.len() == capacity {
                            naive.0.remove(0);
                        }
                        naive.0.push((dir, name, ino));
                    }
                    2 => {
                        prop_assert_eq!(names.get(dir, &name), at.map(|at| naive.0[at].2));
                        if let Some(at) = at {
                            let entry = naive.0.remove(at);
                            naive.0.push(entry);
                        }
                    }
                    _ => {
                        prop_assert_eq!(names.len(), naive.0.len());
                    }
                }
            }
        }
    }

    #[test]
    fn a_removed_directory_takes_its_names_with_it() {
        let mut names = Names::new(4);
        names.put(Ino(7), b"a", Some(Ino(8)));
        names.directory_removed(Ino(7));
        assert_eq!(names.get(Ino(7), b"a"), None);
        names.put(Ino(7), b"a", None);
        assert_eq!(names.get(Ino(7), b"a"), Some(None));
    }
}
