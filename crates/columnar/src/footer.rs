//! The footer: read and verified within limits, the places and checksums of the row groups.

use crate::source::Source;
use crate::{Check, FileError, ROW_GROUPS_KEY};
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, ParquetMetaDataReader};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Limits on files that other tools wrote: a row group is decoded as a whole.
const ROW_GROUP_ROWS_MAX: i64 = 1 << 20;
const ROW_GROUP_BYTES_MAX: u64 = 1 << 30;
const FOOTER_BYTES_MAX: u64 = 64 << 20;

/// Columns, and groups of columns. The decoder calls itself for each group in a group, and a stack is short. No file of
/// ours has a tenth.
const SCHEMA_ELEMENTS_MAX: usize = 1_000;

/// One row group: its bytes and, where the file is checked, their checksum.
pub(crate) struct RowGroup {
    pub start: u64,
    pub end: u64,
    pub crc32c: Option<u32>,
    pub first_row: u64,
    pub rows: usize,
}

/// Runs the Parquet decoder. It is meant to report damage as errors, but files from elsewhere (unchecked ones) may
/// still find a panic in it; that must not take the program down.
pub(crate) fn guarded<T>(decode: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, ParquetError> {
    catch_unwind(AssertUnwindSafe(decode))
        .unwrap_or_else(|_| Err(ParquetError::General("the Parquet decoder gave up on damaged data".into())))
}

/// Length of the trailing `footer length` and `PAR1`.
const TAIL_BYTES: u64 = 8;

/// Reads the footer, and verifies it where something beside the file tells of it.
pub(crate) fn read(source: &Source, check: Check<'_>) -> Result<ParquetMetaData, FileError> {
    let len = source.len;
    if let Check::Beside { check, stated_in } = check {
        if check.bytes != len {
            let message = format!(
                "the file has {len} bytes where {stated_in} states {}: it is truncated or was rewritten",
                check.bytes
            );
            return Err(source.corrupt("whole file", message));
        }
        let footer = source.read(check.footer_at_byte, len)?;
        if format!("{:08x}", crc32c::crc32c(&footer)) != check.footer_crc32c {
            let place = format!("footer (bytes {} to {len})", check.footer_at_byte);
            let message = format!("checksum does not match {stated_in}: the bytes are damaged");
            return Err(source.corrupt(place, message));
        }
    }
    let corrupt = |message: String| source.corrupt("footer", message);
    let tail_at = len.checked_sub(TAIL_BYTES).ok_or_else(|| corrupt("too short to be a Parquet file".into()))?;
    let tail = source.read(tail_at, len)?;
    if &tail[4..] != b"PAR1" {
        return Err(corrupt("does not end as a Parquet file does (PAR1): truncated, or no Parquet file".into()));
    }
    let footer_len = u64::from(u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]));
    let start = tail_at.checked_sub(footer_len).filter(|_| footer_len <= FOOTER_BYTES_MAX);
    let start = start.ok_or_else(|| corrupt(format!("cannot be {footer_len} bytes long")))?;
    let footer = source.read(start, tail_at)?;
    let elements = schema_elements(&footer).ok_or_else(|| corrupt("does not begin as a Parquet footer does".into()))?;
    if elements > SCHEMA_ELEMENTS_MAX {
        let message = format!("its schema has {elements} elements, where at most {SCHEMA_ELEMENTS_MAX} are read");
        return Err(corrupt(message));
    }
    let metadata = guarded(|| ParquetMetaDataReader::decode_metadata(&footer)).map_err(|e| corrupt(e.to_string()))?;
    check_codecs(source, &metadata)?;
    Ok(metadata)
}

/// Other tools compress what they write anew in ways that we do not read, and the decoder would call the file damaged.
fn check_codecs(source: &Source, metadata: &ParquetMetaData) -> Result<(), FileError> {
    let read = |codec| matches!(codec, Compression::UNCOMPRESSED | Compression::ZSTD(_));
    let chunks = metadata.row_groups().iter().flat_map(|group| group.columns());
    let Some(other) = chunks.into_iter().find(|chunk| !read(chunk.compression())) else { return Ok(()) };
    let codec = other.compression().to_string();
    let codec = codec.split('(').next().unwrap_or_default();
    let message = format!(
        "it is compressed with {codec}, and fsage reads only ZSTD: write the file again with that, or uncompressed"
    );
    Err(FileError::schema(&source.path, &other.column_path().string(), message))
}

/// How many elements the schema of a footer has, before anything is decoded. A footer is a structure in Thrift's
/// compact protocol, and begins with its fields 1, the version, and 2, the list of elements; the decoder takes no list
/// but the first.
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
pub(crate) fn locate_row_groups(
    source: &Source,
    metadata: &ParquetMetaData,
    check: Check<'_>,
) -> Result<Vec<RowGroup>, FileError> {
    let corrupt = |message: &str| source.corrupt("footer", message);
    let text = value(metadata, ROW_GROUPS_KEY);
    let footer_at = match check {
        Check::Beside { check, .. } => Some(check.footer_at_byte),
        Check::Footer => text.map(|_| source.len),
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

/// A pair of the footer.
pub(crate) fn value<'m>(metadata: &'m ParquetMetaData, key: &str) -> Option<&'m str> {
    let pairs = metadata.file_metadata().key_value_metadata()?;
    pairs.iter().find(|kv| kv.key == key)?.value.as_deref()
}

/// The key of a description's checksum.
pub(crate) fn sum_key(key: &str) -> String {
    format!("{key}_crc32c")
}

/// The checksum of a description.
pub(crate) fn sum(text: &str) -> String {
    format!("{:08x}", crc32c::crc32c(text.as_bytes()))
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
        let bytes = chunk_bytes(column)?;
        range = (range.0.min(bytes.start), range.1.max(bytes.end));
    }
    (range.0 <= range.1).then_some(range)
}

/// From the first to the last byte of a column chunk.
pub(crate) fn chunk_bytes(column: &ColumnChunkMetaData) -> Option<Range<u64>> {
    let data = column.data_page_offset();
    let start = column.dictionary_page_offset().map_or(data, |d| d.min(data));
    let start = u64::try_from(start).ok()?;
    Some(start..start.checked_add(u64::try_from(column.compressed_size()).ok()?)?)
}
