//! Running tasks: each as a process of its own, several at a time.
//!
//! Threads take tasks from one list, in order, start each as a process of this program and read what it prints. One
//! thread, the caller's, keeps what became of them. A task's process ends with us, however we end.

use crate::spec::Spec;
use crate::tasks::{Task, Tasks};
use crate::{Entry, Folder, Outcome, SweepError, figure};
use fault::{Refused, refused};
use posix::cleanup::Temporary;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How often signals and time limits are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// A task that a signal of somebody else's ended is begun again so often at most: whoever was short of memory may not
/// be now.
const ATTEMPTS_MAX: u32 = 2;
/// What is kept of a message.
const MESSAGE_BYTES_MAX: usize = 2000;
/// What of standard error is looked at for it.
const SAID_BYTES_MAX: u64 = 64 << 10;

/// How tasks are run.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// The program: this one.
    pub program: PathBuf,
    /// How many at a time.
    pub jobs: usize,
}

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Tasks of this run that have ended.
    pub done: u64,
    /// Of how many.
    pub of: u64,
    /// Those without a result.
    pub failed: u64,
}

/// What a run came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Ran {
    /// Tasks that ended.
    pub tasks: u64,
    /// Those without a result.
    pub failed: u64,
    /// How many ran at a time, at most.
    pub jobs: u64,
    /// How long it took, seconds.
    pub seconds: f64,
    /// What the tasks' processes took, summed, seconds.
    pub task_seconds: f64,
    /// Whether a signal ended it before it was done.
    pub interrupted: bool,
}

impl Ran {
    /// What a task cost beyond its process: starting it, reading and keeping its result, waiting for one another.
    /// Seconds of one of the places in which tasks run.
    pub fn overhead_s(&self) -> Option<f64> {
        let places = self.jobs.min(self.tasks) as f64;
        (self.tasks > 0).then(|| (self.seconds * places - self.task_seconds).max(0.0) / self.tasks as f64)
    }
}

/// A process that runs a task, so that it can be ended.
#[derive(Clone, Copy, Debug)]
struct Running {
    pid: Option<Pid>,
    began: Instant,
    /// Whether it was ended for the time that it took.
    late: bool,
}

/// Runs tasks and keeps what becomes of them in the folder. Ends early, with what has ended kept, when a signal asks to
/// stop.
///
/// # Errors
/// The folder cannot be written, or no process can be started at all.
pub fn run(
    spec: &Spec,
    tasks: &Tasks,
    numbers: &[u64],
    folder: &mut Folder,
    options: &RunOptions,
    watch: &mut dyn FnMut(Progress),
) -> Result<Ran, SweepError> {
    let private = Temporary::new().map_err(refused(&std::env::temp_dir(), "make a directory in"))?;
    let jobs = options.jobs.clamp(1, numbers.len().max(1));
    let runner = Runner {
        program: &options.program,
        directory: &spec.directory(),
        private: private.path(),
        host: host(),
        running: (0..jobs).map(|_| Mutex::new(None)).collect(),
    };
    let began = Instant::now();
    let next = AtomicUsize::new(0);
    let stop = std::sync::atomic::AtomicBool::new(false);
    let mut ran = Ran { jobs: jobs as u64, ..Ran::default() };
    let kept = std::thread::scope(|scope| {
        let (tell, told) = sync_channel::<Result<Entry, Refused>>(jobs);
        for place in 0..jobs {
            let (tell, runner, next, stop) = (tell.clone(), &runner, &next, &stop);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) && !posix::interrupt::requested() {
                    let Some(&number) = numbers.get(next.fetch_add(1, Ordering::Relaxed)) else { return };
                    let Some(task) = tasks.get(spec, number) else { continue };
                    match runner.run(place, &task) {
                        // It was ended with us, and runs another time.
                        Ok(None) => return,
                        Ok(Some(entry)) => {
                            if tell.send(Ok(entry)).is_err() {
                                return;
                            }
                        }
                        Err(error) => {
                            let _ = tell.send(Err(error));
                            return;
                        }
                    }
                }
            });
        }
        drop(tell);
        let mut asked = false;
        let mut kept = Ok(());
        loop {
            let entry = match told.recv_timeout(LOOK_EVERY) {
                Ok(entry) => entry,
                Err(RecvTimeoutError::Timeout) => {
                    let stopping = posix::interrupt::requested() || kept.is_err();
                    runner.end(spec.timeout, stopping && !asked);
                    asked |= stopping;
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => break,
            };
            if kept.is_err() {
                continue;
            }
            kept = entry.map_err(SweepError::from).and_then(|entry| {
                ran.tasks += 1;
                ran.failed += u64::from(matches!(entry.outcome, Outcome::Failed { .. }));
                ran.task_seconds += entry.seconds;
                folder.keep(&entry)
            });
            if kept.is_err() {
                stop.store(true, Ordering::Relaxed);
            }
            watch(Progress { done: ran.tasks, of: numbers.len() as u64, failed: ran.failed });
        }
        kept
    });
    ran.seconds = began.elapsed().as_secs_f64();
    ran.interrupted = posix::interrupt::requested();
    kept?;
    folder.sync()?;
    Ok(ran)
}

/// Runs tasks without keeping anything, one after the other: how long each takes, seconds.
///
/// # Errors
/// No process can be started.
pub fn sample(
    spec: &Spec,
    tasks: &Tasks,
    numbers: &[u64],
    program: &Path,
) -> Result<Vec<(u64, f64, Outcome)>, SweepError> {
    let private = Temporary::new().map_err(refused(&std::env::temp_dir(), "make a directory in"))?;
    let directory = spec.directory();
    let running = vec![Mutex::new(None)];
    let runner = Runner { program, directory: &directory, private: private.path(), host: host(), running };
    let mut found = Vec::new();
    for task in numbers.iter().filter_map(|&number| tasks.get(spec, number)) {
        let Some(entry) = runner.run(0, &task)? else { break };
        found.push((task.number, entry.seconds, entry.outcome));
    }
    Ok(found)
}

struct Runner<'a> {
    program: &'a Path,
    directory: &'a Path,
    private: &'a Path,
    host: String,
    /// One for each place.
    running: Vec<Mutex<Option<Running>>>,
}

impl Runner<'_> {
    /// Runs a task in a place; `None` where it was ended because we are to end.
    fn run(&self, place: usize, task: &Task) -> Result<Option<Entry>, Refused> {
        let began_unix_ms = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as u64);
        for attempt in 1.. {
            let began = Instant::now();
            let host = self.host.clone();
            let (status, printed, said, late) = match self.process(place, task) {
                // Of this task alone: others may have shorter arguments.
                Err(refused) if refused.source.kind() == io::ErrorKind::ArgumentListTooLong => {
                    let outcome = Outcome::Failed { exit: None, message: refused.to_string() };
                    let seconds = began.elapsed().as_secs_f64();
                    return Ok(Some(Entry {
                        task: task.number,
                        outcome,
                        seconds,
                        began_unix_ms,
                        host,
                        attempts: attempt,
                    }));
                }
                ended => ended?,
            };
            let seconds = began.elapsed().as_secs_f64();
            // What became of it while we are to end is the signal's doing.
            if !status.success() && posix::interrupt::requested() {
                return Ok(None);
            }
            let is_lost = status.signal().is_some() && !late;
            if is_lost && attempt < ATTEMPTS_MAX {
                continue;
            }
            let outcome = outcome(status, &printed, &said, late);
            return Ok(Some(Entry { task: task.number, outcome, seconds, began_unix_ms, host, attempts: attempt }));
        }
        Ok(None)
    }

    /// A process's end: its status, what it printed, what it said, and whether it was too late.
    fn process(&self, place: usize, task: &Task) -> Result<(ExitStatus, Vec<u8>, String, bool), Refused> {
        // A file: of two pipes, one would be full while the other is read.
        let said_path = self.private.join(format!("said-{place}"));
        let profile = self.private.join(format!("task-{place}.system"));
        let mut command = Command::new(self.program);
        command.args(&task.arguments).arg("--json").current_dir(self.directory);
        if task.arguments.first().is_some_and(|word| word == "measure") {
            command.arg("-o").arg(&profile);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        command.stderr(std::fs::File::create(&said_path).map_err(refused(&said_path, "make"))?);
        posix::held::ends_with_us(&mut command);
        let mut child = command.spawn().map_err(refused(self.program, "run"))?;
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        *self.at(place) = Some(Running { pid, began: Instant::now(), late: false });
        let mut printed = Vec::new();
        let read = child.stdout.take().map_or(Ok(0), |mut out| out.read_to_end(&mut printed));
        // From here on nobody ends it any more: it closed its output, and its number may soon be somebody else's.
        let late = self.at(place).take().is_some_and(|running| running.late);
        let status = child.wait().map_err(refused(self.program, "wait for"))?;
        read.map_err(refused(self.program, "read what it prints, of"))?;
        let said = end_of(&said_path).map_err(refused(&said_path, "read"))?;
        let _ = std::fs::remove_file(&profile);
        Ok((status, printed, String::from_utf8_lossy(&said).into_owned(), late))
    }

    fn at(&self, place: usize) -> std::sync::MutexGuard<'_, Option<Running>> {
        self.running[place].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends what takes longer than it may; all of it, if we are to end.
    fn end(&self, timeout: Option<Duration>, all: bool) {
        for place in 0..self.running.len() {
            let mut running = self.at(place);
            let Some(running) = running.as_mut() else { continue };
            let late = timeout.is_some_and(|timeout| running.began.elapsed() > timeout);
            if let (true, Some(pid)) = (all || late, running.pid) {
                // It takes down what it made; whoever does not listen is killed the next time.
                let signal = if running.late { Signal::KILL } else { Signal::TERM };
                let _ = kill_process(pid, signal);
                running.late |= late;
            }
        }
    }
}

/// The end of a file: what a command said last is what it ended of.
fn end_of(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = std::fs::File::open(path)?;
    let len = file.metadata()?.len();
    file.seek(SeekFrom::Start(len.saturating_sub(SAID_BYTES_MAX)))?;
    let mut said = Vec::new();
    file.take(SAID_BYTES_MAX).read_to_end(&mut said)?;
    Ok(said)
}

fn outcome(status: ExitStatus, printed: &[u8], said: &str, late: bool) -> Outcome {
    let failed = |message: String| Outcome::Failed { exit: status.code().filter(|_| !late), message };
    if late {
        return failed("took longer than timeout allows".to_owned());
    }
    // A comparison or check that failed (1) has a result.
    if status.success() || status.code() == Some(1) {
        return match figure::of_result(printed) {
            Ok(figures) => Outcome::Figures(figures),
            Err(_) if !status.success() => failed(message(said)),
            Err(why) => failed(why),
        };
    }
    match status.signal() {
        Some(signal) => failed(format!("was ended by signal {signal}")),
        None => failed(message(said)),
    }
}

/// The last thing that a command said.
fn message(said: &str) -> String {
    let last = said.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or("said nothing");
    // What clap refuses says why first, and ends with where help is.
    let line = said.lines().find(|line| line.starts_with("error: ")).unwrap_or(last);
    let line = line.strip_prefix("fsage: ").or(line.strip_prefix("error: ")).unwrap_or(line);
    let mut line = units::text::printable(line);
    let mut end = MESSAGE_BYTES_MAX.min(line.len());
    while !line.is_char_boundary(end) {
        end -= 1;
    }
    line.truncate(end);
    line
}

fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
