//! The random numbers of workloads.

use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use stats::random;

/// A generator (xoshiro256++) with what workloads draw from it.
#[derive(Clone, Debug)]
pub(crate) struct Random(Xoshiro256PlusPlus);

impl Random {
    /// The stream of a seed for one purpose: streams of different purposes have nothing to do with each other.
    pub(crate) fn new(seed: u64, purpose: &str) -> Random {
        // FNV-1a: the purpose only has to pick another stream.
        let hash = purpose
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        Random(Xoshiro256PlusPlus::seed_from_u64(seed ^ hash))
    }

    /// The generator below.
    pub(crate) fn generator(&mut self) -> &mut Xoshiro256PlusPlus {
        &mut self.0
    }

    /// A number in `0..n`, uniform to one part in 2^64/n; 0 where `n` is 0.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        random::below(&mut self.0, n)
    }

    /// A number in `low..=high`.
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low).saturating_add(1))
    }

    /// A number in `[0, 1)`.
    pub(crate) fn unit(&mut self) -> f64 {
        random::unit(&mut self.0)
    }

    /// A size with a given mean and spread (the standard deviation of its natural logarithm), at least 1.
    pub(crate) fn log_normal(&mut self, mean: f64, sigma: f64) -> u64 {
        // The mean of a log-normal variable is exp(mu + sigma^2 / 2).
        let normal = random::normal(&mut self.0);
        (mean.ln() - sigma * sigma / 2.0 + sigma * normal).exp().round().max(1.0) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_belong_to_seed_and_purpose() {
        let draw = |seed, purpose| {
            let mut random = Random::new(seed, purpose);
            (0..4).map(|_| random.below(1 << 40)).collect::<Vec<_>>()
        };
        assert_eq!(draw(1, "a"), draw(1, "a"));
        assert_ne!(draw(1, "a"), draw(2, "a"));
        assert_ne!(draw(1, "a"), draw(1, "b"));
    }

    #[test]
    fn numbers_keep_their_bounds_and_means() {
        let mut random = Random::new(7, "test");
        assert!((0..1000).all(|_| (3..=5).contains(&random.between(3, 5))));
        assert_eq!(random.below(0), 0);
        let mean = (0..20_000).map(|_| random.log_normal(3000.0, 1.0) as f64).sum::<f64>() / 20_000.0;
        assert!((2800.0..3200.0).contains(&mean), "{mean}");
        assert!((0..1000).all(|_| (0.0..1.0).contains(&random.unit())));
    }
}
