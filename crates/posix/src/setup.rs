//! Why a target could not be made ready.

use fault::{Fault, Kind};
use std::io;
use std::path::{Path, PathBuf};

/// Why a [`Workspace`](crate::Workspace) or another [`Site`](crate::Site) could not be opened. Each message says what
/// to do.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum SetupError {
    #[error("target '{0}': a file system of the laboratory has no directory of this machine")]
    Laboratory(String),
    #[error("{source}")]
    Other { source: Box<dyn std::error::Error + Send + Sync>, kind: Kind },
    #[error("{}: no such directory; a target must exist", path.display())]
    Missing { path: PathBuf },
    #[error("{}: not a directory; a target is a directory or a scratch file system such as ext4:8G", path.display())]
    NotADirectory { path: PathBuf },
    #[error("{}: the file system is read-only; choose a target that can be written", path.display())]
    ReadOnly { path: PathBuf },
    #[error("{}: no permission to make files here; choose another target or run as its owner", path.display())]
    NoPermission { path: PathBuf },
    #[error("{}: {} needed and {} free; make room or choose another \
        target", path.display(), units::show::bytes(*need_bytes as f64), units::show::bytes(*free_bytes as f64))]
    NoSpace { path: PathBuf, need_bytes: u64, free_bytes: u64 },
    #[error("{}: {need} inodes needed and {free} free; choose another target", path.display())]
    NoInodes { path: PathBuf, need: u64, free: u64 },
    #[error("{} of memory needed for backing=ram and {} available; use a smaller size or \
        backing=DIRECTORY", units::show::bytes(*need_bytes as f64), units::show::bytes(*free_bytes as f64))]
    NoMemory { need_bytes: u64, free_bytes: u64 },
    #[error("target '{target}': a scratch file system needs root (to mount it); run as root, or use a directory")]
    NeedsRoot { target: String },
    #[error(
        "target '{target}': {tool} is not installed; install the package {package} (Debian, Ubuntu: apt-get install \
         {package})"
    )]
    MissingTool { target: String, tool: &'static str, package: &'static str },
    #[error("target '{target}': {command} failed ({status}): {stderr}")]
    Mkfs { target: String, command: String, status: String, stderr: String },
    #[error("target '{target}': {fs_type} cannot be mounted with options '{options}': {source}{hint}")]
    Mount { target: String, fs_type: &'static str, options: String, hint: &'static str, source: io::Error },
    #[error(
        "target '{target}': no loop device can be attached: {source}; is the 'loop' module there, and \
         /dev/loop-control?"
    )]
    Loop { target: String, source: io::Error },
    #[error("{}: cannot {doing}: {source}", path.display())]
    Io { path: PathBuf, doing: &'static str, source: io::Error },
    #[error("interrupted while the target was being made ready")]
    Interrupted,
}

impl Fault for SetupError {
    fn kind(&self) -> Kind {
        match self {
            SetupError::Laboratory(_) | SetupError::Missing { .. } | SetupError::NotADirectory { .. } => Kind::Usage,
            SetupError::Other { kind, .. } => *kind,
            SetupError::Interrupted => Kind::Interrupted,
            _ => Kind::Environment,
        }
    }
}

impl SetupError {
    /// The error of a system call on a path, told apart where we know what to advise.
    pub(crate) fn from_io(path: &Path, doing: &'static str, source: io::Error) -> SetupError {
        let path = path.to_path_buf();
        match source.kind() {
            io::ErrorKind::NotFound => SetupError::Missing { path },
            io::ErrorKind::NotADirectory => SetupError::NotADirectory { path },
            io::ErrorKind::ReadOnlyFilesystem => SetupError::ReadOnly { path },
            io::ErrorKind::PermissionDenied => SetupError::NoPermission { path },
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                SetupError::NoSpace { path, need_bytes: 4096, free_bytes: 0 }
            }
            io::ErrorKind::Interrupted => SetupError::Interrupted,
            _ => SetupError::Io { path, doing, source },
        }
    }
}
