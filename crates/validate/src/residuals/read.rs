//! Reading residuals back, a row group at a time, as contexts need them.

use super::write::schema;
use super::{COLUMNS, Column, FORMAT, Kind, Value};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use columnar::{Check, FileError, ParquetIn, as_stored};
use std::path::Path;

/// A file of residuals, open for reading.
pub struct ResidualReader {
    file: ParquetIn,
}

/// Some rows.
pub(super) struct Rows {
    columns: Vec<(&'static Column, ArrayRef)>,
    len: usize,
}

impl ResidualReader {
    /// Opens a file.
    ///
    /// # Errors
    /// It is not there, is damaged, is no file of residuals, or is of another version.
    pub fn open(path: &Path) -> Result<ResidualReader, FileError> {
        let file = ParquetIn::open(path.to_owned(), &FORMAT, Check::Footer, as_stored(schema().fields()))?;
        Ok(ResidualReader { file })
    }

    /// Number of rows.
    pub fn rows(&self) -> u64 {
        self.file.rows()
    }

    /// Hands on every row group's rows, with the columns named.
    pub(super) fn each(&self, names: &[&str], mut each: impl FnMut(&Rows)) -> Result<(), FileError> {
        for group in 0..self.file.row_groups() {
            self.file.read_row_group(group, names, |columns| {
                each(&Rows::of(columns.batch()));
                Ok(())
            })?;
        }
        Ok(())
    }
}

impl Rows {
    fn of(batch: &RecordBatch) -> Rows {
        let column = |c: &'static Column| Some((c, batch.column_by_name(c.name)?.clone()));
        Rows { columns: COLUMNS.iter().filter_map(column).collect(), len: batch.num_rows() }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The columns that were asked for.
    pub(super) fn columns(&self) -> impl Iterator<Item = &'static Column> + '_ {
        self.columns.iter().map(|(column, _)| *column)
    }

    /// The value of a column at a row.
    pub(super) fn value(&self, column: usize, row: usize) -> Value<'_> {
        let (column, array) = &self.columns[column];
        let there = array.is_valid(row);
        match column.kind {
            Kind::Text => Value::Text(there.then(|| array.as_string::<i32>().value(row))),
            Kind::Count => Value::Count(there.then(|| array.as_primitive::<UInt64Type>().value(row))),
            Kind::Real => Value::Real(there.then(|| array.as_primitive::<Float64Type>().value(row))),
            Kind::Truth => Value::Truth(there.then(|| array.as_boolean().value(row))),
        }
    }
}
