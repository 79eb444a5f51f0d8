//! What can be wrong with a structure, and where.

use crate::Ino;
use device::store::StoreError;
use fault::{Fault, Kind};
use std::fmt::Debug;
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
    /// A field that has a value that cannot be.
    pub fn field(
        structure: impl Into<String>,
        field: &'static str,
        at_byte: u64,
        problem: impl Into<String>,
    ) -> FormatError {
        FormatError::Field { structure: structure.into(), field, at_byte, problem: problem.into() }
    }
}

/// An error of what works on images, as far as reading files and copying them in and out goes.
pub trait ImageError: Sized {
    /// Something outside the image cannot be used.
    fn host(path: String, doing: &'static str, source: std::io::Error) -> Self;

    /// A path cannot be had.
    fn path(path: String, problem: String) -> Self;

    /// A file or directory cannot be what its inode says.
    fn inode(ino: Ino, problem: String) -> Self;

    /// The file system must not be written to.
    fn not_writable(problem: String) -> Self;

    /// Stopped by the caller.
    fn interrupted() -> Self;
}

/// How a kind of file system is named in errors. No value of it is ever made.
pub trait System: Debug + Send + Sync + 'static {
    /// As in `fsage mkfs NAME`.
    const NAME: &'static str;
    /// Nothing in an image looks like one.
    const NONE: &'static str;
    /// What to do about a damaged one.
    const CHECK: &'static str;
}

/// An error of what works on images of a kind of file system.
#[derive(Debug, thiserror::Error)]
pub enum Error<S: System> {
    /// The image cannot be read or written there.
    #[error(transparent)]
    Io(#[from] StoreError),
    /// Nothing in the image looks like a file system of this kind.
    #[error("{none}{0}", none = S::NONE)]
    NoFileSystem(String),
    /// A structure is damaged.
    #[error("{0}; {check}", check = S::CHECK)]
    Format(#[from] FormatError),
    /// A file or directory is damaged.
    #[error("inode {ino}: {problem}; {check}", check = S::CHECK)]
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
    /// Options of `mkfs` that make no file system.
    #[error("{0}")]
    Options(String),
    /// Free-space maps that no file system can be made of.
    #[error("free-space maps: {0}")]
    FreeMaps(String),
    /// A file system that must not be written to.
    #[error("this file system cannot be written to: {0}")]
    NotWritable(String),
    /// The check in the background is not for it.
    #[error("it is not checked in the background: {0}")]
    NotInBackground(String),
    /// More than the check in the background puts right.
    #[error("more is wrong than a crash of Soft Updates leaves: {0}; repair it with `fsage fsck IMAGE --repair`")]
    NeedsFullCheck(String),
    /// No room for a file.
    #[error(
        "{path}: no space for it in the image: {} are left; make a larger one (`fsage mkfs {}`)",
        left(*available_bytes, *free_inodes),
        S::NAME
    )]
    Full {
        /// What was being copied.
        path: String,
        /// Space left for data.
        available_bytes: u64,
        /// Inodes left, where there is a fixed number.
        free_inodes: Option<u64>,
    },
    /// Stopped by the caller.
    #[error("interrupted")]
    Interrupted(#[source] io::Error),
    /// Never made.
    #[doc(hidden)]
    #[error("{0:?}")]
    Kind(S),
}

fn left(available_bytes: u64, free_inodes: Option<u64>) -> String {
    let inodes = free_inodes.map(|inodes| format!(" and {inodes} inodes")).unwrap_or_default();
    format!("{available_bytes} bytes{inodes}")
}

impl<S: System> Fault for Error<S> {
    fn kind(&self) -> Kind {
        match self {
            Error::Options(_) | Error::Path { .. } => Kind::Usage,
            Error::Io(error) => error.kind(),
            Error::Host { .. } | Error::Full { .. } => Kind::Environment,
            Error::NotWritable(_) | Error::NeedsFullCheck(_) | Error::NoFileSystem(_) | Error::Format(_) => {
                Kind::BadInput
            }
            Error::Inode { .. } | Error::FreeMaps(_) | Error::NotInBackground(_) | Error::Kind(_) => Kind::BadInput,
            Error::Interrupted(_) => Kind::Interrupted,
        }
    }
}

impl<S: System> Error<S> {
    /// The image could not be read, written or worked in. Whoever opened it knows its name.
    pub fn in_image(doing: &'static str, source: io::Error) -> Error<S> {
        Error::Host { path: "the image".to_owned(), doing, source }
    }
}

impl<S: System> ImageError for Error<S> {
    fn host(path: String, doing: &'static str, source: io::Error) -> Error<S> {
        Error::Host { path, doing, source }
    }

    fn path(path: String, problem: String) -> Error<S> {
        Error::Path { path, problem }
    }

    fn inode(ino: Ino, problem: String) -> Error<S> {
        Error::Inode { ino: ino.0, problem }
    }

    fn not_writable(problem: String) -> Error<S> {
        Error::NotWritable(problem)
    }

    /// In the form the binary recognises.
    fn interrupted() -> Error<S> {
        Error::Interrupted(io::Error::from(io::ErrorKind::Interrupted))
    }
}
