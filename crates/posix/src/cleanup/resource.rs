//! What may be left behind, and how each kind of it is removed.

use super::names::{aside_name, growing_name, is_private_name};
use super::path_text;
use crate::mounts::{MountEntry, mount_of, mount_of_path, mounts};
use crate::remove::remove_tree;
use rustix::fs::{self, OFlags};
use rustix::mount::{UnmountFlags, unmount};
use serde::{Deserialize, Serialize};
use std::io;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

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
        /// Where the result is until then.
        #[serde(with = "path_text")]
        new: PathBuf,
        /// The place of both.
        #[serde(with = "path_text")]
        place: PathBuf,
        /// Its inode number.
        ino: u64,
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

/// What came of removing something.
#[derive(Debug)]
pub(super) enum Removal {
    /// It is gone.
    Gone,
    /// It was not there.
    Absent,
    /// What has its name is not what we made, and is left alone; why. There is nothing to be tried again.
    NotOurs(String),
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
            (_, Some(parent)) => look_at(parent).map(|_| ()),
        }
    }

    /// Removes it if it is there and is what we made.
    pub(super) fn remove(&self) -> io::Result<Removal> {
        match self {
            Resource::Directory { path, ino } => remove_private(path, *ino),
            Resource::File { path, ino } => remove_file(path, *ino),
            Resource::Aside { path, new, place, ino } => settle_aside(path, new, place, *ino),
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

/// What is mounted on a directory, if it is of this type. Of several that is the one the directory's name leads to,
/// which the table of mounts does not tell: one that was moved there keeps its older line.
pub fn served_at(point: &Path, fs_type: &str) -> Option<MountEntry> {
    let mount = mount_of_path(point).ok().flatten()?;
    (mount.point == point && mount.fs_type == fs_type).then_some(mount)
}

/// Other mounts of the same file system that this process sees.
pub fn also_mounted(mount: &MountEntry) -> Vec<MountEntry> {
    let is_another = |other: &MountEntry| {
        other.id != mount.id && other.device_number == mount.device_number && other.fs_type == mount.fs_type
    };
    mounts().into_iter().filter(is_another).collect()
}

/// Unmounts what a process serves: as root by ourselves, otherwise through the system's `fusermount3`.
///
/// # Errors
/// It is in use (`ResourceBusy`), unless `lazily`; or those of umount2(2) and of running that program.
pub fn unmount_served(point: &Path, lazily: bool) -> io::Result<()> {
    let flags = if lazily { UnmountFlags::NOFOLLOW | UnmountFlags::DETACH } else { UnmountFlags::NOFOLLOW };
    match unmount(point, flags) {
        Ok(()) => return Ok(()),
        Err(rustix::io::Errno::PERM) => {}
        Err(error) => return Err(error.into()),
    }
    let mut command = std::process::Command::new("fusermount3");
    command.arg("-u").args(lazily.then_some("-z")).arg("--").arg(point);
    let output = command.stdin(std::process::Stdio::null()).output().map_err(|error| {
        io::Error::new(error.kind(), format!("fusermount3, which unmounts for ordinary users: {error} (package fuse3)"))
    })?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    let kind = if said.contains("busy") { io::ErrorKind::ResourceBusy } else { io::ErrorKind::Other };
    Err(io::Error::new(kind, said))
}

/// Who serves a mount that is to go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Server {
    /// This process, still.
    Lives,
    /// Nobody.
    IsDead,
}

/// How long an answer is waited for: a server that is stopped gives none.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);

/// Who answers for a file system.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answer {
    /// Somebody, if with an error.
    Somebody,
    /// Nobody: its connection to a server has ended.
    Nobody,
    /// The kernel, which asks no server for whoever has another user or group than the mount.
    Kernel,
}

/// What a path leads to.
struct Seen {
    /// The mount, if the system tells it.
    mount: Option<MountEntry>,
    answer: Answer,
}

/// Looks where a path leads and who answers there; the inner error: it leads nowhere.
///
/// # Errors
/// No answer comes.
fn look_at(path: &Path) -> io::Result<io::Result<Seen>> {
    let (answers, answer) = std::sync::mpsc::channel();
    let asked = path.to_owned();
    let look = move || {
        let opened = fs::open(&asked, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, fs::Mode::empty())?;
        // Attributes may be those that the kernel remembers; this it asks for each time.
        let answer = match fs::fstatfs(&opened) {
            Err(rustix::io::Errno::NOTCONN | rustix::io::Errno::CONNABORTED) => Answer::Nobody,
            Ok(said) if said.f_bsize == 0 => Answer::Kernel,
            Ok(_) | Err(_) => Answer::Somebody,
        };
        Ok(Seen { mount: mount_of(&opened), answer })
    };
    // It may never come back; the end of the process ends it.
    std::thread::Builder::new().spawn(move || {
        let _ = answers.send(look());
    })?;
    answer.recv_timeout(ANSWER_WITHIN).map_err(|_| {
        let path = path.display();
        io::Error::new(io::ErrorKind::TimedOut, format!("{path}: its file system gives no answer; left as it is"))
    })
}

/// Unmounts what this process serves, or one served that was killed.
fn remove_served(point: &Path, fs_type: &str, device: Option<&str>, server: Server) -> io::Result<Removal> {
    let all = mounts();
    let is_it =
        |mount: &&MountEntry| mount.fs_type == fs_type && device.is_none_or(|device| device == mount.device_number);
    // A directory above it may have been renamed.
    let elsewhere = || device.and_then(|_| all.iter().rfind(is_it));
    let Some(it) = all.iter().rfind(|mount| mount.point == point && is_it(mount)).or_else(elsewhere) else {
        return Ok(Removal::Absent);
    };
    let point = it.point.as_path();
    let stays = |why: std::fmt::Arguments<'_>| {
        let point = point.display();
        let text = format!("{point}: stays mounted, as {why}; unmount that, and run any command of fsage");
        Err(io::Error::new(io::ErrorKind::ResourceBusy, text))
    };
    let seen = look_at(point)?;
    let is_top = |seen: &Seen| seen.mount.as_ref().is_some_and(|top| top.id == it.id);
    let answer = match (&seen, device) {
        (Ok(seen), _) if is_top(seen) => seen.answer,
        (_, None) => return Ok(Removal::Absent),
        (Ok(Seen { mount: Some(top), .. }), Some(_)) => {
            let place = if top.point == point { "it" } else { "a directory above it" };
            return stays(format_args!("{} is mounted over {place}", units::text::printable(&top.fs_type)));
        }
        (Ok(Seen { mount: None, .. }), Some(_)) => return stays(format_args!("something is mounted over it")),
        (Err(error), Some(_)) => {
            return stays(format_args!("its name does not lead there ({error}), whatever is mounted above it"));
        }
    };
    match (server, answer) {
        (Server::Lives, _) | (Server::IsDead, Answer::Nobody) => {}
        (Server::IsDead, Answer::Somebody) => return Ok(Removal::Absent),
        (Server::IsDead, Answer::Kernel) => {
            let text = format!(
                "{}: whether anybody serves it is not told to this user and group; left as it is",
                point.display()
            );
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
        }
    }
    // Of a number that is used again at once nothing is known afterwards.
    let others = also_mounted(it);
    match unmount_served(point, false) {
        Ok(()) => {
            let left = mounts();
            match others.iter().find(|other| left.contains(other)) {
                None => Ok(Removal::Gone),
                Some(other) => Ok(Removal::NotOurs(format!(
                    "{}: a second mount of what was mounted on {}, which nobody serves any more; unmount it",
                    other.point.display(),
                    point.display()
                ))),
            }
        }
        Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
            // Lazily, it would go, too.
            if let Some(below) = mounts().iter().find(|m| m.point != point && m.point.starts_with(point)) {
                return stays(format_args!("{} is below it", below.point.display()));
            }
            unmount_served(point, true)?;
            Ok(Removal::NotOurs(format!("{}: still in use, unmounted lazily", point.display())))
        }
        Err(error) => Err(io::Error::new(error.kind(), format!("{}: {error}", point.display()))),
    }
}

/// What was to be replaced is removed once the new one has its place; it gets its place back if that is empty.
fn settle_aside(path: &Path, new: &Path, place: &Path, ino: u64) -> io::Result<Removal> {
    let cannot = |doing: &str, error: rustix::io::Errno| {
        io::Error::new(io::Error::from(error).kind(), format!("{}: {doing}: {error}", path.display()))
    };
    let stat = match fs::lstat(path) {
        Err(rustix::io::Errno::NOENT) => return Ok(Removal::Absent),
        other => other.map_err(|error| cannot("cannot be looked at", error))?,
    };
    let name = path.file_name().unwrap_or_default();
    if stat.st_ino != ino || aside_name(name) != place.file_name() || path.parent() != place.parent() {
        return Ok(Removal::NotOurs(format!("{}: left alone, as another has taken its name", path.display())));
    }
    if place.symlink_metadata().is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
        let back = crate::rename::rename_to_empty(path, place);
        back.map_err(|error| io::Error::new(error.kind(), format!("{}: cannot be put back: {error}", path.display())))?;
        let text = format!("{}: put back, as the run that was to replace it has ended", place.display());
        return Ok(Removal::NotOurs(text));
    }
    if new.symlink_metadata().is_ok() {
        let (path, place) = (path.display(), place.display());
        return Ok(Removal::NotOurs(format!("{path}: was to be replaced, and is what was {place}; left as it is")));
    }
    let parent = path.parent().unwrap_or(Path::new("/"));
    let parent = fs::open(parent, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, fs::Mode::empty())
        .map_err(|error| cannot("its directory cannot be opened", error))?;
    remove_tree(parent.as_fd(), Path::new(name))
        .map_err(|error| io::Error::new(error.kind(), format!("{}: cannot be removed: {error}", path.display())))?;
    Ok(Removal::Gone)
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

/// Unmounts what is mounted directly inside a private directory. Tries for some seconds, as other programs look
/// into new file systems; the last resort is a lazy unmount, which is reported.
fn unmount_ours(point: &Path) -> io::Result<Removal> {
    const ATTEMPTS: u32 = 30;
    let mounted = || mounts().iter().any(|m| m.point == point);
    if !mounted() {
        return Ok(Removal::Absent);
    }
    if !point.parent().is_some_and(is_private_name) {
        return Ok(Removal::NotOurs(format!("{}: not unmounted, as it is not a mount of fsage", point.display())));
    }
    for attempt in 0..ATTEMPTS {
        match unmount(point, UnmountFlags::NOFOLLOW) {
            Ok(()) | Err(rustix::io::Errno::INVAL) => return Ok(Removal::Gone),
            Err(rustix::io::Errno::BUSY) if attempt + 1 < ATTEMPTS => std::thread::sleep(Duration::from_millis(100)),
            Err(rustix::io::Errno::BUSY) => {}
            Err(e) => return Err(io::Error::new(io::Error::from(e).kind(), format!("{}: {e}", point.display()))),
        }
    }
    unmount(point, UnmountFlags::NOFOLLOW | UnmountFlags::DETACH)?;
    Err(io::Error::new(
        io::ErrorKind::ResourceBusy,
        format!("{}: still in use, unmounted lazily: it goes when its last user ends", point.display()),
    ))
}
