//! Locks on directories, by which a sweep knows that somebody works in them.

use rustix::fs::{self, FlockOperation, OFlags};
use std::os::fd::OwnedFd;
use std::path::Path;

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

pub(super) fn lock(directory: OwnedFd) -> Locking {
    match fs::flock(&directory, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Locking::Ours(directory),
        Err(rustix::io::Errno::WOULDBLOCK) => Locking::Theirs,
        Err(_) => Locking::Unknown,
    }
}
