//! The Fast File System: fsck repairs it, or its log is replayed.

use crate::found::{look, look_without};
use crate::sequence;
use crate::subject::ReadOnly;
use crate::{CrashError, Names, Recovered, Subject, Unrecoverable};
use device::crash::{Event, Recording, Write};
use device::store::{Frozen, MemoryStore, Overlay, Store};
use ffs::fsck::{Phase, Problem, Report};
use ffs::log::Step;
use ffs::policy::{DataOrder, Integrity, Options};
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
    /// Whether what Soft Updates leave is recovered by the check in the background.
    in_background: bool,
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
        let (machine, planted) = (spec.load_machine()?, ffs::Planted::default());
        Ok(FfsSubject { machine, spec, policy, planted, in_background: false })
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

    /// Recovered by the check in the background: mounted as it is, checked by a snapshot, and unmounted. Only under
    /// Soft Updates.
    #[must_use]
    pub fn in_background(mut self) -> FfsSubject {
        self.in_background = true;
        self
    }

    /// Has the check in the background recover what a crash has left. The full check must find nothing then.
    fn recover_in_background(&self, mut disk: &mut dyn Store) -> Result<Recovered, Unrecoverable> {
        let mut bytes = vec![0; usize::try_from(disk.len_bytes())?];
        disk.read_at(0, &mut bytes)?;
        let date_ns = Image::open(ReadOnly(&*disk), Search::Standard)?.superblock().time() * 1_000_000_000;
        let (left, after) = ffs::check_planted(MemoryStore(bytes), date_ns, self.planted, &mut |_| true)?;
        disk.write_at(0, &after.0)?;
        let report = ffs::fsck(Overlay::new(&mut disk), &mut |_| true)?;
        if let Some(problem) = report.problems.first() {
            return Err(Unrecoverable(format!("after the check in the background: {}", problem.message)));
        }
        let found = look(&Image::open(ReadOnly(&*disk), Search::Standard)?)?;
        let mut events = BTreeMap::new();
        events.insert("without a name", left.unnamed);
        events.insert("link counts", left.link_counts);
        events.insert("numbers", left.inodes);
        events.insert("fragments", left.frags);
        Ok(Recovered { found, repaired: left.corrections.len() as u64, shared: None, beyond: None, events })
    }

    fn is_ordered(&self) -> bool {
        self.policy.data == DataOrder::Ordered
    }

    /// Replays the log. The full check must find nothing then.
    fn replay(&self, mut disk: &mut dyn Store) -> Result<Recovered, Unrecoverable> {
        let Some(done) = ffs::log::replay_planted(&mut disk, self.planted)? else {
            return Err(Unrecoverable("there is no log".to_owned()));
        };
        let report = ffs::fsck(Overlay::new(&mut disk), &mut |_| true)?;
        if let Some(problem) = report.problems.first() {
            return Err(Unrecoverable(format!("after the log was replayed: {}", problem.message)));
        }
        let image = Image::open(ReadOnly(&*disk), Search::Standard)?;
        let found = look_without(&image, Some(ffs::log::LOG_NAME))?;
        let mut events = BTreeMap::new();
        events.insert("log replayed", u64::from(done.transactions > 0));
        events.insert("log empty", u64::from(done.transactions == 0 && done.counted));
        events.insert("records", done.records);
        events.insert("files without a name freed", done.orphans);
        Ok(Recovered { found, repaired: u64::from(!done.is_nothing()), shared: None, beyond: None, events })
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
            Integrity::Softdep | Integrity::SoftdepJournal => Names::Entries,
            Integrity::JournalAsync => Names::Journaled { at_return: false, ordered: self.is_ordered() },
            Integrity::JournalSync => Names::Journaled { at_return: true, ordered: self.is_ordered() },
        }
    }

    fn settle_ms(&self) -> u64 {
        match self.policy.integrity {
            Integrity::Conventional | Integrity::Noorder | Integrity::JournalAsync | Integrity::JournalSync => {
                sequence::SETTLE_MS
            }
            // A block goes again for each thing that was left out of it.
            Integrity::Softdep | Integrity::SoftdepJournal => 4 * sequence::SETTLE_MS,
        }
    }

    fn mount(&self, base: Frozen) -> Result<Lab<Ffs>, CrashError> {
        let cannot = |error: &dyn std::fmt::Display| CrashError::Mount(error.to_string());
        let loaded = ffs::log::load(Overlay::new(base), self.policy, self.planted);
        let (mut volume, image) = loaded.map_err(|error| cannot(&error))?;
        volume.plant(self.planted);
        let setup = self.spec.setup(self.machine.clone(), image.superblock().time());
        let bytes = payload::Image::full(image.into_store());
        let device = self.spec.device(volume.log_sectors())?;
        Lab::recorded(volume, device, setup, bytes).map_err(|error| cannot(&error))
    }

    fn recover(&self, mut disk: &mut dyn Store) -> Result<Recovered, Unrecoverable> {
        if self.policy.integrity.has_log() {
            return self.replay(disk);
        }
        if self.in_background {
            return self.recover_in_background(disk);
        }
        let report = self.fsck(&mut disk)?;
        if report.unrepaired > 0 {
            let left = report.problems.iter().find(|problem| problem.repair.is_none());
            let what = left.map_or_else(String::new, |problem| format!(": {}", problem.message));
            return Err(Unrecoverable(format!("{} problems cannot be repaired{what}", report.unrepaired)));
        }
        let beyond = match self.policy.integrity {
            Integrity::Softdep => report.beyond_soft_updates(),
            _ => None,
        };
        let beyond = beyond.map(|Problem { kind, message, .. }| {
            format!("more than Soft Updates may leave: {}: {message}", kind.word())
        });
        let duplicate = report.problems.iter().find(|problem| problem.phase == Phase::Duplicates);
        let shared = duplicate.map(|problem| problem.message.clone());
        let mut events = BTreeMap::new();
        for problem in &report.problems {
            *events.entry(problem.kind.word()).or_default() += 1;
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

    fn counts(&self, volume: &Ffs) -> Vec<(&'static str, u64)> {
        let Some(counts) = volume.log_counts() else { return Vec::new() };
        vec![
            ("commits", counts.commits),
            ("sectors committed", counts.sectors),
            ("checkpoints", counts.checkpoints),
            ("extents revoked", counts.revoked),
        ]
    }

    fn recovery_log(&self, disk: &dyn Store) -> Result<Vec<Event>, Unrecoverable> {
        if self.policy.integrity.has_log() {
            let done = ffs::log::replay_planted(&mut Overlay::new(ReadOnly(disk)), self.planted)?;
            return Ok(done.map(|done| events(done.steps)).unwrap_or_default());
        }
        let mut recording = Recording::new(Overlay::new(ReadOnly(disk)));
        self.fsck(&mut recording)?;
        Ok(recording.into_log())
    }
}

/// A replay as requests to a drive: all that it writes between two flushes is on its way together.
fn events(steps: Vec<Step>) -> Vec<Event> {
    let mut together = 0;
    let steps = (0..).zip(steps).map(|(number, step)| match step {
        Step::Write { at_byte, bytes } => {
            Event::Write(Write { at_byte, bytes: bytes.into(), submitted_after: together, durable: true })
        }
        Step::Flush => {
            together = number + 1;
            Event::Flush { submitted_after: number }
        }
    });
    steps.collect()
}
