//! Replaying an aging workload on a file system.
//!
//! What lives here: the replayer ([`age`]), its control of the utilisation, what it does on a full target, its
//! checkpoints and how a run goes on from one, and what it tells ([`AgeResult`]). What may not: anything about
//! particular file systems; it drives [`posix::FileSystem`], mounted or simulated.
//!
//! The order of operations is the plan's and idle time is left out (`aging97`, section 3.3), unless a pace is asked
//! for. Window by window (`window`), operations are resolved by one thread and performed by several writers (`writer`);
//! between windows the use is read and control decides (`control`).

mod ahead;
mod compress;
mod control;
mod error;
mod nodes;
mod options;
mod placement;
mod reconcile;
mod replay;
mod result;
mod session;
mod state;
mod window;
mod writer;

/// The name of the file in the root of an aged tree by which it is known.
pub const MARKER_NAME: &str = ".fsage-aged";

pub use compress::{Compressed, compress};
pub use error::AgeError;
pub use options::{AgeOptions, DataMode, Every, OnFull, Room};
pub use reconcile::{Reconciled, reconcile};
pub use replay::{Begin, Observer, Progress, age};
pub use result::{AgeResult, ControlPoint, Counters, DayRow, Deviation, PlanIdentity};
pub use session::{Marker, Place, Session, SessionState, identity, room};
pub use state::{STATE_VERSION, State};
