//! Rows of a file: a row group at a time, verified before it is decoded.

use super::{ParquetIn, READING_BYTES_MAX, Segment};
use crate::columns::Columns;
use crate::error::FileError;
use crate::footer::{self, guarded};
use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::errors::ParquetError;
use posix::{interrupt, memory};
use std::io;
use std::sync::Arc;

impl ParquetIn {
    /// Reads, verifies and decodes one row group; only the columns named. Its rows are handed on, at once or in parts.
    ///
    /// # Errors
    /// A damaged or unreadable row group, named; those of `each`.
    pub fn read_row_group(
        &self,
        group: usize,
        columns: &[&str],
        each: impl FnMut(&Columns<'_>) -> Result<(), FileError>,
    ) -> Result<(), FileError> {
        let place = |part: usize| self.part_of(group, part);
        memory::reading(&self.source.path, READING_BYTES_MAX, &place, || self.read_bounded(group, columns, each))
    }

    /// Rows as Arrow record batches, at least one to a row group, each verified as it is read: only the columns named,
    /// in the file's order, or all where none are. `go_on` is asked before each row group.
    ///
    /// # Errors
    /// A column that the file does not have; a damaged or unreadable row group, named; `go_on` said no.
    pub fn record_batches(
        &self,
        columns: &[&str],
        mut go_on: impl FnMut() -> bool,
    ) -> Result<(SchemaRef, Vec<RecordBatch>), FileError> {
        let every: Vec<&str> = self.schema().fields().iter().map(|field| field.name().as_str()).collect();
        if let Some(absent) = columns.iter().find(|name| !every.contains(name)) {
            let message = format!("is not in the file; there are {}", every.join(", "));
            return Err(FileError::schema(self.path(), absent, message));
        }
        let wanted = if columns.is_empty() { every } else { columns.to_vec() };
        let kept = self.schema().fields().iter().filter(|field| wanted.contains(&field.name().as_str())).cloned();
        let schema = Arc::new(Schema::new(kept.collect::<Vec<_>>()));
        let mut batches = Vec::new();
        for group in 0..self.row_groups() {
            if !go_on() {
                let stopped = io::Error::new(io::ErrorKind::Interrupted, "stopped by the caller");
                return Err(FileError::io(self.path(), "read on")(stopped));
            }
            self.read_row_group(group, &wanted, |columns| {
                batches.push(columns.batch().clone());
                Ok(())
            })?;
        }
        Ok((batches.first().map_or(schema, RecordBatch::schema), batches))
    }

    fn read_bounded(
        &self,
        group: usize,
        columns: &[&str],
        mut each: impl FnMut(&Columns<'_>) -> Result<(), FileError>,
    ) -> Result<(), FileError> {
        let Some(at) = self.row_groups.get(group) else { return Ok(()) };
        interrupt::check().map_err(FileError::io(&self.source.path, "read on"))?;
        let place = || self.part_of(group, 0);
        let bytes = self.source.read(at.start, at.end)?;
        if at.crc32c.is_some_and(|crc| crc != crc32c::crc32c(&bytes)) {
            return Err(self.corrupt(place(), "checksum does not match: the bytes are damaged"));
        }
        let decode = |e: &dyn std::fmt::Display| self.corrupt(place(), e);
        let chunks = self.metadata.metadata().row_groups().get(group).map(|group| group.columns()).unwrap_or_default();
        let chunks = chunks.iter().map(|chunk| footer::chunk_bytes(chunk).unwrap_or_default()).collect();
        let segment = Segment { start: at.start, bytes: bytes.into(), file_len: self.source.len, chunks };
        let mask = ProjectionMask::columns(self.metadata.parquet_schema(), columns.iter().copied());
        let mut reader = guarded(|| {
            ParquetRecordBatchReaderBuilder::new_with_metadata(segment, self.metadata.clone())
                .with_row_groups(vec![group])
                .with_projection(mask)
                .with_batch_size(at.rows.max(1))
                .build()
        })
        .map_err(|e| decode(&e))?;
        let mut rows = 0;
        while let Some(batch) =
            guarded(|| reader.next().transpose().map_err(ParquetError::from)).map_err(|e| decode(&e))?
        {
            each(&Columns::new(self, &batch, at.first_row + rows as u64))?;
            rows += batch.num_rows();
        }
        if rows != at.rows {
            return Err(decode(&format!("{rows} rows where the footer promises {}", at.rows)));
        }
        Ok(())
    }
}
