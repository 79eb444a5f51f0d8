//! The replay from end to end: scan, check the space, rebuild, empty the caches, run, write back.

use super::lane::Lane;
use super::rebuild::{self, Rebuilt, relative};
use super::scan::{self, Scan};
use super::shared::{Fixed, Remains, Report, Shared, Source};
use super::tally::Tally;
use super::{Concurrency, Initially, Progress, ReplayError, ReplayOptions, ReplayResult, Requirements, Stage, Threads};
use posix::{CacheState, Call, Errno, Fd, FileKind, FileSystem, Mode, OpenFlags, Process, Site};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use trace::Snapshot;
use trace::profile::Reader;

/// More directories than this are not put above the private root: their path must stay shorter than `PATH_MAX`.
const NEST_MAX: usize = 1500;
/// Symbolic links that one walk can follow (the kernel's limit).
const LINKS_MAX: usize = 40;
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
    let mut fs = site.handle();
    let snapshot = reader.snapshot()?;
    let open = || -> Result<Source<'_>, ReplayError> {
        Ok(Box::new(reader.batches()?.map(|batch| batch.map_err(ReplayError::from))))
    };
    replay_on(&mut fs, Some(site.root_path()), &snapshot, &open, options, progress)
}

/// What a replay of a workload needs of its target, found by reading the trace once.
///
/// # Errors
/// The profile cannot be read; the user interrupts.
pub fn requirements(reader: &Reader) -> Result<Requirements, ReplayError> {
    let snapshot = reader.snapshot()?;
    let batches = reader.batches()?.map(|batch| batch.map_err(ReplayError::from));
    let scan = scan::scan(&snapshot, batches, |_| Ok(()))?;
    Ok(needs(&scan, 4096))
}

/// Opens a trace; it is read twice.
pub type OpenTrace<'a> = dyn Fn() -> Result<Source<'a>, ReplayError> + 'a;

/// Replays a trace on any file system.
///
/// `link_root` is the path of the file system's root as its own path walk knows it; absolute symbolic links that the trace
/// makes are put below it. `None`: they are made as traced.
///
/// # Errors
/// As [`replay`].
pub fn replay_on<F: FileSystem>(
    fs: &mut F,
    link_root: Option<&Path>,
    snapshot: &Snapshot,
    open_trace: &OpenTrace<'_>,
    options: &ReplayOptions,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<ReplayResult, ReplayError> {
    let scan = scan::scan(snapshot, open_trace()?, |done| {
        progress(Progress { stage: Stage::Scan, done, total: None });
        not_interrupted("reading the trace")
    })?;
    check_space(fs, &scan)?;
    let environment = fs.environment();

    let began_ns = fs.now_ns();
    let (root, nest) = make_root(fs, &scan)?;
    let total = Some(scan.initial.len() as u64);
    let link_root = link_root.map(|path| path.join(&nest).as_os_str().as_bytes().to_vec());
    let rebuilt = rebuild::rebuild(fs, root, link_root.as_deref(), &scan.initial, options.data, |done| {
        progress(Progress { stage: Stage::Rebuild, done, total });
        Ok(())
    });
    // A descriptor would keep what it holds in the cache.
    fs.call(&Call::Close { fd: root });
    let rebuilt = rebuilt?;
    progress(Progress { stage: Stage::Caches, done: 0, total: None });
    let emptied = match options.initially {
        Initially::Rebuilt => CacheState::Unverified,
        Initially::Cold | Initially::Warm => fs.drop_caches().map_err(ReplayError::io("emptying the caches"))?,
    };
    let root = open_root(fs, &nest)?;
    let cache_state = match options.initially {
        Initially::Cold | Initially::Rebuilt => emptied,
        Initially::Warm => {
            rebuild::warm(fs, root, &scan.initial)?;
            CacheState::Warm
        }
    };
    let rebuild_ns = fs.now_ns().saturating_sub(began_ns);

    let prepared = Prepared { scan: &scan, root, link_root, rebuilt: &rebuilt, options };
    let ran = prepared.run(fs, open_trace()?, progress)?;

    progress(Progress { stage: Stage::Sync, done: 0, total: None });
    let sync_began_ns = fs.now_ns();
    let synced = fs.call(&Call::SyncFs);
    let final_sync_ns = fs.now_ns().saturating_sub(sync_began_ns);
    let vanished = fs.call(&Call::Stat { at: relative(root, b"."), follow: true });
    fs.call(&Call::Close { fd: root });
    if let Err(errno) = synced.result.and(vanished.result) {
        return Err(ReplayError::Vanished { errno, calls: ran.calls });
    }
    let mut tally = ran.tally;
    let mut latencies = tally.latencies.take().unwrap_or_default();
    latencies.sort_unstable();
    Ok(ReplayResult {
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
        per_op: tally.per_op(),
        per_subtree: tally.per_subtree(),
        differences: tally.differences(),
        skipped: std::mem::take(&mut tally.skipped),
        root: nest,
        latencies,
    })
}

struct Prepared<'s> {
    scan: &'s Scan,
    root: Fd,
    link_root: Option<Vec<u8>>,
    rebuilt: &'s Rebuilt,
    options: &'s ReplayOptions,
}

struct Ran {
    tally: Tally,
    calls: u64,
    wall_ns: u64,
}

impl Prepared<'_> {
    fn tally(&self) -> Tally {
        Tally::new(self.options.subtree_depth, self.options.differences_max, self.options.keep_latencies)
    }

    /// Makes the calls. Descriptors left open are closed on every way out.
    fn run<F: FileSystem>(self, fs: &mut F, source: Source<'_>, progress: Report<'_>) -> Result<Ran, ReplayError> {
        let lanes = lanes(self.scan, self.options.threads);
        let fixed = Fixed {
            root: self.root,
            link_root: self.link_root.clone(),
            pace: self.options.pace,
            lanes,
            threads: self.options.threads,
            issued: self.scan.issued,
            has_rewritten_links: self.rebuilt.rewritten_links > 0 || self.link_root.is_some(),
            last_use: &self.scan.last_use,
            last_of_thread: &self.scan.last_of_thread,
            modes_of_directories: &self.scan.modes_of_directories,
        };
        let shared = Shared::new(fixed, source, progress);
        let began_ns = fs.now_ns();
        let ran = {
            let processes: Vec<Box<dyn Process + '_>> =
                (0..lanes).map(|i| Box::new(Lane::new(&shared, i, self.tally())) as Box<dyn Process + '_>).collect();
            fs.run(processes)
        };
        let wall_ns = fs.now_ns().saturating_sub(began_ns);
        let Remains { error, tallies, skipped, open, calls } = shared.finish();
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
        Ok(Ran { tally, calls, wall_ns })
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
    for entry in &scan.initial {
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

/// Makes the directory that stands for the traced `/`, deep enough that no walk can leave the target's own directory.
///
/// A walk climbs by the `..` of its path and of the links it follows. By their letters the replay keeps them inside; a
/// link that was moved, or that leads through other links, can climb further, into the directories put above the
/// root here, which hold nothing.
fn make_root<F: FileSystem>(fs: &mut F, scan: &Scan) -> Result<(Fd, PathBuf), ReplayError> {
    let in_links = scan.link_dot_dots;
    let levels = scan.dot_dots.saturating_add(in_links.saturating_mul(LINKS_MAX));
    if levels > NEST_MAX {
        return Err(ReplayError::Climbs { dot_dots: scan.dot_dots.max(in_links) });
    }
    let failed = |errno| ReplayError::rebuild(b"/", errno, 0, scan.initial.len() as u64);
    let mut nest = PathBuf::new();
    for _ in 0..=levels {
        nest.push("r");
        let at = (nest.as_path()).into();
        fs.call(&Call::Mkdir { at, mode: Mode(0o700) }).result.map_err(failed)?;
    }
    Ok((open_root(fs, &nest)?, nest))
}

fn open_root<F: FileSystem>(fs: &mut F, nest: &Path) -> Result<Fd, ReplayError> {
    let flags = OpenFlags { path_only: true, directory: true, ..OpenFlags::default() };
    let opened = fs.call(&Call::Open { at: nest.into(), flags, mode: Mode(0) }).fd();
    opened.map_err(|errno: Errno| ReplayError::Vanished { errno, calls: 0 })
}
