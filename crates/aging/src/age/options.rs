//! What a replay is asked for.

use posix::FsUsage;
use serde::{Deserialize, Serialize};

/// How the contents of files come about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DataMode {
    /// Every byte is written: incompressible filler, so that nothing is stored in less space than planned.
    #[default]
    Write,
    /// Space is reserved with `fallocate(2)` and no data moves: much faster. Extents are marked unwritten, there is no
    /// delayed allocation, and overwriting is left out (it moves nothing where a file system overwrites in place, and
    /// does where it copies on write).
    Fallocate,
}

/// What happens when the target is full (`ENOSPC`, `EDQUOT`) although the plan had room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnFull {
    /// Leaves the operation out: a file that cannot be made is not there, one that cannot grow stays as long as it was.
    #[default]
    Skip,
    /// Deletes the oldest files until there is room for the operation.
    DeleteOldest,
    /// Ends the run.
    Stop,
}

/// How much of the target the plan is laid out on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Room {
    /// The whole file system: the share in use that `df` shows is steered to the plan's.
    Whole,
    /// So many bytes of it, beside what others use: the growth of the share in use since the beginning is steered.
    Beside {
        /// The plan's whole, bytes.
        bytes: u64,
    },
}

/// How often something is done.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Every {
    /// Every so many operations of the plan.
    Operations(u64),
    /// Every so many simulated days.
    Days(f64),
}

/// Options of a replay.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgeOptions {
    /// How contents come about.
    pub data: DataMode,
    /// How many writers share the work; the final tree does not depend on it.
    pub writers: usize,
    /// Most bytes of one `write`.
    pub chunk_bytes: u64,
    /// What happens on a full target.
    pub on_full: OnFull,
    /// End after so many simulated days.
    pub days: Option<u32>,
    /// How many operations ahead deletions are looked for when space has to be won.
    pub look_ahead: usize,
    /// How much of the target is the plan's.
    pub room: Room,
    /// Chooses the files deleted where the plan deletes none in time.
    pub seed: u64,
    /// Pace: simulated nanoseconds per nanosecond; `None`: as fast as possible.
    pub real_time: Option<f64>,
    /// When to write a state that a later run can go on from; `None`: never.
    pub checkpoint: Option<Every>,
    /// Simulated days between surveys; `None`: none.
    pub survey_days: Option<f64>,
    /// Simulated days between snapshots; `None`: none.
    pub snapshot_days: Option<f64>,
    /// Whether snapshots have block lists.
    #[serde(default)]
    pub snapshot_blocks: bool,
}

impl Default for AgeOptions {
    fn default() -> Self {
        AgeOptions {
            data: DataMode::Write,
            writers: 1,
            chunk_bytes: 1 << 20,
            on_full: OnFull::Skip,
            days: None,
            look_ahead: 1 << 17,
            room: Room::Whole,
            seed: 1,
            real_time: None,
            checkpoint: None,
            survey_days: None,
            snapshot_days: None,
            snapshot_blocks: false,
        }
    }
}

impl Room {
    /// Largest relative difference between a plan's capacity and a file system's that is steered; beyond it the plan is
    /// one for another file system.
    pub const DIFFERENCE_MAX: f64 = 0.10;

    /// The plan's capacity relative to that of a file system taken whole: 0.1 for a tenth more.
    pub fn difference(capacity_bytes: u64, usage: &FsUsage) -> f64 {
        if usage.total_bytes == 0 {
            return f64::INFINITY;
        }
        capacity_bytes as f64 / usage.total_bytes as f64 - 1.0
    }

    /// The bytes that stand for the plan's whole.
    pub fn bytes(self, usage: &FsUsage) -> u64 {
        match self {
            Room::Whole => usage.total_bytes,
            Room::Beside { bytes } => bytes,
        }
    }
}
