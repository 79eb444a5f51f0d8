//! A snapshot: its entries in order, and look-ups in them.

use super::entry::SnapshotEntry;
use super::path::{is_below, path_order};

/// Every name below the directories a workload touched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Sorted by path component-wise, so parents come before children and a directory's subtree is contiguous.
    pub entries: Vec<SnapshotEntry>,
}

impl Snapshot {
    /// Sorts the entries; of several with one path the best known (in the order of
    /// [`Provenance`](super::Provenance)) stays.
    pub fn from_entries(mut entries: Vec<SnapshotEntry>) -> Snapshot {
        entries.sort_by(|a, b| path_order(&a.path, &b.path).then(a.provenance.cmp(&b.provenance)));
        entries.dedup_by(|later, first| later.path == first.path);
        Snapshot { entries }
    }

    /// The entry of an absolute path.
    pub fn get(&self, path: &[u8]) -> Option<&SnapshotEntry> {
        let at = self.entries.binary_search_by(|e| path_order(&e.path, path)).ok()?;
        self.entries.get(at)
    }

    /// Everything below a directory, itself not included.
    pub fn below(&self, directory: &[u8]) -> &[SnapshotEntry] {
        let inside = |e: &SnapshotEntry| is_below(&e.path, directory);
        let from = self.entries.partition_point(|e| path_order(&e.path, directory).is_le());
        let rest = &self.entries[from..];
        &rest[..rest.partition_point(inside)]
    }

    /// The entries directly in a directory.
    pub fn children(&self, directory: &[u8]) -> impl Iterator<Item = &SnapshotEntry> {
        let directory = directory.to_vec();
        self.below(&directory).iter().filter(move |e| e.parent() == Some(&directory))
    }

    /// Adds what `other` knows of paths not here, and returns the union.
    pub fn merged(self, other: Snapshot) -> Snapshot {
        let mut entries = self.entries;
        entries.extend(other.entries);
        Snapshot::from_entries(entries)
    }
}
