//! The tests of this crate's behaviour, in one program: a module for each subject.

#![allow(clippy::unwrap_used)] // In helpers too a test may fail by panicking.

mod age;
mod age_scratch;
mod common;
mod course;
mod examples;
mod format;
mod plan_geriatrix;
mod plan_git;
mod plan_personality;
mod plan_profile;
mod plan_snapshots;
mod snapshot;
mod snapshot_blocks;
mod snapshot_mounts;
mod snapshot_scratch;
mod sources;
