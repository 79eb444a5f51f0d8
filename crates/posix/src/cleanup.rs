//! Everything fsage makes outside its own process, and how it goes away again.
//!
//! Three kinds of things can be left behind: private directories, mounts inside them, and files on their way to their place
//! ([`crate::output`]). Each is entered in a list
//! *before* it is made and struck off when it is gone. The list is kept twice: in memory, for
//! the forced clean-up after a second signal; and as a small journal file (`/run/fsage` for root, else
//! `$XDG_STATE_HOME/fsage` or `~/.local/state/fsage`), so that [`sweep`] of a later run can remove what a killed
//! process left. Loop devices need no entry: they are attached with autoclear and go with their last user.
//!
//! Nothing is removed on the strength of a path alone: every name carries 64 random bits (`fsage-<16 hex>`, `.NAME.<16 hex>.tmp`), a
//! directory or file must have the inode number it was made with, and only a mount directly inside such a
//! directory is unmounted.

mod journal;

use crate::mounted;
use crate::remove::remove_tree;
use rustix::fs::{self, OFlags};
use rustix::mount::{UnmountFlags, unmount};
use serde::{Deserialize, Serialize};
use std::io;
use std::os::fd::AsFd;
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
    /// A mount on a directory inside a private directory.
    Mount {
        #[serde(with = "journal::path_text")]
        point: PathBuf,
    },
}

impl Resource {
    /// Removes it if it is there and is what we made.
    fn remove(&self) -> io::Result<()> {
        match self {
            Resource::Directory { path, ino } => remove_private(path, *ino),
            Resource::File { path, ino } => remove_file(path, *ino),
            Resource::Mount { point } => unmount_ours(point),
        }
    }
}

static NEXT: AtomicU64 = AtomicU64::new(0);
static LIST: Mutex<Vec<(u64, Resource)>> = Mutex::new(Vec::new());

fn list() -> std::sync::MutexGuard<'static, Vec<(u64, Resource)>> {
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
        list.push((id, resource));
        journal::write(&list);
        Entry { id }
    }

    /// Notes the inode number of what has just been made.
    pub(crate) fn made(&self, ino: u64) {
        let mut list = list();
        for (id, resource) in list.iter_mut() {
            match resource {
                Resource::Directory { ino: known, .. } | Resource::File { ino: known, .. } if *id == self.id => {
                    *known = Some(ino);
                }
                _ => {}
            }
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
            crate::interrupt::tell(&format!("cannot clean up: {error}"));
        }
    }
}

fn take(id: u64) -> Option<Resource> {
    let mut list = list();
    let position = list.iter().position(|(other, _)| *other == id)?;
    let (_, resource) = list.remove(position);
    journal::write(&list);
    Some(resource)
}

/// Removes the thing first and strikes it off afterwards, so that a process killed in between leaves its entry.
fn remove_entry(id: u64) -> io::Result<()> {
    let Some(resource) = list().iter().find(|(other, _)| *other == id).map(|(_, r)| r.clone()) else { return Ok(()) };
    let result = resource.remove();
    take(id);
    result
}

/// Removes everything in the list, the youngest first, and says in words what could not be removed. For the end
/// of a process that cannot unwind.
pub fn release_all() -> Vec<String> {
    let mut troubles = Vec::new();
    loop {
        let Some(id) = list().last().map(|(id, _)| *id) else { return troubles };
        if let Err(error) = remove_entry(id) {
            troubles.push(format!("cannot clean up: {error}"));
        }
    }
}

/// A name no other run has: `fsage-` and 64 random bits.
pub(crate) fn private_name() -> io::Result<String> {
    use std::io::Read;
    let mut bytes = [0u8; 8];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(format!("fsage-{:016x}", u64::from_ne_bytes(bytes)))
}

/// Whether a name is one that [`private_name`] makes.
pub(crate) fn is_private_name(path: &Path) -> bool {
    let name = path.file_name().and_then(std::ffi::OsStr::to_str).and_then(|name| name.strip_prefix("fsage-"));
    name.is_some_and(|hex| hex.len() == 16 && hex.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)))
}

/// Makes a private directory (mode 0700) in `parent` and enters it in the list.
pub(crate) fn private_directory(parent: &Path) -> io::Result<(PathBuf, Entry)> {
    let parent = std::fs::canonicalize(parent)?;
    let path = parent.join(private_name()?);
    let entry = Entry::new(Resource::Directory { path: path.clone(), ino: None });
    let mut builder = std::fs::DirBuilder::new();
    if let Err(error) = std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700).create(&path) {
        entry.forget();
        return Err(error);
    }
    entry.made(fs::stat(&path)?.st_ino);
    Ok((path, entry))
}

/// A directory for what a command needs only while it runs: mode 0700, under a name that nobody can guess, and gone with the last
/// of it, or with the next run if this one is killed.
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

fn remove_file(path: &Path, ino: Option<u64>) -> io::Result<()> {
    let because = |why: &str| Err(io::Error::other(format!("{}: left alone, as {why}", path.display())));
    if !crate::output::is_temporary_name(path) {
        return because("it is not a file that fsage was about to put in its place");
    }
    let stat = match fs::lstat(path) {
        Err(rustix::io::Errno::NOENT) => return Ok(()),
        other => other?,
    };
    let regular = fs::FileType::from_raw_mode(stat.st_mode) == fs::FileType::RegularFile;
    if !regular || ino.is_some_and(|ino| ino != stat.st_ino) || stat.st_uid != rustix::process::geteuid().as_raw() {
        return because("another file has taken its name");
    }
    std::fs::remove_file(path)
}

fn remove_private(path: &Path, ino: Option<u64>) -> io::Result<()> {
    let because = |why: &str| Err(io::Error::other(format!("{}: left alone, as {why}", path.display())));
    let (Some(parent), Some(name), true) = (path.parent(), path.file_name(), is_private_name(path)) else {
        return because("it is not a private directory of fsage");
    };
    let parent = match fs::open(parent, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, fs::Mode::empty()) {
        Err(rustix::io::Errno::NOENT) => return Ok(()),
        other => other?,
    };
    let stat = match fs::statat(&parent, name, fs::AtFlags::SYMLINK_NOFOLLOW) {
        Err(rustix::io::Errno::NOENT) => return Ok(()),
        other => other?,
    };
    if ino.is_some_and(|ino| ino != stat.st_ino) || stat.st_uid != rustix::process::geteuid().as_raw() {
        return because("another directory has taken its name");
    }
    let removed = remove_tree(parent.as_fd(), Path::new(name));
    removed.map_err(|error| io::Error::new(error.kind(), format!("{}: cannot be removed: {error}", path.display())))
}

/// Unmounts what is mounted directly inside a private directory. Tries for some seconds, as other programs look
/// into new file systems; the last resort is a lazy unmount, which is reported.
pub(crate) fn unmount_ours(point: &Path) -> io::Result<()> {
    const ATTEMPTS: u32 = 30;
    let mounted = || mounted::mounts().iter().any(|m| m.point == point);
    if !mounted() {
        return Ok(());
    }
    if !point.parent().is_some_and(is_private_name) {
        return Err(io::Error::other(format!("{}: not unmounted, as it is not a mount of fsage", point.display())));
    }
    for attempt in 0..ATTEMPTS {
        match unmount(point, UnmountFlags::NOFOLLOW) {
            Ok(()) | Err(rustix::io::Errno::INVAL) => return Ok(()),
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
