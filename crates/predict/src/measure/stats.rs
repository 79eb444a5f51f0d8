//! The statistics of a measurement: what stands for many rounds, how sure it is, and how single calls spread.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Resamples of a bootstrap; 1,000 settle the ends of a 95 % interval to about a tenth of its width (Efron and Tibshirani,
/// *An Introduction to the Bootstrap*, section 13.3).
const RESAMPLES: usize = 1000;

/// The arithmetic mean; 0 of nothing.
pub fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
}

/// The mean of the central half (interquartile mean): what stands for a set of rounds.
///
/// A round that another process interrupted is many times longer than its neighbours, and a plain mean of microsecond calls
/// would then report the scheduler. The median would throw away half of what the other rounds know. Up to a quarter of the rounds on
/// either side may be disturbed without effect; values at the quartiles count by the share that lies inside.
pub fn midmean(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    midmean_of_sorted(&sorted)
}

fn midmean_of_sorted(sorted: &[f64]) -> f64 {
    let n = sorted.len() as f64;
    if sorted.len() < 4 {
        // Of two or three rounds the middle is the best there is.
        return quantile(sorted, 0.5);
    }
    let (low, high) = (n / 4.0, n * 0.75);
    let mut sum = 0.0;
    for (at, value) in sorted.iter().enumerate() {
        let at = at as f64;
        let inside = (high.min(at + 1.0) - low.max(at)).max(0.0);
        sum += inside * value;
    }
    sum / (high - low)
}

/// The quantile at `share` (0 to 1) of sorted values, interpolated linearly (type 7 of Hyndman and Fan, *Sample
/// Quantiles in Statistical Packages*, 1996); 0 of nothing.
pub fn quantile(sorted: &[f64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let place = share.clamp(0.0, 1.0) * last as f64;
    let below = place.floor() as usize;
    let low = sorted.get(below).copied().unwrap_or(0.0);
    let high = sorted.get(below + 1).copied().unwrap_or(low);
    low + (high - low) * (place - place.floor())
}

/// The bootstrap percentile 95 % interval of [`midmean`] over rounds; of one round, that round twice.
pub fn bootstrap_interval(rounds: &[f64], seed: u64) -> (f64, f64) {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut means = Vec::with_capacity(RESAMPLES);
    let mut drawn = vec![0.0; rounds.len()];
    for _ in 0..RESAMPLES {
        for slot in &mut drawn {
            *slot = rounds.get(below(&mut rng, rounds.len())).copied().unwrap_or(0.0);
        }
        drawn.sort_by(f64::total_cmp);
        means.push(midmean_of_sorted(&drawn));
    }
    means.sort_by(f64::total_cmp);
    (quantile(&means, 0.025), quantile(&means, 0.975))
}

/// A number in `0..n`, uniform to one part in 2^64/n; 0 where `n` is 0.
pub(super) fn below(rng: &mut Xoshiro256PlusPlus, n: usize) -> usize {
    ((u128::from(rng.next_u64()) * n as u128) >> 64) as usize
}

/// Fisher and Yates' shuffle.
pub(super) fn shuffle<T>(rng: &mut Xoshiro256PlusPlus, items: &mut [T]) {
    for at in (1..items.len()).rev() {
        items.swap(at, below(rng, at + 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn midmean_of_known_values() {
        assert_eq!(midmean(&[]), 0.0);
        assert_eq!(midmean(&[7.0]), 7.0);
        assert_eq!(midmean(&[1.0, 9.0]), 5.0);
        assert_eq!(midmean(&[1.0, 2.0, 900.0]), 2.0);
        assert_eq!(midmean(&[5.0, 8.0, 4.0, 38.0, 8.0, 6.0, 9.0, 7.0, 7.0, 3.0, 1.0, 6.0]), 6.5);
        // Five values: the quartiles lie at 1.25 and 3.75 (Wikipedia, "Interquartile mean").
        assert!((midmean(&[1.0, 3.0, 5.0, 7.0, 9.0, 11.0, 13.0, 15.0, 17.0]) - 9.0).abs() < 1e-12);
        assert!((midmean(&[1.0, 2.0, 3.0, 4.0, 1e9]) - 3.0).abs() < 1e-9);
    }

    #[test]
    fn quantiles_as_numpy_gives_them() {
        let values = [15.0, 20.0, 35.0, 40.0, 50.0];
        // numpy.quantile(values, [0, 0.05, 0.3, 0.4, 0.5, 0.999, 1])
        for (share, expected) in
            [(0.0, 15.0), (0.05, 16.0), (0.3, 23.0), (0.4, 29.0), (0.5, 35.0), (0.999, 49.96), (1.0, 50.0)]
        {
            assert!((quantile(&values, share) - expected).abs() < 1e-9, "{share}");
        }
        assert_eq!(quantile(&[], 0.5), 0.0);
    }

    #[test]
    fn the_interval_covers_the_truth_about_as_often_as_it_says() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(11);
        let mut covered = 0;
        for trial in 0..300 {
            // A sum of twelve uniforms is close to normal, with mean 6.
            let rounds: Vec<f64> =
                (0..16).map(|_| (0..12).map(|_| below(&mut rng, 1 << 30) as f64 / f64::from(1 << 30)).sum()).collect();
            let (low, high) = bootstrap_interval(&rounds, trial);
            assert!(low <= high);
            covered += usize::from((low..=high).contains(&6.0));
        }
        assert!((255..=298).contains(&covered), "{covered} of 300");
    }

    #[test]
    fn the_interval_is_that_of_its_seed() {
        let rounds = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        assert_eq!(bootstrap_interval(&rounds, 5), bootstrap_interval(&rounds, 5));
        assert_eq!(bootstrap_interval(&[4.0], 5), (4.0, 4.0));
        assert_eq!(bootstrap_interval(&[4.0; 9], 5), (4.0, 4.0));
    }

    #[test]
    fn shuffling_keeps_everything() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut items: Vec<u32> = (0..100).collect();
        shuffle(&mut rng, &mut items);
        assert!(!items.is_sorted());
        items.sort_unstable();
        assert_eq!(items, (0..100).collect::<Vec<_>>());
    }
}
