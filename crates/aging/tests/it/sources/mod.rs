//! A tree that lives in memory, and the replay of a plan there.
pub mod model;
pub mod replay;
