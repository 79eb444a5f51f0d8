//! Aging: what years of use do to a file system, planned reproducibly and replayed on any target.
//!
//! What lives here: the aging workload and its file (`op`, `tree`, [`mod@format`]), the planners that write one, and
//! the replayer that performs one. What may not: layout figures (crate `layout`), prices of calls (crate `predict`).
//!
//! The method follows Smith and Seltzer, *File System Aging* (SIGMETRICS 1997), and chapter 3 of Smith's
//! *Workload-Specific File System Benchmarks* (2001).
//!
//! `examples/age.rs` plans three days and replays them: `cargo run -p fsage-aging --example age`.

pub mod age;
pub mod fit;
pub mod format;
pub mod model;
mod op;
pub mod plan;
pub mod present;
pub mod snapshot;
mod taken;
mod tree;
pub mod verify;

pub use op::{AgingOp, DAY_NS, NodeId, OpKind};
pub use tree::{Broken, Node, Tree};
