//! Parquet files of ours: checked, of a stated format and version, read a row group at a time.
//!
//! Parquet itself does not notice most damage. [`ParquetOut`] therefore keeps a CRC-32C of the bytes of each row group
//! (in the footer, under [`ROW_GROUPS_KEY`]) and gives its caller one of the footer ([`FileCheck`]; a workload profile
//! keeps it in `meta.json`). [`ParquetIn`] loads one row group at a time into memory, verifies it, and only then lets
//! the Parquet decoder see it. [`Format`] says what a file is, where its version stands and what to do about one that
//! is not as it should be; [`FileError`] is what can be wrong with it. [`Columns`] takes the columns of some rows
//! apart. [`whole`] makes a file of a table that is in memory.
//!
//! What may not live here: which columns a format has, and what they mean. docs/formats.md has the formats.

mod check;
mod columns;
mod error;
mod footer;
mod format;
mod read;
mod small;
mod source;
mod write;

pub use check::{Check, FileCheck};
pub use columns::{Columns, as_stored};
pub use error::FileError;
pub use format::Format;
pub use parquet::basic::Encoding;
pub use parquet::file::properties::WriterProperties;
pub use read::{NameRoom, ParquetIn};
pub use small::whole;
pub use write::{ParquetOut, create_private, encoded, properties};

/// Footer key of the row groups' checksums: `end:crc32c` in hexadecimal, comma-separated, in file order. A row group's
/// bytes begin where the one before ends (the first at byte 0).
pub const ROW_GROUPS_KEY: &str = "fsage.row_groups";
