//! How much time `fsage age` takes beside the same system calls in a bare C loop, and how many operations a second that
//! is.
//!
//! `age PLAN.aging TARGET [--rounds N] [--data write|fallocate]`: the plan is replayed once on a fresh TARGET (a
//! scratch file system) with every call written down; then the replay and `age_loop.c`, compiled with cc, which
//! performs exactly those calls, are run in turns on fresh scratch file systems made the same way. Prints both times,
//! their ratio by round, and operations of the plan by second. Needs root and a C compiler.

use aging::age::{AgeOptions, Begin, DataMode, Observer, age, identity, room};
use aging::format::Reader;
use anyhow::{Context, bail};
use fsage_benchmarks::CommandLine;
use posix::{Call, Fallocate, FileSystem, FsUsage, Mounted, Outcome, Process, Target, Workspace, WorkspaceOptions};
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

const LOOP_SOURCE: &str = include_str!("age_loop.c");

fn main() -> anyhow::Result<()> {
    let usage = "usage: age PLAN.aging TARGET [--rounds N] [--data write|fallocate]";
    let (mut rounds, mut data, mut given) = (5usize, DataMode::Fallocate, Vec::new());
    let mut args = CommandLine::of_program();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--rounds" => rounds = args.number()?,
            "--data" => data = if args.value()? == "write" { DataMode::Write } else { DataMode::Fallocate },
            flag if flag.starts_with('-') => bail!(usage),
            other => given.push(other.to_owned()),
        }
    }
    let [plan, target] = given.as_slice() else { bail!(usage) };
    let plan = PathBuf::from(plan);
    let target = Target::parse(target)?;
    posix::interrupt::install()?;
    let dir = tempfile::tempdir()?;
    let (list, binary) = (dir.path().join("calls"), dir.path().join("age_loop"));
    compile(dir.path(), &binary)?;

    let reader = Reader::open(&plan)?;
    let (calls, deviation) = written_down(&plan, &reader, &target, data, &list)?;
    println!("plan {}: {} operations, {calls} calls", plan.display(), reader.meta().counts.operations);
    println!("largest excess over the planned use {:.3} points, shortfall {:.3} points", deviation.0, deviation.1);
    println!("{:>5} {:>12} {:>12} {:>7} {:>14}", "round", "fsage age", "C loop", "ratio", "operations/s");
    let mut ratios = Vec::new();
    for round in 1..=rounds {
        // Turns begin alternately, so that neither always finds the machine as the other left it.
        let (ours, bare) = if round % 2 == 1 {
            let ours = replayed(&plan, &reader, &target, data)?;
            (ours, looped(&target, &binary, &list)?)
        } else {
            let bare = looped(&target, &binary, &list)?;
            (replayed(&plan, &reader, &target, data)?, bare)
        };
        let rate = reader.meta().counts.operations as f64 / ours;
        println!("{round:>5} {ours:>10.3} s {bare:>10.3} s {:>7.3} {rate:>14.0}", ours / bare);
        ratios.push(ours / bare);
    }
    println!("median ratio {:.3}", stats::median(&ratios).unwrap_or(f64::NAN));
    Ok(())
}

fn compile(dir: &Path, binary: &Path) -> anyhow::Result<()> {
    let source = dir.join("age_loop.c");
    std::fs::write(&source, LOOP_SOURCE)?;
    let done = Command::new("cc").args(["-O2", "-o"]).arg(binary).arg(&source).status().context("cc")?;
    if done.success() { Ok(()) } else { bail!("cc failed: {done}") }
}

struct Nobody;
impl<F> Observer<F> for Nobody {}

fn open(target: &Target) -> anyhow::Result<Workspace> {
    Ok(Workspace::open(target, &WorkspaceOptions::default())?)
}

fn run<F: FileSystem>(
    fs: &mut F,
    path: &Path,
    reader: &Reader,
    data: DataMode,
) -> anyhow::Result<aging::age::AgeResult> {
    let (room, _) = room(reader.meta(), &fs.usage()?, "the target", true, None)?;
    let options = AgeOptions { data, room, ..AgeOptions::default() };
    let begin = Begin { plan: identity(path)?, groups: Err("not asked for".into()), resume: None };
    Ok(age(fs, reader, &options, begin, &mut Nobody)?)
}

/// Replays once, and writes the calls to a file; answers how many, and the largest deviations of the use in points.
fn written_down(
    path: &Path,
    reader: &Reader,
    target: &Target,
    data: DataMode,
    list: &Path,
) -> anyhow::Result<(u64, (f64, f64))> {
    let workspace = open(target)?;
    let mut recorder = Recorder { fs: workspace.fs(), list: Vec::new(), calls: 0 };
    let result = run(&mut recorder, path, reader, data)?;
    std::fs::write(list, &recorder.list)?;
    let calls = recorder.calls;
    drop(recorder);
    workspace.close()?;
    Ok((calls, (result.deviation.over_max * 100.0, result.deviation.under_max * 100.0)))
}

/// Seconds of a replay, the reading of the plan included.
fn replayed(path: &Path, reader: &Reader, target: &Target, data: DataMode) -> anyhow::Result<f64> {
    let workspace = open(target)?;
    let mut fs = workspace.fs();
    let begun = Instant::now();
    run(&mut fs, path, reader, data)?;
    let took = begun.elapsed().as_secs_f64();
    drop(fs);
    workspace.close()?;
    Ok(took)
}

/// Seconds of the C loop.
fn looped(target: &Target, binary: &Path, list: &Path) -> anyhow::Result<f64> {
    let workspace = open(target)?;
    // The scratch file system is attached nowhere: its root is reached through a descriptor of this process.
    let root = std::fs::File::open(workspace.path())?;
    let there = format!("/proc/{}/fd/{}", std::process::id(), root.as_raw_fd());
    let out = Command::new(binary).arg(list).arg((1u64 << 20).to_string()).current_dir(there).output()?;
    if !out.status.success() {
        bail!("the C loop failed: {}", String::from_utf8_lossy(&out.stderr));
    }
    drop(root);
    workspace.close()?;
    Ok(String::from_utf8(out.stdout)?.trim().parse::<f64>()? / 1e9)
}

/// A mounted file system that writes down what succeeds on it.
struct Recorder {
    fs: Mounted,
    list: Vec<u8>,
    calls: u64,
}

impl Recorder {
    fn encode(&mut self, code: u8, numbers: &[u64], texts: &[&Path]) {
        self.calls += 1;
        self.list.push(code);
        self.list.extend(numbers.iter().flat_map(|n| n.to_ne_bytes()));
        for text in texts {
            self.list.extend_from_slice(text.as_os_str().as_bytes());
            self.list.push(0);
        }
    }

    fn note(&mut self, call: &Call<'_>) {
        match *call {
            Call::Open { at, flags, .. } => self.encode(if flags.create { b'c' } else { b'o' }, &[], &[at.path]),
            Call::Close { .. } => self.encode(b'x', &[], &[]),
            Call::Write { offset, len_bytes, .. } => self.encode(b'w', &[offset.unwrap_or(0), len_bytes], &[]),
            Call::Fallocate { how: Fallocate::Allocate, offset, len_bytes, .. } => {
                self.encode(b'a', &[offset, len_bytes], &[]);
            }
            Call::Fallocate { offset, len_bytes, .. } => self.encode(b'p', &[offset, len_bytes], &[]),
            Call::Ftruncate { len_bytes, .. } => self.encode(b't', &[len_bytes], &[]),
            Call::Fsync { .. } => self.encode(b'f', &[], &[]),
            Call::Unlink { at } => self.encode(b'u', &[], &[at.path]),
            Call::Mkdir { at, .. } => self.encode(b'd', &[], &[at.path]),
            Call::Rmdir { at } => self.encode(b'r', &[], &[at.path]),
            Call::Rename { from, to, .. } => self.encode(b'm', &[], &[from.path, to.path]),
            Call::Symlink { target, at } => self.encode(b'l', &[], &[target, at.path]),
            Call::SyncFs => self.encode(b's', &[], &[]),
            _ => {}
        }
    }
}

impl FileSystem for Recorder {
    fn call(&mut self, call: &Call<'_>) -> Outcome {
        let outcome = self.fs.call(call);
        if outcome.result.is_ok() {
            self.note(call);
        }
        outcome
    }

    /// One writer is all that is recorded.
    fn run(&mut self, processes: Vec<Box<dyn Process + '_>>) -> std::io::Result<()> {
        posix::run_one_by_one(processes, |call| self.call(call))
    }

    fn contained(&mut self, work: &mut posix::Contained<'_>) -> std::io::Result<()> {
        work(self);
        Ok(())
    }

    fn usage(&mut self) -> std::io::Result<FsUsage> {
        self.encode(b'v', &[], &[]);
        self.fs.usage()
    }

    posix::delegate! { |me| me.fs =>
        now_ns, pause_ns, read_into, entries, drop_caches, extents, free_extents, environment
    }
}
