//! `fsage reproduce [KEY…]`.

use crate::failure;
use crate::output::ResultArgs;
use crate::progress;
use experiment::{Bench, Reproduction, Scale};
use fault::Kind;
use std::process::ExitCode;
use std::time::Instant;

/// Run published experiments again, and show published and our figures side by side.
///
/// Without a key, lists the experiments. Each runs the real code in virtual time; where our figure differs by more than a quarter, a
/// sentence says why. Reports (-o, --html) have the curves. Same version, scale and seed: same bytes.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  fsage reproduce
  fsage reproduce alloc96/aggregate
  fsage reproduce 'alloc96/*' --html alloc96.html
  fsage reproduce all --quick")]
pub struct Args {
    /// What to run: a key, PAPER/* for all of a publication, or all.
    #[arg(value_name = "KEY")]
    keys: Vec<String>,
    /// Run less of each than was published: seconds instead of minutes.
    #[arg(long)]
    quick: bool,
    /// Seed of everything random.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    result: ResultArgs,
}

/// Lists or runs.
pub fn run(args: Args) -> failure::Result<ExitCode> {
    args.result.check()?;
    if args.keys.is_empty() {
        args.result.emit(
            "fsage.experiments/1",
            &experiment::all(),
            &experiment::present::experiments(experiment::all()),
        )?;
        return Ok(ExitCode::SUCCESS);
    }
    let selected = experiment::select(&args.keys)?;
    let bar = progress::bar(0, "starting");
    let mut watch = |stage: &str, done: u64, total: Option<u64>| progress::update(&bar, stage, done, total);
    let scale = if args.quick { Scale::Quick } else { Scale::Full };
    let mut bench = Bench::new(scale, args.seed, &mut watch);
    let mut reproduction = Reproduction::new(&bench);
    for experiment in selected {
        let start = Instant::now();
        let outcome = experiment::run(experiment, &mut bench)?;
        let s = start.elapsed().as_secs_f64();
        bar.suspend(|| progress::note(&format!("{}: {s:.1} s of machine time", experiment.key)));
        reproduction.outcomes.push(outcome);
    }
    bar.finish_and_clear();
    let (short, document) = (
        experiment::present::reproduction(&reproduction, false),
        experiment::present::reproduction(&reproduction, true),
    );
    args.result.emit_short("fsage.reproduction/1", &reproduction, &short, &document)?;
    let unexplained = reproduction.outcomes.iter().flat_map(|outcome| outcome.unexplained()).count();
    if unexplained > 0 && !args.quick {
        progress::note(&format!("{unexplained} differences are {}", experiment::NOT_EXPLAINED));
        return Ok(failure::code(Kind::Check));
    }
    Ok(ExitCode::SUCCESS)
}
