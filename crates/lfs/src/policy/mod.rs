//! Choices: how the log is written, which segments are cleaned, and when.

mod choose;
mod options;

pub(crate) use choose::{Candidate, value};
pub use options::{CleanerPolicy, Cleaning, Discard, Indirect, Options, Order, Sort};
