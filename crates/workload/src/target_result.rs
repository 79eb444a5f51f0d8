//! What a benchmark found on one target: every round's times, and what they come to.

use crate::cache_note::CacheNote;
use crate::phase::{Phase, Unit};
use crate::point::Point;
use crate::repeat::Repeat;
use crate::sample::{Count, Sample, TimedBy};
use posix::{CacheState, Environment};
use serde::{Deserialize, Serialize};
use stats::Estimate;

/// What was found on one target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TargetResult {
    /// Its name, different from the others'.
    pub name: String,
    /// Where it was measured.
    pub environment: Environment,
    /// How cold the caches were before each phase, at worst.
    pub caches: CacheNote,
    /// What the reader should know: files left out, holes, preallocated extents.
    pub notes: Vec<String>,
    /// One entry for each point, in the benchmark's order.
    pub points: Vec<PointResult>,
}

/// What was found at one point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PointResult {
    /// Which.
    pub point: Point,
    /// Its phases, in order.
    pub phases: Vec<PhaseResult>,
}

/// What was found in one phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhaseResult {
    /// Which.
    pub phase: Phase,
    /// What `rate` and `rate_without_sync` count.
    pub unit: Unit,
    /// The headline, by `unit`; `syncfs` is included where the phase ends with one.
    pub rate: Estimate,
    /// The same to the end of the last call before `syncfs`; none where the phase does not write.
    pub rate_without_sync: Option<Estimate>,
    /// Files (for `stat`: names) a second, by the headline's time.
    pub files_per_s: Estimate,
    /// Rounds whose rate lies outside Tukey's fences; they are counted in all the same.
    pub outlier_rounds: Vec<u32>,
    /// Every round, in order.
    pub rounds: Vec<Round>,
}

/// One round of one phase.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Round {
    /// Its number, from 0.
    pub round: u32,
    /// Time in the calls, nanoseconds; of processes that run at the same time, summed.
    pub calls_ns: u64,
    /// Time by the file system's clock from the phase's begin to its end, nanoseconds, without the `syncfs`. 0 in
    /// results of versions that did not write it down.
    #[serde(default)]
    pub elapsed_ns: u64,
    /// Which of the two is the rate's time.
    #[serde(default)]
    pub timed_by: TimedBy,
    /// Time in the `syncfs` that ends a phase that writes, nanoseconds.
    pub sync_ns: Option<u64>,
    /// Calls made. 0 in results of versions that did not write it down.
    #[serde(default)]
    pub calls: u64,
    /// Transactions or scripts that were completed, where the benchmark has such.
    #[serde(default)]
    pub completed: u64,
    /// Bytes of file data moved (removed, for `delete`).
    pub bytes: u64,
    /// Files (for `stat`: names).
    pub files: u64,
    /// Whether file data and names were cold at the start.
    pub data_cache: CacheState,
    #[allow(missing_docs)]
    pub name_cache: CacheState,
    /// What else was counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counts: Vec<Count>,
}

impl Round {
    pub(crate) fn new(round: u32, sample: &Sample) -> Round {
        Round {
            round,
            calls_ns: sample.calls_ns,
            elapsed_ns: sample.elapsed_ns,
            timed_by: sample.timed_by,
            sync_ns: sample.sync_ns,
            calls: sample.calls,
            completed: sample.completed,
            bytes: sample.bytes,
            files: sample.files,
            data_cache: sample.caches.data,
            name_cache: sample.caches.names,
            counts: sample.counts.clone(),
        }
    }

    /// The time that its rates are of, nanoseconds, with the final `syncfs` or without.
    pub fn time_ns(&self, with_sync: bool) -> u64 {
        let work_ns = match self.timed_by {
            TimedBy::Calls => self.calls_ns,
            TimedBy::Clock => self.elapsed_ns,
        };
        work_ns.saturating_add(if with_sync { self.sync_ns.unwrap_or(0) } else { 0 })
    }

    /// A number that this benchmark counts, by its name.
    pub fn count(&self, name: &str) -> Option<u64> {
        self.counts.iter().find(|count| count.name == name).map(|count| count.value)
    }

    /// Its rate in a unit, with the time of the final `syncfs` or without.
    pub fn rate(&self, unit: Unit, with_sync: bool) -> f64 {
        let (amount, unit_s) = match unit {
            Unit::BytesPerSecond => (self.bytes, 1.0),
            Unit::FilesPerSecond => (self.files, 1.0),
            Unit::CallsPerSecond => (self.calls, 1.0),
            Unit::TransactionsPerSecond => (self.completed, 1.0),
            Unit::ScriptsPerHour => (self.completed, 3600.0),
        };
        // A clock that did not move says no more than that it took less than a nanosecond.
        amount as f64 * unit_s * 1e9 / self.time_ns(with_sync).max(1) as f64
    }
}

impl PhaseResult {
    /// What rounds come to; `None` of no rounds.
    pub(crate) fn of(phase: Phase, unit: Unit, rounds: Vec<Round>, repeat: &Repeat) -> Option<PhaseResult> {
        let estimate = |unit, with_sync| {
            let rates: Vec<f64> = rounds.iter().map(|r| r.rate(unit, with_sync)).collect();
            Estimate::of(&rates, repeat.seed)
        };
        let rates: Vec<f64> = rounds.iter().map(|r| r.rate(unit, true)).collect();
        let outliers = stats::outliers(&rates);
        let syncs = rounds.iter().any(|r| r.sync_ns.is_some());
        Some(PhaseResult {
            phase,
            unit,
            rate: estimate(unit, true)?,
            rate_without_sync: if syncs { estimate(unit, false) } else { None },
            files_per_s: estimate(Unit::FilesPerSecond, true)?,
            outlier_rounds: outliers.into_iter().filter_map(|at| rounds.get(at).map(|r| r.round)).collect(),
            rounds,
        })
    }

    /// The headline's times: their median, seconds.
    pub fn seconds(&self) -> Option<f64> {
        stats::median(&self.rounds.iter().map(|r| r.time_ns(true) as f64 / 1e9).collect::<Vec<_>>())
    }

    /// The headline's rate of every round.
    pub fn rates(&self) -> Vec<f64> {
        self.rounds.iter().map(|r| r.rate(self.unit, true)).collect()
    }
}

impl TargetResult {
    /// What was found in a phase at a point.
    pub fn phase(&self, label: &str, phase: Phase) -> Option<&PhaseResult> {
        self.points.iter().find(|p| p.point.label == label)?.phases.iter().find(|p| p.phase == phase)
    }
}
