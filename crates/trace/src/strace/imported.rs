//! What an import comes to, whatever the notation.

use super::Summary;
use crate::profile::Meta;
use crate::track::{Removed, Tracker};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// An imported trace: what is to be said of it, and the state it ended in.
#[derive(Debug)]
pub struct Imported {
    /// Counts.
    pub summary: Summary,
    tracker: Tracker,
    /// What the notation itself says for `meta.json`: tracer and clock.
    pub(super) says: Meta,
    /// Files of which the trace reads so many bytes that it did not write.
    least_sizes: FxHashMap<Vec<u8>, u64>,
}

impl Imported {
    /// The end of an import; `says` is what the notation itself tells for `meta.json`.
    pub(crate) fn new(summary: Summary, tracker: Tracker, says: Meta) -> Self {
        Imported { summary, tracker, says, least_sizes: FxHashMap::default() }
    }

    /// With lengths that files (by absolute path) must have had when the trace began.
    pub(crate) fn with_least_sizes(mut self, sizes: FxHashMap<Vec<u8>, u64>) -> Self {
        self.least_sizes = sizes;
        self
    }

    /// [`Meta::returned`].
    pub(super) fn returned(&self) -> BTreeMap<u64, u64> {
        self.tracker.returned().iter().map(|(ofd, &times)| (ofd.0, times)).collect()
    }

    /// The names that were there before and are gone ([`keep_removed`](super::ImportOptions::keep_removed)).
    pub fn take_removed(&mut self) -> Vec<Removed> {
        self.tracker.take_removed()
    }

    /// The directories in which the trace looked up names or which it read, by the paths they had when it began.
    pub fn take_touched(&mut self) -> Vec<Vec<u8>> {
        self.tracker.take_touched()
    }

    /// The names the trace implies were there when it began, with what it tells of them. Sorted by nothing.
    pub fn implied_snapshot(&mut self) -> Vec<crate::SnapshotEntry> {
        let mut entries = self.tracker.implied_snapshot();
        for entry in entries.iter_mut().filter(|entry| entry.kind == posix::FileKind::File) {
            if let Some(&least) = self.least_sizes.get(&entry.path) {
                entry.size_bytes = entry.size_bytes.max(least);
            }
        }
        entries
    }

    /// What became of a path that is there at the end of the trace.
    pub fn history(&self, path: &[u8]) -> crate::track::History {
        self.tracker.history(path)
    }

    /// Whether the trace met an absolute path: used it, or one below it.
    pub fn has_met(&self, path: &[u8]) -> bool {
        self.tracker.has_met(path)
    }
}
