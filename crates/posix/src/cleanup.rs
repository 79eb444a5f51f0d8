//! Everything fsage makes outside its own process, and how it goes away again.
//!
//! Three kinds of things can be left behind: private directories, mounts inside them, and files on their way to their
//! place ([`crate::output`]). Each is entered in a list
//! *before* it is made and struck off when it is gone. The list is kept twice: in memory, for
//! the forced clean-up after a second signal; and as a small journal file (`/run/fsage` for root, else
//! `$XDG_STATE_HOME/fsage` or `~/.local/state/fsage`), so that [`sweep`] of a later run can remove what a killed
//! process left. Loop devices need no entry: they are attached with autoclear and go with their last user.
//!
//! Nothing is removed on the strength of a path alone: every name carries 64 random bits (`fsage-<16 hex>`,
//! `.NAME.<16 hex>.tmp`, `.NAME.partial-<16 hex>`), a
//! directory or file must have the inode number it was made with, and only a mount directly inside such a
//! directory is unmounted.

mod journal;

use crate::mounts::{MountEntry, mounts};
use crate::remove::{open_dir, remove_tree};
use rustix::fs::{self, FlockOperation, OFlags};
use rustix::mount::{UnmountFlags, unmount};
use serde::{Deserialize, Serialize};
use std::ffi::{CString, OsStr};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

pub use journal::{SweepReport, sweep};

/// Something that must not be left behind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "what")]
pub(crate) enum Resource {
    /// A private directory with everything in it.
    Directory {
        #[serde(with = "journal::path_text")]
        path: PathBuf,
        /// Its inode number; `None` until it has been made.
        ino: Option<u64>,
    },
    /// A file that has not taken its place.
    File {
        #[serde(with = "journal::path_text")]
        path: PathBuf,
        /// Its inode number; `None` until it has been made.
        ino: Option<u64>,
    },
    /// A file system that this process serves (FUSE), mounted where somebody asked for it.
    Served {
        #[serde(with = "journal::path_text")]
        point: PathBuf,
        /// The type of mount.
        fs_type: String,
        /// Its device number, `major:minor`; `None` until it has been made.
        device: Option<String>,
    },
    /// A mount on a directory inside a private directory.
    Mount {
        #[serde(with = "journal::path_text")]
        point: PathBuf,
    },
}

/// What came of removing something.
#[derive(Debug)]
enum Removal {
    /// It is gone, or was before.
    Gone,
    /// What has its name is not what we made, and is left alone; why. There is nothing to be tried again.
    NotOurs(String),
}

impl Resource {
    /// Removes it if it is there and is what we made.
    fn remove(&self) -> io::Result<Removal> {
        match self {
            Resource::Directory { path, ino } => remove_private(path, *ino),
            Resource::File { path, ino } => remove_file(path, *ino),
            Resource::Mount { point } => unmount_ours(point),
            Resource::Served { point, fs_type, device } => remove_served(point, fs_type, device.as_deref()),
        }
    }
}

/// One thing in the list.
struct Listed {
    id: u64,
    resource: Resource,
    /// On a directory that is ours, while it is: a sweep that cannot see this process (in a container, say) sees the
    /// lock.
    _lock: Option<OwnedFd>,
}

static NEXT: AtomicU64 = AtomicU64::new(0);
static LIST: Mutex<Vec<Listed>> = Mutex::new(Vec::new());

fn list() -> std::sync::MutexGuard<'static, Vec<Listed>> {
    LIST.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An entry in the list; removes what it stands for when it is dropped.
#[derive(Debug)]
pub(crate) struct Entry {
    id: u64,
}

impl Entry {
    /// Enters a thing that is about to be made.
    pub(crate) fn new(resource: Resource) -> Entry {
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let mut list = list();
        list.push(Listed { id, resource, _lock: None });
        journal::write(&list);
        Entry { id }
    }

    /// Notes the inode number of what has just been made.
    pub(crate) fn made(&self, ino: u64) {
        self.identified(Some(ino), None);
    }

    /// Another of ours has the name now, or will have it.
    fn was_replaced(&self) {
        self.identified(None, None);
    }

    /// Notes which one it is, and keeps a directory's lock as long as it is in the list.
    fn identified(&self, ino: Option<u64>, lock: Option<OwnedFd>) {
        let mut list = list();
        if let Some(listed) = list.iter_mut().find(|listed| listed.id == self.id) {
            match &mut listed.resource {
                Resource::Directory { ino: known, .. } | Resource::File { ino: known, .. } => *known = ino,
                Resource::Mount { .. } | Resource::Served { .. } => {}
            }
            listed._lock = lock.or(listed._lock.take());
        }
        journal::write(&list);
    }

    /// Removes the thing now, and says how that went.
    pub(crate) fn remove(self) -> io::Result<()> {
        let result = remove_entry(self.id);
        std::mem::forget(self);
        result
    }

    /// Strikes the entry off without removing anything: the thing is gone already, or is to be kept.
    pub(crate) fn forget(self) {
        take(self.id);
        std::mem::forget(self);
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        if let Err(error) = remove_entry(self.id) {
            crate::notice::tell(&format!("cannot clean up: {error}"));
        }
    }
}

fn take(id: u64) {
    let mut list = list();
    list.retain(|listed| listed.id != id);
    journal::write(&list);
}

/// Removes the thing first and strikes it off afterwards, so that a process killed in between leaves its entry. What
/// could not be removed stays in the list, and so in the journal: a later run finds it there.
fn remove_entry(id: u64) -> io::Result<()> {
    let found = list().iter().find(|listed| listed.id == id).map(|listed| listed.resource.clone());
    let Some(resource) = found else { return Ok(()) };
    let removal = resource.remove()?;
    take(id);
    match removal {
        Removal::Gone => Ok(()),
        Removal::NotOurs(why) => Err(io::Error::other(why)),
    }
}

/// Removes everything in the list, the youngest first, and says in words what could not be removed. For the end
/// of a process that cannot unwind.
pub fn release_all() -> Vec<String> {
    let (mut troubles, mut tried) = (Vec::new(), Vec::new());
    loop {
        let next = list().iter().rev().map(|listed| listed.id).find(|id| !tried.contains(id));
        let Some(id) = next else { return troubles };
        tried.push(id);
        if let Err(error) = remove_entry(id) {
            troubles.push(format!("cannot clean up: {error}"));
        }
    }
}

/// 64 random bits, for names that nobody can guess.
///
/// # Errors
/// The system has no random numbers.
pub fn unguessable() -> io::Result<u64> {
    use std::io::Read;
    let mut bytes = [0u8; 8];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(u64::from_ne_bytes(bytes))
}

/// A name no other run has: `fsage-` and 64 random bits.
pub(crate) fn private_name() -> io::Result<String> {
    Ok(format!("fsage-{:016x}", unguessable()?))
}

/// Whether a name is one that [`private_name`] makes.
pub(crate) fn is_private_name(path: &Path) -> bool {
    let name = path.file_name().and_then(OsStr::to_str).and_then(|name| name.strip_prefix("fsage-"));
    name.is_some_and(|hex| hex.len() == 16 && hex.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)))
}

/// What stands between a result's name and the random bits of the directory in which it grows.
const GROWING: &str = ".partial-";

/// Whether a name is one that [`Growing::within`] makes, and for which result.
fn growing_name(name: &OsStr) -> Option<&OsStr> {
    let (result, hex) = name.as_bytes().strip_prefix(b".")?.split_at_checked(name.len().checked_sub(17)?)?;
    let is_hex = hex.iter().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(b));
    result.strip_suffix(GROWING.as_bytes()).filter(|_| is_hex).map(OsStr::from_bytes)
}

/// A directory (mode 0700) in which a result grows until it is whole, beside its place or elsewhere. It goes when this
/// is dropped, or with the next run if this one is killed.
#[derive(Debug)]
pub struct Growing {
    path: PathBuf,
    entry: Option<Entry>,
}

impl Growing {
    /// Makes one for a result of this name.
    ///
    /// # Errors
    /// Those of mkdir(2).
    pub fn within(parent: &Path, result: &OsStr) -> io::Result<Growing> {
        loop {
            let mut name = std::ffi::OsString::from(".");
            name.push(result);
            name.push(format!("{GROWING}{:016x}", unguessable()?));
            let path = parent.join(name);
            if let Some(entry) = make_directory(&path)? {
                return Ok(Growing { path, entry: Some(entry) });
            }
        }
    }

    /// Removes what killed runs left in a directory, of results of this name or of all: directories of our own user
    /// that nobody has locked, that are no mount points, and that hold nothing but regular files of the names `parts`,
    /// which are all that a result consists of. What cannot be looked at or removed is left alone.
    pub fn sweep(parent: &Path, result: Option<&OsStr>, parts: &[&str]) {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let Ok(parent_fd) = fs::open(parent, flags, fs::Mode::empty()) else { return };
        for entry in std::fs::read_dir(parent).into_iter().flatten().flatten() {
            let name = entry.file_name();
            if growing_name(&name).is_some_and(|grown| result.is_none_or(|result| result == grown)) {
                let _ = sweep_grown(parent_fd.as_fd(), &name, parts);
            }
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it with what grew in it.
    ///
    /// # Errors
    /// Those of unlinkat(2).
    pub fn remove(&mut self) -> io::Result<()> {
        self.entry.take().map_or(Ok(()), Entry::remove)
    }

    /// Takes its place. With `replace`, a directory that is there goes once its place is taken: at every moment either
    /// is there whole.
    ///
    /// # Errors
    /// Those of renameat2(2) and of removing.
    pub fn publish(&mut self, place: &Path, replace: bool) -> io::Result<()> {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        let Some(entry) = self.entry.take() else { return Ok(()) };
        match renameat_with(CWD, &self.path, CWD, place, RenameFlags::NOREPLACE) {
            Ok(()) => {
                entry.forget();
                return Ok(());
            }
            Err(rustix::io::Errno::EXIST) if replace => {}
            // A file system that knows no flags. What is there is empty, or this fails.
            Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) if !place.exists() => {
                std::fs::rename(&self.path, place)?;
                entry.forget();
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        }
        // Whichever has the name from now on is to go.
        entry.was_replaced();
        match renameat_with(CWD, &self.path, CWD, place, RenameFlags::EXCHANGE) {
            Ok(()) => {
                // Whosever it was: it was to be replaced.
                let parent =
                    self.path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
                let parent = fs::open(parent, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, fs::Mode::empty())?;
                remove_tree(parent.as_fd(), Path::new(self.path.file_name().unwrap_or_default()))?;
                entry.forget();
                Ok(())
            }
            Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {
                replace_in_steps(&self.path, place)?;
                entry.forget();
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// Removes a directory in which a result grew, if it is ours, nobody has it, and nothing else is in it. Where others
/// may rename, the name may be that of any directory of ours by now: files go by their names in what was locked, and
/// the directory only when it is empty.
fn sweep_grown(parent: BorrowedFd<'_>, name: &OsStr, parts: &[&str]) -> io::Result<()> {
    let directory = open_dir(parent, &CString::new(name.as_bytes())?)?;
    let stat = fs::fstat(&directory)?;
    if stat.st_uid != rustix::process::geteuid().as_raw() || stat.st_dev != fs::fstat(parent)?.st_dev {
        return Ok(());
    }
    let Locking::Ours(directory) = lock(directory) else { return Ok(()) };
    let mut found = Vec::new();
    for entry in fs::Dir::read_from(&directory)? {
        let entry = entry?;
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        let stat = fs::statat(&directory, name, fs::AtFlags::SYMLINK_NOFOLLOW)?;
        let is_file = fs::FileType::from_raw_mode(stat.st_mode) == fs::FileType::RegularFile;
        if !is_file || !parts.iter().any(|part| part.as_bytes() == name.to_bytes()) {
            return Ok(());
        }
        found.push(name.to_owned());
    }
    for name in found {
        fs::unlinkat(&directory, &name, fs::AtFlags::empty())?;
    }
    Ok(fs::unlinkat(parent, name, fs::AtFlags::REMOVEDIR)?)
}

/// Where names cannot be exchanged: whoever is killed in the middle leaves what was there, under another name, and no
/// sweep takes it.
fn replace_in_steps(new: &Path, place: &Path) -> io::Result<()> {
    let mut aside = std::ffi::OsString::from(".");
    aside.push(place.file_name().unwrap_or_default());
    aside.push(format!(".{:016x}.old", unguessable()?));
    let aside = place.with_file_name(aside);
    std::fs::rename(place, &aside)?;
    if let Err(error) = std::fs::rename(new, place) {
        return match std::fs::rename(&aside, place) {
            Ok(()) => Err(error),
            Err(back) => Err(io::Error::other(format!("{error}; what was there is {} now ({back})", aside.display()))),
        };
    }
    std::fs::remove_dir_all(&aside)
}

impl Drop for Growing {
    fn drop(&mut self) {
        // Says what went wrong itself.
        drop(self.entry.take());
    }
}

/// What came of locking a directory.
#[derive(Debug)]
pub enum Locking {
    /// It is locked for as long as this is open.
    Ours(OwnedFd),
    /// Somebody has it: whoever made the directory lives, or sweeps.
    Theirs,
    /// There is no such directory, or it is on a file system without locks.
    Unknown,
}

/// Locks a directory (flock(2)), which whoever works in it does. Follows no link, and waits for nothing.
pub fn lock_directory(path: &Path) -> Locking {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    fs::open(path, flags, fs::Mode::empty()).map_or(Locking::Unknown, lock)
}

fn lock(directory: OwnedFd) -> Locking {
    match fs::flock(&directory, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Locking::Ours(directory),
        Err(rustix::io::Errno::WOULDBLOCK) => Locking::Theirs,
        Err(_) => Locking::Unknown,
    }
}

/// Makes a directory (mode 0700), locks it and enters it in the list; `None` if a sweep took it in the moment before
/// the lock: another will do.
fn make_directory(path: &Path) -> io::Result<Option<Entry>> {
    // The next run may be in another directory.
    let entry = Entry::new(Resource::Directory { path: std::path::absolute(path)?, ino: None });
    if let Err(error) = std::os::unix::fs::DirBuilderExt::mode(&mut std::fs::DirBuilder::new(), 0o700).create(path) {
        entry.forget();
        return Err(error);
    }
    let there = match lock_directory(path) {
        Locking::Ours(directory) if path.exists() => {
            entry.identified(Some(fs::fstat(&directory)?.st_ino), Some(directory));
            true
        }
        Locking::Unknown if path.exists() => {
            entry.made(fs::stat(path)?.st_ino);
            true
        }
        _ => false,
    };
    if there {
        return Ok(Some(entry));
    }
    entry.forget();
    Ok(None)
}

/// Makes a private directory (mode 0700) in `parent` and enters it in the list.
pub(crate) fn private_directory(parent: &Path) -> io::Result<(PathBuf, Entry)> {
    let parent = std::fs::canonicalize(parent)?;
    loop {
        let path = parent.join(private_name()?);
        if let Some(entry) = make_directory(&path)? {
            return Ok((path, entry));
        }
    }
}

/// A directory for what a command needs only while it runs: mode 0700, under a name that nobody can guess, and gone
/// with the last of it, or with the next run if this one is killed.
#[derive(Debug)]
pub struct Temporary {
    path: PathBuf,
    entry: Option<Entry>,
}

impl Temporary {
    /// Makes it where temporary files go (`TMPDIR`).
    ///
    /// # Errors
    /// Those of mkdir(2).
    pub fn new() -> io::Result<Temporary> {
        Temporary::within(&std::env::temp_dir())
    }

    /// Makes it in a directory.
    ///
    /// # Errors
    /// Those of mkdir(2).
    pub fn within(parent: &Path) -> io::Result<Temporary> {
        let (path, entry) = private_directory(parent)?;
        Ok(Temporary { path, entry: Some(entry) })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // Says what went wrong itself.
        drop(self.entry.take());
    }
}

/// A mount that this process serves. It is unmounted when this is dropped, or by the next run if this one is killed.
#[derive(Debug)]
pub struct Served {
    point: PathBuf,
    entry: Option<Entry>,
}

impl Served {
    /// Enters one that is about to be made.
    pub fn new(point: &Path, fs_type: &str) -> Served {
        let resource = Resource::Served { point: point.to_owned(), fs_type: fs_type.to_owned(), device: None };
        Served { point: point.to_owned(), entry: Some(Entry::new(resource)) }
    }

    /// It is mounted: from now on nothing else at that place is taken for it.
    pub fn made(&self) {
        let (Some(entry), Some(mount)) = (&self.entry, top_at(&self.point)) else { return };
        let mut list = list();
        if let Some(listed) = list.iter_mut().find(|listed| listed.id == entry.id)
            && let Resource::Served { device, fs_type, .. } = &mut listed.resource
            && *fs_type == mount.fs_type
        {
            *device = Some(mount.device_number);
        }
        journal::write(&list);
    }

    /// It has not been mounted.
    pub fn forget(mut self) {
        if let Some(entry) = self.entry.take() {
            entry.forget();
        }
    }

    /// Unmounts it, if nobody else has.
    ///
    /// # Errors
    /// Those of umount2(2); it is unmounted lazily where it is in use.
    pub fn unmount(mut self) -> io::Result<()> {
        self.entry.take().map_or(Ok(()), Entry::remove)
    }
}

/// What is mounted on a directory, seen last.
fn top_at(point: &Path) -> Option<MountEntry> {
    mounts().into_iter().rev().find(|mount| mount.point == point)
}

/// What is mounted on a directory, if it is of this type.
pub fn served_at(point: &Path, fs_type: &str) -> Option<MountEntry> {
    top_at(point).filter(|mount| mount.fs_type == fs_type)
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

/// Unmounts what this process serves, or one served that was killed.
fn remove_served(point: &Path, fs_type: &str, device: Option<&str>) -> io::Result<Removal> {
    let Some(mount) = top_at(point) else { return Ok(Removal::Gone) };
    if mount.fs_type != fs_type || device.is_some_and(|device| device != mount.device_number) {
        return Ok(Removal::Gone);
    }
    match unmount_served(point, false) {
        Ok(()) => Ok(Removal::Gone),
        Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
            unmount_served(point, true)?;
            Ok(Removal::NotOurs(format!("{}: still in use, unmounted lazily", point.display())))
        }
        Err(error) => Err(io::Error::new(error.kind(), format!("{}: {error}", point.display()))),
    }
}

fn remove_file(path: &Path, ino: Option<u64>) -> io::Result<Removal> {
    let because = |why: &str| Ok(Removal::NotOurs(format!("{}: left alone, as {why}", path.display())));
    if !crate::temporary::is_temporary_name(path) {
        return because("it is not a file that fsage was about to put in its place");
    }
    let stat = match fs::lstat(path) {
        Err(rustix::io::Errno::NOENT) => return Ok(Removal::Gone),
        other => other?,
    };
    let regular = fs::FileType::from_raw_mode(stat.st_mode) == fs::FileType::RegularFile;
    if !regular || ino.is_some_and(|ino| ino != stat.st_ino) || stat.st_uid != rustix::process::geteuid().as_raw() {
        return because("another file has taken its name");
    }
    std::fs::remove_file(path).map(|()| Removal::Gone)
}

fn remove_private(path: &Path, ino: Option<u64>) -> io::Result<Removal> {
    let because = |why: &str| Ok(Removal::NotOurs(format!("{}: left alone, as {why}", path.display())));
    let is_ours = is_private_name(path) || path.file_name().is_some_and(|name| growing_name(name).is_some());
    let (Some(parent), Some(name), true) = (path.parent(), path.file_name(), is_ours) else {
        return because("it is not a private directory of fsage");
    };
    let parent = match fs::open(parent, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, fs::Mode::empty()) {
        Err(rustix::io::Errno::NOENT) => return Ok(Removal::Gone),
        other => other?,
    };
    let stat = match fs::statat(&parent, name, fs::AtFlags::SYMLINK_NOFOLLOW) {
        Err(rustix::io::Errno::NOENT) => return Ok(Removal::Gone),
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
        return Ok(Removal::Gone);
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A FIFO with such a name was opened, which waits for ever; a directory of another user's was removed, and what
    /// was mounted on one was emptied.
    #[test]
    fn what_others_call_as_we_do_is_left_alone() {
        let dir = tempfile::tempdir().expect("a directory");
        let name = |n: u32| dir.path().join(format!(".w{GROWING}{n:016x}"));
        fs::mknodat(fs::CWD, name(0), fs::FileType::Fifo, fs::Mode::RWXU, 0).expect("a FIFO");
        for n in 1..5 {
            std::fs::create_dir(name(n)).expect("made");
            std::fs::write(name(n).join("a"), "a").expect("written");
        }
        std::os::unix::fs::symlink(name(2), name(5)).expect("a link");
        let living = lock_directory(&name(1));
        assert!(matches!(living, Locking::Ours(_)));
        let is_root = rustix::process::geteuid().is_root();
        if is_root {
            std::os::unix::fs::chown(name(2), Some(65534), None).expect("given away");
        }
        let elsewhere = tempfile::tempdir().expect("a directory");
        std::fs::write(elsewhere.path().join("a"), "precious").expect("written");
        let mounted = rustix::mount::mount_bind(elsewhere.path(), name(3)).is_ok();
        Growing::sweep(dir.path(), Some(OsStr::new("w")), &["a"]);
        Growing::sweep(dir.path(), Some(OsStr::new("x")), &["a"]);
        if mounted {
            assert!(elsewhere.path().join("a").exists());
            unmount(name(3), UnmountFlags::empty()).expect("unmounted");
        }
        let left: Vec<bool> = (0..6).map(|n| name(n).symlink_metadata().is_ok()).collect();
        assert_eq!(left, [true, true, is_root, mounted, false, true]);
        drop(living);
    }

    /// Whoever may rename in the directory could have had a directory of ours emptied, by a name that a growing result
    /// has.
    #[test]
    fn a_sweep_removes_the_files_of_a_result_and_nothing_else() {
        let dir = tempfile::tempdir().expect("a directory");
        let name = |n: u32| dir.path().join(format!(".w{GROWING}{n:016x}"));
        let write = |path: PathBuf| std::fs::write(path, "a").expect("written");
        for n in 0..6 {
            std::fs::create_dir(name(n)).expect("made");
            write(name(n).join("a"));
        }
        write(name(0).join("another"));
        std::fs::create_dir_all(name(1).join("directory")).expect("made");
        write(name(1).join("directory/a"));
        std::fs::create_dir(name(2).join("b")).expect("made");
        std::os::unix::fs::symlink(name(0), name(3).join("b")).expect("a link");
        write(name(4).join("b"));
        Growing::sweep(dir.path(), None, &["a", "b"]);
        for left in ["a", "another"].map(|file| name(0).join(file)) {
            assert!(left.exists(), "{left:?}");
        }
        assert!(name(1).join("a").exists() && name(1).join("directory/a").exists());
        assert!(name(2).join("a").exists() && name(2).join("b").is_dir());
        assert!(name(3).join("a").exists() && name(3).join("b").is_symlink());
        assert!(!name(4).exists() && !name(5).exists());
    }

    /// What was to be replaced was in a directory that a sweep takes, while nothing had its place.
    #[test]
    fn what_is_replaced_in_steps_is_never_in_a_directory_that_is_swept() {
        let dir = tempfile::tempdir().expect("a directory");
        let (new, place) = (dir.path().join("new"), dir.path().join("w.workload"));
        let make = |path: &Path, text: &str| {
            std::fs::create_dir(path).expect("made");
            std::fs::write(path.join("meta.json"), text).expect("written");
        };
        make(&new, "new");
        make(&place, "old");
        replace_in_steps(&new, &place).expect("replaced");
        assert_eq!(std::fs::read(place.join("meta.json")).expect("there"), b"new");
        assert_eq!(std::fs::read_dir(dir.path()).expect("there").count(), 1);
        let error = replace_in_steps(&new, &place).expect_err("no new one");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert_eq!(std::fs::read(place.join("meta.json")).expect("back in its place"), b"new");
        assert_eq!(std::fs::read_dir(dir.path()).expect("there").count(), 1);
    }
}
