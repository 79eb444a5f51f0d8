//! What a survey is asked for.

use crate::map::MapOrder;

/// Options of a survey.
#[derive(Clone, Debug, PartialEq)]
pub struct SurveyOptions {
    /// Count files modified in so many days before the survey as hot; `None`: no such figure.
    pub hot_days: Option<f64>,
    /// How many of the worst files to list.
    pub worst_files: usize,
    /// The survey's moment in seconds since the epoch; `None`: now, or for an image the time it was last written.
    pub taken_unix_s: Option<i64>,
    /// Make a map so fine; `None`: none.
    pub map: Option<MapOrder>,
}

impl Default for SurveyOptions {
    /// Hot files of 30 days (the month of Smith and Seltzer 1996), 20 worst files, no map.
    fn default() -> Self {
        SurveyOptions { hot_days: Some(30.0), worst_files: 20, taken_unix_s: None, map: None }
    }
}

/// How far a survey is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Files seen.
    pub files: u64,
    /// Directories seen.
    pub directories: u64,
}

/// Steps between two reports of a walk.
const STEPS: u64 = 256;

impl Progress {
    /// Tells how far a walk is every [`STEPS`] of its steps, counted from 1. False if it is to end.
    pub(crate) fn told(self, step: u64, progress: &mut dyn FnMut(Progress) -> bool) -> bool {
        step % STEPS != 1 || (!posix::interrupt::requested() && progress(self))
    }
}
