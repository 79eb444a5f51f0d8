//! Replay: the trace, run for real on a target, every call timed.
//!
//! The state that the workload found is rebuilt in a private directory, the caches are emptied, and every call the
//! replay can make is made again in the trace's order, with the trace's concurrency, as fast as possible or with its
//! pauses. What comes back is checked against the trace. This is the truth that a prediction is held against;
//! the traced durations are not, because tracing inflates them.
//!
//! Two passes over the trace, both streaming: `scan` finds out what must be there and how many calls overlap,
//! `run` makes the calls. What may not live here: parsing, prediction, rendering.

mod at_start;
mod lane;
mod observed;
mod order;
pub mod present;
mod rebuild;
mod rights;
mod run;
mod scan;
mod shared;
mod tally;
mod translate;

#[cfg(test)]
pub(crate) mod testing;

pub use observed::{InOrder, Observation, ObservationFile, Observations};
pub use rebuild::Rebuilt;
pub use run::{OpenTrace, replay, replay_observed, replay_on, replay_on_observed, requirements};
pub use shared::Source;
pub use tally::{Difference, DifferenceCount, Differences, OpResult, Sample, SubtreeResult};

use fault::{Fault, Kind};
use posix::{CacheState, Environment, Errno};
use serde::Serialize;
use std::collections::BTreeMap;
use trace::disposition::Skip;
use trace::profile::too_deep;

/// Whose time passes between calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Pace {
    /// Nobody's: as fast as possible.
    #[default]
    Asap,
    /// The workload's own: each call waits as long after the calls it follows as it did in the trace.
    Recorded,
}

/// How traced threads become threads of the replay. The order is the same in all: a call starts only when every call
/// that had completed before it started in the trace has completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Threads {
    /// As many threads as calls were ever in flight at once; one where fewer than 1 % of the calls overlapped another,
    /// since waking a thread would cost more than the overlap is worth.
    #[default]
    Auto,
    /// One for each traced thread alive at the same time.
    Keep,
    /// One thread makes all calls in the order they started.
    Single,
}

/// Which files get real data when the initial state is rebuilt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Data {
    /// Those whose data the trace reads, overwrites or frees; the others get their length.
    #[default]
    Needed,
    /// All.
    All,
    /// None: every file is one hole.
    Sparse,
}

/// What the caches hold when the replay begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Initially {
    /// Emptied after the rebuild.
    #[default]
    Cold,
    /// Emptied, then everything read once.
    Warm,
    /// Whatever the rebuild left there: for checking outcomes, not for measuring time.
    Rebuilt,
}

/// How to replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ReplayOptions {
    /// As fast as possible, or paced.
    pub pace: Pace,
    /// Threads of the replay.
    pub threads: Threads,
    /// Data of the initial state.
    pub data: Data,
    /// Caches at the start.
    pub initially: Initially,
    /// How many differences are listed one by one.
    pub differences_max: usize,
    /// How many directories deep times are summed.
    pub subtree_depth: usize,
    /// Whether what the trace makes setuid or setgid becomes so.
    pub allow_setuid: bool,
}

impl Default for ReplayOptions {
    fn default() -> Self {
        ReplayOptions {
            pace: Pace::Asap,
            threads: Threads::Auto,
            data: Data::Needed,
            initially: Initially::Cold,
            differences_max: 20,
            subtree_depth: 3,
            allow_setuid: false,
        }
    }
}

impl ReplayOptions {
    /// The permission bits that the replay gives to files.
    fn modes(&self) -> u16 {
        if self.allow_setuid { 0o7777 } else { 0o777 }
    }
}

/// How the calls overlapped in the trace, and what the replay did about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Concurrency {
    /// Threads in the trace.
    pub traced_threads: u64,
    /// Most of them alive at once.
    pub traced_alive_max: u64,
    /// Most calls in flight at once.
    pub in_flight_max: u64,
    /// Calls that began while another was in flight.
    pub overlapped_calls: u64,
    /// Threads that replayed them.
    pub replay_threads: u64,
}

/// What a replay measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReplayResult {
    /// Where.
    pub environment: Environment,
    /// How.
    pub options: ReplayOptions,
    /// Calls in the trace.
    pub traced_calls: u64,
    /// Calls made and timed.
    pub calls: u64,
    /// Calls not made, by reason.
    pub skipped: BTreeMap<Skip, u64>,
    /// Time in the file system: the sum of all calls' latencies, nanoseconds.
    pub total_ns: u64,
    /// From the first call to the last, nanoseconds.
    pub wall_ns: u64,
    /// Writing back what the replay left dirty, nanoseconds; in no other figure.
    pub final_sync_ns: u64,
    /// Time of the rebuild, nanoseconds.
    pub rebuild_ns: u64,
    /// The initial state.
    pub rebuilt: Rebuilt,
    /// Whether the caches were known to be as asked.
    pub cache_state: CacheState,
    /// Threads.
    pub concurrency: Concurrency,
    /// Of this, the first twentieth of the trace's calls.
    pub sample: Sample,
    /// How long the loop took between the calls that shows how much of its core the processor had
    /// ([`posix::core_probe`]), nanoseconds; `None` in virtual time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub core_ns: Option<f64>,
    /// By operation, in the order of operations.
    pub per_op: Vec<OpResult>,
    /// By directory, most time first.
    pub per_subtree: Vec<SubtreeResult>,
    /// Outcomes that were not the traced ones.
    pub differences: Differences,
}

/// What a replay needs of its target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Requirements {
    /// Space: the initial state and what the trace adds to it at most, bytes.
    pub bytes: u64,
    /// Names.
    pub inodes: u64,
}

/// What a replay is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Reading the trace: calls.
    Scan,
    /// Making the initial state: names.
    Rebuild,
    /// Emptying or filling caches.
    Caches,
    /// Making the calls.
    Replay,
    /// Writing back what is left.
    Sync,
}

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// In this stage.
    pub stage: Stage,
    /// Calls or names done.
    pub done: u64,
    /// Of how many, where known.
    pub total: Option<u64>,
}

/// Why a replay failed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The workload profile cannot be read.
    #[error(transparent)]
    Profile(#[from] columnar::FileError),
    /// The target is too small.
    #[error(
        "{target}: the replay needs {need_bytes} bytes and {need_inodes} inodes, and {have_bytes} bytes and \
         {have_inodes} inodes are free; use a larger target"
    )]
    NoSpace {
        /// The target.
        target: String,
        /// Needed.
        need_bytes: u64,
        #[allow(missing_docs)]
        need_inodes: u64,
        /// Free.
        have_bytes: u64,
        #[allow(missing_docs)]
        have_inodes: u64,
    },
    /// The trace tells of more directories than any recording, by their depth.
    #[error("{place}: {}", too_deep())]
    TooDeep {
        /// Call or entry of the snapshot.
        place: String,
    },
    /// The initial state could not be made.
    #[error("rebuilding the initial state: {path}: {errno} (after {done} of {total} names){}", advice(*errno))]
    Rebuild {
        /// Path in the traced system, escaped.
        path: String,
        /// Why.
        errno: Errno,
        /// Names made before.
        done: u64,
        /// Names to make.
        total: u64,
    },
    /// The target failed while calls were made.
    #[error(
        "the target failed at call {seq} of the trace ({op} {path}): {errno}, after {calls} calls{}", advice(*errno)
    )]
    Target {
        /// Position in the trace.
        seq: u64,
        /// Operation.
        op: &'static str,
        /// Path in the traced system, escaped.
        path: String,
        /// Why.
        errno: Errno,
        /// Calls made before.
        calls: u64,
    },
    /// The private directory is no longer there.
    #[error(
        "the target vanished during the replay ({errno} on its root directory), after {calls} calls: is it still \
         mounted?"
    )]
    Vanished {
        /// Why.
        errno: Errno,
        /// Calls made.
        calls: u64,
    },
    /// The target cannot do something the replay needs.
    #[error("{doing}: {source}")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The user asked to stop.
    #[error("interrupted while {stage}, after {calls} calls")]
    Interrupted {
        /// What was being done.
        stage: &'static str,
        /// Calls made.
        calls: u64,
    },
}

fn advice(errno: Errno) -> &'static str {
    match errno {
        Errno::ENOSPC | Errno::EDQUOT => "; the target is full: use a larger one",
        Errno::EROFS => "; the target is read-only: remount it writable or choose another",
        Errno::EIO | Errno::ENODEV | Errno::ENXIO | Errno::ESTALE | Errno::EUCLEAN => {
            "; the target's device failed or went away: see the kernel's log"
        }
        Errno::EACCES | Errno::EPERM => "; the target does not let this user write: choose a directory of yours",
        Errno::EMFILE | Errno::ENFILE => "; raise the limit on open files (ulimit -n)",
        _ => "",
    }
}

impl Fault for ReplayError {
    fn kind(&self) -> Kind {
        match self {
            ReplayError::Profile(e) => e.kind(),
            ReplayError::TooDeep { .. } => Kind::BadInput,
            ReplayError::Interrupted { .. } => Kind::Interrupted,
            _ => Kind::Environment,
        }
    }
}

impl ReplayError {
    /// What is the profile's fault, with the profile's name.
    fn of(self, reader: &trace::profile::Reader) -> ReplayError {
        match self {
            ReplayError::TooDeep { place } => {
                ReplayError::Profile(trace::profile::FORMAT.corrupt(reader.directory(), place, too_deep()))
            }
            other => other,
        }
    }

    pub(crate) fn io(doing: &'static str) -> impl FnOnce(std::io::Error) -> ReplayError {
        move |source| ReplayError::Io { doing, source }
    }

    fn rebuild(path: &[u8], errno: Errno, done: u64, total: u64) -> ReplayError {
        ReplayError::Rebuild { path: trace::profile::escape(path).into_owned(), errno, done, total }
    }
}
