//! Events to the columns of a row group.

use super::Row;
use super::columns::op_names;
use super::pages::{Column, Encoder, Store, Texts};
use super::values::Values;
use crate::{Event, PathId, Paths};
use arrow_array::{ArrayRef, BooleanArray, Float64Array, StringArray, UInt64Array};
use parquet::errors::ParquetError;
use parquet::file::writer::SerializedRowGroupWriter;
use parquet::schema::types::ColumnDescPtr;
use std::io::Write;
use std::sync::Arc;

/// The format's own columns of the row group in progress, in the order of [`super::columns::trace_fields`].
pub(super) struct Columns {
    columns: Vec<Column>,
    /// The names of all operations; an operation's number is its place.
    ops: Paths,
    /// Scratch: the events at hand as rows.
    flat: Vec<Row>,
    rows: usize,
}

impl Columns {
    pub fn new() -> Columns {
        let texts = || Store::Texts(Texts::default());
        let columns = vec![
            Column::required(Store::Differences), // seq
            Column::required(Store::Differences), // t_ns
            // Durations hardly repeat.
            Column::required(Store::Differences), // dur_ns
            Column::required(Store::Numbers),     // pid
            Column::required(Store::Numbers),     // tid
            Column::required(texts()),            // op
            Column::optional(Store::Differences), // ofd_id
            Column::optional(Store::Numbers),     // ofd_id2
            Column::optional(Store::Numbers),     // file_id
            Column::optional(Store::Numbers),     // parent_id
            Column::optional(texts()),            // path
            Column::optional(texts()),            // path2
            Column::optional(Store::Numbers),     // offset
            Column::optional(Store::Numbers),     // offset2
            Column::optional(Store::Numbers),     // req_bytes
            Column::required(Store::Numbers),     // ret
            Column::required(Store::Numbers),     // errno
            Column::required(Store::Numbers),     // flags
            Column::optional(Store::Numbers),     // mode
            Column::optional(Store::Numbers),     // size_before
            Column::optional(texts()),            // caller_dir
            Column::optional(texts()),            // caller_dir2
            Column::optional(Store::Differences), // running_ns
            Column::optional(Store::Differences), // blocked_ns
        ];
        let mut ops = Paths::default();
        op_names().for_each(|name| {
            ops.intern(name.as_bytes());
        });
        Columns { columns, ops, flat: Vec::new(), rows: 0 }
    }

    /// Rows in progress.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// What they take in memory, about.
    pub fn bytes(&self) -> usize {
        self.columns.iter().map(Column::bytes).sum()
    }

    /// The ids of paths are those of another batch from here on.
    pub fn begin_batch(&mut self) {
        self.columns.iter_mut().for_each(Column::begin_batch);
    }

    /// Adds events of the batch at hand, whose paths are given.
    pub fn add(&mut self, events: &[Event], paths: &Paths) {
        self.rows += events.len();
        self.flat.clear();
        self.flat.extend(events.iter().map(Row::from));
        let events = &self.flat;
        let ops = &self.ops;
        let mut columns = self.columns.iter_mut();
        let mut next = || columns.next().expect("a column for each field of the format");
        next().add(events.iter().map(|e| e.seq));
        next().add(events.iter().map(|e| e.t_ns));
        next().add(events.iter().map(|e| e.dur_ns));
        next().add(events.iter().map(|e| e.pid.into()));
        next().add(events.iter().map(|e| e.tid.into()));
        // `Op` is `repr(u8)`: its number is its position in `Op::ALL`.
        next().add_texts(events.iter().map(|e| Some(PathId(u32::from(e.op as u8)))), ops);
        next().add_optional(events.iter().map(|e| e.ofd.map(|id| id.0)));
        next().add_optional(events.iter().map(|e| e.ofd2.map(|id| id.0)));
        next().add_optional(events.iter().map(|e| e.file.map(|id| id.0)));
        next().add_optional(events.iter().map(|e| e.parent.map(|id| id.0)));
        next().add_texts(events.iter().map(|e| e.path), paths);
        next().add_texts(events.iter().map(|e| e.path2), paths);
        next().add_optional(events.iter().map(|e| e.offset));
        next().add_optional(events.iter().map(|e| e.offset2));
        next().add_optional(events.iter().map(|e| e.req_bytes));
        next().add(events.iter().map(|e| e.ret.cast_unsigned()));
        next().add(events.iter().map(|e| e.errno.into()));
        next().add(events.iter().map(|e| e.flags.into()));
        next().add_optional(events.iter().map(|e| e.mode.map(u64::from)));
        next().add_optional(events.iter().map(|e| e.size_before));
        next().add_texts(events.iter().map(|e| e.caller_dir), paths);
        next().add_texts(events.iter().map(|e| e.caller_dir2), paths);
        next().add_optional(events.iter().map(|e| e.running_ns));
        next().add_optional(events.iter().map(|e| e.blocked_ns));
        assert!(columns.next().is_none(), "a field of the format for each column");
    }

    /// Writes all as the first columns of a row group, and empties them. `descr`: the file's columns.
    pub fn write<W: Write + Send>(
        &mut self,
        encoder: &mut Encoder,
        descr: &[ColumnDescPtr],
        group: &mut SerializedRowGroupWriter<'_, W>,
    ) -> Result<(), ParquetError> {
        self.rows = 0;
        self.columns.iter_mut().zip(descr).try_for_each(|(column, descr)| encoder.write(column, descr, group))
    }
}

/// An annotation column's values from `from`, `len` of them.
pub(super) fn annotation(values: &Values, from: usize, len: usize) -> ArrayRef {
    match values {
        Values::F64(v) => Arc::new(v.iter().skip(from).take(len).copied().collect::<Float64Array>()),
        Values::U64(v) => Arc::new(v.iter().skip(from).take(len).copied().collect::<UInt64Array>()),
        Values::Bool(v) => Arc::new(v.iter().skip(from).take(len).copied().collect::<BooleanArray>()),
        Values::Utf8(v) => Arc::new(v.iter().skip(from).take(len).map(Option::as_deref).collect::<StringArray>()),
    }
}
