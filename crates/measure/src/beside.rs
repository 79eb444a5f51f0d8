//! What threads cost each other.
//!
//! Syncs: some file systems commit those of several threads together, in others each waits for the ones before it.
//! Other calls: two hardware threads of a core share its units, and all share the kernel's locks.

use super::MeasureError;
use super::bench::Bench;
use posix::{Call, Errno, Fd, OpenFlags, Outcome, Process, Step};
use stats::midmean;
use std::sync::atomic::{AtomicBool, Ordering};
use system::SyncBeside;

/// Threads that sync at a time; the first is what the others are compared with.
const THREADS: [usize; 5] = [1, 2, 4, 8, 16];
/// Syncs of each thread, twice; the first is not counted, as the others may not have begun.
const SYNCS: usize = 7;
const BLOCK_BYTES: u64 = 4096;

/// Rounds of calls of each thread, and how often one thread and two are looked at in turn.
const ROUNDS: usize = 100;
const TURNS: usize = 4;

/// How many times as long calls take that wait for no device while another thread makes such calls; 0 where there is no
/// processor.
pub(super) fn calls(b: &mut Bench<'_>) -> Result<f64, MeasureError> {
    if !b.has_processor() {
        return Ok(0.0);
    }
    let paths = ["beside/0", "beside/1"];
    let mut files = Vec::new();
    for path in paths {
        files.push((path, b.open(path.into(), OpenFlags::READ_WRITE)?));
    }
    let (mut alone, mut beside) = (Vec::new(), Vec::new());
    for _ in 0..TURNS {
        alone.extend(calls_of(b, &files[..1])?);
        beside.extend(calls_of(b, &files)?);
    }
    for (_, fd) in files {
        b.close(fd)?;
    }
    let (alone_ns, beside_ns) = (midmean(&alone), midmean(&beside));
    Ok(if alone_ns > 0.0 { (beside_ns / alone_ns * 1000.0).round() / 1000.0 } else { 0.0 })
}

/// What rounds of calls took that a thread for each of the files makes.
fn calls_of(b: &mut Bench<'_>, files: &[(&'static str, Fd)]) -> Result<Vec<f64>, MeasureError> {
    // The others may not have begun in the first of them.
    together(b, "making calls from several threads", files, ROUNDS / 10, |&(path, fd), over, made| {
        Box::new(Caller { path, fd, number: 0, round_ns: 0.0, over, made })
    })
}

/// What threads time, one for each of the files, until the first of them sets its flag; the first `skipped` of each
/// left out.
fn together<F>(
    b: &mut Bench<'_>,
    doing: &'static str,
    files: &[F],
    skipped: usize,
    process: impl for<'p> Fn(&F, &'p AtomicBool, &'p mut Result<Vec<f64>, Errno>) -> Box<dyn Process + 'p>,
) -> Result<Vec<f64>, MeasureError> {
    let over = AtomicBool::new(false);
    let mut made: Vec<Result<Vec<f64>, Errno>> = files.iter().map(|_| Ok(Vec::new())).collect();
    let processes = files.iter().zip(&mut made).map(|(file, made)| process(file, &over, made)).collect();
    b.fs.run(processes).map_err(|source| MeasureError::Io { doing, source })?;
    let mut all = Vec::new();
    for one in made {
        all.extend(one.map_err(|errno| MeasureError::Process { errno })?.into_iter().skip(skipped));
    }
    Ok(all)
}

/// Looks at a file of its own, reads and overwrites it.
struct Caller<'a> {
    path: &'static str,
    fd: Fd,
    number: usize,
    round_ns: f64,
    /// Some thread has made all of its rounds.
    over: &'a AtomicBool,
    made: &'a mut Result<Vec<f64>, Errno>,
}

impl Process for Caller<'_> {
    fn next(&mut self, last: Option<&Outcome>) -> Step<'_> {
        let calls = [
            Call::Stat { at: self.path.into(), follow: true },
            Call::Read { fd: self.fd, offset: Some(0), len_bytes: BLOCK_BYTES },
            Call::Write { fd: self.fd, offset: Some(0), len_bytes: BLOCK_BYTES, data: None },
        ];
        let over = self.over.load(Ordering::Relaxed);
        if let Some(outcome) = last {
            if let Err(errno) = outcome.result {
                *self.made = Err(errno);
            }
            self.round_ns += outcome.dur_ns as f64;
            if self.number.is_multiple_of(calls.len())
                && let (Ok(made), false) = (&mut *self.made, over)
            {
                made.push(std::mem::take(&mut self.round_ns));
            }
        }
        if over || self.made.is_err() || self.number == ROUNDS * calls.len() {
            self.over.store(true, Ordering::Relaxed);
            return Step::Done;
        }
        self.number += 1;
        let [stat, read, write] = calls;
        Step::Call(match self.number % 3 {
            1 => stat,
            2 => read,
            _ => write,
        })
    }
}

/// Measures the curve: each thread appends a block to a file of its own and syncs it, again and again.
pub(super) fn curve(b: &mut Bench<'_>) -> Result<Vec<SyncBeside>, MeasureError> {
    b.make_dir("beside")?;
    let mut files = Vec::new();
    for number in 0..THREADS[THREADS.len() - 1] {
        let path = format!("beside/{number}");
        b.make_file(path.as_str().into(), BLOCK_BYTES)?;
        files.push(b.open(path.as_str().into(), OpenFlags { append: true, ..OpenFlags::WRITE })?);
    }
    b.sync()?;
    let mut times: Vec<Vec<f64>> = vec![Vec::new(); THREADS.len()];
    // Up and down, so that a drift of the machine meets all.
    for at in (0..THREADS.len()).chain((0..THREADS.len()).rev()) {
        let beside = syncs(b, &files[..THREADS[at]])?;
        times[at].extend(beside);
    }
    for fd in files {
        b.close(fd)?;
    }
    let alone_ns = midmean(&times[0]);
    let point = |(&threads, times): (&usize, &Vec<f64>)| SyncBeside {
        others: threads as u32 - 1,
        slowdown: (midmean(times) / alone_ns * 1000.0).round() / 1000.0,
    };
    if alone_ns <= 0.0 {
        return Ok(Vec::new());
    }
    Ok(THREADS.iter().zip(&times).skip(1).map(point).collect())
}

/// The latencies of syncs that a thread for each of the files makes, for as long as all of them do.
fn syncs(b: &mut Bench<'_>, files: &[Fd]) -> Result<Vec<f64>, MeasureError> {
    together(b, "syncing from several threads", files, 1, |&fd, over, made| {
        Box::new(Syncer { fd, wrote: false, left: SYNCS, over, made })
    })
}

/// Appends and syncs.
struct Syncer<'a> {
    fd: Fd,
    wrote: bool,
    left: usize,
    /// Some thread has made all of its syncs.
    over: &'a AtomicBool,
    made: &'a mut Result<Vec<f64>, Errno>,
}

impl Process for Syncer<'_> {
    fn next(&mut self, last: Option<&Outcome>) -> Step<'_> {
        let over = self.over.load(Ordering::Relaxed);
        if let Some(outcome) = last {
            if let Err(errno) = outcome.result {
                *self.made = Err(errno);
                self.over.store(true, Ordering::Relaxed);
                return Step::Done;
            }
            if !self.wrote {
                self.left -= 1;
                if let (Ok(made), false) = (&mut *self.made, over) {
                    made.push(outcome.dur_ns as f64);
                }
            }
        }
        if self.left == 0 {
            self.over.store(true, Ordering::Relaxed);
        }
        if over || self.left == 0 {
            return Step::Done;
        }
        self.wrote = !self.wrote;
        if self.wrote {
            Step::Call(Call::Write { fd: self.fd, offset: None, len_bytes: BLOCK_BYTES, data: None })
        } else {
            Step::Call(Call::Fsync { fd: self.fd })
        }
    }
}
