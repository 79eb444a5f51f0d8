//! Executing programs in virtual time: processors, the device, and who waits for what.
//!
//! Every actor (a process, the syncer) has one program at a time. Events happen in order of time; at the same time
//! first what the device does, then actors by number. A program whose next steps end before any other event is executed
//! straight on, without going through the queue of events: that is how one process on an idle disk runs, and the result
//! is the same to the nanosecond.

use crate::program::{Direction, IoId, Step};
use crate::{Cx, Pbn};
use device::{Completion, Device, Request, RequestError};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A process or a daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ActorId(pub(crate) u32);

impl ActorId {
    /// Writes back what has been dirty for long.
    pub(crate) const SYNCER: ActorId = ActorId(u32::MAX);
    /// Writes back when much is dirty.
    pub(crate) const FLUSHER: ActorId = ActorId(u32::MAX - 1);
    /// Does the file system's own work (a cleaner).
    pub(crate) const WORKER: ActorId = ActorId(u32::MAX - 2);
    /// Looks whether there is idle time for it; executes nothing. The first of the daemons.
    pub(crate) const TIMER: ActorId = ActorId(u32::MAX - 3);
}

#[derive(Clone, Debug, Default)]
struct Actor {
    program: Vec<Step>,
    at: usize,
}

/// A write that has been completed: what a crash may find on the disk, and from when on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteRecord {
    /// When the operation took effect that asked for the write.
    pub issued_ns: u64,
    /// When the device reported it.
    pub completed_ns: u64,
    /// Entries that the log had, all in all, when the device got it: the power may fail in the midst of it from then
    /// on.
    pub submitted_after: u64,
    /// Whether it survives a power failure then; if not, it does after the next flush.
    pub durable: bool,
    /// Where.
    pub pbn: Pbn,
    /// How much.
    pub bytes: u64,
    /// What, if bytes are recorded.
    pub contents: Option<Box<[u8]>>,
}

/// A completed request of the device's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogEntry {
    /// A write.
    Write(WriteRecord),
    /// A flush: writes completed when the device got it are durable from now on.
    Flush {
        /// When.
        completed_ns: u64,
        /// Entries that the log had, all in all, when the device got it.
        submitted_after: u64,
    },
    /// A discard has been handed over: what was there may be lost from now on, if power fails or not.
    Discard {
        /// When.
        submitted_ns: u64,
        /// Where.
        pbn: Pbn,
        /// How much.
        bytes: u64,
    },
}

/// What the device was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceCounters {
    /// Requests of the kernel.
    pub reads: u64,
    /// Bytes of them.
    pub read_bytes: u64,
    #[allow(missing_docs)]
    pub writes: u64,
    #[allow(missing_docs)]
    pub write_bytes: u64,
    /// Flushes.
    pub flushes: u64,
    /// Discards, and bytes of them.
    pub discards: u64,
    #[allow(missing_docs)]
    pub discarded_bytes: u64,
}

/// How long what is below the calls has worked, nanoseconds of virtual time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Busy {
    /// Processors, summed over all of them.
    pub processors_ns: u64,
    /// The device: time in which it had at least one request of the kernel.
    pub device_ns: u64,
}

/// What has to be done next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// An actor's program is done.
    Ready { actor: ActorId, at_ns: u64 },
    /// Writes are complete that the file system wants to be told of.
    Arrived,
    /// Nothing will ever happen again.
    Nothing,
}

#[derive(Clone)]
pub(crate) struct Engine {
    device: Box<dyn Device>,
    /// Everything up to here has happened.
    now_ns: u64,
    /// When each processor is free.
    processors: Vec<u64>,
    actors: Vec<Actor>,
    syncer: Actor,
    flusher: Actor,
    worker: Actor,
    timer: Actor,
    queue: BinaryHeap<Reverse<(u64, ActorId)>>,
    completions: Vec<Completion>,
    pub(crate) counters: DeviceCounters,
    /// Up to when the device last had nothing to do.
    busy: Busy,
    /// Requests that the device has now, and since when it has had any.
    outstanding: u32,
    outstanding_since_ns: u64,
    pub(crate) log: Option<Vec<LogEntry>>,
    /// Entries that the log has had, those taken away among them.
    logged: u64,
    /// The first request that the device refused.
    pub(crate) refused: Option<RequestError>,
    /// Without the short cut: for tests that compare both.
    pub(crate) always_queue: bool,
}

impl Engine {
    pub(crate) fn new(device: Box<dyn Device>, processors: u32) -> Engine {
        Engine {
            device,
            now_ns: 0,
            processors: vec![0; processors.max(1) as usize],
            actors: Vec::new(),
            syncer: Actor::default(),
            flusher: Actor::default(),
            worker: Actor::default(),
            timer: Actor::default(),
            queue: BinaryHeap::new(),
            completions: Vec::new(),
            counters: DeviceCounters::default(),
            busy: Busy::default(),
            outstanding: 0,
            outstanding_since_ns: 0,
            log: None,
            logged: 0,
            refused: None,
            always_queue: false,
        }
    }

    pub(crate) fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// How long processors and the device have worked up to now.
    pub(crate) fn busy(&self) -> Busy {
        let under_way_ns = if self.outstanding > 0 { self.now_ns.saturating_sub(self.outstanding_since_ns) } else { 0 };
        Busy { device_ns: self.busy.device_ns + under_way_ns, ..self.busy }
    }

    pub(crate) fn device(&self) -> &dyn Device {
        &*self.device
    }

    fn actor(&mut self, id: ActorId) -> &mut Actor {
        match id {
            ActorId::SYNCER => return &mut self.syncer,
            ActorId::FLUSHER => return &mut self.flusher,
            ActorId::WORKER => return &mut self.worker,
            ActorId::TIMER => return &mut self.timer,
            _ => {}
        }
        let at = id.0 as usize;
        if at >= self.actors.len() {
            self.actors.resize_with(at + 1, Actor::default);
        }
        &mut self.actors[at]
    }

    /// Lets an actor be ready at a time, with nothing to execute.
    pub(crate) fn wake_at(&mut self, id: ActorId, at_ns: u64) {
        self.queue.push(Reverse((at_ns.max(self.now_ns), id)));
    }

    /// Takes the program that an operation of this actor has left in `cx` and executes it from now on. Returns when it
    /// is done if nothing else happens before; otherwise it goes on in [`next`](Engine::next).
    pub(crate) fn start(&mut self, cx: &mut Cx, id: ActorId) -> Option<u64> {
        let actor = self.actor(id);
        actor.program.clear();
        std::mem::swap(&mut actor.program, &mut cx.program);
        actor.at = 0;
        self.execute(cx, id, self.now_ns)
    }

    /// Hands over at once every request that is left in an actor's program.
    pub(crate) fn hand_over_rest(&mut self, cx: &mut Cx, id: ActorId) {
        let actor = self.actor(id);
        let rest: Vec<Step> = actor.program.drain(..).skip(actor.at).collect();
        for step in rest {
            if let Step::Start { io, .. } = step {
                self.submit(cx, io, self.now_ns);
            }
        }
    }

    /// Forgets what processes were about to do: the run they belong to has ended early. Daemons go on.
    pub(crate) fn forget_processes(&mut self, cx: &mut Cx) {
        self.queue.retain(|Reverse((_, id))| *id >= ActorId::TIMER);
        cx.ios.forget_waiters(|id| ActorId(id) < ActorId::TIMER);
        self.actors.clear();
    }

    /// Goes on until some actor's program is done.
    pub(crate) fn next(&mut self, cx: &mut Cx) -> Event {
        loop {
            let queued = self.queue.peek().map(|Reverse((at_ns, _))| *at_ns);
            let device = self.device.next_event_ns();
            match (device, queued) {
                (Some(at_ns), queued) if queued.is_none_or(|queued| at_ns <= queued) => {
                    self.poll(cx, at_ns);
                    if !cx.arrived.is_empty() {
                        return Event::Arrived;
                    }
                }
                (_, Some(at_ns)) => {
                    let Some(Reverse((_, actor))) = self.queue.pop() else { continue };
                    self.now_ns = at_ns;
                    if let Some(at_ns) = self.execute(cx, actor, at_ns) {
                        return Event::Ready { actor, at_ns };
                    }
                }
                (_, None) => return Event::Nothing,
            }
        }
    }

    /// Lets everything happen that the device has under way.
    pub(crate) fn settle(&mut self, cx: &mut Cx) {
        while let Some(at_ns) = self.device.next_event_ns() {
            self.poll(cx, at_ns);
        }
    }

    /// Executes an actor's program from a time on, until it is done (when) or has to wait (`None`).
    fn execute(&mut self, cx: &mut Cx, id: ActorId, mut at_ns: u64) -> Option<u64> {
        loop {
            let actor = self.actor(id);
            let Some(step) = actor.program.get(actor.at).copied() else {
                self.now_ns = at_ns;
                return Some(at_ns);
            };
            actor.at += 1;
            match step {
                Step::Cpu { ns } => {
                    let end_ns = self.occupy_processor(at_ns, ns);
                    if self.always_queue || self.is_preceded(end_ns, id) {
                        self.queue.push(Reverse((end_ns, id)));
                        return None;
                    }
                    at_ns = end_ns;
                }
                Step::Start { io, wait } => {
                    self.now_ns = at_ns;
                    self.submit(cx, io, at_ns);
                    if wait && self.wait(cx, io, id) {
                        return None;
                    }
                }
                Step::Wait { io } => {
                    if self.wait(cx, io, id) {
                        return None;
                    }
                }
            }
        }
    }

    /// Whether something else happens before an actor goes on at a time.
    pub(crate) fn is_preceded(&self, at_ns: u64, id: ActorId) -> bool {
        self.queue.peek().is_some_and(|Reverse(next)| *next < (at_ns, id))
            || self.device.next_event_ns().is_some_and(|next| next <= at_ns)
    }

    /// The processor that is free first works for so long; returns when it is done.
    fn occupy_processor(&mut self, at_ns: u64, ns: u64) -> u64 {
        self.busy.processors_ns += ns;
        let Some(free_ns) = self.processors.iter_mut().min() else { return at_ns + ns };
        *free_ns = (*free_ns).max(at_ns) + ns;
        *free_ns
    }

    /// Puts an actor among those who wait for a request, unless it is complete.
    fn wait(&mut self, cx: &mut Cx, io: IoId, id: ActorId) -> bool {
        match cx.ios.get_mut(io) {
            Some(io) => {
                io.waiters.push(id.0);
                true
            }
            None => false,
        }
    }

    fn submit(&mut self, cx: &mut Cx, id: IoId, at_ns: u64) {
        let io = cx.ios.get_mut(id).expect("what is submitted is a request");
        let tag = u64::from(id.slot) << 32 | u64::from(id.generation);
        io.started = true;
        io.submitted_after = self.logged;
        if self.outstanding == 0 {
            self.outstanding_since_ns = at_ns;
        }
        self.outstanding += 1;
        let sector = u64::from(self.device.sector_bytes());
        match io.direction {
            Direction::Read => {
                (self.counters.reads, self.counters.read_bytes) =
                    (self.counters.reads + 1, self.counters.read_bytes + io.bytes)
            }
            Direction::Write => {
                (self.counters.writes, self.counters.write_bytes) =
                    (self.counters.writes + 1, self.counters.write_bytes + io.bytes)
            }
            Direction::Flush => self.counters.flushes += 1,
            Direction::Discard => return self.submit_discard(cx, id, at_ns),
        }
        // Whole sectors: a disk with larger ones than the file system's fragments moves what is around them too.
        let mut at = io.pbn.bytes() / sector;
        let end = (io.pbn.bytes() + io.bytes).div_ceil(sector);
        let most = u64::from(self.device.max_transfer_sectors()).max(1);
        if io.direction == Direction::Flush {
            io.parts = 1;
            let submitted = self.device.submit(at_ns, tag, Request::flush());
            return self.submitted(cx, id, submitted, at_ns);
        }
        io.parts = u32::try_from((end - at).div_ceil(most)).unwrap_or(u32::MAX);
        let direction = io.direction;
        while at < end {
            let sectors = u32::try_from((end - at).min(most)).unwrap_or(u32::MAX);
            let request = match direction {
                Direction::Read => Request::read(at, sectors),
                Direction::Write | Direction::Flush | Direction::Discard => Request::write(at, sectors),
            };
            let submitted = self.device.submit(at_ns, tag, request);
            self.submitted(cx, id, submitted, at_ns);
            at += u64::from(sectors);
        }
    }

    /// Whole sectors only: what is around them is not to be lost.
    fn submit_discard(&mut self, cx: &mut Cx, id: IoId, at_ns: u64) {
        let io = cx.ios.get_mut(id).expect("what is submitted is a request");
        let (pbn, bytes) = (io.pbn, io.bytes);
        let sector = u64::from(self.device.sector_bytes());
        let (first, end) = (pbn.bytes().div_ceil(sector), (pbn.bytes() + bytes) / sector);
        let most = u64::from(u32::MAX);
        io.parts = u32::try_from(end.saturating_sub(first).div_ceil(most)).unwrap_or(u32::MAX).max(1);
        self.counters.discards += 1;
        self.counters.discarded_bytes += bytes;
        if let Some(log) = &mut self.log {
            log.push(LogEntry::Discard { submitted_ns: at_ns, pbn, bytes });
            self.logged += 1;
        }
        if end <= first {
            return self.part_done(cx, id, at_ns, true);
        }
        let tag = u64::from(id.slot) << 32 | u64::from(id.generation);
        let mut at = first;
        while at < end {
            let sectors = u32::try_from((end - at).min(most)).unwrap_or(u32::MAX);
            let submitted = self.device.submit(at_ns, tag, Request::trim(at, sectors));
            self.submitted(cx, id, submitted, at_ns);
            at += u64::from(sectors);
        }
    }

    /// A request that the device refuses is complete at once; who asked is told by the error.
    fn submitted(&mut self, cx: &mut Cx, id: IoId, result: Result<(), RequestError>, at_ns: u64) {
        if let Err(error) = result {
            self.refused.get_or_insert(error);
            self.part_done(cx, id, at_ns, false);
        }
    }

    fn poll(&mut self, cx: &mut Cx, at_ns: u64) {
        self.now_ns = self.now_ns.max(at_ns);
        let mut completions = std::mem::take(&mut self.completions);
        self.device.poll(at_ns, &mut completions);
        for done in completions.drain(..) {
            let id = IoId { slot: (done.tag >> 32) as u32, generation: done.tag as u32 };
            self.part_done(cx, id, done.at_ns, done.durable);
        }
        self.completions = completions;
    }

    fn part_done(&mut self, cx: &mut Cx, id: IoId, at_ns: u64, durable: bool) {
        let io = cx.ios.get_mut(id).expect("what completes is under way");
        assert!(io.parts > 0, "a request has completed twice");
        io.parts -= 1;
        io.durable &= durable;
        if io.parts > 0 {
            return;
        }
        self.outstanding -= 1;
        if self.outstanding == 0 {
            self.busy.device_ns += at_ns.saturating_sub(self.outstanding_since_ns);
        }
        if let Some(log) = &mut self.log {
            match io.direction {
                Direction::Read | Direction::Discard => {}
                Direction::Flush => {
                    log.push(LogEntry::Flush { completed_ns: at_ns, submitted_after: io.submitted_after });
                    self.logged += 1;
                }
                Direction::Write => log.push(LogEntry::Write(WriteRecord {
                    issued_ns: io.issued_ns,
                    completed_ns: at_ns,
                    submitted_after: io.submitted_after,
                    durable: io.durable,
                    pbn: io.pbn,
                    bytes: io.bytes,
                    contents: io.contents.take(),
                })),
            }
            self.logged += u64::from(io.direction == Direction::Write);
        }
        for actor in &io.waiters {
            self.queue.push(Reverse((at_ns, ActorId(*actor))));
        }
        cx.complete(id);
    }
}
