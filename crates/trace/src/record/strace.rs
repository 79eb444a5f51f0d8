//! strace as a tracer: finding it, the options that suit, running it and listening to it.
//!
//! What may not live here: understanding its text (that is [`crate::strace`]).
//!
//! strace is attached (`-p`) to a command that waits before its first call, as it is to processes that run already, and
//! never is the command's parent. So whatever becomes of strace, and of us, the program goes on: it is our child, not
//! strace's, and the kernel lets go of it when strace ends (strace does not ask for `PTRACE_O_EXITKILL`). Tried with
//! strace 6.1:
//!
//! * fsage killed by SIGKILL: strace's next line meets a pipe without a reader. Attached, it takes SIGPIPE as the wish
//!   to end, lets go of every thread in order, says "Broken pipe" once and ends. (Started on a command with `-o`, it
//!   ignores SIGPIPE, goes on tracing, and complains of every line.)
//! * strace killed by SIGKILL: the kernel detaches. A signal that strace had just been told of and not passed on is
//!   lost with it.
//! * `--seccomp-bpf`, with which calls that are not traced do not stop, is not used: if strace dies, its filter stays,
//!   and every traced call of the program fails with ENOSYS from then on. Doing without costs little, as most calls of
//!   a program that works on files are traced anyway (validation/seccomp.sh measures it).
//!
//! strace's own messages come on a pipe of their own and are never mixed with the program's standard error.

use super::RecordError;
use super::descendants::descendants;
use super::source::{Drained, Ending, Target, Tracer, Tracing};
use crate::analysis::Decode;
use crate::profile;
use crate::spool::Notation;
use crate::strace::{ImportOptions, Importer, told, traced_calls};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// `--absolute-timestamps=precision:ns` and `--syscall-times=ns` came with 5.6.
const NANOSECONDS: (u32, u32) = (5, 6);
/// `--pidns-translation` came with 5.9.
const NUMBERS: (u32, u32) = (5, 9);
/// The oldest whose output and `-e trace=?name` we know.
const OLDEST: (u32, u32) = (4, 26);
/// What the pipe is asked to hold, so that a burst of calls does not wait for us. The system may give less.
const PIPE_BYTES: usize = 1 << 20;
/// How long lines gather before they are read: a tenth of what fills the pipe at strace's fastest. strace writes line
/// by line; waking for each would take the processor from the program twice a call.
const GATHER: Duration = Duration::from_millis(8);
/// How long strace may take to attach before we give up.
const ATTACH_MAX: Duration = Duration::from_secs(30);
/// How long what runs below the processes that were asked for is waited for.
const ATTACH_BELOW_MAX: Duration = Duration::from_secs(1);
/// How long strace may take to let go, which waits for threads in the middle of a call, before it is killed.
const LET_GO_MAX: Duration = Duration::from_secs(5);
/// A line longer than this is handed on in parts, so that memory is bounded whatever strace writes.
const LINE_BYTES_MAX: usize = 16 << 20;
/// What is kept of what strace says.
const SAID_BYTES_MAX: u64 = 4096;

/// What strace needs, for those whom it refuses.
const ADVICE: &str = "strace needs ptrace: in a container add the capability SYS_PTRACE; for processes that run \
                      already be root, or their owner with /proc/sys/kernel/yama/ptrace_scope at 0";

/// The strace to use.
#[derive(Clone, Debug)]
pub struct Strace {
    program: PathBuf,
    /// As it states it ("6.1").
    version: String,
    options: Vec<String>,
}

impl Strace {
    /// Finds strace: the one given, or the one on the path.
    ///
    /// # Errors
    /// There is none, or it is too old.
    pub fn find(program: Option<PathBuf>) -> Result<Strace, RecordError> {
        let program = program.unwrap_or_else(|| PathBuf::from("strace"));
        let version = version(&program)?;
        let number = number(&version);
        if number < OLDEST {
            let found = version.clone();
            return Err(RecordError::StraceTooOld { found, oldest: format!("{}.{}", OLDEST.0, OLDEST.1) });
        }
        Ok(Strace { program, version, options: options(number) })
    }
}

impl Tracer for Strace {
    fn notation(&self) -> Notation {
        Notation::Strace
    }

    fn describe(&self) -> profile::Tracer {
        profile::Tracer { name: "strace".into(), version: self.version.clone(), options: self.options.clone() }
    }

    fn clock(&self) -> String {
        let nanoseconds = self.options.iter().any(|o| o.ends_with("precision:ns"));
        format!("CLOCK_REALTIME by strace, {}", if nanoseconds { "nanoseconds" } else { "microseconds" })
    }

    fn check(&self, target: &Target) -> Result<(), RecordError> {
        match target {
            Target::Command(_) | Target::Processes(_) => Ok(()),
            Target::Cgroup(_) | Target::Mount(_) => Err(RecordError::CannotTrace {
                said: "strace follows processes only; a control group or a file system needs --with ebpf".into(),
            }),
        }
    }

    fn start(&mut self, target: &Target) -> Result<Box<dyn Tracing>, RecordError> {
        self.check(target)?;
        let (asked, mut below, held) = match target {
            Target::Command(pid) => (vec![*pid], Vec::new(), true),
            Target::Processes(asked) => (asked.clone(), descendants(asked).split_off(asked.len()), false),
            Target::Cgroup(_) | Target::Mount(_) => unreachable!("refused above"),
        };
        // strace would go on with the others.
        if let Some(pid) = asked.iter().find(|&&pid| !held && !may_attach(pid)) {
            let why = io::Error::from(rustix::io::Errno::PERM);
            return Err(RecordError::CannotTrace { said: format!("process {pid}: {why}. {ADVICE}") });
        }
        let all = below.len();
        below.retain(|&pid| may_attach(pid));
        let pids = [&asked[..], &below].concat();
        let mut running = Running::spawn(self, &pids, held)
            .map_err(|source| RecordError::Io { what: "cannot start strace".into(), source })?;
        running.left_out = all - below.len();
        match running.attached(&asked, &below) {
            Ok(true) => {
                // What has changed meanwhile, nobody knows when.
                running.stood.retain(|stood| Stood::of(stood.tid).as_ref() == Some(stood));
                Ok(Box::new(running))
            }
            Ok(false) => {
                // It may have attached to some.
                running.stop();
                let said = Box::new(running).end().said;
                let said = if said.is_empty() { "strace ended at once" } else { &said };
                Err(RecordError::CannotTrace { said: format!("{said}. {ADVICE}") })
            }
            Err(source) => Err(RecordError::Io { what: "cannot wait for strace".into(), source }),
        }
    }

    fn counter(&self) -> fn(&[u8]) -> u64 {
        |lines| memchr::memchr_iter(b'\n', lines).count() as u64
    }

    fn decoder(&self, options: ImportOptions) -> Box<dyn Decode> {
        Box::new(Importer::new(options))
    }
}

/// strace at work.
struct Running {
    strace: Child,
    lines: io::PipeReader,
    /// Bytes read and not handed on: `..filled` of it, the beginning of a line.
    buffer: Vec<u8>,
    filled: usize,
    /// The first line is the wait of a command that is held, which is ours and no call of the program's.
    held: bool,
    /// Where the threads stood when it attached to them, to be told before its own lines.
    stood: Vec<Stood>,
    /// The last read brought little: let lines gather before the next.
    gather: bool,
    /// When it was asked to let go.
    asked: Option<Instant>,
    said: Option<JoinHandle<String>>,
    /// Processes below those asked for that may not be traced.
    left_out: usize,
}

/// The directories that a thread stands in.
#[derive(Debug, PartialEq, Eq)]
struct Stood {
    tid: u32,
    /// `None` if it has no name any more.
    working: Option<PathBuf>,
    root: Option<PathBuf>,
}

impl Stood {
    /// `None` if it is gone, or somebody else's.
    fn of(tid: u32) -> Option<Stood> {
        let read = |what: &str| {
            let path = std::fs::read_link(format!("/proc/{tid}/{what}")).ok()?;
            // A name that ends in this is one that is gone, or not to be told from one.
            (path.is_absolute() && !path.as_os_str().as_bytes().ends_with(b" (deleted)")).then_some(path)
        };
        std::fs::read_link(format!("/proc/{tid}/cwd")).ok()?;
        Some(Stood { tid, working: read("cwd"), root: read("root") })
    }

    /// Of all threads of some processes.
    fn of_all(pids: &[u32]) -> Vec<Stood> {
        let threads = |pid: &u32| {
            let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
            let mut tids: Vec<u32> = tasks.filter_map(|task| task.file_name().to_str()?.parse().ok()).collect();
            tids.sort_unstable();
            tids
        };
        pids.iter().flat_map(threads).filter_map(Stood::of).collect()
    }

    /// As lines in strace's notation.
    fn lines(&self, stamp: &[u8]) -> Vec<u8> {
        let line = |what, path: &PathBuf| told(self.tid, stamp, what, path.as_os_str().as_bytes());
        let root = self.root.as_ref().filter(|root| *root != Path::new("/"));
        let root = root.map(|root| line("root", root));
        let working = self.working.as_ref().map(|working| line("cwd", working));
        root.into_iter().chain(working).flatten().collect()
    }
}

impl Running {
    fn spawn(strace: &Strace, pids: &[u32], held: bool) -> io::Result<Running> {
        let stood = Stood::of_all(pids);
        let (lines, writer) = io::pipe()?;
        let _ = rustix::pipe::fcntl_setpipe_size(&lines, PIPE_BYTES);
        let mut command = Command::new(&strace.program);
        // Standard output is the trace's pipe: no name in any directory has to be made and removed for it.
        command.args(&strace.options).args(["-o", "/dev/stdout"]);
        for pid in pids {
            command.arg("-p").arg(pid.to_string());
        }
        // A group of its own: a terminal's signals are not for it.
        command.stdin(Stdio::null()).stdout(writer).stderr(Stdio::piped()).process_group(0);
        // Killed, we would leave it attached to whoever sleeps, and nobody else could attach.
        posix::held::ends_with_us(&mut command);
        let mut child = command.spawn()?;
        drop(command);
        let stderr = child.stderr.take();
        let said = std::thread::Builder::new().name("strace says".into()).spawn(move || listen(stderr))?;
        let buffer = vec![0; PIPE_BYTES];
        Ok(Running {
            strace: child,
            lines,
            buffer,
            filled: 0,
            held,
            stood,
            gather: false,
            asked: None,
            said: Some(said),
            left_out: 0,
        })
    }

    /// Waits until strace has attached to the processes that were asked for; `false` if it ended instead. To those
    /// below them, too, if it can: some may be somebody else's, or have a tracer already.
    fn attached(&mut self, asked: &[u32], below: &[u32]) -> io::Result<bool> {
        let tracer = self.strace.id();
        let begun = Instant::now();
        loop {
            // The first line begins when the wait of a held command is entered again, which is when strace has stopped
            // it and let it go on from call to call.
            let seen = ready(&self.lines, Duration::from_millis(5))?;
            // Nobody holds the other end any more: strace has ended, or is about to.
            let gone = seen.contains(PollFlags::HUP) && !seen.contains(PollFlags::IN);
            if gone || self.strace.try_wait()?.is_some() {
                return Ok(false);
            }
            let attached = |pids: &[u32]| pids.iter().all(|&pid| tracer_of(pid).is_none_or(|by| by == tracer));
            let enough = || attached(asked) && (attached(below) || begun.elapsed() > ATTACH_BELOW_MAX);
            if seen.contains(PollFlags::IN) || !self.held && enough() {
                return Ok(true);
            }
            if begun.elapsed() > ATTACH_MAX {
                return Ok(false);
            }
        }
    }

    fn kill(&self, signal: Signal) {
        if let Some(pid) = i32::try_from(self.strace.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process(pid, signal);
        }
    }

    /// Hands on what ends in a line's end, or everything.
    fn hand_on(&mut self, everything: bool, take: &mut dyn FnMut(&[u8])) {
        let (mut whole, filled) = (self.filled, self.filled);
        let Some(bytes) = self.buffer.get(..filled) else { unreachable!("no more is filled than there is") };
        if !everything {
            whole = memchr::memrchr(b'\n', bytes).map_or(0, |at| at + 1);
        }
        let mut lines = bytes.get(..whole).unwrap_or_default();
        if self.held && !lines.is_empty() {
            self.held = false;
            let own = memchr::memchr(b'\n', lines).map_or(lines.len(), |at| at + 1);
            lines = lines.get(own..).unwrap_or_default();
        }
        if !lines.is_empty() {
            // A line begins with its thread and its time.
            let mut words = lines.split(|&b| b == b' ').filter(|word| !word.is_empty());
            if let Some(stamp) = words.nth(1) {
                let told: Vec<u8> = self.stood.drain(..).flat_map(|stood| stood.lines(stamp)).collect();
                if !told.is_empty() {
                    take(&told);
                }
            }
            take(lines);
        }
        self.buffer.copy_within(whole..filled, 0);
        self.filled -= whole;
    }

    /// Waits for strace, killing it when it takes too long. Reads on, as strace cannot end on a full pipe.
    fn wait(&mut self) -> io::Result<ExitStatus> {
        let mut killed = false;
        loop {
            if let Some(status) = self.strace.try_wait()? {
                return Ok(status);
            }
            if !killed && self.asked.is_some_and(|at| at.elapsed() > LET_GO_MAX) {
                self.kill(Signal::KILL);
                killed = true;
            }
            if readable(&self.lines, Duration::from_millis(5))? && self.lines.read(&mut self.buffer)? == 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }
}

impl Tracing for Running {
    fn drain(&mut self, wait: Duration, take: &mut dyn FnMut(&[u8])) -> io::Result<Drained> {
        if self.gather && self.asked.is_none() {
            std::thread::sleep(GATHER.min(wait));
        }
        if !readable(&self.lines, wait)? {
            return Ok(Drained::Open);
        }
        let Some(free) = self.buffer.get_mut(self.filled..) else { unreachable!("no more is filled than there is") };
        let n = match self.lines.read(free) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => return Ok(Drained::Open),
            other => other?,
        };
        self.gather = n < PIPE_BYTES / 4;
        self.filled += n;
        self.hand_on(n == 0, take);
        if self.filled == self.buffer.len() {
            match self.filled >= LINE_BYTES_MAX {
                true => self.hand_on(true, take),
                false => self.buffer.resize(self.filled * 2, 0),
            }
        }
        Ok(if n == 0 { Drained::Ended } else { Drained::Open })
    }

    fn stop(&mut self) {
        if self.asked.is_none() {
            self.asked = Some(Instant::now());
            // strace lets go of the processes and ends. Not SIGINT, which it ignores where we did.
            self.kill(Signal::TERM);
        }
    }

    fn end(mut self: Box<Self>) -> Ending {
        let status = self.wait();
        let said = self.said.take().map(|thread| thread.join().unwrap_or_default()).unwrap_or_default();
        let lost = self.asked.is_none() && !status.is_ok_and(|status| status.success());
        let left_out = match self.left_out {
            0 => None,
            1 => Some("a process that they started before may not be traced, and is not recorded".to_owned()),
            n => Some(format!("{n} processes that they started before may not be traced, and are not recorded")),
        };
        Ending { lost, said: said.trim().to_owned(), notes: left_out.into_iter().collect() }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop();
        let _ = self.wait();
    }
}

/// Whether we may attach to a process: its memory is for whom the kernel lets do so (`PTRACE_MODE_ATTACH`). One that is
/// gone is nobody's.
fn may_attach(pid: u32) -> bool {
    !File::open(format!("/proc/{pid}/mem")).is_err_and(|e| e.kind() == io::ErrorKind::PermissionDenied)
}

/// Who traces a process: 0 if nobody does; `None` if it is gone.
fn tracer_of(pid: u32) -> Option<u32> {
    status_field(pid, "TracerPid:")
}

/// A number in `/proc/PID/status`; `None` if the process is gone.
pub(super) fn status_field(pid: u32, name: &str) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix(name))?.trim().parse().ok()
}

/// Whether there is something to read, or the end, within a time.
fn readable(pipe: &io::PipeReader, wait: Duration) -> io::Result<bool> {
    ready(pipe, wait).map(|ready| !ready.is_empty())
}

/// What there is within a time: something to read (`IN`), nobody to write it (`HUP`).
fn ready(pipe: &io::PipeReader, wait: Duration) -> io::Result<PollFlags> {
    let wait =
        Timespec { tv_sec: i64::try_from(wait.as_secs()).unwrap_or(i64::MAX), tv_nsec: wait.subsec_nanos().into() };
    let mut of = [PollFd::new(pipe, PollFlags::IN)];
    match poll(&mut of, Some(&wait)) {
        Ok(_) => Ok(of[0].revents()),
        Err(rustix::io::Errno::INTR) => Ok(PollFlags::empty()),
        Err(e) => Err(e.into()),
    }
}

/// Keeps the beginning of what strace says, and reads all, or strace would wait for us.
fn listen(stderr: Option<std::process::ChildStderr>) -> String {
    let Some(mut stderr) = stderr else { return String::new() };
    let mut said = Vec::new();
    let _ = stderr.by_ref().take(SAID_BYTES_MAX).read_to_end(&mut said);
    let _ = io::copy(&mut stderr, &mut io::sink());
    String::from_utf8_lossy(&said).into_owned()
}

fn options(version: (u32, u32)) -> Vec<String> {
    let mut options: Vec<String> = Vec::new();
    let mut add = |option: &str| options.push(option.to_owned());
    add("-f");
    if version >= NANOSECONDS {
        add("--absolute-timestamps=format:unix,precision:ns");
        add("--syscall-times=ns");
    } else {
        add("-ttt");
        add("-T");
    }
    if version >= NUMBERS {
        // A process in a namespace of its own is told by other numbers there than here.
        add("--pidns-translation");
    }
    add("-yy");
    add("-s0");
    add("-q");
    add("-e");
    // Signals that by default do nothing. Others can kill, and strace is silent about deaths by signals not asked for.
    add("signal=!SIGCHLD,SIGCONT,SIGURG,SIGWINCH");
    // With -s0 the lengths of vectors would be cut off.
    add("-e");
    add("abbrev=!readv,writev,preadv,pwritev,preadv2,pwritev2");
    add("-e");
    let names: Vec<String> = traced_calls().map(|name| format!("?{name}")).collect();
    add(&format!("trace={}", names.join(",")));
    options
}

fn version(program: &PathBuf) -> Result<String, RecordError> {
    let output = match Command::new(program).arg("-V").stdin(Stdio::null()).output() {
        Ok(output) => output,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Err(RecordError::StraceMissing),
        Err(source) => return Err(RecordError::Io { what: format!("cannot run {}", program.display()), source }),
    };
    let text = String::from_utf8_lossy(&output.stdout);
    let version = text.lines().next().and_then(|line| line.rsplit_once("version ")).map(|(_, v)| v.trim().to_owned());
    version
        .ok_or_else(|| RecordError::CannotTrace { said: format!("{} -V does not state a version", program.display()) })
}

/// Major and minor number.
fn number(version: &str) -> (u32, u32) {
    let mut parts = version.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions() {
        assert_eq!(number("6.1"), (6, 1));
        assert_eq!(number("4.26"), (4, 26));
        assert_eq!(number("5.10-0.1.dirty"), (5, 10));
        assert_eq!(number("UNKNOWN"), (0, 0));
    }

    #[test]
    fn options_by_version() {
        assert!(options((5, 2)).contains(&"-ttt".to_owned()));
        assert!(!options((5, 2)).contains(&"--pidns-translation".to_owned()));
        assert!(options((6, 1)).contains(&"--pidns-translation".to_owned()));
        assert!(!options((6, 1)).iter().any(|o| o.contains("seccomp")), "see the module's documentation");
        assert!(options((6, 1)).iter().any(|o| o.starts_with("trace=") && o.contains("?openat,")));
    }
}
