//! Checking a target's disk in virtual time: every request that the check makes goes through the target's drive and
//! machine.

use crate::bytes;
use crate::spec::System;
use crate::{OpenError, Spec};
use device::store::{FileStore, Overlay, SparseStore, Store};
use kernel::{Costs, RawDisk, RawTimes};

/// Blocks that the disk is read in where there is no file system to say.
const BLOCK_BYTES: u32 = 8192;

/// What a check found, by file system.
#[derive(Clone, Debug, PartialEq)]
pub enum Checked {
    /// The Fast File System.
    Ffs(ffs::fsck::Report),
    /// The log-structured file system.
    Lfs(lfs::fsck::Report),
}

impl Checked {
    /// Whether nothing is wrong.
    pub fn is_clean(&self) -> bool {
        match self {
            Checked::Ffs(report) => report.is_clean(),
            Checked::Lfs(report) => report.is_clean(),
        }
    }

    /// What the processor does beside reading: an inode costs what looking at attributes costs, and a name what
    /// comparing one does. Files with several names count once.
    fn computing_ns(&self, costs: &Costs) -> u64 {
        let inodes = match self {
            Checked::Ffs(report) => report.contents.files + report.contents.directories,
            Checked::Lfs(report) => report.contents.files + report.contents.directories,
        };
        inodes * (costs.attributes_ns + costs.entry_ns)
    }
}

impl Spec {
    /// The disk of the target before it is mounted: what is in its image, which itself stays as it is, or a new file
    /// system of `size=`, or of the whole drive.
    ///
    /// # Errors
    /// It cannot be read or made.
    pub fn unmounted(&self) -> Result<Box<dyn Store>, OpenError> {
        if let Some(path) = &self.image {
            return Ok(Box::new(bytes::overlay(path)?));
        }
        Ok(Box::new(self.new_disk()?))
    }

    /// A disk with a new file system of `size=`, or of the whole drive, in memory; the target's image plays no part.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn new_disk(&self) -> Result<SparseStore, OpenError> {
        let drive_bytes = || {
            let device = self.drive.device()?;
            Ok::<u64, OpenError>(device.capacity_sectors().saturating_mul(u64::from(device.sector_bytes())))
        };
        let size_bytes = self.size_bytes.map_or_else(drive_bytes, Ok)?;
        let mut store = SparseStore::new(size_bytes);
        self.make(&mut store)?;
        Ok(store)
    }

    /// A store as the disk of the target's drive and machine, not mounted, in virtual time.
    ///
    /// # Errors
    /// The drive is too small, or there is no such drive or machine.
    pub fn raw_disk<S: Store>(&self, mut store: S) -> Result<RawDisk<S>, OpenError> {
        let (block_bytes, log) = match &self.system {
            System::Ffs(_) => match ffs::Image::open(&mut store, ffs::Search::Standard) {
                Ok(image) => (Some(image.geometry().bsize), image.log_sectors()),
                Err(_) => (None, None),
            },
            System::Lfs(_) => {
                let image = lfs::Image::open(&mut store, lfs::Checkpoint::Newer);
                (image.ok().map(|image| image.geometry().bsize), None)
            }
        };
        let machine = self.load_machine()?;
        RawDisk::new(store, self.device(log)?, &machine, block_bytes.unwrap_or(BLOCK_BYTES))
            .map_err(|source| OpenError::Lab { target: self.text.clone(), source })
    }

    /// Checks a disk, and repairs it there: to look without touching, lay an [`Overlay`] over the disk. `go_on` is
    /// asked now and then.
    ///
    /// # Errors
    /// There is no file system of the target's kind.
    pub fn check_disk<S: Store>(&self, store: S, go_on: &mut dyn FnMut() -> bool) -> Result<Checked, OpenError> {
        let target = || self.text.clone();
        match &self.system {
            System::Ffs(_) => ffs::fsck(store, &mut |_| go_on())
                .map(Checked::Ffs)
                .map_err(|source| OpenError::Ffs { target: target(), source }),
            System::Lfs(_) => lfs::fsck(store, &mut |_| go_on())
                .map(Checked::Lfs)
                .map_err(|source| OpenError::Lfs { target: target(), source }),
        }
    }

    /// Checks a disk in virtual time, without changing it: what is found, and what it cost.
    ///
    /// # Errors
    /// As [`Spec::raw_disk`] and [`Spec::check_disk`].
    pub fn check_in_virtual_time<S: Store>(
        &self,
        store: S,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<(Checked, RawTimes), OpenError> {
        let mut disk = self.raw_disk(store)?;
        let checked = self.check_disk(Overlay::new(&mut disk), go_on)?;
        self.end_check(&disk, &checked)?;
        Ok((checked, disk.times()))
    }

    /// Checks and repairs a disk in virtual time: what was found, what it cost, and the store again.
    ///
    /// # Errors
    /// As [`Spec::raw_disk`] and [`Spec::check_disk`]; a log repairs itself when it is mounted.
    pub fn repair_in_virtual_time(
        &self,
        store: FileStore,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<(Checked, RawTimes, FileStore), OpenError> {
        let mut disk = self.raw_disk(store)?;
        let checked = self.check_disk(&mut disk, go_on)?;
        self.end_check(&disk, &checked)?;
        Ok((checked, disk.times(), disk.into_store()))
    }

    fn end_check<S: Store>(&self, disk: &RawDisk<S>, checked: &Checked) -> Result<(), OpenError> {
        disk.compute(checked.computing_ns(&self.load_machine()?.costs()));
        disk.flush().map_err(|source| OpenError::Disk { target: self.text.clone(), source })
    }
}
