//! Why a benchmark did not run to its end.

use fault::{Fault, Kind};
use posix::Errno;
use std::io;

/// What went wrong. Everything a benchmark had made has been removed by the time this is returned, unless it says
/// otherwise.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum WorkloadError {
    #[error("{0}")]
    Options(String),
    #[error("{path}: no space left while {doing}; make room, or take less data")]
    NoSpace { doing: &'static str, path: String },
    #[error(
        "{path}: no space left while {doing}, where {wanted_percent:.1} % in use were asked for and {used_percent:.1} \
         % are; a file system keeps some of its space for metadata and cleaning: ask for less, or take a larger one"
    )]
    Full { doing: &'static str, path: String, wanted_percent: f64, used_percent: f64 },
    #[error("{path}: the file system is read-only ({doing}); choose a target that can be written")]
    ReadOnly { doing: &'static str, path: String },
    #[error("{path}: {doing} failed: {}", describe(*errno))]
    Call { doing: &'static str, path: String, errno: Errno },
    #[error(
        "{path}: {wanted_bytes} bytes wanted and {got_bytes} got while {doing}; is something else changing the file?"
    )]
    Short { doing: &'static str, path: String, wanted_bytes: u64, got_bytes: u64 },
    #[error("{path}: is there already, left by another run; remove it or choose another target")]
    LeftOver { path: String },
    #[error("caches could not be dropped: {0}")]
    Caches(#[source] io::Error),
    #[error("{doing} failed: {source}")]
    System { doing: &'static str, source: io::Error },
    #[error("the tree holds nothing to {0}")]
    Nothing(String),
    #[error(
        "refusing to overwrite: {0}. Only a tree that `fsage age` made is overwritten (it has the file .fsage-aged in \
         its root); without --overwrite its files are only read"
    )]
    NotOurs(String),
    #[error("target '{target}': {source}")]
    On { target: String, source: Box<WorkloadError> },
    #[error("{path}: {problem}")]
    ResultFile { path: String, problem: String },
    #[error("cannot read {path}: {source}")]
    Io { path: String, source: io::Error },
    #[error("these results cannot be compared: {0}")]
    Incomparable(String),
    #[error("interrupted")]
    Interrupted,
}

impl WorkloadError {
    /// The error of one call on a path, told apart where we know what to advise.
    pub(crate) fn call(doing: &'static str, path: &std::path::Path, errno: Errno) -> WorkloadError {
        let path = path.display().to_string();
        match errno {
            Errno::ENOSPC | Errno::EDQUOT => WorkloadError::NoSpace { doing, path },
            Errno::EROFS => WorkloadError::ReadOnly { doing, path },
            errno => WorkloadError::Call { doing, path, errno },
        }
    }
}

impl Fault for WorkloadError {
    fn kind(&self) -> Kind {
        match self {
            WorkloadError::Options(_) | WorkloadError::Nothing(_) | WorkloadError::NotOurs(_) => Kind::Usage,
            WorkloadError::On { source, .. } => source.kind(),
            WorkloadError::ResultFile { .. } | WorkloadError::Incomparable(_) => Kind::BadInput,
            WorkloadError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => Kind::BadInput,
            WorkloadError::Io { source, .. } if posix::input::Refusal::of(source).is_some() => Kind::BadInput,
            WorkloadError::Interrupted => Kind::Interrupted,
            _ => Kind::Environment,
        }
    }
}

/// The system's words for an error number, with its name.
fn describe(errno: Errno) -> String {
    io::Error::from(errno).to_string()
}
