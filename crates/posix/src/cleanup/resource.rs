//! What may be left behind, and how each kind of it is removed.

use super::names::{aside_name, growing_name, is_private_name};
use super::path_text;
use super::removal::Removal;
use super::unmount::{self, Server, remove_served, unmount_ours};
use crate::remove::remove_tree;
use crate::rename::rename_to_empty;
use rustix::fs::{self, OFlags};
use serde::{Deserialize, Serialize};
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Something that must not be left behind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "what")]
pub(crate) enum Resource {
    /// A private directory with everything in it.
    Directory {
        #[serde(with = "path_text")]
        path: PathBuf,
        /// Its inode number; `None` until it has been made.
        ino: Option<u64>,
    },
    /// A file that has not taken its place.
    File {
        #[serde(with = "path_text")]
        path: PathBuf,
        /// Its inode number; `None` until it has been made.
        ino: Option<u64>,
    },
    /// What a result replaces, under another name until the result has its place.
    Aside {
        #[serde(with = "path_text")]
        path: PathBuf,
        /// The place of both.
        #[serde(with = "path_text")]
        place: PathBuf,
        /// The result's inode number.
        new_ino: u64,
    },
    /// A file system that this process serves (FUSE), mounted where somebody asked for it.
    Served {
        #[serde(with = "path_text")]
        point: PathBuf,
        /// The type of mount.
        fs_type: String,
        /// Its device number, `major:minor`; `None` until it has been made.
        device: Option<String>,
    },
    /// A mount on a directory inside a private directory.
    Mount {
        #[serde(with = "path_text")]
        point: PathBuf,
    },
}

impl Resource {
    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        match self {
            Resource::Directory { path, .. } | Resource::File { path, .. } | Resource::Aside { path, .. } => path,
            Resource::Mount { point } | Resource::Served { point, .. } => point,
        }
    }

    /// Whether what it lies on answers at all: whoever looks at it would wait for ever.
    ///
    /// # Errors
    /// It gives no answer.
    pub(super) fn answers(&self) -> io::Result<()> {
        match (self, self.path().parent()) {
            // Asked where it is removed.
            (Resource::Served { .. }, _) | (_, None) => Ok(()),
            (_, Some(parent)) => unmount::answers(parent),
        }
    }

    /// Removes it if it is there and is what we made.
    pub(super) fn remove(&self) -> io::Result<Removal> {
        match self {
            Resource::Directory { path, ino } => remove_private(path, *ino),
            Resource::File { path, ino } => remove_file(path, *ino),
            Resource::Aside { path, place, new_ino } => settle_aside(path, place, *new_ino),
            Resource::Mount { point } => unmount_ours(point),
            Resource::Served { point, fs_type, device: Some(device) } => {
                remove_served(point, fs_type, Some(device), Server::Lives)
            }
            Resource::Served { device: None, .. } => self.remove_dead(),
        }
    }

    /// The same where nobody serves it any more. A mount that answers is somebody else's, whatever its type and number:
    /// the number of one that has gone is used again at once.
    pub(super) fn remove_dead(&self) -> io::Result<Removal> {
        match self {
            Resource::Served { point, fs_type, device } => {
                remove_served(point, fs_type, device.as_deref(), Server::IsDead)
            }
            Resource::Directory { .. } | Resource::File { .. } | Resource::Aside { .. } | Resource::Mount { .. } => {
                self.remove()
            }
        }
    }
}

/// What was to be replaced gets its place back if that is empty. It is removed if the new one has its place. Its own
/// inode number says nothing where names cannot be exchanged: such file systems make them up.
fn settle_aside(path: &Path, place: &Path, new_ino: u64) -> io::Result<Removal> {
    let cannot = |doing: &str, error: io::Error| {
        io::Error::new(error.kind(), format!("{}, which was {}: {doing}: {error}", path.display(), place.display()))
    };
    let name = path.file_name().unwrap_or_default();
    if aside_name(name) != place.file_name() || path.parent() != place.parent() {
        return Ok(Removal::NotOurs(format!("{}: left alone, as it has no name of ours", path.display())));
    }
    match path.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Removal::Absent),
        Err(error) => return Err(cannot("cannot be looked at", error)),
        Ok(_) => {}
    }
    match place.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            rename_to_empty(path, place).map_err(|error| cannot("cannot be put back", error))?;
            let text = format!("{}: put back, as the run that was to replace it has ended", place.display());
            Ok(Removal::NotOurs(text))
        }
        Err(error) => Err(cannot("what has its place cannot be looked at", error)),
        Ok(there) if there.ino() == new_ino => remove_replaced(path).map(|()| Removal::Gone),
        Ok(_) => {
            let (path, place) = (path.display(), place.display());
            let text = format!("{path}: was {place} before another took its place; left as it is");
            Ok(Removal::NotOurs(text))
        }
    }
}

/// Removes a directory that was to be replaced, whosever it was.
pub(super) fn remove_replaced(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let parent = fs::open(parent, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, fs::Mode::empty())?;
    remove_tree(parent.as_fd(), Path::new(path.file_name().unwrap_or_default()))
        .map_err(|error| io::Error::new(error.kind(), format!("{}: cannot be removed: {error}", path.display())))
}

fn remove_file(path: &Path, ino: Option<u64>) -> io::Result<Removal> {
    let because = |why: &str| Ok(Removal::NotOurs(format!("{}: left alone, as {why}", path.display())));
    if !crate::temporary::is_temporary_name(path) {
        return because("it is not a file that fsage was about to put in its place");
    }
    let stat = match fs::lstat(path) {
        Err(rustix::io::Errno::NOENT) => return Ok(Removal::Absent),
        other => other?,
    };
    let regular = fs::FileType::from_raw_mode(stat.st_mode) == fs::FileType::RegularFile;
    if !regular || ino.is_some_and(|ino| ino != stat.st_ino) || stat.st_uid != rustix::process::geteuid().as_raw() {
        return because("another file has taken its name");
    }
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(io::Error::new(error.kind(), format!("{}: {error}", path.display())))
        }
        _ => Ok(Removal::Gone),
    }
}

fn remove_private(path: &Path, ino: Option<u64>) -> io::Result<Removal> {
    let because = |why: &str| Ok(Removal::NotOurs(format!("{}: left alone, as {why}", path.display())));
    let is_ours = is_private_name(path) || path.file_name().is_some_and(|name| growing_name(name).is_some());
    let (Some(parent), Some(name), true) = (path.parent(), path.file_name(), is_ours) else {
        return because("it is not a private directory of fsage");
    };
    let parent = match fs::open(parent, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, fs::Mode::empty()) {
        Err(rustix::io::Errno::NOENT) => return Ok(Removal::Absent),
        other => other?,
    };
    let stat = match fs::statat(&parent, name, fs::AtFlags::SYMLINK_NOFOLLOW) {
        Err(rustix::io::Errno::NOENT) => return Ok(Removal::Absent),
        other => other?,
    };
    if ino.is_some_and(|ino| ino != stat.st_ino) || stat.st_uid != rustix::process::geteuid().as_raw() {
        return because("another directory has taken its name");
    }
    let removed = remove_tree(parent.as_fd(), Path::new(name));
    removed
        .map(|()| Removal::Gone)
        .map_err(|error| io::Error::new(error.kind(), format!("{}: cannot be removed: {error}", path.display())))
}
