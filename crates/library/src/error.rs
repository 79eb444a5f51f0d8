//! What can be wrong with a library.

use columnar::FileError;
use fault::{Fault, Kind, Refused};
use std::path::PathBuf;
use system::SystemProfileError;

/// Why a library cannot be read or written. Every message names the file.
#[derive(Debug, thiserror::Error)]
pub enum LibraryError {
    /// A workload cannot be read or written.
    #[error(transparent)]
    Workload(#[from] FileError),
    /// A system's profile cannot be read.
    #[error(transparent)]
    System(#[from] SystemProfileError),
    /// A replay's file is none.
    #[error("{}: {message}; remove it, and the replay is made again", path.display())]
    Replay {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        message: String,
    },
    /// There is nothing to make a matrix of.
    #[error("{}: has no {what}; {todo}", folder.display())]
    Nothing {
        /// The folder.
        folder: PathBuf,
        /// What is missing.
        what: &'static str,
        /// What to do.
        todo: &'static str,
    },
    /// The system refuses.
    #[error(transparent)]
    Io(#[from] Refused),
    /// A folder holds something else.
    #[error("{}: {what}; name another folder", path.display())]
    Foreign {
        /// The folder, or what is in the way in it.
        path: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// A file that cannot be shown.
    #[error("{}: its name is not UTF-8; rename it", path.display())]
    Name {
        /// The file.
        path: PathBuf,
    },
}

impl Fault for LibraryError {
    fn kind(&self) -> Kind {
        match self {
            LibraryError::Workload(error) => error.kind(),
            LibraryError::System(error) => error.kind(),
            LibraryError::Replay { .. } | LibraryError::Name { .. } => Kind::BadInput,
            LibraryError::Nothing { .. } | LibraryError::Foreign { .. } => Kind::Usage,
            LibraryError::Io(refused) => refused.kind(),
        }
    }
}
