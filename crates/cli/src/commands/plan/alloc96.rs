//! `fsage plan alloc96`.

use crate::failure;
use super::common::{CapacityArgs, PlanArgs};
use aging::plan::PlannedFor;
use aging::plan::alloc96::{self, CAPACITY_BYTES, DAYS, Options};
use std::process::ExitCode;

/// Ten months of a research group's home directories, after the published sums of Smith and Seltzer (USENIX 1996).
///
/// 300 days, 800,000 operations, 48.6 GB on the published file system of 502 MB, which is the default; in proportion on
/// another. `fsage reproduce alloc96/workload` holds it against what was published.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  fsage plan alloc96 -o alloc96.aging
  fsage plan alloc96 --for ext4:2G --days 60 -o two-months.aging")]
pub struct Args {
    #[command(flatten)]
    planned_for: CapacityArgs,
    /// Only the first so many of the 300 days.
    #[arg(long, value_name = "N", default_value_t = DAYS)]
    days: u32,
    #[command(flatten)]
    plan: PlanArgs,
}

/// Plans.
pub fn run(args: Args) -> failure::Result<ExitCode> {
    let published = PlannedFor { capacity_bytes: CAPACITY_BYTES, block_bytes: 1024 };
    let planned_for = args.planned_for.get_or(published)?;
    let options = Options { planned_for, days: args.days, seed: args.plan.seed };
    args.plan.write(planned_for, |writer, progress| alloc96::plan(&options, writer, progress))
}
