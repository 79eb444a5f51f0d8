//! Opening directories to be read, so that they do not seem to have been.

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::ffi::OsStr;

/// Opens a directory by its name in another.
pub(super) fn open_directory(at: &OwnedFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    open_directory_at(at, name)
}

/// Opens a directory by its name in another, of which any descriptor is known, or in the working directory.
pub(super) fn open_directory_at(at: impl AsFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    #[cfg(test)]
    tests::OPENED.set(tests::OPENED.get() + 1);
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // Who judges directories by when they were read must not take us for their user. Only owners and root may ask for
    // that.
    let opened = match rustix::fs::openat(&at, name, flags | OFlags::NOATIME, Mode::empty()) {
        Err(Errno::PERM) => rustix::fs::openat(&at, name, flags, Mode::empty()),
        other => other,
    };
    match opened {
        // Search permission without read permission still lets us pass through.
        Err(Errno::ACCESS) => rustix::fs::openat(at, name, OFlags::PATH | flags, Mode::empty()),
        other => other,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::cell::Cell;

    thread_local! {
        /// How often a directory was opened.
        pub static OPENED: Cell<usize> = const { Cell::new(0) };
    }
}
