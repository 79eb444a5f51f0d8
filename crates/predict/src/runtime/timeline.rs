//! The threads of a recording as lists of steps, from their calls and turns.
//!
//! What may not live here: how long steps take elsewhere, and the order in which threads go.
//!
//! Whoever wakes another does it at a point of his own list, so that the order is that of causes. A waking that was
//! recorded where its thread had no processor (which none can do) is put before that; one in a call that is priced,
//! behind the call. So a step waits only for what was recorded before it, and a timeline of times that do not
//! contradict each other can always be gone through.

use rustc_hash::FxHashMap;
use trace::schedule::{Happened, Turn};

/// A call whose latency is another elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// The thread.
    pub tid: u32,
    /// When it began, nanoseconds since the trace began.
    pub t_ns: u64,
    /// How long it took.
    pub dur_ns: u64,
    /// Part of it on a processor.
    pub running_ns: u64,
    /// Part of it asleep. What is left, it waited for a processor.
    pub blocked_ns: u64,
}

/// What a thread does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Has a processor for so long.
    Compute(u64),
    /// Makes the call with this number; recorded, it took so long in all.
    Call(u32, u64),
    /// Sleeps for so long.
    Sleep(u64),
    /// Sleeps until somebody gives it what has this number.
    Wait(u32),
    /// Gives that.
    Wake(u32),
    /// Starts this thread.
    Start(u32),
    /// Was ready, and waited so long for a processor when it was recorded.
    Queued(u64),
    /// The same of one that was woken: if it slept at all, some of it is what waking takes.
    Woken(u64),
}

/// The threads of a recording.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    /// The steps of each.
    pub(super) threads: Vec<Vec<Step>>,
    /// Those that no other starts, and when they begin.
    pub(super) roots: Vec<(u32, u64)>,
    /// What one gives and another waits for: how many.
    pub(super) wakings: u32,
    /// What waking a thread takes where a processor is free; 0: nothing.
    pub(super) wake_ns: u64,
    /// From each waking outside calls to the processor, as recorded.
    wakes_ns: Vec<u64>,
    recorded_ns: u64,
    computing_ns: u64,
    recorder_ns: u64,
}

/// From a thread's beginning to its end, before it has steps.
#[derive(Debug, Default)]
struct Life {
    began_ns: u64,
    parent: Option<u32>,
    items: Vec<Item>,
}

/// What is in the time of a thread.
#[derive(Clone, Copy, Debug)]
struct Item {
    at_ns: u64,
    what: What,
}

#[derive(Clone, Copy, Debug)]
enum What {
    /// It wakes another, or starts one.
    Gives(Step),
    Call {
        number: u32,
        dur_ns: u64,
    },
    Slept {
        woken_ns: u64,
        until_ns: u64,
        waking: Option<u32>,
    },
    Waited {
        until_ns: u64,
    },
    Recorder {
        own_ns: u64,
    },
    Ended,
}

impl What {
    /// Of what is told for one moment: what a thread gives, it gives before it leaves the processor; and it leaves it
    /// in a call rather than before one.
    fn rank(self) -> u8 {
        match self {
            What::Gives(_) => 0,
            What::Call { .. } => 1,
            What::Slept { .. } | What::Waited { .. } => 2,
            What::Recorder { .. } => 3,
            What::Ended => 4,
        }
    }
}

/// Lives by thread, in the order of time.
#[derive(Default)]
struct Lives {
    all: Vec<Life>,
    by_tid: FxHashMap<u32, Vec<usize>>,
}

impl Lives {
    fn begin(&mut self, tid: u32, began_ns: u64, parent: Option<u32>) -> usize {
        self.all.push(Life { began_ns, parent, items: Vec::new() });
        self.by_tid.entry(tid).or_default().push(self.all.len() - 1);
        self.all.len() - 1
    }

    /// Who had a number at a time.
    fn at(&self, tid: u32, at_ns: u64) -> Option<usize> {
        let lives = self.by_tid.get(&tid)?;
        let after = lives.partition_point(|&life| self.all.get(life).is_some_and(|life| life.began_ns <= at_ns));
        lives.get(after.checked_sub(1)?).copied()
    }

    /// The same, where the number is that of a thread that was there before the recording.
    fn at_or_begin(&mut self, tid: u32, at_ns: u64) -> usize {
        self.at(tid, at_ns).unwrap_or_else(|| {
            let lives = self.by_tid.entry(tid).or_default();
            lives.insert(0, self.all.len());
            self.all.push(Life { began_ns: 0, parent: None, items: Vec::new() });
            self.all.len() - 1
        })
    }

    fn add(&mut self, life: usize, at_ns: u64, what: What) {
        if let Some(life) = self.all.get_mut(life) {
            life.items.push(Item { at_ns, what });
        }
    }
}

fn number(index: usize) -> u32 {
    u32::try_from(index).expect("fewer than 2^32 calls, threads and wakings fit into memory")
}

impl Timeline {
    /// Makes the steps of threads from the calls whose latency may change and from all turns, both in any order.
    pub fn new(spans: &[Span], schedule: &[Turn]) -> Timeline {
        let mut lives = Lives::default();
        let mut births: Vec<&Turn> =
            schedule.iter().filter(|turn| matches!(turn.what, Happened::Began { .. })).collect();
        births.sort_by_key(|turn| turn.t_ns);
        for turn in births {
            if let Happened::Began { parent } = turn.what {
                lives.begin(turn.tid, turn.t_ns, Some(parent));
            }
        }
        for (i, span) in spans.iter().enumerate() {
            let life = lives.at_or_begin(span.tid, span.t_ns);
            lives.add(life, span.t_ns, What::Call { number: number(i), dur_ns: span.dur_ns });
        }
        let mut wakings = 0;
        let mut turns: Vec<&Turn> = schedule.iter().collect();
        turns.sort_by_key(|turn| turn.t_ns);
        for turn in turns {
            let life = lives.at_or_begin(turn.tid, turn.t_ns);
            let what = match turn.what {
                Happened::Began { .. } => continue,
                Happened::Ended => What::Ended,
                Happened::Waited { until_ns } => What::Waited { until_ns },
                Happened::Recorder { own_ns } => What::Recorder { own_ns },
                Happened::Slept { woken_ns, until_ns, waker } => {
                    let waker = waker.map(|tid| lives.at_or_begin(tid, woken_ns)).filter(|&waker| waker != life);
                    let waking = waker.map(|waker| {
                        wakings += 1;
                        lives.add(waker, woken_ns, What::Gives(Step::Wake(wakings - 1)));
                        wakings - 1
                    });
                    What::Slept { woken_ns, until_ns, waking }
                }
            };
            lives.add(life, turn.t_ns, what);
        }
        Timeline::of(lives, wakings)
    }

    fn of(mut lives: Lives, wakings: u32) -> Timeline {
        let mut timeline = Timeline { wakings, ..Timeline::default() };
        for child in 0..lives.all.len() {
            let Some((began_ns, parent)) = lives.all.get(child).map(|life| (life.began_ns, life.parent)) else {
                continue;
            };
            // A thread does not start itself, whatever a recording says.
            let parent = parent.and_then(|parent| lives.at(parent, began_ns)).filter(|&parent| parent != child);
            match parent {
                Some(parent) => lives.add(parent, began_ns, What::Gives(Step::Start(number(child)))),
                None => timeline.roots.push((number(child), began_ns)),
            }
        }
        for life in &mut lives.all {
            life.items.sort_by_key(|item| (item.at_ns, item.what.rank()));
            let steps = timeline.steps(life);
            timeline.threads.push(steps);
        }
        timeline
    }

    fn steps(&mut self, life: &Life) -> Vec<Step> {
        let mut steps = Vec::new();
        let mut now_ns = life.began_ns;
        if life.parent.is_none() {
            // Nobody knows what it did before.
            let first_ns = life.items.first().map_or(now_ns, |item| item.at_ns);
            if first_ns > now_ns {
                steps.push(Step::Sleep(first_ns - now_ns));
                now_ns = first_ns;
            }
        }
        for item in &life.items {
            if item.at_ns > now_ns {
                steps.push(Step::Compute(item.at_ns - now_ns));
                self.computing_ns = self.computing_ns.saturating_add(item.at_ns - now_ns);
                now_ns = item.at_ns;
            }
            let is_within = item.at_ns < now_ns;
            match item.what {
                What::Gives(step) => {
                    // While it had no processor it gave nothing: it did so before.
                    let place = steps.len() - steps.iter().rev().take_while(|step| is_within && is_off(step)).count();
                    steps.insert(place, step);
                }
                // One in another, as a fault in a call: its time is the other's.
                What::Call { .. } if is_within => {}
                What::Call { number, dur_ns } => {
                    steps.push(Step::Call(number, dur_ns));
                    now_ns = now_ns.saturating_add(dur_ns);
                }
                What::Slept { until_ns, .. } | What::Waited { until_ns } if is_within => now_ns = now_ns.max(until_ns),
                What::Slept { woken_ns, until_ns, waking } => {
                    steps.push(waking.map_or(Step::Sleep(woken_ns - now_ns), Step::Wait));
                    steps.push(Step::Woken(until_ns - woken_ns));
                    self.wakes_ns.push(until_ns - woken_ns);
                    now_ns = until_ns;
                }
                What::Waited { until_ns } => {
                    steps.push(Step::Queued(until_ns - now_ns));
                    now_ns = until_ns;
                }
                What::Recorder { own_ns } => {
                    self.recorder_ns = self.recorder_ns.saturating_add(take_off(&mut steps, own_ns));
                }
                What::Ended => {}
            }
        }
        self.recorded_ns = self.recorded_ns.max(now_ns);
        steps
    }

    /// Lets a woken thread wait for a free processor as well: for as long as it did when recorded, but no longer than
    /// half of all wakings took, beyond which others had the processor.
    #[must_use]
    pub fn with_wakes(mut self) -> Timeline {
        self.wakes_ns.sort_unstable();
        self.wake_ns = self.wakes_ns.get(self.wakes_ns.len() / 2).copied().unwrap_or(0);
        self
    }

    /// What waking takes at most where a processor is free, nanoseconds.
    pub fn wake_ns(&self) -> u64 {
        self.wake_ns
    }

    /// From the trace's beginning to the end of its last thread, as recorded, nanoseconds.
    pub fn recorded_ns(&self) -> u64 {
        self.recorded_ns
    }

    /// Time on processors outside the calls, without the recorder's, all threads together, nanoseconds.
    pub fn computing_ns(&self) -> u64 {
        self.computing_ns.saturating_sub(self.recorder_ns)
    }

    /// Time on processors outside the calls that was the recorder's, all threads together, nanoseconds. It is in no
    /// step.
    pub fn recorder_ns(&self) -> u64 {
        self.recorder_ns
    }

    /// How many threads there were.
    pub fn threads(&self) -> u64 {
        self.threads.len() as u64
    }
}

/// Whether a thread has no processor in a step.
fn is_off(step: &Step) -> bool {
    matches!(step, Step::Sleep(_) | Step::Wait(_) | Step::Queued(_) | Step::Woken(_))
}

/// Takes time of a thread's off what it computed last, as far as there is some; how much.
fn take_off(steps: &mut [Step], ns: u64) -> u64 {
    let mut left_ns = ns;
    for step in steps.iter_mut().rev() {
        if left_ns == 0 {
            break;
        }
        if let Step::Compute(ns) = step {
            let taken_ns = left_ns.min(*ns);
            *ns -= taken_ns;
            left_ns -= taken_ns;
        }
    }
    ns - left_ns
}
