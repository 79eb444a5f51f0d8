//! The columns of `trace.parquet`, in file order: their names and types in one place.

use crate::Op;
use arrow_schema::{DataType, Field};

/// A path column: strings behind a dictionary of the row group.
pub(super) fn dictionary_type() -> DataType {
    DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
}

/// Columns that hold paths, in the order in which their dictionaries are read.
pub(super) const PATH_COLUMNS: [&str; 4] = ["path", "path2", "caller_dir", "caller_dir2"];

/// Every column of the format as a field.
pub(super) fn trace_fields() -> Vec<Field> {
    let required = |name: &str, kind: DataType| Field::new(name, kind, false);
    let optional = |name: &str, kind: DataType| Field::new(name, kind, true);
    vec![
        required("seq", DataType::UInt64),
        required("t_ns", DataType::UInt64),
        required("dur_ns", DataType::UInt64),
        required("pid", DataType::UInt32),
        required("tid", DataType::UInt32),
        required("op", dictionary_type()),
        optional("ofd_id", DataType::UInt64),
        optional("ofd_id2", DataType::UInt64),
        optional("file_id", DataType::UInt64),
        optional("parent_id", DataType::UInt64),
        optional("path", dictionary_type()),
        optional("path2", dictionary_type()),
        optional("offset", DataType::UInt64),
        optional("offset2", DataType::UInt64),
        optional("req_bytes", DataType::UInt64),
        required("ret", DataType::Int64),
        required("errno", DataType::UInt16),
        required("flags", DataType::UInt32),
        optional("mode", DataType::UInt16),
        optional("size_before", DataType::UInt64),
        optional("caller_dir", dictionary_type()),
        optional("caller_dir2", dictionary_type()),
        optional("running_ns", DataType::UInt64),
        optional("blocked_ns", DataType::UInt64),
    ]
}

/// The names of all operations, as the dictionary of the `op` column is written.
pub(super) fn op_names() -> impl Iterator<Item = &'static str> {
    Op::ALL.iter().map(|op| op.name())
}
