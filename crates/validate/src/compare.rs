//! Predicted and measured, side by side: totals, call types, distributions, rankings, and the simpler methods beside
//! them.

use crate::residuals::contexts::Context;
use posix::{CacheState, Environment};
use predict::pipeline::SystemPrediction;
use replay::ReplayResult;
use serde::Serialize;
use stats::{mean, median, median_interval, pearson, quantile, rms};
use system::{Drift, Reference};
use trace::profile::Durations;

/// What each method says of a cell's total, nanoseconds. `None`: the method cannot say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Predicted {
    /// The prediction.
    pub prediction_ns: f64,
    /// The prediction from the profile as it was measured, where the other is carried over to how the target was when
    /// it was replayed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_rescaled_ns: Option<f64>,
    /// Operation counts times one mean latency of each call type.
    pub count_times_mean_ns: Option<f64>,
    /// Bytes over throughput.
    pub bandwidth_only_ns: Option<f64>,
    /// The traced durations.
    pub same_as_traced_ns: Option<f64>,
    /// How far those are the calls' own.
    pub traced: Durations,
    /// Twenty times what the first twentieth of the calls took when it was replayed on the target: the median of the
    /// replays.
    pub replay_of_the_first_ns: Option<f64>,
}

/// One workload on one target.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cell {
    /// Workload.
    pub workload: String,
    /// Target.
    pub target: String,
    /// What the methods say.
    pub predicted: Predicted,
    /// 95 % interval of the prediction, nanoseconds.
    pub predicted_low_ns: f64,
    #[allow(missing_docs)]
    pub predicted_high_ns: f64,
    /// Total of each replay, in the order they were made, nanoseconds.
    pub measured_all_ns: Vec<f64>,
    /// Their median.
    pub measured_ns: f64,
    /// The least and the greatest.
    pub measured_min_ns: f64,
    #[allow(missing_docs)]
    pub measured_max_ns: f64,
    /// An interval of the median ([`median_interval`]): 95 % of at least [`CERTAIN`](stats::CERTAIN) replays, all of
    /// fewer.
    pub measured_low_ns: f64,
    #[allow(missing_docs)]
    pub measured_high_ns: f64,
    /// Their spread: greatest less least, as a share of the median.
    pub spread: f64,
    /// Predicted less measured, nanoseconds.
    pub error_ns: f64,
    /// That as a share of the measured time.
    pub error: f64,
    /// Calls priced.
    pub predicted_calls: u64,
    /// Calls made in a replay.
    pub measured_calls: u64,
    /// By operation: the greatest error in nanoseconds first.
    pub per_op: Vec<OpComparison>,
    /// Median time of the write-back after the replays, nanoseconds; in no total.
    pub final_sync_ns: f64,
    /// Outcomes that differed from the trace, in the replay where most did.
    pub differences: u64,
    /// Whether caches were known to be as asked, in the replay where least was known.
    pub cache_state: CacheState,
    /// Threads of the replays.
    pub threads: u64,
    /// Where they ran.
    pub environment: Environment,
    /// What the prediction itself warns of.
    pub warnings: Vec<predict::pipeline::Warning>,
    /// How far the target had moved from its profile before the replays: the middle of them. `None` where nothing is
    /// known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drift: Option<Drift>,
}

/// One call type of one cell.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OpComparison {
    /// Operation.
    pub op: String,
    /// Calls priced, and calls made.
    pub predicted_calls: u64,
    #[allow(missing_docs)]
    pub measured_calls: u64,
    /// Predicted time, nanoseconds.
    pub predicted_ns: f64,
    /// Measured time: the median over the replays, nanoseconds.
    pub measured_ns: f64,
    /// Predicted less measured, nanoseconds.
    pub error_ns: f64,
    /// That as a share of the cell's measured total: what this call type adds to the cell's error.
    pub error_of_total: f64,
    /// Latencies of single calls at [`stats::QUANTILES`], nanoseconds; empty where unknown.
    pub predicted_quantiles_ns: Vec<f64>,
    /// The same, measured: the median over the replays of each quantile.
    pub measured_quantiles_ns: Vec<f64>,
}

/// How good a method was over all cells. Errors are shares of the measured time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MethodSummary {
    /// The method's name.
    pub method: String,
    /// Cells it could say something about.
    pub cells: u64,
    /// Mean of the errors' sizes.
    pub mean_error: Option<f64>,
    /// Median of the errors' sizes.
    pub median_error: Option<f64>,
    /// Root mean square error.
    pub rms_error: Option<f64>,
    /// Mean of the signed errors: positive where it says too much.
    pub bias: Option<f64>,
    /// Pearson's correlation of predicted and measured totals.
    pub correlation: Option<f64>,
    /// Pearson's correlation of their logarithms: large cells do not drown the small ones.
    pub correlation_log: Option<f64>,
    /// How it ranked.
    pub ranking: RankingSummary,
    /// Kendall's tau-a of each workload's targets, predicted against the medians measured, the mean over workloads with
    /// several targets: 1 the same order, -1 the reverse. Pairs that the replays do not tell apart are in it.
    pub kendall_tau: Option<f64>,
    /// What following it costs: of each workload the measured time on the target that it says is fastest, over that on
    /// the fastest, less one; the mean over workloads with several targets of which it can say something.
    pub mean_regret: Option<f64>,
}

/// How good the prediction was on one target, or on all.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TargetSummary {
    /// The target; empty: all of them.
    pub target: String,
    /// Workloads.
    pub cells: u64,
    /// Median, 90th percentile and greatest of the errors' sizes, as shares of the measured time.
    pub median_error: f64,
    #[allow(missing_docs)]
    pub p90_error: f64,
    #[allow(missing_docs)]
    pub worst_error: f64,
    /// Median of the signed errors.
    pub bias: f64,
    /// Share of the cells whose measured time is inside the prediction's 95 % interval.
    pub inside_interval: f64,
    /// Median of the replays' spread: an error below that says little.
    pub spread: f64,
    /// How far it had moved from its profile before the replays, where that is known.
    pub drift: Vec<DriftSummary>,
}

/// One reference of a target over all workloads: how many times as long it took as when the profile was measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DriftSummary {
    /// Which.
    pub reference: Reference,
    /// Median over the workloads.
    pub median: f64,
    /// The least and the greatest.
    pub least: f64,
    #[allow(missing_docs)]
    pub most: f64,
}

/// How often intervals of one level hold the measured time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Calibration {
    /// The level: the share that should be inside.
    pub level: f64,
    /// The share that is.
    pub inside: f64,
}

/// The levels of the calibration curve, and the half-widths of a normal distribution's central intervals in standard
/// deviations.
const LEVELS: [(f64, f64); 6] =
    [(0.25, 0.318_639), (0.5, 0.674_490), (0.75, 1.150_349), (0.9, 1.644_854), (0.95, 1.959_964), (0.99, 2.575_829)];

/// The model's error of totals, which the width of intervals takes as known ([`predict::uncertainty::MODEL_ERROR_SD`]).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ModelError {
    /// Root mean square of ln(predicted / measured).
    pub sd: f64,
    /// The share of its variance that the targets of one workload have in common: the mean product of two targets'
    /// errors over the mean square; within 0 and 1. `None` with one target.
    pub common_share: Option<f64>,
}

/// Pairs of targets ranked, over all workloads or for one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct RankingSummary {
    /// Pairs that the replays tell apart.
    pub decided: u64,
    /// Of these, pairs ranked right.
    pub right: u64,
    /// Pairs whose measured intervals overlap: ties by noise, which count neither way.
    pub ties: u64,
}

impl RankingSummary {
    /// Share of the decided pairs that were ranked right; `None` where there are none.
    pub fn share_right(&self) -> Option<f64> {
        (self.decided > 0).then(|| self.right as f64 / self.decided as f64)
    }

    fn add(&mut self, verdict: PairVerdict) {
        match verdict {
            PairVerdict::Tie => self.ties += 1,
            PairVerdict::Right => (self.decided, self.right) = (self.decided + 1, self.right + 1),
            PairVerdict::Wrong => self.decided += 1,
        }
    }
}

/// Two targets under one workload.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PairComparison {
    /// Workload.
    pub workload: String,
    /// The target that measured faster, and the other.
    pub faster: String,
    #[allow(missing_docs)]
    pub slower: String,
    /// Measured time of the slower over that of the faster.
    pub measured_ratio: f64,
    /// The same of the predicted times.
    pub predicted_ratio: f64,
    /// Whether the prediction ranked them right.
    pub verdict: PairVerdict,
}

/// How a pair was ranked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PairVerdict {
    /// As measured.
    Right,
    /// The other way round, or as equal.
    Wrong,
    /// The intervals of the measured times overlap: there is no right.
    Tie,
}

/// How well the replays' medians are known.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Precision {
    /// Half the interval of the median may be this share of it.
    pub wanted: f64,
    /// Cells of which that is so.
    pub reached: u64,
    /// Half the interval as a share of the median: the median over the cells, and the greatest.
    pub median: f64,
    #[allow(missing_docs)]
    pub worst: f64,
}

/// The whole comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Validation {
    /// Replays of the cells: the least and the most.
    pub repeats: u32,
    #[allow(missing_docs)]
    pub repeats_most: u32,
    /// Cells whose replays were to give the median to within a share, and the share; `None` where none was asked for.
    pub precision: Option<Precision>,
    /// Seed of their order.
    pub seed: u64,
    /// The quantiles of the distributions.
    pub quantiles: Vec<f64>,
    /// Workloads times targets, workload by workload.
    pub cells: Vec<Cell>,
    /// The prediction first, then the simpler methods.
    pub methods: Vec<MethodSummary>,
    /// The prediction on each target, and last on all of them.
    pub targets: Vec<TargetSummary>,
    /// How often the prediction's intervals hold the measured time.
    pub calibration: Vec<Calibration>,
    /// The model's error as it was found; `None` without a measured time.
    pub model_error: Option<ModelError>,
    /// Every pair of targets under each workload.
    pub pairs: Vec<PairComparison>,
    /// How much longer replays took that were looked into for residuals (their times are in no other figure): the
    /// median over the cells of their time over that of the others, less one. Only where there were any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub looking_costs: Option<f64>,
    /// The states that the errors come from, the greatest first; only where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contexts: Option<Vec<Context>>,
    /// The profiles of the targets that were measured for this, with their targets: files of their own, and no part of
    /// a result.
    #[serde(skip)]
    pub measured: Vec<(String, system::SystemProfile)>,
}

impl Cell {
    /// Compares a prediction with replays of the same workload on the same target (at least one). `before`: what was
    /// predicted from the profile as it was measured, where `predicted` is from one carried over by `drift`.
    pub fn new(
        workload: &str,
        target: &str,
        predicted: &SystemPrediction,
        before: Option<&SystemPrediction>,
        replays: &[ReplayResult],
        drift: Option<Drift>,
    ) -> Cell {
        let totals: Vec<f64> = replays.iter().map(|r| r.total_ns as f64).collect();
        let measured_ns = median(&totals).unwrap_or(0.0);
        let (least, greatest) = totals.iter().fold((f64::INFINITY, 0.0f64), |(l, g), &t| (l.min(t), g.max(t)));
        let least = least.min(greatest);
        let (low, high) = median_interval(&totals).unwrap_or((0.0, 0.0));
        let syncs: Vec<f64> = replays.iter().map(|r| r.final_sync_ns as f64).collect();
        let certain = replays.iter().all(|r| r.cache_state != CacheState::Unverified);
        let first = replays.first();
        Cell {
            workload: workload.to_owned(),
            target: target.to_owned(),
            predicted: Predicted {
                prediction_ns: predicted.total_ns,
                not_rescaled_ns: before.map(|before| before.total_ns),
                count_times_mean_ns: predicted.baselines.count_times_mean_ns,
                bandwidth_only_ns: predicted.baselines.bandwidth_only_ns,
                same_as_traced_ns: predicted.baselines.same_as_traced_ns,
                traced: predicted.baselines.traced,
                replay_of_the_first_ns: median(
                    &replays.iter().filter_map(|r| r.sample.estimate_ns(r.calls)).collect::<Vec<_>>(),
                ),
            },
            predicted_low_ns: predicted.interval.low_ns,
            predicted_high_ns: predicted.interval.high_ns,
            measured_ns,
            measured_min_ns: least,
            measured_max_ns: greatest,
            measured_low_ns: low,
            measured_high_ns: high,
            spread: share(greatest - least, measured_ns),
            error_ns: predicted.total_ns - measured_ns,
            error: share(predicted.total_ns - measured_ns, measured_ns),
            predicted_calls: predicted.calls,
            measured_calls: first.map_or(0, |r| r.calls),
            per_op: per_op(predicted, replays, measured_ns),
            final_sync_ns: median(&syncs).unwrap_or(0.0),
            differences: replays.iter().map(|r| r.differences.total).max().unwrap_or(0),
            cache_state: match first {
                Some(r) if certain => r.cache_state,
                _ => CacheState::Unverified,
            },
            threads: first.map_or(0, |r| r.concurrency.replay_threads),
            environment: first.map(|r| r.environment.clone()).unwrap_or_default(),
            warnings: predicted.warnings.clone(),
            drift,
            measured_all_ns: totals,
        }
    }

    /// Half the interval of the measured time as a share of it.
    fn half_interval(&self) -> f64 {
        share((self.measured_high_ns - self.measured_low_ns) / 2.0, self.measured_ns)
    }

    /// The total by each method, in the order of [`METHODS`].
    fn by_method(&self) -> [Option<f64>; METHODS.len()] {
        let p = &self.predicted;
        [
            Some(p.prediction_ns),
            p.not_rescaled_ns,
            p.replay_of_the_first_ns,
            p.count_times_mean_ns,
            p.bandwidth_only_ns,
            p.same_as_traced_ns,
        ]
    }
}

const METHODS: [&str; 6] =
    ["prediction", "not rescaled", "replay of the first 5 %", "count x mean", "bandwidth only", "same as traced"];

/// A share of something; 0 of nothing.
fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

fn per_op(predicted: &SystemPrediction, replays: &[ReplayResult], total_ns: f64) -> Vec<OpComparison> {
    let priced = predicted.by_op.iter().map(|o| o.op.as_str());
    let made = replays.iter().flat_map(|r| r.per_op.iter().map(|o| o.op.as_str()));
    let mut names: Vec<&str> = priced.chain(made).collect();
    names.sort_unstable();
    names.dedup();
    let mut out: Vec<OpComparison> = names
        .into_iter()
        .map(|op| {
            let priced = predicted.by_op.iter().find(|o| o.op == op);
            let made: Vec<_> = replays.iter().filter_map(|r| r.per_op.iter().find(|o| o.op == op)).collect();
            // A replay without the operation spent no time on it.
            let times: Vec<f64> = replays
                .iter()
                .map(|r| r.per_op.iter().find(|o| o.op == op).map_or(0.0, |o| o.total_ns as f64))
                .collect();
            let predicted_ns = priced.map_or(0.0, |o| o.ns);
            let measured_ns = median(&times).unwrap_or(0.0);
            let points = made.first().map_or(0, |o| o.quantiles_ns.len());
            let quantile = |i: usize| {
                let values: Vec<f64> = made.iter().filter_map(|o| o.quantiles_ns.get(i)).map(|&q| q as f64).collect();
                median(&values).unwrap_or(0.0)
            };
            OpComparison {
                op: op.to_owned(),
                predicted_calls: priced.map_or(0, |o| o.calls),
                measured_calls: made.first().map_or(0, |o| o.count),
                predicted_ns,
                measured_ns,
                error_ns: predicted_ns - measured_ns,
                error_of_total: share(predicted_ns - measured_ns, total_ns),
                predicted_quantiles_ns: priced.map(|o| o.quantiles_ns.clone()).unwrap_or_default(),
                measured_quantiles_ns: (0..points).map(quantile).collect(),
            }
        })
        .collect();
    out.sort_by(|a, b| b.error_ns.abs().total_cmp(&a.error_ns.abs()).then_with(|| a.op.cmp(&b.op)));
    out
}

/// Sums up over all cells.
pub fn compare(cells: Vec<Cell>, wanted: Option<f64>, seed: u64) -> Validation {
    let mut methods: Vec<MethodSummary> =
        METHODS.iter().enumerate().map(|(i, name)| summarize(name, i, &cells)).collect();
    if cells.iter().all(|cell| cell.predicted.not_rescaled_ns.is_none()) {
        methods.remove(1);
    }
    let pairs = pairs(&cells)
        .map(|(a, b)| {
            let (faster, slower) = if a.measured_ns <= b.measured_ns { (a, b) } else { (b, a) };
            let (p, q) = (faster.predicted.prediction_ns, slower.predicted.prediction_ns);
            PairComparison {
                workload: a.workload.clone(),
                faster: faster.target.clone(),
                slower: slower.target.clone(),
                measured_ratio: share(slower.measured_ns, faster.measured_ns),
                predicted_ratio: share(q, p),
                verdict: verdict(faster, slower, p, q),
            }
        })
        .collect();
    let replays = cells.iter().map(|cell| u32::try_from(cell.measured_all_ns.len()).expect("replays are few"));
    let (repeats, repeats_most) = replays.fold((u32::MAX, 0), |(least, most), n| (least.min(n), most.max(n)));
    Validation {
        repeats: repeats.min(repeats_most),
        repeats_most,
        precision: wanted.and_then(|wanted| precision(&cells, wanted)),
        seed,
        quantiles: stats::QUANTILES.to_vec(),
        methods,
        targets: by_target(&cells),
        calibration: calibration(&cells),
        model_error: model_error(&cells),
        pairs,
        cells,
        looking_costs: None,
        contexts: None,
        measured: Vec::new(),
    }
}

/// See [`Precision`].
fn precision(cells: &[Cell], wanted: f64) -> Option<Precision> {
    let mut widths: Vec<f64> = cells.iter().map(Cell::half_interval).collect();
    widths.sort_by(f64::total_cmp);
    let reached = widths.iter().filter(|&&width| width <= wanted).count() as u64;
    Some(Precision { wanted, reached, median: median(&widths)?, worst: *widths.last()? })
}

/// Of intervals of each level, the share of cells whose measured time is inside. Other levels than 95 % are those of
/// the log-normal distribution that has the cell's 95 % interval.
fn calibration(cells: &[Cell]) -> Vec<Calibration> {
    // How many half-widths of the 95 % interval the measured time is from the middle.
    let mut distances: Vec<f64> = Vec::new();
    for c in cells.iter().filter(|c| c.measured_ns > 0.0 && c.predicted_low_ns > 0.0) {
        let (low, high) = (c.predicted_low_ns.ln(), c.predicted_high_ns.ln());
        let from_middle = (c.measured_ns.ln() - f64::midpoint(low, high)).abs();
        distances.push(if from_middle == 0.0 { 0.0 } else { from_middle / ((high - low) / 2.0) });
    }
    if distances.is_empty() {
        return Vec::new();
    }
    let at_95 = LEVELS[4].1;
    let inside = |width: f64| distances.iter().filter(|&&d| d <= width / at_95).count() as f64;
    let share_at = |&(level, width)| Calibration { level, inside: inside(width) / distances.len() as f64 };
    LEVELS.iter().map(share_at).collect()
}

/// See [`ModelError`].
fn model_error(cells: &[Cell]) -> Option<ModelError> {
    let known = |c: &&Cell| c.measured_ns > 0.0 && c.predicted.prediction_ns > 0.0;
    let error = |c: &Cell| (c.predicted.prediction_ns / c.measured_ns).ln();
    let sd = rms(&cells.iter().filter(known).map(error).collect::<Vec<f64>>())?;
    let both = pairs(cells).filter(|(a, b)| known(a) && known(b));
    let products: Vec<f64> = both.map(|(a, b)| error(a) * error(b)).collect();
    let common_share = mean(&products).filter(|_| sd > 0.0).map(|product| (product / (sd * sd)).clamp(0.0, 1.0));
    Some(ModelError { sd, common_share })
}

/// See [`MethodSummary::kendall_tau`].
fn kendall_tau(method: usize, cells: &[Cell]) -> Option<f64> {
    // Workload by workload: concordant less discordant pairs, and all.
    let mut by_workload: Vec<(&str, f64, f64)> = Vec::new();
    for (a, b) in pairs(cells).filter(|(a, b)| a.measured_ns > 0.0 && b.measured_ns > 0.0) {
        let of = |cell: &Cell| cell.by_method().get(method).copied().flatten();
        let (Some(p), Some(q)) = (of(a), of(b)) else { continue };
        let order = |x: f64, y: f64| x.total_cmp(&y) as i8;
        let agreement = f64::from(order(p, q) * order(a.measured_ns, b.measured_ns));
        match by_workload.iter_mut().find(|(workload, ..)| *workload == a.workload) {
            Some((_, agreeing, all)) => (*agreeing, *all) = (*agreeing + agreement, *all + 1.0),
            None => by_workload.push((&a.workload, agreement, 1.0)),
        }
    }
    mean(&by_workload.iter().map(|&(_, agreeing, all)| agreeing / all).collect::<Vec<f64>>())
}

fn by_target(cells: &[Cell]) -> Vec<TargetSummary> {
    let mut names: Vec<&str> = Vec::new();
    for cell in cells {
        if !names.contains(&cell.target.as_str()) {
            names.push(&cell.target);
        }
    }
    if names.len() > 1 {
        names.push("");
    }
    names
        .into_iter()
        .filter_map(|name| {
            let mine: Vec<&Cell> =
                cells.iter().filter(|c| c.measured_ns > 0.0 && (name.is_empty() || c.target == name)).collect();
            let errors: Vec<f64> = mine.iter().map(|c| c.error).collect();
            let mut sizes: Vec<f64> = errors.iter().map(|e| e.abs()).collect();
            sizes.sort_by(f64::total_cmp);
            let inside = mine.iter().filter(|c| (c.predicted_low_ns..=c.predicted_high_ns).contains(&c.measured_ns));
            Some(TargetSummary {
                target: name.to_owned(),
                cells: mine.len() as u64,
                median_error: median(&sizes)?,
                p90_error: quantile(&sizes, 0.9),
                worst_error: *sizes.last()?,
                bias: median(&errors)?,
                inside_interval: share(inside.count() as f64, mine.len() as f64),
                spread: median(&mine.iter().map(|c| c.spread).collect::<Vec<f64>>())?,
                drift: drift_of(&mine),
            })
        })
        .collect()
}

fn drift_of(cells: &[&Cell]) -> Vec<DriftSummary> {
    let of = |reference| {
        let known = cells.iter().filter_map(|c| c.drift.as_ref()).flat_map(|drift| &drift.references);
        let mut factors: Vec<f64> =
            known.filter(|moved| moved.reference == reference).map(|moved| moved.factor()).collect();
        factors.sort_by(f64::total_cmp);
        let (&least, &most) = (factors.first()?, factors.last()?);
        Some(DriftSummary { reference, median: quantile(&factors, 0.5), least, most })
    };
    Reference::ALL.into_iter().filter_map(of).collect()
}

/// See [`MethodSummary::mean_regret`].
fn mean_regret(method: usize, cells: &[Cell]) -> Option<f64> {
    let mut workloads: Vec<&str> = cells.iter().map(|c| c.workload.as_str()).collect();
    workloads.sort_unstable();
    workloads.dedup();
    let regrets: Vec<f64> = workloads
        .into_iter()
        .filter_map(|workload| {
            let said = cells.iter().filter(|c| c.workload == workload && c.measured_ns > 0.0);
            let said: Vec<(f64, f64)> =
                said.filter_map(|c| Some(((*c.by_method().get(method)?)?, c.measured_ns))).collect();
            // A method that says the same of all chooses none.
            let tells = said.iter().any(|&(p, _)| p != said[0].0);
            let chosen = said.iter().min_by(|a, b| a.0.total_cmp(&b.0))?.1;
            let fastest = said.iter().map(|&(_, m)| m).min_by(f64::total_cmp)?;
            tells.then_some(chosen / fastest - 1.0)
        })
        .collect();
    mean(&regrets)
}

/// Every two targets of one workload.
fn pairs(cells: &[Cell]) -> impl Iterator<Item = (&Cell, &Cell)> {
    let each = cells.iter().enumerate();
    each.flat_map(|(i, a)| cells[i + 1..].iter().filter(|b| b.workload == a.workload).map(move |b| (a, b)))
}

/// Whether a method that gives `faster_ns` and `slower_ns` ranks the two as they measured.
fn verdict(faster: &Cell, slower: &Cell, faster_ns: f64, slower_ns: f64) -> PairVerdict {
    if faster.measured_high_ns >= slower.measured_low_ns {
        PairVerdict::Tie
    } else if faster_ns < slower_ns {
        PairVerdict::Right
    } else {
        PairVerdict::Wrong
    }
}

fn summarize(name: &str, method: usize, cells: &[Cell]) -> MethodSummary {
    let said: Vec<(f64, f64)> = cells
        .iter()
        .filter(|c| c.measured_ns > 0.0)
        .filter_map(|c| Some(((*c.by_method().get(method)?)?, c.measured_ns)))
        .collect();
    let errors: Vec<f64> = said.iter().map(|&(p, m)| (p - m) / m).collect();
    let sizes: Vec<f64> = errors.iter().map(|e| e.abs()).collect();
    let logs: Vec<(f64, f64)> = said.iter().filter(|(p, _)| *p > 0.0).map(|&(p, m)| (p.ln(), m.ln())).collect();
    let mut ranking = RankingSummary::default();
    for (a, b) in pairs(cells) {
        let (faster, slower) = if a.measured_ns <= b.measured_ns { (a, b) } else { (b, a) };
        let of = |cell: &Cell| cell.by_method().get(method).copied().flatten();
        if let (Some(p), Some(q)) = (of(faster), of(slower)) {
            ranking.add(verdict(faster, slower, p, q));
        }
    }
    MethodSummary {
        method: name.to_owned(),
        cells: said.len() as u64,
        mean_error: mean(&sizes),
        median_error: median(&sizes),
        rms_error: rms(&errors),
        bias: mean(&errors),
        correlation: pearson(&said),
        correlation_log: pearson(&logs),
        ranking,
        kendall_tau: kendall_tau(method, cells),
        mean_regret: mean_regret(method, cells),
    }
}

impl Validation {
    /// How a workload's pairs of targets were ranked by the prediction.
    pub fn ranking_of(&self, workload: &str) -> RankingSummary {
        let mut ranking = RankingSummary::default();
        self.pairs.iter().filter(|p| p.workload == workload).for_each(|p| ranking.add(p.verdict));
        ranking
    }

    /// The prediction's summary.
    pub fn prediction(&self) -> Option<&MethodSummary> {
        self.methods.first()
    }
}
