//! A snapshot in figures.

use super::{Snapshot, SnapshotMeta};
use posix::FileKind;
use rustc_hash::FxHashSet;
use serde::Serialize;

/// What is in a snapshot; inodes with several names count once.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// What it says of itself.
    pub meta: SnapshotMeta,
    /// Ordinary files.
    pub files: u64,
    /// Directories, the root included.
    pub directories: u64,
    /// Symbolic links.
    pub symlinks: u64,
    /// FIFOs, sockets and devices.
    pub special: u64,
    /// Names beyond the first of files that have several.
    pub further_names: u64,
    /// Sum of the files' lengths, bytes.
    pub bytes: u64,
    /// Sum of the files' space in use, bytes.
    pub allocated_bytes: u64,
    /// Files, directories included, whose generation is known.
    pub with_generation: u64,
    /// The latest change time of an inode, nanoseconds.
    pub last_change_ns: Option<i64>,
}

impl Snapshot {
    /// Counts what is in it.
    pub fn summary(&self) -> Summary {
        let mut summary = Summary {
            meta: self.meta.clone(),
            files: 0,
            directories: 0,
            symlinks: 0,
            special: 0,
            further_names: 0,
            bytes: 0,
            allocated_bytes: 0,
            with_generation: 0,
            last_change_ns: self.entries().iter().map(|e| e.inode.ctime_ns).max(),
        };
        let mut seen = FxHashSet::default();
        for inode in self.entries().iter().map(|e| e.inode) {
            if inode.nlink > 1 && inode.kind != FileKind::Directory && !seen.insert(inode.ino) {
                summary.further_names += 1;
                continue;
            }
            summary.with_generation += u64::from(inode.generation.is_some());
            match inode.kind {
                FileKind::File => {
                    summary.files += 1;
                    summary.bytes = summary.bytes.saturating_add(inode.size_bytes);
                    summary.allocated_bytes = summary.allocated_bytes.saturating_add(inode.allocated_bytes);
                }
                FileKind::Directory => summary.directories += 1,
                FileKind::Symlink => summary.symlinks += 1,
                FileKind::Special => summary.special += 1,
            }
        }
        summary
    }
}
