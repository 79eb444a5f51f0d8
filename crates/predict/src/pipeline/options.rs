//! What a prediction assumes, and why it can be refused.

use columnar::FileError;
use fault::{Fault, Kind};
use serde::Serialize;
use system::{CachePolicy, OverrideError, Parameters, SystemProfile};
use units::show;

/// What the caches hold when the trace begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum InitialCaches {
    /// Nothing: as after a reboot.
    #[default]
    Cold,
    /// Everything that was there, as far as it fits.
    Warm,
}

/// When calls are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Pace {
    /// Each as soon as the one before is done.
    #[default]
    Asap,
    /// Not before the time it was made when traced: what lies between gives write-back time to work.
    Recorded,
}

/// Which calls of a trace a prediction is of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Calls {
    /// All that have a price.
    #[default]
    All,
    /// Those that a replay makes, and what those find that only they have done: for holding a prediction against a
    /// replay. Accesses through mappings, which no replay makes, bring nothing into the caches either.
    Replayed,
}

/// Options of a prediction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PredictOptions {
    /// What is cached at the start.
    pub initial: InitialCaches,
    /// When calls are made.
    pub pace: Pace,
    /// Which calls.
    pub calls: Calls,
    /// Another size of the data cache for all systems, bytes; dirty thresholds follow in proportion.
    pub cache_bytes: Option<u64>,
    /// Another policy of the data cache for all systems.
    pub cache_policy: Option<CachePolicy>,
    /// Entries or curves to replace in all systems: name and nanoseconds.
    pub set_ns: Vec<(String, f64)>,
    /// Below this share of covered activity the prediction is refused.
    pub min_coverage: f64,
    /// Pages that the data cache evicts together, 1 to 64.
    pub chunk_pages: u64,
    /// Files named in the report.
    pub files_top: usize,
    /// Directories named in the report.
    pub directories_top: usize,
    /// Seed of the intervals' resampling.
    pub seed: u64,
}

impl Default for PredictOptions {
    fn default() -> Self {
        PredictOptions {
            initial: InitialCaches::Cold,
            pace: Pace::Asap,
            calls: Calls::All,
            cache_bytes: None,
            cache_policy: None,
            set_ns: Vec::new(),
            min_coverage: 0.9,
            chunk_pages: 16,
            files_top: 20,
            directories_top: 200,
            seed: 1,
        }
    }
}

impl PredictOptions {
    /// A profile with the what-ifs of the options applied.
    ///
    /// # Errors
    /// A name that is not of the vector, or a value that is no cost.
    pub fn applied_to(&self, profile: &SystemProfile) -> Result<SystemProfile, OverrideError> {
        let mut changed = profile.clone();
        for (name, ns) in &self.set_ns {
            changed = changed.with_override(name, *ns)?;
        }
        if let Some(bytes) = self.cache_bytes {
            changed.parameters = with_cache(&changed.parameters, bytes);
        }
        if let Some(policy) = self.cache_policy {
            changed.parameters.cache_policy = policy;
        }
        Ok(changed)
    }
}

/// The same system with another data cache; the kernel's dirty thresholds are shares of memory, so they follow.
pub fn with_cache(parameters: &Parameters, bytes: u64) -> Parameters {
    let before = parameters.data_cache_to_simulate_bytes();
    let ratio = if before > 0 { bytes as f64 / before as f64 } else { 1.0 };
    let scaled = |n: u64| if n == 0 { 0 } else { ((n as f64 * ratio) as u64).max(1) };
    Parameters {
        data_cache_bytes: bytes,
        data_cache_is_lower_bound: false,
        dirty_background_bytes: scaled(parameters.dirty_background_bytes),
        dirty_limit_bytes: scaled(parameters.dirty_limit_bytes),
        ..*parameters
    }
}

/// A class that the workload needs and a profile has not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingEntry {
    /// The class.
    pub class: &'static str,
    /// What it means.
    pub meaning: &'static str,
    /// Why, if the profile says.
    pub reason: Option<String>,
    /// The operations that need it, and how often.
    pub needed_by: Vec<(&'static str, u64)>,
}

/// Why there is no prediction.
#[derive(Debug, thiserror::Error)]
pub enum PredictError {
    /// The workload profile could not be read.
    #[error(transparent)]
    Workload(#[from] FileError),
    /// A what-if that means nothing.
    #[error(transparent)]
    Override(#[from] OverrideError),
    /// No system was given.
    #[error("no system to predict for; give at least one .system profile")]
    NoSystem,
    /// A profile lacks entries the workload needs, and nothing stands in for them.
    #[error(
        "the profile of {system} has no entry that could price {}; measure the system again with fsage measure, or add \
         {} to the profile by hand",
        list_missing(.missing), .missing.first().map_or("it", |m| m.class)
    )]
    MissingEntries {
        /// Name of the system.
        system: String,
        /// The classes.
        missing: Vec<MissingEntry>,
    },
    /// Too little of the workload is visible.
    #[error(
        "the trace shows {:.1} % of the workload's file system activity, and {:.1} % are asked for (--min-coverage): \
         {detail}",
        .share * 100.0, .min * 100.0
    )]
    Coverage {
        /// Share covered.
        share: f64,
        /// Share asked for.
        min: f64,
        /// What is missing.
        detail: String,
    },
}

impl Fault for PredictError {
    fn kind(&self) -> Kind {
        match self {
            PredictError::Workload(error) => error.kind(),
            PredictError::Override(_) | PredictError::NoSystem => Kind::Usage,
            PredictError::MissingEntries { .. } => Kind::BadInput,
            PredictError::Coverage { .. } => Kind::Check,
        }
    }
}

fn list_missing(missing: &[MissingEntry]) -> String {
    let one = |m: &MissingEntry| {
        let needed: Vec<String> = m.needed_by.iter().map(|(op, n)| format!("{n} {op}")).collect();
        let reason = m.reason.as_ref().map(|why| format!("; not measured: {why}")).unwrap_or_default();
        format!("{} (needed by {} calls: {}{reason})", m.class, needed.join(", "), m.meaning)
    };
    // A profile whose measurement ran out of time lacks dozens: the first say enough.
    const SAID: usize = 3;
    let mut said: Vec<String> = missing.iter().take(SAID).map(one).collect();
    if let Some(more) = missing.get(SAID..).filter(|more| !more.is_empty()) {
        let names: Vec<&str> = more.iter().map(|m| m.class).collect();
        said.push(format!("and {}: {}", show::counted(names.len() as u64, "other", "others"), names.join(", ")));
    }
    said.join("; ")
}
