//! Changes of directories by chunk and by name (`pagedep`).

use super::record::{Entry, Number};
use rustc_hash::{FxHashMap, FxHasher};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry as Slot;
use std::hash::{Hash as _, Hasher as _};
use std::ops::Range;

type List = SmallVec<[Number; 2]>;

/// Changes of directories, of each chunk and of each name the oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Pages {
    /// By directory and byte of the chunk.
    chunks: BTreeMap<(u32, u64), List>,
    /// By what [`hash_of`] makes of directory and name: others may be among them.
    names: FxHashMap<u64, List>,
}

fn hash_of(dir: u32, name: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    (dir, name).hash(&mut hasher);
    hasher.finish()
}

impl Pages {
    pub(super) fn add(&mut self, entry: &Entry, number: Number) {
        self.chunks.entry((entry.dir, entry.chunk)).or_default().push(number);
        self.names.entry(hash_of(entry.dir, &entry.name)).or_default().push(number);
    }

    pub(super) fn remove(&mut self, entry: &Entry, number: Number) {
        if let Slot::Occupied(mut list) = self.chunks.entry((entry.dir, entry.chunk)) {
            list.get_mut().retain(|other| *other != number);
            if list.get().is_empty() {
                list.remove();
            }
        }
        let hash = hash_of(entry.dir, &entry.name);
        if let Some(list) = self.names.get_mut(&hash) {
            list.retain(|other| *other != number);
            if list.is_empty() {
                self.names.remove(&hash);
            }
        }
    }

    /// Changes of the chunk at a byte of a directory.
    pub(super) fn of_chunk(&self, dir: u32, chunk: u64) -> &[Number] {
        self.chunks.get(&(dir, chunk)).map_or(&[], SmallVec::as_slice)
    }

    /// Changes of the chunks at these bytes, chunk by chunk.
    pub(super) fn of_chunks(&self, dir: u32, bytes: Range<u64>) -> impl Iterator<Item = &[Number]> {
        self.chunks.range((dir, bytes.start)..(dir, bytes.end)).map(|(_, list)| list.as_slice())
    }

    /// Changes of a name in a directory, and perhaps of others.
    pub(super) fn maybe_of_name(&self, dir: u32, name: &[u8]) -> &[Number] {
        self.names.get(&hash_of(dir, name)).map_or(&[], SmallVec::as_slice)
    }

    /// Whether a directory has changes.
    pub(super) fn concern(&self, dir: u32) -> bool {
        self.chunks.range((dir, 0)..=(dir, u64::MAX)).next().is_some()
    }

    /// All changes of a directory, chunk by chunk.
    pub(super) fn of_directory(&self, dir: u32) -> Vec<Number> {
        self.chunks.range((dir, 0)..=(dir, u64::MAX)).flat_map(|(_, list)| list).copied().collect()
    }
}
