//! The two formats.

use serde::Serialize;
use ufs::Endian;

/// Which of the two formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Version {
    /// 32-bit addresses, inodes of 128 bytes.
    Ufs1,
    /// 64-bit addresses, inodes of 256 bytes.
    Ufs2,
}

impl Version {
    /// Bytes of an inode.
    pub fn inode_bytes(self) -> u32 {
        match self {
            Version::Ufs1 => 128,
            Version::Ufs2 => 256,
        }
    }

    /// Bytes of a block pointer.
    pub fn pointer_bytes(self) -> u32 {
        match self {
            Version::Ufs1 => 4,
            Version::Ufs2 => 8,
        }
    }
}

/// How structures are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Layout {
    /// Format.
    pub version: Version,
    /// Byte order.
    pub endian: Endian,
}
