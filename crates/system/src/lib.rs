//! System profiles: `NAME.system`, what one file system on one machine costs.
//!
//! TOML, written by `fsage measure` and by hand for systems that do not exist. Field by field in docs/formats.md.
//! The types are here, what was found by trying in `behaviour`; reading and writing in `file`, prices between measured
//! points in `price`, what-ifs in `edit`, whether a machine is still as it was measured in `drift`, what profiles are
//! called by where somebody names one in `called`, how far two profiles of it are from each other in `apart`, several
//! of it as one in `pool`, durations as text in `duration`, the thesis' own text format in `thesis`.

mod apart;
mod behaviour;
pub mod bundled;
mod bundled_files;
mod cache_policy;
mod called;
mod drift;
mod edit;
mod error;
mod file;
mod pool;
pub mod present;
mod price;
pub mod thesis;
pub mod vector;

pub use apart::{Apart, EntryApart, apart};
pub use behaviour::{Behaviour, Family};
pub use cache_policy::CachePolicy;
pub use called::{Called, called};
pub use drift::{Drift, Moved, Reference, References};
pub use edit::OverrideError;
pub use error::SystemProfileError;
pub use price::{Distance, PricePoint, PriceTable, Term};

use posix::Environment;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The version this code writes and reads; others are refused.
pub const FORMAT_VERSION: u32 = 1;

/// Everything measured about one system.
#[derive(Clone, Debug, PartialEq, Default, Serialize)]
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
    /// What it does, found by trying.
    #[serde(skip_serializing_if = "Behaviour::is_unknown")]
    pub behaviour: Behaviour,
    /// The asynchronous overhead curve (`wr_<load>`): background write load in bytes/s, and by what factor (1 = none) a
    /// fixed mixed workload is slowed by it. In order of load.
    pub write_load: Vec<WriteLoad>,
    /// By what factor (1 = none) the sync of one file takes longer while other threads sync other files, in order of
    /// their number. Empty where it was not measured.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sync_beside: Vec<SyncBeside>,
    /// The vector: entry name (see [`crate::vector::entry_name`]) to cost. Each name parses with
    /// [`crate::vector::parse_entry_name`].
    pub entries: BTreeMap<String, Entry>,
    /// Why an entry or a whole class is missing from the vector: its name to a sentence.
    pub missing: BTreeMap<String, String>,
    /// What is measured again to see whether the system is still the same; empty in a hand-written profile and in
    /// virtual time.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub references: References,
}

/// What the cache simulation and write-back model need to know.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Parameters {
    /// Data cache, bytes, measured (`bc`).
    pub data_cache_bytes: u64,
    /// Name cache, entries, measured (`nc`); 0: not reached by the measurement, taken as unbounded.
    pub name_cache_entries: u64,
    /// Attribute cache, files, measured (`mdc`); 0 as above.
    pub attribute_cache_files: u64,
    /// Whether `data_cache_bytes` is only the largest working set that was seen to stay cached.
    pub data_cache_is_lower_bound: bool,
    /// Names that were seen to stay cached (their attributes too): the lower bound where the two counts above are 0.
    pub names_seen_cached: u64,
    /// Memory available to caches when measured, as the system told us (not measured); 0 if unknown.
    pub memory_available_bytes: u64,
    /// What the data cache evicts: not measured, but written by whoever knows it.
    #[serde(skip_serializing_if = "CachePolicy::is_default")]
    pub cache_policy: CachePolicy,
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
    /// What waits for no device takes longer by this power of what the reference `core` takes longer; 0: it was not
    /// seen to.
    #[serde(skip_serializing_if = "is_zero")]
    pub core_power: f64,
    /// How many times as long calls take that wait for no device while another thread makes such calls; 0: not known.
    #[serde(skip_serializing_if = "is_zero")]
    pub calls_beside: f64,
}

fn is_zero(value: &f64) -> bool {
    *value == 0.0
}

impl Parameters {
    /// What a cost that waits for no device is multiplied by while another thread is in a call.
    pub fn slowdown_beside(&self) -> f64 {
        self.calls_beside.max(1.0)
    }

    /// The data cache to simulate, bytes: as measured, or, where only a lower bound was reached, the memory that
    /// the system said was available if that is more.
    pub fn data_cache_to_simulate_bytes(&self) -> u64 {
        if self.data_cache_is_lower_bound {
            self.data_cache_bytes.max(self.memory_available_bytes)
        } else {
            self.data_cache_bytes
        }
    }
}

impl Default for Parameters {
    fn default() -> Self {
        Parameters {
            data_cache_bytes: 0,
            name_cache_entries: 0,
            attribute_cache_files: 0,
            data_cache_is_lower_bound: true,
            names_seen_cached: 0,
            memory_available_bytes: 0,
            cache_policy: CachePolicy::default(),
            block_bytes: 4096,
            fragment_bytes: 4096,
            dirty_background_bytes: 0,
            dirty_limit_bytes: 0,
            dirty_expire_ns: 30_000_000_000,
            writeback_bytes_per_s: 0.0,
            writeback_files_per_s: 0.0,
            timer_overhead_ns: 0.0,
            core_power: 0.0,
            calls_beside: 0.0,
        }
    }
}

/// A point of the asynchronous overhead curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WriteLoad {
    /// Load of a background writer, bytes per second.
    pub load_bytes_per_s: f64,
    /// Time of the fixed workload under that load, seconds (the thesis' unit).
    pub time_s: f64,
    /// That time over the time without load.
    pub slowdown: f64,
}

/// A point of what syncs of several threads cost each other.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SyncBeside {
    /// Threads that sync a file of their own meanwhile.
    pub others: u32,
    /// The latency of a sync over that without them.
    pub slowdown: f64,
}

impl SystemProfile {
    /// By what factor a sync takes longer while so many other threads sync other files.
    pub fn sync_slowdown(&self, others: u32) -> f64 {
        slowdown_at(self.sync_beside.iter().map(|p| (f64::from(p.others), p.slowdown)), f64::from(others))
    }

    /// By what factor background write-back slows calls down: the curve at the rate of write-back.
    pub fn writeback_slowdown(&self) -> f64 {
        let points = self.write_load.iter().map(|p| (p.load_bytes_per_s, p.slowdown.max(1.0)));
        slowdown_at(points, self.parameters.writeback_bytes_per_s)
    }
}

/// A curve that begins with 1 at 0: between its points linear, beyond the last the last.
fn slowdown_at(points: impl Iterator<Item = (f64, f64)>, at: f64) -> f64 {
    let mut below = (0.0, 1.0);
    for above in points {
        if at <= above.0 {
            let share = if above.0 > below.0 { (at - below.0) / (above.0 - below.0) } else { 1.0 };
            return below.1 + share * (above.1 - below.1);
        }
        below = above;
    }
    below.1
}

/// One cost of the vector.
#[derive(Clone, Debug, PartialEq, Default, Serialize)]
pub struct Entry {
    /// Mean latency of one call, nanoseconds: of a measured entry the mean of the central half of `rounds_ns`.
    pub mean_ns: f64,
    /// Bootstrap 95 % interval of the mean over rounds.
    pub low_ns: f64,
    #[allow(missing_docs)]
    pub high_ns: f64,
    /// Calls measured; 0 in a hand-written profile.
    pub samples: u64,
    /// Quantiles of single calls at [`stats::QUANTILES`], nanoseconds; empty in a hand-written profile.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub quantiles_ns: Vec<f64>,
    /// Mean of each round (of each batch of some calls, for calls that do not wait for the device), nanoseconds: what
    /// `mean_ns` (the mean of their central half), its interval and the ranking's uncertainty are drawn from.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rounds_ns: Vec<f64>,
    /// How what it costs depends on the calls before it; absent where that was not seen.
    #[serde(flatten)]
    pub reuse: Option<Reuse>,
    /// Cache state when measured, where the entry depends on one ("cold", "warm", "unverified").
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<posix::CacheState>,
}

/// How a call's cost depends on its *reuse distance*: how many calls ago one of its kind was made (1: the one just
/// before). The nearer, the more of the kernel's code and data does it find in the processor's caches.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Reuse {
    /// The distance that the entry's mean is of, at which a call takes as long as those that were measured do on
    /// average.
    #[serde(rename = "reuse_distance")]
    pub distance: f64,
    /// By what power of the distance the call takes longer.
    #[serde(rename = "reuse_power")]
    pub power: f64,
}

impl Reuse {
    /// Beyond so many calls nothing is left to lose.
    pub const FARTHEST: u64 = 256;

    /// What the entry's mean is multiplied by at another distance.
    pub fn factor(self, distance: u64) -> f64 {
        (distance.clamp(1, Reuse::FARTHEST) as f64 / self.distance).powf(self.power)
    }
}

impl Entry {
    /// A cost known only as a figure: no samples, no spread.
    pub fn exactly(mean_ns: f64) -> Entry {
        Entry { mean_ns, low_ns: mean_ns, high_ns: mean_ns, ..Entry::default() }
    }
}
