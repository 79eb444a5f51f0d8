//! The type of a file system, and what hangs on nothing but that.
//!
//! A name is read once, where it comes in: from the mount table, a profile, a snapshot. What hangs on the type is asked
//! here by what it is, so that a further file system is one variant and its answers.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The type of a file system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
#[allow(missing_docs)]
pub enum FsType {
    Ext2,
    Ext3,
    Ext4,
    Xfs,
    Btrfs,
    Tmpfs,
    /// The laboratory's Fast File System.
    Ffs,
    /// The Fast File System of a BSD.
    Ufs,
    /// The log-structured file system.
    Lfs,
    /// One that nothing hangs on, by its name; empty where it is not known.
    Other(String),
}

const NAMES: [(&str, FsType); 9] = [
    ("ext2", FsType::Ext2),
    ("ext3", FsType::Ext3),
    ("ext4", FsType::Ext4),
    ("xfs", FsType::Xfs),
    ("btrfs", FsType::Btrfs),
    ("tmpfs", FsType::Tmpfs),
    ("ffs", FsType::Ffs),
    ("ufs", FsType::Ufs),
    ("lfs", FsType::Lfs),
];

impl FsType {
    /// As the mount table names it.
    pub fn name(&self) -> &str {
        match self {
            FsType::Other(name) => name,
            known => NAMES.iter().find(|(_, of_name)| of_name == known).map_or("", |(name, _)| name),
        }
    }

    /// Whether it is not known.
    pub fn is_unknown(&self) -> bool {
        self.name().is_empty()
    }

    /// Whether overwritten data goes to another place.
    pub fn copies_on_write(&self) -> bool {
        *self == FsType::Btrfs
    }

    /// Whether a file may have the device, and the inode number, of a layer below.
    pub fn is_layered(&self) -> bool {
        self.name() == "overlay"
    }

    /// Whether `f_fsid` comes from the file system itself; elsewhere it is the device's number, which may change.
    pub fn id_is_lasting(&self) -> bool {
        matches!(self, FsType::Ext2 | FsType::Ext3 | FsType::Ext4 | FsType::Btrfs)
    }

    /// Whether the counters of statvfs(2) follow every call. btrfs counts what was written or deleted from the next
    /// commit on; XFS reserves blocks for metadata of data not yet placed, and frees deleted files in the background.
    pub fn counts_at_once(&self) -> bool {
        matches!(self, FsType::Ext2 | FsType::Ext3 | FsType::Ext4 | FsType::Tmpfs | FsType::Ffs)
    }
}

impl Default for FsType {
    fn default() -> FsType {
        FsType::Other(String::new())
    }
}

impl From<&str> for FsType {
    fn from(name: &str) -> FsType {
        let known = NAMES.into_iter().find(|(known, _)| *known == name);
        known.map_or_else(|| FsType::Other(name.to_owned()), |(_, of_name)| of_name)
    }
}

impl From<String> for FsType {
    fn from(name: String) -> FsType {
        FsType::from(name.as_str())
    }
}

impl From<FsType> for String {
    fn from(of: FsType) -> String {
        of.name().to_owned()
    }
}

impl fmt::Display for FsType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_written_as_it_was_read() {
        for name in ["", "ext4", "lfs", "nfs4", "Ext4"] {
            let json = format!("{name:?}");
            let read: FsType = serde_json::from_str(&json).unwrap();
            assert_eq!((read.name(), serde_json::to_string(&read).unwrap()), (name, json));
        }
        assert_eq!(FsType::from("btrfs"), FsType::Btrfs);
        assert!(FsType::default().is_unknown() && !FsType::from("Ext4").id_is_lasting());
    }
}
