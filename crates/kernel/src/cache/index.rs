//! Finds slots of a table by what is in them: an open hash table of eight bytes an entry.
//!
//! The keys are in the slots, where whoever looks one up goes next anyway; an entry has only the slot and a part of its
//! key's hash, so that another slot is hardly ever looked at.

/// Slots by key.
#[derive(Clone, Debug, Default)]
pub(crate) struct Index {
    /// A power of two of them, at most half in use; or none.
    entries: Vec<Entry>,
    len: usize,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    tag: u32,
    slot: u32,
}

const EMPTY: Entry = Entry { tag: 0, slot: u32::MAX };

impl Entry {
    fn is_empty(self) -> bool {
        self.slot == u32::MAX
    }
}

/// The hash of a number: the upper half of a product with 2^64 / golden ratio (Knuth, volume 3, section 6.4), the upper
/// bits folded in before.
#[inline]
pub(crate) fn hash(key: u64) -> u32 {
    ((key ^ (key >> 29)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32
}

impl Index {
    /// How many slots are in it.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Where an entry with this hash should be: its upper bits.
    #[inline]
    fn home(&self, tag: u32) -> usize {
        ((u64::from(tag) * self.entries.len() as u64) >> 32) as usize
    }

    /// The slot with this hash that `is` says it is.
    #[inline]
    pub(crate) fn find(&self, tag: u32, is: impl Fn(u32) -> bool) -> Option<u32> {
        let mut at = self.home(tag);
        loop {
            let entry = self.entries.get(at)?;
            if entry.is_empty() {
                return None;
            }
            if entry.tag == tag && is(entry.slot) {
                return Some(entry.slot);
            }
            at = (at + 1) & (self.entries.len() - 1);
        }
    }

    /// Enters a slot that is not there.
    pub(crate) fn insert(&mut self, tag: u32, slot: u32) {
        if (self.len + 1) * 2 > self.entries.len() {
            let size = (self.entries.len() * 2).max(16);
            let old = std::mem::replace(&mut self.entries, vec![EMPTY; size]);
            for entry in old.into_iter().filter(|entry| !entry.is_empty()) {
                self.put(entry);
            }
        }
        self.len += 1;
        self.put(Entry { tag, slot });
    }

    fn put(&mut self, entry: Entry) {
        let mut at = self.home(entry.tag);
        while !self.entries[at].is_empty() {
            at = (at + 1) & (self.entries.len() - 1);
        }
        self.entries[at] = entry;
    }

    /// Takes a slot out; what was entered after it moves up.
    pub(crate) fn remove(&mut self, tag: u32, slot: u32) {
        if self.entries.is_empty() {
            return;
        }
        let mask = self.entries.len() - 1;
        let mut hole = self.home(tag);
        while self.entries[hole].slot != slot {
            if self.entries[hole].is_empty() {
                return;
            }
            hole = (hole + 1) & mask;
        }
        self.len -= 1;
        let mut next = (hole + 1) & mask;
        while !self.entries[next].is_empty() {
            // It may fill the hole if its own place is not between the hole and where it is.
            let home = self.home(self.entries[next].tag);
            if (next.wrapping_sub(home) & mask) >= (next.wrapping_sub(hole) & mask) {
                self.entries[hole] = self.entries[next];
                hole = next;
            }
            next = (next + 1) & mask;
        }
        self.entries[hole] = EMPTY;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Keys that collide: few different hashes, among them those at the end of the table.
        #[test]
        fn is_a_map(steps in prop::collection::vec((0u8..3, 0u32..40), 1..300)) {
            let tag = |key: u32| [0, u32::MAX, u32::MAX - 1, 1 << 31][key as usize % 4] ^ (key / 16);
            let mut index = Index::default();
            let mut keys: Vec<u32> = Vec::new();
            for (what, key) in steps {
                let at = keys.iter().position(|k| *k == key);
                prop_assert_eq!(index.find(tag(key), |slot| slot == key), at.map(|_| key));
                match (what, at) {
                    (0, Some(at)) => {
                        keys.swap_remove(at);
                        index.remove(tag(key), key);
                    }
                    (1 | 2, None) => {
                        keys.push(key);
                        index.insert(tag(key), key);
                    }
                    _ => {}
                }
                prop_assert_eq!(index.len(), keys.len());
            }
            for key in 0..40 {
                prop_assert_eq!(index.find(tag(key), |slot| slot == key).is_some(), keys.contains(&key));
            }
        }
    }
}
