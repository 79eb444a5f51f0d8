//! Helpers of the tests: recording a command in memory, rows with their paths.

use capture::{Options, Recorder, Totals};
use columnar::FileError;
use posix::held::Held;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;
use trace::kernel::Importer;
use trace::record::Target;
use trace::schedule::Turn;
use trace::strace::{ImportOptions, Imported};
use trace::{Batch, PathId};

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
    pub fn path(&self) -> &[u8] {
        self.path.as_deref().unwrap_or_default()
    }
}

/// Collects a batch's rows.
pub fn collect(rows: &mut Vec<Row>, batch: &Batch) -> Result<(), FileError> {
    let path = |id: Option<PathId>| id.map(|id| batch.paths.get(id).to_vec());
    rows.extend(batch.events.iter().map(|event| Row {
        event: trace::profile::Row { path: None, path2: None, caller_dir: None, caller_dir2: None, ..event.into() },
        path: path(event.path()),
        path2: path(event.path2()),
        caller_dir: path(event.caller_dir()),
        caller_dir2: path(event.caller_dir2()),
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

/// Whether recording in the kernel is possible here; otherwise the test is skipped.
pub fn may_record() -> bool {
    testkit::have(capture::permitted()).is_some()
}

/// A recording in memory.
pub struct Recorded {
    pub records: Vec<u8>,
    pub rows: Vec<Row>,
    pub schedule: Vec<Turn>,
    pub imported: Imported,
    pub totals: Totals,
    pub status: ExitStatus,
}

/// Records a command to its end.
pub fn record(argv: &[OsString], directory: &Path) -> Recorded {
    record_with(&Options::default(), argv, directory)
}

/// The same with the command's output in a file.
pub fn record_to(argv: &[OsString], directory: &Path, output: &Path) -> Recorded {
    let output = std::fs::File::create(output).expect("a file for the output");
    run(&Options::default(), held(argv, directory, output.into()))
}

/// A command that waits to be recorded.
pub fn held(argv: &[OsString], directory: &Path, output: Stdio) -> Held {
    let mut command = Command::new(&argv[0]);
    command.args(&argv[1..]).current_dir(directory).stdout(output).stderr(Stdio::null());
    Held::spawn(command).expect("a process")
}

/// The same with options.
pub fn record_with(options: &Options, argv: &[OsString], directory: &Path) -> Recorded {
    run(options, held(argv, directory, Stdio::null()))
}

fn run(options: &Options, held: Held) -> Recorded {
    let mut recorder = Recorder::start(&Target::Command(held.pid()), options).unwrap_or_else(|e| panic!("{e}"));
    let mut child = held.release().expect("the command");
    let mut records = Vec::new();
    let begun = std::time::Instant::now();
    while !recorder.has_ended() {
        assert!(begun.elapsed() < testkit::process::PATIENCE, "the command does not end");
        recorder.drain(&mut |chunk| records.extend_from_slice(chunk));
        std::thread::sleep(Duration::from_millis(5));
        // Nobody waits for the child otherwise, and a child that nobody waited for has still ended.
        let _ = child.try_wait();
    }
    let status = child.wait().expect("the command");
    let totals = recorder.finish(&mut |chunk| records.extend_from_slice(chunk));
    let (rows, schedule, imported) = import_all(&records);
    Recorded { records, rows, schedule, imported, totals, status }
}

/// Records whatever a target does while `run` runs.
pub fn record_while(target: &Target, run: impl FnOnce()) -> Recorded {
    let recorder = Recorder::start(target, &Options::default()).unwrap_or_else(|e| panic!("{e}"));
    run();
    let mut records = Vec::new();
    let totals = recorder.finish(&mut |chunk| records.extend_from_slice(chunk));
    let (rows, schedule, imported) = import_all(&records);
    Recorded { records, rows, schedule, imported, totals, status: ExitStatus::default() }
}

/// Imports records.
pub fn import(records: &[u8]) -> (Vec<Row>, Imported) {
    let (rows, _, imported) = import_all(records);
    (rows, imported)
}

fn import_all(records: &[u8]) -> (Vec<Row>, Vec<Turn>, Imported) {
    let (mut rows, mut schedule) = (Vec::new(), Vec::new());
    let mut importer = Importer::new(ImportOptions { keep_removed: true, ..ImportOptions::default() });
    let mut take = |batch: Batch| {
        schedule.extend_from_slice(&batch.schedule);
        collect(&mut rows, &batch)
    };
    importer.bytes(records, &mut take).unwrap_or_else(|e| panic!("{e}"));
    let imported = importer.finish(&mut take).unwrap_or_else(|e| panic!("{e}"));
    (rows, schedule, imported)
}

/// Compiles a C program; `None` where there is no compiler, for which the test is skipped.
pub fn compiled(source: &str, directory: &Path) -> Option<OsString> {
    let compiler = testkit::tool(testkit::Tool::Cc)?;
    let (text, program) = (directory.join("program.c"), directory.join("program"));
    std::fs::write(&text, source).expect("written");
    let status = Command::new(compiler).arg("-O1").arg("-pthread").arg("-o").arg(&program).arg(&text).status();
    assert!(status.expect("cc").success(), "the program does not compile");
    Some(program.into())
}
