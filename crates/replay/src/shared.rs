//! What the lanes of a replay share: the trace as it is read, the order of calls, descriptors and directories.
//!
//! Whoever runs out of calls reads on, between its own calls and never inside a timed one. At most [`WINDOW`] calls
//! wait in the queues, so memory is bounded; a lane that has none left while the window is full waits for the others,
//! and the earliest call waiting can always run, so they get on.

use super::observed::{ObservationFile, Run};
use super::order::Order;
use super::tally::Tally;
use super::{Pace, Progress, ReplayError, Stage, Threads};
use posix::Fd;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use trace::disposition::{Skip, disposition};
use trace::{Batch, Event, OfdId};

/// Calls read ahead of the slowest lane.
const WINDOW: usize = 256 * 1024;
/// Directories kept open for walks that start in them.
const DIRECTORIES_MAX: usize = 512;

/// One call to make.
#[derive(Debug)]
pub(super) struct Job {
    pub batch: Arc<Batch>,
    /// Which of the batch's events it is.
    at: usize,
    /// Ranks to be completed before it may start.
    pub needs: u64,
    /// How long it waited in the trace after the last call that had completed.
    pub think_ns: u64,
}

impl Job {
    /// The call as traced.
    pub fn event(&self) -> &Event {
        &self.batch.events[self.at]
    }
}

/// What a lane gets when it asks for its next call.
#[derive(Debug)]
pub(super) enum Fetched {
    Job(Box<Job>),
    /// Others must get on first. `read`: more of the trace was read for them just now.
    Wait {
        read: bool,
    },
    End,
}

/// A description of the trace in the replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slot {
    /// `writes`: opened for writing.
    Open { fd: Fd, writes: bool },
    /// Its open failed here although it succeeded in the trace.
    Lost,
}

/// The batches of a trace, in order.
pub type Source<'a> = Box<dyn Iterator<Item = Result<Batch, ReplayError>> + Send + 'a>;
pub(super) type Report<'a> = &'a mut (dyn FnMut(Progress) + Send);

/// What does not change during a replay.
#[derive(Debug)]
pub(super) struct Fixed<'a> {
    pub root: Fd,
    /// Permission bits that are given.
    pub modes: u16,
    pub pace: Pace,
    pub lanes: usize,
    pub threads: Threads,
    pub issued: u64,
    pub last_use: &'a FxHashMap<OfdId, u64>,
    pub last_of_thread: &'a FxHashMap<u32, u64>,
    pub modes_of_directories: &'a FxHashSet<u64>,
    pub named_later: &'a FxHashSet<OfdId>,
    pub off_path: &'a FxHashSet<u64>,
    /// Where what is seen of each call goes, if that is wanted.
    pub observed: Option<&'a ObservationFile>,
}

/// The room the lanes share.
pub(super) struct Shared<'a> {
    pub fixed: Fixed<'a>,
    inner: Mutex<Inner<'a>>,
    stopping: AtomicBool,
    calls: AtomicU64,
    in_flight: AtomicU32,
}

pub(super) struct Inner<'a> {
    source: Source<'a>,
    report: Report<'a>,
    ended: bool,
    queues: Vec<VecDeque<Job>>,
    queued: usize,
    produced: u64,
    pub order: Order,
    lanes: Lanes,
    pub descriptors: FxHashMap<OfdId, Slot>,
    pub directories: Directories,
    /// The directories of names that stand in for none (`O_TMPFILE` where the target lacks it), opened as locations.
    pub stand_ins: FxHashMap<OfdId, Fd>,
    skipped: BTreeMap<Skip, u64>,
    error: Option<ReplayError>,
    tallies: Vec<Tally>,
    observed: Vec<Run>,
}

/// What is left when all lanes have ended.
pub(super) struct Remains {
    pub error: Option<ReplayError>,
    pub tallies: Vec<Tally>,
    pub observed: Vec<Run>,
    pub skipped: BTreeMap<Skip, u64>,
    pub open: Vec<Fd>,
    pub calls: u64,
}

impl<'a> Shared<'a> {
    pub fn new(fixed: Fixed<'a>, source: Source<'a>, report: Report<'a>) -> Shared<'a> {
        let lanes = Lanes::new(fixed.threads, fixed.lanes);
        let inner = Inner {
            source,
            report,
            ended: false,
            queues: std::iter::repeat_with(VecDeque::new).take(fixed.lanes).collect(),
            queued: 0,
            produced: 0,
            order: Order::default(),
            lanes,
            descriptors: FxHashMap::default(),
            directories: Directories::default(),
            stand_ins: FxHashMap::default(),
            skipped: BTreeMap::new(),
            error: None,
            tallies: Vec::new(),
            observed: Vec::new(),
        };
        Shared {
            fixed,
            inner: Mutex::new(inner),
            stopping: AtomicBool::new(false),
            calls: AtomicU64::new(0),
            in_flight: AtomicU32::new(0),
        }
    }

    pub fn lock(&self) -> MutexGuard<'_, Inner<'a>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Ends the replay at the next step of every lane; the first reason given stands.
    pub fn stop(&self, why: ReplayError) {
        self.lock().error.get_or_insert(why);
        self.stopping.store(true, Ordering::Relaxed);
    }

    pub fn count_call(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
    }

    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// A traced call is about to be made; how many are under way with it.
    pub fn enter(&self) -> u32 {
        self.in_flight.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// It has returned.
    pub fn leave(&self) {
        let before = self.in_flight.fetch_sub(1, Ordering::Relaxed);
        assert!(before > 0, "only a call that was made returns");
    }

    /// The next call of a lane.
    pub fn fetch(&self, lane: usize) -> Fetched {
        let mut inner = self.lock();
        let mut read = false;
        loop {
            if let Some(job) = inner.queues.get_mut(lane).and_then(VecDeque::pop_front) {
                inner.queued -= 1;
                return Fetched::Job(Box::new(job));
            }
            if inner.ended || self.stopping() {
                return Fetched::End;
            }
            if inner.queued >= WINDOW {
                return Fetched::Wait { read };
            }
            read = true;
            if let Err(error) = inner.read_on(&self.fixed) {
                inner.ended = true;
                inner.error.get_or_insert(error);
                self.stopping.store(true, Ordering::Relaxed);
            }
        }
    }

    pub fn hand_in(&self, tally: Tally, observed: Option<Run>) {
        let mut inner = self.lock();
        inner.tallies.push(tally);
        inner.observed.extend(observed);
    }

    pub fn finish(self) -> Remains {
        let inner = self.inner.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut open: Vec<Fd> = inner.directories.by_fd.keys().copied().collect();
        open.extend(inner.descriptors.values().filter_map(|slot| match slot {
            Slot::Open { fd, .. } => Some(*fd),
            Slot::Lost => None,
        }));
        open.extend(inner.stand_ins.values());
        open.sort_by_key(|fd| fd.0);
        Remains {
            error: inner.error,
            tallies: inner.tallies,
            observed: inner.observed,
            skipped: inner.skipped,
            open,
            calls: self.calls.into_inner(),
        }
    }
}

impl Inner<'_> {
    /// Reads one more batch and deals its calls out to the lanes.
    fn read_on(&mut self, fixed: &Fixed<'_>) -> Result<(), ReplayError> {
        let Some(batch) = self.source.next().transpose()? else {
            self.ended = true;
            return Ok(());
        };
        let batch = Arc::new(batch);
        for (at, event) in batch.events.iter().enumerate() {
            if let Err(why) = disposition(event) {
                *self.skipped.entry(why).or_default() += 1;
                continue;
            }
            self.produced += 1;
            let end_ns = event.head.t_ns.saturating_add(event.head.dur_ns);
            let needs = self.order.produce(event.head.seq, event.head.t_ns, end_ns);
            if fixed.lanes == 1 {
                // Program order is all the order there is.
                self.order.complete(event.head.seq);
            }
            let think_ns = self.order.idle_before(event.head.t_ns);
            let lane = self.lanes.assign(event, end_ns, fixed.last_of_thread);
            if let Some(queue) = self.queues.get_mut(lane) {
                queue.push_back(Job { batch: Arc::clone(&batch), at, needs, think_ns });
                self.queued += 1;
            }
        }
        (self.report)(Progress { stage: Stage::Replay, done: self.produced, total: Some(fixed.issued) });
        Ok(())
    }
}

/// Which lane makes which thread's calls. Deterministic: decided from the trace's times alone.
#[derive(Debug)]
struct Lanes {
    how: Threads,
    /// When the last call given to each lane ended in the trace.
    busy_until_ns: Vec<u64>,
    /// The lane of each thread's last call, and that call's end.
    of_thread: FxHashMap<u32, (usize, u64)>,
    /// Lanes that no living thread has (for [`Threads::Keep`]).
    free: Vec<usize>,
}

impl Lanes {
    fn new(how: Threads, lanes: usize) -> Lanes {
        Lanes { how, busy_until_ns: vec![0; lanes], of_thread: FxHashMap::default(), free: (0..lanes).rev().collect() }
    }

    fn assign(&mut self, e: &Event, end_ns: u64, last_of_thread: &FxHashMap<u32, u64>) -> usize {
        let before = self.of_thread.get(&e.head.tid).copied();
        let lane = match (self.how, before) {
            _ if self.busy_until_ns.len() <= 1 => 0,
            // A thread's calls never overlap each other; where clocks say so, program order stands.
            (_, Some((lane, end))) if end > e.head.t_ns => lane,
            (Threads::Keep, Some((lane, _))) => lane,
            (Threads::Keep, None) => self.free.pop().unwrap_or(0),
            (_, before) => self.idle_lane(before.map(|(lane, _)| lane), e.head.t_ns),
        };
        if let Some(busy) = self.busy_until_ns.get_mut(lane) {
            *busy = end_ns.max(*busy);
        }
        if last_of_thread.get(&e.head.tid) == Some(&e.head.seq) {
            self.of_thread.remove(&e.head.tid);
            self.free.push(lane);
        } else {
            self.of_thread.insert(e.head.tid, (lane, end_ns));
        }
        lane
    }

    /// The thread's own lane if it is idle, else the first idle one, else the one that is idle soonest.
    fn idle_lane(&self, own: Option<usize>, now_ns: u64) -> usize {
        if let Some(own) = own.filter(|&l| self.busy_until_ns.get(l).is_some_and(|&b| b <= now_ns)) {
            return own;
        }
        let idle = self.busy_until_ns.iter().position(|&b| b <= now_ns);
        idle.or_else(|| (0..self.busy_until_ns.len()).min_by_key(|&l| self.busy_until_ns[l])).unwrap_or(0)
    }
}

/// Directories that traced walks start in, opened as locations. A descriptor follows its directory through
/// renames; what a path means afterwards is looked up anew.
#[derive(Debug, Default)]
pub(super) struct Directories {
    by_path: FxHashMap<Box<[u8]>, Fd>,
    by_fd: FxHashMap<Fd, Directory>,
    clock: u64,
}

#[derive(Debug)]
struct Directory {
    /// `None` once the path means something else.
    path: Option<Box<[u8]>>,
    users: u32,
    used: u64,
}

impl Directories {
    /// The descriptor of a directory, to be given back with [`release`](Directories::release).
    pub fn acquire(&mut self, path: &[u8]) -> Option<Fd> {
        let fd = *self.by_path.get(path)?;
        let directory = self.by_fd.get_mut(&fd)?;
        self.clock += 1;
        directory.used = self.clock;
        directory.users += 1;
        Some(fd)
    }

    /// Takes up a directory just opened, which the caller holds; answers the descriptor to use, and those to close.
    pub fn insert(&mut self, path: &[u8], fd: Fd) -> (Fd, Option<Fd>) {
        if let Some(there) = self.acquire(path) {
            return (there, Some(fd));
        }
        let evicted = self.evict();
        self.clock += 1;
        self.by_path.insert(path.into(), fd);
        self.by_fd.insert(fd, Directory { path: Some(path.into()), users: 1, used: self.clock });
        (fd, evicted)
    }

    fn evict(&mut self) -> Option<Fd> {
        if self.by_path.len() < DIRECTORIES_MAX {
            return None;
        }
        let idle = self.by_fd.iter().filter(|(_, d)| d.users == 0 && d.path.is_some());
        let fd = idle.min_by_key(|(_, d)| d.used).map(|(fd, _)| *fd)?;
        if let Some(path) = self.by_fd.remove(&fd).and_then(|d| d.path) {
            self.by_path.remove(&path);
        }
        Some(fd)
    }

    /// Gives a descriptor back; answers it if it is to be closed now.
    pub fn release(&mut self, fd: Fd) -> Option<Fd> {
        let directory = self.by_fd.get_mut(&fd)?;
        directory.users = directory.users.saturating_sub(1);
        if directory.users == 0 && directory.path.is_none() {
            self.by_fd.remove(&fd);
            return Some(fd);
        }
        None
    }

    /// Forgets a path and all below it; appends what is to be closed now.
    pub fn invalidate(&mut self, path: &[u8], close: &mut Vec<Fd>) {
        let path = normal(path);
        let below = |p: &[u8]| {
            p.strip_prefix(path.as_slice()).is_some_and(|rest| rest.is_empty() || rest[0] == b'/' || path == b"/")
        };
        let mut gone: Vec<Fd> = self.by_path.iter().filter(|(p, _)| below(p)).map(|(_, fd)| *fd).collect();
        gone.sort_by_key(|fd| fd.0);
        for fd in gone {
            let Some(directory) = self.by_fd.get_mut(&fd) else { continue };
            if let Some(path) = directory.path.take() {
                self.by_path.remove(&path);
            }
            if directory.users == 0 {
                self.by_fd.remove(&fd);
                close.push(fd);
            }
        }
    }
}

/// An absolute path without `.`, `..` and repeated slashes, by its letters.
fn normal(path: &[u8]) -> Vec<u8> {
    let mut parts: Vec<&[u8]> = Vec::new();
    for component in trace::tree::components(path) {
        match component {
            b"." => {}
            b".." => {
                parts.pop();
            }
            _ => parts.push(component),
        }
    }
    let mut out = Vec::with_capacity(path.len());
    for part in parts {
        out.push(b'/');
        out.extend_from_slice(part);
    }
    if out.is_empty() {
        out.push(b'/');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::event;
    use trace::Op;
    use trace::profile::Row;

    #[test]
    fn a_renamed_directory_is_looked_up_anew() {
        let mut d = Directories::default();
        assert_eq!(d.insert(b"/a/b", Fd(5)), (Fd(5), None));
        assert_eq!(d.insert(b"/a/bc", Fd(6)), (Fd(6), None));
        let mut close = Vec::new();
        d.release(Fd(6));
        d.invalidate(b"/a/./b/", &mut close);
        assert_eq!((d.acquire(b"/a/b"), d.acquire(b"/a/bc")), (None, Some(Fd(6))));
        assert!(close.is_empty(), "still in use");
        assert_eq!(d.release(Fd(5)), Some(Fd(5)));
        d.release(Fd(6));
        d.invalidate(b"/a", &mut close);
        assert_eq!(close, [Fd(6)]);
    }

    #[test]
    fn few_directories_stay_open() {
        let mut d = Directories::default();
        for i in 0..2 * DIRECTORIES_MAX {
            let fd = Fd(u32::try_from(i).unwrap());
            d.insert(format!("/{i}").as_bytes(), fd);
            d.release(fd);
        }
        assert!(d.by_fd.len() <= DIRECTORIES_MAX);
    }

    #[test]
    fn lanes_follow_the_overlap_of_calls() {
        let last = FxHashMap::from_iter([(1, 2), (2, 1)]);
        let mut lanes = Lanes::new(Threads::Auto, 2);
        let at = |tid, seq, t_ns| Row { tid, seq, t_ns, ..event(Op::Stat) }.into();
        let first = lanes.assign(&at(1, 0, 0), 10, &last);
        let overlapping = lanes.assign(&at(2, 1, 5), 7, &last);
        assert_ne!(first, overlapping);
        assert_eq!(lanes.assign(&at(1, 2, 20), 30, &last), first, "a thread stays where it is");
    }
}
