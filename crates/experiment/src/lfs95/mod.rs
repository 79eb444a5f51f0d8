//! Seltzer, Smith, Balakrishnan, Chang, McMains and Padmanabhan, *File System Logging Versus Clustering: A Performance
//! Comparison*, USENIX 1995.

mod age;
pub(crate) mod by_date;
mod contiguity;
mod disc;
pub(crate) mod file_size;
pub(crate) mod fragmentation;
pub(crate) mod fragments_only;
pub(crate) mod idle_cleaning;
pub(crate) mod m8r0_m8r2;
pub(crate) mod regions;
mod relative;
pub(crate) mod scaled;
pub(crate) mod tpcb;

use crate::testbed;
use crate::{ExperimentError, alloc96};
use ffs::mkfs::{DiskGeometry, MkfsOptions};
use ffs::{Ffs, Version};
use kernel::Lab;

/// The computer. Estimate: of the class of the paper's, with its kernel, 4.4BSD with clustering.
pub const MACHINE: &str = "sparcstation-2";
/// The disk: the paper's DSP 3105 is by all signs this one under its maker's other name.
pub const DRIVE: &str = "dec-rz26";

/// Rotational positions that the file system tells apart. The study reports numbers of "a cpc of zero": no tables of
/// positions, so that the best place for a block is simply behind the one before it.
const POSITIONS: u32 = 1;
/// Those that newfs of 4.4BSD makes tables for, to show what they do.
const NEWFS_POSITIONS: u32 = 8;
/// The allocator before realloc, and a kernel that writes in one request only clusters that have filled: both as in the
/// study's 4.4BSD.
const WORDS: &str = "original,blockwise";

/// An FFS on that disk: blocks of 8 KB in fragments of 1 KB, clusters of 8 blocks (64 KB), `rotdelay_ms` between them.
fn mkfs_options(size_bytes: u64, rotdelay_ms: u32, positions: u32) -> MkfsOptions {
    MkfsOptions {
        minfree: 10,
        maxcontig: Some(8),
        rotdelay: rotdelay_ms,
        disk: Some(DiskGeometry { heads: 14, sectors: 57, rpm: 5360, positions }),
        ..MkfsOptions::new(Version::Ufs1, size_bytes)
    }
}

/// An empty one as the study had it.
fn file_system(size_bytes: u64, rotdelay_ms: u32) -> Result<Ffs, ExperimentError> {
    file_system_with(size_bytes, rotdelay_ms, POSITIONS, WORDS)
}

/// The same with so many rotational positions, allocating as `words` of a target say.
fn file_system_with(size_bytes: u64, rotdelay_ms: u32, positions: u32, words: &str) -> Result<Ffs, ExperimentError> {
    Ok(Ffs::format(&mkfs_options(size_bytes, rotdelay_ms, positions), alloc96::policy(words)?)?)
}

/// Puts a file system on the disk, with cold caches.
///
/// # Errors
/// It does not fit or cannot be mounted.
pub fn laboratory(volume: Ffs) -> Result<Lab<Ffs>, ExperimentError> {
    testbed::laboratory(volume, MACHINE, DRIVE, alloc96::EPOCH_NS)
}
