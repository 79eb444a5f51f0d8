//! File systems that are sound are found so: those of other systems, those of makefs, and our own.

use crate::common::{foreign_images, makefs, sample_tree};
use ffs::fsck::{Problem, Report};
use ffs::mkfs::{DiskGeometry, GroupSize, MkfsOptions};
use ffs::{Endian, FileStore, Image, MemoryStore, Overlay, Search, Version, fsck, mkfs};
use std::fs::File;
use std::path::Path;
use testkit::{Tool, tool};

fn check(path: &Path) -> Report {
    fsck(Overlay::new(FileStore::new(File::open(path).unwrap()).unwrap()), &mut |_| true).unwrap()
}

#[test]
fn images_of_other_systems() {
    let scratch = tempfile::tempdir().unwrap();
    for (name, path, _) in foreign_images(scratch.path()) {
        let report = check(&path);
        assert_eq!(report.problems, Vec::<Problem>::new(), "{name}");
        assert!(report.contents.files > 5 && report.contents.directories >= 3, "{name}: {:?}", report.contents);
    }
}

#[test]
fn images_by_makefs() {
    let Some(program) = tool(Tool::Makefs) else { return };
    let scratch = tempfile::tempdir().unwrap();
    for (block, fragment) in [(4096, 512), (8192, 1024), (16384, 16384), (32768, 4096), (65536, 8192)] {
        let from = scratch.path().join(format!("tree{block}"));
        sample_tree(&from, block as usize);
        for (version, endian) in [(1, "le"), (1, "be"), (2, "le"), (2, "be")] {
            let path = scratch.path().join("made.img");
            makefs(&program, &path, &from, version, endian, block, fragment);
            let report = check(&path);
            assert_eq!(report.problems, Vec::<Problem>::new(), "{block}/{fragment}, version {version}, {endian}");
            assert_eq!((report.contents.files, report.contents.directories), (134, 4));
            std::fs::remove_file(&path).unwrap();
        }
    }
}

#[test]
fn what_mkfs_makes_in_every_size() {
    let mut made = 0;
    for version in [Version::Ufs1, Version::Ufs2] {
        for (bshift, parts) in (12..=16).flat_map(|b| [1, 2, 4, 8].map(|p| (b, p))) {
            for (n, endian) in [Endian::Little, Endian::Big].into_iter().enumerate() {
                let (bsize, size) = (1_u32 << bshift, (24 << 20) + 777 * (n as u64 + 1) * 1024);
                let mut options =
                    MkfsOptions { bsize, fsize: bsize / parts, endian, ..MkfsOptions::new(version, size) };
                if bsize / parts < 512 {
                    continue;
                }
                options.lost_found = n == 1;
                options.maxcontig = (parts == 4).then_some(1);
                let mut store = MemoryStore(vec![0xA5; size as usize]);
                let created = mkfs(&mut store, &options).unwrap();
                let before = store.clone();
                let report = fsck(&mut store, &mut |_| true).unwrap();
                assert_eq!(report.problems, Vec::<Problem>::new(), "{options:?}");
                assert!(store == before, "a clean file system is left alone");
                assert_eq!((report.contents.files, report.contents.directories), (0, 1 + n as u64));
                assert_eq!(
                    (report.endian, report.version, report.superblock_at),
                    (endian, version, created.superblock_at)
                );
                made += 1;
            }
        }
    }
    assert_eq!(made, 80);
}

#[test]
fn what_mkfs_makes_for_a_disk_of_heads_and_tracks() {
    // The layout geometry of the drive of alloc96, and its number of blocks of a cluster.
    let disk = DiskGeometry { heads: 22, sectors: 118, rpm: 5411, positions: 8 };
    let options = MkfsOptions {
        disk: Some(disk),
        group: Some(GroupSize::Cylinders(16)),
        maxcontig: Some(7),
        rotdelay: 4,
        ..MkfsOptions::new(Version::Ufs1, 100 << 20)
    };
    let mut store = MemoryStore(vec![0; 100 << 20]);
    let made = mkfs(&mut store, &options).unwrap();
    assert_eq!((made.fpg, made.groups), (16 * 22 * 118 / 2, 5));
    assert_eq!(fsck(&mut store, &mut |_| true).unwrap().problems, Vec::<Problem>::new());
    let mut again = MemoryStore(vec![0; 100 << 20]);
    mkfs(&mut again, &options).unwrap();
    assert!(store == again, "same options, same bytes");
    mkfs(&mut again, &MkfsOptions { seed: 2, ..options }).unwrap();
    assert!(store != again, "another seed, another identity");
}

#[test]
fn options_that_make_no_file_system() {
    let mut store = MemoryStore(vec![0; 1 << 20]);
    let base = MkfsOptions::new(Version::Ufs1, 1 << 20);
    let tries = [
        (MkfsOptions { bsize: 5000, ..base.clone() }, "power of two"),
        (MkfsOptions { fsize: 512, ..base.clone() }, "fragment size"),
        (MkfsOptions { size_bytes: 2 << 20, ..base.clone() }, "does not fit"),
        (MkfsOptions { size_bytes: 30_000, ..base.clone() }, "too few"),
        (MkfsOptions { ipg: Some(1 << 20), ..base.clone() }, "too few"),
        (MkfsOptions { group: Some(GroupSize::Cylinders(16)), ..base.clone() }, "geometry"),
        (MkfsOptions { group: Some(GroupSize::Fragments(1001)), ..base.clone() }, "multiple"),
        (MkfsOptions { group: Some(GroupSize::Fragments(1 << 20)), ..base.clone() }, "maps need"),
        (MkfsOptions { label: "x".repeat(32), ..base.clone() }, "label"),
        (MkfsOptions { minfree: 100, ..base.clone() }, "minfree"),
        (MkfsOptions { rotdelay: 4, ..MkfsOptions::new(Version::Ufs2, 1 << 20) }, "UFS1 only"),
    ];
    for (options, expected) in tries {
        let error = mkfs(&mut store, &options).unwrap_err().to_string();
        assert!(error.contains(expected), "{error:?} should say {expected:?}");
    }
}

/// Asked for the same, mkfs and makefs lay out the same: every field of the superblock and of a group's header, but for
/// what the two hold and when they were made, and fields that makefs leaves empty.
#[test]
fn the_layout_is_that_of_makefs() {
    let Some(program) = tool(Tool::Makefs) else { return };
    let scratch = tempfile::tempdir().unwrap();
    let (from, path) = (scratch.path().join("tree"), scratch.path().join("made.img"));
    std::fs::create_dir(&from).unwrap();
    for (block, fragment) in [(4096, 1024), (8192, 1024), (16384, 16384), (65536, 8192)] {
        makefs(&program, &path, &from, 1, "le", block, fragment);
        let theirs = Image::open(MemoryStore(std::fs::read(&path).unwrap()), Search::Standard).unwrap();
        let g = *theirs.geometry();
        let options = MkfsOptions {
            bsize: block,
            fsize: fragment,
            group: Some(GroupSize::Fragments(g.fpg)),
            ipg: Some(g.ipg),
            minfree: theirs.superblock().minfree as u32,
            maxcontig: Some(theirs.superblock().maxcontig as u32),
            maxbpg: Some(theirs.superblock().maxbpg as u32),
            ..MkfsOptions::new(Version::Ufs1, g.size_frags << g.fshift)
        };
        let mut store = MemoryStore(vec![0; options.size_bytes as usize]);
        mkfs(&mut store, &options).unwrap();
        let ours = Image::open(store, Search::Standard).unwrap();
        let differing = |a: Vec<ffs::format::Field>, b: Vec<ffs::format::Field>| -> Vec<String> {
            let both = a.into_iter().zip(b).filter(|(a, b)| a.value != b.value);
            both.map(|(a, b)| format!("{} {} {}", a.name, a.value, b.value)).collect()
        };
        let mut fields = differing(theirs.superblock().fields(), ours.superblock().fields());
        let free = [
            "old_time ",
            "id ",
            "old_cstotal ",
            "providersize ",
            "sblockactualloc ",
            "cstotal ",
            "time ",
            "mtime ",
            "spare2 ",
        ];
        fields.retain(|field| !free.iter().any(|name| field.starts_with(name)));
        assert_eq!(fields, Vec::<String>::new(), "superblock, {block}/{fragment}");
        for c in (0..g.ncg).map(ffs::GroupNo) {
            let mut fields = differing(theirs.group(c).unwrap().fields(), ours.group(c).unwrap().fields());
            fields.retain(|field| {
                !["old_time ", "time ", "cs ", "frsum ", "rotor ", "frotor ", "irotor "]
                    .iter()
                    .any(|n| field.starts_with(n))
            });
            assert_eq!(fields, Vec::<String>::new(), "group {c}, {block}/{fragment}");
        }
    }
}
