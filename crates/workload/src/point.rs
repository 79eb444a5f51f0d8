//! What a benchmark is run at.

use serde::{Deserialize, Serialize};

/// Something a benchmark is run at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Point {
    /// Its name in tables (`64 KiB`, `hot files`).
    pub label: String,
    /// The file size, where that is what differs.
    pub size_bytes: Option<u64>,
    /// All rounds of a stage are run before the next begins: for what changes what others measure. Stages of the same
    /// label are one point of the result.
    #[serde(skip)]
    pub stage: u32,
}
