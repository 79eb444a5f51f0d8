//! Mounts that this process serves.

use super::list::Entry;
use super::making::{self, Making};
use super::resource::Resource;
use crate::mounts::{MountEntry, mounts};
use std::io;
use std::path::{Path, PathBuf};

/// A mount that this process serves. It is unmounted when this is dropped, or by the next run if this one is killed.
#[derive(Debug)]
pub struct Served {
    point: PathBuf,
    fs_type: String,
    /// Until it is mounted. Dropped before the entry.
    making: Option<Making>,
    entry: Option<Entry>,
}

impl Served {
    /// Enters one that is about to be made.
    pub fn new(point: &Path, fs_type: &str) -> Served {
        let resource = Resource::Served { point: point.to_owned(), fs_type: fs_type.to_owned(), device: None };
        let making = making::begin();
        let entry = Some(Entry::new(&making, resource));
        Served { point: point.to_owned(), fs_type: fs_type.to_owned(), entry, making: Some(making) }
    }

    /// It is mounted: from now on nothing else at that place is taken for it.
    pub fn made(&mut self) {
        // Something may be mounted over it by now.
        let is_it = |mount: &MountEntry| mount.point == self.point && mount.fs_type == self.fs_type;
        if let (Some(entry), Some(mount)) = (&self.entry, mounts().into_iter().rfind(is_it)) {
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
