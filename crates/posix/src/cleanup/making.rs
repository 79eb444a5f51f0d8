//! What is in the list and just being made.
//!
//! The forced clean-up runs beside the threads that make things. What is removed before it is there stays, so it waits
//! for what is being made, and nothing new is begun once it has.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long the clean-up waits for what is being made: whoever mounts from a drive that does not answer is not waited
/// for.
const PATIENCE: Duration = Duration::from_secs(5);

/// The forced clean-up has begun.
static ENDED: AtomicBool = AtomicBool::new(false);
/// How many things are being made.
static AT_WORK: Mutex<u64> = Mutex::new(0);
static DONE: Condvar = Condvar::new();

fn at_work() -> MutexGuard<'static, u64> {
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

/// From before a thing is entered until it is there, or has come to nothing.
#[derive(Debug)]
pub(crate) struct Making(());

/// Begins to make something; for good where the forced clean-up has begun.
pub(crate) fn begin() -> Making {
    let mut at_work = at_work();
    if ENDED.load(Ordering::SeqCst) {
        drop(at_work);
        stand_aside();
        unreachable!("the clean-up has begun, and nobody takes that back");
    }
    *at_work += 1;
    Making(())
}

impl Drop for Making {
    fn drop(&mut self) {
        *at_work() -= 1;
        DONE.notify_all();
    }
}

/// Waits until nothing is being made. Whoever begins after this stops there.
pub(super) fn end() {
    ENDED.store(true, Ordering::SeqCst);
    // Whoever is not done by then is taken as it is.
    drop(DONE.wait_timeout_while(at_work(), PATIENCE, |at_work| *at_work > 0));
}
