//! System profiles: `NAME.system`, what one file system on one machine costs.
//!
//! TOML, written by `fsage measure` and by hand for systems that do not exist. Field by field in docs/formats.md.

use posix::Environment;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The version this code writes and reads; others are refused.
pub const FORMAT_VERSION: u32 = 1;

/// Everything measured about one system.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
pub struct SystemProfile {
    /// [`FORMAT_VERSION`].
    pub format_version: u32,
    /// The name used in tables.
    pub name: String,
    /// fsage's version, seed and settings that measured it; free text in a hand-written profile.
    pub provenance: String,
    /// Unix time of the measurement, seconds.
    pub measured_unix_s: u64,
    /// Where.
    pub environment: Environment,
    /// Sizes and thresholds the cache simulation needs.
    pub parameters: Parameters,
    /// The asynchronous overhead curve (`wr_<load>`): background write load in bytes/s, and by what factor (1 = none) a fixed
    /// mixed workload is slowed by it. In order of load.
    #[serde(default)]
    pub write_load: Vec<WriteLoad>,
    /// The vector: entry name (see [`crate::vector::entry_name`]) to cost.
    pub entries: BTreeMap<String, Entry>,
}

/// What the cache simulation and write-back model need to know.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Parameters {
    /// Data cache, bytes, measured (`bc`).
    pub data_cache_bytes: u64,
    /// Name cache, entries, measured (`nc`); 0: not reached by the measurement, taken as unbounded.
    pub name_cache_entries: u64,
    /// Attribute cache, files, measured (`mdc`); 0 as above.
    pub attribute_cache_files: u64,
    /// Whether the caches' sizes were reached (measured) or are lower bounds.
    pub data_cache_is_lower_bound: bool,
    /// Block size, bytes (`bs`).
    pub block_bytes: u32,
    /// Fragment size, bytes (`fs`); the block size where there are none.
    pub fragment_bytes: u32,
    /// Dirty data at which background write-back starts, bytes.
    pub dirty_background_bytes: u64,
    /// Dirty data at which writers are made to wait, bytes.
    pub dirty_limit_bytes: u64,
    /// Age at which dirty data is written back, nanoseconds.
    pub dirty_expire_ns: u64,
    /// Write-back throughput of large new files, bytes per second.
    pub writeback_bytes_per_s: f64,
    /// Write-back throughput of small (4 KB) files, files per second.
    pub writeback_files_per_s: f64,
    /// Resolution and cost of the clock, nanoseconds; already subtracted from entries.
    pub timer_overhead_ns: f64,
}

impl Default for Parameters {
    fn default() -> Self {
        Parameters {
            data_cache_bytes: 0,
            name_cache_entries: 0,
            attribute_cache_files: 0,
            data_cache_is_lower_bound: true,
            block_bytes: 4096,
            fragment_bytes: 4096,
            dirty_background_bytes: 0,
            dirty_limit_bytes: 0,
            dirty_expire_ns: 30_000_000_000,
            writeback_bytes_per_s: 0.0,
            writeback_files_per_s: 0.0,
            timer_overhead_ns: 0.0,
        }
    }
}

/// A point of the asynchronous overhead curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct WriteLoad {
    /// Load of a background writer, bytes per second.
    pub load_bytes_per_s: f64,
    /// Time of the fixed workload under that load, seconds (the thesis' unit).
    pub time_s: f64,
    /// That time over the time without load.
    pub slowdown: f64,
}

/// One cost of the vector.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
pub struct Entry {
    /// Mean latency of one call, nanoseconds.
    pub mean_ns: f64,
    /// Bootstrap 95 % interval of the mean over rounds.
    pub low_ns: f64,
    #[allow(missing_docs)]
    pub high_ns: f64,
    /// Calls measured; 0 in a hand-written profile.
    pub samples: u64,
    /// Quantiles of single calls at 1, 5, 10, 25, 50, 75, 90, 95, 99, 99.9 %, nanoseconds; empty in a hand-written profile.
    #[serde(default)]
    pub quantiles_ns: Vec<f64>,
    /// Mean of each round, nanoseconds: what the interval and the ranking's uncertainty are drawn from.
    #[serde(default)]
    pub rounds_ns: Vec<f64>,
    /// Cache state when measured, where the entry depends on one ("cold", "warm", "unverified").
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<posix::CacheState>,
}
