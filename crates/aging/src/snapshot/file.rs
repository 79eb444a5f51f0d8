//! `NAME.snapshot`: one checked Parquet file, a row per name, the description in its footer.

use super::{Builder, FORMAT, Inode, Snapshot, SnapshotMeta};
use arrow_array::types::{Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, Int64Array, StringArray, UInt32Array, UInt64Array};
use arrow_schema::{DataType, Field, Schema};
use columnar::{Check, Columns, Encoding, FileError, ParquetIn, ParquetOut, as_stored, encoded, properties};
use posix::FileKind;
use posix::output::Output;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use trace::profile::{escape, unescape};

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
    /// [`FileError::Io`].
    pub fn write(&self, path: &Path) -> Result<(), FileError> {
        let (output, file) = Output::create(path, 0o666).map_err(FileError::io(path, "make the file"))?;
        self.write_to(file, path)?;
        output.finish().map_err(FileError::io(path, "give the finished file its name"))
    }

    fn write_to(&self, file: File, path: &Path) -> Result<(), FileError> {
        let schema = Arc::new(Schema::new(fields()));
        // Sorted paths share their beginnings; neighbours have neighbouring inodes.
        let settings = encoded(properties(), PATH, Encoding::DELTA_BYTE_ARRAY);
        let settings = encoded(settings, INO, Encoding::DELTA_BINARY_PACKED);
        let mut out = ParquetOut::into_file(file, path.to_owned(), schema, settings.build())?;
        for first in (0..self.entries().len()).step_by(ROW_GROUP_ROWS) {
            out.write_arrays(self.columns(first))?;
            out.end_row_group()?;
        }
        out.describe(&FORMAT, &self.meta)?;
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
    pub fn read_meta(path: &Path) -> Result<SnapshotMeta, FileError> {
        open(path)?.description()
    }

    /// Reads a snapshot.
    ///
    /// # Errors
    /// [`FileError`], naming file and place.
    pub fn read(path: &Path) -> Result<Snapshot, FileError> {
        let file = open(path)?;
        let meta: SnapshotMeta = file.description()?;
        if meta.entries != file.rows() {
            let message = format!("{} rows where the description states {}", file.rows(), meta.entries);
            return Err(file.corrupt("footer", message));
        }
        let fields = fields();
        let names: Vec<&str> = fields.iter().map(|f| f.name().as_str()).collect();
        let mut builder = Builder::default();
        for group in 0..file.row_groups() {
            file.read_row_group(group, &names, |columns| append(columns, &mut builder))?;
        }
        builder.finish(meta).map_err(|(row, why)| file.corrupt(format!("row {row}"), why))
    }
}

fn open(path: &Path) -> Result<ParquetIn, FileError> {
    ParquetIn::open(path.to_owned(), &FORMAT, Check::Footer, as_stored(&fields()))
}

fn append(columns: &Columns<'_>, builder: &mut Builder) -> Result<(), FileError> {
    let (paths, kinds) = (columns.text(PATH)?, columns.text(KIND)?);
    let (sizes, allocated, inos) = (
        columns.numbers::<UInt64Type>(SIZE)?,
        columns.numbers::<UInt64Type>(ALLOCATED)?,
        columns.numbers::<UInt64Type>(INO)?,
    );
    let generations = columns.optional_numbers::<UInt32Type>(GENERATION)?;
    let (ctimes, mtimes) = (columns.numbers::<Int64Type>(CTIME)?, columns.numbers::<Int64Type>(MTIME)?);
    let nlinks = columns.numbers::<UInt32Type>(NLINK)?;
    for row in 0..columns.rows() {
        let text = paths.value(row);
        let bad = |column: &str, message: String| columns.corrupt(row, column, message);
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
