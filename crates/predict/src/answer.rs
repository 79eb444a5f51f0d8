//! A prediction with everything derived from it: what `fsage predict` shows, and what a program that asks for one gets.
//!
//! It ranks, takes the difference of two systems apart, says what would change the first two places, and makes the
//! report of it.

use crate::cache_sizes::{self, CacheSize};
use crate::explain::{Explanation, explain};
use crate::pipeline::{self, PredictError, PredictOptions, Prediction, SystemPrediction, Workload};
use crate::rank::{Ranking, rank};
use crate::runtime::{self, RunTimeOptions, RunTimes};
use crate::tipping::{Tipping, tipping};
use fault::{Fault, Kind};
use serde::Serialize;
use system::SystemProfile;
use trace::profile::Reader;

/// The schema of an [`Answer`] as JSON.
pub const SCHEMA: &str = "fsage.predict/1";

/// A system that is not among those predicted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no system is called {name}; there are {}", .there.join(", "))]
pub struct NoSuchSystem {
    /// What was asked for.
    pub name: String,
    /// What there is.
    pub there: Vec<String>,
}

impl Fault for NoSuchSystem {
    fn kind(&self) -> Kind {
        Kind::Usage
    }
}

/// A prediction with everything derived from it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    /// What the workload is called.
    pub workload: String,
    /// Seed of the resampling.
    pub seed: u64,
    /// The ranking.
    pub ranking: Ranking,
    /// What it was made from.
    pub prediction: Prediction,
    /// How long the program takes; not asked of a prediction of a replay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_time: Option<RunTimes>,
    /// Two systems taken apart.
    pub explanation: Option<Explanation>,
    /// What would change the first two places.
    pub tipping: Vec<Tipping>,
    /// With data caches of several sizes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cache_sizes: Vec<CacheSize>,
}

impl Answer {
    /// Predicts and ranks; the run time too where it is asked for. The calls are read through `calls`, which is the
    /// recording itself or somebody who stands before it (and may end the reading early).
    ///
    /// # Errors
    /// Those of [`pipeline::predict`] and [`runtime::predict`].
    pub fn predict(
        workload: String,
        reader: &Reader,
        calls: &dyn Workload,
        systems: &[SystemProfile],
        options: &PredictOptions,
        run_time: Option<&RunTimeOptions>,
    ) -> Result<Answer, PredictError> {
        let (prediction, run_time) = match run_time {
            Some(run_time) => {
                let (prediction, run_time) = runtime::predict_calls(reader, calls, systems, options, run_time)?;
                (prediction, Some(run_time))
            }
            None => (pipeline::predict(calls, systems, options)?, None),
        };
        Ok(Answer::of(workload, prediction, run_time, options.seed))
    }

    /// Ranks what has been predicted.
    pub fn of(workload: String, prediction: Prediction, run_time: Option<RunTimes>, seed: u64) -> Answer {
        let ranking = rank(&prediction.systems, seed);
        let mut answer = Answer {
            workload,
            seed,
            ranking,
            prediction,
            run_time,
            explanation: None,
            tipping: Vec::new(),
            cache_sizes: Vec::new(),
        };
        answer.tipping = answer.first_two().map(|(a, b)| tipping(a, b)).unwrap_or_default();
        answer
    }

    /// The first two in the ranking, where there are two.
    pub fn first_two(&self) -> Option<(&SystemPrediction, &SystemPrediction)> {
        let at = |place: usize| self.ranking.systems.get(place).and_then(|r| self.prediction.systems.get(r.index));
        at(0).zip(at(1))
    }

    /// The difference of two systems, taken apart; of the first two in the ranking where none are named.
    ///
    /// # Errors
    /// One of the names is not a system's.
    pub fn explained(&self, systems: Option<(&str, &str)>) -> Result<Option<Explanation>, NoSuchSystem> {
        Ok(match systems {
            Some((a, b)) => Some(explain(self.named(a)?, self.named(b)?)),
            None => self.first_two().map(|(a, b)| explain(a, b)),
        })
    }

    /// Predicts again with data caches of these sizes, bytes (0: none).
    ///
    /// # Errors
    /// Those of [`pipeline::predict`].
    pub fn with_cache_sizes(
        &mut self,
        calls: &dyn Workload,
        systems: &[SystemProfile],
        options: &PredictOptions,
        sizes: &[u64],
    ) -> Result<(), PredictError> {
        self.cache_sizes = cache_sizes::cache_sizes(calls, systems, options, sizes)?;
        Ok(())
    }

    /// The answer in five lines. `with_sizes`: also what was predicted with other sizes of the data cache.
    pub fn short(&self, with_sizes: bool) -> document::Document {
        crate::present::answer(
            &self.workload,
            &self.prediction,
            &self.ranking,
            self.run_time.as_ref(),
            self.explanation.as_ref(),
            if with_sizes { &self.cache_sizes } else { &[] },
        )
    }

    /// As a report.
    pub fn document(&self) -> document::Document {
        crate::present::prediction(
            &self.workload,
            &self.prediction,
            &self.ranking,
            self.run_time.as_ref(),
            self.explanation.as_ref(),
            &self.tipping,
            &self.cache_sizes,
        )
    }

    fn named(&self, name: &str) -> Result<&SystemPrediction, NoSuchSystem> {
        let systems = &self.prediction.systems;
        systems.iter().find(|system| system.system == name).ok_or_else(|| NoSuchSystem {
            name: name.to_owned(),
            there: systems.iter().map(|system| system.system.clone()).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer() -> Answer {
        let of = |system: &str, total_ns: f64| SystemPrediction {
            system: system.to_owned(),
            total_ns,
            ..SystemPrediction::default()
        };
        let systems = vec![of("slow", 3e9), of("fast", 1e9)];
        Answer::of("w".to_owned(), Prediction { systems, ..Prediction::default() }, None, 1)
    }

    #[test]
    fn two_systems_are_compared_in_the_order_asked_for_or_of_the_ranking() {
        let answer = answer();
        let names = |e: Option<Explanation>| e.map(|e| (e.a, e.b)).unwrap();
        assert_eq!(names(answer.explained(None).unwrap()), ("fast".to_owned(), "slow".to_owned()));
        assert_eq!(names(answer.explained(Some(("slow", "fast"))).unwrap()), ("slow".to_owned(), "fast".to_owned()));
    }

    #[test]
    fn a_name_that_is_no_system_is_answered_with_those_there_are() {
        let error = answer().explained(Some(("fast", "fsat"))).unwrap_err();
        assert_eq!(error.to_string(), "no system is called fsat; there are slow, fast");
        assert_eq!(error.kind(), Kind::Usage);
    }
}
