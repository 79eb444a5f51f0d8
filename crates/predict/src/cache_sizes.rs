//! What a workload takes with data caches of several sizes.
//!
//! Each size is a prediction of its own, with everything that follows from the size (write-back, dirty thresholds), so
//! that each is what `--cache SIZE` says: a stack distance would give the misses of an LRU cache alone, not its times,
//! and no other policy's. One pass over the trace preprocesses for a few caches at once.

use crate::pipeline::{PredictError, PredictOptions, Workload, predict, with_cache};
use crate::uncertainty::Interval;
use serde::Serialize;
use system::SystemProfile;

/// Sizes looked at by default.
const SIZES: u32 = 12;

/// The largest size by default where no profile says how large its cache is, bytes.
const LARGEST_BYTES: u64 = 16 << 30;

/// Caches simulated at once: each takes memory for every file of the workload.
const AT_ONCE: usize = 4;

/// All systems with data caches of one size.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CacheSize {
    /// The size, bytes.
    pub cache_bytes: u64,
    /// The systems, in the order given.
    pub systems: Vec<WithCache>,
}

/// One system with a data cache of a size.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct WithCache {
    /// Its name.
    pub system: String,
    /// Predicted total, nanoseconds.
    pub total_ns: f64,
    /// 95 % interval of the total.
    pub interval: Interval,
    /// Pages read that were in memory, and pages that were not.
    pub page_hits: u64,
    #[allow(missing_docs)]
    pub page_misses: u64,
}

/// Twelve powers of two, the last of which is twice the systems' largest data cache or the next above: what less memory
/// would do, and more.
pub fn default_sizes(systems: &[SystemProfile]) -> Vec<u64> {
    let largest = systems.iter().map(|system| system.parameters.data_cache_to_simulate_bytes()).max().unwrap_or(0);
    let last = match largest {
        0 => LARGEST_BYTES,
        bytes => bytes.clamp(1 << SIZES, 1 << 60).next_power_of_two() * 2,
    };
    (0..SIZES).rev().map(|halvings| last >> halvings).collect()
}

/// Predicts a workload on each system with each size of the data cache. The options are those of the prediction beside
/// which the sizes are to stand; their own cache size does not count here.
///
/// # Errors
/// As [`predict`].
pub fn cache_sizes(
    workload: &dyn Workload,
    systems: &[SystemProfile],
    options: &PredictOptions,
    sizes: &[u64],
) -> Result<Vec<CacheSize>, PredictError> {
    let options = PredictOptions { cache_bytes: None, files_top: 0, directories_top: 0, ..options.clone() };
    let resized: Vec<SystemProfile> = sizes
        .iter()
        .flat_map(|&bytes| systems.iter().map(move |system| (bytes, system)))
        .map(|(bytes, system)| SystemProfile { parameters: with_cache(&system.parameters, bytes), ..system.clone() })
        .collect();
    let mut found = Vec::with_capacity(resized.len());
    for some in resized.chunks(AT_ONCE) {
        let predicted = predict(workload, some, &options)?.systems;
        found.extend(predicted.into_iter().map(|system| WithCache {
            system: system.system,
            total_ns: system.total_ns,
            interval: system.interval,
            page_hits: system.cache.page_hits,
            page_misses: system.cache.page_misses,
        }));
    }
    let of_size = found.chunks(systems.len().max(1));
    Ok(sizes.iter().zip(of_size).map(|(&cache_bytes, of)| CacheSize { cache_bytes, systems: of.to_vec() }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use system::Parameters;

    fn of_memory(bytes: u64) -> SystemProfile {
        let parameters =
            Parameters { data_cache_bytes: bytes, data_cache_is_lower_bound: false, ..Parameters::default() };
        SystemProfile { parameters, ..SystemProfile::default() }
    }

    #[test]
    fn sizes_lie_around_the_largest_memory() {
        let gib = 1 << 30;
        let sizes = default_sizes(&[of_memory(gib), of_memory(3 * gib)]);
        assert_eq!((sizes.len(), sizes.first(), sizes.last()), (12, Some(&(4 << 20)), Some(&(8 * gib))));
        assert!(sizes.iter().all(|size| size.is_power_of_two()) && sizes.is_sorted());
        assert_eq!(default_sizes(&[of_memory(0)]).last(), Some(&(16 * gib)));
        assert_eq!(default_sizes(&[of_memory(1)]).first(), Some(&4), "never nothing, which would be no limit");
    }
}
