//! What a benchmark found, on all of its targets.

use crate::parameters::Parameters;
use crate::target_result::TargetResult;
use serde::{Deserialize, Serialize};

/// A benchmark's result on one or more targets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BenchResult {
    /// Which benchmark, with its options.
    pub parameters: Parameters,
    /// Version of the program that ran it.
    pub version: String,
    /// What was found on each target, in the order given.
    pub targets: Vec<TargetResult>,
}
