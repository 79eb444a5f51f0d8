//! The tests of this crate's behaviour, in one program: a module for each subject.

#![allow(clippy::unwrap_used)] // In helpers too a test may fail by panicking.

mod agree;
mod beyond_calls;
mod common;
#[path = "../../../trace/tests/it/torture/harness.rs"]
mod harness;
mod layout;
mod long_paths;
mod losses;
mod made_again;
mod subjects;
mod torture;
mod turns;
