//! `fsage plan snapshots A.snapshot B.snapshot …`.

use super::common::PlanArgs;
use crate::{failure, progress, values};
use aging::plan::PlannedFor;
use aging::plan::short_lived::{Number, ShortLived};
use aging::plan::snapshots::{self, Changes, Deletions, Place, SnapshotsOptions};
use std::path::PathBuf;
use std::process::ExitCode;

/// Plan from a series of snapshots of a tree in use, oldest first.
///
/// The first snapshot's files are made in the order of their change times; what happened after is inferred from the
/// differences between successive snapshots; files that lived too short a time to be in any come from a profile of such
/// activity.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  fsage plan snapshots home-*.snapshot -o home.aging
  fsage plan snapshots home-*.snapshot --short-lived week.workload --seed 7 -o home.aging
docs/planning-from-snapshots.md says how it is done and how far it can be right.")]
pub struct Args {
    /// Snapshots, oldest first (`fsage snapshot` takes them).
    #[arg(value_name = "FILE.snapshot", required = true)]
    snapshots: Vec<PathBuf>,
    /// Take short-lived files from a workload profile (a recorded trace) or from another aging workload.
    #[arg(long, value_name = "W.workload|X.aging")]
    short_lived: Option<PathBuf>,
    /// How many short-lived files: as many for each file that lasts as in their source, or as many a day in proportion
    /// to the sizes of the file systems (as published in 1997).
    #[arg(long, value_enum, default_value_t, requires = "short_lived")]
    short_lived_number: NumberArg,
    /// So many times as many short-lived files as that says.
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, requires = "short_lived")]
    short_lived_scale: f64,
    /// Size of the file system that the short-lived files are from; that planned for, if they are from an aging
    /// workload, and otherwise taken to be as large as this one.
    #[arg(long, value_name = "SIZE", value_parser = values::size, requires = "short_lived")]
    short_lived_capacity: Option<u64>,
    /// When files that are gone were removed: by a model of lifetimes, or at any time (as published in 1997).
    #[arg(long, value_enum, default_value_t)]
    deletions: DeletionsArg,
    /// How files that changed were written: as their lengths suggest, or always anew (as published in 1997).
    #[arg(long, value_enum, default_value_t)]
    changes: ChangesArg,
    /// Where files are put: in the directories they were in, or in one for each allocation group of the original.
    #[arg(long, value_enum, default_value_t)]
    place: PlaceArg,
    /// Into how many groups to divide the inode numbers; those of the original file system by default.
    #[arg(long, value_name = "N")]
    groups: Option<u32>,
    /// Size of the file system planned for; that of the original by default.
    #[arg(long, value_name = "SIZE", value_parser = values::size)]
    capacity: Option<u64>,
    #[command(flatten)]
    plan: PlanArgs,
}

#[derive(Clone, Copy, Debug, Default, clap::ValueEnum)]
enum NumberArg {
    #[default]
    ForEachLasting,
    EachDay,
}

#[derive(Clone, Copy, Debug, Default, clap::ValueEnum)]
enum DeletionsArg {
    #[default]
    Lifetimes,
    Uniform,
}

#[derive(Clone, Copy, Debug, Default, clap::ValueEnum)]
enum ChangesArg {
    #[default]
    Inferred,
    Rewrite,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum PlaceArg {
    #[default]
    Directories,
    Groups,
}

/// Plans.
pub fn run(args: Args) -> failure::Result<ExitCode> {
    if args.groups.is_some() && args.place != PlaceArg::Groups {
        return Err(failure::usage("--groups: only with --place groups"));
    }
    let mut planned_for = snapshots::planned_for(&args.snapshots)?;
    planned_for = PlannedFor { capacity_bytes: args.capacity.unwrap_or(planned_for.capacity_bytes), ..planned_for };
    let mut short_lived = args.short_lived.as_deref().map(ShortLived::read).transpose()?;
    if let Some(bytes) = args.short_lived_capacity {
        short_lived = short_lived.map(|source| source.of_size(bytes));
    }
    if short_lived.is_none() && args.snapshots.len() > 1 {
        progress::note("no --short-lived: files that no snapshot shows will be missing from the plan");
    }
    let options = SnapshotsOptions {
        seed: args.plan.seed,
        deletions: match args.deletions {
            DeletionsArg::Lifetimes => Deletions::Lifetimes,
            DeletionsArg::Uniform => Deletions::Uniform,
        },
        changes: match args.changes {
            ChangesArg::Inferred => Changes::Inferred,
            ChangesArg::Rewrite => Changes::Rewrite,
        },
        place: match args.place {
            PlaceArg::Directories => Place::Directories,
            PlaceArg::Groups => Place::Groups { count: args.groups },
        },
        short_lived: short_lived.as_ref(),
        short_lived_number: match args.short_lived_number {
            NumberArg::ForEachLasting => Number::ForEachLasting,
            NumberArg::EachDay => Number::EachDay,
        },
        short_lived_scale: args.short_lived_scale,
    };
    args.plan.write(planned_for, |writer, progress| snapshots::plan(&args.snapshots, &options, writer, progress))
}
