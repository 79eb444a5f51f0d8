//! The tests of this crate's behaviour, in one program: a module for each subject.

#![allow(clippy::unwrap_used)] // In helpers too a test may fail by panicking.

mod common;
mod found;
mod fsck;
mod indirect_reads;
mod live;
mod live_lab;
mod live_model;
mod log_writes;
mod mkfs;
mod mutations;
mod nearly_full;
mod netbsd;
mod read_format;
mod read_image;
mod read_properties;
mod read_rollforward;
#[path = "../../../ffs/tests/it/common/mod.rs"]
mod trees;
