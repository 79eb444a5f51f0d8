//! What can be wrong with an image, and where.

use device::store::StoreError;
use std::io;
use ufs::{FormatError, ImageError, Ino};

/// An error of what works on images.
#[derive(Debug, thiserror::Error)]
pub enum LfsError {
    /// The image cannot be read or written there.
    #[error(transparent)]
    Io(#[from] StoreError),
    /// Nothing in the image looks like a file system of this kind.
    #[error("no superblock of a log-structured file system at byte 8192{0}")]
    NoFileSystem(String),
    /// A structure is damaged.
    #[error("{0}; check the image with `fsage fsck`")]
    Format(#[from] FormatError),
    /// A file or directory is damaged.
    #[error("inode {ino}: {problem}; check the image with `fsage fsck`")]
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
    /// A file system that must not be written to.
    #[error("this file system cannot be written to: {0}")]
    NotWritable(String),
    /// No room for a file.
    #[error(
        "{path}: no space for it in the image: {available_bytes} bytes are left; make a larger one (`fsage mkfs lfs`)"
    )]
    Full {
        /// What was being copied.
        path: String,
        /// Space left for data.
        available_bytes: u64,
    },
    /// Stopped by the caller.
    #[error("interrupted")]
    Interrupted(#[source] io::Error),
}

impl LfsError {
    /// The process exit code: 2 usage, 3 environment, 4 bad input file, 130 interrupted.
    pub fn exit_code(&self) -> u8 {
        match self {
            LfsError::Options(_) | LfsError::Path { .. } => 2,
            LfsError::Io(error) if error.source.kind() == io::ErrorKind::UnexpectedEof => 4,
            LfsError::Io(_) | LfsError::Host { .. } | LfsError::Full { .. } => 3,
            LfsError::NotWritable(_) | LfsError::NoFileSystem(_) | LfsError::Format(_) | LfsError::Inode { .. } => 4,
            LfsError::Interrupted(_) => 130,
        }
    }
}

impl ImageError for LfsError {
    fn host(path: String, doing: &'static str, source: io::Error) -> LfsError {
        LfsError::Host { path, doing, source }
    }

    fn path(path: String, problem: String) -> LfsError {
        LfsError::Path { path, problem }
    }

    fn inode(ino: Ino, problem: String) -> LfsError {
        LfsError::Inode { ino: ino.0, problem }
    }

    fn not_writable(problem: String) -> LfsError {
        LfsError::NotWritable(problem)
    }

    /// In the form the binary recognises.
    fn interrupted() -> LfsError {
        LfsError::Interrupted(io::Error::from(io::ErrorKind::Interrupted))
    }
}
