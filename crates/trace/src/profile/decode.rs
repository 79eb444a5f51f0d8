//! Arrow arrays to events: the other direction of [`super::encode`], and the inner loop of everything that reads.

use super::columns::{PATH_COLUMNS, dictionary_type, trace_fields};
use super::writer::Values;
use super::{ProfileError, no_path, unescape};
use crate::{Batch, Event, FileId, OfdId, Op, PathId};
use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Int32Type, Int64Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{Array, DictionaryArray, PrimitiveArray, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use rustc_hash::FxHashMap;
use std::path::Path;

/// The schema to decode a trace to: the format's columns with dictionaries kept, others as the file has them.
pub(super) fn trace_schema(path: &Path, found: &Schema) -> Result<Schema, ProfileError> {
    let wanted = trace_fields();
    for field in &wanted {
        let Ok(have) = found.field_with_name(field.name()) else {
            return Err(ProfileError::schema(path, field.name(), "not in the file"));
        };
        let stored = if *field.data_type() == dictionary_type() { &DataType::Utf8 } else { field.data_type() };
        if have.data_type() != stored {
            return Err(ProfileError::schema(
                path,
                field.name(),
                format!("is {} instead of {stored}", have.data_type()),
            ));
        }
    }
    let decoded = found.fields().iter().map(|have| match wanted.iter().find(|w| w.name() == have.name()) {
        Some(w) => Field::new(w.name(), w.data_type().clone(), have.is_nullable()),
        None => have.as_ref().clone(),
    });
    Ok(Schema::new(decoded.collect::<Vec<_>>()))
}

/// Appends the rows of a record batch to `out`.
pub(super) fn append(path: &Path, first_row: u64, batch: &RecordBatch, out: &mut Batch) -> Result<(), ProfileError> {
    let columns = Columns { path, first_row, batch };
    let seq = columns.required::<UInt64Type>("seq")?;
    let t_ns = columns.required::<UInt64Type>("t_ns")?;
    let dur_ns = columns.required::<UInt64Type>("dur_ns")?;
    let pid = columns.required::<UInt32Type>("pid")?;
    let tid = columns.required::<UInt32Type>("tid")?;
    let ops = columns.ops()?;
    let ofd = columns.optional::<UInt64Type>("ofd_id")?;
    let ofd2 = columns.optional::<UInt64Type>("ofd_id2")?;
    let file = columns.optional::<UInt64Type>("file_id")?;
    let parent = columns.optional::<UInt64Type>("parent_id")?;
    let offset = columns.optional::<UInt64Type>("offset")?;
    let offset2 = columns.optional::<UInt64Type>("offset2")?;
    let req_bytes = columns.optional::<UInt64Type>("req_bytes")?;
    let ret = columns.required::<Int64Type>("ret")?;
    let errno = columns.required::<UInt16Type>("errno")?;
    let flags = columns.required::<UInt32Type>("flags")?;
    let mode = columns.optional::<UInt16Type>("mode")?;
    let size_before = columns.optional::<UInt64Type>("size_before")?;
    let running = columns.optional::<UInt64Type>("running_ns")?;
    let blocked = columns.optional::<UInt64Type>("blocked_ns")?;
    let [paths, paths2, caller_dirs, caller_dirs2] = columns.paths(out)?;

    let rows = batch.num_rows();
    out.events.reserve(rows);
    // Slices of equal length let the bounds checks of the loop below fall away.
    let (seq, t_ns, dur_ns) = (&seq[..rows], &t_ns[..rows], &dur_ns[..rows]);
    let (pid, tid, ret, errno, flags) = (&pid[..rows], &tid[..rows], &ret[..rows], &errno[..rows], &flags[..rows]);
    for i in 0..rows {
        out.events.push(Event {
            seq: seq[i],
            t_ns: t_ns[i],
            dur_ns: dur_ns[i],
            pid: pid[i],
            tid: tid[i],
            op: ops.get(i)?,
            flags: flags[i],
            mode: mode.get(i),
            errno: errno[i],
            ret: ret[i],
            ofd: ofd.get(i).map(OfdId),
            ofd2: ofd2.get(i).map(OfdId),
            file: file.get(i).map(FileId),
            parent: parent.get(i).map(FileId),
            path: paths.get(i),
            path2: paths2.get(i),
            caller_dir: caller_dirs.get(i),
            caller_dir2: caller_dirs2.get(i),
            offset: offset.get(i),
            offset2: offset2.get(i),
            req_bytes: req_bytes.get(i),
            size_before: size_before.get(i),
            running_ns: running.get(i),
            blocked_ns: blocked.get(i),
        });
    }
    columns.check_order(seq)
}

/// A record batch whose columns are taken by name; knows its place for errors.
struct Columns<'a> {
    path: &'a Path,
    first_row: u64,
    batch: &'a RecordBatch,
}

impl<'a> Columns<'a> {
    fn array(&self, name: &'static str) -> Result<&'a dyn Array, ProfileError> {
        let array = self.batch.column_by_name(name);
        array.map(AsRef::as_ref).ok_or_else(|| ProfileError::schema(self.path, name, "not in the file"))
    }

    fn primitive<T: ArrowPrimitiveType>(&self, name: &'static str) -> Result<&'a PrimitiveArray<T>, ProfileError> {
        let array = self.array(name)?.as_primitive_opt::<T>();
        array.ok_or_else(|| ProfileError::schema(self.path, name, format!("is not {}", T::DATA_TYPE)))
    }

    fn required<T: ArrowPrimitiveType>(&self, name: &'static str) -> Result<&'a [T::Native], ProfileError> {
        let array = self.primitive::<T>(name)?;
        self.no_nulls(name, array)?;
        Ok(array.values())
    }

    fn optional<T: ArrowPrimitiveType>(&self, name: &'static str) -> Result<Optional<'a, T>, ProfileError> {
        let array = self.primitive::<T>(name)?;
        Ok(Optional { array, values: array.values(), some_null: array.null_count() > 0 })
    }

    fn no_nulls(&self, name: &'static str, array: &dyn Array) -> Result<(), ProfileError> {
        match (0..array.len()).find(|&i| array.null_count() > 0 && array.is_null(i)) {
            None => Ok(()),
            Some(i) => Err(self.corrupt(i, format!("column {name} is null, which only optional columns may be"))),
        }
    }

    fn corrupt(&self, row: usize, message: String) -> ProfileError {
        ProfileError::corrupt(self.path, format!("row {}", self.first_row + row as u64), message)
    }

    fn dictionary(
        &self,
        name: &'static str,
    ) -> Result<(&'a DictionaryArray<Int32Type>, &'a StringArray), ProfileError> {
        let array = self.array(name)?.as_dictionary_opt::<Int32Type>();
        let both = array.and_then(|a| a.values().as_string_opt::<i32>().map(|v| (a, v)));
        both.ok_or_else(|| ProfileError::schema(self.path, name, "is not text"))
    }

    fn ops(&self) -> Result<Ops<'a>, ProfileError> {
        let (array, names) = self.dictionary("op")?;
        self.no_nulls("op", array)?;
        let table = names.iter().map(|n| n.and_then(Op::from_name)).collect();
        Ok(Ops { path: self.path, first_row: self.first_row, keys: array.keys().values(), table, names })
    }

    /// The four path columns. Their dictionaries are unique each, but a path may be in several: the first (and by far
    /// largest) is taken as it is, the others are looked up in it.
    fn paths(&self, out: &mut Batch) -> Result<[PathColumn<'a>; 4], ProfileError> {
        let [first, rest @ ..] = PATH_COLUMNS;
        let (array, values) = self.dictionary(first)?;
        let mut others = Vec::with_capacity(rest.len());
        let mut known: FxHashMap<&str, Option<PathId>> = FxHashMap::default();
        for name in rest {
            let (array, values) = self.dictionary(name)?;
            if array.null_count() < array.len() {
                known.extend(values.iter().flatten().map(|text| (text, None)));
            }
            others.push((name, array, values));
        }
        let mut ids = Vec::with_capacity(values.len());
        for text in values.iter() {
            let text = text.unwrap_or_default();
            let id = self.push_path(first, text, out)?;
            ids.push(id);
            if !known.is_empty()
                && let Some(of_others) = known.get_mut(text)
            {
                *of_others = Some(id);
            }
        }
        let mut columns = vec![PathColumn::new(array, ids)];
        for (name, array, values) in others {
            let mut ids = Vec::with_capacity(values.len());
            if array.null_count() < array.len() {
                for text in values.iter() {
                    let text = text.unwrap_or_default();
                    let id = match known.get(text).copied().flatten() {
                        Some(id) => id,
                        None => self.push_path(name, text, out)?,
                    };
                    known.insert(text, Some(id));
                    ids.push(id);
                }
            }
            columns.push(PathColumn::new(array, ids));
        }
        columns.try_into().map_err(|_| ProfileError::schema(self.path, first, "four path columns are expected"))
    }

    fn push_path(&self, column: &str, text: &str, out: &mut Batch) -> Result<PathId, ProfileError> {
        let bad = |message: String| {
            let place = format!("column {column}, rows from {}", self.first_row);
            ProfileError::corrupt(self.path, place, message)
        };
        let bytes = unescape(text.as_bytes()).map_err(|e| bad(format!("{e} in {text:?}")))?;
        match no_path(&bytes) {
            Some(why) => Err(bad(why)),
            None => Ok(out.paths.push_unique(&bytes)),
        }
    }

    fn check_order(&self, seq: &[u64]) -> Result<(), ProfileError> {
        match seq.windows(2).position(|w| w[0] >= w[1]) {
            None => Ok(()),
            Some(i) => {
                Err(self
                    .corrupt(i + 1, format!("seq {} does not follow {}: rows are out of order", seq[i + 1], seq[i])))
            }
        }
    }
}

struct Optional<'a, T: ArrowPrimitiveType> {
    array: &'a PrimitiveArray<T>,
    values: &'a [T::Native],
    some_null: bool,
}

impl<T: ArrowPrimitiveType> Optional<'_, T> {
    #[inline]
    fn get(&self, i: usize) -> Option<T::Native> {
        if self.some_null && self.array.is_null(i) { None } else { self.values.get(i).copied() }
    }
}

struct Ops<'a> {
    path: &'a Path,
    first_row: u64,
    keys: &'a [i32],
    table: Vec<Option<Op>>,
    names: &'a StringArray,
}

impl Ops<'_> {
    #[inline]
    fn get(&self, i: usize) -> Result<Op, ProfileError> {
        let key = self.keys.get(i).and_then(|&k| usize::try_from(k).ok());
        match key.and_then(|k| self.table.get(k).copied().flatten()) {
            Some(op) => Ok(op),
            None => Err(self.unknown(i, key)),
        }
    }

    #[cold]
    fn unknown(&self, i: usize, key: Option<usize>) -> ProfileError {
        let name = key.filter(|&k| k < self.names.len()).map_or("", |k| self.names.value(k));
        ProfileError::corrupt(
            self.path,
            format!("row {}, column op", self.first_row + i as u64),
            format!("unknown operation {name:?}"),
        )
    }
}

struct PathColumn<'a> {
    array: &'a PrimitiveArray<Int32Type>,
    keys: &'a [i32],
    ids: Vec<PathId>,
    some_null: bool,
}

impl<'a> PathColumn<'a> {
    fn new(array: &'a DictionaryArray<Int32Type>, ids: Vec<PathId>) -> Self {
        let keys = array.keys();
        PathColumn { array: keys, keys: keys.values(), ids, some_null: keys.null_count() > 0 }
    }

    #[inline]
    fn get(&self, i: usize) -> Option<PathId> {
        if self.some_null && self.array.is_null(i) {
            return None;
        }
        // The Parquet decoder has checked that keys lie inside the dictionary.
        self.keys.get(i).and_then(|&k| usize::try_from(k).ok()).and_then(|k| self.ids.get(k).copied())
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
