//! Rounds in random order, interleaved over points and targets: what drifts, drifts for all alike.
//!
//! In virtual time nothing drifts, but each run would find the disk and the free space as the one before has left them.
//! So a file system that can be duplicated ([`FileSystem::duplicate`]) is, for each run: every point starts from the
//! same state, and what is measured of it does not depend on what else is measured.

use crate::WorkloadError;
use crate::benchmark::Prepared;
use crate::cache_note::CacheNote;
use crate::driver::{Driver, poll};
use crate::parameters::Parameters;
use crate::phase::{Phase, Unit};
use crate::point::Point;
use crate::repeat::Repeat;
use crate::result::BenchResult;
use crate::sample::Sample;
use crate::target_result::{PhaseResult, PointResult, Round, TargetResult};
use posix::{CacheState, Environment, FileSystem};
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

/// A file system to run on, and what it is called in the result.
pub struct Place<'a> {
    /// Its name, different from the others'.
    pub name: String,
    /// The file system. A benchmark that makes files does so in directories of its own (`fsage-bench-…`) in its root.
    /// Caches are verified on a sample of what lies below the root: a root of its own makes that a sample of the
    /// benchmark's files. One that can be duplicated stays as it is: the benchmark runs on duplicates.
    pub fs: &'a mut dyn FileSystem,
}

/// How far a benchmark is.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// The target at work.
    pub target: &'a str,
    /// The point at work.
    pub point: &'a str,
    /// Runs done and runs in all.
    pub done: u64,
    #[allow(missing_docs)]
    pub total: u64,
}

/// A benchmark on one target, and what has come of it so far.
struct Bout<'p, 'a, 'l> {
    place: &'p mut Place<'a>,
    log: Option<&'l mut dyn FileSystem>,
    /// Whether each run has a file system of its own.
    apart: bool,
    benchmark: Box<dyn Prepared>,
    points: Vec<Point>,
    environment: Environment,
    caches: CacheNote,
    rounds: Vec<Vec<(Phase, Unit, Vec<Round>)>>,
}

/// Runs a benchmark on targets side by side.
///
/// # Errors
/// Options that make no sense; a call that failed, with its target; a signal. What was made has been removed.
pub fn run(
    parameters: &Parameters,
    places: &mut [Place<'_>],
    progress: &mut dyn FnMut(&Progress<'_>),
) -> Result<BenchResult, WorkloadError> {
    run_with_logs(parameters, places, Vec::new(), progress)
}

/// Runs a benchmark on one file system, which is called by its target's name.
///
/// # Errors
/// As [`run`].
pub fn run_on(
    fs: &mut dyn FileSystem,
    parameters: impl Into<Parameters>,
    progress: &mut dyn FnMut(&Progress<'_>),
) -> Result<BenchResult, WorkloadError> {
    let name = fs.environment().target;
    run(&parameters.into(), &mut [Place { name, fs }], progress)
}

/// As [`run_on`]; with a second file system, on another disk, a benchmark that keeps a log ([`tpcb`](crate::tpcb))
/// writes it there.
///
/// # Errors
/// As [`run`].
pub fn run_on_with_log(
    fs: &mut dyn FileSystem,
    log: Option<&mut dyn FileSystem>,
    parameters: impl Into<Parameters>,
    progress: &mut dyn FnMut(&Progress<'_>),
) -> Result<BenchResult, WorkloadError> {
    let name = fs.environment().target;
    run_with_logs(&parameters.into(), &mut [Place { name, fs }], vec![log], progress)
}

/// As [`run`] with a second file system beside each target, on another disk, for benchmarks that keep a log there
/// ([`tpcb`](crate::tpcb)); targets without one keep none.
///
/// # Errors
/// As [`run`].
pub fn run_with_logs(
    parameters: &Parameters,
    places: &mut [Place<'_>],
    logs: Vec<Option<&mut dyn FileSystem>>,
    progress: &mut dyn FnMut(&Progress<'_>),
) -> Result<BenchResult, WorkloadError> {
    let repeat = *parameters.repeat();
    if repeat.rounds == 0 {
        return Err(WorkloadError::Options("at least one round is needed".into()));
    }
    let mut bouts = Vec::with_capacity(places.len());
    let mut logs = logs.into_iter();
    for place in places {
        let log = logs.next().flatten();
        poll()?;
        // What making ready leaves in the caches is no part of any point.
        let mut own = place.fs.duplicate();
        let apart = own.is_some();
        let fs: &mut dyn FileSystem = match &mut own {
            Some(own) => own,
            None => &mut *place.fs,
        };
        let benchmark = parameters.benchmark().prepare(fs).map_err(|source| on(&place.name, source))?;
        let points = benchmark.points();
        let rounds = points.iter().map(|_| Vec::new()).collect();
        let environment = place.fs.environment();
        bouts.push(Bout { place, log, apart, benchmark, points, environment, caches: CacheNote::cold(), rounds });
    }
    run_all(&mut bouts, &repeat, progress)?;
    let targets = bouts.into_iter().map(|bout| bout.finish(&repeat)).collect();
    Ok(BenchResult { parameters: parameters.clone(), version: env!("CARGO_PKG_VERSION").to_owned(), targets })
}

fn run_all(
    bouts: &mut [Bout<'_, '_, '_>],
    repeat: &Repeat,
    progress: &mut dyn FnMut(&Progress<'_>),
) -> Result<(), WorkloadError> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(repeat.seed);
    let cells: Vec<(u32, usize, usize)> = bouts
        .iter()
        .enumerate()
        .flat_map(|(b, bout)| bout.points.iter().enumerate().map(move |(p, point)| (point.stage, b, p)))
        .collect();
    let warm_ups = bouts.iter().filter(|bout| repeat.warm_up && !bout.apart).count();
    let total = cells.len() as u64 * u64::from(repeat.rounds) + warm_ups as u64;
    let mut done = 0;
    for (b, bout) in bouts.iter_mut().enumerate().filter(|(_, bout)| repeat.warm_up && !bout.apart) {
        // The first point of the first stage: what comes later may change what is measured.
        let first = cells.iter().filter(|cell| cell.1 == b).min_by_key(|cell| cell.0);
        if let Some(&(_, _, p)) = first {
            bout.run(p, "warm-up", done, total, progress)?;
            done += 1;
        }
    }
    let mut stages: Vec<u32> = cells.iter().map(|cell| cell.0).collect();
    stages.sort_unstable();
    stages.dedup();
    for stage in stages {
        let mut order: Vec<_> = cells.iter().filter(|cell| cell.0 == stage).copied().collect();
        for round in 0..repeat.rounds {
            stats::random::shuffle(&mut rng, &mut order);
            for &(_, b, p) in &order {
                let Some(bout) = bouts.get_mut(b) else { continue };
                let samples = bout.run(p, &round.to_string(), done, total, progress)?;
                bout.keep(p, round, &samples);
                done += 1;
            }
        }
    }
    Ok(())
}

impl Bout<'_, '_, '_> {
    fn run(
        &mut self,
        at: usize,
        round: &str,
        done: u64,
        total: u64,
        progress: &mut dyn FnMut(&Progress<'_>),
    ) -> Result<Vec<Sample>, WorkloadError> {
        let Some(point) = self.points.get(at) else { return Ok(Vec::new()) };
        progress(&Progress { target: &self.place.name, point: &point.label, done, total });
        let mut own = self.place.fs.duplicate().filter(|_| self.apart);
        let mut own_log = self.log.as_ref().and_then(|log| log.duplicate()).filter(|_| self.apart);
        // Where nothing else has been, a name in common makes the runs alike.
        let tag = if self.apart { "0-0".to_owned() } else { format!("{round}-{at}") };
        let mut driver = Driver::new(match &mut own {
            Some(own) => own,
            None => &mut *self.place.fs,
        });
        driver.log = match (&mut own_log, &mut self.log) {
            (Some(own), _) => Some(own),
            (None, Some(log)) => Some(&mut **log),
            (None, None) => None,
        };
        let samples = self.benchmark.once(&mut driver, point, &tag);
        samples.map_err(|source| on(&self.place.name, source))
    }

    fn keep(&mut self, at: usize, round: u32, samples: &[Sample]) {
        let Some(phases) = self.rounds.get_mut(at) else { return };
        for sample in samples {
            // A phase that is to find warm caches takes nothing away from what was done to make the others cold.
            if sample.caches.data != CacheState::Warm {
                self.caches.worsen(&sample.caches);
            }
            let row = Round::new(round, sample);
            match phases.iter_mut().find(|(phase, ..)| *phase == sample.phase) {
                Some((.., rounds)) => rounds.push(row),
                None => phases.push((sample.phase, sample.unit, vec![row])),
            }
        }
    }

    fn finish(self, repeat: &Repeat) -> TargetResult {
        let mut points: Vec<PointResult> = Vec::new();
        for (point, phases) in self.points.into_iter().zip(self.rounds) {
            let phases = phases.into_iter();
            let phases = phases.filter_map(|(phase, unit, rounds)| PhaseResult::of(phase, unit, rounds, repeat));
            // Stages of one point are one row of the result.
            match points.iter_mut().find(|earlier| earlier.point.label == point.label) {
                Some(earlier) => earlier.phases.extend(phases),
                None => points.push(PointResult { point, phases: phases.collect() }),
            }
        }
        TargetResult {
            name: self.place.name.clone(),
            environment: self.environment,
            caches: self.caches,
            notes: self.benchmark.notes(),
            points,
        }
    }
}

/// An error with the target it happened on; a signal is nobody's fault.
fn on(target: &str, source: WorkloadError) -> WorkloadError {
    match source {
        source @ (WorkloadError::Interrupted | WorkloadError::Options(_)) => source,
        source => WorkloadError::On { target: target.to_owned(), source: Box::new(source) },
    }
}
