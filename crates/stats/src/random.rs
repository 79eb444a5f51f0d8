//! What is drawn from a seeded generator, the same everywhere.

use rand_core::Rng;

/// A number in `0..n`, uniform to one part in 2^64/n; 0 where `n` is 0. (Multiply and shift: Lemire 2019.)
#[inline]
pub fn below(rng: &mut impl Rng, n: u64) -> u64 {
    ((u128::from(rng.next_u64()) * u128::from(n)) >> 64) as u64
}

/// A place in a list of `n`; 0 where `n` is 0.
#[inline]
pub fn index(rng: &mut impl Rng, n: usize) -> usize {
    below(rng, n as u64) as usize
}

/// A number in `[0, 1)`.
#[inline]
pub fn unit(rng: &mut impl Rng) -> f64 {
    // The 53 bits that a double holds.
    (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

/// A standard normal deviate (Box and Muller).
pub fn normal(rng: &mut impl Rng) -> f64 {
    let radius = (-2.0 * (1.0 - unit(rng)).ln()).sqrt();
    radius * (std::f64::consts::TAU * unit(rng)).cos()
}

/// Fisher and Yates' shuffle.
pub fn shuffle<T>(rng: &mut impl Rng, items: &mut [T]) {
    for at in (1..items.len()).rev() {
        items.swap(at, index(rng, at + 1));
    }
}

/// The step of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): 2^64 over the golden ratio.
pub const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The finaliser of SplitMix64: every bit of the number reaches every bit of the result.
#[inline]
pub fn finalise(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// One number of two: the `more`th output of SplitMix64 from `seed`, counted from 0.
#[inline]
pub fn mix(seed: u64, more: u64) -> u64 {
    finalise(seed.wrapping_add(more.wrapping_mul(GOLDEN)).wrapping_add(GOLDEN))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::SeedableRng;
    use rand_xoshiro::{SplitMix64, Xoshiro256PlusPlus};

    #[test]
    fn mixing_is_splitmix() {
        for seed in [0, 7, u64::MAX] {
            let mut theirs = SplitMix64::seed_from_u64(seed);
            for n in 0..100 {
                assert_eq!(mix(seed, n), theirs.next_u64(), "{seed} {n}");
            }
        }
    }

    #[test]
    fn normal_deviates_are_normal() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
        let draws: Vec<f64> = (0..20_000).map(|_| normal(&mut rng)).collect();
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / draws.len() as f64;
        assert!(mean.abs() < 0.03 && (variance - 1.0).abs() < 0.05, "{mean} {variance}");
    }

    #[test]
    fn numbers_keep_their_bounds() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
        assert_eq!(below(&mut rng, 0), 0);
        assert!((0..1000).all(|_| below(&mut rng, 3) < 3 && (0.0..1.0).contains(&unit(&mut rng))));
    }

    /// Each of the six orders of three things comes about as often: within five standard deviations of a sixth of
    /// 60,000.
    #[test]
    fn no_order_is_preferred() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut seen = std::collections::BTreeMap::<[u8; 3], u32>::new();
        for _ in 0..60_000 {
            let mut items = [0, 1, 2];
            shuffle(&mut rng, &mut items);
            *seen.entry(items).or_default() += 1;
        }
        assert_eq!(seen.len(), 6);
        assert!(seen.values().all(|n| n.abs_diff(10_000) < 457), "{seen:?}");
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
