//! A profile's rows applied to its snapshot.
//!
//! Rows become calls again and go to a [`Tracker`] that starts from the snapshot. One thread stands for all, with one table:
//! open file descriptions have numbers of their own in a profile, and rows hold absolute paths.

use crate::profile::Reader;
use crate::track::{At, Call, Fd, Kind, Outcome, Seen, Start, TrackOptions, Tracker};
use crate::{Batch, Event, FileId, OfdId, Op, PathId, Paths, Provenance, flag};
use columnar::FileError;
use rustc_hash::{FxHashMap, FxHashSet};
use std::borrow::Cow;

/// The thread that stands for all.
const TID: u32 = 1;

/// What a profile leads to.
#[derive(Debug)]
pub(super) struct Applied {
    pub tracker: Tracker,
    /// The snapshot holds all names of every directory that the trace used.
    pub whole: bool,
    /// The directories that the trace used: their names were read before the run, where any were.
    pub touched: FxHashSet<FileId>,
    pub unfinished: u64,
    pub without_path: u64,
}

/// Applies all rows.
pub(super) fn apply(profile: &Reader) -> Result<Applied, FileError> {
    let mut tracker = Tracker::new(TrackOptions::default());
    // A snapshot that only the trace implies, or that was cut short, covers no directory whole.
    let snapshot = profile.snapshot()?;
    let was_read = snapshot.entries.iter().any(|entry| entry.provenance != Provenance::Trace);
    let whole = was_read && !profile.meta().snapshot.truncated;
    tracker.begin_with(&snapshot, whole);
    let applied = Applied { tracker, whole, touched: FxHashSet::default(), unfinished: 0, without_path: 0 };
    let mut rows = Rows { applied, descriptors: FxHashMap::default(), free: Vec::new(), raw: Vec::new() };
    let mut batches = profile.batches()?;
    let mut batch = Batch::default();
    while batches.next_into(&mut batch)? {
        for event in &batch.events {
            rows.row(event, &batch.paths);
        }
    }
    Ok(rows.applied)
}

struct Rows {
    applied: Applied,
    /// The descriptor that stands for each open file description.
    descriptors: FxHashMap<OfdId, i32>,
    free: Vec<i32>,
    /// Scratch: a path in a tracer's escapes.
    raw: Vec<u8>,
}

impl Rows {
    fn row(&mut self, event: &Event, paths: &Paths) {
        if event.head.flags & flag::FOREIGN != 0 {
            return;
        }
        self.touch(event, paths);
        if event.head.flags & flag::UNFINISHED != 0 {
            self.applied.unfinished += 1;
        } else if event.head.errno.is_none() {
            self.apply(event, paths);
        }
        if self.applied.tracker.is_full() {
            self.applied.tracker.take();
        }
    }

    /// Notes the directories of a row, as the recorder does to know whose names to read.
    fn touch(&mut self, event: &Event, paths: &Paths) {
        let whole = matches!(event.op(), Op::GetDents | Op::Chdir | Op::Fchdir | Op::Mkdir | Op::Rmdir);
        let second = if event.op() == Op::Symlink { None } else { event.path2() };
        for id in [event.path(), second].into_iter().flatten() {
            let (parent, file) = self.applied.tracker.look(paths.get(id), true);
            self.applied.touched.extend(parent);
            if whole {
                self.applied.touched.extend(file);
            }
        }
        for id in [event.caller_dir(), event.caller_dir2()].into_iter().flatten() {
            let (_, file) = self.applied.tracker.look(paths.get(id), true);
            self.applied.touched.extend(file);
        }
    }

    fn apply(&mut self, event: &Event, paths: &Paths) {
        let path = |id: Option<PathId>| id.map(|id| at(paths.get(id)));
        let (first, second) = (path(event.path()), path(event.path2()));
        let needs_path = match event.op() {
            Op::Open | Op::Truncate | Op::Mkdir | Op::Mknod | Op::Symlink | Op::Rmdir | Op::Unlink => first.is_none(),
            Op::Rename => first.is_none() || second.is_none(),
            Op::Link => (first.is_none() && event.ofd().is_none()) || second.is_none(),
            _ => false,
        };
        if needs_path {
            self.applied.without_path += 1;
            return;
        }
        match (event.op(), first, second) {
            (Op::Open, Some(at), _) => self.open(event, at),
            (Op::Close, ..) => self.close(event),
            (Op::Read | Op::Write, ..) => self.transfer(event, paths),
            (Op::Seek, ..) => self.seek(event, paths, u64::try_from(event.head.ret).ok()),
            (Op::Truncate, Some(at), _) => {
                self.call(event, &Call::Truncate { at, len: event.req_bytes().unwrap_or(0) })
            }
            (Op::Ftruncate, ..) => {
                if let Some(fd) = self.fd(event, paths) {
                    self.call(event, &Call::Ftruncate { fd, len: event.req_bytes().unwrap_or(0) });
                }
            }
            (Op::Fallocate, ..) => {
                if let Some(fd) = self.fd(event, paths) {
                    let (offset, len) = (event.offset().unwrap_or(0), event.req_bytes().unwrap_or(0));
                    self.call(event, &Call::Fallocate { fd, mode: event.head.flags >> flag::SUB_SHIFT, offset, len });
                }
            }
            (Op::Copy, ..) => self.copy(event, paths),
            (Op::Mkdir, Some(at), _) => self.call(event, &Call::Mkdir { at, mode: event.mode() }),
            (Op::Mknod, Some(at), _) if event.head.flags & flag::BOUND != 0 => self.call(event, &Call::Bind { at }),
            // A row does not tell what mknod made.
            (Op::Mknod, Some(at), _) => self.call(event, &Call::Mknod { at, kind: Kind::Unknown, mode: event.mode() }),
            (Op::Symlink, Some(at), _) => {
                let target = event.path2().map(|id| Cow::Borrowed(paths.get(id)));
                self.call(event, &Call::Symlink { target, at });
            }
            (Op::Rmdir, Some(at), _) => self.call(event, &Call::Rmdir { at }),
            (Op::Unlink, Some(at), _) => self.call(event, &Call::Unlink { at }),
            (Op::Rename, Some(from), Some(to)) => {
                let (noreplace, exchange) =
                    (event.head.flags & flag::NOREPLACE != 0, event.head.flags & flag::EXCHANGE != 0);
                self.call(event, &Call::Rename { from, to, noreplace, exchange });
            }
            (Op::Link, _, Some(to)) if event.ofd().is_some() => {
                if let Some(from) = self.fd(event, paths) {
                    self.call(event, &Call::LinkFd { from, to });
                }
            }
            (Op::Link, Some(from), Some(to)) => {
                let follow = event.head.flags & flag::NOFOLLOW == 0;
                self.call(event, &Call::Link { from, to, follow });
            }
            _ => {}
        }
    }

    fn call(&mut self, event: &Event, call: &Call<'_>) {
        self.call_returning(event, call, event.head.ret);
    }

    fn call_returning(&mut self, event: &Event, call: &Call<'_>, ret: i64) {
        let out = Outcome { ret, errno: 0, dur_ns: 0, seen: None, unfinished: false };
        self.applied.tracker.call(TID, event.head.t_ns, None, b"", call, &out);
    }

    fn open(&mut self, event: &Event, at: At<'_>) {
        let Some(ofd) = event.ofd() else { return };
        let (number, _) = self.number(ofd);
        self.call_returning(event, &Call::Open { at, flags: event.head.flags, mode: event.mode() }, number.into());
    }

    fn close(&mut self, event: &Event) {
        let Some(ofd) = event.ofd().filter(|_| event.head.flags & flag::LAST != 0) else { return };
        if let Some(number) = self.descriptors.remove(&ofd) {
            self.call(event, &Call::Close { fd: Fd { number, seen: None } });
            self.free.push(number);
        }
    }

    /// A descriptor's number, and whether it is new.
    fn number(&mut self, ofd: OfdId) -> (i32, bool) {
        if let Some(&number) = self.descriptors.get(&ofd) {
            return (number, false);
        }
        let next = i32::try_from(self.descriptors.len() + self.free.len()).unwrap_or(i32::MAX);
        let number = self.free.pop().unwrap_or(next);
        self.descriptors.insert(ofd, number);
        (number, true)
    }

    /// The descriptor of a row's description.
    fn fd(&mut self, event: &Event, paths: &Paths) -> Option<Fd<'static>> {
        let number = self.known(event.ofd()?, event.path(), paths, event);
        Some(Fd { number, seen: None })
    }

    /// The number of a description. One that was open before the trace is made known by its path.
    fn known(&mut self, ofd: OfdId, path: Option<PathId>, paths: &Paths, event: &Event) -> i32 {
        let (number, new) = self.number(ofd);
        if let (true, Some(path)) = (new, path) {
            let mut raw = std::mem::take(&mut self.raw);
            raw.clear();
            for &byte in paths.get(path) {
                if byte == b'\\' {
                    raw.push(b'\\');
                }
                raw.push(byte);
            }
            let fd = Fd { number, seen: Some(Seen::Path { raw: &raw, deleted: false, who: None }) };
            self.call(event, &Call::OnFd { op: Op::Fcntl, fd, offset: None, len: None, mode: None });
            self.raw = raw;
        }
        number
    }

    fn seek(&mut self, event: &Event, paths: &Paths, to: Option<u64>) {
        if let (Some(ofd), Some(to)) = (event.ofd(), to.and_then(|to| i64::try_from(to).ok())) {
            let number = self.known(ofd, event.path(), paths, event);
            let seek = Call::Seek { fd: Fd { number, seen: None }, by: to, whence: 0 };
            self.call_returning(event, &seek, to);
        }
    }

    fn transfer(&mut self, event: &Event, paths: &Paths) {
        let positional = event.head.flags & flag::POSITIONAL != 0;
        if !positional {
            // The row knows where it was; rows in between that share the description may not have been told.
            self.seek(event, paths, event.offset());
        }
        let offset = event.offset().filter(|_| positional);
        let (write, len) = (event.op() == Op::Write, event.req_bytes());
        if let Some(fd) = self.fd(event, paths) {
            self.call(event, &Call::Transfer { write, fd, len, offset, sync: false, append: false });
        }
    }

    fn copy(&mut self, event: &Event, paths: &Paths) {
        let (Some(from), Some(to)) = (event.ofd(), event.ofd2()) else { return };
        let from = self.known(from, event.path(), paths, event);
        let to = self.known(to, event.path2(), paths, event);
        let copy = Call::Copy {
            from: Fd { number: from, seen: None },
            from_offset: event.offset(),
            to: Fd { number: to, seen: None },
            to_offset: event.offset2(),
            len: event.req_bytes(),
            reflink: event.head.flags & flag::SHARED != 0,
        };
        self.call(event, &copy);
    }
}

fn at(path: &[u8]) -> At<'_> {
    At { start: Start::Cwd(None), path: Some(Cow::Borrowed(path)) }
}
