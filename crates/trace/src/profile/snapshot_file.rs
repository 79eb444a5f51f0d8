//! `snapshot.parquet`: a row per name, parents before children.

use super::{SNAPSHOT, escape, no_path, unescape};
use crate::snapshot::{is_plain, path_order};
use crate::{Provenance, Snapshot, SnapshotEntry};
use arrow_array::types::{Int64Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, Int64Array, StringArray, UInt16Array, UInt32Array, UInt64Array};
use arrow_schema::{DataType, Field, Schema};
use columnar::{Check, Columns, FileCheck, FileError, ParquetIn, ParquetOut, as_stored, properties};
use posix::FileKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const ROW_GROUP_ROWS: usize = 1 << 16;

fn fields() -> Vec<Field> {
    let required = |name: &str, kind: DataType| Field::new(name, kind, false);
    vec![
        required("path", DataType::Utf8),
        required("kind", DataType::Utf8),
        required("size_bytes", DataType::UInt64),
        required("mode", DataType::UInt16),
        required("uid", DataType::UInt32),
        required("gid", DataType::UInt32),
        required("nlink", DataType::UInt32),
        required("ino", DataType::UInt64),
        required("dev", DataType::UInt64),
        required("mtime_ns", DataType::Int64),
        Field::new("target", DataType::Utf8, true),
        required("provenance", DataType::Utf8),
    ]
}

/// The names of file kinds in files and tables.
const KINDS: [(FileKind, &str); 4] = [
    (FileKind::File, "file"),
    (FileKind::Directory, "directory"),
    (FileKind::Symlink, "symlink"),
    (FileKind::Special, "special"),
];

fn kind_name(kind: FileKind) -> &'static str {
    KINDS.iter().find(|(k, _)| *k == kind).map_or("special", |(_, name)| name)
}

fn kind_from_name(name: &str) -> Option<FileKind> {
    KINDS.iter().find(|(_, n)| *n == name).map(|(k, _)| *k)
}

const NOT_PLAIN: &str = "not an absolute path without `.`, `..`, `//` and a slash at its end";

/// Writes a snapshot, which must be in order.
pub(super) fn write(path: &Path, snapshot: &Snapshot) -> Result<FileCheck, FileError> {
    if let Some((i, entry)) = snapshot.entries.iter().enumerate().find(|(_, entry)| !is_plain(&entry.path)) {
        return Err(FileError::invalid(path, format!("snapshot entry {i} ({}) is {NOT_PLAIN}", escape(&entry.path))));
    }
    for (i, pair) in snapshot.entries.windows(2).enumerate() {
        if path_order(&pair[0].path, &pair[1].path).is_ge() {
            let message = format!(
                "snapshot entry {} ({}) is out of order: use Snapshot::from_entries",
                i + 1,
                escape(&pair[1].path)
            );
            return Err(FileError::invalid(path, message));
        }
    }
    write_as_it_is(path, snapshot)
}

fn write_as_it_is(path: &Path, snapshot: &Snapshot) -> Result<FileCheck, FileError> {
    let schema = Arc::new(Schema::new(fields()));
    let mut out = ParquetOut::create(path.to_owned(), schema, properties().build())?;
    for entries in snapshot.entries.chunks(ROW_GROUP_ROWS) {
        out.write_arrays(columns(entries))?;
        out.end_row_group()?;
    }
    out.finish()
}

fn columns(entries: &[SnapshotEntry]) -> Vec<ArrayRef> {
    let u64s =
        |f: fn(&SnapshotEntry) -> u64| -> ArrayRef { Arc::new(UInt64Array::from_iter_values(entries.iter().map(f))) };
    let u32s =
        |f: fn(&SnapshotEntry) -> u32| -> ArrayRef { Arc::new(UInt32Array::from_iter_values(entries.iter().map(f))) };
    vec![
        Arc::new(StringArray::from_iter_values(entries.iter().map(|e| escape(&e.path)))),
        Arc::new(StringArray::from_iter_values(entries.iter().map(|e| kind_name(e.kind)))),
        u64s(|e| e.size_bytes),
        Arc::new(UInt16Array::from_iter_values(entries.iter().map(|e| e.mode))),
        u32s(|e| e.uid),
        u32s(|e| e.gid),
        u32s(|e| e.nlink),
        u64s(|e| e.ino),
        u64s(|e| e.dev),
        Arc::new(Int64Array::from_iter_values(entries.iter().map(|e| e.mtime_ns))),
        Arc::new(entries.iter().map(|e| e.target.as_deref().map(escape)).collect::<StringArray>()),
        Arc::new(StringArray::from_iter_values(entries.iter().map(|e| e.provenance.name()))),
    ]
}

/// Opens a snapshot file and checks its columns.
pub(super) fn open(path: PathBuf, check: Check<'_>) -> Result<ParquetIn, FileError> {
    ParquetIn::open(path, &SNAPSHOT, check, as_stored(&fields()))
}

/// Reads a whole snapshot.
pub(super) fn read(file: &ParquetIn) -> Result<Snapshot, FileError> {
    let fields = fields();
    let names: Vec<&str> = fields.iter().map(|f| f.name().as_str()).collect();
    let mut entries: Vec<SnapshotEntry> = Vec::new();
    let mut room = file.room_for_names();
    for group in 0..file.row_groups() {
        let first = entries.len();
        file.read_row_group(group, &names, |columns| append(columns, &mut entries))?;
        let new = entries.get(first..).unwrap_or_default();
        let bytes = new.iter().map(|e| e.path.len() + e.target.as_ref().map_or(0, Vec::len)).sum();
        file.take_names(&mut room, bytes)?;
    }
    Ok(Snapshot { entries })
}

fn append(columns: &Columns<'_>, out: &mut Vec<SnapshotEntry>) -> Result<(), FileError> {
    let paths = columns.text("path")?;
    let kinds = columns.text("kind")?;
    let sizes = columns.numbers::<UInt64Type>("size_bytes")?;
    let modes = columns.numbers::<UInt16Type>("mode")?;
    let uids = columns.numbers::<UInt32Type>("uid")?;
    let gids = columns.numbers::<UInt32Type>("gid")?;
    let nlinks = columns.numbers::<UInt32Type>("nlink")?;
    let inos = columns.numbers::<UInt64Type>("ino")?;
    let devs = columns.numbers::<UInt64Type>("dev")?;
    let mtimes = columns.numbers::<Int64Type>("mtime_ns")?;
    let targets = columns.optional_text("target")?;
    let provenances = columns.text("provenance")?;
    for i in 0..columns.rows() {
        let corrupt = |column: &str, message: String| columns.corrupt(i, column, message);
        let bytes = |column: &'static str, text: &str| {
            let bytes = unescape(text.as_bytes()).map_err(|e| corrupt(column, format!("{e} in {text:?}")))?;
            match no_path(&bytes) {
                Some(why) => Err(corrupt(column, why)),
                None => Ok(bytes.into_owned()),
            }
        };
        let unknown = |column: &'static str, text: &str| corrupt(column, format!("unknown value {text:?}"));
        let entry = SnapshotEntry {
            path: bytes("path", paths.value(i))?,
            kind: kind_from_name(kinds.value(i)).ok_or_else(|| unknown("kind", kinds.value(i)))?,
            size_bytes: sizes[i],
            mode: modes[i],
            uid: uids[i],
            gid: gids[i],
            nlink: nlinks[i],
            ino: inos[i],
            dev: devs[i],
            mtime_ns: mtimes[i],
            target: if targets.is_null(i) { None } else { Some(bytes("target", targets.value(i))?) },
            provenance: Provenance::from_name(provenances.value(i))
                .ok_or_else(|| unknown("provenance", provenances.value(i)))?,
        };
        if !is_plain(&entry.path) {
            return Err(corrupt("path", format!("{:?} is {NOT_PLAIN}", paths.value(i))));
        }
        if out.last().is_some_and(|last| path_order(&last.path, &entry.path).is_ge()) {
            return Err(corrupt("path", format!("{:?} is out of order", paths.value(i))));
        }
        out.push(entry);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_whose_path_is_not_plain_is_refused_by_name_and_number() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("snapshot.parquet");
        for odd in ["/a/..", "/..", "/a/../c", "/a/.", "/a//c", "/a/c/", "a", ""] {
            let entry = |path: &str| SnapshotEntry::implied(path.as_bytes().to_vec(), FileKind::Directory);
            let snapshot = Snapshot { entries: vec![entry("/"), entry("/a"), entry(odd)] };
            write_as_it_is(&path, &snapshot).expect("a file");
            let file = open(path.clone(), Check::Footer).expect("its columns are a snapshot's");
            let message = read(&file).expect_err(odd).to_string();
            assert!(message.contains("snapshot.parquet") && message.contains("row 2, column path"), "{odd}: {message}");
            assert!(message.contains(&format!("{odd:?} is {NOT_PLAIN}")), "{odd}: {message}");
            std::fs::remove_file(&path).expect("it is there");
            let message = write(&path, &snapshot).expect_err(odd).to_string();
            assert!(message.contains("snapshot entry 2"), "{odd}: {message}");
        }
    }
}
