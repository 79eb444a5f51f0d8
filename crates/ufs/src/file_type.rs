//! What a file is, its permissions and its times.

use serde::Serialize;

/// File types and permissions in `mode`.
pub mod mode {
    /// Mask of the type.
    pub const IFMT: u16 = 0o170_000;
    /// Mask of the permissions with set-id and sticky bits.
    pub const PERMISSIONS: u16 = 0o7777;
}

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FileType {
    /// Named pipe.
    Fifo,
    /// Character device.
    CharDevice,
    /// Directory.
    Directory,
    /// Block device.
    BlockDevice,
    /// Regular file.
    Regular,
    /// Symbolic link.
    Symlink,
    /// Socket.
    Socket,
    /// A name hidden from a lower layer (BSD).
    Whiteout,
}

impl FileType {
    /// From the upper bits of `mode`; `None` where they say nothing.
    pub fn of(mode: u16) -> Option<FileType> {
        Some(match mode >> 12 {
            0o01 => FileType::Fifo,
            0o02 => FileType::CharDevice,
            0o04 => FileType::Directory,
            0o06 => FileType::BlockDevice,
            0o10 => FileType::Regular,
            0o12 => FileType::Symlink,
            0o14 => FileType::Socket,
            0o16 => FileType::Whiteout,
            _ => return None,
        })
    }

    /// The upper bits of `mode`.
    pub fn mode_bits(self) -> u16 {
        u16::from(self.entry_type()) << 12
    }

    /// The type byte of a directory entry (`d_type`), which is the same number.
    pub fn entry_type(self) -> u8 {
        match self {
            FileType::Fifo => 0o01,
            FileType::CharDevice => 0o02,
            FileType::Directory => 0o04,
            FileType::BlockDevice => 0o06,
            FileType::Regular => 0o10,
            FileType::Symlink => 0o12,
            FileType::Socket => 0o14,
            FileType::Whiteout => 0o16,
        }
    }

    /// A device or pipe: no data of its own.
    pub fn is_special(self) -> bool {
        matches!(self, FileType::Fifo | FileType::CharDevice | FileType::BlockDevice | FileType::Socket)
    }
}

/// A time: seconds since 1970 and nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Time {
    /// Seconds.
    pub s: i64,
    /// Nanoseconds, as they are on disk.
    pub ns: i32,
}

/// The type of a file in words.
impl std::fmt::Display for FileType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            FileType::Fifo => "fifo",
            FileType::CharDevice => "character device",
            FileType::Directory => "directory",
            FileType::BlockDevice => "block device",
            FileType::Regular => "file",
            FileType::Symlink => "symbolic link",
            FileType::Socket => "socket",
            FileType::Whiteout => "whiteout",
        })
    }
}
