//! The kernel's requests, answered: the protocol of FUSE, as the crate `fuser` reads and writes it, on one side,
//! [`Live`] on the other.
//!
//! Nobody else changes the file system, so the kernel may keep what it was told for as long as it likes. Permissions
//! are the kernel's to check (`default_permissions`), and so are the set-id bits that a write or a change of owner
//! takes away.

use crate::live::{Allocation, Caller, DirEntry, Live, New, Set, Stat, When};
use fuser::{
    FileAttr, FileHandle, Filesystem, FopenFlags, Generation, INodeNo, InitFlags, KernelConfig, LockOwner, OpenFlags,
    RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty, ReplyEntry,
    ReplyOpen, ReplyStatfs, ReplyWrite, Request, TimeOrNow, WriteFlags,
};
use kernel::{Durability, Ino};
use posix::Errno;
use std::cell::RefCell;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use ufs::FileType;
use ufs::Special;
use ufs::insert::Insertable;

/// How long the kernel may rely on names and attributes: nobody else changes them.
const FOR_LONG: Duration = Duration::from_secs(24 * 3600);
/// The most that the kernel writes or reads in a request.
const REQUEST_BYTES: u32 = 1 << 20;
/// Entries of a directory that are looked up together.
const ENTRIES: usize = 64;
/// `fallocate(2)`.
const KEEP_SIZE: i32 = 1;
/// `fallocate(2)`; only with the other.
const PUNCH_HOLE: i32 = 2;

thread_local! {
    /// Where a thread puts what was read.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A file system as `fuser` calls it.
pub(crate) struct Served<V> {
    pub(crate) live: Arc<Mutex<Live<V>>>,
}

impl<V: Insertable> Served<V> {
    /// Whoever panicked has said so, and has left structures that do not agree: nothing may be written after that.
    fn live(&self) -> Result<MutexGuard<'_, Live<V>>, Errno> {
        self.live.lock().map_err(|_| Errno::EIO)
    }

    fn with<T>(&self, work: impl FnOnce(&mut Live<V>) -> Result<T, Errno>) -> Result<T, fuser::Errno> {
        self.live().and_then(|mut live| work(&mut live)).map_err(number)
    }

    fn make(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        new: &New<'_>,
    ) -> Result<Stat, fuser::Errno> {
        let caller = Caller { uid: request.uid(), gid: request.gid() };
        self.with(|live| {
            let dir = known(live, parent);
            live.make(caller, dir, name.as_bytes(), permissions(mode), new)
        })
    }
}

/// The kernel has a number of its own for the root directory.
fn known<V: Insertable>(live: &Live<V>, ino: INodeNo) -> Ino {
    // Numbers of ours have 32 bits, and the kernel says only what it was told.
    if ino == INodeNo::ROOT { live.root() } else { Ino(ino.0 as u32) }
}

fn number(errno: Errno) -> fuser::Errno {
    fuser::Errno::from_i32(i32::from(errno.0))
}

fn permissions(mode: u32) -> u16 {
    (mode & 0o7777) as u16
}

fn kind_of(file_type: FileType) -> fuser::FileType {
    match file_type {
        FileType::Fifo => fuser::FileType::NamedPipe,
        FileType::CharDevice => fuser::FileType::CharDevice,
        FileType::Directory => fuser::FileType::Directory,
        FileType::BlockDevice => fuser::FileType::BlockDevice,
        FileType::Symlink => fuser::FileType::Symlink,
        FileType::Socket => fuser::FileType::Socket,
        _ => fuser::FileType::RegularFile,
    }
}

/// A time as `fuser` takes it, nanoseconds since 1970.
fn time(ns: i64) -> SystemTime {
    let away = Duration::from_nanos(ns.unsigned_abs());
    let time = if ns >= 0 { UNIX_EPOCH.checked_add(away) } else { UNIX_EPOCH.checked_sub(away) };
    time.unwrap_or(UNIX_EPOCH)
}

/// The reverse.
fn nanoseconds(time: SystemTime) -> i64 {
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_nanos()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_nanos()).map_or(i64::MIN, |ns| -ns),
    }
}

fn when(time: TimeOrNow) -> When {
    match time {
        TimeOrNow::Now => When::Now,
        TimeOrNow::SpecificTime(time) => When::At(nanoseconds(time)),
    }
}

fn attributes(stat: &Stat, blksize: u32) -> FileAttr {
    let a = &stat.attributes;
    FileAttr {
        ino: INodeNo(stat.ino.0.into()),
        size: a.size_bytes,
        blocks: a.allocated_bytes / 512,
        atime: time(a.atime_ns),
        mtime: time(a.mtime_ns),
        ctime: time(a.ctime_ns),
        crtime: UNIX_EPOCH,
        kind: kind_of(stat.file_type),
        perm: a.mode,
        nlink: a.nlink,
        uid: a.uid,
        gid: a.gid,
        rdev: stat.device,
        blksize,
        flags: 0,
    }
}

/// How long the kernel may rely on what it is told of an inode.
fn lasts(stat: &Stat) -> &'static Duration {
    if stat.changes_alone { &Duration::ZERO } else { &FOR_LONG }
}

fn generation(stat: &Stat) -> Generation {
    Generation(stat.attributes.generation.into())
}

impl<V: Insertable + Send + 'static> Served<V> {
    fn entry(&self, made: Result<Stat, fuser::Errno>, reply: ReplyEntry) {
        match made {
            Ok(stat) => reply.entry(lasts(&stat), &attributes(&stat, BLOCK), generation(&stat)),
            Err(errno) => reply.error(errno),
        }
    }

    /// Hands over the entries of a directory from a place on, until one is not taken.
    fn entries(
        &self,
        ino: INodeNo,
        mut from: u64,
        mut take: impl FnMut(&mut Live<V>, &DirEntry) -> Result<bool, Errno>,
    ) -> Result<(), fuser::Errno> {
        self.with(|live| {
            let dir = known(live, ino);
            loop {
                let entries = live.readdir(dir, from, ENTRIES)?;
                for entry in &entries {
                    if !take(live, entry)? {
                        return Ok(());
                    }
                    from = entry.next;
                }
                if entries.len() < ENTRIES {
                    return Ok(());
                }
            }
        })
    }

    fn empty(done: Result<(), fuser::Errno>, reply: ReplyEmpty) {
        match done {
            Ok(()) => reply.ok(),
            Err(errno) => reply.error(errno),
        }
    }

    fn fsync_of(&self, ino: INodeNo, data_only: bool) -> Result<(), fuser::Errno> {
        let how = if data_only { Durability::Data } else { Durability::All };
        self.with(|live| {
            let ino = known(live, ino);
            live.fsync(ino, how)
        })
    }
}

/// What `st_blksize` shows: what programs write at a time. More than a block, which is what a request carries best.
const BLOCK: u32 = 64 << 10;

impl<V: Insertable + Send + 'static> Filesystem for Served<V> {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> std::io::Result<()> {
        let wanted = [
            InitFlags::FUSE_ASYNC_READ,
            InitFlags::FUSE_ASYNC_DIO,
            InitFlags::FUSE_PARALLEL_DIROPS,
            InitFlags::FUSE_DO_READDIRPLUS,
            InitFlags::FUSE_READDIRPLUS_AUTO,
            InitFlags::FUSE_CACHE_SYMLINKS,
            InitFlags::FUSE_NO_OPEN_SUPPORT,
            InitFlags::FUSE_NO_OPENDIR_SUPPORT,
            InitFlags::FUSE_MAX_PAGES,
        ];
        for flag in wanted {
            // What a kernel does not know it does without.
            let _ = config.add_capabilities(flag);
        }
        let _ = config.set_max_write(REQUEST_BYTES);
        let _ = config.set_max_readahead(REQUEST_BYTES);
        Ok(())
    }

    fn lookup(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let found = self.with(|live| {
            let dir = known(live, parent);
            match live.lookup(dir, name.as_bytes()) {
                Err(Errno::ENOENT) => Ok(None),
                other => other.map(Some),
            }
        });
        match found {
            Ok(Some(stat)) => reply.entry(lasts(&stat), &attributes(&stat, BLOCK), generation(&stat)),
            // Inode 0: the kernel may remember that there is none.
            Ok(None) => reply.entry(&FOR_LONG, &nothing(), Generation(0)),
            Err(errno) => reply.error(errno),
        }
    }

    fn forget(&self, _request: &Request, ino: INodeNo, times: u64) {
        if let Ok(mut live) = self.live() {
            let ino = known(&live, ino);
            live.forget(ino, times);
        }
    }

    fn getattr(&self, _request: &Request, ino: INodeNo, _fh: Option<FileHandle>, reply: ReplyAttr) {
        match self.with(|live| live.stat(known(live, ino))) {
            Ok(stat) => reply.attr(lasts(&stat), &attributes(&stat, BLOCK)),
            Err(errno) => reply.error(errno),
        }
    }

    fn setattr(
        &self,
        _request: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        _fh: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<fuser::BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let set = Set {
            mode: mode.map(permissions),
            uid,
            gid,
            size_bytes: size,
            atime: atime.map(when),
            mtime: mtime.map(when),
        };
        let done = self.with(|live| {
            let ino = known(live, ino);
            live.set(ino, &set)
        });
        match done {
            Ok(stat) => reply.attr(lasts(&stat), &attributes(&stat, BLOCK)),
            Err(errno) => reply.error(errno),
        }
    }

    fn readlink(&self, _request: &Request, ino: INodeNo, reply: ReplyData) {
        let target = self.with(|live| {
            let ino = known(live, ino);
            live.readlink(ino)
        });
        match target {
            Ok(target) => reply.data(&target),
            Err(errno) => reply.error(errno),
        }
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        device: u32,
        reply: ReplyEntry,
    ) {
        // As both formats have it: major and minor numbers of 8 bits each. The kernel's form of such a number is the
        // same.
        let device = u16::try_from(device).map_err(|_| number(Errno::EINVAL));
        let new = match rustix::fs::FileType::from_raw_mode(mode) {
            rustix::fs::FileType::RegularFile => Ok(New::File),
            rustix::fs::FileType::Fifo => Ok(New::Special(Special::Fifo)),
            rustix::fs::FileType::Socket => Ok(New::Special(Special::Socket)),
            rustix::fs::FileType::CharacterDevice => device.map(|number| New::Special(Special::CharDevice(number))),
            rustix::fs::FileType::BlockDevice => device.map(|number| New::Special(Special::BlockDevice(number))),
            _ => Err(number(Errno::EINVAL)),
        };
        self.entry(new.and_then(|new| self.make(request, parent, name, mode, &new)), reply);
    }

    fn mkdir(&self, request: &Request, parent: INodeNo, name: &OsStr, mode: u32, _umask: u32, reply: ReplyEntry) {
        self.entry(self.make(request, parent, name, mode, &New::Directory), reply);
    }

    fn unlink(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let done = self.with(|live| {
            let dir = known(live, parent);
            live.unlink(dir, name.as_bytes())
        });
        Self::empty(done, reply);
    }

    fn rmdir(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let done = self.with(|live| {
            let dir = known(live, parent);
            live.rmdir(dir, name.as_bytes())
        });
        Self::empty(done, reply);
    }

    fn symlink(&self, request: &Request, parent: INodeNo, name: &OsStr, target: &Path, reply: ReplyEntry) {
        let new = New::Symlink(target.as_os_str().as_bytes());
        self.entry(self.make(request, parent, name, 0o777, &new), reply);
    }

    fn rename(
        &self,
        _request: &Request,
        parent: INodeNo,
        name: &OsStr,
        newparent: INodeNo,
        newname: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let done = self.with(|live| {
            let (from, to) = (known(live, parent), known(live, newparent));
            let (from, to) = ((from, name.as_bytes()), (to, newname.as_bytes()));
            if flags.is_empty() || flags == RenameFlags::RENAME_NOREPLACE {
                live.rename(from, to, !flags.is_empty())
            } else if flags == RenameFlags::RENAME_EXCHANGE {
                live.exchange(from, to)
            } else {
                Err(Errno::EINVAL)
            }
        });
        Self::empty(done, reply);
    }

    fn link(&self, _request: &Request, ino: INodeNo, newparent: INodeNo, newname: &OsStr, reply: ReplyEntry) {
        let done = self.with(|live| {
            let (ino, dir) = (known(live, ino), known(live, newparent));
            live.link(ino, dir, newname.as_bytes())
        });
        self.entry(done, reply);
    }

    fn open(&self, _request: &Request, _ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        // Whoever opens a file is known to the kernel, and to it alone: it need not ask again.
        reply.error(number(Errno::ENOSYS));
    }

    fn opendir(&self, _request: &Request, _ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        reply.error(number(Errno::ENOSYS));
    }

    fn read(
        &self,
        _request: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        BUFFER.with_borrow_mut(|buffer| {
            if buffer.len() < size as usize {
                buffer.resize(size as usize, 0);
            }
            let place = buffer.get_mut(..size as usize).unwrap_or_default();
            let read = self.with(|live| {
                let ino = known(live, ino);
                live.read(ino, offset, place)
            });
            match read {
                Ok(len) => reply.data(place.get(..len).unwrap_or_default()),
                Err(errno) => reply.error(errno),
            }
        });
    }

    fn write(
        &self,
        _request: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let open_flags = rustix::fs::OFlags::from_bits_retain(flags.0 as u32);
        let sync = if open_flags.contains(rustix::fs::OFlags::SYNC) {
            Some(Durability::All)
        } else {
            open_flags.contains(rustix::fs::OFlags::DSYNC).then_some(Durability::Data)
        };
        let written = self.with(|live| {
            let ino = known(live, ino);
            live.write(ino, offset, data, sync)
        });
        match written {
            // No more than was asked for, which was told in 32 bits.
            Ok(len) => reply.written(len as u32),
            Err(errno) => reply.error(errno),
        }
    }

    fn flush(&self, _request: &Request, _ino: INodeNo, _fh: FileHandle, _owner: LockOwner, reply: ReplyEmpty) {
        // Closing a file writes nothing; errors were told when they happened.
        reply.error(number(Errno::ENOSYS));
    }

    fn fsync(&self, _request: &Request, ino: INodeNo, _fh: FileHandle, datasync: bool, reply: ReplyEmpty) {
        Self::empty(self.fsync_of(ino, datasync), reply);
    }

    fn fsyncdir(&self, _request: &Request, ino: INodeNo, _fh: FileHandle, datasync: bool, reply: ReplyEmpty) {
        // sync(2) and syncfs(2) do not reach a file system in user space: the root stands for all of it.
        let synced = if ino == INodeNo::ROOT { self.with(Live::sync) } else { self.fsync_of(ino, datasync) };
        Self::empty(synced, reply);
    }

    fn readdir(&self, _request: &Request, ino: INodeNo, _fh: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        let filled = self.entries(ino, offset, |live, entry| {
            let kind = live.stat(entry.ino).map_or(fuser::FileType::RegularFile, |stat| kind_of(stat.file_type));
            Ok(!reply.add(INodeNo(entry.ino.0.into()), entry.next, kind, OsStr::from_bytes(&entry.name)))
        });
        match filled {
            Ok(()) => reply.ok(),
            Err(errno) => reply.error(errno),
        }
    }

    fn readdirplus(
        &self,
        _request: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        mut reply: ReplyDirectoryPlus,
    ) {
        let filled = self.entries(ino, offset, |live, entry| {
            let stat = live.stat(entry.ino)?;
            let (attr, name) = (attributes(&stat, BLOCK), OsStr::from_bytes(&entry.name));
            let full = reply.add(attr.ino, entry.next, name, lasts(&stat), &attr, generation(&stat));
            // The kernel takes the two for what it has already.
            if !full && entry.name != b"." && entry.name != b".." {
                live.note_known(entry.ino);
            }
            Ok(!full)
        });
        match filled {
            Ok(()) => reply.ok(),
            Err(errno) => reply.error(errno),
        }
    }

    fn statfs(&self, _request: &Request, _ino: INodeNo, reply: ReplyStatfs) {
        match self.with(|live| Ok((live.usage(), live.block_bytes()))) {
            Ok((usage, bsize)) => {
                let fragments = |bytes: u64| bytes / u64::from(usage.block_bytes.max(1));
                reply.statfs(
                    fragments(usage.total_bytes),
                    fragments(usage.free_bytes),
                    fragments(usage.available_bytes),
                    usage.total_inodes,
                    usage.free_inodes,
                    bsize,
                    255,
                    usage.block_bytes,
                );
            }
            Err(errno) => reply.error(errno),
        }
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        _flags: i32,
        reply: ReplyCreate,
    ) {
        match self.make(request, parent, name, mode, &New::File) {
            Ok(stat) => {
                let attr = attributes(&stat, BLOCK);
                reply.created(lasts(&stat), &attr, generation(&stat), FileHandle(0), FopenFlags::FOPEN_KEEP_CACHE);
            }
            Err(errno) => reply.error(errno),
        }
    }

    fn fallocate(
        &self,
        _request: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let done = self.with(|live| {
            let ino = known(live, ino);
            let how = match mode {
                0 => Allocation::Allocate { keep_size: false },
                KEEP_SIZE => Allocation::Allocate { keep_size: true },
                mode if mode == KEEP_SIZE | PUNCH_HOLE => Allocation::PunchHole,
                _ => return Err(Errno::EOPNOTSUPP),
            };
            live.allocate(ino, offset, length, how)
        });
        Self::empty(done, reply);
    }
}

/// The attributes of nothing.
fn nothing() -> FileAttr {
    FileAttr {
        ino: INodeNo(0),
        size: 0,
        blocks: 0,
        atime: UNIX_EPOCH,
        mtime: UNIX_EPOCH,
        ctime: UNIX_EPOCH,
        crtime: UNIX_EPOCH,
        kind: fuser::FileType::RegularFile,
        perm: 0,
        nlink: 0,
        uid: 0,
        gid: 0,
        rdev: 0,
        blksize: 0,
        flags: 0,
    }
}

impl<V> std::fmt::Debug for Served<V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Served").finish_non_exhaustive()
    }
}
