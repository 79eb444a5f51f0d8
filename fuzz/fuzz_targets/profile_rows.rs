//! Workload profiles of any rows and any description, with sound checksums: refused; or inspected, exported, priced,
//! made ready for a replay and planned from.

#![no_main]

#[path = "common/documents.rs"]
mod documents;
#[path = "common/rows.rs"]
mod rows;

use aging::format::{Reader as PlanReader, Writer as PlanWriter};
use aging::plan::profile::{ProfileOptions, plan};
use arrow_schema::DataType;
use libfuzzer_sys::arbitrary::Unstructured;
use libfuzzer_sys::fuzz_target;
use system::SystemProfile;
use predict::pipeline::{PredictOptions, predict};
use rows::Column;
use std::path::Path;
use std::sync::OnceLock;
use trace::inspect::{InspectOptions, inspect, latencies};
use trace::profile::{FORMAT_VERSION, Meta, Reader};

const PATHS: [&str; 14] = [
    "/a",
    "/b",
    "/a/b",
    "/a/b/c",
    "/a/..",
    "/",
    "/a/./b",
    "/c/",
    "relative",
    "/a/b/../../..",
    "//a",
    "/d",
    "/d/e",
    "\\x00",
];

const OPS: [&str; 56] = [
    "open",
    "open",
    "rename",
    "open",
    "close",
    "read",
    "write",
    "lseek",
    "fsync",
    "fdatasync",
    "sync_file_range",
    "sync",
    "syncfs",
    "msync",
    "truncate",
    "ftruncate",
    "fallocate",
    "copy",
    "fadvise",
    "readahead",
    "stat",
    "fstat",
    "statfs",
    "access",
    "readlink",
    "getdents",
    "mkdir",
    "rmdir",
    "unlink",
    "rename",
    "link",
    "symlink",
    "mknod",
    "chmod",
    "fchmod",
    "chown",
    "fchown",
    "utimens",
    "futimens",
    "setxattr",
    "getxattr",
    "listxattr",
    "removexattr",
    "mmap",
    "map_read",
    "map_write",
    "dup",
    "fcntl",
    "ioctl",
    "chdir",
    "fchdir",
    "exec",
    "clone",
    "exit",
    "io_uring",
    "other",
];

const TRACE: [Column; 24] = [
    ("seq", DataType::UInt64, false, &["rising"]),
    ("t_ns", DataType::UInt64, false, &["rising"]),
    ("dur_ns", DataType::UInt64, false, &[]),
    ("pid", DataType::UInt32, false, &[]),
    ("tid", DataType::UInt32, false, &[]),
    ("op", DataType::Utf8, false, &OPS),
    ("ofd_id", DataType::UInt64, true, &[]),
    ("ofd_id2", DataType::UInt64, true, &[]),
    ("file_id", DataType::UInt64, true, &[]),
    ("parent_id", DataType::UInt64, true, &[]),
    ("path", DataType::Utf8, true, &PATHS),
    ("path2", DataType::Utf8, true, &PATHS),
    ("offset", DataType::UInt64, true, &[]),
    ("offset2", DataType::UInt64, true, &[]),
    ("req_bytes", DataType::UInt64, true, &[]),
    ("ret", DataType::Int64, false, &[]),
    ("errno", DataType::UInt16, false, &[]),
    ("flags", DataType::UInt32, false, &[]),
    ("mode", DataType::UInt16, true, &[]),
    ("size_before", DataType::UInt64, true, &[]),
    ("caller_dir", DataType::Utf8, true, &PATHS),
    ("caller_dir2", DataType::Utf8, true, &PATHS),
    ("running_ns", DataType::UInt64, true, &[]),
    ("blocked_ns", DataType::UInt64, true, &[]),
];

const SNAPSHOT: [Column; 12] = [
    ("path", DataType::Utf8, false, &["/", "/a", "/a/b", "/a/b/c", "/b", "/c", "/d", "/d/e", "/d/f"]),
    ("kind", DataType::Utf8, false, &["file", "file", "directory", "symlink", "special"]),
    ("size_bytes", DataType::UInt64, false, &[]),
    ("mode", DataType::UInt16, false, &[]),
    ("uid", DataType::UInt32, false, &[]),
    ("gid", DataType::UInt32, false, &[]),
    ("nlink", DataType::UInt32, false, &[]),
    ("ino", DataType::UInt64, false, &[]),
    ("dev", DataType::UInt64, false, &[]),
    ("mtime_ns", DataType::Int64, false, &[]),
    ("target", DataType::Utf8, true, &["a", "/", "..", "../..", "/a/b", "b/c", ".", ""]),
    ("provenance", DataType::Utf8, false, &["before", "after", "trace"]),
];

fn system() -> &'static SystemProfile {
    static SYSTEM: OnceLock<SystemProfile> = OnceLock::new();
    let text = include_str!("../../profiles/ext4.system");
    SYSTEM.get_or_init(|| SystemProfile::parse(text, Path::new("ext4.system")).expect("a sound profile"))
}

/// Writes a profile; `None` where the input ends.
fn write(directory: &Path, u: &mut Unstructured<'_>) -> Option<()> {
    let (batches, trace) = rows::write(&directory.join("trace.parquet"), &TRACE, 24, u, |_, _| Vec::new()).ok()?;
    let (_, snapshot) = rows::write(&directory.join("snapshot.parquet"), &SNAPSHOT, 8, u, |_, _| Vec::new()).ok()?;
    let files = [("trace.parquet".to_owned(), trace), ("snapshot.parquet".to_owned(), snapshot)].into();
    let events = batches.iter().map(|batch| batch.num_rows() as u64).sum();
    let meta = Meta { format_version: FORMAT_VERSION, events, files, ..Meta::default() };
    let mut value = serde_json::to_value(meta).expect("JSON");
    if u.ratio(1, 4).ok()? {
        value = documents::changed(value, u);
    }
    std::fs::write(directory.join("meta.json"), value.to_string()).expect("space");
    Some(())
}

fuzz_target!(|input: &[u8]| {
    let mut u = Unstructured::new(input);
    let directory = std::env::temp_dir().join(format!("fsage-fuzz-{}.workload", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a writable temporary directory");
    if write(&directory, &mut u).is_none() {
        return;
    }
    let Ok(reader) = Reader::open(&directory) else { return };
    let _ = inspect(&reader, &InspectOptions::default());
    let _ = latencies(&reader);
    let _ = reader.rows(3, 10);
    let _ = trace::text::trace::write_csv(&reader, std::io::sink());
    let _ = trace::fio::write(&reader, trace::fio::Version::V3, std::io::sink());
    if let Ok(snapshot) = reader.snapshot() {
        let _ = trace::text::snapshot::write(&snapshot, &mut std::io::sink());
    }
    let options = PredictOptions { min_coverage: 0.0, ..PredictOptions::default() };
    let _ = predict(&reader, std::slice::from_ref(system()), &options);
    let _ = replay::requirements(&reader);
    let to = directory.with_extension("aging");
    let (capacity_bytes, block_bytes) = (1 << 40, 4096);
    let mut writer = PlanWriter::create(&to, capacity_bytes, block_bytes).expect("space");
    if let Ok(meta) = plan(&directory, &ProfileOptions::default(), capacity_bytes, &mut writer, &mut |_| true)
        && writer.finish(meta).is_ok()
    {
        PlanReader::open(&to).and_then(|plan| plan.verify()).expect("our own plan is sound");
    }
});
