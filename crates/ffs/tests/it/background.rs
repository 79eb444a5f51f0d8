//! The check in the background: a file system of Soft Updates that has crashed is used at once, and what the crash has left is given back
//! meanwhile.
//!
//! `FSAGE_BACKGROUND_SEEDS=20 cargo test -p fsage-ffs --test it -- background::` looks at more.

use crate::lab::Ager;
use crate::snapshot::disk;
use device::crash::{Crash, Event, Plan, Write};
use ffs::fsck::Left;
use ffs::{Endian, FileType, Image, MemoryStore, Overlay, Search, Store, Version, check_in_background, fsck};
use kernel::LogEntry;
use std::collections::{BTreeMap, BTreeSet};

const NOW_NS: i64 = 820_000_100_000_000_000;

/// What a log of the laboratory says to an engine of crashes.
fn events(log: Vec<LogEntry>) -> Vec<Event> {
    let event = |entry| match entry {
        LogEntry::Write(write) => Some(Event::Write(Write {
            at_byte: write.pbn.bytes(),
            bytes: write.contents.unwrap().into(),
            submitted_after: write.submitted_after,
            durable: write.durable,
        })),
        LogEntry::Flush { submitted_after, .. } => Some(Event::Flush { submitted_after }),
        LogEntry::Discard { .. } => None,
    };
    log.into_iter().filter_map(event).collect()
}

/// Bytes of what a crash has left.
fn bytes(disk: &dyn Store) -> MemoryStore {
    let mut bytes = vec![0; disk.len_bytes() as usize];
    disk.read_at(0, &mut bytes).unwrap();
    MemoryStore(bytes)
}

/// Every `of`-th state that a crash may leave while an ager works under Soft Updates, with its name.
fn crashed(seed: u64, shape: (Version, Endian, u32, u32), of: u32, each: &mut dyn FnMut(&str, MemoryStore)) {
    let (version, endian, bsize, fsize) = shape;
    let before = disk(version, endian, bsize, fsize, 3 << 20);
    let (mut ager, disk) = Ager::start(before, "realloc,softdep", seed, None);
    (0..150).for_each(|_| ager.step());
    let base = ager.sync(&disk);
    ager.lab.record_writes(true);
    (0..150).for_each(|_| ager.step());
    ager.sync(&disk);
    let events = events(ager.lab.take_log());
    let mut crash = Crash::new(base, &events, Plan { most_of_a_point: 6, ..Plan::default() });
    let mut states = 0;
    while let Some(point) = crash.next_point().unwrap() {
        for choice in 0..point.choices {
            states += 1;
            if states % of == 0 {
                crash.lay(&point, choice).unwrap();
                each(&format!("seed {seed}, state {}.{choice}", point.number), bytes(&crash.disk()));
                crash.lift().unwrap();
            }
        }
    }
}

/// What a path leads to: inode, mode, length and bytes.
type Seen = (u32, u16, u64, Vec<u8>);

/// Everything that can be reached, by every path to it; no damage that Soft Updates leave is in the way.
fn seen(store: &MemoryStore) -> BTreeMap<String, Seen> {
    let image = Image::open(store.clone(), Search::Standard).unwrap();
    let mut all = BTreeMap::new();
    let mut todo = vec![(String::new(), ffs::format::ROOT_INO)];
    while let Some((path, ino)) = todo.pop() {
        let inode = image.inode(ino).unwrap();
        let mut bytes = Vec::new();
        match inode.file_type() {
            Some(FileType::Directory) => {
                for entry in image.directory(ino, &inode).unwrap() {
                    if entry.name != b"." && entry.name != b".." {
                        todo.push((format!("{path}/{}", String::from_utf8(entry.name).unwrap()), entry.ino));
                    }
                }
            }
            Some(FileType::Regular) => {
                bytes.resize(inode.size as usize, 0);
                let mut put = |at: u64, data: &[u8]| {
                    bytes[at as usize..at as usize + data.len()].copy_from_slice(data);
                    Ok(())
                };
                image.data(ino, &inode, &mut put).unwrap();
            }
            Some(FileType::Symlink) => bytes = image.symlink(ino, &inode).unwrap(),
            _ => {}
        }
        let size = if inode.is_dir() { 0 } else { inode.size };
        all.insert(path, (ino.0, inode.mode, size, bytes));
    }
    all
}

/// Nothing is lost: every path is there with its bytes, but that a directory with two names has one of them.
fn is_kept(what: &str, before: &BTreeMap<String, Seen>, after: &BTreeMap<String, Seen>) -> bool {
    let mut names: BTreeMap<u32, Vec<&String>> = BTreeMap::new();
    for (path, (ino, mode, ..)) in before {
        if FileType::of(*mode) == Some(FileType::Directory) {
            names.entry(*ino).or_default().push(path);
        }
    }
    let gone = |path: &String| {
        let mut others = names.values().filter(|names| names.len() > 1).flatten();
        others.any(|dir| path == *dir || path.starts_with(&format!("{dir}/")))
    };
    for (path, was) in before {
        match after.get(path) {
            Some(is) => assert!(is == was, "{what}: {path} was {:?}, is {:?}", short(was), short(is)),
            None => assert!(gone(path), "{what}: {path} is gone"),
        }
    }
    // What can be reached by one of two names still can.
    let inodes = |all: &BTreeMap<String, Seen>| all.values().map(|seen| seen.0).collect::<BTreeSet<u32>>();
    assert_eq!(inodes(after), inodes(before), "{what}");
    names.values().any(|names| names.len() > 1)
}

fn short((ino, mode, size, _): &Seen) -> (u32, u16, u64) {
    (*ino, *mode, *size)
}

/// Nothing is wrong with it: to our check, and to one of bytes that shares nothing with it.
fn is_sound(what: &str, store: &MemoryStore) {
    let report = fsck(Overlay::new(store.clone()), &mut |_| true).unwrap();
    assert!(report.is_clean() && report.marked_clean, "{what}: {} {:?}", report.marked_clean, report.problems);
    let image = Image::open(store.clone(), Search::Standard).unwrap();
    let big = image.geometry().endian() == Endian::Big;
    let complaints = crate::bsd_fsck::complaints(&store.0, big, image.superblock_at() as usize);
    assert_eq!(complaints, Vec::<String>::new(), "{what}");
}

fn add(sum: &mut Left, left: &Left) {
    sum.unnamed += left.unnamed;
    sum.link_counts += left.link_counts;
    sum.inodes += left.inodes;
    sum.frags += left.frags;
}

#[test]
fn what_crashes_leave_is_given_back() {
    let seeds = testkit::parameter("FSAGE_BACKGROUND_SEEDS").unwrap_or(2);
    let (mut states, mut sum, mut second) = (0, Left::default(), 0);
    for seed in 0..seeds {
        let shape = crate::snapshot::shapes().nth((seed % 4) as usize).unwrap();
        crashed(seed, shape, 11, &mut |what, before| {
            states += 1;
            let (left, after) = check_in_background(before.clone(), NOW_NS, &mut |_| true)
                .unwrap_or_else(|error| panic!("{what}: {error}"));
            is_sound(what, &after);
            second += u32::from(is_kept(what, &seen(&before), &seen(&after)));
            add(&mut sum, &left);
        });
    }
    println!("{states} states, {second} with a directory with two names: {sum:?}");
    assert!(states > 100 && sum.unnamed > 10 && sum.link_counts > 10 && sum.inodes > 10 && sum.frags > 100, "{sum:?}");
}
