//! One piece of work done by a process that was made before [`contain::prepare`](crate::contain::prepare): it is in no
//! namespace of ours, has the user's own rights, and so has what it starts.
//!
//! In a user namespace that gives an ordinary user one right, nobody may trace the programs that this process starts:
//! strace has not that right.
#![allow(unsafe_code)]

use crate::interrupt;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, WaitOptions, waitpid};
use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A process that waits for what it is to work on. Dropped, it ends without having worked.
#[derive(Debug)]
pub struct Apart {
    process: Pid,
    /// Its end is the end of what it is asked.
    question: Option<PipeWriter>,
    answer: PipeReader,
}

/// How often who waits for an answer looks whether it has been interrupted.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

impl Apart {
    /// Forks. `work` gets what is asked and gives the answer; it may start threads and processes. Its process ends with
    /// this one, however this one ends.
    ///
    /// # Errors
    /// No process can be made. [`io::ErrorKind::Unsupported`]: this process has more than one thread (an emulator of
    /// processors has one of its own); what the others hold, the new process would wait for without end.
    pub fn fork(work: impl FnOnce(Vec<u8>) -> Vec<u8>) -> io::Result<Apart> {
        let threads = std::fs::read_dir("/proc/self/task").map_or(1, Iterator::count);
        if threads != 1 {
            let why =
                format!("further threads run in this process: {}, as under an emulator", threads.saturating_sub(1));
            return Err(io::Error::new(io::ErrorKind::Unsupported, why));
        }
        let (mut asked, question) = io::pipe()?;
        let (answer, mut answering) = io::pipe()?;
        let parent = rustix::process::getpid();
        // SAFETY: there is one thread, so the child may do whatever this process could.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                drop((question, answer));
                let done = catch_unwind(AssertUnwindSafe(|| -> io::Result<()> {
                    // SAFETY: a plain system call.
                    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0) };
                    if rustix::process::getppid() != Some(parent) {
                        return Ok(());
                    }
                    let mut what = Vec::new();
                    asked.read_to_end(&mut what)?;
                    if what.is_empty() { Ok(()) } else { answering.write_all(&work(what)) }
                }));
                // SAFETY: ends this process alone, without what the other has registered for its end.
                unsafe { libc::_exit(if matches!(done, Ok(Ok(()))) { 0 } else { libc::EXIT_FAILURE }) }
            }
            child => {
                let process = Pid::from_raw(child).expect("the number of a process");
                Ok(Apart { process, question: Some(question), answer })
            }
        }
    }

    /// Asks, and waits for the answer. A signal that asks this process to stop is passed on, and waited for what comes
    /// of it.
    ///
    /// # Errors
    /// The process ended without an answer, or was interrupted ([`io::ErrorKind::Interrupted`]).
    ///
    /// # Panics
    /// Nothing is asked.
    pub fn ask(mut self, what: &[u8]) -> io::Result<Vec<u8>> {
        assert!(!what.is_empty(), "an empty question is none");
        let told = self.question.take().map(|mut question| question.write_all(what));
        let mut passed_on = false;
        let mut answer = Vec::new();
        loop {
            if interrupt::requested() && !passed_on {
                passed_on = true;
                interrupt::send(
                    self.process.as_raw_nonzero().get().cast_unsigned(),
                    interrupt::signal().unwrap_or(libc::SIGTERM),
                );
            }
            let mut ready = [PollFd::new(&self.answer, PollFlags::IN)];
            match poll(&mut ready, Some(&LOOK)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => continue,
                Ok(_) => {}
                Err(errno) => return Err(errno.into()),
            }
            let mut part = [0; 4096];
            match self.answer.read(&mut part)? {
                0 => break,
                len => answer.extend_from_slice(part.get(..len).expect("no more than asked for")),
            }
        }
        if answer.is_empty() {
            interrupt::check()?;
            told.unwrap_or(Ok(()))?;
            return Err(io::Error::other("the process that was to do it ended without an answer"));
        }
        Ok(answer)
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        self.question = None;
        let _ = waitpid(Some(self.process), WaitOptions::empty());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::thread;

    #[test]
    fn beside_another_thread_no_process_is_made() {
        let (end, ended) = mpsc::channel::<()>();
        let other = thread::spawn(move || ended.recv());
        let made = Apart::fork(|_| unreachable!("nobody asks"));
        assert!(made.is_err_and(|error| error.kind() == io::ErrorKind::Unsupported));
        drop(end);
        assert!(other.join().expect("no panic").is_err());
    }
}
