//! Behaviour of checked Parquet files.
#![allow(clippy::unwrap_used)] // In helpers too a test may fail by panicking.

mod file;
