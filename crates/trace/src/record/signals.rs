//! What a signal to us means while we record. SIGINT and SIGTERM end the recording, and a command gets them too.
//! Whatever else would have ended or reached the command in our place it gets alone.

use super::descendants::descendants;
use posix::interrupt::{self, PassOn, Received};
use std::time::{Duration, Instant};

/// Signals so soon after the first are the same wish: `timeout` sends to us and then to our whole group.
const SAME: Duration = Duration::from_secs(1);

/// Listens to signals from the start of what is recorded to the end of the command.
#[derive(Debug)]
pub(super) struct Signals {
    guard: PassOn,
    wishes: Wishes,
    last: i32,
    /// The command has not got the last one yet.
    unsent: Option<i32>,
    from_kernel: bool,
    of_command: bool,
}

/// What signals ask for, by when they come.
#[derive(Debug, Default)]
struct Wishes {
    /// When the recording was asked to end, or ended.
    ended: Option<Instant>,
}

impl Wishes {
    /// A signal came.
    fn on_signal(&mut self, now: Instant) -> Option<Wish> {
        match self.ended {
            None => {
                self.ended = Some(now);
                Some(Wish::End)
            }
            Some(ended) if now.duration_since(ended) < SAME => None,
            Some(_) => Some(Wish::Leave),
        }
    }

    /// The recording is over, and there is nothing left that a signal could ask to end but us.
    fn over(&mut self, now: Instant) {
        self.ended.get_or_insert(now);
    }
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
    /// `of_command`: what is recorded is a command of ours.
    pub fn listen(of_command: bool) -> Signals {
        Signals {
            guard: interrupt::pass_on(),
            wishes: Wishes::default(),
            last: 0,
            unsent: None,
            from_kernel: false,
            of_command,
        }
    }

    /// The wish of the signal received since the last time, if any. The command gets it by [`pass_on`](Self::pass_on),
    /// unless the kernel sent it: a terminal's Ctrl-C has reached the command by itself, as it is in our process group.
    /// One that the command, or a child of its, sent to its process group (`kill 0`) is no wish: it was for what it
    /// started, and it may have seen to it that it survives that itself, once.
    pub fn take(&mut self, command: Option<u32>) -> Option<Wish> {
        let received = self.asking().filter(|received| !is_of(command, received.from))?;
        self.last = received.signal;
        self.from_kernel = received.from_kernel;
        self.unsent = Some(received.signal).filter(|_| !received.from_kernel);
        // Ctrl-C goes to everybody in front of the terminal. A command that goes on does something with it that is its
        // own: who left it would leave it behind the terminal.
        self.wishes.on_signal(Instant::now()).filter(|&wish| {
            let is_its_own = received.from_kernel && command.is_some();
            !(wish == Wish::Leave && is_its_own)
        })
    }

    /// What was recorded has ended. A signal that came with the end has nothing more to ask for; one that comes later
    /// asks us to leave.
    pub fn over(&mut self) {
        let _ = self.take(None);
        self.wishes.over(Instant::now());
    }

    /// A signal that asks us to end. Without a command there is nobody else whom any could be for.
    fn asking(&mut self) -> Option<Received> {
        let received = self.guard.take();
        if received.is_some() || self.of_command {
            return received;
        }
        let other = self.guard.others().last()?;
        Some(Received { signal: other.signal, from_kernel: other.from.is_none(), from: other.from })
    }

    /// Gives a running command what came for it and does not ask us to end: SIGUSR1 from whoever knows us alone, the
    /// alarm of whoever executed us. What the command or a child of its sent to the parent that it finds stays ours: it
    /// would be its own end.
    pub fn relay(&mut self, command: Option<u32>) {
        if !self.of_command {
            return;
        }
        for other in self.guard.others() {
            if let Some(command) = command.filter(|_| !is_of(command, other.from)) {
                interrupt::send(command, other.signal);
            }
        }
    }

    /// Gives a running command the signal received last, if it has not got it.
    pub fn pass_on(&mut self, command: Option<u32>) {
        if let Some(command) = command
            && let Some(signal) = self.unsent.take()
        {
            interrupt::send(command, signal);
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

/// Whether a signal's sender is the command, or runs below it.
fn is_of(command: Option<u32>, from: Option<u32>) -> bool {
    command.zip(from).is_some_and(|(command, from)| descendants(&[command]).contains(&from))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After a command that had ended by itself, SIGTERM was taken for the wish to end the recording, which was over:
    /// nothing came of it.
    #[test]
    fn a_signal_after_the_end_asks_to_leave() {
        let begun = Instant::now();
        let mut asked = Wishes::default();
        assert_eq!(asked.on_signal(begun), Some(Wish::End));
        asked.over(begun + SAME / 2);
        assert_eq!(asked.on_signal(begun + SAME / 2), None);
        assert_eq!(asked.on_signal(begun + SAME), Some(Wish::Leave));
        let mut by_itself = Wishes::default();
        by_itself.over(begun);
        assert_eq!(by_itself.on_signal(begun + SAME / 2), None, "sent to the command and to us, as it ended");
        assert_eq!(by_itself.on_signal(begun + SAME), Some(Wish::Leave));
    }
}
