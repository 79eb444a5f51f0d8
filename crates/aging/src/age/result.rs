//! What a replay did.

use super::options::{DataMode, OnFull, Room};
use crate::OpKind;
use crate::format::PlanMeta;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Which plan was replayed.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PlanIdentity {
    /// Name of the file, without directories.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// CRC-32C of its contents, hexadecimal.
    pub crc32c: String,
}

/// What control and a full target did to the plan.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counters {
    /// Operations of the plan gone through.
    pub operations: u64,
    /// Operations performed on the target, by kind (a deletion brought forward counts as a deletion).
    pub performed: BTreeMap<String, u64>,
    /// Calls made.
    pub calls: u64,
    /// Bytes written (or reserved, with fallocate).
    pub written_bytes: u64,
    /// Deletions brought forward, to win space.
    pub brought_forward: u64,
    /// Their bytes.
    pub brought_forward_bytes: u64,
    /// Deletions held back, to keep space used.
    pub held_back: u64,
    /// Their bytes.
    pub held_back_bytes: u64,
    /// Of them, made up for when space had to be won.
    pub released: u64,
    /// Of them, made up for because the name or the directory was needed.
    pub released_for_name: u64,
    /// Files deleted that the plan does not delete within the look-ahead.
    pub out_of_plan: u64,
    /// Their bytes.
    pub out_of_plan_bytes: u64,
    /// Operations left out because their file was deleted early or never made.
    pub dropped: u64,
    /// Overwriting left out (`--data=fallocate`).
    pub overwrites_left_out: u64,
    /// Holes not punched because the file system cannot.
    pub holes_unsupported: u64,
    /// Operations that found the target full (`ENOSPC`, `EDQUOT`) and were tried again after a `syncfs`.
    pub full: u64,
    /// Of them, left out for good.
    pub full_left_out: u64,
    /// Files deleted to make room for an operation on a full target.
    pub deleted_for_room: u64,
}

impl Counters {
    pub(super) fn perform(&mut self, kind: OpKind) {
        // Every kind has its entry from the beginning: nothing is allocated here.
        if let Some(n) = self.performed.get_mut(kind.name()) {
            *n += 1;
        }
    }

    pub(super) fn new() -> Counters {
        let performed = OpKind::ALL.iter().map(|k| (k.name().to_owned(), 0)).collect();
        Counters { performed, ..Counters::default() }
    }
}

/// The end of a simulated day.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
pub struct DayRow {
    /// The day, from 1.
    pub day: u32,
    /// What the plan has in use, as a share of its capacity.
    pub planned_share: f64,
    /// What was steered to: the plan's share and the file system's own use when empty (see [`AgeResult::base_bytes`]).
    pub target_share: f64,
    /// What is in use: the files' blocks, and the overhead at its last reading.
    pub used_share: f64,
    /// Files and links on the target.
    pub files: u64,
    /// Operations of this day.
    pub operations: u64,
    /// Wall time of this day, nanoseconds; days end within a window, so short ones may show none.
    pub wall_ns: u64,
    /// Deletions brought forward and out of plan on this day.
    pub early_deletions: u64,
    /// Deletions held back on this day.
    pub held_back: u64,
    /// Operations that found the target full on this day.
    pub full: u64,
}

/// A reading of `statvfs` with the writers drained.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ControlPoint {
    /// Operations so far.
    pub operation: u64,
    /// Simulated time, days.
    pub day: f64,
    /// The plan's use as a share of its capacity.
    pub planned_share: f64,
    /// What was steered to.
    pub target_share: f64,
    /// What was read.
    pub used_share: f64,
}

/// How well the utilisation was kept, over all control points.
#[derive(Clone, Copy, Debug, PartialEq, Default, Serialize, Deserialize)]
pub struct Deviation {
    /// Readings.
    pub readings: u64,
    /// Largest excess over what was steered to, as a share of the room (0.01 is a percentage point).
    pub over_max: f64,
    /// Largest shortfall.
    pub under_max: f64,
    /// Mean of the absolute deviations.
    pub mean: f64,
    /// Largest excess over the plan's own share, the file system's base use not deducted.
    pub over_plan_max: f64,
    /// Highest share read.
    pub used_max: f64,
}

/// A replay's result.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
pub struct AgeResult {
    /// Which plan.
    pub plan: PlanIdentity,
    /// What the plan says of itself, without its curve.
    pub meta: PlanMeta,
    /// Where, when it began.
    pub environment: posix::Environment,
    /// How contents came about.
    pub data: DataMode,
    /// Writers.
    pub writers: u64,
    /// What happened on a full target.
    pub on_full: OnFull,
    /// Seed of the choices of the replay.
    pub seed: u64,
    /// How much of the target was the plan's.
    pub room: Option<Room>,
    /// That in bytes.
    pub room_bytes: u64,
    /// In use before the first operation, bytes: the empty file system's own, or that of others.
    pub base_bytes: u64,
    /// Simulated days gone through.
    pub days_done: u32,
    /// Wall time of the operations, nanoseconds; surveys and checkpoints not included.
    pub wall_ns: u64,
    /// What was done.
    pub counters: Counters,
    /// How well the utilisation was kept.
    pub deviation: Deviation,
    /// Simulated days.
    pub days: Vec<DayRow>,
    /// Readings.
    pub control_points: Vec<ControlPoint>,
    /// Files and links on the target at the end.
    pub files: u64,
    /// Sum of their lengths in whole blocks, bytes.
    pub file_bytes: u64,
    /// What the reader should know.
    pub notes: Vec<String>,
    /// How often the run was resumed.
    pub resumed: u32,
}

impl AgeResult {
    /// Operations of the plan for each second of wall time.
    pub fn operations_per_second(&self) -> Option<f64> {
        (self.wall_ns > 0).then(|| self.counters.operations as f64 * 1e9 / self.wall_ns as f64)
    }

    pub(super) fn add_point(&mut self, point: ControlPoint, base_share: f64) {
        let deviation = &mut self.deviation;
        let off = point.used_share - point.target_share;
        let n = deviation.readings as f64;
        deviation.mean = (deviation.mean * n + off.abs()) / (n + 1.0);
        deviation.readings += 1;
        deviation.over_max = deviation.over_max.max(off);
        deviation.under_max = deviation.under_max.max(-off);
        deviation.used_max = deviation.used_max.max(point.used_share);
        // Before the plan asks for more than the empty file system uses, nothing can be at its share.
        if point.planned_share > base_share {
            deviation.over_plan_max = deviation.over_plan_max.max(point.used_share - point.planned_share);
        }
        self.control_points.push(point);
    }
}
