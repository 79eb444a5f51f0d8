//! What can be wrong with a structure, and where.

use crate::Ino;

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
