//! Paths that lead through what a process has open (`/proc/self/fd/3`, `/proc/self/cwd/a`): told as what they lead to.
//!
//! glibc's `fchmodat` changes a mode by way of `/proc/self/fd`, and files made without a name (`O_TMPFILE`) get one by
//! it (open(2)).

use super::call::{At, Call, Fd, Kind, Start};
use super::{Ctx, Tracker};
use crate::Op;
use std::borrow::Cow;

/// What a path of a process's own directory in `/proc` begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Link {
    Descriptor(i32),
    WorkingDirectory,
    Root,
}

/// The link at the beginning of a path, and what comes after it; empty if it is the whole path.
fn link(path: &[u8], pid: u32) -> Option<(Link, &[u8])> {
    let number = |name: &[u8]| std::str::from_utf8(name).ok()?.parse().ok();
    let (first, rest) = name(path.strip_prefix(b"/")?)?;
    let rest = match first {
        b"dev" if rest.starts_with(b"fd/") => rest,
        b"proc" => {
            let (of, rest) = name(rest)?;
            let own = matches!(of, b"self" | b"thread-self") || number(of) == i32::try_from(pid).ok();
            own.then_some(rest)?
        }
        _ => return None,
    };
    let (link, rest) = name(rest)?;
    match link {
        b"fd" => {
            let (fd, rest) = name(rest)?;
            Some((Link::Descriptor(number(fd)?), rest))
        }
        b"cwd" => Some((Link::WorkingDirectory, rest)),
        b"root" => Some((Link::Root, rest)),
        _ => None,
    }
}

/// The first name of a relative path, and the rest without the slashes between; a slash at the end is a rest of `.`.
fn name(path: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = memchr::memchr(b'/', path).unwrap_or(path.len());
    let (name, rest) = path.split_at(end);
    let names = rest.iter().position(|&b| b != b'/').map_or(&b""[..], |at| &rest[at..]);
    let rest = if names.is_empty() && !rest.is_empty() { b"." } else { names };
    (!name.is_empty()).then_some((name, rest))
}

impl Tracker {
    /// The call as it would be without the detour, if it makes one and what it leads to is known.
    pub(super) fn without_proc<'a>(&mut self, ctx: Ctx, call: &Call<'a>) -> Option<Call<'a>> {
        let pid = ctx.thread.pid;
        let may = |at: &At<'_>| {
            let path = at.path.as_deref().unwrap_or_default();
            (path.starts_with(b"/proc/") || path.starts_with(b"/dev/fd/")) && link(path, pid).is_some()
        };
        if !call.paths().into_iter().flatten().any(may) {
            return None;
        }
        let mut call = call.clone();
        let mut changed = false;
        for at in call.paths_mut().into_iter().flatten() {
            let path = at.path.take();
            let through = path.as_deref().and_then(|path| link(path, pid)).filter(|(_, rest)| !rest.is_empty());
            let Some((link, rest)) = through else {
                at.path = path;
                continue;
            };
            let (start, rest) = match link {
                Link::Descriptor(fd) if self.is_file(ctx, fd) => {
                    (Start::Fd(Fd { number: fd, seen: None }), rest.to_vec())
                }
                Link::WorkingDirectory => (Start::Cwd(None), rest.to_vec()),
                Link::Root => (at.start, [b"/", rest].concat()),
                Link::Descriptor(_) => {
                    at.path = path;
                    continue;
                }
            };
            *at = At { start, path: Some(Cow::Owned(rest)) };
            changed = true;
        }
        let whole = |at: &At<'_>| match at.path.as_deref().and_then(|path| link(path, pid)) {
            Some((Link::Descriptor(fd), b"")) => Some(Fd { number: fd, seen: None }),
            _ => None,
        };
        let known = |tracker: &mut Tracker, at: &At<'_>| whole(at).filter(|fd| tracker.is_file(ctx, fd.number));
        let instead = match &call {
            Call::Link { from, to, follow: true } => {
                known(self, from).map(|from| Call::LinkFd { from, to: to.clone() })
            }
            Call::Stat { at, nofollow: false, attrs } => known(self, at).map(|fd| Call::Fstat { fd, attrs: *attrs }),
            Call::Chdir { at } => known(self, at).map(|fd| Call::Fchdir { fd }),
            // The descriptor may be one for its path alone, or for reading, so it is the file's path that stands for
            // it.
            Call::OnPath { op, at, nofollow: false, mode, len } if *op != Op::ReadLink => known(self, at)
                .and_then(|fd| self.path_behind(ctx, fd))
                .map(|at| Call::OnPath { op: *op, at, nofollow: false, mode: *mode, len: *len }),
            Call::Truncate { at, len } => {
                known(self, at).and_then(|fd| self.path_behind(ctx, fd)).map(|at| Call::Truncate { at, len: *len })
            }
            _ => None,
        };
        instead.or(changed.then_some(call))
    }

    /// Whether a file of a file system is known to be behind a descriptor.
    fn is_file(&mut self, ctx: Ctx, fd: i32) -> bool {
        let Some(slot) = self.fds.get(ctx.thread.table, fd) else { return false };
        let moves = self.names.moves();
        let state = self.fds.ofd_mut(slot.ofd);
        if state.moves != moves {
            // What the tracer last showed may have been renamed since, and this call shows nothing.
            state.raw.clear();
        }
        !state.foreign && state.file.is_some()
    }

    /// A path to what a descriptor stands for. `None` where it has no name, or where the caller sees names in another
    /// way than the tree.
    fn path_behind(&mut self, ctx: Ctx, fd: Fd<'_>) -> Option<At<'static>> {
        let ofd = self.ofd(ctx, &fd, super::EBADF)?;
        let file = self.fds.ofd(ofd).file.filter(|&file| self.names.file(file).kind != Kind::Symlink)?;
        let node = self.names.node_of(file).filter(|_| self.sees_the_tree(ctx))?;
        let mut path = Vec::new();
        self.names.path(node, &mut path);
        Some(At { start: Start::Cwd(None), path: Some(Cow::Owned(path)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_of_a_process_are_told_from_other_paths() {
        let fd = |n| Some((Link::Descriptor(n), &b""[..]));
        for (path, expected) in [
            (&b"/proc/self/fd/3"[..], fd(3)),
            (b"/proc/thread-self/fd/13", fd(13)),
            (b"//proc//7/fd/3", None),
            (b"/proc/7//fd/3", fd(3)),
            (b"/proc/8/fd/3", None),
            (b"/dev/fd/0", fd(0)),
            (b"/dev/fd", None),
            (b"/dev/cwd/a", None),
            (b"/proc/self/fd/3/", Some((Link::Descriptor(3), b"."))),
            (b"/proc/self/fd/3//a/b", Some((Link::Descriptor(3), b"a/b"))),
            (b"/proc/self/fd/x/a", None),
            (b"/proc/self/cwd/../a", Some((Link::WorkingDirectory, b"../a"))),
            (b"/proc/self/root", Some((Link::Root, b""))),
            (b"/proc/self/root/x", Some((Link::Root, b"x"))),
            (b"/proc/self/exe", None),
            (b"/procs/self/fd/3", None),
            (b"proc/self/fd/3", None),
            (b"", None),
        ] {
            assert_eq!(link(path, 7), expected, "{}", String::from_utf8_lossy(path));
        }
    }
}
