//! File systems aged by personalities: planned, and replayed in the laboratory by the driver of `fsage age`.

use super::laboratory;
use crate::{Bench, ExperimentError};
use aging::age::{AgeError, AgeOptions, Begin, Observer, Progress, Room, age, identity};
use aging::format::Reader;
use aging::plan::personality::{self, Churn, Options, builtin};
use aging::plan::{PlannedFor, write};
use ffs::Ffs;
use kernel::Lab;
use posix::FileSystem as _;

/// What a file system has been used for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Use {
    pub(super) personality: &'static str,
    pub(super) days: u32,
    /// Of what users may use, how much is in use at the end.
    pub(super) full: f64,
}

/// An aged file system, and what was done to it.
#[derive(Clone, Debug)]
pub(super) struct Aged {
    pub(super) volume: Ffs,
    /// Operations performed.
    pub(super) operations: u64,
    /// Files at the end.
    pub(super) files: u64,
}

/// Ages a file system.
///
/// # Errors
/// The plan cannot be made or performed; afterwards a structure disagrees with another.
pub(super) fn aged(bench: &mut Bench<'_>, volume: Ffs, what: Use) -> Result<Aged, ExperimentError> {
    let io = |doing: &str| {
        let doing = doing.to_owned();
        move |error| ExperimentError::Io { doing, error }
    };
    let mut lab = laboratory(volume)?;
    let usage = lab.usage().map_err(io("looking at the free space"))?;
    // What users may use, as df shows it in per cent.
    let room_bytes = usage.total_bytes - (usage.free_bytes - usage.available_bytes);
    let planned_for = PlannedFor { capacity_bytes: room_bytes, block_bytes: u64::from(usage.block_bytes) };
    let scratch = posix::cleanup::Temporary::new().map_err(io("making a temporary directory"))?;
    let path = scratch.path().join("plan.aging");
    let options = Options {
        planned_for,
        days: what.days,
        utilisation: None,
        fill: Some(what.full),
        churn: Churn::Implied,
        seed: bench.seed(),
        input: None,
    };
    let name = format!("{}, {} days", what.personality, what.days);
    bench.report(&format!("planning {name}"), 0, None);
    let personality = builtin::get(what.personality)?;
    write(&path, planned_for, |writer| personality::plan(&personality, &options, writer, &mut |_| true))?;
    let plan = Reader::open(&path)?;
    let begin = Begin { plan: identity(&path)?, groups: Err("no plan here asks for groups".to_owned()), resume: None };
    let replay = AgeOptions { room: Room::Beside { bytes: room_bytes }, seed: bench.seed(), ..AgeOptions::default() };
    let mut watch = Watch { bench, name: format!("aging by {name}") };
    let result = age(&mut lab, &plan, &replay, begin, &mut watch)?;
    let unmounted = |errno| ExperimentError::Call { doing: "unmounting".to_owned(), errno };
    let volume = lab.unmount().map_err(unmounted)?;
    match volume.check().into_iter().next() {
        None => Ok(Aged { volume, operations: result.counters.operations, files: result.files }),
        Some(problem) => Err(ExperimentError::Inconsistent { after: name, problem: problem.to_string() }),
    }
}

struct Watch<'b, 'a> {
    bench: &'b mut Bench<'a>,
    name: String,
}

impl Observer<Lab<Ffs>> for Watch<'_, '_> {
    fn progress(&mut self, at: &Progress) -> Result<(), AgeError> {
        self.bench.report(&self.name, at.operations, Some(at.of_operations));
        Ok(())
    }
}
