//! A plan, what replaying it did, by the end and over time, and a snapshot of a tree, as documents.

mod age;
pub mod course;
mod plan;
mod tree_snapshot;

pub use age::age;
pub use plan::plan;
pub use tree_snapshot::tree_snapshot;
