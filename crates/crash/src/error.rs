//! Why crashes cannot be made.

use fault::{Fault, Kind};
use posix::Errno;
use std::io;

/// Why crashes cannot be made, or not be looked at.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum CrashError {
    /// The target cannot be set up.
    #[error(transparent)]
    Open(#[from] lab::OpenError),
    /// The file system that everything begins with cannot be mounted.
    #[error("the file system that crashes begin with cannot be mounted: {0}")]
    Mount(String),
    /// An operation is not what it should be.
    #[error("operation '{text}': {problem}")]
    Op { text: String, problem: String },
    /// An operation was refused.
    #[error("operation '{op}' was refused: {errno}")]
    Refused { op: String, errno: Errno },
    /// A state that is none.
    #[error("there is no state {0} of this sequence")]
    NoState(String),
    /// Memory of this machine's own cannot be read, or a signal ended it.
    #[error("{0}")]
    Io(#[from] io::Error),
}

impl Fault for CrashError {
    fn kind(&self) -> Kind {
        match self {
            CrashError::Open(error) => error.kind(),
            CrashError::Mount(_) => Kind::BadInput,
            CrashError::Op { .. } | CrashError::Refused { .. } | CrashError::NoState(_) => Kind::Usage,
            CrashError::Io(_) => Kind::Environment,
        }
    }
}
