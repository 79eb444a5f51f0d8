//! A workload profile of what a driver does in the laboratory: its calls with their virtual times, and the names it
//! found.
//!
//! [`Recorded`] stands between a benchmark and a file system. The recording begins where the benchmark empties the
//! caches, which is after it has made what it works on: what is there then is the snapshot. It ends where the benchmark
//! begins to look for what is left, to remove it. So the trace is of the timed calls alone, as one would be that
//! `fsage record` takes of the program.

use crate::ExperimentError;
use aging::snapshot::{TakeOptions, take};
use posix::{
    At, CacheDrop, CacheState, Call, Errno, Fd, FileKind, FileSystem, OpenFlags, Outcome, Process, Reply, Step,
};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::{io, mem};
use trace::profile::{Meta, Row, Writer, WriterOptions};
use trace::{Batch, Event, OfdId, Op, PathId, Snapshot, SnapshotEntry, flag};

/// The directory in which the recorded program works: the root of the file system, by another name.
const WORKING_DIRECTORY: &str = "/work";
/// The thread that calls outside [`FileSystem::run`].
const FIRST_THREAD: u32 = 1;

/// A file system that keeps what is asked of it.
pub(super) struct Recorded<F> {
    fs: F,
    log: Mutex<Log>,
    /// Names there when the recording began; `None` before.
    snapshot: Option<Snapshot>,
    runs: bool,
    /// Threads so far.
    threads: u32,
}

/// An open file.
#[derive(Clone, Copy)]
struct Description {
    ofd: OfdId,
    path: PathId,
    offset: u64,
    append: bool,
    size_bytes: u64,
}

/// A call that has begun.
struct Begun {
    row: Row,
    /// Its place in the order of beginnings.
    order: u64,
    fd: Option<Fd>,
    opens: Option<OpenFlags>,
}

#[derive(Default)]
struct Log {
    rows: Vec<(u64, Row)>,
    paths: trace::Paths,
    open: FxHashMap<Fd, Description>,
    /// Lengths of the files that were written, by path: where an appending write begins.
    sizes: FxHashMap<PathId, u64>,
    begun: u64,
    descriptions: u64,
}

impl<F: FileSystem> Recorded<F> {
    pub(super) fn new(fs: F) -> Recorded<F> {
        Recorded { fs, log: Mutex::default(), snapshot: None, runs: false, threads: FIRST_THREAD }
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        lock(&self.log)
    }

    /// From here on, with the names that there are.
    fn begin(&mut self) -> io::Result<()> {
        let options = TakeOptions { no_generations: true, ..TakeOptions::default() };
        let found = take(&mut self.fs, &options).map_err(io::Error::other)?;
        let entry = |(at, entry): (usize, &aging::snapshot::Entry)| {
            let path = match found.path(at).as_slice() {
                b"/" => WORKING_DIRECTORY.as_bytes().to_vec(),
                below => [WORKING_DIRECTORY.as_bytes(), below].concat(),
            };
            let inode = entry.inode;
            SnapshotEntry {
                size_bytes: inode.size_bytes,
                nlink: inode.nlink,
                ino: inode.ino,
                provenance: trace::Provenance::Before,
                ..SnapshotEntry::implied(path, inode.kind)
            }
        };
        let entries = found.entries().iter().enumerate().map(entry).collect();
        let snapshot = Snapshot::from_entries(entries);
        let mut log = Log::default();
        for entry in &snapshot.entries {
            let path = log.paths.intern(&entry.path);
            log.sizes.insert(path, entry.size_bytes);
        }
        *self.log() = log;
        self.snapshot = Some(snapshot);
        self.runs = true;
        Ok(())
    }

    /// Writes what was recorded as a profile.
    ///
    /// # Errors
    /// Nothing was recorded, or it cannot be written.
    pub(super) fn finish(self, profile: &Path, command: &str) -> Result<(), ExperimentError> {
        let Some(snapshot) = self.snapshot else {
            unreachable!("every benchmark that is recorded empties the caches when it begins");
        };
        let environment = self.fs.environment();
        let log = self.log.into_inner().unwrap_or_else(PoisonError::into_inner);
        let Log { mut rows, paths, .. } = log;
        rows.sort_by_key(|(order, row)| (row.t_ns, *order));
        let first_ns = rows.first().map_or(0, |(_, row)| row.t_ns);
        let last_ns = rows.iter().map(|(_, row)| row.t_ns + row.dur_ns).max().unwrap_or(first_ns);
        let events =
            (0_u64..).zip(rows).map(|(seq, (_, row))| Event::from(Row { seq, t_ns: row.t_ns - first_ns, ..row }));
        let batch = Batch { events: events.collect(), paths, schedule: Vec::new() };
        let mut writer = Writer::create(profile, WriterOptions::default())?;
        writer.push(&batch)?;
        let mut meta = Meta { coverage_share: Some(1.0), wall_ns: Some(last_ns - first_ns), ..Meta::default() };
        meta.tracer.name = "laboratory".to_owned();
        meta.clock = "virtual time, nanoseconds".to_owned();
        meta.host.cpu = environment.cpu;
        meta.host.cpus = environment.cpus;
        meta.host.memory_bytes = environment.memory_bytes;
        let working_directory = WORKING_DIRECTORY.to_owned();
        let command =
            trace::profile::Command { argv: vec![command.to_owned()], working_directory, ..Default::default() };
        meta.command = Some(command);
        meta.unmodelled = BTreeMap::new();
        writer.finish(meta, &snapshot)?;
        Ok(())
    }
}

fn lock(log: &Mutex<Log>) -> MutexGuard<'_, Log> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The flags of an open.
fn open_flags(flags: OpenFlags) -> u32 {
    let bits = [
        (flags.read, flag::READ),
        (flags.write, flag::WRITE),
        (flags.create, flag::CREATE),
        (flags.exclusive, flag::EXCL),
        (flags.truncate, flag::TRUNC),
        (flags.append, flag::APPEND),
        (flags.directory, flag::DIRECTORY),
        (flags.nofollow, flag::NOFOLLOW),
        (flags.direct, flag::DIRECT),
        (flags.sync, flag::SYNC),
        (flags.dsync, flag::DSYNC),
        (flags.path_only, flag::PATH_ONLY),
        (flags.tmpfile, flag::TMPFILE),
        (flags.noatime, flag::NOATIME),
    ];
    bits.into_iter().filter(|(set, _)| *set).fold(0, |all, (_, bit)| all | bit)
}

impl Log {
    fn path(&mut self, at: &At<'_>) -> PathId {
        assert!(at.dir.is_none(), "the benchmarks give paths from the working directory: {at:?}");
        let mut path = WORKING_DIRECTORY.as_bytes().to_vec();
        path.push(b'/');
        path.extend_from_slice(at.path.as_os_str().as_bytes());
        self.paths.intern(&path)
    }

    /// What a call asks, before it is made.
    fn begin(&mut self, thread: u32, call: &Call<'_>) -> Begun {
        let op = match call {
            Call::Open { .. } => Op::Open,
            Call::Close { .. } => Op::Close,
            Call::Read { .. } => Op::Read,
            Call::Write { .. } => Op::Write,
            Call::Seek { .. } => Op::Seek,
            Call::Fsync { .. } => Op::Fsync,
            Call::Fdatasync { .. } => Op::Fdatasync,
            Call::SyncFs => Op::Sync,
            Call::Stat { .. } => Op::Stat,
            Call::Fstat { .. } => Op::Fstat,
            Call::GetDents { .. } => Op::GetDents,
            Call::Mkdir { .. } => Op::Mkdir,
            Call::Rmdir { .. } => Op::Rmdir,
            Call::Unlink { .. } => Op::Unlink,
            Call::Rename { .. } => Op::Rename,
            _ => unreachable!("no benchmark that is recorded makes this call: {call:?}"),
        };
        let order = self.begun;
        self.begun += 1;
        let mut row = Row { pid: FIRST_THREAD, tid: thread, ..Row::new(0, 0, op) };
        let (mut fd, mut opens) = (None, None);
        let at = match call {
            Call::Open { at, flags, mode } => {
                (row.flags, row.mode, opens) = (open_flags(*flags), Some(mode.0), Some(*flags));
                Some(at)
            }
            Call::Mkdir { at, mode } => {
                row.mode = Some(mode.0);
                Some(at)
            }
            Call::Stat { at, follow } => {
                row.flags = if *follow { 0 } else { flag::NOFOLLOW };
                Some(at)
            }
            Call::Rmdir { at } | Call::Unlink { at } | Call::Rename { from: at, .. } => Some(at),
            Call::Close { fd: of } | Call::Fsync { fd: of } | Call::Fdatasync { fd: of } | Call::Fstat { fd: of } => {
                fd = Some(*of);
                None
            }
            Call::Seek { fd: of, .. } => {
                fd = Some(*of);
                None
            }
            Call::Read { fd: of, offset, len_bytes } | Call::Write { fd: of, offset, len_bytes, .. } => {
                (fd, row.offset, row.req_bytes) = (Some(*of), *offset, Some(*len_bytes));
                row.flags = if offset.is_some() { flag::POSITIONAL } else { 0 };
                None
            }
            Call::GetDents { fd: of, len_bytes } => {
                (fd, row.req_bytes) = (Some(*of), Some(*len_bytes));
                None
            }
            _ => None,
        };
        if let Some(at) = at {
            row.path = Some(self.path(at));
            row.caller_dir = Some(self.paths.intern(WORKING_DIRECTORY.as_bytes()));
        }
        if let Call::Rename { to, noreplace, exchange, .. } = call {
            assert!(!noreplace && !exchange, "the benchmarks rename plainly: {call:?}");
            (row.path2, row.caller_dir2) = (Some(self.path(to)), row.caller_dir);
        }
        if let Some(description) = fd.and_then(|fd| self.open.get(&fd)) {
            (row.ofd, row.path) = (Some(description.ofd), Some(description.path));
            if matches!(op, Op::Read | Op::Write) && row.offset.is_none() {
                let at_end = description.append && op == Op::Write;
                row.offset = Some(if at_end { description.size_bytes } else { description.offset });
            }
        }
        if op == Op::Close {
            row.flags |= flag::LAST;
        }
        Begun { row, order, fd, opens }
    }

    /// What came of it.
    fn end(&mut self, begun: Begun, outcome: &Outcome) {
        let Begun { mut row, order, fd, opens } = begun;
        (row.t_ns, row.dur_ns) = (outcome.start_ns, outcome.dur_ns);
        match outcome.result {
            Err(errno) => (row.errno, row.ret) = (errno.0, -1),
            Ok(reply) => {
                row.ret = match reply {
                    Reply::Count(n) => i64::try_from(n).unwrap_or(i64::MAX),
                    Reply::Fd(fd) => i64::from(fd.0),
                    Reply::Done | Reply::Stat(_) | Reply::Residency(_) => 0,
                };
                self.effect(&mut row, fd, opens, reply);
            }
        }
        self.rows.push((order, row));
    }

    fn effect(&mut self, row: &mut Row, fd: Option<Fd>, opens: Option<OpenFlags>, reply: Reply) {
        if let (Reply::Fd(fd), Some(flags), Some(path)) = (reply, opens, row.path) {
            self.descriptions += 1;
            let ofd = OfdId(self.descriptions);
            let size_bytes = if flags.truncate { 0 } else { self.sizes.get(&path).copied().unwrap_or(0) };
            row.ofd = Some(ofd);
            self.open.insert(fd, Description { ofd, path, offset: 0, append: flags.append, size_bytes });
            return;
        }
        if row.op == Op::Close {
            if let Some(closed) = fd.and_then(|fd| self.open.remove(&fd)) {
                self.sizes.insert(closed.path, closed.size_bytes);
            }
            return;
        }
        let moved = u64::try_from(row.ret).unwrap_or(0);
        if let Some(description) = fd.and_then(|fd| self.open.get_mut(&fd)) {
            let end = row.offset.unwrap_or(0) + moved;
            match row.op {
                Op::Read | Op::Write => {
                    if row.flags & flag::POSITIONAL == 0 {
                        description.offset = end;
                    }
                    if row.op == Op::Write {
                        description.size_bytes = description.size_bytes.max(end);
                    }
                }
                Op::Seek => description.offset = moved,
                _ => {}
            }
        }
        if let (Op::Rename, Some(from), Some(to)) = (row.op, row.path, row.path2)
            && let Some(size_bytes) = self.sizes.remove(&from)
        {
            self.sizes.insert(to, size_bytes);
        }
        if let (Op::Unlink, Some(path)) = (row.op, row.path) {
            self.sizes.remove(&path);
        }
    }
}

/// A process whose calls are kept.
struct Kept<'p> {
    process: Box<dyn Process + 'p>,
    log: &'p Mutex<Log>,
    thread: u32,
    begun: Option<Begun>,
}

impl Process for Kept<'_> {
    fn next(&mut self, last: Option<&Outcome>) -> Step<'_> {
        if let (Some(outcome), Some(begun)) = (last, self.begun.take()) {
            lock(self.log).end(begun, outcome);
        }
        let step = self.process.next(last);
        if let Step::Call(call) = &step {
            self.begun = Some(lock(self.log).begin(self.thread, call));
        }
        step
    }
}

impl<F: FileSystem> FileSystem for Recorded<F> {
    fn call(&mut self, call: &Call<'_>) -> Outcome {
        if !self.runs {
            return self.fs.call(call);
        }
        let begun = self.log().begin(FIRST_THREAD, call);
        let outcome = self.fs.call(call);
        self.log().end(begun, &outcome);
        outcome
    }

    fn run(&mut self, processes: Vec<Box<dyn Process + '_>>) -> io::Result<()> {
        if !self.runs {
            return self.fs.run(processes);
        }
        let first = self.threads + 1;
        self.threads += processes.len() as u32;
        let log = &self.log;
        let kept = (first..)
            .zip(processes)
            .map(|(thread, process)| Box::new(Kept { process, log, thread, begun: None }) as Box<dyn Process + '_>);
        self.fs.run(kept.collect())
    }

    /// Nobody lists names without time passing but the benchmark that removes what it has made.
    fn entries(&mut self, fd: Fd) -> Result<Vec<(OsString, FileKind)>, Errno> {
        if mem::take(&mut self.runs) {
            // The directory was opened for it.
            let opened = self.log().rows.pop();
            assert!(
                opened.is_some_and(|(_, row)| row.op == Op::Open && row.ret == i64::from(fd.0)),
                "what is listed was opened just before"
            );
        }
        self.fs.entries(fd)
    }

    fn drop_caches(&mut self) -> io::Result<CacheState> {
        self.begin()?;
        self.fs.drop_caches()
    }

    fn drop_caches_explained(&mut self) -> io::Result<CacheDrop> {
        self.begin()?;
        self.fs.drop_caches_explained()
    }

    posix::delegate! { |me| me.fs =>
        now_ns, date_ns, pause_ns, contained, read_into, usage, extents, free_extents, environment, is_deterministic,
        shape, memory
    }
}
