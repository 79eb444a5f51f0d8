//! File systems aged by personalities: planned, and replayed in the laboratory by the driver of `fsage age`.

use super::laboratory;
use crate::ExperimentError;
use aging::DAY_NS;
use aging::age::{AgeError, AgeOptions, Begin, Observer, Room, age, identity};
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
    /// Of what users may use, how much is in use.
    pub(super) utilisation: Utilisation,
    pub(super) churn: Churn,
}

/// How full it is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Utilisation {
    /// At the end; before that as the personality has it, in proportion.
    AtLast(f64),
    /// By day: straight lines between these points.
    ByDay(&'static [[f64; 2]]),
}

/// An aged file system, and what was done to it.
#[derive(Clone, Debug)]
pub(super) struct Aged {
    pub(super) volume: Ffs,
    /// Operations performed.
    pub(super) operations: u64,
    /// Files at the end.
    pub(super) files: u64,
    /// Bytes written a day, as a share of what users may use.
    pub(super) churn: f64,
}

/// Told of the file system at the end of some days, with the day.
pub(super) type Look<'a> = &'a mut dyn FnMut(f64, &Ffs) -> Result<(), ExperimentError>;

/// Ages a file system; somebody may look at it every so many days.
///
/// # Errors
/// The plan cannot be made or performed; afterwards a structure disagrees with another.
pub(super) fn aged(volume: Ffs, what: Use, seed: u64, look: Option<(f64, Look<'_>)>) -> Result<Aged, ExperimentError> {
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
    let (utilisation, fill) = match what.utilisation {
        Utilisation::AtLast(share) => (None, Some(share)),
        Utilisation::ByDay(points) => (Some(points.to_vec()), None),
    };
    let options = Options { planned_for, days: what.days, utilisation, fill, churn: what.churn, seed, input: None };
    let personality = builtin::get(what.personality)?;
    write(&path, planned_for, |writer| personality::plan(&personality, &options, writer, &mut |_| true))?;
    let plan = Reader::open(&path)?;
    let begin = Begin { plan: identity(&path)?, groups: Err("no plan here asks for groups".to_owned()), resume: None };
    let (survey_days, look) = look.unzip();
    let room = Room::Beside { bytes: room_bytes };
    let replay = AgeOptions { room, seed, survey_days, ..AgeOptions::default() };
    let mut watch = Watch { look, failed: None };
    let result = age(&mut lab, &plan, &replay, begin, &mut watch);
    if let Some(failed) = watch.failed {
        return Err(failed);
    }
    let result = result?;
    let unmounted = |errno| ExperimentError::Call { doing: "unmounting".to_owned(), errno };
    let volume = lab.unmount().map_err(unmounted)?;
    let churn = result.counters.written_bytes as f64 / room_bytes as f64 / f64::from(what.days);
    match volume.check().into_iter().next() {
        None => Ok(Aged { volume, operations: result.counters.operations, files: result.files, churn }),
        Some(problem) => Err(ExperimentError::Inconsistent {
            after: format!("{}, {} days", what.personality, what.days),
            problem: problem.to_string(),
        }),
    }
}

struct Watch<'a> {
    look: Option<Look<'a>>,
    /// Why it looks no more.
    failed: Option<ExperimentError>,
}

impl Observer<Lab<Ffs>> for Watch<'_> {
    fn survey(&mut self, fs: &mut Lab<Ffs>, simulated_ns: u64) -> Result<(), AgeError> {
        if let Some(look) = &mut self.look
            && let Err(failed) = look(simulated_ns as f64 / DAY_NS as f64, fs.volume())
        {
            // The run goes on, but nobody looks any more.
            (self.failed, self.look) = (Some(failed), None);
        }
        Ok(())
    }
}
