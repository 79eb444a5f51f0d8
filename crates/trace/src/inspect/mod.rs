//! What is in a trace: the statistics behind `fsage inspect`, from one pass over the events.
//!
//! What lives here: counting. What may not: rendering (that is the report's) and anything that prices a call. Memory is
//! bounded by the live files and by [`InspectOptions::reuse_blocks_max`].

mod files;
mod histogram;
mod latency;
mod lifetimes;
mod locality;
mod names;
mod operations;
mod reuse;
mod threads;

pub use files::FileUse;
pub use histogram::{Bar, Distribution};
pub use latency::{Latencies, Latency, Spent, latencies};
pub use lifetimes::{DataLifetimes, EndedWithin};
pub use locality::{Requests, Sequentiality};
pub use names::SnapshotStatistics;
pub use operations::{Failure, OperationRow};
pub use reuse::{DistanceBar, MissRatio, ReuseDistances};
pub use threads::ThreadTime;

use crate::profile::{Durations, Reader, Unparsed, Unseen};
use crate::{Batch, Call, Event, Op, PathId, Snapshot, flag};
use columnar::FileError;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// What to count.
#[derive(Clone, Copy, Debug)]
pub struct InspectOptions {
    /// Block size of the reuse distances, bytes.
    pub block_bytes: u64,
    /// Blocks followed at most; beyond, a sample of them is followed.
    pub reuse_blocks_max: usize,
}

impl Default for InspectOptions {
    fn default() -> Self {
        InspectOptions { block_bytes: 4096, reuse_blocks_max: reuse::BLOCKS_MAX }
    }
}

/// The statistics of a workload profile.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Inspection {
    /// Calls in the trace.
    pub calls: u64,
    /// Calls on files that are not modelled (pipes, sockets, /proc, ...); counted in `operations` and nowhere else.
    pub foreign_calls: u64,
    /// Calls that never returned in the trace.
    pub unfinished_calls: u64,
    /// Processes and threads that called.
    pub processes: u64,
    #[allow(missing_docs)]
    pub threads: u64,
    /// From the start of the first call to the end of the last, nanoseconds.
    pub span_ns: u64,
    /// Sum of the calls' traced durations, nanoseconds.
    pub traced_ns: u64,
    /// How far durations are the calls' own.
    pub durations: Durations,
    /// Where the time of all threads together went; `None` where the tracer cannot tell.
    pub thread_time: Option<ThreadTime>,
    /// The operation mix, most frequent first.
    pub operations: Vec<OperationRow>,
    /// Failed calls by operation and error, most frequent first.
    pub failures: Vec<Failure>,
    /// Reads.
    pub reads: Requests,
    /// Writes.
    pub writes: Requests,
    /// Bytes copied inside the kernel (copy_file_range, sendfile, splice).
    pub copied_bytes: u64,
    /// Reuse of blocks by reads and writes, and the miss ratios of caches.
    pub reuse: ReuseDistances,
    /// Estimated bytes of distinct blocks touched.
    pub working_set_bytes: f64,
    /// How long what was written lasts.
    pub data_lifetimes: DataLifetimes,
    /// Files and directories.
    pub files: FileUse,
    /// The names that were there before.
    pub snapshot: SnapshotStatistics,
    /// What the trace does not show.
    pub coverage: Coverage,
}

/// What the trace does not show, as its `meta.json` states it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Coverage {
    /// Share of the file system activity that the events stand for.
    pub share: Option<f64>,
    /// Activity a call trace cannot show.
    pub unseen: Unseen,
    /// Calls seen and not modelled, by name.
    pub unmodelled: BTreeMap<String, u64>,
    /// Lines not understood.
    pub unparsed: Unparsed,
    /// Events the tracer lost.
    pub lost_events: u64,
}

/// Counts a whole profile.
///
/// # Errors
/// What reading finds wrong.
pub fn inspect(reader: &Reader, options: &InspectOptions) -> Result<Inspection, FileError> {
    let snapshot = reader.snapshot()?;
    let mut counting = Counting::new(&snapshot, options);
    let mut batches = reader.batches()?;
    let mut batch = Batch::default();
    while batches.next_into(&mut batch)? {
        counting.add(&batch);
    }
    let meta = reader.meta();
    let coverage = Coverage {
        share: meta.coverage_share,
        unseen: meta.unseen.clone(),
        unmodelled: meta.unmodelled.clone(),
        unparsed: meta.unparsed.clone(),
        lost_events: meta.lost_events,
    };
    let calls = std::mem::take(&mut counting.thread_calls);
    let thread_time = reader.schedule()?.map(|turns| calls.finish(&turns));
    Ok(Inspection { thread_time, ..counting.finish(coverage, meta.durations()) })
}

struct Counting<'a> {
    snapshot: &'a Snapshot,
    operations: operations::Operations,
    reads: locality::Locality,
    writes: locality::Locality,
    reuse: reuse::Reuse,
    lifetimes: lifetimes::Lifetimes,
    files: files::Files,
    processes: BTreeSet<u32>,
    threads: BTreeSet<u32>,
    thread_calls: threads::Calls,
    last_thread: u32,
    span: Option<(u64, u64)>,
    foreign: u64,
    unfinished: u64,
    copied: u64,
}

/// What is worked out once per path and batch.
#[derive(Clone, Copy)]
struct PathFacts {
    components: u64,
    in_snapshot: Option<bool>,
}

impl<'a> Counting<'a> {
    fn new(snapshot: &'a Snapshot, options: &InspectOptions) -> Counting<'a> {
        Counting {
            snapshot,
            operations: operations::Operations::default(),
            reads: locality::Locality::default(),
            writes: locality::Locality::default(),
            reuse: reuse::Reuse::new(options.block_bytes, options.reuse_blocks_max),
            lifetimes: lifetimes::Lifetimes::default(),
            files: files::Files::default(),
            processes: BTreeSet::new(),
            threads: BTreeSet::new(),
            thread_calls: threads::Calls::default(),
            last_thread: u32::MAX,
            span: None,
            foreign: 0,
            unfinished: 0,
            copied: 0,
        }
    }

    fn add(&mut self, batch: &Batch) {
        let mut facts: Vec<Option<PathFacts>> = vec![None; batch.paths.len()];
        for event in &batch.events {
            self.reads.forget(event);
            self.writes.forget(event);
            if event.head.flags & flag::IMPLIED == 0 {
                self.count_call(event);
            }
            if event.head.flags & flag::FOREIGN == 0 {
                self.count_files(event, batch, &mut facts);
                self.count_data(event);
            }
        }
    }

    fn count_call(&mut self, event: &Event) {
        self.operations.add(event);
        self.thread_calls.add(event);
        self.foreign += u64::from(event.head.flags & flag::FOREIGN != 0);
        self.unfinished += u64::from(event.head.flags & flag::UNFINISHED != 0);
        if event.head.tid != self.last_thread {
            self.last_thread = event.head.tid;
            self.threads.insert(event.head.tid);
            self.processes.insert(event.head.pid);
        }
        let end = event.head.t_ns.saturating_add(event.head.dur_ns);
        let (from, to) = self.span.unwrap_or((event.head.t_ns, end));
        self.span = Some((from.min(event.head.t_ns), to.max(end)));
    }

    fn count_files(&mut self, event: &Event, batch: &Batch, facts: &mut [Option<PathFacts>]) {
        let path = event.path().filter(|_| walks_path(event.op()));
        let known = path.map(|id| self.facts(id, batch, facts));
        let new_name = known.is_some_and(|f| f.in_snapshot == Some(false));
        let gone = self.files.add(event, known.map(|f| f.components), new_name);
        self.lifetimes.add(event, gone);
    }

    fn facts(&self, id: PathId, batch: &Batch, facts: &mut [Option<PathFacts>]) -> PathFacts {
        let slot = facts.get_mut(id.0 as usize);
        if let Some(Some(known)) = slot {
            return *known;
        }
        let path = batch.paths.get(id);
        let found = PathFacts {
            components: components(path),
            in_snapshot: plain(path).then(|| self.snapshot.get(path).is_some()),
        };
        if let Some(slot) = slot {
            *slot = Some(found);
        }
        found
    }

    fn count_data(&mut self, event: &Event) {
        if event.head.errno.is_some() || event.head.flags & flag::UNFINISHED != 0 {
            return;
        }
        let moved = u64::try_from(event.head.ret).unwrap_or(0);
        match &event.call {
            Call::Read(range) => self.reads.add(range, moved),
            Call::Write(range) => self.writes.add(range, moved),
            Call::Copy { .. } => self.copied = self.copied.saturating_add(moved),
            _ => return,
        }
        // No file is longer than its offsets reach; anything else is damage that must not cost hours.
        let end = event.offset().and_then(|o| o.checked_add(moved)).filter(|&end| i64::try_from(end).is_ok());
        if let (Some(file), Some(offset), Some(_)) = (event.file(), event.offset(), end) {
            self.reuse.range(file.0, offset, moved.min(RANGE_BYTES_MAX));
        }
    }

    fn finish(self, coverage: Coverage, durations: Durations) -> Inspection {
        let (operations, failures) = self.operations.finish();
        let reuse = self.reuse.finish();
        Inspection {
            calls: operations.iter().map(|o| o.calls).sum(),
            foreign_calls: self.foreign,
            unfinished_calls: self.unfinished,
            processes: self.processes.len() as u64,
            threads: self.threads.len() as u64,
            span_ns: self.span.map_or(0, |(from, to)| to - from),
            durations,
            thread_time: None,
            traced_ns: operations.iter().fold(0, |sum, o| sum.saturating_add(o.traced_ns)),
            operations,
            failures,
            reads: self.reads.finish(),
            writes: self.writes.finish(),
            copied_bytes: self.copied,
            working_set_bytes: reuse.first_touches * reuse.block_bytes as f64,
            reuse,
            data_lifetimes: self.lifetimes.finish(),
            files: self.files.finish(),
            snapshot: SnapshotStatistics::of(self.snapshot),
            coverage,
        }
    }
}

/// One call moves at most this (`MAX_RW_COUNT`, just below 2 GiB).
const RANGE_BYTES_MAX: u64 = 1 << 31;

/// Whether an operation names its file by a path that the kernel walks.
fn walks_path(op: Op) -> bool {
    matches!(
        op,
        Op::Open
            | Op::Truncate
            | Op::Stat
            | Op::StatFs
            | Op::Access
            | Op::ReadLink
            | Op::Mkdir
            | Op::Rmdir
            | Op::Unlink
            | Op::Rename
            | Op::Link
            | Op::Symlink
            | Op::Mknod
            | Op::Chmod
            | Op::Chown
            | Op::Utimens
            | Op::SetXattr
            | Op::GetXattr
            | Op::ListXattr
            | Op::RemoveXattr
            | Op::Chdir
            | Op::Exec
    )
}

fn components(path: &[u8]) -> u64 {
    path.split(|&b| b == b'/').filter(|c| !c.is_empty() && *c != b".").count() as u64
}

/// Whether a path is written as snapshots write it.
fn plain(path: &[u8]) -> bool {
    let odd = |c: &[u8]| c.is_empty() || c == b"." || c == b"..";
    path.strip_prefix(b"/").is_some_and(|rest| !rest.split(|&b| b == b'/').any(odd))
}
