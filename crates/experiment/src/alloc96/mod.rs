//! Smith and Seltzer, *A Comparison of FFS Disk Allocation Policies*, USENIX 1996: the allocator of 4.4BSD against
//! realloc, on a file system aged by ten months of a research group's home directories.
//!
//! What several of its experiments need, and those that came after it: the file system, the computer, the disk.

pub mod aged;
pub(crate) mod aggregate;
pub(crate) mod by_size;
pub(crate) mod hot_files;
pub(crate) mod old_machine;
pub mod replay;
pub(crate) mod sensitivity;
pub(crate) mod sequential;
pub(crate) mod workload;

use crate::{ExperimentError, Outcome, Study};
use aging::plan::alloc96::{DAYS, Parameters};
use ffs::mkfs::{DiskGeometry, GroupSize, MkfsOptions};
use ffs::policy::{LateWrites, Options};
use ffs::{Ffs, Version};
use kernel::Lab;

/// Bytes of the file system: 502 MB.
pub const SIZE_BYTES: u64 = 502 << 20;
/// The drive.
pub const DRIVE: &str = "st32430n";
/// The computer.
pub const MACHINE: &str = "pentium-120";
/// What is measured writes so.
const WRITES: &str = "metadata in order (conventional), late blocks one by one (blockwise)";
/// When the aging begins, nanoseconds since 1970: about the beginning of 1994. Only time stamps show it.
pub const EPOCH_NS: i64 = 757_382_400_000_000_000;

/// The published parameters: 502 MB, blocks of 8 KB in fragments of 1 KB, clusters of 7 blocks, no rotational gap, laid
/// out for 22 heads of 118 sectors, in 27 groups. What is not published is 4.4BSD's default: 10 % held back, eight
/// rotational positions, an inode for each 4 KB, 2,048 blocks of a file in a group.
pub fn mkfs_options() -> MkfsOptions {
    MkfsOptions {
        bsize: 8192,
        fsize: 1024,
        minfree: 10,
        maxcontig: Some(7),
        rotdelay: 0,
        disk: Some(DiskGeometry { heads: 22, sectors: 118, rpm: 5411, positions: POSITIONS }),
        // 27 groups are not a whole number of these cylinders each.
        group: Some(GroupSize::Fragments(19_040)),
        ..MkfsOptions::new(Version::Ufs1, SIZE_BYTES)
    }
}

/// Rotational positions of 4.4BSD's newfs (`NRPOS`); the study does not say how many its file system had.
pub const POSITIONS: u32 = 8;

/// The study's two file systems, by what a legend calls them. Metadata is written late while they are aged, which does
/// not change where anything goes.
pub(crate) const POLICIES: [(&str, &str); 2] = [("original", "original,noorder"), ("realloc", "realloc,noorder")];

/// The study's set-up.
pub const STUDY: Study = Study {
    name: "alloc96",
    shape: mkfs_options,
    machine: MACHINE,
    drive: DRIVE,
    // 4.4BSD's.
    late: LateWrites::Blockwise,
    days: DAYS,
    workload: Parameters::published,
    epoch_ns: EPOCH_NS,
};

/// An empty file system, allocating as `words` of a target say (`original,noorder`).
///
/// # Errors
/// A word that is none.
pub fn file_system(words: &str) -> Result<Ffs, ExperimentError> {
    STUDY.file_system(words)
}

/// Choices by their words.
pub(crate) fn policy(words: &str) -> Result<Options, ExperimentError> {
    let mut options = Options::default();
    match words.split(',').find(|word| !options.set(word)) {
        None => Ok(options),
        Some(word) => Err(ffs::FfsError::Options(format!("'{word}' is not a choice of the allocator")).into()),
    }
}

/// Puts a file system on the drive, under the kernel of the computer, with cold caches, after the 300 days.
///
/// # Errors
/// It does not fit or cannot be mounted.
pub fn laboratory(volume: Ffs) -> Result<Lab<Ffs>, ExperimentError> {
    STUDY.laboratory(volume)
}

/// What all of these experiments say of their set-up.
pub(crate) fn describe(outcome: &mut Outcome, days: u32) {
    outcome
        .parameter(
            "file system",
            "502 MB, blocks of 8 KB, fragments of 1 KB, 27 groups, maxcontig 7, rotdelay 0, 10 % reserve",
        )
        .parameter("workload", format!("{days} of 300 days (fsage plan alloc96)"));
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_file_system_has_the_published_shape() {
        let volume = file_system("original").unwrap();
        let g = volume.geometry();
        assert_eq!((g.ncg, g.bsize, g.frag), (27, 8192, 8));
        assert_eq!(volume.tuning().maxcontig, 7);
        assert_eq!(volume.tuning().dsize as u64 * 1024, aging::plan::alloc96::CAPACITY_BYTES);
        assert!(laboratory(volume).is_ok());
        assert!(policy("originally").is_err());
    }
}
