//! What can be wrong with an image, and where.

use std::io;

/// A structure on disk that is not what it should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// A structure does not begin with its magic number.
    #[error("byte {at_byte}: no {structure} here: magic {found:#x}, expected {expected:#x}")]
    Magic {
        /// Which structure.
        structure: String,
        /// Byte in the image (or in the given bytes) of the magic number.
        at_byte: u64,
        /// What is there.
        found: u32,
        /// What should be.
        expected: u32,
    },
    /// A field has a value that cannot be.
    #[error("byte {at_byte}: {structure}, field {field}: {problem}")]
    Field {
        /// Which structure.
        structure: String,
        /// Its field.
        field: &'static str,
        /// Byte in the image of the field.
        at_byte: u64,
        /// What is wrong with it, with the value.
        problem: String,
    },
    /// There are fewer bytes than the structure has.
    #[error("byte {at_byte}: {structure} needs {needed} bytes, there are {found}")]
    Short {
        /// Which structure.
        structure: String,
        /// Byte in the image where it begins.
        at_byte: u64,
        /// Bytes it needs.
        needed: usize,
        /// Bytes there are.
        found: usize,
    },
}

impl FormatError {
    pub(crate) fn field(
        structure: impl Into<String>,
        field: &'static str,
        at_byte: u64,
        problem: impl Into<String>,
    ) -> FormatError {
        FormatError::Field { structure: structure.into(), field, at_byte, problem: problem.into() }
    }
}

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
pub enum FfsError {
    /// The image cannot be read or written there.
    #[error("cannot {doing} {len} bytes at byte {at_byte}: {source}")]
    Io {
        /// "read" or "write".
        doing: &'static str,
        /// Where.
        at_byte: u64,
        /// How many.
        len: usize,
        /// Why.
        source: io::Error,
    },
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
    /// Stopped by the caller.
    #[error("interrupted")]
    Interrupted(#[source] io::Error),
}

impl FfsError {
    /// Interrupted, in the form the binary recognises.
    pub(crate) fn interrupted() -> FfsError {
        FfsError::Interrupted(io::Error::from(io::ErrorKind::Interrupted))
    }

    /// The process exit code: 2 usage, 3 environment, 4 bad input file, 130 interrupted.
    pub fn exit_code(&self) -> u8 {
        match self {
            FfsError::Options(_) | FfsError::Path { .. } => 2,
            FfsError::Io { source, .. } if source.kind() == io::ErrorKind::UnexpectedEof => 4,
            FfsError::Io { .. } | FfsError::Host { .. } => 3,
            FfsError::NoFileSystem(_) | FfsError::Format(_) | FfsError::Inode { .. } => 4,
            FfsError::Interrupted(_) => 130,
        }
    }
}
