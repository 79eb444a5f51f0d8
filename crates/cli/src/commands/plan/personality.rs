//! `fsage plan personality NAME`.

use super::common::{CapacityArgs, PlanArgs};
use crate::{failure, output, values};
use aging::format::Input;
use aging::plan::personality::{self, Churn, Options, Personality, builtin};
use document::{Cell, Document, Table};
use std::path::Path;
use std::process::ExitCode;

/// From statistics: home, mail, news, build, containers, database, phone, webcache, or a file of your own.
///
/// Sizes, lifetimes, bursts, rewrites and the daily rhythm of a kind of use, and how full it keeps its file system.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  fsage plan personality --list
  fsage plan personality home --capacity 4G --years 2 -o home.aging
  fsage plan personality database --for ext4:8G --days 90 --fill 0.9 --churn 0.05 -o db.aging
  fsage plan personality --show home > mine.toml;  fsage plan personality mine.toml --capacity 4G -o mine.aging")]
pub struct Args {
    /// Its name, or a file (NAME.toml).
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// The same as an option.
    #[arg(long, value_name = "NAME", conflicts_with = "name")]
    personality: Option<String>,
    /// List those that come with fsage.
    #[arg(long, exclusive = true)]
    list: bool,
    /// Print the file of one, with the source of every parameter.
    #[arg(long, value_name = "NAME", exclusive = true)]
    show: Option<String>,
    #[command(flatten)]
    planned_for: CapacityArgs,
    /// Simulated days.
    #[arg(long, value_name = "N", default_value_t = 365)]
    days: u32,
    /// Simulated years of 365 days.
    #[arg(long, value_name = "N", conflicts_with = "days")]
    years: Option<f64>,
    /// Utilisation over time, as day:share points with straight lines between (0:0.1,100:0.7).
    #[arg(long, value_name = "DAY:SHARE,...", value_parser = curve)]
    utilisation: Option<Points>,
    /// Utilisation at the end; the personality's curve is scaled to it.
    #[arg(long, value_name = "SHARE", value_parser = values::share, conflicts_with = "utilisation")]
    fill: Option<f64>,
    /// Bytes written a day as a share of the capacity; lasting files then live as much longer or shorter as that takes.
    #[arg(long, value_name = "SHARE")]
    churn: Option<f64>,
    /// Operations a day, instead of --churn.
    #[arg(long, value_name = "N", conflicts_with = "churn")]
    operations_per_day: Option<f64>,
    #[command(flatten)]
    plan: PlanArgs,
}

/// Points of a curve.
type Points = Vec<[f64; 2]>;

fn curve(text: &str) -> Result<Points, String> {
    let point = |part: &str| {
        let (day, share) = part.split_once(':').ok_or_else(|| format!("{part:?}: write DAY:SHARE, such as 100:0.7"))?;
        let day = day.trim().parse().map_err(|_| format!("{day:?} is no number of days"))?;
        Ok([day, values::share(share)?])
    };
    text.split(',').map(point).collect()
}

/// Plans, lists or shows.
pub fn run(args: Args) -> failure::Result<ExitCode> {
    if args.list {
        return list();
    }
    if let Some(name) = &args.show {
        let text = builtin::text(name).map_or_else(|| builtin::get(name).map(|_| ""), Ok)?;
        output::print(text)?;
        return Ok(ExitCode::SUCCESS);
    }
    let Some(name) = args.name.as_ref().or(args.personality.as_ref()) else {
        return Err(failure::usage("name a personality; --list lists them"));
    };
    let days = match args.years {
        // A cast saturates; the planner refuses what is too long.
        Some(years) if years.is_finite() && years > 0.0 => (years * 365.0).round() as u32,
        Some(years) => return Err(failure::usage(format!("--years {years}: a number above 0 is needed"))),
        None => args.days,
    };
    let (personality, input) = load(name)?;
    let planned_for = args.planned_for.get()?;
    let churn = match (args.churn, args.operations_per_day) {
        (Some(share), _) => Churn::BytesPerDay(share),
        (None, Some(n)) => Churn::OperationsPerDay(n),
        (None, None) => Churn::Implied,
    };
    let (fill, seed) = (args.fill, args.plan.seed);
    let options = Options { planned_for, days, utilisation: args.utilisation, fill, churn, seed, input };
    args.plan.write(planned_for, |writer, progress| personality::plan(&personality, &options, writer, progress))
}

fn load(name: &str) -> failure::Result<(Personality, Option<Input>)> {
    if !name.ends_with(".toml") && !name.contains('/') {
        return Ok((builtin::get(name)?, None));
    }
    let path = Path::new(name);
    let (personality, input) = personality::read(path)?;
    Ok((personality, Some(input)))
}

fn list() -> failure::Result<ExitCode> {
    let mut table = Table::new("personalities", "", &[("Personality", "name"), ("Of", "description")]);
    for (name, _) in builtin::ALL {
        table.row(vec![Cell::from(*name), Cell::from(builtin::get(name)?.description)]);
    }
    let mut document = Document::default();
    document.table(table);
    output::print_document(&document)?;
    Ok(ExitCode::SUCCESS)
}
