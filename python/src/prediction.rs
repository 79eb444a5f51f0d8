//! Predictions, in the process.

use crate::errors::Raised;
use crate::interrupt::long;
use crate::system::System;
use crate::table::Table;
use crate::workload::{Watched, Workload, json};
use arrow_array::builder::{Float64Builder, StringDictionaryBuilder, UInt64Builder};
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{Field, Schema};
use predict::answer::{Answer, SCHEMA};
use predict::pipeline::{self, CachePolicy, InitialCaches, Pace, PredictOptions};
use predict::runtime::RunTimeOptions;
use pyo3::prelude::*;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use system::SystemProfile;
use units::similar::{self, Named};

/// What a prediction assumes; each as the option of `fsage predict` of that name.
#[pyclass(frozen, module = "fsage._fsage")]
pub struct Options {
    options: PredictOptions,
    processors: Option<u32>,
    cache_sizes: Vec<u64>,
}

fn named<T: serde::de::DeserializeOwned>(what: &str, name: &str, there: &str) -> Result<T, Raised> {
    serde_json::from_value(serde_json::Value::from(name))
        .map_err(|_| Raised::usage(format!("{what}={name:?}: there are {there}")))
}

#[pymethods]
impl Options {
    #[new]
    #[pyo3(signature = (*, cache_bytes, cache_policy, set_ns, min_coverage, warm, recorded_pace, processors,
        cache_sizes, seed))]
    #[allow(clippy::too_many_arguments)] // Keywords, from one place: fsage/predictions.py.
    fn new(
        cache_bytes: Option<u64>,
        cache_policy: Option<&str>,
        set_ns: Vec<(String, f64)>,
        min_coverage: f64,
        warm: bool,
        recorded_pace: bool,
        processors: Option<u32>,
        cache_sizes: Vec<u64>,
        seed: u64,
    ) -> Result<Options, Raised> {
        let policies = "lru, clock, sieve, s3-fifo, arc, linux";
        let cache_policy = cache_policy.map(|name| named::<CachePolicy>("cache_policy", name, policies)).transpose()?;
        let options = PredictOptions {
            initial: if warm { InitialCaches::Warm } else { InitialCaches::Cold },
            pace: if recorded_pace { Pace::Recorded } else { Pace::Asap },
            cache_bytes,
            cache_policy,
            set_ns,
            min_coverage,
            seed,
            ..PredictOptions::default()
        };
        Ok(Options { options, processors, cache_sizes })
    }
}

/// What came out.
#[pyclass(frozen, module = "fsage._fsage")]
pub struct Prediction {
    answer: Answer,
}

/// Predicts a workload on systems.
#[pyfunction(name = "predict")]
pub fn predicted(
    py: Python<'_>,
    name: PathBuf,
    workload: &Workload,
    systems: Vec<Py<System>>,
    options: &Options,
) -> PyResult<Prediction> {
    let name = units::text::path(name.as_os_str().as_bytes());
    let systems: Vec<SystemProfile> = systems.iter().map(|system| system.get().profile.clone()).collect();
    let run_time = RunTimeOptions { processors: options.processors, computing: vec![1.0; systems.len()] };
    long(py, |stop| {
        let calls = Watched { reader: &workload.reader, stop };
        let o = &options.options;
        let mut answer = Answer::predict(name, &workload.reader, &calls, &systems, o, Some(&run_time))?;
        if !options.cache_sizes.is_empty() {
            answer.with_cache_sizes(&calls, &systems, o, &options.cache_sizes)?;
        }
        Ok(Prediction { answer })
    })
}

impl Prediction {
    /// The whole name of a system that is called so, or begins so: `ext4` is `ext4 (bundled)`.
    fn called(&self, asked: &str) -> Result<&str, Raised> {
        let names: Vec<Vec<&str>> =
            self.answer.prediction.systems.iter().map(|system| vec![system.system.as_str()]).collect();
        let shown = |places: &[usize]| -> String {
            places.iter().filter_map(|place| names.get(*place)?.first().copied()).collect::<Vec<_>>().join(", ")
        };
        match similar::named(asked, &names) {
            Named::One(place) => {
                Ok(self.answer.prediction.systems.get(place).map_or("", |found| found.system.as_str()))
            }
            Named::Several(places) => {
                Err(Raised::usage(format!("{asked:?} may be any of {}; write more of the name", shown(&places))))
            }
            Named::None => {
                let all: Vec<usize> = (0..names.len()).collect();
                Err(Raised::usage(format!("no system is called {asked:?}; there are {}", shown(&all))))
            }
        }
    }
}

/// Every priced call of a workload on one system: what it took when it was recorded, and what is predicted.
#[pyfunction]
pub fn priced_calls(py: Python<'_>, workload: &Workload, system: &System, options: &Options) -> PyResult<Table> {
    long(py, |stop| {
        let (mut seq, mut recorded) = (UInt64Builder::new(), UInt64Builder::new());
        let (mut predicted, mut stalled) = (Float64Builder::new(), Float64Builder::new());
        let mut op = StringDictionaryBuilder::<Int32Type>::new();
        let calls = Watched { reader: &workload.reader, stop };
        pipeline::predict_calls(
            &calls,
            std::slice::from_ref(&system.profile),
            &options.options,
            Some(&mut |call| {
                seq.append_value(call.event.head.seq);
                op.append_value(call.event.op().name());
                recorded.append_value(call.event.head.dur_ns);
                predicted.append_value(call.ns);
                stalled.append_value(call.stall_ns);
            }),
        )?;
        let columns: [(&str, ArrayRef); 5] = [
            ("seq", Arc::new(seq.finish())),
            ("op", Arc::new(op.finish())),
            ("recorded_ns", Arc::new(recorded.finish())),
            ("predicted_ns", Arc::new(predicted.finish())),
            ("stall_ns", Arc::new(stalled.finish())),
        ];
        let fields: Vec<Field> =
            columns.iter().map(|(name, array)| Field::new(*name, array.data_type().clone(), false)).collect();
        let schema = Arc::new(Schema::new(fields));
        let batch = RecordBatch::try_new(schema.clone(), columns.into_iter().map(|(_, array)| array).collect());
        let batch = batch.map_err(|error| Raised::usage(error.to_string()))?;
        Ok(Table::new((schema, vec![batch])))
    })
}

#[pymethods]
impl Prediction {
    /// The result of `fsage predict --json`, as JSON.
    fn json(&self) -> Result<String, Raised> {
        let value = document::envelope(SCHEMA, &self.answer).map_err(|e| Raised::usage(e.to_string()))?;
        Ok(document::json_text(&value))
    }

    /// The difference of two systems taken apart, as JSON; of the first two in the ranking where none are named.
    #[pyo3(signature = (pair = None))]
    fn explained(&self, pair: Option<(String, String)>) -> Result<String, Raised> {
        let pair = pair.map(|(a, b)| Ok::<_, Raised>((self.called(&a)?, self.called(&b)?))).transpose()?;
        json(&self.answer.explained(pair)?)
    }

    /// The report as `text`, `html` or `markdown`.
    #[pyo3(signature = (format, width = None))]
    fn report(&self, format: &str, width: Option<u16>) -> Result<String, Raised> {
        let document = self.answer.document();
        match format {
            "text" => Ok(document.to_text(width)),
            "html" => Ok(document.to_html()),
            "markdown" => Ok(document.to_markdown()),
            other => Err(Raised::usage(format!("format={other:?}: there are text, html, markdown"))),
        }
    }
}
