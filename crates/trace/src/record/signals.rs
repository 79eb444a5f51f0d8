//! What a signal to us means while we record: the recording ends, and a command gets it too.

use posix::interrupt::{self, PassOn};
use rustix::process::{Pid, Signal, kill_process};
use std::time::{Duration, Instant};

/// Signals so soon after the first are the same wish: `timeout` sends to us and then to our whole group.
const SAME: Duration = Duration::from_secs(1);

/// Listens to signals from the start of what is recorded to the end of the command.
#[derive(Debug)]
pub(super) struct Signals {
    guard: PassOn,
    first: Option<Instant>,
    last: i32,
    /// The command has not got the last one yet.
    unsent: Option<Signal>,
    from_kernel: bool,
}

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    /// To end the recording.
    End,
    /// Not to wait any more.
    Leave,
}

impl Signals {
    pub fn listen() -> Signals {
        Signals { guard: interrupt::pass_on(), first: None, last: 0, unsent: None, from_kernel: false }
    }

    /// The wish of the signal received since the last time, if any. The command gets it by [`pass_on`](Self::pass_on), unless the kernel
    /// sent it: a terminal's Ctrl-C has reached the command by itself, as it is in our process group.
    pub fn take(&mut self) -> Option<Wish> {
        let received = self.guard.take()?;
        self.last = received.signal;
        self.from_kernel = received.from_kernel;
        self.unsent = Signal::from_named_raw(received.signal).filter(|_| !received.from_kernel);
        match self.first {
            None => {
                self.first = Some(Instant::now());
                Some(Wish::End)
            }
            Some(first) if first.elapsed() < SAME => None,
            Some(_) => Some(Wish::Leave),
        }
    }

    /// Gives a running command the signal received last, if it has not got it.
    pub fn pass_on(&mut self, command: Option<u32>) {
        if let Some(pid) = command.and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw)
            && let Some(signal) = self.unsent.take()
        {
            let _ = kill_process(pid, signal);
        }
    }

    /// Whether the last one came from the kernel, as a terminal's do: the command has it, or is about to.
    pub fn was_from_kernel(&self) -> bool {
        self.from_kernel
    }

    /// The last signal received.
    pub fn last(&self) -> Option<i32> {
        Some(self.last).filter(|&signal| signal != 0)
    }
}
