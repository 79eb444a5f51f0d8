//! The long table of a result as Parquet: every figure a row (docs/formats.md, "The long table").

use crate::failure;
use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray};
use document::tidy::{COLUMNS, Figure};
use std::sync::Arc;

/// The version of its columns, in the footer under `fsage.long`.
const VERSION: &str = "2";

/// The bytes of the file; its footer says where the figures come from.
pub fn parquet(schema: &str, figures: &[Figure]) -> failure::Result<Vec<u8>> {
    let text =
        |of: fn(&Figure) -> &str| -> ArrayRef { Arc::new(StringArray::from_iter_values(figures.iter().map(of))) };
    let known =
        |of: fn(&Figure) -> Option<f64>| -> ArrayRef { Arc::new(figures.iter().map(of).collect::<Float64Array>()) };
    let columns: [ArrayRef; COLUMNS.len()] = [
        text(|f| &f.table),
        text(|f| &f.workload),
        text(|f| &f.system),
        text(|f| &f.call),
        text(|f| &f.item),
        text(|f| &f.metric),
        known(|f| Some(f.value)),
        known(|f| f.low),
        known(|f| f.high),
        text(|f| &f.unit),
    ];
    let no_parquet =
        |error: &dyn std::fmt::Display| failure::environment(format!("the long table cannot be written: {error}"));
    let batch = RecordBatch::try_from_iter(COLUMNS.into_iter().zip(columns)).map_err(|error| no_parquet(&error))?;
    let mut footer = vec![("fsage.long", VERSION.to_owned()), ("fsage.schema", schema.to_owned())];
    footer.extend(crate::made::json().map(|run| ("fsage.run", run.to_string())));
    columnar::whole(&batch, &footer).map_err(|error| no_parquet(&error))
}
