//! `fsage reproduce [KEY…]`.

use crate::failure;
use crate::output::ResultArgs;
use crate::progress;
use document::Document;
use experiment::{Reproduction, Scale, Source, Sweeps};
use fault::Kind;
use serde::Serialize;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Run published experiments again, and show published and our figures side by side.
///
/// Without a key, lists the experiments, and which figures and tables of the sources they run. Each runs the real code
/// in virtual time; where our figure differs by more than a quarter, a sentence says why. Reports (-o, --html) have the
/// curves. Same version, scale and seed: same bytes.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  fsage reproduce --list
  fsage reproduce alloc96/aggregate
  fsage reproduce 'alloc96/*' --seeds 5 --html alloc96.html
  fsage reproduce all --quick")]
pub struct Args {
    /// What to run: a key, PAPER/* for all of a publication, or all.
    #[arg(value_name = "KEY")]
    keys: Vec<String>,
    /// Show what there is, and what of each source is missing and why, instead of running anything.
    #[arg(long, conflicts_with_all = ["keys", "quick", "full", "seed", "seeds"])]
    list: bool,
    /// Run less of each than was published: seconds instead of minutes.
    #[arg(long)]
    quick: bool,
    /// Vary what was not published over every value there is, not only those that the sentences need.
    #[arg(long, conflicts_with = "quick")]
    full: bool,
    /// Seed of everything random.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Run under so many seeds, from --seed on, and show the means and how far the seeds lie apart.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1000))]
    seeds: u16,
    #[command(flatten)]
    result: ResultArgs,
}

/// What there is to run, and what of the sources it covers.
#[derive(Serialize)]
struct List {
    experiments: &'static [experiment::Experiment],
    sources: &'static [Source],
}

/// Lists or runs.
pub fn run(args: Args) -> failure::Result<ExitCode> {
    args.result.check()?;
    if args.keys.is_empty() || args.list {
        let list = List { experiments: experiment::all(), sources: experiment::sources() };
        args.result.emit("fsage.experiments/2", &list, &listed(&list))?;
        return Ok(ExitCode::SUCCESS);
    }
    let selected = experiment::select(&args.keys)?;
    let bar = progress::bar(0, "starting");
    let mut watch = |stage: &str, done: u64, total: Option<u64>| progress::update(&bar, stage, done, total);
    let sweeps = if args.full { Sweeps::Whole } else { Sweeps::Short };
    let scale = if args.quick { Scale::Quick } else { Scale::Full };
    let seeds: Vec<u64> = (0..u64::from(args.seeds)).map(|n| args.seed.wrapping_add(n)).collect();
    let mut reproduction = Reproduction::new(scale, seeds.clone());
    let together = selected.len() > 1 || seeds.len() > 1;
    let told = |experiment: &experiment::Experiment, seed: u64, took: Duration| {
        let beside = if together { format!(", seed {seed}, beside others") } else { String::new() };
        bar.suspend(|| progress::note(&format!("{}: {:.1} s{beside}", experiment.key, took.as_secs_f64())));
    };
    let begun = Instant::now();
    reproduction.outcomes = experiment::run_all(&selected, (scale, sweeps), &seeds, &mut watch, &told)?;
    let took_s = begun.elapsed().as_secs_f64();
    bar.finish_and_clear();
    if together {
        progress::note(&format!("all of it: {took_s:.1} s"));
    }
    let (short, document) = (
        experiment::present::reproduction(&reproduction, false),
        experiment::present::reproduction(&reproduction, true),
    );
    args.result.emit_short("fsage.reproduction/2", &reproduction, &short, &document)?;
    let unexplained = reproduction.outcomes.iter().flat_map(|outcome| outcome.unexplained()).count();
    if unexplained > 0 && !args.quick {
        progress::note(&format!("{unexplained} differences are {}", experiment::NOT_EXPLAINED));
        return Ok(failure::code(Kind::Check));
    }
    Ok(ExitCode::SUCCESS)
}

/// The experiments, then what they cover.
fn listed(list: &List) -> Document {
    let mut document = experiment::present::experiments(list.experiments);
    document.blocks.extend(experiment::present::coverage(list.sources).blocks);
    document
}
