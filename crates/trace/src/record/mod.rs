//! Recording a command, or processes that run already, into a workload profile.
//!
//! What lives here: starting and ending a recording, the snapshot of names before and after it, and the description of
//! the machine. What may not: understanding a tracer's records (that is [`crate::strace`] and its like).
//!
//! ```text
//! tracer ──▶ hear ──▶ queue ──▶ store ──▶ NAME.spool ──▶ analysis ──▶ NAME.workload
//!            └──────── capture ────────┘
//! ```
//!
//! Capture (`capture`) drains the tracer into a spool and looks at nothing. Analysis (`analyse`) reads the spool in a
//! thread of its own while it grows. Nothing that goes wrong in analysis reaches capture, and nothing that goes wrong
//! here reaches the program: each tracer says how it sees to that ([`Strace`]). A recording that could not be analysed
//! is kept and imported later ([`import_spool`]); after a success the spool is removed.
//!
//! The command keeps its standard input, output and error, its environment and working directory.

mod analyse;
mod before;
mod capture;
mod descendants;
mod host;
mod meanwhile;
mod queue;
mod run;
mod signals;
mod source;
mod strace;
mod workshop;

pub use analyse::AnalysisError;
pub use descendants::descendants;
pub use run::{CommandEnd, Recording};
pub use source::{Drained, Ending, Target, Tracer, Tracing};
pub use strace::Strace;

use crate::analysis::Decode;
use crate::profile::{self, Meta, WriterOptions};
use crate::snapshot::View;
use crate::spool::{self, Header, Notation, Reader, SpoolError};
use crate::strace::{ImportError, ImportOptions, Importer, Summary};
use columnar::FileError;
use fault::{Fault, Kind};
use posix::mount_of_path;
use rustix::fs::{Access, AtFlags, CWD, accessat};
use serde::Serialize;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What to record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A command: program and arguments.
    Command(Vec<OsString>),
    /// Processes that run already, until they end or a signal asks us to stop.
    Processes(Vec<u32>),
    /// Every process in a control group, by its directory, until a signal asks us to stop.
    Cgroup(PathBuf),
    /// Whoever touches the file system mounted there, until a signal asks us to stop.
    Mount(PathBuf),
}

/// How to record.
#[derive(Clone, Debug)]
pub struct RecordOptions {
    /// What to record.
    pub subject: Subject,
    /// Trees whose names are read before the run, besides the working directory: exact there, reconstructed elsewhere.
    pub roots: Vec<PathBuf>,
    /// Read the working directory's tree before the run.
    pub snapshot_working_directory: bool,
    /// At most so many names are read before the run; what is beyond is reconstructed.
    pub snapshot_entries_max: usize,
    /// The workload profile to write.
    pub output: PathBuf,
    /// Replace a profile that is there.
    pub overwrite: bool,
    /// End the recording after so long; what is recorded goes on. `None`: when it ends, or a signal comes.
    pub duration: Option<Duration>,
    /// So many bytes stay free on the file system of the output: what would take of them is not stored, and counted.
    /// `None`: a twentieth of it, and at most a GiB.
    pub keep_free_bytes: Option<u64>,
    /// The directory in which the spool and the profile grow. `None`: that of the output, or one of our own below
    /// `/var/tmp` where that of the output is in a tree in which what is recorded works (its working directory, and
    /// `roots`).
    pub spool_in: Option<PathBuf>,
    /// Called with what somebody who waits should know. It holds up nothing.
    pub on_news: Option<fn(&News)>,
    /// Called at once when a command runs: what it was to have of ours, it has. Whoever waits for the end of a pipe
    /// waits for us too while we hold it.
    pub on_command: Option<fn()>,
    /// How long the analysis may take over a single frame of the spool before it counts as stuck and is given up.
    pub patience: Duration,
}

impl RecordOptions {
    /// Records a command into `output` with the usual settings.
    pub fn command(command: Vec<OsString>, output: PathBuf) -> Self {
        RecordOptions {
            subject: Subject::Command(command),
            roots: Vec::new(),
            snapshot_working_directory: true,
            snapshot_entries_max: 500_000,
            output,
            overwrite: false,
            duration: None,
            keep_free_bytes: None,
            spool_in: None,
            on_news: None,
            on_command: None,
            patience: Duration::from_secs(60),
        }
    }
}

/// What somebody who waits for a recording should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// Every call of the processes that ran already is seen from now on.
    Started,
    /// The spool, until the profile is there, where it is in a directory of our own.
    SpoolElsewhere(PathBuf),
    /// The command has ended, and what it started goes on, and with it the recording.
    OthersGoOn,
}

/// What came of a recording.
#[derive(Clone, Debug, Serialize)]
pub struct RecordSummary {
    /// `meta.json` as written.
    pub meta: Meta,
    /// Counts of the import.
    pub import: Summary,
    /// The command's exit status, if it exited.
    pub exit_status: Option<i32>,
    /// The signal that killed it.
    pub signal: Option<i32>,
    /// The tracer ended before what it traced did: the profile holds what was seen until then.
    pub tracer_lost: bool,
    /// What the user should know: features missing, limits met.
    pub notes: Vec<String>,
}

/// Why a recording could not be made.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum RecordError {
    #[error("strace is not installed: install the package `strace` (apt-get install strace, dnf install strace)")]
    StraceMissing,
    #[error("strace {found} is too old: {oldest} or later is needed")]
    StraceTooOld { found: String, oldest: String },
    #[error("cannot trace here: {said}")]
    CannotTrace { said: String },
    #[error("{}: {why}: nothing was recorded", command.display())]
    CannotRun { command: PathBuf, why: String },
    #[error("there is no command to record")]
    NoCommand,
    #[error("{}: is no directory", path.display())]
    NoDirectory { path: PathBuf },
    #[error(
        "{}: is no mount point: a recording of {} holds the whole file system that is mounted there, so name \
         that", path.display(), point.display()
    )]
    NoMountPoint { path: PathBuf, point: PathBuf },
    #[error("process {pid} does not exist")]
    NoProcess { pid: u32 },
    #[error("{tid} is the number of a thread: name its process, {process}")]
    IsThread { tid: u32, process: u32 },
    #[error("a signal came before anything was recorded, and nothing was run")]
    Interrupted,
    #[error("{what}: {source}")]
    Io { what: String, source: std::io::Error },
    #[error("no profile could be made of the recording: {error}.{} {}", missing(*lost_records), kept(spool))]
    Analysis { spool: PathBuf, lost_records: u64, error: AnalysisError },
    #[error(transparent)]
    Spool(#[from] SpoolError),
    #[error(transparent)]
    Profile(#[from] FileError),
}

fn missing(records: u64) -> String {
    if records == 0 { String::new() } else { format!(" {records} records could not be stored and are missing.") }
}

/// What has become of a spool that is needed.
fn kept(spool: &Path) -> String {
    match spool.symlink_metadata() {
        Ok(_) => format!("It is kept, and goes on from there: fsage import {}", spool.display()),
        Err(_) => format!("It is not there any more: somebody removed or moved {} meanwhile", spool.display()),
    }
}

impl Fault for RecordError {
    fn kind(&self) -> Kind {
        match self {
            RecordError::CannotRun { .. }
            | RecordError::NoCommand
            | RecordError::NoDirectory { .. }
            | RecordError::NoMountPoint { .. }
            | RecordError::NoProcess { .. }
            | RecordError::IsThread { .. } => Kind::Usage,
            RecordError::Interrupted => Kind::Interrupted,
            RecordError::Spool(e) => e.kind(),
            RecordError::Profile(e) => e.kind(),
            _ => Kind::Environment,
        }
    }
}

/// Records with the strace on the path, and waits for the command. The command's own failure is not an error: see
/// [`RecordSummary::exit_status`].
///
/// # Errors
/// As [`record_with`], and the profile could not be made.
pub fn record(options: &RecordOptions) -> Result<RecordSummary, RecordError> {
    check_subject(&options.subject)?;
    let mut recording = record_with(options, &mut Strace::find(None)?)?;
    let profile = std::mem::replace(&mut recording.profile, Err(RecordError::NoCommand));
    let end =
        recording.wait().map_err(|source| RecordError::Io { what: "cannot wait for the command".into(), source })?;
    let mut summary = profile?;
    // The command may have ended after its recording did.
    summary.exit_status = summary.exit_status.or(end.exit_status);
    summary.signal = summary.signal.or(end.signal);
    Ok(summary)
}

/// Records with a tracer until what is recorded has ended, the time is over or a signal comes, and writes the workload
/// profile.
///
/// # Errors
/// The tracer may not trace, the command cannot be run, or there is no room for a spool: nothing was recorded, and
/// nothing is left behind. What went wrong later is in [`Recording::profile`].
pub fn record_with(options: &RecordOptions, tracer: &mut dyn Tracer) -> Result<Recording, RecordError> {
    check_subject(&options.subject)?;
    run::run(options, tracer)
}

/// Makes a workload profile of the spool that a recording left. The spool stays.
///
/// # Errors
/// The spool cannot be read or is damaged, or the profile cannot be written; nothing is left of it then.
pub fn import_spool(spool: &Path, output: &Path, overwrite: bool) -> Result<RecordSummary, AnalysisError> {
    let reader = Reader::open(spool)?;
    let header = reader.header();
    let options = ImportOptions { name: spool.to_owned(), keep_removed: true, ..ImportOptions::default() };
    let decoder: Box<dyn Decode> = match header.notation {
        Notation::Strace => Box::new(Importer::new(options)),
        Notation::Kernel => Box::new(crate::kernel::Importer::new(options)),
    };
    // The disk can say how it was before the run only if it is that disk, and nothing else can be known of it.
    let same_boot = !header.boot_id.is_empty() && header.boot_id == host::boot_id();
    let view = view_again(header).filter(|_| same_boot);
    let completion = view.map_or(analyse::Completion::Trace, analyse::Completion::Disk);
    let writer = profile::Writer::create(output, WriterOptions { overwrite, ..WriterOptions::default() })?;
    analyse::analyse(reader, decoder, writer, completion, &AtomicU64::new(0)).map_err(|error| match error {
        AnalysisError::Import(ImportError::Empty { name }) => SpoolError::NoRecords { path: name }.into(),
        other => other,
    })
}

/// Fails early on what cannot be recorded: a mistyped command must not leave anything.
fn check_subject(subject: &Subject) -> Result<(), RecordError> {
    match subject {
        Subject::Command(command) => {
            let program = command.first().filter(|p| !p.is_empty()).ok_or(RecordError::NoCommand)?;
            find_program(Path::new(program)).map(drop)
        }
        Subject::Processes(pids) => {
            if pids.is_empty() {
                return Err(RecordError::NoCommand);
            }
            let gone = |&&pid: &&u32| pid == std::process::id() || !Path::new(&format!("/proc/{pid}")).exists();
            if let Some(&pid) = pids.iter().find(gone) {
                return Err(RecordError::NoProcess { pid });
            }
            // The kernel shows a thread's directory to whoever asks for it by name.
            let thread = |&tid: &u32| {
                let process = strace::status_field(tid, "Tgid:").filter(|&process| process != tid)?;
                Some(RecordError::IsThread { tid, process })
            };
            pids.iter().find_map(thread).map_or(Ok(()), Err)
        }
        Subject::Cgroup(path) | Subject::Mount(path) => {
            let meta = std::fs::metadata(path);
            if !meta.is_ok_and(|meta| meta.is_dir()) {
                return Err(RecordError::NoDirectory { path: path.clone() });
            }
            let point = mount_of_path(path).ok().flatten().map(|mount| mount.point);
            match (subject, point, path.canonicalize()) {
                (Subject::Mount(_), Some(point), Ok(real)) if point != real => {
                    Err(RecordError::NoMountPoint { path: path.clone(), point })
                }
                _ => Ok(()),
            }
        }
    }
}

fn working_directory(subject: &Subject) -> Option<PathBuf> {
    match subject {
        Subject::Command(_) => std::env::current_dir().ok(),
        Subject::Processes(pids) => std::fs::read_link(format!("/proc/{}/cwd", pids.first()?)).ok(),
        Subject::Cgroup(_) | Subject::Mount(_) => None,
    }
}

/// The tree of names that what is recorded sees. Where we may not look, the tracer may not trace, and says so.
fn view(subject: &Subject) -> View {
    let process = match subject {
        Subject::Processes(pids) => pids.first().copied(),
        Subject::Cgroup(directory) => first_process(directory),
        Subject::Command(_) | Subject::Mount(_) => None,
    };
    process.and_then(|pid| View::of_process(pid).ok()).unwrap_or_default()
}

/// The same for a spool; `None` if its mount namespace is not to be found any more.
fn view_again(header: &Header) -> Option<View> {
    let Some(namespace) = header.mount_namespace else { return Some(View::own()) };
    let spool::Subject::Processes { pids } = &header.subject else { return None };
    let mut views = pids.iter().filter_map(|&pid| View::of_process(pid).ok());
    views.find(|view| view.namespace() == Some(namespace))
}

/// Any process in a control group or a group below it.
fn first_process(group: &Path) -> Option<u32> {
    let processes = std::fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    let first = processes.lines().find_map(|line| line.parse().ok().filter(|&pid| pid != 0));
    first.or_else(|| {
        let below = std::fs::read_dir(group).ok()?.flatten().filter(|e| e.file_type().is_ok_and(|t| t.is_dir()));
        below.map(|entry| entry.path()).find_map(|group| first_process(&group))
    })
}

/// The trees to read before the run, as real paths.
fn roots(options: &RecordOptions, working_directory: Option<&Path>, view: &View) -> Vec<PathBuf> {
    let read = working_directory.filter(|_| options.snapshot_working_directory);
    trees(options, read, view)
}

/// The trees in which what is recorded works, as far as we are told, as real paths.
fn trees(options: &RecordOptions, working_directory: Option<&Path>, view: &View) -> Vec<PathBuf> {
    let mut roots = options.roots.clone();
    roots.extend(working_directory.map(Path::to_owned));
    let absolute = |root: &PathBuf| std::path::absolute(root).unwrap_or_else(|_| root.clone());
    let mut real: Vec<PathBuf> = roots.iter().map(absolute).map(|r| view.real(&r).unwrap_or(r)).collect();
    real.sort();
    real.dedup();
    real
}

/// The file of a program that can be run, looked up as execvp does: the traced process must not be seen looking for it.
fn find_program(program: &Path) -> Result<PathBuf, RecordError> {
    let refuse = |why: &str| Err(RecordError::CannotRun { command: program.to_owned(), why: why.to_owned() });
    let is_runnable = |path: &Path| {
        std::fs::metadata(path).is_ok_and(|meta| meta.is_file())
            && accessat(CWD, path, Access::EXEC_OK, AtFlags::EACCESS).is_ok()
    };
    if program.as_os_str().as_bytes().contains(&b'/') {
        return match std::fs::metadata(program) {
            Err(_) => refuse("no such program"),
            Ok(_) if !is_runnable(program) => refuse("not an executable file"),
            Ok(_) => Ok(program.to_owned()),
        };
    }
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    let found = std::env::split_paths(&path).map(|dir| dir.join(program)).find(|file| is_runnable(file));
    found.map_or_else(|| refuse("no such program on the path"), Ok)
}

fn now_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}
