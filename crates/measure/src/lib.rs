//! Micro-benchmarks: the whole system vector of a file system, measured.
//!
//! The values have to predict real workloads, so calls are made as programs make them: on files spread over many
//! directories, kinds of calls interleaved, in random order (seeded), in several rounds that take turns, every single
//! call timed. Each group of classes is a file here: `names` (warm names and attributes), `data` (cached), `copy`,
//! `uncached` (data on the device), `remove`, `stable` (fsync and its kin), `cold` (names, directories, block maps
//! after dropping caches). Before those `behaviour` finds by trying what no cost tells; beside them `reference` keeps
//! what can be measured again in a second; after them the caches' sizes (`caches`), write-back and its effect on other
//! calls (`writeback`). `stats` says what stands for many rounds and why; `host` reads what the machine says of itself.
//!
//! What may not live here: anything about a particular file system. A class that a system refuses, or that the time did
//! not suffice for, is missing from the profile with its reason, never guessed.

mod behaviour;
mod bench;
mod beside;
mod caches;
mod cold;
mod copy;
mod data;
mod far;
mod host;
mod names;
mod reference;
mod remove;
mod sheet;
mod stable;
mod uncached;
mod writeback;

pub use host::Host;

use bench::Bench;
use fault::{Fault, Kind};
use posix::{Call, Errno, FileSystem, Site, Target};
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use sheet::Finished;
use std::time::Duration;
use system::vector::Class;
use system::{FORMAT_VERSION, Parameters, Reference, References, SystemProfile};

/// How thorough a measurement is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Under a minute in all.
    Quick,
    /// More rounds, larger files, until the budget is used or intervals are narrow.
    Full,
}

impl Mode {
    /// On a real system 45 s, which leaves a quarter of a minute for making and removing the target, or five minutes.
    /// In virtual time hours, which are over in seconds.
    const fn usual_budget(self, is_virtual: bool) -> Duration {
        Duration::from_secs(match (self, is_virtual) {
            (Mode::Quick, false) => 45,
            (Mode::Full, false) => 300,
            (Mode::Quick, true) => 6 * 3600,
            (Mode::Full, true) => 24 * 3600,
        })
    }
}

/// What to measure, and for how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeasureOptions {
    /// Quick or full.
    pub mode: Mode,
    /// Time by the target's clock to stay within, preparation included; `None`: what is usual for the mode.
    pub budget: Option<Duration>,
    /// Seed of every random choice.
    pub seed: u64,
    /// The profile's name; the target's as the user wrote it where empty.
    pub name: String,
}

impl MeasureOptions {
    /// Less than a minute.
    pub fn quick(seed: u64) -> MeasureOptions {
        MeasureOptions { mode: Mode::Quick, budget: None, seed, name: String::new() }
    }

    /// Some minutes.
    pub fn full(seed: u64) -> MeasureOptions {
        MeasureOptions { mode: Mode::Full, budget: None, seed, name: String::new() }
    }

    /// Space the measurement needs in its target, bytes; more is used for the data cache if there is more.
    pub fn need_bytes(&self) -> u64 {
        match self.mode {
            Mode::Quick => 400 << 20,
            Mode::Full => 1200 << 20,
        }
    }

    /// Files and directories it makes at least.
    pub fn need_inodes(&self) -> u64 {
        match self.mode {
            Mode::Quick => 60_000,
            Mode::Full => 200_000,
        }
    }
}

/// How far a measurement has come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// What is being measured.
    pub stage: &'static str,
    /// Rounds ended so far, over all groups of classes.
    pub rounds: u32,
    /// Share done, 0 to 1; never falls.
    pub done_share: f64,
    /// Time used.
    pub elapsed: Duration,
    /// Time left, at most.
    pub remaining: Duration,
}

/// Why a measurement ended without a profile.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// The user asked to stop.
    #[error("measurement interrupted; nothing was saved")]
    Interrupted,
    /// A call that everything rests on failed.
    #[error("{call}{on}: {errno}{}", hint(*errno))]
    Call {
        /// The system call.
        call: &'static str,
        /// The path it was made on, with a space before, where there was one.
        on: String,
        /// The error.
        errno: Errno,
    },
    /// A call of the workload under load failed.
    #[error("the workload under background load failed: {errno}{}", hint(*errno))]
    Process {
        /// The error.
        errno: Errno,
    },
    /// Something around the calls failed.
    #[error("{doing}: {source}")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
}

impl Fault for MeasureError {
    fn kind(&self) -> Kind {
        match self {
            MeasureError::Interrupted => Kind::Interrupted,
            MeasureError::Io { source, .. } if source.kind() == std::io::ErrorKind::Interrupted => Kind::Interrupted,
            _ => Kind::Environment,
        }
    }
}

impl MeasureError {
    fn call(call: &Call<'_>, errno: Errno) -> MeasureError {
        let path = match call {
            Call::Open { at, .. }
            | Call::Truncate { at, .. }
            | Call::Stat { at, .. }
            | Call::Unlink { at }
            | Call::Mkdir { at, .. }
            | Call::Rmdir { at } => Some(at.path),
            _ => None,
        };
        let on = path.map_or_else(String::new, |path| format!(" {}", path.display()));
        MeasureError::Call { call: bench::call_name(call), on, errno }
    }
}

fn hint(errno: Errno) -> &'static str {
    match errno {
        Errno::ENOSPC => " (the target is full: measuring needs space and inodes of its own)",
        Errno::EDQUOT => " (the quota is used up: measuring needs space and inodes of its own)",
        Errno::EROFS => " (the target is read-only)",
        Errno::EMFILE => " (too many open files: raise the limit, ulimit -n)",
        Errno::ENODEV | Errno::EIO | Errno::EUCLEAN => " (the target failed or vanished; see the kernel's log)",
        _ => "",
    }
}

/// A set of classes that are measured together.
trait Group {
    /// For progress reports.
    fn name(&self) -> &'static str;
    /// What it measures.
    fn classes(&self) -> &'static [Class];
    /// Makes the files it works on.
    fn prepare(&mut self, b: &mut Bench<'_>) -> Result<(), MeasureError>;
    /// Measures each class some times, until done or [`Bench::go_on`] says no; leaves no descriptor open.
    fn round(&mut self, b: &mut Bench<'_>) -> Result<(), MeasureError>;
}

/// Measures the system vector of a target.
///
/// # Errors
/// The target fails or is full, or a signal asked to stop.
pub fn measure(
    site: &dyn Site,
    options: &MeasureOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<SystemProfile, MeasureError> {
    let mut fs = site.handle();
    apart(site, &mut *fs)?;
    let host = match fs.memory() {
        Some(limits) => Host::of_limits(&limits),
        None => Host::of_this_machine(posix::timer_overhead_ns() as f64),
    };
    measure_on(&mut *fs, &host, options, &posix::interrupt::requested, progress)
}

/// In a directory of a user's, puts what each group of classes makes and removes into a part of the disk of its own,
/// and the directories of names into several: ext4 without a journal passes over every inode that was removed there in
/// the last minutes, and the price of making a file would be that of so many removals.
fn apart(site: &dyn Site, fs: &mut dyn FileSystem) -> Result<(), MeasureError> {
    let Some(workspace) = site.workspace().filter(|w| matches!(w.target(), Target::Directory(_))) else {
        return Ok(());
    };
    workspace.spread("");
    let call = Call::Mkdir { at: names::DIRECTORY.into(), mode: bench::DIR_MODE };
    fs.call(&call).result.map_err(|errno| MeasureError::call(&call, errno))?;
    workspace.spread(names::DIRECTORY);
    Ok(())
}

/// Measures the system vector of any file system, on its own clock.
///
/// `interrupted` is asked between calls; when it says yes the measurement ends with [`MeasureError::Interrupted`].
pub fn measure_on(
    fs: &mut dyn FileSystem,
    host: &Host,
    options: &MeasureOptions,
    interrupted: &dyn Fn() -> bool,
    progress: &mut dyn FnMut(Progress),
) -> Result<SystemProfile, MeasureError> {
    let usage = fs.usage().map_err(|source| MeasureError::Io { doing: "asking for free space", source })?;
    let environment = fs.environment();
    let mut parameters = Parameters {
        memory_available_bytes: host.memory_available_bytes,
        block_bytes: usage.block_bytes,
        fragment_bytes: usage.block_bytes,
        dirty_background_bytes: host.dirty_background_bytes,
        dirty_limit_bytes: host.dirty_limit_bytes,
        dirty_expire_ns: host.dirty_expire_ns,
        timer_overhead_ns: host.timer_overhead_ns,
        ..Parameters::default()
    };
    let budget = options.budget.unwrap_or_else(|| options.mode.usual_budget(fs.is_deterministic()));
    let rng = Xoshiro256PlusPlus::seed_from_u64(options.seed);
    let bench = Bench::new(fs, rng, options.mode, interrupted);
    let mut run =
        Run { began_ns: bench.fs.now_ns(), bench, budget_ns: nanoseconds(budget), rounds: 0, share: 0.0, progress };
    run.report("behaviour");
    let behaviour = behaviour::find(&mut run.bench)?;
    run.bench.any_sync_commits = behaviour.sync_leaves_changes == Some(true);
    run.report("syncs of several threads");
    let sync_beside = beside::curve(&mut run.bench)?;
    parameters.calls_beside = beside::calls(&mut run.bench)?;
    let mut references = run.vector()?;
    run.report("cache sizes");
    let left_ns = run.left_ns();
    caches::measure(&mut run.bench, left_ns / 3, &mut parameters)?;
    run.report("write-back");
    let left_ns = run.left_ns();
    writeback::throughput(&mut run.bench, left_ns / 3, &mut parameters)?;
    run.report("write-back");
    let left_ns = run.left_ns();
    let write_load = writeback::load_curve(&mut run.bench, left_ns * 3 / 4)?;
    run.budget_ns = run.elapsed_ns();
    run.report("done");
    let rounds = run.rounds;
    // The date when it ended: in virtual time the same for the same calls.
    let measured_unix_s = u64::try_from(run.bench.fs.date_ns() / 1_000_000_000).unwrap_or(0);
    let Finished { entries, missing, core, core_power } = run.bench.sheet.finish();
    parameters.core_power = core_power;
    // That of the whole measurement, not only of the bursts.
    references.extend(core.map(|core| (Reference::Core, core)));
    let mode = if options.mode == Mode::Quick { "quick" } else { "full" };
    Ok(SystemProfile {
        format_version: FORMAT_VERSION,
        name: if options.name.is_empty() { environment.target.clone() } else { options.name.clone() },
        provenance: format!(
            "fsage {} measure --{mode} --budget {}s --seed {}, {rounds} rounds",
            env!("CARGO_PKG_VERSION"),
            budget.as_secs(),
            options.seed
        ),
        measured_unix_s,
        environment,
        parameters,
        behaviour,
        write_load,
        sync_beside,
        entries,
        missing,
        references,
    })
}

/// Space that measuring the references takes, bytes.
pub const REFERENCES_BYTES: u64 = 40 << 20;
/// Measures the references of a target again, in less than a second; none in virtual time, where nothing drifts.
///
/// # Errors
/// The target fails or is full, or a signal asked to stop.
pub fn references(site: &dyn Site, seed: u64) -> Result<References, MeasureError> {
    let mut fs = site.handle();
    let rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut bench = Bench::new(&mut *fs, rng, Mode::Quick, &posix::interrupt::requested);
    let Some(mut reference) = reference::Measured::prepare(&mut bench)? else { return Ok(References::new()) };
    reference.burst(&mut bench)?;
    reference.finish(&mut bench)
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// The share of the budget that the vector may use; the rest is for caches and write-back.
const VECTOR_SHARE: f64 = 0.7;
/// The share of the budget in which a group makes files that it can do without.
const PREPARE_SHARE: f64 = 0.02;
/// Turns of all groups between bursts of references.
const BURST_EVERY: u32 = 4;
/// An interval of this width, relative to the mean, is narrow enough: more rounds would not change a prediction.
const NARROW: f64 = 0.02;

/// The measurement's course: whose turn it is, and how much time is left.
struct Run<'a, 'p> {
    bench: Bench<'a>,
    began_ns: u64,
    budget_ns: u64,
    rounds: u32,
    share: f64,
    progress: &'p mut dyn FnMut(Progress),
}

/// A group and what its rounds have cost.
struct Turn {
    group: Box<dyn Group>,
    rounds: u32,
    spent_ns: u64,
}

impl Run<'_, '_> {
    fn elapsed_ns(&self) -> u64 {
        self.bench.fs.now_ns().saturating_sub(self.began_ns)
    }

    fn left_ns(&self) -> u64 {
        self.budget_ns.saturating_sub(self.elapsed_ns())
    }

    fn report(&mut self, stage: &'static str) {
        let elapsed_ns = self.elapsed_ns();
        let share = elapsed_ns as f64 / self.budget_ns.max(1) as f64;
        self.share = self.share.max(share.min(1.0));
        (self.progress)(Progress {
            stage,
            rounds: self.rounds,
            done_share: self.share,
            elapsed: Duration::from_nanos(elapsed_ns),
            remaining: Duration::from_nanos(self.budget_ns.saturating_sub(elapsed_ns)),
        });
    }

    /// All groups in turn, in another random order each time, until every one's intervals are narrow, it has had its
    /// rounds, or the time is up. The first turn of each is limited to its part of the time, so that none goes without.
    ///
    /// Returns the references, a burst of which goes before every so many-th turn.
    fn vector(&mut self) -> Result<References, MeasureError> {
        let (least, most) = if self.bench.mode == Mode::Quick { (6, 16) } else { (10, 80) };
        let budget_ns = (self.budget_ns as f64 * VECTOR_SHARE) as u64;
        let groups: Vec<Box<dyn Group>> = vec![
            Box::new(names::Names::default()),
            Box::new(data::Data::default()),
            Box::new(far::Far::default()),
            Box::new(copy::Copy::default()),
            Box::new(uncached::Uncached::default()),
            Box::new(remove::Remove::default()),
            Box::new(stable::Stable::default()),
            Box::new(cold::Cold::default()),
        ];
        let mut turns = Vec::with_capacity(groups.len());
        for mut group in groups {
            self.report("preparing files");
            self.bench.set_slice_ns((self.budget_ns as f64 * PREPARE_SHARE) as u64);
            group.prepare(&mut self.bench)?;
            turns.push(Turn { group, rounds: 0, spent_ns: 0 });
        }
        let mut reference = reference::Measured::prepare(&mut self.bench)?;
        let mut turn = 0;
        loop {
            if let Some(reference) = reference.as_mut().filter(|_| turn % BURST_EVERY == 0) {
                self.report("references");
                reference.burst(&mut self.bench)?;
            }
            self.bench.shuffle(&mut turns);
            let waiting = turns.len() as u64;
            let mut ran = false;
            for turn in &mut turns {
                let left_ns = budget_ns.saturating_sub(self.elapsed_ns());
                let cost_ns = turn.spent_ns / u64::from(turn.rounds.max(1));
                let narrow = turn.rounds >= least && self.bench.sheet.relative_width(turn.group.classes()) < NARROW;
                if turn.rounds >= most || narrow || (turn.rounds > 0 && cost_ns > left_ns) {
                    continue;
                }
                self.report(turn.group.name());
                self.bench.set_slice_ns((left_ns / waiting).max(self.budget_ns / 100));
                let began_ns = self.bench.fs.now_ns();
                turn.group.round(&mut self.bench)?;
                self.bench.sheet.end_round();
                turn.spent_ns += self.bench.fs.now_ns().saturating_sub(began_ns);
                turn.rounds += 1;
                self.rounds += 1;
                ran = true;
            }
            if !ran {
                break;
            }
            turn += 1;
        }
        reference.map_or(Ok(References::new()), |reference| reference.finish(&mut self.bench))
    }
}
