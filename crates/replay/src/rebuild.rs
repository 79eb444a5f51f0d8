//! Building the state the workload found: the snapshot's names, and what the trace implies was there.
//!
//! Parents first, in snapshot order. Files whose data the trace reads, overwrites or frees get incompressible data; the
//! others get their length only, since no call can tell. Owners have read, write and search permission, so that any
//! user can replay, but for what refused the traced user. FIFOs, sockets and devices become empty files: opening them
//! could block for ever.

use super::rights::SEARCH;
use super::scan::{Initial, InitialState};
use super::translate::set_xattr;
use super::{Data, ReplayError, ReplayOptions};
use posix::{At, Call, Errno, Fd, FileKind, FileSystem, Mode, OpenFlags, Outcome, Reply};
use serde::Serialize;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Data is written in pieces of this size, as `cp` and `tar` do.
const WRITE_BYTES: u64 = 1 << 20;
/// Longest path given to one call; longer ones are walked in pieces. Below `PATH_MAX` (4096).
const PIECE_BYTES: usize = 3000;

/// What was made before the replay began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Rebuilt {
    /// Names made.
    pub entries: u64,
    /// Directories among them.
    pub directories: u64,
    /// Data written, bytes.
    pub data_bytes: u64,
    /// Files that got their length only.
    pub length_only: u64,
    /// Names not in the snapshot that the trace implies.
    pub reconstructed: u64,
    /// FIFOs, sockets and devices for which an empty file stands in.
    pub stand_ins: u64,
}

/// Opens a directory relative to another, whatever the length of the path. Untimed.
pub(super) fn open_dir<F: FileSystem + ?Sized>(fs: &mut F, from: Fd, path: &[u8]) -> Result<Fd, Errno> {
    let mut at = from;
    for piece in pieces(path) {
        let flags = OpenFlags { path_only: true, directory: true, ..OpenFlags::default() };
        let opened = fs.call(&Call::Open { at: relative(at, piece), flags, mode: Mode(0) }).fd();
        if at != from {
            fs.call(&Call::Close { fd: at });
        }
        at = opened?;
    }
    Ok(at)
}

/// A path cut into pieces of at most [`PIECE_BYTES`] between components. An empty path is `.`.
pub(super) fn pieces(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = path.trim_start();
    let mut first = true;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return std::mem::take(&mut first).then_some(&b"."[..]);
        }
        first = false;
        let cut = if rest.len() <= PIECE_BYTES {
            rest.len()
        } else {
            rest[..PIECE_BYTES].iter().rposition(|&b| b == b'/').unwrap_or(PIECE_BYTES)
        };
        let (piece, after) = rest.split_at(cut);
        rest = after.trim_start();
        Some(piece)
    })
}

trait TrimSlashes {
    fn trim_start(&self) -> &[u8];
}

impl TrimSlashes for [u8] {
    fn trim_start(&self) -> &[u8] {
        &self[self.iter().position(|&b| b != b'/').unwrap_or(self.len())..]
    }
}

pub(super) fn relative(dir: Fd, path: &[u8]) -> At<'_> {
    At { dir: Some(dir), path: Path::new(OsStr::from_bytes(path)) }
}

/// Makes the initial state below `root`.
pub(super) fn rebuild<F: FileSystem + ?Sized>(
    fs: &mut F,
    root: Fd,
    initial: &InitialState,
    options: &ReplayOptions,
    mut progress: impl FnMut(u64) -> Result<(), ReplayError>,
) -> Result<Rebuilt, ReplayError> {
    let parent = Parent { root, kept: None };
    let mut builder = Builder { fs, root, modes: options.modes(), parent, done: Rebuilt::default() };
    let result = builder.all(initial, options.data, &mut progress);
    builder.parent.close(builder.fs);
    result.map(|()| builder.done)
}

struct Builder<'a, F: FileSystem + ?Sized> {
    fs: &'a mut F,
    root: Fd,
    /// Permission bits that are given.
    modes: u16,
    parent: Parent,
    done: Rebuilt,
}

/// The directory of the last entry, kept open: the next is in it, or in one below it, more often than not.
struct Parent {
    root: Fd,
    kept: Option<(usize, Fd)>,
}

impl Parent {
    /// Opens the directory that an entry is, or the root.
    fn open<F: FileSystem + ?Sized>(
        &mut self,
        fs: &mut F,
        initial: &InitialState,
        dir: Option<usize>,
    ) -> Result<Fd, Errno> {
        let Some(dir) = dir else { return Ok(self.root) };
        let fd = match self.kept {
            Some((kept, fd)) if kept == dir => return Ok(fd),
            // A deep tree is gone down step by step, not from the root each time.
            Some((kept, fd)) if initial.entries()[dir].dir == Some(kept) => {
                open_dir(fs, fd, &initial.entries()[dir].name)?
            }
            _ => open_dir(fs, self.root, &initial.path(Some(dir)))?,
        };
        self.close(fs);
        self.kept = Some((dir, fd));
        Ok(fd)
    }

    fn close<F: FileSystem + ?Sized>(&mut self, fs: &mut F) {
        if let Some((_, fd)) = self.kept.take() {
            fs.call(&Call::Close { fd });
        }
    }
}

impl<F: FileSystem + ?Sized> Builder<'_, F> {
    fn all(
        &mut self,
        initial: &InitialState,
        data: Data,
        progress: &mut dyn FnMut(u64) -> Result<(), ReplayError>,
    ) -> Result<(), ReplayError> {
        for (i, entry) in initial.entries().iter().enumerate() {
            if posix::interrupt::requested() {
                return Err(ReplayError::Interrupted { stage: "rebuilding the initial state", calls: 0 });
            }
            let failed =
                |errno: Errno| ReplayError::rebuild(&initial.path(Some(i)), errno, i as u64, initial.len() as u64);
            let dir = self.parent.open(self.fs, initial, entry.dir).map_err(failed)?;
            self.entry(dir, entry, initial, data).map_err(failed)?;
            self.done.entries += 1;
            self.done.reconstructed += u64::from(entry.reconstructed);
            if i % 256 == 0 {
                progress(i as u64)?;
            }
        }
        Ok(())
    }

    fn call(&mut self, call: &Call<'_>) -> Result<Outcome, Errno> {
        let outcome = self.fs.call(call);
        outcome.result.map(|_| outcome)
    }

    fn entry(&mut self, dir: Fd, e: &Initial, all: &InitialState, data: Data) -> Result<(), Errno> {
        let at = relative(dir, &e.name);
        if let Some(first) = e.link_to.and_then(|i| all.entries().get(i)) {
            let other = open_dir(self.fs, self.root, &all.path(first.dir))?;
            let linked = self.call(&Call::Link { from: relative(other, &first.name), to: at, follow: false });
            self.fs.call(&Call::Close { fd: other });
            return linked.map(|_| ());
        }
        match e.kind {
            FileKind::Directory => {
                self.done.directories += 1;
                // Who may not search it can still list it, so that it can be removed.
                let mode = without(e.mode & self.modes & 0o1777 | 0o700, e.lacks & SEARCH);
                self.call(&Call::Mkdir { at, mode: Mode(mode) })?;
                self.attribute(at, e)?;
            }
            FileKind::Symlink => {
                let target = e.target.as_deref().unwrap_or(b"unknown");
                self.call(&Call::Symlink { target: Path::new(OsStr::from_bytes(target)), at })?;
            }
            FileKind::File => {
                self.file(at, e, data)?;
                self.attribute(at, e)?;
            }
            FileKind::Special => {
                self.done.stand_ins += 1;
                self.file(at, &Initial { size_bytes: 0, ..e.clone() }, data)?;
            }
        }
        Ok(())
    }

    /// The attribute that the trace found. A file system without attributes, or without room for this one, does
    /// without: the traced calls on it then go as they go there.
    fn attribute(&mut self, at: At<'_>, e: &Initial) -> Result<(), Errno> {
        let Some(bytes) = e.attribute_bytes else { return Ok(()) };
        match self.call(&set_xattr(at, true, bytes)) {
            Err(Errno::EACCES) if e.lacks != 0 => Ok(()),
            Err(Errno::EOPNOTSUPP | Errno::EPERM | Errno::ENOSPC | Errno::E2BIG | Errno::ERANGE) => Ok(()),
            other => other.map(|_| ()),
        }
    }

    fn file(&mut self, at: At<'_>, e: &Initial, data: Data) -> Result<(), Errno> {
        // Who makes a file may fill it, whatever its mode.
        let mode = Mode(without(e.mode & 0o777 | 0o600, e.lacks));
        let fd = self.call(&Call::Open { at, flags: OpenFlags::CREATE_NEW, mode })?.fd()?;
        let filled = self.fill(fd, e, data);
        self.call(&Call::Close { fd })?;
        filled
    }

    fn fill(&mut self, fd: Fd, e: &Initial, data: Data) -> Result<(), Errno> {
        if e.size_bytes == 0 {
            return Ok(());
        }
        let real = match data {
            Data::Needed => e.needs_data,
            Data::All => true,
            Data::Sparse => false,
        };
        if !real {
            self.done.length_only += 1;
            return self.call(&Call::Ftruncate { fd, len_bytes: e.size_bytes }).map(|_| ());
        }
        let mut left = e.size_bytes;
        while left > 0 {
            let len_bytes = left.min(WRITE_BYTES);
            let outcome = self.call(&Call::Write { fd, offset: None, len_bytes, data: None })?;
            match outcome.result? {
                Reply::Count(n) if n > 0 => left = left.saturating_sub(n),
                _ => return Err(Errno::EIO),
            }
            self.done.data_bytes += len_bytes;
        }
        Ok(())
    }
}

/// A mode from which rights are taken: the owner's, the group's and the others'.
fn without(mode: u16, rights: u8) -> u16 {
    mode & !(u16::from(rights) * 0o111)
}

/// Reads every byte and lists every directory of the initial state, so that a replay starts warm.
pub(super) fn warm<F: FileSystem + ?Sized>(fs: &mut F, root: Fd, initial: &InitialState) -> Result<(), ReplayError> {
    let mut parent = Parent { root, kept: None };
    let result = warm_all(fs, &mut parent, initial);
    parent.close(fs);
    result
}

fn warm_all<F: FileSystem + ?Sized>(
    fs: &mut F,
    parent: &mut Parent,
    initial: &InitialState,
) -> Result<(), ReplayError> {
    for (i, entry) in initial.entries().iter().enumerate() {
        if posix::interrupt::requested() {
            return Err(ReplayError::Interrupted { stage: "warming the caches", calls: 0 });
        }
        let failed = |errno| ReplayError::rebuild(&initial.path(Some(i)), errno, i as u64, initial.len() as u64);
        let dir = parent.open(fs, initial, entry.dir).map_err(failed)?;
        warm_one(fs, relative(dir, &entry.name), entry).map_err(failed)?;
    }
    Ok(())
}

fn warm_one<F: FileSystem + ?Sized>(fs: &mut F, at: At<'_>, entry: &Initial) -> Result<(), Errno> {
    fs.call(&Call::Stat { at, follow: false }).result?;
    let flags = match entry.kind {
        FileKind::Directory => OpenFlags::DIRECTORY,
        FileKind::File if entry.needs_data && entry.lacks == 0 => OpenFlags::READ,
        FileKind::Symlink => return fs.call(&Call::ReadLink { at }).result.map(|_| ()),
        _ => return Ok(()),
    };
    let fd = fs.call(&Call::Open { at, flags, mode: Mode(0) }).fd()?;
    let call = match entry.kind {
        FileKind::Directory => Call::GetDents { fd, len_bytes: 64 << 10 },
        _ => Call::Read { fd, offset: None, len_bytes: WRITE_BYTES },
    };
    let result = loop {
        match fs.call(&call).count() {
            Ok(0) => break Ok(()),
            Ok(_) => {}
            Err(errno) => break Err(errno),
        }
    };
    fs.call(&Call::Close { fd });
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_paths_are_cut_between_components() {
        let long: Vec<u8> = (0..1000).flat_map(|i| format!("/component{i:04}").into_bytes()).collect();
        let cut: Vec<&[u8]> = pieces(&long).collect();
        assert!(cut.len() > 3 && cut.iter().all(|p| p.len() <= PIECE_BYTES && p.starts_with(b"component")));
        assert_eq!(cut.join(&b'/'), &long[1..]);
        assert_eq!(pieces(b"/").collect::<Vec<_>>(), [b"."]);
    }
}
