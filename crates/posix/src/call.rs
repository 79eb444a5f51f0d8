//! The calls a process makes, and what comes back.
//!
//! A [`Call`] is data, so that a driver can be written once and run on an OS thread, interleaved in virtual
//! time, wrapped by a fault injector, or printed. Calls carry no payload unless given one: a file system fills
//! writes from an incompressible pattern of its own and discards what it reads.

use crate::Errno;
use std::ffi::OsStr;
use std::path::Path;

/// An open file description in a [`FileSystem`](crate::FileSystem); only that file system gives it meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fd(pub u32);

/// Permission bits (`0o7777`), as `chmod(2)` takes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mode(pub u16);

/// Symbolic links that the kernel follows on one path; one more is `ELOOP` (`MAXSYMLINKS` of Linux,
/// `path_resolution(7)`).
pub const LINKS_MAX: u32 = 40;

/// Where a path starts: at the file system's own root directory, or at an open directory (the `*at` calls).
///
/// A path is always taken relative, even with a leading `/`; how many components it has is what the walk
/// costs, so drivers should keep the split between `dir` and `path` that the traced process had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct At<'a> {
    /// The directory the walk starts in; `None`: the target's root.
    pub dir: Option<Fd>,
    /// The path to walk from there.
    pub path: &'a Path,
}

impl<'a> From<&'a Path> for At<'a> {
    fn from(path: &'a Path) -> Self {
        At { dir: None, path }
    }
}

impl<'a> From<&'a str> for At<'a> {
    fn from(path: &'a str) -> Self {
        At { dir: None, path: Path::new(path) }
    }
}

/// How a file is opened: `open(2)`'s flags as a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct OpenFlags {
    /// Access for reading (`O_RDONLY`, `O_RDWR`).
    pub read: bool,
    /// Access for writing (`O_WRONLY`, `O_RDWR`).
    pub write: bool,
    /// `O_CREAT`
    pub create: bool,
    /// `O_EXCL`
    pub exclusive: bool,
    /// `O_TRUNC`
    pub truncate: bool,
    /// `O_APPEND`
    pub append: bool,
    /// `O_DIRECTORY`
    pub directory: bool,
    /// `O_NOFOLLOW`
    pub nofollow: bool,
    /// `O_DIRECT`
    pub direct: bool,
    /// `O_SYNC`: data and all metadata are on stable storage when a write returns.
    pub sync: bool,
    /// `O_DSYNC`: data and the metadata needed to read it back.
    pub dsync: bool,
    /// `O_PATH`: a location, not an open file.
    pub path_only: bool,
    /// `O_TMPFILE`
    pub tmpfile: bool,
    /// `O_NOATIME`
    pub noatime: bool,
}

impl OpenFlags {
    /// `O_RDONLY`
    pub const READ: OpenFlags = OpenFlags { read: true, ..Self::NONE };
    /// `O_WRONLY`
    pub const WRITE: OpenFlags = OpenFlags { write: true, ..Self::NONE };
    /// `O_RDWR`
    pub const READ_WRITE: OpenFlags = OpenFlags { read: true, write: true, ..Self::NONE };
    /// `O_WRONLY|O_CREAT|O_EXCL`
    pub const CREATE_NEW: OpenFlags = OpenFlags { write: true, create: true, exclusive: true, ..Self::NONE };
    /// `O_RDONLY|O_DIRECTORY`
    pub const DIRECTORY: OpenFlags = OpenFlags { read: true, directory: true, ..Self::NONE };
    const NONE: OpenFlags = OpenFlags {
        read: false,
        write: false,
        create: false,
        exclusive: false,
        truncate: false,
        append: false,
        directory: false,
        nofollow: false,
        direct: false,
        sync: false,
        dsync: false,
        path_only: false,
        tmpfile: false,
        noatime: false,
    };
}

/// `lseek(2)`'s starting points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Whence {
    /// From the start of the file.
    Set,
    /// From the current offset.
    Current,
    /// From the end of the file.
    End,
    /// To the next data at or after the offset.
    Data,
    /// To the next hole at or after the offset.
    Hole,
}

/// What `access(2)` asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct AccessMode {
    /// `R_OK`
    pub read: bool,
    /// `W_OK`
    pub write: bool,
    /// `X_OK`
    pub execute: bool,
}

/// `fallocate(2)`'s modes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fallocate {
    /// Mode 0: allocate and extend.
    Allocate,
    /// `FALLOC_FL_KEEP_SIZE`
    AllocateKeepSize,
    /// `FALLOC_FL_PUNCH_HOLE|FALLOC_FL_KEEP_SIZE`
    PunchHole,
    /// `FALLOC_FL_ZERO_RANGE`
    ZeroRange,
    /// `FALLOC_FL_ZERO_RANGE|FALLOC_FL_KEEP_SIZE`
    ZeroRangeKeepSize,
    /// `FALLOC_FL_COLLAPSE_RANGE`
    CollapseRange,
    /// `FALLOC_FL_INSERT_RANGE`
    InsertRange,
    /// `FALLOC_FL_UNSHARE_RANGE`
    UnshareRange,
    /// `FALLOC_FL_UNSHARE_RANGE|FALLOC_FL_KEEP_SIZE`
    UnshareRangeKeepSize,
    /// Any other of the kernel's bits: newer ones, and such as it refuses together.
    Other(u8),
}

impl Fallocate {
    /// The mode of the kernel's bits (`linux/falloc.h`).
    pub const fn from_bits(bits: u8) -> Fallocate {
        match bits {
            0x00 => Fallocate::Allocate,
            0x01 => Fallocate::AllocateKeepSize,
            0x03 => Fallocate::PunchHole,
            0x08 => Fallocate::CollapseRange,
            0x10 => Fallocate::ZeroRange,
            0x11 => Fallocate::ZeroRangeKeepSize,
            0x20 => Fallocate::InsertRange,
            0x40 => Fallocate::UnshareRange,
            0x41 => Fallocate::UnshareRangeKeepSize,
            other => Fallocate::Other(other),
        }
    }

    /// The kernel's bits.
    pub const fn bits(self) -> u8 {
        match self {
            Fallocate::Allocate => 0x00,
            Fallocate::AllocateKeepSize => 0x01,
            Fallocate::PunchHole => 0x03,
            Fallocate::CollapseRange => 0x08,
            Fallocate::ZeroRange => 0x10,
            Fallocate::ZeroRangeKeepSize => 0x11,
            Fallocate::InsertRange => 0x20,
            Fallocate::UnshareRange => 0x40,
            Fallocate::UnshareRangeKeepSize => 0x41,
            Fallocate::Other(bits) => bits,
        }
    }
}

/// What `sync_file_range(2)` is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct SyncRange {
    /// `SYNC_FILE_RANGE_WAIT_BEFORE`: waits for what is under way already.
    pub wait_before: bool,
    /// `SYNC_FILE_RANGE_WRITE`: starts to write what is dirty.
    pub write: bool,
    /// `SYNC_FILE_RANGE_WAIT_AFTER`: waits for what is under way then.
    pub wait_after: bool,
}

impl SyncRange {
    /// All three: the data is written when the call returns.
    pub const WAITED: SyncRange = SyncRange { wait_before: true, write: true, wait_after: true };
    /// Writing is started, and nobody waits for it.
    pub const STARTED: SyncRange = SyncRange { wait_before: false, write: true, wait_after: false };

    /// What the kernel's bits ask for (`linux/fs.h`); `None` where there are others, which it refuses.
    pub const fn from_bits(bits: u16) -> Option<SyncRange> {
        if bits > 7 {
            return None;
        }
        Some(SyncRange { wait_before: bits & 1 != 0, write: bits & 2 != 0, wait_after: bits & 4 != 0 })
    }

    /// The kernel's bits.
    pub const fn bits(self) -> u16 {
        self.wait_before as u16 | (self.write as u16) << 1 | (self.wait_after as u16) << 2
    }
}

/// A timestamp given to `utimensat(2)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SetTime {
    /// `UTIME_NOW`
    Now,
    /// `UTIME_OMIT`
    Omit,
    /// Nanoseconds since the epoch.
    To(i64),
}

/// `posix_fadvise(2)`'s hints; `POSIX_FADV_DONTNEED` is [`Call::DontNeed`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Advice {
    /// `POSIX_FADV_NORMAL`
    Normal,
    /// `POSIX_FADV_SEQUENTIAL`
    Sequential,
    /// `POSIX_FADV_RANDOM`
    Random,
    /// `POSIX_FADV_WILLNEED`
    WillNeed,
}

/// What `fcntl(F_SETLK)` does to a range of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lock {
    /// `F_RDLCK`
    Shared,
    /// `F_WRLCK`
    Exclusive,
    /// `F_UNLCK`
    Unlock,
}

/// One call of one process. Fields are the system call's arguments, as its manual page has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Call<'a> {
    /// `openat(2)`; answers [`Reply::Fd`].
    Open { at: At<'a>, flags: OpenFlags, mode: Mode },
    /// `close(2)`
    Close { fd: Fd },
    /// `read(2)` where `offset` is `None`, else `pread(2)`; answers [`Reply::Count`].
    Read { fd: Fd, offset: Option<u64>, len_bytes: u64 },
    /// `write(2)` where `offset` is `None`, else `pwrite(2)`; `data` of `len_bytes`, or the file system's own
    /// incompressible filler where `None`. Answers [`Reply::Count`].
    Write { fd: Fd, offset: Option<u64>, len_bytes: u64, data: Option<&'a [u8]> },
    /// `lseek(2)`; answers [`Reply::Count`] with the new offset.
    Seek { fd: Fd, offset: i64, whence: Whence },
    /// `fsync(2)`
    Fsync { fd: Fd },
    /// `fdatasync(2)`
    Fdatasync { fd: Fd },
    /// `sync_file_range(2)` (a length of 0: to the end of the file).
    SyncRange { fd: Fd, offset: u64, len_bytes: u64, how: SyncRange },
    /// `syncfs(2)` of the whole file system.
    SyncFs,
    /// `ftruncate(2)`
    Ftruncate { fd: Fd, len_bytes: u64 },
    /// `truncate(2)`
    Truncate { at: At<'a>, len_bytes: u64 },
    /// `fallocate(2)`
    Fallocate { fd: Fd, how: Fallocate, offset: u64, len_bytes: u64 },
    /// `copy_file_range(2)`/`sendfile(2)` inside the file system; answers [`Reply::Count`].
    CopyRange { from: Fd, from_offset: Option<u64>, to: Fd, to_offset: Option<u64>, len_bytes: u64 },
    /// `posix_fadvise(POSIX_FADV_DONTNEED)` over a range (0, 0: the whole file).
    DontNeed { fd: Fd, offset: u64, len_bytes: u64 },
    /// `posix_fadvise(2)` with one of the hints over a range (0, 0: the whole file).
    Advise { fd: Fd, offset: u64, len_bytes: u64, advice: Advice },
    /// `fcntl(F_SETLK)` over a range (a length of 0: to the end of the file and beyond).
    Lock { fd: Fd, offset: u64, len_bytes: u64, lock: Lock },
    /// `mmap(2)` of the first `len_bytes` of a file, shared and read-only, and at once `munmap(2)` of them: what a
    /// process pays for the mapping itself. No page is touched.
    MapUnmap { fd: Fd, len_bytes: u64 },
    /// `cachestat(2)` of a range of an ordinary file (a length of 0: to its end); answers [`Reply::Residency`]. It
    /// looks and does not use: no page becomes younger, and in the laboratory no time passes.
    Residency { fd: Fd, offset: u64, len_bytes: u64 },
    /// `newfstatat(2)`; answers [`Reply::Stat`].
    Stat { at: At<'a>, follow: bool },
    /// `fstat(2)`; answers [`Reply::Stat`].
    Fstat { fd: Fd },
    /// `statfs(2)`
    StatFs { at: At<'a> },
    /// `faccessat(2)`
    Access { at: At<'a>, mode: AccessMode },
    /// `readlinkat(2)`; answers [`Reply::Count`] with the target's length.
    ReadLink { at: At<'a> },
    /// `getdents64(2)` with a buffer of this size; answers [`Reply::Count`], 0 at the end.
    GetDents { fd: Fd, len_bytes: u64 },
    /// `mkdirat(2)`
    Mkdir { at: At<'a>, mode: Mode },
    /// `unlinkat(2)` with `AT_REMOVEDIR`
    Rmdir { at: At<'a> },
    /// `unlinkat(2)`
    Unlink { at: At<'a> },
    /// `renameat2(2)`; `noreplace` is `RENAME_NOREPLACE`, `exchange` is `RENAME_EXCHANGE`.
    Rename { from: At<'a>, to: At<'a>, noreplace: bool, exchange: bool },
    /// `linkat(2)`; `follow` is `AT_SYMLINK_FOLLOW`.
    Link { from: At<'a>, to: At<'a>, follow: bool },
    /// `linkat(2)` of an open file, also of one that never had a name (`O_TMPFILE`).
    LinkFd { fd: Fd, to: At<'a> },
    /// `symlinkat(2)`
    Symlink { target: &'a Path, at: At<'a> },
    /// `mknodat(2)` of a FIFO or an ordinary file.
    Mknod { at: At<'a>, kind: FileKind, mode: Mode },
    /// `fchmodat(2)`
    Chmod { at: At<'a>, mode: Mode },
    /// `fchmod(2)`
    Fchmod { fd: Fd, mode: Mode },
    /// `fchownat(2)`; `None` leaves the owner or group as it is.
    Chown { at: At<'a>, follow: bool, uid: Option<u32>, gid: Option<u32> },
    /// `fchown(2)`
    Fchown { fd: Fd, uid: Option<u32>, gid: Option<u32> },
    /// `utimensat(2)`
    Utimens { at: At<'a>, follow: bool, atime: SetTime, mtime: SetTime },
    /// `futimens(3)`
    Futimens { fd: Fd, atime: SetTime, mtime: SetTime },
    /// `setxattr(2)`, or `lsetxattr(2)` where `follow` is false; the same for the others.
    SetXattr { at: At<'a>, follow: bool, name: &'a OsStr, value: &'a [u8] },
    /// `getxattr(2)`; answers [`Reply::Count`].
    GetXattr { at: At<'a>, follow: bool, name: &'a OsStr },
    /// `listxattr(2)`; answers [`Reply::Count`].
    ListXattr { at: At<'a>, follow: bool },
    /// `removexattr(2)`
    RemoveXattr { at: At<'a>, follow: bool, name: &'a OsStr },
}

/// What kind of object a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FileKind {
    /// An ordinary file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A FIFO, socket or device: it has a name and attributes, but no data of the file system's.
    Special,
}

/// The attributes of a file that drivers need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Inode number.
    pub ino: u64,
    /// Device the file system is on.
    pub dev: u64,
    /// What it is.
    pub kind: FileKind,
    /// Permission bits.
    pub mode: Mode,
    /// Owner and group.
    pub uid: u32,
    #[allow(missing_docs)]
    pub gid: u32,
    /// Number of names.
    pub nlink: u32,
    /// Length in bytes.
    pub size_bytes: u64,
    /// Space in use, in bytes (`st_blocks * 512`).
    pub allocated_bytes: u64,
    /// Access, modification and change times in nanoseconds since the epoch.
    pub atime_ns: i64,
    #[allow(missing_docs)]
    pub mtime_ns: i64,
    #[allow(missing_docs)]
    pub ctime_ns: i64,
}

/// How much of a file, or of a range of it, is in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Residency {
    /// Bytes of it in the cache, in whole pages or blocks: a page counts in full even if the file ends in it.
    pub cached_bytes: u64,
    /// Bytes of it up to the file's end that are not, in whole pages or blocks. A hole may be among them.
    pub missing_bytes: u64,
    /// Of the cached ones, dirty or being written back; `None` where the system does not tell.
    pub dirty_bytes: Option<u64>,
}

/// What a successful call answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Nothing but success.
    Done,
    /// A new descriptor.
    Fd(Fd),
    /// Bytes moved, a length or an offset.
    Count(u64),
    /// Attributes.
    Stat(Stat),
    /// What is in memory.
    Residency(Residency),
}

/// One call's result and time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// When the call began, on the file system's clock ([`FileSystem::now_ns`](crate::FileSystem::now_ns)).
    pub start_ns: u64,
    /// How long it took, less the measured cost of reading the clock.
    pub dur_ns: u64,
    /// What it answered.
    pub result: Result<Reply, Errno>,
}

impl Outcome {
    /// The descriptor of a successful open; any other answer is the error it carries, or `EINVAL`.
    pub fn fd(&self) -> Result<Fd, Errno> {
        match self.result? {
            Reply::Fd(fd) => Ok(fd),
            _ => Err(Errno::EINVAL),
        }
    }

    /// The count of a successful read, write, seek, getdents or readlink.
    pub fn count(&self) -> Result<u64, Errno> {
        match self.result? {
            Reply::Count(n) => Ok(n),
            _ => Err(Errno::EINVAL),
        }
    }

    /// The answer of a successful look at the cache.
    pub fn residency(&self) -> Result<Residency, Errno> {
        match self.result? {
            Reply::Residency(r) => Ok(r),
            _ => Err(Errno::EINVAL),
        }
    }

    /// The attributes of a successful stat.
    pub fn stat(&self) -> Result<Stat, Errno> {
        match self.result? {
            Reply::Stat(s) => Ok(s),
            _ => Err(Errno::EINVAL),
        }
    }
}
