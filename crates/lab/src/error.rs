//! Why a laboratory target cannot be opened, or its image not be written.

use fault::{Fault, Kind};
use std::io;
use std::path::{Path, PathBuf};

/// Why a laboratory target cannot be opened. Each message says what to do.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum OpenError {
    /// The drive's description.
    #[error(transparent)]
    Drive(#[from] device::DriveError),
    /// The drives make no array.
    #[error("drive '{drive}': {source}")]
    Array { drive: String, source: device::array::ArrayError },
    /// A log cannot lie on the drive that was named for it.
    #[error("logdrive={drive}: {why}")]
    LogDrive { drive: String, why: String },
    /// The machine's description.
    #[error(transparent)]
    Machine(#[from] kernel::MachineError),
    /// The buffer cache asked for is larger than the machine's memory.
    #[error(
        "cache={asked_bytes}: the machine '{machine}' has {memory_bytes} bytes of memory; ask for less or name another \
         machine="
    )]
    Cache { asked_bytes: u64, machine: String, memory_bytes: u64 },
    /// The file system cannot be made, or the image has none.
    #[error("target '{target}': {source}")]
    Ffs { target: String, source: ffs::FfsError },
    /// The log-structured file system cannot be made, or the image has none.
    #[error("target '{target}': {source}")]
    Lfs { target: String, source: lfs::LfsError },
    /// What is to be held in memory as a whole.
    #[error(
        "target '{target}': {bytes} bytes are held in memory, and {most_bytes} are the most: ask for a smaller size="
    )]
    Memory { target: String, bytes: u64, most_bytes: u64 },
    /// A target of one file system where another is needed.
    #[error("target '{target}' is no {system}")]
    System { target: String, system: &'static str },
    /// It cannot be unmounted: the device has refused something.
    #[error("target '{target}': cannot be unmounted: {errno}")]
    Unmount { target: String, errno: posix::Errno },
    /// A check in the background gets no further.
    #[error("target '{target}': cannot {doing}: {errno}")]
    Check { target: String, doing: &'static str, errno: posix::Errno },
    /// It does not fit the drive, or cannot be mounted.
    #[error("target '{target}': {source}")]
    Lab { target: String, source: kernel::LabError },
    /// The drive refuses a request of a check.
    #[error("target '{target}': the drive: {source}")]
    Disk { target: String, source: io::Error },
    /// The image cannot be read or written.
    #[error("{}: cannot {doing}: {source}", path.display())]
    Io { path: PathBuf, doing: &'static str, source: io::Error },
}

impl Fault for OpenError {
    fn kind(&self) -> Kind {
        match self {
            OpenError::Array { .. }
            | OpenError::LogDrive { .. }
            | OpenError::Cache { .. }
            | OpenError::Memory { .. }
            | OpenError::System { .. }
            | OpenError::Lab { .. } => Kind::Usage,
            OpenError::Drive(error) => error.kind(),
            OpenError::Machine(error) => error.kind(),
            OpenError::Ffs { source, .. } => source.kind(),
            OpenError::Lfs { source, .. } => source.kind(),
            OpenError::Io { .. } | OpenError::Unmount { .. } | OpenError::Disk { .. } | OpenError::Check { .. } => {
                Kind::Environment
            }
        }
    }
}

impl OpenError {
    pub(crate) fn io(path: &Path, doing: &'static str, source: io::Error) -> OpenError {
        OpenError::Io { path: path.to_path_buf(), doing, source }
    }
}
