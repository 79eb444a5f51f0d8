//! What was there when the trace began, told from where it ended.

use super::Tracker;
use super::call::Kind;
use super::names::{Birth, Removed};
use crate::SnapshotEntry;
use crate::snapshot::parent_of;
use posix::FileKind;
use rustc_hash::FxHashSet;

/// What the trace did to a name that is there at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum History {
    /// Nothing: it was there when the trace began, as it is.
    Untouched,
    /// The trace made it, or a directory above it.
    Made,
    /// An open made it or found it: the trace does not tell.
    Opened {
        /// What happened to its content since, if anything.
        changed: Option<Change>,
    },
    /// It was there when the trace began.
    Kept {
        /// Where.
        path: Vec<u8>,
        /// What happened to its content, if anything.
        changed: Option<Change>,
    },
}

/// What the trace did to a file's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It had this length when the trace began.
    From(u64),
    /// It grew by so much, and nothing else happened to it.
    Grew(u64),
    /// The trace does not tell its first length.
    Unknown,
}

impl Tracker {
    /// What the trace did to an absolute path, free of links, that is there at the end.
    pub fn history(&self, path: &[u8]) -> History {
        if path == b"/" {
            return History::Untouched;
        }
        let (node, rest) = self.names.deepest(path);
        if rest.iter().any(|&b| b != b'/') {
            return match self.names.first_path(node) {
                None => History::Made,
                Some(mut first) => {
                    first.extend_from_slice(rest);
                    if first == path { History::Untouched } else { History::Kept { path: first, changed: None } }
                }
            };
        }
        let state = self.names.file(self.names.file_of(node));
        let changed = state.changed.then_some(match (state.first_size, state.appended) {
            (Some(size), _) => Change::From(size),
            (None, Some(bytes)) => Change::Grew(bytes),
            (None, None) => Change::Unknown,
        });
        if self.names.birth(node) == Birth::Opened {
            return History::Opened { changed };
        }
        match self.names.first_path(node) {
            None => History::Made,
            Some(first) if first == path && !state.changed => History::Untouched,
            Some(first) => History::Kept { path: first, changed },
        }
    }

    /// Whether the trace met an absolute path: used it, or one below it.
    pub fn has_met(&self, path: &[u8]) -> bool {
        self.names.deepest(path).1.iter().all(|&b| b == b'/')
    }

    /// The names the trace implies were there when it began: those it met and did not make, and those it removed. A
    /// link appears where the trace showed that one must be.
    pub fn implied_snapshot(&mut self) -> Vec<SnapshotEntry> {
        let mut entries = Vec::new();
        self.names.for_each(|node| {
            let Some(path) = self.names.first_path(node) else { return };
            let state = self.names.file(self.names.file_of(node));
            let size_bytes = if state.changed { state.first_size } else { state.first_size.or(state.size) };
            let target = state.target.as_deref().map(<[u8]>::to_vec);
            let removed = Removed { path, kind: state.kind, size_bytes, mode: state.mode, target };
            entries.push(removed.into_entry());
        });
        entries.extend(self.take_removed().into_iter().map(Removed::into_entry));
        // What a text gave for a path and none can be is left out here as it is in the rows.
        entries.retain(|entry| crate::profile::no_path(&entry.path).is_none());
        // What has names in it is a directory, whether or not a call said so.
        let parents: FxHashSet<Vec<u8>> =
            entries.iter().filter_map(|e| parent_of(&e.path).map(<[u8]>::to_vec)).collect();
        for entry in entries.iter_mut().filter(|e| e.kind == FileKind::File && parents.contains(&e.path)) {
            *entry = SnapshotEntry::implied(std::mem::take(&mut entry.path), FileKind::Directory);
        }
        entries
    }
}

impl Removed {
    /// As an entry of a snapshot.
    pub fn into_entry(self) -> SnapshotEntry {
        let kind = match self.kind {
            Kind::Directory => FileKind::Directory,
            Kind::Symlink => FileKind::Symlink,
            Kind::Special => FileKind::Special,
            // What is opened, read or removed and never said to be anything else is an ordinary file, mostly.
            Kind::Regular | Kind::Unknown => FileKind::File,
        };
        let mut entry = SnapshotEntry::implied(self.path, kind);
        entry.size_bytes = self.size_bytes.unwrap_or(self.target.as_ref().map_or(0, |t| t.len() as u64));
        entry.mode = self.mode.unwrap_or(entry.mode);
        entry.target = self.target;
        entry
    }
}
