//! Parquet files of any rows, with sound checksums: what the targets of formats behind checksums share.

#![allow(dead_code)] // Each target uses its part.

use crate::documents::number;
use arrow_array::{
    ArrayRef, Int64Array, ListArray, RecordBatch, StringArray, StructArray, UInt8Array, UInt16Array, UInt32Array,
    UInt64Array,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field, Schema};
use columnar::{FileCheck, ParquetOut, properties};
use libfuzzer_sys::arbitrary::{Result, Unstructured};
use std::path::Path;
use std::sync::Arc;

/// A column: its name, its type, whether it may have nulls, and the words that text is mostly drawn from.
pub type Column = (&'static str, DataType, bool, &'static [&'static str]);

fn nulls<T>(
    nullable: bool,
    u: &mut Unstructured<'_>,
    value: impl FnOnce(&mut Unstructured<'_>) -> Result<T>,
) -> Result<Option<T>> {
    if nullable && u.ratio(1, 4)? { Ok(None) } else { value(u).map(Some) }
}

/// Mostly small numbers: ids and times that meet.
fn small(u: &mut Unstructured<'_>) -> Result<u64> {
    if u.ratio(7, 8)? { u.int_in_range(0..=9) } else { number(u) }
}

fn text(words: &'static [&'static str], u: &mut Unstructured<'_>) -> Result<String> {
    if !words.is_empty() && u.ratio(15, 16)? {
        return Ok((*u.choose(words)?).to_owned());
    }
    Ok(u.arbitrary::<&str>()?.chars().take(300).collect())
}

fn array(column: &Column, rows: usize, u: &mut Unstructured<'_>) -> Result<ArrayRef> {
    let (_, kind, nullable, words) = column;
    let mut numbers = Vec::with_capacity(rows);
    Ok(match kind {
        DataType::Utf8 => {
            let values = (0..rows).map(|_| nulls(*nullable, u, |u| text(words, u)));
            Arc::new(values.collect::<Result<StringArray>>()?)
        }
        DataType::List(item) => {
            let DataType::Struct(fields) = item.data_type() else {
                unreachable!("lists of structures are the only ones")
            };
            let lengths = (0..rows).map(|_| u.int_in_range(0..=3)).collect::<Result<Vec<usize>>>()?;
            let nulls = (0..rows).map(|_| Ok(!*nullable || u.ratio(3, 4)?)).collect::<Result<Vec<bool>>>()?;
            let values = lengths.iter().sum();
            let columns = fields.iter().enumerate().map(|(i, field)| {
                // A null within a list is refused; it is rare, that something else is found too.
                let may = field.is_nullable() && u.ratio(1, 16)?;
                let words = if i == 0 { words } else { &[][..] };
                array(&("", field.data_type().clone(), may, words), values, u)
            });
            let columns = columns.collect::<Result<Vec<_>>>()?;
            let structs =
                StructArray::try_new_with_length(fields.clone(), columns, None, values).expect("equal columns");
            let (offsets, nulls) = (OffsetBuffer::from_lengths(lengths), NullBuffer::from(nulls));
            Arc::new(ListArray::new(Arc::clone(item), offsets, Arc::new(structs), nullable.then_some(nulls)))
        }
        _ => {
            // Columns that are one number are as likely as columns of many.
            let same = u.arbitrary::<bool>()?.then(|| small(u)).transpose()?;
            for row in 0..rows {
                let rises_by = match words.first() {
                    Some(&"rising") => 1,
                    Some(&"far apart") => 16,
                    _ => 0,
                };
                numbers.push(nulls(*nullable, u, |u| match same {
                    _ if rises_by > 0 && u.ratio(15, 16)? => Ok(row as u64 * rises_by),
                    Some(n) => Ok(n),
                    None => small(u),
                })?);
            }
            match kind {
                DataType::UInt8 => Arc::new(numbers.iter().map(|n| n.map(|n| n as u8)).collect::<UInt8Array>()),
                DataType::UInt16 => Arc::new(numbers.iter().map(|n| n.map(|n| n as u16)).collect::<UInt16Array>()),
                DataType::UInt32 => Arc::new(numbers.iter().map(|n| n.map(|n| n as u32)).collect::<UInt32Array>()),
                DataType::Int64 => Arc::new(numbers.iter().map(|n| n.map(|n| n as i64)).collect::<Int64Array>()),
                _ => Arc::new(numbers.into_iter().collect::<UInt64Array>()),
            }
        }
    })
}

/// Writes a file of up to so many rows, in up to three row groups, with pairs in its footer. Answers the rows and what
/// checks it.
pub fn write(
    path: &Path,
    columns: &[Column],
    rows_max: usize,
    u: &mut Unstructured<'_>,
    pairs: impl FnOnce(&[RecordBatch], &mut Unstructured<'_>) -> Vec<(String, String)>,
) -> Result<(Vec<RecordBatch>, FileCheck)> {
    let _ = std::fs::remove_file(path);
    let field = |(name, kind, nullable, _): &Column| Field::new(*name, kind.clone(), *nullable);
    let schema = Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()));
    let mut batches = Vec::new();
    for _ in 0..u.int_in_range(1..=3)? {
        let rows = u.int_in_range(1..=rows_max)?;
        let arrays = columns.iter().map(|column| array(column, rows, u)).collect::<Result<Vec<_>>>()?;
        batches.push(RecordBatch::try_new(Arc::clone(&schema), arrays).expect("equal columns"));
    }
    let mut out = ParquetOut::create(path.to_owned(), schema, properties().build()).expect("a new file");
    for batch in &batches {
        out.write(batch).expect("space");
        out.end_row_group().expect("space");
    }
    for (key, value) in pairs(&batches, u) {
        out.key_value(&key, value);
    }
    Ok((batches, out.finish().expect("space")))
}
