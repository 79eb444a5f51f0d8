//! `fsage plan profile W.workload`.

use super::common::{CapacityArgs, PlanArgs};
use crate::failure;
use crate::values;
use aging::plan::profile::{self, Again, ProfileOptions};
use std::path::PathBuf;
use std::process::ExitCode;

/// Plan from a recorded workload, run again and again.
///
/// What the workload changed (files made, written, truncated, renamed, removed) is done again in a directory of its
/// own, on the files it found: --repeat times, by --copies side by side. What it only read is left out without --reads.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  fsage plan profile build.workload --repeat 200 --days 60 --capacity 20G -o builds.aging
  fsage plan profile app.workload --repeat 1000 --copies 8 --again same --for /mnt/data -o app.aging")]
pub struct Args {
    /// The workload profile (`fsage record` or `fsage import` makes one).
    #[arg(value_name = "W.workload")]
    workload: PathBuf,
    /// Runs of each copy.
    #[arg(long, value_name = "N", default_value_t = 1)]
    repeat: u32,
    /// Copies that run side by side, each begun at a time of its own.
    #[arg(long, value_name = "N", default_value_t = 1)]
    copies: u32,
    /// Simulated days that all runs take together; as long as they took when recorded by default.
    #[arg(long, value_name = "N")]
    days: Option<u32>,
    /// Each run on a fresh tree, the oldest being removed when there is no room; or always on the same, put back before
    /// each run.
    #[arg(long, value_enum, default_value_t)]
    again: AgainArg,
    /// Read again what the workload read: for file systems whose layout goes by what is read.
    #[arg(long)]
    reads: bool,
    /// The share of the capacity that may be in use.
    #[arg(long, value_name = "SHARE", value_parser = values::share, default_value = "90%")]
    fill: f64,
    #[command(flatten)]
    capacity: CapacityArgs,
    #[command(flatten)]
    plan: PlanArgs,
}

#[derive(Clone, Copy, Debug, Default, clap::ValueEnum)]
enum AgainArg {
    #[default]
    Fresh,
    Same,
}

/// Plans.
pub fn run(args: Args) -> failure::Result<ExitCode> {
    let options = ProfileOptions {
        repeat: args.repeat,
        copies: args.copies,
        days: args.days,
        again: match args.again {
            AgainArg::Fresh => Again::Fresh,
            AgainArg::Same => Again::Same,
        },
        reads: args.reads,
        fill: args.fill,
        seed: args.plan.seed,
    };
    let planned_for = args.capacity.get()?;
    args.plan.write(planned_for, |writer, progress| {
        profile::plan(&args.workload, &options, planned_for.capacity_bytes, writer, progress)
    })
}
