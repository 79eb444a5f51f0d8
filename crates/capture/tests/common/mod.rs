//! Helpers of the tests: recording a command in memory, rows with their paths.

#![allow(dead_code)]

use capture::{Options, Recorder, Subject, Totals};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;
use trace::kernel::Importer;
use trace::profile::ProfileError;
use trace::strace::{ImportOptions, Imported};
use trace::{Batch, Event, PathId};

/// An event with its paths.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub event: Event,
    pub path: Option<Vec<u8>>,
    pub path2: Option<Vec<u8>>,
    pub caller_dir: Option<Vec<u8>>,
    pub caller_dir2: Option<Vec<u8>>,
}

impl Row {
    pub fn path(&self) -> &[u8] {
        self.path.as_deref().unwrap_or_default()
    }
}

/// Collects a batch's rows.
pub fn collect(rows: &mut Vec<Row>, batch: &Batch) -> Result<(), ProfileError> {
    let path = |id: Option<PathId>| id.map(|id| batch.paths.get(id).to_vec());
    rows.extend(batch.events.iter().map(|event| Row {
        event: Event { path: None, path2: None, caller_dir: None, caller_dir2: None, ..*event },
        path: path(event.path),
        path2: path(event.path2),
        caller_dir: path(event.caller_dir),
        caller_dir2: path(event.caller_dir2),
    }));
    Ok(())
}

/// Rows by thread, in the order of the trace.
pub fn in_thread(rows: Vec<Row>) -> BTreeMap<u32, Vec<Row>> {
    let mut all: BTreeMap<u32, Vec<Row>> = BTreeMap::new();
    for row in rows {
        all.entry(row.event.tid).or_default().push(row);
    }
    all
}

/// Whether recording in the kernel is not possible here; then says why.
pub fn skip() -> bool {
    match capture::permitted() {
        Ok(()) => false,
        Err(missing) => {
            eprintln!("skipped: {missing}");
            true
        }
    }
}

/// A recording in memory.
pub struct Recorded {
    pub records: Vec<u8>,
    pub rows: Vec<Row>,
    pub imported: Imported,
    pub totals: Totals,
    pub status: ExitStatus,
}

/// Records a command to its end.
pub fn record(argv: &[OsString], directory: &Path) -> Recorded {
    record_with(&Options::of(Subject::Command), argv, directory)
}

/// The same with options.
pub fn record_with(options: &Options, argv: &[OsString], directory: &Path) -> Recorded {
    let mut recorder = Recorder::start(options).unwrap_or_else(|e| panic!("{e}"));
    let mut child = recorder
        .spawn(argv, |command| {
            command.current_dir(directory).stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        })
        .unwrap_or_else(|e| panic!("{e}"));
    let mut records = Vec::new();
    let status = loop {
        recorder.drain(&mut |chunk| records.extend_from_slice(chunk));
        if let Some(status) = child.try_wait().expect("the command") {
            break status;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let totals = recorder.finish(&mut |chunk| records.extend_from_slice(chunk));
    let (rows, imported) = import(&records);
    Recorded { records, rows, imported, totals, status }
}

/// Imports records.
pub fn import(records: &[u8]) -> (Vec<Row>, Imported) {
    let mut rows = Vec::new();
    let mut importer = Importer::new(ImportOptions { keep_removed: true, ..ImportOptions::default() });
    importer.bytes(records, &mut |batch| collect(&mut rows, batch)).unwrap_or_else(|e| panic!("{e}"));
    let imported = importer.finish(&mut |batch| collect(&mut rows, batch)).unwrap_or_else(|e| panic!("{e}"));
    (rows, imported)
}
