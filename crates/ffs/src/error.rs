//! What can be wrong with an image, and where.

use device::store::StoreError;
use std::io;
use ufs::{FormatError, ImageError, Ino};

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
pub enum FfsError {
    /// The image cannot be read or written there.
    #[error(transparent)]
    Io(#[from] StoreError),
    /// Nothing in the image looks like a file system of this kind.
    #[error("no UFS1 or UFS2 superblock at bytes 65536, 8192, 0 or 262144{0}")]
    NoFileSystem(String),
    /// A structure is damaged.
    #[error("{0}; check a copy of the image with `fsage fsck`")]
    Format(#[from] FormatError),
    /// A file or directory is damaged.
    #[error("inode {ino}: {problem}; check a copy of the image with `fsage fsck`")]
    Inode {
        /// Which.
        ino: u32,
        /// What is wrong.
        problem: String,
    },
    /// A path that is not in the image.
    #[error("{path}: {problem}")]
    Path {
        /// The path asked for.
        path: String,
        /// Why it cannot be had.
        problem: String,
    },
    /// Something outside the image: the destination of a copy.
    #[error("{path}: cannot {doing}: {source}")]
    Host {
        /// The path on this machine.
        path: String,
        /// What was being done.
        doing: &'static str,
        /// Why it failed.
        source: io::Error,
    },
    /// Options of [`mkfs`](crate::mkfs()) that make no file system.
    #[error("{0}")]
    Options(String),
    /// Free-space maps that no file system can be made of.
    #[error("free-space maps: {0}")]
    FreeMaps(String),
    /// A file system that must not be written to.
    #[error("this file system cannot be written to: {0}")]
    NotWritable(String),
    /// No room for a file.
    #[error(
        "{path}: no space for it in the image: {available_bytes} bytes and {free_inodes} inodes are left; make a larger one \
         (`fsage mkfs ffs`)"
    )]
    Full {
        /// What was being copied.
        path: String,
        /// Space left for data.
        available_bytes: u64,
        /// Inodes left.
        free_inodes: u64,
    },
    /// Stopped by the caller.
    #[error("interrupted")]
    Interrupted(#[source] io::Error),
}

impl FfsError {
    /// The process exit code: 2 usage, 3 environment, 4 bad input file, 130 interrupted.
    pub fn exit_code(&self) -> u8 {
        match self {
            FfsError::Options(_) | FfsError::Path { .. } => 2,
            FfsError::Io(error) if error.source.kind() == io::ErrorKind::UnexpectedEof => 4,
            FfsError::Io(_) | FfsError::Host { .. } | FfsError::Full { .. } => 3,
            FfsError::NotWritable(_) => 4,
            FfsError::NoFileSystem(_) | FfsError::Format(_) | FfsError::Inode { .. } | FfsError::FreeMaps(_) => 4,
            FfsError::Interrupted(_) => 130,
        }
    }
}

impl ImageError for FfsError {
    fn host(path: String, doing: &'static str, source: io::Error) -> FfsError {
        FfsError::Host { path, doing, source }
    }

    fn path(path: String, problem: String) -> FfsError {
        FfsError::Path { path, problem }
    }

    fn inode(ino: Ino, problem: String) -> FfsError {
        FfsError::Inode { ino: ino.0, problem }
    }

    fn not_writable(problem: String) -> FfsError {
        FfsError::NotWritable(problem)
    }

    /// In the form the binary recognises.
    fn interrupted() -> FfsError {
        FfsError::Interrupted(io::Error::from(io::ErrorKind::Interrupted))
    }
}
