//! The few statistics that validation needs. Sums run in the order given, so that results are the same everywhere.

/// The median; the mean of the middle two of an even number. `None` of nothing.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = *sorted.get(sorted.len() / 2)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    Some((sorted[sorted.len() / 2 - 1] + upper) / 2.0)
}

/// An interval that holds the median of what the values are drawn from with at least 95 %, whatever its distribution: from the k-th least to
/// the k-th greatest (by the binomial distribution; Conover, *Practical Nonparametric Statistics*, section 3.2). Fewer than
/// [`CERTAIN`] values have none: then all of them are in it. `None` of nothing.
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

/// The arithmetic mean. `None` of nothing.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The root of the mean square. `None` of nothing.
pub fn rms(values: &[f64]) -> Option<f64> {
    let squares: Vec<f64> = values.iter().map(|v| v * v).collect();
    mean(&squares).map(f64::sqrt)
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
        assert_eq!(rms(&[3.0, -4.0]), Some(12.5f64.sqrt()));
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
