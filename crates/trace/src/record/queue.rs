//! A queue of bytes with a bound, between the thread that hears the tracer and the one that writes the spool.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Chunks on their way. The bound is in bytes; what does not fit within a time is the pusher's to count.
#[derive(Debug)]
pub(super) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
    bytes_max: usize,
}

#[derive(Debug, Default)]
struct State {
    chunks: VecDeque<Vec<u8>>,
    bytes: usize,
    closed: bool,
    /// Records that were left out on the way in.
    lost: u64,
}

/// What the popper got.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Popped {
    Chunk(Vec<u8>),
    /// Nothing came in the time.
    Nothing,
    /// Nothing will come.
    Closed,
}

impl Queue {
    pub fn new(bytes_max: usize) -> Queue {
        Queue { state: Mutex::default(), changed: Condvar::new(), bytes_max }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends a chunk, waiting at most so long for room; `false` if there was none. An empty queue takes a chunk of
    /// any size.
    pub fn push(&self, chunk: &[u8], wait: Duration) -> bool {
        let full = |state: &mut State| {
            !state.closed && state.bytes > 0 && state.bytes.saturating_add(chunk.len()) > self.bytes_max
        };
        let waited = self.changed.wait_timeout_while(self.lock(), wait, full);
        let (mut state, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        if timeout.timed_out() || state.closed {
            return false;
        }
        state.bytes += chunk.len();
        state.chunks.push_back(chunk.to_vec());
        drop(state);
        self.changed.notify_all();
        true
    }

    /// Takes the oldest chunk, waiting for one until `until`.
    pub fn pop(&self, until: Instant) -> Popped {
        let wait = until.saturating_duration_since(Instant::now());
        let empty = |state: &mut State| state.chunks.is_empty() && !state.closed;
        let waited = self.changed.wait_timeout_while(self.lock(), wait, empty);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let Some(chunk) = state.chunks.pop_front() else {
            return if state.closed { Popped::Closed } else { Popped::Nothing };
        };
        state.bytes -= chunk.len();
        drop(state);
        self.changed.notify_all();
        Popped::Chunk(chunk)
    }

    /// Notes that records were left out on the way in.
    pub fn lose(&self, records: u64) {
        let mut state = self.lock();
        state.lost = state.lost.saturating_add(records);
    }

    /// How many records were left out since this was asked last.
    pub fn take_lost(&self) -> u64 {
        std::mem::take(&mut self.lock().lost)
    }

    /// Nothing more is pushed. What is in the queue can still be popped.
    pub fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_bounded_and_keeps_the_order() {
        let queue = Queue::new(10);
        assert!(queue.push(b"longer than the bound", Duration::ZERO), "an empty queue takes anything");
        assert!(!queue.push(b"x", Duration::ZERO), "a full one nothing");
        let now = Instant::now();
        assert_eq!(queue.pop(now), Popped::Chunk(b"longer than the bound".to_vec()));
        assert!(queue.push(b"12345", Duration::ZERO) && queue.push(b"67890", Duration::ZERO));
        assert!(!queue.push(b"1", Duration::ZERO));
        assert_eq!(queue.pop(now), Popped::Chunk(b"12345".to_vec()));
        queue.close();
        assert!(!queue.push(b"1", Duration::from_secs(3600)), "a closed queue takes nothing, at once");
        assert_eq!(queue.pop(now), Popped::Chunk(b"67890".to_vec()));
        assert_eq!(queue.pop(now), Popped::Closed);
    }

    #[test]
    fn who_waits_for_room_gets_it() {
        let queue = Queue::new(1);
        assert!(queue.push(b"a", Duration::ZERO));
        std::thread::scope(|scope| {
            let pusher = scope.spawn(|| queue.push(b"b", Duration::from_secs(3600)));
            let far = Instant::now() + Duration::from_secs(3600);
            assert_eq!(queue.pop(far), Popped::Chunk(b"a".to_vec()));
            assert_eq!(queue.pop(far), Popped::Chunk(b"b".to_vec()));
            assert!(pusher.join().expect("no panic"));
        });
    }
}
