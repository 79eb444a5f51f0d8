//! The statistics that planners share: file sizes, lifetimes, quotas that keep a live population to a distribution.

pub mod lifetime;
pub mod normal;
pub mod quota;
pub mod size;

pub use lifetime::{Component, Lifetime};
pub use quota::Quota;
pub use size::{SizeModel, SizeParameters};

/// The generator of all planners' random choices.
pub type Rng = rand_xoshiro::Xoshiro256PlusPlus;

/// The generator for a seed.
pub fn rng(seed: u64) -> Rng {
    rand_core::SeedableRng::seed_from_u64(seed)
}

/// A number in [0, 1).
#[inline]
pub fn uniform(rng: &mut Rng) -> f64 {
    // The 53 bits that a double holds.
    (rand_core::Rng::next_u64(rng) >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// A number in 0..n; 0 where n is 0.
#[inline]
pub fn below(rng: &mut Rng, n: usize) -> usize {
    // Multiply and shift (Lemire 2019): the bias is below n / 2^64.
    let wide = u128::from(rand_core::Rng::next_u64(rng)) * n as u128;
    (wide >> 64) as usize
}
