//! Where the time of threads went: in calls on files, on a processor otherwise, asleep, or waiting for a processor.

use crate::schedule::{Happened, Turn};
use crate::{Event, Op, flag};
use rustc_hash::FxHashMap;
use serde::Serialize;

/// Where the time of all threads together went, nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ThreadTime {
    /// From the beginning to the end of each thread, as far as the trace shows it.
    pub alive_ns: u64,
    /// In calls on files, whatever they did there; accesses through mappings are such calls.
    pub in_calls_ns: u64,
    /// On a processor outside these calls, the recorder's own time included.
    pub computing_ns: u64,
    /// Asleep outside them: waiting for another thread, a timer, a socket.
    pub waiting_ns: u64,
    /// Ready to run outside them, without a processor.
    pub queued_ns: u64,
}

/// What is counted of events until the turns are known.
#[derive(Debug, Default)]
pub(super) struct Calls {
    /// When each thread made its first call.
    first_ns: FxHashMap<u32, u64>,
    time_ns: u64,
    blocked_ns: u64,
    queued_ns: u64,
}

impl Calls {
    pub fn add(&mut self, event: &Event) {
        let (Some(running), Some(blocked)) = (event.head.running_ns, event.head.blocked_ns) else { return };
        self.first_ns.entry(event.head.tid).or_insert(event.head.t_ns);
        if event.head.flags & flag::FOREIGN == 0 && event.op() != Op::Clone {
            self.time_ns = self.time_ns.saturating_add(event.head.dur_ns);
            self.blocked_ns = self.blocked_ns.saturating_add(blocked);
            let queued = event.head.dur_ns.saturating_sub(running).saturating_sub(blocked);
            self.queued_ns = self.queued_ns.saturating_add(queued);
        }
    }

    pub fn finish(self, turns: &[Turn]) -> ThreadTime {
        let mut alive: FxHashMap<u32, (u64, u64)> =
            self.first_ns.iter().map(|(&tid, &t_ns)| (tid, (t_ns, t_ns))).collect();
        let (mut alive_ns, mut slept_ns, mut queued_ns) = (0u64, 0u64, 0u64);
        let mut ended = |tid: u32, alive: &mut FxHashMap<u32, (u64, u64)>| {
            let (from, to) = alive.remove(&tid).unwrap_or_default();
            alive_ns = alive_ns.saturating_add(to.saturating_sub(from));
        };
        for turn in turns {
            if let Happened::Began { .. } = turn.what {
                // Of one that made calls before it began, somebody else had the number.
                if alive.get(&turn.tid).is_some_and(|&(from, _)| from < turn.t_ns) {
                    ended(turn.tid, &mut alive);
                }
                alive.insert(turn.tid, (turn.t_ns, turn.t_ns));
            }
            let until = match turn.what {
                Happened::Slept { woken_ns, until_ns, .. } => {
                    slept_ns = slept_ns.saturating_add(woken_ns - turn.t_ns);
                    queued_ns = queued_ns.saturating_add(until_ns - woken_ns);
                    until_ns
                }
                Happened::Waited { until_ns } => {
                    queued_ns = queued_ns.saturating_add(until_ns - turn.t_ns);
                    until_ns
                }
                Happened::Began { .. } | Happened::Recorder { .. } | Happened::Ended => turn.t_ns,
            };
            let (_, last) = alive.entry(turn.tid).or_insert((turn.t_ns, turn.t_ns));
            *last = until.max(*last);
            if turn.what == Happened::Ended {
                ended(turn.tid, &mut alive);
            }
        }
        let mut left: Vec<u32> = alive.keys().copied().collect();
        left.sort_unstable();
        left.into_iter().for_each(|tid| ended(tid, &mut alive));
        let (waiting_ns, queued_ns) =
            (slept_ns.saturating_sub(self.blocked_ns), queued_ns.saturating_sub(self.queued_ns));
        let elsewhere = self.time_ns.saturating_add(waiting_ns).saturating_add(queued_ns);
        let computing_ns = alive_ns.saturating_sub(elsewhere);
        ThreadTime { alive_ns, in_calls_ns: self.time_ns, computing_ns, waiting_ns, queued_ns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Row;

    /// One makes another at 100, which computes, is called upon at 300, reads a file, and ends; the first waits for
    /// that.
    #[test]
    fn two_threads_counted_by_hand() {
        let call = |tid: u32, t_ns: u64, dur_ns: u64, running_ns: u64, blocked_ns: u64| Row {
            tid,
            dur_ns,
            running_ns: Some(running_ns),
            blocked_ns: Some(blocked_ns),
            ..Row::new(0, t_ns, Op::Read)
        };
        let mut calls = Calls::default();
        calls.add(&call(1, 0, 50, 50, 0).into());
        calls.add(&call(2, 300, 100, 20, 70).into());
        calls.add(&Row { flags: flag::FOREIGN, ..call(1, 160, 40, 40, 0) }.into());
        calls.add(&Row { op: Op::Clone, ..call(1, 90, 20, 20, 0) }.into());
        let turn = |tid: u32, t_ns: u64, what: Happened| Turn { tid, t_ns, what };
        let turns = [
            turn(2, 100, Happened::Began { parent: 1 }),
            turn(2, 100, Happened::Waited { until_ns: 120 }),
            turn(1, 200, Happened::Slept { woken_ns: 500, until_ns: 510, waker: Some(2) }),
            turn(2, 310, Happened::Slept { woken_ns: 380, until_ns: 390, waker: None }),
            turn(2, 500, Happened::Ended),
            turn(1, 600, Happened::Ended),
        ];
        let expected = ThreadTime {
            alive_ns: 600 + 400,
            in_calls_ns: 150,
            computing_ns: (600 - 310 - 50) + (400 - 20 - 100),
            waiting_ns: 300,
            queued_ns: 10 + 20,
        };
        assert_eq!(calls.finish(&turns), expected);
    }
}
