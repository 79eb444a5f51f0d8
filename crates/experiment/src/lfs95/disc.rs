//! A disk in three figures, as the arithmetic of the publication takes it: seeks, rotation, bandwidth.

use crate::ExperimentError;
use device::disk::Disk;
use device::{Drive, Model};

const PAGE_BYTES: f64 = 4096.0;

/// The disk as the models of the publication see it.
pub(super) struct Disc {
    pub(super) disk: Disk,
    overhead_s: f64,
    revolution_s: f64,
    /// What its outermost tracks give.
    pub(super) bytes_per_s: f64,
}

impl Disc {
    /// A drive that comes with the program.
    pub(super) fn of(name: &str) -> Result<Disc, ExperimentError> {
        let drive = Drive::find(name)?;
        let Model::Disk(spec) = drive.model else {
            return Err(device::DriveError::Unknown { name: name.to_owned(), known: "disks".to_owned() }.into());
        };
        let revolution_s = spec.revolution_ns() as f64 / 1e9;
        let track_bytes = spec.zones.first().map_or(0.0, |zone| f64::from(zone.sectors_per_track) * 512.0);
        let overhead_s = spec.controller.read_miss_after_read_ms / 1e3;
        Ok(Disc { disk: Disk::new(*spec), overhead_s, revolution_s, bytes_per_s: track_bytes / revolution_s })
    }

    /// A seek between two places at random in a share of the disk.
    pub(super) fn seek_s(&self, share: f64) -> f64 {
        let n =
            (f64::from(self.disk.cylinder_of(device::Lbn(self.disk.geometry().capacity_sectors() - 1))) + 1.0) * share;
        let cylinders = (n as u32).max(1);
        let weighted = |d: u32| self.disk.seek().distance_ns(d) as f64 * 2.0 * (n - f64::from(d)) / (n * n);
        (1..cylinders).map(weighted).sum::<f64>() / 1e9
    }

    /// A page at a place at random in a share of the disk.
    pub(super) fn page_s(&self, share: f64) -> f64 {
        self.overhead_s + self.seek_s(share) + self.revolution_s / 2.0 + PAGE_BYTES / self.bytes_per_s
    }

    /// So many bytes in one piece, at a share of the disk's bandwidth.
    pub(super) fn piece_s(&self, bytes: f64, of_bandwidth: f64) -> f64 {
        self.overhead_s + self.seek_s(1.0) + self.revolution_s / 2.0 + bytes / (self.bytes_per_s * of_bandwidth)
    }

    /// What goes before the data of a request at a place at random of the whole disk.
    pub(super) fn access_s(&self) -> f64 {
        self.overhead_s + self.seek_s(1.0) + self.revolution_s / 2.0
    }
}
