//! File systems aged by the 300 days, one for each choice of policies; each is made once and serves several
//! experiments.

use super::replay::{AgedFile, Replay};
use super::{POSITIONS, STUDY, policy};
use crate::study::writing;
use crate::{Bench, ExperimentError, Study};
use aging::plan::PlannedFor;
use aging::plan::alloc96::figures::{Count, Figure};
use aging::plan::alloc96::{CAPACITY_BYTES, Leaving, Model, Options, Parameters};
use device::Drive;
use ffs::Ffs;
use ffs::mkfs::{DiskGeometry, MkfsOptions};
use ffs::policy::{Integrity, LateWrites};
use kernel::{Lab, Machine};
use layout::scores::score::LayoutScore;
use std::sync::Arc;

/// The file system of the study.
pub const PLANNED_FOR: PlannedFor = PlannedFor { capacity_bytes: CAPACITY_BYTES, block_bytes: 1024 };

/// How a file system is aged; by default as the study's was, as far as that is known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Aging {
    /// What is aged, and for what it is measured on.
    pub(crate) study: Study,
    /// Rotational positions that it tells apart.
    pub(crate) positions: u32,
    /// Which documents go when use falls.
    pub(crate) leaving: Leaving,
    /// The first so many days.
    pub(crate) days: u32,
    /// Seed of the workload.
    pub(crate) seed: u64,
}

impl Aging {
    /// That of another study.
    pub(crate) fn of_study(bench: &Bench<'_>, study: Study) -> Aging {
        let (days, seed) = (study.days_at(bench), bench.seed());
        Aging { study, positions: POSITIONS, leaving: Leaving::AnyOfItsSize, days, seed }
    }

    /// That of the study, at the scale and with the seed of a bench.
    pub(crate) fn of(bench: &Bench<'_>) -> Aging {
        Aging::of_study(bench, STUDY)
    }
}

/// An aged file system.
#[derive(Clone, Debug)]
pub struct Aged {
    /// Whose set-up it is of.
    pub study: Study,
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
    /// The file system under a kernel on the drive, with metadata written in order (`conventional`) and late blocks one
    /// by one (`blockwise`), as the study's was.
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
        let drive = Drive::find(self.study.drive)?;
        self.study.laboratory_on(self.as_measured(), self.study.machine, &drive, first_sector)
    }

    /// The same of another computer, with another drive.
    ///
    /// # Errors
    /// As [`super::laboratory`].
    pub(crate) fn laboratory_on(&self, machine: &str, drive: &Drive) -> Result<Lab<Ffs>, ExperimentError> {
        self.study.laboratory_on(self.as_measured(), machine, drive, 0)
    }

    /// The same with late blocks gathered, as FreeBSD's kernel writes them.
    ///
    /// # Errors
    /// As [`super::laboratory`].
    pub(crate) fn laboratory_gathering(&self) -> Result<Lab<Ffs>, ExperimentError> {
        self.study.laboratory(writing(&self.volume, Integrity::Conventional, LateWrites::Gathered))
    }

    /// The same with metadata written late.
    ///
    /// # Errors
    /// As [`super::laboratory`].
    pub(crate) fn laboratory_without_order(&self) -> Result<Lab<Ffs>, ExperimentError> {
        self.study.laboratory(writing(&self.volume, Integrity::Noorder, self.study.late))
    }

    /// The file system, writing as the study's did.
    pub(crate) fn as_measured(&self) -> Ffs {
        self.study.as_measured(&self.volume)
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
    STUDY.days_at(bench)
}

/// A file system with the policies that `words` of a target name, aged; metadata is written late (`noorder`), which
/// does not change where anything goes.
///
/// # Errors
/// A word that is none; the workload does not fit.
pub fn aged(bench: &mut Bench<'_>, words: &str) -> Result<Arc<Aged>, ExperimentError> {
    aged_of(bench, STUDY, words)
}

/// The same of another study.
///
/// # Errors
/// As [`aged`].
pub(crate) fn aged_of(bench: &mut Bench<'_>, study: Study, words: &str) -> Result<Arc<Aged>, ExperimentError> {
    bench.shared(&study.aged(words), |bench| {
        let aging = Aging::of_study(bench, study);
        run_as(words, aging, &mut |day, _| {
            bench.report(&format!("aging {words}"), day.into(), Some(aging.days.into()));
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
    let aging = Aging { study: STUDY, positions: POSITIONS, leaving: Leaving::AnyOfItsSize, days, seed };
    run_as(words, aging, each_day)
}

/// The same with one thing or another changed.
///
/// # Errors
/// As [`aged`].
pub(crate) fn run_as(words: &str, aging: Aging, each_day: EachDay<'_>) -> Result<Aged, ExperimentError> {
    run_with((aging.study.workload)(), words, aging, each_day)
}

/// The same with other use than the study's, for what depends on a parameter of it.
///
/// # Errors
/// As [`aged`].
pub(crate) fn run_with(
    parameters: Parameters,
    words: &str,
    aging: Aging,
    each_day: EachDay<'_>,
) -> Result<Aged, ExperimentError> {
    let Aging { study, positions, leaving, days, seed } = aging;
    let shape = (study.shape)();
    let disk = shape.disk.map(|disk| DiskGeometry { positions, ..disk });
    let volume = Ffs::format(&MkfsOptions { disk, ..shape }, policy(words)?)?;
    let planned_for = Study::planned_for(&volume);
    let mut count = Count::new(planned_for, &parameters);
    let mut model = Model::new(&Options { planned_for, days, seed }, parameters)?.losing(leaving);
    let mut replay = Replay::new(volume, &Machine::load(study.machine)?, study.epoch_ns)?;
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
    Ok(Aged { study, policy: words.to_owned(), volume, files, days, by_day, file_operations, figures, use_by_day })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Experiments age once and measure under either way of writing late blocks.
    #[test]
    fn how_late_blocks_are_written_changes_no_layout() {
        let files = |words: &str| {
            let aged = run(words, 4, 1, &mut |_, _| Ok(())).unwrap();
            let extents = aged.files.iter().map(|file| kernel::Volume::extents(&aged.volume, file.ino).unwrap());
            extents.collect::<Vec<_>>()
        };
        let gathered = files("realloc,noorder,gathered");
        assert!(gathered.len() > 1_000);
        assert_eq!(gathered, files("realloc,noorder,blockwise"));
        assert_ne!(gathered, files("original,noorder,gathered"));
    }
}
