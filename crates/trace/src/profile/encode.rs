//! Events to Arrow arrays.

use super::columns::op_names;
use super::escape;
use super::writer::Values;
use crate::parquet_file;
use crate::{Event, Op, PathId, Paths};
use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, BooleanArray, DictionaryArray, Float64Array, Int32Array, Int64Array, StringArray, UInt16Array,
    UInt32Array, UInt64Array,
};
use arrow_schema::ArrowError;
use parquet::basic::Encoding;
use parquet::file::properties::WriterProperties;
use parquet::schema::types::ColumnPath;
use std::sync::Arc;

/// Writer settings for the trace: path columns keep their dictionary whatever its size, so that reading never
/// hashes a row; times and numbers given in order grow, so they are stored as differences. Durations hardly repeat: a dictionary
/// of them costs time and, with its indices, more bytes than the differences.
pub(super) fn trace_properties() -> WriterProperties {
    const DICTIONARY_BYTES_MAX: usize = 1 << 29;
    let mut properties = parquet_file::properties();
    for name in super::columns::PATH_COLUMNS.iter().copied().chain(["op"]) {
        let column = ColumnPath::from(name);
        properties = properties
            .set_column_dictionary_page_size_limit(column.clone(), DICTIONARY_BYTES_MAX)
            .set_column_statistics_enabled(column, parquet::file::properties::EnabledStatistics::None);
    }
    for name in ["seq", "t_ns", "dur_ns", "ofd_id", "running_ns", "blocked_ns"] {
        let column = ColumnPath::from(name);
        properties = properties
            .set_column_dictionary_enabled(column.clone(), false)
            .set_column_encoding(column, Encoding::DELTA_BINARY_PACKED);
    }
    properties.build()
}

/// A batch's paths as the dictionary that its path columns share.
pub(super) fn path_dictionary(paths: &Paths) -> Arc<StringArray> {
    let count = u32::try_from(paths.len()).unwrap_or(u32::MAX);
    Arc::new(StringArray::from_iter_values((0..count).map(|i| escape(paths.get(PathId(i))))))
}

/// The dictionary of the `op` column.
pub(super) fn op_dictionary() -> Arc<StringArray> {
    Arc::new(StringArray::from_iter_values(op_names()))
}

/// The format's own columns, in the order of [`super::columns::trace_fields`].
pub(super) fn columns(
    events: &[Event],
    paths: &Arc<StringArray>,
    ops: &Arc<StringArray>,
) -> Result<Vec<ArrayRef>, ArrowError> {
    let u64s = |f: fn(&Event) -> u64| -> ArrayRef { Arc::new(UInt64Array::from_iter_values(events.iter().map(f))) };
    let u32s = |f: fn(&Event) -> u32| -> ArrayRef { Arc::new(UInt32Array::from_iter_values(events.iter().map(f))) };
    let optional =
        |f: fn(&Event) -> Option<u64>| -> ArrayRef { Arc::new(events.iter().map(f).collect::<UInt64Array>()) };
    let path = |f: fn(&Event) -> Option<PathId>| -> Result<ArrayRef, ArrowError> {
        // An id beyond i32 cannot be: StringArray offsets are i32, so a dictionary that large was refused before.
        let key = |e: &Event| f(e).map(|id| i32::try_from(id.0).unwrap_or(i32::MAX));
        let keys: Int32Array = events.iter().map(key).collect();
        Ok(Arc::new(DictionaryArray::<Int32Type>::try_new(keys, Arc::clone(paths) as ArrayRef)?))
    };
    let op_keys = Int32Array::from_iter_values(events.iter().map(|e| i32::from(op_number(e.op))));
    Ok(vec![
        u64s(|e| e.seq),
        u64s(|e| e.t_ns),
        u64s(|e| e.dur_ns),
        u32s(|e| e.pid),
        u32s(|e| e.tid),
        Arc::new(DictionaryArray::<Int32Type>::try_new(op_keys, Arc::clone(ops) as ArrayRef)?),
        optional(|e| e.ofd.map(|id| id.0)),
        optional(|e| e.ofd2.map(|id| id.0)),
        optional(|e| e.file.map(|id| id.0)),
        optional(|e| e.parent.map(|id| id.0)),
        path(|e| e.path)?,
        path(|e| e.path2)?,
        optional(|e| e.offset),
        optional(|e| e.offset2),
        optional(|e| e.req_bytes),
        Arc::new(Int64Array::from_iter_values(events.iter().map(|e| e.ret))),
        Arc::new(UInt16Array::from_iter_values(events.iter().map(|e| e.errno))),
        u32s(|e| e.flags),
        Arc::new(events.iter().map(|e| e.mode).collect::<UInt16Array>()),
        optional(|e| e.size_before),
        path(|e| e.caller_dir)?,
        path(|e| e.caller_dir2)?,
        optional(|e| e.running_ns),
        optional(|e| e.blocked_ns),
    ])
}

/// `Op` is `repr(u8)`: its number is its position in `Op::ALL`, which is the dictionary.
fn op_number(op: Op) -> u8 {
    op as u8
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
