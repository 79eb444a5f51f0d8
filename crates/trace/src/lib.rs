//! Workload profiles: what a workload asked of its file systems, recorded once.
//!
//! What lives here: recording (driving strace), importers and exporters, snapshots of names, the workload profile
//! format (`NAME.workload/`: `meta.json`, `trace.parquet`, `snapshot.parquet`, `schedule.parquet`; docs/formats.md),
//! and the statistics of `fsage inspect`. What may not: anything that predicts or replays.
//!
//! `examples/read_workload.rs` reads a profile: `cargo run -p fsage-trace --example read_workload`.

pub mod agree;
pub mod analysis;
pub mod anonymise;
mod call;
pub mod disposition;
mod event;
pub mod fio;
mod ids;
pub mod inspect;
pub mod kernel;
mod lines;
mod op;
pub mod perf;
pub mod present;
pub mod profile;
pub mod recognise;
pub mod record;
mod room;
pub mod schedule;
pub mod snapshot;
pub mod spool;
pub mod strace;
mod syscalls;
pub mod text;
pub mod track;
pub mod tree;
pub mod verify;

pub use call::{About, Call, Destination, Mapped, Named, Opened, Range, Target, Via};
pub use event::{Batch, Event, Head, Paths, flag};
pub use ids::{FileId, OfdId, PathId};
pub use op::Op;
pub use room::Room;
pub use snapshot::{Provenance, Snapshot, SnapshotEntry};
