//! What can be wrong with a profile file, and where.

use fault::{Fault, Kind};
use std::path::PathBuf;

/// Why a system profile could not be read or written. Lines and columns count from 1.
#[derive(Debug, thiserror::Error)]
pub enum SystemProfileError {
    /// The file could not be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// It is not TOML, a field is missing, unknown or of the wrong type.
    #[error("{}:{line}:{column}: {message}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// Where.
        line: usize,
        #[allow(missing_docs)]
        column: usize,
        /// What is wrong.
        message: String,
    },
    /// Another version of the format.
    #[error("{}: this is a system profile of version {found}; this fsage reads version {expected}{}", path.display(),
        if *found > u64::from(*expected) { " (use the fsage that wrote it, or a newer \
            one)" } else { " (measure again)" })]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u64,
        /// Ours.
        expected: u32,
    },
    /// An entry that is not in the system vector.
    #[error("{}:{line}:{column}: {name:?} is not an entry of the system \
        vector{}", path.display(), crate::edit::tip(suggestion))]
    UnknownEntry {
        /// The file.
        path: PathBuf,
        /// Where.
        line: usize,
        #[allow(missing_docs)]
        column: usize,
        /// The name as written.
        name: String,
        /// The nearest name there is.
        suggestion: String,
    },
    /// A value that no measurement gives.
    #[error("{}: {what}: {problem}", path.display())]
    Value {
        /// The file.
        path: PathBuf,
        /// The field.
        what: String,
        /// What is wrong with it.
        problem: String,
    },
    /// There is neither a file nor a bundled profile of this name.
    #[error("{}: no such file, and no bundled profile ({}){tip}", path.display(), there())]
    Nowhere {
        /// As it was named.
        path: PathBuf,
        /// The end of the sentence: what was probably meant.
        tip: String,
    },
    /// No profile is bundled by this name.
    #[error("{word}: no profile is bundled by this name; {}{tip}", there())]
    NotBundled {
        /// As it was named.
        word: String,
        /// The end of the sentence: what was probably meant.
        tip: String,
    },
}

fn there() -> String {
    format!("bundled are {}", crate::bundled_files::names().collect::<Vec<_>>().join(", "))
}

impl Fault for SystemProfileError {
    fn kind(&self) -> Kind {
        match self {
            // A profile that is not there is a bad input, not a fault of the machine.
            SystemProfileError::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound => Kind::BadInput,
            SystemProfileError::Io { .. } => Kind::Environment,
            SystemProfileError::NotBundled { .. } => Kind::Usage,
            _ => Kind::BadInput,
        }
    }
}
