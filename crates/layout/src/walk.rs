//! The survey of a directory tree through the hinge trait: works on any mounted file system, and on a laboratory's.
//!
//! The walk is relative to directory descriptors throughout, so that neither the depth of the tree nor the length
//! of paths has a limit, and a symbolic link is never followed. At most [`OPEN_DIRECTORIES_MAX`] directories are open
//! at a time: those further up are closed and opened again through `..` on the way back, and checked to be the same.

use crate::collect::{Collector, DirectoryPlace, FileFacts, LinksLeft};
use crate::geometry::Groups;
use crate::map::{MapBuilder, Span};
use crate::places::{Places, Translate};
use crate::scores::free::{FreeSpace, joined};
use crate::survey::{Available, GroupCount, Method, Source, Survey, Walked};
use crate::{LayoutError, Progress, SurveyOptions};
use posix::{At, Bounds, Call, Errno, Fd, FileKind, FileSystem, FreeExtent, OpenFlags, Stat, Unavailable};
use rustc_hash::FxHashSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use units::show;

const OPEN_DIRECTORIES_MAX: usize = 64;

/// Free space found another way than the hinge trait's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FreeList {
    /// Its extents, in the address space that file extents are in (after translation).
    pub extents: Vec<FreeExtent>,
    /// Device space that no group has been given, where the file system has such a thing.
    pub unallocated_bytes: Option<u64>,
    /// Where that space is, if the addresses are a device's.
    pub unallocated: Vec<FreeExtent>,
}

/// What is known around a mounted file system that the hinge trait does not tell.
pub struct Surroundings<'a> {
    /// Its allocation groups, or why they are not known.
    pub groups: Result<Groups, String>,
    /// Whether `groups` can be compared with file addresses and inodes (not so for btrfs, whose inodes have no group).
    pub split: Result<(), String>,
    /// How addresses are translated, where they need to be.
    pub translate: Option<&'a dyn Translate>,
    /// Free space, where it is found another way than the trait's.
    pub free: Option<Result<FreeList, String>>,
    /// The addresses in use, for the map; `None`: from 0 to the size the file system states, and further where extents
    /// lie further.
    pub span: Option<Span>,
    /// Remarks for the reader.
    pub notes: Vec<String>,
}

impl Default for Surroundings<'_> {
    fn default() -> Self {
        let unknown = || "allocation groups are not known for this file system".to_owned();
        Surroundings {
            groups: Err(unknown()),
            split: Err(unknown()),
            translate: None,
            free: None,
            span: None,
            notes: Vec::new(),
        }
    }
}

/// A directory being walked.
struct Frame {
    name: OsString,
    fd: Option<Fd>,
    ino: u64,
    rest: std::vec::IntoIter<(OsString, FileKind)>,
    place: DirectoryPlace,
}

struct Walk<'a> {
    fs: &'a mut dyn FileSystem,
    bounds: Bounds,
    /// The image, and its directories so far. Of a mounted file system the kernel sees to it that each has one name.
    image: Option<(String, FxHashSet<u64>)>,
    collector: Collector,
    walked: Walked,
    /// Names still to come of files with several.
    links_left: LinksLeft,
    stack: Vec<Frame>,
    places: Places<'a>,
    /// Why the file system gives no extents at all.
    no_extents: Option<String>,
}

/// Surveys everything below the root of a file system handle. `progress` is told now and then, and stops the survey by
/// answering `false`.
pub fn survey_file_system(
    fs: &mut dyn FileSystem,
    surroundings: Surroundings<'_>,
    options: &SurveyOptions,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<Survey, LayoutError> {
    let environment = fs.environment();
    let target = environment.target.clone();
    let io = |doing: &'static str| {
        let target = target.clone();
        move |source: std::io::Error| LayoutError::Io { target, doing, source }
    };
    let mut notes = surroundings.notes;
    // Data without a place yet would not be in the scores: write it back first.
    if let Err(errno) = fs.call(&Call::SyncFs).result {
        notes.push(format!("dirty data could not be written back first ({errno}); delayed extents are counted apart"));
    }
    let usage = fs.usage().map_err(io("ask for the size of the file system"))?;
    let taken_unix_s = options.taken_unix_s.unwrap_or_else(|| fs.date_ns().div_euclid(1_000_000_000));
    let block_bytes = fs.shape().map_or(usage.block_bytes, |shape| shape.block_bytes);
    let method = if fs.host_path().is_some() { Method::Mounted } else { Method::Laboratory };
    let root = open_directory(fs, None, Path::new(".")).map_err(|e| io("open the directory")(e.into()))?;
    let root_stat = fs.call(&Call::Fstat { fd: root }).stat().map_err(|e| io("look at the directory")(e.into()))?;
    let split_groups = surroundings.split.and(surroundings.groups.clone());
    let span = surroundings.span.unwrap_or(Span { start_bytes: 0, len_bytes: usage.total_bytes });
    let map = options.map.map(|order| MapBuilder::new(order, span));
    let bounds = Bounds::of(fs, root, &root_stat);
    let mut walk = Walk {
        fs,
        bounds,
        image: (method == Method::Laboratory).then(|| (target.clone(), FxHashSet::from_iter([root_stat.ino]))),
        collector: Collector::new(u64::from(block_bytes), split_groups, taken_unix_s, options, map),
        walked: Walked::default(),
        links_left: LinksLeft::default(),
        stack: Vec::new(),
        places: Places::new(surroundings.translate),
        no_extents: None,
    };
    walk.enter(OsString::new(), root, root_stat.ino).map_err(|e| io("list the directory")(e.into()))?;
    walk.run(progress)?;
    let Walk { walked, mut collector, places, no_extents, .. } = walk;
    if walked.other_file_systems > 0 {
        let names = show::counted(walked.other_file_systems, "name leads", "names lead");
        notes.push(format!("{names} to other file systems or mounts, and are left out"));
    }
    notes.extend([bounds.note(), bounds.note_on_addresses()].into_iter().flatten().map(str::to_owned));
    notes.extend(places.note());
    let addresses = places.addresses();
    let groups = surroundings.groups.ok();
    let free = match surroundings.free {
        Some(free) => free,
        None => {
            fs.free_extents().map(|extents| FreeList { extents, ..FreeList::default() }).map_err(|why| why.to_string())
        }
    };
    let free = free.map(|free| FreeList { extents: joined(free.extents), ..free });
    let map = collector.take_map().map(|map| match (&no_extents, &free) {
        (Some(why), _) => Available::Unavailable(why.clone()),
        (None, Ok(free)) => Available::Known(map.finished(Ok(&free.extents), &free.unallocated)),
        (None, Err(why)) => Available::Known(map.finished(Err(why), &[])),
    });
    let free = match free {
        Ok(free) => Available::Known(FreeSpace {
            unallocated_bytes: free.unallocated_bytes,
            ..FreeSpace::of(&free.extents, groups.as_ref())
        }),
        Err(why) => Available::Unavailable(why),
    };
    Ok(Survey {
        source: Source {
            target,
            method,
            fs_type: environment.fs_type,
            options: environment.mount_options,
            block_bytes: u64::from(block_bytes),
            total_bytes: usage.total_bytes,
            free_bytes: usage.free_bytes,
            taken_unix_s,
            addresses,
            groups: groups.map(|g| GroupCount { kind: g.kind, count: g.count(), per_flex: g.per_flex }),
            notes,
        },
        walked,
        files: match no_extents {
            Some(why) => Available::Unavailable(why),
            None => Available::Known(collector.finished()),
        },
        free,
        map,
    })
}

fn open_directory(fs: &mut dyn FileSystem, dir: Option<Fd>, path: &Path) -> Result<Fd, Errno> {
    let flags = OpenFlags { nofollow: true, ..OpenFlags::DIRECTORY };
    fs.call(&Call::Open { at: At { dir, path }, flags, mode: posix::Mode(0) }).fd()
}

impl Walk<'_> {
    fn run(&mut self, progress: &mut dyn FnMut(Progress) -> bool) -> Result<(), LayoutError> {
        let mut steps = 0u64;
        while let Some(frame) = self.stack.last_mut() {
            steps += 1;
            let so_far = Progress { files: self.walked.files, directories: self.walked.directories };
            if !so_far.told(steps, progress) {
                return Err(LayoutError::interrupted());
            }
            match frame.rest.next() {
                Some((name, FileKind::Directory)) => self.directory(name)?,
                Some((name, _)) if self.is_mounted(&name) => self.walked.other_file_systems += 1,
                Some((name, FileKind::File)) => self.file(&name),
                Some(_) => self.walked.others += 1,
                None => self.leave()?,
            }
        }
        Ok(())
    }

    /// The descriptor of the directory on top.
    fn top(&self) -> Option<Fd> {
        self.stack.last().and_then(|f| f.fd)
    }

    /// Whether something is known to be mounted at a name of the directory on top.
    fn is_mounted(&mut self, name: &OsString) -> bool {
        let (bounds, top) = (self.bounds, self.top());
        top.is_some_and(|dir| bounds.mounted_at(self.fs, dir, name) == Some(true))
    }

    fn shown(&self, name: &OsString) -> String {
        let mut path = Vec::new();
        for frame in self.stack.iter().skip(1) {
            path.extend_from_slice(frame.name.as_bytes());
            path.push(b'/');
        }
        path.extend_from_slice(name.as_bytes());
        shown_path(&path)
    }

    fn give_up_on(&mut self, name: &OsString, errno: Errno) {
        // What is gone by now was deleted while we walked: nobody's loss.
        if errno != Errno::ENOENT {
            let path = self.shown(name);
            self.walked.unreadable(|| path, &errno.to_string());
        }
    }

    fn enter(&mut self, name: OsString, fd: Fd, ino: u64) -> Result<(), Errno> {
        let entries = match self.fs.entries(fd) {
            Ok(entries) => entries,
            Err(errno) => {
                self.fs.call(&Call::Close { fd });
                return Err(errno);
            }
        };
        self.walked.directories += 1;
        self.stack.push(Frame { name, fd: Some(fd), ino, rest: entries.into_iter(), place: DirectoryPlace::default() });
        if let Some(far) = self.stack.len().checked_sub(OPEN_DIRECTORIES_MAX + 1) {
            // The one at the bottom stays open: it is the way back in if all else fails.
            let closed = self.stack.get_mut(far).filter(|_| far > 0).and_then(|f| f.fd.take());
            if let Some(fd) = closed {
                self.fs.call(&Call::Close { fd });
            }
        }
        Ok(())
    }

    fn directory(&mut self, name: OsString) -> Result<(), LayoutError> {
        let above = self.top();
        let opened = open_directory(self.fs, above, Path::new(&name));
        let stat = opened.and_then(|fd| Ok((fd, self.fs.call(&Call::Fstat { fd }).stat()?)));
        let bounds = self.bounds;
        match stat {
            Ok((fd, stat)) if !bounds.holds_directory(self.fs, fd, &stat) => {
                self.fs.call(&Call::Close { fd });
                self.walked.other_file_systems += 1;
            }
            Ok((fd, stat)) => {
                if let Some((image, seen)) = &mut self.image
                    && !seen.insert(stat.ino)
                {
                    let target = image.clone();
                    self.fs.call(&Call::Close { fd });
                    return Err(LayoutError::TwoNames { target, ino: stat.ino, path: self.shown(&name) });
                }
                if let Err(errno) = self.enter(name.clone(), fd, stat.ino) {
                    // It is there, though what is in it stays unknown.
                    self.walked.directories += 1;
                    self.give_up_on(&name, errno);
                }
            }
            Err(errno) => self.closed_directory(above, &name, errno),
        }
        Ok(())
    }

    /// A directory that cannot be opened counts as one all the same.
    fn closed_directory(&mut self, above: Option<Fd>, name: &OsString, errno: Errno) {
        let bounds = self.bounds;
        let at = At { dir: above, path: Path::new(name) };
        if let (Some(dir), Ok(stat)) = (above, self.fs.call(&Call::Stat { at, follow: false }).stat()) {
            if !bounds.holds_closed_directory(self.fs, dir, name, &stat) {
                self.walked.other_file_systems += 1;
                return;
            }
            self.walked.directories += u64::from(stat.kind == FileKind::Directory);
        }
        self.give_up_on(name, errno);
    }

    /// Leaves the directory on top, opening its parent again if it was closed on the way down.
    fn leave(&mut self) -> Result<(), LayoutError> {
        let Some(done) = self.stack.pop() else { return Ok(()) };
        let parent = self.stack.last_mut();
        if let (Some(parent), Some(child)) = (parent, done.fd)
            && parent.fd.is_none()
        {
            let reopened = open_directory(self.fs, Some(child), Path::new(".."));
            let same = reopened.and_then(|fd| Ok((fd, self.fs.call(&Call::Fstat { fd }).stat()?)));
            match same {
                Ok((fd, stat)) if stat.ino == parent.ino && self.bounds.is_own_device(&stat) => parent.fd = Some(fd),
                Ok((fd, _)) => {
                    self.fs.call(&Call::Close { fd });
                    self.moved_away();
                }
                Err(_) => self.moved_away(),
            }
        }
        if let Some(fd) = done.fd {
            self.fs.call(&Call::Close { fd });
        }
        Ok(())
    }

    /// A directory was moved while we were below it: what is left of its parents up to the next one still open is given
    /// up.
    fn moved_away(&mut self) {
        while self.stack.last().is_some_and(|f| f.fd.is_none()) {
            if let Some(frame) = self.stack.pop() {
                let left = frame.rest.len();
                if left > 0 {
                    let path = self.shown(&frame.name);
                    self.walked.unreadable(|| path, "moved during the survey");
                }
            }
        }
    }

    fn file(&mut self, name: &OsString) {
        if self.no_extents.is_some() {
            self.walked.files += 1;
            return;
        }
        let flags = OpenFlags { nofollow: true, ..OpenFlags::READ };
        let at = At { dir: self.top(), path: Path::new(name) };
        let fd = match self.fs.call(&Call::Open { at, flags, mode: posix::Mode(0) }).fd() {
            Ok(fd) => fd,
            Err(errno) => return self.give_up_on(name, errno),
        };
        let bounds = self.bounds;
        match self.fs.call(&Call::Fstat { fd }).stat() {
            Ok(stat) if !bounds.holds_file(self.fs, fd, &stat) => self.walked.other_file_systems += 1,
            Ok(stat) if stat.kind == FileKind::File => {
                self.open_file(name, fd, &Stat { ino: bounds.ino(&stat), ..stat });
            }
            Ok(_) => self.walked.others += 1,
            Err(errno) => self.give_up_on(name, errno),
        }
        self.fs.call(&Call::Close { fd });
    }

    fn open_file(&mut self, name: &OsString, fd: Fd, stat: &Stat) {
        if stat.nlink > 1 && self.links_left.seen_before(stat.ino, stat.nlink) {
            self.walked.further_links += 1;
            return;
        }
        let extents = match self.places.of(self.fs, fd) {
            Ok(extents) => extents,
            Err(Unavailable::Unsupported { what, on, why }) if self.walked.files == 0 => {
                // The first file already has none: so it is with all.
                self.walked.files += 1;
                self.no_extents = Some(Unavailable::Unsupported { what, on, why }.to_string());
                return;
            }
            Err(why) => {
                let path = self.shown(name);
                self.walked.unreadable(|| path, &why.to_string());
                return;
            }
        };
        self.walked.files += 1;
        let facts = FileFacts { ino: stat.ino, size_bytes: stat.size_bytes, mtime_ns: stat.mtime_ns };
        let stack = &self.stack;
        let path = || {
            let mut path = Vec::new();
            for frame in stack.iter().skip(1) {
                path.extend_from_slice(frame.name.as_bytes());
                path.push(b'/');
            }
            path.extend_from_slice(name.as_bytes());
            shown_path(&path)
        };
        let mut place = stack.last().map(|f| f.place).unwrap_or_default();
        self.collector.file(&mut place, facts, &extents, path);
        if let Some(frame) = self.stack.last_mut() {
            frame.place = place;
        }
    }
}

/// A path as a result shows it: valid UTF-8 as it is, other bytes as `\xNN`.
pub(crate) fn shown_path(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        out.push_str(chunk.valid());
        for byte in chunk.invalid() {
            out.push_str(&format!("\\x{byte:02x}"));
        }
    }
    out
}
