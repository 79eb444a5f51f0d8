//! `fsage record -- CMD…`.

use crate::{failure, output, progress};
use anyhow::Context as _;
use report::units;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use trace::record::{self, RecordOptions, RecordSummary, Subject};

/// Trace a command and the names it starts from into a workload profile.
///
/// The command runs under strace with its own input, output, environment and directory. Tracing slows it down: the recording
/// says which calls it makes, and a prediction never uses how long they took here.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  fsage record -o build.workload -- make -j4
  fsage record -o web.workload --root /srv/www --pid 1234")]
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
    /// Trace processes that run already, until they end or Ctrl-C.
    #[arg(long, value_name = "PID", conflicts_with = "command")]
    pid: Vec<u32>,
    /// The strace to use (default: the one on the path).
    #[arg(long, value_name = "FILE")]
    strace: Option<PathBuf>,
    /// Print a summary as JSON on standard output; the command's own standard output goes to standard error.
    #[arg(long)]
    json: bool,
    /// The command and its arguments.
    #[arg(last = true, required_unless_present = "pid")]
    command: Vec<OsString>,
}

/// Records.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let subject = if args.pid.is_empty() { Subject::Command(args.command) } else { Subject::Processes(args.pid) };
    let path = args.output.unwrap_or_else(|| default_output(&subject));
    output::writable_parent(&path)?;
    for root in &args.root {
        if !root.is_dir() {
            return Err(failure::usage(format!("--root {}: is not a directory", output::shown(root))));
        }
    }
    let options = RecordOptions {
        subject,
        roots: args.root,
        snapshot_working_directory: !args.no_working_directory,
        snapshot_entries_max: args.max_names,
        output: path.clone(),
        overwrite: args.overwrite,
        strace: args.strace,
    };
    let summary = if args.json { aside(|| record::record(&options))? } else { record::record(&options) }?;
    say(&path, &summary);
    if args.json {
        let value = report::envelope("fsage.record/1", &summary)?;
        output::print(&format!("{}\n", serde_json::to_string_pretty(&value)?))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Does something with standard output led to standard error, so that a traced command's output stays apart from ours.
pub fn aside<T>(work: impl FnOnce() -> T) -> anyhow::Result<T> {
    let saved = rustix::io::dup(io::stdout()).context("cannot duplicate standard output")?;
    rustix::stdio::dup2_stdout(io::stderr()).context("cannot lead standard output to standard error")?;
    let done = work();
    rustix::stdio::dup2_stdout(&saved).context("cannot restore standard output")?;
    Ok(done)
}

/// What came of it, on standard error: standard output is the command's.
pub fn say(path: &Path, summary: &RecordSummary) {
    for note in &summary.notes {
        progress::note(note);
    }
    let covered =
        summary.meta.coverage_share.map_or(String::new(), |share| format!(", {} covered", units::share(share)));
    progress::note(&format!(
        "wrote {}: {} calls{covered}, {} names it started from",
        output::shown(path),
        units::count(summary.meta.events),
        units::count(summary.meta.snapshot.entries)
    ));
    say_unparsed(&summary.import);
    match (summary.exit_status, summary.signal) {
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
    progress::note(&format!("{} lines were not understood:", units::count(import.unparsed_lines)));
    for problem in &import.problems {
        progress::note(&format!("  line {}: {}: {}", problem.line, problem.reason, problem.excerpt));
    }
    let listed = import.problems.len() as u64;
    if listed < import.unparsed_lines {
        progress::note(&format!("  and {} more", units::count(import.unparsed_lines - listed)));
    }
}

fn default_output(subject: &Subject) -> PathBuf {
    let name = match subject {
        Subject::Command(command) => {
            command.first().and_then(|program| Path::new(program).file_name()).map(|name| name.to_os_string())
        }
        Subject::Processes(pids) => pids.first().map(|pid| format!("pid-{pid}").into()),
    };
    let mut name = name.unwrap_or_else(|| "recorded".into());
    name.push(".workload");
    PathBuf::from(name)
}
