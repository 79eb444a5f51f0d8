//! Plans three days of use, and replays them in a directory: `cargo run -p fsage-aging --example age [DIRECTORY]`.
//!
//! Shows a planner ([`personality::plan`]) and the replayer ([`age`]). Without an argument it works in a temporary
//! directory; the files stay in the one that you name, which must be empty.

use aging::age::{AgeOptions, AgeResult, Begin, Room, Session, age, identity};
use aging::format::{PlanMeta, Reader};
use aging::plan::personality::{self, Churn, Options, builtin};
use aging::plan::{PlannedFor, write};
use posix::Mounted;
use std::error::Error;
use std::path::{Path, PathBuf};

/// What the plan takes for the whole file system.
pub const CAPACITY_BYTES: u64 = 64 << 20;

/// Plans three days of home directories into a new file.
///
/// # Errors
/// The file cannot be written.
pub fn planned(plan: &Path) -> Result<PlanMeta, Box<dyn Error>> {
    let planned_for = PlannedFor { capacity_bytes: CAPACITY_BYTES, block_bytes: 4096 };
    let home = builtin::get("home")?;
    let options =
        Options { planned_for, days: 3, utilisation: None, fill: None, churn: Churn::Implied, seed: 1, input: None };
    Ok(write(plan, planned_for, |writer| personality::plan(&home, &options, writer, &mut |_| true))?)
}

/// Replays a plan in a directory, beside what else its file system holds.
///
/// # Errors
/// The plan cannot be read, or the directory refuses an operation.
pub fn aged(plan: &Path, directory: &Path) -> Result<AgeResult, Box<dyn Error>> {
    let options = AgeOptions { room: Room::Beside { bytes: CAPACITY_BYTES }, ..AgeOptions::default() };
    let begin = Begin { plan: identity(plan)?, groups: Err("not asked for".into()), resume: None };
    let mut fs = Mounted::open(directory)?;
    let mut nothing = |_: &_| (); // told how far the run is
    Ok(age(&mut fs, &Reader::open(plan)?, &options, begin, &mut Session::new(&mut nothing))?)
}

/// Plans, replays, and prints what happened.
pub fn main() -> Result<(), Box<dyn Error>> {
    let scratch = tempfile::tempdir()?;
    let plan = scratch.path().join("home.aging");
    let meta = planned(&plan)?;
    println!("planned: {} operations in {} days", meta.counts.operations, meta.days);
    let directory = std::env::args_os().nth(1).map_or_else(|| scratch.path().join("tree"), PathBuf::from);
    std::fs::create_dir_all(&directory)?;
    let result = aged(&plan, &directory)?;
    println!("performed: {} operations in {:.2} s", result.counters.operations, result.wall_ns as f64 / 1e9);
    println!("left: {} files with {} bytes", result.files, result.file_bytes);
    Ok(())
}
