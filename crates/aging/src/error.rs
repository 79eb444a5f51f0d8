//! What can go wrong with an aging workload's file.

use fault::{Fault, Kind};
use std::io;
use std::path::PathBuf;
use trace::profile::ProfileError;

/// Why an aging workload could not be written or read. Every message names the file and the place.
#[derive(Debug, thiserror::Error)]
pub enum AgingError {
    /// The operating system refused.
    #[error("{}: cannot {doing}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was being done, as a verb phrase.
        doing: &'static str,
        /// The system's answer.
        #[source]
        source: io::Error,
    },
    /// There is no such file.
    #[error("{}: not found; `fsage plan` writes aging workloads", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// A format this program does not know.
    #[error("{}: aging workload version {found} is not supported: this fsage ({}) reads version {supported}; {}",
        path.display(), env!("CARGO_PKG_VERSION"), if found > supported { "use a newer fsage" } else { "plan it again" })]
    Version {
        /// The file.
        path: PathBuf,
        /// Version found.
        found: u32,
        /// Version supported.
        supported: u32,
    },
    /// No aging workload, truncated, or damaged.
    #[error("{}: {place}: {message}; restore the file from a copy, or plan it again", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// Row group, row, column or byte range.
        place: String,
        /// What is wrong.
        message: String,
    },
    /// What was to be written breaks the format's rules: a fault of the planner.
    #[error("{}: cannot write: {message}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The rule broken.
        message: String,
    },
}

impl Fault for AgingError {
    fn kind(&self) -> Kind {
        if matches!(self, AgingError::Io { .. }) { Kind::Environment } else { Kind::BadInput }
    }
}

impl AgingError {
    pub(crate) fn corrupt(path: &std::path::Path, place: impl Into<String>, message: impl ToString) -> AgingError {
        AgingError::Corrupt { path: path.to_owned(), place: place.into(), message: message.to_string() }
    }
}

/// The file layer is shared with workload profiles; only its advice differs.
impl From<ProfileError> for AgingError {
    fn from(error: ProfileError) -> Self {
        match error {
            ProfileError::Io { path, doing, source } => AgingError::Io { path, doing, source },
            ProfileError::Missing { path, .. } | ProfileError::IsFile { path } => AgingError::Missing { path },
            ProfileError::Corrupt { path, place, message } => AgingError::Corrupt { path, place, message },
            ProfileError::Schema { path, column, message } => {
                AgingError::Corrupt { path, place: format!("column {column}"), message }
            }
            ProfileError::Invalid { path, message } => AgingError::Invalid { path, message },
            ProfileError::Exists { path } | ProfileError::NotOurs { path } => {
                AgingError::Invalid { path, message: "the file exists".into() }
            }
            ProfileError::Json { path, line, column, message } => {
                AgingError::Corrupt { path, place: format!("line {line}, column {column}"), message }
            }
            ProfileError::Version { path, found, supported } => {
                AgingError::Version { path, found: u32::try_from(found).unwrap_or(u32::MAX), supported }
            }
        }
    }
}
