//! The set-up of chapter 3: a file system of about 1 GB on a Fujitsu M2694 and a Pentium, with some seven months of
//! home directories.
//!
//! That is all that is known of it to us. The rest is that of the study by the same authors ([`alloc96`]), in
//! proportion to the size, and what newfs of 4.4BSD makes of such a drive; [`unknown`] changes one such thing at a
//! time.

use super::changed::Change;
use crate::{Bench, ExperimentError, Study, alloc96};
use aging::plan::alloc96::{DAYS, Parameters};
use ffs::Ffs;
use ffs::mkfs::{DiskGeometry, GroupSize, MkfsOptions};
use ffs::policy::LateWrites;

/// Seven months. The workload's first days, and not all of its 300 made shorter: what happens in a day stays as it is.
const SEVEN_MONTHS: u32 = 210;
/// What newfs makes of the file system.
const GROUPS: u32 = 114;
const LARGE_GROUPS: u32 = 56;
/// As many for each byte as in alloc96, whose 600 are an estimate.
const DIRECTORIES: u32 = 1_234;

/// The thesis's set-up.
pub(super) const THESIS: Study = Study {
    name: "hbench01",
    shape,
    machine: alloc96::MACHINE,
    drive: "fujitsu-m2694",
    // 4.4BSD's.
    late: LateWrites::Blockwise,
    days: SEVEN_MONTHS,
    workload,
    epoch_ns: alloc96::EPOCH_NS,
};

/// In words, for what an experiment says of its parameters.
pub(super) const DESCRIBED: &str =
    "1 GB, blocks of 8 KB, fragments of 1 KB, 114 groups, maxcontig 7, rotdelay 0, 10 % reserve";

/// 1 GB, of newfs's 16 cylinders a group, laid out for as many whole sectors a track as the drive has on the mean;
/// otherwise as in alloc96.
fn shape() -> MkfsOptions {
    MkfsOptions {
        size_bytes: 1 << 30,
        disk: Some(DiskGeometry { heads: 15, sectors: 77, rpm: 5400, positions: alloc96::POSITIONS }),
        group: Some(GroupSize::Cylinders(16)),
        ..alloc96::mkfs_options()
    }
}

/// The workload of alloc96, in proportion to the size, with a directory for each group.
fn workload() -> Parameters {
    Parameters { groups: GROUPS, directories: DIRECTORIES, ..Parameters::published() }
}

/// An empty file system that tells one rotational position apart instead of eight, so that the next block of a file is
/// simply the next.
pub(super) fn with_one_position(words: &str) -> Result<Ffs, ExperimentError> {
    let shape = shape();
    let disk = shape.disk.map(|disk| DiskGeometry { positions: 1, ..disk });
    Ok(Ffs::format(&MkfsOptions { disk, ..shape }, alloc96::policy(words)?)?)
}

/// What is not known of the set-up, changed one at a time; at last the set-up of the earlier study.
pub(super) fn unknown(bench: &Bench<'_>) -> Vec<Change> {
    let study = |name, shape, workload| Study { name, shape, workload, ..THESIS };
    let directories =
        Change::to("600 directories, as in alloc96", study("hbench01, 600 directories", shape, of_few_directories));
    let others = [
        Change::to(
            "all of the curve of use in seven months",
            study("hbench01, all of the curve", shape, of_all_the_curve),
        ),
        Change::to(
            "56 groups, as large as those of alloc96",
            study("hbench01, large groups", in_large_groups, of_large_groups),
        ),
        Change::to("the set-up of alloc96", alloc96::STUDY),
    ];
    bench.sweep(None, None, Some(directories)).into_iter().chain(others).collect()
}

fn of_few_directories() -> Parameters {
    Parameters { directories: 600, ..workload() }
}

/// All of what is in use by the day, in less days: it ends as alloc96's does, and not at its fullest.
fn of_all_the_curve() -> Parameters {
    let mut parameters = workload();
    let faster = f64::from(SEVEN_MONTHS) / f64::from(DAYS);
    parameters.utilisation.iter_mut().for_each(|[day, _]| *day *= faster);
    parameters
}

/// In groups as large as those of alloc96.
fn in_large_groups() -> MkfsOptions {
    MkfsOptions { group: alloc96::mkfs_options().group, ..shape() }
}

fn of_large_groups() -> Parameters {
    Parameters { groups: LARGE_GROUPS, ..workload() }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use aging::plan::alloc96::CAPACITY_BYTES;
    use device::Drive;

    /// Each group has a directory, files are in proportion to the size, and all of it is on the drive.
    #[test]
    fn the_workload_is_for_this_file_system() {
        for (study, large) in
            [(THESIS, false), (Study { shape: in_large_groups, workload: of_large_groups, ..THESIS }, true)]
        {
            let volume = study.file_system("original").unwrap();
            let g = volume.geometry();
            let parameters = (study.workload)();
            assert_eq!((g.ncg, g.bsize, g.frag), (parameters.groups, 8192, 8), "{large}");
            let times = Study::planned_for(&volume).capacity_bytes as f64 / CAPACITY_BYTES as f64;
            let directories = f64::from(Parameters::published().directories) * times;
            assert!(
                (f64::from(parameters.directories) / directories - 1.0).abs() < 0.01,
                "{times} times: {directories}"
            );
            assert!(study.laboratory(volume).is_ok());
        }
        assert_eq!((alloc96::STUDY.workload)(), Parameters::published());
        assert!(Drive::find(THESIS.drive).unwrap().device().capacity_sectors() >= 1 << 21);
    }
}
