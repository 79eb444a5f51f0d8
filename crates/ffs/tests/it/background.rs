//! The check in the background: a file system of Soft Updates that has crashed is used at once, and what the crash has
//! left is given back meanwhile.
//!
//! `FSAGE_BACKGROUND_SEEDS=20 cargo test -p fsage-ffs --test it -- background::` looks at more.

use crate::lab::{Ager, events};
use crate::snapshot::disk;
use device::crash::{Crash, Plan};
use device::fixed::FixedDevice;
use ffs::format::ROOT_INO;
use ffs::fsck::Left;
use ffs::planted::Bug;
use ffs::policy::Options;
use ffs::{
    Endian, Ffs, FfsError, FileType, GroupNo, Image, MemoryStore, Overlay, Planted, Search, Store, Version,
    check_in_background, check_planted, fsck, look_at_snapshot,
};
use kernel::{CheckEnd, Correction, Lab, Machine, Setup, payload};
use posix::{Call, Fd, FileSystem as _, Mode, OpenFlags};
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

const NOW_NS: i64 = 820_000_100_000_000_000;

/// Bytes of what a crash has left.
fn bytes(disk: &dyn Store) -> MemoryStore {
    let mut bytes = vec![0; disk.len_bytes() as usize];
    disk.read_at(0, &mut bytes).unwrap();
    MemoryStore(bytes)
}

/// Every `of`-th state that a crash may leave while an ager works under Soft Updates, with its name.
fn crashed(seed: u64, shape: (Version, Endian, u32, u32), of: u32, each: &mut dyn FnMut(&str, MemoryStore)) {
    crashed_with(0, seed, shape, of, each);
}

/// The same with so many directories in the root besides.
fn crashed_with(
    names: u32,
    seed: u64,
    shape: (Version, Endian, u32, u32),
    of: u32,
    each: &mut dyn FnMut(&str, MemoryStore),
) {
    let (version, endian, bsize, fsize) = shape;
    let before = disk(version, endian, bsize, fsize, 3 << 20);
    let (mut ager, disk) = Ager::start(before, "realloc,softdep", seed, None);
    for n in 0..names {
        ager.lab
            .call(&Call::Mkdir { at: format!("directory {n:04}").as_str().into(), mode: Mode(0o755) })
            .result
            .unwrap();
    }
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
    let mut todo = vec![(String::new(), ROOT_INO)];
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
    // What can be reached by one of two names still can. The directory of snapshots may be left by a crash.
    let inodes = |all: &BTreeMap<String, Seen>| {
        let others = all.iter().filter(|(path, _)| *path != "/.snap");
        others.map(|(_, seen)| seen.0).collect::<BTreeSet<u32>>()
    };
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

/// The check itself would take more than a block for `lost+found`: it would put it into the root, and the root would
/// have to move. That is no damage.
#[test]
fn a_root_without_room_for_lost_and_found_is_no_damage() {
    let mut unnamed = 0;
    // One of these fills the root's last fragment.
    for names in (20..60).step_by(3) {
        crashed_with(names, 600, crate::snapshot::shapes().next().unwrap(), 197, &mut |what, before| {
            let (left, after) = check_in_background(before, NOW_NS, &mut |_| true)
                .unwrap_or_else(|error| panic!("{names} names, {what}: {error}"));
            is_sound(what, &after);
            unnamed += left.unnamed;
        });
    }
    assert!(unnamed > 10, "{unnamed}");
}

/// A directory whose count of links was too high stays when it is removed, without a name. Where its `..` leads may be
/// removed as well, and the number may be that of a file by the time of a check: here that of the check's own snapshot.
#[test]
fn a_parent_that_has_become_a_file_is_no_damage() {
    let before = disk(Version::Ufs1, Endian::Little, 4096, 512, 3 << 20);
    let (mut ager, disk) = Ager::start(before, "realloc,softdep", 1, None);
    let path = |n: u32, below: &str| format!("p{n}{below}");
    for n in 0..20 {
        for below in ["", "/q"] {
            let made = ager.lab.call(&Call::Mkdir { at: path(n, below).as_str().into(), mode: Mode(0o755) });
            made.result.unwrap();
        }
    }
    ager.sync(&disk);
    let mut store = disk.lock().unwrap().clone();
    let image = Image::open(store.clone(), Search::Standard).unwrap();
    assert_eq!(image.superblock().clean, 0, "it is mounted");
    // A crash has left a link of each `q` that is no name's.
    let root = image.inode(ROOT_INO).unwrap();
    let tops = image.directory(ROOT_INO, &root).unwrap();
    for top in tops.iter().filter(|entry| entry.name.starts_with(b"p")) {
        let names = image.directory(top.ino, &image.inode(top.ino).unwrap()).unwrap();
        let q = names.iter().find(|entry| entry.name == b"q").unwrap().ino;
        let at = image.geometry().inode_at(q).unwrap() as usize;
        // `di_nlink`
        assert_eq!(store.0[at + 2..at + 4], [2, 0]);
        store.0[at + 2] = 3;
    }
    let (mut again, disk) = Ager::start(store, "realloc,softdep", 1, None);
    for n in 0..20 {
        for below in ["/q", ""] {
            again.lab.call(&Call::Rmdir { at: path(n, below).as_str().into() }).result.unwrap();
        }
    }
    again.sync(&disk);
    let removed = disk.lock().unwrap().clone();
    let kept = seen(&removed);
    let (left, after) = check_in_background(removed, NOW_NS, &mut |_| true).unwrap();
    assert_eq!(left.unnamed, 20, "{left:?}");
    is_sound("checked", &after);
    is_kept("checked", &kept, &seen(&after));
}

/// A check beside the work: the snapshot is open, and is checked; what is left of giving back.
struct Check {
    fd: Fd,
    rest: Vec<Correction>,
}

impl Check {
    fn begin(lab: &mut Lab<Ffs>, planted: Planted) -> Check {
        let fd = lab.snapshot_to_check().unwrap();
        let (left, reads) = look_at_snapshot(lab, fd, planted, &mut |_| true).unwrap();
        assert!(!reads.is_empty());
        Check { fd, rest: left.corrections.into_iter().rev().collect() }
    }

    /// Gives back some; whether that was all.
    fn go_on(&mut self, lab: &mut Lab<Ffs>, some: usize) -> bool {
        let now: Vec<Correction> = (0..some).map_while(|_| self.rest.pop()).collect();
        lab.give_back(&now).unwrap();
        self.rest.is_empty()
    }

    fn end(self, lab: &mut Lab<Ffs>) {
        lab.call(&Call::Close { fd: self.fd }).result.unwrap();
        lab.checked(CheckEnd::AllGivenBack).unwrap();
    }
}

/// An ager works on a crashed file system beside the check, and leaves some files alone. What is wrong then, if
/// anything is.
fn beside(what: &str, before: MemoryStore, seed: u64, planted: Planted) -> Result<(), String> {
    let at_first = seen(&before);
    let (mut ager, disk) = Ager::start(before, "realloc,softdep,root", seed, planted);
    ager.number_from(1_000_000);
    let alone: Vec<&String> = at_first.iter().filter(|(_, seen)| seen.0 % 3 == 0).map(|(path, _)| path).collect();
    // Another name of it may be gone when the ager wants it.
    let ours: BTreeSet<u32> = alone.iter().map(|path| at_first[*path].0).collect();
    for (path, _) in at_first.iter().filter(|(_, seen)| ours.contains(&seen.0)) {
        ager.leave_alone(path.trim_start_matches('/'));
    }
    (0..seed % 30).for_each(|_| ager.step());
    let mut check = Check::begin(&mut ager.lab, planted);
    (0..80).for_each(|_| ager.step());
    while !check.go_on(&mut ager.lab, 3) {
        (0..2).for_each(|_| ager.step());
    }
    (0..40).for_each(|_| ager.step());
    check.end(&mut ager.lab);
    (0..40).for_each(|_| ager.step());
    let listed = ager.listing();
    let volume = ager.lab.unmount().unwrap();
    if let Some(problem) = volume.check().into_iter().next() {
        return Err(format!("{what}: {problem}"));
    }
    let after = disk.lock().unwrap().clone();
    let report = fsck(Overlay::new(after.clone()), &mut |_| true).unwrap();
    if let Some(problem) = report.problems.first() {
        return Err(format!("{what}: {}", problem.message));
    }
    is_sound(what, &after);
    assert_eq!(crate::lab::listing(&after), listed, "{what}");
    let at_last: BTreeMap<u32, Seen> = seen(&after).into_values().map(|seen| (seen.0, seen)).collect();
    for path in alone.into_iter().filter(|path| FileType::of(at_first[*path].1) == Some(FileType::Regular)) {
        let (ino, _, size, bytes) = &at_first[path];
        match at_last.get(ino) {
            Some((_, _, now_size, now)) if (now_size, now) == (size, bytes) => {}
            _ => return Err(format!("{what}: {path} is not as it was")),
        }
    }
    Ok(())
}

#[test]
fn it_works_beside_an_ager() {
    let seeds = testkit::parameter("FSAGE_BACKGROUND_SEEDS").unwrap_or(2);
    let mut states = 0;
    for seed in 0..seeds {
        let shape = crate::snapshot::shapes().nth((seed % 4) as usize).unwrap();
        crashed(100 + seed, shape, 97, &mut |what, before| {
            states += 1;
            beside(what, before, seed + states, None).unwrap();
        });
    }
    println!("{states} states");
    assert!(states >= 10);
}

/// Mounts a crashed file system, with a log of all writes.
fn mounted(before: MemoryStore) -> (Lab<Ffs>, Arc<Mutex<MemoryStore>>) {
    let mut options = Options::default();
    assert!(options.set("softdep"));
    let image = Image::open(before, Search::Standard).unwrap();
    let volume = Ffs::load(&image, options).unwrap();
    assert!(volume.is_unchecked());
    let disk = Arc::new(Mutex::new(image.into_store()));
    let device = Box::new(FixedDevice::new(disk.lock().unwrap().len_bytes(), 1_000_000));
    let machine = Machine::load("pentium-120").unwrap();
    let setup = Setup { machine, target: "ffs".into(), drive: "fixed".into(), epoch_ns: NOW_NS };
    (Lab::recorded(volume, device, setup, payload::Image::full(disk.clone())).unwrap(), disk)
}

/// Crashes while the check works on what a crash has left: of every `of`-th state another check finds the rest. How
/// many were looked at.
fn crash_again(what: &str, before: MemoryStore, (first, of): (u32, u32), sum: &mut Left) -> u32 {
    let at_first = seen(&before);
    let (mut lab, _) = mounted(before.clone());
    let mut check = Check::begin(&mut lab, None);
    while !check.go_on(&mut lab, 40) {
        // What was given back is on the disk here and there.
        if check.rest.len().is_multiple_of(3) {
            lab.call(&Call::SyncFs).result.unwrap();
        }
    }
    check.end(&mut lab);
    let events = events(lab.take_log());
    let mut crash = Crash::new(before, &events, Plan { most_of_a_point: 4, ..Plan::default() });
    let (mut count, mut states) = (first, 0);
    while let Some(point) = crash.next_point().unwrap() {
        for choice in 0..point.choices {
            count += 1;
            if !count.is_multiple_of(of) {
                continue;
            }
            states += 1;
            crash.lay(&point, choice).unwrap();
            let what = format!("{what}, again {}.{choice}", point.number);
            let again = bytes(&crash.disk());
            let report = fsck(Overlay::new(again.clone()), &mut |_| true).unwrap();
            assert_eq!(report.beyond_soft_updates(), None, "{what}");
            let checked = check_in_background(again, NOW_NS, &mut |_| true);
            let (left, after) = checked.unwrap_or_else(|error| panic!("{what}: {error}"));
            is_sound(&what, &after);
            is_kept(&what, &at_first, &seen(&after));
            add(sum, &left);
            crash.lift().unwrap();
        }
    }
    states
}

#[test]
fn a_crash_meanwhile_leaves_it_to_another_check() {
    let seeds = testkit::parameter("FSAGE_BACKGROUND_SEEDS").unwrap_or(1);
    let (mut states, mut sum) = (0, Left::default());
    for seed in 0..seeds {
        let shape = crate::snapshot::shapes().nth((seed % 4) as usize).unwrap();
        let mut first = 0;
        crashed(200 + seed, shape, 151, &mut |what, before| {
            first += 1;
            states += crash_again(what, before, (first, 6), &mut sum);
        });
    }
    println!("{states} states: {sum:?}");
    assert!(states > 100 && sum.unnamed > 10 && sum.frags > 100, "{states} states: {sum:?}");
}

/// The directory of the snapshot had lost its name on the disk, and the snapshot in it had one still (seed 203, state
/// 69.3, again 33.1): there was no room for another snapshot.
#[test]
fn the_snapshot_of_a_check_that_crashed_is_removed() {
    let mut looked = 0;
    crashed(203, crate::snapshot::shapes().nth(3).unwrap(), 151, &mut |what, before| {
        if what.contains("state 69.") {
            looked += crash_again(what, before, (0, 1), &mut Left::default());
        }
    });
    assert!(looked > 100, "{looked}");
}

/// A bug of each kind of correction.
#[test]
fn planted_bugs_are_found() {
    let bugs = [
        Bug::BackgroundNamesStay,
        Bug::BackgroundCountsAllLinks,
        Bug::BackgroundNumbersOfNow,
        Bug::BackgroundSpaceOfNow,
    ];
    // Directories without a name that have names in them are in every second of its states.
    let shape = crate::snapshot::shapes().nth(2).unwrap();
    let mut missed = bugs.to_vec();
    crashed(310, shape, 5, &mut |what, before| {
        missed.retain(|bug| {
            let worked = catch_unwind(AssertUnwindSafe(|| beside(what, before.clone(), 7, Some(*bug))));
            let wrong = match worked {
                Ok(Ok(())) => return true,
                Ok(Err(wrong)) => wrong,
                Err(_) => "an invariant is broken".to_owned(),
            };
            println!("{bug:?}: {wrong}");
            false
        });
    });
    assert_eq!(missed, Vec::new());
}

/// A file that has lost its name since, and that somebody has open, is without a name in the snapshot too.
#[test]
fn an_open_file_without_a_name_stays() {
    let shape = crate::snapshot::shapes().next().unwrap();
    let mut looked = 0;
    crashed(400, shape, 61, &mut |what, before| {
        looked += 1;
        let (mut lab, disk) = mounted(before);
        let flags = OpenFlags { read: true, ..OpenFlags::CREATE_NEW };
        let fd = lab.call(&Call::Open { at: "open".into(), flags, mode: Mode(0o600) }).fd().unwrap();
        let data = vec![7; 20_000];
        let write = Call::Write { fd, offset: Some(0), len_bytes: 20_000, data: Some(&data) };
        lab.call(&write).result.unwrap();
        lab.call(&Call::Unlink { at: "open".into() }).result.unwrap();
        let mut check = Check::begin(&mut lab, None);
        while !check.go_on(&mut lab, 10) {}
        check.end(&mut lab);
        let mut read = vec![0; 20_000];
        assert_eq!(lab.read_into(fd, 0, &mut read), Ok(20_000), "{what}");
        assert_eq!(read, data, "{what}");
        lab.call(&Call::Close { fd }).result.unwrap();
        let volume = lab.unmount().unwrap();
        assert_eq!(volume.check(), Vec::new(), "{what}");
        is_sound(what, &disk.lock().unwrap());
    });
    assert!(looked > 3);
}

/// An empty file that can be reached.
fn empty_file(store: &MemoryStore) -> Option<u32> {
    let mut all = seen(store).into_values();
    all.find(|seen| FileType::of(seen.1) == Some(FileType::Regular) && seen.2 == 0).map(|seen| seen.0)
}

/// The first state of a run with something of everything.
fn some_crash() -> MemoryStore {
    let mut found = None;
    let shape = crate::snapshot::shapes().nth(3).unwrap();
    crashed(500, shape, 31, &mut |_, before| {
        if found.is_none() {
            let (left, _) = check_in_background(before.clone(), NOW_NS, &mut |_| true).unwrap();
            if left.unnamed > 0 && left.inodes > 0 && left.frags > 0 && empty_file(&before).is_some() {
                found = Some(before);
            }
        }
    });
    found.unwrap()
}

#[test]
fn what_is_worse_is_for_the_full_check() {
    let crashed = some_crash();
    let image = Image::open(crashed.clone(), Search::Standard).unwrap();
    let g = *image.geometry();
    let root = image.inode(ROOT_INO).unwrap();
    let group_at = g.byte_of(g.group_block(GroupNo(0))) as usize;
    let group = image.group(GroupNo(0)).unwrap();
    let mut marks = Vec::new();
    // Found by whoever mounts it: a fragment in use is marked as free.
    let mut free = crashed.clone();
    let frag = root.db[0] as usize;
    free.0[group_at + group.freeoff as usize + frag / 8] |= 1 << (frag % 8);
    // Likewise: an inode in use is marked as free.
    let mut inode = crashed.clone();
    let ino = empty_file(&crashed).expect("there is an empty file");
    let bit = ino % g.ipg;
    let of = g.group_of_ino(ffs::Ino(ino));
    let at = g.byte_of(g.group_block(of)) as usize + image.group(of).unwrap().iusedoff as usize + (bit / 8) as usize;
    inode.0[at] &= !(1 << (bit % 8));
    // Found by the check alone: inodes without names are counted in a group that says it has none.
    let mut field = crashed.clone();
    field.0[group_at + 124] = 1;
    for damaged in [free, inode, field] {
        let store = Arc::new(Mutex::new(damaged));
        let stopped = check_in_background(store.clone(), NOW_NS, &mut |_| true).unwrap_err();
        assert!(matches!(stopped, FfsError::NeedsFullCheck(_)), "{stopped}");
        assert!(stopped.to_string().contains("fsage fsck IMAGE --repair"), "{stopped}");
        let store = store.lock().unwrap().clone();
        let marked = Image::open(store.clone(), Search::Standard).unwrap().superblock().flags & 4 != 0;
        let again = check_in_background(store.clone(), NOW_NS, &mut |_| true).unwrap_err();
        assert_eq!(matches!(again, FfsError::NotWritable(_)), marked, "{again}");
        marks.push(marked);
        let mut repaired = store;
        assert_eq!(fsck(&mut repaired, &mut |_| true).unwrap().unrepaired, 0);
        is_sound("repaired", &repaired);
    }
    // What nobody has mounted is not changed.
    assert_eq!(marks, [false, false, true]);
}

/// One that ends early leaves the file system as one that has crashed; and one that was unmounted has nothing to give
/// back.
#[test]
fn an_interrupted_check_is_made_again() {
    let store = Arc::new(Mutex::new(some_crash()));
    let before = seen(&store.lock().unwrap());
    let stopped = check_in_background(store.clone(), NOW_NS, &mut |phase| phase < ffs::fsck::Phase::PathNames);
    assert!(matches!(stopped, Err(FfsError::Interrupted(_))));
    let image = Image::open(store.lock().unwrap().clone(), Search::Standard).unwrap();
    assert_eq!(image.superblock().clean, 0);
    let (left, after) = check_planted(image.into_store(), NOW_NS, None, &mut |_| true).unwrap();
    assert!(!left.is_nothing());
    is_sound("after another check", &after);
    is_kept("after another check", &before, &seen(&after));
    let (left, again) = check_in_background(after, NOW_NS, &mut |_| true).unwrap();
    assert!(left.is_nothing(), "{left:?}");
    is_sound("checked again", &again);
}

/// Wherever one ends, while it looks or between two things that it gives back, the next one finds the rest.
#[test]
fn a_check_may_end_anywhere() {
    let crash = some_crash();
    let mut calls = 0;
    let (all, _) = check_in_background(crash.clone(), NOW_NS, &mut |_| {
        calls += 1;
        true
    })
    .unwrap();
    assert!(all.corrections.len() > 2, "{all:?}");
    let mut rest = Vec::new();
    for most in 0..calls {
        let store = Arc::new(Mutex::new(crash.clone()));
        let before = seen(&crash);
        let mut asked = 0;
        let stopped = check_in_background(store.clone(), NOW_NS, &mut |_| {
            asked += 1;
            asked <= most
        });
        assert!(matches!(stopped, Err(FfsError::Interrupted(_))), "after {most} of {calls}");
        let cut_short = store.lock().unwrap().clone();
        let (left, after) = check_in_background(cut_short, NOW_NS, &mut |_| true).unwrap();
        is_sound("after another check", &after);
        is_kept("after another check", &before, &seen(&after));
        rest.push(left.corrections.len());
    }
    // The last ones had given back something already.
    assert!(rest.iter().any(|some| *some < all.corrections.len()), "{rest:?} of {}", all.corrections.len());
}
