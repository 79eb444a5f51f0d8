//! The threads of a timeline go through their steps, on so many processors.
//!
//! Who is ready to run waits in a queue, first come, first served, and has a processor until he sleeps, or until
//! [`SLICE_NS`] have passed and others wait. Discrete events, in the order of time and then of their making: the same
//! timeline gives the same time.

use super::timeline::{Step, Timeline};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// How long a thread has a processor while others wait for one: as Linux gives it with its default settings on few
/// processors.
const SLICE_NS: u64 = 3_000_000;

/// Turns that a step takes: 3 ms each for 50 minutes, longer ones beyond.
const TURNS_MAX: u64 = 1_000_000;

/// The processors that threads have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Processors {
    /// Each has one when it had one in the recording: waiting for a processor takes as long as it did, and calls take
    /// as long in all.
    AsRecorded,
    /// So many for all.
    Shared(u32),
}

/// A call's latency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latency {
    /// Part of it on a processor, nanoseconds.
    pub running_ns: u64,
    /// Part of it asleep, nanoseconds.
    pub blocked_ns: u64,
}

impl Latency {
    /// The whole of it.
    pub fn ns(self) -> u64 {
        self.running_ns.saturating_add(self.blocked_ns)
    }

    /// So many times as long.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Latency {
        Latency { running_ns: scaled(self.running_ns, factor), blocked_ns: scaled(self.blocked_ns, factor) }
    }
}

fn scaled(ns: u64, factor: f64) -> u64 {
    if factor == 1.0 { ns } else { super::nanoseconds(ns as f64 * factor) }
}

/// Threads wait for each other, and none goes on: the times of the recording contradict each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("after {at_ns} ns, {threads} threads wait for each other for ever: its times contradict each other")]
pub struct Stuck {
    /// When the last one stopped.
    pub at_ns: u64,
    /// How many.
    pub threads: usize,
}

/// What is left of the step that a thread is in.
#[derive(Clone, Copy, Debug, Default)]
struct Left {
    running_ns: u64,
    asleep_ns: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Thread {
    next: usize,
    left: Left,
    has_processor: bool,
    /// Since when, for its turn.
    took_ns: u64,
    /// Its last step was to sleep, and it did.
    slept: bool,
    ended: bool,
}

struct Simulation<'a> {
    timeline: &'a Timeline,
    latency: &'a dyn Fn(usize) -> Latency,
    computing: f64,
    as_recorded: bool,
    free: u32,
    now_ns: u64,
    threads: Vec<Thread>,
    /// Threads that are ready to run and have no processor.
    queue: VecDeque<u32>,
    /// When threads go on: time, order of making, thread.
    events: BinaryHeap<Reverse<(u64, u64, u32)>>,
    made: u64,
    given: Vec<bool>,
    waiting: Vec<Option<u32>>,
}

/// How long a timeline takes: from its beginning to the end of its last thread, nanoseconds. `computing`: what lies
/// outside the calls takes so many times as long as recorded. `latency`: that of a call, by its place among the spans
/// that the timeline was made of; not asked where processors are as recorded.
///
/// # Errors
/// The recording contradicts itself.
pub fn simulate(
    timeline: &Timeline,
    processors: Processors,
    computing: f64,
    latency: &dyn Fn(usize) -> Latency,
) -> Result<u64, Stuck> {
    let wakings = timeline.wakings as usize;
    let mut simulation = Simulation {
        timeline,
        latency,
        computing,
        as_recorded: processors == Processors::AsRecorded,
        free: match processors {
            Processors::AsRecorded => u32::MAX,
            Processors::Shared(count) => count.max(1),
        },
        now_ns: 0,
        threads: vec![Thread::default(); timeline.threads.len()],
        queue: VecDeque::new(),
        events: BinaryHeap::new(),
        made: 0,
        given: vec![false; wakings],
        waiting: vec![None; wakings],
    };
    for &(thread, at_ns) in &timeline.roots {
        simulation.at(at_ns, thread);
    }
    simulation.run()
}

impl Simulation<'_> {
    fn at(&mut self, at_ns: u64, thread: u32) {
        self.events.push(Reverse((at_ns, self.made, thread)));
        self.made += 1;
    }

    fn run(mut self) -> Result<u64, Stuck> {
        while let Some(Reverse((at_ns, _, thread))) = self.events.pop() {
            self.now_ns = at_ns;
            self.go_on(thread);
        }
        let left = self.threads.iter().filter(|thread| !thread.ended).count();
        if left > 0 { Err(Stuck { at_ns: self.now_ns, threads: left }) } else { Ok(self.now_ns) }
    }

    fn thread(&mut self, thread: u32) -> &mut Thread {
        self.threads.get_mut(thread as usize).expect("a timeline's threads are numbered")
    }

    fn slot<T>(of: &mut [T], waking: u32) -> &mut T {
        of.get_mut(waking as usize).expect("a timeline's wakings are numbered")
    }

    fn leave_processor(&mut self, thread: u32) {
        if std::mem::take(&mut self.thread(thread).has_processor) {
            self.free += 1;
            if let Some(next) = self.queue.pop_front() {
                self.take_processor(next);
                self.at(self.now_ns, next);
            }
        }
    }

    fn take_processor(&mut self, thread: u32) {
        self.free -= 1;
        let now_ns = self.now_ns;
        let taker = self.thread(thread);
        taker.has_processor = true;
        taker.took_ns = now_ns;
    }

    /// Takes a thread through its steps until one takes time.
    fn go_on(&mut self, thread: u32) {
        loop {
            let Thread { next, left, slept, .. } = *self.thread(thread);
            if left.running_ns > 0 {
                self.compute(thread, left.running_ns);
                return;
            }
            if left.asleep_ns > 0 {
                self.thread(thread).left.asleep_ns = 0;
                self.leave_processor(thread);
                self.at(self.now_ns.saturating_add(left.asleep_ns), thread);
                return;
            }
            let Some(&step) = self.timeline.threads.get(thread as usize).and_then(|steps| steps.get(next)) else {
                self.thread(thread).ended = true;
                self.leave_processor(thread);
                return;
            };
            self.thread(thread).next += 1;
            self.thread(thread).slept = matches!(step, Step::Sleep(_));
            match step {
                Step::Compute(ns) => self.thread(thread).left.running_ns = scaled(ns, self.computing),
                Step::Call(_, dur_ns) if self.as_recorded => self.thread(thread).left.asleep_ns = dur_ns,
                Step::Call(call, _) => {
                    let Latency { running_ns, blocked_ns } = (self.latency)(call as usize);
                    self.thread(thread).left = Left { running_ns, asleep_ns: blocked_ns };
                }
                Step::Sleep(ns) => self.thread(thread).left.asleep_ns = ns,
                Step::Queued(ns) if self.as_recorded => self.thread(thread).left.asleep_ns = ns,
                Step::Queued(_) => {}
                Step::Woken(ns) if self.as_recorded => self.thread(thread).left.asleep_ns = ns,
                Step::Woken(ns) if slept => self.thread(thread).left.asleep_ns = ns.min(self.timeline.wake_ns),
                Step::Woken(_) => {}
                Step::Start(child) => self.at(self.now_ns, child),
                Step::Wake(waking) => {
                    *Self::slot(&mut self.given, waking) = true;
                    if let Some(other) = Self::slot(&mut self.waiting, waking).take() {
                        self.at(self.now_ns, other);
                    }
                }
                Step::Wait(waking) => {
                    if !*Self::slot(&mut self.given, waking) {
                        *Self::slot(&mut self.waiting, waking) = Some(thread);
                        self.thread(thread).slept = true;
                        self.leave_processor(thread);
                        return;
                    }
                }
            }
        }
    }

    /// The thread computes, if it has a processor or gets one: until its step is done or its turn is over.
    fn compute(&mut self, thread: u32, running_ns: u64) {
        let now_ns = self.now_ns;
        // However long a step is that somebody's file tells of, it is over after so many turns.
        let slice_ns = SLICE_NS.max(running_ns / TURNS_MAX);
        if !self.thread(thread).has_processor {
            if self.free == 0 {
                self.queue.push_back(thread);
                return;
            }
            self.take_processor(thread);
        } else if now_ns - self.thread(thread).took_ns >= slice_ns {
            if !self.queue.is_empty() {
                self.leave_processor(thread);
                self.queue.push_back(thread);
                return;
            }
            self.thread(thread).took_ns = now_ns;
        }
        let turn_ns = slice_ns - (now_ns - self.thread(thread).took_ns);
        let ns = if self.as_recorded { running_ns } else { running_ns.min(turn_ns) };
        self.thread(thread).left.running_ns = running_ns - ns;
        self.at(now_ns.saturating_add(ns), thread);
    }
}
