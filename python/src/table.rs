//! Tables that other libraries take without a copy, by the Arrow C stream interface (PyCapsule).
//!
//! Source: Apache Arrow, "The Arrow PyCapsule Interface". Arrow's own crates make the structures; a capsule of a value
//! that frees itself needs
//! nothing unsafe.

use crate::errors::Raised;
use crate::rows;
use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{
    ArrowPrimitiveType, Float64Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, RecordBatch, RecordBatchIterator};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, DataType, SchemaRef};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList};

/// Columns of equal length, in memory, never changed.
#[pyclass(frozen, module = "fsage", name = "Table")]
pub struct Table {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl Table {
    pub fn new((schema, batches): (SchemaRef, Vec<RecordBatch>)) -> Table {
        Table { schema, batches }
    }
}

fn arrow(error: &ArrowError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

#[pymethods]
impl Table {
    /// A table of JSON: an array of objects. Objects inside become columns `outer_inner`.
    #[staticmethod]
    fn from_json(text: &str) -> Result<Table, Raised> {
        let rows: Vec<serde_json::Value> =
            serde_json::from_str(text).map_err(|error| Raised::usage(format!("not an array in JSON: {error}")))?;
        Ok(Table::new(rows::table(&rows)))
    }

    /// For libraries that read Arrow (polars, pandas, pyarrow, DuckDB): the buffers themselves, not a copy.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A consumer must take the schema it gets, and may cast: so the interface has it for who cannot do otherwise.
        let _ = requested_schema;
        let batches = self.batches.clone().into_iter().map(Ok);
        let stream = FFI_ArrowArrayStream::new(Box::new(RecordBatchIterator::new(batches, self.schema.clone())));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    /// The columns' names and types, for libraries that read Arrow.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.schema.as_ref()).map_err(|e| arrow(&e))?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// Rows.
    #[getter]
    fn num_rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    fn __len__(&self) -> usize {
        self.num_rows()
    }

    /// Names of the columns, in order.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    /// Bytes that the columns take in memory.
    #[getter]
    fn nbytes(&self) -> usize {
        self.batches.iter().map(RecordBatch::get_array_memory_size).sum()
    }

    /// The values of one column as a list. Numbers and text are copied; use a library that reads Arrow for long tables.
    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        let Ok(place) = self.schema.index_of(name) else {
            let message = format!("no column {name}; there are {}", self.column_names().join(", "));
            return Err(Raised::usage(message).into());
        };
        let all = PyList::empty(py);
        for batch in &self.batches {
            each(py, batch.column(place).as_ref(), &mut |value| all.append(value))?;
        }
        Ok(all)
    }

    /// The rows as a list of dictionaries: for short tables and without any other library.
    fn to_dicts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let rows = PyList::empty(py);
        for batch in &self.batches {
            let made: Vec<Bound<'py, PyDict>> = (0..batch.num_rows()).map(|_| PyDict::new(py)).collect();
            for (field, column) in self.schema.fields().iter().zip(batch.columns()) {
                let mut row = made.iter();
                each(py, column.as_ref(), &mut |value| match row.next() {
                    Some(row) => row.set_item(field.name(), value),
                    None => Ok(()),
                })?;
            }
            for row in made {
                rows.append(row)?;
            }
        }
        Ok(rows)
    }

    /// As a `polars.DataFrame`, without a copy (polars makes views of its own of texts).
    fn to_polars<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("polars")?.call_method1("DataFrame", (slf,))
    }

    /// As a `pyarrow.Table`, without a copy.
    fn to_arrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("pyarrow")?.call_method1("table", (slf,))
    }

    /// As a `pandas.DataFrame` of Arrow columns, without a copy (needs pyarrow).
    fn to_pandas<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let options = PyDict::new(slf.py());
        options.set_item("types_mapper", slf.py().import("pandas")?.getattr("ArrowDtype")?)?;
        Table::to_arrow(slf)?.call_method("to_pandas", (), Some(&options))
    }

    fn __repr__(&self) -> String {
        let columns: Vec<String> =
            self.schema.fields().iter().map(|field| format!("{} {}", field.name(), shown(field.data_type()))).collect();
        format!("<fsage.Table, {} rows: {}>", self.num_rows(), columns.join(", "))
    }
}

fn shown(kind: &DataType) -> String {
    match kind {
        DataType::Utf8 | DataType::Dictionary(..) => "text".to_owned(),
        other => other.to_string().to_lowercase(),
    }
}

/// Hands over each value of a column as Python has it.
fn each<'py>(
    py: Python<'py>,
    column: &dyn Array,
    take: &mut dyn FnMut(Bound<'py, PyAny>) -> PyResult<()>,
) -> PyResult<()> {
    fn numbers<'py, T: ArrowPrimitiveType>(
        py: Python<'py>,
        column: &dyn Array,
        take: &mut dyn FnMut(Bound<'py, PyAny>) -> PyResult<()>,
    ) -> PyResult<()>
    where
        Option<T::Native>: IntoPyObject<'py, Target = PyAny, Output = Bound<'py, PyAny>>,
        PyErr: From<<Option<T::Native> as IntoPyObject<'py>>::Error>,
    {
        for value in column.as_primitive::<T>() {
            take(value.into_pyobject(py)?)?;
        }
        Ok(())
    }
    match column.data_type() {
        DataType::UInt8 => numbers::<UInt8Type>(py, column, take),
        DataType::UInt16 => numbers::<UInt16Type>(py, column, take),
        DataType::UInt32 => numbers::<UInt32Type>(py, column, take),
        DataType::UInt64 => numbers::<UInt64Type>(py, column, take),
        DataType::Int64 => numbers::<Int64Type>(py, column, take),
        DataType::Float64 => numbers::<Float64Type>(py, column, take),
        DataType::Boolean => {
            for value in column.as_boolean() {
                take(value.into_pyobject(py)?)?;
            }
            Ok(())
        }
        DataType::Utf8 => {
            for value in column.as_string::<i32>() {
                take(value.into_pyobject(py)?)?;
            }
            Ok(())
        }
        DataType::Dictionary(..) => {
            let texts = column.as_dictionary::<Int32Type>();
            let values = texts.values().as_string::<i32>();
            for key in texts.keys() {
                let value = key.and_then(|key| usize::try_from(key).ok()).map(|key| values.value(key));
                take(value.into_pyobject(py)?)?;
            }
            Ok(())
        }
        DataType::List(_) => {
            for inner in column.as_list::<i32>().iter() {
                let list = PyList::empty(py);
                if let Some(inner) = inner {
                    each(py, inner.as_ref(), &mut |value| list.append(value))?;
                }
                take(list.into_any())?;
            }
            Ok(())
        }
        other => Err(PyValueError::new_err(format!("values of {other} are not made here; use to_arrow()"))),
    }
}
