//! What is in the list and just being made, or taking its place.
//!
//! The forced clean-up runs beside the threads that make things. What is removed before it is there stays, and what is
//! emptied on the way to its place arrives empty. So it waits for them, and nothing new is begun once it has. What is
//! not done in time it leaves alone: the next run finds it in the journal.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long the clean-up waits: whoever mounts from a drive that does not answer is not waited for.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// The forced clean-up has begun.
static ENDED: AtomicBool = AtomicBool::new(false);
/// What is being made.
static AT_WORK: Mutex<Vec<u64>> = Mutex::new(Vec::new());
static DONE: Condvar = Condvar::new();
static NEXT: AtomicU64 = AtomicU64::new(0);

fn at_work() -> MutexGuard<'static, Vec<u64>> {
    AT_WORK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Stops the calling thread for good once the forced clean-up has begun, which ends the process: what it would make
/// now would be left behind, and what it would fail at is no news.
#[inline]
pub fn stand_aside() {
    if ENDED.load(Ordering::Relaxed) {
        loop {
            std::thread::park();
        }
    }
}

/// From before a thing is entered until it is there, or has come to nothing; from before it moves until it has moved.
#[derive(Debug)]
pub(crate) struct Making(u64);

/// Begins to make something; for good where the forced clean-up has begun.
///
/// Whoever may drop an entry drops this first: there the thread may be stopped, and would be waited for.
pub(crate) fn begin() -> Making {
    let mut at_work = at_work();
    if ENDED.load(Ordering::SeqCst) {
        drop(at_work);
        stand_aside();
        unreachable!("the clean-up has begun, and nobody takes that back");
    }
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    at_work.push(number);
    Making(number)
}

impl Making {
    pub(super) fn number(&self) -> u64 {
        self.0
    }
}

impl Drop for Making {
    fn drop(&mut self) {
        at_work().retain(|number| *number != self.0);
        DONE.notify_all();
    }
}

/// Waits until nothing is being made; what still is, if that takes too long. Whoever begins after this stops there.
pub(super) fn end() -> Vec<u64> {
    ENDED.store(true, Ordering::SeqCst);
    let waited = DONE.wait_timeout_while(at_work(), PATIENCE, |at_work| !at_work.is_empty());
    waited.unwrap_or_else(PoisonError::into_inner).0.clone()
}
