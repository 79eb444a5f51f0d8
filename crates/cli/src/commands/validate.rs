//! `fsage validate W… --on TARGET…`.

use crate::output::{self, ResultArgs};
use crate::{failure, made, progress, target, values};
use fault::Kind;
use measure::MeasureOptions;
use posix::{SetupError, Site, Target, WorkspaceOptions};
use predict::pipeline::InitialCaches;
use replay::Initially;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use system::{Reference, SystemProfile};
use trace::profile::Reader;
use validate::residuals::{ResidualReader, ResidualWriter, contexts};
use validate::{Rescale, ValidateOptions, ValidateProgress, ValidateStage, ValidateTarget, ValidateWorkload};

/// Hold predictions against replays: workloads times targets, errors, rankings, and three simpler methods beside them.
///
/// Every target is measured (unless --system gives its profile), every workload is replayed on each several times in
/// random order, and predicted once.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  fsage validate untar.workload compile.workload --on ext4:8G xfs:8G btrfs:8G -o results/validation
  fsage validate web.workload --on ext4:8G --system ext4:8G=ext4.system
  fsage validate web.workload --on ext4:8G --residuals web.parquet --explain")]
pub struct Args {
    /// The workload profiles.
    #[arg(value_name = "W.workload", required = true)]
    workloads: Vec<PathBuf>,
    /// The targets, behind the workloads: --on ext4:8G xfs:8G, or --on several times.
    #[arg(long, value_name = "TARGET", required = true, num_args = 1.., value_parser = target::parse)]
    on: Vec<Target>,
    /// The system profile of a target, so that it is not measured again; several of one target, measured at different
    /// times, are pooled.
    #[arg(long, value_name = "TARGET=FILE")]
    system: Vec<String>,
    /// Replays of each workload on each target.
    #[arg(long, value_name = "N", default_value_t = validate::REPEATS_MIN)]
    repeats: u32,
    /// Replay on until half the 95 % interval of the replays' median is at most this share of it (six replays or more;
    /// 0 for --max-repeats in any case).
    #[arg(long, value_name = "SHARE", default_value = "3%", value_parser = values::share)]
    precision: f64,
    /// But no more than so many times; --repeats where that is more.
    #[arg(long, value_name = "N", default_value_t = validate::REPEATS_MAX)]
    max_repeats: u32,
    /// Measure the targets so many times in turn with the replays, so that a drift of the machine meets both, and
    /// predict from all of it.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Time for measuring each target (default: a quick measurement).
    #[arg(long, value_name = "TIME", value_parser = values::span_ns)]
    budget: Option<u64>,
    /// What the caches hold when a workload begins.
    #[arg(long, value_enum, default_value_t = InitialArg::Cold)]
    initial: InitialArg,
    /// Refuse a workload of which less than this share is covered.
    #[arg(long, value_name = "SHARE", default_value = "90%", value_parser = values::share)]
    min_coverage: f64,
    /// Exit with 1 where the median error of the totals is above this.
    #[arg(long, value_name = "SHARE", value_parser = values::share)]
    max_error: Option<f64>,
    /// Replace an entry's cost in every target's profile, such as rm=50us (first point of a curve: the whole curve
    /// moves).
    #[arg(long, value_name = "NAME=TIME", value_parser = values::setting)]
    set: Vec<(String, f64)>,
    /// Write what every call of every replay took beyond its price, with the state it was made in, as Parquet.
    #[arg(long, value_name = "FILE")]
    residuals: Option<PathBuf>,
    /// Name the states that the errors come from, with their shares (from the residuals).
    #[arg(long, requires = "residuals")]
    explain: bool,
    /// Predict each target as it was at the time of the replays: by how much of its core the processor had during them,
    /// or by all of the profile's references, measured again before each (processor, reads, syncs). How far a target
    /// moved is shown in any case.
    #[arg(long, value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "all",
        value_name = "WHAT")]
    rescale: Option<RescaleArg>,
    /// Seed of every random choice.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    result: ResultArgs,
}

/// What is carried over to the time of the replays.
#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum RescaleArg {
    /// The processor's share of its core.
    Core,
    /// That, reads and syncs.
    All,
}

/// Caches at the start.
#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum InitialArg {
    /// Emptied.
    Cold,
    /// Filled.
    Warm,
}

/// Validates.
pub fn run(args: Args) -> failure::Result<ExitCode> {
    args.result.check()?;
    if let Some(path) = &args.residuals {
        output::writable_parent(path)?;
    }
    let mut options = ValidateOptions::new(args.seed);
    options.repeats = args.repeats;
    (options.precision, options.repeats_max) = (Some(args.precision), args.max_repeats);
    options.rounds = args.rounds;
    options.rescale = match args.rescale {
        None => Rescale::No,
        Some(RescaleArg::Core) => Rescale::Core,
        Some(RescaleArg::All) => Rescale::All,
    };
    options.predict.min_coverage = args.min_coverage;
    options.predict.set_ns.clone_from(&args.set);
    if let Some(budget_ns) = args.budget {
        options.measure =
            MeasureOptions { budget: Some(Duration::from_nanos(budget_ns)), ..MeasureOptions::full(args.seed) };
    }
    (options.replay.initially, options.predict.initial) = match args.initial {
        InitialArg::Cold => (Initially::Cold, InitialCaches::Cold),
        InitialArg::Warm => (Initially::Warm, InitialCaches::Warm),
    };
    let workloads = args.workloads.iter().map(|path| workload(path)).collect::<failure::Result<Vec<_>>>()?;
    let targets = targets(&args)?;
    for ValidateTarget { target, profile } in &targets {
        let lacks_core = profile.as_ref().is_some_and(|p| !p.references.contains_key(&Reference::Core));
        if lacks_core && options.rescale == Rescale::Core && !matches!(target, Target::Lab(_)) {
            return Err(failure::usage(format!(
                "--rescale=core: the profile of {target} has no reference core; measure it again (fsage measure)"
            )));
        }
    }
    let bar = progress::bar(1, "validating");
    let mut residuals = args.residuals.as_deref().map(ResidualWriter::create).transpose()?;
    let open = Box::new(open);
    let validated = validate::validate(workloads, targets, open, &options, residuals.as_mut(), &mut |p| show(&bar, p));
    bar.finish_and_clear();
    let mut validation = validated?;
    if let Some(writer) = residuals {
        let path = writer.path().to_owned();
        writer.finish()?;
        if args.explain {
            validation.contexts = Some(contexts::contexts(&ResidualReader::open(&path)?)?);
        }
    }
    let command = made::origin().map(|origin| origin.command).unwrap_or_default();
    let document = validate::present::validation("Validation: prediction against replay", &command, &validation);
    args.result.emit("fsage.validate/1", &validation, &document)?;
    if let Some(directory) = &args.result.output {
        for (target, profile) in &validation.measured {
            profile.save(&directory.join(format!("{}.system", output::file_name(target))))?;
        }
    }
    let error = validation.methods.first().and_then(|method| method.median_error);
    match (args.max_error, error) {
        (Some(limit), Some(error)) if error > limit => Ok(failure::code(Kind::Check)),
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// A target with room for what a measurement or a replay needs.
fn open(target: &Target, need_bytes: u64, need_inodes: u64) -> Result<Box<dyn Site>, SetupError> {
    target::open(target, &WorkspaceOptions { need_bytes, need_inodes, ..WorkspaceOptions::default() })
}

fn workload(path: &Path) -> failure::Result<ValidateWorkload> {
    let reader = Reader::open(path)?;
    let stem = path.file_stem().map_or_else(|| output::shown(path), |stem| output::shown(stem.as_ref()));
    Ok(ValidateWorkload { name: stem, reader })
}

/// The targets, each with the profile that --system gives for it.
fn targets(args: &Args) -> failure::Result<Vec<ValidateTarget>> {
    let mut targets: Vec<(ValidateTarget, Vec<SystemProfile>)> =
        args.on.iter().map(|target| (ValidateTarget { target: target.clone(), profile: None }, Vec::new())).collect();
    for system in &args.system {
        // A target may hold `=` itself (mount=noatime), and so may a file's name: the target is one of those that are
        // there.
        let file_of = |t: &ValidateTarget| system.strip_prefix(t.target.to_string().as_str())?.strip_prefix('=');
        let found = targets.iter_mut().filter_map(|t| Some((file_of(&t.0)?, t))).min_by_key(|(file, _)| file.len());
        let Some((file, (_, profiles))) = found else {
            let (name, _) = system
                .rsplit_once('=')
                .ok_or_else(|| failure::usage(format!("--system {system}: write TARGET=FILE")))?;
            return Err(failure::usage(format!("--system {system}: {name} is none of the --on targets")));
        };
        profiles.push(SystemProfile::load(file.as_ref())?);
    }
    for (target, profiles) in &mut targets {
        target.profile = (!profiles.is_empty()).then(|| SystemProfile::pooled(profiles));
    }
    Ok(targets.into_iter().map(|(target, _)| target).collect())
}

fn show(bar: &indicatif::ProgressBar, p: &ValidateProgress) {
    let stage = match p.stage {
        ValidateStage::Measure => format!("measuring {}", p.target),
        ValidateStage::Predict => format!("predicting {} on {}", p.workload, p.target),
        ValidateStage::Replay => format!("replaying {} on {}", p.workload, p.target),
    };
    progress::update(bar, &stage, p.done, Some(p.total));
}
