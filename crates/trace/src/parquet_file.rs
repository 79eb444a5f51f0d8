//! Parquet files with a checksum for every row group and for the footer.
//!
//! Parquet itself does not notice most damage. The writer therefore keeps a CRC-32C of the bytes of each row group (in the
//! footer, under [`ROW_GROUPS_KEY`]) and gives its caller one of the footer (a workload profile keeps it in `meta.json`). The
//! reader loads one row group at a time into memory, verifies it, and only then lets the Parquet decoder see it.

use crate::profile::{FileCheck, ProfileError};
use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};
use bytes::{Buf, Bytes};
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::arrow::arrow_writer::{ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves};
use parquet::arrow::{ArrowWriter, ProjectionMask};
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::{KeyValue, ParquetMetaData, ParquetMetaDataReader};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::ColumnDescPtr;
use posix::{interrupt, memory};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Footer key of the row groups' checksums: `end:crc32c` in hexadecimal, comma-separated, in file order. A row group's bytes
/// begin where the one before ends (the first at byte 0).
pub const ROW_GROUPS_KEY: &str = "fsage.row_groups";

/// Limits on files that other tools wrote: a row group is decoded as a whole.
const ROW_GROUP_ROWS_MAX: i64 = 1 << 20;
const ROW_GROUP_BYTES_MAX: u64 = 1 << 30;
const FOOTER_BYTES_MAX: u64 = 64 << 20;

/// Columns, and groups of columns. The decoder calls itself for each group in a group, and a stack is short. No file of ours has a tenth.
const SCHEMA_ELEMENTS_MAX: usize = 1_000;

/// What the footer or a row group may cost while it is read, decoder included. What we write costs a fortieth.
const READING_BYTES_MAX: usize = 1 << 30;

/// Bytes of names that one pass over a file may have beyond [`NAMES_PER_BYTE`]: what any machine can keep.
const NAMES_BYTES: u64 = 256 << 20;

/// Bytes of names for each byte of their file: the longest path that one call takes (`PATH_MAX`), in a row of four bytes. Whoever reads keeps each
/// name, and one that differs from the name before it in its last byte costs its file next to nothing, however long it is.
const NAMES_PER_BYTE: u64 = 1024;

/// How many bytes of names may still come out of a file ([`ParquetIn::room_for_names`]).
#[derive(Clone, Copy, Debug)]
pub(crate) struct NameRoom {
    left_bytes: u64,
}

/// Makes a file that only its owner may read.
pub(crate) fn create_private(path: &Path) -> Result<File, ProfileError> {
    let file = File::options().write(true).create_new(true).mode(0o600).open(path);
    file.map_err(ProfileError::io(path, "create the file"))
}

/// How much of a file can be verified.
#[derive(Clone, Copy, Debug)]
pub enum Check<'a> {
    /// Row groups and footer, by what a file beside it states.
    Beside(&'a FileCheck),
    /// Row groups, by the sums in the footer, where it has them (a file that another tool rewrote has none).
    Footer,
    /// Nothing: another tool wrote it.
    Nothing,
}

impl<'a> From<Option<&'a FileCheck>> for Check<'a> {
    fn from(check: Option<&'a FileCheck>) -> Self {
        check.map_or(Check::Nothing, Check::Beside)
    }
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

/// The file under the Parquet writer: counts and sums what goes through.
pub(crate) struct Sink {
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
    pub fn create(path: PathBuf, schema: SchemaRef, properties: WriterProperties) -> Result<Self, ProfileError> {
        Self::into_file(create_private(&path)?, path, schema, properties)
    }

    /// The same into a file that is open and empty; `path` is what errors name.
    pub fn into_file(
        file: File,
        path: PathBuf,
        schema: SchemaRef,
        properties: WriterProperties,
    ) -> Result<Self, ProfileError> {
        let sink = Sink { file, at: 0, crc: 0 };
        let writer = ArrowWriter::try_new(sink, Arc::clone(&schema), Some(properties));
        let (writer, column_writers) =
            writer.and_then(ArrowWriter::into_serialized_writer).map_err(write_error(&path))?;
        let (in_progress, row_groups) = (Vec::new(), String::new());
        Ok(ParquetOut { path, writer, schema, column_writers, in_progress, rows: 0, row_groups, footer_at: 0 })
    }

    /// Adds rows to the row group in progress.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<(), ProfileError> {
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
    pub fn end_row_group(&mut self) -> Result<(), ProfileError> {
        if self.rows == 0 {
            return Ok(());
        }
        self.rows = 0;
        let columns = std::mem::take(&mut self.in_progress);
        self.row_group(|group| columns.into_iter().try_for_each(|column| column.close()?.append_to_row_group(group)))
    }

    /// The file's columns.
    pub(crate) fn columns(&self) -> Vec<ColumnDescPtr> {
        self.writer.schema_descr().columns().to_vec()
    }

    /// A writer of Arrow arrays for each column, for some of the columns of a [`row_group`](Self::row_group).
    pub(crate) fn arrow_columns(&self) -> Result<Vec<ArrowColumnWriter>, ParquetError> {
        self.column_writers.create_column_writers(self.writer.flushed_row_groups().len())
    }

    /// Writes a whole row group, column by column, and notes its checksum.
    pub(crate) fn row_group(
        &mut self,
        fill: impl FnOnce(&mut SerializedRowGroupWriter<'_, Sink>) -> Result<(), ParquetError>,
    ) -> Result<(), ProfileError> {
        let mut group = self.writer.next_row_group().map_err(write_error(&self.path))?;
        fill(&mut group).map_err(write_error(&self.path))?;
        group.close().map_err(write_error(&self.path))?;
        self.writer.flush().map_err(ProfileError::io(&self.path, "write"))?;
        let sink = self.writer.inner_mut();
        let comma = if self.row_groups.is_empty() { "" } else { "," };
        self.row_groups.push_str(&format!("{comma}{:x}:{:08x}", sink.at, sink.crc));
        sink.crc = 0;
        self.footer_at = sink.at;
        Ok(())
    }

    /// Writes the footer and brings the file to stable storage.
    pub fn finish(mut self) -> Result<FileCheck, ProfileError> {
        self.end_row_group()?;
        let sums = KeyValue::new(ROW_GROUPS_KEY.to_owned(), std::mem::take(&mut self.row_groups));
        self.writer.append_key_value_metadata(sums);
        self.writer.finish().map_err(write_error(&self.path))?;
        let sink = self.writer.inner_mut();
        sink.file.sync_all().map_err(ProfileError::io(&self.path, "write the file to stable storage"))?;
        Ok(FileCheck { bytes: sink.at, footer_at_byte: self.footer_at, footer_crc32c: format!("{:08x}", sink.crc) })
    }
}

/// Parquet wraps the operating system's errors; a full disk must still look like one.
fn write_error(path: &Path) -> impl FnOnce(ParquetError) -> ProfileError {
    let path = path.to_owned();
    move |e| match e {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(source) => ProfileError::Io { path, doing: "write", source: *source },
            Err(other) => ProfileError::Invalid { path, message: other.to_string() },
        },
        e => ProfileError::Invalid { path, message: e.to_string() },
    }
}

/// Bytes of the file in memory; the only ones the Parquet decoder may ask for.
struct Segment {
    start: u64,
    bytes: Bytes,
    file_len: u64,
}

impl Length for Segment {
    fn len(&self) -> u64 {
        self.file_len
    }
}

impl Segment {
    fn slice(&self, start: u64, length: Option<usize>) -> parquet::errors::Result<Bytes> {
        let outside = || ParquetError::EOF(format!("byte {start} (length {length:?}) lies outside the row group"));
        let from = start.checked_sub(self.start).and_then(|n| usize::try_from(n).ok()).ok_or_else(outside)?;
        let to = match length {
            Some(n) => from.checked_add(n).ok_or_else(outside)?,
            None => self.bytes.len(),
        };
        if from > to || to > self.bytes.len() {
            return Err(outside());
        }
        Ok(self.bytes.slice(from..to))
    }
}

impl ChunkReader for Segment {
    type T = bytes::buf::Reader<Bytes>;

    fn get_read(&self, start: u64) -> parquet::errors::Result<Self::T> {
        Ok(self.slice(start, None)?.reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<Bytes> {
        self.slice(start, Some(length))
    }
}

/// One row group: its bytes and, where the file is checked, their checksum.
struct RowGroup {
    start: u64,
    end: u64,
    crc32c: Option<u32>,
    first_row: u64,
    rows: usize,
}

/// An open Parquet file of ours.
pub struct ParquetIn {
    path: PathBuf,
    file: File,
    len: u64,
    metadata: ArrowReaderMetadata,
    row_groups: Vec<RowGroup>,
}

impl ParquetIn {
    /// Opens the file and verifies its footer. `schema` maps the file's own schema to the one to decode to, or says what
    /// is wrong with it.
    pub fn open(
        path: PathBuf,
        check: Check<'_>,
        missing_hint: &'static str,
        schema: impl FnOnce(&Path, &Schema) -> Result<Schema, ProfileError>,
    ) -> Result<Self, ProfileError> {
        let name = path.clone();
        memory::reading(&name, READING_BYTES_MAX, || Self::open_bounded(path, check, missing_hint, schema))
    }

    fn open_bounded(
        path: PathBuf,
        check: Check<'_>,
        missing_hint: &'static str,
        schema: impl FnOnce(&Path, &Schema) -> Result<Schema, ProfileError>,
    ) -> Result<Self, ProfileError> {
        let file = match posix::input::open(&path) {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                return Err(ProfileError::Missing { path, hint: missing_hint });
            }
            Err(e) => return Err(ProfileError::io(&path, "open")(e)),
        };
        let len = file.metadata().map_err(ProfileError::io(&path, "look at"))?.len();
        let metadata = Arc::new(read_footer(&path, &file, len, check)?);
        let row_groups = locate_row_groups(&path, &metadata, len, check)?;
        let decode = |e: ParquetError| ProfileError::corrupt(&path, "footer", e);
        let plain = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let found = guarded(|| ArrowReaderMetadata::try_new(Arc::clone(&metadata), plain)).map_err(decode)?;
        let wanted = Arc::new(schema(&path, found.schema())?);
        let options = ArrowReaderOptions::new().with_schema(wanted);
        let metadata = guarded(|| ArrowReaderMetadata::try_new(metadata, options)).map_err(decode)?;
        Ok(ParquetIn { path, file, len, metadata, row_groups })
    }

    /// A pair of the footer.
    pub fn key_value(&self, key: &str) -> Option<&str> {
        let pairs = self.metadata.metadata().file_metadata().key_value_metadata()?;
        pairs.iter().find(|kv| kv.key == key)?.value.as_deref()
    }

    /// What one pass over the file may have of names.
    pub(crate) fn room_for_names(&self) -> NameRoom {
        NameRoom { left_bytes: NAMES_BYTES.saturating_add(self.len.saturating_mul(NAMES_PER_BYTE)) }
    }

    /// Takes the bytes of names from the room.
    ///
    /// # Errors
    /// There is no room for them.
    pub(crate) fn take_names(&self, room: &mut NameRoom, bytes: usize) -> Result<(), ProfileError> {
        let left = room.left_bytes.checked_sub(bytes as u64).ok_or_else(|| {
            let message = format!(
                "its names unpack to more than {NAMES_BYTES} bytes and {NAMES_PER_BYTE} for each of its own, which no recording's do"
            );
            ProfileError::corrupt(&self.path, "whole file", message)
        })?;
        room.left_bytes = left;
        Ok(())
    }

    /// The file's name, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The columns as they are decoded.
    pub fn schema(&self) -> &SchemaRef {
        self.metadata.schema()
    }

    /// Number of row groups.
    pub fn row_groups(&self) -> usize {
        self.row_groups.len()
    }

    /// Number of rows.
    pub fn rows(&self) -> u64 {
        self.row_groups.last().map_or(0, |g| g.first_row + g.rows as u64)
    }

    /// First row and number of rows of a row group.
    pub fn row_range(&self, group: usize) -> Option<(u64, usize)> {
        self.row_groups.get(group).map(|g| (g.first_row, g.rows))
    }

    /// Reads, verifies and decodes one row group; only the columns named. Each record batch is handed on.
    pub fn read_row_group(
        &self,
        group: usize,
        columns: &[&str],
        each: impl FnMut(&RecordBatch) -> Result<(), ProfileError>,
    ) -> Result<(), ProfileError> {
        memory::reading(&self.path, READING_BYTES_MAX, || self.read_bounded(group, columns, each))
    }

    fn read_bounded(
        &self,
        group: usize,
        columns: &[&str],
        mut each: impl FnMut(&RecordBatch) -> Result<(), ProfileError>,
    ) -> Result<(), ProfileError> {
        let Some(at) = self.row_groups.get(group) else { return Ok(()) };
        interrupt::check().map_err(ProfileError::io(&self.path, "read on"))?;
        let place = || format!("row group {group} (bytes {} to {})", at.start, at.end);
        let bytes = read_range(&self.path, &self.file, at.start, at.end)?;
        if at.crc32c.is_some_and(|crc| crc != crc32c::crc32c(&bytes)) {
            return Err(ProfileError::corrupt(&self.path, place(), "checksum does not match: the bytes are damaged"));
        }
        let decode = |e: &dyn std::fmt::Display| ProfileError::corrupt(&self.path, place(), e);
        let segment = Segment { start: at.start, bytes: bytes.into(), file_len: self.len };
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
            rows += batch.num_rows();
            each(&batch)?;
        }
        if rows != at.rows {
            return Err(decode(&format!("{rows} rows where the footer promises {}", at.rows)));
        }
        Ok(())
    }
}

/// Runs the Parquet decoder. It is meant to report damage as errors, but files from elsewhere (unchecked ones) may still find a
/// panic in it; that must not take the program down.
fn guarded<T>(decode: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, ParquetError> {
    catch_unwind(AssertUnwindSafe(decode))
        .unwrap_or_else(|_| Err(ParquetError::General("the Parquet decoder gave up on damaged data".into())))
}

fn read_range(path: &Path, file: &File, start: u64, end: u64) -> Result<Vec<u8>, ProfileError> {
    let place = || format!("bytes {start} to {end}");
    let len = end.checked_sub(start).and_then(|n| usize::try_from(n).ok());
    let len = len.ok_or_else(|| ProfileError::corrupt(path, place(), "not a range"))?;
    let mut bytes = vec![0; len];
    match file.read_exact_at(&mut bytes, start) {
        Ok(()) => Ok(bytes),
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => {
            Err(ProfileError::corrupt(path, place(), "the file ends before them: it is truncated"))
        }
        Err(e) => Err(ProfileError::io(path, "read")(e)),
    }
}

/// Length of the trailing `footer length` and `PAR1`.
const TAIL_BYTES: u64 = 8;

fn read_footer(path: &Path, file: &File, len: u64, check: Check<'_>) -> Result<ParquetMetaData, ProfileError> {
    if let Check::Beside(check) = check {
        if check.bytes != len {
            let message = format!(
                "the file has {len} bytes where meta.json states {}: it is truncated or was rewritten",
                check.bytes
            );
            return Err(ProfileError::corrupt(path, "whole file", message));
        }
        let footer = read_range(path, file, check.footer_at_byte, len)?;
        if format!("{:08x}", crc32c::crc32c(&footer)) != check.footer_crc32c {
            let place = format!("footer (bytes {} to {len})", check.footer_at_byte);
            return Err(ProfileError::corrupt(path, place, "checksum does not match meta.json: the bytes are damaged"));
        }
    }
    let corrupt = |message: String| ProfileError::corrupt(path, "footer", message);
    let tail_at = len.checked_sub(TAIL_BYTES).ok_or_else(|| corrupt("too short to be a Parquet file".into()))?;
    let tail = read_range(path, file, tail_at, len)?;
    if &tail[4..] != b"PAR1" {
        return Err(corrupt("does not end as a Parquet file does (PAR1): truncated, or no Parquet file".into()));
    }
    let footer_len = u64::from(u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]));
    let start = tail_at.checked_sub(footer_len).filter(|_| footer_len <= FOOTER_BYTES_MAX);
    let start = start.ok_or_else(|| corrupt(format!("cannot be {footer_len} bytes long")))?;
    let footer = read_range(path, file, start, tail_at)?;
    let elements = schema_elements(&footer).ok_or_else(|| corrupt("does not begin as a Parquet footer does".into()))?;
    if elements > SCHEMA_ELEMENTS_MAX {
        let message = format!("its schema has {elements} elements, where at most {SCHEMA_ELEMENTS_MAX} are read");
        return Err(corrupt(message));
    }
    guarded(|| ParquetMetaDataReader::decode_metadata(&footer)).map_err(|e| corrupt(e.to_string()))
}

/// How many elements the schema of a footer has, before anything is decoded. A footer is a structure in Thrift's compact protocol, and begins with
/// its fields 1, the version, and 2, the list of elements; the decoder takes no list but the first.
fn schema_elements(footer: &[u8]) -> Option<usize> {
    // A field's distance from the one before, and its type: a number, a list.
    const VERSION: u8 = 0x15;
    const SCHEMA: u8 = 0x19;
    // The length does not fit beside the type of what is in the list, and follows.
    const LONG: u8 = 0xf;
    let [VERSION, version, SCHEMA, list, rest @ ..] = footer else { return None };
    if *version > 0x7f {
        return None;
    }
    if list >> 4 != LONG {
        return Some(usize::from(list >> 4));
    }
    // Seven bits a byte, the lowest first. Nobody needs more bytes for what fits into 32 bits.
    let mut elements = 0;
    for (byte, shift) in rest.iter().zip((0..32).step_by(7)) {
        elements |= usize::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(elements);
        }
    }
    None
}

/// Finds the bytes of every row group, from the checksums where the file is checked, else from the footer.
fn locate_row_groups(
    path: &Path,
    metadata: &ParquetMetaData,
    len: u64,
    check: Check<'_>,
) -> Result<Vec<RowGroup>, ProfileError> {
    let corrupt = |message: &str| ProfileError::corrupt(path, "footer", message);
    let text = stated_sums(metadata);
    let footer_at = match check {
        Check::Beside(check) => Some(check.footer_at_byte),
        Check::Footer => text.map(|_| len),
        Check::Nothing => None,
    };
    let malformed = || corrupt("the row groups' checksums are missing or malformed");
    let sums = footer_at.map(|end| text.and_then(|t| parse_sums(t, end)).ok_or_else(malformed)).transpose()?;
    if sums.as_ref().is_some_and(|s| s.len() != metadata.num_row_groups()) {
        return Err(corrupt("the row groups' checksums are not as many as the row groups"));
    }
    let mut found = Vec::with_capacity(metadata.num_row_groups());
    let mut first_row = 0u64;
    let mut start = 0;
    for (i, group) in metadata.row_groups().iter().enumerate() {
        let too_large =
            "a row group is too large to be read at once: rewrite the file with at most 1,048,576 rows a row group";
        let rows = Some(group.num_rows()).filter(|n| (0..=ROW_GROUP_ROWS_MAX).contains(n));
        let rows = rows.and_then(|n| usize::try_from(n).ok()).ok_or_else(|| corrupt(too_large))?;
        let (from, end, crc32c) = match sums.as_ref().and_then(|s| s.get(i)) {
            Some(&(end, crc)) => (start, end, Some(crc)),
            None => chunk_range(group)
                .map(|(a, b)| (a, b, None))
                .ok_or_else(|| corrupt("a column chunk's place is not a place"))?,
        };
        if end.saturating_sub(from) > ROW_GROUP_BYTES_MAX {
            return Err(corrupt(too_large));
        }
        found.push(RowGroup { start: from, end, crc32c, first_row, rows });
        first_row += rows as u64;
        start = end;
    }
    Ok(found)
}

fn stated_sums(metadata: &ParquetMetaData) -> Option<&str> {
    let pairs = metadata.file_metadata().key_value_metadata()?;
    pairs.iter().find(|kv| kv.key == ROW_GROUPS_KEY)?.value.as_deref()
}

/// End and checksum of every row group; none of them may reach beyond `end_max`.
fn parse_sums(text: &str, end_max: u64) -> Option<Vec<(u64, u32)>> {
    let mut sums = Vec::new();
    let mut last = 0;
    for part in text.split(',').filter(|p| !p.is_empty()) {
        let (end, crc) = part.split_once(':')?;
        let end = u64::from_str_radix(end, 16).ok().filter(|&end| end > last && end <= end_max)?;
        sums.push((end, u32::from_str_radix(crc, 16).ok()?));
        last = end;
    }
    Some(sums)
}

/// From the first to the last byte of a row group's column chunks.
fn chunk_range(group: &parquet::file::metadata::RowGroupMetaData) -> Option<(u64, u64)> {
    let mut range = (u64::MAX, 0);
    for column in group.columns() {
        let data = column.data_page_offset();
        let start = column.dictionary_page_offset().map_or(data, |d| d.min(data));
        let start = u64::try_from(start).ok()?;
        let end = start.checked_add(u64::try_from(column.compressed_size()).ok()?)?;
        range = (range.0.min(start), range.1.max(end));
    }
    (range.0 <= range.1).then_some(range)
}
