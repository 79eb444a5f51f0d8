//! What a benchmark is.

use crate::WorkloadError;
use crate::driver::Driver;
use crate::point::Point;
use crate::repeat::Repeat;
use crate::sample::Sample;
use crate::target_result::TargetResult;
use posix::FileSystem;

/// A benchmark as it is asked for: what its options say. A new one is a file whose `Options` implement this, and a line
/// in the list of [`Parameters`](crate::Parameters).
pub trait Benchmark {
    /// Its name on the command line.
    fn name(&self) -> &'static str;

    /// How often and in which order it is run.
    fn repeat(&self) -> &Repeat;

    /// Space that it takes at most; 0 where it makes no files.
    fn need_bytes(&self) -> u64 {
        0
    }

    /// Files and directories of its own that are there at the same time, at most.
    fn need_inodes(&self) -> u64 {
        0
    }

    /// Whether the options make sense.
    ///
    /// # Errors
    /// What is wrong with them.
    fn check(&self) -> Result<(), WorkloadError>;

    /// Makes it ready for one target.
    ///
    /// # Errors
    /// As [`check`](Benchmark::check); and where the target is not what it needs.
    fn prepare(&self, fs: &mut dyn FileSystem) -> Result<Box<dyn Prepared>, WorkloadError>;

    /// What is run, in a sentence.
    fn what(&self) -> String;

    /// How its results are shown.
    fn table_rows(&self) -> TableRows {
        TableRows::Phases
    }

    /// Options that make two results differ on their own, and their values; `None`: all but how often it is run.
    fn differs_by(&self) -> Option<Vec<(&'static str, String)>> {
        None
    }

    /// A result in the program's own layout, with its heading.
    fn own_report(&self, _target: &TargetResult) -> Option<(&'static str, String)> {
        None
    }
}

/// How results are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableRows {
    /// The same phases at every point: a table of points for each.
    Points,
    /// Phases that differ in kind: a row for each, with its own unit.
    Phases,
}

/// A benchmark made ready for one target.
pub trait Prepared {
    /// What it can be run at, in the order of tables.
    fn points(&self) -> Vec<Point>;

    /// Runs one point once, and leaves nothing of it behind. `tag` is different for every run on a target.
    ///
    /// # Errors
    /// A call failed, or a signal asked to stop.
    fn once(&mut self, driver: &mut Driver<'_>, point: &Point, tag: &str) -> Result<Vec<Sample>, WorkloadError>;

    /// What the reader of the result should know.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}
