//! Prediction against the truth: workloads times targets, predicted and replayed, every miss laid open by call type.
//!
//! Each target is measured (or its profile given); each workload is then replayed on each target several times, in
//! random interleaved order until its median is known well enough, each time on a fresh private directory (on scratch
//! targets: a fresh file system), and predicted once. In several rounds measuring and replaying alternate, so that a
//! drift of the machine meets both, and the profiles are pooled. Just before each replay the references of the profile
//! are measured again there, so that it shows how far the machine has moved. What is compared, and with which
//! statistics, is in [`compare`] and [`stats`]; what is measured, predicted and replayed is behind [`Bench`], so that
//! the loop runs on fakes as well. What may not live here: rendering.

mod bench;
mod compare;
pub mod present;
pub mod residuals;

pub use bench::{Bench, OpenTarget, RealBench, ValidateTarget, ValidateWorkload};
pub use compare::{
    Cell, DriftSummary, MethodSummary, OpComparison, PairComparison, PairVerdict, Precision, Predicted, RankingSummary,
    Validation, compare,
};

use crate::residuals::ResidualWriter;
use fault::{Fault, Kind};
use measure::{MeasureError, MeasureOptions};
use posix::SetupError;
use predict::pipeline::{Calls, PredictError, PredictOptions};
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use replay::{ReplayError, ReplayOptions, ReplayResult};
use stats::random::shuffle;
use system::Drift;

/// Fewer replays than this say nothing of their noise.
pub const REPEATS_MIN: u32 = 3;

/// So many replays are enough, whatever their noise.
pub const REPEATS_MAX: u32 = 9;

/// What of a target is carried over to the time of the replays, by its references.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rescale {
    /// Nothing.
    #[default]
    No,
    /// How much of its core the processor has, as it was during each replay: what waits for the device stays.
    Core,
    /// Everything: reads and syncs too, as they were just before each replay.
    All,
}

impl Rescale {
    /// What of a drift counts; `None` if nothing does.
    fn of(self, drift: Option<Drift>) -> Option<Drift> {
        match self {
            Rescale::No => None,
            Rescale::Core => drift.map(Drift::of_the_core),
            Rescale::All => drift,
        }
    }
}

/// How to validate.
#[derive(Clone, Debug)]
pub struct ValidateOptions {
    /// Replays of each workload on each target; at least [`REPEATS_MIN`].
    pub repeats: u32,
    /// They go on until half the interval of their median ([`stats::median_interval`]) is at most this share of it,
    pub precision: Option<f64>,
    /// or there are so many.
    pub repeats_max: u32,
    /// Times that the targets are measured in turn with the replays, which are dealt out among these rounds; at least
    /// 1.
    pub rounds: u32,
    /// Seed of the order of replays.
    pub seed: u64,
    /// How targets without a profile are measured.
    pub measure: MeasureOptions,
    /// How workloads are replayed.
    pub replay: ReplayOptions,
    /// Whether to predict what a target costs at the time of the replays, not when its profile was measured.
    pub rescale: Rescale,
    /// How they are predicted. What the caches hold at first, and the pace, must be as in `replay`.
    pub predict: PredictOptions,
}

impl ValidateOptions {
    /// Three cold replays as fast as possible, quick measurements.
    pub fn new(seed: u64) -> ValidateOptions {
        ValidateOptions {
            repeats: REPEATS_MIN,
            precision: None,
            repeats_max: REPEATS_MAX,
            rounds: 1,
            seed,
            measure: MeasureOptions::quick(seed),
            replay: ReplayOptions::default(),
            rescale: Rescale::No,
            predict: PredictOptions { seed, calls: Calls::Replayed, ..PredictOptions::default() },
        }
    }
}

/// How far a validation is.
#[derive(Clone, Debug, PartialEq)]
pub struct ValidateProgress {
    /// What is being done.
    pub stage: ValidateStage,
    /// Measurements, predictions and replays done.
    pub done: u64,
    /// Of how many.
    pub total: u64,
    /// Workload, empty while measuring.
    pub workload: String,
    /// Target.
    pub target: String,
}

/// What a validation is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValidateStage {
    /// Measuring a target.
    Measure,
    /// Predicting a workload.
    Predict,
    /// Replaying a workload.
    Replay,
}

/// Why a validation failed. What had been found is lost: a table with holes would not be one.
#[derive(Debug, thiserror::Error)]
pub enum ValidateError {
    /// Nothing to compare.
    #[error("validation needs at least one workload and one target")]
    Nothing,
    /// Two of a kind have one name, so a table could not tell them apart.
    #[error("{what} {name} is given twice; tables could not tell them apart")]
    Twice {
        /// A workload or a target.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// Too few replays.
    #[error("{0} replays of each workload say nothing of their noise; at least {REPEATS_MIN} are needed")]
    Repeats(u32),
    /// More rounds of measuring than replays to alternate with, or none.
    #[error("{rounds} rounds: between 1 and the replays of a cell, {repeats}")]
    Rounds {
        /// Rounds asked for.
        rounds: u32,
        /// Replays that every cell gets.
        repeats: u32,
    },
    /// A target could not be made ready.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// A measurement failed.
    #[error("measuring {target}: {source}")]
    Measure {
        /// The target.
        target: String,
        /// Why.
        #[source]
        source: Box<MeasureError>,
    },
    /// A prediction failed.
    #[error("predicting {workload} on {target}: {source}")]
    Predict {
        /// The workload.
        workload: String,
        /// The target.
        target: String,
        /// Why.
        #[source]
        source: Box<PredictError>,
    },
    /// A replay failed.
    #[error("replaying {workload} on {target}: {source}")]
    Replay {
        /// The workload.
        workload: String,
        /// The target.
        target: String,
        /// Why.
        #[source]
        source: Box<ReplayError>,
    },
    /// A target could not be left clean.
    #[error("cleaning up {target}: {source}")]
    CleanUp {
        /// The target.
        target: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

impl Fault for ValidateError {
    fn kind(&self) -> Kind {
        match self {
            ValidateError::Nothing
            | ValidateError::Twice { .. }
            | ValidateError::Repeats(_)
            | ValidateError::Rounds { .. } => Kind::Usage,
            ValidateError::Setup(e) => e.kind(),
            ValidateError::Measure { source, .. } => source.kind(),
            ValidateError::Predict { source, .. } => match source.as_ref() {
                PredictError::Workload(e) => e.kind(),
                _ => Kind::BadInput,
            },
            ValidateError::Replay { source, .. } => source.kind(),
            ValidateError::CleanUp { .. } => Kind::Environment,
        }
    }
}

/// Validates recorded workloads on targets, which `open` makes ready. With a file of residuals some replays more are
/// made, as many as [`ValidateOptions::repeats`], which are looked into: looking makes them slower, so their times are
/// in the residuals only. On a deterministic target looking costs nothing, and the one replay that is made is looked
/// into.
///
/// # Errors
/// A target, a measurement, a prediction or a replay fails ([`ValidateError`] says which).
pub fn validate(
    workloads: Vec<ValidateWorkload>,
    targets: Vec<ValidateTarget>,
    open: OpenTarget,
    options: &ValidateOptions,
    residuals: Option<&mut ResidualWriter>,
    progress: &mut dyn FnMut(&ValidateProgress),
) -> Result<Validation, ValidateError> {
    let mut bench = RealBench::new(workloads, targets, open, options.clone());
    let mut validation = validate_on(&mut bench, options, residuals, progress)?;
    validation.measured = bench.into_measured();
    Ok(validation)
}

/// What was replayed of a workload on a target.
#[derive(Clone, Debug, Default)]
struct Replayed {
    plain: Vec<(ReplayResult, Option<Drift>)>,
    /// Totals of those that were looked into.
    looked_into_ns: Vec<f64>,
}

impl Replayed {
    fn totals(&self) -> Vec<f64> {
        self.plain.iter().map(|(replay, _)| replay.total_ns as f64).collect()
    }

    /// Whether the median is known to within a share of it.
    fn is_within(&self, precision: f64) -> bool {
        let totals = self.totals();
        let (Some(median), Some((low, high))) = (stats::median(&totals), stats::median_interval(&totals)) else {
            return false;
        };
        totals.len() >= stats::CERTAIN && (high - low) / 2.0 <= precision * median
    }

    /// The median time of those looked into over that of the others.
    fn looking(&self) -> Option<f64> {
        let (looked, plain) = (stats::median(&self.looked_into_ns)?, stats::median(&self.totals())?);
        (plain > 0.0).then(|| looked / plain)
    }
}

/// Validates whatever is behind a [`Bench`].
///
/// # Errors
/// As [`validate`].
pub fn validate_on(
    bench: &mut dyn Bench,
    options: &ValidateOptions,
    mut residuals: Option<&mut ResidualWriter>,
    progress: &mut dyn FnMut(&ValidateProgress),
) -> Result<Validation, ValidateError> {
    let (workloads, targets) = (bench.workloads(), bench.targets());
    check(&workloads, &targets, options)?;
    let cells: Vec<(usize, usize)> =
        (0..workloads.len()).flat_map(|w| (0..targets.len()).map(move |t| (w, t))).collect();
    let inside = residuals.is_some();
    let each = |t: usize| u64::from(options.repeats) * if inside && !bench.is_deterministic(t) { 2 } else { 1 };
    let replays_of_all: u64 = cells.iter().map(|&(_, t)| each(t)).sum();
    let mut total = u64::from(options.rounds) * targets.len() as u64 + cells.len() as u64 + replays_of_all;
    let mut done = 0;
    let mut tell = |stage, workload: &str, target: &str, total: u64| {
        progress(&ValidateProgress { stage, done, total, workload: workload.into(), target: target.into() });
        done += 1;
    };

    let mut predictions = Vec::with_capacity(cells.len());
    let mut replays: Vec<Replayed> = cells.iter().map(|_| Replayed::default()).collect();
    let mut dice = Xoshiro256PlusPlus::seed_from_u64(options.seed);
    let mut rounds_begun = 0;
    for round in 0..options.repeats.max(options.repeats_max) {
        // The first replays that every cell gets are dealt out among the rounds of measuring.
        if rounds_begun < options.rounds && round >= rounds_begun * options.repeats / options.rounds {
            for (t, target) in targets.iter().enumerate() {
                tell(ValidateStage::Measure, "", target, total);
                bench.measure(t)?;
            }
            rounds_begun += 1;
        }
        // Once before the first replay, so that what cannot be predicted is not replayed for an hour.
        if round == 0 {
            for &(w, t) in &cells {
                tell(ValidateStage::Predict, &workloads[w], &targets[t], total);
                predictions.push(bench.predict(w, t, None)?);
            }
        }
        let more = round >= options.repeats;
        let is_open = |i: usize| {
            !more
                || (options.precision.is_some_and(|precision| !replays[i].is_within(precision))
                    && !bench.is_deterministic(cells[i].1))
        };
        // Shuffled anew in each round: what drifts with time is spread over all cells, and over replays that are looked
        // into and others.
        let mut order: Vec<(usize, bool)> = (0..cells.len()).filter(|&i| is_open(i)).map(|i| (i, false)).collect();
        if more {
            total += order.len() as u64;
        } else if residuals.is_some() {
            order.extend((0..cells.len()).filter(|&i| !bench.is_deterministic(cells[i].1)).map(|i| (i, true)));
        }
        shuffle(&mut dice, &mut order);
        for (i, into) in order {
            let (w, t) = cells[i];
            tell(ValidateStage::Replay, &workloads[w], &targets[t], total);
            // In virtual time another run would be the same, and looking into it takes none of that time.
            let is_deterministic = bench.is_deterministic(t);
            let replayed = &mut replays[i];
            if let (true, Some(first)) = (is_deterministic, replayed.plain.first().cloned()) {
                replayed.plain.push(first);
                continue;
            }
            let out = residuals.as_deref_mut().filter(|_| into || is_deterministic);
            let (replay, drift) = bench.replay(w, t, out.map(|out| (out, round)))?;
            if into {
                replayed.looked_into_ns.push(replay.total_ns as f64);
            } else {
                replayed.plain.push((replay, drift));
            }
        }
    }
    if options.rounds > 1 {
        // From what was measured in all rounds.
        for (predicted, &(w, t)) in predictions.iter_mut().zip(&cells) {
            *predicted = bench.predict(w, t, None)?;
        }
    }
    let mut found = Vec::with_capacity(cells.len());
    let looking: Vec<f64> = replays.iter().filter_map(Replayed::looking).collect();
    for ((&(w, t), predicted), replays) in cells.iter().zip(predictions).zip(replays) {
        let (replays, drifts): (Vec<ReplayResult>, Vec<Option<Drift>>) = replays.plain.into_iter().unzip();
        let drift = Drift::middle(&drifts.into_iter().flatten().collect::<Vec<Drift>>()).map(|d| bench.since(t, d));
        let rescaled = match options.rescale.of(drift.clone()) {
            Some(drift) => Some(bench.predict(w, t, Some(&drift))?),
            None => None,
        };
        let (predicted, before) = match &rescaled {
            Some(rescaled) => (rescaled, Some(&predicted)),
            None => (&predicted, None),
        };
        found.push(Cell::new(&workloads[w], &targets[t], predicted, before, &replays, drift));
    }
    let mut validation = compare(found, options.precision, options.seed);
    validation.looking_costs = stats::median(&looking).map(|factor| factor - 1.0);
    Ok(validation)
}

fn check(workloads: &[String], targets: &[String], options: &ValidateOptions) -> Result<(), ValidateError> {
    if workloads.is_empty() || targets.is_empty() {
        return Err(ValidateError::Nothing);
    }
    if options.repeats < REPEATS_MIN {
        return Err(ValidateError::Repeats(options.repeats));
    }
    if options.rounds == 0 || options.rounds > options.repeats {
        return Err(ValidateError::Rounds { rounds: options.rounds, repeats: options.repeats });
    }
    for (what, names) in [("workload", workloads), ("target", targets)] {
        for (i, name) in names.iter().enumerate() {
            if names[..i].contains(name) {
                return Err(ValidateError::Twice { what, name: name.clone() });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
