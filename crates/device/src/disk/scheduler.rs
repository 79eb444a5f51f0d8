//! How the next request is chosen from a queue.

use serde::{Deserialize, Serialize};

/// How the next request is chosen. Ties go to the older request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheduler {
    /// First come, first served.
    #[default]
    Fcfs,
    /// Shortest seek time first: the fewest cylinders.
    Sstf,
    /// Ascending block numbers, then from the lowest again (C-LOOK).
    CLook,
    /// Shortest positioning time first: seek and rotation (Seltzer, Chen and Ousterhout, "Disk Scheduling Revisited",
    /// USENIX Winter 1990; Jacobson and Wilkes, HPL-CSP-91-7).
    Sptf,
}
