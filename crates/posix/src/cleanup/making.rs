//! What is in the list and just being made.
//!
//! The forced clean-up runs beside the threads that make things. What is removed before it is there stays, so it waits
//! for what is being made, and nothing new is begun once it has.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long the clean-up waits for what is being made: whoever mounts from a drive that does not answer is not waited
/// for.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug)]
struct State {
    at_work: u64,
    has_ended: bool,
}

static STATE: Mutex<State> = Mutex::new(State { at_work: 0, has_ended: false });
static DONE: Condvar = Condvar::new();

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From before a thing is entered until it is there, or has come to nothing.
#[derive(Debug)]
pub(crate) struct Making(());

/// Begins to make something; for good where the forced clean-up has begun.
pub(crate) fn begin() -> Making {
    let mut state = state();
    if state.has_ended {
        drop(state);
        loop {
            std::thread::park();
        }
    }
    state.at_work += 1;
    Making(())
}

impl Drop for Making {
    fn drop(&mut self) {
        state().at_work -= 1;
        DONE.notify_all();
    }
}

/// Waits until nothing is being made. Whoever begins after this stops there.
pub(super) fn end() {
    let mut state = state();
    state.has_ended = true;
    // Whoever is not done by now is taken as it is.
    drop(DONE.wait_timeout_while(state, PATIENCE, |state| state.at_work > 0));
}
