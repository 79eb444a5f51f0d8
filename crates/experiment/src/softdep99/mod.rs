//! McKusick and Ganger, *Soft Updates: A Technique for Eliminating Most Synchronous Writes in the Fast Filesystem*,
//! USENIX 1999.

pub(crate) mod crash;
pub(crate) mod fsck;
pub(crate) mod noorder;
pub(crate) mod recovery;
pub(crate) mod softdep;

use crate::testbed;
use crate::{ExperimentError, alloc96};
use ffs::mkfs::MkfsOptions;
use ffs::{Ffs, Version};
use kernel::Lab;

/// The computer: that of `jvsu00`, which measured the same systems a year later.
pub const MACHINE: &str = "pentium3-500";
/// Its disk.
pub const DRIVE: &str = "st39102lw-uw";
/// Bytes of the file system. Estimate: not published.
pub const SIZE_BYTES: u64 = 1 << 30;

/// Blocks of 8 KB in fragments of 1 KB, as the published sizes imply; the rest is newfs's of the time.
fn mkfs_options() -> MkfsOptions {
    MkfsOptions { maxcontig: Some(8), ..MkfsOptions::new(Version::Ufs1, SIZE_BYTES) }
}

/// An empty file system, allocating and writing as `words` of a target say; with a log as large as is usual where the
/// mode needs one.
///
/// # Errors
/// A word that is none.
pub fn file_system(words: &str) -> Result<Ffs, ExperimentError> {
    let policy = alloc96::policy(words)?;
    let mut volume = Ffs::format(&mkfs_options(), policy)?;
    if policy.integrity.has_log() {
        volume.make_log(None)?;
    }
    Ok(volume)
}

/// Puts a file system on the drive, under the kernel of the computer, with cold caches.
///
/// # Errors
/// It does not fit or cannot be mounted.
pub fn laboratory(volume: Ffs) -> Result<Lab<Ffs>, ExperimentError> {
    testbed::laboratory(volume, MACHINE, DRIVE, 915_148_800_000_000_000)
}
