//! Checks: the images that NetBSD wrote and new ones are clean, and damage is found.

use crate::common;
use lfs::MemoryStore;
use lfs::format::Superblock;
use lfs::fsck::{Report, fsck};
use lfs::mkfs::{MkfsOptions, mkfs};

fn check(bytes: Vec<u8>) -> Report {
    fsck(MemoryStore(bytes), &mut |_| true).unwrap()
}

#[test]
fn the_clean_image_is_clean() {
    let bytes = common::netbsd("clean");
    let report = check(bytes);
    assert!(report.is_clean(), "{:#?}", report.problems);
    assert_eq!(report.state(), "unmounted cleanly");
    assert_eq!((report.contents.files, report.contents.directories), (1, 2));
}

#[test]
fn the_crashed_image_is_clean_after_roll_forward() {
    let bytes = common::netbsd("crashed");
    let report = check(bytes);
    assert!(report.is_clean(), "{:#?}", report.problems);
    assert_eq!(report.state(), "not unmounted, 2 partial segments after the checkpoint");
    assert_eq!((report.contents.files, report.contents.directories), (2, 2));
}

#[test]
fn new_file_systems_are_clean() {
    for (size, options) in [
        (8 << 20, MkfsOptions { lost_found: true, ..MkfsOptions::new(8 << 20) }),
        (64 << 20, MkfsOptions { bsize: 16384, fsize: 2048, ibsize: Some(16384), ..MkfsOptions::new(64 << 20) }),
        (256 << 20, MkfsOptions { bsize: 4096, fsize: 1024, ssize: Some(32 << 10), ..MkfsOptions::new(256 << 20) }),
    ] {
        let mut store = MemoryStore(vec![0; size]);
        mkfs(&mut store, &options).unwrap();
        let sb = Superblock::decode(&store.0[8192..], 8192).unwrap();
        let report = check(store.0);
        assert!(report.is_clean(), "{:#?}", report.problems);
        let contents = report.contents;
        assert_eq!((contents.free_frags, contents.available_frags), (sb.bfree.into(), sb.avail.into()));
    }
}

/// Changes bytes at a place of the image.
type Damage = (&'static str, usize, &'static [u8]);

/// What each damage must be called. Places are those of the clean image: the ifile's blocks at fragments 157, 165 and
/// 173, inodes 2, 4 and 3 at 129, the root directory at 118, the first summary of segment 1 at 128.
const DAMAGES: [Damage; 18] = [
    ("version", (173 << 10) + 3 * 20, &[9]),
    ("inode", (173 << 10) + 3 * 20 + 4, &[116, 1]),
    ("pointer", (129 << 10) + 40, &[0xFF, 0xFF, 0xFF, 0x7F]),
    // Block 1 of the root directory, which has one block: found by the fuzzer.
    ("pointer", (129 << 10) + 44, &[46]),
    ("duplicate", (129 << 10) + 256 + 44, &[46]),
    ("over-superblock", (129 << 10) + 40, &[9, 0, 0, 0]),
    ("blocks", (129 << 10) + 104, &[2]),
    ("type", (129 << 10) + 128, &[0, 0]),
    ("links", (129 << 10) + 256 + 2, &[3]),
    ("no-name", (118 << 10) + 40 + 3, &[0, 8, 0]),
    ("dangling", (118 << 10) + 24, &[77]),
    ("dots", (118 << 10) + 12, &[3]),
    ("entry-type", (118 << 10) + 24 + 6, &[4]),
    ("free-list", (173 << 10) + 6 * 20 + 8, &[5, 0]),
    ("free-tail", (157 << 10) + 20, &[7, 0]),
    ("nbytes", 165 << 10, &[1]),
    ("clean", (165 << 10) + 12, &[4]),
    ("summary", (128 << 10) + 40, &[1]),
];

#[test]
fn damage_is_found() {
    let bytes = common::netbsd("clean");
    for (kind, at, new) in DAMAGES {
        let mut damaged = bytes.clone();
        damaged[at..at + new.len()].copy_from_slice(new);
        let report = check(damaged);
        let kinds: Vec<&str> = report.problems.iter().map(|p| p.kind).collect();
        assert!(kinds.contains(&kind), "{kind} at {at}: {:#?}", report.problems);
    }
}
