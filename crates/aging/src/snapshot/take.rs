//! Taking a snapshot of a mounted tree, through the hinge trait. Nothing is modified: files are opened for reading to be asked
//! their generation, and not read; directories are listed without touching their access times where that is allowed.
//!
//! Only one directory is open at a time; the way back up is `..`, checked by inode number, so that neither the depth of the
//! tree nor the length of paths has a limit. Symbolic links are not followed.

use super::{Builder, Inode, InodeGroups, Snapshot, SnapshotMeta};
use columnar::FileError;
use posix::{At, Call, Errno, Fd, FileKind, FileSystem, OpenFlags, Stat, Unavailable};
use rustc_hash::FxHashMap;
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use trace::profile::escape;
use trace::snapshot::path_order;

/// How a snapshot is taken.
#[derive(Clone, Copy, Default)]
pub struct TakeOptions<'a> {
    /// Turns the wall-clock times of inodes into simulated ones (both nanoseconds); `None`: they stay.
    pub clock: Option<&'a dyn Fn(i64) -> i64>,
    /// The time it is, simulated if `clock` is given; `None`: the wall clock's, put through `clock`.
    pub taken_ns: Option<i64>,
    /// Which inodes belong to which allocation group ([`take_handle`] finds out by itself).
    pub inode_groups: Option<InodeGroups>,
    /// What tells the file system from others of its type ([`take_handle`] finds out by itself).
    pub fs_id: Option<u64>,
    /// Whether to leave out inode generations, and with them the opening of every file.
    pub no_generations: bool,
    /// Told now and then how many names there are so far; stops the walk by answering `false`.
    pub progress: Option<&'a dyn Fn(u64) -> bool>,
}

/// Unreadable names that are kept with their reasons.
const UNREADABLE_MAX: usize = 20;

/// Takes a snapshot of everything below the root of a handle, mounted or in the laboratory, with allocation groups and identity
/// as far as the system tells them.
///
/// # Errors
/// As [`take`].
pub fn take_handle(fs: &mut dyn FileSystem, options: &TakeOptions<'_>) -> Result<Snapshot, FileError> {
    let groups = layout::groups_of_handle(fs).ok().and_then(|groups| InodeGroups::from_layout(&groups));
    let id = fs.host_path().and_then(|path| rustix::fs::statvfs(path).ok()).map(|v| v.f_fsid).filter(|id| *id != 0);
    let (inode_groups, fs_id) = (options.inode_groups.or(groups), options.fs_id.or(id));
    take(fs, &TakeOptions { inode_groups, fs_id, ..*options })
}

/// Takes a snapshot of everything below the root of a file system handle. What cannot be read is counted, not fatal.
///
/// # Errors
/// [`FileError::Io`]: the root cannot be read; or, interrupted, `progress` asked to stop.
pub fn take(fs: &mut dyn FileSystem, options: &TakeOptions<'_>) -> Result<Snapshot, FileError> {
    let environment = fs.environment();
    let target = PathBuf::from(&environment.target);
    let io = |doing: &'static str| FileError::io(&target, doing);
    let clock = |wall_ns: i64| options.clock.map_or(wall_ns, |clock| clock(wall_ns));
    let began_ns = clock(fs.date_ns());
    let usage = fs.usage().map_err(io("ask for the size of the file system"))?;
    let root = open(fs, None, Path::new(".")).map_err(|e| io("open the directory")(e.into()))?;
    let stat = fs.call(&Call::Fstat { fd: root }).stat().map_err(|e| io("look at the directory")(e.into()))?;
    let mut walk = Walk {
        fs,
        options,
        clock: &clock,
        device: stat.dev,
        here: root,
        path: Vec::new(),
        rows: Vec::new(),
        paths: Vec::new(),
        seen: FxHashMap::default(),
        no_generations: options.no_generations.then(|| "not asked for".to_owned()),
        unreadable: 0,
        first_unreadable: Vec::new(),
        other_file_systems: 0,
    };
    let result = walk.run(&stat);
    let here = walk.here;
    walk.fs.call(&Call::Close { fd: here });
    match result {
        Err(Stopped::Interrupted) => return Err(io("go on")(io::ErrorKind::Interrupted.into())),
        Err(Stopped::Root(errno)) => return Err(io("list the directory")(errno.into())),
        Ok(()) => {}
    }
    let meta = SnapshotMeta {
        taken_ns: options.taken_ns.unwrap_or_else(|| clock(walk.fs.date_ns())),
        began_ns,
        simulated: options.clock.is_some(),
        host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        root: environment.target,
        fs_type: environment.fs_type,
        fs_id: options.fs_id.map(|id| format!("{id:016x}")),
        total_bytes: usage.total_bytes,
        free_bytes: usage.free_bytes,
        block_bytes: usage.block_bytes,
        total_inodes: usage.total_inodes,
        inode_groups: options.inode_groups,
        no_generations: walk.no_generations,
        unreadable: walk.unreadable,
        first_unreadable: walk.first_unreadable,
        other_file_systems: walk.other_file_systems,
        ..SnapshotMeta::default()
    };
    assemble(walk.rows, &walk.paths, meta, &target)
}

/// A name as the walk found it.
struct Row {
    path: std::ops::Range<usize>,
    inode: Inode,
}

/// Sorts the names and puts the snapshot together. A file renamed under the walk can have been met twice with one link only: its
/// first name stays.
fn assemble(mut rows: Vec<Row>, paths: &[u8], meta: SnapshotMeta, target: &Path) -> Result<Snapshot, FileError> {
    let path = |row: &Row| paths.get(row.path.clone()).unwrap_or_default();
    rows.sort_unstable_by(|a, b| path_order(path(a), path(b)));
    rows.dedup_by(|later, first| path(later) == path(first));
    let mut seen = rustc_hash::FxHashSet::with_capacity_and_hasher(rows.len(), rustc_hash::FxBuildHasher);
    rows.retain(|row| seen.insert(row.inode.ino) || row.inode.nlink > 1);
    let mut builder = Builder::default();
    let invalid = |message: String| FileError::invalid(target, message);
    for row in &rows {
        let name = if row.path.is_empty() { b"/" } else { path(row) };
        builder.push(name, row.inode).map_err(|why| invalid(format!("{} {why}", escape(name))))?;
    }
    builder.finish(meta).map_err(|(row, why)| invalid(format!("name {row}: {why}")))
}

fn open(fs: &mut dyn FileSystem, dir: Option<Fd>, path: &Path) -> Result<Fd, Errno> {
    let flags = OpenFlags { nofollow: true, ..OpenFlags::DIRECTORY };
    fs.call(&Call::Open { at: At { dir, path }, flags, mode: posix::Mode(0) }).fd()
}

enum Stopped {
    Interrupted,
    Root(Errno),
}

/// A directory on the way down to where the walk is: its inode, the length of its path, and subdirectories yet to be visited.
struct Level {
    ino: u64,
    path_len: usize,
    pending: Vec<OsString>,
}

struct Walk<'a> {
    fs: &'a mut dyn FileSystem,
    options: &'a TakeOptions<'a>,
    clock: &'a dyn Fn(i64) -> i64,
    device: u64,
    /// The directory the walk is in.
    here: Fd,
    path: Vec<u8>,
    rows: Vec<Row>,
    paths: Vec<u8>,
    /// Directories, and files with several names, as they were at the first one.
    seen: FxHashMap<u64, Inode>,
    no_generations: Option<String>,
    unreadable: u64,
    first_unreadable: Vec<String>,
    other_file_systems: u64,
}

impl Walk<'_> {
    fn run(&mut self, root: &Stat) -> Result<(), Stopped> {
        let inode = self.inode(root, Some(self.here));
        self.row(inode);
        let mut stack = vec![self.list(root.ino)?.map_err(Stopped::Root)?];
        while let Some(level) = stack.last_mut() {
            self.path.truncate(level.path_len);
            if let Some(name) = level.pending.pop() {
                self.path.push(b'/');
                self.path.extend_from_slice(name.as_bytes());
                if let Some(below) = self.enter(&name)? {
                    stack.push(below);
                }
                continue;
            }
            stack.pop();
            let Some(above) = stack.last() else { break };
            if let Err(errno) = self.back_up(above.ino) {
                // Somebody moved the directory away under us: what is left above cannot be reached from here.
                self.path.truncate(above.path_len);
                self.give_up_on(errno);
                break;
            }
        }
        Ok(())
    }

    fn enter(&mut self, name: &OsString) -> Result<Option<Level>, Stopped> {
        let opened = open(self.fs, Some(self.here), Path::new(name));
        let stat = opened.and_then(|fd| Ok((fd, self.fs.call(&Call::Fstat { fd }).stat()?)));
        let (fd, stat) = match stat {
            Ok(found) => found,
            Err(errno) => {
                self.give_up_on(errno);
                // It is there, though what is in it stays unknown.
                let at = At { dir: Some(self.here), path: Path::new(name) };
                if let Ok(stat) = self.fs.call(&Call::Stat { at, follow: false }).stat() {
                    let inode = self.inode(&stat, None);
                    self.row(inode);
                }
                return Ok(None);
            }
        };
        if stat.dev != self.device {
            self.other_file_systems += 1;
            self.fs.call(&Call::Close { fd });
            return Ok(None);
        }
        let inode = self.inode(&stat, Some(fd));
        if self.seen.insert(stat.ino, inode).is_some() {
            // Moved under the walk, and met for the second time.
            self.fs.call(&Call::Close { fd });
            return Ok(None);
        }
        self.row(inode);
        let above = std::mem::replace(&mut self.here, fd);
        match self.list(stat.ino)? {
            Ok(level) => {
                self.fs.call(&Call::Close { fd: above });
                Ok(Some(level))
            }
            Err(errno) => {
                self.give_up_on(errno);
                self.here = above;
                self.fs.call(&Call::Close { fd });
                Ok(None)
            }
        }
    }

    fn back_up(&mut self, expected: u64) -> Result<(), Errno> {
        let fd = open(self.fs, Some(self.here), Path::new(".."))?;
        let below = std::mem::replace(&mut self.here, fd);
        self.fs.call(&Call::Close { fd: below });
        let stat = self.fs.call(&Call::Fstat { fd }).stat()?;
        if (stat.ino, stat.dev) == (expected, self.device) { Ok(()) } else { Err(Errno::ESTALE) }
    }

    /// Reads the directory the walk is in: a row for each name but those of directories, which are to be visited.
    fn list(&mut self, ino: u64) -> Result<Result<Level, Errno>, Stopped> {
        let entries = match self.fs.entries(self.here) {
            Ok(entries) => entries,
            Err(errno) => return Ok(Err(errno)),
        };
        let mut level = Level { ino, path_len: self.path.len(), pending: Vec::new() };
        for (name, kind) in entries {
            let so_far = self.rows.len() as u64;
            let stop = || self.options.progress.is_some_and(|progress| !progress(so_far));
            if so_far.is_multiple_of(256) && (posix::interrupt::requested() || stop()) {
                return Err(Stopped::Interrupted);
            }
            if kind == FileKind::Directory {
                level.pending.push(name);
                continue;
            }
            self.path.truncate(level.path_len);
            self.path.push(b'/');
            self.path.extend_from_slice(name.as_bytes());
            let at = At { dir: Some(self.here), path: Path::new(&name) };
            match self.fs.call(&Call::Stat { at, follow: false }).stat() {
                // Replaced by a directory between the listing and the look.
                Ok(stat) if stat.kind == FileKind::Directory => level.pending.push(name),
                Ok(stat) => self.file(&name, &stat),
                Err(errno) => self.give_up_on(errno),
            }
        }
        self.path.truncate(level.path_len);
        Ok(Ok(level))
    }

    fn file(&mut self, name: &OsString, stat: &Stat) {
        if let Some(first) = self.seen.get(&stat.ino).copied() {
            return self.row(first);
        }
        let mut open_file = None;
        if stat.kind == FileKind::File && self.no_generations.is_none() {
            let flags = OpenFlags { nofollow: true, ..OpenFlags::READ };
            let at = At { dir: Some(self.here), path: Path::new(name) };
            match self.fs.call(&Call::Open { at, flags, mode: posix::Mode(0) }).fd() {
                Ok(fd) => open_file = Some(fd),
                // Gone since; its attributes were seen all the same.
                Err(Errno::ENOENT) => {}
                Err(errno) => self.give_up_on(errno),
            }
        }
        let inode = self.inode(stat, open_file);
        if let Some(fd) = open_file {
            self.fs.call(&Call::Close { fd });
        }
        if stat.nlink > 1 {
            self.seen.insert(stat.ino, inode);
        }
        self.row(inode);
    }

    fn row(&mut self, inode: Inode) {
        let start = self.paths.len();
        self.paths.extend_from_slice(&self.path);
        self.rows.push(Row { path: start..self.paths.len(), inode });
    }

    fn inode(&mut self, stat: &Stat, open_file: Option<Fd>) -> Inode {
        let mut generation = None;
        if let (Some(fd), None) = (open_file, &self.no_generations) {
            match self.fs.generation(fd) {
                Ok(found) => generation = Some(found),
                Err(why @ Unavailable::Unsupported { .. }) => self.no_generations = Some(why.to_string()),
                Err(Unavailable::Failed { errno, .. }) => self.give_up_on(errno),
            }
        }
        Inode {
            kind: stat.kind,
            size_bytes: stat.size_bytes,
            allocated_bytes: stat.allocated_bytes,
            ino: stat.ino,
            generation,
            ctime_ns: (self.clock)(stat.ctime_ns),
            mtime_ns: (self.clock)(stat.mtime_ns),
            nlink: stat.nlink,
        }
    }

    fn give_up_on(&mut self, errno: Errno) {
        // What is gone by now was deleted while we walked: nobody's loss.
        if errno == Errno::ENOENT {
            return;
        }
        self.unreadable += 1;
        if self.first_unreadable.len() < UNREADABLE_MAX {
            let path = if self.path.is_empty() { "/".into() } else { escape(&self.path) };
            self.first_unreadable.push(format!("{path}: {errno}"));
        }
    }
}
