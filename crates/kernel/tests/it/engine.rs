//! Time: concurrency, queues, waits, ties, and that the short cut changes nothing.

use crate::common;
use crate::common::{MB, call, create, free_machine, lab, lab_with, setup, volume, write};
use device::fixed::{Choice, FixedDevice};
use kernel::payload::Image;
use kernel::testing::{MemVolume, Metadata};
use kernel::{Lab, LogEntry, Machine, Pbn};
use posix::{Call, FileSystem, Mode, OpenFlags, Outcome, Process, Reply, Step};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::sync::{Arc, Mutex};

type Outcomes = Arc<Mutex<Vec<(usize, Outcome)>>>;

/// A process that makes calls one after another.
struct Script {
    number: usize,
    steps: std::vec::IntoIter<Action>,
    outcomes: Outcomes,
    turn: Option<Arc<Mutex<u32>>>,
}

#[derive(Clone, Debug)]
enum Action {
    Call(Call<'static>),
    Pause(u64),
    /// Until the shared number is this.
    Await(u32),
    Set(u32),
}

impl Process for Script {
    fn next(&mut self, last: Option<&Outcome>) -> Step<'_> {
        if let Some(last) = last {
            self.outcomes.lock().unwrap().push((self.number, *last));
        }
        loop {
            match self.steps.as_slice().first() {
                Some(Action::Await(value)) if *self.turn.as_ref().unwrap().lock().unwrap() != *value => {
                    return Step::Blocked;
                }
                _ => {}
            }
            match self.steps.next() {
                None => return Step::Done,
                Some(Action::Call(call)) => return Step::Call(call),
                Some(Action::Pause(ns)) => return Step::PauseNs(ns),
                Some(Action::Await(_)) => {}
                Some(Action::Set(value)) => *self.turn.as_ref().unwrap().lock().unwrap() = value,
            }
        }
    }
}

fn run(lab: &mut Lab<MemVolume>, scripts: Vec<Vec<Action>>) -> std::io::Result<Vec<(usize, Outcome)>> {
    let outcomes = Outcomes::default();
    let turn = Arc::new(Mutex::new(0));
    let processes = scripts.into_iter().enumerate().map(|(number, steps)| {
        let (outcomes, turn) = (outcomes.clone(), Some(turn.clone()));
        Box::new(Script { number, steps: steps.into_iter(), outcomes, turn }) as Box<dyn Process>
    });
    lab.run(processes.collect())?;
    let outcomes = outcomes.lock().unwrap().clone();
    Ok(outcomes)
}

fn read(fd: posix::Fd, block: u64) -> Action {
    Action::Call(Call::Read { fd, offset: Some(block * 8192), len_bytes: 8192 })
}

/// A cold file of 1000 blocks in one piece, with reads that are only what they are asked for.
fn cold(device: FixedDevice) -> (Lab<MemVolume>, posix::Fd) {
    let mut lab = lab_with(volume(64 * MB, Metadata::Delayed), device, free_machine(16 * MB), Image::of_given());
    let fd = create(&mut lab, "f");
    write(&mut lab, fd, 0, 1000 * 8192);
    lab.drop_caches().unwrap();
    // The pointers to the blocks are in memory; only data are read from here on.
    let advice = posix::Advice::Random;
    call(&mut lab, Call::Advise { fd, offset: 0, len_bytes: 0, advice }).unwrap();
    common::read(&mut lab, fd, 999 * 8192, 8192);
    (lab, fd)
}

#[test]
fn one_process_waits_for_each_request() {
    let (mut lab, fd) = cold(FixedDevice::new(64 * MB, 10_000_000));
    let before = lab.now_ns();
    let outcomes = run(&mut lab, vec![(0..5).map(|n| read(fd, n * 7)).collect()]).unwrap();
    assert!(outcomes.iter().all(|(_, o)| o.dur_ns == 10_000_000), "{outcomes:?}");
    assert_eq!(lab.now_ns() - before, 50_000_000);
}

#[test]
fn two_processes_share_the_disk_in_the_order_they_come() {
    let (mut lab, fd) = cold(FixedDevice::new(64 * MB, 10_000_000));
    let scripts = (0..2).map(|p| (0..3).map(|n| read(fd, 100 * p + 9 * n)).collect()).collect();
    let before = lab.now_ns();
    let outcomes = run(&mut lab, scripts).unwrap();
    // The first never waits for the other at first; from then on both wait for both.
    let of = |p| -> Vec<u64> { outcomes.iter().filter(|(n, _)| *n == p).map(|(_, o)| o.dur_ns / 1_000_000).collect() };
    assert_eq!((of(0), of(1)), (vec![10, 20, 20], vec![20, 20, 20]));
    assert_eq!(lab.now_ns() - before, 60_000_000);
}

#[test]
fn the_device_chooses_among_what_waits() {
    // Three processes at block 0, far away, and near again: the nearest is served before the older.
    let order = |choice| {
        let device = FixedDevice::with_distance(64 * MB, 1_000_000, 1_000_000, choice);
        let (mut lab, fd) = cold(device);
        let outcomes = run(&mut lab, vec![vec![read(fd, 0)], vec![read(fd, 900)], vec![read(fd, 3)]]).unwrap();
        let processes: Vec<usize> = outcomes.iter().map(|(p, _)| *p).collect();
        (processes, outcomes.iter().map(|(_, o)| o.dur_ns).max().unwrap())
    };
    let (oldest, oldest_ns) = order(Choice::Oldest);
    let (nearest, nearest_ns) = order(Choice::Nearest);
    assert_eq!((oldest, nearest), (vec![0, 1, 2], vec![0, 2, 1]));
    assert!(nearest_ns < oldest_ns);
}

#[test]
fn one_processor_is_shared_and_two_are_not() {
    let spent = |count| {
        let mut machine = free_machine(8 * MB);
        machine.cpu.count = count;
        machine.costs.call_ns.value = 1_000_000;
        let device = FixedDevice::new(64 * MB, 10_000_000);
        let mut lab = lab_with(volume(64 * MB, Metadata::Delayed), device, machine, Image::of_given());
        call(&mut lab, Call::Stat { at: "f".into(), follow: true }).unwrap_err();
        let before = lab.now_ns();
        let stat = Action::Call(Call::StatFs { at: ".".into() });
        run(&mut lab, vec![vec![stat.clone(); 4]; 2]).unwrap();
        lab.now_ns() - before
    };
    assert_eq!((spent(1), spent(2)), (8_000_000, 4_000_000));
}

#[test]
fn computing_and_waiting_for_the_disk_overlap() {
    let (mut lab, fd) = cold(FixedDevice::new(64 * MB, 10_000_000));
    let before = lab.now_ns();
    run(&mut lab, vec![vec![read(fd, 5)], vec![Action::Pause(8_000_000)]]).unwrap();
    assert_eq!(lab.now_ns() - before, 10_000_000);
}

#[test]
fn who_changes_a_block_that_is_being_written_waits_for_it() {
    let mut lab = lab();
    let fd = create(&mut lab, "f");
    call(&mut lab, Call::SyncFs).unwrap();
    write(&mut lab, fd, 0, 8192);
    let change = Call::Write { fd, offset: Some(0), len_bytes: 10, data: None };
    let outcomes = run(
        &mut lab,
        vec![vec![Action::Call(Call::Fdatasync { fd })], vec![Action::Pause(4_000_000), Action::Call(change)]],
    )
    .unwrap();
    let changed = outcomes.iter().find(|(p, _)| *p == 1).unwrap().1;
    // For the data until 10 ms, and then for the inode's block.
    assert_eq!(changed.dur_ns, 6_000_000 + 10_000_000, "{outcomes:?}");
}

#[test]
fn at_the_same_time_the_lower_number_goes_first() {
    let mut lab = lab();
    let make = |_| {
        let flags = OpenFlags::CREATE_NEW;
        vec![Action::Pause(1000), Action::Call(Call::Open { at: "same".into(), flags, mode: Mode(0o644) })]
    };
    let outcomes = run(&mut lab, (0..3).map(make).collect()).unwrap();
    let made: Vec<usize> = outcomes.iter().filter(|(_, o)| o.result.is_ok()).map(|(p, _)| *p).collect();
    assert_eq!(made, [0]);
}

#[test]
fn a_blocked_process_goes_on_when_another_has_got_on() {
    let mut lab = lab();
    let stat = || Action::Call(Call::StatFs { at: ".".into() });
    let outcomes =
        run(&mut lab, vec![vec![Action::Await(1), stat()], vec![Action::Pause(5_000_000), stat(), Action::Set(1)]])
            .unwrap();
    let order: Vec<(usize, u64)> = outcomes.iter().map(|(p, o)| (*p, o.start_ns)).collect();
    assert_eq!(order.len(), 2);
    assert_eq!((order[0].0, order[1].0), (1, 0));
    assert!(order[1].1 >= 5_000_000);
}

#[test]
fn processes_that_wait_for_one_another_are_a_deadlock() {
    let mut lab = lab();
    let error = run(&mut lab, vec![vec![Action::Await(1)], vec![Action::Await(2)]]).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::Deadlock);
    // The laboratory is none the worse.
    call(&mut lab, Call::StatFs { at: ".".into() }).unwrap();
}

#[test]
fn a_run_that_ends_early_leaves_no_process_behind() {
    let (mut lab, fd) = cold(FixedDevice::new(64 * MB, 10_000_000));
    // The first deadlocks at once; the others are in the middle of something.
    let change = |block: u64| Action::Call(Call::Write { fd, offset: Some(block * 8192), len_bytes: 9, data: None });
    let stuck = run(&mut lab, vec![vec![read(fd, 5), Action::Await(9)], vec![change(50), Action::Await(9)]]);
    assert_eq!(stuck.unwrap_err().kind(), std::io::ErrorKind::Deadlock);
    let outcomes =
        run(&mut lab, vec![vec![read(fd, 20)], vec![read(fd, 21)], vec![Action::Call(Call::SyncFs)]]).unwrap();
    assert_eq!(outcomes.len(), 3);
    assert!(outcomes.iter().all(|(_, o)| o.result.is_ok() && o.dur_ns >= 10_000_000), "{outcomes:?}");
}

fn random_script(seed: u64, number: usize, fds: &[posix::Fd]) -> Vec<Action> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed * 100 + number as u64);
    let mut below = |n: u64| random.next_u64() % n;
    let mut script = Vec::new();
    for n in 0..120 {
        let fd = fds[below(fds.len() as u64) as usize];
        let offset = Some(below(300) * 4096);
        let len_bytes = 1 + below(40_000);
        let name: &'static str = Box::leak(format!("n{}", below(12)).into_boxed_str());
        script.push(match below(10) {
            0..=2 => Action::Call(Call::Write { fd, offset, len_bytes, data: None }),
            3..=5 => Action::Call(Call::Read { fd, offset, len_bytes }),
            6 => Action::Call(Call::Fsync { fd }),
            7 => Action::Pause(below(3_000_000_000)),
            8 if n % 2 == 0 => Action::Call(Call::Mkdir { at: name.into(), mode: Mode(0o755) }),
            8 => Action::Call(Call::Rmdir { at: name.into() }),
            _ => Action::Call(Call::Stat { at: name.into(), follow: false }),
        });
    }
    script
}

/// Everything that can be seen of a run.
fn observe(seed: u64, processes: usize, always_queue: bool) -> (Vec<(usize, Outcome)>, Vec<LogEntry>, u64) {
    let metadata = if seed.is_multiple_of(2) { Metadata::Delayed } else { Metadata::Synchronous };
    let mut machine = Machine::load(["pentium-120", "today"][(seed % 2) as usize]).unwrap();
    machine.memory.buffer_cache_bytes.value = MB;
    let device = FixedDevice::with_distance(64 * MB, 2_000_000, 40_000, Choice::Nearest);
    let mut lab = Lab::new(volume(64 * MB, metadata), Box::new(device), setup(machine)).unwrap();
    if always_queue {
        lab.always_queue();
    }
    lab.record_writes(true);
    let fds: Vec<posix::Fd> = (0..4).map(|n| create(&mut lab, &format!("file{n}"))).collect();
    let scripts = (0..processes).map(|number| random_script(seed, number, &fds)).collect();
    let outcomes = run(&mut lab, scripts).unwrap();
    lab.pause_ns(100_000_000_000);
    (outcomes, lab.take_log(), lab.now_ns())
}

#[test]
fn the_short_cut_changes_nothing_to_the_nanosecond() {
    for seed in 0..10 {
        for processes in [1, 3] {
            let (short, long) = (observe(seed, processes, false), observe(seed, processes, true));
            assert!(short == long, "seed {seed}, {processes} processes");
            assert!(!short.1.is_empty());
        }
    }
}

#[test]
fn the_same_processes_give_the_same_run() {
    for seed in 20..24 {
        assert!(observe(seed, 4, false) == observe(seed, 4, false), "seed {seed}");
    }
    assert!(observe(20, 4, false) != observe(21, 4, false));
}

#[test]
fn the_log_has_every_write_in_order_of_completion_with_its_bytes() {
    let device = FixedDevice::new(64 * MB, 1_000_000);
    let mut lab =
        lab_with(volume(64 * MB, Metadata::Synchronous), device, free_machine(8 * MB), Image::full_in_memory(64 * MB));
    lab.record_writes(true);
    let fd = create(&mut lab, "f");
    let text = b"what was written".repeat(512);
    let data = Some(&text[..]);
    call(&mut lab, Call::Write { fd, offset: Some(0), len_bytes: text.len() as u64, data }).unwrap();
    call(&mut lab, Call::Fsync { fd }).unwrap();
    let at = lab.extents(fd).unwrap()[0].physical_bytes;
    let log = lab.take_log();
    let mut last_ns = 0;
    let mut found = false;
    for entry in &log {
        let LogEntry::Write(write) = entry else { continue };
        assert!(write.completed_ns >= last_ns && write.issued_ns < write.completed_ns && write.durable);
        last_ns = write.completed_ns;
        let contents = write.contents.as_deref().unwrap();
        assert_eq!(contents.len() as u64, write.bytes);
        found |= write.pbn == Pbn(at / 512) && contents == &text[..];
    }
    assert!(found);
    assert_eq!(lab.counters().device.writes, log.len() as u64);
}

#[test]
fn a_device_that_is_too_small_is_refused() {
    let device = Box::new(FixedDevice::new(MB, 1));
    let error = Lab::new(volume(64 * MB, Metadata::Delayed), device, setup(free_machine(MB))).unwrap_err();
    assert!(error.to_string().contains("67108864"), "{error}");
}

#[test]
fn replies_are_what_they_are_before_time_passes() {
    // An operation takes effect when it is issued: the second process sees what the first has not yet waited for.
    let device = FixedDevice::new(64 * MB, 10_000_000);
    let mut lab = lab_with(volume(64 * MB, Metadata::Synchronous), device, free_machine(8 * MB), Image::of_given());
    let make = Action::Call(Call::Mkdir { at: "d".into(), mode: Mode(0o755) });
    let look = Action::Call(Call::Stat { at: "d".into(), follow: false });
    let outcomes = run(&mut lab, vec![vec![make], vec![Action::Pause(1), look]]).unwrap();
    let seen = outcomes.iter().find(|(p, _)| *p == 1).unwrap().1;
    let made = outcomes.iter().find(|(p, _)| *p == 0).unwrap().1;
    assert!(matches!(seen.result, Ok(Reply::Stat(_))) && seen.start_ns < made.start_ns + made.dur_ns);
}

#[test]
fn busy_is_the_time_of_calls_and_of_requests() {
    let mut machine = free_machine(8 * MB);
    machine.costs.call_ns.value = 1000;
    let device = FixedDevice::new(64 * MB, 10_000_000);
    let mut lab = lab_with(volume(64 * MB, Metadata::Delayed), device, machine, Image::of_given());
    let before = lab.counters();
    let fd = create(&mut lab, "f");
    write(&mut lab, fd, 0, 20 * 8192);
    // Nobody works.
    lab.pause_ns(5_000_000_000);
    call(&mut lab, Call::Fsync { fd }).unwrap();
    let after = lab.counters();
    let requests = after.device.writes + after.device.reads - before.device.writes - before.device.reads;
    assert!(requests >= 3, "{after:?}");
    assert_eq!(after.busy.device_ns - before.busy.device_ns, requests * 10_000_000);
    assert_eq!(after.busy.processors_ns - before.busy.processors_ns, 3 * 1000);
}
