//! A snapshot in figures.

use super::{Blocks, Snapshot, SnapshotMeta};
use posix::FileKind;
use rustc_hash::FxHashSet;
use serde::Serialize;
use std::collections::BTreeMap;

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
    /// What its block lists hold; `None` where there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocks: Option<BlocksSummary>,
}

/// What block lists hold; inodes with several names count once.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct BlocksSummary {
    /// Files whose list is known, be it empty.
    pub files: u64,
    /// Directories likewise.
    pub directories: u64,
    /// Extents of both.
    pub extents: u64,
    /// Their lengths, bytes.
    pub bytes: u64,
    /// Files without a list, by the reason.
    pub files_without: BTreeMap<String, u64>,
    /// Directories without a list, by the reason.
    pub directories_without: BTreeMap<String, u64>,
}

/// Reasons that are told apart: a snapshot of somebody else's may give each file one of its own.
const REASONS_MAX: usize = 20;

impl BlocksSummary {
    fn add(&mut self, kind: FileKind, blocks: Blocks<'_>) {
        let is_file = kind == FileKind::File;
        match blocks {
            Blocks::NotKept => {}
            Blocks::Known(extents) => {
                *(if is_file { &mut self.files } else { &mut self.directories }) += 1;
                for extent in extents {
                    self.extents += 1;
                    self.bytes = self.bytes.saturating_add(extent.len_bytes);
                }
            }
            Blocks::Unknown(why) => {
                let without = if is_file { &mut self.files_without } else { &mut self.directories_without };
                let told = without.contains_key(why) || without.len() < REASONS_MAX;
                *without.entry(if told { why } else { "other reasons" }.to_owned()).or_default() += 1;
            }
        }
    }
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
            blocks: self.lists.as_ref().map(|_| BlocksSummary::default()),
        };
        let mut seen = FxHashSet::default();
        for (index, inode) in self.entries().iter().map(|e| e.inode).enumerate() {
            if inode.nlink > 1 && inode.kind != FileKind::Directory && !seen.insert(inode.ino) {
                summary.further_names += 1;
                continue;
            }
            if let (Some(counted), Some(blocks)) = (&mut summary.blocks, self.blocks(index)) {
                counted.add(inode.kind, blocks);
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
