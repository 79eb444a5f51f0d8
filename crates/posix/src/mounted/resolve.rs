//! Where a call's path begins, and how its walk is kept below the root.
//!
//! Three ways, by what the handle's thread can do ([`Reach`]). For the last, in a thread that has no root directory of
//! its own, each path is walked by `openat2(RESOLVE_IN_ROOT)` before the call: to the object itself where the call
//! follows its last component, which the call then finds as `/proc/self/fd/N`; else to the directory that the last
//! component, a mere name, is in. A walk that starts in an open directory begins at that directory's path of the
//! moment. What the walk takes is counted as the call's; what opening a descriptor takes without a walk, and `/proc`,
//! is not.

use super::path::{CPath, depth_after};
use super::{Shared, clock};
use crate::{At, Errno};
use rustix::fs::{self, Mode, OFlags, ResolveFlags};
use rustix::io::Result as SysResult;
use std::cell::Cell;
use std::ffi::CStr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

/// How far a handle's calls can reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// Below the root by the path's text; links lead where they lead.
    Text,
    /// The root is the root directory of the thread, which has a working directory of its own.
    Rooted,
    /// What the kernel resolves below the root, path by path.
    Resolved,
}

/// What a call does with the last component of its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Last {
    /// Follows it if it is a link.
    Follow,
    /// Takes a link as such.
    Keep,
    /// Makes, moves, removes or reads it as a name.
    Name,
}

impl Last {
    pub(super) fn follow(follow: bool) -> Last {
        if follow { Last::Follow } else { Last::Keep }
    }
}

/// Where calls are made: below a root.
pub(super) struct Place<'s> {
    pub(super) shared: &'s Shared,
    pub(super) reach: Reach,
    /// What finding the path took, to be added to the call's time.
    walked_ns: Cell<u64>,
}

/// The directory that a call's path starts in.
pub(super) enum Start<'s> {
    There(BorrowedFd<'s>),
    Found(OwnedFd),
}

impl AsFd for Start<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Start::There(fd) => *fd,
            Start::Found(fd) => fd.as_fd(),
        }
    }
}

/// How often a walk is begun again that a rename somewhere has disturbed: only then the kernel answers `EAGAIN`.
const ATTEMPTS: u32 = 10_000;
const IN_ROOT: ResolveFlags = ResolveFlags::IN_ROOT.union(ResolveFlags::NO_MAGICLINKS);

/// Opens a path that may lead anywhere, below a directory that stands for the root.
pub(super) fn open_in_root(root: &OwnedFd, path: &CStr, flags: OFlags, mode: Mode) -> SysResult<OwnedFd> {
    let mut attempts = 0;
    loop {
        match fs::openat2(root, path, flags, mode, IN_ROOT) {
            Err(rustix::io::Errno::AGAIN) if attempts < ATTEMPTS => attempts += 1,
            other => return other,
        }
    }
}

/// The directory a path starts in, and the path from there as the kernel takes it.
type Way<'s, 'p> = (Start<'s>, &'p CStr);

impl<'s> Place<'s> {
    pub(super) fn new(shared: &'s Shared, reach: Reach) -> Place<'s> {
        Place { shared, reach, walked_ns: Cell::new(0) }
    }

    pub(super) fn walked_ns(&self) -> u64 {
        self.walked_ns.get()
    }

    /// What a call's detour through `/proc/self/fd` costs.
    pub(super) fn detour_ns(&self) -> u64 {
        if self.reach == Reach::Text { self.shared.detour_ns() } else { 0 }
    }

    /// The directory a path starts in and how deep below the root the path ends; `EXDEV` where by its text it would
    /// leave the target, as `openat2(RESOLVE_BENEATH)` answers. A contained path may try.
    pub(super) fn start(&self, at: At<'_>) -> Result<(BorrowedFd<'s>, u32), Errno> {
        let (dir, depth) = match at.dir {
            None => (self.shared.root.as_fd(), 0),
            Some(fd) => {
                let (dir, entry) = self.shared.table.get(fd)?;
                (dir, entry.depth)
            }
        };
        let depth = if self.reach == Reach::Text { depth_after(at.path, depth).ok_or(Errno::EXDEV)? } else { 0 };
        Ok((dir, depth))
    }

    /// The directory a path starts in and the path as the kernel takes it.
    pub(super) fn walk<'p>(&self, at: At<'_>, last: Last, buffer: &'p mut CPath) -> Result<Way<'s, 'p>, Errno> {
        let (dir, _) = self.start(at)?;
        if self.reach == Reach::Resolved {
            return self.resolve(at, last, buffer);
        }
        buffer.set(at.path)?;
        Ok((Start::There(dir), buffer.as_c_str()))
    }

    /// As [`walk`](Place::walk), for the calls that take no directory and follow: through `/proc`, or from the thread's
    /// own working directory. The directory stays open for the call.
    pub(super) fn detour<'p>(&self, at: At<'_>, last: Last, buffer: &'p mut CPath) -> Result<Way<'s, 'p>, Errno> {
        let (dir, _) = self.start(at)?;
        match self.reach {
            Reach::Text => buffer.set_below(dir.as_raw_fd(), at.path)?,
            Reach::Rooted => {
                buffer.set(at.path)?;
                rustix::process::fchdir(dir)?;
            }
            Reach::Resolved => {
                let (found, name) = self.resolve(at, last, buffer)?;
                if !name.to_bytes().starts_with(b"/") {
                    let name = std::path::PathBuf::from(std::ffi::OsStr::from_bytes(name.to_bytes()));
                    buffer.set_below(found.as_fd().as_raw_fd(), &name)?;
                }
                return Ok((found, buffer.as_c_str()));
            }
        }
        Ok((Start::There(dir), buffer.as_c_str()))
    }

    /// A path as text that begins at the root.
    pub(super) fn text<'p>(&self, at: At<'_>, buffer: &'p mut CPath) -> Result<&'p CStr, Errno> {
        let mut text = Vec::new();
        if at.dir.is_some() {
            let (dir, _) = self.start(at)?;
            let name = |fd: BorrowedFd<'_>| fs::readlink(format!("/proc/self/fd/{}", fd.as_raw_fd()), Vec::new());
            let (root, dir) = (name(self.shared.root.as_fd())?, name(dir)?);
            // A directory that was removed has no path any more.
            let below = dir.to_bytes().strip_prefix(root.to_bytes()).ok_or(Errno::ENOENT)?;
            text.extend_from_slice(below);
            text.push(b'/');
        }
        text.extend_from_slice(at.path.as_os_str().as_bytes());
        if at.path.as_os_str().is_empty() {
            return Err(Errno::ENOENT);
        }
        buffer.set(std::path::Path::new(std::ffi::OsStr::from_bytes(&text)))?;
        Ok(buffer.as_c_str())
    }

    fn resolve<'p>(&self, at: At<'_>, last: Last, buffer: &'p mut CPath) -> Result<(Start<'s>, &'p CStr), Errno> {
        let text = self.text(at, buffer)?.to_bytes().to_vec();
        let end = text.iter().rposition(|&b| b != b'/').map_or(0, |i| i + 1);
        let begin = text.get(..end).and_then(|t| t.iter().rposition(|&b| b == b'/')).map_or(0, |i| i + 1);
        let name = text.get(begin..end).unwrap_or_default();
        let is_directory = end < text.len() || matches!(name, b"." | b"..");
        let (walked, path): (&[u8], &[u8]) = match last {
            // No name to make or to remove: what rmdir answers; some calls have other numbers for it.
            Last::Name if name == b"." => return Err(Errno::EINVAL),
            Last::Name if name == b".." => return Err(Errno::ENOTEMPTY),
            // Neither a directory nor what a name is looked up in is ever followed.
            Last::Name => (text.get(..begin).unwrap_or_default(), name),
            Last::Keep if !is_directory => (text.get(..begin).unwrap_or_default(), name),
            Last::Keep | Last::Follow => (&text, b"."),
        };
        let object = last == Last::Follow && !is_directory;
        let mut flags = OFlags::PATH | OFlags::CLOEXEC;
        flags.set(OFlags::DIRECTORY, !object);
        buffer.set_verbatim(if walked.is_empty() { b"." } else { walked })?;
        let began_ns = clock::now_ns();
        let found = open_in_root(&self.shared.root, buffer.as_c_str(), flags, Mode::empty());
        let took_ns = clock::now_ns().saturating_sub(began_ns);
        let besides_ns = self.shared.opening_ns() + if object { self.shared.detour_ns() } else { 0 };
        self.walked_ns.set(self.walked_ns.get() + took_ns.saturating_sub(besides_ns));
        let found = found?;
        if object {
            buffer.set_verbatim(format!("/proc/self/fd/{}", found.as_raw_fd()).as_bytes())?;
        } else {
            buffer.set_verbatim(path)?;
        }
        Ok((Start::Found(found), buffer.as_c_str()))
    }
}
