//! A table that is in memory, as a file: for results, which are small.

use crate::properties;
use arrow_array::RecordBatch;
use parquet::arrow::ArrowWriter;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;

/// The bytes of a Parquet file of these rows, with `metadata` in its footer.
///
/// # Errors
/// Parquet cannot write the columns' types.
pub fn whole(batch: &RecordBatch, metadata: &[(&str, String)]) -> Result<Vec<u8>, ParquetError> {
    let metadata = metadata.iter().map(|(key, value)| KeyValue::new((*key).to_owned(), value.clone())).collect();
    let properties = properties().set_key_value_metadata(Some(metadata)).build();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties))?;
    writer.write(batch)?;
    writer.into_inner()
}
