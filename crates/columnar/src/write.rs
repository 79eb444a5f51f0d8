//! Writing a checked file, a row group at a time.

use crate::{FileCheck, FileError, Format, ROW_GROUPS_KEY, footer};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves};
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{ColumnDescPtr, ColumnPath};
use serde::Serialize;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Makes a file that only its owner may read.
///
/// # Errors
/// It is there already, or the system refuses.
pub fn create_private(path: &Path) -> Result<File, FileError> {
    let file = File::options().write(true).create_new(true).mode(0o600).open(path);
    file.map_err(FileError::io(path, "create the file"))
}

/// Writer settings common to all our Parquet files.
pub fn properties() -> WriterPropertiesBuilder {
    WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_created_by(concat!("fsage ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_max_row_group_row_count(None)
        .set_offset_index_disabled(true)
        .set_statistics_enabled(EnabledStatistics::Chunk)
}

/// The same with a column that is stored in this encoding and not as places in a dictionary. A column within another is
/// named with a dot, as Parquet has it: `entries.list.item.weight`.
pub fn encoded(properties: WriterPropertiesBuilder, column: &str, encoding: Encoding) -> WriterPropertiesBuilder {
    let column = ColumnPath::new(column.split('.').map(str::to_owned).collect());
    properties.set_column_dictionary_enabled(column.clone(), false).set_column_encoding(column, encoding)
}

/// The file under the Parquet writer: counts and sums what goes through.
pub struct Sink {
    file: File,
    at: u64,
    crc: u32,
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.file.write(bytes)?;
        self.crc = crc32c::crc32c_append(self.crc, &bytes[..n]);
        self.at += n as u64;
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Writes one checked Parquet file, a row group at a time.
pub struct ParquetOut {
    path: PathBuf,
    writer: SerializedFileWriter<Sink>,
    schema: SchemaRef,
    column_writers: ArrowRowGroupWriterFactory,
    /// The columns of the row group in progress, and how many rows they have.
    in_progress: Vec<ArrowColumnWriter>,
    rows: usize,
    row_groups: String,
    footer_at: u64,
}

impl ParquetOut {
    /// Creates the file, which must not exist.
    pub fn create(path: PathBuf, schema: SchemaRef, properties: WriterProperties) -> Result<Self, FileError> {
        Self::into_file(create_private(&path)?, path, schema, properties)
    }

    /// The same into a file that is open and empty; `path` is what errors name.
    pub fn into_file(
        file: File,
        path: PathBuf,
        schema: SchemaRef,
        properties: WriterProperties,
    ) -> Result<Self, FileError> {
        let sink = Sink { file, at: 0, crc: 0 };
        let writer = ArrowWriter::try_new(sink, Arc::clone(&schema), Some(properties));
        let (writer, column_writers) =
            writer.and_then(ArrowWriter::into_serialized_writer).map_err(write_error(&path))?;
        let (in_progress, row_groups) = (Vec::new(), String::new());
        Ok(ParquetOut { path, writer, schema, column_writers, in_progress, rows: 0, row_groups, footer_at: 0 })
    }

    /// Adds rows to the row group in progress.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<(), FileError> {
        self.write_columns(batch).map_err(write_error(&self.path))
    }

    fn write_columns(&mut self, batch: &RecordBatch) -> Result<(), ParquetError> {
        if self.in_progress.is_empty() {
            self.in_progress = self.column_writers.create_column_writers(self.writer.flushed_row_groups().len())?;
        }
        self.rows += batch.num_rows();
        let mut writers = self.in_progress.iter_mut();
        for (field, column) in self.schema.fields().iter().zip(batch.columns()) {
            for (leaf, writer) in compute_leaves(field, column)?.iter().zip(&mut writers) {
                writer.write(leaf)?;
            }
        }
        Ok(())
    }

    /// Adds rows, given as the columns of the file's schema.
    ///
    /// # Errors
    /// The disk; columns that are not the schema's.
    pub fn write_arrays(&mut self, columns: Vec<ArrayRef>) -> Result<(), FileError> {
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns);
        self.write(&batch.map_err(|e| FileError::invalid(&self.path, e))?)
    }

    /// Puts the description of a file of this format into the footer, with its checksum.
    ///
    /// # Errors
    /// It cannot be said in JSON, or the format has none.
    pub fn describe(&mut self, format: &Format, description: &impl Serialize) -> Result<(), FileError> {
        let key = format.key.ok_or_else(|| FileError::invalid(&self.path, "its format has no description"))?;
        let json = serde_json::to_string(description).map_err(|e| FileError::invalid(&self.path, e))?;
        self.key_value(&footer::sum_key(key), footer::sum(&json));
        self.key_value(key, json);
        Ok(())
    }

    /// Puts a pair into the footer.
    pub fn key_value(&mut self, key: &str, value: String) {
        self.writer.append_key_value_metadata(KeyValue::new(key.to_owned(), value));
    }

    /// Rows not yet in a finished row group.
    pub fn rows_in_progress(&self) -> usize {
        self.rows
    }

    /// Encoded size of those rows, about.
    pub fn bytes_in_progress(&self) -> usize {
        self.in_progress.iter().map(ArrowColumnWriter::get_estimated_total_bytes).sum()
    }

    /// Ends the row group and notes its checksum.
    pub fn end_row_group(&mut self) -> Result<(), FileError> {
        if self.rows == 0 {
            return Ok(());
        }
        self.rows = 0;
        let columns = std::mem::take(&mut self.in_progress);
        self.row_group(|group| columns.into_iter().try_for_each(|column| column.close()?.append_to_row_group(group)))
    }

    /// The file's columns.
    pub fn columns(&self) -> Vec<ColumnDescPtr> {
        self.writer.schema_descr().columns().to_vec()
    }

    /// A writer of Arrow arrays for each column, for some of the columns of a [`row_group`](Self::row_group).
    pub fn arrow_columns(&self) -> Result<Vec<ArrowColumnWriter>, ParquetError> {
        self.column_writers.create_column_writers(self.writer.flushed_row_groups().len())
    }

    /// Writes a whole row group, column by column, and notes its checksum.
    pub fn row_group(
        &mut self,
        fill: impl FnOnce(&mut SerializedRowGroupWriter<'_, Sink>) -> Result<(), ParquetError>,
    ) -> Result<(), FileError> {
        let mut group = self.writer.next_row_group().map_err(write_error(&self.path))?;
        fill(&mut group).map_err(write_error(&self.path))?;
        group.close().map_err(write_error(&self.path))?;
        self.writer.flush().map_err(FileError::io(&self.path, "write"))?;
        let sink = self.writer.inner_mut();
        let comma = if self.row_groups.is_empty() { "" } else { "," };
        self.row_groups.push_str(&format!("{comma}{:x}:{:08x}", sink.at, sink.crc));
        sink.crc = 0;
        self.footer_at = sink.at;
        Ok(())
    }

    /// Writes the footer and brings the file to stable storage.
    pub fn finish(mut self) -> Result<FileCheck, FileError> {
        self.end_row_group()?;
        let sums = KeyValue::new(ROW_GROUPS_KEY.to_owned(), std::mem::take(&mut self.row_groups));
        self.writer.append_key_value_metadata(sums);
        self.writer.finish().map_err(write_error(&self.path))?;
        let sink = self.writer.inner_mut();
        sink.file.sync_all().map_err(FileError::io(&self.path, "write the file to stable storage"))?;
        Ok(FileCheck { bytes: sink.at, footer_at_byte: self.footer_at, footer_crc32c: format!("{:08x}", sink.crc) })
    }
}

/// Parquet wraps the operating system's errors; a full disk must still look like one.
fn write_error(path: &Path) -> impl FnOnce(ParquetError) -> FileError + use<> {
    let path = path.to_owned();
    move |e| match e {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(source) => FileError::io(&path, "write")(*source),
            Err(other) => FileError::Invalid { path, message: other.to_string() },
        },
        e => FileError::Invalid { path, message: e.to_string() },
    }
}
