//! Reading a file along while it grows.

use std::fs::File;
use std::io::{self, Read};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// How far a writer in this process has got.
#[derive(Debug, Default)]
pub struct Growth {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// The end of the last whole frame.
    len_bytes: u64,
    ended: bool,
}

impl Growth {
    pub(super) fn new() -> Arc<Growth> {
        Arc::new(Growth::default())
    }

    /// So many bytes can be read.
    pub(super) fn reached(&self, len_bytes: u64) {
        self.change(|state| state.len_bytes = len_bytes);
    }

    /// Nothing more will come.
    pub(super) fn end(&self) {
        self.change(|state| state.ended = true);
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        // A state of two values is sound whoever panicked beside it.
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_all();
    }

    /// Waits until there are bytes behind `at`: how many, or 0 where the end was reached.
    fn wait(&self, at: u64) -> u64 {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let state = self
            .changed
            .wait_while(state, |state| state.len_bytes <= at && !state.ended)
            .unwrap_or_else(PoisonError::into_inner);
        state.len_bytes.saturating_sub(at)
    }
}

/// A file being written, as one long input: at the end of what is there it waits for more.
#[derive(Debug)]
pub struct Follow {
    file: File,
    growth: Arc<Growth>,
    at: u64,
}

impl Follow {
    /// Follows from the beginning of `file` on.
    pub fn new(file: File, growth: Arc<Growth>) -> Follow {
        Follow { file, growth, at: 0 }
    }
}

impl Read for Follow {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let there = usize::try_from(self.growth.wait(self.at)).unwrap_or(usize::MAX);
        let len = buffer.len().min(there);
        let Some(part) = buffer.get_mut(..len) else { return Ok(0) };
        let n = self.file.read(part)?;
        self.at += n as u64;
        Ok(n)
    }
}
