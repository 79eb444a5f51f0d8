//! What stands for many values.

/// The quantiles of single calls that profiles, replays and predictions keep, as shares.
pub const QUANTILES: [f64; 10] = [0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999];

/// The arithmetic mean. `None` of nothing.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The root of the mean square. `None` of nothing.
pub fn rms(values: &[f64]) -> Option<f64> {
    let squares: Vec<f64> = values.iter().map(|v| v * v).collect();
    mean(&squares).map(f64::sqrt)
}

/// The median; the mean of the middle two of an even number. `None` of nothing.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    (!sorted.is_empty()).then(|| quantile(&sorted, 0.5))
}

/// The mean of the central half (interquartile mean): what stands for a set of rounds; 0 of nothing.
///
/// A round that another process interrupted is many times longer than its neighbours, and a plain mean of microsecond
/// calls would then report the scheduler. The median would throw away half of what the other rounds know. Up to a
/// quarter of the rounds on either side may be disturbed without effect; values at the quartiles count by the share
/// that lies inside.
pub fn midmean(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    midmean_of_sorted(&sorted)
}

pub(crate) fn midmean_of_sorted(sorted: &[f64]) -> f64 {
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

/// The least of sorted values that a share (0 to 1) of all do not exceed: one of the values, as where a distribution
/// itself is meant (type 1 of Hyndman and Fan). `None` of nothing.
pub fn nearest_rank<T: Copy>(sorted: &[T], share: f64) -> Option<T> {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.clamp(1, sorted.len().max(1)) - 1).copied()
}

/// Pearson's correlation of pairs. `None` for fewer than three pairs, or where one side never varies.
pub fn pearson(pairs: &[(f64, f64)]) -> Option<f64> {
    if pairs.len() < 3 {
        return None;
    }
    let n = pairs.len() as f64;
    let (mx, my) = (pairs.iter().map(|p| p.0).sum::<f64>() / n, pairs.iter().map(|p| p.1).sum::<f64>() / n);
    let (mut xx, mut yy, mut xy) = (0.0, 0.0, 0.0);
    for &(x, y) in pairs {
        xx += (x - mx) * (x - mx);
        yy += (y - my) * (y - my);
        xy += (x - mx) * (y - my);
    }
    (xx > 0.0 && yy > 0.0).then(|| xy / (xx * yy).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_means() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[]), None);
        assert_eq!(mean(&[1.0, 2.0, 6.0]), Some(3.0));
        assert_eq!(mean(&[]), None);
        assert_eq!(rms(&[3.0, -4.0]), Some(12.5f64.sqrt()));
    }

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
        // numpy.quantile(values, [0, 0.3, 0.4, 0.41, 1], method="inverted_cdf")
        for (share, expected) in [(0.0, 15), (0.3, 20), (0.4, 20), (0.41, 35), (1.0, 50)] {
            assert_eq!(nearest_rank(&values.map(|value| value as u64), share), Some(expected), "{share}");
        }
        assert_eq!(nearest_rank::<u64>(&[], 0.5), None);
    }

    #[test]
    fn correlation_of_known_series() {
        assert_eq!(pearson(&[(1.0, 2.0), (2.0, 4.0)]), None);
        assert!((pearson(&[(1.0, 2.0), (2.0, 4.0), (3.0, 6.0)]).unwrap() - 1.0).abs() < 1e-12);
        assert!((pearson(&[(1.0, 3.0), (2.0, 2.0), (3.0, 1.0)]).unwrap() + 1.0).abs() < 1e-12);
        assert_eq!(pearson(&[(1.0, 1.0), (1.0, 2.0), (1.0, 3.0)]), None);
        // Anscombe's first series (The American Statistician 27, 1973): 0.816.
        let x = [10.0, 8.0, 13.0, 9.0, 11.0, 14.0, 6.0, 4.0, 12.0, 7.0, 5.0];
        let y = [8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68];
        let pairs: Vec<(f64, f64)> = x.into_iter().zip(y).collect();
        assert!((pearson(&pairs).unwrap() - 0.816).abs() < 0.001);
    }
}
