//! Drives that others have described: parameter files of DiskSim 4.0 as drives of ours.
//!
//! What lives here: the grammar ([`libparam`]), the meaning of its blocks in terms of [`crate::disk::spec`]
//! (`disksim`), and measured seek curves (`.seek`). A key that the model has nothing for is a warning that names file
//! and line, unless its value says that the drive lacks what the model lacks too. A key that is missing is an error.

mod disksim;
pub mod libparam;
mod seek;

use crate::{Drive, DriveError};
use fault::{Fault, Kind};
use libparam::Read;
use std::path::Path;

/// What is wrong with foreign parameter files.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// A file cannot be read.
    #[error("cannot read {file}: {source}")]
    Io {
        /// Path.
        file: String,
        /// Why.
        source: std::io::Error,
    },
    /// Something in a file.
    #[error("{file}: line {line}: {why}")]
    Line {
        /// Path.
        file: String,
        /// From 1.
        line: usize,
        /// What is wrong and what would be right.
        why: String,
    },
    /// Every line is sound, and together they are no drive.
    #[error("{file}: as a drive of ours: {source}")]
    Drive {
        /// Path.
        file: String,
        /// What is wrong with it, by our keys.
        source: DriveError,
    },
}

impl Fault for ImportError {
    fn kind(&self) -> Kind {
        Kind::BadInput
    }
}

/// An imported drive.
#[derive(Clone, Debug)]
pub struct Imported {
    /// The text of its file, in our form.
    pub text: String,
    /// What [`Drive::parse`] makes of it.
    pub drive: Drive,
    /// What was not taken over, with file and line, in the order of the files.
    pub warnings: Vec<String>,
}

/// No file of parameters is longer.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// Imports a drive from DiskSim's parameters: a `.parv` with everything that it names, or a `.diskspecs` alone (which
/// knows no bus).
///
/// `seek` stands in for the file with the seek curve that the parameters name. `name` chooses among several drives.
///
/// # Errors
/// What is not in DiskSim's grammar, a setting that is missing or cannot be, with file and line; what together is no
/// drive.
pub fn import(path: &Path, seek: Option<&Path>, name: Option<&str>) -> Result<Imported, ImportError> {
    import_with(path, seek, name, &|path| posix::input::read_text(path, FILE_BYTES_MAX))
}

/// The same, with files read by the caller's own means.
///
/// # Errors
/// Those of [`import`].
pub fn import_with(
    path: &Path,
    seek: Option<&Path>,
    name: Option<&str>,
    read: Read<'_>,
) -> Result<Imported, ImportError> {
    let file = libparam::parse(path, read)?;
    disksim::drive(path, &file, seek, name, read)
}
