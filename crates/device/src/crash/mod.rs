//! What a power failure may leave on a disk, worked out from a log of the writes that it was asked for.
//!
//! The model of a drive: it executes requests in an order of its own, and a write sector by sector. A write that the
//! drive has reported as being on the medium is there. Of all others, those under way and those that only its cache
//! holds, any sectors may be there and any others not, until a flush that was asked for after their completion is
//! complete. A sector is written whole or not at all.
//!
//! A [`Point`] is a moment between two completions, and a state is what the disk holds if the power fails then:
//! everything that has settled, and a choice among the sectors that have not. Where few sectors are open every choice
//! is made; where there are many, the regular ones (nothing, everything, each write alone, each write missing, each
//! write cut at each sector) and others drawn by a seed. A state is laid over the disk in place and taken off again:
//! nothing is copied but the sectors in question. The same log, plan, point and choice give the same state, always
//! ([`StateId`]).

mod disk;
mod log;
mod plan;
mod points;
mod state_id;

pub use disk::{Disk, Recording};
pub use log::{Event, SECTOR_BYTES, Write};
pub use plan::{Plan, UnderWay, WriteCache};
pub use points::{Crash, Point};
pub use state_id::StateId;
