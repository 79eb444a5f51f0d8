//! The columns of some rows, by name.

use crate::{FileError, ParquetIn};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrowPrimitiveType, ListArray, PrimitiveArray, RecordBatch, StringArray, StructArray};
use arrow_schema::{Field, Schema};
use std::borrow::Borrow;
use std::path::Path;

/// The schema to decode to where a file's columns are wanted as it has them, and these must be among them.
pub fn as_stored<F: Borrow<Field>>(fields: &[F]) -> impl FnOnce(&Path, &Schema) -> Result<Schema, FileError> {
    move |path, found| {
        for field in fields.iter().map(Borrow::borrow) {
            let have = found.field_with_name(field.name());
            let have = have.map_err(|_| FileError::schema(path, field.name(), "not in the file"))?;
            if !have.data_type().equals_datatype(field.data_type()) {
                let message = format!("is {} instead of {}", have.data_type(), field.data_type());
                return Err(FileError::schema(path, field.name(), message));
            }
        }
        Ok(found.clone())
    }
}

/// Some rows of a file, whose columns are taken by name; errors name file, row and column.
#[derive(Clone, Copy)]
pub struct Columns<'a> {
    file: &'a ParquetIn,
    batch: &'a RecordBatch,
    first_row: u64,
}

impl<'a> Columns<'a> {
    /// Those of rows that stand at `first_row` of the file and after.
    pub fn new(file: &'a ParquetIn, batch: &'a RecordBatch, first_row: u64) -> Columns<'a> {
        Columns { file, batch, first_row }
    }

    /// The file that they are of.
    pub fn file(&self) -> &'a ParquetIn {
        self.file
    }

    /// The rows as Arrow has them.
    pub fn batch(&self) -> &'a RecordBatch {
        self.batch
    }

    /// Where the first of the rows stands in the file, from 0.
    pub fn first_row(&self) -> u64 {
        self.first_row
    }

    /// How many rows.
    pub fn rows(&self) -> usize {
        self.batch.num_rows()
    }

    /// A value is not what it should be. Rows count from 0, from the first of these.
    pub fn corrupt(&self, row: usize, column: &str, message: impl ToString) -> FileError {
        self.file.corrupt(format!("row {}, column {column}", self.first_row + row as u64), message)
    }

    /// The column is not there, or is of another type.
    pub fn schema(&self, column: &str, message: impl Into<String>) -> FileError {
        FileError::schema(self.file.path(), column, message)
    }

    /// Whether a column was read.
    pub fn has(&self, name: &str) -> bool {
        self.batch.column_by_name(name).is_some()
    }

    /// A column of any type.
    ///
    /// # Errors
    /// [`FileError::Schema`]: it is not there.
    pub fn array(&self, name: &str) -> Result<&'a dyn Array, FileError> {
        let array = self.batch.column_by_name(name);
        array.map(AsRef::as_ref).ok_or_else(|| self.schema(name, "not in the file"))
    }

    /// Whether a column has a value in each row.
    ///
    /// # Errors
    /// [`FileError::Corrupt`]: it has none in the row named.
    pub fn no_nulls(&self, name: &str, array: &dyn Array) -> Result<(), FileError> {
        let Some(nulls) = array.nulls().filter(|nulls| nulls.null_count() > 0) else { return Ok(()) };
        match (0..nulls.len()).find(|&i| nulls.is_null(i)) {
            None => Ok(()),
            Some(i) => Err(self.corrupt(i, name, "is null, which it may not be")),
        }
    }

    /// Numbers, one in each row.
    ///
    /// # Errors
    /// [`FileError::Schema`], or [`FileError::Corrupt`] where one is null.
    pub fn numbers<T: ArrowPrimitiveType>(&self, name: &str) -> Result<&'a [T::Native], FileError> {
        let array = self.optional_numbers::<T>(name)?;
        self.no_nulls(name, array)?;
        Ok(array.values())
    }

    /// Numbers that may be null.
    ///
    /// # Errors
    /// [`FileError::Schema`].
    pub fn optional_numbers<T: ArrowPrimitiveType>(&self, name: &str) -> Result<&'a PrimitiveArray<T>, FileError> {
        let array = self.array(name)?.as_primitive_opt::<T>();
        array.ok_or_else(|| self.schema(name, format!("is not {}", T::DATA_TYPE)))
    }

    /// Lists that may be null, of structures that may not, and all of their values.
    ///
    /// # Errors
    /// [`FileError::Schema`], or [`FileError::Corrupt`] where a structure is null.
    pub fn optional_lists(&self, name: &str) -> Result<(&'a ListArray, &'a StructArray), FileError> {
        let list = self.array(name)?.as_list_opt::<i32>().ok_or_else(|| self.schema(name, "is no list"))?;
        let values = list.values().as_struct_opt().ok_or_else(|| self.schema(name, "is no list of structures"))?;
        self.no_nulls_within(name, list, values)?;
        Ok((list, values))
    }

    /// Numbers, one in each structure of a list.
    ///
    /// # Errors
    /// [`FileError::Schema`], or [`FileError::Corrupt`] where one is null.
    pub fn numbers_within<T: ArrowPrimitiveType>(
        &self,
        name: &str,
        (list, values): (&ListArray, &'a StructArray),
        field: &str,
    ) -> Result<&'a [T::Native], FileError> {
        let column = values.column_by_name(field).and_then(|column| column.as_primitive_opt::<T>());
        let column = column.ok_or_else(|| self.schema(name, format!("has no {field} that is {}", T::DATA_TYPE)))?;
        self.no_nulls_within(&format!("{name}, {field}"), list, column)?;
        Ok(column.values())
    }

    /// Whether what is in the lists has a value everywhere.
    fn no_nulls_within(&self, name: &str, list: &ListArray, values: &dyn Array) -> Result<(), FileError> {
        let Some(nulls) = values.nulls().filter(|nulls| nulls.null_count() > 0) else { return Ok(()) };
        let at = (0..nulls.len()).find(|&i| nulls.is_null(i)).unwrap_or_default();
        let row = list.value_offsets().partition_point(|end| usize::try_from(*end).is_ok_and(|end| end <= at));
        Err(self.corrupt(row.saturating_sub(1), name, "is null within a list, which it may not be"))
    }

    /// Texts, one in each row.
    ///
    /// # Errors
    /// [`FileError::Schema`], or [`FileError::Corrupt`] where one is null.
    pub fn text(&self, name: &str) -> Result<&'a StringArray, FileError> {
        let array = self.optional_text(name)?;
        self.no_nulls(name, array)?;
        Ok(array)
    }

    /// Texts that may be null.
    ///
    /// # Errors
    /// [`FileError::Schema`].
    pub fn optional_text(&self, name: &str) -> Result<&'a StringArray, FileError> {
        self.array(name)?.as_string_opt::<i32>().ok_or_else(|| self.schema(name, "is not text"))
    }
}
