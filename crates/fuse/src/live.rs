//! A file system between two calls of the kernel: operations by inode number, in real time, on real bytes.
//!
//! The kernel has walked the path, checked permissions, and holds the locks of the directories that an operation
//! changes. What it cannot know is decided here, under the one lock that is around a [`Live`]: whether a name is there,
//! whose a new file is, and when an inode without names goes: once the kernel has forgotten it, which it has not while
//! anybody has it open.

use kernel::payload::Image;
use kernel::{
    Barriers, Cx, Durability, Ino, NewNode, ReadAhead, Rename, SetAttributes, Transfers, Untimed, WriteRange,
};
use posix::{Errno, FileKind, FsUsage};
use rustc_hash::FxHashMap;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use ufs::DiskInode as _;
use ufs::FileType;
use ufs::Special;
use ufs::insert::Insertable;
use ufs::live::operations;

/// Inodes kept at hand beside those that the kernel knows.
const INODES: usize = 1 << 16;
/// What is dirty is written after so long, as Linux and BSD do (their 30 seconds are for disks that seek).
const SYNC_AFTER: Duration = Duration::from_secs(5);
/// So often everything is written until nothing is dirty any more; what is left then waits for another time.
const SYNC_ROUNDS: usize = 16;
/// A time of access is at most so old where a file is read (Linux's `relatime`).
const ACCESS_AFTER_NS: i64 = 24 * 3600 * 1_000_000_000;
/// The longest name.
const NAME_MAX_BYTES: usize = 255;

/// What `stat` shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Which inode.
    pub ino: Ino,
    /// What it is.
    pub file_type: FileType,
    /// A device's number, major × 256 + minor; 0 for what is none.
    pub device: u32,
    /// The rest.
    pub attributes: kernel::Attributes,
    /// Whether the file system changes it of its own accord: a snapshot that it gives up is empty all at once.
    pub changes_alone: bool,
}

/// An entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirEntry {
    /// The name.
    pub name: Vec<u8>,
    /// What it names.
    pub ino: Ino,
    /// Where the next entry is.
    pub next: u64,
}

/// Attributes to change; `None` stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Set {
    /// Permission bits.
    pub mode: Option<u16>,
    /// Owner.
    pub uid: Option<u32>,
    /// Group.
    pub gid: Option<u32>,
    /// Length.
    pub size_bytes: Option<u64>,
    /// Access time.
    pub atime: Option<When>,
    /// Modification time.
    pub mtime: Option<When>,
}

/// A time to set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Now.
    Now,
    /// Nanoseconds since 1970.
    At(i64),
}

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// User.
    pub uid: u32,
    /// Group.
    pub gid: u32,
}

/// How it works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveOptions {
    /// Nothing is changed.
    pub read_only: bool,
    /// Memory for blocks.
    pub cache_bytes: u64,
    /// What reaches stable storage when.
    pub barriers: Barriers,
}

/// A mounted file system.
pub struct Live<V> {
    fs: Untimed<V>,
    /// How often the kernel has been told of each inode and has not forgotten it.
    known: FxHashMap<u32, u64>,
    started: Instant,
    last_call: Instant,
    /// When something was first changed since all was last written.
    changed: Option<Instant>,
    options: LiveOptions,
    /// Told what is wrong below, in words.
    tell: Box<dyn Fn(&str) + Send>,
}

impl<V: Insertable> Live<V> {
    /// Mounts a file system, whose blocks are in `image`.
    ///
    /// # Errors
    /// The file system's. The image cannot be read or written: `tell` was told.
    pub fn new(
        volume: V,
        image: Image,
        options: LiveOptions,
        tell: Box<dyn Fn(&str) + Send>,
    ) -> Result<Live<V>, Errno> {
        let transfers = Transfers { largest_bytes: 1 << 20, read_ahead: ReadAhead::None, cluster_writes: true };
        let mut fs = Untimed::with_image(volume, options.cache_bytes, INODES, transfers, date_ns(), image);
        fs.set_barriers(options.barriers);
        fs.forget_what_is_written();
        let now = Instant::now();
        let mut live =
            Live { fs, known: FxHashMap::default(), started: now, last_call: now, changed: None, options, tell };
        live.act(|volume, cx| volume.mount(cx))?;
        Ok(live)
    }

    /// Writes everything back, marks the file system as unmounted, and waits for stable storage. What has no name any
    /// more goes.
    ///
    /// # Errors
    /// As for [`Live::new`].
    pub fn unmount(&mut self) -> Result<(), Errno> {
        let mut known: Vec<u32> = self.known.drain().map(|(ino, _)| ino).collect();
        known.sort_unstable();
        for ino in known {
            self.release_if_unnamed(Ino(ino))?;
        }
        if !self.options.read_only {
            self.writable()?;
            self.act(|volume, cx| volume.unmount(cx))?;
            self.sync_image()?;
        }
        // Whoever still has a file open there changes nothing any more.
        self.options.read_only = true;
        Ok(())
    }

    /// The first thing in memory that does not agree with another.
    pub fn disagreement(&self) -> Option<String> {
        self.fs.volume().disagreement()
    }

    /// The root directory.
    pub fn root(&self) -> Ino {
        self.fs.volume().root()
    }

    /// Space and inodes.
    pub fn usage(&self) -> FsUsage {
        self.fs.volume().usage()
    }

    /// The size of a block.
    pub fn block_bytes(&self) -> u32 {
        self.fs.volume().block_bytes()
    }

    // ---- looking

    /// What `stat` shows of an inode.
    pub fn stat(&self, ino: Ino) -> Result<Stat, Errno> {
        let volume = self.fs.volume();
        let attributes = volume.attributes(ino)?;
        let d = &volume.node(ino)?.d;
        let file_type = d.file_type().ok_or(Errno::EIO)?;
        let is_device = matches!(file_type, FileType::CharDevice | FileType::BlockDevice);
        let device = d.direct().first().filter(|_| is_device).map_or(0, |number| *number as u32);
        let changes_alone = volume.may_write(ino).is_err();
        Ok(Stat { ino, file_type, device, attributes, changes_alone })
    }

    /// Looks a name up; the kernel knows the inode once more.
    pub fn lookup(&mut self, dir: Ino, name: &[u8]) -> Result<Stat, Errno> {
        let ino = self.find(dir, name)?.ok_or(Errno::ENOENT)?;
        self.known_again(ino)
    }

    /// The kernel has forgotten an inode so many times. One without a name goes with the last.
    pub fn forget(&mut self, ino: Ino, times: u64) {
        let Some(known) = self.known.get_mut(&ino.0) else { return };
        *known = known.saturating_sub(times);
        if *known == 0 {
            self.known.remove(&ino.0);
            // Nobody waits for an answer; what went wrong has been told.
            let _ = self.release_if_unnamed(ino);
        }
    }

    /// Where a symbolic link leads.
    pub fn readlink(&mut self, ino: Ino) -> Result<Vec<u8>, Errno> {
        self.look(|volume, cx| volume.readlink(cx, ino))
    }

    /// At most so many entries of a directory from a place on.
    pub fn readdir(&mut self, dir: Ino, from: u64, most: usize) -> Result<Vec<DirEntry>, Errno> {
        let entries = self.look(|volume, cx| {
            let mut entries = Vec::new();
            volume.readdir(cx, dir, from, &mut |entry| {
                if entries.len() == most {
                    return false;
                }
                entries.push(DirEntry { name: entry.name.to_vec(), ino: entry.ino, next: entry.cookie });
                true
            })?;
            Ok(entries)
        })?;
        if from == 0 {
            self.accessed(dir)?;
        }
        Ok(entries)
    }

    /// Fills a buffer from a place in a file; how much of it there is.
    pub fn read(&mut self, ino: Ino, offset: u64, out: &mut [u8]) -> Result<usize, Errno> {
        let size_bytes = self.fs.volume().attributes(ino)?.size_bytes;
        let len = usize::try_from(size_bytes.saturating_sub(offset)).unwrap_or(usize::MAX).min(out.len());
        self.clock();
        let read = self.fs.read_file(ino, offset, out.get_mut(..len).unwrap_or_default());
        self.below(read)?;
        self.accessed(ino)?;
        Ok(len)
    }

    // ---- changing

    /// Changes attributes, the length first.
    pub fn set(&mut self, ino: Ino, set: &Set) -> Result<Stat, Errno> {
        self.writable()?;
        if let Some(size_bytes) = set.size_bytes {
            self.truncate(ino, size_bytes)?;
        }
        let Set { mode, uid, gid, atime, mtime, .. } = *set;
        if (mode, uid, gid, atime, mtime) != (None, None, None, None, None) {
            self.act(|volume, cx| {
                let now_ns = cx.date_ns();
                let ns = |when: When| match when {
                    When::Now => now_ns,
                    When::At(ns) => ns,
                };
                let set = SetAttributes { mode, uid, gid, atime_ns: atime.map(ns), mtime_ns: mtime.map(ns) };
                volume.set_attributes(cx, ino, &set)
            })?;
        }
        self.stat(ino)
    }

    /// Takes a snapshot of the file system into the new file `.snap/NAME`, where BSD has them; the directory is made if
    /// there is none.
    pub fn take_snapshot(&mut self, name: &[u8]) -> Result<(), Errno> {
        self.writable()?;
        let root = self.root();
        let dir = match self.find(root, b".snap")? {
            Some(dir) => dir,
            None => {
                let new = NewNode { kind: FileKind::Directory, mode: 0o755, target: b"" };
                self.act(|volume, cx| volume.create(cx, root, b".snap", &new))?
            }
        };
        if self.find(dir, name)?.is_some() {
            return Err(Errno::EEXIST);
        }
        self.act(|volume, cx| volume.snapshot(cx, dir, name))?;
        self.sync_image()
    }

    fn truncate(&mut self, ino: Ino, size_bytes: u64) -> Result<(), Errno> {
        if self.fs.volume().attributes(ino)?.kind != FileKind::File {
            return Err(Errno::EINVAL);
        }
        if size_bytes > self.fs.volume().file_max_bytes() {
            return Err(Errno::EFBIG);
        }
        self.fs.touch(ino);
        self.act(|volume, cx| volume.truncate(cx, ino, size_bytes))
    }

    /// Writes to a file; how much was written.
    pub fn write(&mut self, ino: Ino, offset: u64, data: &[u8], sync: Option<Durability>) -> Result<usize, Errno> {
        self.writable()?;
        let most = self.fs.volume().file_max_bytes();
        let len_bytes = (data.len() as u64).min(most.saturating_sub(offset));
        if data.is_empty() {
            return Ok(0);
        }
        if len_bytes == 0 {
            return Err(Errno::EFBIG);
        }
        let data = data.get(..len_bytes as usize);
        self.fs.touch(ino);
        let written = self.act(|volume, cx| volume.write(cx, &WriteRange { ino, offset, len_bytes, data, sync }))?;
        if sync.is_some() {
            self.sync_image()?;
        }
        Ok(written as usize)
    }

    /// Allocates a range, or frees one.
    pub fn allocate(&mut self, ino: Ino, offset: u64, len: u64, how: Allocation) -> Result<(), Errno> {
        self.writable()?;
        if offset.saturating_add(len) > self.fs.volume().file_max_bytes() {
            return Err(Errno::EFBIG);
        }
        self.act(|volume, cx| match how {
            Allocation::Allocate { keep_size } => volume.allocate(cx, ino, offset, len, keep_size),
            Allocation::PunchHole => volume.punch_hole(cx, ino, offset, len),
        })
    }

    /// Makes a file, directory, symbolic link (with its target), pipe, socket or device; the kernel knows it.
    pub fn make(&mut self, caller: Caller, dir: Ino, name: &[u8], mode: u16, new: &New<'_>) -> Result<Stat, Errno> {
        self.absent(dir, name)?;
        let parent = self.fs.volume().attributes(dir)?;
        // In a directory with the set-group-id bit, what is new is of its group, and so is what is new in a new
        // directory.
        let inherits = parent.mode & SET_GROUP_ID != 0;
        let directory = matches!(new, New::Directory);
        let mode = if inherits && directory { mode | SET_GROUP_ID } else { mode };
        self.fs.set_owner(caller.uid, if inherits { parent.gid } else { caller.gid });
        let ino = self.act(|volume, cx| {
            let node = |kind, target| NewNode { kind, mode, target };
            match *new {
                New::File => volume.create(cx, dir, name, &node(FileKind::File, &[])),
                New::Directory => volume.create(cx, dir, name, &node(FileKind::Directory, &[])),
                New::Symlink(target) => volume.create(cx, dir, name, &node(FileKind::Symlink, target)),
                New::Special(special) => operations::create_special(volume, cx, dir, name, mode, special),
            }
        })?;
        self.fs.touch(ino);
        self.known_again(ino)
    }

    /// Another name of a file.
    pub fn link(&mut self, ino: Ino, dir: Ino, name: &[u8]) -> Result<Stat, Errno> {
        self.absent(dir, name)?;
        if self.fs.volume().attributes(ino)?.nlink == 0 {
            return Err(Errno::ENOENT);
        }
        self.act(|volume, cx| volume.link(cx, ino, dir, name))?;
        self.known_again(ino)
    }

    /// Removes a file's name.
    pub fn unlink(&mut self, dir: Ino, name: &[u8]) -> Result<(), Errno> {
        let ino = self.present(dir, name)?;
        if self.kind(ino)? == FileKind::Directory {
            return Err(Errno::EISDIR);
        }
        self.act(|volume, cx| volume.unlink(cx, dir, name, ino))?;
        self.release_if_unused(ino)
    }

    /// Removes an empty directory.
    pub fn rmdir(&mut self, dir: Ino, name: &[u8]) -> Result<(), Errno> {
        let ino = self.present(dir, name)?;
        if self.kind(ino)? != FileKind::Directory {
            return Err(Errno::ENOTDIR);
        }
        self.act(|volume, cx| volume.rmdir(cx, dir, name, ino))?;
        self.release_if_unused(ino)
    }

    /// Moves a name; what has the new name until now loses it, or refuses with `no_replace`.
    pub fn rename(&mut self, from: (Ino, &[u8]), to: (Ino, &[u8]), no_replace: bool) -> Result<(), Errno> {
        let ino = self.present(from.0, from.1)?;
        let replaced = self.find(to.0, to.1)?;
        if replaced.is_some() && no_replace {
            return Err(Errno::EEXIST);
        }
        if replaced == Some(ino) {
            return Ok(());
        }
        if let Some(old) = replaced {
            match (self.kind(ino)?, self.kind(old)?) {
                (FileKind::Directory, FileKind::Directory) => {}
                (FileKind::Directory, _) => return Err(Errno::ENOTDIR),
                (_, FileKind::Directory) => return Err(Errno::EISDIR),
                _ => {}
            }
        }
        let (from_dir, from_name) = from;
        let (to_dir, to_name) = to;
        self.act(|volume, cx| volume.rename(cx, &Rename { from_dir, from_name, ino, to_dir, to_name, replaced }))?;
        replaced.map_or(Ok(()), |old| self.release_if_unused(old))
    }

    /// Exchanges two names.
    pub fn exchange(&mut self, one: (Ino, &[u8]), other: (Ino, &[u8])) -> Result<(), Errno> {
        let (first, second) = (self.present(one.0, one.1)?, self.present(other.0, other.1)?);
        self.act(|volume, cx| volume.exchange(cx, (one.0, one.1, first), (other.0, other.1, second)))
    }

    /// Puts a file, or a directory, onto stable storage.
    pub fn fsync(&mut self, ino: Ino, how: Durability) -> Result<(), Errno> {
        if self.options.read_only {
            return Ok(());
        }
        self.writable()?;
        self.act(|volume, cx| volume.fsync(cx, ino, how))?;
        self.sync_image()
    }

    /// Puts everything onto stable storage.
    pub fn sync(&mut self) -> Result<(), Errno> {
        if self.options.read_only {
            return Ok(());
        }
        self.writable()?;
        self.changed = None;
        self.act(|volume, cx| volume.sync(cx, Durability::All))?;
        self.changed = None;
        self.sync_image()
    }

    /// What a daemon does now and then: writes what has been dirty for a while, and does the file system's own work
    /// where nobody calls.
    pub fn tick(&mut self) {
        if self.writable().is_err() {
            return;
        }
        if self.changed.is_some_and(|since| since.elapsed() >= SYNC_AFTER) {
            self.changed = None;
            // Soft Updates write a block again once what was left out of it may go. `changed` stays where that is not
            // all.
            for _ in 0..SYNC_ROUNDS {
                self.clock();
                let started = self.fs.run(|volume, cx| volume.sync(cx, Durability::Started));
                // What cannot be written is told of.
                let written = self.below(started).is_ok();
                self.changed = (self.fs.dirty_bytes() > 0).then(Instant::now);
                if !written || self.changed.is_none() {
                    break;
                }
            }
        }
        let idle_ns = u64::try_from(self.last_call.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.fs.idle_work(idle_ns);
        let _ = self.below(Ok(()));
    }

    /// Reads a file for a check, which leaves no trace in its times.
    pub(crate) fn read_quietly(&mut self, ino: Ino, offset: u64, out: &mut [u8]) -> Result<(), Errno> {
        self.clock();
        let read = self.fs.read_file(ino, offset, out);
        self.below(read)
    }

    // ---- inside

    /// Does an operation that changes something, at the time that it is.
    pub(crate) fn act<T>(&mut self, operation: impl FnOnce(&mut V, &mut Cx) -> Result<T, Errno>) -> Result<T, Errno> {
        let result = self.look(operation);
        if self.changed.is_none() {
            self.changed = Some(self.last_call);
        }
        result
    }

    /// Does one that changes nothing.
    fn look<T>(&mut self, operation: impl FnOnce(&mut V, &mut Cx) -> Result<T, Errno>) -> Result<T, Errno> {
        self.clock();
        let result = self.fs.run(operation);
        self.below(result)
    }

    /// Time goes on, and somebody has called.
    fn clock(&mut self) {
        self.last_call = Instant::now();
        let now_ns = self.last_call.duration_since(self.started).as_nanos();
        self.fs.set_clock(u64::try_from(now_ns).unwrap_or(u64::MAX), date_ns());
    }

    /// A result, unless the image has refused something: the caller gets `EIO`, and whoever reads our messages the
    /// place.
    fn below<T>(&mut self, result: Result<T, Errno>) -> Result<T, Errno> {
        match self.fs.take_image_error() {
            None => result,
            Some(error) => {
                (self.tell)(&error.to_string());
                Err(Errno::EIO)
            }
        }
    }

    fn sync_image(&mut self) -> Result<(), Errno> {
        self.fs.sync_image().map_err(|error| {
            (self.tell)(&error.to_string());
            Errno::EIO
        })
    }

    /// Whether something may be changed. Not once something could not be written: nothing is since then.
    fn writable(&self) -> Result<(), Errno> {
        match (self.options.read_only, self.fs.image_has_failed()) {
            (true, _) => Err(Errno::EROFS),
            (false, true) => Err(Errno::EIO),
            (false, false) => Ok(()),
        }
    }

    fn kind(&self, ino: Ino) -> Result<FileKind, Errno> {
        self.fs.volume().attributes(ino).map(|attributes| attributes.kind)
    }

    fn find(&mut self, dir: Ino, name: &[u8]) -> Result<Option<Ino>, Errno> {
        if name.len() > NAME_MAX_BYTES {
            return Err(Errno::ENAMETOOLONG);
        }
        self.look(|volume, cx| volume.lookup(cx, dir, name))
    }

    /// A name that is to be removed or moved.
    fn present(&mut self, dir: Ino, name: &[u8]) -> Result<Ino, Errno> {
        self.writable()?;
        self.find(dir, name)?.ok_or(Errno::ENOENT)
    }

    /// A name that is to be made.
    fn absent(&mut self, dir: Ino, name: &[u8]) -> Result<(), Errno> {
        self.writable()?;
        if self.find(dir, name)?.is_some() { Err(Errno::EEXIST) } else { Ok(()) }
    }

    fn known_again(&mut self, ino: Ino) -> Result<Stat, Errno> {
        let stat = self.stat(ino)?;
        *self.known.entry(ino.0).or_default() += 1;
        Ok(stat)
    }

    /// The kernel knows what an entry of a directory names, as if it had looked the name up.
    pub fn note_known(&mut self, ino: Ino) {
        *self.known.entry(ino.0).or_default() += 1;
    }

    /// A name of an inode has gone.
    pub(crate) fn release_if_unused(&mut self, ino: Ino) -> Result<(), Errno> {
        if self.known.contains_key(&ino.0) { Ok(()) } else { self.release_if_unnamed(ino) }
    }

    fn release_if_unnamed(&mut self, ino: Ino) -> Result<(), Errno> {
        let unnamed = self.fs.volume().attributes(ino).is_ok_and(|attributes| attributes.nlink == 0);
        if self.options.read_only || !unnamed {
            return Ok(());
        }
        let released = self.act(|volume, cx| {
            volume.release(cx, ino);
            Ok(())
        });
        self.fs.forget(ino);
        released
    }

    /// A file was read: its time of access, if that is before its last change or a day old.
    fn accessed(&mut self, ino: Ino) -> Result<(), Errno> {
        if self.options.read_only {
            return Ok(());
        }
        let kernel::Attributes { atime_ns, mtime_ns, ctime_ns, .. } = self.fs.volume().attributes(ino)?;
        let now_ns = date_ns();
        if atime_ns > mtime_ns && atime_ns > ctime_ns && now_ns.saturating_sub(atime_ns) < ACCESS_AFTER_NS {
            return Ok(());
        }
        self.act(|volume, cx| {
            volume.accessed(cx, ino);
            Ok(())
        })
    }
}

impl Live<ffs::Ffs> {
    /// Whether a crash may have left something that nobody has looked for yet.
    pub(crate) fn is_unchecked(&self) -> bool {
        !self.options.read_only && self.fs.volume().is_unchecked()
    }
}

impl<V> std::fmt::Debug for Live<V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Live").field("options", &self.options).finish_non_exhaustive()
    }
}

/// What to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum New<'a> {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link, and where it leads.
    Symlink(&'a [u8]),
    /// A pipe, a socket or a device.
    Special(Special),
}

/// What to do with a range of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allocation {
    /// There are blocks for all of it.
    Allocate {
        /// The length stays.
        keep_size: bool,
    },
    /// There are none, and it reads as zeros.
    PunchHole,
}

/// The permission bit.
const SET_GROUP_ID: u16 = 0o2000;

/// The date, nanoseconds since 1970.
pub(crate) fn date_ns() -> i64 {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_nanos()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_nanos()).map_or(i64::MIN, |ns| -ns),
    }
}
