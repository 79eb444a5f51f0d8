//! `fsage sweep SPEC.toml`.

use crate::output::{self, ResultArgs};
use crate::{args, failure, progress};
use clap::CommandFactory as _;
use fault::Kind;
use posix::Target;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use sweep::folder::{self, Status};
use sweep::report::Report;
use sweep::run::{Ran, RunOptions};
use sweep::spec::ReportSpec;
use sweep::{Folder, Outcome, Spec, Task, Tasks};

/// Run a command for every combination of the values in a file, and keep all results in one data set.
///
/// Each combination is a task: a process of its own, whose figures are kept as it ends. Ended at any moment, by kill -9
/// too, the same command goes on where it was. The data set does not depend on how many tasks ran at a time, in which
/// order, where, or how often it was interrupted.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  fsage sweep modes.toml --dry-run
  fsage sweep modes.toml -o modes.sweep --html modes.html
  fsage sweep modes.toml --report --metric rate --part create --pareto rate:create rate:delete
  fsage sweep modes.toml --tasks 1..500 -o part-1.sweep
  fsage sweep modes.toml --collect part-1.sweep part-2.sweep

A sweep's file:
  format = \"fsage.sweep/1\"
  run = [\"bench\", \"smallfile\", \"ffs:{mode},size=64M@{drive}\", \"--files\", \"{files}\"]
  [axes]
  mode = [\"conventional\", \"softdep\"]
  drive = [\"st32430n\", \"hp-c2247a\"]
  files = [100, 300, 1000]

Exit code 1: a task has failed.")]
pub struct Args {
    /// The sweep's file: the command, and the values of its axes (docs/sweeps.md).
    #[arg(value_name = "SPEC.toml")]
    spec: PathBuf,
    /// The folder that it grows in (default: NAME.sweep in this directory, NAME as the file is called).
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,
    /// How many tasks run at a time (default: one for each processor; one where tasks are timed by the clock, on
    /// mounted targets).
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// Run tasks again that have failed.
    #[arg(long)]
    retry_failed: bool,
    /// List the tasks with their commands, and run nothing.
    #[arg(long, conflicts_with_all = ["dry_run", "status", "report", "tasks", "collect", "dask"])]
    list: bool,
    /// Check every task's arguments, say how many there are and how long they will take, and keep nothing.
    #[arg(long, conflicts_with_all = ["status", "report", "tasks", "collect", "dask"])]
    dry_run: bool,
    /// With --dry-run: run so many tasks for the estimate, spread over the sweep, and throw their results away.
    #[arg(long, value_name = "N", requires = "dry_run", default_value_t = 0)]
    sample: u16,
    /// Say how far the sweep is, whoever runs it, and what has failed.
    #[arg(long, conflicts_with_all = ["report", "tasks", "collect", "dask"])]
    status: bool,
    /// Show the report of what is there, and run nothing.
    #[arg(long, conflicts_with_all = ["tasks", "collect", "dask"])]
    report: bool,
    /// Run these tasks only (17..25, both included; 3,5,8), for a scheduler: -o names the part that --collect takes in
    /// later.
    #[arg(long, value_name = "NUMBERS", conflicts_with_all = ["collect", "dask"], requires = "output")]
    tasks: Option<String>,
    /// Take in parts that --tasks made, and run nothing.
    #[arg(long, value_name = "PART", num_args = 1.., conflicts_with = "dask")]
    collect: Vec<PathBuf>,
    /// Run the tasks on the Dask cluster at this address (tcp://HOST:8786); needs Python with fsage and
    /// dask.distributed.
    #[arg(long, value_name = "ADDRESS")]
    dask: Option<String>,
    /// The figure that the report is about (default: the first of a result).
    #[arg(long, value_name = "FIGURE")]
    metric: Option<String>,
    /// The part of the workload that the figure is of (default: the first four).
    #[arg(long, value_name = "PART")]
    part: Option<String>,
    /// The axis that goes across in the report's curves.
    #[arg(long, value_name = "AXIS")]
    x: Option<String>,
    /// The axis of their lines.
    #[arg(long, value_name = "AXIS")]
    series: Option<String>,
    /// The axis of their panels.
    #[arg(long, value_name = "AXIS")]
    panel: Option<String>,
    /// Weigh two figures against each other: FIGURE or FIGURE:PART each, with :min or :max behind to say which way is
    /// better.
    #[arg(long, num_args = 2, value_names = ["A", "B"])]
    pareto: Option<Vec<String>>,
    /// Print the result as JSON (schema named in its first field) and nothing else on standard output.
    #[arg(long)]
    json: bool,
    /// Write a self-contained HTML report with plots.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// Tasks whose arguments are checked before any of them runs.
const CHECKED_MAX: usize = 20_000;
/// Tasks that are looked at for whether they are timed by the clock.
const LOOKED_AT_MAX: u64 = 1000;

/// What a run of a sweep comes to.
#[derive(Serialize)]
struct Output<'a> {
    folder: String,
    #[serde(flatten)]
    status: &'a Status,
    ran: Option<Ran>,
    report: Option<&'a Report>,
}

/// Sweeps.
pub fn run(args: Args) -> failure::Result<ExitCode> {
    let result = ResultArgs { json: args.json, html: args.html.clone(), output: None };
    result.check()?;
    let spec = Spec::load(&args.spec)?;
    let tasks = Tasks::of(&spec)?;
    let folder = args.output.clone().unwrap_or_else(|| default_folder(&args.spec));
    if args.list {
        return list(&args, &spec, &tasks, &result);
    }
    if args.status {
        let status = folder::status(&folder)?;
        result.emit(sweep::STATUS_SCHEMA, &status, &sweep::present::sweep(&spec, &status, None, None))?;
        return Ok(ExitCode::SUCCESS);
    }
    let wanted = match &args.tasks {
        Some(text) => {
            let wanted = sweep::tasks::numbers(text, tasks.len());
            Some(wanted.map_err(|why| failure::usage(format!("--tasks: {why}")))?)
        }
        None => None,
    };
    match &wanted {
        Some(numbers) => check(&spec, &tasks, numbers)?,
        None => check(&spec, &tasks, &Vec::from_iter(1..=tasks.len()))?,
    }
    if args.dry_run {
        return dry_run(&args, &spec, &tasks, &folder, &result);
    }
    output::writable_parent(&folder)?;
    if let Some(address) = &args.dask {
        return dask(&args, address, &folder);
    }
    let mut held =
        if args.report { Folder::look(&folder, &spec, &tasks)? } else { Folder::open(&folder, &spec, &tasks)? };
    let mut ran = None;
    if !args.collect.is_empty() {
        collect(&mut held, &args.collect)?;
    } else if !args.report {
        let mut numbers = held.to_do(args.retry_failed);
        if let Some(wanted) = &wanted {
            numbers.retain(|number| wanted.binary_search(number).is_ok());
        }
        ran = Some(work(&args, &spec, &tasks, &numbers, &mut held)?);
        if args.tasks.is_some() {
            return part(&spec, &numbers, &mut held, ran, &result);
        }
    }
    if !args.report {
        sweep::data::write(&spec, &tasks, &mut held)?;
    }
    // Of parts that are taken in while others are still run, nobody reads one.
    let report = match held.counts() {
        (ended, _) if !args.collect.is_empty() && ended < tasks.len() => None,
        _ => sweep::report::report(&spec, &tasks, &mut held, &asked(&args, &spec))?,
    };
    drop(held);
    let status = folder::status(&folder)?;
    if ran.is_some_and(|ran| ran.interrupted) {
        let message = format!(
            "interrupted; {} of {} tasks are kept in {}, and the same command goes on",
            status.ended,
            status.tasks,
            output::shown(&folder)
        );
        return Err(failure::Failure::new(Kind::Interrupted, message));
    }
    let document = sweep::present::sweep(&spec, &status, report.as_ref(), ran.as_ref());
    let shown = Output { folder: output::shown(&folder), status: &status, ran, report: report.as_ref() };
    result.emit(sweep::SCHEMA, &shown, &document)?;
    Ok(if status.failed > 0 { failure::code(Kind::Check) } else { ExitCode::SUCCESS })
}

/// `modes.toml` grows in `modes.sweep`.
fn default_folder(spec: &Path) -> PathBuf {
    let stem = spec.file_stem().map_or_else(|| "unnamed".into(), |stem| stem.to_string_lossy().into_owned());
    PathBuf::from(format!("{stem}.sweep"))
}

/// What the report is about: the sweep's file says, and the command line says otherwise.
fn asked(args: &Args, spec: &Spec) -> ReportSpec {
    let or = |said: &Option<String>, file: &Option<String>| said.clone().or_else(|| file.clone());
    let file = &spec.report;
    let pareto = match args.pareto.as_deref() {
        Some([a, b]) => Some([a.clone(), b.clone()]),
        _ => file.pareto.clone(),
    };
    ReportSpec {
        metric: or(&args.metric, &file.metric),
        // A part is one of the figure that the file names.
        part: or(&args.part, if args.metric.is_some() { &None } else { &file.part }),
        x: or(&args.x, &file.x),
        series: or(&args.series, &file.series),
        panel: or(&args.panel, &file.panel),
        pareto,
    }
}

/// The arguments of these tasks are what their command takes.
fn check(spec: &Spec, tasks: &Tasks, numbers: &[u64]) -> failure::Result<()> {
    let mut command = args::Cli::command();
    for &number in numbers.iter().take(CHECKED_MAX) {
        let Some(task) = tasks.get(spec, number) else { continue };
        let words = std::iter::once("fsage").chain(task.arguments.iter().map(String::as_str)).chain(["--json"]);
        if let Err(error) = command.try_get_matches_from_mut(words) {
            let said = error.render().to_string();
            let line = said.lines().next().unwrap_or_default();
            let why = line.strip_prefix("error: ").unwrap_or(line);
            return Err(failure::bad_input(format!(
                "{}, task {number}: {}: {why}",
                output::shown(&spec.file),
                task.command()
            )));
        }
    }
    if numbers.len() > CHECKED_MAX {
        progress::note(&format!("the arguments of the first {CHECKED_MAX} tasks were checked, of {}", numbers.len()));
    }
    Ok(())
}

/// Whether a task's figures are times of this machine, which other tasks that run meanwhile would change.
fn by_the_clock(spec: &Spec, task: &Task) -> bool {
    let times = ["age", "bench", "measure", "replay", "validate"];
    let timed = task.arguments.first().is_some_and(|command| times.contains(&command.as_str()));
    let mounted = |word: &String| match Target::parse(word) {
        Ok(Target::Scratch(_)) => true,
        Ok(Target::Directory(path)) => {
            let path = spec.directory().join(path);
            path.is_dir() && !path.join("meta.json").exists()
        }
        _ => false,
    };
    timed && task.arguments.iter().skip(1).any(mounted)
}

fn jobs(args: &Args, spec: &Spec, tasks: &Tasks) -> usize {
    if let Some(jobs) = args.jobs {
        return usize::from(jobs);
    }
    let mut some = (1..=tasks.len().min(LOOKED_AT_MAX)).filter_map(|number| tasks.get(spec, number));
    if some.any(|task| by_the_clock(spec, &task)) {
        progress::note(
            "tasks are timed by the clock on mounted targets: they run one at a time (--jobs N says otherwise)",
        );
        return 1;
    }
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Runs tasks, and says how far it is.
fn work(args: &Args, spec: &Spec, tasks: &Tasks, numbers: &[u64], held: &mut Folder) -> failure::Result<Ran> {
    let options = RunOptions { program: std::env::current_exe()?, jobs: jobs(args, spec, tasks) };
    let bar = progress::bar(numbers.len() as u64, "sweeping");
    let ran = sweep::run::run(spec, tasks, numbers, held, &options, &mut |p| {
        let failed = if p.failed > 0 { format!(", {} failed", p.failed) } else { String::new() };
        progress::update(&bar, &format!("task {} of {}{failed}", p.done, p.of), p.done, Some(p.of));
    });
    bar.finish_and_clear();
    Ok(ran?)
}

/// What a part of a sweep came to: a journal, and no data set.
fn part(
    spec: &Spec,
    numbers: &[u64],
    held: &mut Folder,
    ran: Option<Ran>,
    result: &ResultArgs,
) -> failure::Result<ExitCode> {
    let status = folder::status(held.path())?;
    let missing = numbers.len() as u64 - ran.map_or(0, |ran| ran.tasks);
    if missing > 0 {
        return Err(failure::Failure::new(
            Kind::Interrupted,
            format!("interrupted; {missing} of {} tasks are still to do, and the same command goes on", numbers.len()),
        ));
    }
    let document = sweep::present::sweep(spec, &status, None, ran.as_ref());
    let shown = Output { folder: output::shown(held.path()), status: &status, ran, report: None };
    result.emit(sweep::SCHEMA, &shown, &document)?;
    Ok(if status.failed > 0 { failure::code(Kind::Check) } else { ExitCode::SUCCESS })
}

fn collect(held: &mut Folder, parts: &[PathBuf]) -> failure::Result<()> {
    for part in parts {
        let (new, different) = held.collect(part)?;
        progress::note(&format!("{}: {new} new tasks", output::shown(part)));
        if different > 0 {
            progress::note(&format!(
                "{}: {different} tasks have another result there than here; those here were kept",
                output::shown(part)
            ));
        }
    }
    Ok(())
}

/// The tasks, as a list.
#[derive(Serialize)]
struct List {
    name: String,
    tasks: u64,
    /// Files and directories that tasks read, relative to the sweep's file.
    inputs: Vec<String>,
    /// How long they will take one after the other, seconds, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    estimate_s: Option<f64>,
    commands: Vec<Listed>,
}

#[derive(Serialize)]
struct Listed {
    task: u64,
    arguments: Vec<String>,
}

fn list(args: &Args, spec: &Spec, tasks: &Tasks, result: &ResultArgs) -> failure::Result<ExitCode> {
    let mut table = document::Table::new("tasks", "", &[("Task", "task"), ("Command", "command")]);
    let mut listed = Vec::new();
    for task in (1..=tasks.len()).filter_map(|number| tasks.get(spec, number)) {
        if !args.json {
            table.row(vec![document::Cell::Count(task.number), document::Cell::from(task.command())]);
        }
        listed.push(Listed { task: task.number, arguments: task.arguments });
    }
    let mut document = document::Document::new("");
    document.table(table);
    let inputs = folder::Identity::of(spec, tasks)?.inputs.into_iter().map(|input| input.path).collect();
    let list = List { name: spec.name.clone(), tasks: tasks.len(), inputs, estimate_s: None, commands: listed };
    result.emit(sweep::TASKS_SCHEMA, &list, &document)?;
    Ok(ExitCode::SUCCESS)
}

fn dry_run(args: &Args, spec: &Spec, tasks: &Tasks, folder: &Path, result: &ResultArgs) -> failure::Result<ExitCode> {
    let status = if folder.exists() { Some(folder::status(folder)?) } else { None };
    let (mut mean_s, mut from) = (None, "");
    if let Some(status) = status.as_ref().filter(|status| status.ended > 0) {
        (mean_s, from) = (Some(status.seconds / status.ended as f64), "as those that have ended");
    }
    let mut document = document::Document::new(format!("Sweep {}", spec.name));
    if args.sample > 0 {
        let sample = u64::from(args.sample).min(tasks.len());
        // In the middle of equal stretches.
        let numbers: Vec<u64> = (0..sample).map(|i| (2 * i + 1) * tasks.len() / (2 * sample) + 1).collect();
        let ran = sweep::run::sample(spec, tasks, &numbers, &std::env::current_exe()?)?;
        posix::interrupt::check()?;
        let mut table =
            document::Table::new("sample", "", &[("Task", "task"), ("Took", "seconds"), ("Came to", "outcome")]);
        for (number, seconds, outcome) in &ran {
            let result = match outcome {
                Outcome::Figures(figures) => units::show::counted(figures.len() as u64, "figure", "figures"),
                Outcome::Failed { message, .. } => format!("failed: {message}"),
            };
            table.row(vec![
                document::Cell::Count(*number),
                document::Cell::Ns(seconds * 1e9),
                document::Cell::from(result),
            ]);
        }
        let seconds: Vec<f64> = ran.iter().map(|(_, seconds, _)| *seconds).collect();
        (mean_s, from) = (stats::mean(&seconds), "as those of the sample");
        document.table(table);
    }
    let open = status.as_ref().map_or(tasks.len(), |status| status.tasks - status.ended);
    let at_a_time = jobs(args, spec, tasks);
    let mut told = format!(
        "{}, {} to do, {at_a_time} at a time.",
        units::show::counted(tasks.len(), "task", "tasks"),
        units::show::count(open)
    );
    match mean_s {
        Some(mean) => told.push_str(&format!(
            " If each takes as long {from} ({}), that is {}.",
            units::show::duration_ns(mean * 1e9),
            units::show::duration_ns(mean * open as f64 / at_a_time as f64 * 1e9),
        )),
        None => told.push_str(" How long they take is not known: --sample N runs N of them to see."),
    }
    document.paragraph(told);
    let inputs: Vec<String> = folder::Identity::of(spec, tasks)?.inputs.into_iter().map(|input| input.path).collect();
    if !inputs.is_empty() {
        document.paragraph(format!("They read {}.", inputs.join(", ")));
    }
    let estimate_s = mean_s.map(|mean| mean * open as f64);
    let list = List { name: spec.name.clone(), tasks: tasks.len(), inputs, estimate_s, commands: Vec::new() };
    result.emit(sweep::TASKS_SCHEMA, &list, &document)?;
    Ok(ExitCode::SUCCESS)
}

/// Hands the sweep to the Python that drives a Dask cluster, which calls this program again.
fn dask(args: &Args, address: &str, folder: &Path) -> failure::Result<ExitCode> {
    use std::process::{Command, Stdio};
    let python = "python3";
    let there = Command::new(python)
        .args(["-c", "import dask.distributed, fsage.sweep"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !there {
        return Err(failure::environment(
            "--dask: this python3 cannot import fsage and dask.distributed; get them with: python3 -m pip \
             install fsage \
             'dask[distributed]' \
             (docs/sweeps.md says how another scheduler runs the tasks without Python)",
        ));
    }
    let mut command = Command::new(python);
    command.args(["-m", "fsage.sweep"]).arg(&args.spec).arg("--dask").arg(address).arg("-o").arg(folder);
    command.arg("--program").arg(std::env::current_exe()?);
    for (option, value) in [("--metric", &args.metric), ("--part", &args.part)] {
        if let Some(value) = value {
            command.arg(option).arg(value);
        }
    }
    if let Some(html) = &args.html {
        command.arg("--html").arg(html);
    }
    for (option, is_given) in [("--json", args.json), ("--retry-failed", args.retry_failed)] {
        if is_given {
            command.arg(option);
        }
    }
    let status = command.status()?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from))
}
