//! From strace text to a workload profile on disk.

use super::{ImportError, ImportOptions, Imported, Importer, Summary};
use crate::Snapshot;
use crate::profile::{Meta, Tracer, Unparsed, Unseen, Writer, WriterBeside, WriterOptions};
use crate::track::Coverage;
use posix::input::Stream;
use serde::Serialize;
use std::io::{BufRead, BufReader};
use std::path::Path;

/// Read ahead of the parser; a line is far shorter.
const BUFFER_BYTES: usize = 1 << 20;

/// An import that has been written.
#[derive(Clone, Debug, Serialize)]
pub struct ImportedProfile {
    /// `meta.json` as written.
    pub meta: Meta,
    /// Counts and problems.
    pub summary: Summary,
}

/// Imports a file of strace's text (`-`: standard input) into the workload profile `output`. The snapshot holds what
/// the trace implies was there when it began.
///
/// # Errors
/// The input cannot be read or used, or the output cannot be written; nothing is left of it then.
pub fn import_file(
    input: &Path,
    output: &Path,
    options: ImportOptions,
    writing: WriterOptions,
) -> Result<ImportedProfile, ImportError> {
    if input.as_os_str() == "-" {
        let options = ImportOptions { name: "standard input".into(), ..options };
        return import(BufReader::with_capacity(BUFFER_BYTES, std::io::stdin().lock()), output, options, writing);
    }
    let unreadable = |source| ImportError::Read { name: input.to_owned(), source };
    let file = Stream::open(input).map_err(unreadable)?;
    let options = ImportOptions { name: input.to_owned(), ..options };
    import(BufReader::with_capacity(BUFFER_BYTES, file), output, options, writing)
}

/// Imports strace's text from a reader; see [`import_file`].
///
/// # Errors
/// As [`import_file`].
pub fn import(
    input: impl BufRead,
    output: &Path,
    options: ImportOptions,
    writing: WriterOptions,
) -> Result<ImportedProfile, ImportError> {
    let mut writer = WriterBeside::start(Writer::create(output, writing)?)?;
    let mut importer = Importer::new(ImportOptions { keep_removed: true, ..options });
    importer.read(input, &mut |batch| writer.push(batch))?;
    let mut imported = importer.finish(&mut |batch| writer.push(batch))?;
    let snapshot = Snapshot::from_entries(imported.implied_snapshot());
    let meta = writer.finish()?.finish(imported.meta(), &snapshot)?;
    Ok(ImportedProfile { meta, summary: imported.summary })
}

/// What is true of every trace of strace's.
pub(super) fn says() -> Meta {
    Meta {
        tracer: Tracer { name: "strace".into(), version: String::new(), options: Vec::new() },
        clock: "CLOCK_REALTIME by strace -ttt; durations by strace -T".into(),
        ..Meta::default()
    }
}

impl Imported {
    /// What the trace itself says for `meta.json`.
    pub fn meta(&self) -> Meta {
        let summary = &self.summary;
        let coverage = &summary.coverage;
        Meta {
            started_unix_ns: summary.started_unix_ns,
            wall_ns: Some(summary.wall_ns),
            idle_ns: Some(summary.idle_ns),
            unparsed: Unparsed {
                lines: summary.unparsed_lines,
                first_line_numbers: summary.problems.iter().map(|p| p.line).collect(),
            },
            unmodelled: coverage.other_by_name.clone(),
            unseen: unseen(coverage),
            coverage_share: coverage.share(self.summary.lost_events),
            lost_events: summary.lost_events,
            gaps: summary.gaps.clone(),
            returned: self.returned(),
            ..self.says.clone()
        }
    }
}

/// What of the coverage the trace cannot show: what is an event of its own is not unseen.
fn unseen(coverage: &Coverage) -> Unseen {
    let mut unseen = Unseen::default();
    if !coverage.accesses_seen {
        unseen.maps = coverage.data_maps;
        unseen.mapped_bytes = coverage.data_mapped_bytes;
        unseen.image_maps = coverage.image_maps;
        unseen.image_mapped_bytes = coverage.image_mapped_bytes;
        unseen.exec_images = coverage.execs;
    }
    if !coverage.requests_seen {
        unseen.io_uring_setups = coverage.io_uring_setups;
        unseen.io_uring_operations = coverage.io_uring_submitted;
    }
    unseen
}
