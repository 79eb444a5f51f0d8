//! What can go wrong while an experiment runs.

use fault::{Fault, Kind};
use posix::Errno;

/// Why an experiment has no result.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum ExperimentError {
    /// A name on the command line.
    #[error("there is no experiment '{asked}'; there are {there}, PAPER/* and \
        all{}", units::similar::tip(asked, there.split(", ")))]
    Unknown { asked: String, there: String },
    /// The file system cannot be made.
    #[error("{0}")]
    Ffs(#[from] ffs::FfsError),
    /// The log-structured file system cannot be made or read.
    #[error("{0}")]
    Lfs(#[from] lfs::LfsError),
    /// The laboratory cannot be set up.
    #[error("{0}")]
    Lab(#[from] kernel::LabError),
    /// A laboratory target is not understood: a fault of this program.
    #[error("{0}")]
    Target(#[from] posix::TargetError),
    /// A laboratory target cannot be opened.
    #[error("{0}")]
    Open(#[from] lab::OpenError),
    /// A machine's description.
    #[error("{0}")]
    Machine(#[from] kernel::MachineError),
    /// A drive's description.
    #[error("{0}")]
    Drive(#[from] device::DriveError),
    /// A benchmark.
    #[error("{0}")]
    Workload(#[from] workload::WorkloadError),
    /// A file system cannot be crashed.
    #[error("{0}")]
    Crash(#[from] crash::CrashError),
    /// A plan of aging.
    #[error("{0}")]
    Plan(#[from] aging::plan::PlanError),
    /// An aging workload, or a snapshot of an aged file system.
    #[error("{0}")]
    File(#[from] columnar::FileError),
    /// The directory for files that are only needed while an experiment runs.
    #[error("a temporary directory: {0}; set TMPDIR to a place with some 100 MB")]
    Temporary(#[from] std::io::Error),
    /// Aging a file system.
    #[error("{0}")]
    Age(#[from] aging::age::AgeError),
    /// Predictions cannot be held against replays.
    #[error("{0}")]
    Validate(#[from] validate::ValidateError),
    /// A laboratory cannot be made ready.
    #[error("{0}")]
    Setup(#[from] posix::SetupError),
    /// A file system refused what an experiment asked of it.
    #[error("{doing}: {errno}")]
    Call { doing: String, errno: Errno },
    /// Something that is no call failed.
    #[error("{doing}: {error}")]
    Io { doing: String, error: std::io::Error },
    /// One point of many failed: which.
    #[error("{place}: {error}")]
    At { place: String, error: Box<ExperimentError> },
    /// A file system whose structures disagree after a run: a fault of this program.
    #[error("after {after} the file system is inconsistent: {problem}; please report this with the seed")]
    Inconsistent { after: String, problem: String },
    /// Two experiments share something under one name and mean different things: a fault of this program.
    #[error("what is shared as '{name}' is not a {type_name}")]
    Shared { name: String, type_name: &'static str },
}

impl Fault for ExperimentError {
    fn kind(&self) -> Kind {
        match self {
            ExperimentError::Unknown { .. } => Kind::Usage,
            ExperimentError::At { error, .. } => error.kind(),
            _ => Kind::Environment,
        }
    }
}
