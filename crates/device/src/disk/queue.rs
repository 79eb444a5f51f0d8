//! A queue in front of a disk, and how the next request is chosen from it.

use crate::disk::model::{Disk, Served};
use crate::disk::scheduler::Scheduler;
use crate::{Completion, Device, Lbn, Operation, Request, RequestError};
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug)]
struct Waiting {
    tag: u64,
    request: Request,
}

/// A disk with a queue of any length; one request is in service at a time.
#[derive(Clone, Debug)]
pub struct QueuedDisk {
    disk: Disk,
    scheduler: Scheduler,
    /// Of the waiting requests, the oldest so many are considered.
    depth: usize,
    waiting: VecDeque<Waiting>,
    in_service: Option<Completion>,
    /// Behind the last request chosen, for C-LOOK.
    sweep: Lbn,
}

impl QueuedDisk {
    /// The drive's own queue, with its scheduler and its depth; what does not fit waits in order before it.
    pub fn new(disk: Disk) -> QueuedDisk {
        let (scheduler, depth) = (disk.spec().controller.scheduler, disk.spec().bus.queue_depth as usize);
        QueuedDisk { depth, ..QueuedDisk::with_scheduler(disk, scheduler) }
    }

    /// A queue of the host's, without bound, in front of a drive that takes one request at a time.
    pub fn with_scheduler(disk: Disk, scheduler: Scheduler) -> QueuedDisk {
        QueuedDisk { disk, scheduler, depth: usize::MAX, waiting: VecDeque::new(), in_service: None, sweep: Lbn(0) }
    }

    /// The disk.
    pub fn disk(&self) -> &Disk {
        &self.disk
    }

    /// Begins the next request, if the disk is free and there is one.
    fn dispatch(&mut self, now_ns: u64) {
        if self.in_service.is_some() {
            return;
        }
        let Some(next) = self.choose(now_ns).and_then(|n| self.waiting.remove(n)) else { return };
        self.sweep = next.request.end();
        let Served { at_ns, durable, .. } = self.disk.serve_one(now_ns, &next.request);
        self.in_service = Some(Completion { tag: next.tag, at_ns, durable });
    }

    fn choose(&self, now_ns: u64) -> Option<usize> {
        // Nothing overtakes a flush, and a flush overtakes nothing.
        let barrier = self.waiting.iter().position(|w| w.request.operation == Operation::Flush);
        let eligible = match barrier {
            Some(0) => return Some(0),
            Some(n) => n,
            None => self.waiting.len(),
        };
        let eligible = eligible.min(self.depth);
        if eligible <= 1 {
            return (eligible == 1).then_some(0);
        }
        let request = |n: usize| &self.waiting[n].request;
        match self.scheduler {
            Scheduler::Fcfs => Some(0),
            Scheduler::Sstf => {
                let here = self.disk.cylinder();
                (0..eligible).min_by_key(|&n| self.disk.cylinder_of(request(n).lbn).abs_diff(here))
            }
            Scheduler::CLook => {
                let ahead = (0..eligible).filter(|&n| request(n).lbn >= self.sweep);
                ahead.min_by_key(|&n| request(n).lbn).or_else(|| (0..eligible).min_by_key(|&n| request(n).lbn))
            }
            Scheduler::Sptf => (0..eligible).min_by_key(|&n| self.disk.positioning_ns(now_ns, request(n))),
        }
    }
}

impl Device for QueuedDisk {
    fn duplicate(&self) -> Box<dyn Device> {
        Box::new(self.clone())
    }

    fn sector_bytes(&self) -> u32 {
        self.disk.spec().sector_bytes
    }

    fn capacity_sectors(&self) -> u64 {
        self.disk.geometry().capacity_sectors()
    }

    fn max_transfer_sectors(&self) -> u32 {
        self.disk.spec().bus.max_transfer_sectors
    }

    fn supports_trim(&self) -> bool {
        false
    }

    fn submit(&mut self, now_ns: u64, tag: u64, request: Request) -> Result<(), RequestError> {
        self.check(&request)?;
        self.waiting.push_back(Waiting { tag, request });
        self.dispatch(now_ns);
        Ok(())
    }

    fn next_event_ns(&self) -> Option<u64> {
        self.in_service.map(|done| done.at_ns)
    }

    fn poll(&mut self, now_ns: u64, completions: &mut Vec<Completion>) {
        while let Some(done) = self.in_service.take_if(|done| done.at_ns <= now_ns) {
            completions.push(done);
            self.dispatch(done.at_ns);
        }
    }

    fn serve(&mut self, now_ns: u64, request: Request) -> Result<Completion, RequestError> {
        self.check(&request)?;
        let Served { at_ns, durable, .. } = self.disk.serve_one(now_ns, &request);
        Ok(Completion { tag: 0, at_ns, durable })
    }
}
