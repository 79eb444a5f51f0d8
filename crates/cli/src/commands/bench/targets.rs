//! Running a benchmark on targets side by side.

use crate::target::TargetArgs;
use crate::{failure, output, progress};
use posix::{FileSystem, Site, Target};
use std::collections::BTreeMap;
use workload::{BenchResult, Parameters, Place, Repeat};

/// How often, in which order.
#[derive(clap::Args, Clone, Copy, Debug)]
pub(super) struct RepeatArgs {
    /// Rounds; fewer than six make intervals that promise too much (default: 6; 1 in the laboratory and with --quick).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rounds: Option<u32>,
    /// Do without the run on each target that comes first and is not counted.
    #[arg(long)]
    no_warm_up: bool,
    /// Seed of every random choice (default: 1).
    #[arg(long)]
    pub(super) seed: Option<u64>,
}

impl RepeatArgs {
    /// Where every run takes the same time (`once`) one is enough, unless more are asked for.
    pub(super) fn repeat(self, once: bool) -> Repeat {
        let rounds = self.rounds.unwrap_or(if once { 1 } else { Repeat::default().rounds });
        Repeat { rounds, warm_up: !(self.no_warm_up || once), seed: self.seed.unwrap_or(1) }
    }
}

/// Whether nothing but virtual time passes: then every run is like the first.
pub(super) fn in_virtual_time(targets: &[Target]) -> bool {
    targets.iter().all(|target| matches!(target, Target::Lab(_)))
}

/// Runs a benchmark that makes files of its own, in a directory of its own on each target. A log, where it keeps one,
/// lies on the target of the same place in `logs`.
pub(super) fn on_targets(parameters: &Parameters, targets: &[Target], logs: &[Target]) -> failure::Result<BenchResult> {
    let benchmark = parameters.benchmark();
    benchmark.check()?;
    if !logs.is_empty() && logs.len() != targets.len() {
        return Err(failure::usage("--log: name one for each target, in the same order"));
    }
    let (need_bytes, need_inodes) = (benchmark.need_bytes(), benchmark.need_inodes());
    // Files of every round are removed: there is nothing to keep.
    let target_args = TargetArgs { keep: false };
    let opened = targets.iter().chain(logs).map(|t| target_args.open(t, need_bytes, need_inodes));
    // Where one cannot be made ready, those before it are taken down again.
    let sites = opened.collect::<failure::Result<Vec<Box<dyn Site>>>>()?;
    let mut handles: Vec<Box<dyn FileSystem>> = sites.iter().map(|site| site.handle()).collect();
    let logs = handles.split_off(targets.len().min(handles.len()));
    let names = targets.iter().map(name_of).collect();
    let found = side_by_side(parameters, names, handles, logs);
    let closed = sites.into_iter().map(|site| target_args.close(site)).fold(Ok(()), Result::and);
    if let (Err(_), Err(error)) = (&found, &closed) {
        // A target that has failed may keep what was made in it: that is said beside the failure.
        progress::note(&error.to_string());
    }
    let found = found?;
    closed?;
    Ok(found)
}

pub(super) fn side_by_side(
    parameters: &Parameters,
    names: Vec<String>,
    mut handles: Vec<Box<dyn FileSystem>>,
    mut logs: Vec<Box<dyn FileSystem>>,
) -> failure::Result<BenchResult> {
    let names = distinct(names);
    let mut places: Vec<Place<'_>> = names.into_iter().zip(&mut handles).map(|(name, fs)| Place { name, fs }).collect();
    let bar = progress::bar(1, parameters.name());
    let logs = logs.iter_mut().map(|fs| Some(fs as &mut dyn FileSystem)).collect();
    let found = workload::run_with_logs(parameters, &mut places, logs, &mut |p| {
        progress::update(&bar, &format!("{} on {}", p.point, p.target), p.done, Some(p.total));
    });
    bar.finish_and_clear();
    Ok(found?)
}

/// A directory is called by its whole path: `.` says nothing in a table.
pub(super) fn name_of(target: &Target) -> String {
    match target {
        Target::Directory(path) => path.canonicalize().map_or_else(|_| target.to_string(), |path| output::shown(&path)),
        _ => target.to_string(),
    }
}

/// The same target twice is told apart by a number.
fn distinct(names: Vec<String>) -> Vec<String> {
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    let number = |name: String| {
        let n = seen.entry(name.clone()).or_default();
        *n += 1;
        if *n == 1 { name } else { format!("{name} #{n}") }
    };
    names.into_iter().map(number).collect()
}
