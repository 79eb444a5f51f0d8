//! Writing residuals: rows come one by one, and leave in row groups.

use super::{COLUMNS, ENTRIES, Kind, Row, VERSION, VERSION_KEY, Value};
use arrow_array::ArrayRef;
use arrow_array::builder::{
    ArrayBuilder, BooleanBuilder, Float64Builder, ListBuilder, StringBuilder, StructBuilder, UInt64Builder,
};
use arrow_schema::{DataType, Field, Fields, Schema};
use columnar::{FileError, ParquetOut, properties};
use posix::output::Output;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Rows of a row group: what memory holds at most.
pub(super) const ROW_GROUP_ROWS: usize = 1 << 16;

/// Which replay a row is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source<'a> {
    /// Workload.
    pub workload: &'a str,
    /// Target.
    pub target: &'a str,
    /// Number of the replay, from 0.
    pub replay: u32,
}

impl Kind {
    fn data_type(self) -> DataType {
        match self {
            Kind::Text => DataType::Utf8,
            Kind::Count => DataType::UInt64,
            Kind::Real => DataType::Float64,
            Kind::Truth => DataType::Boolean,
        }
    }
}

fn term_fields() -> Fields {
    let field = |name, kind| Field::new(name, kind, false);
    vec![field("entry", DataType::Utf8), field("weight", DataType::Float64), field("ns", DataType::Float64)].into()
}

/// The columns of the file.
pub(super) fn schema() -> Schema {
    let mut fields: Vec<Field> = COLUMNS.iter().map(|c| Field::new(c.name, c.kind.data_type(), true)).collect();
    let item = Field::new("item", DataType::Struct(term_fields()), true);
    fields.push(Field::new(ENTRIES, DataType::List(Arc::new(item)), true));
    Schema::new(fields)
}

/// The values of a column that are not written yet.
enum Pending {
    Text(StringBuilder),
    Count(UInt64Builder),
    Real(Float64Builder),
    Truth(BooleanBuilder),
}

impl Pending {
    fn new(kind: Kind) -> Pending {
        match kind {
            Kind::Text => Pending::Text(StringBuilder::new()),
            Kind::Count => Pending::Count(UInt64Builder::new()),
            Kind::Real => Pending::Real(Float64Builder::new()),
            Kind::Truth => Pending::Truth(BooleanBuilder::new()),
        }
    }

    fn push(&mut self, value: Value<'_>) {
        match (self, value) {
            (Pending::Text(column), Value::Text(value)) => column.append_option(value),
            (Pending::Count(column), Value::Count(value)) => column.append_option(value),
            (Pending::Real(column), Value::Real(value)) => column.append_option(value),
            (Pending::Truth(column), Value::Truth(value)) => column.append_option(value),
            (_, value) => unreachable!("the column's kind and its value {value:?} are of one table"),
        }
    }

    fn finish(&mut self) -> ArrayRef {
        match self {
            Pending::Text(column) => Arc::new(column.finish()),
            Pending::Count(column) => Arc::new(column.finish()),
            Pending::Real(column) => Arc::new(column.finish()),
            Pending::Truth(column) => Arc::new(column.finish()),
        }
    }
}

/// A file of residuals that is being written. It takes its place when it is finished; until then nothing is there.
pub struct ResidualWriter {
    path: PathBuf,
    output: Output,
    file: ParquetOut,
    columns: Vec<Pending>,
    entries: ListBuilder<StructBuilder>,
    rows: usize,
}

impl ResidualWriter {
    /// Begins a file.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn create(path: &Path) -> Result<ResidualWriter, FileError> {
        let (output, file) = Output::create(path, 0o666).map_err(FileError::io(path, "make the file"))?;
        let mut file = ParquetOut::into_file(file, path.to_owned(), Arc::new(schema()), properties().build())?;
        file.key_value(VERSION_KEY, VERSION.to_string());
        let columns = COLUMNS.iter().map(|c| Pending::new(c.kind)).collect();
        let fields: [Box<dyn ArrayBuilder>; 3] =
            [Box::new(StringBuilder::new()), Box::new(Float64Builder::new()), Box::new(Float64Builder::new())];
        let entries = ListBuilder::new(StructBuilder::new(term_fields(), fields.into()));
        Ok(ResidualWriter { path: path.to_owned(), output, file, columns, entries, rows: 0 })
    }

    /// Where it will be.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a row.
    ///
    /// # Errors
    /// The disk.
    pub fn push(&mut self, row: &Row<'_>) -> Result<(), FileError> {
        for (column, pending) in COLUMNS.iter().zip(&mut self.columns) {
            pending.push((column.value)(row));
        }
        for &(entry, weight, ns) in row.priced.iter().flat_map(|p| &p.terms) {
            let term = self.entries.values();
            let built = "the builder was made with these fields";
            term.field_builder::<StringBuilder>(0).expect(built).append_value(entry);
            term.field_builder::<Float64Builder>(1).expect(built).append_value(weight);
            term.field_builder::<Float64Builder>(2).expect(built).append_value(ns);
            term.append(true);
        }
        self.entries.append(row.priced.is_some());
        self.rows += 1;
        if self.rows >= ROW_GROUP_ROWS { self.end_row_group() } else { Ok(()) }
    }

    fn end_row_group(&mut self) -> Result<(), FileError> {
        if self.rows == 0 {
            return Ok(());
        }
        self.rows = 0;
        let mut arrays: Vec<ArrayRef> = self.columns.iter_mut().map(Pending::finish).collect();
        arrays.push(Arc::new(self.entries.finish()));
        self.file.write_arrays(arrays)?;
        self.file.end_row_group()
    }

    /// Ends the file, which takes its place.
    ///
    /// # Errors
    /// The disk.
    pub fn finish(mut self) -> Result<(), FileError> {
        self.end_row_group()?;
        self.file.finish()?;
        let path = self.path;
        self.output.finish().map_err(FileError::io(&path, "put the file in its place"))
    }
}
