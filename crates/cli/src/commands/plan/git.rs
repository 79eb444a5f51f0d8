//! `fsage plan git REPO`.

use crate::failure;
use super::common::{CapacityArgs, SeedlessArgs};
use aging::plan::git::{self, GitOptions};
use std::path::PathBuf;
use std::process::ExitCode;

/// Plan from the history of a local git repository: a checkout that follows a branch, commit by commit.
///
/// Files that a commit changes are unlinked and made anew, as git checkout does; objects are written loose and packed
/// now and then. Needs the program git; the repository is not modified.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Example:
  fsage plan git ~/src/linux --max-commits 5000 --days 30 --capacity 20G -o linux.aging")]
pub struct Args {
    /// The repository (its work tree, or a bare one).
    #[arg(value_name = "REPO")]
    repository: PathBuf,
    /// The branch, tag or commit to follow, by first parents.
    #[arg(long, value_name = "NAME", default_value = "HEAD")]
    branch: String,
    /// The newest N commits only; the tree before them is cloned first.
    #[arg(long, value_name = "N")]
    max_commits: Option<u32>,
    /// Simulated days that the history takes; as long as it took by default.
    #[arg(long, value_name = "N")]
    days: Option<u32>,
    /// Pack loose objects when there are N of them; 0 for never.
    #[arg(long, value_name = "N", default_value_t = 6700)]
    gc_every: u64,
    /// Plan the files checked out only, not git's own.
    #[arg(long)]
    no_objects: bool,
    #[command(flatten)]
    capacity: CapacityArgs,
    #[command(flatten)]
    plan: SeedlessArgs,
}

/// Plans.
pub fn run(args: Args) -> failure::Result<ExitCode> {
    let options = GitOptions {
        branch: args.branch,
        max_commits: args.max_commits,
        days: args.days,
        gc_every: args.gc_every,
        objects: !args.no_objects,
    };
    let planned_for = args.capacity.get()?;
    args.plan.write(planned_for, |writer, progress| git::plan(&args.repository, &options, writer, progress))
}
