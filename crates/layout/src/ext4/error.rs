//! What can be wrong with an image, and where.

use std::io;

/// An error in reading an ext4 image.
#[derive(Debug, thiserror::Error)]
pub enum Ext4Error {
    /// The image cannot be opened.
    #[error("cannot open it: {0}")]
    Open(#[source] io::Error),
    /// The image cannot be read there.
    #[error("cannot read {len} bytes at byte {at_byte}: {source}")]
    Io {
        /// Where.
        at_byte: u64,
        /// How many bytes were wanted.
        len: usize,
        /// Why.
        source: io::Error,
    },
    /// It has no ext4 superblock.
    #[error("no ext2, ext3 or ext4 superblock at byte 1024 ({0})")]
    NotExt4(String),
    /// It is damaged.
    #[error("byte {at_byte}: {what}; check a copy of the image with e2fsck")]
    Damaged {
        /// Where the damage shows.
        at_byte: u64,
        /// What is wrong.
        what: String,
    },
    /// It uses a feature that changes the format in a way this reader does not know.
    #[error("feature {0} is not read; mount the file system and survey its directory")]
    Unsupported(String),
    /// Stopped by a signal or by the caller.
    #[error("the survey was interrupted")]
    Interrupted,
}

/// Damage at a byte.
pub(super) fn damaged(at_byte: u64, what: impl Into<String>) -> Ext4Error {
    Ext4Error::Damaged { at_byte, what: what.into() }
}
