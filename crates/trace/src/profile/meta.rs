//! `meta.json`: where a trace comes from and how much of the truth it holds.

use super::FORMAT;
use columnar::{FileCheck, FileError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// Everything about a workload profile that is not a row. Paths in it are escaped ([`super::escape`]).
///
/// The writer fills in `format_version`, `fsage_version`, `events`, `annotations`, the entry counts of `snapshot`, and
/// `files`; the rest is the recorder's or importer's to state. `None` means not known.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Meta {
    /// [`FORMAT_VERSION`](super::FORMAT_VERSION).
    pub format_version: u32,
    /// Version of fsage that wrote the profile.
    pub fsage_version: String,
    /// What traced.
    pub tracer: Tracer,
    /// The clock of `t_ns` and its resolution, as a sentence ("CLOCK_REALTIME by strace -ttt, microseconds").
    pub clock: String,
    /// When the trace began, nanoseconds since the Unix epoch.
    pub started_unix_ns: Option<u64>,
    /// Where.
    pub host: Host,
    /// The file systems the workload touched.
    pub file_systems: Vec<TracedFileSystem>,
    /// What ran; `None` for an imported trace whose command is not known.
    pub command: Option<Command>,
    /// From the first call to the last exit while traced, nanoseconds.
    pub wall_ns: Option<u64>,
    /// Part of `wall_ns` in which no traced call on files was running, nanoseconds.
    #[serde(default)]
    pub idle_ns: Option<u64>,
    /// `wall_ns` of a run without tracing, where one was made, nanoseconds.
    pub untraced_wall_ns: Option<u64>,
    /// Rows of `trace.parquet`.
    pub events: u64,
    /// Events the tracer says it lost.
    pub lost_events: u64,
    /// Where it lost them, in the order of time; at most [`GAPS_MAX`] are listed.
    pub gaps: Vec<Gap>,
    /// Lines of the tracer's output that were not understood.
    pub unparsed: Unparsed,
    /// Calls that were seen and are not modelled: name of the system call to count.
    pub unmodelled: BTreeMap<String, u64>,
    /// Activity that a system call trace cannot show.
    pub unseen: Unseen,
    /// Why the recording ended before what it recorded did, unasked: what was called then is not known, and in no
    /// share. `None` where it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut_short: Option<CutShort>,
    /// Share of the file system activity that the events stand for, 0 to 1.
    pub coverage_share: Option<f64>,
    /// Open file descriptions (the column `ofd`) that were on their way over a socket when the last descriptor of them
    /// was closed, and how often: so many of their closes are marked as the last and were not.
    /// [`Reader`](super::Reader) takes the marks off, and leaves this empty.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub returned: BTreeMap<u64, u64>,
    /// What is in `snapshot.parquet`.
    pub snapshot: SnapshotSummary,
    /// Columns of `trace.parquet` beyond the format's own, added by the prediction pipeline.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub annotations: Vec<Annotation>,
    /// Checks of the Parquet files. A file rewritten by another tool no longer matches; delete its entry here to have
    /// it read unchecked.
    #[serde(default)]
    pub files: BTreeMap<String, FileCheck>,
}

/// How far the durations of a trace's calls are the calls' own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Durations {
    /// Taken in the kernel, at the call's beginning and its return: true, but for what taking them costs.
    InKernel,
    /// Inflated, by more than the whole call where it is short: strace stops the thread at both, perf writes an event
    /// between them.
    #[default]
    Inflated,
    /// There are none.
    None,
}

impl Meta {
    /// How far the durations are the calls' own, by what traced.
    pub fn durations(&self) -> Durations {
        match self.tracer.name.as_str() {
            // In virtual time a call takes what it takes, and taking its time takes none.
            "ebpf" | "laboratory" => Durations::InKernel,
            "fio" => Durations::None,
            _ => Durations::Inflated,
        }
    }
}

/// The program that traced.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tracer {
    /// `strace`, `ebpf` (fsage's recorder), `perf trace`, `fio`, `laboratory` (a benchmark in virtual time).
    pub name: String,
    /// As it states it; empty where unknown.
    pub version: String,
    /// The options it was given, or that its output shows it was given.
    pub options: Vec<String>,
}

/// The machine that was traced.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Node name; empty where unknown.
    pub name: String,
    /// `uname -sr`; empty where unknown.
    pub kernel: String,
    /// Processor model; empty where unknown.
    pub cpu: String,
    /// Number of processors; 0 where unknown.
    pub cpus: u32,
    /// Memory in bytes; 0 where unknown.
    pub memory_bytes: u64,
}

/// A file system the workload touched.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TracedFileSystem {
    /// Type (`ext4`).
    pub fs_type: String,
    /// Where it was mounted, escaped.
    pub mount_point: String,
    /// Device or source, escaped.
    pub device: String,
    /// Mount options.
    pub options: String,
    /// `st_dev`, as in the snapshot.
    pub dev: u64,
}

/// The traced command.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Command {
    /// Program and arguments, escaped; empty where the trace was attached to running processes.
    pub argv: Vec<String>,
    /// Working directory, escaped; empty where unknown.
    pub working_directory: String,
    /// Exit status; `None` where it was killed or did not end in the trace.
    pub exit_status: Option<i32>,
    /// The signal that killed it.
    pub signal: Option<i32>,
}

/// What ended a recording before what it recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CutShort {
    /// The tracer was killed, or gave up.
    TracerEnded,
    /// The recorder was killed, or could not store the end.
    RecorderEnded,
}

impl std::fmt::Display for CutShort {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            CutShort::TracerEnded => "the tracer ended before what it traced",
            CutShort::RecorderEnded => "the recorder ended before what it recorded",
        })
    }
}

/// How many gaps a description lists; `lost_events` counts all.
pub const GAPS_MAX: usize = 1000;

/// A place where the tracer lost events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gap {
    /// When it was noticed, nanoseconds since the trace began.
    pub at_ns: u64,
    /// How many events are missing.
    pub events: u64,
}

/// Lines that were not understood.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unparsed {
    /// How many.
    pub lines: u64,
    /// The first of them, from 1.
    pub first_line_numbers: Vec<u64>,
}

/// Activity that a trace of system calls cannot show.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unseen {
    /// Mappings of files other than programs and libraries.
    pub maps: u64,
    /// Bytes of such files mapped.
    pub mapped_bytes: u64,
    /// Mappings of programs, libraries and their run-time data (loader cache, locales).
    #[serde(default)]
    pub image_maps: u64,
    /// Bytes of such files mapped.
    #[serde(default)]
    pub image_mapped_bytes: u64,
    /// io_uring instances set up.
    pub io_uring_setups: u64,
    /// Operations submitted to them.
    #[serde(default)]
    pub io_uring_operations: u64,
    /// Programs executed, whose images the kernel maps.
    pub exec_images: u64,
}

/// What is in the snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SnapshotSummary {
    /// Entries in all.
    pub entries: u64,
    /// Entries seen before the run, seen after it, implied by the trace (see [`Provenance`](crate::Provenance)).
    pub before: u64,
    #[allow(missing_docs)]
    pub after: u64,
    #[allow(missing_docs)]
    pub trace: u64,
    /// Directories and files that could not be read, and why.
    pub unreadable: Vec<Unreadable>,
    /// Whether a limit cut the walk short.
    pub truncated: bool,
}

/// A name that could not be read when the snapshot was taken.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unreadable {
    /// Escaped path.
    pub path: String,
    /// Why.
    pub error: String,
}

/// A column beyond the format's own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Annotation {
    /// Column name.
    pub name: String,
    /// Its type.
    pub kind: AnnotationKind,
    /// What it means, with its unit.
    pub meaning: String,
}

/// Types of annotation columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AnnotationKind {
    /// 64-bit floating point.
    F64,
    /// 64-bit unsigned.
    U64,
    /// Truth value.
    Bool,
    /// UTF-8 text.
    Utf8,
}

/// The last key of the file: covers everything before the line it stands on.
const CHECK: &str = "\n  \"meta_crc32c\": \"";

/// The text of `meta.json`: pretty JSON whose last field is a checksum of what precedes it.
pub(super) fn to_text(meta: &Meta) -> Result<String, serde_json::Error> {
    let mut text = serde_json::to_string_pretty(meta)?;
    let body = text.trim_end().strip_suffix('}').map_or("", str::trim_end).len();
    text.truncate(body);
    text.push(',');
    let crc = crc32c::crc32c(text.as_bytes());
    text.push_str(&format!("{CHECK}{crc:08x}\"\n}}\n"));
    Ok(text)
}

/// Reads the text of `meta.json`: version first, then the checksum if there is one (a hand-edited file may drop that
/// line), then the fields.
pub(super) fn from_text(path: &Path, text: &str) -> Result<Meta, FileError> {
    let json =
        |e: serde_json::Error| FORMAT.corrupt(path, format!("line {}, column {}", e.line(), e.column()), e.to_string());
    let mut value: serde_json::Value = serde_json::from_str(text).map_err(json)?;
    check_version(path, &value)?;
    if let Some(stated) = value.as_object_mut().and_then(|o| o.remove("meta_crc32c")) {
        check_text(path, text, &stated)?;
        // Parsed from the text rather than from the value, so that errors have lines.
        if let Some(at) = text.rfind(CHECK) {
            let body = text[..at].trim_end().trim_end_matches(',');
            return serde_json::from_str(&format!("{body}\n}}")).map_err(json);
        }
    }
    serde_json::from_str(text).map_err(json)
}

fn check_version(path: &Path, value: &serde_json::Value) -> Result<(), FileError> {
    match value.get("format_version").and_then(serde_json::Value::as_u64) {
        Some(found) => FORMAT.check_version(path, found),
        None => {
            let message = "no \"format_version\": this is not a workload profile's meta.json";
            Err(FORMAT.corrupt(path, "line 1", message))
        }
    }
}

fn check_text(path: &Path, text: &str, stated: &serde_json::Value) -> Result<(), FileError> {
    let at = text.rfind(CHECK);
    let computed = at.map(|at| format!("{:08x}", crc32c::crc32c(&text.as_bytes()[..at])));
    if computed.as_deref() == stated.as_str() && computed.is_some() {
        return Ok(());
    }
    let line = text.lines().count().saturating_sub(1);
    let message = "\"meta_crc32c\" does not match the text above it: the file is damaged (or was edited: then delete \
                   that line and the comma before it)";
    Err(FORMAT.corrupt(path, format!("line {line}"), message))
}
