//! The state of a replay at a checkpoint: all that a later run needs to go on from there.
//!
//! It is small: which plan, how far, what was decided. The nodes are not in it; they follow from the plan's operations
//! up to there. It is written to a temporary name and renamed after the target has been brought to stable storage, so
//! that what it speaks of is on the target whatever happens next.

use super::control::Control;
use super::error::AgeError;
use super::result::AgeResult;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The version this code writes and reads; others are refused.
pub const STATE_VERSION: u32 = 1;

/// No state is longer: of the files that a plan has alive, it numbers those that are not as planned.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// A checkpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// [`STATE_VERSION`].
    pub version: u32,
    /// Operations done.
    pub next_operation: u64,
    /// Simulated time of the last of them.
    pub simulated_ns: u64,
    /// Operations after that of which some may be on the target too, if the run was killed.
    pub reach_operations: u64,
    /// The result so far; its plan identity says which plan.
    pub result: AgeResult,
    pub(super) control: Control,
    /// Files held back, the oldest deletion first.
    pub(super) held: Vec<u64>,
    /// Files of the plan that are not on the target.
    pub(super) absent: Vec<u64>,
    /// Lengths on the target that are not the plan's.
    pub(super) odd: Vec<(u64, u64)>,
    /// Directories made ahead of their operation, in the group the plan asks for.
    pub(super) placed: Vec<u64>,
    /// What the command itself has to remember (target, image, directories).
    pub session: serde_json::Value,
}

impl State {
    /// Writes it, whole or not at all, and to stable storage.
    ///
    /// # Errors
    /// [`AgeError::Io`].
    pub fn save(&self, path: &Path) -> Result<(), AgeError> {
        let io = || fault::refused(path, "write the state");
        let text = serde_json::to_vec(self).map_err(|e| io()(e.into()))?;
        Ok(posix::output::write_durably(path, &text).map_err(io())?)
    }

    /// Reads one.
    ///
    /// # Errors
    /// [`AgeError::State`] for a file that is none, damaged, or of another version.
    pub fn load(path: &Path) -> Result<State, AgeError> {
        #[derive(Deserialize)]
        struct Versioned {
            version: u32,
        }
        let bad = |problem: String| AgeError::State { path: path.to_owned(), problem };
        let text = posix::input::read(path, FILE_BYTES_MAX).map_err(|e| bad(format!("cannot be read: {e}")))?;
        let place = |e: serde_json::Error| {
            bad(format!("line {}, column {}: no state of an aging run: {e}", e.line(), e.column()))
        };
        let Versioned { version } = serde_json::from_slice(&text).map_err(place)?;
        if version != STATE_VERSION {
            let problem = format!("state version {version} is not supported: this fsage reads version {STATE_VERSION}");
            return Err(bad(format!("{problem}; resume with the version that wrote it, or age again")));
        }
        serde_json::from_slice(&text).map_err(place)
    }
}
