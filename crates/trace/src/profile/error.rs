//! What can be wrong with a workload profile, and what to do about it.

use fault::{Fault, Kind};
use std::io;
use std::path::{Path, PathBuf};

/// Why a workload profile could not be written or read. Every message names the file and the place.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// The operating system refused.
    #[error("{}: cannot {doing}: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What was being done, as a verb phrase.
        doing: &'static str,
        /// The system's answer.
        #[source]
        source: io::Error,
    },
    /// A part of the profile is not there.
    #[error("{}: not found; {hint}", path.display())]
    Missing {
        /// The file or directory.
        path: PathBuf,
        /// What to do.
        hint: &'static str,
    },
    /// Something else is there: a workload profile is a directory.
    #[error("{}: is a file, and no workload profile: that is a directory NAME.workload made by fsage record or fsage import", path.display())]
    IsFile {
        /// The file.
        path: PathBuf,
    },
    /// The output is there already.
    #[error("{}: already exists; choose another name or ask for it to be overwritten", path.display())]
    Exists {
        /// The directory.
        path: PathBuf,
    },
    /// The output is there and is something else, which is never replaced.
    #[error("{}: exists and is not a workload profile, so it is not overwritten; choose another name", path.display())]
    NotOurs {
        /// The directory or file.
        path: PathBuf,
    },
    /// `meta.json` is not what it should be.
    #[error("{}: line {line}, column {column}: {message}; record or import the workload again", path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// Column, from 1; 0 where only the line is known.
        column: usize,
        /// What is wrong.
        message: String,
    },
    /// A format this program does not know.
    #[error("{}: format version {found} is not supported: this fsage ({}) reads version {supported}; {}",
        path.display(), env!("CARGO_PKG_VERSION"), version_hint(*found, *supported))]
    Version {
        /// The file.
        path: PathBuf,
        /// Version found.
        found: u64,
        /// Version supported.
        supported: u32,
    },
    /// A Parquet file lacks a column or has one of another type.
    #[error("{}: column {column}: {message}; docs/formats.md lists the columns", path.display())]
    Schema {
        /// The file.
        path: PathBuf,
        /// The column.
        column: String,
        /// What is wrong.
        message: String,
    },
    /// Truncated or damaged.
    #[error("{}: {place}: {message}; restore the file from a copy, or record or import the workload again", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// Row group, row, column or byte range.
        place: String,
        /// What is wrong.
        message: String,
    },
    /// What was to be written breaks the format's rules: a fault of the writer's caller.
    #[error("{}: cannot write: {message}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The rule broken.
        message: String,
    },
}

fn version_hint(found: u64, supported: u32) -> &'static str {
    if found > u64::from(supported) { "use a newer fsage" } else { "record or import the workload again" }
}

impl Fault for ProfileError {
    fn kind(&self) -> Kind {
        match self {
            ProfileError::Exists { .. } | ProfileError::NotOurs { .. } => Kind::Usage,
            ProfileError::Io { .. } => Kind::Environment,
            _ => Kind::BadInput,
        }
    }
}

impl ProfileError {
    pub(crate) fn io(path: &Path, doing: &'static str) -> impl FnOnce(io::Error) -> ProfileError {
        let path = path.to_owned();
        move |source| ProfileError::Io { path, doing, source }
    }

    pub(crate) fn corrupt(path: &Path, place: impl Into<String>, message: impl ToString) -> ProfileError {
        ProfileError::Corrupt { path: path.to_owned(), place: place.into(), message: message.to_string() }
    }

    pub(crate) fn schema(path: &Path, column: &str, message: impl Into<String>) -> ProfileError {
        ProfileError::Schema { path: path.to_owned(), column: column.to_owned(), message: message.into() }
    }
}
