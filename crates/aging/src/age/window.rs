//! A window: operations resolved to system calls' arguments, to be performed by several writers before anything is
//! decided again.
//!
//! The scheme. Operations on one node all go to one writer (chosen by the node's number) and are performed in the
//! plan's order. Between nodes, order matters only through names: a directory must be there before names are made in
//! it, and empty before it is removed; a name must be free before it is taken again. A job that depends on such a thing
//! waits for the one job it follows from, or for all jobs before it; waiting is only ever for earlier jobs, so the
//! earliest unfinished job can always go on. Paths are written down when the window is made: a directory is therefore
//! renamed in a window of its own.

use super::options::DataMode;
use crate::{NodeId, OpKind};
use rustc_hash::FxHashMap;
use std::ffi::OsStr;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// What a job waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    Nothing,
    /// One earlier job.
    For(u32),
    /// All earlier jobs.
    ForAll,
}

/// One operation on the target.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub(super) kind: OpKind,
    pub(super) node: NodeId,
    /// The operation of the plan it comes from.
    pub(super) operation: u64,
    path: Range<u32>,
    /// The new path of `Rename`.
    to: Range<u32>,
    /// Where it begins in the file; of an append, where the file ends; of a truncation, the length before.
    pub(super) offset_bytes: u64,
    /// How many bytes; of a truncation, the length after.
    pub(super) len_bytes: u64,
    pub(super) wait: Wait,
}

impl Job {
    /// In messages: what was being done to a path.
    pub(super) fn doing(&self) -> &'static str {
        match self.kind {
            OpKind::Mkdir => "making directory",
            OpKind::Rmdir => "removing directory",
            OpKind::Create => "writing new file",
            OpKind::Symlink => "making symbolic link",
            OpKind::Append => "appending to",
            OpKind::Overwrite => "overwriting",
            OpKind::Truncate => "truncating",
            OpKind::PunchHole => "punching a hole into",
            OpKind::Rename => "renaming",
            OpKind::Fsync => "fsync of",
            OpKind::Read => "reading",
            OpKind::Delete => "deleting",
        }
    }

    /// Whether it works on the open file.
    pub(super) fn needs_open(&self) -> bool {
        !matches!(self.kind, OpKind::Mkdir | OpKind::Rmdir | OpKind::Symlink | OpKind::Rename | OpKind::Delete)
    }
}

/// Jobs in the plan's order, and who does them.
#[derive(Debug, Default)]
pub(super) struct Window {
    pub(super) jobs: Vec<Job>,
    /// Job numbers by writer.
    queues: Vec<Vec<u32>>,
    /// For each writer, the number of the job it is at: all its jobs before that are done.
    at: Vec<AtomicU32>,
    stopping: AtomicBool,
    /// Some job found the target full: what fails for want of a name may be a consequence.
    filled: AtomicBool,
    text: Vec<u8>,
    /// Directories made in this window, by job.
    made: FxHashMap<NodeId, u32>,
    /// Names freed in this window, by a hash of directory and name: the job that frees it. Two names of one hash cost a
    /// needless wait.
    freed: FxHashMap<u64, u32>,
    pub(super) data: DataMode,
    pub(super) chunk_bytes: u64,
    tolerant: AtomicBool,
}

impl Window {
    pub(super) fn new(writers: usize, data: DataMode, chunk_bytes: u64) -> Window {
        let mut window = Window { data, chunk_bytes: chunk_bytes.max(1), ..Window::default() };
        window.queues = vec![Vec::new(); writers.max(1)];
        window.at = (0..writers.max(1)).map(|_| AtomicU32::new(0)).collect();
        window
    }

    pub(super) fn clear(&mut self) {
        self.jobs.clear();
        self.queues.iter_mut().for_each(Vec::clear);
        self.text.clear();
        self.made.clear();
        self.freed.clear();
        for flag in [&self.tolerant, &self.stopping, &self.filled] {
            flag.store(false, Ordering::Relaxed);
        }
    }

    /// Some of its jobs once more, in order, for one writer.
    pub(super) fn again(&self, jobs: &[u32]) -> Window {
        let mut window = Window::new(1, self.data, self.chunk_bytes);
        for job in jobs.iter().filter_map(|number| self.jobs.get(*number as usize)) {
            let copy = |path: &Path| {
                let bytes = path.as_os_str().as_bytes().to_vec();
                move |out: &mut Vec<u8>| out.extend_from_slice(&bytes)
            };
            window.push(job.kind, job.node, job.operation, copy(self.path(job)), (job.offset_bytes, job.len_bytes));
            window.set_to(copy(self.to(job)));
        }
        window
    }

    pub(super) fn writers(&self) -> usize {
        self.queues.len()
    }

    pub(super) fn queue(&self, writer: usize) -> &[u32] {
        self.queues.get(writer).map_or(&[], Vec::as_slice)
    }

    fn writer_of(&self, node: NodeId) -> usize {
        // Fibonacci hashing spreads consecutive numbers; the remainder is smaller than the number of writers.
        let hashed = node.0.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        usize::try_from(hashed % self.queues.len().max(1) as u64).unwrap_or(0)
    }

    /// Adds a path's text: `write` appends it.
    fn text(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> Range<u32> {
        let start = self.text.len() as u32;
        write(&mut self.text);
        start..self.text.len() as u32
    }

    /// Adds a job; answers its number. `path` and `to` append the paths.
    pub(super) fn push(
        &mut self,
        kind: OpKind,
        node: NodeId,
        operation: u64,
        path: impl FnOnce(&mut Vec<u8>),
        range: (u64, u64),
    ) -> u32 {
        let path = self.text(path);
        let number = self.jobs.len() as u32;
        let (offset_bytes, len_bytes) = range;
        let job = Job { kind, node, operation, path, to: 0..0, offset_bytes, len_bytes, wait: Wait::Nothing };
        self.jobs.push(job);
        let writer = self.writer_of(node);
        if let Some(queue) = self.queues.get_mut(writer) {
            queue.push(number);
        }
        number
    }

    /// Gives the last job its second path.
    pub(super) fn set_to(&mut self, to: impl FnOnce(&mut Vec<u8>)) {
        let range = self.text(to);
        if let Some(job) = self.jobs.last_mut() {
            job.to = range;
        }
    }

    fn wait_for(&mut self, number: u32, on: u32) {
        if let Some(job) = self.jobs.get_mut(number as usize) {
            job.wait = match job.wait {
                Wait::Nothing => Wait::For(on),
                Wait::For(other) if other == on => Wait::For(on),
                Wait::For(_) | Wait::ForAll => Wait::ForAll,
            };
        }
    }

    /// Has a job wait for all before it.
    pub(super) fn wait_for_all(&mut self, number: u32) {
        if let Some(job) = self.jobs.get_mut(number as usize) {
            job.wait = Wait::ForAll;
        }
    }

    /// Notes that a job makes a directory.
    pub(super) fn makes_directory(&mut self, number: u32, dir: NodeId) {
        self.made.insert(dir, number);
    }

    /// Notes that a job takes a name in a directory: after the directory was made and the name was freed.
    pub(super) fn takes_name(&mut self, number: u32, dir: NodeId, name: Option<&[u8]>) {
        if !self.made.is_empty()
            && let Some(&made) = self.made.get(&dir)
        {
            self.wait_for(number, made);
        }
        if let Some(name) = name
            && !self.freed.is_empty()
            && let Some(&freed) = self.freed.get(&name_hash(dir, name))
        {
            self.wait_for(number, freed);
        }
    }

    /// Notes that a job frees a name. Names derived from numbers are never taken again.
    pub(super) fn frees_name(&mut self, number: u32, dir: NodeId, name: Option<&[u8]>) {
        if let Some(name) = name {
            self.freed.insert(name_hash(dir, name), number);
        }
    }

    pub(super) fn path(&self, job: &Job) -> &Path {
        self.slice(&job.path)
    }

    pub(super) fn to(&self, job: &Job) -> &Path {
        self.slice(&job.to)
    }

    fn slice(&self, range: &Range<u32>) -> &Path {
        Path::new(OsStr::from_bytes(self.text.get(range.start as usize..range.end as usize).unwrap_or_default()))
    }

    /// Readies the counters for a run from the first job.
    pub(super) fn begin(&self) {
        for writer in 0..self.writers() {
            self.reached(writer, 0);
        }
    }

    /// Tells the others how far a writer is: it is at place `place` of its queue.
    pub(super) fn reached(&self, writer: usize, place: usize) {
        let number = self.queue(writer).get(place).copied().unwrap_or(u32::MAX);
        if let Some(at) = self.at.get(writer) {
            at.store(number, Ordering::Release);
        }
    }

    /// Whether what a job waits for is done.
    pub(super) fn may_start(&self, number: u32, job: &Job) -> bool {
        let done_before = |at: &AtomicU32, number: u32| at.load(Ordering::Acquire) >= number;
        match job.wait {
            Wait::Nothing => true,
            Wait::ForAll => self.at.iter().all(|at| done_before(at, number)),
            Wait::For(other) => self.jobs.get(other as usize).is_none_or(|earlier| {
                let at = self.at.get(self.writer_of(earlier.node));
                at.is_none_or(|at| at.load(Ordering::Acquire) > other)
            }),
        }
    }

    /// From here on left-overs of an interrupted attempt may be there: names that exist or are gone already are no
    /// errors.
    pub(super) fn tolerate(&self) {
        self.tolerant.store(true, Ordering::Release);
    }

    pub(super) fn is_tolerant(&self) -> bool {
        self.tolerant.load(Ordering::Acquire)
    }

    /// Notes that the target was full.
    pub(super) fn fill_up(&self) {
        self.filled.store(true, Ordering::Release);
    }

    pub(super) fn was_full(&self) -> bool {
        self.filled.load(Ordering::Acquire)
    }

    /// Has all writers end before their next job.
    pub(super) fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }
}

fn name_hash(dir: NodeId, name: &[u8]) -> u64 {
    use std::hash::{Hash as _, Hasher as _};
    let mut hasher = rustc_hash::FxHasher::default();
    (dir, name).hash(&mut hasher);
    hasher.finish()
}
