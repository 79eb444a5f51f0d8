//! What can be wrong with a library.

use columnar::FileError;
use fault::{Fault, Kind};
use std::io;
use std::path::{Path, PathBuf};
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
}

impl LibraryError {
    pub(crate) fn io(path: &Path, doing: &'static str) -> impl FnOnce(io::Error) -> LibraryError + use<> {
        let path = path.to_owned();
        move |source| LibraryError::Io { path, doing, source }
    }
}

impl Fault for LibraryError {
    fn kind(&self) -> Kind {
        match self {
            LibraryError::Workload(error) => error.kind(),
            LibraryError::System(error) => error.kind(),
            LibraryError::Replay { .. } => Kind::BadInput,
            LibraryError::Nothing { .. } => Kind::Usage,
            LibraryError::Io { .. } => Kind::Environment,
        }
    }
}
