//! A file is of its format and version and has its columns, or an error says which file, where, what and whose fault it
//! is.

use arrow_array::types::UInt64Type;
use arrow_array::{Array as _, ArrayRef, StringArray, UInt64Array};
use arrow_schema::{DataType, Field, Schema};
use columnar::{Check, FileError, Format, ParquetIn, ParquetOut, as_stored, properties};
use fault::{Fault as _, Kind};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

static HERDS: Format = OF_HERDS;

const OF_HERDS: Format = Format {
    name: "a file of herds",
    version: 3,
    oldest: 3,
    key: Some("herds"),
    missing: "count the herds first",
    again: "count the herds again",
};

#[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
struct About {
    version: u32,
    place: String,
}

fn about(version: u32) -> About {
    About { version, place: "Uri".to_owned() }
}

fn fields() -> Vec<Field> {
    vec![Field::new("kind", DataType::Utf8, true), Field::new("animals", DataType::UInt64, true)]
}

fn write(path: &Path, fields: Vec<Field>, say: impl FnOnce(&mut ParquetOut)) {
    let _ = fs::remove_file(path);
    let mut out = ParquetOut::create(path.to_owned(), Arc::new(Schema::new(fields)), properties().build()).unwrap();
    for animals in [[Some(1), Some(2)], [Some(3), None]] {
        let kinds: ArrayRef = Arc::new(StringArray::from(vec![Some("cow"), None]));
        out.write_arrays(vec![kinds, Arc::new(UInt64Array::from(animals.to_vec()))]).unwrap();
        out.end_row_group().unwrap();
    }
    say(&mut out);
    out.finish().unwrap();
}

fn open(path: &Path) -> Result<ParquetIn, FileError> {
    ParquetIn::open(path.to_owned(), &HERDS, Check::Footer, as_stored(&fields()))
}

fn refused(path: &Path) -> String {
    let error = open(path).err().expect("it is refused");
    assert_eq!(error.kind(), Kind::BadInput, "{error}");
    error.to_string()
}

fn herds() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.herds");
    write(&path, fields(), |out| out.describe(&HERDS, &about(3)).unwrap());
    (dir, path)
}

#[test]
fn what_is_written_is_read() {
    let (_dir, path) = herds();
    let file = open(&path).unwrap();
    assert_eq!(file.description::<About>().unwrap(), about(3));
    assert_eq!((file.rows(), file.row_groups()), (4, 2));
    let mut found = Vec::new();
    for group in 0..file.row_groups() {
        let read = file.read_row_group(group, &["animals"], |columns| {
            let animals = columns.optional_numbers::<UInt64Type>("animals")?;
            found.extend(animals.iter().zip(columns.first_row()..));
            assert!(matches!(columns.array("kind"), Err(FileError::Schema { .. })), "it was not asked for");
            Ok(())
        });
        read.unwrap();
    }
    assert_eq!(found, [(Some(1), 0), (Some(2), 1), (Some(3), 2), (None, 3)]);
}

/// Rows are counted over the whole file.
#[test]
fn a_null_where_none_may_be_is_told_with_its_row() {
    let (_dir, path) = herds();
    let file = open(&path).unwrap();
    let numbers = |group| {
        file.read_row_group(group, &["animals"], |columns| columns.numbers::<UInt64Type>("animals").map(|_| ()))
    };
    numbers(0).unwrap();
    let said = numbers(1).unwrap_err().to_string();
    let place = "a.herds: row 3, column animals: is null, which it may not be; restore the file from a copy, or count \
        the herds again";
    assert!(said.ends_with(place), "{said}");
    let text = file.read_row_group(0, &["kind"], |columns| columns.text("kind").map(|texts| assert!(texts.is_empty())));
    assert!(text.unwrap_err().to_string().contains("row 1, column kind: is null"));
    let other = file.read_row_group(0, &["kind"], |columns| columns.numbers::<UInt64Type>("kind").map(|_| ()));
    assert!(other.unwrap_err().to_string().contains("column kind: is not UInt64; docs/formats.md lists the columns"));
}

/// The version is told before the columns: another version may well have others.
#[test]
fn other_versions_are_refused_by_number() {
    let (_dir, path) = herds();
    let other = || vec![Field::new("x", DataType::Utf8, true), Field::new("animals", DataType::UInt64, true)];
    for (found, hint) in [(2, "count the herds again"), (4, "use a newer fsage")] {
        let says = format!("a.herds: format version {found} is not supported: this fsage");
        write(&path, other(), |out| out.describe(&HERDS, &about(found)).unwrap());
        let said = refused(&path);
        assert!(said.contains(&says) && said.contains("reads version 3") && said.ends_with(hint), "{said}");
        write(&path, other(), |out| out.key_value("herds", found.to_string()));
        assert_eq!(refused(&path), said, "the number alone");
    }
    write(&path, other(), |out| out.key_value("herds", "3".to_owned()));
    assert!(refused(&path).contains("column kind: not in the file"));
}

/// A file of the version before is read where the format says so.
#[test]
fn older_versions_are_read_down_to_the_oldest() {
    static FLOCKS: Format = Format { version: 5, oldest: 4, ..OF_HERDS };
    let (_dir, path) = herds();
    let version = |found: u32| {
        write(&path, fields(), |out| out.describe(&FLOCKS, &about(found)).unwrap());
        ParquetIn::open(path.clone(), &FLOCKS, Check::Footer, as_stored(&fields())).map(drop)
    };
    assert!(version(4).is_ok() && version(5).is_ok());
    for (found, hint) in [(3, "count the herds again"), (6, "use a newer fsage")] {
        let said = version(found).unwrap_err().to_string();
        assert!(said.contains("reads versions 4 to 5") && said.ends_with(hint), "{said}");
    }
}

#[test]
fn other_files_are_refused() {
    let (dir, path) = herds();
    write(&path, fields(), |_| ());
    assert!(refused(&path).contains("footer, herds: missing: this is not a file of herds"), "{}", refused(&path));
    write(&path, fields(), |out| out.key_value("herds", "many".to_owned()));
    assert!(refused(&path).contains("this is not a file of herds, or it is damaged"), "{}", refused(&path));
    fs::write(&path, b"moo, and no Parquet file").unwrap();
    assert!(refused(&path).contains("a.herds: footer: "), "{}", refused(&path));
    assert!(refused(&dir.path().join("none")).ends_with("none: not found; count the herds first"));
}

/// Tools that write a file anew compress it as they like; it was called damaged.
#[test]
fn another_compression_is_named() {
    let (_dir, path) = herds();
    let mut bytes = fs::read(&path).unwrap();
    // In Thrift's compact protocol the codec follows the column's path: a number, 6 for ZSTD, 1 for Snappy.
    let zstd = b"animals\x15\x0c";
    let at = bytes.windows(zstd.len()).rposition(|found| found == zstd).expect("the codec");
    bytes[at + zstd.len() - 1] = 2;
    fs::write(&path, &bytes).unwrap();
    let said = refused(&path);
    assert!(
        said.contains("a.herds: column animals: it is compressed with SNAPPY, and fsage reads only ZSTD"),
        "{said}"
    );
}

#[test]
fn a_damaged_description_is_noticed() {
    let (_dir, path) = herds();
    let whole = fs::read(&path).unwrap();
    let at = whole.windows(3).position(|bytes| bytes == b"Uri").unwrap();
    let mut damaged = whole;
    damaged[at] ^= 1;
    fs::write(&path, &damaged).unwrap();
    let said = open(&path).unwrap().description::<About>().unwrap_err().to_string();
    assert!(said.contains("footer, herds: checksum does not match"), "{said}");
}

#[test]
fn what_stands_beside_the_file_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.herds");
    let schema = Arc::new(Schema::new(fields()));
    let mut out = ParquetOut::create(path.clone(), schema, properties().build()).unwrap();
    out.describe(&HERDS, &about(3)).unwrap();
    let mut check = out.finish().unwrap();
    let open = |check: &columnar::FileCheck| {
        let check = Check::Beside { check, stated_in: "barn.txt" };
        ParquetIn::open(path.clone(), &HERDS, check, as_stored(&fields()))
    };
    assert_eq!(open(&check).unwrap().rows(), 0);
    check.bytes += 1;
    let said = open(&check).err().unwrap().to_string();
    assert!(said.contains("where barn.txt states"), "{said}");
}

#[test]
fn errors_say_whose_fault_they_are() {
    let path = Path::new("a.herds");
    let io = |kind: io::ErrorKind| FileError::io(path, "read")(kind.into()).kind();
    assert_eq!(io(io::ErrorKind::StorageFull), Kind::Environment);
    assert_eq!(io(io::ErrorKind::Interrupted), Kind::Interrupted);
    assert_eq!(FileError::Exists { path: path.to_owned() }.kind(), Kind::Usage);
    let not_ours = FileError::NotOurs { path: path.to_owned(), format: &HERDS };
    assert_eq!(not_ours.kind(), Kind::Usage);
    assert!(not_ours.to_string().contains("exists and is not a file of herds"), "{not_ours}");
    assert_eq!(FileError::invalid(path, "no cow has six legs").kind(), Kind::BadInput);
}
