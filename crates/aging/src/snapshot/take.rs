//! Taking a snapshot of a mounted tree, through the hinge trait. Nothing is modified: files are opened for reading to
//! be asked their generation and, for block lists, their extents, and not read; directories are listed without touching
//! their access times where that is allowed.
//!
//! Only one directory is open at a time; the way back up is `..`, checked by inode number, so that neither the depth of
//! the tree nor the length of paths has a limit. Symbolic links are not followed.

use super::blocks::{BlocksMeta, EXTENTS_MAX, ListAt, Lists, Place};
use super::rows::{self, Found, Row, Unreadable};
use super::{Inode, InodeGroups, Snapshot, SnapshotMeta};
use columnar::FileError;
use layout::map::Span;
use layout::{Available, Method, Places, Surroundings};
use posix::{At, Bounds, Call, Errno, Fd, FileKind, FileSystem, OpenFlags, Stat, Unavailable};
use rustc_hash::FxHashMap;
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

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
    /// Whether to keep block lists. Dirty data is then written back first, and every file is opened.
    pub blocks: bool,
    /// Told now and then how many names there are so far; stops the walk by answering `false`.
    pub progress: Option<&'a dyn Fn(u64) -> bool>,
}

/// Takes a snapshot of everything below the root of a handle, mounted or in the laboratory, with allocation groups and
/// identity as far as the system tells them.
///
/// # Errors
/// As [`take`].
pub fn take_handle(fs: &mut dyn FileSystem, options: &TakeOptions<'_>) -> Result<Snapshot, FileError> {
    let groups = layout::groups_of_handle(fs).ok().and_then(|groups| InodeGroups::from_layout(&groups));
    let id = fs.host_path().and_then(|path| rustix::fs::statvfs(path).ok()).map(|v| v.f_fsid).filter(|id| *id != 0);
    let (inode_groups, fs_id) = (options.inode_groups.or(groups), options.fs_id.or(id));
    let options = TakeOptions { inode_groups, fs_id, ..*options };
    if !options.blocks {
        return take(fs, &options);
    }
    let target = PathBuf::from(fs.environment().target);
    layout::in_surroundings(fs, |fs, around| walk(fs, &options, Some(around)))
        .map_err(FileError::io(&target, "open the directory"))?
}

/// Takes a snapshot of everything below the root of a file system handle. What cannot be read is counted, not fatal.
///
/// # Errors
/// [`FileError::Io`]: the root cannot be read; or, interrupted, `progress` asked to stop.
pub fn take(fs: &mut dyn FileSystem, options: &TakeOptions<'_>) -> Result<Snapshot, FileError> {
    walk(fs, options, options.blocks.then(Surroundings::default))
}

/// The same, with block lists where there is what is around them.
fn walk(
    fs: &mut dyn FileSystem,
    options: &TakeOptions<'_>,
    around: Option<Surroundings<'_>>,
) -> Result<Snapshot, FileError> {
    let environment = fs.environment();
    let target = PathBuf::from(&environment.target);
    let io = |doing: &'static str| FileError::io(&target, doing);
    let clock = |wall_ns: i64| options.clock.map_or(wall_ns, |clock| clock(wall_ns));
    let asking = around.map(|around| Asking::new(fs, around));
    let began_ns = clock(fs.date_ns());
    let usage = fs.usage().map_err(io("ask for the size of the file system"))?;
    let root = open(fs, None, Path::new(".")).map_err(|e| io("open the directory")(e.into()))?;
    let stat = fs.call(&Call::Fstat { fd: root }).stat().map_err(|e| io("look at the directory")(e.into()))?;
    let bounds = Bounds::of(fs, root, &stat);
    let mut walk = Walk {
        fs,
        asking,
        options,
        clock: &clock,
        bounds,
        here: root,
        path: Vec::new(),
        rows: Vec::new(),
        paths: Vec::new(),
        seen: FxHashMap::default(),
        no_generations: options.no_generations.then(|| "not asked for".to_owned()),
        unreadable: Unreadable::default(),
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
    let Walk { fs, asking, rows, paths, no_generations, unreadable, other_file_systems, .. } = walk;
    // Some file systems of processes and networks state no block, or none that can be one: space is counted in these
    // then (`st_blocks`).
    let block_bytes = Some(usage.block_bytes).filter(|bytes| bytes.is_power_of_two()).unwrap_or(512);
    let mut remarks: Vec<String> = bounds.note().map(str::to_owned).into_iter().collect();
    let (blocks, lists, places) = match asking {
        Some(mut asking) => {
            asking.notes.append(&mut remarks);
            asking.notes.extend(bounds.note_on_addresses().map(str::to_owned));
            let unit = fs.shape().map_or(block_bytes, |shape| shape.block_bytes);
            let method = if fs.host_path().is_some() { Method::Mounted } else { Method::Laboratory };
            let whole = Span { start_bytes: 0, len_bytes: usage.total_bytes };
            let (meta, lists, places) = asking.finished(method, environment.mount_options, unit, whole);
            (Some(meta), Some(lists), places)
        }
        None => (None, None, Vec::new()),
    };
    let meta = SnapshotMeta {
        taken_ns: options.taken_ns.unwrap_or_else(|| clock(fs.date_ns())),
        began_ns,
        simulated: options.clock.is_some(),
        host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        root: environment.target,
        fs_type: environment.fs_type,
        fs_id: options.fs_id.map(|id| format!("{id:016x}")),
        total_bytes: usage.total_bytes,
        free_bytes: usage.free_bytes,
        block_bytes,
        total_inodes: usage.total_inodes,
        inode_groups: options.inode_groups,
        no_generations,
        other_file_systems,
        remarks,
        blocks,
        ..SnapshotMeta::default()
    };
    rows::assemble(Found { rows, paths, lists, places, unreadable }, meta, &target)
}

/// What block lists need besides the walk.
struct Asking<'a> {
    places_of: Places<'a>,
    groups: Result<layout::geometry::Groups, String>,
    split: Result<(), String>,
    span: Option<Span>,
    notes: Vec<String>,
    lists: Lists,
    /// Of each row.
    places: Vec<Place>,
    /// Whether a file has a list.
    known: bool,
    /// Why no file has a list.
    unavailable: Option<String>,
}

impl<'a> Asking<'a> {
    fn new(fs: &mut dyn FileSystem, around: Surroundings<'a>) -> Asking<'a> {
        let Surroundings { groups, split, translate, span, mut notes, .. } = around;
        // As a survey does: data without a place yet would not be in the lists.
        if let Err(errno) = fs.call(&Call::SyncFs).result {
            notes
                .push(format!("dirty data could not be written back first ({errno}); delayed extents have no address"));
        }
        Asking {
            places_of: Places::new(translate),
            groups,
            split,
            span,
            notes,
            lists: Lists::default(),
            places: Vec::new(),
            known: false,
            unavailable: None,
        }
    }

    /// Asks for the extents of an open file or directory; or why there are none.
    fn ask(&mut self, fs: &mut dyn FileSystem, fd: Fd, kind: FileKind) -> Result<ListAt, String> {
        let is_file = kind == FileKind::File;
        if let Some(why) = self.unavailable.as_ref().filter(|_| is_file) {
            return Err(why.clone());
        }
        // A list that contradicts itself is of a file that was changed while it was asked.
        for _ in 0..2 {
            let extents = match self.places_of.of(fs, fd) {
                Ok(extents) => extents,
                Err(why) => {
                    let text = why.to_string();
                    if is_file && !self.known && matches!(why, Unavailable::Unsupported { .. }) {
                        self.unavailable = Some(text.clone());
                    }
                    return Err(text);
                }
            };
            if extents.len() > EXTENTS_MAX {
                return Err(format!("it has more than {EXTENTS_MAX} extents"));
            }
            if let Ok(at) = self.lists.add(extents.into_iter()) {
                self.known |= is_file;
                return Ok(at);
            }
        }
        // Without the figures: each file would have a reason of its own.
        Err("its extents contradict each other: it was changed while it was asked".to_owned())
    }

    fn finished(
        self,
        method: Method,
        options: String,
        block_bytes: u32,
        whole: Span,
    ) -> (BlocksMeta, Lists, Vec<Place>) {
        let mut notes = self.notes;
        notes.extend(self.places_of.note());
        let meta = BlocksMeta {
            method,
            options,
            addresses: self.places_of.addresses(),
            block_bytes,
            span: self.span.unwrap_or(whole),
            groups: match self.groups {
                Ok(groups) => Available::Known(groups),
                Err(why) => Available::Unavailable(why),
            },
            no_split: self.split.err(),
            unavailable: self.unavailable,
            notes,
        };
        (meta, self.lists, self.places)
    }
}

fn open(fs: &mut dyn FileSystem, dir: Option<Fd>, path: &Path) -> Result<Fd, Errno> {
    let flags = OpenFlags { nofollow: true, ..OpenFlags::DIRECTORY };
    fs.call(&Call::Open { at: At { dir, path }, flags, mode: posix::Mode(0) }).fd()
}

enum Stopped {
    Interrupted,
    Root(Errno),
}

/// A directory on the way down to where the walk is: its inode, the length of its path, and subdirectories yet to be
/// visited.
struct Level {
    ino: u64,
    path_len: usize,
    pending: Vec<(OsString, u32)>,
}

struct Walk<'a, 'b> {
    fs: &'a mut dyn FileSystem,
    /// Where there are to be block lists.
    asking: Option<Asking<'b>>,
    options: &'a TakeOptions<'a>,
    clock: &'a dyn Fn(i64) -> i64,
    bounds: Bounds,
    /// The directory the walk is in.
    here: Fd,
    path: Vec<u8>,
    rows: Vec<Row>,
    paths: Vec<u8>,
    /// Directories, and files with several names, as they were at the first one.
    seen: FxHashMap<u64, (Inode, ListAt)>,
    no_generations: Option<String>,
    unreadable: Unreadable,
    other_file_systems: u64,
}

impl Walk<'_, '_> {
    fn run(&mut self, root: &Stat) -> Result<(), Stopped> {
        let inode = self.inode(root, Some(self.here));
        let at = self.blocks(FileKind::Directory, Ok(self.here));
        self.row(inode, 0, at);
        let mut stack = vec![self.list(root.ino)?.map_err(Stopped::Root)?];
        while let Some(level) = stack.last_mut() {
            self.path.truncate(level.path_len);
            if let Some((name, position)) = level.pending.pop() {
                self.path.push(b'/');
                self.path.extend_from_slice(name.as_bytes());
                if let Some(below) = self.enter(&name, position)? {
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

    fn enter(&mut self, name: &OsString, position: u32) -> Result<Option<Level>, Stopped> {
        let bounds = self.bounds;
        let opened = open(self.fs, Some(self.here), Path::new(name));
        let stat = opened.and_then(|fd| Ok((fd, self.fs.call(&Call::Fstat { fd }).stat()?)));
        let (fd, stat) = match stat {
            Ok(found) => found,
            Err(errno) => {
                let at = At { dir: Some(self.here), path: Path::new(name) };
                let stat = self.fs.call(&Call::Stat { at, follow: false }).stat();
                if stat.is_ok_and(|stat| !bounds.holds_closed_directory(self.fs, self.here, name, &stat)) {
                    self.other_file_systems += 1;
                    return Ok(None);
                }
                self.give_up_on(errno);
                // It is there, though what is in it stays unknown. One that was met before was moved under the walk.
                if let Ok(stat) = stat {
                    let inode = self.inode(&stat, None);
                    let blocks = self.blocks(stat.kind, Err(errno));
                    if self.seen.insert(stat.ino, (inode, blocks)).is_none() {
                        self.row(inode, position, blocks);
                    }
                }
                return Ok(None);
            }
        };
        if !bounds.holds_directory(self.fs, fd, &stat) {
            self.other_file_systems += 1;
            self.fs.call(&Call::Close { fd });
            return Ok(None);
        }
        let inode = self.inode(&stat, Some(fd));
        let blocks = self.blocks(FileKind::Directory, Ok(fd));
        if self.seen.insert(stat.ino, (inode, blocks)).is_some() {
            // Moved under the walk, and met for the second time.
            self.fs.call(&Call::Close { fd });
            return Ok(None);
        }
        self.row(inode, position, blocks);
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
        if stat.ino == expected && self.bounds.is_own_device(&stat) { Ok(()) } else { Err(Errno::ESTALE) }
    }

    /// Reads the directory the walk is in: a row for each name but those of directories, which are to be visited.
    fn list(&mut self, ino: u64) -> Result<Result<Level, Errno>, Stopped> {
        let entries = match self.fs.entries(self.here) {
            Ok(entries) => entries,
            Err(errno) => return Ok(Err(errno)),
        };
        let mut level = Level { ino, path_len: self.path.len(), pending: Vec::new() };
        for (position, (name, kind)) in (0u32..).zip(entries) {
            let so_far = self.rows.len() as u64;
            let stop = || self.options.progress.is_some_and(|progress| !progress(so_far));
            if so_far.is_multiple_of(256) && (posix::interrupt::requested() || stop()) {
                return Err(Stopped::Interrupted);
            }
            if kind == FileKind::Directory {
                level.pending.push((name, position));
                continue;
            }
            self.path.truncate(level.path_len);
            self.path.push(b'/');
            self.path.extend_from_slice(name.as_bytes());
            let at = At { dir: Some(self.here), path: Path::new(&name) };
            match self.fs.call(&Call::Stat { at, follow: false }).stat() {
                // Replaced by a directory between the listing and the look.
                Ok(stat) if stat.kind == FileKind::Directory => level.pending.push((name, position)),
                Ok(stat) if !self.bounds.holds_name(self.fs, self.here, &name, &stat) => self.other_file_systems += 1,
                Ok(stat) => self.file(&name, position, &Stat { ino: self.bounds.ino(&stat), ..stat }),
                Err(errno) => self.give_up_on(errno),
            }
        }
        self.path.truncate(level.path_len);
        Ok(Ok(level))
    }

    fn file(&mut self, name: &OsString, position: u32, stat: &Stat) {
        // A directory of that number has gone since.
        let seen = self.seen.get(&stat.ino).copied().filter(|(first, _)| first.kind == stat.kind);
        if let Some((first, blocks)) = seen {
            return self.row(first, position, blocks);
        }
        let mut open_file = None;
        let mut refused = Errno::ENOENT;
        let to_ask = self.asking.as_ref().is_some_and(|asking| asking.unavailable.is_none());
        if stat.kind == FileKind::File && (to_ask || self.no_generations.is_none()) {
            let flags = OpenFlags { nofollow: true, ..OpenFlags::READ };
            let at = At { dir: Some(self.here), path: Path::new(name) };
            match self.fs.call(&Call::Open { at, flags, mode: posix::Mode(0) }).fd() {
                Ok(fd) => open_file = Some(fd),
                // Gone since; its attributes were seen all the same.
                Err(Errno::ENOENT) => {}
                Err(errno) => {
                    refused = errno;
                    self.give_up_on(errno);
                }
            }
        }
        let inode = self.inode(stat, open_file);
        let opened = match open_file {
            Some(fd) if self.asking.is_some() && !self.is_still(fd, stat.ino) => None,
            opened => opened,
        };
        let blocks = self.blocks(stat.kind, opened.ok_or(refused));
        if let Some(fd) = open_file {
            self.fs.call(&Call::Close { fd });
        }
        if stat.nlink > 1 {
            self.seen.insert(stat.ino, (inode, blocks));
        }
        self.row(inode, position, blocks);
    }

    /// Whether a name that was opened is still that of the inode that was looked at.
    fn is_still(&mut self, fd: Fd, ino: u64) -> bool {
        self.fs.call(&Call::Fstat { fd }).stat().is_ok_and(|stat| self.bounds.ino(&stat) == ino)
    }

    /// Where the data of what is open lies, or why it was not opened.
    fn blocks(&mut self, kind: FileKind, opened: Result<Fd, Errno>) -> ListAt {
        let Some(asking) = &mut self.asking else { return ListAt::NotKept };
        match (kind, opened) {
            (FileKind::File | FileKind::Directory, Ok(fd)) => match asking.ask(self.fs, fd, kind) {
                Ok(at) => at,
                // Of directories most file systems do not tell, and nothing is lost.
                Err(why) => {
                    let at = asking.lists.unknown(&why);
                    if kind == FileKind::File && asking.unavailable.is_none() {
                        self.give_up(&why);
                    }
                    at
                }
            },
            (FileKind::File | FileKind::Directory, Err(errno)) => {
                let none = asking.unavailable.clone().filter(|_| kind == FileKind::File);
                asking.lists.unknown(&none.unwrap_or_else(|| errno.to_string()))
            }
            _ => ListAt::NotKept,
        }
    }

    fn row(&mut self, inode: Inode, position: u32, at: ListAt) {
        let path_at = self.paths.len();
        self.paths.extend_from_slice(&self.path);
        // A name is of 255 bytes at most, and a file system has no room for trees so deep.
        let path_len = u32::try_from(self.path.len()).unwrap_or(u32::MAX);
        let place = u32::try_from(self.rows.len()).unwrap_or(u32::MAX);
        self.rows.push(Row { path_at, path_len, place, inode });
        if let Some(asking) = &mut self.asking {
            asking.places.push(Place { position, at });
        }
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
        if errno != Errno::ENOENT {
            self.give_up(&errno.to_string());
        }
    }

    fn give_up(&mut self, why: &str) {
        self.unreadable.add(&self.path, why);
    }
}
