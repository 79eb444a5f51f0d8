//! How far a predicted total can be off: the measurement's own spread, and the model's error.

use crate::pipeline::entry_share::EntryShare;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use serde::Serialize;
use stats::{middle_95, random};

/// Relative standard deviation of the model's error of one total.
///
/// Rounded up from what `fsage validate` found on the development half of the corpus, on real file systems: 0.181
/// (docs/validation.md). The sealed half is what it is tested with. In published work on replay and prediction it is
/// 0.08 to 0.20 (docs/method.md).
pub const MODEL_ERROR_SD: f64 = 0.19;

/// Share of the model error's variance that all systems have in common for one workload: what the trace does not
/// show, what the request vector gets wrong. It cancels in a comparison. Found as the other.
pub const MODEL_ERROR_COMMON_SHARE: f64 = 0.48;

/// Draws of a resampling.
pub const DRAWS: usize = 2000;

/// A 95 % interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Interval {
    /// Lower end, nanoseconds.
    pub low_ns: f64,
    /// Upper end, nanoseconds.
    pub high_ns: f64,
}

/// Seeded draws of totals.
#[derive(Clone, Debug)]
pub struct Resampler {
    rng: Xoshiro256PlusPlus,
}

impl Resampler {
    /// A generator for one system of one comparison.
    pub fn new(seed: u64) -> Resampler {
        Resampler { rng: Xoshiro256PlusPlus::seed_from_u64(seed) }
    }

    /// A standard normal deviate (Box and Muller).
    pub fn normal(&mut self) -> f64 {
        random::normal(&mut self.rng)
    }

    /// One draw of a total from the entries' rounds: each entry's mean is that of its rounds drawn with replacement.
    pub fn measured_total(&mut self, entries: &[EntryShare], fixed_ns: f64) -> f64 {
        let mut total = fixed_ns;
        for entry in entries {
            total += entry.weight * self.mean_of(entry);
        }
        total
    }

    fn mean_of(&mut self, entry: &EntryShare) -> f64 {
        let n = entry.rounds_ns.len();
        if n >= 2 {
            let centre: f64 = entry.rounds_ns.iter().sum::<f64>() / n as f64;
            let mut sum = 0.0;
            for _ in 0..n {
                let at = random::index(&mut self.rng, n);
                sum += entry.rounds_ns.get(at).copied().unwrap_or(centre);
            }
            // The stated mean may be a trimmed one: only the spread is taken from the rounds.
            return (entry.mean_ns + sum / n as f64 - centre).max(0.0);
        }
        let (low, high) = entry.interval_ns;
        if high > low {
            // 95 % of a normal distribution lie within 1.96 standard deviations.
            return (entry.mean_ns + self.normal() * (high - low) / (2.0 * 1.96)).max(0.0);
        }
        entry.mean_ns
    }

    /// A factor for the model's error with a relative standard deviation: log-normal, median 1.
    pub fn model_factor(&mut self, sd: f64) -> f64 {
        (self.normal() * sd).exp()
    }
}

/// The interval of a total: resampled measurement, times the whole model error.
pub fn total_interval(entries: &[EntryShare], fixed_ns: f64, seed: u64) -> Interval {
    let mut resampler = Resampler::new(seed);
    let mut draws: Vec<f64> = (0..DRAWS)
        .map(|_| resampler.measured_total(entries, fixed_ns) * resampler.model_factor(MODEL_ERROR_SD))
        .collect();
    interval_of(&mut draws)
}

/// The central 95 % of draws.
pub fn interval_of(draws: &mut [f64]) -> Interval {
    let (low_ns, high_ns) = middle_95(draws);
    Interval { low_ns, high_ns }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(weight: f64, mean_ns: f64, rounds_ns: Vec<f64>) -> EntryShare {
        EntryShare {
            entry: "open".into(),
            weight,
            mean_ns,
            ns: weight * mean_ns,
            rounds_ns,
            interval_ns: (mean_ns, mean_ns),
        }
    }

    #[test]
    fn an_exact_profile_leaves_the_model_error() {
        let interval = total_interval(&[share(10.0, 100.0, vec![])], 0.0, 7);
        // 2000 draws put the ends within a few per cent of the distribution's.
        let factor = (1.96 * MODEL_ERROR_SD).exp();
        assert!((interval.high_ns / (1000.0 * factor) - 1.0).abs() < 0.06, "{interval:?}");
        assert!((interval.low_ns / (1000.0 / factor) - 1.0).abs() < 0.06, "{interval:?}");
        assert_eq!(interval, total_interval(&[share(10.0, 100.0, vec![])], 0.0, 7), "seeded");
    }

    #[test]
    fn noisy_rounds_widen_it() {
        let exact = total_interval(&[share(10.0, 100.0, vec![100.0; 5])], 0.0, 7);
        let noisy = total_interval(&[share(10.0, 100.0, vec![40.0, 160.0, 60.0, 140.0, 100.0])], 0.0, 7);
        assert!(noisy.high_ns - noisy.low_ns > 1.3 * (exact.high_ns - exact.low_ns));
    }
}
