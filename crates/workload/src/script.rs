//! Scripts: what a user's commands do to files, action by action, as processes that run at the same time.

use crate::WorkloadError;
use crate::driver::{Driver, poll};
use crate::processors::{Processors, SLICE_NS};
use posix::{Call, Fd, Mode, OpenFlags, Outcome, Process, Reply, Step};
use std::path::{Path, PathBuf};

/// The buffer of the C library and of `cp` on the systems of the time.
const PIECE_BYTES: u64 = 8 << 10;
/// The buffer of `readdir`.
const DIRECTORY_BYTES: u64 = 8 << 10;

/// Something that a command does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Computes for so many nanoseconds.
    Compute(u64),
    Mkdir(PathBuf),
    /// Reads a directory's names.
    List(PathBuf),
    Stat(PathBuf),
    /// Reads a file from start to end.
    Read(PathBuf),
    /// Makes a file, or makes it empty, and writes so many bytes.
    Write(PathBuf, u64),
    /// Writes so many bytes at a file's end; it is made if it is not there.
    Append(PathBuf, u64),
    Rename(PathBuf, PathBuf),
    Unlink(PathBuf),
    /// A command, or the whole script, is done.
    Completed,
}

impl Action {
    fn doing(&self) -> &'static str {
        match self {
            Action::Compute(_) | Action::Completed => "computing",
            Action::Mkdir(_) => "making a directory",
            Action::List(_) => "reading a directory",
            Action::Stat(_) => "asking for attributes",
            Action::Read(_) => "reading a file",
            Action::Write(..) => "writing a file",
            Action::Append(..) => "appending to a file",
            Action::Rename(..) => "renaming a file",
            Action::Unlink(_) => "removing a file",
        }
    }

    fn path(&self) -> &Path {
        match self {
            Action::Compute(_) | Action::Completed => Path::new("."),
            Action::Mkdir(path)
            | Action::List(path)
            | Action::Stat(path)
            | Action::Read(path)
            | Action::Write(path, _)
            | Action::Append(path, _)
            | Action::Rename(path, _)
            | Action::Unlink(path) => path,
        }
    }
}

/// A script: its actions, in order, made as they are needed.
pub(crate) type Script = Box<dyn Iterator<Item = Action> + Send>;

/// What a process has done.
#[derive(Debug, Default)]
struct Tally {
    calls: u64,
    calls_ns: u64,
    files: u64,
    bytes: u64,
    completed: u64,
    failed: Option<WorkloadError>,
}

/// How far an action is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Nothing is done yet.
    Fresh,
    /// Bytes are left to write (or to compute); `u64::MAX` to read until the end.
    Moving { fd: Fd, left: u64 },
    /// The file is to be closed.
    Closing { fd: Fd },
    /// So much is left to compute; a processor is taken or not.
    Computing { left_ns: u64, running_ns: u64 },
}

/// A process that plays a script.
struct Player<'a> {
    number: usize,
    script: Script,
    processors: &'a Processors,
    tally: &'a mut Tally,
    action: Option<Action>,
    stage: Stage,
}

impl Player<'_> {
    /// Takes in what the last call answered.
    fn absorb(&mut self, outcome: &Outcome) {
        self.tally.calls += 1;
        self.tally.calls_ns = self.tally.calls_ns.saturating_add(outcome.dur_ns);
        let Some(action) = &self.action else { return };
        let reply = match outcome.result {
            Ok(reply) => reply,
            Err(errno) => {
                let error = WorkloadError::call(action.doing(), action.path(), errno);
                self.tally.failed.get_or_insert(error);
                self.stage = match self.stage {
                    Stage::Moving { fd, .. } => Stage::Closing { fd },
                    _ => Stage::Fresh,
                };
                return;
            }
        };
        self.stage = match (self.stage, action, reply) {
            (Stage::Fresh, Action::Write(_, size) | Action::Append(_, size), Reply::Fd(fd)) if *size > 0 => {
                Stage::Moving { fd, left: *size }
            }
            (Stage::Fresh, Action::Read(_) | Action::List(_), Reply::Fd(fd)) => Stage::Moving { fd, left: u64::MAX },
            (Stage::Fresh, _, Reply::Fd(fd)) => Stage::Closing { fd },
            (Stage::Moving { fd, left }, action, Reply::Count(n)) => {
                if !matches!(action, Action::List(_)) {
                    self.tally.bytes = self.tally.bytes.saturating_add(n);
                }
                let left = if left == u64::MAX { left } else { left.saturating_sub(n) };
                // Less than a piece is the end of a file, so the C library knows, too.
                let ended = n == 0 || left == 0 || (matches!(action, Action::Read(_)) && n < PIECE_BYTES);
                if ended { Stage::Closing { fd } } else { Stage::Moving { fd, left } }
            }
            _ => {
                if !matches!(action, Action::Mkdir(_) | Action::List(_)) {
                    self.tally.files += 1;
                }
                self.action = None;
                Stage::Fresh
            }
        };
    }

    /// Computing: in slices, on a processor.
    fn compute(&mut self, left_ns: u64, running_ns: u64) -> Option<Step<'static>> {
        if running_ns > 0 {
            self.processors.give();
        }
        let left_ns = left_ns.saturating_sub(running_ns);
        self.stage = Stage::Computing { left_ns, running_ns: 0 };
        if left_ns == 0 {
            (self.action, self.stage) = (None, Stage::Fresh);
            return None;
        }
        if !self.processors.take(self.number) {
            return Some(Step::Blocked);
        }
        let slice_ns = left_ns.min(SLICE_NS);
        self.stage = Stage::Computing { left_ns, running_ns: slice_ns };
        Some(Step::PauseNs(slice_ns))
    }

    /// Moves on to an action that takes time; `false` at the script's end, or after a failure.
    fn ready(&mut self) -> bool {
        if self.tally.failed.is_some() && !matches!(self.stage, Stage::Closing { .. } | Stage::Computing { .. }) {
            return false;
        }
        while self.action.is_none() {
            match self.script.next() {
                Some(Action::Completed) => self.tally.completed += 1,
                Some(Action::Compute(ns)) => {
                    self.action = Some(Action::Compute(ns));
                    self.stage = Stage::Computing { left_ns: ns, running_ns: 0 };
                }
                Some(action) => (self.action, self.stage) = (Some(action), Stage::Fresh),
                None => return false,
            }
        }
        true
    }

    /// The call that the action needs now.
    fn call(&self) -> Option<Call<'_>> {
        fn open(path: &Path, flags: OpenFlags) -> Call<'_> {
            Call::Open { at: path.into(), flags, mode: Mode(0o644) }
        }
        let action = self.action.as_ref()?;
        Some(match (self.stage, action) {
            (Stage::Closing { fd }, _) => Call::Close { fd },
            (Stage::Moving { fd, .. }, Action::Read(_)) => Call::Read { fd, offset: None, len_bytes: PIECE_BYTES },
            (Stage::Moving { fd, .. }, Action::List(_)) => Call::GetDents { fd, len_bytes: DIRECTORY_BYTES },
            (Stage::Moving { fd, left }, _) => {
                Call::Write { fd, offset: None, len_bytes: left.min(PIECE_BYTES), data: None }
            }
            (_, Action::Mkdir(path)) => Call::Mkdir { at: path.as_path().into(), mode: Mode(0o755) },
            (_, Action::List(path)) => open(path, OpenFlags::DIRECTORY),
            (_, Action::Stat(path)) => Call::Stat { at: path.as_path().into(), follow: false },
            (_, Action::Read(path)) => open(path, OpenFlags::READ),
            (_, Action::Write(path, _)) => open(path, OpenFlags { create: true, truncate: true, ..OpenFlags::WRITE }),
            (_, Action::Append(path, _)) => open(path, OpenFlags { create: true, append: true, ..OpenFlags::WRITE }),
            (_, Action::Rename(from, to)) => {
                let (from, to) = (from.as_path().into(), to.as_path().into());
                Call::Rename { from, to, noreplace: false, exchange: false }
            }
            (_, Action::Unlink(path)) => Call::Unlink { at: path.as_path().into() },
            (_, Action::Compute(_) | Action::Completed) => return None,
        })
    }
}

impl Process for Player<'_> {
    fn next(&mut self, last: Option<&Outcome>) -> Step<'_> {
        if let Some(outcome) = last {
            self.absorb(outcome);
        }
        loop {
            if !self.ready() {
                return Step::Done;
            }
            let Stage::Computing { left_ns, running_ns } = self.stage else { break };
            if let Some(step) = self.compute(left_ns, running_ns) {
                return step;
            }
        }
        self.call().map_or(Step::Done, Step::Call)
    }
}

/// Plays scripts at the same time, to the end of the last; what they do counts for the driver's phase.
///
/// # Errors
/// The first failure of the first script that failed; a signal.
pub(crate) fn play(driver: &mut Driver<'_>, scripts: Vec<Script>, cpus: u32) -> Result<(), WorkloadError> {
    poll()?;
    let processors = Processors::new(cpus);
    let mut tallies: Vec<Tally> = scripts.iter().map(|_| Tally::default()).collect();
    let players = scripts.into_iter().zip(&mut tallies).enumerate();
    let processes = players.map(|(number, (script, tally))| {
        let processors = &processors;
        Box::new(Player { number, script, processors, tally, action: None, stage: Stage::Fresh })
            as Box<dyn Process + '_>
    });
    let ran = driver.fs.run(processes.collect());
    let mut failed = None;
    for tally in tallies {
        driver.spend(tally.calls, tally.calls_ns);
        driver.count(tally.files, tally.bytes);
        driver.complete(tally.completed);
        failed = failed.or(tally.failed);
    }
    match (ran, failed) {
        (Err(error), _) if error.kind() == std::io::ErrorKind::Interrupted => Err(WorkloadError::Interrupted),
        (_, Some(error)) => Err(error),
        (Err(source), None) => Err(WorkloadError::System { doing: "running processes", source }),
        (Ok(()), None) => Ok(()),
    }
}

/// A directory of a tree by its path from the root, which is empty for the root itself.
pub(crate) fn directory(root: &Path, path: &str) -> PathBuf {
    if path.is_empty() { root.to_path_buf() } else { root.join(path) }
}

/// Processors that a target's computer has.
pub(crate) fn cpus(driver: &Driver<'_>) -> u32 {
    driver.fs.environment().cpus.max(1)
}

/// So many milliseconds of a workstation's time of 1999, by the factor that the user has given.
pub(crate) fn compute(milliseconds: f64, factor: f64) -> Action {
    Action::Compute((milliseconds * factor * 1e6).round().max(0.0) as u64)
}
