//! Private directories.

use super::list::Entry;
use super::lock::{Locking, lock_directory};
use super::making;
use super::names::private_name;
use super::resource::Resource;
use rustix::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Makes a directory (mode 0700), locks it and enters it in the list; `None` if a sweep took it in the moment before
/// the lock: another will do.
pub(super) fn make_directory(path: &Path) -> io::Result<Option<Entry>> {
    let making = making::begin();
    // The next run may be in another directory.
    let entry = Entry::new(&making, Resource::Directory { path: std::path::absolute(path)?, ino: None });
    if let Err(error) = std::os::unix::fs::DirBuilderExt::mode(&mut std::fs::DirBuilder::new(), 0o700).create(path) {
        // What is there is somebody else's.
        entry.forget();
        return Err(error);
    }
    let is_there = identify(path, &entry);
    drop(making);
    if is_there? {
        return Ok(Some(entry));
    }
    entry.forget();
    Ok(None)
}

/// Locks a directory that was just made, and notes which one it is; `false` if it is gone already.
fn identify(path: &Path, entry: &Entry) -> io::Result<bool> {
    match lock_directory(path) {
        Locking::Ours(directory) if path.exists() => {
            entry.identified(Some(fs::fstat(&directory)?.st_ino), Some(directory));
        }
        Locking::Unknown if path.exists() => entry.made(fs::stat(path)?.st_ino),
        _ => return Ok(false),
    }
    Ok(true)
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
