//! What NetBSD's fsck_lfs, kernel and cleaner would say of images, worked out from their bytes by a parser that shares
//! nothing with this crate: of the two that NetBSD's kernel wrote, and of ours in every geometry, empty, with files,
//! after long use with the cleaner, full, and not unmounted. `FSAGE_LFS_NETBSD_STEPS` sets how long.

pub mod passes;
pub mod raw;

use crate::common;
use crate::live;
use crate::trees;
use lfs::mkfs::{MkfsOptions, mkfs};
use lfs::{Checkpoint, Image, InsertOptions, Inserter, LfsError, MemoryStore, Options};
use passes::{Writer, complaints};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// Later than anything in the images.
const DATE_NS: i64 = 1_900_000_000_000_000_000;

#[track_caller]
fn accepted(name: &str, disk: &[u8], writer: Writer) {
    let found = complaints(disk, writer);
    assert!(found.is_empty(), "{name}: {} complaints:\n{}", found.len(), found[..found.len().min(20)].join("\n"));
}

#[test]
fn images_that_netbsd_wrote() {
    for name in ["clean", "crashed"] {
        let image = common::netbsd(name);
        accepted(name, &image, Writer::Other);
    }
}

/// Any image of ours, named by `FSAGE_LFS_IMAGE`; a new one usually.
#[test]
fn an_image_that_is_asked_for() {
    let path = std::env::var_os("FSAGE_LFS_IMAGE");
    let bytes = path.as_ref().map_or_else(
        || {
            let options = MkfsOptions::new(8 << 20);
            let mut store = MemoryStore(vec![0; 8 << 20]);
            mkfs(&mut store, &options).unwrap();
            store.0
        },
        |path| std::fs::read(path).unwrap(),
    );
    accepted(&format!("{path:?}"), &bytes, Writer::Ours);
}

/// The parser above can find something: damage anywhere in what is in use is complained about.
#[test]
fn damage_is_complained_about() {
    let image = common::netbsd("clean");
    let disk = raw::Disk::open(&image, raw::Superblock(&image[8192..8704])).unwrap();
    let (root, usage) = (disk.byte(disk.entry(2).daddr), disk.byte(disk.sb.idaddr()));
    let mut places = vec![8192 + 36, 8192 + 68, 8192 + 228, 16384, 16384 + 12, 16384 + 36, root + 2, usage + 104];
    places.extend((0..64).map(|n| (n * 131) % 512 + 8192).filter(|at| (8192..8192 + 380).contains(at)));
    for at in places {
        let mut damaged = image.clone();
        damaged[at as usize] ^= 0x5a;
        // A parser that runs off the disk has found it too.
        let found = std::panic::catch_unwind(|| complaints(&damaged, Writer::Other));
        assert!(found.is_err() || found.is_ok_and(|found| !found.is_empty()), "byte {at}");
    }
}

/// Block, fragment and segment sizes.
fn geometries() -> Vec<MkfsOptions> {
    let shapes = [(4096, 512), (4096, 4096), (8192, 1024), (8192, 8192), (16384, 2048), (32768, 4096), (32768, 8192)];
    let mut all = Vec::new();
    for (bsize, fsize) in shapes {
        for (size_bytes, ssize) in [(8 << 20, None), (24 << 20, Some(16 * bsize)), (40 << 20, Some(1 << 20))] {
            all.push(MkfsOptions { bsize, fsize, ssize, lost_found: ssize.is_some(), ..MkfsOptions::new(size_bytes) });
        }
    }
    // So many segments that the usage table has indirect blocks, and the first checkpoint several segments.
    all.push(MkfsOptions { bsize: 4096, fsize: 512, ssize: Some(36 << 10), ..MkfsOptions::new(96 << 20) });
    all.push(MkfsOptions { ibsize: Some(8192), ..MkfsOptions::new(16 << 20) });
    all
}

#[test]
fn new_file_systems_of_every_geometry() {
    let mut made = 0;
    for options in geometries() {
        let mut store = MemoryStore(vec![0; options.size_bytes as usize]);
        // Large blocks want large segments; what cannot be made is not asked for.
        if mkfs(&mut store, &options).is_err() {
            continue;
        }
        made += 1;
        accepted(&format!("{options:?}"), &store.0, Writer::Ours);
        let sb = raw::Superblock(&store.0[8192..8704]);
        // lfs_cleanerd takes the one for the other.
        assert!(options.ibsize.is_some() || sb.ibsize() == sb.sumsize());
    }
    println!("{made} geometries");
    assert!(made > 15, "{made}");
}

fn copied(store: MemoryStore, from: &Path, to: &str) -> MemoryStore {
    copied_at(store, from, to, DATE_NS)
}

fn copied_at(store: MemoryStore, from: &Path, to: &str, date_ns: i64) -> MemoryStore {
    let mut inserter = Inserter::open(store, Options::default(), date_ns).unwrap();
    inserter.insert(from, to.as_bytes(), InsertOptions::default(), &mut |_| true).unwrap();
    inserter.finish().unwrap().0
}

#[test]
fn with_files_copied_in() {
    let scratch = tempfile::tempdir().unwrap();
    let from = scratch.path().join("from");
    trees::sample_tree(&from, 8192);
    for options in geometries().into_iter().filter(|options| options.size_bytes > 8 << 20).step_by(2) {
        let mut store = MemoryStore(vec![0; options.size_bytes as usize]);
        if mkfs(&mut store, &options).is_err() {
            continue;
        }
        let store = copied(copied(store, &from.join("."), "/"), &from, "/again");
        accepted(&format!("{options:?}"), &store.0, Writer::Ours);
    }
}

/// Every path with mode, links, size and content.
fn names(store: &MemoryStore) -> BTreeMap<Vec<u8>, (u16, u64, Vec<u8>)> {
    let mut image = Image::open(store.clone(), Checkpoint::Newer).unwrap();
    image.roll_forward().unwrap();
    let mut names = BTreeMap::new();
    image
        .walk(lfs::format::ROOT_INO, &mut |path, ino, inode| {
            let mut content = vec![0; inode.size as usize];
            let target = inode.file_type() == Some(lfs::format::FileType::Symlink);
            if target {
                content = image.symlink(ino, inode)?;
            } else if !inode.is_dir() {
                image.data(ino, inode, &mut |at, bytes| {
                    content[at as usize..at as usize + bytes.len()].copy_from_slice(bytes);
                    Ok(())
                })?;
            }
            if !inode.is_dir() {
                names.insert(path.to_vec(), (inode.mode, inode.size, content));
            }
            Ok(())
        })
        .unwrap();
    names
}

/// Both images, the crashed one rolled forward to its synced file first: what NetBSD has written stays as it is.
#[test]
fn with_files_copied_into_images_of_netbsd() {
    let scratch = tempfile::tempdir().unwrap();
    let from = scratch.path().join("from");
    trees::sample_tree(&from, 8192);
    for name in ["clean", "crashed"] {
        let image = common::netbsd(name);
        let before = names(&MemoryStore(image.clone()));
        let store = copied(MemoryStore(image), &from, "/from");
        accepted(name, &store.0, Writer::Other);
        let after = names(&store);
        assert!(!before.is_empty() && before.iter().all(|(path, file)| after.get(path) == Some(file)), "{name}");
        let out = scratch.path().join(name);
        let image = Image::open(store, Checkpoint::Newer).unwrap();
        lfs::extract(&image, b"/from", &out, lfs::ExtractOptions { owners: false, special: true }, &mut |_| true)
            .unwrap();
        assert_eq!(trees::tree(&out), trees::tree(&from), "{name}");
    }
}

/// A process that is killed while it copies, and a disk that is full: what was there before is there, whichever
/// checkpoint is taken, and the next mount goes on from what the log has.
#[test]
fn a_copy_that_ends_early_loses_nothing() {
    let scratch = tempfile::tempdir().unwrap();
    let from = scratch.path().join("from");
    trees::sample_tree(&from, 8192);
    std::fs::write(from.join("zz large"), vec![5; 8 << 20]).unwrap();
    let mut store = MemoryStore(vec![0; 8 << 20]);
    mkfs(&mut store, &MkfsOptions::new(8 << 20)).unwrap();
    let base = copied(store, &from.join("dir"), "/before");
    let before = names(&base);
    for stop in [1, 5, 30, 90, u64::MAX] {
        let disk = Arc::new(Mutex::new(base.clone()));
        let mut inserter = Inserter::open(disk.clone(), Options::default(), DATE_NS).unwrap();
        let options = InsertOptions::default();
        let ended = inserter.insert(&from, b"/after", options, &mut |done| done.files < stop).unwrap_err();
        let full = matches!(ended, LfsError::Full { .. });
        assert!(full == (stop == u64::MAX), "{stop}: {ended}");
        // Killed: nothing is unmounted.
        let killed = disk.lock().unwrap().clone();
        accepted(&format!("stopped after {stop}"), &killed.0, Writer::Ours);
        let report = lfs::fsck(killed.clone(), &mut |_| true).unwrap();
        assert!(report.is_clean() && !report.marked_clean, "{stop}: {:?}", report.problems);
        let again = copied(killed, &from.join("one"), "/again");
        accepted(&format!("gone on with after {stop}"), &again.0, Writer::Ours);
        let after = names(&again);
        assert!(before.iter().all(|(path, file)| after.get(path) == Some(file)), "{stop}: something is lost");
        // Or it is ended in order.
        drop(inserter.finish());
        let ended = disk.lock().unwrap().clone();
        accepted(&format!("ended after {stop}"), &ended.0, Writer::Ours);
        let after = names(&ended);
        assert!(before.iter().all(|(path, file)| after.get(path) == Some(file)), "{stop}: something is lost");
    }
}

/// A clock that was turned back: roll-forward takes no partial segment that is older than its checkpoint
/// (`check_segsum`).
#[test]
fn the_log_s_time_does_not_go_back() {
    let scratch = tempfile::tempdir().unwrap();
    let from = scratch.path().join("from");
    trees::sample_tree(&from, 8192);
    let options = MkfsOptions { time_s: 1_000_000, ..MkfsOptions::new(16 << 20) };
    let mut store = MemoryStore(vec![0; options.size_bytes as usize]);
    mkfs(&mut store, &options).unwrap();
    let made = raw::Superblock(&store.0[8192..8704]).tstamp();
    let store = copied_at(store, &from, "/", 5_000_000_000);
    accepted("copied in 1970", &store.0, Writer::Ours);
    let sb = raw::Superblock(&store.0[8192..8704]);
    assert_eq!((made, sb.tstamp()), (1_000_000, 1_000_000));
}

fn steps(usual: u64) -> u64 {
    testkit::parameter("FSAGE_LFS_NETBSD_STEPS").unwrap_or(usual)
}

/// Disks that are full most of the time, with every policy of the cleaner: as they are when nobody has unmounted them,
/// by the older checkpoint, and unmounted.
#[test]
fn after_long_use_with_the_cleaner() {
    let mut plugged = 0;
    for (n, mut case) in live::cases(true).into_iter().enumerate() {
        // Every other one empties segments into the holes of others long before the disk is full.
        if n % 2 == 1 {
            assert!(case.options.set("plug=40"));
        }
        let mut run = live::Run::new(case.clone());
        for step in 0..steps(900) {
            run.step();
            if step % 150 == 149 {
                accepted(&format!("{case:?}, after {step}, mounted"), &run.snapshot().0, Writer::Ours);
            }
        }
        plugged += run.volume().counters().cleaner.plugged_blocks;
        accepted(&format!("{case:?}"), &run.disk().0, Writer::Ours);
    }
    assert!(plugged > 0);
}

/// Seed 0 of a disk of which segments are emptied into holes all the time: an indirect block moved, and what is above
/// it still led to its old place after the checkpoint.
#[test]
fn what_is_above_an_indirect_block_that_leaves_for_holes_is_written_too() {
    let mut case = live::cases(true).into_iter().find(|case| case.seed == 1011).unwrap();
    assert!(case.options.set("plug=1") && case.options.set("cleaner=greedy"));
    case.seed = 0;
    let mut run = live::Run::new(case);
    for step in 0..1150 {
        run.step();
        if step % 50 == 49 {
            accepted(&format!("after {step}"), &run.snapshot().0, Writer::Ours);
        }
    }
}

/// Without a cleaner nothing is moved, into holes neither.
#[test]
fn without_a_cleaner_no_holes_are_plugged() {
    let mut case = live::cases(true).into_iter().find(|case| case.seed == 1011).unwrap();
    assert!(case.options.set("plug=1") && case.options.set("cleaner=off"));
    let mut run = live::Run::new(case);
    (0..900).for_each(|_| run.step());
    assert_eq!(run.volume().counters().cleaner.plugged_blocks, 0);
}
