//! Rounds, warm-up and the order of runs.

use serde::{Deserialize, Serialize};

/// How often a benchmark is run, and in which order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repeat {
    /// Rounds; each runs every point on every target once.
    pub rounds: u32,
    /// Whether one run of one point on each target comes first and is not counted; not where each run has a file system
    /// of its own.
    pub warm_up: bool,
    /// Seed of the order and of the bootstrap.
    pub seed: u64,
}

impl Default for Repeat {
    /// Six rounds, the fewest whose whole range covers a median in 95 % of cases, after a warm-up.
    fn default() -> Repeat {
        Repeat { rounds: 6, warm_up: true, seed: 1 }
    }
}

impl Repeat {
    /// One round without a warm-up: enough in virtual time, where the same run gives the same times, and for a first
    /// look.
    pub fn once() -> Repeat {
        Repeat { rounds: 1, warm_up: false, ..Repeat::default() }
    }
}
