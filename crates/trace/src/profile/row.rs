//! A call as `trace.parquet` keeps it: a flat row, a field for each column.
//!
//! What a row says that its operation does not have is not taken over into the [`Event`]: it means nothing.

use crate::{
    About, Call, Destination, Event, FileId, Head, Mapped, Named, OfdId, Op, Opened, PathId, Range, Target, Via,
};
use posix::Errno;

/// One row: every column, whatever the operation. `None` means unknown or not applicable; nothing is guessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
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
    /// What was asked.
    pub op: Op,
    /// Flags of the call: see [`flag`](crate::flag).
    pub flags: u32,
    /// Permission bits given to creating calls and chmod; what `access` asked (4 read, 2 write, 1 execute), what
    /// `sync_file_range` did (1 wait before, 2 write, 4 wait after), which advice `fadvise` gave (`POSIX_FADV_*`; 4 is
    /// `DONTNEED`).
    pub mode: Option<u16>,
    /// Error number, 0 on success.
    pub errno: u16,
    /// What it returned; -1 on failure.
    pub ret: i64,
    /// The description used (or made, by open).
    pub ofd: Option<OfdId>,
    /// Second description: the destination of a copy.
    pub ofd2: Option<OfdId>,
    /// The file the call is about, so far as the trace alone can tell.
    pub file: Option<FileId>,
    /// Its directory's identity.
    pub parent: Option<FileId>,
    /// Absolute path: `caller_dir` and the path as given, with `.`, `..` and repeated slashes left in, so that
    /// the components the kernel walked can be counted. For calls on descriptors, the description's path.
    pub path: Option<PathId>,
    /// The second path of rename, link, copy (that of the destination) and symlink (the target as given).
    pub path2: Option<PathId>,
    /// The directory the walk of `path` started in where the given path was relative; `None` where it was absolute.
    pub caller_dir: Option<PathId>,
    /// The same for `path2`.
    pub caller_dir2: Option<PathId>,
    /// Resolved file offset of a read, write, fallocate, sync_file_range, fadvise, readahead, mmap, map_read, map_write
    /// or copy (source).
    pub offset: Option<u64>,
    /// Resolved destination offset of a copy.
    pub offset2: Option<u64>,
    /// Bytes asked for; new length of a truncate.
    pub req_bytes: Option<u64>,
    /// The file's length before the call, so far as the trace alone can tell.
    pub size_before: Option<u64>,
    /// Part of `dur_ns` in which the thread ran on a processor; `None` where the tracer cannot tell.
    pub running_ns: Option<u64>,
    /// Part of `dur_ns` in which the thread slept: waited for the device, a lock, a pipe. What is left of `dur_ns`, it
    /// waited for a processor.
    pub blocked_ns: Option<u64>,
}

impl Row {
    /// A successful call of process 1 that took no time and of which nothing else is known.
    pub fn new(seq: u64, t_ns: u64, op: Op) -> Row {
        Row {
            seq,
            t_ns,
            dur_ns: 0,
            pid: 1,
            tid: 1,
            op,
            flags: 0,
            mode: None,
            errno: 0,
            ret: 0,
            ofd: None,
            ofd2: None,
            file: None,
            parent: None,
            path: None,
            path2: None,
            caller_dir: None,
            caller_dir2: None,
            offset: None,
            offset2: None,
            req_bytes: None,
            size_before: None,
            running_ns: None,
            blocked_ns: None,
        }
    }
}

/// What a row says about its call, field by field: a call is made of those that its operation has, and the others are
/// not looked at.
pub(super) trait Fields {
    fn op(&self) -> Op;
    fn mode(&self) -> Option<u16>;
    fn ofd(&self) -> Option<OfdId>;
    fn ofd2(&self) -> Option<OfdId>;
    fn file(&self) -> Option<FileId>;
    fn parent(&self) -> Option<FileId>;
    fn path(&self) -> Option<PathId>;
    fn path2(&self) -> Option<PathId>;
    fn caller_dir(&self) -> Option<PathId>;
    fn caller_dir2(&self) -> Option<PathId>;
    fn offset(&self) -> Option<u64>;
    fn offset2(&self) -> Option<u64>;
    fn req_bytes(&self) -> Option<u64>;
    fn size_before(&self) -> Option<u64>;

    #[inline]
    fn named(&self) -> Named {
        Named {
            path: self.path(),
            caller_dir: self.caller_dir(),
            file: self.file(),
            parent: self.parent(),
            size_before: self.size_before(),
        }
    }

    #[inline]
    fn opened(&self) -> Opened {
        Opened {
            ofd: self.ofd(),
            path: self.path(),
            file: self.file(),
            parent: self.parent(),
            size_before: self.size_before(),
        }
    }

    #[inline]
    fn range(&self) -> Range {
        Range { of: self.opened(), offset: self.offset(), bytes: self.req_bytes() }
    }

    #[inline]
    fn about(&self) -> About {
        let via = match (self.ofd(), self.caller_dir()) {
            (Some(ofd), _) => Via::Ofd(ofd),
            (None, Some(dir)) => Via::Dir(dir),
            (None, None) => Via::Path,
        };
        let (path, file, parent, size_before) = (self.path(), self.file(), self.parent(), self.size_before());
        About { via, path, file, parent, size_before }
    }

    #[inline]
    fn mapped(&self) -> Mapped {
        Mapped {
            path: self.path(),
            file: self.file(),
            parent: self.parent(),
            size_before: self.size_before(),
            offset: self.offset(),
            bytes: self.req_bytes(),
        }
    }

    #[inline]
    fn target(&self) -> Target {
        Target { path: self.path2(), caller_dir: self.caller_dir2() }
    }

    #[inline]
    fn call(&self) -> Call {
        let row = self;
        match row.op() {
            Op::Open => Call::Open { at: row.named(), ofd: row.ofd(), mode: row.mode() },
            Op::Close => Call::Close(row.opened()),
            Op::Read => Call::Read(row.range()),
            Op::Write => Call::Write(row.range()),
            Op::Seek => Call::Seek(row.opened()),
            Op::Fsync => Call::Fsync(row.opened()),
            Op::Fdatasync => Call::Fdatasync(row.opened()),
            Op::SyncRange => Call::SyncRange { range: row.range(), how: row.mode() },
            Op::Sync => Call::Sync,
            Op::SyncFs => Call::SyncFs(row.opened()),
            Op::Msync => Call::Msync { bytes: row.req_bytes() },
            Op::Truncate => Call::Truncate { at: row.named(), len: row.req_bytes() },
            Op::Ftruncate => Call::Ftruncate { of: row.opened(), len: row.req_bytes() },
            Op::Fallocate => Call::Fallocate(row.range()),
            Op::Copy => Call::Copy {
                from: row.opened(),
                offset: row.offset(),
                to: Destination { ofd: row.ofd2(), path: row.path2(), offset: row.offset2() },
                bytes: row.req_bytes(),
            },
            Op::Fadvise => Call::Fadvise { range: row.range(), how: row.mode() },
            Op::Readahead => Call::Readahead(row.range()),
            Op::Stat => Call::Stat(row.named()),
            Op::Fstat => Call::Fstat(row.opened()),
            Op::StatFs => Call::StatFs(row.about()),
            Op::Access => Call::Access { at: row.named(), mode: row.mode() },
            Op::ReadLink => Call::ReadLink { at: row.named(), bytes: row.req_bytes() },
            Op::GetDents => Call::GetDents { of: row.opened(), bytes: row.req_bytes() },
            Op::Mkdir => Call::Mkdir { at: row.named(), mode: row.mode() },
            Op::Rmdir => Call::Rmdir(row.named()),
            Op::Unlink => Call::Unlink(row.named()),
            Op::Rename => Call::Rename { from: row.named(), to: row.target() },
            Op::Link => Call::Link { from: row.about(), to: row.target() },
            Op::Symlink => Call::Symlink { at: row.named(), target: row.path2() },
            Op::Mknod => Call::Mknod { at: row.named(), mode: row.mode() },
            Op::Chmod => Call::Chmod { at: row.named(), mode: row.mode() },
            Op::Fchmod => Call::Fchmod { of: row.opened(), mode: row.mode() },
            Op::Chown => Call::Chown(row.named()),
            Op::Fchown => Call::Fchown(row.opened()),
            Op::Utimens => Call::Utimens(row.named()),
            Op::Futimens => Call::Futimens(row.opened()),
            Op::SetXattr => Call::SetXattr { on: row.about(), bytes: row.req_bytes() },
            Op::GetXattr => Call::GetXattr(row.about()),
            Op::ListXattr => Call::ListXattr(row.about()),
            Op::RemoveXattr => Call::RemoveXattr(row.about()),
            Op::Mmap => Call::Mmap(row.range()),
            Op::MapRead => Call::MapRead(row.mapped()),
            Op::MapWrite => Call::MapWrite(row.mapped()),
            Op::Dup => Call::Dup(row.opened()),
            Op::Fcntl => Call::Fcntl(row.opened()),
            Op::Ioctl => Call::Ioctl(row.opened()),
            Op::Chdir => Call::Chdir(row.named()),
            Op::Fchdir => Call::Fchdir(row.opened()),
            Op::Exec => Call::Exec(row.named()),
            Op::Clone => Call::Clone,
            Op::Exit => Call::Exit,
            Op::IoUring => Call::IoUring,
            Op::Other => Call::Other(row.about()),
        }
    }
}

macro_rules! own_fields {
    ($($field:ident: $kind:ty),*) => {
        impl Fields for Row {
            $(#[inline]
            fn $field(&self) -> $kind {
                self.$field
            })*
        }
    };
}

own_fields! {
    op: Op,
    mode: Option<u16>,
    ofd: Option<OfdId>,
    ofd2: Option<OfdId>,
    file: Option<FileId>,
    parent: Option<FileId>,
    path: Option<PathId>,
    path2: Option<PathId>,
    caller_dir: Option<PathId>,
    caller_dir2: Option<PathId>,
    offset: Option<u64>,
    offset2: Option<u64>,
    req_bytes: Option<u64>,
    size_before: Option<u64>
}

impl Event {
    /// A successful call of process 1 that took no time and of which nothing else is known.
    pub fn new(seq: u64, t_ns: u64, op: Op) -> Event {
        Event::from(Row::new(seq, t_ns, op))
    }
}

impl From<&Row> for Event {
    #[inline]
    fn from(row: &Row) -> Event {
        let &Row { seq, t_ns, dur_ns, pid, tid, flags, errno, ret, running_ns, blocked_ns, .. } = row;
        let errno = (errno != 0).then_some(Errno(errno));
        let head = Head { seq, t_ns, dur_ns, pid, tid, flags, errno, ret, running_ns, blocked_ns };
        Event { head, call: row.call() }
    }
}

impl From<Row> for Event {
    #[inline]
    fn from(row: Row) -> Event {
        Event::from(&row)
    }
}

impl From<&Event> for Row {
    #[inline]
    fn from(event: &Event) -> Row {
        let &Event { head, ref call } = event;
        let Head { seq, t_ns, dur_ns, pid, tid, flags, errno, ret, running_ns, blocked_ns } = head;
        Row {
            seq,
            t_ns,
            dur_ns,
            pid,
            tid,
            op: call.op(),
            flags,
            mode: call.mode(),
            errno: errno.map_or(0, |errno| errno.0),
            ret,
            ofd: call.ofd(),
            ofd2: call.ofd2(),
            file: call.file(),
            parent: call.parent(),
            path: call.path(),
            path2: call.path2(),
            caller_dir: call.caller_dir(),
            caller_dir2: call.caller_dir2(),
            offset: call.offset(),
            offset2: call.offset2(),
            req_bytes: call.req_bytes(),
            size_before: call.size_before(),
            running_ns,
            blocked_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn row() -> impl Strategy<Value = Row> {
        let numbers = (any::<[u64; 3]>(), any::<[u32; 3]>(), any::<u16>(), any::<i64>());
        let ids = (any::<[Option<u64>; 4]>(), any::<[Option<u32>; 4]>());
        let sizes = (any::<[Option<u64>; 6]>(), any::<Option<u16>>());
        (0..Op::ALL.len(), numbers, ids, sizes).prop_map(|(op, n, ids, sizes)| Row {
            seq: n.0[0],
            t_ns: n.0[1],
            dur_ns: n.0[2],
            pid: n.1[0],
            tid: n.1[1],
            op: Op::ALL[op],
            flags: n.1[2],
            mode: sizes.1,
            errno: n.2,
            ret: n.3,
            ofd: ids.0[0].map(OfdId),
            ofd2: ids.0[1].map(OfdId),
            file: ids.0[2].map(FileId),
            parent: ids.0[3].map(FileId),
            path: ids.1[0].map(PathId),
            path2: ids.1[1].map(PathId),
            caller_dir: ids.1[2].map(PathId),
            caller_dir2: ids.1[3].map(PathId),
            offset: sizes.0[0],
            offset2: sizes.0[1],
            req_bytes: sizes.0[2],
            size_before: sizes.0[3],
            running_ns: sizes.0[4],
            blocked_ns: sizes.0[5],
        })
    }

    proptest! {
        /// Whatever a row says, the event made of it comes back from its own row.
        #[test]
        fn every_event_comes_back_from_its_row(row in row()) {
            let event = Event::from(&row);
            let again = Row::from(&event);
            prop_assert_eq!(again.op, row.op);
            prop_assert_eq!(Event::from(&again), event);
        }
    }

    #[test]
    fn an_event_is_no_larger_than_its_row() {
        assert!(size_of::<Event>() <= size_of::<Row>());
    }
}
