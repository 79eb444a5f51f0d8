//! The names a workload found: every file and directory that was there when the trace began.
//!
//! What lives here: the types, look-ups, and the walker that reads a tree ([`Snapshot::of_tree`]), ours or another
//! mount namespace's ([`View`]). The Parquet form is
//! written by [`crate::profile`]. A snapshot is sorted so that a directory comes before what is in it; hard links share
//! `(dev, ino)`.

mod entries;
mod entry;
pub(crate) mod open;
mod path;
mod view;
pub(crate) mod walk;

pub use entries::Snapshot;
pub use entry::{Provenance, SnapshotEntry};
pub(crate) use path::is_below;
pub use path::{is_plain, parent_of, path_order};
pub use view::View;
pub use walk::{WalkLimits, Walked};
