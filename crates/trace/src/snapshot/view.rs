//! Whose tree of names is read: ours, or that of a process in a mount namespace of its own (a container), where the
//! same path can be another file.

use super::open::open_directory_at;
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, Statx, StatxFlags};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A tree of names as processes see it.
#[derive(Debug, Default)]
pub struct View {
    other: Option<Other>,
}

/// A mount namespace that is not ours.
#[derive(Debug)]
struct Other {
    root: OwnedFd,
    /// Without it the mounts would come apart with the last process.
    _namespace: OwnedFd,
    id: u64,
    mounts: String,
}

impl View {
    /// What we see.
    pub fn own() -> View {
        View::default()
    }

    /// What a process sees, for as long as the view is kept; what we see if it is in our mount namespace.
    ///
    /// # Errors
    /// There is no such process, or we may not look.
    pub fn of_process(pid: u32) -> std::io::Result<View> {
        let at = |name: &str| format!("/proc/{pid}/{name}");
        let namespace = rustix::fs::open(at("ns/mnt"), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        let (ours, theirs) = (rustix::fs::stat("/proc/self/ns/mnt")?, rustix::fs::fstat(&namespace)?);
        if ours.st_ino == theirs.st_ino {
            return Ok(View::own());
        }
        let root = rustix::fs::open(at("root"), OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        let mounts = std::fs::read_to_string(at("mountinfo"))?;
        Ok(View { other: Some(Other { root, _namespace: namespace, id: theirs.st_ino, mounts }) })
    }

    /// The number of the mount namespace, if it is not ours.
    pub fn namespace(&self) -> Option<u64> {
        self.other.as_ref().map(|other| other.id)
    }

    /// What is mounted, as in `/proc/self/mountinfo`; of a namespace that is not ours, when the view was made.
    pub fn mounts(&self) -> String {
        let own = || std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        self.other.as_ref().map_or_else(own, |other| other.mounts.clone())
    }

    /// Opens the root directory.
    pub(super) fn root(&self) -> Result<OwnedFd, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match &self.other {
            None => open_directory_at(CWD, OsStr::from_bytes(b"/")),
            Some(other) => rustix::fs::openat(&other.root, ".", flags, Mode::empty()),
        }
    }

    /// What the file system says of a name, given by its real path: no link on the way is followed, nor one at the end.
    pub fn statx(&self, real: &Path, what: StatxFlags) -> Result<Statx, Errno> {
        let follow = AtFlags::SYMLINK_NOFOLLOW;
        match &self.other {
            None => rustix::fs::statx(CWD, real, follow, what),
            Some(other) => {
                let below = real.strip_prefix("/").unwrap_or(real);
                let below = if below.as_os_str().is_empty() { Path::new(".") } else { below };
                rustix::fs::statx(&other.root, below, follow, what)
            }
        }
    }
}
