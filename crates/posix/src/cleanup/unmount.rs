//! How what is mounted goes: what a process serves, and what is mounted inside private directories.

use super::names::is_private_name;
use super::removal::Removal;
use crate::mounts::{MountEntry, mount_of, mount_of_path, mounts};
use rustix::fs::{self, OFlags};
use rustix::mount::{UnmountFlags, unmount};
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

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
pub(super) enum Server {
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

/// Does something with what a path leads to, opened as a name only (O_PATH), which asks no server that is mounted
/// there; the inner error: it leads nowhere.
///
/// # Errors
/// No answer comes in time.
fn at<T: Send + 'static>(path: &Path, look: impl FnOnce(&OwnedFd) -> T + Send + 'static) -> io::Result<io::Result<T>> {
    let (answers, answer) = std::sync::mpsc::channel();
    let asked = path.to_owned();
    // It may never come back; the end of the process ends it.
    std::thread::Builder::new().spawn(move || {
        let opened = fs::open(&asked, OFlags::PATH | OFlags::CLOEXEC, fs::Mode::empty());
        let _ = answers.send(opened.map(|opened| look(&opened)).map_err(io::Error::from));
    })?;
    answer.recv_timeout(ANSWER_WITHIN).map_err(|_| {
        let path = path.display();
        io::Error::new(io::ErrorKind::TimedOut, format!("{path}: its file system gives no answer; left as it is"))
    })
}

/// Asks a file system. Attributes may be those that the kernel remembers; this it asks for each time.
fn ask(opened: &OwnedFd) -> Answer {
    match fs::fstatfs(opened) {
        Err(rustix::io::Errno::NOTCONN | rustix::io::Errno::CONNABORTED) => Answer::Nobody,
        Ok(said) if said.f_bsize == 0 => Answer::Kernel,
        Ok(_) | Err(_) => Answer::Somebody,
    }
}

/// Whether the file system that a path is on answers at all.
///
/// # Errors
/// It does not.
pub(super) fn answers(path: &Path) -> io::Result<()> {
    at(path, ask).map(|_| ())
}

/// Unmounts what this process serves, or one served that was killed.
pub(super) fn remove_served(point: &Path, fs_type: &str, device: Option<&str>, server: Server) -> io::Result<Removal> {
    let all = mounts();
    let is_it = |mount: &&MountEntry| {
        mount.fs_type == fs_type
            && device.is_none_or(|device| device == mount.device_number)
            && is_of_our_user(&mount.super_options)
    };
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
    // A server of ours that writes back answers no question meanwhile: it is not asked.
    let asks = server == Server::IsDead;
    let seen = at(point, move |opened| (mount_of(opened), asks.then(|| ask(opened))))?;
    let answer = match (seen, device) {
        (Ok((Some(top), answer)), _) if top.id == it.id => answer,
        (_, None) => return Ok(Removal::Absent),
        (Ok((Some(top), _)), Some(_)) => {
            let place = if top.point == point { "it" } else { "a directory above it" };
            return stays(format_args!("{} is mounted over {place}", units::text::printable(&top.fs_type)));
        }
        (Ok((None, _)), Some(_)) => return stays(format_args!("something is mounted over it")),
        (Err(error), Some(_)) => {
            return stays(format_args!("its name does not lead there ({error}), whatever is mounted above it"));
        }
    };
    match answer {
        None | Some(Answer::Nobody) => {}
        Some(Answer::Somebody) => return Ok(Removal::Absent),
        Some(Answer::Kernel) => {
            let text =
                format!("{}: whether anybody serves it is not told to this group; left as it is", point.display());
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
        }
    }
    // Of a number that is used again at once nothing is known afterwards.
    let others = also_mounted(it);
    let second = || {
        let left = mounts();
        let other = others.iter().find(|other| left.contains(other))?;
        let (other, point) = (other.point.display(), point.display());
        Some(format!(
            "{other}: a second mount of what was mounted on {point}, which nobody serves any more; unmount it"
        ))
    };
    match unmount_served(point, false) {
        Ok(()) => Ok(second().map_or(Removal::Gone, Removal::NotOurs)),
        Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
            // Lazily, it would go, too.
            if let Some(below) = mounts().iter().find(|m| m.point != point && m.point.starts_with(point)) {
                return stays(format_args!("{} is below it", below.point.display()));
            }
            unmount_served(point, true)?;
            let lazily = format!("{}: still in use, unmounted lazily", point.display());
            Ok(Removal::NotOurs(second().map_or(lazily.clone(), |second| format!("{lazily}; {second}"))))
        }
        Err(error) => Err(io::Error::new(error.kind(), format!("{}: {error}", point.display()))),
    }
}

/// Whether a mount is one of this user, by the options of its file system. That of another may have the number of ours,
/// once that has gone.
fn is_of_our_user(super_options: &str) -> bool {
    let user = super_options.split(',').find_map(|option| option.strip_prefix("user_id="));
    user.is_none_or(|user| user.parse() == Ok(rustix::process::geteuid().as_raw()))
}

/// Unmounts what is mounted directly inside a private directory. Tries for some seconds, as other programs look
/// into new file systems; the last resort is a lazy unmount, which is reported.
pub(super) fn unmount_ours(point: &Path) -> io::Result<Removal> {
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
