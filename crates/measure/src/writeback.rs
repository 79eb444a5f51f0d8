//! How fast dirty data goes to the device, and how much slower calls are meanwhile.

use super::bench::{Bench, FILE_MODE};
use super::{MeasureError, Mode};
use posix::{At, Call, Errno, Fd, OpenFlags, Outcome, Process, Reply, Step};
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use stats::quantile;
use stats::random::index;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use system::{Parameters, WriteLoad};

const BLOCK_BYTES: u64 = 4096;
const SMALL_FILE_BYTES: u64 = 4096;
/// Loads of the curve, bytes per second; 0 is what the others are compared with.
const QUICK_LOADS: &[u64] = &[0, 4_000_000, 32_000_000, 128_000_000];
const FULL_LOADS: &[u64] = &[0, 1_000_000, 4_000_000, 16_000_000, 64_000_000, 256_000_000];
/// What the background writer writes at a time.
const LOAD_CHUNK_BYTES: u64 = 256 << 10;
const LOAD_FILE_BYTES: u64 = 32 << 20;
const READ_FILE_BYTES: u64 = 32 << 20;
const SMALL_FILES: usize = 64;

/// Write-back of large and of small new files, timed as the `syncfs` that has all of it to do.
pub(super) fn throughput(b: &mut Bench<'_>, budget_ns: u64, parameters: &mut Parameters) -> Result<(), MeasureError> {
    b.set_slice_ns(budget_ns);
    b.make_dir("writeback")?;
    let quick = b.mode == Mode::Quick;
    // All of it has to be there to be written back when the sync comes.
    let stays_bytes = match parameters.dirty_background_bytes {
        0 => u64::MAX,
        background_bytes => (background_bytes / 2).max(BLOCK_BYTES),
    };
    let large_bytes = b.large_file_bytes(if quick { 64 << 20 } else { 256 << 20 })?.min(stays_bytes);
    let stays_files = stays_bytes / (2 * SMALL_FILE_BYTES);
    let small_files = stays_files.clamp(100, if quick { 500 } else { 4000 });
    let repeats = if quick { 2 } else { 5 };
    let (mut large, mut small) = (Vec::new(), Vec::new());
    for _ in 0..repeats {
        if !b.go_on()? && !small.is_empty() {
            break;
        }
        let path = format!("writeback/{}", b.new_name("large"));
        b.sync()?;
        b.make_file(path.as_str().into(), large_bytes)?;
        large.push(large_bytes as f64 / timed_sync_s(b)?);
        b.unlink(path.as_str().into())?;
        let dir_path = format!("writeback/{}", b.new_name("dir"));
        let dir = b.new_dir(&dir_path)?;
        b.sync()?;
        let mut made = 0;
        while made < small_files && (made < 100 || b.go_on()?) {
            let name = b.new_name("small");
            b.make_file(dir.at(&name), SMALL_FILE_BYTES)?;
            made += 1;
        }
        small.push(made as f64 / timed_sync_s(b)?);
        b.close(dir.fd)?;
    }
    for (values, rate) in
        [(large, &mut parameters.writeback_bytes_per_s), (small, &mut parameters.writeback_files_per_s)]
    {
        let mut sorted = values;
        sorted.sort_by(f64::total_cmp);
        *rate = quantile(&sorted, 0.5).round();
    }
    Ok(())
}

fn timed_sync_s(b: &mut Bench<'_>) -> Result<f64, MeasureError> {
    let outcome = b.outcome(&Call::SyncFs);
    outcome.result.map_err(|errno| MeasureError::call(&Call::SyncFs, errno))?;
    Ok(outcome.dur_ns.max(1) as f64 / 1e9)
}

/// The asynchronous overhead curve: a fixed mixed workload while another process writes, and makes write-back
/// of it, at each load.
///
/// The thesis lets the kernel choose when to write back. Today's thresholds are gigabytes, so in the seconds that a
/// measurement has nothing would be written at all; here the writer asks for write-back of each piece
/// (`sync_file_range`) and waits for it.
pub(super) fn load_curve(b: &mut Bench<'_>, budget_ns: u64) -> Result<Vec<WriteLoad>, MeasureError> {
    let began = b.fs.now_ns();
    b.set_slice_ns(budget_ns);
    let bench = LoadBench::prepare(b)?;
    let loads = if b.mode == Mode::Quick { QUICK_LOADS } else { FULL_LOADS };
    // The first run finds how much work fits the time of one.
    let probe_cycles = 100;
    let probe_ns = bench.run(b, 0, probe_cycles)?.max(1);
    let left_ns = budget_ns.saturating_sub(b.fs.now_ns().saturating_sub(began));
    let repeats: usize = if b.mode == Mode::Quick { 3 } else { 5 };
    // Three times over: a loaded run may take that much longer.
    let run_ns = (left_ns / (3 * repeats as u64 * loads.len() as u64)).min(1_500_000_000);
    let cycles = usize::try_from(u128::from(run_ns) * probe_cycles as u128 / u128::from(probe_ns)).unwrap_or(0);
    let cycles = cycles.clamp(20, 20_000);
    let mut order: Vec<usize> = (0..repeats).flat_map(|_| 0..loads.len()).collect();
    b.shuffle(&mut order);
    let mut times: Vec<Vec<f64>> = vec![Vec::new(); loads.len()];
    for number in order {
        if !b.go_on()? {
            break;
        }
        if let (Some(&load), Some(times)) = (loads.get(number), times.get_mut(number)) {
            times.push(bench.run(b, load, cycles)? as f64 / 1e9);
        }
    }
    bench.close(b)?;
    Ok(curve(loads, times))
}

/// Medians, and each over that without load; no curve where the unloaded time is missing.
fn curve(loads: &[u64], times: Vec<Vec<f64>>) -> Vec<WriteLoad> {
    let mut curve: Vec<WriteLoad> = Vec::new();
    for (&load, mut times) in loads.iter().zip(times) {
        times.sort_by(f64::total_cmp);
        if times.is_empty() {
            continue;
        }
        let time_s = quantile(&times, 0.5);
        let unloaded_s = match curve.first() {
            Some(first) => first.time_s,
            None if load == 0 => time_s,
            None => return Vec::new(),
        };
        // A background writer never makes anything faster: that would be noise.
        let slowdown = (time_s / unloaded_s).max(1.0);
        curve.push(WriteLoad { load_bytes_per_s: load as f64, time_s, slowdown });
    }
    curve
}

/// The files both processes work on.
struct LoadBench {
    reads: Fd,
    load: Fd,
    reads_bytes: u64,
    load_bytes: u64,
}

impl LoadBench {
    fn prepare(b: &mut Bench<'_>) -> Result<LoadBench, MeasureError> {
        b.make_dir("load")?;
        for number in 0..SMALL_FILES {
            b.make_file(format!("load/small{number}").as_str().into(), SMALL_FILE_BYTES)?;
        }
        let (reads_bytes, load_bytes) = (b.large_file_bytes(READ_FILE_BYTES)?, b.large_file_bytes(LOAD_FILE_BYTES)?);
        b.make_file("load/reads".into(), reads_bytes)?;
        b.make_file("load/load".into(), load_bytes)?;
        b.sync()?;
        let reads = b.open("load/reads".into(), OpenFlags::READ_WRITE)?;
        let load = b.open("load/load".into(), OpenFlags::WRITE)?;
        Ok(LoadBench { reads, load, reads_bytes, load_bytes })
    }

    fn close(&self, b: &mut Bench<'_>) -> Result<(), MeasureError> {
        b.close(self.reads)?;
        b.close(self.load)
    }

    /// The time of the workload's calls, under a load.
    fn run(&self, b: &mut Bench<'_>, load: u64, cycles: usize) -> Result<u64, MeasureError> {
        b.evict(self.reads)?;
        let over = AtomicBool::new(false);
        let (mut work_result, mut load_result) = (Ok(0), Ok(()));
        let foreground = Foreground {
            files: self,
            rng: Xoshiro256PlusPlus::seed_from_u64(load ^ cycles as u64),
            cycles_left: cycles,
            phase: Phase::Stat,
            path: String::new(),
            fd: None,
            total_ns: 0,
            over: &over,
            result: &mut work_result,
        };
        let mut processes: Vec<Box<dyn Process + '_>> = vec![Box::new(foreground)];
        if let Some(interval_ns) = (LOAD_CHUNK_BYTES * 1_000_000_000).checked_div(load) {
            processes.push(Box::new(Background {
                files: self,
                interval_ns,
                first_ns: None,
                written: 0,
                syncing: false,
                over: &over,
                result: &mut load_result,
            }));
        }
        b.fs.run(processes).map_err(|source| MeasureError::Io { doing: "running the workload under load", source })?;
        // Whatever is left of the load belongs to no later measurement.
        b.quiet(&Call::Fsync { fd: self.load })?;
        load_result.map_err(|errno| MeasureError::Process { errno })?;
        work_result.map_err(|errno| MeasureError::Process { errno })
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Stat,
    Open,
    Read,
    Close,
    ReadUncached,
    Create,
    Write,
    CloseNew,
    Unlink,
}

/// The fixed mixed workload: each cycle looks at a small file, reads it, reads a block that is not cached, and makes
/// and removes a file.
struct Foreground<'a> {
    files: &'a LoadBench,
    rng: Xoshiro256PlusPlus,
    cycles_left: usize,
    phase: Phase,
    path: String,
    fd: Option<Fd>,
    total_ns: u64,
    over: &'a AtomicBool,
    result: &'a mut Result<u64, Errno>,
}

impl Foreground<'_> {
    fn end(&mut self, result: Result<u64, Errno>) -> Step<'_> {
        *self.result = result;
        self.over.store(true, Ordering::Relaxed);
        Step::Done
    }
}

impl Process for Foreground<'_> {
    fn next(&mut self, last: Option<&Outcome>) -> Step<'_> {
        if let Some(outcome) = last {
            self.total_ns += outcome.dur_ns;
            match outcome.result {
                Ok(Reply::Fd(fd)) => self.fd = Some(fd),
                Ok(_) => {}
                Err(errno) => return self.end(Err(errno)),
            }
        }
        if self.phase == Phase::Stat {
            let Some(left) = self.cycles_left.checked_sub(1) else { return self.end(Ok(self.total_ns)) };
            self.cycles_left = left;
            self.path = format!("load/small{}", index(&mut self.rng, SMALL_FILES));
        } else if self.phase == Phase::Create {
            self.path = format!("load/new{}", self.cycles_left);
        }
        let at: At<'_> = Path::new(&self.path).into();
        let fd = self.fd.unwrap_or(self.files.reads);
        let blocks = usize::try_from(self.files.reads_bytes / BLOCK_BYTES).unwrap_or(1);
        let (call, next) = match self.phase {
            Phase::Stat => (Call::Stat { at, follow: true }, Phase::Open),
            Phase::Open => (Call::Open { at, flags: OpenFlags::READ, mode: FILE_MODE }, Phase::Read),
            Phase::Read => (Call::Read { fd, offset: None, len_bytes: SMALL_FILE_BYTES }, Phase::Close),
            Phase::Close => (Call::Close { fd }, Phase::ReadUncached),
            Phase::ReadUncached => {
                let offset = Some(index(&mut self.rng, blocks) as u64 * BLOCK_BYTES);
                (Call::Read { fd: self.files.reads, offset, len_bytes: BLOCK_BYTES }, Phase::Create)
            }
            Phase::Create => (Call::Open { at, flags: OpenFlags::CREATE_NEW, mode: FILE_MODE }, Phase::Write),
            Phase::Write => (Call::Write { fd, offset: None, len_bytes: 2 * BLOCK_BYTES, data: None }, Phase::CloseNew),
            Phase::CloseNew => (Call::Close { fd }, Phase::Unlink),
            Phase::Unlink => (Call::Unlink { at }, Phase::Stat),
        };
        self.phase = next;
        Step::Call(call)
    }
}

/// Writes and writes back a chunk at every interval, until the foreground is through.
struct Background<'a> {
    files: &'a LoadBench,
    interval_ns: u64,
    /// When the first write began.
    first_ns: Option<u64>,
    written: u64,
    syncing: bool,
    over: &'a AtomicBool,
    result: &'a mut Result<(), Errno>,
}

impl Process for Background<'_> {
    fn next(&mut self, last: Option<&Outcome>) -> Step<'_> {
        if self.over.load(Ordering::Relaxed) {
            return Step::Done;
        }
        let fd = self.files.load;
        let chunks = (self.files.load_bytes / LOAD_CHUNK_BYTES).max(1);
        if let Some(outcome) = last {
            if let Err(errno) = outcome.result {
                *self.result = Err(errno);
                return Step::Done;
            }
            let first = *self.first_ns.get_or_insert(outcome.start_ns);
            if !self.syncing {
                self.syncing = true;
                let offset = (self.written % chunks) * LOAD_CHUNK_BYTES;
                self.written += 1;
                return Step::Call(Call::SyncRange {
                    fd,
                    offset,
                    len_bytes: LOAD_CHUNK_BYTES,
                    how: posix::SyncRange::WAITED,
                });
            }
            self.syncing = false;
            let due = first.saturating_add(self.written.saturating_mul(self.interval_ns));
            let now = outcome.start_ns.saturating_add(outcome.dur_ns);
            if due > now {
                return Step::PauseNs(due - now);
            }
        }
        let offset = Some((self.written % chunks) * LOAD_CHUNK_BYTES);
        Step::Call(Call::Write { fd, offset, len_bytes: LOAD_CHUNK_BYTES, data: None })
    }
}
