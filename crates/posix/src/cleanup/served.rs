//! Mounts that this process serves.

use super::list::Entry;
use super::making::{self, Making};
use super::resource::{Resource, top_at};
use std::io;
use std::path::{Path, PathBuf};

/// A mount that this process serves. It is unmounted when this is dropped, or by the next run if this one is killed.
#[derive(Debug)]
pub struct Served {
    point: PathBuf,
    /// Until it is mounted. Dropped before the entry.
    making: Option<Making>,
    entry: Option<Entry>,
}

impl Served {
    /// Enters one that is about to be made.
    pub fn new(point: &Path, fs_type: &str) -> Served {
        let resource = Resource::Served { point: point.to_owned(), fs_type: fs_type.to_owned(), device: None };
        let making = making::begin();
        Served { point: point.to_owned(), entry: Some(Entry::new(&making, resource)), making: Some(making) }
    }

    /// It is mounted: from now on nothing else at that place is taken for it.
    pub fn made(&mut self) {
        if let (Some(entry), Some(mount)) = (&self.entry, top_at(&self.point)) {
            entry.mounted(mount);
        }
        self.making = None;
    }

    /// It has not been mounted.
    pub fn forget(mut self) {
        if let Some(entry) = self.entry.take() {
            entry.forget();
        }
    }

    /// Unmounts what is left of it after its connection to the kernel has ended: nothing where somebody else has
    /// unmounted it, even if there is another mount at its place by now.
    ///
    /// # Errors
    /// Those of umount2(2).
    pub fn unmount_dead(mut self) -> io::Result<()> {
        self.entry.take().map_or(Ok(()), |entry| entry.remove_by(Resource::remove_dead))
    }

    /// Unmounts it, if nobody else has.
    ///
    /// # Errors
    /// Those of umount2(2); it is unmounted lazily where it is in use.
    pub fn unmount(mut self) -> io::Result<()> {
        self.entry.take().map_or(Ok(()), Entry::remove)
    }
}
