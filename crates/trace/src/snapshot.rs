//! The names a workload found: every file and directory that was there when the trace began.
//!
//! What lives here: the types, look-ups, and the walker that reads a tree ([`Snapshot::of_tree`]), ours or another
//! mount namespace's ([`View`]). The Parquet form is
//! written by [`crate::profile`]. A snapshot is sorted so that a directory comes before what is in it; hard links share
//! `(dev, ino)`.

mod view;
pub(crate) mod walk;

use posix::FileKind;
use serde::{Deserialize, Serialize};

pub use view::View;
pub use walk::{WalkLimits, Walked};

/// One name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotEntry {
    /// Absolute path, without `.`, `..`, repeated or trailing slashes.
    pub path: Vec<u8>,
    /// What it is.
    pub kind: FileKind,
    /// Length in bytes (directories: as the file system reports it; symbolic links: length of the target).
    pub size_bytes: u64,
    /// Permission bits (`0o7777`).
    pub mode: u16,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Number of names of the inode.
    pub nlink: u32,
    /// Inode number; 0 where unknown (`provenance` is [`Provenance::Trace`]).
    pub ino: u64,
    /// Device the inode is on (`st_dev`); 0 where unknown.
    pub dev: u64,
    /// Modification time, nanoseconds since the epoch.
    pub mtime_ns: i64,
    /// Target of a symbolic link, as stored.
    pub target: Option<Vec<u8>>,
    /// How we know.
    pub provenance: Provenance,
}

/// How a snapshot entry is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Provenance {
    /// Seen on disk before the workload ran.
    Before,
    /// Seen on disk after the workload ran, what the trace says it changed undone.
    After,
    /// Implied by the trace alone; attributes that the trace does not give are zero.
    Trace,
}

impl Provenance {
    /// The name used in files and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Provenance::Before => "before",
            Provenance::After => "after",
            Provenance::Trace => "trace",
        }
    }

    /// The provenance of a name.
    pub fn from_name(name: &str) -> Option<Provenance> {
        [Provenance::Before, Provenance::After, Provenance::Trace].into_iter().find(|p| p.name() == name)
    }
}

/// Every name below the directories a workload touched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Sorted by path component-wise, so parents come before children and a directory's subtree is contiguous.
    pub entries: Vec<SnapshotEntry>,
}

impl SnapshotEntry {
    /// An entry of which only name and kind are known: an implied one, attributes zero but for usual permission bits.
    pub fn implied(path: Vec<u8>, kind: FileKind) -> SnapshotEntry {
        let mode = if kind == FileKind::Directory { 0o755 } else { 0o644 };
        SnapshotEntry {
            path,
            kind,
            size_bytes: 0,
            mode,
            uid: 0,
            gid: 0,
            nlink: 1,
            ino: 0,
            dev: 0,
            mtime_ns: 0,
            target: None,
            provenance: Provenance::Trace,
        }
    }

    /// The path of the directory it is in; `None` for `/`.
    pub fn parent(&self) -> Option<&[u8]> {
        parent_of(&self.path)
    }

    /// Device and number of an inode that may have other names.
    pub fn shared_inode(&self) -> Option<(u64, u64)> {
        let shared = self.kind != FileKind::Directory && self.nlink > 1 && self.ino != 0;
        shared.then_some((self.dev, self.ino))
    }

    /// The last component; empty for `/`.
    pub fn name(&self) -> &[u8] {
        match memchr::memrchr(b'/', &self.path) {
            Some(slash) => &self.path[slash + 1..],
            None => &self.path,
        }
    }
}

/// The directory part of an absolute path; `None` for `/` and for what is not absolute.
pub fn parent_of(path: &[u8]) -> Option<&[u8]> {
    match memchr::memrchr(b'/', path)? {
        0 if path.len() == 1 => None,
        0 => Some(b"/"),
        slash => Some(&path[..slash]),
    }
}

/// Whether a path is written as those of entries are: from the root on, without `.`, `..`, and repeated slashes or one
/// at the end. One that is written in two ways would be two files.
pub fn is_plain(path: &[u8]) -> bool {
    let Some(names) = path.strip_prefix(b"/") else { return false };
    names.is_empty() || names.split(|&b| b == b'/').all(|name| !matches!(name, b"" | b"." | b".."))
}

/// The order of entries: component-wise, so that `/a`, `/a/b`, `/a-b` stay in this order although `-` sorts before `/`.
pub fn path_order(a: &[u8], b: &[u8]) -> std::cmp::Ordering {
    // Equal runs are skipped a chunk at a time: paths of one tree share long prefixes.
    const CHUNK: usize = 32;
    let same = a.chunks_exact(CHUNK).zip(b.chunks_exact(CHUNK)).take_while(|(x, y)| x == y).count() * CHUNK;
    // A slash sorts below every other byte: compare with slashes mapped to 0 (a path holds no NUL).
    let key = |&c: &u8| if c == b'/' { 0 } else { c };
    a[same..].iter().map(key).cmp(b[same..].iter().map(key))
}

impl Snapshot {
    /// Sorts the entries; of several with one path the best known (in the order of [`Provenance`]) stays.
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

pub(crate) fn is_below(path: &[u8], directory: &[u8]) -> bool {
    if directory == b"/" {
        return path.len() > 1;
    }
    path.len() > directory.len() && path.starts_with(directory) && path[directory.len()] == b'/'
}
