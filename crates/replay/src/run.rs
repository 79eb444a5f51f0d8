//! The replay from end to end: scan, check the space, rebuild, empty the caches, run, write back.

use super::lane::Lane;
use super::observed::{ObservationFile, Observations, Run};
use super::rebuild::{self, relative};
use super::scan::{self, Scan};
use super::shared::{Fixed, Remains, Report, Shared, Source};
use super::tally::{Sample, Tally};
use super::{Concurrency, Initially, Progress, ReplayError, ReplayOptions, ReplayResult, Requirements, Stage, Threads};
use posix::{CacheState, Call, Fd, FileKind, FileSystem, Mode, OpenFlags, Process, Site};
use trace::Snapshot;
use trace::profile::Reader;

/// Threads of a replay at most.
const LANES_MAX: usize = 1024;

/// Replays a workload on a target.
///
/// # Errors
/// The profile cannot be read; the target is too small, fails, fills up or goes away; the user interrupts. The run's
/// directory is the site's to remove.
pub fn replay(
    reader: &Reader,
    site: &dyn Site,
    options: &ReplayOptions,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<ReplayResult, ReplayError> {
    replay_read(reader, site, options, None, progress).map(|(result, _)| result)
}

/// As [`replay`], and tells of every call what was seen of it, by way of a file.
///
/// Where a descriptor tells, the cache is looked at just before the call, outside its time. That alone is not without
/// an effect: what the look reads of the kernel's own structures is in the processor's caches when the call begins.
///
/// # Errors
/// As [`replay`], and the file cannot be written.
pub fn replay_observed(
    reader: &Reader,
    site: &dyn Site,
    options: &ReplayOptions,
    file: ObservationFile,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<(ReplayResult, Observations), ReplayError> {
    let (result, observations) = replay_read(reader, site, options, Some(file), progress)?;
    Ok((result, observations.expect("who gives a file gets observations")))
}

fn replay_read(
    reader: &Reader,
    site: &dyn Site,
    options: &ReplayOptions,
    file: Option<ObservationFile>,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<(ReplayResult, Option<Observations>), ReplayError> {
    let mut fs = site.handle();
    let snapshot = reader.snapshot()?;
    let open = || -> Result<Source<'_>, ReplayError> {
        Ok(Box::new(reader.batches()?.map(|batch| batch.map_err(ReplayError::from))))
    };
    replay_from(&mut fs, &snapshot, &open, options, file, progress).map_err(|error| error.of(reader))
}

/// What a replay of a workload needs of its target, found by reading the trace once.
///
/// # Errors
/// The profile cannot be read; the user interrupts.
pub fn requirements(reader: &Reader) -> Result<Requirements, ReplayError> {
    let snapshot = reader.snapshot()?;
    let batches = reader.batches()?.map(|batch| batch.map_err(ReplayError::from));
    let scan = scan::scan(&snapshot, batches, |_| not_interrupted("reading the trace"));
    Ok(needs(&scan.map_err(|error| error.of(reader))?, 4096))
}

/// Opens a trace; it is read twice.
pub type OpenTrace<'a> = dyn Fn() -> Result<Source<'a>, ReplayError> + 'a;

/// Replays a trace on any file system.
///
/// Whatever the trace says, its calls stay below the file system's root: they are made
/// [contained](FileSystem::contained). What is asked of the rest of the machine (caches, free space, the environment,
/// the trace's files) is asked outside.
///
/// # Errors
/// As [`replay`].
pub fn replay_on<F: FileSystem>(
    fs: &mut F,
    snapshot: &Snapshot,
    open_trace: &OpenTrace<'_>,
    options: &ReplayOptions,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<ReplayResult, ReplayError> {
    replay_from(fs, snapshot, open_trace, options, None, progress).map(|(result, _)| result)
}

/// As [`replay_on`], and tells of every call what was seen of it ([`replay_observed`]).
///
/// # Errors
/// As [`replay_observed`].
pub fn replay_on_observed<F: FileSystem>(
    fs: &mut F,
    snapshot: &Snapshot,
    open_trace: &OpenTrace<'_>,
    options: &ReplayOptions,
    file: ObservationFile,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<(ReplayResult, Observations), ReplayError> {
    let (result, observations) = replay_from(fs, snapshot, open_trace, options, Some(file), progress)?;
    Ok((result, observations.expect("who gives a file gets observations")))
}

fn replay_from<F: FileSystem>(
    fs: &mut F,
    snapshot: &Snapshot,
    open_trace: &OpenTrace<'_>,
    options: &ReplayOptions,
    file: Option<ObservationFile>,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<(ReplayResult, Option<Observations>), ReplayError> {
    let scan = scan::scan(snapshot, open_trace()?, |done| {
        progress(Progress { stage: Stage::Scan, done, total: None });
        not_interrupted("reading the trace")
    })?;
    check_space(fs, &scan)?;
    let environment = fs.environment();

    let began_ns = fs.now_ns();
    let total = Some(scan.initial.len() as u64);
    let rebuilt = contained(fs, |fs, root| {
        rebuild::rebuild(fs, root, &scan.initial, options, |done| {
            progress(Progress { stage: Stage::Rebuild, done, total });
            Ok(())
        })
    })?;
    progress(Progress { stage: Stage::Caches, done: 0, total: None });
    let emptied = match options.initially {
        Initially::Rebuilt => CacheState::Unverified,
        Initially::Cold | Initially::Warm => fs.drop_caches().map_err(ReplayError::io("emptying the caches"))?,
    };
    let cache_state = match options.initially {
        Initially::Cold | Initially::Rebuilt => emptied,
        Initially::Warm => {
            contained(fs, |fs, root| rebuild::warm(fs, root, &scan.initial))?;
            CacheState::Warm
        }
    };
    let rebuild_ns = fs.now_ns().saturating_sub(began_ns);

    let source = open_trace()?;
    let (ran, final_sync_ns) = contained(fs, |fs, root| {
        let is_virtual = fs.is_deterministic();
        let ran =
            Prepared { scan: &scan, root, options, observed: file.as_ref(), is_virtual }.run(fs, source, progress)?;
        progress(Progress { stage: Stage::Sync, done: 0, total: None });
        let final_sync_ns = write_back(fs, root, ran.calls)?;
        Ok((ran, final_sync_ns))
    })?;
    let mut tally = ran.tally;
    let observations = file.map(|file| Observations::new(file, ran.observed));
    let result = ReplayResult {
        environment,
        options: *options,
        traced_calls: scan.events,
        calls: tally.calls(),
        total_ns: tally.total_ns(),
        wall_ns: ran.wall_ns,
        final_sync_ns,
        rebuild_ns,
        rebuilt,
        cache_state,
        concurrency: Concurrency {
            traced_threads: scan.threads as u64,
            traced_alive_max: scan.threads_max as u64,
            in_flight_max: scan.in_flight_max as u64,
            overlapped_calls: scan.overlapped,
            replay_threads: lanes(&scan, options.threads) as u64,
        },
        sample: tally.sample(),
        core_ns: tally.core_ns(),
        per_op: tally.per_op(),
        per_subtree: tally.per_subtree(),
        differences: tally.differences(),
        skipped: std::mem::take(&mut tally.skipped),
    };
    Ok((result, observations))
}

/// What `work` answers, done with calls that cannot leave the file system's root, which is open for it.
fn contained<F: FileSystem, T: Send>(
    fs: &mut F,
    work: impl FnOnce(&mut dyn FileSystem, Fd) -> Result<T, ReplayError> + Send,
) -> Result<T, ReplayError> {
    let (mut work, mut done) = (Some(work), None);
    let outcome = fs.contained(&mut |fs| {
        let flags = OpenFlags { path_only: true, directory: true, ..OpenFlags::default() };
        let root = fs.call(&Call::Open { at: "/".into(), flags, mode: Mode(0) }).fd();
        let (Ok(root), Some(work)) = (root, work.take()) else {
            done = root.err().map(|errno| Err(ReplayError::Vanished { errno, calls: 0 }));
            return;
        };
        done = Some(work(fs, root));
        // A descriptor would keep what it holds in the cache.
        fs.call(&Call::Close { fd: root });
    });
    outcome.map_err(ReplayError::io("keeping the replay inside its directory"))?;
    done.expect("work is called once where containing succeeds")
}

/// Writes back what the replay left dirty, and looks whether its root is still there; answers the time of the former.
fn write_back(fs: &mut dyn FileSystem, root: Fd, calls: u64) -> Result<u64, ReplayError> {
    let began_ns = fs.now_ns();
    let synced = fs.call(&Call::SyncFs);
    let sync_ns = fs.now_ns().saturating_sub(began_ns);
    let there = fs.call(&Call::Stat { at: relative(root, b"."), follow: true });
    synced.result.and(there.result).map_err(|errno| ReplayError::Vanished { errno, calls })?;
    Ok(sync_ns)
}

struct Prepared<'s> {
    scan: &'s Scan,
    root: Fd,
    options: &'s ReplayOptions,
    observed: Option<&'s ObservationFile>,
    is_virtual: bool,
}

struct Ran {
    tally: Tally,
    calls: u64,
    wall_ns: u64,
    observed: Vec<Run>,
}

impl Prepared<'_> {
    fn tally(&self) -> Tally {
        let sample_end = self.scan.events.div_ceil(Sample::ONE_IN);
        Tally::new(self.options.subtree_depth, self.options.differences_max, sample_end, self.is_virtual)
    }

    /// Makes the calls. Descriptors left open are closed on every way out.
    fn run(self, fs: &mut dyn FileSystem, source: Source<'_>, progress: Report<'_>) -> Result<Ran, ReplayError> {
        let lanes = lanes(self.scan, self.options.threads);
        let fixed = Fixed {
            root: self.root,
            modes: self.options.modes(),
            pace: self.options.pace,
            lanes,
            threads: self.options.threads,
            issued: self.scan.issued,
            last_use: &self.scan.last_use,
            last_of_thread: &self.scan.last_of_thread,
            modes_of_directories: &self.scan.modes_of_directories,
            named_later: &self.scan.named_later,
            off_path: &self.scan.off_path,
            observed: self.observed,
        };
        let shared = Shared::new(fixed, source, progress);
        let began_ns = fs.now_ns();
        let ran = {
            let processes: Vec<Box<dyn Process + '_>> =
                (0..lanes).map(|i| Box::new(Lane::new(&shared, i, self.tally())) as Box<dyn Process + '_>).collect();
            fs.run(processes)
        };
        let wall_ns = fs.now_ns().saturating_sub(began_ns);
        let Remains { error, tallies, observed, skipped, open, calls } = shared.finish();
        for fd in open {
            fs.call(&Call::Close { fd });
        }
        match ran {
            _ if error.is_some() => {}
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {
                return Err(ReplayError::Interrupted { stage: "replaying", calls });
            }
            Err(source) => return Err(ReplayError::Io { doing: "running the replay's threads", source }),
            Ok(()) => {}
        }
        if let Some(error) = error {
            return Err(error);
        }
        let mut tally = self.tally();
        for one in tallies {
            tally.merge(one);
        }
        for (why, count) in skipped {
            *tally.skipped.entry(why).or_default() += count;
        }
        Ok(Ran { tally, calls, wall_ns, observed })
    }
}

fn lanes(scan: &Scan, threads: Threads) -> usize {
    let wanted = match threads {
        Threads::Single => 1,
        Threads::Keep => scan.threads_max,
        Threads::Auto if scan.overlapped.saturating_mul(100) < scan.issued => 1,
        Threads::Auto => scan.in_flight_max,
    };
    wanted.clamp(1, LANES_MAX)
}

fn not_interrupted(stage: &'static str) -> Result<(), ReplayError> {
    if posix::interrupt::requested() { Err(ReplayError::Interrupted { stage, calls: 0 }) } else { Ok(()) }
}

/// Space and names, from what the scan found and the target's unit of allocation.
fn needs(scan: &Scan, block_bytes: u64) -> Requirements {
    let block = block_bytes.max(512);
    let mut bytes = scan.growth_bytes.saturating_add(scan.growth_names.saturating_mul(block));
    for entry in scan.initial.entries() {
        bytes = bytes.saturating_add(match entry.kind {
            FileKind::Directory => block,
            FileKind::File if entry.needs_data && entry.link_to.is_none() => {
                entry.size_bytes.checked_next_multiple_of(block).unwrap_or(u64::MAX)
            }
            _ => 0,
        });
    }
    Requirements { bytes, inodes: (scan.initial.len() as u64).saturating_add(scan.growth_names) }
}

fn check_space<F: FileSystem>(fs: &mut F, scan: &Scan) -> Result<(), ReplayError> {
    let usage = fs.usage().map_err(ReplayError::io("asking the target for its free space"))?;
    let need = needs(scan, u64::from(usage.block_bytes));
    // File systems that make inodes on demand say 0.
    let inodes_short = usage.total_inodes > 0 && usage.free_inodes < need.inodes;
    if need.bytes > usage.available_bytes || inodes_short {
        return Err(ReplayError::NoSpace {
            target: fs.environment().target,
            need_bytes: need.bytes,
            need_inodes: need.inodes,
            have_bytes: usage.available_bytes,
            have_inodes: usage.free_inodes,
        });
    }
    Ok(())
}
