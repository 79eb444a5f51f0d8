//! Recordings of the torture program (`torture.c`) held against the truth that it writes down itself: call by call,
//! what was asked and answered, at which offset, and which file it concerned as the kernel's own handle for the inode
//! says.
//!
//! Each tracer's test includes this file: one program and one comparison for all.

#![allow(dead_code)] // Not every tracer's test uses all of it.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use trace::agree::{Agreement, Comparison, End, Fact};
use trace::profile::Reader;
use trace::record::{RecordError, RecordOptions, Tracer, record_with};
use trace::{Event, Op, flag};

/// Compiles the program, for a run with root directories of their own statically: it executes itself where there are no
/// libraries. `None`, said aloud, where that cannot be done.
fn compiled(directory: &Path, rooted: bool) -> Option<PathBuf> {
    if !cfg!(target_arch = "x86_64") {
        testkit::skip("the torture program makes system calls by hand, for x86-64 only");
        return None;
    }
    let (source, program) = (directory.join("torture.c"), directory.join("torture"));
    std::fs::write(&source, include_str!("torture.c")).expect("the source");
    let mut compiler = Command::new("cc");
    compiler.args(rooted.then_some("-static")).args(["-O1", "-Wall", "-Wextra", "-Werror"]);
    compiler.args(["-Wno-override-init", "-Wno-format-truncation", "-o"]);
    testkit::tool(testkit::Tool::Cc)?;
    match compiler.arg(&program).arg(&source).output() {
        Err(e) => panic!("cc: {e}"),
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            if rooted && said.contains("cannot find -lc") {
                testkit::skip("there is no static C library");
                return None;
            }
            assert!(output.status.success(), "{said}");
            let top = directory.join("w");
            std::fs::create_dir(&top).expect("a directory");
            // What is executed where that is the root.
            testkit::process::copy_program(&program, top.join("torture"));
            Some(program)
        }
    }
}

/// A run.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// What makes it this one and no other, but for the order in which threads run.
    pub seed: u64,
    /// How many operations all threads do together.
    pub operations: u64,
    /// How many processes the first one starts, and threads in each.
    pub processes: u32,
    #[allow(missing_docs)]
    pub threads: u32,
    /// One call at a time, and the referee looks at the files.
    pub serial: bool,
    /// With what no tracer can tell that shows descriptors by their paths.
    pub everything: bool,
    /// With root directories of their own, as root.
    pub rooted: bool,
}

impl Run {
    /// As asked for in the environment, or as given.
    fn as_asked(self) -> Run {
        let asked = |name: &str| std::env::var(name).ok().map(|text| text.parse().expect(name));
        Run {
            seed: asked("TORTURE_SEED").unwrap_or(self.seed),
            operations: asked("TORTURE_OPERATIONS").unwrap_or(self.operations),
            ..self
        }
    }

    /// The program's arguments behind the log and the directory.
    fn arguments(&self) -> Vec<OsString> {
        let numbers = [self.seed, self.operations, self.processes.into(), self.threads.into()];
        let mut arguments: Vec<OsString> = numbers.iter().map(|n| n.to_string().into()).collect();
        arguments.push(if self.serial { "serial" } else { "racing" }.into());
        arguments.extend(self.everything.then(|| "everything".into()));
        arguments
    }
}

/// The program that looks at files for the recorded one, and is not recorded; ended when dropped.
struct Referee(Child);

impl Referee {
    /// Starts as soon as the log is there.
    fn start(program: &Path, log: &Path) -> Referee {
        let script = "while [ ! -s \"$2\" ]; do sleep 0.02; done; exec \"$1\" referee \"$2\"";
        let arguments = [Path::new("sh"), program, log];
        Referee(
            Command::new("sh").arg("-c").arg(script).args(arguments).stdin(Stdio::null()).spawn().expect("the referee"),
        )
    }
}

impl Drop for Referee {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Records a run with a tracer and holds the recording against the truth. There must be no difference.
///
/// `None` where that cannot be done.
pub fn hold(run: Run, tracer: &mut dyn Tracer) -> Option<Agreement> {
    let run = run.as_asked();
    let agreement = agreement(&run, tracer)?;
    assert_none_differ(&run, "left is the truth, right the recording", &agreement);
    Some(agreement)
}

/// All that a run needs; removed when dropped.
pub struct Stage {
    /// What to run.
    pub command: Vec<OsString>,
    log: PathBuf,
    tree: PathBuf,
    scratch: tempfile::TempDir,
    referee: Option<Referee>,
}

impl Stage {
    /// How many descriptors came over a socket, after the run.
    pub fn received(&self) -> u64 {
        let log = std::fs::read(&self.log).expect("the log");
        records(&log).iter().filter(|(_, _, name)| name == RECEIVED).count() as u64
    }
}

/// Makes all that a run needs; `None` where that cannot be done.
pub fn stage(run: &Run) -> Option<Stage> {
    // Only root can change its root directory.
    if run.rooted && !testkit::need(testkit::Need::Root) {
        return None;
    }
    let scratch = tempfile::tempdir().expect("a directory");
    let root = std::fs::canonicalize(scratch.path()).expect("its path");
    let program = compiled(&root, run.rooted)?;
    // Deep, so that `..` too many stay below our directory.
    let (tree, work, log) = (root.join("w"), root.join("w/1/2/3/4/5"), root.join("log"));
    std::fs::create_dir_all(&work).expect("directories");
    let referee = run.serial.then(|| Referee::start(&program, &log));
    let mut command: Vec<OsString> = vec![program.into(), "run".into(), log.clone().into(), work.into()];
    command.extend(run.arguments());
    if run.rooted {
        command.extend(["rooted".into(), tree.clone().into()]);
    }
    Some(Stage { command, log, tree, scratch, referee })
}

fn agreement(run: &Run, tracer: &mut dyn Tracer) -> Option<Agreement> {
    let Stage { command, log, tree, scratch, referee } = stage(run)?;
    let output = scratch.path().join("torture.workload");
    let mut options = RecordOptions::command(command, output.clone());
    options.snapshot_working_directory = false;
    options.roots = vec![tree];
    let mut recording = match record_with(&options, tracer) {
        Ok(recording) => recording,
        Err(e @ RecordError::CannotTrace { .. }) => {
            testkit::skip(e);
            return None;
        }
        Err(e) => panic!("{e}"),
    };
    let summary = std::mem::replace(&mut recording.profile, Err(RecordError::NoCommand));
    recording.wait().expect("the command's end");
    let summary = summary.unwrap_or_else(|e| panic!("{e}"));
    drop(referee);
    assert_eq!((summary.exit_status, summary.signal), (Some(0), None), "the torture program itself failed");
    assert_eq!(summary.import.problems, []);
    assert_eq!(summary.import.lost_events, 0, "the tracer's buffer is large enough");
    if let Some(kept) = std::env::var_os("TORTURE_KEEP") {
        let copied = Command::new("cp").arg("-a").arg(&output).arg(&log).arg(&kept).status().expect("cp");
        assert!(copied.success());
    }
    let truth = truth(&std::fs::read(&log).expect("the log"));
    assert!(truth.len() as u64 >= run.operations / 2, "{} calls in the log", truth.len());
    let reader = Reader::open(&output).expect("the profile");
    let mut comparison = Comparison::default();
    dump("left", truth.iter());
    let mut right = Vec::new();
    truth.into_iter().for_each(|fact| comparison.left(fact));
    let mut marks = Marks::default();
    let mut by_mount = 0;
    for batch in reader.batches().expect("the trace") {
        let batch = batch.expect("a row group");
        for event in &batch.events {
            if marks.counts(event)
                && let Some(fact) = Fact::of_event(event, &batch.paths)
            {
                by_mount += u64::from(event.head.flags & flag::BY_MOUNT != 0 && fact.file.is_some());
                if dumps() {
                    right.push(fact.clone());
                }
                comparison.right(fact);
            }
        }
    }
    dump("right", right.iter());
    if run.everything && run.serial && !run.rooted {
        eprintln!("seed {}: {by_mount} calls on known files by way of bind mounts", run.seed);
        // One thread alone may make none in a short run.
        assert!(by_mount > 0 || run.operations < 5_000);
    }
    Some(comparison.finish())
}

fn dumps() -> bool {
    std::env::var_os("TORTURE_DUMP").is_some()
}

/// Writes a side out to `$TORTURE_DUMP/NAME.txt`, one call a line, to find out what led to a difference.
pub fn dump<'a>(name: &str, facts: impl Iterator<Item = &'a Fact>) {
    let Some(directory) = std::env::var_os("TORTURE_DUMP") else { return };
    let mut text = String::new();
    for f in facts {
        let shown =
            |path: &Option<Box<[u8]>>| path.as_ref().map_or("-".to_owned(), |p| format!("\"{}\"", p.escape_ascii()));
        let number = |n: Option<u64>| n.map_or("-".to_owned(), |n| n.to_string());
        text.push_str(&format!(
            "{} {} {} {} = {} e{} fl{:x} off{} by{} sz{} F{} D{} @{}\n",
            f.tid,
            f.op.name(),
            shown(&f.path),
            shown(&f.path2),
            f.ret,
            f.errno,
            f.flags,
            number(f.offset),
            number(f.bytes),
            number(f.size_before),
            number(f.file),
            number(f.ofd),
            f.at
        ));
    }
    std::fs::write(Path::new(&directory).join(format!("{name}.txt")), text).expect("the dump");
}

/// Which calls of the recording are ones of the log: those between a thread's marks. Who is born between marks is
/// between them.
#[derive(Default)]
struct Marks {
    outside: HashMap<u32, bool>,
    first: Option<u32>,
}

impl Marks {
    fn counts(&mut self, event: &Event) -> bool {
        let first = *self.first.get_or_insert(event.head.tid);
        let outside = self.outside.entry(event.head.tid).or_insert(event.head.tid == first);
        match event.op() {
            // `access` with R_OK | X_OK, and with W_OK | X_OK.
            Op::Access if event.mode() == Some(5) => {
                *outside = false;
                return false;
            }
            Op::Access if event.mode() == Some(3) => *outside = true,
            Op::Exec if event.head.errno.is_none() && event.head.flags & flag::UNFINISHED == 0 => {
                return !std::mem::replace(outside, true);
            }
            // Its number can be given to another.
            Op::Exit => {
                self.outside.remove(&event.head.tid);
                return false;
            }
            _ => {}
        }
        !*outside
    }
}

/// A descriptor that came over a socket, in the log.
const RECEIVED: &str = "received";

/// Where the log's whole records begin, how far each call got, and its name.
fn records(log: &[u8]) -> Vec<(usize, u32, String)> {
    let u64_at = |at: usize| u64::from_ne_bytes(log[at..at + 8].try_into().expect("eight bytes"));
    let u32_at = |at: usize| u32::from_ne_bytes(log[at..at + 4].try_into().expect("four bytes"));
    let (mut at, end) = (u64_at(16) as usize, (u64_at(24) as usize).min(log.len()));
    let mut records = Vec::new();
    while at < end {
        let (length, state) = (u32_at(at) as usize, u32_at(at + 4));
        let name: Vec<u8> = log[at + 16..at + 32].iter().copied().take_while(|&b| b != 0).collect();
        if length > 0 && state != 0 {
            records.push((at, state, String::from_utf8(name).expect("an operation")));
        }
        at += length.max(8); // Of one whose writer was killed before it wrote anything, nothing is there.
    }
    records
}

/// Reads the log: `struct shared` and `struct record` of torture.c.
fn truth(log: &[u8]) -> Vec<Fact> {
    const HEAD: usize = 136;
    const NONE: i64 = -1;
    let u64_at = |at: usize| u64::from_ne_bytes(log[at..at + 8].try_into().expect("eight bytes"));
    let u32_at = |at: usize| u32::from_ne_bytes(log[at..at + 4].try_into().expect("four bytes"));
    let u16_at = |at: usize| u16::from_ne_bytes(log[at..at + 2].try_into().expect("two bytes"));
    let mut facts = Vec::new();
    for (start, state, name) in records(log) {
        let i64_at = |offset: usize| u64_at(start + offset) as i64;
        let known = |offset: usize| Some(i64_at(offset)).filter(|&value| value != NONE);
        let unsigned = |offset: usize| known(offset).map(|value| value as u64);
        let raw = u32_at(start + 32);
        let paths = start + HEAD;
        let (one, two) = (u32_at(start + 128), u32_at(start + 132));
        let given = |from: usize, length: u32| -> Option<Box<[u8]>> {
            // Beyond what the kernel takes, no tracer can show it.
            (length < 4096).then(|| log[from..from + length as usize].into())
        };
        let path = given(paths, one);
        let path2 = given(paths + if one == u32::MAX { 0 } else { one as usize }, two);
        let tid = u32_at(start + 12);
        let result = i64_at(40);
        if name == RECEIVED {
            continue;
        }
        if name == "close_range" {
            assert!(state != 2 || result == 0, "close_range of three open descriptors: {result}");
            // A thread that was killed in it may have closed any of them.
            let of = |fact: Fact| if state == 2 { fact } else { Fact { end: End::Unknown, ..fact } };
            facts.extend((0..3).map(|_| of(Fact::new(tid, Op::Close))));
            continue;
        }
        let op = Op::from_name(&name).unwrap_or_else(|| panic!("{name}: no operation"));
        let explicit = unsigned(64);
        let size = unsigned(112);
        let appends = u32_at(start + 120) != 0 || raw & libc_flags::O_APPEND != 0;
        let offset = match op {
            Op::Write if appends => size,
            // Whether it appends is not known without the referee.
            Op::Write if size.is_none() => None,
            // Positions in a directory are the file system's own.
            Op::Read if size.is_none() => explicit,
            Op::Read | Op::Write | Op::Copy => explicit.or(unsigned(104)),
            _ => explicit,
        };
        let (flags, mut flags_known) = flags(op, raw, explicit.is_some());
        if known(64).is_some_and(|offset| offset < 0) {
            flags_known = 0; // Refused; what it would have been does not matter.
        }
        facts.push(Fact {
            tid,
            at: start as u64,
            op,
            flags,
            flags_known,
            ret: result,
            errno: u16_at(start + 36),
            offset,
            offset2: unsigned(72),
            bytes: unsigned(80),
            mode: known(88).map(|mode| mode as u16),
            size_before: size.filter(|_| op != Op::Open),
            path,
            path2,
            file: Some(u64_at(start + 96)).filter(|&file| file != 0),
            ofd: None,
            // Any call can have been begun again by the kernel without its caller's knowing.
            // Who executes cannot tell afterwards that it was not killed in it.
            end: if state == 2 && !(op == Op::Exec && result == 0) { End::Restarted } else { End::Unknown },
        });
    }
    facts
}

/// The kernel's numbers, from its headers (x86-64), not from the code under test.
mod libc_flags {
    pub const O_CREAT: u32 = 0o100;
    pub const O_EXCL: u32 = 0o200;
    pub const O_TRUNC: u32 = 0o1000;
    pub const O_APPEND: u32 = 0o2000;
    pub const O_DSYNC: u32 = 0o10000;
    pub const O_DIRECTORY: u32 = 0o200_000;
    pub const O_NOFOLLOW: u32 = 0o400_000;
    pub const O_NOATIME: u32 = 0o1_000_000;
    pub const O_CLOEXEC: u32 = 0o2_000_000;
    pub const O_SYNC: u32 = 0o4_010_000;
    pub const O_PATH: u32 = 0o10_000_000;
    pub const O_TMPFILE: u32 = 0o20_200_000;
}

/// The flags that the trace must show for a call's, and which of them are known.
fn flags(op: Op, raw: u32, positional: bool) -> (u32, u32) {
    use libc_flags::*;
    match op {
        Op::Open => {
            let has = |bits: u32, flag: u32| if raw & bits == bits { flag } else { 0 };
            let access = [flag::READ, flag::WRITE, flag::READ | flag::WRITE, 0][(raw & 3) as usize];
            let rest = has(O_CREAT, flag::CREATE)
                | has(O_EXCL, flag::EXCL)
                | has(O_TRUNC, flag::TRUNC)
                | has(O_APPEND, flag::APPEND)
                | has(O_NOFOLLOW, flag::NOFOLLOW)
                | has(O_NOATIME, flag::NOATIME)
                | has(O_CLOEXEC, flag::CLOEXEC)
                | has(O_PATH, flag::PATH_ONLY)
                | if raw & O_TMPFILE == O_TMPFILE { flag::TMPFILE } else { has(O_DIRECTORY, flag::DIRECTORY) }
                | if raw & O_SYNC == O_SYNC { flag::SYNC } else { has(O_DSYNC, flag::DSYNC) };
            let known =
                flag::READ | flag::WRITE | flag::CREATE | flag::EXCL | flag::TRUNC | flag::APPEND | flag::NOFOLLOW;
            let known = known | flag::NOATIME | flag::CLOEXEC | flag::PATH_ONLY | flag::TMPFILE | flag::DIRECTORY;
            (access | rest, known | flag::SYNC | flag::DSYNC)
        }
        Op::Read | Op::Write => (if positional { flag::POSITIONAL } else { 0 }, flag::POSITIONAL),
        Op::Rename => {
            let flags = if raw & 1 != 0 { flag::NOREPLACE } else { 0 } | if raw & 2 != 0 { flag::EXCHANGE } else { 0 };
            (flags, flag::NOREPLACE | flag::EXCHANGE)
        }
        Op::Stat | Op::Access | Op::Chown => (if raw & 0x100 != 0 { flag::NOFOLLOW } else { 0 }, flag::NOFOLLOW),
        Op::Seek | Op::Fallocate | Op::Fcntl => (raw << flag::SUB_SHIFT, 0xff << flag::SUB_SHIFT),
        _ => (0, 0),
    }
}

/// Prints what differs and fails.
pub fn assert_none_differ(run: &Run, sides: &str, agreement: &Agreement) {
    eprintln!(
        "seed {}: {} calls, {} files compared, {} known to one side only, {} cut off, {} received, {} differences",
        run.seed,
        agreement.calls,
        agreement.files_compared,
        agreement.files_unknown,
        agreement.cut_off,
        agreement.received,
        agreement.total()
    );
    for ((aspect, op), count) in &agreement.counts {
        eprintln!("{count:>8} {}: {}", op.name(), aspect.name());
    }
    // The earliest of those kept: most of the others follow from it.
    let mut kept: Vec<_> = agreement.differences.iter().collect();
    kept.sort_by_key(|difference| difference.right.as_ref().map(|fact| fact.at));
    for difference in kept.iter().take(12) {
        eprintln!("{difference}");
    }
    assert_eq!(agreement.total(), 0, "{sides}; seed {}", run.seed);
}
