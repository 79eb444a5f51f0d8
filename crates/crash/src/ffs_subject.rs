//! The Fast File System: fsck repairs it.

use crate::found::look;
use crate::sequence;
use crate::subject::ReadOnly;
use crate::{CrashError, Names, Recovered, Subject, Unrecoverable};
use device::crash::{Event, Recording};
use device::store::{Frozen, Overlay, Store};
use ffs::fsck::{Phase, Problem, Report};
use ffs::policy::{Integrity, Options};
use ffs::{Ffs, Image, Search};
use kernel::{Lab, Machine, payload};
use lab::{Spec, System};
use std::collections::BTreeMap;

/// A Fast File System as a target asks for it.
#[derive(Debug)]
pub struct FfsSubject {
    spec: Spec,
    machine: Machine,
    policy: Options,
    /// Bugs that tests plant.
    planted: ffs::Planted,
}

impl FfsSubject {
    /// Of a laboratory target.
    ///
    /// # Errors
    /// The target is of another file system, or has no such machine.
    pub fn new(spec: Spec) -> Result<FfsSubject, CrashError> {
        let System::Ffs(own) = &spec.system else {
            let (target, system) = (spec.text.clone(), "Fast File System");
            return Err(lab::OpenError::System { target, system }.into());
        };
        let policy = own.policy;
        Ok(FfsSubject { machine: spec.load_machine()?, spec, policy, planted: ffs::Planted::default() })
    }

    /// On another machine than the target names.
    #[must_use]
    pub fn on(mut self, machine: Machine) -> FfsSubject {
        self.machine = machine;
        self
    }

    /// With a bug that a test must find.
    #[doc(hidden)]
    pub fn planted(mut self, planted: ffs::Planted) -> FfsSubject {
        self.planted = planted;
        self
    }

    fn fsck<S: Store>(&self, store: S) -> Result<Report, Unrecoverable> {
        Ok(ffs::fsck::fsck_planted(store, self.planted, &mut |_| true)?)
    }
}

impl Subject for FfsSubject {
    type Volume = Ffs;

    fn names(&self) -> Names {
        match self.policy.integrity {
            Integrity::Conventional => Names::AtReturn,
            Integrity::Noorder => Names::AfterSync,
            Integrity::Softdep => Names::Entries,
        }
    }

    fn settle_ms(&self) -> u64 {
        match self.policy.integrity {
            Integrity::Conventional | Integrity::Noorder => sequence::SETTLE_MS,
            // A block goes again for each thing that was left out of it.
            Integrity::Softdep => 4 * sequence::SETTLE_MS,
        }
    }

    fn mount(&self, base: Frozen) -> Result<Lab<Ffs>, CrashError> {
        let cannot = |error: &dyn std::fmt::Display| CrashError::Mount(error.to_string());
        let image = Image::open(Overlay::new(base), Search::Standard).map_err(|error| cannot(&error))?;
        let mut volume = Ffs::load(&image, self.policy).map_err(|error| cannot(&error))?;
        volume.plant(self.planted);
        let setup = self.spec.setup(self.machine.clone(), image.superblock().time());
        let bytes = payload::Image::full(image.into_store());
        Lab::recorded(volume, self.spec.drive.device()?, setup, bytes).map_err(|error| cannot(&error))
    }

    fn recover(&self, mut disk: &mut dyn Store) -> Result<Recovered, Unrecoverable> {
        let report = self.fsck(&mut disk)?;
        if report.unrepaired > 0 {
            let left = report.problems.iter().find(|problem| problem.repair.is_none());
            let what = left.map_or_else(String::new, |problem| format!(": {}", problem.message));
            return Err(Unrecoverable(format!("{} problems cannot be repaired{what}", report.unrepaired)));
        }
        let beyond = match self.policy.integrity {
            Integrity::Softdep => report.beyond_soft_updates(),
            Integrity::Conventional | Integrity::Noorder => None,
        };
        let beyond =
            beyond.map(|Problem { kind, message, .. }| format!("more than Soft Updates may leave: {kind}: {message}"));
        let duplicate = report.problems.iter().find(|problem| problem.phase == Phase::Duplicates);
        let shared = duplicate.map(|problem| problem.message.clone());
        let mut events = BTreeMap::new();
        for problem in &report.problems {
            *events.entry(problem.kind).or_default() += 1;
        }
        if report.problem_count > 0 {
            // Judged by a check without bugs.
            let again = ffs::fsck(Overlay::new(&mut disk), &mut |_| true)?;
            if let Some(left) = again.problems.first() {
                return Err(Unrecoverable(format!("what was repaired is not clean: {}", left.message)));
            }
        }
        let found = look(&Image::open(ReadOnly(&*disk), Search::Standard)?)?;
        Ok(Recovered { found, repaired: report.problem_count, shared, beyond, events })
    }

    fn recovery_log(&self, disk: &dyn Store) -> Result<Vec<Event>, Unrecoverable> {
        let mut recording = Recording::new(Overlay::new(ReadOnly(disk)));
        self.fsck(&mut recording)?;
        Ok(recording.into_log())
    }
}
