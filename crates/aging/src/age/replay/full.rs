//! A full target: jobs that found no room are tried again after a commit, and then the policy decides.

use super::{FileSystem, Presence, Replay, advice};
use crate::age::AgeError;
use crate::age::options::OnFull;
use crate::age::window::{Job, Window};
use crate::age::writer::{Failure, Report, is_full};
use crate::{NodeId, OpKind};
use posix::{Call, Errno};
use rustc_hash::{FxHashMap, FxHashSet};

/// How often files are deleted for one window's sake before its jobs are given up.
const ROUNDS_MAX: u32 = 24;
/// What is won at least by deleting for room, bytes: metadata needs some as well.
const ROOM_BYTES_MIN: u64 = 1 << 20;

impl<F: FileSystem> Replay<'_, F> {
    /// Deals with what a window's writers could not do.
    pub(super) fn settle(&mut self, window: &Window, report: Report) -> Result<(), AgeError> {
        if report.failures.is_empty() {
            return Ok(());
        }
        let mut left = report.failures;
        self.fatal(window, &left)?;
        self.result.counters.full += left.iter().filter(|f| f.errno.is_some()).count() as u64;
        // Space of deleted files may come free at the next commit only.
        let _ = self.fs.call(&Call::SyncFs);
        left = self.retry(window, &left)?;
        for _ in 0..ROUNDS_MAX {
            let Some(job) = self.wanting_room(window, &left) else { break };
            if self.options.on_full == OnFull::Stop {
                return Err(self.full_error(window, &left, ""));
            }
            let wanting: FxHashSet<NodeId> =
                left.iter().filter_map(|f| Some(window.jobs.get(f.job as usize)?.node)).collect();
            if !self.delete_for_room(job.len_bytes, &wanting)? {
                break;
            }
            left = self.retry(window, &left)?;
        }
        let structural = |f: &Failure| f.errno.is_some() && window.jobs.get(f.job as usize).is_some_and(is_structural);
        if left.iter().any(structural) {
            return Err(self.full_error(window, &left, ", and the tree cannot go on without it"));
        }
        self.give_up(window, left)
    }

    /// An error that no room would cure ends the run.
    fn fatal(&self, window: &Window, failures: &[Failure]) -> Result<(), AgeError> {
        let cause = failures.iter().find_map(|f| Some((f.job, f.errno.filter(|e| !is_full(*e))?)));
        let Some((number, errno)) = cause else { return Ok(()) };
        let Some(job) = window.jobs.get(number as usize) else { return Ok(()) };
        Err(AgeError::Target {
            target: self.target.clone(),
            what: job.doing(),
            path: window.path(job).display().to_string(),
            operation: job.operation,
            errno,
            advice: advice(errno),
        })
    }

    fn full_error(&self, window: &Window, left: &[Failure], rest: &'static str) -> AgeError {
        let first = left.iter().find_map(|f| Some((window.jobs.get(f.job as usize)?, f.errno?)));
        let (what, path, operation, errno) = first
            .map_or(("going on", String::new(), 0, Errno::ENOSPC), |(job, errno)| {
                (job.doing(), window.path(job).display().to_string(), job.operation, errno)
            });
        AgeError::Full { target: self.target.clone(), what, path, operation, errno, rest }
    }

    /// The first job for which files are to be deleted: any under that policy, and what the tree cannot do without.
    fn wanting_room<'w>(&self, window: &'w Window, left: &[Failure]) -> Option<&'w Job> {
        let all = self.options.on_full != OnFull::Skip;
        let failed = left.iter().filter(|f| f.errno.is_some());
        failed.filter_map(|f| window.jobs.get(f.job as usize)).find(|job| all || is_structural(job))
    }

    /// Tries jobs again, one after the other; answers those that still fail, by their numbers in the first window.
    fn retry(&mut self, window: &Window, failures: &[Failure]) -> Result<Vec<Failure>, AgeError> {
        let numbers: Vec<u32> = failures.iter().map(|f| f.job).collect();
        let again = window.again(&numbers);
        let report = self.perform(&again)?;
        self.fatal(&again, &report.failures)?;
        let first = |f: &Failure| Some(Failure { job: *numbers.get(f.job as usize)?, errno: f.errno });
        Ok(report.failures.iter().filter_map(first).collect())
    }

    /// Deletes the oldest files, for so many bytes and some more; answers whether there were any.
    fn delete_for_room(&mut self, bytes: u64, wanting: &FxHashSet<NodeId>) -> Result<bool, AgeError> {
        let need = bytes.saturating_add(bytes / 8).max(ROOM_BYTES_MIN);
        let mut victims = self.nodes.lowest_ranked(need, |id| id.0);
        victims.retain(|victim| !wanting.contains(victim));
        if victims.is_empty() {
            return Ok(false);
        }
        let operation = self.ahead.position();
        let mut window = Window::new(1, self.options.data, self.options.chunk_bytes);
        for victim in &victims {
            let nodes = &mut self.nodes;
            window.push(OpKind::Delete, *victim, operation, |out| nodes.path(*victim, out), (0, 0));
        }
        let report = self.perform(&window)?;
        self.fatal(&window, &report.failures)?;
        let failed: FxHashSet<NodeId> =
            report.failures.iter().filter_map(|f| Some(window.jobs.get(f.job as usize)?.node)).collect();
        for victim in victims.iter().filter(|v| !failed.contains(v)) {
            self.nodes.make_absent(*victim);
            self.result.counters.deleted_for_room += 1;
        }
        let _ = self.fs.call(&Call::SyncFs);
        Ok(failed.len() < victims.len())
    }

    /// Leaves jobs out for good, and keeps the books right: what follows on the same file is done as far as it can be.
    fn give_up(&mut self, window: &Window, mut left: Vec<Failure>) -> Result<(), AgeError> {
        // Lengths of files that could not grow.
        let mut stuck: FxHashMap<NodeId, u64> = FxHashMap::default();
        let mut unmade: FxHashSet<NodeId> = FxHashSet::default();
        while !left.is_empty() {
            let mut rest = Vec::new();
            for failure in left {
                let Some(job) = window.jobs.get(failure.job as usize) else { continue };
                if failure.errno.is_some() {
                    self.result.counters.full_left_out += 1;
                    match job.kind {
                        OpKind::Create | OpKind::Symlink => drop(unmade.insert(job.node)),
                        OpKind::Append | OpKind::Truncate => drop(stuck.entry(job.node).or_insert(job.offset_bytes)),
                        _ => {}
                    }
                } else if unmade.contains(&job.node) || is_pointless(job, stuck.get(&job.node)) {
                    self.result.counters.dropped += 1;
                } else {
                    if let (OpKind::Truncate, Some(length)) = (job.kind, stuck.get_mut(&job.node)) {
                        *length = job.len_bytes;
                    }
                    rest.push(failure);
                }
            }
            if rest.is_empty() {
                break;
            }
            left = self.retry(window, &rest)?;
        }
        let mut unmade: Vec<NodeId> = unmade.into_iter().collect();
        unmade.sort_unstable();
        for node in unmade {
            match self.nodes.get(node).map(|n| n.presence) {
                Some(Presence::Present) => self.nodes.make_absent(node),
                Some(Presence::Held) => self.nodes.drop_held(node),
                _ => {}
            }
        }
        let mut stuck: Vec<(NodeId, u64)> = stuck.into_iter().collect();
        stuck.sort_unstable();
        for (node, length) in stuck {
            if self.nodes.get(node).is_some_and(|n| n.presence != Presence::Absent) {
                self.nodes.set_actual(node, self.nodes.actual_bytes(node), length);
            }
        }
        Ok(())
    }
}

/// Whether the tree's later operations depend on a job.
fn is_structural(job: &Job) -> bool {
    matches!(job.kind, OpKind::Mkdir | OpKind::Rmdir | OpKind::Rename | OpKind::Delete)
}

/// Whether a job makes no sense on a file that could not grow beyond a length.
fn is_pointless(job: &Job, stuck: Option<&u64>) -> bool {
    let Some(length) = stuck else { return false };
    match job.kind {
        OpKind::Append | OpKind::Overwrite | OpKind::PunchHole | OpKind::Read => true,
        OpKind::Truncate => job.len_bytes >= *length,
        _ => false,
    }
}
