//! One traced call, and batches of them.
//!
//! Batches stream: paths are interned per batch, so that a reader holds one batch at a time whatever
//! the length of the trace.

use crate::ids::{FileId, OfdId, PathId};
use crate::schedule::Turn;
use crate::{Call, Op};
use posix::Errno;
use rustc_hash::FxHashMap;

/// What every traced call has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Position in the trace, from 0, in the order of call starts.
    pub seq: u64,
    /// When the call began, nanoseconds since the trace began.
    pub t_ns: u64,
    /// How long it took, as traced (tracing inflates it).
    pub dur_ns: u64,
    /// Process and thread that called.
    pub pid: u32,
    /// See `pid`.
    pub tid: u32,
    /// Flags of the call: see [`flag`].
    pub flags: u32,
    /// Why it failed; `None` on success.
    pub errno: Option<Errno>,
    /// What it returned; -1 on failure.
    pub ret: i64,
    /// Part of `dur_ns` in which the thread ran on a processor; `None` where the tracer cannot tell.
    pub running_ns: Option<u64>,
    /// Part of `dur_ns` in which the thread slept: waited for the device, a lock, a pipe. What is left of `dur_ns`, it
    /// waited for a processor.
    pub blocked_ns: Option<u64>,
}

/// One traced call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Who called when, and what came of it.
    pub head: Head,
    /// What was asked.
    pub call: Call,
}

impl Event {
    /// See [`Call::op`].
    #[inline]
    pub fn op(&self) -> Op {
        self.call.op()
    }

    /// See [`Call::ofd`].
    #[inline]
    pub fn ofd(&self) -> Option<OfdId> {
        self.call.ofd()
    }

    /// See [`Call::ofd2`].
    #[inline]
    pub fn ofd2(&self) -> Option<OfdId> {
        self.call.ofd2()
    }

    /// See [`Call::file`].
    #[inline]
    pub fn file(&self) -> Option<FileId> {
        self.call.file()
    }

    /// See [`Call::parent`].
    #[inline]
    pub fn parent(&self) -> Option<FileId> {
        self.call.parent()
    }

    /// See [`Call::path`].
    #[inline]
    pub fn path(&self) -> Option<PathId> {
        self.call.path()
    }

    /// See [`Call::path2`].
    #[inline]
    pub fn path2(&self) -> Option<PathId> {
        self.call.path2()
    }

    /// See [`Call::caller_dir`].
    #[inline]
    pub fn caller_dir(&self) -> Option<PathId> {
        self.call.caller_dir()
    }

    /// See [`Call::caller_dir2`].
    #[inline]
    pub fn caller_dir2(&self) -> Option<PathId> {
        self.call.caller_dir2()
    }

    /// See [`Call::offset`].
    #[inline]
    pub fn offset(&self) -> Option<u64> {
        self.call.offset()
    }

    /// See [`Call::offset2`].
    #[inline]
    pub fn offset2(&self) -> Option<u64> {
        self.call.offset2()
    }

    /// See [`Call::req_bytes`].
    #[inline]
    pub fn req_bytes(&self) -> Option<u64> {
        self.call.req_bytes()
    }

    /// See [`Call::size_before`].
    #[inline]
    pub fn size_before(&self) -> Option<u64> {
        self.call.size_before()
    }

    /// See [`Call::mode`].
    #[inline]
    pub fn mode(&self) -> Option<u16> {
        self.call.mode()
    }
}

/// Bits of [`Head::flags`]. The low bits are shared by all operations, the rest belong to `open`.
pub mod flag {
    /// read/write: the positional variant (pread, pwrite), which leaves the description's offset alone.
    pub const POSITIONAL: u32 = 1 << 0;
    /// Path calls: the last component was not followed (`AT_SYMLINK_NOFOLLOW`, lstat, `O_NOFOLLOW`).
    pub const NOFOLLOW: u32 = 1 << 1;
    /// close: this was the description's last descriptor. In the file also where the description was on its way over a
    /// socket and came back ([`Meta::returned`](crate::profile::Meta::returned)).
    pub const LAST: u32 = 1 << 2;
    /// rename: `RENAME_NOREPLACE`.
    pub const NOREPLACE: u32 = 1 << 3;
    /// rename: `RENAME_EXCHANGE`.
    pub const EXCHANGE: u32 = 1 << 4;
    /// Path calls and descriptors: not on a file system fsage models (pipe, socket, /proc, /sys, /dev).
    pub const FOREIGN: u32 = 1 << 5;
    /// mmap: shared and writable. copy: a reflink (FICLONE).
    pub const SHARED: u32 = 1 << 6;
    /// write: `RWF_DSYNC`/`RWF_SYNC`.
    pub const RWF_SYNC: u32 = 1 << 7;
    /// open: access for reading.
    pub const READ: u32 = 1 << 8;
    /// open: access for writing.
    pub const WRITE: u32 = 1 << 9;
    /// open: `O_CREAT`.
    pub const CREATE: u32 = 1 << 10;
    /// open: `O_EXCL`.
    pub const EXCL: u32 = 1 << 11;
    /// open: `O_TRUNC`.
    pub const TRUNC: u32 = 1 << 12;
    /// open: `O_APPEND`.
    pub const APPEND: u32 = 1 << 13;
    /// open: `O_DIRECTORY`.
    pub const DIRECTORY: u32 = 1 << 14;
    /// open: `O_DIRECT`.
    pub const DIRECT: u32 = 1 << 15;
    /// open: `O_SYNC`.
    pub const SYNC: u32 = 1 << 16;
    /// open: `O_DSYNC`.
    pub const DSYNC: u32 = 1 << 17;
    /// open: `O_PATH`.
    pub const PATH_ONLY: u32 = 1 << 18;
    /// open: `O_TMPFILE`.
    pub const TMPFILE: u32 = 1 << 19;
    /// open: `O_NOATIME`.
    pub const NOATIME: u32 = 1 << 20;
    /// open: `O_CLOEXEC`.
    pub const CLOEXEC: u32 = 1 << 21;
    /// The call never returned in the trace (killed, or the trace ends first).
    pub const UNFINISHED: u32 = 1 << 22;
    /// close: not a call. The kernel did it at exec, at exit or when dup2 put another in its place; told only of a
    /// description's last descriptor, with no time of its own.
    pub const IMPLIED: u32 = 1 << 23;
    /// fcntl: the flags of a descriptor or description were read or set (`F_GETFD`, `F_SETFD`, `F_GETFL`, `F_SETFL`),
    /// which asks nothing of the file and works on `O_PATH` descriptors too. Profiles of before this bit do not tell.
    pub const DESCRIPTOR_FLAGS: u32 = 1 << 24;
    /// fcntl: neither flags nor locks, but leases, notices, hints, owners, seals, sizes of pipes.
    pub const NO_LOCK: u32 = 1 << 25;
    /// mknod: made by bind: a socket, and `EADDRINUSE` says what mknod's `EEXIST` says. Profiles of before this bit do
    /// not tell of bind.
    pub const BOUND: u32 = 1 << 24;
    /// copy: the call gave the source's offset; the description's stays. Profiles of before this bit do not tell.
    pub const SOURCE_OFFSET: u32 = 1 << 24;
    /// copy: the same of the destination.
    pub const TARGET_OFFSET: u32 = 1 << 25;
    /// Path calls: a path was given by way of a bind mount, and stands here as the file system itself knows it.
    pub const BY_MOUNT: u32 = 1 << 31;
    /// fadvise: the advice (in [`Call::Fadvise`](crate::Call::Fadvise)) to give pages up, `POSIX_FADV_DONTNEED`.
    pub const ADVICE_DONT_NEED: u16 = 4;
    /// lseek: whence in bits 24-26 (0 set, 1 current, 2 end, 3 data, 4 hole); fallocate: the kernel's mode bits in
    /// bits 24-31.
    pub const SUB_SHIFT: u32 = 24;
}

/// Interned byte strings of one batch. Id 0 is valid; look up with [`Paths::get`].
#[derive(Clone, Debug, Default)]
pub struct Paths {
    bytes: Vec<u8>,
    ends: Vec<u32>,
    index: FxHashMap<Box<[u8]>, u32>,
}

impl Paths {
    /// None yet, with room for as many as there are in another batch.
    pub fn with_room_of(other: &Paths) -> Paths {
        Paths {
            bytes: Vec::with_capacity(other.bytes.len()),
            ends: Vec::with_capacity(other.ends.len()),
            index: FxHashMap::with_capacity_and_hasher(other.index.len(), Default::default()),
        }
    }

    /// The id of a path, made if new.
    pub fn intern(&mut self, path: &[u8]) -> PathId {
        if let Some(&id) = self.index.get(path) {
            return PathId(id);
        }
        let id = self.push_unique(path);
        self.index.insert(path.into(), id.0);
        id
    }

    /// Appends a path known to be new without indexing it (readers, whose dictionaries are already unique).
    pub fn push_unique(&mut self, path: &[u8]) -> PathId {
        let id = u32::try_from(self.ends.len()).expect("a batch holds fewer than 2^32 paths");
        self.bytes.extend_from_slice(path);
        self.ends.push(u32::try_from(self.bytes.len()).expect("a batch holds less than 4 GiB of paths"));
        PathId(id)
    }

    /// Bytes of all paths.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The bytes of a path.
    ///
    /// # Panics
    /// If the id is of another batch and out of range: ids do not outlive their batch.
    pub fn get(&self, id: PathId) -> &[u8] {
        let i = id.0 as usize;
        let start = if i == 0 { 0 } else { self.ends[i - 1] as usize };
        &self.bytes[start..self.ends[i] as usize]
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.index.clear();
    }
}

/// A run of consecutive events with the paths they name.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// The events, in `seq` order.
    pub events: Vec<Event>,
    /// Their paths.
    pub paths: Paths,
    /// Turns of threads that became known with these events, of whatever time. A tracer hands them over here; a profile
    /// gives them as a whole ([`Reader::schedule`](crate::profile::Reader::schedule)), and its batches have none.
    pub schedule: Vec<Turn>,
}
