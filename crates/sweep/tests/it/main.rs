//! Sweeps of a program that is none of fsage's: a script that prints what a benchmark would.

#![allow(clippy::unwrap_used)] // In helpers too a test may fail by panicking.

mod runs;
