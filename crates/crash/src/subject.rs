//! A file system that crashes: how it is mounted, how it recovers, what it promises.

use crate::{CrashError, Found, Unrecoverable};
use device::crash::Event;
use device::store::{Frozen, Store};
use kernel::{Lab, Volume};
use std::collections::BTreeMap;

/// When a name that was made or removed is sure to be so after a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Names {
    /// When the call returns: directory operations are synchronous.
    AtReturn,
    /// After a sync of the file system.
    AfterSync,
    /// After a sync of the file system, each entry of a directory by itself: nothing says whether a directory has moved
    /// before something was made in it.
    Entries,
    /// After a sync, or an fsync of what is named; operations are recovered in their order, wholly or not at all.
    InOrder,
    /// The same of names, lengths and attributes: a log of metadata. An fsync of anything promises all names until
    /// then. Data are written in any order.
    Journaled {
        /// Whether operations on names are promised when they return.
        at_return: bool,
        /// Whether a new block never shows what was there before.
        ordered: bool,
    },
}

impl Names {
    /// Whether the names must be as they were after some call.
    pub(crate) fn are_in_order(self) -> bool {
        matches!(self, Names::InOrder | Names::Journaled { .. })
    }
}

/// What recovery has made of a disk.
#[derive(Clone, Debug, Default)]
pub struct Recovered {
    /// What can be seen now.
    pub found: Found,
    /// Problems that were repaired.
    pub repaired: u64,
    /// A block that two files had, if there was one.
    pub shared: Option<String>,
    /// What the file system promises that a crash cannot leave, and this one has.
    pub beyond: Option<String>,
    /// What else happened, by name: so that a test can see that its states are what they should be.
    pub events: BTreeMap<&'static str, u64>,
}

/// A file system under test.
pub trait Subject: Sync {
    /// The file system.
    type Volume: Volume;

    /// What it promises of names.
    fn names(&self) -> Names;

    /// Mounts what is on a disk, with a log of all writes, those of mounting among them.
    ///
    /// # Errors
    /// It cannot be mounted.
    fn mount(&self, base: Frozen) -> Result<Lab<Self::Volume>, CrashError>;

    /// Recovers what a crash has left, checks it and looks at all of it. `disk` may be written to.
    ///
    /// # Errors
    /// It cannot be recovered, or what recovery leaves is not consistent.
    fn recover(&self, disk: &mut dyn Store) -> Result<Recovered, Unrecoverable>;

    /// What recovery writes to a disk, in order.
    ///
    /// # Errors
    /// It cannot be recovered.
    fn recovery_log(&self, disk: &dyn Store) -> Result<Vec<Event>, Unrecoverable>;

    /// How long time passes at the end of a sequence until everything has been written back, milliseconds.
    fn settle_ms(&self) -> u64 {
        crate::sequence::SETTLE_MS
    }

    /// Counts of the file system's own that say whether anything happened in a run, by name.
    fn counts(&self, _volume: &Self::Volume) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
}

/// A store that is only looked at.
pub(crate) struct ReadOnly<'a>(pub(crate) &'a dyn Store);

impl Store for ReadOnly<'_> {
    fn len_bytes(&self) -> u64 {
        self.0.len_bytes()
    }
    fn read_at(&self, at: u64, buf: &mut [u8]) -> std::io::Result<()> {
        self.0.read_at(at, buf)
    }
    fn write_at(&mut self, _at: u64, _bytes: &[u8]) -> std::io::Result<()> {
        Err(std::io::ErrorKind::ReadOnlyFilesystem.into())
    }
}
