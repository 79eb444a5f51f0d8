//! Repairs where something is at its end: room on the disk, and links that can be counted.

use crate::lab::content;
use ffs::fsck::Report;
use ffs::mkfs::MkfsOptions;
use ffs::policy::Options;
use ffs::{Image, InsertOptions, Inserter, MemoryStore, Overlay, Search, Version, fsck, mkfs};
use std::path::Path;

const BSIZE: u32 = 8192;

fn made(options: MkfsOptions, tree: &Path) -> MemoryStore {
    let mut store = MemoryStore(vec![0; options.size_bytes as usize]);
    mkfs(&mut store, &MkfsOptions { time_s: 86_400, minfree: 0, ..options }).unwrap();
    inserted(store, tree, "/")
}

fn inserted(store: MemoryStore, from: &Path, to: &str) -> MemoryStore {
    let mut policy = Options::default();
    assert!(policy.set("root"));
    let mut inserter = Inserter::open(store, policy, 1_000_000_000_000_000_000).unwrap();
    inserter.insert(from, to.as_bytes(), InsertOptions::default(), &mut |_| true).unwrap();
    inserter.finish().unwrap().0
}

fn seen(store: &MemoryStore) -> Report {
    fsck(Overlay::new(&mut store.clone()), &mut |_| true).unwrap()
}

/// Fills a disk until no block is free.
fn full(mut store: MemoryStore, scratch: &Path) -> MemoryStore {
    for n in 0.. {
        let contents = seen(&store).contents;
        if contents.free_blocks == 0 {
            break;
        }
        let path = scratch.join("fill");
        // Indirect blocks need some too.
        let blocks = (contents.free_blocks * 9 / 10).max(1);
        std::fs::write(&path, vec![b'f'; blocks as usize * BSIZE as usize]).unwrap();
        store = inserted(store, &path, &format!("/fill{n}"));
    }
    store
}

fn inode_at(store: &MemoryStore, path: &str) -> usize {
    let image = Image::open(store.clone(), Search::Standard).unwrap();
    let (ino, _) = image.resolve(path.as_bytes()).unwrap();
    image.geometry().inode_at(ino).unwrap() as usize
}

/// Repairs; nothing may be left to do.
fn repaired(mut store: MemoryStore) -> (MemoryStore, Report) {
    let report = fsck(&mut store, &mut |_| true).unwrap();
    assert_eq!(report.unrepaired, 0, "{:?}", report.problems);
    let again = seen(&store);
    assert!(again.is_clean(), "{:?}", again.problems);
    (store, report)
}

/// Takes the name out of the entry with this name.
fn unname(store: &mut MemoryStore, name: &[u8]) {
    let at = store.0.windows(name.len() + 1).position(|w| w[..name.len()] == *name && w[name.len()] == 0).unwrap();
    store.0[at - 8..at - 4].fill(0);
}

fn options() -> MkfsOptions {
    MkfsOptions { bsize: BSIZE, fsize: 1024, ..MkfsOptions::new(Version::Ufs1, 6 << 20) }
}

/// A directory that leads to another's blocks gets copies: a file of 20,001 names has 40,002. Each pass set its count
/// to 32,767 and called it wrong again.
#[test]
fn no_file_keeps_more_names_than_can_be_counted() {
    let scratch = tempfile::tempdir().unwrap();
    let tree = scratch.path().join("t");
    std::fs::create_dir_all(tree.join("p")).unwrap();
    std::fs::create_dir(tree.join("q")).unwrap();
    std::fs::write(tree.join("p/a"), b"bytes").unwrap();
    for n in 0..20_000 {
        std::fs::hard_link(tree.join("p/a"), tree.join(format!("p/{n}"))).unwrap();
    }
    let mut store = made(MkfsOptions { size_bytes: 12 << 20, ..options() }, &tree);
    let (p, q) = (inode_at(&store, "/t/p"), inode_at(&store, "/t/q"));
    store.0.copy_within(p..p + 128, q);
    let (store, _) = repaired(store);
    let image = Image::open(store.clone(), Search::Standard).unwrap();
    let first = if p < q { "/t/p/a" } else { "/t/q/a" };
    assert_eq!(image.resolve(first.as_bytes()).unwrap().1.nlink, i16::MAX);
    assert_eq!(content(&store, first), b"bytes");
}

/// BSD's fsck makes `lost+found` of one fragment; here a whole block was asked for, and the file stayed without a name.
#[test]
fn fragments_are_room_for_lost_found() {
    let scratch = tempfile::tempdir().unwrap();
    let tree = scratch.path().join("t");
    std::fs::create_dir_all(tree.join("d")).unwrap();
    for n in 0..60 {
        std::fs::write(tree.join(format!("d/without-a-name-{n}")), format!("{n}")).unwrap();
    }
    let store = full(made(options(), &tree), scratch.path());
    let before = seen(&store).contents;
    assert!(before.free_blocks == 0 && before.free_in_part_blocks > 4, "{before:?}");
    let mut damaged = store;
    for n in 0..60 {
        unname(&mut damaged, format!("without-a-name-{n}").as_bytes());
    }
    let (store, report) = repaired(damaged);
    let saved = report.problems.iter().filter(|p| p.repair.as_deref() == Some("put into lost+found"));
    let mut found: Vec<Vec<u8>> =
        saved.map(|p| content(&store, &format!("/lost+found/#{:05}", p.ino.unwrap()))).collect();
    found.sort();
    let mut expected: Vec<Vec<u8>> = (0..60).map(|n| format!("{n}").into_bytes()).collect();
    expected.sort();
    assert_eq!(found, expected);
}

/// Seed 10181: of two files with the same fragments one lost them, for want of a whole block to copy them to.
#[test]
fn fragments_are_copied_to_fragments() {
    let scratch = tempfile::tempdir().unwrap();
    let tree = scratch.path().join("t");
    std::fs::create_dir(&tree).unwrap();
    for (name, fill) in [("first", b'1'), ("second", b'2')] {
        std::fs::write(tree.join(name), vec![fill; 2500]).unwrap();
    }
    // One more: it leaves 5 fragments of its block.
    std::fs::write(tree.join("third"), vec![b'3'; 2500]).unwrap();
    let mut store = full(made(options(), &tree), scratch.path());
    let before = seen(&store).contents;
    assert!(before.free_blocks == 0 && before.free_in_part_blocks > 3, "{before:?}");
    let (first, second) = (inode_at(&store, "/t/first"), inode_at(&store, "/t/second"));
    store.0.copy_within(first..first + 128, second);
    let (store, _) = repaired(store);
    for path in ["/t/first", "/t/second"] {
        assert_eq!(content(&store, path), [b'1'; 2500], "{path}");
    }
    assert_eq!(content(&store, "/t/third"), [b'3'; 2500]);
}

/// On a disk where not a fragment is free, an empty file that damage made a directory: each of eight passes said that
/// it had been filled.
#[test]
fn a_directory_of_nothing_is_cleared_where_there_is_no_room() {
    let scratch = tempfile::tempdir().unwrap();
    let tree = scratch.path().join("t");
    std::fs::create_dir(&tree).unwrap();
    for name in ["empty", "kept"] {
        std::fs::write(tree.join(name), b"").unwrap();
    }
    let mut store = full(made(MkfsOptions { fsize: BSIZE, ..options() }, &tree), scratch.path());
    assert_eq!(seen(&store).contents.free_frags, 0);
    let at = inode_at(&store, "/t/empty");
    store.0[at..at + 2].copy_from_slice(&0o040_755_u16.to_le_bytes());
    let (store, _) = repaired(store);
    assert_eq!(content(&store, "/t/kept"), b"");
    assert_eq!(content(&store, "/fill0")[..10], *b"ffffffffff");
}

/// No room for `lost+found`: what cannot be repaired is said once, and nothing else comes and goes with each pass.
#[test]
fn what_has_no_room_takes_no_inode() {
    let scratch = tempfile::tempdir().unwrap();
    let tree = scratch.path().join("t");
    std::fs::create_dir(&tree).unwrap();
    std::fs::write(tree.join("without-a-name"), b"bytes").unwrap();
    let mut store = full(made(MkfsOptions { fsize: BSIZE, ..options() }, &tree), scratch.path());
    unname(&mut store, b"without-a-name");
    let report = fsck(&mut store, &mut |_| true).unwrap();
    assert_eq!((report.problem_count, report.unrepaired), (1, 1), "{:?}", report.problems);
    let again = seen(&store);
    assert_eq!((again.problem_count, again.unrepaired), (1, 1), "{:?}", again.problems);
}

/// The root is a file, and there is no room for another: its inode was copied and stayed, and the two had the same
/// blocks.
#[test]
fn a_root_that_is_a_file_stays_one_where_there_is_no_room() {
    let scratch = tempfile::tempdir().unwrap();
    let tree = scratch.path().join("t");
    std::fs::create_dir(&tree).unwrap();
    std::fs::write(tree.join("file"), b"bytes").unwrap();
    let mut store = full(made(MkfsOptions { fsize: BSIZE, ..options() }, &tree), scratch.path());
    let root = inode_at(&store, "/");
    store.0[root..root + 2].copy_from_slice(&0o100_644_u16.to_le_bytes());
    // And its block is no directory's.
    let block = u32::from_le_bytes(store.0[root + 40..root + 44].try_into().unwrap()) as usize * BSIZE as usize;
    store.0[block..block + 512].fill(b'x');
    let report = fsck(&mut store, &mut |_| true).unwrap();
    assert!(
        report.unrepaired > 0 && !report.problems.iter().any(|p| p.kind == ffs::fsck::Finding::Duplicate),
        "{:?}",
        report.problems
    );
    let again = seen(&store);
    assert_eq!(again.problem_count, again.unrepaired, "{:?}", again.problems);
}
