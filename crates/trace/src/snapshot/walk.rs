//! Reading a snapshot off the disk.
//!
//! The walk goes from descriptor to descriptor (`openat`), so that trees deeper than `PATH_MAX` are read and a name
//! swapped for a symbolic link in mid-walk is not followed. Two directories are open at a time
//! ([`posix::trail`]). What cannot be read is noted, not fatal.

use super::entries::Snapshot;
use super::entry::{Provenance, SnapshotEntry};
use super::open::open_directory;
use super::view::View;
use crate::profile::{PATH_BYTES_MAX, Unreadable, escape};
use posix::trail::{Identity, Trail};
use posix::{FileKind, LINKS_MAX};
use rustc_hash::FxHashSet;
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Dir, FileType, Stat};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::ffi::{CString, OsStr};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// How far a walk goes.
#[derive(Clone, Copy, Debug)]
pub struct WalkLimits {
    /// Entries at most; the walk stops there and says so.
    pub entries_max: usize,
    /// Levels of directories listed at most, the root's own being the first; deeper ones are entries without children.
    pub depth_max: usize,
    /// Whether to descend into other file systems mounted below a root.
    pub cross_file_systems: bool,
}

impl Default for WalkLimits {
    fn default() -> Self {
        WalkLimits { entries_max: 20_000_000, depth_max: 100_000, cross_file_systems: false }
    }
}

/// What a walk found.
#[derive(Clone, Debug, Default)]
pub struct Walked {
    /// The names, marked [`Provenance::Before`], with the directories (and symbolic links) on the way to each root.
    pub snapshot: Snapshot,
    /// What could not be read, and why.
    pub unreadable: Vec<Unreadable>,
    /// Whether a limit cut the walk short.
    pub truncated: bool,
}

impl Snapshot {
    /// Walks whole trees of ours: see [`View::tree`].
    ///
    /// # Errors
    /// Only an interrupt ([`io::ErrorKind::Interrupted`]).
    pub fn of_tree<P: AsRef<Path>>(roots: &[P], limits: &WalkLimits) -> io::Result<Walked> {
        View::own().tree(roots, limits)
    }

    /// Lists directories of ours: see [`View::directories`].
    ///
    /// # Errors
    /// Only an interrupt ([`io::ErrorKind::Interrupted`]).
    pub fn of_directories<P: AsRef<Path>>(directories: &[P], limits: &WalkLimits) -> io::Result<Walked> {
        View::own().directories(directories, limits)
    }
}

impl View {
    /// Walks whole trees. A root that is a symbolic link (or lies behind one) is recorded as such and walked where it
    /// leads; links found inside are not followed.
    ///
    /// # Errors
    /// Only an interrupt ([`io::ErrorKind::Interrupted`]); names that cannot be read are in [`Walked::unreadable`].
    pub fn tree<P: AsRef<Path>>(&self, roots: &[P], limits: &WalkLimits) -> io::Result<Walked> {
        let mut walker = Walker::new(self, *limits);
        for root in roots {
            walker.root(root.as_ref(), true)?;
        }
        Ok(walker.finish())
    }

    /// Lists directories one level deep each: the names in them, not what is below. A directory that does not exist
    /// has no names, which is no error.
    ///
    /// # Errors
    /// Only an interrupt ([`io::ErrorKind::Interrupted`]).
    pub fn directories<P: AsRef<Path>>(&self, directories: &[P], limits: &WalkLimits) -> io::Result<Walked> {
        let mut walker = Walker::new(self, *limits);
        for directory in directories {
            walker.root(directory.as_ref(), false)?;
        }
        Ok(walker.finish())
    }

    /// Looks up names, and where they lead: each directory and symbolic link passed, and what is found in the end. No
    /// directory is listed. A name that leads nowhere, or does not exist, is no error.
    ///
    /// # Errors
    /// Only an interrupt ([`io::ErrorKind::Interrupted`]).
    pub fn names<P: AsRef<Path>>(&self, names: &[P]) -> io::Result<Walked> {
        let mut walker = Walker::new(self, WalkLimits::default());
        for name in names {
            if posix::interrupt::requested() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            match walker.way_to(name.as_ref().as_os_str().as_bytes()) {
                Ok(_) | Err((_, Errno::NOENT | Errno::NOTDIR | Errno::LOOP)) => {}
                Err((path, e)) => walker.note(&path, e),
            }
        }
        Ok(walker.finish())
    }

    /// The real path of a directory, without links; `None` if it leads to no directory.
    pub fn real(&self, directory: &Path) -> Option<PathBuf> {
        if self.namespace().is_none() {
            return std::fs::canonicalize(directory).ok();
        }
        self.real_paths().of(directory)
    }

    /// Finds the real paths of many directories: what they share is walked once if they come in order.
    pub(crate) fn real_paths(&self) -> RealPaths<'_> {
        RealPaths { walker: Walker::new(self, WalkLimits::default()) }
    }
}

/// See [`View::real_paths`].
pub(crate) struct RealPaths<'v> {
    walker: Walker<'v>,
}

impl RealPaths<'_> {
    /// The real path of a directory, given by an absolute path; `None` if that leads to no directory.
    pub fn of(&mut self, directory: &Path) -> Option<PathBuf> {
        let is_directory = self.walker.way_to(directory.as_os_str().as_bytes());
        // Names on the way are nobody's here.
        self.walker.entries.clear();
        let trail = self.walker.trail.as_ref().filter(|_| is_directory.is_ok_and(|is| is))?;
        let path = if trail.path().is_empty() { b"/" } else { trail.path() };
        Some(PathBuf::from(OsStr::from_bytes(path)))
    }
}

struct Walker<'v> {
    view: &'v View,
    limits: WalkLimits,
    entries: Vec<SnapshotEntry>,
    /// Paths recorded on the way to roots, which roots share.
    on_the_way: FxHashSet<Vec<u8>>,
    /// Where the last root was, or the way to it ended.
    trail: Option<Trail>,
    /// Directories listed already, so that overlapping roots are read once.
    listed: FxHashSet<Identity>,
    unreadable: Vec<Unreadable>,
    truncated: bool,
}

/// A name with the slash before it: a directory is entered if the names in it have paths that a profile takes.
const NAME_BYTES_MAX: usize = 256;

impl<'v> Walker<'v> {
    fn new(view: &'v View, limits: WalkLimits) -> Walker<'v> {
        Walker {
            view,
            limits,
            entries: Vec::new(),
            on_the_way: FxHashSet::default(),
            trail: None,
            listed: FxHashSet::default(),
            unreadable: Vec::new(),
            truncated: false,
        }
    }

    fn finish(self) -> Walked {
        let snapshot = Snapshot::from_entries(self.entries);
        Walked { snapshot, unreadable: self.unreadable, truncated: self.truncated }
    }

    fn note(&mut self, path: &[u8], error: Errno) {
        let path = if path.is_empty() { b"/" } else { path };
        let error = io::Error::from(error).to_string();
        self.unreadable.push(Unreadable { path: escape(path).into_owned(), error });
    }

    /// Walks one root, or lists it.
    fn root(&mut self, root: &Path, deep: bool) -> io::Result<()> {
        let absolute = match std::path::absolute(root) {
            Ok(path) => path.into_os_string().as_bytes().to_vec(),
            Err(e) => {
                let path = escape(root.as_os_str().as_bytes()).into_owned();
                self.unreadable.push(Unreadable { path, error: e.to_string() });
                return Ok(());
            }
        };
        match self.way_to(&absolute) {
            Ok(true) => self.tree(deep),
            // A file: its entry is all there is to know.
            Ok(false) => Ok(()),
            Err((_, Errno::NOENT | Errno::NOTDIR)) if !deep => Ok(()),
            Err((path, e)) => {
                self.note(&path, e);
                Ok(())
            }
        }
    }

    /// Resolves a path component by component, recording each directory and symbolic link passed: from where the last
    /// one led, as far as that is on the way. Answers whether it leads to a directory, in which the trail is then; on
    /// failure the path it got to.
    fn way_to(&mut self, absolute: &[u8]) -> Result<bool, (Vec<u8>, Errno)> {
        let mut trail = self.trail().map_err(|e| (b"/".to_vec(), e))?;
        let way = self.way_on(&mut trail, absolute);
        self.trail = Some(trail);
        way
    }

    fn way_on(&mut self, trail: &mut Trail, absolute: &[u8]) -> Result<bool, (Vec<u8>, Errno)> {
        trail.back_toward(components(absolute));
        let mut todo: VecDeque<Vec<u8>> = components(absolute).skip(trail.depth()).map(<[u8]>::to_vec).collect();
        let mut links = 0;
        while let Some(name) = todo.pop_front() {
            if name == b".." {
                // The path so far holds no links, so its textual parent is its parent.
                trail.up().map_err(|e| (trail.path().to_vec(), e))?;
                continue;
            }
            let path = [trail.path(), b"/", &name].concat();
            let failed = |e: Errno| (path.clone(), e);
            let os_name = OsStr::from_bytes(&name);
            let stat = rustix::fs::statat(trail.here(), os_name, AtFlags::SYMLINK_NOFOLLOW).map_err(failed)?;
            let entry = entry_of(trail.here(), os_name, path.clone(), &stat).map_err(failed)?;
            let (kind, target) = (entry.kind, entry.target.clone());
            if self.on_the_way.insert(path.clone()) {
                self.entries.push(entry);
            }
            match kind {
                FileKind::Symlink => {
                    links += 1;
                    let target = target.unwrap_or_default();
                    if links > LINKS_MAX {
                        return Err((path, Errno::LOOP));
                    }
                    if target.starts_with(b"/") {
                        trail.restart();
                    }
                    for component in components(&target).collect::<Vec<_>>().into_iter().rev() {
                        todo.push_front(component.to_vec());
                    }
                }
                FileKind::Directory => trail.enter(os_name).map_err(failed)?,
                _ if todo.is_empty() => return Ok(false),
                _ => return Err((path, Errno::NOTDIR)),
            }
        }
        Ok(true)
    }

    /// The trail where it was left; the first begins in the root directory.
    fn trail(&mut self) -> Result<Trail, Errno> {
        if let Some(trail) = self.trail.take() {
            return Ok(trail);
        }
        let root = self.view.root()?;
        if self.on_the_way.insert(b"/".to_vec()) {
            let stat = rustix::fs::fstat(&root)?;
            self.entries.push(entry_from(b"/".to_vec(), &stat, None));
        }
        Trail::new(root, open_directory)
    }

    /// Walks the tree below the directory that the trail is in.
    fn tree(&mut self, deep: bool) -> io::Result<()> {
        let Some(mut trail) = self.trail.take() else { return Ok(()) };
        let walked = self.tree_on(&mut trail, deep);
        self.trail = Some(trail);
        walked
    }

    fn tree_on(&mut self, trail: &mut Trail, deep: bool) -> io::Result<()> {
        let (device, _) = trail.identity();
        let mut stack = vec![self.list(trail, device, deep)];
        while let Some(pending) = stack.last_mut() {
            if posix::interrupt::requested() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            if let Some(name) = pending.pop() {
                if stack.len() >= self.limits.depth_max || trail.path().len() + 2 * NAME_BYTES_MAX > PATH_BYTES_MAX {
                    self.truncated = true;
                    continue;
                }
                match trail.enter(OsStr::from_bytes(name.as_bytes())) {
                    Ok(()) => stack.push(self.list(trail, device, true)),
                    Err(e) => self.note(&[trail.path(), b"/", name.as_bytes()].concat(), e),
                }
                continue;
            }
            stack.pop();
            if stack.is_empty() {
                break;
            }
            if let Err(e) = trail.up() {
                // Somebody moved the directory away under us: what is left above cannot be reached from here.
                let path = trail.path();
                let above = memchr::memrchr(b'/', path).unwrap_or(0);
                self.note(&path[..above], e);
                trail.restart();
                break;
            }
        }
        Ok(())
    }

    /// Reads the directory that the trail is in: an entry for each name. Answers the subdirectories still to be walked.
    fn list(&mut self, trail: &Trail, device: u64, deep: bool) -> Vec<CString> {
        let (fd, path) = (trail.here(), trail.path());
        let mut pending = Vec::new();
        // A directory that an earlier root has been through is not read again, but may have been listed without
        // descending.
        let again = !self.listed.insert(trail.identity());
        let dir = match Dir::read_from(fd) {
            Ok(dir) => dir,
            Err(e) => {
                self.note(path, e);
                return pending;
            }
        };
        for name in dir {
            let name = match name {
                Ok(entry) => entry.file_name().to_owned(),
                Err(e) => {
                    self.note(path, e);
                    break;
                }
            };
            if name.as_bytes() == b"." || name.as_bytes() == b".." {
                continue;
            }
            if self.entries.len() >= self.limits.entries_max {
                self.truncated = true;
                break;
            }
            self.add(fd, path, name, device, deep, again, &mut pending);
        }
        pending
    }

    #[allow(clippy::too_many_arguments)]
    fn add(
        &mut self,
        fd: &OwnedFd,
        path: &[u8],
        name: CString,
        device: u64,
        deep: bool,
        again: bool,
        pending: &mut Vec<CString>,
    ) {
        let os_name = OsStr::from_bytes(name.as_bytes());
        let full = [path, b"/", name.as_bytes()].concat();
        let entry = rustix::fs::statat(fd, os_name, AtFlags::SYMLINK_NOFOLLOW)
            .and_then(|stat| entry_of(fd, os_name, full.clone(), &stat));
        match entry {
            Ok(entry) => {
                let same_device = self.limits.cross_file_systems || entry.dev == device;
                if deep && entry.kind == FileKind::Directory && same_device {
                    pending.push(name);
                }
                if !again {
                    self.entries.push(entry);
                }
            }
            // Removed between the listing and the look: it is not there.
            Err(Errno::NOENT) => {}
            Err(e) => self.note(&full, e),
        }
    }
}

fn components(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.split(|&b| b == b'/').filter(|c| !c.is_empty() && *c != b".")
}

fn entry_of(fd: &OwnedFd, name: &OsStr, path: Vec<u8>, stat: &Stat) -> Result<SnapshotEntry, Errno> {
    let target = if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink {
        Some(rustix::fs::readlinkat(fd, name, Vec::new())?.into_bytes())
    } else {
        None
    };
    Ok(entry_from(path, stat, target))
}

fn entry_from(path: Vec<u8>, stat: &Stat, target: Option<Vec<u8>>) -> SnapshotEntry {
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => FileKind::File,
        FileType::Directory => FileKind::Directory,
        FileType::Symlink => FileKind::Symlink,
        _ => FileKind::Special,
    };
    let mtime_ns = stat.st_mtime.saturating_mul(1_000_000_000).saturating_add_unsigned(stat.st_mtime_nsec);
    SnapshotEntry {
        path,
        kind,
        size_bytes: u64::try_from(stat.st_size).unwrap_or(0),
        mode: (stat.st_mode & 0o7777) as u16,
        uid: stat.st_uid,
        gid: stat.st_gid,
        nlink: u32::try_from(stat.st_nlink).unwrap_or(u32::MAX),
        ino: stat.st_ino,
        dev: stat.st_dev,
        mtime_ns,
        target,
        provenance: Provenance::Before,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::super::open::tests::OPENED;
    use super::*;

    /// Directories in directories, and the path of each.
    pub fn nest(top: &Path, depth: usize) -> Vec<PathBuf> {
        let all: Vec<PathBuf> = (1..=depth).map(|n| top.join("d/".repeat(n).trim_end_matches('/'))).collect();
        std::fs::create_dir_all(all.last().expect("one at least")).expect("made");
        all
    }

    /// Each was walked to from `/`: with 3,000 directories in directories that took minutes.
    #[test]
    fn directories_in_directories_cost_a_step_each() {
        let base = tempfile::tempdir().expect("a directory");
        let directories = nest(base.path(), 500);
        OPENED.set(0);
        let walked = Snapshot::of_directories(&directories, &WalkLimits::default()).expect("not interrupted");
        assert!(walked.unreadable.is_empty() && !walked.truncated);
        for directory in &directories {
            let path = directory.as_os_str().as_bytes();
            assert_eq!(walked.snapshot.entries.iter().filter(|entry| entry.path == path).count(), 1);
        }
        let opened = OPENED.take();
        assert!(opened < 600, "{opened} directories were opened");
        let walked = View::own().names(&directories).expect("not interrupted");
        assert!(walked.snapshot.entries.len() >= 500);
        let opened = OPENED.take();
        assert!(opened < 600, "{opened} directories were opened");
    }
}
