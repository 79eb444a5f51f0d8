//! File systems aged by the 300 days, one for each choice of policies; each is made once and serves several experiments.

use super::replay::{AgedFile, Replay};
use super::{EPOCH_NS, MACHINE, POSITIONS, laboratory_at, laboratory_on, policy, with_positions};
use crate::{Bench, ExperimentError};
use aging::plan::PlannedFor;
use aging::plan::alloc96::figures::{Count, Figure};
use aging::plan::alloc96::{CAPACITY_BYTES, DAYS, Leaving, Model, Options, Parameters};
use device::Drive;
use ffs::Ffs;
use ffs::policy::{Integrity, Options as PolicyOptions};
use kernel::{Lab, Machine};
use layout::scores::score::LayoutScore;
use std::sync::Arc;

/// The file system of the study.
pub const PLANNED_FOR: PlannedFor = PlannedFor { capacity_bytes: CAPACITY_BYTES, block_bytes: 1024 };

/// How a file system is aged; by default as the study's was, as far as that is known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Aging {
    /// Rotational positions that it tells apart.
    pub(crate) positions: u32,
    /// Which documents go when use falls.
    pub(crate) leaving: Leaving,
    /// The first so many of the 300 days.
    pub(crate) days: u32,
    /// Seed of the workload.
    pub(crate) seed: u64,
}

impl Aging {
    /// That of the study, at the scale and with the seed of a bench.
    pub(crate) fn of(bench: &Bench<'_>) -> Aging {
        Aging { positions: POSITIONS, leaving: Leaving::AnyOfItsSize, days: days(bench), seed: bench.seed() }
    }
}

/// An aged file system.
#[derive(Clone, Debug)]
pub struct Aged {
    /// The words of its policies.
    pub policy: String,
    /// The file system, unmounted.
    pub volume: Ffs,
    /// Its files, by the workload's numbers.
    pub files: Vec<AgedFile>,
    /// Its days.
    pub days: u32,
    /// The aggregate layout score at the end of each day.
    pub by_day: Vec<LayoutScore>,
    /// Creations, writes, truncations and removals.
    pub file_operations: u64,
    /// How the workload meets its published figures.
    pub figures: Vec<Figure>,
    /// Use by day, from the beginning of the first; share of what users may use.
    pub use_by_day: Vec<f64>,
}

impl Aged {
    /// The file system under a kernel on the drive, with metadata written in order (`conventional`), as the study's was.
    ///
    /// # Errors
    /// As [`super::laboratory`].
    pub fn laboratory(&self) -> Result<Lab<Ffs>, ExperimentError> {
        self.laboratory_at(0)
    }

    /// The same in a partition that begins at a sector of the drive.
    ///
    /// # Errors
    /// As [`super::laboratory`].
    pub(crate) fn laboratory_at(&self, first_sector: u64) -> Result<Lab<Ffs>, ExperimentError> {
        laboratory_at(self.in_order(), first_sector)
    }

    /// The same of another computer, with another drive.
    ///
    /// # Errors
    /// As [`super::laboratory`].
    pub(crate) fn laboratory_on(&self, machine: &str, drive: &Drive) -> Result<Lab<Ffs>, ExperimentError> {
        laboratory_on(self.in_order(), machine, drive, 0)
    }

    fn in_order(&self) -> Ffs {
        let choices = PolicyOptions { integrity: Integrity::Conventional, ..*self.volume.choices() };
        self.volume.clone().with_choices(choices)
    }

    /// Aggregate layout score at the end of a day (from 1).
    pub fn score(&self, day: u32) -> f64 {
        let at = (day as usize).saturating_sub(1);
        self.by_day.get(at).and_then(|score| score.value()).unwrap_or(f64::NAN)
    }

    /// The files modified in the last month ("hot").
    pub fn hot_files(&self) -> impl Iterator<Item = &AgedFile> {
        let month = self.days.saturating_sub(30);
        self.files.iter().filter(move |file| file.modified_day >= month)
    }
}

/// Days that are run at a scale.
pub(crate) fn days(bench: &Bench<'_>) -> u32 {
    bench.pick(20, DAYS)
}

/// A file system with the policies that `words` of a target name, aged; metadata is written late (`noorder`), which does not change
/// where anything goes.
///
/// # Errors
/// A word that is none; the workload does not fit.
pub fn aged(bench: &mut Bench<'_>, words: &str) -> Result<Arc<Aged>, ExperimentError> {
    bench.shared(&format!("alloc96 aged {words}"), |bench| {
        let (days, seed) = (days(bench), bench.seed());
        run(words, days, seed, &mut |day, _| {
            bench.report(&format!("aging {words}"), day.into(), Some(days.into()));
            Ok(())
        })
    })
}

/// Told at the end of each day (from 1) what the file system is like.
pub type EachDay<'a> = &'a mut dyn FnMut(u32, &Replay) -> Result<(), ExperimentError>;

/// Ages a file system, and looks at its layout at the end of each day.
///
/// # Errors
/// As [`aged`].
pub fn run(words: &str, days: u32, seed: u64, each_day: EachDay<'_>) -> Result<Aged, ExperimentError> {
    run_as(words, Aging { positions: POSITIONS, leaving: Leaving::AnyOfItsSize, days, seed }, each_day)
}

/// The same with one thing or another changed.
///
/// # Errors
/// As [`aged`].
pub(crate) fn run_as(words: &str, aging: Aging, each_day: EachDay<'_>) -> Result<Aged, ExperimentError> {
    run_with(Parameters::published(), words, aging, each_day)
}

/// The same with other parameters than the study's, for what depends on one of them.
///
/// # Errors
/// As [`aged`].
pub(crate) fn run_with(
    parameters: Parameters,
    words: &str,
    aging: Aging,
    each_day: EachDay<'_>,
) -> Result<Aged, ExperimentError> {
    let Aging { positions, leaving, days, seed } = aging;
    let mut count = Count::new(PLANNED_FOR, &parameters);
    let mut model = Model::new(&Options { planned_for: PLANNED_FOR, days, seed }, parameters)?.losing(leaving);
    let volume = Ffs::format(&with_positions(positions), policy(words)?)?;
    let mut replay = Replay::new(volume, &Machine::load(MACHINE)?, EPOCH_NS)?;
    let mut by_day = Vec::with_capacity(days as usize);
    let mut ops = model.beginning();
    for day in 0..days {
        ops.extend(model.day(day));
        for op in &ops {
            count.add(op);
            replay.apply(op)?;
        }
        ops.clear();
        replay.sync()?;
        by_day.push(replay.score()?);
        each_day(day + 1, &replay)?;
    }
    count.end_days(days);
    let (files, file_operations) = (replay.files().collect(), replay.file_operations());
    let volume = replay.finish(&format!("{days} days of aging with {words}"))?;
    let (figures, use_by_day) = (count.figures(), count.shares().to_vec());
    Ok(Aged { policy: words.to_owned(), volume, files, days, by_day, file_operations, figures, use_by_day })
}
