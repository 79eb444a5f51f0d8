//! `fsage measure TARGET`.

use crate::failure::Context as _;
use crate::output::{self, ResultArgs};
use crate::target::{self, TargetArgs};
use crate::{failure, progress, values};
use fault::Kind;
use measure::{MeasureOptions, Progress};
use posix::Target;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use system::{Apart, SystemProfile, SystemProfileError};

/// Measure what elementary operations cost on a target: its system profile.
///
/// Calls are made as programs make them: on many files, kinds interleaved, in random order, every call timed. As root,
/// caches are dropped and verified; otherwise files are evicted one by one and what cannot be verified is marked.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  fsage measure /mnt/data -o data.system
  fsage measure ext4:8G --full --budget 10m -o ext4.system
  fsage measure 'xfs:8G,-m reflink=0' -o xfs.system
  fsage measure ext4:8G --check --overwrite")]
pub struct Args {
    /// A directory, a scratch file system (as root): ext4:8G, xfs:8G, btrfs:8G, or one of the laboratory:
    /// ffs:OPTIONS@DRIVE.
    #[arg(value_parser = target::parse)]
    target: Target,
    /// At most a minute: fewer rounds, smaller files (the default).
    #[arg(long, conflicts_with = "full")]
    quick: bool,
    /// More rounds and larger files, within --budget.
    #[arg(long)]
    full: bool,
    /// Time to stay within, by the target's clock: 45s, 5m (default: 45s quick, 5m full; 6h and 24h of virtual time).
    #[arg(long, value_name = "TIME", value_parser = values::span_ns)]
    budget: Option<u64>,
    /// Measure twice, and say how far the two profiles are apart; the second is written beside the first, as
    /// NAME-again.system, so that `fsage predict` can show what that makes of a total. Exit with 1 where the median
    /// over the entries is above 10 %.
    #[arg(long)]
    check: bool,
    /// The name used in tables (default: the target).
    #[arg(long)]
    name: Option<String>,
    /// Where the profile goes (default: the name, with .system).
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace a system profile that is there.
    #[arg(long)]
    overwrite: bool,
    /// Seed of every random choice.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print the profile as JSON and nothing else on standard output.
    #[arg(long)]
    json: bool,
    /// Write a self-contained HTML report with plots.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    #[command(flatten)]
    target_args: TargetArgs,
}

/// Measures.
pub fn run(args: Args) -> failure::Result<ExitCode> {
    let mut options = if args.full { MeasureOptions::full(args.seed) } else { MeasureOptions::quick(args.seed) };
    if let Some(budget_ns) = args.budget {
        if budget_ns < 1_000_000_000 {
            return Err(failure::usage("--budget: at least 1s"));
        }
        options.budget = Some(Duration::from_nanos(budget_ns));
    }
    options.name = args.name.clone().unwrap_or_else(|| default_name(&args.target));
    let path = args.output.clone().unwrap_or_else(|| default_output(args.name.as_deref(), &args.target));
    let again = args.check.then(|| beside(&path));
    for path in std::iter::once(&path).chain(&again) {
        must_be_system(path, args.overwrite)?;
    }
    let result = ResultArgs { json: args.json, html: args.html.clone(), output: None };
    result.check()?;
    let profile = measure(&args.target, &args.target_args, &options)?;
    profile.save(&path)?;
    progress::note(&format!("wrote {} (seed {})", output::shown(&path), args.seed));
    if !profile.missing.is_empty() {
        let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (name, why) in &profile.missing {
            by_reason.entry(why).or_default().push(name);
        }
        for (why, names) in by_reason {
            progress::note(&format!("not measured, as {why}: {}", names.join(", ")));
        }
    }
    let mut document = system::present::system(&profile);
    let check = if args.check { Some(check(&args, options, &path, &profile)?) } else { None };
    if let Some(check) = &check {
        system::present::apart(&mut document, check);
    }
    let apart = check.as_ref().map_or(0.0, |check| check.median);
    result.emit("fsage.measure/1", &Output { profile: &profile, check }, &document)?;
    Ok(if apart > APART_MAX { failure::code(Kind::Check) } else { ExitCode::SUCCESS })
}

/// Measures once more, with another seed, and compares.
fn check(args: &Args, mut options: MeasureOptions, path: &Path, first: &SystemProfile) -> failure::Result<Apart> {
    options.seed = options.seed.wrapping_add(1);
    options.name.push_str(" again");
    let second = measure(&args.target, &args.target_args, &options)?;
    let beside = beside(path);
    second.save(&beside)?;
    progress::note(&format!("wrote {} (seed {})", output::shown(&beside), options.seed));
    Ok(system::apart(first, &second))
}

/// Where the second profile of --check goes.
fn beside(path: &Path) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("{stem}-again.system"))
}

/// A profile takes the place of another one only where that was asked for, and never of something else.
fn must_be_system(path: &Path, overwrite: bool) -> failure::Result<()> {
    output::writable_parent(path)?;
    let shown = output::shown(path);
    match (path.symlink_metadata(), overwrite) {
        (Err(_), _) => Ok(()),
        // A pipe, a terminal, /dev/null: nothing is lost there.
        (Ok(there), _) if !(there.is_file() || there.is_dir() || there.is_symlink()) => Ok(()),
        (Ok(_), false) => Err(failure::usage(format!(
            "{shown}: is already there; --overwrite replaces it, or choose another name with -o"
        ))),
        (Ok(_), true) if matches!(SystemProfile::load(path), Ok(_) | Err(SystemProfileError::Version { .. })) => Ok(()),
        (Ok(_), true) => {
            Err(failure::usage(format!("{shown}: is there and is no system profile: it is not overwritten")))
        }
    }
}

/// The profile, and how far a second one was from it.
#[derive(Serialize)]
struct Output<'a> {
    #[serde(flatten)]
    profile: &'a SystemProfile,
    #[serde(skip_serializing_if = "Option::is_none")]
    check: Option<Apart>,
}

/// Two profiles of one system should be no farther apart than this, by the median of their entries.
const APART_MAX: f64 = 0.10;

/// Measures a target, with progress, and leaves nothing behind.
pub fn measure(target: &Target, target_args: &TargetArgs, options: &MeasureOptions) -> failure::Result<SystemProfile> {
    let site = target_args.open(target, options.need_bytes(), options.need_inodes())?;
    let bar = progress::bounded(1000, "measuring");
    let mut report = |p: Progress| {
        bar.set_message(format!("measuring {}, at most {} s left", p.stage, p.remaining.as_secs()));
        bar.set_position((p.done_share.clamp(0.0, 1.0) * 1000.0) as u64);
    };
    let measured = measure::measure(&*site, options, &mut report);
    bar.finish_and_clear();
    let closed = target_args.close(site);
    let profile = measured.with_context(|| target.to_string())?;
    closed?;
    Ok(profile)
}

/// A directory is called by its whole path: `.` says nothing in a table.
fn default_name(target: &Target) -> String {
    match target {
        Target::Directory(path) => path.canonicalize().map_or_else(|_| target.to_string(), |path| output::shown(&path)),
        _ => target.to_string(),
    }
}

/// A file name made of the profile's name: `ext4:8G` becomes `ext4-8G.system`.
fn default_output(name: Option<&str>, target: &Target) -> PathBuf {
    let text = name.map_or_else(|| target.to_string(), str::to_owned);
    PathBuf::from(format!("{}.system", output::file_name(&text)))
}
