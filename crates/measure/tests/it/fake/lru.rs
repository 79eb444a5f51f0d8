//! A cache of a number of things.

use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Least recently used things up to a number; `usize::MAX` is without limit (and quicker).
pub(super) struct Lru<K> {
    limit: usize,
    tick: u64,
    by_key: FxHashMap<K, u64>,
    by_age: BTreeMap<u64, K>,
}

impl<K: Clone + Eq + std::hash::Hash> Lru<K> {
    pub(super) fn new(limit: usize) -> Self {
        Lru { limit, tick: 0, by_key: FxHashMap::default(), by_age: BTreeMap::new() }
    }

    pub(super) fn has(&self, key: &K) -> bool {
        self.by_key.contains_key(key)
    }

    pub(super) fn touch(&mut self, key: K) {
        self.tick += 1;
        if self.limit == usize::MAX {
            self.by_key.insert(key, 0);
            return;
        }
        if let Some(old) = self.by_key.insert(key.clone(), self.tick) {
            self.by_age.remove(&old);
        }
        self.by_age.insert(self.tick, key);
        if self.by_age.len() > self.limit {
            let (_, key) = self.by_age.pop_first().expect("not empty");
            self.by_key.remove(&key);
        }
    }

    pub(super) fn forget(&mut self, key: &K) {
        if let Some(age) = self.by_key.remove(key) {
            self.by_age.remove(&age);
        }
    }

    pub(super) fn clear(&mut self) {
        self.by_key.clear();
        self.by_age.clear();
    }
}
