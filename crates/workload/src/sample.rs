//! What one run of one phase comes to.

use crate::cache_note::CacheNote;
use crate::phase::{Phase, Unit};
use serde::{Deserialize, Serialize};

/// What a round's time is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TimedBy {
    /// The calls' times, summed: for one process that does nothing else.
    #[default]
    Calls,
    /// The file system's clock from begin to end: for processes that compute, or run at the same time.
    Clock,
}

/// A number that a benchmark counts beyond what all count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    /// What is counted.
    pub name: String,
    /// How many.
    pub value: u64,
}

/// One phase, once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Which.
    pub(crate) phase: Phase,
    /// What its headline counts.
    pub(crate) unit: Unit,
    /// Time in the calls, nanoseconds.
    pub(crate) calls_ns: u64,
    /// Time by the clock, without the final `syncfs`, nanoseconds.
    pub(crate) elapsed_ns: u64,
    /// Which of the two counts.
    pub(crate) timed_by: TimedBy,
    /// Time in the final `syncfs`, nanoseconds, where the phase writes.
    pub(crate) sync_ns: Option<u64>,
    /// Calls made.
    pub(crate) calls: u64,
    /// Transactions or scripts completed.
    pub(crate) completed: u64,
    /// Bytes of file data.
    pub(crate) bytes: u64,
    /// Files.
    pub(crate) files: u64,
    /// How cold the caches were at the start.
    pub(crate) caches: CacheNote,
    /// What this benchmark counts beyond that.
    pub(crate) counts: Vec<Count>,
}

impl Sample {
    /// With another unit than the phase's own.
    pub(crate) fn per(self, unit: Unit) -> Sample {
        Sample { unit, ..self }
    }

    /// With the clock's time instead of the calls'.
    pub(crate) fn by_clock(self) -> Sample {
        Sample { timed_by: TimedBy::Clock, ..self }
    }

    /// With numbers of the benchmark's own.
    pub(crate) fn with_counts(self, counts: &[(&str, u64)]) -> Sample {
        let counts = counts.iter().map(|(name, value)| Count { name: (*name).to_owned(), value: *value });
        Sample { counts: counts.collect(), ..self }
    }
}
