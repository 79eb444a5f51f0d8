//! Crashes at every point of random workloads of a log with the cleaner running: after recovery everything is
//! consistent, what was promised is there, and the tree is as it was after some call.
//!
//! A log whose partial segments go out together is safe on a drive that does not tear them; it is crashed on one that
//! does each request wholly or not at all. One with `order=barrier` is safe on any: it is crashed with any sectors lost
//! that were not flushed.
//!
//! Each seed is the life of a file system: a workload, a crash, and another workload on what recovery has left, with
//! sizes, policies and habits of its own.
//! `FSAGE_CRASH_STATES=1000000 cargo test --release -p fsage-crash --test it -- --nocapture lfs::` goes on until there
//! were as many distinct states; `FSAGE_CRASH_SEED=n` looks at one life alone.

use crash::sequence::{Drawn, MIXES, Mix};
use crash::{Class, Found, LfsSubject, Op, Ran, Search, Settings, Subject, Watched, image_of, search, shown_ops};
use device::crash::{Crash, Plan, StateId, UnderWay, WriteCache};
use device::fixed::{Choice, FixedDevice};
use device::store::{Frozen, MemoryStore, Overlay};
use kernel::{Machine, Setup};
use lfs::mkfs::{MkfsOptions, mkfs};
use lfs::planted::Bug;
use lfs::{Options, Planted};
use posix::{Errno, OpenFlags};
use rand_core::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Lives that a usual run has.
const USUAL_SEEDS: u64 = 6;

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

/// Without flushes: every second life.
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

/// Everything about a life follows from its seed.
struct Life {
    seed: u64,
    words: &'static str,
    mkfs: MkfsOptions,
    mix: &'static Mix,
    alike: bool,
    subject: LfsSubject,
}

impl Life {
    fn new(seed: u64, planted: Planted) -> Life {
        Life::with(seed, None, planted)
    }

    /// The same with other choices.
    fn with(seed: u64, words: Option<&'static str>, planted: Planted) -> Life {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut below = |n: usize| random.next_u64() as usize % n;
        let (bsize, fsize, ssize, whole, segments) = SHAPES[below(SHAPES.len())];
        let barrier = Life::has_barrier(seed);
        let drawn = if barrier { BARRIER[below(BARRIER.len())] } else { TOGETHER[below(TOGETHER.len())] };
        let words = words.unwrap_or(drawn);
        let mix = &MIXES[below(MIXES.len())];
        let cache_bytes = [192 << 10, 512 << 10, 2 << 20][below(3)];
        // A partial segment in several requests is safe only if its summary comes after a flush.
        let transfer_bytes = if barrier { [32 << 10, 64 << 10, 1 << 20][below(3)] } else { 1 << 20 };
        let choice = [Choice::Oldest, Choice::Nearest][below(2)];
        let alike = below(2) == 0;
        let size_bytes = (segments + below(10) as u64) * u64::from(ssize);
        let (ssize, ibsize) = (Some(ssize), whole.then_some(bsize));
        let mkfs = MkfsOptions { bsize, fsize, ssize, ibsize, seed, ..MkfsOptions::new(size_bytes) };
        let plug_percent = [90, 10, 30, 0][(seed / 2) as usize % 4];
        let mut options = Options { plug_percent, ..Options::default() };
        assert!(words.split(',').all(|word| options.set(word)), "{words}");
        // A machine with little memory, so that much is written.
        let mut machine = Machine::load("pentium3-500").unwrap();
        machine.memory.buffer_cache_bytes.value = cache_bytes;
        machine.memory.attribute_cache_inodes.value = 64;
        machine.io.largest_transfer_bytes.value = transfer_bytes;
        let setup = Setup { machine, target: "lfs".into(), drive: "fixed".into(), epoch_ns: 820_000_000_000_000_000 };
        let device = move || -> Result<Box<dyn device::Device>, lab::OpenError> {
            Ok(Box::new(FixedDevice::with_distance(size_bytes, 3_000_000, 100_000, choice)))
        };
        let subject = LfsSubject::with(options, setup, Box::new(device)).planted(planted);
        Life { seed, words, mkfs, mix, alike, subject }
    }

    fn has_barrier(seed: u64) -> bool {
        seed % 2 == 1
    }

    fn plan(seed: u64) -> Plan {
        let (cache, under_way) = match Life::has_barrier(seed) {
            true => (WriteCache::On, UnderWay::Torn),
            false => (WriteCache::Off, UnderWay::Whole),
        };
        Plan { cache, under_way, most_of_a_point: 6, seed }
    }

    fn blank(&self) -> Frozen {
        let mut store = MemoryStore(vec![0; self.mkfs.size_bytes as usize]);
        mkfs(&mut store, &self.mkfs).unwrap();
        Frozen(store.0.into())
    }

    /// A workload on a disk that shows `seen`.
    fn workload(&self, run: u64, base: Frozen, seen: &Found, calls: u32) -> Ran {
        let serial = 1_000_000 * run as u32;
        let mut watched = Watched::mount(&self.subject, base, seen, serial).unwrap();
        watched.alike = self.alike;
        let mut drawn = Drawn::new(self.seed + (run << 32), self.mix, seen, serial, self.mkfs.bsize);
        drawn.most_wait_ms = 4000;
        let (mut held, mut refused) = (Vec::new(), 0);
        for _ in 0..calls {
            let op = drawn.next().unwrap();
            match &op {
                // Somebody has it open while it goes.
                Op::Unlink { path } if held.len() < 3 && drawn.now_and_then(6) => {
                    held.extend(watched.open(path, OpenFlags::READ_WRITE).ok());
                }
                Op::Wait { .. } if drawn.now_and_then(2) => {
                    if let Some(fd) = held.pop() {
                        watched.close(fd).unwrap();
                    }
                }
                _ => {}
            }
            match watched.perform(&op) {
                Ok(()) => {}
                Err(Errno::ENOSPC) => {
                    refused += 1;
                    drawn.refused();
                    self.make_room(run, &mut watched, &mut drawn);
                }
                Err(errno) => panic!("seed {}, run {run}: {op}: {errno}", self.seed),
            }
        }
        let counts = self.subject.counts(watched.volume());
        Ran { history: watched.into_history(), refused, counts }
    }

    /// A quarter of the files goes. A log that nobody cleans may have no room left for that either (seeds 7 and 92 of
    /// the long run).
    fn make_room(&self, run: u64, watched: &mut Watched<::lfs::Lfs>, drawn: &mut Drawn) {
        for _ in 0..drawn.files() / 4 {
            let Some(op) = drawn.to_remove() else { return };
            match watched.perform(&op) {
                Ok(()) => drawn.removed(&op),
                Err(Errno::ENOSPC) if self.words.contains("cleaner=off") => return,
                Err(errno) => panic!("seed {}, run {run}, {}, making room: {op}: {errno}", self.seed, self.words),
            }
        }
    }

    /// The workload after so many crashes.
    fn run(&self, run: u64, calls: u32) -> Ran {
        let (mut base, mut seen) = (self.blank(), Found::default());
        for number in 0.. {
            let ran = self.workload(number, base, &seen, calls);
            if number == run {
                return ran;
            }
            // The power fails somewhere in the last quarter.
            let draw = self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 7;
            let entries = ran.history.log.len() as u64;
            let point = (entries - entries / 4 + draw % (entries / 4).max(1)) as u32;
            let state = StateId { point, choice: 0 };
            let bytes = Frozen(image_of(&ran.history, Life::plan(self.seed), state).unwrap().into());
            let recovered = self.subject.recover(&mut Overlay::new(bytes.clone()));
            seen = recovered.unwrap_or_else(|why| panic!("seed {}: {why:?}", self.seed)).found;
            base = bytes;
        }
        unreachable!("runs are counted from 0")
    }
}

fn setting(name: &str) -> Option<u64> {
    testkit::parameter(name)
}

/// Looks at the lives of seeds.
fn live(seed: u64, runs: u64, calls: u32, settings: Settings, planted: Planted) -> Search {
    live_on(Life::plan(seed), seed, (runs, calls), settings, planted)
}

/// The same on a drive of another kind.
fn live_on(plan: Plan, seed: u64, (runs, calls): (u64, u32), settings: Settings, planted: Planted) -> Search {
    let settings = Settings { plan, ..settings };
    let life = Life::new(seed, planted);
    let history = |number: u64| Ok((number < runs).then(|| life.run(number, calls)));
    search(&life.subject, history, 1, &settings, &mut |_| true).unwrap_or_else(|e| panic!("seed {seed}: {e}"))
}

fn explain(seed: u64, found: &Search) -> String {
    let life = Life::new(seed, Planted::NONE);
    let failures = found.failures.iter().filter(|failure| failure.verdict.class >= Class::UnsyncedLost);
    let lines: Vec<String> = failures
        .map(|failure| {
            let last: Vec<Op> = failure.ops.iter().rev().take(12).rev().cloned().collect();
            let (state, verdict) = (failure.state, &failure.verdict);
            format!("{state} {:?} {:?}: {}\n  …; {}", failure.again, verdict.class, verdict.why, shown_ops(&last))
        })
        .collect();
    format!("seed {seed}, {} on {:?}, {}:\n{}", life.words, life.mkfs, life.mix.name, lines.join("\n"))
}

/// Power failures at every point of many lives.
#[test]
fn whatever_a_crash_leaves_is_whole() {
    let wanted = setting("FSAGE_CRASH_STATES");
    let only = setting("FSAGE_CRASH_SEED");
    let (runs, calls, moment_of) = if wanted.is_some() { (3, 900, 1) } else { (2, 400, 2) };
    let settings = Settings { moment_of, recovery_of: 40, ..Settings::default() };
    let mut tally = crash::Tally::default();
    for seed in 1.. {
        let enough = match (only, wanted) {
            (Some(_), _) => seed > 1,
            (None, None) => seed > USUAL_SEEDS,
            (None, Some(wanted)) => tally.states >= wanted,
        };
        if enough {
            break;
        }
        let seed = only.unwrap_or(seed);
        let found = live(seed, runs, calls, settings, Planted::NONE);
        let bad = found.tally.failed() + found.tally.of(Class::UnsyncedLost);
        assert_eq!(bad, 0, "{}", explain(seed, &found));
        tally.add(&found.tally);
    }
    println!("{tally:#?}");
    if only.is_none() {
        // A test in which nothing happens tests nothing.
        let all = tally.states;
        let events = |name: &str| tally.events.get(name).copied().unwrap_or(0);
        assert!(wanted.is_none_or(|wanted| all >= wanted));
        assert!(events("rolled forward") > all / 5 && events("not to the end of the log") > 0, "{tally:#?}");
        assert!(tally.in_recovery > all / 100 && events("with the cleaner's writes") > all / 100, "{tally:#?}");
        assert!(events("segments cleaned") > 100 && events("blocks into holes") > 100, "{tally:#?}");
        assert!(wanted.is_none() || tally.refused > 0, "{tally:#?}");
    }
}

/// The log fills up, and then all of it is cleaned at once: power failures in between. With `FSAGE_CRASH_STATES` until
/// there were as many states. `cleaner::` breaks the rules of this.
#[test]
fn a_log_that_is_cleaned_as_a_whole() {
    let looked_at = |seed, calls, settings: Settings| {
        let words = match Life::has_barrier(seed) {
            true => "order=barrier,cleaner=cost-benefit,cleaning=all",
            false => "cleaner=greedy,cleaning=all",
        };
        let life = Life::with(seed, Some(words), Planted::NONE);
        let history = |number: u64| Ok((number < 1).then(|| life.run(number, calls)));
        let settings = Settings { plan: Life::plan(seed), ..settings };
        search(&life.subject, history, 1, &settings, &mut |_| true).unwrap_or_else(|e| panic!("seed {seed}: {e}"))
    };
    let mut tally = crash::Tally::default();
    let mut look = |seed: u64, calls: u32, settings: Settings| {
        let found = looked_at(seed, calls, settings);
        let bad = found.tally.failed() + found.tally.of(Class::UnsyncedLost);
        assert_eq!(bad, 0, "{}", explain(seed, &found));
        tally.add(&found.tally);
        tally.states
    };
    match setting("FSAGE_CRASH_STATES") {
        Some(wanted) => {
            let settings = Settings { moment_of: 1, recovery_of: 40, ..Settings::default() };
            let _ = (1..).find(|seed| look(*seed, 900, settings) >= wanted);
        }
        // Small disks, which come round.
        None => {
            let settings = Settings { moment_of: 16, recovery_of: 40, ..Settings::default() };
            for (seed, calls) in [(1, 480), (14, 700)] {
                let _ = look(seed, calls, settings);
            }
        }
    }
    println!("{tally:#?}");
    let events = |name: &str| tally.events.get(name).copied().unwrap_or(0);
    assert!(events("times all was cleaned") > 2 && events("with the cleaner's writes") > 0, "{tally:#?}");
}

/// A state whose recovery, interrupted, could not be recovered: it wrote into a segment that a checkpoint on the disk
/// leads into. Found with seed 10: the log names one as next that is clean, as superblocks say that are not on the
/// disk. And with seed 66: the newer checkpoint knows one as empty, and the older one leads into it. Either bug,
/// planted again, shows in this state. Where the log does its work in another order, other states do: those in which
/// what recovery writes depends on the bug are few.
#[test]
fn recovery_spares_what_a_checkpoint_leads_into() {
    let (seed, run, state) = (66, 2, "128.1");
    let (ran, plan) = (Life::new(seed, Planted::NONE).run(run, 900), Life::plan(seed));
    let bytes = Frozen(image_of(&ran.history, plan, state.parse().unwrap()).unwrap().into());
    let interrupted = |planted| {
        let subject = Life::new(seed, planted).subject;
        let found = subject.recover(&mut Overlay::new(bytes.clone())).unwrap().found;
        let log = subject.recovery_log(&bytes).unwrap();
        let mut crash = Crash::new(bytes.clone(), &log, plan);
        let (mut looked, mut failed) = (0, Vec::new());
        while let Some(point) = crash.next_point().unwrap() {
            for choice in 0..point.choices {
                crash.lay(&point, choice).unwrap();
                let recovered = subject.recover(&mut Overlay::new(crash.disk()));
                if recovered.as_ref().is_ok_and(|recovered| recovered.found != found) || recovered.is_err() {
                    failed.push(format!("{}.{choice}", point.number));
                }
                crash.lift().unwrap();
                looked += 1;
            }
        }
        assert!(looked > 3, "{looked}");
        failed
    };
    assert_eq!(interrupted(Planted::NONE), [""; 0]);
    for bug in [Bug::NextIsClean, Bug::EmptyByOne] {
        assert!(!interrupted(Planted::all(&[bug])).is_empty(), "{bug:?} shows in this state no more");
    }
}

/// Each rule of roll-forward, and of the order in which the log is written, is there for a reason.
#[test]
fn planted_bugs_are_found() {
    let bugs = [
        Bug::UnfinishedCounts,
        Bug::NoRollForward,
        Bug::GoneStays,
        Bug::SummaryFirst,
        Bug::SuperblockFirst,
        Bug::FsyncReturnsEarly,
    ];
    for bug in bugs {
        let found = (1..=7).step_by(2).any(|seed| {
            let settings = Settings { moment_of: 4, recovery_of: 0, ..Settings::default() };
            live(seed, 1, 300, settings, Planted::all(&[bug])).tally.failed() > 0
        });
        assert!(found, "nobody notices {bug:?}");
    }
}

/// A log without flushes on a drive that tears writes: the checksum finds what it can, and its absence lets through
/// much more.
#[test]
fn the_checksum_of_a_partial_segment_is_needed() {
    let failed = |planted| {
        let one = |seed| {
            let settings = Settings { moment_of: 4, recovery_of: 0, ..Settings::default() };
            let plan = Plan { under_way: UnderWay::Torn, most_of_a_point: 16, ..Life::plan(seed) };
            live_on(plan, seed, (1, 300), settings, planted).tally.failed()
        };
        [2, 4, 6].into_iter().map(one).sum::<u64>()
    };
    let (with, without) = (failed(Planted::NONE), failed(Planted::all(&[Bug::TornCounts])));
    println!("{with} states with the checksum, {without} without");
    assert!(without > 2 * with + 10, "{with} states with the checksum, {without} without");
}

/// The states of a history are made again by their names.
#[test]
fn a_state_is_made_again_by_its_name() {
    let life = Life::new(1, Planted::NONE);
    let ran = life.run(0, 150);
    let plan = Life::plan(1);
    let mut crash = Crash::new(ran.history.base.clone(), &ran.history.log, plan);
    let mut compared = 0;
    while let Some(point) = crash.next_point().unwrap() {
        let choice = point.choices - 1;
        if point.number % 5 == 0 {
            crash.lay(&point, choice).unwrap();
            let state = StateId { point: point.number as u32, choice };
            let image = image_of(&ran.history, plan, state).unwrap();
            assert_eq!(device::store::read(&crash.disk(), 0, image.len()).unwrap(), image, "{state}");
            crash.lift().unwrap();
            compared += 1;
        }
    }
    assert!(compared > 3, "{compared}");
}
