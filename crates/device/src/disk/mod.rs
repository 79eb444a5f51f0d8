//! Hard disks: geometry, arm, rotation, buffer, bus and queue.
//!
//! [`Disk`] serves one request at a time and works out its completion directly, without events: positions are functions
//! of time, and what goes on in the background (reading ahead, writing back) is caught up with when the next request
//! comes. [`QueuedDisk`] puts a queue and a scheduler in front.
//!
//! The model follows Ruemmler and Wilkes, "An Introduction to Disk Drive Modeling" (IEEE Computer 27(3), 1994) and the
//! parameters that the DiskSim 4.0 distribution extracted from real drives; docs/devices.md says what is modelled and
//! how well it agrees with measurements.

mod cache;
mod geometry;
mod mechanism;
mod model;
mod queue;
mod scheduler;
mod seek;
pub mod spec;
mod transfer;
mod traps;

pub use geometry::{Geometry, Pbn, Zone};
pub use model::{Action, Disk, Refinement, Served};
pub use queue::QueuedDisk;
pub use scheduler::Scheduler;
pub use seek::Seek;
