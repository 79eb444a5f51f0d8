//! One name of a snapshot, and how it is known.

use super::path::parent_of;
use posix::FileKind;
use serde::{Deserialize, Serialize};

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
