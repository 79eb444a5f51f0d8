//! Threads whose root directory is a target's private one, so that the kernel keeps their calls inside.
//!
//! A walk that begins at such a root, or at a descriptor opened below it, cannot leave it by `..`, by an absolute link
//! or by both, whatever is moved where meanwhile: the kernel compares with the thread's root at every `..`. That costs
//! a call nothing. Only what another process moves out of the directory could be followed there.
//!
//! chroot(2) needs a capability. Root has it; an ordinary user gets it in a user namespace, where it says nothing of
//! any other right, and which only a process of one thread can enter: [`prepare`] comes first in `main`. Who has it
//! neither way has every path resolved by `openat2(RESOLVE_IN_ROOT)` instead. In that namespace no program that this
//! process starts can be traced: what traces is done by a process [apart](crate::apart).
#![allow(unsafe_code)]

use rustix::process::{chroot, fchdir, getegid, geteuid};
use rustix::thread::{CapabilitySet, CapabilitySets, UnshareFlags, set_capabilities, unshare_unsafe};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::OnceLock;

/// Why there is no user namespace.
static REFUSED: OnceLock<io::Error> = OnceLock::new();

/// Gets an ordinary user the right to give threads a root directory, before any other thread is started. Where the
/// system refuses, nothing changes.
pub fn prepare() {
    if geteuid().is_root() {
        return;
    }
    // Tried by a child first: a namespace that allows nothing could not be left again.
    if let Err(error) = probe().and_then(|()| enter_namespace()) {
        let _ = REFUSED.set(error);
    }
}

fn probe() -> io::Result<()> {
    // SAFETY: the caller has one thread, so the child may do whatever it could; it ends below.
    let child = match unsafe { libc::fork() } {
        -1 => return Err(io::Error::last_os_error()),
        0 => {
            let tried = enter_namespace().and_then(|()| Ok(chroot(c"/")?));
            let errno = tried.err().map_or(0, |error| error.raw_os_error().unwrap_or(libc::EIO));
            // SAFETY: ends the child without running what the parent has registered for its own end.
            unsafe { libc::_exit(errno) }
        }
        child => rustix::process::Pid::from_raw(child),
    };
    let options = rustix::process::WaitOptions::empty();
    let errno = rustix::process::waitpid(child, options)?.and_then(|(_, status)| status.exit_status());
    match errno {
        Some(0) => Ok(()),
        Some(errno) => Err(io::Error::from_raw_os_error(errno)),
        None => Err(io::Error::other("the process that tried it was killed")),
    }
}

/// A user namespace in which this user and group are themselves, with the one right it is for.
fn enter_namespace() -> io::Result<()> {
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    // SAFETY: descriptors stay shared; only who has which rights changes.
    unsafe { unshare_unsafe(UnshareFlags::NEWUSER) }?;
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    std::fs::write("/proc/self/gid_map", format!("{group} {group} 1"))?;
    let only = CapabilitySet::SYS_CHROOT;
    let sets = CapabilitySets { effective: only, permitted: only, inheritable: CapabilitySet::empty() };
    Ok(set_capabilities(None, sets)?)
}

/// Makes a directory the root of the calling thread and of those that it starts.
pub(crate) fn enter(root: &OwnedFd) -> io::Result<()> {
    own_directories()?;
    fchdir(root)?;
    Ok(chroot(c".")?)
}

/// The calling thread's working directory is no longer that of the thread that started it; its root stays the same.
pub(crate) fn own_directories() -> io::Result<()> {
    // SAFETY: descriptors stay shared.
    Ok(unsafe { unshare_unsafe(UnshareFlags::FS) }?)
}

/// Why this ordinary user's threads have no root directories of their own, if [`prepare`] was called and they have not.
pub fn refused() -> Option<&'static io::Error> {
    REFUSED.get()
}
