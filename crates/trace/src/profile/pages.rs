//! The trace's columns as Parquet's pages.
//!
//! A column is gathered as plain numbers while its row group grows and is encoded in one go at the end. The Parquet
//! library's own column writers take any type and stream, at several passes and one look into a hash table for each
//! value: four tenths of the time of an import went there. What lives here: the encodings (parquet-format,
//! `Encodings.md`) and the pages of one column. What may not: which columns there are ([`super::encode`]).

use super::{escape, no_path};
use crate::{PathId, Paths};
use bytes::Bytes;
use parquet::basic::{Compression, Encoding, EncodingMask, Type, ZstdLevel};
use parquet::column::page::{CompressedPage, Page, PageWriteSpec, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::writer::{SerializedPageWriter, SerializedRowGroupWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;
use rustc_hash::FxHashMap;
use std::io::Write;

/// How a column's values are stored.
#[derive(Debug)]
pub(super) enum Store {
    /// Times, and numbers given in order: as differences.
    Differences,
    /// Numbers that come again: as places in a dictionary, unless it turns out that they do not.
    Numbers,
    /// Texts: as places in a dictionary.
    Texts(Texts),
}

/// One column of the row group in progress.
#[derive(Debug)]
pub(super) struct Column {
    store: Store,
    rows: usize,
    /// The values that are there.
    values: Vec<u64>,
    /// Which rows have one, a bit each, for a column that can be null.
    present: Option<Vec<u8>>,
}

/// The texts of a column in the row group in progress.
#[derive(Debug, Default)]
pub(super) struct Texts {
    paths: Paths,
    /// Places in the dictionary of the texts of the batch at hand.
    of_batch: Vec<Option<Option<u32>>>,
    bytes: usize,
}

impl Column {
    pub fn required(store: Store) -> Column {
        Column { store, rows: 0, values: Vec::new(), present: None }
    }

    pub fn optional(store: Store) -> Column {
        Column { present: Some(Vec::new()), ..Column::required(store) }
    }

    /// Adds a row for each number of a column that is never null.
    pub fn add(&mut self, numbers: impl ExactSizeIterator<Item = u64>) {
        debug_assert!(self.present.is_none(), "a column that is never null");
        self.rows += numbers.len();
        self.values.extend(numbers);
    }

    /// Adds a row for each number.
    pub fn add_optional(&mut self, numbers: impl ExactSizeIterator<Item = Option<u64>>) {
        let Some(present) = &mut self.present else { unreachable!("a column that can be null") };
        let filled = self.values.len();
        self.values.resize(filled + numbers.len(), 0);
        let (mut at, mut bit) = (filled, self.rows % 8);
        let mut byte = if bit == 0 { 0 } else { present.pop().expect("rows of a byte that is not full") };
        self.rows += numbers.len();
        for number in numbers {
            // Every number is put down; one that is not there is written over by the next.
            self.values[at] = number.unwrap_or(0);
            at += usize::from(number.is_some());
            byte |= u8::from(number.is_some()) << bit;
            bit += 1;
            if bit == 8 {
                present.push(byte);
                (byte, bit) = (0, 0);
            }
        }
        if bit > 0 {
            present.push(byte);
        }
        self.values.truncate(at);
    }

    /// Adds a row for each path of a batch.
    pub fn add_texts(&mut self, texts: impl ExactSizeIterator<Item = Option<PathId>>, paths: &Paths) {
        let mut store = std::mem::replace(&mut self.store, Store::Numbers);
        if let Store::Texts(dictionary) = &mut store {
            dictionary.of_batch.resize(paths.len(), None);
            let mut place = |id: Option<PathId>| dictionary.place(id?, paths).map(u64::from);
            match self.present {
                Some(_) => self.add_optional(texts.map(place)),
                None => self.add(texts.map(|id| place(id).expect("a text in a column that is never null"))),
            }
        }
        self.store = store;
    }

    /// The ids of paths are those of another batch from here on.
    pub fn begin_batch(&mut self) {
        if let Store::Texts(texts) = &mut self.store {
            texts.of_batch.clear();
        }
    }

    /// What it takes in memory, about.
    pub fn bytes(&self) -> usize {
        let texts = if let Store::Texts(texts) = &self.store { texts.bytes } else { 0 };
        self.values.len() * size_of::<u64>() + texts
    }

    fn clear(&mut self) {
        self.rows = 0;
        self.values.clear();
        if let Some(present) = &mut self.present {
            present.clear();
        }
        if let Store::Texts(texts) = &mut self.store {
            texts.paths.clear();
            texts.of_batch.clear();
            texts.bytes = 0;
        }
    }
}

impl Texts {
    #[inline]
    fn place(&mut self, id: PathId, paths: &Paths) -> Option<u32> {
        let Some(known) = self.of_batch.get_mut(id.0 as usize) else {
            unreachable!("the id of a path of another batch")
        };
        *known.get_or_insert_with(|| {
            let text = paths.get(id);
            // What no file can have for a path is none: the reader would refuse it.
            if no_path(text).is_some() {
                return None;
            }
            let before = self.paths.len();
            let place = self.paths.intern(text);
            self.bytes += if self.paths.len() > before { text.len() } else { 0 };
            Some(place.0)
        })
    }
}

/// What writing columns needs again and again.
pub(super) struct Encoder {
    zstd: zstd::bulk::Compressor<'static>,
    places: FxHashMap<u64, u32>,
    /// The dictionary's numbers, in the order of their places.
    numbers: Vec<u64>,
    /// Each value's place in the dictionary.
    indices: Vec<u64>,
}

impl Encoder {
    pub fn new() -> std::io::Result<Encoder> {
        let zstd = zstd::bulk::Compressor::new(ZstdLevel::default().compression_level())?;
        Ok(Encoder { zstd, places: FxHashMap::default(), numbers: Vec::new(), indices: Vec::new() })
    }

    /// Writes a column's chunk as the next of a row group, and empties the column.
    pub fn write<W: Write + Send>(
        &mut self,
        column: &mut Column,
        descr: &ColumnDescPtr,
        group: &mut SerializedRowGroupWriter<'_, W>,
    ) -> Result<(), ParquetError> {
        let mut page = Vec::new();
        if let Some(present) = &column.present {
            let mut levels = Vec::new();
            put_bits(present, column.rows, &mut levels);
            page.extend_from_slice(&length(levels.len())?.to_le_bytes());
            page.append(&mut levels);
        }
        let narrow = descr.physical_type() == Type::INT32;
        let (encoding, dictionary) = self.encode(column, narrow, &mut page)?;

        let mut sink = TrackedWrite::new(Vec::new());
        let mut pages = SerializedPageWriter::new(&mut sink);
        let mut chunk = Chunk::default();
        if let Some((plain, entries)) = dictionary {
            let buf = self.compress(&plain)?;
            let num_values = length(entries)?;
            let dictionary = Page::DictionaryPage { buf, num_values, encoding: Encoding::PLAIN, is_sorted: false };
            let spec = pages.write_page(CompressedPage::new(dictionary, plain.len()))?;
            chunk.dictionary_at = Some(chunk.note(&spec)?);
        }
        let data = Page::DataPage {
            buf: self.compress(&page)?,
            num_values: length(column.rows)?,
            encoding,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        let spec = pages.write_page(CompressedPage::new(data, page.len()))?;
        chunk.data_at = chunk.note(&spec)?;
        pages.close()?;
        let bytes = Bytes::from(sink.into_inner()?);
        let rows = column.rows;
        column.clear();
        group.append_column(&bytes, chunk.close(descr, rows, encoding)?)
    }

    /// Puts the values behind the levels; gives the encoding and, with a dictionary, its page and how many entries it
    /// has.
    #[allow(clippy::type_complexity)]
    fn encode(
        &mut self,
        column: &Column,
        narrow: bool,
        page: &mut Vec<u8>,
    ) -> Result<(Encoding, Option<(Vec<u8>, usize)>), ParquetError> {
        if let Store::Texts(texts) = &column.store {
            put_indices(&column.values, texts.paths.len(), page);
            return Ok((Encoding::RLE_DICTIONARY, Some((plain_texts(&texts.paths)?, texts.paths.len()))));
        }
        if column.values.is_empty() {
            return Ok((Encoding::PLAIN, None));
        }
        let different = matches!(column.store, Store::Differences) || !self.find_repeated(&column.values, narrow);
        if different {
            debug_assert!(!narrow, "differences of 32 bits would be another format");
            put_differences(&column.values, page);
            return Ok((Encoding::DELTA_BINARY_PACKED, None));
        }
        put_indices(&self.indices, self.numbers.len(), page);
        let mut plain = Vec::with_capacity(self.numbers.len() * size_of::<u64>());
        for number in &self.numbers {
            let bytes = number.to_le_bytes();
            plain.extend_from_slice(if narrow { &bytes[..4] } else { &bytes });
        }
        Ok((Encoding::RLE_DICTIONARY, Some((plain, self.numbers.len()))))
    }

    /// Finds each value's place in a dictionary of all; `false` if it would not be worth it. Narrow columns always have
    /// one.
    fn find_repeated(&mut self, values: &[u64], narrow: bool) -> bool {
        self.places.clear();
        self.numbers.clear();
        self.indices.clear();
        let most = if narrow { values.len() } else { values.len() / 2 + 64 };
        let mut last = None;
        for &value in values {
            let place = match last {
                Some((same, place)) if same == value => place,
                _ => *self.places.entry(value).or_insert_with(|| {
                    self.numbers.push(value);
                    u32::try_from(self.numbers.len() - 1).unwrap_or(u32::MAX)
                }),
            };
            last = Some((value, place));
            self.indices.push(u64::from(place));
            if self.numbers.len() > most {
                return false;
            }
        }
        true
    }

    fn compress(&mut self, page: &[u8]) -> Result<Bytes, ParquetError> {
        Ok(self.zstd.compress(page)?.into())
    }
}

/// What the footer says of a column's chunk.
#[derive(Default)]
struct Chunk {
    dictionary_at: Option<i64>,
    data_at: i64,
    compressed: i64,
    uncompressed: i64,
}

impl Chunk {
    /// Counts a page; gives its place.
    fn note(&mut self, page: &PageWriteSpec) -> Result<i64, ParquetError> {
        let number = |n: usize| i64::try_from(n).map_err(|e| ParquetError::External(Box::new(e)));
        self.compressed += number(page.compressed_size)?;
        self.uncompressed += number(page.uncompressed_size)?;
        i64::try_from(page.offset).map_err(|e| ParquetError::External(Box::new(e)))
    }

    fn close(self, descr: &ColumnDescPtr, rows: usize, encoding: Encoding) -> Result<ColumnCloseResult, ParquetError> {
        let mut encodings = vec![Encoding::RLE, encoding];
        if self.dictionary_at.is_some() {
            encodings.push(Encoding::PLAIN);
        }
        let metadata = ColumnChunkMetaData::builder(descr.clone())
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_encodings_mask(EncodingMask::new_from_encodings(encodings.iter()))
            .set_total_compressed_size(self.compressed)
            .set_total_uncompressed_size(self.uncompressed)
            .set_num_values(i64::from(length(rows)?))
            .set_dictionary_page_offset(self.dictionary_at)
            .set_data_page_offset(self.data_at)
            .build()?;
        Ok(ColumnCloseResult {
            bytes_written: self.compressed.unsigned_abs(),
            rows_written: u64::from(length(rows)?),
            metadata,
            bloom_filter: None,
            column_index: None,
            offset_index: None,
        })
    }
}

fn length(n: usize) -> Result<u32, ParquetError> {
    u32::try_from(n).map_err(|_| ParquetError::General("a page of more than 4 GiB".into()))
}

/// Texts as `PLAIN` has them: the length in four bytes, then the text.
fn plain_texts(paths: &Paths) -> Result<Vec<u8>, ParquetError> {
    let mut plain = Vec::new();
    for id in 0..length(paths.len())? {
        let text = escape(paths.get(PathId(id)));
        plain.extend_from_slice(&length(text.len())?.to_le_bytes());
        plain.extend_from_slice(text.as_bytes());
    }
    Ok(plain)
}

/// Places in a dictionary of so many entries: the width in bits, then runs.
fn put_indices(indices: &[u64], entries: usize, out: &mut Vec<u8>) {
    let width = usize::BITS - entries.saturating_sub(1).leading_zeros();
    let width = width.max(1);
    out.extend_from_slice(&width.to_le_bytes()[..1]);
    // Literal values are written in eights; so `literal..at` is whole eights but at the end.
    let (mut literal, mut at) = (0, 0);
    while at < indices.len() {
        let rest = &indices[at..];
        let run = rest.iter().take_while(|&&index| index == rest[0]).count();
        if run >= 8 {
            put_literals(&indices[literal..at], width, out);
            put_varint((run as u64) << 1, out);
            out.extend_from_slice(&rest[0].to_le_bytes()[..width.div_ceil(8) as usize]);
            at += run;
            literal = at;
        } else {
            at += 8.min(rest.len());
        }
    }
    put_literals(&indices[literal..], width, out);
}

fn put_literals(values: &[u64], width: u32, out: &mut Vec<u8>) {
    let eights = values.len().div_ceil(8);
    if eights > 0 {
        put_varint(((eights as u64) << 1) | 1, out);
        pack(values.iter().copied(), eights * 8, width, out);
    }
}

/// Bits, the first eight in the first byte: runs of a single bit each.
fn put_bits(bits: &[u8], count: usize, out: &mut Vec<u8>) {
    let whole = count / 8;
    let (mut literal, mut at) = (0, 0);
    let literals = |from: usize, to: usize, out: &mut Vec<u8>| {
        if from < to {
            put_varint((((to - from) as u64) << 1) | 1, out);
            out.extend_from_slice(&bits[from..to]);
        }
    };
    while at < whole {
        // Only of these bytes are runs written. To count alike ones of another value takes quadratic time.
        let alike = |byte: &&u8| **byte == bits[at] && matches!(byte, 0 | 0xff);
        let run = bits[at..whole].iter().take_while(alike).count();
        if run >= 2 {
            literals(literal, at, out);
            put_varint((run as u64 * 8) << 1, out);
            out.push(bits[at] & 1);
            at += run;
            literal = at;
        } else {
            at += 1;
        }
    }
    literals(literal, bits.len(), out);
}

/// Values of a miniblock, and of a block.
const MINI: usize = 32;
const BLOCK: usize = 4 * MINI;

/// `DELTA_BINARY_PACKED` of numbers of 64 bits.
fn put_differences(values: &[u64], out: &mut Vec<u8>) {
    put_varint(BLOCK as u64, out);
    put_varint((BLOCK / MINI) as u64, out);
    put_varint(values.len() as u64, out);
    let first = values.first().copied().unwrap_or(0);
    put_zigzag(first.cast_signed(), out);
    let mut last = first;
    for block in values.get(1..).unwrap_or_default().chunks(BLOCK) {
        let mut differences = [0i64; BLOCK];
        for (difference, &value) in differences.iter_mut().zip(block) {
            *difference = value.wrapping_sub(last).cast_signed();
            last = value;
        }
        let differences = &differences[..block.len()];
        let least = differences.iter().copied().min().unwrap_or(0);
        put_zigzag(least, out);
        let above = |difference: i64| difference.wrapping_sub(least).cast_unsigned();
        let width = |mini: &[i64]| 64 - mini.iter().fold(0, |all, &d| all | above(d)).leading_zeros();
        let mut widths = [0; BLOCK / MINI];
        for (width_of, mini) in widths.iter_mut().zip(differences.chunks(MINI)) {
            *width_of = width(mini);
        }
        out.extend(widths.iter().map(|width| width.to_le_bytes()[0]));
        for (&width, mini) in widths.iter().zip(differences.chunks(MINI)) {
            pack(mini.iter().map(|&d| above(d)), MINI, width, out);
        }
    }
}

/// Numbers of `width` bits each, the lowest bit first; zeros make them `count`, which is whole bytes.
fn pack(numbers: impl Iterator<Item = u64>, count: usize, width: u32, out: &mut Vec<u8>) {
    let end = out.len() + count * width as usize / 8;
    let (mut gathered, mut bits) = (0u64, 0);
    for number in numbers {
        gathered |= number << bits;
        let end = bits + width;
        if end >= 64 {
            out.extend_from_slice(&gathered.to_le_bytes());
            // What had no room; nothing where the number began the word.
            gathered = number.checked_shr(64 - bits).unwrap_or(0);
        }
        bits = end % 64;
    }
    out.extend_from_slice(&gathered.to_le_bytes()[..bits.div_ceil(8) as usize]);
    out.resize(end, 0);
}

fn put_varint(mut n: u64, out: &mut Vec<u8>) {
    while n >= 0x80 {
        out.push(n.to_le_bytes()[0] | 0x80);
        n >>= 7;
    }
    out.push(n.to_le_bytes()[0]);
}

fn put_zigzag(n: i64, out: &mut Vec<u8>) {
    put_varint(((n << 1) ^ (n >> 63)).cast_unsigned(), out);
}

#[cfg(test)]
mod tests {
    //! The Parquet library's own reader says what is in the pages.

    use super::*;
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Int64Type, UInt32Type, UInt64Type};
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    use parquet::file::properties::WriterProperties;
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;
    use proptest::prelude::*;
    use std::sync::Arc;

    /// A file with one column; each of the row groups is what `fill` puts into the column, which is used again.
    fn file(kind: &str, column: &mut Column, groups: usize, mut fill: impl FnMut(&mut Column, usize)) -> Bytes {
        let schema = Arc::new(parse_message_type(&format!("message m {{ {kind}; }}")).unwrap());
        let properties = WriterProperties::builder().set_offset_index_disabled(true).build();
        let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties)).unwrap();
        let descr = writer.schema_descr().column(0);
        let mut encoder = Encoder::new().unwrap();
        for i in 0..groups {
            fill(column, i);
            let mut group = writer.next_row_group().unwrap();
            encoder.write(column, &descr, &mut group).unwrap();
            group.close().unwrap();
        }
        writer.into_inner().unwrap().into()
    }

    fn read<T>(file: Bytes, rows_of: impl Fn(&dyn arrow_array::Array) -> Vec<T>) -> Vec<T> {
        let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap().with_batch_size(1000).build().unwrap();
        reader.flat_map(|batch| rows_of(batch.unwrap().column(0).as_ref())).collect()
    }

    fn optional(numbers: &[Option<u64>], store: Store) {
        let mut column = Column::optional(store);
        // In stretches, as events come; twice, as row groups come.
        let file = file("optional int64 x (INTEGER(64,false))", &mut column, 2, |column, _| {
            numbers.chunks(13).for_each(|part| column.add_optional(part.iter().copied()));
        });
        let read = read(file, |array| array.as_primitive::<UInt64Type>().iter().collect());
        assert_eq!(read, [numbers, numbers].concat());
    }

    fn required(numbers: &[u64], store: Store) {
        let mut column = Column::required(store);
        let file = file("required int64 x", &mut column, 1, |column, _| column.add(numbers.iter().copied()));
        let read = read(file, |array| array.as_primitive::<Int64Type>().values().to_vec());
        assert_eq!(read, numbers.iter().map(|n| n.cast_signed()).collect::<Vec<_>>());
    }

    fn narrow(numbers: &[u32]) {
        let mut column = Column::required(Store::Numbers);
        let file = file("required int32 x (INTEGER(32,false))", &mut column, 1, |column, _| {
            column.add(numbers.iter().map(|&n| n.into()));
        });
        assert_eq!(read(file, |array| array.as_primitive::<UInt32Type>().values().to_vec()), numbers);
    }

    /// Numbers as columns have them: few or many different ones, in runs, of any size.
    fn numbers() -> impl Strategy<Value = Vec<u64>> {
        let number = prop_oneof![0..4u64, 0..1000u64, any::<u64>(), Just(u64::MAX), Just(1 << 63), Just((1 << 63) - 1)];
        let run = prop_oneof![1..3usize, 7..10usize, 1..300usize];
        prop::collection::vec((number, run), 0..60)
            .prop_map(|runs| runs.into_iter().flat_map(|(n, run)| std::iter::repeat_n(n, run)).collect())
    }

    proptest! {
        #[test]
        fn numbers_come_back(numbers in numbers(),
            nulls in prop::collection::vec((any::<bool>(), 1..200usize), 1..20)) {
            required(&numbers, Store::Differences);
            required(&numbers, Store::Numbers);
            narrow(&numbers.iter().map(|&n| u32::try_from(n % (1 << 32)).unwrap()).collect::<Vec<_>>());
            let is_null = nulls.iter().flat_map(|&(null, run)| std::iter::repeat_n(null, run)).cycle();
            let numbers: Vec<_> = numbers.into_iter().zip(is_null).map(|(n, null)| (!null).then_some(n)).collect();
            optional(&numbers, Store::Differences);
            optional(&numbers, Store::Numbers);
        }

        #[test]
        fn texts_come_back(batches in prop::collection::vec(prop::collection::vec(prop::option::of("[a-c\\\\é]{0,3}"),
            0..80), 1..6)) {
            let mut column = Column::optional(Store::Texts(Texts::default()));
            let file = file("optional binary x (STRING)", &mut column, 2, |column, group| {
                for batch in &batches[group.min(batches.len() - 1)..] {
                    let mut paths = Paths::default();
                    let mut intern = |text: &String| paths.intern(text.as_bytes());
                    let ids: Vec<_> = batch.iter().map(|text| text.as_ref().map(&mut intern)).collect();
                    column.begin_batch();
                    ids.chunks(7).for_each(|part| column.add_texts(part.iter().copied(), &paths));
                }
            });
            let read = read(file, |array| array.as_string::<i32>().iter().map(|t| t.map(str::to_owned)).collect());
            let want = |text: &Option<String>| text.as_ref().map(|t| escape(t.as_bytes()).into_owned());
            let from = 1.min(batches.len() - 1);
            prop_assert_eq!(read, batches.iter().chain(&batches[from..]).flatten().map(want).collect::<Vec<_>>());
        }
    }

    #[test]
    fn lengths_around_blocks_and_eights() {
        for len in [0, 1, 2, 7, 8, 9, 31, 32, 33, 127, 128, 129, 130, 257, 70_000] {
            let growing: Vec<u64> = (0..len).map(|i| i * i).collect();
            required(&growing, Store::Differences);
            required(&growing, Store::Numbers);
            required(&vec![7; growing.len()], Store::Numbers);
            optional(&growing.iter().map(|&n| Some(n).filter(|n| n % 3 != 0)).collect::<Vec<_>>(), Store::Numbers);
            optional(&vec![None; growing.len()], Store::Numbers);
            optional(&vec![None; growing.len()], Store::Differences);
        }
        required(&[0, u64::MAX, 0, 1 << 63, (1 << 63) - 1, u64::MAX], Store::Differences);
    }
}
