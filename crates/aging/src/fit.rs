//! How well what was planned matches what was asked for: Kolmogorov-Smirnov distances.

/// A cumulative distribution function that may jump.
pub trait Cdf {
    /// Share at or below `x`.
    fn at(&self, x: f64) -> f64;
    /// Share strictly below `x`.
    fn below(&self, x: f64) -> f64;
}

/// The largest distance between a weighted sample's distribution and a given one: the Kolmogorov-Smirnov statistic
/// where all weights are equal. Sorts the sample, `(value, weight)`, by value. 0 for an empty one.
pub fn ks(sample: &mut [(f64, f64)], cdf: &impl Cdf) -> f64 {
    sample.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let total: f64 = sample.iter().map(|s| s.1).sum();
    if total <= 0.0 || total.is_nan() {
        return 0.0;
    }
    let (mut up_to, mut worst) = (0.0, 0.0f64);
    for same in sample.chunk_by(|a, b| a.0 == b.0) {
        let x = same.first().map_or(0.0, |s| s.0);
        worst = worst.max((up_to / total - cdf.below(x)).abs());
        up_to += same.iter().map(|s| s.1).sum::<f64>();
        worst = worst.max((up_to / total - cdf.at(x)).abs());
    }
    worst
}

/// The largest distance between two cumulative distributions given as weights over the same ordered classes. 0 if one
/// of them is empty.
pub fn ks_of_classes(have: &[f64], want: &[f64]) -> f64 {
    let (all_have, all_want): (f64, f64) = (have.iter().sum(), want.iter().sum());
    if [all_have, all_want].iter().any(|all| *all <= 0.0 || all.is_nan()) {
        return 0.0;
    }
    let (mut h, mut w, mut worst) = (0.0, 0.0, 0.0f64);
    for i in 0..have.len().max(want.len()) {
        h += have.get(i).unwrap_or(&0.0) / all_have;
        w += want.get(i).unwrap_or(&0.0) / all_want;
        worst = worst.max((h - w).abs());
    }
    worst
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The uniform distribution on 0 to 1.
    struct Uniform;

    impl Cdf for Uniform {
        fn at(&self, x: f64) -> f64 {
            x.clamp(0.0, 1.0)
        }
        fn below(&self, x: f64) -> f64 {
            x.clamp(0.0, 1.0)
        }
    }

    /// The worked example of Massey, "The Kolmogorov-Smirnov Test for Goodness of Fit" (JASA 1951) is against a table
    /// we cannot ship; these are by hand: the distance is at a jump of the sample, on either side of it.
    #[test]
    fn by_hand() {
        let ones = |xs: &[f64]| xs.iter().map(|x| (*x, 1.0)).collect::<Vec<_>>();
        assert!((ks(&mut ones(&[0.1, 0.2, 0.3, 0.4]), &Uniform) - 0.6).abs() < 1e-12);
        assert!((ks(&mut ones(&[0.9]), &Uniform) - 0.9).abs() < 1e-12);
        assert!((ks(&mut ones(&[0.125, 0.375, 0.625, 0.875]), &Uniform) - 0.125).abs() < 1e-12);
        assert!((ks(&mut ones(&[0.5, 0.5]), &Uniform) - 0.5).abs() < 1e-12);
        assert!((ks(&mut [(0.5, 3.0), (0.25, 1.0)], &Uniform) - 0.5).abs() < 1e-12);
        assert_eq!(ks(&mut [], &Uniform), 0.0);
    }

    /// Mean of sqrt(n) D for uniform samples tends to sqrt(pi/2) ln 2 = 0.8687 (Marsaglia, Tsang and Wang, JSS 2003);
    /// the 5 % point of D at n = 100 is 0.13403 (Smirnov 1948; every table has it).
    #[test]
    fn by_the_known_distribution() {
        use crate::model::rng;
        use stats::random::unit;
        let mut rng = rng(5);
        let rounds = 4000;
        let (mut sum, mut beyond) = (0.0, 0);
        for _ in 0..rounds {
            let mut sample: Vec<(f64, f64)> = (0..100).map(|_| (unit(&mut rng), 1.0)).collect();
            let d = ks(&mut sample, &Uniform);
            sum += d * 10.0;
            beyond += i32::from(d > 0.134_03);
        }
        let mean = sum / f64::from(rounds);
        // At n = 100 the mean is about 0.02 below the limit.
        assert!((0.83..0.88).contains(&mean), "{mean}");
        let share = f64::from(beyond) / f64::from(rounds);
        assert!((0.04..0.06).contains(&share), "{share}");
    }

    #[test]
    fn classes() {
        assert!((ks_of_classes(&[1.0, 1.0, 2.0], &[2.0, 1.0, 1.0]) - 0.25).abs() < 1e-12);
        assert!((ks_of_classes(&[0.0, 0.0, 5.0], &[1.0]) - 1.0).abs() < 1e-12);
        assert_eq!(ks_of_classes(&[], &[1.0]), 0.0);
    }
}
