//! What goes wrong in analysis, or with the disk, reaches neither the program nor the spool.
//!
//! The analysis of each test is a decoder of its own that panics, fails or loops; the judge is the file that the
//! recorded program writes, and what a sound analysis makes of the spool afterwards.

use std::ffi::OsString;
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use trace::analysis::Decode;
use trace::profile::{Reader, Tracer as Description};
use trace::record::{
    AnalysisError, Drained, Ending, RecordError, RecordOptions, Strace, Target, Tracer, Tracing, import_spool,
    record_with,
};
use trace::spool::{Notation, SpoolError};
use trace::strace::{ImportError, ImportOptions, Imported, Sink};
use trace::{Op, strace};

/// More calls than the pipe of a tracer holds lines, and an exit status of its own.
const ROUNDS: usize = 6_000;
const STATUS: i32 = 11;

/// A shell builtin loop: a line per round, each opened, written and closed.
fn subject(dir: &Path) -> Vec<OsString> {
    let file = dir.join("counted").display().to_string();
    let done = dir.join("done").display().to_string();
    let script = format!(
        "i=0; while [ $i -lt {ROUNDS} ]; do i=$((i+1)); echo $i >> {file} || exit 1; done; echo > {done}; exit {STATUS}"
    );
    ["sh", "-c", &script].iter().map(OsString::from).collect()
}

fn was_undisturbed(dir: &Path) {
    let want: String = (1..=ROUNDS).map(|i| format!("{i}\n")).collect();
    assert!(fs::read_to_string(dir.join("counted")).expect("its file") == want, "every round once, in order");
    assert!(dir.join("done").exists());
}

/// The writes to `counted` in a profile, by what they returned.
fn recorded(profile: &Path) -> Vec<i64> {
    let mut found = Vec::new();
    for batch in Reader::open(profile).expect("a profile").batches().expect("batches") {
        let batch = batch.expect("a batch");
        for event in batch.events.iter().filter(|event| event.op() == Op::Write) {
            if event.path().is_some_and(|id| batch.paths.get(id).ends_with(b"/counted")) {
                found.push(event.head.ret);
            }
        }
    }
    found
}

fn lengths() -> Vec<i64> {
    (1..=ROUNDS).map(|i| format!("{i}\n").len() as i64).collect()
}

/// strace, or a tracer like it, with another decoder.
struct With<T, D>(T, D);

impl<T: Tracer, D: Fn(Box<dyn Decode>) -> Box<dyn Decode>> Tracer for With<T, D> {
    fn notation(&self) -> Notation {
        self.0.notation()
    }
    fn describe(&self) -> Description {
        self.0.describe()
    }
    fn clock(&self) -> String {
        self.0.clock()
    }
    fn check(&self, target: &Target) -> Result<(), RecordError> {
        self.0.check(target)
    }
    fn start(&mut self, target: &Target) -> Result<Box<dyn Tracing>, RecordError> {
        self.0.start(target)
    }
    fn counter(&self) -> fn(&[u8]) -> u64 {
        self.0.counter()
    }
    fn decoder(&self, options: ImportOptions) -> Box<dyn Decode> {
        (self.1)(self.0.decoder(options))
    }
}

/// A decoder that does something instead, after so many bytes.
struct Instead<F> {
    sound: Box<dyn Decode>,
    after_bytes: usize,
    then: F,
}

impl<F: FnMut() -> Result<(), ImportError> + Send> Decode for Instead<F> {
    fn bytes(&mut self, chunk: &[u8], sink: &mut Sink<'_>) -> Result<(), ImportError> {
        if self.after_bytes <= chunk.len() {
            (self.then)()?;
        }
        self.after_bytes = self.after_bytes.saturating_sub(chunk.len());
        self.sound.bytes(chunk, sink)
    }
    fn finish(mut self: Box<Self>, sink: &mut Sink<'_>) -> Result<Imported, ImportError> {
        if self.after_bytes > 0 {
            (self.then)()?;
        }
        self.sound.finish(sink)
    }
}

fn instead<F>(after_bytes: usize, then: F) -> impl Fn(Box<dyn Decode>) -> Box<dyn Decode>
where
    F: FnMut() -> Result<(), ImportError> + Send + Clone + 'static,
{
    move |sound| Box::new(Instead { sound, after_bytes, then: then.clone() })
}

/// strace; `None` where it is missing or may not trace, for which the test is skipped.
fn tracer() -> Option<Strace> {
    let tried = Strace::find(None).and_then(|mut strace| {
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().expect("sleep(1)");
        let started = strace.start(&Target::Processes(vec![child.id()])).map(drop);
        child.kill().and_then(|()| child.wait()).expect("it ends");
        started.map(|()| strace)
    });
    tried.map_err(|e| testkit::skip(e)).ok()
}

fn options(dir: &Path) -> RecordOptions {
    let mut options = RecordOptions::command(subject(dir), dir.join("out.workload"));
    options.snapshot_working_directory = false;
    options
}

/// Records with a faulty analysis, and checks that nothing but the profile is missing. Gives the error.
fn only_the_profile_is_missing<D>(decoder: D, patience: Duration) -> Option<AnalysisError>
where
    D: Fn(Box<dyn Decode>) -> Box<dyn Decode>,
{
    let dir = tempfile::tempdir().expect("a directory");
    let mut options = options(dir.path());
    options.patience = patience;
    let mut recording = record_with(&options, &mut With(tracer()?, decoder)).expect("a recording");
    was_undisturbed(dir.path());
    let profile = std::mem::replace(&mut recording.profile, Err(RecordError::NoCommand));
    assert_eq!(recording.wait().expect("its end").exit_status, Some(STATUS));
    let error = profile.expect_err("no profile");
    let spool = dir.path().join("out.spool");
    let text = error.to_string();
    assert!(text.contains("fsage import") && text.contains(&spool.display().to_string()), "{text}");
    let mut names: Vec<OsString> =
        fs::read_dir(dir.path()).expect("names").map(|e| e.expect("a name").file_name()).collect();
    names.sort();
    assert_eq!(names, ["counted", "done", "out.spool"], "nothing is left of the profile");
    let summary = import_spool(&spool, &options.output, false).expect("what the message advises works");
    assert_eq!(summary.exit_status, Some(STATUS));
    assert_eq!(recorded(&options.output), lengths(), "nothing is missing");
    match error {
        RecordError::Analysis { error, lost_records: 0, .. } => Some(error),
        other => panic!("{other}"),
    }
}

#[test]
fn an_analysis_that_panics() {
    for after_bytes in [0, 300_000, usize::MAX] {
        let panic = || panic!("index out of bounds, as it were");
        let Some(error) = only_the_profile_is_missing(instead(after_bytes, panic), Duration::MAX) else { return };
        assert!(matches!(&error, AnalysisError::Panicked { what } if what.contains("as it were")), "{error}");
    }
}

#[test]
fn an_analysis_that_loops_for_ever() {
    let forever = || loop {
        std::thread::sleep(Duration::from_millis(10));
    };
    // So long without a step, and the loop is given up, however slow the machine: it never makes one.
    let Some(error) = only_the_profile_is_missing(instead(0, forever), Duration::from_secs(2)) else { return };
    assert!(matches!(error, AnalysisError::Stuck { .. }), "{error}");
}

#[test]
fn an_analysis_that_fails() {
    let fail = || Err(ImportError::NotStrace { name: "x".into() });
    let Some(error) = only_the_profile_is_missing(instead(300_000, fail), Duration::MAX) else { return };
    assert!(matches!(error, AnalysisError::Import(ImportError::NotStrace { .. })), "{error}");
}

/// The analysis takes its first bytes only when the program has ended. If capture waited for it, both would wait for
/// ever.
#[test]
fn the_program_never_waits_for_the_analysis() {
    let Some(strace) = tracer() else { return };
    let dir = tempfile::tempdir().expect("a directory");
    let done = dir.path().join("done");
    let late = move || {
        while !done.exists() {
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    };
    let options = options(dir.path());
    let recording = record_with(&options, &mut With(strace, instead(0, late))).expect("a recording");
    was_undisturbed(dir.path());
    recording.profile.expect("a profile");
    assert_eq!(recorded(&options.output), lengths());
    assert!(!dir.path().join("out.spool").exists());
}

/// A disk with little room: what does not fit is counted and said, and the program does not notice.
#[test]
fn a_full_disk() {
    let Some(strace) = tracer() else { return };
    let dir = tempfile::tempdir().expect("a directory");
    let small = dir.path().join("small");
    fs::create_dir(&small).expect("a mount point");
    let mount = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=64k", "fsage-test"])
        .arg(&small)
        .output()
        .expect("mount(8)");
    if !mount.status.success() {
        testkit::skip(format!("no tmpfs can be mounted: {}", String::from_utf8_lossy(&mount.stderr)));
        return;
    }
    let outcome = std::panic::catch_unwind(|| full_disk(dir.path(), strace));
    testkit::unmount(&small);
    outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
}

fn full_disk(dir: &Path, mut strace: Strace) {
    let mut options = options(dir);
    options.output = dir.join("small/out.workload");
    options.keep_free_bytes = Some(0);
    let mut recording = record_with(&options, &mut strace).expect("a recording");
    was_undisturbed(dir);
    let profile = std::mem::replace(&mut recording.profile, Err(RecordError::NoCommand));
    assert_eq!(recording.wait().expect("its end").exit_status, Some(STATUS));
    let (written, missing) = match profile {
        // What was left out made room for a profile, which knows of it.
        Ok(summary) => {
            let text = summary.notes.join("\n");
            assert!(text.contains("No space left") && text.contains(&summary.meta.lost_events.to_string()), "{text}");
            assert_eq!(summary.meta.gaps.iter().map(|gap| gap.events).sum::<u64>(), summary.meta.lost_events);
            (options.output.clone(), summary.meta.lost_events)
        }
        Err(RecordError::Analysis { spool, lost_records, error }) => {
            assert_eq!(spool, dir.join("small/out.spool"));
            let elsewhere = dir.join("elsewhere.workload");
            match import_spool(&spool, &elsewhere, false) {
                Ok(_) => (elsewhere, lost_records),
                // On a busy machine all of it comes in pieces for which there is no room.
                Err(AnalysisError::Spool(SpoolError::NoRecords { .. })) => return assert!(lost_records > 0),
                Err(e) => panic!("{e} after {error}"),
            }
        }
        Err(error) => panic!("{error}"),
    };
    let recorded = recorded(&written);
    assert!(missing > 0 && recorded.len() < ROUNDS, "{} rounds, {missing} records missing", recorded.len());
    // What is there is what happened, with gaps: the lengths of later lines never shrink.
    assert!(recorded.is_sorted(), "{recorded:?}");
}

/// A tracer made of a script: what it says comes from the test.
struct Scripted(Vec<&'static str>, u64);

impl Tracer for Scripted {
    fn notation(&self) -> Notation {
        Notation::Strace
    }
    fn describe(&self) -> Description {
        Description { name: "scripted".into(), ..Description::default() }
    }
    fn clock(&self) -> String {
        "none".into()
    }
    fn check(&self, _: &Target) -> Result<(), RecordError> {
        Ok(())
    }
    fn start(&mut self, _: &Target) -> Result<Box<dyn Tracing>, RecordError> {
        Ok(Box::new(Scripted(self.0.clone(), self.1)))
    }
    fn counter(&self) -> fn(&[u8]) -> u64 {
        |lines| lines.iter().filter(|&&b| b == b'\n').count() as u64
    }
    fn decoder(&self, options: ImportOptions) -> Box<dyn Decode> {
        Box::new(strace::Importer::new(options))
    }
}

impl Tracing for Scripted {
    fn drain(&mut self, _: Duration, take: &mut dyn FnMut(&[u8])) -> std::io::Result<Drained> {
        if self.0.is_empty() {
            return Ok(Drained::Ended);
        }
        take(self.0.remove(0).as_bytes());
        Ok(Drained::Open)
    }
    fn stop(&mut self) {}
    fn lost(&mut self) -> u64 {
        std::mem::take(&mut self.1)
    }
    fn end(self: Box<Self>) -> Ending {
        Ending { lost: true, said: "out of breath".into(), notes: vec!["2 threads are missing".into()] }
    }
}

#[test]
fn what_a_tracer_lost_is_in_the_profile() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut options = options(dir.path());
    options.subject = trace::record::Subject::Command(vec!["true".into()]);
    let lines = vec![
        "7 1700000000.000001 mkdir(\"/a\", 0777) = 0 <0.000001>\n7 1700000000.000002 rmdir(\"/a\") = 0 <0.000001>\n",
    ];
    let recording = record_with(&options, &mut Scripted(lines, 5)).expect("a recording");
    let summary = recording.profile.expect("a profile");
    assert_eq!(summary.meta.lost_events, 5);
    assert_eq!(summary.meta.gaps.iter().map(|gap| gap.events).sum::<u64>(), 5);
    assert_eq!(summary.meta.events, 2);
    assert!(summary.tracer_lost);
    for text in ["5 records", "out of breath", "2 threads are missing"] {
        assert!(summary.notes.iter().any(|note| note.contains(text)), "{text}: {:?}", summary.notes);
    }
    assert!(Reader::open(&options.output).is_ok());
}

/// A spool that a kill cut anywhere gives the profile of what is whole in it, and one that was left is never written
/// over.
#[test]
fn a_spool_that_is_there_is_not_touched() {
    let Some(strace) = tracer() else { return };
    let dir = tempfile::tempdir().expect("a directory");
    let spool = dir.path().join("out.spool");
    fs::write(&spool, "of an earlier recording").expect("a file");
    let panic = || panic!("again");
    let recording = record_with(&options(dir.path()), &mut With(strace, instead(0, panic))).expect("a recording");
    let error = recording.profile.expect_err("no profile");
    assert!(error.to_string().ends_with("out-2.spool"), "{error}");
    assert_eq!(fs::read_to_string(&spool).expect("the old one"), "of an earlier recording");
    assert!(trace::spool::is_spool(&PathBuf::from(dir.path()).join("out-2.spool")));
}

/// strace dies with its signals; what it traced does not.
#[test]
fn a_tracer_dropped_lets_go() {
    let Some(mut strace) = tracer() else { return };
    let mut child = std::process::Command::new("sleep").arg("1000").spawn().expect("sleep(1)");
    let traced_by = |pid: u32| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it lives");
        status.lines().find_map(|line| line.strip_prefix("TracerPid:")).map(|by| by.trim().to_owned())
    };
    let tracing = strace.start(&Target::Processes(vec![child.id()])).expect("strace attaches");
    assert_ne!(traced_by(child.id()).as_deref(), Some("0"));
    drop(tracing);
    assert_eq!(traced_by(child.id()).as_deref(), Some("0"));
    child.kill().expect("a signal");
    assert_eq!(child.wait().expect("its end").signal(), Some(9));
}
