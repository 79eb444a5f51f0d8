//! `fsage record CMD…`.

use crate::failure::Context as _;
use crate::{failure, output, progress, values};
use clap::ValueEnum;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use trace::anonymise::anonymise_in_place;
use trace::record::{self, CommandEnd, News, RecordError, RecordOptions, RecordSummary, Recording, Strace, Subject};
use units::show;

/// Trace a command, or processes that run already, into a workload profile.
///
/// The command runs with its own input, output, environment and directory, and its exit status is passed on (128 and
/// the signal, if one killed it), also where no profile could be made: look for that on standard error.
///
/// Two tracers: programs in the kernel (ebpf) watch and never stop what they record, see accesses through mapped files
/// and io_uring, and store true durations. strace needs no rights over processes of one's own, but stops them twice a
/// call. What to know before recording in production is in docs/recording.md.
///
/// What the tracer tells is stored in W.spool (--spool-in says where), and made into the profile apart from that:
/// whatever happens to fsage, to the tracer or to the disk, what is recorded goes on. The spool is removed when the
/// profile is there; where there is none (fsage was killed, the disk was full), `fsage import W.spool` goes on from it.
///
/// A recording of a command lasts until the last process that it started has ended. SIGINT and SIGTERM end the
/// recording and write the profile of what was seen. A command gets the signal too, and fsage waits for it; a second
/// signal makes fsage leave without waiting, but not the Ctrl-C of a terminal, which a command that goes on takes for
/// its own. SIGHUP, SIGQUIT, SIGUSR1 and their like go to the command alone.
/// Processes that ran before (--pid, --cgroup, --mount) go on.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  fsage record make -j4
  fsage record -o web.workload --root /srv/www --pid 1234 --duration 10m
  fsage record -o db.workload --cgroup /sys/fs/cgroup/system.slice/postgresql.service --duration 10m")]
pub struct Args {
    /// The workload profile to write (default: the command's name, with .workload).
    #[arg(long, short, value_name = "W.workload")]
    output: Option<PathBuf>,
    /// Replace a workload profile that is there.
    #[arg(long)]
    overwrite: bool,
    /// Also read the names below this directory before the run (they are exact there, and reconstructed elsewhere).
    #[arg(long, value_name = "DIR")]
    root: Vec<PathBuf>,
    /// Do not read the names below the working directory before the run.
    #[arg(long)]
    no_working_directory: bool,
    /// Read at most so many names before the run.
    #[arg(long, value_name = "N", default_value_t = 500_000)]
    max_names: usize,
    /// Trace processes that run already, what they started before and whatever they start, until they end or a signal
    /// comes.
    #[arg(long, value_name = "PID", conflicts_with = "command")]
    pid: Vec<u32>,
    /// Trace every process in a control group, until a signal comes (ebpf only).
    #[arg(long, value_name = "DIR", conflicts_with_all = ["command", "pid"])]
    cgroup: Option<PathBuf>,
    /// Trace whoever touches the file system mounted there, until a signal comes (ebpf only).
    #[arg(long, value_name = "DIR", conflicts_with_all = ["command", "pid", "cgroup"])]
    mount: Option<PathBuf>,
    /// End the recording after so long (90s, 10m, 1h); what is recorded goes on.
    #[arg(long, value_name = "TIME", value_parser = values::span_ns)]
    duration: Option<u64>,
    /// The tracer (default: ebpf where it is permitted, else strace; fsage says which, and why).
    #[arg(long, value_enum, value_name = "TRACER")]
    with: Option<With>,
    /// The strace to use (default: the one on the path); with this option, strace is the default.
    #[arg(long, value_name = "FILE")]
    strace: Option<PathBuf>,
    /// The buffer between the kernel and fsage, rounded up to a power of two (ebpf). What does not fit is lost,
    /// counted, and marked as a gap in the profile.
    #[arg(long, value_name = "SIZE", value_parser = values::size, default_value = "64M")]
    buffer: u64,
    /// The directory in which the spool and the profile grow until the profile is there (default: where the profile
    /// goes; where the command, or what is recorded, works in that directory or above it, one of fsage's own below
    /// /var/tmp, so that nobody packs or removes it).
    #[arg(long, value_name = "DIR")]
    spool_in: Option<PathBuf>,
    /// Store nothing more when less than so much would stay free where the profile is written; what is left out is
    /// counted, and what is recorded goes on (default: a twentieth of that file system, and at most 1 GiB).
    #[arg(long, value_name = "SIZE", value_parser = values::size)]
    keep_free: Option<u64>,
    /// Hide every name in the profile, as `fsage export --anonymise` does. (A spool that is kept because no profile
    /// could be made still holds them.)
    #[arg(long)]
    anonymise: bool,
    /// Print a summary as JSON on standard output; the command's own standard output goes to standard error.
    #[arg(long)]
    json: bool,
    /// The command and its arguments; options of fsage's stand before it.
    #[arg(trailing_var_arg = true, required_unless_present_any = ["pid", "cgroup", "mount"], value_name = "CMD")]
    command: Vec<OsString>,
}

/// Tracers.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum With {
    /// Programs in the kernel: costs little, true durations; needs CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE, or root.
    Ebpf,
    /// strace: works for processes of one's own, and slows them down severalfold.
    Strace,
}

/// Records with the tracer that was asked for, or with the best that may trace, and says which and why.
fn recorded(
    options: &RecordOptions,
    with: Option<With>,
    strace: Option<PathBuf>,
    buffer_bytes: u32,
) -> failure::Result<Recording> {
    // What strace cannot do, it need not be tried for.
    let only_ebpf = matches!(options.subject, Subject::Cgroup(_) | Subject::Mount(_));
    let with = with.or(only_ebpf.then_some(With::Ebpf)).or(strace.is_some().then_some(With::Strace));
    let in_kernel = || -> Result<Recording, RecordError> {
        let found = capture::Kernel::find(capture::Options { buffer_bytes });
        let mut kernel = found.map_err(|missing| RecordError::CannotTrace { said: missing.to_string() })?;
        record::record_with(options, &mut kernel)
    };
    if with != Some(With::Strace) {
        match in_kernel() {
            Ok(recording) => return Ok(recording),
            Err(RecordError::CannotTrace { said }) if with.is_none() => {
                progress::note(&format!("recording with strace, as recording in the kernel is not possible: {said}"));
            }
            Err(other) => return Err(other.into()),
        }
    }
    Ok(record::record_with(options, &mut Strace::find(strace)?)?)
}

/// Address space that a recording takes, at most: its buffers, a row group of the profile, the names of the snapshot,
/// and what the C library's allocator sets aside for each thread.
const ADDRESS_SPACE_BYTES: u64 = 1 << 30;
/// What of it is data, at most.
const DATA_BYTES: u64 = 512 << 20;

/// Raises our limits, and refuses where we may not and recording takes more.
fn raise_limits() -> failure::Result<()> {
    let limits = posix::limits::raise();
    let memory = [
        ("address space", "-v", limits.address_space_bytes, ADDRESS_SPACE_BYTES),
        ("data", "-d", limits.data_bytes, DATA_BYTES),
    ];
    for (what, option, limit, takes) in memory {
        if let Some(bytes) = limit.filter(|&bytes| bytes < takes) {
            return Err(failure::environment(format!(
                "the {what} of this process is limited to {} (ulimit {option}); recording takes {}",
                show::bytes(bytes as f64),
                show::bytes(takes as f64),
            )));
        }
    }
    if let Some(seconds) = limits.processor_time_s {
        progress::note(&format!(
            "fsage and its tracer may use {seconds} s of processor time each, as the command may (ulimit -t): should \
             that be too little, the command goes on, and what was recorded until then is kept"
        ));
    }
    Ok(())
}

/// Records.
pub fn run(args: Args) -> failure::Result<ExitCode> {
    let subject = match (args.cgroup, args.mount) {
        (Some(directory), _) => Subject::Cgroup(directory),
        (None, Some(directory)) => Subject::Mount(directory),
        (None, None) if args.pid.is_empty() => Subject::Command(args.command),
        (None, None) => Subject::Processes(args.pid),
    };
    let path = args.output.unwrap_or_else(|| default_output(&subject));
    output::for_workload(&path, args.overwrite)?;
    if let Some(directory) = args.spool_in.as_ref().filter(|directory| !directory.is_dir()) {
        return Err(failure::usage(format!("--spool-in {}: is not a directory", output::shown(directory))));
    }
    for root in &args.root {
        if !root.is_dir() {
            return Err(failure::usage(format!("--root {}: is not a directory", output::shown(root))));
        }
    }
    let options = RecordOptions {
        roots: args.root,
        snapshot_working_directory: !args.no_working_directory,
        snapshot_entries_max: args.max_names,
        overwrite: args.overwrite,
        duration: args.duration.map(Duration::from_nanos),
        keep_free_bytes: args.keep_free,
        spool_in: args.spool_in,
        on_news: Some(say_news),
        on_command: Some(posix::held::let_go_of_pipes),
        subject,
        ..RecordOptions::command(Vec::new(), path.clone())
    };
    raise_limits()?;
    let buffer = u32::try_from(args.buffer).ok().and_then(u32::checked_next_power_of_two);
    let buffer = buffer
        .filter(|&bytes| bytes >= 4096)
        .ok_or_else(|| failure::usage(format!("--buffer {} bytes: a buffer has 4096 bytes to 2 GiB", args.buffer)))?;
    let begun = || recorded(&options, args.with, args.strace, buffer);
    let recording = if args.json { aside(begun)? } else { begun() }?;
    finish(&path, recording, args.anonymise, args.json)
}

fn say_news(news: &News) {
    match news {
        News::Started => progress::note("recording; Ctrl-C ends it, and what is recorded goes on"),
        News::SpoolElsewhere(spool) => {
            progress::note(&format!("until the profile is there, the recording is in {}", output::shown(spool)));
        }
        News::OthersGoOn => {
            progress::note("the command has ended; what it started goes on and is recorded until it ends or Ctrl-C");
        }
    }
}

/// Says what came of it, waits for the command and passes on how it ended.
fn finish(path: &Path, mut recording: Recording, anonymise: bool, json: bool) -> failure::Result<ExitCode> {
    let mut profile = std::mem::replace(&mut recording.profile, Err(RecordError::NoCommand));
    if anonymise {
        profile = profile.and_then(|summary| Ok(RecordSummary { meta: anonymise_in_place(path)?, ..summary }));
    }
    if let Ok(summary) = &profile {
        say_profile(path, summary);
    }
    if let Err(error) = &profile
        && recording.is_command_running()
    {
        progress::note(&error.to_string());
    }
    if recording.is_command_running() {
        progress::note("the command goes on, not recorded any more; SIGTERM to fsage leaves it running");
    }
    let end = recording.wait().context("cannot wait for the command")?;
    let mut summary = match profile {
        Ok(summary) => summary,
        // The program has ended as it did; that it is not on record changes nothing about that.
        Err(error) if end.exit_status.or(end.signal).is_some() => {
            failure::report(&error.into());
            say_end(end.exit_status, end.signal);
            return Ok(exit_code(&end));
        }
        Err(error) => return Err(error.into()),
    };
    // The command may have ended after its recording did.
    summary.exit_status = summary.exit_status.or(end.exit_status);
    summary.signal = summary.signal.or(end.signal);
    say_end(summary.exit_status, summary.signal);
    if json {
        let value = output::envelope("fsage.record/1", &summary)?;
        output::print(&document::json_text(&value))?;
    }
    Ok(exit_code(&end))
}

/// The command's own status; 128 and the signal's number, as shells say it, if one ended it or made us leave.
fn exit_code(end: &CommandEnd) -> ExitCode {
    let signal = end.signal.or(end.left_running).map(|signal| 128 + signal);
    let code = end.exit_status.or(signal).unwrap_or(0);
    u8::try_from(code).map_or(ExitCode::FAILURE, ExitCode::from)
}

/// Does something with standard output led to standard error, so that a traced command's output stays apart from ours.
pub fn aside<T>(work: impl FnOnce() -> T) -> failure::Result<T> {
    // What is started meanwhile does not have it.
    let saved = rustix::io::fcntl_dupfd_cloexec(io::stdout(), 3)
        .map_err(io::Error::from)
        .context("cannot duplicate standard output")?;
    rustix::stdio::dup2_stdout(io::stderr())
        .map_err(io::Error::from)
        .context("cannot lead standard output to standard error")?;
    let done = work();
    rustix::stdio::dup2_stdout(&saved).map_err(io::Error::from).context("cannot restore standard output")?;
    Ok(done)
}

/// What came of it, on standard error: standard output is the command's.
pub fn say(path: &Path, summary: &RecordSummary) {
    say_profile(path, summary);
    say_end(summary.exit_status, summary.signal);
}

fn say_profile(path: &Path, summary: &RecordSummary) {
    for note in &summary.notes {
        progress::note(note);
    }
    // Of no calls there is no share.
    let share = summary.meta.coverage_share.filter(|_| summary.meta.events > 0);
    let covered = match share {
        Some(share) => format!(", {} covered", show::share(share)),
        None if summary.meta.events > 0 => ", how much of the activity is not known".to_owned(),
        None => String::new(),
    };
    progress::note(&format!(
        "wrote {}: {}{covered}, {} it started from, recorded by {}",
        output::shown(path),
        show::counted(summary.meta.events, "call", "calls"),
        show::counted(summary.meta.snapshot.entries, "name", "names"),
        summary.meta.tracer.name
    ));
    say_unparsed(&summary.import);
}

fn say_end(exit_status: Option<i32>, signal: Option<i32>) {
    match (exit_status, signal) {
        (Some(0), _) => {}
        (Some(status), _) => progress::note(&format!("the command exited with {status}")),
        (None, Some(signal)) => progress::note(&format!("the command was killed by signal {signal}")),
        (None, None) => {}
    }
}

/// Lines of the trace that were not understood, with their numbers.
pub fn say_unparsed(import: &trace::strace::Summary) {
    if import.unparsed_lines == 0 {
        return;
    }
    progress::note(&format!("{} lines were not understood:", show::count(import.unparsed_lines)));
    for problem in &import.problems {
        progress::note(&format!("  line {}: {}: {}", problem.line, problem.reason, problem.excerpt));
    }
    let listed = import.problems.len() as u64;
    if listed < import.unparsed_lines {
        progress::note(&format!("  and {} more", show::count(import.unparsed_lines - listed)));
    }
}

fn default_output(subject: &Subject) -> PathBuf {
    let name = match subject {
        Subject::Command(command) => {
            command.first().and_then(|program| Path::new(program).file_name()).map(|name| name.to_os_string())
        }
        Subject::Processes(pids) => pids.first().map(|pid| format!("pid-{pid}").into()),
        Subject::Cgroup(path) | Subject::Mount(path) => path.file_name().map(|name| name.to_os_string()),
    };
    let mut name = name.unwrap_or_else(|| "recorded".into());
    name.push(".workload");
    PathBuf::from(name)
}
