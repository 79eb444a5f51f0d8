//! The extension module `fsage._fsage`: workloads, systems, predictions, laboratories and plans for Python.
//!
//! What lives here: classes that hold what the crates have, tables of it by the Arrow C data interface, errors as
//! exceptions, and signals.
//! What may not: logic. What a command does and a program wants too is in the room it belongs to; what Python does
//! better (arguments,
//! documentation, types) is in `fsage/*.py`.
#![allow(missing_docs)] // The Python package documents what it shows; nobody else links this crate.

mod errors;
mod interrupt;
mod lab;
mod plan;
mod prediction;
mod rows;
mod system;
mod table;
mod workload;

use aging::snapshot::Snapshot;
use errors::Raised;
use layout::SurveyOptions;
use pyo3::prelude::*;
use std::path::PathBuf;

/// A size as the command line takes it (`16G`), bytes.
#[pyfunction]
fn size_bytes(text: &str) -> Result<u64, Raised> {
    units::size_bytes(text.trim()).map_err(|wrong| Raised::usage(format!("{text:?} is no size: {wrong}")))
}

/// A duration as the command line takes it (`50us`), nanoseconds.
#[pyfunction]
fn duration_ns(text: &str) -> Result<f64, Raised> {
    units::duration_ns(text.trim()).map_err(|wrong| Raised::usage(format!("{text:?} is no duration: {wrong}")))
}

/// Layout and free space of a mounted directory or an unmounted image, as JSON; a file that a survey was saved in is
/// read, and of a snapshot with block lists the layout is what it knows.
#[pyfunction]
fn survey(py: Python<'_>, target: PathBuf, saved: bool, hot_days: f64, worst_files: usize) -> PyResult<String> {
    let options = SurveyOptions { hot_days: Some(hot_days), worst_files, ..SurveyOptions::default() };
    let survey = interrupt::long(py, |stop| {
        if saved {
            return Ok(layout::load(&target)?);
        }
        if Snapshot::is_one(&target) {
            return Ok(Snapshot::layout_of(&target, &options)?);
        }
        Ok(layout::survey(&target, &options, &mut |_| !stop.requested())?)
    })?;
    Ok(workload::json(&survey)?)
}

/// The module.
#[pymodule]
mod _fsage {
    use super::*;

    #[pymodule_export]
    use super::lab::Lab;
    #[pymodule_export]
    use super::plan::{Plan, PlanWriter};
    #[pymodule_export]
    use super::prediction::{Options, Prediction, predicted, priced_calls};
    #[pymodule_export]
    use super::system::System;
    #[pymodule_export]
    use super::table::Table;
    #[pymodule_export]
    use super::workload::Workload;
    #[pymodule_export]
    use super::{duration_ns, size_bytes, survey};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
