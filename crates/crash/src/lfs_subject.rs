//! The log-structured file system: mounting rolls the log forward.

use crate::found::look;
use crate::subject::ReadOnly;
use crate::{CrashError, Names, Recovered, Subject, Unrecoverable};
use device::Device;
use device::crash::Event;
use device::store::{Frozen, Overlay, Store};
use kernel::{Lab, Setup, payload};
use lab::{Spec, System};
use lfs::format::summary_flags;
use lfs::{Checkpoint, Image, Lfs, Options};
use std::collections::BTreeMap;
use std::fmt;

/// Makes the drive that a mount is on.
pub type MakeDevice = dyn Fn() -> Result<Box<dyn Device>, lab::OpenError> + Send + Sync;

/// A log-structured file system.
pub struct LfsSubject {
    options: Options,
    setup: Setup,
    device: Box<MakeDevice>,
    planted: lfs::Planted,
}

impl LfsSubject {
    /// Of a laboratory target.
    ///
    /// # Errors
    /// The target is of another file system, or has no such machine.
    pub fn new(spec: &Spec) -> Result<LfsSubject, CrashError> {
        let System::Lfs(own) = &spec.system else {
            let (target, system) = (spec.text.clone(), "log-structured file system");
            return Err(lab::OpenError::System { target, system }.into());
        };
        let setup = spec.setup(spec.load_machine()?, 0);
        let drive = spec.drive.clone();
        Ok(LfsSubject::with(own.policy, setup, Box::new(move || drive.device())))
    }

    /// On a machine and a drive that no target names.
    pub fn with(options: Options, setup: Setup, device: Box<MakeDevice>) -> LfsSubject {
        LfsSubject { options, setup, device, planted: lfs::Planted::default() }
    }

    /// With a bug that a test must find.
    #[doc(hidden)]
    pub fn planted(mut self, planted: lfs::Planted) -> LfsSubject {
        self.planted = planted;
        self
    }

    fn open<S: Store>(&self, store: S, checkpoint: Checkpoint) -> Result<Image<S>, Unrecoverable> {
        let mut image = Image::open(store, checkpoint)?;
        image.plant(self.planted);
        image.roll_forward()?;
        Ok(image)
    }
}

impl fmt::Debug for LfsSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LfsSubject").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Subject for LfsSubject {
    type Volume = Lfs;

    fn names(&self) -> Names {
        Names::InOrder
    }

    fn mount(&self, base: Frozen) -> Result<Lab<Lfs>, CrashError> {
        let cannot = |error: &dyn fmt::Display| CrashError::Mount(error.to_string());
        let mut store = Overlay::new(base);
        let volume = Lfs::load_planted(&mut store, self.options, self.planted).map_err(|error| cannot(&error))?;
        let device = (self.device)()?;
        let bytes = payload::Image::full(store);
        Lab::recorded(volume, device, self.setup.clone(), bytes).map_err(|error| cannot(&error))
    }

    fn recover(&self, disk: &mut dyn Store) -> Result<Recovered, Unrecoverable> {
        let volume = Lfs::load_planted(ReadOnly(disk), self.options, self.planted)?;
        if let Some(problem) = volume.check().first() {
            return Err(Unrecoverable(format!("what was mounted does not agree with itself: {problem}")));
        }
        let report = lfs::fsck::fsck_planted(ReadOnly(disk), self.planted, &mut |_| true)?;
        if let Some(problem) = report.problems.first() {
            return Err(Unrecoverable(format!("the check after rolling forward: {}", problem.message)));
        }
        let found = look(&self.open(ReadOnly(disk), Checkpoint::Newer)?)?;
        // 4.4BSD and NetBSD roll forward from the older superblock; and a superblock that was being written may be
        // none.
        let older = self.open(ReadOnly(disk), Checkpoint::Older).and_then(|image| look(&image));
        let older = older.map_err(|Unrecoverable(why)| Unrecoverable(format!("from the older superblock: {why}")))?;
        if older != found {
            return Err(Unrecoverable("from the older superblock another tree is recovered".to_owned()));
        }
        let mut events = BTreeMap::new();
        let rolled = &report.rolled_forward;
        events.insert("rolled forward", u64::from(rolled.partial_segments > 0));
        events.insert("not to the end of the log", u64::from(rolled.dropped > 0));
        if report.after_checkpoint > 0 {
            let cleaned = Image::open(ReadOnly(disk), Checkpoint::Newer)?
                .log_tail()
                .partials
                .iter()
                .any(|partial| partial.summary.is(summary_flags::CLEAN));
            events.insert("with the cleaner's writes", u64::from(cleaned));
        }
        let repaired = u64::from(rolled.partial_segments > 0);
        Ok(Recovered { found, repaired, shared: None, beyond: None, events })
    }

    fn recovery_log(&self, disk: &dyn Store) -> Result<Vec<Event>, Unrecoverable> {
        let mut bytes = vec![0; usize::try_from(disk.len_bytes())?];
        disk.read_at(0, &mut bytes)?;
        let mut lab = self.mount(Frozen(bytes.into()))?;
        Ok(crate::watched::events(lab.take_log(), 0))
    }

    fn counts(&self, volume: &Lfs) -> Vec<(&'static str, u64)> {
        let cleaner = &volume.counters().cleaner;
        vec![
            ("segments cleaned", cleaner.segments),
            ("blocks into holes", cleaner.plugged_blocks),
            ("times all was cleaned", cleaner.sweeps),
        ]
    }
}
