//! What can be wrong with a drive's file.

use fault::{Fault, Kind};

/// A drive that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// Neither in the catalogue nor a path.
    #[error("{name}: no such drive; known are {known}, or give the path of a .toml \
        file{}", units::similar::tip(name, known.split(", ")))]
    Unknown {
        /// What was asked for.
        name: String,
        /// The catalogue's keys.
        known: String,
    },
    /// The file cannot be read.
    #[error("cannot read {file}: {source}")]
    Io {
        /// Path.
        file: String,
        /// Why.
        source: std::io::Error,
    },
    /// Not TOML, a key that is not known, one that is missing, or a value of the wrong type.
    #[error("{file}: {message}")]
    Syntax {
        /// Path or key.
        file: String,
        /// Where and what, with the line.
        message: String,
    },
    /// A value that cannot be.
    #[error("{file}: {key}: {why}")]
    Invalid {
        /// Path or key.
        file: String,
        /// The key, from the top of the file.
        key: String,
        /// What is wrong and what would be right.
        why: String,
    },
}

impl Fault for DriveError {
    fn kind(&self) -> Kind {
        match self {
            DriveError::Unknown { .. } => Kind::Usage,
            DriveError::Io { .. } | DriveError::Syntax { .. } | DriveError::Invalid { .. } => Kind::BadInput,
        }
    }
}
