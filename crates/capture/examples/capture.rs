//! Records a command in the kernel into a workload profile: `capture OUTPUT.workload COMMAND...`.

use capture::{Options, Recorder, Subject};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use trace::Snapshot;
use trace::kernel::Importer;
use trace::profile::{Tracer, Writer, WriterOptions};
use trace::strace::ImportOptions;

fn main() {
    let mut arguments = std::env::args_os().skip(1);
    let output = PathBuf::from(arguments.next().expect("OUTPUT.workload COMMAND..."));
    let command: Vec<OsString> = arguments.collect();
    let options = WriterOptions { overwrite: true, ..WriterOptions::default() };
    let mut writer = Writer::create(&output, options).expect("the output");
    let mut importer =
        Importer::new(ImportOptions { name: "the recorder".into(), keep_removed: true, ..ImportOptions::default() });
    let mut recorder = Recorder::start(&Options::of(Subject::Command)).unwrap_or_else(|e| panic!("{e}"));
    let mut child = recorder.spawn(&command, |_| {}).unwrap_or_else(|e| panic!("{e}"));
    let mut records = Vec::new();
    let status = loop {
        recorder.drain(&mut |chunk| records.extend_from_slice(chunk));
        importer.bytes(&records, &mut |batch| writer.push(batch)).unwrap_or_else(|e| panic!("{e}"));
        records.clear();
        if let Some(status) = child.try_wait().expect("the command") {
            break status;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let totals = recorder.finish(&mut |chunk| records.extend_from_slice(chunk));
    importer.bytes(&records, &mut |batch| writer.push(batch)).unwrap_or_else(|e| panic!("{e}"));
    let mut imported = importer.finish(&mut |batch| writer.push(batch)).unwrap_or_else(|e| panic!("{e}"));
    let mut meta = imported.meta();
    meta.tracer = Tracer { name: "ebpf".into(), version: String::new(), options: Vec::new() };
    meta.clock = "CLOCK_MONOTONIC in the kernel, nanoseconds".into();
    let snapshot = Snapshot::from_entries(imported.implied_snapshot());
    let meta = writer.finish(meta, &snapshot).unwrap_or_else(|e| panic!("{e}"));
    eprintln!("{status}; {totals:?}; {} events, {:#?}", meta.events, imported.summary);
}
