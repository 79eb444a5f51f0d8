//! Running strace and importing what it writes while it writes it.

use super::tracer::Tracer;
use super::{RecordError, Subject};
use crate::Batch;
use crate::profile::ProfileError;
use crate::strace::{ImportError, ImportOptions, Imported, Importer};
use posix::interrupt::{self, PassOn};
use rustix::fs::{CWD, FileType, Mode, OFlags};
use rustix::process::{Pid, Signal};
use std::fs::File;
use std::io::{BufReader, IsTerminal, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// What the pipe is asked to hold, so that a burst of calls does not wait for the importer. The system may give less.
const PIPE_BYTES: usize = 1 << 20;
/// How long lines gather before they are read: a tenth of what fills the pipe at strace's fastest.
const GATHER: Duration = Duration::from_millis(8);
/// How often a waiting recording looks for signals to pass on.
const POLL: Duration = Duration::from_millis(20);

/// A run that has ended.
pub(super) struct Ran {
    pub imported: Imported,
    pub exit_status: Option<i32>,
    pub signal: Option<i32>,
    pub tracer_lost: bool,
}

/// Runs to the end, handing over batches on the way.
pub(super) fn run(
    tracer: &Tracer,
    subject: &Subject,
    sink: &mut dyn FnMut(&Batch) -> Result<(), ProfileError>,
) -> Result<Ran, RecordError> {
    let failed = |what: &'static str| move |source| RecordError::Io { what: format!("cannot {what}"), source };
    let Fifo { path, mut reader, writer } = Fifo::make()?;
    let attached = matches!(subject, Subject::Processes(_));
    let child = spawn(tracer, subject, &path).map_err(failed("start strace"))?;
    let supervisor = supervise(child, writer, attached).map_err(failed("start a thread"))?;
    let options = ImportOptions { name: "strace's output".into(), keep_removed: true, ..ImportOptions::default() };
    let mut importer = Importer::new(options);
    let patient = Patient { reader: &mut reader, wait: false };
    let read = importer.read(BufReader::with_capacity(PIPE_BYTES, patient), sink);
    if read.is_err() {
        // The command must not hang on a pipe that nobody reads, nor be killed for our failure.
        let _ = std::io::copy(&mut reader, &mut std::io::sink());
    }
    let status = match supervisor.join() {
        Ok(status) => status.map_err(failed("wait for strace"))?,
        Err(panic) => std::panic::resume_unwind(panic),
    };
    read?;
    let imported = match importer.finish(sink) {
        Err(ImportError::Empty { .. }) if attached => {
            return Err(RecordError::CannotTrace { said: "it attached to nothing, or nothing was called".into() });
        }
        Err(ImportError::Empty { .. }) => {
            return Err(RecordError::CannotTrace { said: format!("it recorded nothing and ended with {status}") });
        }
        other => other?,
    };
    let first = imported.summary.first_status;
    // strace ends as the command did: with its status, or by the same signal.
    Ok(Ran {
        exit_status: first.and_then(|_| status.code()).filter(|_| !attached),
        signal: first.and_then(|_| status.signal()).filter(|_| !attached),
        tracer_lost: first.is_none() && !attached,
        imported,
    })
}

fn spawn(tracer: &Tracer, subject: &Subject, fifo: &Path) -> std::io::Result<Child> {
    let mut command = Command::new(&tracer.program);
    command.args(tracer.all_options(&fifo.to_string_lossy()));
    match subject {
        Subject::Command(argv) => {
            command.arg("--").args(argv);
        }
        Subject::Processes(pids) => {
            for pid in pids {
                command.arg("-p").arg(pid.to_string());
            }
        }
    }
    command.spawn()
}

/// Waits for strace in a thread of its own, passing on signals; then lets the importer see the end.
fn supervise(
    mut child: Child,
    writer: File,
    attached: bool,
) -> std::io::Result<JoinHandle<std::io::Result<ExitStatus>>> {
    let signals = interrupt::pass_on();
    std::thread::Builder::new().name("strace".into()).spawn(move || {
        let status = loop {
            match child.try_wait() {
                Ok(None) => {}
                Ok(Some(status)) => break Ok(status),
                Err(e) => break Err(e),
            }
            pass_on(&signals, &child, attached);
            std::thread::sleep(POLL);
        };
        drop(writer);
        status
    })
}

/// A terminal's Ctrl-C reaches the command by itself, as it is in our process group; other signals were for us alone.
fn pass_on(signals: &PassOn, child: &Child, attached: bool) {
    let Some(number) = signals.take() else { return };
    let Some(signal) = Signal::from_named_raw(number) else { return };
    let Some(strace) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) else { return };
    if attached {
        // strace lets go of the processes and ends. Not SIGINT, which it ignores where its parent did.
        let _ = rustix::process::kill_process(strace, Signal::TERM);
        return;
    }
    if signal == Signal::INT && std::io::stderr().is_terminal() {
        return;
    }
    let children = format!("/proc/{0}/task/{0}/children", child.id());
    for pid in std::fs::read_to_string(children).unwrap_or_default().split_whitespace() {
        if let Some(pid) = pid.parse().ok().and_then(Pid::from_raw) {
            let _ = rustix::process::kill_process(pid, signal);
        }
    }
}

/// Reads seldom and much. strace writes line by line; waking for each would take the processor from the command twice a
/// call.
struct Patient<'f> {
    reader: &'f mut File,
    wait: bool,
}

impl Read for Patient<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.wait {
            std::thread::sleep(GATHER);
        }
        let n = self.reader.read(buffer)?;
        self.wait = n < PIPE_BYTES / 4;
        Ok(n)
    }
}

/// A FIFO in a directory that only we can enter, and both its ends. Ours of the writing end keeps the reader from seeing
/// an end before strace has opened it.
struct Fifo {
    path: FifoPath,
    reader: File,
    writer: File,
}

impl Fifo {
    fn make() -> Result<Fifo, RecordError> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let name = format!("fsage-record-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let dir = std::env::temp_dir().join(name);
        let failed = |source| RecordError::Io { what: format!("cannot make a FIFO in {}", dir.display()), source };
        std::fs::create_dir(&dir).map_err(failed)?;
        let path = FifoPath { fifo: dir.join("trace"), dir: dir.clone() };
        std::fs::set_permissions(&dir, PermissionsExt::from_mode(0o700)).map_err(failed)?;
        rustix::fs::mknodat(CWD, &path.fifo, FileType::Fifo, Mode::from_raw_mode(0o600), 0)
            .map_err(|e| failed(e.into()))?;
        let open = |flags| rustix::fs::open(&path.fifo, flags | OFlags::CLOEXEC, Mode::empty());
        let reader = open(OFlags::RDONLY | OFlags::NONBLOCK).map_err(|e| failed(e.into()))?;
        let writer = open(OFlags::WRONLY).map_err(|e| failed(e.into()))?;
        rustix::fs::fcntl_setfl(&reader, OFlags::empty()).map_err(|e| failed(e.into()))?;
        let _ = rustix::pipe::fcntl_setpipe_size(&reader, PIPE_BYTES);
        Ok(Fifo { path, reader: File::from(reader), writer: File::from(writer) })
    }
}

/// The FIFO's name; removed with its directory when dropped.
struct FifoPath {
    dir: PathBuf,
    fifo: PathBuf,
}

impl std::ops::Deref for FifoPath {
    type Target = Path;
    fn deref(&self) -> &Path {
        &self.fifo
    }
}

impl Drop for FifoPath {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.fifo);
        let _ = std::fs::remove_dir(&self.dir);
    }
}

/// Whether a program can be run, looked up as execvp does.
pub(super) fn check_program(program: &Path) -> Result<(), RecordError> {
    let refuse = |why| Err(RecordError::CannotRun { command: program.to_owned(), why });
    let is_runnable = |path: &Path| {
        std::fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    if program.as_os_str().as_bytes().contains(&b'/') {
        return match std::fs::metadata(program) {
            Err(_) => refuse("no such program"),
            Ok(_) if !is_runnable(program) => refuse("not an executable file"),
            Ok(_) => Ok(()),
        };
    }
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    if std::env::split_paths(&path).any(|dir| is_runnable(&dir.join(program))) {
        return Ok(());
    }
    refuse("no such program on the path")
}
