//! Why a replay ends early.

use crate::Broken;
use columnar::FileError;
use fault::{Fault, Kind, Refused};
use posix::Errno;
use std::path::PathBuf;

/// Why a replay ended before its plan.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum AgeError {
    #[error(transparent)]
    Plan(#[from] FileError),
    #[error("{}: operation {operation}: {why}; plan it again", path.display())]
    Broken { path: PathBuf, operation: u64, why: Broken },
    #[error("{target}: {what} '{path}' (operation {operation} of the plan) failed with {errno}: {advice}")]
    Target { target: String, what: &'static str, path: String, operation: u64, errno: Errno, advice: &'static str },
    #[error(
        "{target}: full ({errno}) at operation {operation} of the plan ({what} '{path}'){rest}; choose --on-full=skip \
         or --on-full=delete-oldest, a larger target, or a plan with a lower utilisation"
    )]
    Full { target: String, what: &'static str, path: String, operation: u64, errno: Errno, rest: &'static str },
    #[error(transparent)]
    Io(#[from] Refused),
    #[error(
        "operation {operation} of the plan: the path of node {node} is longer than the {max} bytes a path may have"
    )]
    PathTooLong { operation: u64, node: u64, max: usize },
    #[error("{target}: {difference}; {advice}")]
    Capacity { target: String, difference: String, advice: String },
    #[error("{}: {problem}", path.display())]
    State { path: PathBuf, problem: String },
    #[error("{target}: '{path}' is not of this run: {why}; nothing was changed. Move it away and resume again")]
    Foreign { target: String, path: String, why: &'static str },
    #[error("{doing}: {source}")]
    Survey { doing: &'static str, source: layout::LayoutError },
    #[error("cannot take a snapshot: {0}")]
    Snapshot(FileError),
    #[error("interrupted on day {day} of {days}, after {operations} operations")]
    Interrupted { day: u32, days: u32, operations: u64 },
}

impl Fault for AgeError {
    fn kind(&self) -> Kind {
        match self {
            AgeError::Plan(error) | AgeError::Snapshot(error) => error.kind(),
            AgeError::Broken { .. } | AgeError::PathTooLong { .. } | AgeError::State { .. } => Kind::BadInput,
            AgeError::Capacity { .. } => Kind::Usage,
            AgeError::Survey { source, .. } => source.kind(),
            AgeError::Interrupted { .. } => Kind::Interrupted,
            AgeError::Io(refused) => refused.kind(),
            AgeError::Target { .. } | AgeError::Full { .. } | AgeError::Foreign { .. } => Kind::Environment,
        }
    }
}

/// What to do about an error that ends a run.
pub(super) fn advice(errno: Errno) -> &'static str {
    match errno {
        Errno::EROFS => {
            "the file system has turned read-only, as file systems do after an error; see the end of dmesg, check it, \
             and resume from the last checkpoint"
        }
        Errno::EIO | Errno::EUCLEAN => "the device or the file system is failing; see the end of dmesg",
        Errno::ENODEV | Errno::ENXIO | Errno::ESTALE | Errno::ENOTCONN => {
            "the target is gone: it was unmounted, or its device or server went away"
        }
        Errno::ENOENT | Errno::EEXIST | Errno::ENOTEMPTY | Errno::ENOTDIR | Errno::EISDIR => {
            "somebody else changed the aged tree, or the plan contradicts itself"
        }
        Errno::EOPNOTSUPP => "the file system cannot do that; with --data=write nothing but plain calls are used",
        Errno::EACCES | Errno::EPERM => "permission was withdrawn while the run was going on",
        Errno::EFBIG => "the file would be larger than the file system or the process's limits allow",
        Errno::EMLINK => "the directory has as many subdirectories as the file system allows",
        Errno::ENAMETOOLONG => "the file system does not take names of that length",
        Errno::EMFILE | Errno::ENFILE => "no descriptors are left",
        _ => "the run cannot go on",
    }
}
