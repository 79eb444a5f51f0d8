//! What can go wrong with a snapshot.

use fault::{Fault, Kind};
use std::io;
use std::path::{Path, PathBuf};
use trace::profile::ProfileError;

/// Why a snapshot could not be taken, written or read.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
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
    /// There is no such file.
    #[error("{}: not found; `fsage snapshot` writes snapshots", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// A format this program does not know.
    #[error("{}: snapshot version {found} is not supported: this fsage ({}) reads version {supported}",
        path.display(), env!("CARGO_PKG_VERSION"))]
    Version {
        /// The file.
        path: PathBuf,
        /// Version found.
        found: u32,
        /// Version supported.
        supported: u32,
    },
    /// No snapshot, truncated, damaged, or contradicting itself.
    #[error("{}: {place}: {message}; restore the file from a copy, or leave this snapshot out", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// Row group, row, column or byte range.
        place: String,
        /// What is wrong.
        message: String,
    },
    /// What was to be written cannot be: a fault of the caller.
    #[error("{}: cannot write: {message}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The rule broken.
        message: String,
    },
    /// Asked to stop.
    #[error("interrupted")]
    Interrupted,
}

impl Fault for SnapshotError {
    fn kind(&self) -> Kind {
        match self {
            SnapshotError::Io { .. } => Kind::Environment,
            SnapshotError::Interrupted => Kind::Interrupted,
            _ => Kind::BadInput,
        }
    }
}

impl SnapshotError {
    pub(crate) fn corrupt(path: &Path, place: impl Into<String>, message: impl ToString) -> SnapshotError {
        SnapshotError::Corrupt { path: path.to_owned(), place: place.into(), message: message.to_string() }
    }
}

/// The file layer is shared with workload profiles; only its advice differs.
impl From<ProfileError> for SnapshotError {
    fn from(error: ProfileError) -> Self {
        match error {
            ProfileError::Io { path, doing, source } => SnapshotError::Io { path, doing, source },
            ProfileError::Missing { path, .. } | ProfileError::IsFile { path } => SnapshotError::Missing { path },
            ProfileError::Corrupt { path, place, message } => SnapshotError::Corrupt { path, place, message },
            ProfileError::Schema { path, column, message } => {
                SnapshotError::Corrupt { path, place: format!("column {column}"), message }
            }
            ProfileError::Invalid { path, message } => SnapshotError::Invalid { path, message },
            ProfileError::Exists { path } | ProfileError::NotOurs { path } => {
                SnapshotError::Invalid { path, message: "the file exists".into() }
            }
            ProfileError::Json { path, line, column, message } => {
                SnapshotError::Corrupt { path, place: format!("line {line}, column {column}"), message }
            }
            ProfileError::Version { path, found, supported } => {
                SnapshotError::Version { path, found: u32::try_from(found).unwrap_or(u32::MAX), supported }
            }
        }
    }
}
