//! Processes that tests start, and waiting for what they do: for events, not for times, and never for ever.

use std::io::Read as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output};
use std::time::{Duration, Instant};

/// Nothing that a test waits for takes anywhere near as long, beside whatever else the machine does.
pub const PATIENCE: Duration = Duration::from_secs(300);

/// A command that finds every signal as a terminal would give it. A shell starts what runs in its background with
/// interrupts ignored, and what is ignored stays so in each child: who then waits for the end of an interrupt waits for
/// ever.
pub fn with_default_signals(program: impl AsRef<Path>) -> Command {
    let mut command = Command::new("env");
    command.arg("--default-signal=HUP,INT,QUIT,TERM").arg(program.as_ref());
    command
}

/// Makes a copy of a program that anybody may run. Another process makes it: what this one has open to write is open in
/// the child that another test starts meanwhile as well, until that runs its own program, and what somebody has open to
/// write cannot be run ("text file busy").
#[track_caller]
pub fn copy_program(from: impl AsRef<Path>, to: impl AsRef<Path>) {
    let copied = Command::new("install").args(["-m", "755"]).arg(from.as_ref()).arg(to.as_ref()).status();
    assert!(copied.unwrap().success(), "{} could not be copied to {}", from.as_ref().display(), to.as_ref().display());
}

/// A process of ours, killed at the end of a test that fails.
pub struct Running {
    /// The process.
    pub child: Child,
}

impl Running {
    /// Starts a command.
    pub fn start(command: &mut Command) -> Running {
        Running { child: command.spawn().unwrap_or_else(|e| panic!("{command:?}: {e}")) }
    }

    /// Its number.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal, by its name without `SIG`.
    pub fn signal(&self, signal: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", signal, &pid]).status().unwrap().success());
    }

    /// Waits for its end.
    #[track_caller]
    pub fn ends(mut self) -> ExitStatus {
        ended(&mut self.child)
    }

    /// Waits for its end and takes what it wrote to its pipes. For little: a pipe that is full is not emptied before.
    #[track_caller]
    pub fn output(mut self) -> Output {
        output(&mut self.child)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits for a child's end; one that does not come is killed and fails the test.
#[track_caller]
pub fn ended(child: &mut Child) -> ExitStatus {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if begun.elapsed() > PATIENCE {
            let _ = child.kill();
            let _ = child.wait();
            panic!("a process does not end within {PATIENCE:?}");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The same with what it wrote to its pipes. For little: a pipe that is full is not emptied before.
#[track_caller]
pub fn output(child: &mut Child) -> Output {
    let status = ended(child);
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    child.stdout.take().map(|mut pipe| pipe.read_to_end(&mut stdout)).transpose().unwrap();
    child.stderr.take().map(|mut pipe| pipe.read_to_end(&mut stderr)).transpose().unwrap();
    Output { status, stdout, stderr }
}

/// Waits until something is so.
#[track_caller]
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A number in `/proc/PID/status`, by its line's beginning.
pub fn status_field(pid: u32, name: &str) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix(name))?.trim().parse().ok()
}
