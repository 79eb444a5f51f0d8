//! fio's log of I/O, version 2 and 3 (`fio --write_iolog`, `--read_iolog`; fio(1), "Trace file format").
//!
//! What lives here: the [`Importer`], and the [export](write()). What may not: what calls mean.
//!
//! ```text
//! fio version 3 iolog              version 2 has no time stamps; it has `FILE wait MICROSECONDS 0`
//! 151 a.0.0 open                   microseconds since the run began, file, action: add, open, close, unlink
//! 154 a.0.0 write 0 4096           or read, write, sync, datasync, trim with offset and length
//! ```
//!
//! A log knows files by name alone, has no durations, no processes, and no directory, attribute or rename.

mod export;
mod import;

pub use export::{Exported, LeftOut, Version, files_needed, write};
pub use import::Importer;

/// The first line of a log, without its newline; `N` is the version.
pub(crate) fn version(line: &[u8]) -> Option<u64> {
    let text = line.strip_prefix(b"fio version ")?.trim_ascii_end().strip_suffix(b" iolog")?;
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Whether a file that begins so is a log, of whatever version.
pub(crate) fn is_log(head: &[u8]) -> bool {
    version(head.split(|&b| b == b'\n').next().unwrap_or_default()).is_some()
}
