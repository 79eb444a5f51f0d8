//! Recorded workloads.

use crate::errors::Raised;
use crate::interrupt::{Stop, long};
use crate::table::Table;
use columnar::{FileError, ParquetIn};
use predict::pipeline;
use pyo3::prelude::*;
use std::path::{Path, PathBuf};
use trace::profile::{Durations, Reader};
use trace::{Batch, Snapshot};

/// A workload profile on disk.
#[pyclass(frozen, module = "fsage._fsage")]
pub struct Workload {
    pub reader: Reader,
}

#[pymethods]
impl Workload {
    #[new]
    fn open(path: PathBuf) -> Result<Workload, Raised> {
        Ok(Workload { reader: Reader::open(&path)? })
    }

    /// Calls.
    #[getter]
    fn events(&self) -> u64 {
        self.reader.events()
    }

    /// `meta.json`.
    fn meta(&self) -> Result<String, Raised> {
        json(self.reader.meta())
    }

    /// The calls; of the columns named, or of all.
    #[pyo3(signature = (columns = Vec::new()))]
    fn calls(&self, py: Python<'_>, columns: Vec<String>) -> PyResult<Table> {
        read(py, self.reader.trace_file(), &columns)
    }

    /// The names that were there when the trace began.
    #[pyo3(signature = (columns = Vec::new()))]
    fn names(&self, py: Python<'_>, columns: Vec<String>) -> PyResult<Table> {
        read(py, self.reader.snapshot_file(), &columns)
    }

    /// When threads had no processor; `None`: the tracer does not tell.
    #[pyo3(signature = (columns = Vec::new()))]
    fn schedule(&self, py: Python<'_>, columns: Vec<String>) -> PyResult<Option<Table>> {
        self.reader.schedule_file().map(|file| read(py, file, &columns)).transpose()
    }
}

/// The rows of a file.
pub fn read(py: Python<'_>, file: &ParquetIn, columns: &[String]) -> PyResult<Table> {
    long(py, |stop| {
        let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
        Ok(Table::new(file.record_batches(&columns, || !stop.requested())?))
    })
}

/// What serde can write, as JSON.
pub fn json<T: serde::Serialize + ?Sized>(value: &T) -> Result<String, Raised> {
    serde_json::to_string(value).map_err(|error| Raised::usage(format!("cannot be written as JSON: {error}")))
}

/// The recording, read until somebody asks to stop.
pub struct Watched<'a> {
    pub reader: &'a Reader,
    pub stop: &'a Stop,
}

impl pipeline::Workload for Watched<'_> {
    fn snapshot(&self) -> Result<Snapshot, FileError> {
        self.reader.snapshot()
    }

    fn visit(&self, unread: &[&str], visitor: &mut dyn FnMut(&mut Batch) -> bool) -> Result<(), FileError> {
        let mut stopped = false;
        pipeline::Workload::visit(self.reader, unread, &mut |batch| {
            stopped = self.stop.requested();
            !stopped && visitor(batch)
        })?;
        if stopped {
            let error = std::io::Error::new(std::io::ErrorKind::Interrupted, "stopped by the caller");
            return Err(FileError::io(self.reader.directory(), "go on")(error));
        }
        Ok(())
    }

    fn durations(&self) -> Durations {
        pipeline::Workload::durations(self.reader)
    }

    fn path(&self) -> &Path {
        self.reader.directory()
    }

    fn stated_coverage(&self) -> Option<f64> {
        pipeline::Workload::stated_coverage(self.reader)
    }
}
