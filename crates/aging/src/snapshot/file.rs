//! `NAME.snapshot`: one checked Parquet file, a row per name, the description in its footer.

use super::{Builder, FORMAT_VERSION, Inode, Snapshot, SnapshotError, SnapshotMeta};
use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, Int64Array, PrimitiveArray, RecordBatch, StringArray, UInt32Array, UInt64Array};
use arrow_schema::{DataType, Field, Schema};
use parquet::basic::Encoding;
use parquet::schema::types::ColumnPath;
use posix::FileKind;
use posix::output::Output;
use serde::Deserialize;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use trace::parquet_file::{Check, ParquetIn, ParquetOut, properties};
use trace::profile::{ProfileError, escape, unescape};

/// The footer key under which the description ([`SnapshotMeta`], JSON) is, and that of its checksum.
const META_KEY: &str = "fsage.snapshot";
const META_CHECK_KEY: &str = "fsage.snapshot_crc32c";
const ROW_GROUP_ROWS: usize = 1 << 16;

const PATH: &str = "path";
const KIND: &str = "kind";
const SIZE: &str = "size_bytes";
const ALLOCATED: &str = "allocated_bytes";
const INO: &str = "ino";
const GENERATION: &str = "generation";
const CTIME: &str = "ctime_ns";
const MTIME: &str = "mtime_ns";
const NLINK: &str = "nlink";

fn fields() -> Vec<Field> {
    let required = |name: &str, kind: DataType| Field::new(name, kind, false);
    vec![
        required(PATH, DataType::Utf8),
        required(KIND, DataType::Utf8),
        required(SIZE, DataType::UInt64),
        required(ALLOCATED, DataType::UInt64),
        required(INO, DataType::UInt64),
        Field::new(GENERATION, DataType::UInt32, true),
        required(CTIME, DataType::Int64),
        required(MTIME, DataType::Int64),
        required(NLINK, DataType::UInt32),
    ]
}

/// The names of file kinds, as in a workload profile's snapshot.
const KINDS: [(FileKind, &str); 4] = [
    (FileKind::File, "file"),
    (FileKind::Directory, "directory"),
    (FileKind::Symlink, "symlink"),
    (FileKind::Special, "special"),
];

impl Snapshot {
    /// Writes `NAME.snapshot`: beside it first, and under its name when whole. A file of that name is replaced.
    ///
    /// # Errors
    /// [`SnapshotError::Io`].
    pub fn write(&self, path: &Path) -> Result<(), SnapshotError> {
        let io = |doing| move |source| SnapshotError::Io { path: path.to_owned(), doing, source };
        let (output, file) = Output::create(path, 0o666).map_err(io("make the file"))?;
        self.write_to(file, path)?;
        output.finish().map_err(io("give the finished file its name"))
    }

    fn write_to(&self, file: File, path: &Path) -> Result<(), SnapshotError> {
        let invalid = |message: String| SnapshotError::Invalid { path: path.to_owned(), message };
        let schema = Arc::new(Schema::new(fields()));
        let mut settings = properties();
        for column in [PATH, INO] {
            let column = ColumnPath::from(column);
            // Sorted paths share their beginnings; neighbours have neighbouring inodes.
            let encoding =
                if column.string() == PATH { Encoding::DELTA_BYTE_ARRAY } else { Encoding::DELTA_BINARY_PACKED };
            settings =
                settings.set_column_dictionary_enabled(column.clone(), false).set_column_encoding(column, encoding);
        }
        let mut out = ParquetOut::into_file(file, path.to_owned(), Arc::clone(&schema), settings.build())?;
        for first in (0..self.entries().len()).step_by(ROW_GROUP_ROWS) {
            let batch = RecordBatch::try_new(Arc::clone(&schema), self.columns(first));
            out.write(&batch.map_err(|e| invalid(e.to_string()))?)?;
            out.end_row_group()?;
        }
        let json = serde_json::to_string(&self.meta).map_err(|e| invalid(e.to_string()))?;
        out.key_value(META_CHECK_KEY, format!("{:08x}", crc32c::crc32c(json.as_bytes())));
        out.key_value(META_KEY, json);
        out.finish()?;
        Ok(())
    }

    /// The rows from `first` on, at most a row group of them.
    fn columns(&self, first: usize) -> Vec<ArrayRef> {
        let end = (first + ROW_GROUP_ROWS).min(self.entries().len());
        let rows = self.entries().get(first..end).unwrap_or_default();
        let u64s = |f: fn(&Inode) -> u64| -> ArrayRef {
            Arc::new(UInt64Array::from_iter_values(rows.iter().map(|e| f(&e.inode))))
        };
        let i64s = |f: fn(&Inode) -> i64| -> ArrayRef {
            Arc::new(Int64Array::from_iter_values(rows.iter().map(|e| f(&e.inode))))
        };
        let kind =
            |e: &super::Entry| KINDS.iter().find(|(k, _)| *k == e.inode.kind).map_or("special", |(_, name)| name);
        vec![
            Arc::new(StringArray::from_iter_values((first..end).map(|i| escape(&self.path(i)).into_owned()))),
            Arc::new(StringArray::from_iter_values(rows.iter().map(kind))),
            u64s(|i| i.size_bytes),
            u64s(|i| i.allocated_bytes),
            u64s(|i| i.ino),
            Arc::new(rows.iter().map(|e| e.inode.generation).collect::<UInt32Array>()),
            i64s(|i| i.ctime_ns),
            i64s(|i| i.mtime_ns),
            Arc::new(UInt32Array::from_iter_values(rows.iter().map(|e| e.inode.nlink))),
        ]
    }

    /// Reads what a snapshot says of itself.
    ///
    /// # Errors
    /// As [`Snapshot::read`].
    pub fn read_meta(path: &Path) -> Result<SnapshotMeta, SnapshotError> {
        read_meta(path, &open(path)?)
    }

    /// Reads a snapshot.
    ///
    /// # Errors
    /// [`SnapshotError`], naming file and place.
    pub fn read(path: &Path) -> Result<Snapshot, SnapshotError> {
        let file = open(path)?;
        let meta = read_meta(path, &file)?;
        if meta.entries != file.rows() {
            let message = format!("{} rows where the description states {}", file.rows(), meta.entries);
            return Err(SnapshotError::corrupt(path, "footer", message));
        }
        let fields = fields();
        let names: Vec<&str> = fields.iter().map(|f| f.name().as_str()).collect();
        let mut builder = Builder::default();
        for group in 0..file.row_groups() {
            let mut failed = None;
            file.read_row_group(group, &names, |batch| {
                append(path, batch, &mut builder).unwrap_or_else(|e| failed = Some(e));
                Ok(())
            })?;
            if let Some(error) = failed {
                return Err(error);
            }
        }
        builder.finish(meta).map_err(|(row, why)| SnapshotError::corrupt(path, format!("row {row}"), why))
    }
}

fn open(path: &Path) -> Result<ParquetIn, SnapshotError> {
    let file = ParquetIn::open(path.to_owned(), Check::Footer, "", |path, found| {
        for field in fields() {
            let schema =
                |message: String| ProfileError::Schema { path: path.to_owned(), column: field.name().clone(), message };
            let have = found.field_with_name(field.name());
            let have = have.map_err(|_| schema("not in the file: no snapshot of fsage's".into()))?;
            if have.data_type() != field.data_type() {
                return Err(schema(format!("is {} instead of {}", have.data_type(), field.data_type())));
            }
        }
        Ok(found.clone())
    })?;
    Ok(file)
}

fn read_meta(path: &Path, file: &ParquetIn) -> Result<SnapshotMeta, SnapshotError> {
    #[derive(Deserialize)]
    struct Versioned {
        version: u32,
    }
    let bad = |message: String| SnapshotError::corrupt(path, format!("footer, {META_KEY}"), message);
    let text = file.key_value(META_KEY).ok_or_else(|| bad("missing: no snapshot of fsage's".into()))?;
    let Versioned { version } = serde_json::from_str(text).map_err(|e| bad(e.to_string()))?;
    if version != FORMAT_VERSION {
        return Err(SnapshotError::Version { path: path.to_owned(), found: version, supported: FORMAT_VERSION });
    }
    let sum = format!("{:08x}", crc32c::crc32c(text.as_bytes()));
    if file.key_value(META_CHECK_KEY).is_some_and(|stated| stated != sum) {
        return Err(bad("checksum does not match: the bytes are damaged".into()));
    }
    serde_json::from_str(text).map_err(|e| bad(e.to_string()))
}

fn append(path: &Path, batch: &RecordBatch, builder: &mut Builder) -> Result<(), SnapshotError> {
    let first_row = builder.len();
    let place = |row: usize, column: &str| format!("row {}, column {column}", first_row + row);
    let columns = Columns { path, batch, place: &place };
    let (paths, kinds) = (columns.text(PATH)?, columns.text(KIND)?);
    let (sizes, allocated, inos) = (
        columns.numbers::<UInt64Type>(SIZE)?,
        columns.numbers::<UInt64Type>(ALLOCATED)?,
        columns.numbers::<UInt64Type>(INO)?,
    );
    let generations = columns.array::<UInt32Type>(GENERATION)?;
    let (ctimes, mtimes) = (columns.numbers::<Int64Type>(CTIME)?, columns.numbers::<Int64Type>(MTIME)?);
    let nlinks = columns.numbers::<UInt32Type>(NLINK)?;
    for row in 0..batch.num_rows() {
        let text = paths.value(row);
        let bad = |column: &str, message: String| SnapshotError::corrupt(path, place(row, column), message);
        let name = unescape(text.as_bytes()).map_err(|e| bad(PATH, format!("{e} in {text:?}")))?;
        let kind = KINDS.iter().find(|(_, name)| *name == kinds.value(row)).map(|(kind, _)| *kind);
        let inode = Inode {
            kind: kind.ok_or_else(|| bad(KIND, format!("unknown {:?}", kinds.value(row))))?,
            size_bytes: sizes[row],
            allocated_bytes: allocated[row],
            ino: inos[row],
            generation: (!generations.is_null(row)).then(|| generations.value(row)),
            ctime_ns: ctimes[row],
            mtime_ns: mtimes[row],
            nlink: nlinks[row],
        };
        builder.push(&name, inode).map_err(|why| bad(PATH, format!("{text:?} {why}")))?;
    }
    Ok(())
}

struct Columns<'a> {
    path: &'a Path,
    batch: &'a RecordBatch,
    place: &'a dyn Fn(usize, &str) -> String,
}

impl<'a> Columns<'a> {
    fn missing(&self, name: &str) -> SnapshotError {
        SnapshotError::corrupt(self.path, format!("column {name}"), "missing or of another type")
    }

    fn no_nulls<A: Array>(&self, name: &str, array: &'a A) -> Result<&'a A, SnapshotError> {
        match (0..array.len()).find(|&i| array.null_count() > 0 && array.is_null(i)) {
            None => Ok(array),
            Some(i) => {
                Err(SnapshotError::corrupt(self.path, (self.place)(i, name), "is null, which only generation may be"))
            }
        }
    }

    fn array<T: ArrowPrimitiveType>(&self, name: &str) -> Result<&'a PrimitiveArray<T>, SnapshotError> {
        self.batch.column_by_name(name).and_then(|a| a.as_primitive_opt::<T>()).ok_or_else(|| self.missing(name))
    }

    fn numbers<T: ArrowPrimitiveType>(&self, name: &str) -> Result<&'a [T::Native], SnapshotError> {
        Ok(self.no_nulls(name, self.array::<T>(name)?)?.values())
    }

    fn text(&self, name: &str) -> Result<&'a StringArray, SnapshotError> {
        let array = self.batch.column_by_name(name).and_then(|a| a.as_string_opt::<i32>());
        self.no_nulls(name, array.ok_or_else(|| self.missing(name))?)
    }
}
