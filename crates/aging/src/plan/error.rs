//! What can keep a planner from planning.

use columnar::FileError;
use fault::{Fault, Kind, Refused};
use std::path::PathBuf;

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The aging workload's file, or an input: a snapshot, a workload profile.
    #[error(transparent)]
    File(#[from] FileError),
    /// A parameter is impossible, or impossible together with the others.
    #[error("{name}: {message}")]
    Parameter {
        /// Which.
        name: String,
        /// What is wrong with it, and what would be right.
        message: String,
    },
    /// An input file is malformed, or contradicts itself or another one.
    #[error("{}: {place}: {message}", path.display())]
    Input {
        /// The file.
        path: PathBuf,
        /// Line, row or key.
        place: String,
        /// What is wrong, and what to do.
        message: String,
    },
    /// An input cannot be read.
    #[error(transparent)]
    Io(#[from] Refused),
    /// Asked to stop; nothing was left behind.
    #[error("interrupted")]
    Interrupted,
}

impl Fault for PlanError {
    fn kind(&self) -> Kind {
        match self {
            PlanError::File(error) => error.kind(),
            PlanError::Parameter { .. } => Kind::Usage,
            // An input that is not there is a bad input, not a fault of the machine.
            PlanError::Io(refused) if refused.source.kind() == std::io::ErrorKind::NotFound => Kind::BadInput,
            PlanError::Io(refused) => refused.kind(),
            PlanError::Input { .. } => Kind::BadInput,
            PlanError::Interrupted => Kind::Interrupted,
        }
    }
}

impl PlanError {
    pub(crate) fn parameter(name: impl Into<String>, message: impl Into<String>) -> PlanError {
        PlanError::Parameter { name: name.into(), message: message.into() }
    }

    pub(crate) fn input(path: &std::path::Path, place: impl Into<String>, message: impl ToString) -> PlanError {
        PlanError::Input { path: path.to_owned(), place: place.into(), message: message.to_string() }
    }
}
