//! Statistics of a snapshot alone.

use super::histogram::{Bar, Distribution, Histogram};
use crate::{Snapshot, SnapshotEntry};
use posix::FileKind;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;

/// What is in a snapshot.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SnapshotStatistics {
    /// Entries by kind.
    pub files: u64,
    #[allow(missing_docs)]
    pub directories: u64,
    #[allow(missing_docs)]
    pub symlinks: u64,
    #[allow(missing_docs)]
    pub special: u64,
    /// Names that share their inode with another name here.
    pub hard_linked_names: u64,
    /// Lengths of ordinary files, bytes, each inode once.
    pub file_bytes: Distribution,
    /// The same as bars, one per power of two.
    pub file_bytes_bars: Vec<Bar>,
    /// Names per directory.
    pub fan_out: Distribution,
    /// Components of the paths.
    pub depth: Distribution,
}

impl SnapshotStatistics {
    /// Counts a snapshot.
    pub fn of(snapshot: &Snapshot) -> SnapshotStatistics {
        let mut kinds = [0u64; 4];
        let mut inodes: FxHashMap<(u64, u64), u64> = FxHashMap::default();
        let mut seen: FxHashSet<(u64, u64)> = FxHashSet::default();
        let (mut sizes, mut depth, mut fan_out) = (Histogram::default(), Histogram::default(), Histogram::default());
        let mut children: FxHashMap<&[u8], u64> = FxHashMap::default();
        for entry in &snapshot.entries {
            kinds[kind_index(entry.kind)] += 1;
            depth.add(depth_of(entry));
            if entry.kind == FileKind::Directory {
                children.entry(&entry.path).or_default();
            } else if entry.ino != 0 {
                *inodes.entry((entry.dev, entry.ino)).or_default() += 1;
            }
            if let Some(parent) = entry.parent() {
                *children.entry(parent).or_default() += 1;
            }
            if entry.kind == FileKind::File && (entry.ino == 0 || seen.insert((entry.dev, entry.ino))) {
                sizes.add(entry.size_bytes);
            }
        }
        children.values().for_each(|&n| fan_out.add(n));
        SnapshotStatistics {
            files: kinds[0],
            directories: kinds[1],
            symlinks: kinds[2],
            special: kinds[3],
            hard_linked_names: inodes.values().filter(|&&n| n > 1).sum(),
            file_bytes: sizes.distribution(),
            file_bytes_bars: sizes.bars(),
            fan_out: fan_out.distribution(),
            depth: depth.distribution(),
        }
    }
}

fn kind_index(kind: FileKind) -> usize {
    match kind {
        FileKind::File => 0,
        FileKind::Directory => 1,
        FileKind::Symlink => 2,
        FileKind::Special => 3,
    }
}

fn depth_of(entry: &SnapshotEntry) -> u64 {
    if entry.path.len() <= 1 { 0 } else { memchr::memchr_iter(b'/', &entry.path).count() as u64 }
}
