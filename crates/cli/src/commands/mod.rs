//! One file per command: its arguments, and `run`, which calls the libraries and shows the result.

pub mod completions;
pub mod man;
