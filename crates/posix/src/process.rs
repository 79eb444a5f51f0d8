//! Concurrent drivers as state machines.
//!
//! A driver with more than one thread of control is a set of processes, each yielding its next call given the
//! outcome of the last. A mounted file system runs each on an OS thread; the laboratory interleaves them in virtual
//! time. Such a driver is written once.

use crate::{Call, Outcome};

/// What a process does next.
#[derive(Debug)]
pub enum Step<'a> {
    /// Make this call; the next [`Process::next`] receives its outcome.
    Call(Call<'a>),
    /// Compute or sleep for this long, then ask again (with no outcome).
    PauseNs(u64),
    /// It cannot go on before some other process has made progress: ask again (with no outcome) after
    /// any other process has completed a call or ended.
    Blocked,
    /// It has ended.
    Done,
}

/// One simulated process or thread: a small state machine.
pub trait Process: Send {
    /// The next step. `last` is the outcome of the call returned before, if that step was a call.
    fn next(&mut self, last: Option<&Outcome>) -> Step<'_>;
}
