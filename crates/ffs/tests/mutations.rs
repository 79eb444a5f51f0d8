//! Seeded damage anywhere in the metadata: nothing panics, nothing hangs, and what is repaired is clean.
//!
//! A failing seed is printed; `FSAGE_FFS_SEEDS=FROM..TO` runs those seeds alone.

#![allow(clippy::unwrap_used)]

mod common;

use common::{makefs_sized, sample_tree, tool};
use ffs::format::ROOT_INO;
use ffs::mkfs::MkfsOptions;
use ffs::{FragAddr, GroupNo, Image, Ino, MemoryStore, Overlay, Search, Version, fsck, mkfs};
use rand_core::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::ops::Range;

/// Where an image's metadata is.
fn metadata(store: &MemoryStore) -> Vec<Range<usize>> {
    let image = Image::open(store.clone(), Search::Standard).unwrap();
    let g = *image.geometry();
    let at = |addr: FragAddr| g.byte_of(addr) as usize;
    let sb = image.superblock_at() as usize;
    let mut places = vec![sb..sb + 1376, sb + 1000..sb + 1376];
    for c in (0..g.ncg).map(GroupNo) {
        let group = at(g.group_block(c));
        places.push(group..group + 168);
        places.push(group..group + g.cgsize as usize);
        let inodes = at(g.group_inodes(c));
        let table = g.ipg as usize * g.layout.version.inode_bytes() as usize;
        places.push(inodes..inodes + table.min(40 * 256));
        places.push(inodes..inodes + table);
    }
    for ino in (2..g.inodes()).map(Ino) {
        let inode = image.inode(ino).unwrap();
        for pointer in inode.ib.iter().chain(inode.db.iter().filter(|_| inode.is_dir())).filter(|p| **p > 0) {
            let block = at(FragAddr(*pointer as u64));
            places.push(block..block + 512.min(g.bsize as usize));
        }
    }
    places
}

fn damage(bytes: &mut [u8], places: &[Range<usize>], random: &mut Xoshiro256PlusPlus) {
    let below = |n: usize, random: &mut Xoshiro256PlusPlus| (random.next_u64() % n.max(1) as u64) as usize;
    for _ in 0..1 + below(6, random) {
        let place = &places[below(places.len(), random)];
        let at = place.start + below(place.len(), random);
        let end = bytes.len();
        match below(6, random) {
            0 => bytes[at] ^= 1 << below(8, random),
            1 => bytes[at] = random.next_u32() as u8,
            2 => {
                let at = at / 4 * 4;
                let values = [0, 1, 2, 0x7FFF_FFFF, u32::MAX, random.next_u32() % 4096, random.next_u32()];
                bytes[at..at + 4].copy_from_slice(&values[below(values.len(), random)].to_le_bytes());
            }
            3 => {
                let n = below(200, random).min(end - at);
                bytes[at..at + n].fill([0, 0xFF][below(2, random)]);
            }
            4 => {
                // Metadata of one place in another.
                let from = places[below(places.len(), random)].start;
                let n = 256.min(end - at.max(from));
                bytes.copy_within(from..from + n, at);
            }
            _ => {
                // A pointer, a size or a number of one structure in another.
                let from = places[below(places.len(), random)].clone();
                let from = (from.start + below(from.len(), random)) / 4 * 4;
                let n = 8.min(end - at.max(from));
                bytes.copy_within(from..from + n, at / 4 * 4);
            }
        }
    }
}

/// Reads everything that can be read.
fn read_all(store: &mut MemoryStore) {
    let Ok(image) = Image::open(store, Search::Copies) else { return };
    let _ = image.dump_superblock();
    let _ = image.dump_groups();
    let _ = image.dump_free();
    let mut data_bytes = 0_u64;
    let _ = image.walk(ROOT_INO, &mut |_, ino, inode| {
        let _ = image.symlink(ino, inode);
        let _ = image.dump_inode(ino);
        let _ = image.data(ino, inode, &mut |_, bytes| {
            data_bytes += bytes.len() as u64;
            Ok(())
        });
        Ok(())
    });
}

fn lines(report: &ffs::fsck::Report) -> String {
    let line =
        |p: &ffs::fsck::Problem| format!("\n{:?} {} inode {:?}: {}: {:?}", p.phase, p.kind, p.ino, p.message, p.repair);
    report.problems.iter().map(line).collect()
}

fn seeds(usual: u64) -> Range<u64> {
    let Ok(text) = std::env::var("FSAGE_FFS_SEEDS") else { return 0..usual };
    let (from, to) = text.split_once("..").unwrap();
    from.parse().unwrap()..to.parse().unwrap()
}

fn run(name: &str, base: &MemoryStore, count: u64) {
    let places = metadata(base);
    for seed in seeds(count) {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut store = base.clone();
        damage(&mut store.0, &places, &mut random);
        println!("{name}, seed {seed}"); // Shown by the test harness if what follows fails.
        read_all(&mut store);
        let Ok(report) = fsck(&mut store, &mut |_| true) else { continue };
        if report.unrepaired > 0 {
            continue;
        }
        let again = fsck(Overlay::new(&mut store), &mut |_| true).unwrap();
        assert!(again.is_clean(), "seed {seed}: {}\nafter {}", lines(&again), lines(&report));
        let image = Image::open(store, Search::Standard).unwrap();
        image.walk(ROOT_INO, &mut |_, ino, inode| image.data(ino, inode, &mut |_, _| Ok(()))).unwrap();
    }
}

#[test]
fn of_images_with_files() {
    let Some(program) = tool("makefs") else { return };
    let scratch = tempfile::tempdir().unwrap();
    let from = scratch.path().join("tree");
    sample_tree(&from, 4096);
    for (version, endian) in [(1, "le"), (2, "be"), (2, "le"), (1, "be")] {
        let path = scratch.path().join("base.img");
        makefs_sized(&program, &path, &from, "3m", &format!("version={version},bsize=4096,fsize=512"), endian);
        let base = MemoryStore(std::fs::read(&path).unwrap());
        run(&format!("version {version}, {endian}"), &base, 40);
    }
}

/// Where hardly a block or an inode is free, repairs that need one are not made, and say so.
#[test]
fn of_nearly_full_images() {
    let Some(program) = tool("makefs") else { return };
    let scratch = tempfile::tempdir().unwrap();
    let (from, path) = (scratch.path().join("tree"), scratch.path().join("base.img"));
    sample_tree(&from, 4096);
    // The smallest that takes the files.
    let smallest = (1000..3000).step_by(32).find(|kib| {
        let fixed = ["-t", "ffs", "-o", "version=1,bsize=4096,fsize=512,minfree=0", "-f", "0", "-b", "0", "-B", "le"];
        let mut command = std::process::Command::new(&program);
        command.args(fixed).args(["-s", &format!("{kib}k")]).arg(&path).arg(&from);
        command.output().unwrap().status.success()
    });
    assert!(smallest.is_some());
    run("full", &MemoryStore(std::fs::read(&path).unwrap()), 80);
}

#[test]
fn of_empty_images_with_many_groups() {
    for version in [Version::Ufs1, Version::Ufs2] {
        let mut base = MemoryStore(vec![0; 2 << 20]);
        let options = MkfsOptions {
            bsize: 4096,
            fsize: 512,
            group: Some(ffs::mkfs::GroupSize::Fragments(512)),
            ipg: Some(64),
            lost_found: true,
            ..MkfsOptions::new(version, 2 << 20)
        };
        mkfs(&mut base, &options).unwrap();
        run(&format!("{version:?}"), &base, 150);
    }
}

#[test]
fn of_noise() {
    for seed in seeds(50) {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut store = MemoryStore(vec![0; 300_000]);
        store.0.fill_with(|| random.next_u32() as u8);
        // The magic, so that something looks at the rest.
        store.0[8192 + 1372..8192 + 1376].copy_from_slice(&0x0001_1954_u32.to_le_bytes());
        read_all(&mut store);
        let _ = fsck(&mut store, &mut |_| true);
    }
}
