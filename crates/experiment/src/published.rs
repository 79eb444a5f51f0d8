//! What a published experiment is.

use crate::bench::Bench;
use crate::error::ExperimentError;
use crate::outcome::Outcome;
use serde::Serialize;

/// A published experiment.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Experiment {
    /// `PAPER/NAME`: the name on the command line.
    pub key: &'static str,
    /// What it shows, in a few words.
    pub title: &'static str,
    /// The publication, with the section.
    pub source: &'static str,
    /// What it runs, in a sentence or two.
    pub runs: &'static str,
    /// Runs it.
    #[serde(skip)]
    pub run: fn(&mut Bench<'_>) -> Result<Outcome, ExperimentError>,
}
