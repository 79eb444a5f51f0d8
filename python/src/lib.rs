//! The extension module `fsage._fsage`: workloads, systems, predictions, laboratories and plans for Python.
//!
//! What lives here: classes that hold what the crates have, tables of it by the Arrow C data interface, errors as exceptions, and signals.
//! What may not: logic. What a command does and a program wants too is in the room it belongs to; what Python does better (arguments,
//! documentation, types) is in `fsage/*.py`.
#![allow(missing_docs)] // The Python package documents what it shows; nobody else links this crate.

use pyo3::prelude::*;

/// The module.
#[pymodule]
mod _fsage {
    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
