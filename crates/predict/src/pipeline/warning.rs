//! What makes a prediction less sure than its interval says.

use super::{Coverage, SystemPrediction, pages};
use serde::{Serialize, Serializer};
use std::fmt;
use system::SystemProfile;
use units::show;

/// A share of calls at which trace and model may disagree before somebody is told.
const SURPRISES_MAX: f64 = 0.01;

/// Something to know before a prediction is believed. Its text names the cause and the next step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Warning {
    /// The profile lacks prices.
    StandIns {
        /// How many requests others stood in for.
        requests: u64,
        /// The classes that are lacking.
        lacking: Vec<String>,
    },
    /// The trace says otherwise than the model at so many calls.
    Disagrees {
        /// How many.
        calls: u64,
    },
    /// More was read than the data cache is known to hold, and how much more it holds is not known.
    CacheIsLowerBound,
    /// Writers waited for a write-back whose rate is not known.
    NoWritebackRate,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Warning::StandIns { requests, lacking } => write!(
                f,
                "{} priced by stand-ins, because the profile lacks {}; measure the system again",
                show::counted(*requests, "request was", "requests were"),
                lacking.join(", ")
            ),
            Warning::Disagrees { calls } => write!(
                f,
                "trace and model disagree at {}; the snapshot may be of another moment than the trace: take it just \
                 before, as fsage record does",
                show::counted(*calls, "call", "calls")
            ),
            Warning::CacheIsLowerBound => f.write_str(
                "the workload read more than the data cache that was measured, which is a lower bound; measure again \
                 with a larger --budget, or put data_cache_bytes into the profile",
            ),
            Warning::NoWritebackRate => f.write_str(
                "the profile states no write-back rate; waiting at the dirty limit is not priced: measure the system \
                 again, or put writeback_bytes_per_s into the profile",
            ),
        }
    }
}

/// As its text.
impl Serialize for Warning {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Those of a prediction.
pub(super) fn warnings(prediction: &SystemPrediction, profile: &SystemProfile, coverage: &Coverage) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let requests: u64 = prediction.fallbacks.iter().map(|f| f.requests).sum();
    if requests > 0 {
        let lacking = prediction.fallbacks.iter().map(|f| f.class.clone()).collect();
        warnings.push(Warning::StandIns { requests, lacking });
    }
    if coverage.surprises as f64 > SURPRISES_MAX * prediction.calls.max(1) as f64 {
        warnings.push(Warning::Disagrees { calls: coverage.surprises });
    }
    let parameters = &profile.parameters;
    let limit = parameters.data_cache_to_simulate_bytes() / pages::PAGE_BYTES;
    if parameters.data_cache_is_lower_bound && limit > 0 && prediction.cache.page_misses > limit {
        warnings.push(Warning::CacheIsLowerBound);
    }
    if prediction.writeback.stall_ns > 0.0 && parameters.writeback_bytes_per_s <= 0.0 {
        warnings.push(Warning::NoWritebackRate);
    }
    warnings
}
