//! What all sources share: the file system planned for, the seed, the output, and showing the result.

use crate::output::{self, ResultArgs};
use crate::{failure, progress, target, values};
use aging::format::{PlanMeta, Writer};
use aging::plan::{PlanError, PlannedFor, Progress};
use posix::Target;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The file system planned for.
#[derive(clap::Args, Clone, Debug)]
#[group(multiple = false, id = "capacity_or_target")]
pub struct CapacityArgs {
    /// Size of the file system, as `df` shows it.
    #[arg(long, value_name = "SIZE", value_parser = values::size)]
    capacity: Option<u64>,
    /// Take size and block from a file system: a directory on it, a scratch one such as ext4:8G (root; made and
    /// removed), or one of the laboratory.
    #[arg(long = "for", value_name = "TARGET", value_parser = target::parse)]
    planned_for: Option<Target>,
}

impl CapacityArgs {
    /// Blocks of nearly every file system of today.
    const BLOCK_BYTES: u64 = 4096;

    /// Size and block; `default` where none was asked for.
    pub fn get_or(&self, default: PlannedFor) -> failure::Result<PlannedFor> {
        if self.capacity.is_none() && self.planned_for.is_none() { Ok(default) } else { self.get() }
    }

    /// Size and block.
    pub fn get(&self) -> failure::Result<PlannedFor> {
        match (&self.capacity, &self.planned_for) {
            (Some(bytes), _) => Ok(PlannedFor { capacity_bytes: *bytes, block_bytes: Self::BLOCK_BYTES }),
            (None, Some(target)) => of_target(target),
            (None, None) => Err(failure::usage("name the file system planned for: --capacity SIZE or --for TARGET")),
        }
    }
}

fn of_target(target: &Target) -> failure::Result<PlannedFor> {
    let site = target::open(target, &posix::WorkspaceOptions::default())?;
    let usage = site.handle().usage();
    site.close()?;
    let usage = usage.map_err(|e| failure::environment(format!("target '{target}': cannot ask for its size: {e}")))?;
    Ok(PlannedFor { capacity_bytes: usage.total_bytes, block_bytes: u64::from(usage.block_bytes) })
}

/// Seed and output.
#[derive(clap::Args, Clone, Debug)]
pub struct PlanArgs {
    /// Seed of all random choices.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// The aging workload to write; an existing one is replaced.
    #[arg(long, short, value_name = "FILE.aging")]
    output: Option<PathBuf>,
    /// Print the result as JSON (schema named in its first field) and nothing else on standard output.
    #[arg(long)]
    json: bool,
    /// Write a self-contained HTML report with plots.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// Output alone, of planners that choose nothing at random.
#[derive(clap::Args, Clone, Debug)]
pub struct SeedlessArgs {
    /// The aging workload to write; an existing one is replaced.
    #[arg(long, short, value_name = "FILE.aging")]
    output: PathBuf,
    /// Print the result as JSON (schema named in its first field) and nothing else on standard output.
    #[arg(long)]
    json: bool,
    /// Write a self-contained HTML report with plots.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

impl PlanArgs {
    /// Runs a planner into the output, and shows what was planned.
    pub fn write(
        &self,
        planned_for: PlannedFor,
        planner: impl FnOnce(&mut Writer, Progress<'_>) -> Result<PlanMeta, PlanError>,
    ) -> failure::Result<ExitCode> {
        let Some(output) = &self.output else {
            return Err(failure::usage("name the aging workload to write: -o FILE.aging"));
        };
        let result = ResultArgs { json: self.json, html: self.html.clone(), output: None };
        write(output, &result, planned_for, planner)
    }
}

impl SeedlessArgs {
    /// Runs a planner into the output, and shows what was planned.
    pub fn write(
        &self,
        planned_for: PlannedFor,
        planner: impl FnOnce(&mut Writer, Progress<'_>) -> Result<PlanMeta, PlanError>,
    ) -> failure::Result<ExitCode> {
        let result = ResultArgs { json: self.json, html: self.html.clone(), output: None };
        write(&self.output, &result, planned_for, planner)
    }
}

fn write(
    path: &Path,
    result: &ResultArgs,
    planned_for: PlannedFor,
    planner: impl FnOnce(&mut Writer, Progress<'_>) -> Result<PlanMeta, PlanError>,
) -> failure::Result<ExitCode> {
    result.check()?;
    output::writable_parent(path)?;
    let bar = progress::bar(1000, "planning");
    let mut tell = |done: f64| {
        // A share of 0 to 1; a cast saturates.
        bar.set_position((done * 1000.0) as u64);
        !posix::interrupt::requested()
    };
    let meta = aging::plan::write(path, planned_for, |writer| planner(writer, &mut tell));
    bar.finish_and_clear();
    let meta = meta?;
    let bytes = std::fs::metadata(path)?.len();
    result.emit("fsage.plan/1", &meta, &aging::present::plan(&output::shown(path), bytes, &meta))?;
    Ok(ExitCode::SUCCESS)
}
