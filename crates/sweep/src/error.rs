//! What can be wrong with a sweep.

use columnar::FileError;
use fault::{Fault, Kind, Refused};
use std::path::PathBuf;

/// Why a sweep cannot be read, run or collected. Every message names the file and the place.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// The file of the sweep says what cannot be.
    #[error("{}{}: {message}", file.display(), place(*line))]
    Spec {
        /// The file.
        file: PathBuf,
        /// Line from 1, where it is known.
        line: Option<usize>,
        /// What is wrong, and what to do.
        message: String,
    },
    /// What was asked of a sweep makes no sense with it.
    #[error("{0}")]
    Usage(String),
    /// The folder belongs to something else, or to another state of the same sweep.
    #[error("{}: {message}", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// What it is, and what to do.
        message: String,
    },
    /// A folder's own file is damaged.
    #[error("{}: {place}: {message}", file.display())]
    Damaged {
        /// The file.
        file: PathBuf,
        /// Line or byte.
        place: String,
        /// What is wrong, and what to do.
        message: String,
    },
    /// The system refuses.
    #[error(transparent)]
    Io(#[from] Refused),
    /// A Parquet file could not be written or read.
    #[error(transparent)]
    File(#[from] FileError),
}

fn place(line: Option<usize>) -> String {
    line.map(|line| format!(", line {line}")).unwrap_or_default()
}

impl Fault for SweepError {
    fn kind(&self) -> Kind {
        match self {
            SweepError::Spec { .. } | SweepError::Damaged { .. } => Kind::BadInput,
            SweepError::Usage(_) | SweepError::Folder { .. } => Kind::Usage,
            SweepError::Io(refused) => refused.kind(),
            SweepError::File(error) => error.kind(),
        }
    }
}
