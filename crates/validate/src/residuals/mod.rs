//! Residuals: what each call of a replay took beyond its price, with the state it was made in, as a table.
//!
//! A row is a call that was priced or made ([`Row`]), in the order of the trace within each replay. [`write`] makes the
//! file, a batch at a time; `merge` brings prices and observations together; `read` reads it back; [`contexts`] says
//! which states carry the error. The columns are one table ([`COLUMNS`]): the writer, the reader and docs/formats.md
//! have the same. What may not live here: how a call is priced or replayed.

pub mod contexts;
mod merge;
mod read;
mod write;

pub use merge::residuals_of;
pub use read::ResidualReader;
pub use write::{ResidualWriter, Source};

use columnar::Format;
use posix::Residency;
use trace::Op;

/// Footer key of the format's version, and the version.
pub const VERSION_KEY: &str = "fsage.residuals";
/// See [`VERSION_KEY`].
pub const VERSION: u32 = 1;

static FORMAT: Format = Format {
    name: "a file of residuals",
    version: VERSION,
    oldest: VERSION,
    key: Some(VERSION_KEY),
    missing: "fsage validate --residuals makes such files",
    again: "make it again with fsage validate --residuals",
};

/// One call of one replay.
#[derive(Clone, Debug, PartialEq)]
pub struct Row<'a> {
    /// Workload, target, and which of the replays.
    pub source: Source<'a>,
    /// Position in the trace.
    pub seq: u64,
    /// What was called.
    pub op: Op,
    /// What the prediction says; `None` of a call that has no price.
    pub priced: Option<Priced<'a>>,
    /// What the replay saw; `None` of a call that it did not make.
    pub seen: Option<Seen>,
}

/// The prediction's side of a row.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)] // Each is a column, with its meaning in the table of columns.
pub struct Priced<'a> {
    pub thread: u32,
    pub failed: bool,
    pub bytes: u64,
    pub ns: f64,
    pub stall_ns: f64,
    pub entry: &'a str,
    /// Entry, weight and nanoseconds of each term.
    pub terms: Vec<(&'a str, f64, f64)>,
    pub lookups: u64,
    pub lookup_misses: u64,
    pub cached_bytes: Option<u64>,
    pub disk_bytes: Option<u64>,
    pub new_bytes: Option<u64>,
    pub dirty: Option<&'static str>,
    pub pattern: Option<&'static str>,
    pub file_dirty_pages: u64,
    pub dirty_pages: u64,
    pub dirty_files: u64,
    pub metadata_changes: u64,
    pub since_commit_ns: Option<f64>,
}

/// The replay's side of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Seen {
    pub ns: u64,
    pub unlike: bool,
    pub in_flight: u32,
    pub found: Option<Residency>,
    pub burst: u64,
    pub previous_op: Option<Op>,
}

impl Row<'_> {
    /// Whether a read's data was in memory, as predicted and as found: a hit only where all of it was.
    fn cache(&self) -> Option<&'static str> {
        let disk_bytes = self.priced.as_ref()?.disk_bytes?;
        let missing_bytes = self.seen?.found?.missing_bytes;
        Some(match (disk_bytes == 0, missing_bytes == 0) {
            (true, true) => "hit",
            (false, false) => "miss",
            (true, false) => "hit, was a miss",
            (false, true) => "miss, was a hit",
        })
    }
}

/// A value of a column.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Value<'a> {
    Text(Option<&'a str>),
    Count(Option<u64>),
    Real(Option<f64>),
    Truth(Option<bool>),
}

/// Types of columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// UTF-8.
    Text,
    /// An unsigned integer of 64 bits.
    Count,
    /// A double.
    Real,
    /// A boolean.
    Truth,
}

/// A column of the file.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub kind: Kind,
    /// Whether a context may be told by it.
    pub tells: bool,
    /// What it means.
    pub meaning: &'static str,
    value: for<'r, 'a> fn(&'r Row<'a>) -> Value<'r>,
}

macro_rules! columns {
    ($row:ident, $p:ident, $s:ident; $($name:literal, $kind:ident, $tells:literal, $meaning:literal,
        $value:expr;)*) => {
        &[$(Column {
            name: $name,
            kind: Kind::$kind,
            tells: $tells,
            meaning: $meaning,
            value: |$row| {
                #[allow(unused_variables)]
                let ($p, $s) = ($row.priced.as_ref(), $row.seen.as_ref());
                Value::$kind($value)
            },
        }),*]
    };
}

/// Every column but [`ENTRIES`], which is a list. The order is that of the file, and that in which contexts that tell
/// as much are preferred.
pub const COLUMNS: &[Column] = columns! { row, p, s;
    "workload", Text, true, "workload", Some(row.source.workload);
    "target", Text, true, "target", Some(row.source.target);
    "replay", Count, false, "which of the replays, from 0", Some(u64::from(row.source.replay));
    "seq", Count, false, "position in the trace", Some(row.seq);
    "thread", Count, false, "traced thread", p.map(|p| u64::from(p.thread));
    "entry", Text, true, "the entry that makes most of the price", p.map(|p| p.entry);
    "op", Text, true, "what was called", Some(row.op.name());
    "failed", Truth, true, "the traced call failed", p.map(|p| p.failed);
    "bytes", Count, true, "bytes moved, as traced; 0 of other calls", p.map(|p| p.bytes);
    "predicted_ns", Real, false, "price, nanoseconds; null of a call that has none", p.map(|p| p.ns);
    "stall_ns", Real, true, "of that, waiting for write-back: in no entry", p.map(|p| p.stall_ns);
    "measured_ns", Count, false, "measured latency, nanoseconds; null of a call that the replay did not \
        make", s.map(|s| s.ns);
    "lookups", Count, true, "path components looked up", p.map(|p| p.lookups);
    "lookup_misses", Count, true, "of these, predicted not to be cached", p.map(|p| p.lookup_misses);
    "cached_bytes", Count, true, "bytes predicted to be read from or written over cached \
        pages", p.and_then(|p| p.cached_bytes);
    "disk_bytes", Count, true, "bytes predicted to be read from disk", p.and_then(|p| p.disk_bytes);
    "new_bytes", Count, true, "bytes written that had no blocks before", p.and_then(|p| p.new_bytes);
    "dirty", Text, true, "what a sync or removal is predicted to find", p.and_then(|p| p.dirty);
    "pattern", Text, true, "of what is predicted to go to disk: first, sequential or random", p.and_then(|p| p.pattern);
    "file_dirty_pages", Count, true, "dirty pages of the file before the call, as \
        predicted", p.map(|p| p.file_dirty_pages);
    "dirty_pages", Count, true, "dirty pages of all files, as predicted", p.map(|p| p.dirty_pages);
    "dirty_files", Count, true, "files with dirty pages, as predicted", p.map(|p| p.dirty_files);
    "metadata_changes", Count, true, "changes of names, attributes and lengths since the last commit, as predicted",
        p.map(|p| p.metadata_changes);
    "since_commit_ns", Real, true, "predicted time since the last commit; null before the first",
        p.and_then(|p| p.since_commit_ns);
    "burst", Count, true, "how many calls of its kind the replay had made in a row, itself among \
        them", s.map(|s| s.burst);
    "previous_op", Text, true, "the call that the replay made before it, in the order of the trace",
        s.and_then(|s| s.previous_op).map(Op::name);
    "in_flight", Count, true, "calls of the replay under way when it began, itself among \
        them", s.map(|s| u64::from(s.in_flight));
    "unlike", Truth, true, "its outcome was not the traced one", s.map(|s| s.unlike);
    "found_cached_bytes", Count, true, "bytes of its range, or of its file, found in memory just before, in whole \
        pages or blocks",
        s.and_then(|s| s.found).map(|f| f.cached_bytes);
    "found_missing_bytes", Count, true, "the same, not found", s.and_then(|s| s.found).map(|f| f.missing_bytes);
    "found_dirty_bytes", Count, true, "of those found, dirty or being written back",
        s.and_then(|s| s.found).and_then(|f| f.dirty_bytes);
    "cache", Text, true, "of a read: hit or miss as predicted and as found", row.cache();
};

/// The list of entries of a price.
pub const ENTRIES: &str = "entries";
