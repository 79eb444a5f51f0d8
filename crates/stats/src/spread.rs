//! How sure it is what stands for many values.

use crate::middle::{median, midmean_of_sorted, quantile};
use crate::random::index;
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};

/// Resamples of a bootstrap; 1,000 settle the ends of a 95 % interval to about a tenth of its width (Efron and
/// Tibshirani, *An Introduction to the Bootstrap*, section 13.3).
const RESAMPLES: usize = 1000;

/// As many values as there are, drawn with replacement and sorted.
fn resample(from: &[f64], rng: &mut Xoshiro256PlusPlus, into: &mut Vec<f64>) {
    into.clear();
    into.extend((0..from.len()).filter_map(|_| from.get(index(rng, from.len())).copied()));
    into.sort_by(f64::total_cmp);
}

/// The bootstrap percentile 95 % interval of a statistic of sorted rounds; (0, 0) of no rounds.
pub fn bootstrap(rounds: &[f64], seed: u64, of_sorted: impl Fn(&[f64]) -> f64) -> (f64, f64) {
    if rounds.is_empty() {
        return (0.0, 0.0);
    }
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut drawn = Vec::with_capacity(rounds.len());
    let mut found: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            resample(rounds, &mut rng, &mut drawn);
            of_sorted(&drawn)
        })
        .collect();
    middle_95(&mut found)
}

/// The bootstrap interval of [`midmean`](crate::midmean) over rounds; of one round, that round twice.
pub fn midmean_interval(rounds: &[f64], seed: u64) -> (f64, f64) {
    bootstrap(rounds, seed, midmean_of_sorted)
}

/// The bootstrap interval of the mean over values; of one value, that value twice.
pub fn mean_interval(values: &[f64], seed: u64) -> (f64, f64) {
    if values.is_empty() {
        return (0.0, 0.0);
    }
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    // A mean needs no order: thousands of values are no matter of seconds.
    let mut draw = || {
        let drawn = (0..values.len()).filter_map(|_| values.get(index(&mut rng, values.len())));
        drawn.sum::<f64>() / values.len() as f64
    };
    let mut means: Vec<f64> = (0..RESAMPLES).map(|_| draw()).collect();
    middle_95(&mut means)
}

/// The central 95 % of draws, which are sorted on the way; (0, 0) of none.
pub fn middle_95(draws: &mut [f64]) -> (f64, f64) {
    draws.sort_by(f64::total_cmp);
    (quantile(draws, 0.025), quantile(draws, 0.975))
}

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
        let (low, high) = bootstrap(rounds, seed, |sorted| quantile(sorted, 0.5));
        Some(Estimate { median, low, high })
    }

    /// Of `b` over `a`: the ratio of the medians, both sides resampled on their own. `None` where a side has no rounds
    /// or `a` is not above zero.
    pub fn of_ratio(a: &[f64], b: &[f64], seed: u64) -> Option<Estimate> {
        if a.iter().any(|value| *value <= 0.0) {
            return None;
        }
        let median = median(b)? / median(a)?;
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut drawn = Vec::new();
        let mut of = |rounds: &[f64]| {
            resample(rounds, &mut rng, &mut drawn);
            quantile(&drawn, 0.5)
        };
        let mut ratios: Vec<f64> = (0..RESAMPLES)
            .map(|_| {
                let (a, b) = (of(a), of(b));
                b / a
            })
            .collect();
        let (low, high) = middle_95(&mut ratios);
        Some(Estimate { median, low, high })
    }

    /// Whether a value lies in the interval.
    pub fn contains(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }
}

/// How often the interval of so few rounds really covers the median, at most: it ends at the smallest and largest
/// round, and both lie on one side of the true median with probability 2^(1-n). Above 0.95 from six rounds on.
pub fn coverage_of_rounds(rounds: u32) -> f64 {
    1.0 - 2f64.powi(1 - i32::try_from(rounds.min(1000)).unwrap_or(1000))
}

/// Rounds outside Tukey's fences (1.5 interquartile ranges beyond the quartiles), by position. Fewer than five rounds
/// have no quartiles worth the name.
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

/// An interval that holds the median of what the values are drawn from with at least 95 %, whatever its distribution:
/// from the k-th least to the k-th greatest (by the binomial distribution; Conover, *Practical Nonparametric
/// Statistics*, section 3.2). Fewer than [`CERTAIN`] values have none: then all of them are in it. `None` of nothing.
pub fn median_interval(values: &[f64]) -> Option<(f64, f64)> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    // The chance that the median lies below the k-th least, for k from 1.
    let n = sorted.len();
    let (mut ways, mut below, mut k) = (1.0, 0.5f64.powi(i32::try_from(n).ok()?), 0);
    while k + 1 < n.div_ceil(2) {
        ways *= (n - k) as f64 / (k + 1) as f64;
        let next = below + ways * 0.5f64.powi(i32::try_from(n).ok()?);
        if 2.0 * next > 0.05 {
            break;
        }
        below = next;
        k += 1;
    }
    Some((*sorted.get(k)?, *sorted.get(n - 1 - k)?))
}

/// The fewest values of which [`median_interval`] says something with 95 %: the median is outside six with 1 in 32.
pub const CERTAIN: usize = 6;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::unit;

    /// A sum of twelve uniforms is close to normal, with mean and median 6.
    fn rounds(n: usize, rng: &mut Xoshiro256PlusPlus) -> Vec<f64> {
        (0..n).map(|_| (0..12).map(|_| unit(rng)).sum()).collect()
    }

    #[test]
    fn the_interval_of_the_midmean_covers_the_truth_about_as_often_as_it_says() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(11);
        let mut covered = 0;
        for trial in 0..300 {
            let (low, high) = midmean_interval(&rounds(16, &mut rng), trial);
            assert!(low <= high);
            covered += usize::from((low..=high).contains(&6.0));
        }
        assert!((255..=298).contains(&covered), "{covered} of 300");
    }

    #[test]
    fn the_interval_of_the_mean_covers_it_about_as_often_as_it_says() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(12);
        let mut covered = 0;
        for trial in 0..300 {
            let (low, high) = mean_interval(&rounds(16, &mut rng), trial);
            covered += usize::from((low..=high).contains(&6.0));
        }
        assert!((255..=298).contains(&covered), "{covered} of 300");
        assert_eq!(mean_interval(&[4.0], 5), (4.0, 4.0));
        assert_eq!(mean_interval(&[], 5), (0.0, 0.0));
    }

    #[test]
    fn the_interval_of_the_median_covers_it_about_as_often_as_it_says() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(11);
        let mut covered = 0;
        for trial in 0..300 {
            covered += usize::from(Estimate::of(&rounds(11, &mut rng), trial).unwrap().contains(6.0));
        }
        assert!((270..=298).contains(&covered), "{covered} of 300");
    }

    #[test]
    fn the_interval_is_that_of_its_seed() {
        let rounds = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        assert_eq!(midmean_interval(&rounds, 5), midmean_interval(&rounds, 5));
        assert_eq!(midmean_interval(&[4.0], 5), (4.0, 4.0));
        assert_eq!(midmean_interval(&[4.0; 9], 5), (4.0, 4.0));
        assert_eq!(midmean_interval(&[], 5), (0.0, 0.0));
    }

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
    fn outliers_are_found_by_position() {
        assert_eq!(outliers(&[10.0, 11.0, 10.5, 50.0, 9.8, 10.2]), [3]);
        assert!(outliers(&[10.0, 11.0, 10.5, 9.8, 10.2]).is_empty());
        assert!(outliers(&[1.0, 1000.0]).is_empty());
    }

    /// By hand for six: 2/64 is below 5 %. For nine: 2 (1 + 9)/512 is, 2 (1 + 9 + 36)/512 is not.
    #[test]
    fn the_order_statistics_around_a_median() {
        let interval = |n: u32| median_interval(&(1..=n).rev().map(f64::from).collect::<Vec<_>>()).unwrap();
        for (n, low, high) in [
            (1, 1.0, 1.0),
            (3, 1.0, 3.0),
            (6, 1.0, 6.0),
            (8, 1.0, 8.0),
            (9, 2.0, 8.0),
            (12, 3.0, 10.0),
            (15, 4.0, 12.0),
            (20, 6.0, 15.0),
            (25, 8.0, 18.0),
        ] {
            assert_eq!(interval(n), (low, high), "{n}");
        }
        assert_eq!(median_interval(&[]), None);
    }
}
