//! Why something cannot be mounted or unmounted.

use fault::{Fault, Kind};
use std::io;
use std::path::PathBuf;

/// Why something cannot be mounted or unmounted. Each message says what to do.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum MountError {
    /// The Fast File System in the image.
    #[error("{source_name}: {source}")]
    Ffs { source_name: String, source: ffs::FfsError },
    /// The log-structured file system in the image.
    #[error("{source_name}: {source}")]
    Lfs { source_name: String, source: lfs::LfsError },
    /// The laboratory target.
    #[error(transparent)]
    Target(#[from] lab::OpenError),
    /// Something on this machine refuses.
    #[error("{}: cannot {doing}: {source}", path.display())]
    Io { path: PathBuf, doing: &'static str, source: io::Error },
    /// The kernel's side of it is not there.
    #[error("/dev/fuse: {source}; a mount needs FUSE: {}", for_fuse(source))]
    NoFuse { source: io::Error },
    /// There is no image.
    #[error("{}: cannot open it: {source}", path.display())]
    Open { path: PathBuf, source: io::Error },
    /// Somebody else writes to the image.
    #[error("{}: it is in use: something else has it mounted, or is writing to it", path.display())]
    InUse { path: PathBuf },
    /// The file system refuses to begin or to end.
    #[error("{source_name}: cannot {doing}: {errno}; {next}")]
    Refused { source_name: String, doing: &'static str, errno: posix::Errno, next: &'static str },
    /// What is in memory at the end does not agree with itself.
    #[error(
        "{source_name}: at the end this file system does not agree with itself ({problem}); check it with `fsage fsck`"
    )]
    Disagrees { source_name: String, problem: String },
    /// It cannot be written back.
    #[error(
        "{}: not all of it could be written to the image ({source}; the log of the mount has the place). Nothing is \
         written there any more, and it stays mounted: copy what you need, unmount it with `fsage umount --force`, and \
         recover the image as after a crash",
        path.display()
    )]
    Unwritten { path: PathBuf, source: io::Error },
    /// Nothing of ours is mounted there.
    #[error("{}: no file system of fsage is mounted here; `fsage umount` takes the directory that one is mounted \
        on", path.display())]
    NotMounted { path: PathBuf },
    /// Somebody uses it.
    #[error("{}: is in use: end what has a file open or its working directory there, and try again", path.display())]
    Busy { path: PathBuf },
}

/// What makes `/dev/fuse` one that can be opened.
fn for_fuse(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "have the device opened to this user (chmod 666 /dev/fuse), and start a container with --device /dev/fuse \
             --cap-add SYS_ADMIN"
        }
        _ => "load it (modprobe fuse), and start a container with --device /dev/fuse --cap-add SYS_ADMIN",
    }
}

impl Fault for MountError {
    fn kind(&self) -> Kind {
        match self {
            MountError::Ffs { source, .. } => source.kind(),
            MountError::Lfs { source, .. } => source.kind(),
            MountError::Target(error) => error.kind(),
            MountError::NotMounted { .. } => Kind::Usage,
            MountError::Disagrees { .. } | MountError::Open { .. } => Kind::BadInput,
            MountError::Io { .. }
            | MountError::NoFuse { .. }
            | MountError::InUse { .. }
            | MountError::Refused { .. }
            | MountError::Unwritten { .. }
            | MountError::Busy { .. } => Kind::Environment,
        }
    }
}
