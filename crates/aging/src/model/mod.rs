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
