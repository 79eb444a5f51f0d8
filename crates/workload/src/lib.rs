//! Benchmarks of the literature, as drivers over the hinge trait.
//!
//! What lives here: one file per benchmark ([`seqfile`], [`hotfiles`], [`scan`]); the [schedule](run) that repeats any
//! of them in random, interleaved order over targets; results that serialise, and their [comparison](compare()). What
//! may not: anything about a particular file system, and any way to a file but [`posix::FileSystem`]: the same
//! benchmark runs on a mounted directory and in virtual time.
//!
//! A benchmark is a list of [points](Point) (file sizes, say) and a way to run one of them once, which yields the time
//! and the amount of each [phase](Phase). To add one: a file whose `Options` are a [`Benchmark`], and a line in the
//! list of [`Parameters`].
//!
//! **What is timed** is the sum of the calls' times in the file system ([`posix::Outcome::dur_ns`]). A phase that
//! writes ends with `syncfs`, and the headline figure includes it: data that is only in memory has not been written.
//! The figure without it is kept beside it. `syncfs` writes back the whole file system: on one that others use at the
//! same time, their data is in it. Making the directories, dropping caches and removing what is left is not timed.

pub mod andrew;
mod benchmark;
mod cache_note;
mod cleanup;
mod compare;
mod copy;
mod driver;
mod error;
pub mod hotcold;
pub mod hotfiles;
pub mod largefile;
pub mod netnews;
mod parameters;
mod phase;
mod point;
pub mod postmark;
pub mod present;
mod processors;
mod random;
mod repeat;
mod result;
mod sample;
pub mod scan;
mod schedule;
mod script;
pub mod sdet;
pub mod seqfile;
pub mod smallfile;
mod space;
pub mod ssh_build;
mod steady;
mod stored;
mod target_result;
pub mod tpcb;
mod tree;

pub use benchmark::{Benchmark, TableRows};
pub use cache_note::CacheNote;
pub use compare::{Caution, Compared, Comparison, SAME_SHARE, Verdict, compare, compare_targets};
pub use copy::{Copied, copy_tree};
pub use error::WorkloadError;
pub use parameters::Parameters;
pub use phase::{Phase, Unit};
pub use point::Point;
pub use repeat::Repeat;
pub use result::BenchResult;
pub use sample::{Count, TimedBy};
pub use schedule::{Place, Progress, run, run_on, run_on_with_log, run_with_logs};
pub use stored::{SCHEMA, load};
pub use target_result::{PhaseResult, PointResult, Round, TargetResult};
pub use tree::AGED_MARKER;
