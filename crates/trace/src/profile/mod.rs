//! The workload profile: the directory `NAME.workload/`.
//!
//! `meta.json` says where the trace comes from, `trace.parquet` holds a row per call, `snapshot.parquet` a row per name
//! that was there when the trace began, and `schedule.parquet`, where the tracer tells of it, when threads had no
//! processor. docs/formats.md describes them field by field. Written as a stream into a directory beside the final one
//! and renamed into place, so that an interrupted import leaves nothing under the final name; read as a stream, one row
//! group at a time, each verified against its checksum before it is decoded.

mod beside;
mod columns;
mod decode;
mod encode;
mod escape;
mod meta;
mod pages;
mod reader;
mod row;
mod rows;
mod schedule_file;
mod snapshot_file;
mod values;
mod writer;

use columnar::{Check, Format};

pub use beside::WriterBeside;
pub use escape::{BadEscape, escape, unescape};
pub use meta::{
    Annotation, AnnotationKind, Command, CutShort, Durations, GAPS_MAX, Gap, Host, Meta, SnapshotSummary,
    TracedFileSystem, Tracer, Unparsed, Unreadable, Unseen,
};
pub use reader::{Batches, Reader};
pub use row::Row;
pub use rows::Rows;
pub use values::Values;
pub use writer::{Writer, WriterOptions};

/// The version this code writes and reads; others are refused.
pub const FORMAT_VERSION: u32 = 2;

/// The format. Its version is in `meta.json`, for all files.
pub static FORMAT: Format = PROFILE;
static TRACE: Format = Format { missing: "the profile is incomplete: record or import the workload again", ..PROFILE };
static SNAPSHOT: Format = Format {
    missing: "without the snapshot nobody knows what the workload found: record the workload again, or import it with \
        a snapshot",
    ..PROFILE
};
static SCHEDULE: Format = Format { missing: "the profile is incomplete: record the workload again", ..PROFILE };

const PROFILE: Format = Format {
    name: "a workload profile",
    version: FORMAT_VERSION,
    oldest: FORMAT_VERSION,
    key: None,
    missing: "a workload profile is a directory NAME.workload made by fsage record or fsage import",
    again: "record or import the workload again",
};

/// How a file of a profile is checked: by what `meta.json` states, unless its entry was deleted there.
fn check_of<'m>(meta: &'m Meta, name: &str) -> Check<'m> {
    meta.files.get(name).map_or(Check::Nothing, |check| Check::Beside { check, stated_in: META_FILE })
}

/// The longest path of a profile, bytes: sixteen times what one call takes, as a process that changes into a directory
/// below can go further.
pub const PATH_BYTES_MAX: usize = 64 << 10;

/// Directories that nothing but names deeper in them tell of, at most: a path of 4,096 bytes is 2,000 of them, and
/// whoever builds the recording's tree has each.
pub const IMPLIED_DIRECTORIES_MAX: usize = 1_000_000;

/// What is wrong with a recording that has more of them.
pub fn too_deep() -> String {
    format!(
        "up to here, nothing but the names in them tells of more than {IMPLIED_DIRECTORIES_MAX} directories: no file \
         system has so many"
    )
}

/// Why no file can have a path, if so.
pub(crate) fn no_path(path: &[u8]) -> Option<String> {
    if path.len() > PATH_BYTES_MAX {
        Some(format!("a path of {} bytes: the longest has {PATH_BYTES_MAX}", path.len()))
    } else {
        memchr::memchr(0, path).map(|at| format!("a path with a NUL (byte {at}), which none can have"))
    }
}

/// Name of the description in a profile's directory.
pub const META_FILE: &str = "meta.json";
/// Name of the trace in a profile's directory.
pub const TRACE_FILE: &str = "trace.parquet";
/// Name of the snapshot in a profile's directory.
pub const SNAPSHOT_FILE: &str = "snapshot.parquet";
/// Name of the turns of threads in a profile's directory. Not every profile has them.
pub const SCHEDULE_FILE: &str = "schedule.parquet";
/// All that a profile's directory may hold.
pub(crate) const FILES: [&str; 4] = [META_FILE, TRACE_FILE, SNAPSHOT_FILE, SCHEDULE_FILE];
