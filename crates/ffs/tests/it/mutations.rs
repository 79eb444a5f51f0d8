//! Seeded damage anywhere in the metadata: nothing panics, nothing hangs, and what is repaired is clean.
//!
//! A failing seed is printed; `FSAGE_FFS_SEEDS=FROM..TO` runs those seeds alone.

use crate::common::{makefs_sized, sample_tree};
use crate::lab;
use crate::mutate::{damage, metadata, seeds};
use ffs::format::ROOT_INO;
use ffs::mkfs::MkfsOptions;
use ffs::policy::Options;
use ffs::{Endian, Image, InsertOptions, Inserter, MemoryStore, Overlay, Search, Version, fsck, mkfs};
use rand_core::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::path::Path;
use testkit::{Tool, tool};

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

/// What loads can be written to: refused or done, without a panic.
fn copy_into(store: &MemoryStore, tree: &Path) {
    let Ok(mut inserter) = Inserter::open(store.clone(), Options::default(), 0) else { return };
    let _ = inserter.insert(tree, b"/", InsertOptions::default(), &mut |_| true);
    let _ = inserter.finish();
}

fn lines(report: &ffs::fsck::Report) -> String {
    let line = |p: &ffs::fsck::Problem| {
        format!("\n{:?} {} inode {:?}: {}: {:?}", p.phase, p.kind.word(), p.ino, p.message, p.repair)
    };
    report.problems.iter().map(line).collect()
}

fn run(name: &str, base: &MemoryStore, count: u64) {
    let places = metadata(base);
    let tree = tempfile::tempdir().unwrap();
    std::fs::write(tree.path().join("indirect"), vec![7; 70_000]).unwrap();
    std::fs::create_dir(tree.path().join("dir")).unwrap();
    for seed in seeds(count) {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut store = base.clone();
        damage(&mut store.0, &places, &mut random);
        println!("{name}, seed {seed}"); // Shown by the test harness if what follows fails.
        read_all(&mut store);
        copy_into(&store, tree.path());
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
    let Some(program) = tool(Tool::Makefs) else { return };
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
    let Some(program) = tool(Tool::Makefs) else { return };
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

/// Several kinds of damage at once to what the live file system has aged, some of it full.
#[test]
fn of_aged_images() {
    let cases = [
        (Version::Ufs1, Endian::Little, 4096, 512, "original,switch,bestfit,spread,conventional", false),
        (Version::Ufs2, Endian::Big, 4096, 1024, "realloc,metaspace,smartfrags,dirpref,noorder", true),
        (Version::Ufs1, Endian::Big, 8192, 8192, "realloc,noswitch,bestfit,dirpref,noorder", true),
        (Version::Ufs2, Endian::Little, 8192, 1024, "realloc,switch,smartfrags,spread,conventional", false),
    ];
    for (seed, (version, endian, bsize, fsize, words, fill)) in (1..).zip(cases) {
        let options = MkfsOptions { bsize, fsize, endian, density: Some(4096), ..MkfsOptions::new(version, 3 << 20) };
        let mut store = MemoryStore(vec![0; 3 << 20]);
        mkfs(&mut store, &options).unwrap();
        let aged = lab::age(store, words, 500, fill, seed);
        run(&format!("{version}, {endian:?}, {words}"), &aged.store, 40);
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
