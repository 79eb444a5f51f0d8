//! `fsage crash TARGET`.

use crate::output::{self, ResultArgs};
use crate::{failure, progress};
use ::crash::{CrashError, Op, Settings, Tally, Undone, Work, campaign, parse_ops, replayed};
use device::crash::{Plan, StateId, UnderWay, WriteCache};
use fault::Kind;
use lab::Spec;
use replay::{Initially, ReplayOptions, Source, Threads};
use std::path::PathBuf;
use std::process::ExitCode;
use trace::profile::Reader;

/// Crash a laboratory file system at every moment, recover it, and say what is lost.
///
/// Sequences of operations run on the target. Wherever the power may fail, the disk is put together as the drive may
/// have left it: writes under way and writes in its cache are there, are not, or are torn between sectors. Each state
/// is recovered (fsck for FFS, or replaying its log; rolling forward for LFS), checked, and held against what had
/// happened and what was promised. Recovery is crashed too. A failure is made as short as it can be, and shown with the
/// command that makes it again.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  fsage crash ffs:conventional,size=1M
  fsage crash ffs:noorder,size=1M --states 100000 --seed 7
  fsage crash ffs:journal=sync,size=2M --write-cache on
  fsage crash lfs:order=barrier,size=4M --write-cache on
  fsage crash ffs:noorder,size=16M --workload job.workload
  fsage crash ffs:noorder,size=1M --ops 'unlink a; create b' --state 0.1 --image crashed.img

Exit codes: 0 nothing unresolvable and nothing lost that was promised, 1 otherwise, 2 usage, 130 interrupted.")]
pub struct Args {
    /// A file system of the laboratory: ffs:OPTIONS@DRIVE or lfs:OPTIONS@DRIVE; of 4 MiB unless size= says otherwise.
    #[arg(value_parser = spec)]
    target: Spec,
    /// Crash this recording instead: its state is made, then its calls in their order.
    #[arg(long, value_name = "W.workload")]
    workload: Option<PathBuf>,
    /// Crash these operations instead, as in 'create a; write a 0 4096; fsync a'; with --workload on the state that it
    /// begins with.
    #[arg(long, value_name = "OPERATIONS")]
    ops: Option<String>,
    /// Make one state again, as in 12.3, or 12.3/1.0 for a crash of its recovery.
    #[arg(long, value_name = "STATE", value_parser = state, conflicts_with = "states")]
    state: Option<(StateId, Option<StateId>)>,
    /// Write the disk that this crash leaves into a new file.
    #[arg(long, value_name = "FILE", requires = "state")]
    image: Option<PathBuf>,
    /// As many distinct states are enough.
    #[arg(long, value_name = "N", default_value_t = 20_000,
        value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    states: u64,
    /// All sequences of up to so many operations come before long ones that are drawn.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(0..=3),
          conflicts_with_all = ["ops", "workload"])]
    longest: u32,
    /// States of one moment, at most.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(2..=65_536))]
    of_a_moment: u32,
    /// When a completed write is on the medium: as the drive's model says, at once, or after a flush.
    #[arg(long, value_enum, default_value_t = CacheArg::Drive)]
    write_cache: CacheArg,
    /// What may be there of a write under way: nothing, all or nothing, or any of its sectors.
    #[arg(long, value_enum, default_value_t = UnderWayArg::Torn)]
    under_way: UnderWayArg,
    /// Seed of what is drawn.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    result: ResultArgs,
}

/// The drive's cache.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum CacheArg {
    /// As its model reports.
    Drive,
    /// Completed is on the medium.
    Off,
    /// Only a flush puts writes onto the medium.
    On,
}

/// Writes under way.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum UnderWayArg {
    /// Requests are executed one by one.
    Nothing,
    /// A request is there or not.
    Whole,
    /// Any of its sectors are there.
    Torn,
}

fn spec(text: &str) -> Result<Spec, String> {
    Spec::parse(text).map_err(|error| error.to_string())
}

fn state(text: &str) -> Result<(StateId, Option<StateId>), String> {
    match text.split_once('/') {
        Some((state, again)) => Ok((state.parse()?, Some(again.parse()?))),
        None => Ok((text.parse()?, None)),
    }
}

/// Crashes.
pub fn run(args: Args) -> failure::Result<ExitCode> {
    args.result.check()?;
    if let Some(image) = &args.image {
        output::must_be_new(image)?;
    }
    let ops: Option<Vec<Op>> = args.ops.as_deref().map(parse_ops).transpose()?;
    let reader = args.workload.as_ref().map(|path| Reader::open(path)).transpose()?;
    let drive = |fs: &mut dyn posix::FileSystem| match &reader {
        Some(reader) => replay_on(reader, fs),
        None => Ok(()),
    };
    let work = match (reader.is_some(), ops) {
        (false, None) => Work::Sequences { longest: args.longest },
        (false, Some(ops)) => Work::Ops(ops),
        (true, None) => Work::Driven(&drive),
        (true, Some(ops)) => Work::OpsOn(&drive, ops),
    };
    let plan = Plan {
        cache: match args.write_cache {
            CacheArg::Drive => WriteCache::AsReported,
            CacheArg::Off => WriteCache::Off,
            CacheArg::On => WriteCache::On,
        },
        under_way: match args.under_way {
            UnderWayArg::Nothing => UnderWay::Nothing,
            UnderWayArg::Whole => UnderWay::Whole,
            UnderWayArg::Torn => UnderWay::Torn,
        },
        most_of_a_point: args.of_a_moment,
        seed: args.seed,
    };
    let settings = Settings { plan, states: args.states, ..Settings::default() };
    if let Some(state) = args.state {
        if matches!(work, Work::Sequences { .. }) {
            return Err(failure::usage("--state: say of which sequence, with --ops or --workload"));
        }
        let done = replayed(&args.target, &work, &settings, state)?;
        if let Some(path) = &args.image {
            output::write_file(path, &done.image)?;
        }
        args.result.emit("fsage.crash-state/1", &done, &crash::present::state(&done))?;
        return Ok(code(done.class < ::crash::Class::Unresolvable));
    }
    let bar = progress::bar(args.states, "crashing");
    let found = campaign(&args.target, &work, &settings, &mut |tally: &Tally| {
        bar.set_position(tally.states.min(args.states));
        !posix::interrupt::requested()
    });
    bar.finish_and_clear();
    let found = found?;
    if found.undone == Some(Undone::Stopped) {
        let message = format!("interrupted after {} states; nothing was written", found.tally.states);
        return Err(failure::Failure::new(Kind::Interrupted, message));
    }
    args.result.emit("fsage.crash/1", &found, &crash::present::crashes(&found, &command(&args)))?;
    Ok(code(found.tally.failed() == 0))
}

fn code(sound: bool) -> ExitCode {
    if sound { ExitCode::SUCCESS } else { failure::code(Kind::Check) }
}

/// As a shell takes it for one word.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=,@:".contains(c);
    if text.chars().all(plain) { text.to_owned() } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

/// The command that makes a state again, up to what names the state.
fn command(args: &Args) -> String {
    let mut command = format!("fsage crash {}", quoted(&args.target.text));
    if let Some(workload) = &args.workload {
        command += &format!(" --workload {}", quoted(&output::shown(workload)));
    }
    let defaults = Plan::default();
    if args.of_a_moment != defaults.most_of_a_point {
        command += &format!(" --of-a-moment {}", args.of_a_moment);
    }
    match args.write_cache {
        CacheArg::Drive => {}
        CacheArg::Off => command += " --write-cache off",
        CacheArg::On => command += " --write-cache on",
    }
    match args.under_way {
        UnderWayArg::Torn => {}
        UnderWayArg::Whole => command += " --under-way whole",
        UnderWayArg::Nothing => command += " --under-way nothing",
    }
    if args.seed != defaults.seed {
        command += &format!(" --seed {}", args.seed);
    }
    command
}

/// Makes the state that a recording begins with, empties the caches, and makes its calls one after the other.
fn replay_on(reader: &Reader, mut fs: &mut dyn posix::FileSystem) -> Result<(), CrashError> {
    let wrong = |error: replay::ReplayError| CrashError::Io(std::io::Error::other(error.to_string()));
    let snapshot = reader.snapshot().map_err(|error| wrong(error.into()))?;
    let open = || -> Result<Source<'_>, replay::ReplayError> {
        Ok(Box::new(reader.batches()?.map(|batch| batch.map_err(replay::ReplayError::from))))
    };
    let options = ReplayOptions { threads: Threads::Single, initially: Initially::Cold, ..ReplayOptions::default() };
    replay::replay_on(&mut fs, &snapshot, &open, &options, &mut |_| {}).map_err(wrong)?;
    Ok(())
}
