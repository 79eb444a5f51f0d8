//! A profile's rows applied to its snapshot.
//!
//! Rows become calls again and go to a [`Tracker`] that starts from the snapshot. One thread stands for all, with one
//! table: open file descriptions have numbers of their own in a profile, and rows hold absolute paths.

use crate::profile::Reader;
use crate::track::{At, Call, Fd, Kind, Outcome, Seen, Start, TrackOptions, Tracker};
use crate::{Batch, Call as Asked, Event, FileId, OfdId, Op, Opened, PathId, Paths, Provenance, Range, Via, flag};
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
        let (whole, second) = match &event.call {
            Asked::GetDents { .. } | Asked::Chdir(_) | Asked::Fchdir(_) | Asked::Mkdir { .. } | Asked::Rmdir(_) => {
                (true, None)
            }
            // What a link holds is no path of the call's.
            Asked::Symlink { .. } => (false, None),
            _ => (false, event.path2()),
        };
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
        if self.change(event, paths).is_none() {
            self.applied.without_path += 1;
        }
    }

    /// Makes a row's change; `None` where it lacks a path for that.
    fn change(&mut self, event: &Event, paths: &Paths) -> Option<()> {
        let place = |id: Option<PathId>| id.map(|id| at(paths.get(id)));
        let has = |bit: u32| event.head.flags & bit != 0;
        match &event.call {
            Asked::Open { at, ofd, mode } => self.open(event, place(at.path)?, *ofd, *mode),
            Asked::Close(of) => self.close(event, of),
            Asked::Read(range) => self.transfer(event, range, false, paths),
            Asked::Write(range) => self.transfer(event, range, true, paths),
            Asked::Seek(of) => self.seek(event, of, paths, u64::try_from(event.head.ret).ok()),
            Asked::Truncate { at, len } => {
                self.call(event, &Call::Truncate { at: place(at.path)?, len: len.unwrap_or(0) });
            }
            Asked::Ftruncate { of, len } => {
                if let Some(fd) = self.fd(event, of, paths) {
                    self.call(event, &Call::Ftruncate { fd, len: len.unwrap_or(0) });
                }
            }
            Asked::Fallocate(range) => {
                if let Some(fd) = self.fd(event, &range.of, paths) {
                    let (offset, len) = (range.offset.unwrap_or(0), range.bytes.unwrap_or(0));
                    self.call(event, &Call::Fallocate { fd, mode: event.head.flags >> flag::SUB_SHIFT, offset, len });
                }
            }
            Asked::Copy { from, offset, to, bytes } => {
                let (Some(ofd), Some(ofd2)) = (from.ofd, to.ofd) else { return Some(()) };
                let copy = Call::Copy {
                    from: Fd { number: self.known(ofd, from.path, paths, event), seen: None },
                    from_offset: *offset,
                    to: Fd { number: self.known(ofd2, to.path, paths, event), seen: None },
                    to_offset: to.offset,
                    len: *bytes,
                    reflink: has(flag::SHARED),
                };
                self.call(event, &copy);
            }
            Asked::Mkdir { at, mode } => self.call(event, &Call::Mkdir { at: place(at.path)?, mode: *mode }),
            Asked::Mknod { at, .. } if has(flag::BOUND) => self.call(event, &Call::Bind { at: place(at.path)? }),
            // A row does not tell what mknod made.
            Asked::Mknod { at, mode } => {
                self.call(event, &Call::Mknod { at: place(at.path)?, kind: Kind::Unknown, mode: *mode });
            }
            Asked::Symlink { at, target } => {
                let target = target.map(|id| Cow::Borrowed(paths.get(id)));
                self.call(event, &Call::Symlink { target, at: place(at.path)? });
            }
            Asked::Rmdir(at) => self.call(event, &Call::Rmdir { at: place(at.path)? }),
            Asked::Unlink(at) => self.call(event, &Call::Unlink { at: place(at.path)? }),
            Asked::Rename { from, to } => {
                let (from, to) = (place(from.path)?, place(to.path)?);
                let (noreplace, exchange) = (has(flag::NOREPLACE), has(flag::EXCHANGE));
                self.call(event, &Call::Rename { from, to, noreplace, exchange });
            }
            Asked::Link { from, to } => match from.via {
                Via::Ofd(ofd) => {
                    let to = place(to.path)?;
                    let from = Fd { number: self.known(ofd, from.path, paths, event), seen: None };
                    self.call(event, &Call::LinkFd { from, to });
                }
                Via::Path | Via::Dir(_) => {
                    let (from, to) = (place(from.path)?, place(to.path)?);
                    self.call(event, &Call::Link { from, to, follow: !has(flag::NOFOLLOW) });
                }
            },
            _ => {}
        }
        Some(())
    }

    fn call(&mut self, event: &Event, call: &Call<'_>) {
        self.call_returning(event, call, event.head.ret);
    }

    fn call_returning(&mut self, event: &Event, call: &Call<'_>, ret: i64) {
        let out = Outcome { ret, errno: 0, dur_ns: 0, seen: None, unfinished: false };
        self.applied.tracker.call(TID, event.head.t_ns, None, b"", call, &out);
    }

    fn open(&mut self, event: &Event, at: At<'_>, ofd: Option<OfdId>, mode: Option<u16>) {
        let Some(ofd) = ofd else { return };
        let (number, _) = self.number(ofd);
        self.call_returning(event, &Call::Open { at, flags: event.head.flags, mode }, number.into());
    }

    fn close(&mut self, event: &Event, of: &Opened) {
        let Some(ofd) = of.ofd.filter(|_| event.head.flags & flag::LAST != 0) else { return };
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
    fn fd(&mut self, event: &Event, of: &Opened, paths: &Paths) -> Option<Fd<'static>> {
        let number = self.known(of.ofd?, of.path, paths, event);
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

    fn seek(&mut self, event: &Event, of: &Opened, paths: &Paths, to: Option<u64>) {
        if let (Some(ofd), Some(to)) = (of.ofd, to.and_then(|to| i64::try_from(to).ok())) {
            let number = self.known(ofd, of.path, paths, event);
            let seek = Call::Seek { fd: Fd { number, seen: None }, by: to, whence: 0 };
            self.call_returning(event, &seek, to);
        }
    }

    fn transfer(&mut self, event: &Event, range: &Range, write: bool, paths: &Paths) {
        let positional = event.head.flags & flag::POSITIONAL != 0;
        if !positional {
            // The row knows where it was; rows in between that share the description may not have been told.
            self.seek(event, &range.of, paths, range.offset);
        }
        let (offset, len) = (range.offset.filter(|_| positional), range.bytes);
        if let Some(fd) = self.fd(event, &range.of, paths) {
            self.call(event, &Call::Transfer { write, fd, len, offset, sync: false, append: false });
        }
    }
}

fn at(path: &[u8]) -> At<'_> {
    At { start: Start::Cwd(None), path: Some(Cow::Borrowed(path)) }
}
