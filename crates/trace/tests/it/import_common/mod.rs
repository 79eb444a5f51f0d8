//! Helpers of the import tests: rows with their paths resolved.

use trace::analysis::Decode;
use trace::profile::Meta;
use trace::strace::{ImportError, ImportOptions, Importer, Summary};
use trace::{Batch, PathId, SnapshotEntry};

/// An event with its paths.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub event: trace::profile::Row,
    pub path: Option<Vec<u8>>,
    pub path2: Option<Vec<u8>>,
    pub caller_dir: Option<Vec<u8>>,
    pub caller_dir2: Option<Vec<u8>>,
}

impl Row {
    /// The path as text.
    pub fn path(&self) -> &str {
        std::str::from_utf8(self.path.as_deref().unwrap_or_default()).expect("a test path in UTF-8")
    }

    /// One line that shows everything but identities and times.
    pub fn text(&self) -> String {
        let e = &self.event;
        let path = |p: &Option<Vec<u8>>| p.as_ref().map_or("-".into(), |p| p.escape_ascii().to_string());
        let number = |n: Option<u64>| n.map_or("-".into(), |n| n.to_string());
        format!(
            "{} {}/{} {} flags={:#x} mode={} errno={} ret={} ofd={} ofd2={} file={} parent={} at={}/{} len={} size={} \
             {} {} {} {}",
            e.seq,
            e.pid,
            e.tid,
            e.op.name(),
            e.flags,
            e.mode.map_or("-".into(), |m| format!("{m:o}")),
            e.errno,
            if e.op == trace::Op::Mmap { 0 } else { e.ret },
            number(e.ofd.map(|o| o.0)),
            number(e.ofd2.map(|o| o.0)),
            number(e.file.map(|f| f.0)),
            number(e.parent.map(|f| f.0)),
            number(e.offset),
            number(e.offset2),
            number(e.req_bytes),
            number(e.size_before),
            path(&self.path),
            path(&self.path2),
            path(&self.caller_dir),
            path(&self.caller_dir2),
        )
    }
}

/// What an import made.
pub struct Import {
    pub rows: Vec<Row>,
    pub summary: Summary,
    pub implied: Vec<SnapshotEntry>,
}

/// Collects a batch's rows.
pub fn collect(rows: &mut Vec<Row>, batch: &Batch) {
    let path = |id: Option<PathId>| id.map(|id| batch.paths.get(id).to_vec());
    rows.extend(batch.events.iter().map(|event| Row {
        event: trace::profile::Row { path: None, path2: None, caller_dir: None, caller_dir2: None, ..event.into() },
        path: path(event.path()),
        path2: path(event.path2()),
        caller_dir: path(event.caller_dir()),
        caller_dir2: path(event.caller_dir2()),
    }));
}

/// Imports text.
pub fn try_import(text: &[u8]) -> Result<Import, ImportError> {
    import_with(text, ImportOptions { keep_removed: true, problems_listed: 1000, ..ImportOptions::default() })
}

/// Imports text with options.
pub fn import_with(text: &[u8], options: ImportOptions) -> Result<Import, ImportError> {
    let mut rows = Vec::new();
    let mut importer = Importer::new(options);
    importer.read(text, &mut |batch| {
        collect(&mut rows, &batch);
        Ok(())
    })?;
    let mut imported = importer.finish(&mut |batch| {
        collect(&mut rows, &batch);
        Ok(())
    })?;
    let implied = imported.implied_snapshot();
    Ok(Import { rows, summary: imported.summary, implied })
}

/// Feeds a text to any importer, in pieces of so many bytes.
pub fn decode(mut importer: Box<dyn Decode>, text: &[u8], piece: usize) -> Result<(Import, Meta), ImportError> {
    let mut rows = Vec::new();
    for piece in text.chunks(piece) {
        importer.bytes(piece, &mut |batch| {
            collect(&mut rows, &batch);
            Ok(())
        })?;
    }
    let mut imported = importer.finish(&mut |batch| {
        collect(&mut rows, &batch);
        Ok(())
    })?;
    let implied = imported.implied_snapshot();
    let meta = imported.meta();
    Ok((Import { rows, summary: imported.summary, implied }, meta))
}

/// Imports text that must be understood whole.
pub fn import(text: &str) -> Import {
    let import = try_import(text.as_bytes()).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(import.summary.problems, [], "in {text}");
    import
}

/// Calls without leader as a trace of process 7, a microsecond each.
pub fn trace(calls: &[&str]) -> String {
    let line = |(i, call): (usize, &&str)| {
        let end = if call.ends_with("+++") || call.ends_with('?') { "" } else { " <0.000001>" };
        format!("7 1700000000.{:06} {call}{end}\n", i * 10)
    };
    calls.iter().enumerate().map(line).collect()
}

/// The rows of [`trace`].
pub fn rows(calls: &[&str]) -> Vec<Row> {
    import(&trace(calls)).rows
}
