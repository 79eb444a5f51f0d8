//! The tests of this crate's behaviour, in one program: a module for each subject.

#![allow(clippy::unwrap_used)] // In helpers too a test may fail by panicking.

mod common;
mod examples;
mod fio;
mod import_common;
mod import_forms;
mod import_golden;
mod import_known;
mod import_mounts;
mod import_perf;
mod import_strace;
mod import_stream;
mod import_tables;
mod inspect;
mod kernel_records;
mod latency;
mod profile_columns;
mod profile_damage;
mod profile_duckdb;
mod profile_round_trip;
mod record;
mod record_faults;
mod snapshot_walk;
mod spool;
mod torture;
mod verify;
