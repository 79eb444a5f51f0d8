//! Text formats: for reading by eye, for other tools, and those of the thesis.
//!
//! [`snapshot`] is the thesis's snapshot text, read and written. [`trace`] is a trace as comma-separated values,
//! written only. (The thesis's system vector belongs to the crate that measures.) docs/formats.md describes them.

pub mod snapshot;
pub mod trace;
