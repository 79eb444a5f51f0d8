//! A live LFS in the laboratory: its cleaner beside processes, in idle time, and not at all; the bytes on the disk
//! afterwards.

use crate::netbsd::passes;
use device::fixed::FixedDevice;
use kernel::{DeviceCounters, Lab, Machine, Setup, payload};
use lfs::mkfs::{MkfsOptions, mkfs};
use lfs::{Checkpoint, Counters, Image, Lfs, MemoryStore, Options};
use posix::{At, Call, Fd, FileSystem, Mode, OpenFlags};
use std::sync::{Arc, Mutex};

const SIZE: u64 = 8 << 20;

struct Done {
    disk: MemoryStore,
    counters: Counters,
    /// What the disk was asked for: it knows no cleaner.
    device: DeviceCounters,
    now_ns: u64,
    utilisations: Vec<f64>,
}

fn lab(words: &str, disk: &Arc<Mutex<MemoryStore>>) -> Lab<Lfs> {
    lab_of(SIZE, words, disk)
}

fn lab_of(size_bytes: u64, words: &str, disk: &Arc<Mutex<MemoryStore>>) -> Lab<Lfs> {
    let mut options = Options::default();
    assert!(words.split(',').all(|word| options.set(word)), "{words}");
    let mkfs_options = MkfsOptions { bsize: 4096, fsize: 512, ssize: Some(128 << 10), ..MkfsOptions::new(size_bytes) };
    let mut store = MemoryStore(vec![0; size_bytes as usize]);
    mkfs(&mut store, &mkfs_options).unwrap();
    let volume = Lfs::load(&mut store, options).unwrap();
    *disk.lock().unwrap() = store;
    let mut machine = Machine::load("pentium-120").unwrap();
    machine.memory.buffer_cache_bytes.value = 1 << 20;
    let (target, drive) = ("lfs".into(), "fixed".into());
    let setup = Setup { machine, target, drive, epoch_ns: 820_000_000_000_000_000 };
    let device = Box::new(FixedDevice::new(size_bytes, 5_000_000));
    Lab::with_image(volume, device, setup, payload::Image::full(disk.clone())).unwrap()
}

fn open(lab: &mut Lab<Lfs>, path: &str, flags: OpenFlags) -> Fd {
    let at: At<'_> = path.into();
    lab.call(&Call::Open { at, flags, mode: Mode(0o644) }).fd().unwrap()
}

fn content(n: usize, turn: usize) -> Vec<u8> {
    (0..16_384).map(|i| (i * 7 + n * 31 + turn) as u8).collect()
}

/// 300 files of 16 KB, of which some are written anew again and again, with a pause behind each.
fn run(words: &str, pause_ms: u64) -> Done {
    run_on(SIZE, words, pause_ms)
}

fn run_on(size_bytes: u64, words: &str, pause_ms: u64) -> Done {
    let disk = Arc::new(Mutex::new(MemoryStore(Vec::new())));
    let mut lab = lab_of(size_bytes, words, &disk);
    let mut turns = vec![0; 300];
    filled(&mut lab);
    for step in 1..600 {
        // Nine of ten writes to a tenth of the files.
        let n = if step % 10 == 0 { step * 37 % 300 } else { step * 7 % 30 };
        turns[n] = step;
        write_file(&mut lab, n, step);
        lab.pause_ns(pause_ms * 1_000_000);
    }
    let (counters, device) = (lab.volume().counters().clone(), lab.counters().device);
    let utilisations = lab.volume().segment_utilisations().collect();
    let now_ns = lab.now_ns();
    let volume = lab.unmount().unwrap();
    assert_eq!(volume.check(), []);
    let disk = std::mem::take(&mut disk.lock().unwrap().0);
    let mut disk = MemoryStore(disk);
    let report = lfs::fsck(&mut disk, &mut |_| true).unwrap();
    assert!(report.is_clean() && report.marked_clean, "{words}: {:#?}", report.problems);
    assert_eq!(passes::complaints(&disk.0, passes::Writer::Ours), Vec::<String>::new(), "{words}");
    let image = Image::open(&mut disk, Checkpoint::Newer).unwrap();
    for (n, turn) in turns.into_iter().enumerate() {
        let (ino, inode) = image.resolve(format!("file {n}").as_bytes()).unwrap();
        let mut found = Vec::new();
        image
            .data(ino, &inode, &mut |_, bytes| {
                found.extend_from_slice(bytes);
                Ok(())
            })
            .unwrap();
        assert!(found == content(n, turn), "{words}: file {n}");
    }
    drop(image);
    Done { disk, counters, device, now_ns, utilisations }
}

#[test]
fn the_cleaner_keeps_up() {
    for words in ["cleaner=cost-benefit", "cleaner=greedy,sort=found", "cleaner=netbsd,order=barrier"] {
        let done = run(words, 0);
        let cleaner = &done.counters.cleaner;
        assert!(cleaner.segments > 20, "{words}: {cleaner:?}");
        assert!(cleaner.mean_utilisation() < 0.9, "{words}: {cleaner:?}");
        assert_eq!(cleaner.utilisations.iter().sum::<u64>(), cleaner.segments);
        assert!(done.counters.write_cost() > 1.0 && done.counters.write_cost() < 10.0, "{words}: {cleaner:?}");
        assert!(done.utilisations.iter().all(|u| (0.0..=1.0).contains(u)));
    }
}

/// The daemon does nothing; when the log is full all of it is cleaned, and a long time is left until it is full again.
/// What that has cost the disk says itself: the new data are what it takes where there is room for all of it.
#[test]
fn all_of_the_log_is_cleaned_when_it_is_full() {
    let roomy = run_on(8 * SIZE, "cleaner=greedy,cleaning=all,plug=0", 0);
    assert_eq!((roomy.counters.cleaner.stalls, roomy.counters.cleaner.sweeps), (0, 0));
    for words in ["cleaner=greedy,cleaning=all,plug=0", "cleaner=cost-benefit,cleaning=all,order=barrier,plug=0"] {
        let done = run(words, 0);
        let cleaner = &done.counters.cleaner;
        assert!(cleaner.sweeps >= 2 && cleaner.stalls < 2 * cleaner.sweeps, "{words}: {cleaner:?}");
        assert!(cleaner.segments > 5 * cleaner.sweeps, "{words}: {cleaner:?}");
        let (read, written) = (done.device.read_bytes as f64, done.device.write_bytes as f64);
        let by_disk = (read + written) / roomy.device.write_bytes as f64;
        let by_cleaner = done.counters.write_cost();
        println!("{words}: write cost {by_disk} by the disk, {by_cleaner} by the cleaner; {cleaner:?}");
        assert!((by_disk / by_cleaner - 1.0).abs() < 0.05, "{words}: {by_disk} by the disk, {by_cleaner}");
    }
}

/// However long nobody calls.
#[test]
fn what_is_cleaned_as_a_whole_is_not_cleaned_in_idle_time() {
    let done = run("cleaner=greedy,cleaning=all,plug=0", 3000);
    let cleaner = &done.counters.cleaner;
    assert!(cleaner.sweeps >= 1 && cleaner.stalls < 2 * cleaner.sweeps, "{cleaner:?}");
}

#[test]
fn same_calls_same_bytes_and_times() {
    let (one, other) = (run("cleaner=cost-benefit", 20), run("cleaner=cost-benefit", 20));
    assert!(one.disk.0 == other.disk.0 && one.now_ns == other.now_ns && one.counters == other.counters);
}

#[test]
fn nearly_full_segments_are_emptied_into_holes() {
    for words in ["plug=10", "plug=10,cleaner=greedy", "plug=10,order=barrier"] {
        let done = run(words, 0);
        let cleaner = &done.counters.cleaner;
        assert!(cleaner.plugged_segments > 5, "{words}: {cleaner:?}");
        assert!(cleaner.plugged_blocks > cleaner.plugged_segments, "{words}: {cleaner:?}");
        assert!(cleaner.plugged_bytes >= cleaner.plugged_blocks * 512, "{words}: {cleaner:?}");
    }
    assert_eq!(run("plug=0", 0).counters.cleaner.plugged_segments, 0);
}

#[test]
fn idle_time_is_used_if_it_may_be() {
    // The daemon has nothing to do but in idle time.
    let busy = run("low=0,high=40,idle=0", 100);
    let idle = run("low=0,high=40,idle=50", 100);
    assert!(idle.counters.cleaner.stalls < busy.counters.cleaner.stalls, "{:?} {:?}", idle.counters, busy.counters);
    assert!(idle.counters.cleaner.segments > 20, "{:?}", idle.counters);
}

/// Makes 300 files of 16 KB.
fn filled(lab: &mut Lab<Lfs>) {
    (0..300).for_each(|n| write_file(lab, n, 0));
}

/// Writes file `n` anew.
fn write_file(lab: &mut Lab<Lfs>, n: usize, turn: usize) {
    let path = format!("file {n}");
    let flags = if turn == 0 { OpenFlags::CREATE_NEW } else { OpenFlags::WRITE };
    let fd = open(lab, &path, flags);
    let data = content(n, turn);
    let call = Call::Write { fd, offset: Some(0), len_bytes: data.len() as u64, data: Some(&data) };
    assert!(lab.call(&call).result.is_ok());
    assert!(lab.call(&Call::Close { fd }).result.is_ok());
}

/// The file that is written at a step: nine of ten times one of a tenth of them. So segments that are not new keep
/// something live.
fn mostly_hot(step: usize) -> usize {
    if step.is_multiple_of(10) { step / 10 * 37 % 300 } else { step * 7 % 30 }
}

/// Clean segments besides the one that the log takes next, and how many have been cleaned so far.
fn clean_and_cleaned(lab: &Lab<Lfs>) -> (u32, u64) {
    (lab.volume().clean_segments().0 - 1, lab.volume().counters().cleaner.segments)
}

#[test]
fn the_daemon_rests_between_its_marks() {
    let disk = Arc::new(Mutex::new(MemoryStore(Vec::new())));
    let mut lab = lab_of(2 * SIZE, "low=10,high=30,idle=0,memory=512K", &disk);
    filled(&mut lab);
    let segments = lab.volume().clean_segments().1;
    let (low, high) = (segments * 10 / 100, segments * 30 / 100);
    // Steps in which nothing was cleaned, one after the other: clean segments before the first and after the last.
    let mut rests: Vec<(u32, u32, u32)> = Vec::new();
    let mut last = clean_and_cleaned(&lab);
    for step in 1..6000 {
        write_file(&mut lab, mostly_hot(step), step);
        lab.pause_ns(20_000_000);
        let now = clean_and_cleaned(&lab);
        match rests.last_mut() {
            Some((steps, _, after)) if now.1 == last.1 => (*steps, *after) = (*steps + 1, now.0),
            _ => rests.push((0, now.0, now.0)),
        }
        last = now;
    }
    // A pass takes some steps, and what is seen is a step or two late: a few segments.
    rests.retain(|(steps, ..)| *steps > 50);
    let near = 8;
    let whole = |(_, before, after): &(u32, u32, u32)| *before + near >= high && *after <= low + near;
    assert!(rests.len() >= 5 && rests.iter().rev().skip(1).all(whole), "from {high} down to {low}: {rests:?}");
}

#[test]
fn with_one_mark_the_daemon_stops_where_it_begins() {
    let most_clean = |words: &str| {
        let disk = Arc::new(Mutex::new(MemoryStore(Vec::new())));
        let mut lab = lab_of(2 * SIZE, words, &disk);
        filled(&mut lab);
        let steps = 1..3000;
        let clean = steps.map(|step| {
            write_file(&mut lab, mostly_hot(step), step);
            lab.pause_ns(20_000_000);
            clean_and_cleaned(&lab).0
        });
        // To begin with more is clean.
        (clean.skip(1000).max().unwrap(), lab.volume().clean_segments().1)
    };
    let (one, segments) = most_clean("low=20,high=20,idle=0,memory=128K");
    let (two, _) = most_clean("low=20,high=21,idle=0,memory=128K");
    // A checkpoint may make one clean that emptied itself.
    assert!(one <= segments * 20 / 100 + 1 && two > one, "{one} and {two} of {segments}");
}

#[test]
fn cleaning_in_idle_time_ends_when_somebody_calls() {
    let disk = Arc::new(Mutex::new(MemoryStore(Vec::new())));
    let mut lab = lab_of(2 * SIZE, "low=5,high=45,memory=256K,idle=50", &disk);
    filled(&mut lab);
    let segments = lab.volume().clean_segments().1;
    let (low, high) = (segments * 5 / 100, segments * 45 / 100);
    let (mut interrupted, mut in_idle_time) = (0, 0);
    for burst in 0..100 {
        let before = clean_and_cleaned(&lab).1;
        lab.pause_ns(150_000_000);
        let (clean, cleaned) = clean_and_cleaned(&lab);
        in_idle_time += cleaned - before;
        // Time enough for the daemon to go on, but never so much that it is idle time.
        for step in burst * 30 + 1..=burst * 30 + 30 {
            write_file(&mut lab, mostly_hot(step), step);
            lab.pause_ns(20_000_000);
        }
        let (clean_after, cleaned_after) = clean_and_cleaned(&lab);
        if cleaned > before && clean < high && clean_after >= low {
            interrupted += 1;
            // The two segments of a pass that has begun are cleaned to the end.
            assert!(cleaned_after - cleaned <= 2, "burst {burst}: {}", cleaned_after - cleaned);
        }
    }
    assert!(interrupted >= 5, "{interrupted} interrupted, {in_idle_time} in idle time");
}

#[test]
fn without_a_cleaner_only_what_empties_itself_is_used_again() {
    let disk = Arc::new(Mutex::new(MemoryStore(Vec::new())));
    let mut lab = lab("cleaner=off", &disk);
    // The same large file again and again: its old segments are empty.
    for turn in 0..12 {
        let flags = if turn == 0 { OpenFlags::CREATE_NEW } else { OpenFlags::WRITE };
        let fd = open(&mut lab, "large", flags);
        let data = vec![turn as u8; 1 << 20];
        for at in (0..3).map(|n| n << 20) {
            let call = Call::Write { fd, offset: Some(at), len_bytes: data.len() as u64, data: Some(&data) };
            assert_eq!(lab.call(&call).result, Ok(posix::Reply::Count(1 << 20)), "turn {turn}");
        }
        lab.call(&Call::Close { fd }).result.unwrap();
        lab.call(&Call::SyncFs).result.unwrap();
    }
    assert_eq!(lab.volume().counters().cleaner.segments, 0);
    assert_eq!(lab.unmount().unwrap().check(), []);
}

/// A database file of 2 MB, whose blocks of 4 KB are written at random: what the log was given, in bytes.
fn logged(words: &str) -> u64 {
    let disk = Arc::new(Mutex::new(MemoryStore(Vec::new())));
    let mut lab = lab(words, &disk);
    let fd = open(&mut lab, "f", OpenFlags::CREATE_NEW);
    let mut blocks = vec![0_u8; 512];
    let mut write = |lab: &mut Lab<Lfs>, n: usize, turn: u8| {
        blocks[n] = turn;
        let data = vec![turn; 4096];
        let call = Call::Write { fd, offset: Some(n as u64 * 4096), len_bytes: 4096, data: Some(&data) };
        assert!(lab.call(&call).result.is_ok());
    };
    (0..512).for_each(|n| write(&mut lab, n, 1));
    assert!(lab.call(&Call::Fsync { fd }).result.is_ok());
    let before = lab.volume().counters().log_bytes;
    (0..1000).for_each(|n| write(&mut lab, n * 211 % 509, (n % 250) as u8 + 2));
    let bytes = lab.volume().counters().log_bytes - before;
    assert!(lab.call(&Call::Close { fd }).result.is_ok());
    let volume = lab.unmount().unwrap();
    assert_eq!(volume.check(), []);
    let disk = std::mem::take(&mut disk.lock().unwrap().0);
    let mut disk = MemoryStore(disk);
    assert!(lfs::fsck(&mut disk, &mut |_| true).unwrap().is_clean(), "{words}");
    assert_eq!(passes::complaints(&disk.0, passes::Writer::Ours), Vec::<String>::new(), "{words}");
    let image = Image::open(&mut disk, Checkpoint::Newer).unwrap();
    let (ino, inode) = image.resolve(b"f").unwrap();
    let mut found: Vec<u8> = Vec::new();
    let mut take = |_: u64, bytes: &[u8]| {
        found.extend(bytes.iter().step_by(4096));
        Ok(())
    };
    image.data(ino, &inode, &mut take).unwrap();
    assert!(found == blocks, "{words}");
    bytes
}

#[test]
fn indirect_blocks_kept_back_are_not_written_with_each_page() {
    let (with, late) = (logged("dirty=2,plug=0"), logged("dirty=2,plug=0,indirect=late"));
    assert!(late < with * 9 / 10, "{late}, {with}");
}
