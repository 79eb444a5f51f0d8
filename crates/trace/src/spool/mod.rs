//! The spool: what a tracer emitted, on disk before anybody tries to understand it.
//!
//! What lives here: the file format of `NAME.spool` (docs/formats.md), its [`Writer`], its [`Reader`], and [`Follow`],
//! with which a reader goes along while the writer still writes. What may not: what the tracer's bytes mean. Capture
//! writes a spool and analysis reads it; nothing that goes wrong in analysis reaches capture.
//!
//! A spool is a line of magic and then frames. Each holds whole records, is checked by itself and is written by one
//! call, so that whenever the writer dies, everything but the frame in hand is there. Memory is bounded by one frame.

mod follow;
mod frame;
mod names;
mod reader;
mod writer;

pub use follow::{Follow, Growth};
pub use reader::{Frame, Reader};
pub use writer::Writer;

use crate::profile::{Host, Tracer, Unreadable};
use fault::{Fault, Kind};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::PathBuf;

/// The extension of spools.
pub const EXTENSION: &str = "spool";

/// No frame unpacks to more bytes.
pub const FRAME_BYTES_MAX: usize = 16 << 20;

/// What a spool begins with: where its records come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// Version of fsage that wrote the spool.
    pub fsage_version: String,
    /// Whose records it holds.
    pub notation: Notation,
    /// The tracer as it will stand in `meta.json`.
    pub tracer: Tracer,
    /// The clock of the records, in words.
    pub clock: String,
    /// What was recorded.
    pub subject: Subject,
    /// Working directory of the first process, escaped; empty where unknown.
    pub working_directory: String,
    /// The mount namespace in which paths are to be read, if it was not fsage's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mount_namespace: Option<u64>,
    /// The machine.
    pub host: Host,
    /// Which time the machine was up (`/proc/sys/kernel/random/boot_id`); empty where unknown.
    pub boot_id: String,
    /// When recording began, nanoseconds since the epoch.
    pub started_unix_ns: i64,
}

/// What the bytes of the records are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Notation {
    /// Lines of strace's.
    Strace,
    /// Records of fsage's recorder in the kernel.
    Kernel,
}

/// What was recorded. Texts are escaped ([`crate::profile::escape`]).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "what", deny_unknown_fields)]
pub enum Subject {
    /// A command.
    Command {
        /// Program and arguments.
        argv: Vec<String>,
    },
    /// Processes that ran already.
    Processes {
        /// Their numbers.
        pids: Vec<u32>,
    },
    /// Every process in a control group.
    Cgroup {
        /// Its directory.
        path: String,
    },
    /// Whoever touched a file system.
    Mount {
        /// Where it was mounted.
        path: String,
    },
}

/// The end of the names read before the run. A spool without it holds only some of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamesEnd {
    /// Trees whose names were read, as real paths, escaped.
    pub roots: Vec<String>,
    /// What could not be read.
    pub unreadable: Vec<Unreadable>,
    /// Whether a limit cut the reading short.
    pub truncated: bool,
}

/// Records that are missing here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lost {
    /// When that was noticed, nanoseconds since the epoch.
    pub at_unix_ns: i64,
    /// How many records.
    pub records: u64,
    /// Why, in words.
    pub why: String,
}

/// How a recording ended. A spool without it was left by a recorder that was killed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct End {
    /// When, nanoseconds since the epoch.
    pub at_unix_ns: i64,
    /// Exit status of the command, if it exited while it was recorded.
    pub exit_status: Option<i32>,
    /// The signal that killed it.
    pub signal: Option<i32>,
    /// The tracer ended before what it traced, and nobody had asked it to.
    pub tracer_lost: bool,
}

/// Why a spool could not be written or read.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum SpoolError {
    #[error("{}: cannot {doing}: {source}", path.display())]
    Io { path: PathBuf, doing: &'static str, source: io::Error },
    #[error("{}: is not a spool: give a NAME.spool that fsage record left", path.display())]
    NotSpool { path: PathBuf },
    #[error("{}: is a spool of another version ({found}); this fsage reads {supported}: import it with the fsage that \
        wrote it", path.display())]
    Version { path: PathBuf, found: String, supported: &'static str },
    #[error("{}: ends at byte {at} before its header is complete: nothing was recorded", path.display())]
    NoHeader { path: PathBuf, at: u64 },
    #[error("{}: holds no records: the recorder ended before it had stored any", path.display())]
    NoRecords { path: PathBuf },
    #[error(
        "{}: is damaged at byte {at}: {what}. The records before it are whole: `truncate -s {at}` a copy and import \
         that",
        path.display()
    )]
    Damaged { path: PathBuf, at: u64, what: String },
}

impl Fault for SpoolError {
    fn kind(&self) -> Kind {
        match self {
            SpoolError::Io { .. } => Kind::Environment,
            _ => Kind::BadInput,
        }
    }
}

/// Whether a file begins as a spool does.
pub fn is_spool(path: &std::path::Path) -> bool {
    use io::Read as _;
    let mut begin = [0; frame::FAMILY.len()];
    posix::input::open(path).and_then(|mut file| file.read_exact(&mut begin)).is_ok() && begin == *frame::FAMILY
}
