//! A command that exists and waits to be let go, so that somebody can attach to it before its first call.
//!
//! The child is an ordinary child of ours: its exit status, its process group, its standard streams and its signals have nothing to
//! do with whoever attached, and go on when that one is gone. Between `fork` and `execve` it tells its number and waits on a pipe; a
//! pipe that closes without a word (we were killed) ends it before it was anything.
#![allow(unsafe_code)]

use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd, RawFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command};
use std::thread::JoinHandle;

/// A command between `fork` and `execve`. Dropped, it ends without having run.
#[derive(Debug)]
pub struct Held {
    pid: u32,
    go: Option<io::PipeWriter>,
    /// `Command::spawn` returns only when the program has been executed, so it waits in a thread.
    spawning: Option<JoinHandle<io::Result<Child>>>,
}

impl Held {
    /// Forks. The program is looked up when the command is let go.
    ///
    /// # Errors
    /// No process can be made.
    pub fn spawn(mut command: Command) -> io::Result<Held> {
        let (mut told, telling) = io::pipe()?;
        let (waiting, go) = io::pipe()?;
        let pipes = [told.as_raw_fd(), telling.as_raw_fd(), waiting.as_raw_fd(), go.as_raw_fd()];
        // SAFETY: `wait_to_go` makes only system calls that signal-safety(7) allows between fork and exec, on descriptors that
        // the child inherited: this process keeps all four open until the child has told its number.
        unsafe { command.pre_exec(move || wait_to_go(pipes)) };
        // The thread owns the ends that are the child's, so that a failed fork closes them and ends our wait.
        let childs = [OwnedFd::from(telling), OwnedFd::from(waiting)];
        let spawning = std::thread::Builder::new().name("spawn".into()).spawn(move || {
            let child = command.spawn();
            drop(childs);
            child
        })?;
        let mut held = Held { pid: 0, go: Some(go), spawning: Some(spawning) };
        let mut number = [0; 4];
        // Our copy of the telling end stays open in the thread; a fork that fails drops it there.
        match told.read_exact(&mut number) {
            Ok(()) => {
                held.pid = u32::from_ne_bytes(number);
                Ok(held)
            }
            Err(e) => Err(held.join().err().unwrap_or(e)),
        }
    }

    /// The child's process number.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Lets it execute its program.
    ///
    /// # Errors
    /// The program cannot be executed: there is none of that name, or no right to.
    pub fn release(mut self) -> io::Result<Child> {
        if let Some(mut go) = self.go.take() {
            // A child that was killed meanwhile reads no more; what became of it is what counts.
            let _ = go.write_all(b"g");
        }
        self.join()
    }

    fn join(&mut self) -> io::Result<Child> {
        self.go = None;
        let Some(spawning) = self.spawning.take() else { return Err(io::Error::other("let go twice")) };
        spawning.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// Ends a command with us, however we end: a SIGKILL comes when the thread that starts it is gone, and then the kernel takes a tracer away from whom
/// it traces. A strace that is asked to end waits for each of them first: for the parent of a vfork too, who waits for the child, who waits for strace.
pub fn ends_with_us(command: &mut Command) {
    // SAFETY: prctl is a system call, which signal-safety(7) allows between fork and exec.
    unsafe {
        command.pre_exec(|| match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0) {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        });
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.spawning.is_some() {
            // It was told nothing, so it ends. Whoever spawned it takes that for a program that was executed.
            if let Ok(mut child) = self.join() {
                let _ = child.wait();
            }
        }
    }
}

/// In the child: tells its number and waits for the word.
fn wait_to_go([told, telling, waiting, go]: [RawFd; 4]) -> io::Result<()> {
    // SAFETY: plain system calls on descriptors and buffers of this frame's; none allocates or takes a lock.
    unsafe {
        // Our own copy of the other end would keep the pipe open when the parent is killed.
        libc::close(told);
        libc::close(go);
        // Where only descendants may be traced (Yama), whoever attaches is our sibling: allowed until we go on. Fails where
        // there is no Yama, and then nothing has to be allowed.
        libc::prctl(libc::PR_SET_PTRACER, libc::PR_SET_PTRACER_ANY, 0, 0, 0);
        let pid = libc::getpid().to_ne_bytes();
        if libc::write(telling, pid.as_ptr().cast(), pid.len()) != 4 {
            return Err(io::Error::last_os_error());
        }
        let mut word = [0u8; 1];
        loop {
            match libc::read(waiting, word.as_mut_ptr().cast(), 1) {
                1 => break,
                -1 if *libc::__errno_location() == libc::EINTR => {}
                // An error would be told to our parent, by a panic where that is gone: with a message, and a core in somebody's directory.
                _ => libc::_exit(libc::ECANCELED),
            }
        }
        libc::prctl(libc::PR_SET_PTRACER, 0, 0, 0, 0);
        if crate::interrupt::children_were_ignored() {
            libc::signal(libc::SIGCHLD, libc::SIG_IGN);
        }
        if crate::interrupt::limit_killed() {
            libc::signal(libc::SIGXFSZ, libc::SIG_DFL);
        }
        // The standard library has made it what it is by default.
        if crate::interrupt::pipe_was_ignored() {
            libc::signal(libc::SIGPIPE, libc::SIG_IGN);
        }
        crate::limits::restore();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_runs_before_it_is_let_go() {
        let dir = tempfile::tempdir().expect("a directory");
        let made = dir.path().join("made");
        let mut command = Command::new("sh");
        command.args(["-c", "echo $$ > \"$0\""]).arg(&made);
        let held = Held::spawn(command).expect("a process");
        let pid = held.pid();
        // The kernel names the process after our own program as long as nothing has been executed.
        let own = std::fs::read("/proc/self/comm").expect("our name");
        let thread = std::fs::read(format!("/proc/{pid}/comm")).expect("its name");
        assert!(thread == own || thread == b"spawn\n", "{thread:?}");
        assert!(!made.exists());
        let mut child = held.release().expect("sh");
        assert_eq!(child.id(), pid);
        assert!(child.wait().expect("its end").success());
        assert_eq!(std::fs::read_to_string(&made).expect("its file"), format!("{pid}\n"));
    }

    #[test]
    fn dropped_it_never_runs() {
        let dir = tempfile::tempdir().expect("a directory");
        let made = dir.path().join("made");
        let mut command = Command::new("touch");
        command.arg(&made);
        let held = Held::spawn(command).expect("a process");
        let pid = held.pid();
        drop(held);
        assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists(), "it is gone, and was waited for");
        assert!(!made.exists());
    }

    /// What becomes of it when we are killed: the pipe closes without a word, and nobody is there to be told of an error.
    #[test]
    fn a_pipe_that_closes_ends_it_without_an_error() {
        let (mut told, telling) = io::pipe().expect("a pipe");
        let (waiting, go) = io::pipe().expect("a pipe");
        let pipes = [told.as_raw_fd(), telling.as_raw_fd(), waiting.as_raw_fd(), go.as_raw_fd()];
        let mut command = Command::new("true");
        // SAFETY: as in `Held::spawn`.
        unsafe { command.pre_exec(move || wait_to_go(pipes)) };
        let spawning = std::thread::spawn(move || command.spawn());
        told.read_exact(&mut [0; 4]).expect("its number");
        drop(go);
        let mut child = spawning.join().expect("no panic").expect("no error is told");
        assert_eq!(child.wait().expect("its end").code(), Some(libc::ECANCELED));
        drop((telling, waiting));
    }

    #[test]
    fn what_cannot_be_executed_is_said_when_let_go() {
        let held = Held::spawn(Command::new("/no/such/program")).expect("a process");
        assert_eq!(held.release().expect_err("no program").kind(), io::ErrorKind::NotFound);
    }
}
