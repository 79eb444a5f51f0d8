//! Reading residuals back, a row group at a time, as contexts need them.

use super::write::schema;
use super::{COLUMNS, Column, Kind, VERSION, VERSION_KEY, Value};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::Field;
use std::path::Path;
use std::sync::Arc;
use trace::parquet_file::{Check, ParquetIn};
use trace::profile::ProfileError;

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
    pub fn open(path: &Path) -> Result<ResidualReader, ProfileError> {
        let hint = "fsage validate --residuals makes such files";
        let mut unlike = None;
        let file = ParquetIn::open(path.to_owned(), Check::Footer, hint, |_, found| {
            let same = |field: &&Arc<Field>| {
                found.field_with_name(field.name()).is_ok_and(|f| f.data_type().equals_datatype(field.data_type()))
            };
            unlike = schema().fields().iter().find(|field| !same(field)).map(|field| field.name().clone());
            Ok(found.clone())
        })?;
        // A file of another version may well have other columns: that is said first.
        let version = file.key_value(VERSION_KEY).map(str::parse);
        match (version, unlike) {
            (Some(Ok(version)), _) if version != u64::from(VERSION) => {
                Err(ProfileError::Version { path: path.to_owned(), found: version, supported: VERSION })
            }
            (Some(Ok(_)), None) => Ok(ResidualReader { file }),
            (Some(Ok(_)), Some(column)) => {
                let message = "is not there or of another type".to_owned();
                Err(ProfileError::Schema { path: path.to_owned(), column, message })
            }
            (None | Some(Err(_)), _) => {
                let (path, place) = (path.to_owned(), "footer".to_owned());
                let message = format!("{VERSION_KEY} is missing or no number: this is no file of residuals");
                Err(ProfileError::Corrupt { path, place, message })
            }
        }
    }

    /// Number of rows.
    pub fn rows(&self) -> u64 {
        self.file.rows()
    }

    /// Hands on every row group's rows, with the columns named.
    pub(super) fn each(&self, names: &[&str], mut each: impl FnMut(&Rows)) -> Result<(), ProfileError> {
        for group in 0..self.file.row_groups() {
            self.file.read_row_group(group, names, |batch| {
                each(&Rows::of(batch));
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
