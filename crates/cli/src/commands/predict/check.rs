//! `fsage predict --check`: the prediction held against replays, then and there.

use super::place::{place, prefixed};
use crate::failure;
use crate::target::{self, TargetArgs};
use document::{Cell, Document, Table};
use posix::{CacheState, Target};
use predict::rank::Ranking;
use replay::ReplayOptions;
use serde::Serialize;
use system::Called;
use trace::profile::Reader;
use units::show;

/// What to replay on, and whose prediction that is to be held against; none: the fastest's.
pub struct Check {
    system: Option<String>,
    target: Target,
}

/// A prediction held against replays.
#[derive(Serialize)]
pub struct Checked {
    /// Whose.
    system: String,
    /// Where it was replayed.
    target: String,
    /// Predicted total, with its 95 % interval, nanoseconds.
    predicted_ns: f64,
    #[allow(missing_docs)]
    predicted_low_ns: f64,
    #[allow(missing_docs)]
    predicted_high_ns: f64,
    /// Replayed total, the median of the replays, nanoseconds.
    replayed_ns: f64,
    /// Every replay, in the order made.
    replays_ns: Vec<u64>,
    /// Predicted less replayed, as a share of replayed.
    error: f64,
    /// Whether the prediction's interval holds the median.
    pub is_within: bool,
    /// How sure the replays are of their cold caches.
    cache_state: CacheState,
    /// Outcomes unlike the recorded ones, in the worst replay.
    differences: u64,
}

impl Check {
    /// Reads `[NAME=]TARGET`.
    pub fn parse(text: &str, systems: &[Called]) -> failure::Result<Check> {
        let (system, target) = match prefixed(systems, text) {
            Some(_) => {
                let (at, target) = place("--check", systems, text)?;
                (systems.get(at).map(|named| named.profile.name.clone()), target)
            }
            None => (None, text),
        };
        let target = target::parse(target).map_err(|why| failure::usage(format!("--check: {why}")))?;
        Ok(Check { system, target })
    }

    /// Replays.
    pub fn run(self, reader: &Reader, ranking: &Ranking, repeats: u32) -> failure::Result<Checked> {
        let wanted = |name: &String| ranking.systems.iter().find(|ranked| ranked.system == *name);
        let ranked = self.system.as_ref().map_or(ranking.systems.first(), wanted);
        let ranked = ranked.ok_or_else(|| failure::usage("--check: there is no prediction to check"))?;
        let temporary = TargetArgs { keep: false };
        let results =
            crate::commands::replay::several(reader, &self.target, &temporary, &ReplayOptions::default(), repeats)?;
        let replays_ns: Vec<u64> = results.iter().map(|result| result.total_ns).collect();
        let replayed_ns = stats::median(&replays_ns.iter().map(|ns| *ns as f64).collect::<Vec<_>>()).unwrap_or(0.0);
        let (low, high) = (ranked.interval.low_ns, ranked.interval.high_ns);
        let worst = results.iter().map(|result| result.cache_state).find(|state| *state != CacheState::Cold);
        Ok(Checked {
            system: ranked.system.clone(),
            target: self.target.to_string(),
            predicted_ns: ranked.total_ns,
            predicted_low_ns: low,
            predicted_high_ns: high,
            replayed_ns,
            error: if replayed_ns > 0.0 { ranked.total_ns / replayed_ns - 1.0 } else { 0.0 },
            is_within: (low..=high).contains(&replayed_ns),
            cache_state: worst.unwrap_or(CacheState::Cold),
            differences: results.iter().map(|result| result.differences.total).max().unwrap_or(0),
            replays_ns,
        })
    }
}

impl Checked {
    /// Adds what came of it.
    pub fn show(&self, document: &mut Document) {
        let (least, most) = (self.replays_ns.iter().min(), self.replays_ns.iter().max());
        let ends = |end: Option<&u64>| end.map_or(self.replayed_ns, |ns| *ns as f64);
        let columns = [
            ("System", "system"),
            ("Predicted (95 % interval)", "predicted_ns"),
            ("Replayed (least to most)", "replayed_ns"),
            ("Error", "error"),
        ];
        let mut table = Table::new("check", "", &columns);
        table.row(vec![
            Cell::from(self.system.as_str()),
            Cell::NsInterval { value: self.predicted_ns, low: self.predicted_low_ns, high: self.predicted_high_ns },
            Cell::NsInterval { value: self.replayed_ns, low: ends(least), high: ends(most) },
            Cell::SignedShare(self.error),
        ]);
        let caches = match self.cache_state {
            CacheState::Cold => "caches were cold, which was verified",
            CacheState::Warm => "caches were warm",
            CacheState::Unverified => "caches were asked to be cold, which without root cannot be verified",
        };
        let within = if self.is_within { "holds" } else { "does not hold" };
        document.heading("Held against a replay").table(table).paragraph(format!(
            "{} on {}; the interval {within} their median; {caches}; {} unlike the recorded ones.",
            show::counted(self.replays_ns.len() as u64, "replay", "replays"),
            self.target,
            show::counted(self.differences, "outcome", "outcomes"),
        ));
    }
}
