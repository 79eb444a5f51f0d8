//! The tests of this crate's behaviour, in one program: a module for each subject.

#![allow(clippy::unwrap_used)] // In helpers too a test may fail by panicking.

mod fake;
mod kernel_cache;
mod libcachesim;
mod measure;
mod measure_real;
mod pipeline;
mod random;
mod replay;
mod residuals;
mod runtime;
mod system_profile;
