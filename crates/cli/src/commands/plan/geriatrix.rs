//! `fsage plan geriatrix DIR`.

use crate::failure;
use super::common::{CapacityArgs, PlanArgs};
use crate::values;
use aging::plan::geriatrix::{self, Churn, Options, profile::Profile};
use std::path::PathBuf;
use std::process::ExitCode;

/// From a Geriatrix profile: a directory with age, size and dir_distribution.txt.
///
/// Fills to the utilisation wanted, then creates and deletes until the ages of the files are those of the profile.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The profile's directory.
    #[arg(value_name = "DIR")]
    profile: PathBuf,
    #[command(flatten)]
    planned_for: CapacityArgs,
    /// Utilisation to fill to and stay at.
    #[arg(long, value_name = "SHARE", value_parser = values::share, default_value = "0.8")]
    fill: f64,
    /// Stop when the ages are within this Kolmogorov-Smirnov distance of the profile's.
    #[arg(long, value_name = "KS", default_value_t = 0.01, conflicts_with_all = ["churn_bytes", "turnovers"])]
    converge: f64,
    /// ... but write no more than this many times the bytes alive.
    #[arg(long, value_name = "N", default_value_t = 100.0, conflicts_with_all = ["churn_bytes", "turnovers"])]
    turnovers_max: f64,
    /// Stop after writing so many bytes beyond filling.
    #[arg(long, value_name = "SIZE", value_parser = values::size)]
    churn_bytes: Option<u64>,
    /// Stop after writing so many times the bytes alive beyond filling.
    #[arg(long, value_name = "N", conflicts_with = "churn_bytes")]
    turnovers: Option<f64>,
    /// Simulated days that the whole is spread over (the profile's ages are relative).
    #[arg(long, value_name = "N", default_value_t = 365)]
    days: u32,
    #[command(flatten)]
    plan: PlanArgs,
}

/// Plans.
pub fn run(args: Args) -> failure::Result<ExitCode> {
    let profile = Profile::read(&args.profile)?;
    let planned_for = args.planned_for.get()?;
    let churn = match (args.churn_bytes, args.turnovers) {
        (Some(bytes), _) => Churn::Bytes(bytes),
        (None, Some(n)) => Churn::Turnovers(n),
        (None, None) => Churn::Converge { ks: args.converge, turnovers_max: args.turnovers_max },
    };
    let options = Options { planned_for, fill: args.fill, churn, days: args.days, seed: args.plan.seed };
    args.plan.write(planned_for, |writer, progress| geriatrix::plan(&profile, &options, writer, progress))
}
