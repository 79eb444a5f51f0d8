//! Reading an aging workload.

use super::{FORMAT_VERSION, META_KEY, PlanMeta, columns};
use crate::{AgingError, AgingOp, NodeId, OpKind};
use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{Array, RecordBatch, StringArray};
use serde::Deserialize;
use std::path::Path;
use trace::parquet_file::{Check, ParquetIn};
use trace::profile::{ProfileError, unescape};

/// An open aging workload.
pub struct Reader {
    file: ParquetIn,
    meta: PlanMeta,
}

impl Reader {
    /// Opens a file, and checks its description and columns. Row groups are verified when they are read.
    ///
    /// # Errors
    /// [`AgingError`], naming file and place.
    pub fn open(path: &Path) -> Result<Reader, AgingError> {
        let file = ParquetIn::open(path.to_owned(), Check::Footer, "", |path, found| {
            for field in columns::schema().fields() {
                let schema = |message: String| ProfileError::Schema {
                    path: path.to_owned(),
                    column: field.name().clone(),
                    message,
                };
                let have = found.field_with_name(field.name());
                let have = have.map_err(|_| schema("not in the file: no aging workload".into()))?;
                if have.data_type() != field.data_type() {
                    return Err(schema(format!("is {} instead of {}", have.data_type(), field.data_type())));
                }
            }
            Ok(found.clone())
        })?;
        let meta = read_meta(path, &file)?;
        if meta.counts.operations != file.rows() {
            let message = format!("{} rows where the description states {}", file.rows(), meta.counts.operations);
            return Err(AgingError::corrupt(path, "footer", message));
        }
        Ok(Reader { file, meta })
    }

    /// The description.
    pub fn meta(&self) -> &PlanMeta {
        &self.meta
    }

    /// The file's name.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// The operations from number `first` (from 0) on, in order, in batches of at most a row group.
    pub fn batches(&self, first: u64) -> Batches<'_> {
        let ends_before = |g: &usize| self.file.row_range(*g).is_some_and(|(at, rows)| at + rows as u64 <= first);
        let group = (0..self.file.row_groups()).take_while(ends_before).count();
        Batches { reader: self, group, first }
    }
}

fn read_meta(path: &Path, file: &ParquetIn) -> Result<PlanMeta, AgingError> {
    #[derive(Deserialize)]
    struct Versioned {
        version: u32,
    }
    let bad = |message: String| AgingError::corrupt(path, format!("footer, {META_KEY}"), message);
    let text = file.key_value(META_KEY).ok_or_else(|| bad("missing: no aging workload of fsage's".into()))?;
    let Versioned { version } = serde_json::from_str(text).map_err(|e| bad(e.to_string()))?;
    if version != FORMAT_VERSION {
        return Err(AgingError::Version { path: path.to_owned(), found: version, supported: FORMAT_VERSION });
    }
    serde_json::from_str(text).map_err(|e| bad(e.to_string()))
}

/// Operations in order, a row group at a time.
pub struct Batches<'a> {
    reader: &'a Reader,
    group: usize,
    first: u64,
}

impl Iterator for Batches<'_> {
    type Item = Result<Vec<AgingOp>, AgingError>;

    fn next(&mut self) -> Option<Self::Item> {
        let file = &self.reader.file;
        let (at, rows) = file.row_range(self.group)?;
        let mut ops = Vec::with_capacity(rows);
        let mut failed = None;
        let read = file.read_row_group(self.group, &columns::ALL, |batch| {
            decode(file.path(), batch, at + ops.len() as u64, &mut ops).unwrap_or_else(|e| failed = Some(e));
            Ok(())
        });
        // After a failure there is nothing more to come.
        self.group = if read.is_err() || failed.is_some() { file.row_groups() } else { self.group + 1 };
        if let Some(error) = failed.or(read.err().map(AgingError::from)) {
            return Some(Err(error));
        }
        let skip = usize::try_from(self.first.saturating_sub(at)).unwrap_or(usize::MAX).min(ops.len());
        ops.drain(..skip);
        Some(Ok(ops))
    }
}

fn decode(path: &Path, batch: &RecordBatch, first_row: u64, out: &mut Vec<AgingOp>) -> Result<(), AgingError> {
    let place = |row: usize, column: &str| format!("row {}, column {column}", first_row + row as u64);
    let missing = |name: &str| AgingError::corrupt(path, format!("column {name}"), "missing or of another type");
    let no_nulls =
        |name: &str, array: &dyn Array| match (0..array.len()).find(|&i| array.null_count() > 0 && array.is_null(i)) {
            None => Ok(()),
            Some(i) => Err(AgingError::corrupt(path, place(i, name), "is null, which only name may be")),
        };
    let numbers = |name: &'static str| {
        let array = batch.column_by_name(name).and_then(|a| a.as_primitive_opt::<UInt64Type>());
        let array = array.ok_or_else(|| missing(name))?;
        no_nulls(name, array)?;
        Ok::<_, AgingError>(array.values())
    };
    let text = |name: &'static str| -> Result<&StringArray, AgingError> {
        batch.column_by_name(name).and_then(|a| a.as_string_opt::<i32>()).ok_or_else(|| missing(name))
    };
    let (times, files, dirs) = (numbers(columns::T_NS)?, numbers(columns::FILE_ID)?, numbers(columns::DIR_ID)?);
    let (offsets, sizes) = (numbers(columns::OFFSET)?, numbers(columns::SIZE)?);
    let (kinds, names) = (text(columns::OP)?, text(columns::NAME)?);
    no_nulls(columns::OP, kinds)?;
    for row in 0..batch.num_rows() {
        let kind = OpKind::from_name(kinds.value(row));
        let unknown = || AgingError::corrupt(path, place(row, columns::OP), format!("unknown {:?}", kinds.value(row)));
        let name = if names.is_null(row) { None } else { Some(component(path, &place, row, names.value(row))?) };
        out.push(AgingOp {
            t_ns: times[row],
            kind: kind.ok_or_else(unknown)?,
            node: NodeId(files[row]),
            dir: NodeId(dirs[row]),
            name,
            offset_bytes: offsets[row],
            size_bytes: sizes[row],
        });
    }
    Ok(())
}

/// A name must be one component: it is joined to a directory of ours, and must not lead out of it.
fn component(
    path: &Path,
    place: &dyn Fn(usize, &str) -> String,
    row: usize,
    text: &str,
) -> Result<Box<[u8]>, AgingError> {
    let bad = |message: String| AgingError::corrupt(path, place(row, columns::NAME), message);
    let bytes = unescape(text.as_bytes()).map_err(|e| bad(format!("{e} in {text:?}")))?;
    match &bytes[..] {
        b"" | b"." | b".." => Err(bad(format!("{text:?} is no name"))),
        b if b.contains(&b'/') || b.contains(&0) => Err(bad(format!("{text:?} is not one component of a path"))),
        b if b.len() > 255 => Err(bad(format!("{} bytes are longer than a name may be (255)", b.len()))),
        b => Ok(b.into()),
    }
}
