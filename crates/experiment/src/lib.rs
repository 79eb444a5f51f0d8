//! The published experiments, run again by the real code.
//!
//! What lives here: one file per experiment, in a folder per publication; what they share, which is made once for
//! several ([`Bench::shared`]); and the form of their results ([`Outcome`]): published, ours, and a sentence wherever
//! the two differ by more than a quarter. What may not: a published figure anywhere but in the `published` column.
//! Nothing that an experiment runs may know what should come out.
//!
//! To add one: a file `src/PAPER/NAME.rs` with `pub(crate) const EXPERIMENT: Experiment`, and its line in [`all`].

pub mod aging97;
pub mod alloc96;
mod bench;
mod beyond;
mod coverage;
mod error;
pub mod hbench01;
mod jvsu00;
mod lfs92;
pub mod lfs95;
mod outcome;
mod parallel;
pub mod present;
mod published;
mod registry;
mod seeds;
pub mod softdep99;
mod study;
mod testbed;

pub use bench::{Bench, Report, Scale, Sweeps};
pub use coverage::{Covered, Item, Source, sources};
pub use error::ExperimentError;
pub use outcome::{
    Axis, Claim, Difference, Explain, Figure, NOT_EXPLAINED, NOT_KNOWN, Outcome, Parameter, Point, Published, Row,
    Series, Spread, TOLERANCE, Unit,
};
pub use published::Experiment;
pub use registry::{Reproduction, all, run, select};
pub use seeds::{Done, run_all};
pub use study::Study;
