//! Recording a command, or processes that run already, into a workload profile.
//!
//! What lives here: finding and driving strace, taking the snapshot of names before the run and completing it after,
//! and the description of the machine. What may not: understanding strace's text (that is [`crate::strace`]).
//!
//! strace writes into a FIFO that is imported while the command runs: memory and disk stay bounded however long it
//! runs, and nothing but the finished profile is written. Measured on a compile job against a file on disk, a file in
//! memory and /dev/null as strace's output, the FIFO is not slower than the others: what costs is stopping the traced
//! process twice a call, not where the line goes (docs/benchmarks.md).
//!
//! The command keeps its standard input, output and error, its environment and working directory.

mod before;
mod host;
mod run;
mod tracer;

use crate::profile::{Command as MetaCommand, Meta, ProfileError, Tracer as MetaTracer, Writer, WriterOptions, escape};
use crate::strace::{ImportError, Imported, Summary};
use crate::{Snapshot, snapshot::WalkLimits};
use serde::Serialize;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// What to record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A command: program and arguments.
    Command(Vec<OsString>),
    /// Processes that run already, until they end or a signal asks us to stop.
    Processes(Vec<u32>),
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
    /// The strace to use; `None`: the one on the path.
    pub strace: Option<PathBuf>,
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
            strace: None,
        }
    }
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
    /// strace ended before the command did: the profile holds what was seen until then.
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
    #[error(
        "strace cannot trace here: {said}. Tracing needs ptrace: in a container add the capability SYS_PTRACE; for --pid \
         be root or set /proc/sys/kernel/yama/ptrace_scope to 0"
    )]
    CannotTrace { said: String },
    #[error("{}: {why}: nothing was recorded", command.display())]
    CannotRun { command: PathBuf, why: &'static str },
    #[error("there is no command to record: give one after --")]
    NoCommand,
    #[error("process {pid} does not exist")]
    NoProcess { pid: u32 },
    #[error("{what}: {source}")]
    Io { what: String, source: std::io::Error },
    #[error(transparent)]
    Import(#[from] ImportError),
    #[error(transparent)]
    Profile(#[from] ProfileError),
}

impl RecordError {
    /// The exit code of DESIGN.md: 2 usage, 3 environment.
    pub fn exit_code(&self) -> u8 {
        match self {
            RecordError::CannotRun { .. } | RecordError::NoCommand | RecordError::NoProcess { .. } => 2,
            RecordError::Import(e) => e.exit_code(),
            _ => 3,
        }
    }
}

/// Runs the command under strace (or attaches to processes) and writes the workload profile. The command's own failure is
/// not an error: see [`RecordSummary::exit_status`].
///
/// # Errors
/// strace is missing or may not trace, the command cannot be found, or the profile cannot be written; nothing is left
/// of the profile then.
pub fn record(options: &RecordOptions) -> Result<RecordSummary, RecordError> {
    let attach = check_subject(&options.subject)?;
    let tracer = tracer::Tracer::find(options.strace.clone(), attach)?;
    let mut writer =
        Writer::create(&options.output, WriterOptions { overwrite: options.overwrite, ..WriterOptions::default() })?;
    let working_directory = working_directory(&options.subject);
    let roots = roots(options, working_directory.as_deref());
    let limits = WalkLimits { entries_max: options.snapshot_entries_max, ..WalkLimits::default() };
    let before = Snapshot::of_tree(&roots, &limits)
        .map_err(|source| RecordError::Io { what: "cannot read the names before the run".into(), source })?;
    let mut touched = before::Touched::default();
    let started_ns = now_ns();
    let ran = run::run(&tracer, &options.subject, &mut |batch| {
        touched.note(batch);
        writer.push(batch)
    })?;
    let mut imported = ran.imported;
    let mut notes = tracer.notes.clone();
    if before.truncated {
        notes.push(format!(
            "only {} names were read before the run; those beyond are reconstructed from what is there now and the trace",
            options.snapshot_entries_max
        ));
    }
    if ran.tracer_lost {
        notes.push("strace ended before the command: the profile holds what was seen until then".into());
    }
    let exact = if before.truncated { Vec::new() } else { roots };
    let completed = before::complete(&mut imported, before, &exact, touched, started_ns);
    let mut meta = meta(options, &tracer, &imported, &completed, working_directory.as_deref());
    meta.command =
        Some(MetaCommand { exit_status: ran.exit_status, signal: ran.signal, ..meta.command.unwrap_or_default() });
    let meta = writer.finish(meta, &completed.snapshot)?;
    Ok(RecordSummary {
        meta,
        import: imported.summary,
        exit_status: ran.exit_status,
        signal: ran.signal,
        tracer_lost: ran.tracer_lost,
        notes,
    })
}

/// The options with which strace writes what [`crate::strace`] reads best, into `output`.
///
/// # Errors
/// strace is missing or may not trace.
pub fn strace_options(output: &Path) -> Result<Vec<OsString>, RecordError> {
    Ok(tracer::Tracer::find(None, false)?.all_options(&output.to_string_lossy()))
}

/// Whether to attach. Fails early on what cannot run: a mistyped command must not leave a profile.
fn check_subject(subject: &Subject) -> Result<bool, RecordError> {
    match subject {
        Subject::Command(command) => {
            let program = command.first().filter(|p| !p.is_empty()).ok_or(RecordError::NoCommand)?;
            run::check_program(Path::new(program))?;
            Ok(false)
        }
        Subject::Processes(pids) => {
            let Some(&first) = pids.first() else { return Err(RecordError::NoCommand) };
            let gone = |&&pid: &&u32| !Path::new(&format!("/proc/{pid}")).exists();
            match pids.iter().find(gone) {
                Some(&pid) => Err(RecordError::NoProcess { pid }),
                None if first == std::process::id() => Err(RecordError::NoProcess { pid: first }),
                None => Ok(true),
            }
        }
    }
}

fn working_directory(subject: &Subject) -> Option<PathBuf> {
    match subject {
        Subject::Command(_) => std::env::current_dir().ok(),
        Subject::Processes(pids) => std::fs::read_link(format!("/proc/{}/cwd", pids.first()?)).ok(),
    }
}

/// The trees to read before the run, as real paths.
fn roots(options: &RecordOptions, working_directory: Option<&Path>) -> Vec<PathBuf> {
    let mut roots = options.roots.clone();
    if options.snapshot_working_directory {
        roots.extend(working_directory.map(Path::to_owned));
    }
    let mut real: Vec<PathBuf> = roots.iter().map(|r| std::fs::canonicalize(r).unwrap_or_else(|_| r.clone())).collect();
    real.sort();
    real.dedup();
    real
}

fn meta(
    options: &RecordOptions,
    tracer: &tracer::Tracer,
    imported: &Imported,
    completed: &before::Completed,
    working_directory: Option<&Path>,
) -> Meta {
    let mut meta = imported.meta();
    let given = tracer.all_options("FIFO").into_iter().map(|o| o.to_string_lossy().into_owned()).collect();
    meta.tracer = MetaTracer { name: "strace".into(), version: tracer.version.clone(), options: given };
    meta.clock = if tracer.options.iter().any(|o| o.ends_with("precision:ns")) {
        "CLOCK_REALTIME by strace, nanoseconds".into()
    } else {
        "CLOCK_REALTIME by strace, microseconds".into()
    };
    meta.host = host::host();
    meta.file_systems = host::file_systems(&completed.snapshot);
    let text = |bytes: &[u8]| escape(bytes).into_owned();
    let argv = match &options.subject {
        Subject::Command(command) => command.iter().map(|arg| text(arg.as_bytes())).collect(),
        Subject::Processes(_) => Vec::new(),
    };
    meta.command = Some(MetaCommand {
        argv,
        working_directory: working_directory.map_or_else(String::new, |d| text(d.as_os_str().as_bytes())),
        exit_status: None,
        signal: None,
    });
    meta.snapshot.unreadable = completed.unreadable.clone();
    meta.snapshot.truncated = completed.truncated;
    meta
}

fn now_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}
