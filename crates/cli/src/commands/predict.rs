//! `fsage predict W… S…`.

mod check;
mod place;

use crate::failure::Context as _;
use crate::output::{self, ResultArgs};
use crate::systems;
use crate::{failure, names, progress, target, values};
use document::{Block, Document};
use fault::Kind;
use place::place;
use posix::WorkspaceOptions;
use predict::answer::Answer;
use predict::cache_sizes;
use predict::pipeline::{self, CachePolicy, InitialCaches, PredictError, PredictOptions, Prediction, Stage};
use predict::runtime::RunTimeOptions;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use system::{Called, Drift, Reference, SystemProfile};
use trace::profile::Reader;

/// Predict a workload on systems: ranking with intervals, probability of being fastest, and where the time goes.
///
/// Five lines answer: which system, by how much, why, how sure, what to do next. --details shows the rest. Several
/// workloads make a table of workloads and systems.
///
/// Totals are time in the file system: the sum of the latencies of the workload's modelled calls, from a stated cache
/// state. Of a recording by the recorder in the kernel, how long the program takes in all is predicted too: its threads
/// compute, call and wait for each other again.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  fsage predict web.workload ext4.system xfs.system
  fsage predict web.workload ext4 xfs btrfs                     bundled profiles, for orientation
  fsage predict web.workload mail.workload *.system             a table of workloads and systems
  fsage predict web.workload *.system --explain ext4 xfs
  fsage predict web.workload *.system --check /mnt/xfs          replay it there, and see the error
  fsage predict web.workload ext4.system --cache 16G --set rm=50us
  fsage predict web.workload ext4.system --cache 256M --cache-policy linux
  fsage predict web.workload ext4.system --cache-sizes 64M,256M,1G,4G
  fsage predict web.workload data.system --here /mnt/data --rescale")]
pub struct Args {
    /// Workload profiles (directories), then system profiles: files, or bundled ones by name (ext4, or bundled:ext4;
    /// bundled: all).
    #[arg(value_names = ["W.workload", "S.system"], required = true, num_args = 2..)]
    inputs: Vec<PathBuf>,
    /// Show everything: every call type, cost, directory, cache and warning.
    #[arg(long)]
    details: bool,
    /// Show which elementary operations set two systems apart: names as in the ranking, of their files, or what they
    /// begin with.
    #[arg(long, num_args = 2, value_names = ["A", "B"])]
    explain: Option<Vec<String>>,
    /// Replay the workload on this target, which the profile of the fastest system is of, and print the error beside
    /// the prediction; NAME=TARGET for another system's. Exit with 1 where the prediction's interval does not hold the
    /// replays' median.
    #[arg(long, value_name = "[NAME=]TARGET", conflicts_with_all = ["stages_in", "initial", "pace"])]
    check: Option<String>,
    /// Replays of --check.
    #[arg(long, value_name = "N", default_value_t = 3, requires = "check",
        value_parser = clap::value_parser!(u32).range(1..))]
    repeats: u32,
    /// What if the data cache had this size (16G) on every system?
    #[arg(long, value_name = "SIZE", value_parser = values::size)]
    cache: Option<u64>,
    /// Predict with data caches of these sizes as well (64M,256M,1G; none: of none), for how the total and the misses
    /// depend on it. Reports (--html, -o) do so without being asked, with twelve powers of two up to twice the largest
    /// data cache or the next above. Each size costs a prediction of each system.
    #[arg(long, value_name = "SIZE,…", value_parser = values::sizes)]
    cache_sizes: Option<values::Sizes>,
    /// What if every system's data cache chose otherwise what to evict? (A profile that says nothing of it stands for
    /// lru.)
    #[arg(long, value_enum, value_name = "POLICY")]
    cache_policy: Option<Policy>,
    /// What if an elementary operation cost this (rm=50us) on every system? May be given several times.
    #[arg(long, value_name = "NAME=TIME", value_parser = values::setting)]
    set: Vec<(String, f64)>,
    /// Refuse a workload of which less than this share is covered.
    #[arg(long, value_name = "SHARE", default_value = "90%", value_parser = values::share)]
    min_coverage: f64,
    /// What the caches hold when the workload begins.
    #[arg(long, value_enum, default_value_t = Initial::Cold)]
    initial: Initial,
    /// Whether time passes between calls.
    #[arg(long, value_enum, default_value_t = Pace::Asap)]
    pace: Pace,
    /// Measure the references of a profile again, on the target that it is of, and say how far that has moved since:
    /// NAME=TARGET, NAME as in the ranking, or TARGET where there is one profile. A profile's own word for its target
    /// is not taken: it may be somebody else's.
    #[arg(long, value_name = "NAME=TARGET")]
    here: Vec<String>,
    /// Predict these systems as they are now: costs move with the references (processor, reads, syncs).
    #[arg(long, requires = "here")]
    rescale: bool,
    /// Predict the run time on so many processors (default: as many as the recording's machine had).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    processors: Option<u32>,
    /// Write the annotated trace after each stage into this directory, to be read with `fsage inspect --rows`.
    #[arg(long, value_name = "DIR")]
    stages_out: Option<PathBuf>,
    /// Price the request vectors that are in this directory (the column `request` of each system's
    /// `4-price-NAME.workload`, as --stages-out writes them) instead of those that the stages find: for a stage of your
    /// own between the two. The run time is not predicted then.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["stages_out", "cache_sizes", "processors"])]
    stages_in: Option<PathBuf>,
    /// Seed of the bootstrap.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    result: ResultArgs,
}

/// What the caches hold at the start.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Initial {
    /// Nothing.
    Cold,
    /// Every name and file that the workload found, as far as it fits.
    Warm,
}

impl Args {
    /// Whether it makes the calls of a recording.
    pub fn replays(&self) -> bool {
        self.check.is_some()
    }

    /// Whether it makes files in a target, which are to be removed on every way out.
    pub fn works_in_a_target(&self) -> bool {
        self.check.is_some() || !self.here.is_empty()
    }
}

/// What leaves the data cache first.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// What was not used for longest.
    Lru,
    /// In turn, but for what was used since its last turn.
    Clock,
    /// As CLOCK, but what has just come in is met soon.
    Sieve,
    /// What is used only once, through a small queue.
    #[value(name = "s3-fifo")]
    S3Fifo,
    /// From the list of what was used once or of what was used again: it learns which.
    Arc,
    /// As Linux does it: inactive and active pages, and how soon what was evicted comes back.
    Linux,
}

impl From<Policy> for CachePolicy {
    fn from(policy: Policy) -> CachePolicy {
        match policy {
            Policy::Lru => CachePolicy::Lru,
            Policy::Clock => CachePolicy::Clock,
            Policy::Sieve => CachePolicy::Sieve,
            Policy::S3Fifo => CachePolicy::S3Fifo,
            Policy::Arc => CachePolicy::Arc,
            Policy::Linux => CachePolicy::Linux,
        }
    }
}

/// Whether time passes between calls.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// As fast as possible.
    Asap,
    /// As recorded.
    Recorded,
}

/// What is written as JSON.
#[derive(Serialize)]
struct Output {
    #[serde(flatten)]
    answer: Answer,
    /// Held against replays.
    #[serde(skip_serializing_if = "Option::is_none")]
    check: Option<check::Checked>,
}

/// What was asked for on the command line: workloads first, then systems.
fn inputs(inputs: &[PathBuf]) -> failure::Result<(Vec<PathBuf>, Vec<Called>)> {
    let is_workload =
        |path: &PathBuf| path.is_dir() || path.extension().is_some_and(|extension| extension == "workload");
    // What comes first is a workload, whatever it is called: its reader says what is wrong with it.
    let (workloads, systems): (Vec<_>, Vec<_>) =
        inputs.iter().enumerate().partition(|(place, path)| *place == 0 || is_workload(path));
    let paths =
        |these: Vec<(usize, &PathBuf)>| -> Vec<PathBuf> { these.into_iter().map(|(_, path)| path.clone()).collect() };
    let (workloads, systems) = (paths(workloads), paths(systems));
    if systems.is_empty() {
        return Err(failure::usage(
            "name at least one system beside the workloads: a profile that fsage measure made, or a bundled one (ext4, \
             xfs, btrfs)",
        ));
    }
    Ok((workloads, systems::load(&systems)?))
}

/// The place of the system that is called so.
fn place_of(option: &str, asked: &str, systems: &[Called]) -> failure::Result<usize> {
    let names: Vec<Vec<String>> = systems.iter().map(|named| named.names.clone()).collect();
    names::find(option, asked, &names)
}

/// Predicts.
pub fn run(args: Args) -> failure::Result<ExitCode> {
    args.result.check()?;
    let (workloads, mut named) = inputs(&args.inputs)?;
    if workloads.len() > 1 {
        for (option, is_given) in [
            ("--explain", args.explain.is_some()),
            ("--check", args.check.is_some()),
            ("--stages-out", args.stages_out.is_some()),
            ("--stages-in", args.stages_in.is_some()),
            ("--cache-sizes", args.cache_sizes.is_some()),
        ] {
            if is_given {
                return Err(failure::usage(format!(
                    "{option} is about one workload, and {} are named",
                    workloads.len()
                )));
            }
        }
    }
    let computing = moved(&args, &mut named)?;
    let explained = match args.explain.as_deref() {
        Some([a, b]) => Some((place_of("--explain", a, &named)?, place_of("--explain", b, &named)?)),
        _ => None,
    };
    let checked = args.check.as_deref().map(|check| check::Check::parse(check, &named)).transpose()?;
    let systems: Vec<SystemProfile> = named.into_iter().map(|named| named.profile).collect();
    let names: Vec<String> = systems.iter().map(|system| system.name.clone()).collect();
    let explained = explained.and_then(|(a, b)| Some((names.get(a)?.as_str(), names.get(b)?.as_str())));
    let run_time = RunTimeOptions { processors: args.processors, computing };
    let options = options(&args);
    match workloads.as_slice() {
        [workload] => one(&args, workload, &systems, &options, &run_time, explained, checked),
        several => matrix(&args, several, &systems, &options, &run_time),
    }
}

fn options(args: &Args) -> PredictOptions {
    PredictOptions {
        initial: match args.initial {
            Initial::Cold => InitialCaches::Cold,
            Initial::Warm => InitialCaches::Warm,
        },
        pace: match args.pace {
            Pace::Asap => pipeline::Pace::Asap,
            Pace::Recorded => pipeline::Pace::Recorded,
        },
        cache_bytes: args.cache,
        cache_policy: args.cache_policy.map(CachePolicy::from),
        set_ns: args.set.clone(),
        min_coverage: args.min_coverage,
        seed: args.seed,
        ..PredictOptions::default()
    }
}

/// Looks at systems again (`--here`), says how far they have moved, and carries them over if asked to. By what factor
/// each computes now.
fn moved(args: &Args, systems: &mut [Called]) -> failure::Result<Vec<f64>> {
    let mut computing = vec![1.0; systems.len()];
    for here in &args.here {
        let (place, target) = place("--here", systems, here)?;
        let system = &mut systems[place].profile;
        let drift = drift(system, target, args.seed)?;
        progress::note(&format!("{}: times as long as when it was measured: {}", system.name, drift.told()));
        if args.rescale {
            *system = system.rescaled(&drift);
            computing[place] *= drift.factor(Reference::Processor);
        }
    }
    Ok(computing)
}

/// One workload: the answer, and everything behind it.
fn one(
    args: &Args,
    workload: &Path,
    systems: &[SystemProfile],
    options: &PredictOptions,
    run_time: &RunTimeOptions,
    explained: Option<(&str, &str)>,
    checked: Option<check::Check>,
) -> failure::Result<ExitCode> {
    let reader = Reader::open(workload)?;
    let name = output::shown(workload);
    let mut answer = match &args.stages_in {
        Some(directory) => Answer::of(name, of_stages(directory, &reader, systems, options)?, None, options.seed),
        None => Answer::predict(name, &reader, &reader, systems, options, Some(run_time))?,
    };
    if explained.is_some() {
        answer.explanation = answer.explained(explained)?;
    }
    let (sizes, asked) = match &args.cache_sizes {
        Some(values::Sizes(sizes)) => (sizes.clone(), true),
        // With other caches a call would cost something else than what was given.
        None if args.stages_in.is_some() => (Vec::new(), false),
        None if args.result.has_report() => (cache_sizes::default_sizes(systems), false),
        None => (Vec::new(), false),
    };
    if !sizes.is_empty() {
        match answer.with_cache_sizes(&reader, systems, options, &sizes) {
            Ok(()) => {}
            // A smaller cache asks for reads that the profile may not price: the report is none the worse without it.
            Err(error @ PredictError::MissingEntries { .. }) if !asked => {
                progress::note(&format!("not predicted with other sizes of the data cache: {error}"));
            }
            Err(error) => return Err(error.into()),
        }
    }
    if let Some(directory) = &args.stages_out {
        write_stages(directory, &reader, systems, options)?;
    }
    let check = checked.map(|check| check.run(&reader, &answer.ranking, args.repeats)).transpose()?;
    let (mut full, mut short) = (answer.document(), answer.short(asked));
    let output = Output { answer, check };
    if let Some(check) = &output.check {
        for document in [&mut full, &mut short] {
            check.show(document);
        }
    }
    let full = full.of_workload(&output.answer.workload);
    args.result.emit_short(predict::answer::SCHEMA, &output, if args.details { &full } else { &short }, &full)?;
    let failed = output.check.as_ref().is_some_and(|check| !check.is_within);
    Ok(if failed { failure::code(Kind::Check) } else { ExitCode::SUCCESS })
}

/// Predictions of several workloads on the same systems.
#[derive(Serialize)]
struct Matrix {
    seed: u64,
    /// A prediction for each workload, in the order given.
    workloads: Vec<Answer>,
}

/// Several workloads: which system is the fastest for which.
fn matrix(
    args: &Args,
    workloads: &[PathBuf],
    systems: &[SystemProfile],
    options: &PredictOptions,
    run_time: &RunTimeOptions,
) -> failure::Result<ExitCode> {
    let bar = progress::bar(workloads.len() as u64, "predicting");
    let mut outputs = Vec::new();
    for workload in workloads {
        let reader = Reader::open(workload)?;
        outputs.push(Answer::predict(output::shown(workload), &reader, &reader, systems, options, Some(run_time))?);
        bar.inc(1);
    }
    bar.finish_and_clear();
    let rows: Vec<predict::present::Row<'_>> = outputs
        .iter()
        .map(|output| predict::present::Row {
            workload: &output.workload,
            prediction: &output.prediction,
            ranking: &output.ranking,
        })
        .collect();
    let short = predict::present::matrix(&rows);
    let mut full = short.clone();
    for (number, output) in outputs.iter().enumerate() {
        full.append(numbered(output.document().of_workload(&output.workload), number + 1));
    }
    let result = Matrix { seed: options.seed, workloads: outputs };
    args.result.emit_short("fsage.predictions/1", &result, if args.details { &full } else { &short }, &full)?;
    Ok(ExitCode::SUCCESS)
}

/// A document whose tables' files are told apart from those of other workloads.
fn numbered(mut document: Document, number: usize) -> Document {
    for block in &mut document.blocks {
        if let Block::Table(table) = block {
            table.name = format!("workload-{number}-{}", table.name);
        }
    }
    document
}

/// How far a system has moved since its profile was measured.
fn drift(system: &SystemProfile, target: &str, seed: u64) -> failure::Result<Drift> {
    let name = &system.name;
    if system.references.is_empty() {
        return Err(failure::usage(format!("--here: {name} has no references to measure again; measure it anew")));
    }
    let target = target::parse(target).map_err(|why| failure::usage(format!("--here: {why}")))?;
    let need_bytes = measure::REFERENCES_BYTES;
    let site = target::open(&target, &WorkspaceOptions { need_bytes, ..WorkspaceOptions::default() })?;
    let now = measure::references(&*site, seed);
    let closed = site.close().with_context(|| format!("cleaning up in target '{target}'"));
    let drift = Drift::between(system, &now.with_context(|| target.to_string())?);
    closed?;
    drift.ok_or_else(|| failure::environment(format!("{name}: no reference could be measured again")))
}

/// The stages that are written out, with the names of their files.
const STAGES: [(Stage, &str); 4] = [
    (Stage::Preprocess, "1-preprocess"),
    (Stage::Cache, "2-cache"),
    (Stage::Pattern, "3-pattern"),
    (Stage::Price, PRICED),
];
/// The last one, whose request vectors are read back.
const PRICED: &str = "4-price";

/// The file of a stage for a system.
fn stage_path(directory: &Path, stage: &str, system: &SystemProfile) -> PathBuf {
    directory.join(format!("{stage}-{}.workload", output::file_name(&system.name)))
}

/// Predicts from the request vectors in a directory.
fn of_stages(
    directory: &Path,
    reader: &Reader,
    systems: &[SystemProfile],
    options: &PredictOptions,
) -> failure::Result<Prediction> {
    let mut prediction = Prediction::default();
    for system in systems {
        let given = Reader::open(&stage_path(directory, PRICED, system))?;
        let found = pipeline::predict_given(reader, system, options, &given)?;
        prediction.systems.extend(found.systems);
        (prediction.coverage, prediction.options) = (found.coverage, found.options);
    }
    Ok(prediction)
}

/// Writes the annotated trace after each stage: `2-cache-ext4.workload` and so on.
fn write_stages(
    directory: &Path,
    reader: &Reader,
    systems: &[SystemProfile],
    options: &PredictOptions,
) -> failure::Result<()> {
    std::fs::create_dir_all(directory).with_context(|| format!("cannot make {}", output::shown(directory)))?;
    for system in systems {
        for (stage, name) in STAGES {
            let path = stage_path(directory, name, system);
            pipeline::write_annotated(reader, system, options, stage, &path, false)?;
            progress::note(&format!("wrote {}", output::shown(&path)));
        }
    }
    Ok(())
}
