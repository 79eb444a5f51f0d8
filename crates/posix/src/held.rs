//! A command that exists and waits to be let go, so that somebody can attach to it before its first call.
//!
//! The child is an ordinary child of ours: its exit status, its process group, its standard streams and its signals
//! have nothing to do with whoever attached, and go on when that one is gone. Between `fork` and `execve` it tells its
//! number and waits on a pipe; a pipe that closes without a word (we were killed) ends it before it was anything.
#![allow(unsafe_code)]

use crate::inherited;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd, RawFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// A command between `fork` and `execve`. Dropped, it ends without having run.
#[derive(Debug)]
pub struct Held {
    pid: u32,
    go: Option<io::PipeWriter>,
    /// `Command::spawn` returns only when the program has been executed, so it waits in a thread.
    spawned: Option<Receiver<io::Result<Child>>>,
    /// While it is there, that thread is. To the kernel it is the child's parent: who asks to be told of his parent's
    /// end (`PR_SET_PDEATHSIG`) would be told of the thread's.
    keeps: Option<SyncSender<()>>,
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
        // SAFETY: `wait_to_go` makes only system calls that signal-safety(7) allows between fork and exec, on
        // descriptors that the child inherited: this process keeps all four open until the child has told its number.
        unsafe { command.pre_exec(move || wait_to_go(pipes)) };
        // The thread owns the ends that are the child's, so that a failed fork closes them and ends our wait.
        let childs = [OwnedFd::from(telling), OwnedFd::from(waiting)];
        let (tell, spawned) = sync_channel(1);
        let (keeps, kept) = sync_channel(0);
        std::thread::Builder::new().name("spawn".into()).spawn(move || {
            let child = command.spawn();
            drop(childs);
            // Nobody asks any more who was dropped, and nobody is to be kept then.
            let _ = tell.send(child);
            let _: Result<(), _> = kept.recv();
        })?;
        let mut held = Held { pid: 0, go: Some(go), spawned: Some(spawned), keeps: Some(keeps) };
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
        let child = self.join()?;
        // The thread stays as long as we do.
        std::mem::forget(self.keeps.take());
        Ok(child)
    }

    fn join(&mut self) -> io::Result<Child> {
        self.go = None;
        let Some(spawned) = self.spawned.take() else { return Err(io::Error::other("let go twice")) };
        spawned.recv().unwrap_or_else(|_| Err(io::Error::other("the thread that starts it is gone")))
    }
}

/// Once a command runs, pipes and sockets that it was given are its alone: standard input, output, and whatever whoever
/// started us handed down. Who waits for the end of one would wait for us too. Standard error stays. Nobody waits for
/// the end of a file, and closing one would end our locks on it.
pub fn let_go_of_pipes() {
    let Ok(null) = std::fs::File::options().read(true).write(true).open("/dev/null") else { return };
    for stream in [libc::STDIN_FILENO, libc::STDOUT_FILENO].into_iter().filter(|&fd| has_an_end(fd)) {
        // SAFETY: it stays an open descriptor; it leads to nowhere.
        unsafe { libc::dup2(null.as_raw_fd(), stream) };
    }
    for &fd in inherited::descriptors().iter().filter(|&&fd| has_an_end(fd)) {
        // SAFETY: it was open when we began, and nothing of ours owns it. A second call finds it closed, or taken by
        // something that a program would not be given.
        unsafe {
            if libc::fcntl(fd, libc::F_GETFD) == 0 {
                libc::close(fd);
            }
        }
    }
}

/// Whether somebody at the other end can wait for this one's.
fn has_an_end(fd: RawFd) -> bool {
    // SAFETY: a plain struct that the kernel fills in.
    let kind = unsafe {
        let mut stat: libc::stat = std::mem::zeroed();
        if libc::fstat(fd, &raw mut stat) == 0 { stat.st_mode & libc::S_IFMT } else { 0 }
    };
    kind == libc::S_IFIFO || kind == libc::S_IFSOCK
}

/// Ends a command with us, however we end: a SIGKILL comes when the thread that starts it is gone, and then the kernel
/// takes a tracer away from whom it traces. A strace that is asked to end waits for each of them first: for the parent
/// of a vfork too, who waits for the child, who waits for strace. It gets nothing of what whoever started us handed
/// down but the standard streams that it is given.
pub fn ends_with_us(command: &mut Command) {
    // SAFETY: system calls alone, which signal-safety(7) allows between fork and exec.
    unsafe {
        command.pre_exec(|| {
            // Since Linux 5.11; before, the tracer has them too.
            libc::syscall(libc::SYS_close_range, 3u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC);
            Ok(())
        });
        command.pre_exec(|| match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0) {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        });
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.spawned.is_some() {
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
        // Where only descendants may be traced (Yama), whoever attaches is our sibling: allowed until we go on. Fails
        // where there is no Yama, and then nothing has to be allowed.
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
                // An error would be told to our parent, by a panic where that is gone: with a message, and a core in
                // somebody's directory.
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
    use std::sync::{Mutex, MutexGuard, PoisonError};

    /// Two that are held at once have the ends of each other's pipes, as nothing has been executed, and wait for each
    /// other. A process holds one.
    fn alone() -> MutexGuard<'static, ()> {
        static ALONE: Mutex<()> = Mutex::new(());
        ALONE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[test]
    fn nothing_runs_before_it_is_let_go() {
        let _alone = alone();
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

    /// The kernel takes the thread that forked for the parent. It ended once the program was executed, and who had
    /// asked by then to end with his parent was killed.
    #[test]
    fn its_parent_lives_as_long_as_we_do() {
        let _alone = alone();
        let mut command = Command::new("cat");
        command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
        // Nothing of its own happens between this and the end of the thread that forked it.
        ends_with_us(&mut command);
        let mut child = Held::spawn(command).expect("a process").release().expect("cat");
        let (mut to, mut from) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
        for round in 0..200u8 {
            to.write_all(&[round]).expect("cat is there");
            let mut answer = [0];
            from.read_exact(&mut answer).expect("cat answers");
            assert_eq!(answer, [round]);
        }
        drop(to);
        assert!(child.wait().expect("its end").success());
    }

    #[test]
    fn dropped_it_never_runs() {
        let _alone = alone();
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

    /// What becomes of it when we are killed: the pipe closes without a word, and nobody is there to be told of an
    /// error.
    #[test]
    fn a_pipe_that_closes_ends_it_without_an_error() {
        let _alone = alone();
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
        let _alone = alone();
        let held = Held::spawn(Command::new("/no/such/program")).expect("a process");
        assert_eq!(held.release().expect_err("no program").kind(), io::ErrorKind::NotFound);
    }
}
