//! Concurrent drivers as state machines.
//!
//! A driver with more than one thread of control is a set of processes, each yielding its next call given the
//! outcome of the last. A mounted file system runs each on an OS thread; the laboratory interleaves them in virtual
//! time. Such a driver is written once.
//!
//! A driver whose calls borrow nothing of its own is better written straight down: as an async block that awaits each
//! of its calls ([`process`]).

use crate::{Call, Outcome};
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

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

/// Runs processes one after the other, with calls that `call` makes; pauses take no time.
///
/// # Errors
/// One waits for another.
pub fn run_one_by_one(
    processes: Vec<Box<dyn Process + '_>>,
    mut call: impl FnMut(&Call<'_>) -> Outcome,
) -> std::io::Result<()> {
    for mut process in processes {
        let mut last = None;
        loop {
            match process.next(last.as_ref()) {
                Step::Call(made) => last = Some(call(&made)),
                Step::PauseNs(_) => last = None,
                Step::Blocked => return Err(std::io::ErrorKind::Deadlock.into()),
                Step::Done => break,
            }
        }
    }
    Ok(())
}

/// What a process that is written as an async block makes its calls with.
#[derive(Debug)]
pub struct Calls<'c>(Arc<Mutex<Exchange<'c>>>);

/// What passes between an async block and who runs it; of the two, one waits for the other.
#[derive(Debug, Default)]
struct Exchange<'c> {
    step: Option<Step<'c>>,
    outcome: Option<Outcome>,
}

impl<'c> Calls<'c> {
    /// Makes a call.
    pub async fn make(&self, call: Call<'c>) -> Outcome {
        self.take(Step::Call(call)).await.expect("who makes a call gives its outcome")
    }

    /// Waits until another process has made progress.
    pub async fn blocked(&self) {
        self.take(Step::Blocked).await;
    }

    async fn take(&self, step: Step<'c>) -> Option<Outcome> {
        let mut step = Some(step);
        // Nobody asks again before the step is taken.
        poll_fn(|_| match step.take() {
            None => Poll::Ready(self.lock().outcome.take()),
            step => {
                self.lock().step = step;
                Poll::Pending
            }
        })
        .await
    }

    fn lock(&self) -> MutexGuard<'_, Exchange<'c>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// See [`process`].
struct Awaiting<'c, F> {
    calls: Calls<'c>,
    /// `None`: it has ended.
    body: Option<Pin<Box<F>>>,
}

impl<F: Future<Output = ()> + Send> Process for Awaiting<'_, F> {
    fn next(&mut self, last: Option<&Outcome>) -> Step<'_> {
        let Some(body) = &mut self.body else { return Step::Done };
        self.calls.lock().outcome = last.copied();
        if body.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {
            return self.calls.lock().step.take().expect("a process waits for nothing but its steps");
        }
        self.body = None;
        Step::Done
    }
}

/// A process written as an async block. No executor runs it: it goes on when it is asked for its next step. Its calls
/// borrow what outlives it, nothing of its own.
pub fn process<'c, F>(body: impl FnOnce(Calls<'c>) -> F) -> impl Process + 'c
where
    F: Future<Output = ()> + Send + 'c,
{
    let exchange = Arc::default();
    Awaiting { calls: Calls(Arc::clone(&exchange)), body: Some(Box::pin(body(Calls(exchange)))) }
}
