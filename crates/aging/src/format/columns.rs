//! The columns: `t_ns, op, file_id, dir_id, name, offset_bytes, size_bytes`.

use arrow_schema::{DataType, Field, Schema, SchemaRef};
use columnar::{Encoding, WriterProperties, encoded, properties};
use std::sync::Arc;

pub(super) const T_NS: &str = "t_ns";
pub(super) const OP: &str = "op";
pub(super) const FILE_ID: &str = "file_id";
pub(super) const DIR_ID: &str = "dir_id";
pub(super) const NAME: &str = "name";
pub(super) const OFFSET: &str = "offset_bytes";
pub(super) const SIZE: &str = "size_bytes";

/// All columns, in the order of the file.
pub(super) const ALL: [&str; 7] = [T_NS, OP, FILE_ID, DIR_ID, NAME, OFFSET, SIZE];

/// The file's columns. `op` is the name of an [`OpKind`](crate::OpKind), dictionary-encoded: readable by any Parquet
/// tool.
pub(super) fn schema() -> SchemaRef {
    let number = |name: &str| Field::new(name, DataType::UInt64, false);
    Arc::new(Schema::new(vec![
        number(T_NS),
        Field::new(OP, DataType::Utf8, false),
        number(FILE_ID),
        number(DIR_ID),
        Field::new(NAME, DataType::Utf8, true),
        number(OFFSET),
        number(SIZE),
    ]))
}

/// Times and numbers rise or lie close together: deltas are small. Sizes and offsets repeat little.
pub(super) fn settings() -> WriterProperties {
    let delta = |properties, column| encoded(properties, column, Encoding::DELTA_BINARY_PACKED);
    [T_NS, FILE_ID].into_iter().fold(properties(), delta).build()
}
