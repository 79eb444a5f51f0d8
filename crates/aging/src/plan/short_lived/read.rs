//! Reading short-lived files from whatever has them.

use super::{ShortLived, aging, workload};
use crate::plan::PlanError;
use std::path::Path;

impl ShortLived {
    /// Reads short-lived activity from a workload profile (a directory) or an aging workload (a file).
    ///
    /// # Errors
    /// The file is damaged, or has no short-lived files in it.
    pub fn read(path: &Path) -> Result<ShortLived, PlanError> {
        if path.is_dir() { workload::read(path) } else { aging::read(path) }
    }
}
