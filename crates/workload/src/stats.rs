//! Medians, and how sure they are.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};

/// Resamples of a bootstrap; 1,000 settle the ends of a 95 % interval to about a tenth of its width (Efron and Tibshirani,
/// *An Introduction to the Bootstrap*, section 13.3).
const RESAMPLES: usize = 1000;

/// A median over rounds with its bootstrap percentile 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The median.
    pub median: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Estimate {
    /// Of the rounds' values; `None` of no rounds. Of one round, that round thrice.
    pub fn of(rounds: &[f64], seed: u64) -> Option<Estimate> {
        let median = median(rounds)?;
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let (low, high) = middle_95((0..RESAMPLES).filter_map(|_| resampled_median(rounds, &mut rng)));
        Some(Estimate { median, low, high })
    }

    /// Of `b` over `a`: the ratio of the medians, both sides resampled on their own. `None` where a side has no rounds or
    /// `a` is not above zero.
    pub fn of_ratio(a: &[f64], b: &[f64], seed: u64) -> Option<Estimate> {
        if a.iter().any(|value| *value <= 0.0) {
            return None;
        }
        let median = median(b)? / median(a)?;
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let ratios = (0..RESAMPLES).filter_map(|_| {
            let (a, b) = (resampled_median(a, &mut rng)?, resampled_median(b, &mut rng)?);
            Some(b / a)
        });
        let (low, high) = middle_95(ratios);
        Some(Estimate { median, low, high })
    }

    /// Whether a value lies in the interval.
    pub fn contains(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }
}

/// How often the interval of so few rounds really covers the median, at most: it ends at the smallest and largest round,
/// and both lie on one side of the true median with probability 2^(1-n). Above 0.95 from six rounds on.
pub fn coverage_of_rounds(rounds: u32) -> f64 {
    1.0 - 2f64.powi(1 - i32::try_from(rounds.min(1000)).unwrap_or(1000))
}

/// The median; the mean of the middle two of an even number. `None` of nothing.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    (!sorted.is_empty()).then(|| quantile(&sorted, 0.5))
}

/// Rounds outside Tukey's fences (1.5 interquartile ranges beyond the quartiles), by position. Fewer than five rounds have
/// no quartiles worth the name.
pub fn outliers(rounds: &[f64]) -> Vec<usize> {
    if rounds.len() < 5 {
        return Vec::new();
    }
    let mut sorted = rounds.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (q1, q3) = (quantile(&sorted, 0.25), quantile(&sorted, 0.75));
    let fence = 1.5 * (q3 - q1);
    let outside = |value: f64| value < q1 - fence || value > q3 + fence;
    rounds.iter().enumerate().filter(|(_, value)| outside(**value)).map(|(at, _)| at).collect()
}

/// The quantile of sorted values, interpolated linearly (type 7 of Hyndman and Fan, 1996); 0 of nothing.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let place = share.clamp(0.0, 1.0) * last as f64;
    let below = place.floor() as usize;
    let low = sorted.get(below).copied().unwrap_or(0.0);
    let high = sorted.get(below + 1).copied().unwrap_or(low);
    low + (high - low) * (place - place.floor())
}

fn middle_95(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    (quantile(&sorted, 0.025), quantile(&sorted, 0.975))
}

fn resampled_median(rounds: &[f64], rng: &mut Xoshiro256PlusPlus) -> Option<f64> {
    let drawn: Vec<f64> = (0..rounds.len()).filter_map(|_| rounds.get(below(rng, rounds.len())).copied()).collect();
    median(&drawn)
}

/// A number in `0..n`, uniform to one part in 2^64/n; 0 where `n` is 0.
fn below(rng: &mut Xoshiro256PlusPlus, n: usize) -> usize {
    ((u128::from(rng.next_u64()) * n as u128) >> 64) as usize
}

/// Fisher and Yates' shuffle.
pub(crate) fn shuffle<T>(rng: &mut Xoshiro256PlusPlus, items: &mut [T]) {
    for at in (1..items.len()).rev() {
        items.swap(at, below(rng, at + 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_holds_the_median_and_belongs_to_its_seed() {
        let rounds = [10.0, 12.0, 11.0, 30.0, 9.0, 10.5, 11.5];
        let e = Estimate::of(&rounds, 3).unwrap();
        assert_eq!(e.median, 11.0);
        assert!(e.low <= e.median && e.median <= e.high, "{e:?}");
        assert!(e.low >= 9.0 && e.high <= 30.0);
        assert_eq!(Estimate::of(&rounds, 3), Some(e));
        assert_eq!(Estimate::of(&[], 3), None);
        assert_eq!(Estimate::of(&[4.0], 3), Some(Estimate { median: 4.0, low: 4.0, high: 4.0 }));
    }

    #[test]
    fn six_rounds_give_the_whole_range_and_95_per_cent() {
        let e = Estimate::of(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 9).unwrap();
        // All six draws hit one half of the values often enough for the ends to be near the range's.
        assert!(e.low < 2.1 && e.high > 4.9, "{e:?}");
        assert!(coverage_of_rounds(6) > 0.95 && coverage_of_rounds(5) < 0.95);
        assert_eq!(coverage_of_rounds(1), 0.0);
    }

    #[test]
    fn ratios_of_equal_sides_hold_one_and_of_distant_sides_do_not() {
        let a = [10.0, 11.0, 9.0, 10.0, 10.5, 9.5];
        let same = Estimate::of_ratio(&a, &a, 1).unwrap();
        assert_eq!(same.median, 1.0);
        assert!(same.contains(1.0) && same.low < same.high);
        let twice: Vec<f64> = a.iter().map(|v| v * 2.0).collect();
        let ratio = Estimate::of_ratio(&a, &twice, 1).unwrap();
        assert_eq!(ratio.median, 2.0);
        assert!(!ratio.contains(1.0) && ratio.contains(2.0));
        assert_eq!(Estimate::of_ratio(&[0.0], &a, 1), None);
        assert_eq!(Estimate::of_ratio(&a, &[], 1), None);
    }

    #[test]
    fn the_interval_covers_the_median_about_as_often_as_it_says() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(11);
        let mut covered = 0;
        for trial in 0..300 {
            // A sum of twelve uniforms is close to normal, with median 6.
            let one = |rng: &mut Xoshiro256PlusPlus| -> f64 {
                (0..12).map(|_| below(rng, 1 << 30) as f64 / f64::from(1 << 30)).sum()
            };
            let rounds: Vec<f64> = (0..11).map(|_| one(&mut rng)).collect();
            covered += usize::from(Estimate::of(&rounds, trial).unwrap().contains(6.0));
        }
        assert!((270..=298).contains(&covered), "{covered} of 300");
    }

    #[test]
    fn outliers_are_found_by_position() {
        assert_eq!(outliers(&[10.0, 11.0, 10.5, 50.0, 9.8, 10.2]), [3]);
        assert!(outliers(&[10.0, 11.0, 10.5, 9.8, 10.2]).is_empty());
        assert!(outliers(&[1.0, 1000.0]).is_empty());
    }

    #[test]
    fn medians() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[]), None);
    }
}
