//! Arrow arrays to events: the other direction of [`super::encode`], and the inner loop of everything that reads.

use super::columns::{PATH_COLUMNS, dictionary_type, trace_fields};
use super::row::Fields;
use super::values::Values;
use super::{no_path, unescape};
use crate::{Batch, Event, FileId, Head, OfdId, Op, PathId};
use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Int32Type, Int64Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{Array, DictionaryArray, PrimitiveArray, StringArray};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Field, Schema};
use columnar::{Columns, FileError};
use posix::Errno;
use rustc_hash::FxHashMap;
use std::path::Path;

/// The schema to decode a trace to: the format's columns with dictionaries kept, others as the file has them.
pub(super) fn trace_schema(path: &Path, found: &Schema) -> Result<Schema, FileError> {
    let wanted = trace_fields();
    for field in &wanted {
        let Ok(have) = found.field_with_name(field.name()) else {
            return Err(FileError::schema(path, field.name(), "not in the file"));
        };
        let stored = if *field.data_type() == dictionary_type() { &DataType::Utf8 } else { field.data_type() };
        if have.data_type() != stored {
            return Err(FileError::schema(path, field.name(), format!("is {} instead of {stored}", have.data_type())));
        }
    }
    let decoded = found.fields().iter().map(|have| match wanted.iter().find(|w| w.name() == have.name()) {
        Some(w) => Field::new(w.name(), w.data_type().clone(), have.is_nullable()),
        None => have.as_ref().clone(),
    });
    Ok(Schema::new(decoded.collect::<Vec<_>>()))
}

/// Appends the rows of a record batch to `out`.
pub(super) fn append(columns: &Columns<'_>, out: &mut Batch) -> Result<(), FileError> {
    let seq = columns.numbers::<UInt64Type>("seq")?;
    let t_ns = columns.numbers::<UInt64Type>("t_ns")?;
    let dur_ns = columns.numbers::<UInt64Type>("dur_ns")?;
    let pid = columns.numbers::<UInt32Type>("pid")?;
    let tid = columns.numbers::<UInt32Type>("tid")?;
    let ops = Ops::of(columns)?;
    let ofd = optional::<UInt64Type>(columns, "ofd_id")?;
    let ofd2 = optional::<UInt64Type>(columns, "ofd_id2")?;
    let file = optional::<UInt64Type>(columns, "file_id")?;
    let parent = optional::<UInt64Type>(columns, "parent_id")?;
    let offset = optional::<UInt64Type>(columns, "offset")?;
    let offset2 = optional::<UInt64Type>(columns, "offset2")?;
    let req_bytes = optional::<UInt64Type>(columns, "req_bytes")?;
    let ret = columns.numbers::<Int64Type>("ret")?;
    let errno = columns.numbers::<UInt16Type>("errno")?;
    let flags = columns.numbers::<UInt32Type>("flags")?;
    let mode = optional::<UInt16Type>(columns, "mode")?;
    let size_before = optional::<UInt64Type>(columns, "size_before")?;
    let running = optional::<UInt64Type>(columns, "running_ns")?;
    let blocked = optional::<UInt64Type>(columns, "blocked_ns")?;
    let [paths, paths2, caller_dirs, caller_dirs2] = paths(columns, out)?;

    let rows = columns.rows();
    out.events.reserve(rows);
    // Slices of equal length let the bounds checks of the loop below fall away.
    let (seq, t_ns, dur_ns) = (&seq[..rows], &t_ns[..rows], &dur_ns[..rows]);
    let (pid, tid, ret, errno, flags) = (&pid[..rows], &tid[..rows], &ret[..rows], &errno[..rows], &flags[..rows]);
    let values = CallColumns {
        ops,
        ofd,
        ofd2,
        file,
        parent,
        paths,
        paths2,
        caller_dirs,
        caller_dirs2,
        offset,
        offset2,
        req_bytes,
        mode,
        size_before,
    };
    for i in 0..rows {
        let head = Head {
            seq: seq[i],
            t_ns: t_ns[i],
            dur_ns: dur_ns[i],
            pid: pid[i],
            tid: tid[i],
            flags: flags[i],
            errno: (errno[i] != 0).then_some(Errno(errno[i])),
            ret: ret[i],
            running_ns: running.get(i),
            blocked_ns: blocked.get(i),
        };
        let call = At { columns: &values, row: i, op: values.ops.get(i)? }.call();
        out.events.push(Event { head, call });
    }
    check_order(columns, seq)
}

/// The columns that calls are made of.
struct CallColumns<'a> {
    ops: Ops<'a>,
    ofd: Optional<'a, UInt64Type>,
    ofd2: Optional<'a, UInt64Type>,
    file: Optional<'a, UInt64Type>,
    parent: Optional<'a, UInt64Type>,
    paths: PathColumn<'a>,
    paths2: PathColumn<'a>,
    caller_dirs: PathColumn<'a>,
    caller_dirs2: PathColumn<'a>,
    offset: Optional<'a, UInt64Type>,
    offset2: Optional<'a, UInt64Type>,
    req_bytes: Optional<'a, UInt64Type>,
    mode: Optional<'a, UInt16Type>,
    size_before: Optional<'a, UInt64Type>,
}

/// One row of them, and its operation.
struct At<'c, 'a> {
    columns: &'c CallColumns<'a>,
    row: usize,
    op: Op,
}

macro_rules! fields_at {
    ($($field:ident: $kind:ty = $column:ident $(as $id:ident)?),*) => {
        impl Fields for At<'_, '_> {
            #[inline(always)]
            fn op(&self) -> Op {
                self.op
            }

            $(#[inline(always)]
            fn $field(&self) -> Option<$kind> {
                self.columns.$column.get(self.row)$(.map($id))?
            })*
        }
    };
}

fields_at! {
    mode: u16 = mode,
    ofd: OfdId = ofd as OfdId,
    ofd2: OfdId = ofd2 as OfdId,
    file: FileId = file as FileId,
    parent: FileId = parent as FileId,
    path: PathId = paths,
    path2: PathId = paths2,
    caller_dir: PathId = caller_dirs,
    caller_dir2: PathId = caller_dirs2,
    offset: u64 = offset,
    offset2: u64 = offset2,
    req_bytes: u64 = req_bytes,
    size_before: u64 = size_before
}

/// A column that may be null, or was not read.
fn optional<'a, T: ArrowPrimitiveType>(columns: &Columns<'a>, name: &str) -> Result<Optional<'a, T>, FileError> {
    if !columns.has(name) {
        return Ok(Optional { values: &[], nulls: None });
    }
    let array = columns.optional_numbers::<T>(name)?;
    Ok(Optional { values: present(array), nulls: some_nulls(array) })
}

/// The values of a column; none where no row has one, so that nothing is asked for each row.
fn present<T: ArrowPrimitiveType>(array: &PrimitiveArray<T>) -> &[T::Native] {
    if array.null_count() == array.len() { &[] } else { array.values() }
}

/// Which values are none, if some are.
fn some_nulls<T: ArrowPrimitiveType>(array: &PrimitiveArray<T>) -> Option<&NullBuffer> {
    array.nulls().filter(|nulls| nulls.null_count() > 0)
}

fn dictionary<'a>(
    columns: &Columns<'a>,
    name: &str,
) -> Result<(&'a DictionaryArray<Int32Type>, &'a StringArray), FileError> {
    let array = columns.array(name)?.as_dictionary_opt::<Int32Type>();
    let both = array.and_then(|a| a.values().as_string_opt::<i32>().map(|v| (a, v)));
    both.ok_or_else(|| columns.schema(name, "is not text"))
}

/// The four path columns. Their dictionaries are unique each, but a path may be in several: the first (and by far
/// largest) is taken as it is, the others are looked up in it.
fn paths<'a>(columns: &Columns<'a>, out: &mut Batch) -> Result<[PathColumn<'a>; 4], FileError> {
    let [first, rest @ ..] = PATH_COLUMNS;
    let (array, values) = dictionary(columns, first)?;
    let mut others = Vec::with_capacity(rest.len());
    let mut known: FxHashMap<&str, Option<PathId>> = FxHashMap::default();
    for name in rest {
        let (array, values) = dictionary(columns, name)?;
        if array.null_count() < array.len() {
            known.extend(values.iter().flatten().map(|text| (text, None)));
        }
        others.push((name, array, values));
    }
    let mut ids = Vec::with_capacity(values.len());
    for text in values.iter() {
        let text = text.unwrap_or_default();
        let id = push_path(columns, first, text, out)?;
        ids.push(id);
        if !known.is_empty()
            && let Some(of_others) = known.get_mut(text)
        {
            *of_others = Some(id);
        }
    }
    let mut found = vec![PathColumn::new(array, ids)];
    for (name, array, values) in others {
        let mut ids = Vec::with_capacity(values.len());
        if array.null_count() < array.len() {
            for text in values.iter() {
                let text = text.unwrap_or_default();
                let id = match known.get(text).copied().flatten() {
                    Some(id) => id,
                    None => push_path(columns, name, text, out)?,
                };
                known.insert(text, Some(id));
                ids.push(id);
            }
        }
        found.push(PathColumn::new(array, ids));
    }
    found.try_into().map_err(|_| columns.schema(first, "four path columns are expected"))
}

fn push_path(columns: &Columns<'_>, column: &str, text: &str, out: &mut Batch) -> Result<PathId, FileError> {
    let bad = |message: String| {
        let place = format!("column {column}, rows from {}", columns.first_row());
        columns.file().corrupt(place, message)
    };
    let bytes = unescape(text.as_bytes()).map_err(|e| bad(format!("{e} in {text:?}")))?;
    match no_path(&bytes) {
        Some(why) => Err(bad(why)),
        None => Ok(out.paths.push_unique(&bytes)),
    }
}

fn check_order(columns: &Columns<'_>, seq: &[u64]) -> Result<(), FileError> {
    match seq.windows(2).position(|w| w[0] >= w[1]) {
        None => Ok(()),
        Some(i) => {
            let message = format!("{} does not follow {}: rows are out of order", seq[i + 1], seq[i]);
            Err(columns.corrupt(i + 1, "seq", message))
        }
    }
}

struct Optional<'a, T: ArrowPrimitiveType> {
    values: &'a [T::Native],
    nulls: Option<&'a NullBuffer>,
}

impl<T: ArrowPrimitiveType> Optional<'_, T> {
    #[inline(always)]
    fn get(&self, i: usize) -> Option<T::Native> {
        let value = self.values.get(i).copied()?;
        if self.nulls.is_some_and(|nulls| nulls.is_null(i)) { None } else { Some(value) }
    }
}

struct Ops<'a> {
    columns: Columns<'a>,
    keys: &'a [i32],
    table: Vec<Option<Op>>,
    names: &'a StringArray,
}

impl<'a> Ops<'a> {
    fn of(columns: &Columns<'a>) -> Result<Ops<'a>, FileError> {
        let (array, names) = dictionary(columns, "op")?;
        columns.no_nulls("op", array)?;
        let table = names.iter().map(|n| n.and_then(Op::from_name)).collect();
        Ok(Ops { columns: *columns, keys: array.keys().values(), table, names })
    }

    #[inline]
    fn get(&self, i: usize) -> Result<Op, FileError> {
        let key = self.keys.get(i).and_then(|&k| usize::try_from(k).ok());
        match key.and_then(|k| self.table.get(k).copied().flatten()) {
            Some(op) => Ok(op),
            None => Err(self.unknown(i, key)),
        }
    }

    #[cold]
    fn unknown(&self, i: usize, key: Option<usize>) -> FileError {
        let name = key.filter(|&k| k < self.names.len()).map_or("", |k| self.names.value(k));
        self.columns.corrupt(i, "op", format!("unknown operation {name:?}"))
    }
}

struct PathColumn<'a> {
    keys: Optional<'a, Int32Type>,
    ids: Vec<PathId>,
}

impl<'a> PathColumn<'a> {
    fn new(array: &'a DictionaryArray<Int32Type>, ids: Vec<PathId>) -> Self {
        let keys = array.keys();
        PathColumn { keys: Optional { values: present(keys), nulls: some_nulls(keys) }, ids }
    }

    #[inline(always)]
    fn get(&self, i: usize) -> Option<PathId> {
        // The Parquet decoder has checked that keys lie inside the dictionary.
        self.keys.get(i).and_then(|k| usize::try_from(k).ok()).and_then(|k| self.ids.get(k).copied())
    }
}

/// An annotation column's rows; `None` if its type is none of ours.
pub(super) fn values(array: &dyn Array) -> Option<Values> {
    Some(match array.data_type() {
        DataType::Float64 => Values::F64(array.as_primitive_opt::<arrow_array::types::Float64Type>()?.iter().collect()),
        DataType::UInt64 => Values::U64(array.as_primitive_opt::<UInt64Type>()?.iter().collect()),
        DataType::Boolean => Values::Bool(array.as_boolean_opt()?.iter().collect()),
        DataType::Utf8 => Values::Utf8(array.as_string_opt::<i32>()?.iter().map(|s| s.map(str::to_owned)).collect()),
        _ => return None,
    })
}
