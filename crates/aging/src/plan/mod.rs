//! Planners: where an aging workload comes from.
//!
//! A planner pushes its operations into a [`Writer`] and answers with the description of what it did; [`write()`] is
//! the frame around all of them. Same inputs, same seed: same bytes.

pub mod alloc96;
mod error;
pub mod geriatrix;
pub mod git;
mod inputs;
pub mod personality;
pub mod profile;
pub mod short_lived;
pub mod snapshots;

pub use error::PlanError;

use crate::format::{PlanMeta, Writer};
use std::path::Path;

/// The file system that a workload is planned for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedFor {
    /// Its size as `df` counts it (`f_blocks * f_frsize`), bytes.
    pub capacity_bytes: u64,
    /// The unit in which a file takes up space, bytes.
    pub block_bytes: u64,
}

/// Told now and then how much of the planning is done (0 to 1); answers whether to go on.
pub type Progress<'a> = &'a mut dyn FnMut(f64) -> bool;

/// Runs a planner into the file `path`. Nothing is under that name until all is well.
///
/// # Errors
/// Those of the planner; [`FileError`](columnar::FileError) where the file cannot be written.
pub fn write(
    path: &Path,
    planned_for: PlannedFor,
    planner: impl FnOnce(&mut Writer) -> Result<PlanMeta, PlanError>,
) -> Result<PlanMeta, PlanError> {
    if planned_for.block_bytes == 0 || planned_for.capacity_bytes < planned_for.block_bytes {
        return Err(PlanError::parameter("capacity", "the file system has less than one block"));
    }
    let mut writer = Writer::create(path, planned_for.capacity_bytes, planned_for.block_bytes)?;
    let meta = planner(&mut writer)?;
    Ok(writer.finish(meta)?)
}

/// Fails once `progress` asks to stop.
pub(crate) fn go_on(progress: &mut Progress<'_>, done: f64) -> Result<(), PlanError> {
    if progress(done) { Ok(()) } else { Err(PlanError::Interrupted) }
}
