//! Processors that the processes of a workload compute on, shared in slices: while all are taken, the others wait their
//! turn.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// How long a process computes before another gets its turn: a clock tick of the systems of the time.
pub(crate) const SLICE_NS: u64 = 10_000_000;

/// A number of processors.
#[derive(Debug)]
pub(crate) struct Processors(Mutex<Turns>);

#[derive(Debug)]
struct Turns {
    free: u32,
    /// Who waits, first come first served.
    waiting: VecDeque<usize>,
}

impl Processors {
    pub(crate) fn new(count: u32) -> Processors {
        Processors(Mutex::new(Turns { free: count.max(1), waiting: VecDeque::new() }))
    }

    /// Takes a processor, or a place in the queue. Whoever got `false` asks again once others have got on.
    pub(crate) fn take(&self, process: usize) -> bool {
        let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !turns.waiting.contains(&process) {
            turns.waiting.push_back(process);
        }
        let granted = turns.free > 0 && turns.waiting.front() == Some(&process);
        if granted {
            turns.waiting.pop_front();
            turns.free -= 1;
        }
        granted
    }

    /// Gives it back.
    pub(crate) fn give(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).free += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_given_in_the_order_of_asking() {
        let one = Processors::new(1);
        assert!(one.take(0));
        assert!(!one.take(1) && !one.take(2) && !one.take(1));
        one.give();
        assert!(!one.take(0), "the others come first");
        assert!(!one.take(2) && one.take(1));
        one.give();
        assert!(one.take(2));
        one.give();
        assert!(one.take(0));
        let two = Processors::new(2);
        assert!(two.take(0) && two.take(1) && !two.take(2));
    }
}
