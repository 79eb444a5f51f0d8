//! Long work: without the interpreter's lock, and ended by Ctrl-C.

use crate::errors::Raised;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// How often Python is asked whether a signal has come.
const ASKED: Duration = Duration::from_millis(50);

/// Whether the work is to end early.
#[derive(Debug, Default)]
pub struct Stop(AtomicBool);

impl Stop {
    /// Whether somebody has asked for it.
    pub fn requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Does something long on another thread, while other Python threads run, and asks for signals meanwhile. Once one has raised an exception
/// (Ctrl-C: `KeyboardInterrupt`), the work is told to stop, waited for, and its result is dropped.
pub fn long<T: Send>(py: Python<'_>, work: impl FnOnce(&Stop) -> Result<T, Raised> + Send) -> PyResult<T> {
    let stop = Stop::default();
    let done = py.detach(|| {
        std::thread::scope(|scope| {
            let (tell, told) = mpsc::channel::<()>();
            let stop = &stop;
            let worker = scope.spawn(move || {
                // Dropped at the end, also by a panic: that is what is waited for.
                let _tell = tell;
                work(stop)
            });
            let mut raised = None;
            while told.recv_timeout(ASKED) == Err(RecvTimeoutError::Timeout) {
                if raised.is_none() {
                    raised = Python::attach(|py| py.check_signals()).err();
                    stop.0.store(raised.is_some(), Ordering::Relaxed);
                }
            }
            let done = worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            match raised {
                Some(error) => Err(Raised::Python(error)),
                None => done,
            }
        })
    });
    Ok(done?)
}
