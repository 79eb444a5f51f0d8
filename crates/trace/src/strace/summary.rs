//! What came of an import: counts, problems and refusals.

use crate::track::Coverage;
use columnar::FileError;
use fault::{Fault, Kind};
use serde::Serialize;
use std::path::PathBuf;

/// A line that was not understood.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Its number, from 1.
    pub line: u64,
    /// Why.
    pub reason: String,
    /// Its beginning, escaped.
    pub excerpt: String,
}

/// What an import found. Every line is counted once: as part of a call, a call that concerns no files, a signal, an
/// exit, a note of strace's own, or not understood.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    /// Lines and bytes read.
    pub lines: u64,
    #[allow(missing_docs)]
    pub bytes: u64,
    /// Calls handed to the tracker.
    pub calls: u64,
    /// Calls that concern neither files nor descriptors (memory, signals, waiting, sockets).
    pub other_lines: u64,
    /// Signals, ends of threads, messages of strace's own.
    pub signals: u64,
    #[allow(missing_docs)]
    pub exits: u64,
    #[allow(missing_docs)]
    pub notes: u64,
    /// Lines not understood: how many, and the first of them.
    pub unparsed_lines: u64,
    #[allow(missing_docs)]
    pub problems: Vec<Problem>,
    /// The last line had no newline and was cut short.
    pub truncated_last_line: Option<u64>,
    /// Calls that returned without a duration in a trace that has them; taken as 0.
    pub without_duration: u64,
    /// Paths that the tracer gave as addresses in the traced process's memory: which files they name is not known.
    pub unread_names: u64,
    /// Returns of calls whose beginning, and so whose arguments, are not in the trace.
    pub unstarted_calls: u64,
    /// Rows written.
    pub events: u64,
    /// Calls that ran past the reordering window and come after calls that started later.
    pub late_events: u64,
    /// When the trace began, nanoseconds since the epoch.
    pub started_unix_ns: Option<u64>,
    /// From the first line to the last return or exit.
    pub wall_ns: u64,
    /// Part of it in which no traced call on files was running.
    pub idle_ns: u64,
    /// How the first process ended: exit status, or 128 and the signal. `None` if its end is not in the trace.
    pub first_status: Option<i64>,
    /// Events the tracer says it lost, and where ([`GAPS_MAX`](crate::profile::GAPS_MAX) places at most).
    pub lost_events: u64,
    #[allow(missing_docs)]
    pub gaps: Vec<crate::profile::Gap>,
    /// What was and was not covered.
    pub coverage: Coverage,
}

/// Why an import was refused or failed.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum ImportError {
    #[error("{}: cannot read: {source}", name.display())]
    Read { name: PathBuf, source: std::io::Error },
    #[error("{}: the file is empty: nothing was traced", name.display())]
    Empty { name: PathBuf },
    #[error(
        "{}: no line looks like strace's output. Expected lines such as \
         `1234 1700000000.123456 close(3</tmp/x>) = 0 <0.000012>` (strace -f -ttt -T -yy -s0 -o FILE)",
        name.display()
    )]
    NotStrace { name: PathBuf },
    #[error(
        "{}: time stamps are times of day (strace -t or -tt). They lack the day, so calls around midnight or a clock \
         change cannot be put in order. Record again with -ttt",
        name.display()
    )]
    TimeOfDay { name: PathBuf },
    #[error(
        "{}: time stamps are whole seconds, so calls cannot be timed. Record again with -ttt",
        name.display()
    )]
    WholeSeconds { name: PathBuf },
    #[error(
        "{}: time stamps are relative to the previous line (strace -r), which loses the order of threads. Record again \
         with -ttt instead of -r",
        name.display()
    )]
    RelativeTime { name: PathBuf },
    #[error("{}: there are no time stamps. Record again with -ttt", name.display())]
    NoTimestamps { name: PathBuf },
    #[error(
        "{}: calls have no durations, so the time in calls cannot be told from the time between them. Record again \
         with -T",
        name.display()
    )]
    NoDurations { name: PathBuf },
    #[error("{}: {message}", name.display())]
    Unusable { name: PathBuf, message: String },
    #[error(transparent)]
    Profile(#[from] FileError),
}

impl Fault for ImportError {
    fn kind(&self) -> Kind {
        match self {
            ImportError::Read { .. } => Kind::Environment,
            _ => Kind::BadInput,
        }
    }
}
