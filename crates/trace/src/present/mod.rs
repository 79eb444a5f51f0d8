//! What a workload is, a snapshot, a table of rows and a check of a recording, as documents.

mod rows;
mod snapshot;
mod verification;
mod workload;

pub use rows::rows;
pub use snapshot::snapshot;
pub use verification::verification;
pub use workload::{latencies, workload};
