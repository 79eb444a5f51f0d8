//! The order of calls: a call may start once every call that had completed before it started in the trace has completed
//! in the replay. That is the trace's concurrency and no more.
//!
//! Calls are ranked by when they ended in the trace. A call that started when `k` calls had ended needs the first `k`
//! ranks completed. All a call waits for started before it, so waiting can never be circular.

use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Where a call stands.
#[derive(Clone, Copy, Debug)]
enum Standing {
    /// In flight in the trace at the last call produced, so without a rank; not completed in the replay.
    Open,
    /// Has its rank, not completed.
    Ranked(u64),
    /// Completed in the replay before its rank was known.
    Completed,
}

/// Turns a trace's calls, given in the order of their starts, into what each must wait for.
#[derive(Debug, Default)]
pub(super) struct Order {
    /// Calls without a rank, by (end, seq).
    in_flight: BinaryHeap<Reverse<(u64, u64)>>,
    standing: FxHashMap<u64, Standing>,
    next_rank: u64,
    /// The latest end of a ranked call.
    last_end_ns: Option<u64>,
    /// All ranks below are completed.
    prefix: u64,
    /// Completion of the ranks from `prefix` on.
    beyond: VecDeque<bool>,
}

impl Order {
    /// Takes up the next call of the trace; answers how many ranks must be completed before it may start.
    pub fn produce(&mut self, seq: u64, start_ns: u64, end_ns: u64) -> u64 {
        while let Some(&Reverse((end, ended))) = self.in_flight.peek() {
            if end > start_ns {
                break;
            }
            self.in_flight.pop();
            self.last_end_ns = Some(end.max(self.last_end_ns.unwrap_or(0)));
            let rank = self.next_rank;
            self.next_rank += 1;
            self.beyond.push_back(false);
            match self.standing.insert(ended, Standing::Ranked(rank)) {
                Some(Standing::Completed) => {
                    self.standing.remove(&ended);
                    self.mark(rank);
                }
                other => debug_assert!(matches!(other, Some(Standing::Open)), "a call is ranked once"),
            }
        }
        self.in_flight.push(Reverse((end_ns, seq)));
        self.standing.insert(seq, Standing::Open);
        self.next_rank
    }

    /// How many calls were in flight in the trace when the last call produced had started, that call included.
    pub fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// How long before this time the last call had ended in the trace; 0 where none has.
    pub fn idle_before(&self, now_ns: u64) -> u64 {
        self.last_end_ns.map_or(0, |end| now_ns.saturating_sub(end))
    }

    /// Whether a call that [`produce`](Order::produce) gave this answer for may start.
    pub fn ready(&self, needs: u64) -> bool {
        self.prefix >= needs
    }

    /// A call has completed in the replay (or will never be made).
    pub fn complete(&mut self, seq: u64) {
        match self.standing.get(&seq) {
            Some(&Standing::Ranked(rank)) => {
                self.standing.remove(&seq);
                self.mark(rank);
            }
            Some(Standing::Open) => {
                self.standing.insert(seq, Standing::Completed);
            }
            Some(Standing::Completed) | None => debug_assert!(false, "call {seq} completed twice"),
        }
    }

    fn mark(&mut self, rank: u64) {
        let place = usize::try_from(rank - self.prefix).unwrap_or(usize::MAX);
        if let Some(done) = self.beyond.get_mut(place) {
            *done = true;
        }
        while self.beyond.front() == Some(&true) {
            self.beyond.pop_front();
            self.prefix += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serial_calls_wait_for_their_predecessor() {
        let mut o = Order::default();
        assert_eq!(o.produce(0, 0, 10), 0);
        let k = o.produce(1, 10, 20);
        assert_eq!(k, 1, "a call that ended when the next began has ended");
        assert!(!o.ready(k));
        o.complete(0);
        assert!(o.ready(k));
    }

    #[test]
    fn overlapping_calls_do_not_wait_for_each_other() {
        let mut o = Order::default();
        let a = o.produce(0, 0, 100);
        let b = o.produce(1, 50, 60);
        assert!(o.ready(a) && o.ready(b));
        assert_eq!(o.in_flight(), 2);
        // The third started after b ended, while a was still running: it needs b alone.
        let c = o.produce(2, 70, 80);
        assert!(!o.ready(c));
        o.complete(1);
        assert!(o.ready(c));
        // The fourth needs all three; completions may come in any order.
        let d = o.produce(3, 200, 210);
        o.complete(2);
        assert!(!o.ready(d));
        o.complete(0);
        assert!(o.ready(d));
    }

    #[test]
    fn equal_times_never_wait_in_a_circle() {
        let mut o = Order::default();
        let a = o.produce(0, 5, 5);
        let b = o.produce(1, 5, 5);
        assert!(o.ready(a));
        assert!(!o.ready(b));
        o.complete(0);
        assert!(o.ready(b));
    }

    #[test]
    fn a_completion_may_come_before_the_rank() {
        let mut o = Order::default();
        o.produce(0, 0, 1000);
        o.complete(0);
        let k = o.produce(1, 2000, 2001);
        assert_eq!(k, 1);
        assert!(o.ready(k));
    }
}
