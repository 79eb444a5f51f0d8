//! Random operations on a live file system and on a reference of maps and vectors, on small disks that fill up: every
//! block and fragment size, both formats and byte orders, every policy. After each run everything is counted anew, the
//! image is written out, checked by fsck, read back by the reader, compared, and mounted again.
//!
//! `FSAGE_FFS_MODEL_OPERATIONS=1000000 cargo test --release -p fsage-ffs --test it live_model::` runs more of them per
//! case.

use crate::live::{every_case, run_all};
use ffs::mkfs::{MkfsOptions, mkfs};
use ffs::{Ffs, MemoryStore, Version};

fn operations(usual: u64) -> u64 {
    testkit::parameter("FSAGE_FFS_MODEL_OPERATIONS").unwrap_or(usual)
}

#[test]
fn structures_agree_with_a_reference() {
    let (done, full) = run_all(every_case(false), operations(4_500), (3, 50_000), false);
    println!("{done} operations, {full} of them out of space");
    assert!(full > 100, "disks must fill up for this to be a test");
}

#[test]
fn bytes_agree_with_a_reference() {
    let (done, full) = run_all(every_case(true), operations(800), (3, 50_000), false);
    println!("{done} operations, {full} of them out of space");
}

#[test]
fn a_new_file_system_is_what_mkfs_makes() {
    for (number, case) in every_case(false).into_iter().enumerate() {
        let options = MkfsOptions { lost_found: number % 2 == 1, label: "new".into(), time_s: 77, ..case.mkfs };
        let blank = || MemoryStore(vec![0; options.size_bytes as usize]);
        let (mut made, mut stored) = (blank(), blank());
        mkfs(&mut made, &options).unwrap();
        let volume = Ffs::format(&options, case.options).unwrap();
        assert!(volume.check().is_empty());
        volume.store(&mut stored, None).unwrap();
        // What fsck finds copies by in the boot area is not of the file system's structures.
        let home = if options.version == Version::Ufs2 { 65536 - 512..65536 } else { 0..0 };
        stored.0[home.clone()].copy_from_slice(&made.0[home]);
        let differs = made.0.iter().zip(&stored.0).position(|(made, stored)| made != stored);
        assert_eq!(differs, None, "{options:?}");
    }
}
