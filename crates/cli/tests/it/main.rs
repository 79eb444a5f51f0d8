//! The tests of this crate's behaviour, in one program: a module for each subject.

#![allow(clippy::unwrap_used)] // In helpers too a test may fail by panicking.

mod age;
#[path = "../../../aging/tests/it/common/mod.rs"]
mod aged;
mod anonymise;
mod answer;
mod bad_input;
mod bench;
mod bench_workloads;
mod circles;
mod clean_up;
mod common;
mod contain;
mod crash;
mod dead_mounts;
mod documents;
mod drift;
mod drive;
mod ffs;
mod help;
mod killed;
mod lab;
mod layout;
mod lfs;
mod library;
mod limits;
mod main_job;
mod mount;
mod pages;
#[path = "../../../lfs/tests/it/netbsd/passes.rs"]
mod passes;
mod plan;
mod quickstart;
#[path = "../../../lfs/tests/it/netbsd/raw.rs"]
mod raw;
mod record;
mod record_paths;
mod record_who;
mod repair;
mod replay_arguments;
mod residuals;
mod rooms;
mod run_time;
mod schemas;
mod signals;
mod snapshot;
mod sweep;
mod targets;
mod verify;
mod width;
