//! Crashes at every point of random workloads with the cleaner running: after recovery everything is consistent, what was promised
//! is there, and the tree is as it was after some call.
//!
//! The model of a disk: it completes writes one by one. A power failure leaves those completed (every prefix of the log of
//! writes), or, where the file system asks for flushes (`order=barrier`), everything before the last flush and any part of what
//! came after: some writes and others not, some of them torn between sectors. What was discarded reads as junk.
//!
//! A run is a random workload (`workload`) on a new file system; the disk is rebuilt entry by entry (`disk`), and checked at each
//! (`verify`). Some of the crashes are recovered from, with the power failing again during recovery (`recovery`); from the last of them the
//! workload goes on in another run, so that file systems with a past crash too. Each run has a seed, and sizes, policies and habits
//! of its own that follow from it.
//!
//! `FSAGE_LFS_CRASH_POINTS=120000 cargo test --release -p fsage-lfs --test crash -- --nocapture` goes on until there were as many
//! distinct states of disks. A failure prints its seed: `FSAGE_LFS_CRASH_SEED=n` with it runs that alone, and
//! `FSAGE_LFS_CRASH_IMAGE=file` keeps the disk that failed.

#![allow(clippy::unwrap_used)]

#[path = "crash/content.rs"]
mod content;
#[path = "crash/disk.rs"]
mod disk;
#[path = "crash/recovery.rs"]
mod recovery;
#[path = "crash/verify.rs"]
mod verify;
#[path = "crash/workload.rs"]
mod workload;

use disk::{Disk, Kind};
use kernel::LogEntry;
use kernel::testing::Choice;
use lfs::mkfs::MkfsOptions;
use rand_core::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::HashSet;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use verify::{Recovered, Seen};
use workload::{Case, MIXES, Run};

/// File systems that a usual run has.
const USUAL_SEEDS: u64 = 6;

/// Of so many crashes one is recovered from.
const RECOVERED: u64 = 40;

/// What may become of writes that were not flushed.
const KINDS: [Kind; 4] = [Kind::Prefix, Kind::Reordered, Kind::Torn, Kind::Scattered];

/// Block, fragment, segment, and whether an inode block is as large as a block; segments.
const SHAPES: [(u32, u32, u32, bool, u64); 9] = [
    (4096, 512, 64 << 10, false, 36),
    (8192, 1024, 128 << 10, false, 24),
    (4096, 1024, 128 << 10, true, 22),
    (4096, 4096, 80 << 10, false, 34),
    (8192, 8192, 192 << 10, false, 20),
    (8192, 4096, 96 << 10, true, 30),
    (16384, 2048, 256 << 10, false, 18),
    (4096, 2048, 256 << 10, true, 18),
    (32768, 4096, 512 << 10, false, 16),
];

/// Without flushes: every second run.
const TOGETHER: [&str; 7] = [
    "cleaner=greedy",
    "cleaner=cost-benefit,low=20,high=30",
    "cleaner=netbsd,dirty=10",
    "cleaner=greedy,sort=found,memory=64k,discard=on",
    "cleaner=cost-benefit,idle=500",
    "cleaner=greedy,low=30,high=40,dirty=5",
    "cleaner=off",
];

const BARRIER: [&str; 7] = [
    "order=barrier,cleaner=greedy",
    "order=barrier,cleaner=cost-benefit,low=20,high=30,discard=on",
    "order=barrier,cleaner=netbsd,dirty=10",
    "order=barrier,cleaner=greedy,sort=found,memory=64k",
    "order=barrier,cleaner=cost-benefit,idle=500,dirty=5",
    "order=barrier,cleaner=greedy,low=30,high=40,discard=on",
    "order=barrier,cleaner=off",
];

/// Everything about a run follows from its seed.
fn case(seed: u64, calls: u32) -> Case {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut below = |n: usize| random.next_u64() as usize % n;
    let (bsize, fsize, ssize, whole, segments) = SHAPES[below(SHAPES.len())];
    let barrier = seed % 2 == 1;
    let words = if barrier { BARRIER[below(BARRIER.len())] } else { TOGETHER[below(TOGETHER.len())] };
    let mix = &MIXES[below(MIXES.len())];
    let cache_bytes = [192 << 10, 512 << 10, 2 << 20][below(3)];
    // A partial segment in several requests is safe only if its summary comes after a flush.
    let transfer_bytes = if barrier { [32 << 10, 64 << 10, 1 << 20][below(3)] } else { 1 << 20 };
    let choice = [Choice::Oldest, Choice::Nearest][below(2)];
    let alike = below(2) == 0;
    let size_bytes = (segments + below(10) as u64) * u64::from(ssize);
    let mkfs = MkfsOptions {
        bsize,
        fsize,
        ssize: Some(ssize),
        ibsize: whole.then_some(bsize),
        seed,
        ..MkfsOptions::new(size_bytes)
    };
    let plug_percent = [90, 10, 30, 0][(seed / 2) as usize % 4];
    Case { mkfs, words, plug_percent, seed, number: 0, calls, mix, cache_bytes, transfer_bytes, choice, alike }
}

/// What was tested.
#[derive(Debug, Default)]
pub struct Tally {
    /// Distinct states of disks, and of which kind the crash was that gave each.
    states: HashSet<u64>,
    kinds: [u64; KINDS.len()],
    in_recovery: u64,
    runs: u64,
    mounted_twice: u64,
    rolled_forward: u64,
    dropped: u64,
    cleaner_since: u64,
    segments_cleaned: u64,
    blocks_plugged: u64,
    out_of_space: u64,
}

impl Tally {
    fn crash(&mut self, kind: usize, state: u64, recovered: Recovered) {
        if self.states.insert(state) {
            self.kinds[kind] += 1;
            self.rolled_forward += u64::from(recovered.rolled_forward);
            self.dropped += u64::from(recovered.dropped);
            self.cleaner_since += u64::from(recovered.cleaned);
        }
    }

    /// A crash of a recovery.
    pub fn recovery(&mut self, state: u64) {
        self.in_recovery += u64::from(self.states.insert(state));
    }

    /// Of another thread, with other seeds.
    fn add(mut self, other: Tally) -> Tally {
        let known = self.states.len();
        let theirs = other.states.len();
        self.states.extend(other.states);
        assert_eq!(self.states.len(), known + theirs, "disks of different seeds are different");
        self.kinds.iter_mut().zip(other.kinds).for_each(|(mine, theirs)| *mine += theirs);
        self.in_recovery += other.in_recovery;
        self.runs += other.runs;
        self.mounted_twice += other.mounted_twice;
        self.rolled_forward += other.rolled_forward;
        self.dropped += other.dropped;
        self.cleaner_since += other.cleaner_since;
        self.segments_cleaned += other.segments_cleaned;
        self.blocks_plugged += other.blocks_plugged;
        self.out_of_space += other.out_of_space;
        self
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [prefix, reordered, torn, scattered] = self.kinds;
        let all = self.states.len();
        writeln!(f, "{all} distinct crash points in {} runs:", self.runs)?;
        writeln!(
            f,
            "  {prefix} after a write, {reordered} with writes reordered, {torn} torn, {scattered} in scattered sectors,"
        )?;
        writeln!(f, "  {} during recovery; {} mounted twice", self.in_recovery, self.mounted_twice)?;
        let (rolled, cleaner) = (self.rolled_forward, self.cleaner_since);
        writeln!(
            f,
            "  {rolled} rolled forward, {} of them not to the end of the log; {cleaner} with the cleaner's writes since the checkpoint",
            self.dropped
        )?;
        let (cleaned, plugged) = (self.segments_cleaned, self.blocks_plugged);
        write!(f, "  {cleaned} segments cleaned, {plugged} blocks into holes, {} calls out of space", self.out_of_space)
    }
}

/// Checks one in `each` crashes of a run, and recovers from some, with crashes on the way; returns what the last one left.
fn crash_everywhere(run: &Run, each: u64, tally: &mut Tally) -> Option<(Vec<u8>, Seen)> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(run.case.stream() ^ 0xC0FFEE);
    let windows = run.case.words.contains("barrier");
    let failed = |point: usize, how: &str, problem: &str, disk: &[u8]| -> ! {
        if let Ok(path) = std::env::var("FSAGE_LFS_CRASH_IMAGE") {
            std::fs::write(path, disk).unwrap();
        }
        panic!("{how}, point {point} of {}: {problem}\n{:?}", run.log.len(), run.case)
    };
    let mut disk = Disk::new(run.before.clone());
    let (mut flushed, mut left) = (0, None);
    // What was checked last, with what was promised then.
    let mut last = None;
    for (point, entry) in run.log.iter().enumerate() {
        if matches!(entry, LogEntry::Flush { .. }) {
            run.log[flushed..point].iter().for_each(|entry| disk.apply(entry));
            flushed = point + 1;
        }
        for (number, kind) in KINDS.iter().enumerate().take(if windows { KINDS.len() } else { 1 }) {
            disk.try_out();
            disk.apply_some(run.log.get(flushed..=point).unwrap_or_default(), *kind, &mut random);
            if !random.next_u64().is_multiple_of(each) {
                disk.back();
                continue;
            }
            if last.replace((disk.state(), point)) == Some((disk.state(), point)) {
                disk.back();
                continue;
            }
            match verify::verify(run, &disk.bytes, point + 1) {
                Ok(recovered) => tally.crash(number, disk.state(), recovered),
                Err(problem) => failed(point, &format!("{kind:?}"), &problem, &disk.bytes),
            }
            if random.next_u64().is_multiple_of(RECOVERED) {
                match recovery::interrupted(run, &disk.bytes, point + 1, windows, &mut random, tally) {
                    Ok(mounted) => left = Some(mounted),
                    Err(problem) => failed(point, &format!("recovered, {kind:?}"), &problem, &disk.bytes),
                }
            }
            disk.back();
        }
    }
    tally.segments_cleaned += run.segments_cleaned;
    tally.blocks_plugged += run.blocks_plugged;
    tally.out_of_space += u64::from(run.out_of_space);
    tally.runs += 1;
    left.map(|bytes| {
        let seen = verify::seen(&bytes).unwrap_or_else(|problem| failed(run.log.len(), "recovered", &problem, &bytes));
        (bytes, seen)
    })
}

/// A file system from its making on: a workload, crashes, recovery, and another workload on what that has left.
/// Of the crashes one in `each` is looked at.
fn life(seed: u64, (calls, runs, each): (u32, u32, u64), tally: &mut Tally) {
    let case = case(seed, calls);
    let mut begin = Some((workload::blank(&case), Seen::default()));
    for number in 0..runs {
        let Some((bytes, seen)) = begin else { return };
        let case = Case { number, ..case.clone() };
        let run = workload::run(case, bytes, seen);
        begin = crash_everywhere(&run, each, tally);
    }
}

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|n| n.parse().ok())
}

/// Power failures at every point of many runs.
#[test]
fn whatever_a_crash_leaves_is_whole() {
    let wanted = setting("FSAGE_LFS_CRASH_POINTS");
    let only = setting("FSAGE_LFS_CRASH_SEED");
    let long = wanted.is_some();
    let length = if long { (900, 3, 1) } else { (400, 2, 60) };
    // Threads take seeds in turn until there are enough points: which are tested depends on time only behind the last that count.
    let (next, done) = (AtomicU64::new(0), AtomicU64::new(0));
    let work = || {
        let mut tally = Tally::default();
        loop {
            let seed = 1 + next.fetch_add(1, Ordering::Relaxed);
            let enough = match (only, wanted) {
                (Some(_), _) => seed > 1,
                (None, None) => seed > USUAL_SEEDS,
                (None, Some(wanted)) => done.load(Ordering::Relaxed) >= wanted,
            };
            if enough {
                return tally;
            }
            let before = tally.states.len();
            life(only.unwrap_or(seed), length, &mut tally);
            done.fetch_add((tally.states.len() - before) as u64, Ordering::Relaxed);
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let tallies: Vec<Tally> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let tally = tallies.into_iter().fold(Tally::default(), Tally::add);
    println!("{tally}");
    if only.is_none() {
        let all = tally.states.len() as u64;
        assert!(wanted.is_none_or(|wanted| all >= wanted));
        // A test in which nothing happens tests nothing.
        assert!(tally.kinds.iter().all(|kind| *kind > all / 100), "{tally}");
        assert!(tally.rolled_forward > all / 5 && tally.dropped > 0 && tally.in_recovery > all / 100, "{tally}");
        let cleaned = tally.cleaner_since > all / 100 && tally.segments_cleaned > all / 100;
        assert!(cleaned && tally.blocks_plugged > 100 && (!long || tally.out_of_space > 0), "{tally}");
    }
}
