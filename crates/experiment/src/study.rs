//! What a study of aged file systems ages, by what use, and on which computer and drive it measures: published where it
//! was published.

use crate::alloc96::policy;
use crate::{Bench, ExperimentError};
use aging::plan::PlannedFor;
use aging::plan::alloc96::Parameters;
use device::Drive;
use device::partition::Partition;
use ffs::Ffs;
use ffs::mkfs::MkfsOptions;
use ffs::policy::{Integrity, LateWrites, Options};
use kernel::{Lab, Machine, Setup};

/// The set-up of a study.
#[derive(Clone, Copy, Debug)]
pub struct Study {
    /// What it is called; no two have the same.
    pub name: &'static str,
    /// The file system.
    pub shape: fn() -> MkfsOptions,
    /// The computer.
    pub machine: &'static str,
    /// The drive.
    pub drive: &'static str,
    /// How the kernel of that computer writes what was left dirty.
    pub late: LateWrites,
    /// Days of use.
    pub days: u32,
    /// The use.
    pub workload: fn() -> Parameters,
    /// When it begins, nanoseconds since 1970; only time stamps show it.
    pub epoch_ns: i64,
}

impl Study {
    /// Days that are run at a scale.
    pub(crate) fn days_at(&self, bench: &Bench<'_>) -> u32 {
        bench.pick(20, self.days)
    }

    /// Under what name experiments share it, aged with some choice of policies.
    pub(crate) fn aged(&self, words: &str) -> String {
        format!("{} aged {words}", self.name)
    }

    /// An empty file system that allocates as `words` of a target say (`original,noorder`).
    ///
    /// # Errors
    /// A word that is none.
    pub fn file_system(&self, words: &str) -> Result<Ffs, ExperimentError> {
        Ok(Ffs::format(&(self.shape)(), policy(words)?)?)
    }

    /// What a workload for this file system is planned for: its space as `df` counts it.
    pub(crate) fn planned_for(volume: &Ffs) -> PlannedFor {
        let g = volume.geometry();
        let capacity_bytes = volume.tuning().dsize.unsigned_abs() << g.fshift;
        PlannedFor { capacity_bytes, block_bytes: u64::from(g.fsize) }
    }

    /// A copy that writes metadata in order (`conventional`) and late blocks as the study's kernel did. Neither changes
    /// where anything goes.
    pub(crate) fn as_measured(&self, volume: &Ffs) -> Ffs {
        writing(volume, Integrity::Conventional, self.late)
    }

    /// A file system on the drive, under the kernel of the computer, with cold caches, after the days of use.
    ///
    /// # Errors
    /// It does not fit or cannot be mounted.
    pub fn laboratory(&self, volume: Ffs) -> Result<Lab<Ffs>, ExperimentError> {
        self.laboratory_on(volume, self.machine, &Drive::find(self.drive)?, 0)
    }

    /// The same on another computer or drive, or in a partition that begins at a sector.
    pub(crate) fn laboratory_on(
        &self,
        volume: Ffs,
        machine: &str,
        drive: &Drive,
        first_sector: u64,
    ) -> Result<Lab<Ffs>, ExperimentError> {
        let setup = Setup {
            machine: Machine::load(machine)?,
            target: format!("ffs:{}@{}", volume.choices(), self.drive),
            drive: self.drive.to_owned(),
            epoch_ns: self.epoch_ns + i64::from(self.days) * aging::DAY_NS as i64,
        };
        Ok(Lab::new(volume, Box::new(Partition::new(drive.device(), first_sector)), setup)?)
    }
}

/// A copy of a file system that writes its metadata and its late blocks in other ways.
pub(crate) fn writing(volume: &Ffs, integrity: Integrity, late: LateWrites) -> Ffs {
    volume.clone().with_choices(Options { integrity, late, ..*volume.choices() })
}
