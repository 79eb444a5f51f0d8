//! Which system is fastest for a workload, and how sure that is.
//!
//! Draws totals: measurement by resampling each system's entries, the model's error as a factor of which a part is
//! common to all systems and so cancels. Ties are called ties.

use crate::pipeline::SystemPrediction;
use crate::uncertainty::{DRAWS, Interval, MODEL_ERROR_COMMON_SHARE, MODEL_ERROR_SD, Resampler};
use serde::Serialize;

/// Totals closer than this share of each other are a tie whatever the interval.
pub const TIE_SHARE: f64 = 0.03;

/// One system's place.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Ranked {
    /// Its name.
    pub system: String,
    /// Its position among the predictions given.
    pub index: usize,
    /// Place from 1 by predicted total; systems in a tie with each other keep their own places.
    pub place: usize,
    /// Predicted total, nanoseconds.
    pub total_ns: f64,
    /// Its 95 % interval.
    pub interval: Interval,
    /// Total over the fastest system's total.
    pub ratio: f64,
    /// 95 % interval of that ratio.
    pub ratio_low: f64,
    #[allow(missing_docs)]
    pub ratio_high: f64,
    /// Whether it cannot be told from the fastest.
    pub ties_with_fastest: bool,
    /// Share of the draws in which it was the fastest.
    pub p_fastest: f64,
}

/// Two systems compared.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Pair {
    /// The faster one by predicted total.
    pub faster: String,
    /// The slower one.
    pub slower: String,
    /// Slower total over faster total.
    pub ratio: f64,
    /// 95 % interval of the ratio.
    pub ratio_low: f64,
    #[allow(missing_docs)]
    pub ratio_high: f64,
    /// Whether they cannot be told apart: the interval contains 1, or the totals differ by less than [`TIE_SHARE`].
    pub tie: bool,
}

/// All systems in order.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Ranking {
    /// The fastest first.
    pub systems: Vec<Ranked>,
    /// Every pair, in the order of places.
    pub pairs: Vec<Pair>,
    /// Seed of the draws.
    pub seed: u64,
}

impl Ranking {
    /// For each place the best place that it cannot be told from, in the order of places; its own where that is itself.
    pub fn tied_places(&self) -> Vec<usize> {
        let mut pairs = self.pairs.iter();
        let mut best: Vec<usize> = (1..=self.systems.len()).collect();
        for faster in 0..best.len() {
            for (place, pair) in best.iter_mut().skip(faster + 1).zip(&mut pairs) {
                if pair.tie {
                    *place = (*place).min(faster + 1);
                }
            }
        }
        best
    }
}

/// Ranks predictions of one workload. The same predictions and seed give the same ranking.
pub fn rank(predictions: &[SystemPrediction], seed: u64) -> Ranking {
    let draws: Vec<Vec<f64>> = predictions.iter().enumerate().map(|(i, p)| draws_of(p, seed, i)).collect();
    let mut order: Vec<usize> = (0..predictions.len()).collect();
    order.sort_by(|&a, &b| predictions[a].total_ns.total_cmp(&predictions[b].total_ns).then(a.cmp(&b)));
    let wins = wins(&draws);
    let mut ranking = Ranking { seed, ..Ranking::default() };
    let Some(&fastest) = order.first() else { return ranking };
    for (place, &i) in order.iter().enumerate() {
        let compared = compare(predictions, &draws, fastest, i);
        ranking.systems.push(Ranked {
            system: predictions[i].system.clone(),
            index: i,
            place: place + 1,
            total_ns: predictions[i].total_ns,
            interval: predictions[i].interval,
            ratio: compared.ratio,
            ratio_low: compared.ratio_low,
            ratio_high: compared.ratio_high,
            ties_with_fastest: compared.tie,
            p_fastest: wins[i],
        });
    }
    for (n, &a) in order.iter().enumerate() {
        ranking.pairs.extend(order.iter().skip(n + 1).map(|&b| compare(predictions, &draws, a, b)));
    }
    ranking
}

/// A system's totals without what all systems have in common. The seed depends on the system's contents and not on its
/// position, so that adding a candidate changes nothing between the others; systems that share a name differ by
/// position.
fn draws_of(prediction: &SystemPrediction, seed: u64, index: usize) -> Vec<f64> {
    let sd = MODEL_ERROR_SD * (1.0 - MODEL_ERROR_COMMON_SHARE).sqrt();
    let name = prediction
        .system
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    let salt = if prediction.system.is_empty() { index as u64 } else { name };
    let mut resampler = Resampler::new(seed ^ salt);
    (0..DRAWS)
        .map(|_| {
            let total = resampler.measured_total(&prediction.by_entry, prediction.writeback.stall_ns);
            total * resampler.model_factor(sd)
        })
        .collect()
}

/// Share of the draws in which each system has the smallest total; the first of equals wins.
fn wins(draws: &[Vec<f64>]) -> Vec<f64> {
    let mut wins = vec![0u32; draws.len()];
    for draw in 0..DRAWS {
        let at = |i: usize| draws[i].get(draw).copied().unwrap_or(f64::INFINITY);
        if let Some(best) = (0..draws.len()).min_by(|&a, &b| at(a).total_cmp(&at(b))) {
            wins[best] += 1;
        }
    }
    wins.into_iter().map(|n| f64::from(n) / DRAWS as f64).collect()
}

fn compare(predictions: &[SystemPrediction], draws: &[Vec<f64>], a: usize, b: usize) -> Pair {
    let (faster, slower) = (&predictions[a], &predictions[b]);
    let mut ratios: Vec<f64> =
        draws[b].iter().zip(&draws[a]).map(|(b, a)| if *a > 0.0 { b / a } else { 1.0 }).collect();
    let ratio = if faster.total_ns > 0.0 { slower.total_ns / faster.total_ns } else { 1.0 };
    let (ratio_low, ratio_high) = if a == b { (1.0, 1.0) } else { stats::middle_95(&mut ratios) };
    let tie = (ratio_low <= 1.0 && ratio_high >= 1.0) || (ratio - 1.0).abs() < TIE_SHARE;
    Pair { faster: faster.system.clone(), slower: slower.system.clone(), ratio, ratio_low, ratio_high, tie }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::EntryShare;

    fn prediction(system: &str, mean_ns: f64) -> SystemPrediction {
        let share = EntryShare {
            entry: "open".into(),
            weight: 1000.0,
            mean_ns,
            ns: 1000.0 * mean_ns,
            rounds_ns: vec![mean_ns * 0.98, mean_ns, mean_ns * 1.02],
            interval_ns: (mean_ns, mean_ns),
        };
        SystemPrediction {
            system: system.into(),
            total_ns: share.ns,
            by_entry: vec![share],
            ..SystemPrediction::default()
        }
    }

    #[test]
    fn clear_differences_are_ranked_and_small_ones_are_ties() {
        let all = [prediction("slow", 900.0), prediction("fast", 100.0), prediction("near", 101.0)];
        let ranking = rank(&all, 1);
        let names: Vec<&str> = ranking.systems.iter().map(|s| s.system.as_str()).collect();
        assert_eq!(names, ["fast", "near", "slow"]);
        let ties: Vec<bool> = ranking.systems.iter().map(|s| s.ties_with_fastest).collect();
        assert_eq!(ties, [true, true, false]);
        assert!((ranking.systems[2].ratio - 9.0).abs() < 1e-9);
        // The measurement is exact: what is left is the part of the model's error that two systems do not share.
        let factor = (1.96 * MODEL_ERROR_SD * (2.0 * (1.0 - MODEL_ERROR_COMMON_SHARE)).sqrt()).exp();
        assert!((ranking.systems[2].ratio_low * factor / 9.0 - 1.0).abs() < 0.08, "{ranking:?}");
        assert!((ranking.systems[2].ratio_high / factor / 9.0 - 1.0).abs() < 0.08, "{ranking:?}");
        let p: f64 = ranking.systems.iter().map(|s| s.p_fastest).sum();
        assert!((p - 1.0).abs() < 1e-9 && ranking.systems[2].p_fastest == 0.0);
        assert!(ranking.systems[0].p_fastest > 0.3 && ranking.systems[1].p_fastest > 0.3);
        assert_eq!(ranking, rank(&all, 1), "deterministic");
        assert_eq!(ranking.pairs.len(), 3);
    }

    /// Not only with the fastest; a tie is not handed on.
    #[test]
    fn a_place_is_tied_with_the_best_that_it_cannot_be_told_from() {
        let places = |means: &[f64]| {
            let all: Vec<_> = means.iter().map(|mean| prediction(&mean.to_string(), *mean)).collect();
            rank(&all, 1).tied_places()
        };
        assert_eq!(places(&[100.0, 900.0, 910.0]), [1, 2, 2]);
        assert_eq!(places(&[100.0, 101.0, 900.0, 910.0, 9000.0]), [1, 1, 3, 3, 5]);
        let chain = places(&[100.0, 125.0, 156.0]);
        assert_eq!(chain, [1, 1, 2], "the first and the last are apart");
        assert_eq!((places(&[5.0]), places(&[])), (vec![1], vec![]));
    }

    #[test]
    fn another_candidate_changes_nothing_between_the_others() {
        let two = rank(&[prediction("a", 100.0), prediction("b", 120.0)], 5);
        let three = rank(&[prediction("c", 50.0), prediction("a", 100.0), prediction("b", 120.0)], 5);
        let of = |r: &Ranking| r.pairs.iter().find(|p| p.faster == "a" && p.slower == "b").cloned();
        assert_eq!(of(&two), of(&three));
    }

    #[test]
    fn nothing_to_rank() {
        assert!(rank(&[], 1).systems.is_empty());
        let one = rank(&[prediction("only", 5.0)], 1);
        assert_eq!((one.systems[0].p_fastest, one.pairs.len()), (1.0, 0));
    }
}
