//! Reading a file, a row group at a time, each verified before it is decoded.

mod rows;

use crate::footer::{self, RowGroup, guarded};
use crate::source::Source;
use crate::{Check, FileError, Format};
use arrow_schema::{Schema, SchemaRef};
use bytes::{Buf, Bytes};
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};
use posix::memory;
use serde::de::DeserializeOwned;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What the footer or a row group may cost while it is read, decoder included. What we write costs a fortieth. It
/// cannot be much less: the decoder's buffers double as they grow, so that the names of [`NAMES_BYTES`] that a small
/// row group may hold take up to three times that.
const READING_BYTES_MAX: usize = 1 << 30;

/// Bytes of names that one pass over a file may have beyond [`NAMES_PER_BYTE`]: what any machine can keep.
const NAMES_BYTES: u64 = 256 << 20;

/// Bytes of names for each byte of their file: the longest path that one call takes (`PATH_MAX`), in a row of four
/// bytes. Whoever reads keeps each name, and one that differs from the name before it in its last byte costs its file
/// next to nothing, however long it is.
const NAMES_PER_BYTE: u64 = 1024;

/// How many bytes of names may still come out of a file ([`ParquetIn::room_for_names`]).
#[derive(Clone, Copy, Debug)]
pub struct NameRoom {
    left_bytes: u64,
    per_byte: u64,
}

/// Bytes of the file in memory; the only ones the Parquet decoder may ask for.
struct Segment {
    start: u64,
    bytes: Bytes,
    file_len: u64,
    /// Where each column's bytes are. The decoder asks for them, a page at a time, just before it unpacks them.
    chunks: Vec<Range<u64>>,
}

impl Length for Segment {
    fn len(&self) -> u64 {
        self.file_len
    }
}

impl Segment {
    fn slice(&self, start: u64, length: Option<usize>) -> parquet::errors::Result<Bytes> {
        if let Some(column) = self.chunks.iter().position(|chunk| chunk.contains(&start)) {
            memory::at(column + 1);
        }
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

/// An open Parquet file of ours.
pub struct ParquetIn {
    source: Source,
    metadata: ArrowReaderMetadata,
    row_groups: Vec<RowGroup>,
}

impl ParquetIn {
    /// Opens the file, verifies its footer and checks that it states the format and its version. `schema` maps the
    /// file's own schema to the one to decode to, or says what is wrong with it ([`as_stored`](crate::as_stored)).
    ///
    /// # Errors
    /// [`FileError`], naming the place.
    pub fn open(
        path: PathBuf,
        format: &'static Format,
        check: Check<'_>,
        schema: impl FnOnce(&Path, &Schema) -> Result<Schema, FileError>,
    ) -> Result<Self, FileError> {
        let name = path.clone();
        memory::reading(&name, READING_BYTES_MAX, &|_| "footer".to_owned(), || {
            Self::open_bounded(path, format, check, schema)
        })
    }

    fn open_bounded(
        path: PathBuf,
        format: &'static Format,
        check: Check<'_>,
        schema: impl FnOnce(&Path, &Schema) -> Result<Schema, FileError>,
    ) -> Result<Self, FileError> {
        let source = Source::open(path, format)?;
        let metadata = Arc::new(footer::read(&source, check)?);
        let row_groups = footer::locate_row_groups(&source, &metadata, check)?;
        // A file of another version may well have other columns: that is said first.
        format.check_footer(&source.path, |key| footer::value(&metadata, key))?;
        let decode = |e: ParquetError| source.corrupt("footer", e);
        let plain = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let found = guarded(|| ArrowReaderMetadata::try_new(Arc::clone(&metadata), plain)).map_err(decode)?;
        let wanted = Arc::new(schema(&source.path, found.schema())?);
        let options = ArrowReaderOptions::new().with_schema(wanted);
        let metadata = guarded(|| ArrowReaderMetadata::try_new(metadata, options)).map_err(decode)?;
        Ok(ParquetIn { source, metadata, row_groups })
    }

    /// A pair of the footer.
    fn key_value(&self, key: &str) -> Option<&str> {
        footer::value(self.metadata.metadata(), key)
    }

    /// What the file says of itself in its footer, verified where its checksum is there.
    ///
    /// # Errors
    /// [`FileError::Corrupt`].
    pub fn description<D: DeserializeOwned>(&self) -> Result<D, FileError> {
        let key = self.source.format.key.unwrap_or_default();
        let bad = |message: &str| self.corrupt(format!("footer, {key}"), message);
        let text = self.key_value(key).ok_or_else(|| bad("missing"))?;
        if self.key_value(&footer::sum_key(key)).is_some_and(|stated| stated != footer::sum(text)) {
            return Err(bad("checksum does not match: the bytes are damaged"));
        }
        serde_json::from_str(text).map_err(|e| bad(&e.to_string()))
    }

    /// A place in the file is not what it should be.
    pub fn corrupt(&self, place: impl Into<String>, message: impl ToString) -> FileError {
        self.source.corrupt(place, message)
    }

    /// What one pass over the file may have of names.
    pub fn room_for_names(&self) -> NameRoom {
        self.room(NAMES_PER_BYTE)
    }

    /// What one pass over the file may have of what its reader keeps: as much as any machine can, and so many bytes for
    /// each of the file's.
    pub fn room(&self, per_byte: u64) -> NameRoom {
        NameRoom { left_bytes: NAMES_BYTES.saturating_add(self.source.len.saturating_mul(per_byte)), per_byte }
    }

    /// Takes the bytes of names from the room.
    ///
    /// # Errors
    /// There is no room for them.
    pub fn take_names(&self, room: &mut NameRoom, bytes: usize) -> Result<(), FileError> {
        self.take_room(room, bytes, "names", "recording")
    }

    /// Takes the bytes of something else that a reader keeps: what they are, and what a file of this kind is called.
    ///
    /// # Errors
    /// There is no room for them.
    pub fn take_room(&self, room: &mut NameRoom, bytes: usize, what: &str, of: &str) -> Result<(), FileError> {
        let per_byte = room.per_byte;
        let left = room.left_bytes.checked_sub(bytes as u64).ok_or_else(|| {
            let message = format!(
                "its {what} unpack to more than {NAMES_BYTES} bytes and {per_byte} for each of its own, which no \
                 {of}'s do"
            );
            self.corrupt("whole file", message)
        })?;
        room.left_bytes = left;
        Ok(())
    }

    /// The file's name, for messages.
    pub fn path(&self) -> &Path {
        &self.source.path
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

    /// A row group, and which of its columns; they count from 1.
    fn part_of(&self, group: usize, column: usize) -> String {
        let bytes = self.row_groups.get(group).map_or(0..0, |at| at.start..at.end);
        let chunks = self.metadata.metadata().row_groups().get(group).map(|group| group.columns());
        let chunk = column.checked_sub(1).and_then(|column| chunks?.get(column));
        let column = chunk.map(|chunk| format!(", column {}", chunk.column_path().string())).unwrap_or_default();
        format!("row group {group} (bytes {} to {}){column}", bytes.start, bytes.end)
    }
}
