//! What a file system does that decides costs and that no single cost tells: found by trying, one experiment each.
//!
//! The types live here; the experiments are in `measure`, and what follows from them in the pipeline of `predict`
//! (`sync`, `cache`). A profile made before there were such experiments, or by hand, may say nothing.

use posix::FsType;
use serde::{Deserialize, Serialize};

/// What was found by trying; `None`: not tried, or the trial did not tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Behaviour {
    /// What a sync of one file makes stable of others' names and inodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub family: Option<Family>,
    /// Whether a sync of one file writes new data of others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync_writes_others: Option<bool>,
    /// Whether copy_file_range of whole blocks makes both files share them, so that there is nothing to write back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copies_share: Option<bool>,
    /// Whether fallocate reserves space; otherwise it is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preallocates: Option<bool>,
    /// Whether setting the length of a file writes what is dirty before the new end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truncate_writes: Option<bool>,
    /// Whether the fsync of a directory in which nothing has changed commits what has changed elsewhere (ext4 does what
    /// it does for all that is no regular file: it commits the log).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory_commits: Option<bool>,
    /// Whether the fsync of a file with data leaves something that such a directory's fsync has to commit (ext4 with
    /// `data=journal`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync_leaves_changes: Option<bool>,
}

impl Behaviour {
    /// Whether nothing was found.
    pub fn is_unknown(&self) -> bool {
        *self == Behaviour::default()
    }
}

/// A family of file systems, by what a sync of one file makes stable besides it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    /// One log holds what is not in its place yet, in order: everything earlier is committed too (ext4, XFS).
    Log,
    /// Each file by itself: in a log of its own (btrfs), or in its place, without any log (FFS). What a sync commits is
    /// the same.
    Each,
    /// All is a log, in segments: with a new file every other whose names changed is written, data included (LFS).
    Segments,
}

impl Family {
    /// That of a type of file system; of one that nothing is known of, the most usual.
    pub fn of(fs_type: &FsType) -> Family {
        match fs_type {
            FsType::Btrfs | FsType::Ffs | FsType::Ufs => Family::Each,
            FsType::Lfs => Family::Segments,
            FsType::Ext2 | FsType::Ext3 | FsType::Ext4 | FsType::Xfs | FsType::Tmpfs | FsType::Other(_) => Family::Log,
        }
    }
}
