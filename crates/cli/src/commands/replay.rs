//! `fsage replay W TARGET`.

use crate::failure;
use crate::output::{self, ResultArgs};
use crate::target::{self, TargetArgs};
use crate::{progress, values};
use fault::Kind;
use posix::Target;
use replay::{Data, Initially, Pace, Progress, ReplayOptions, ReplayResult, Stage, Threads};
use serde::Serialize;
use std::path::PathBuf;
use std::process::ExitCode;
use trace::profile::Reader;

/// Run a recorded workload's calls for real on a target, timing every one in-process.
///
/// The state that the workload found is rebuilt from its snapshot in a private directory of the target, caches are
/// emptied, and every call is made again in the recorded order; results unlike the recorded ones are counted and shown.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The workload profile.
    #[arg(value_name = "W.workload")]
    workload: PathBuf,
    /// A directory, a scratch file system (as root): ext4:8G, xfs:8G, btrfs:8G, or one of the laboratory:
    /// ffs:OPTIONS@DRIVE.
    #[arg(value_parser = target::parse)]
    target: Target,
    /// As fast as possible, or with the pauses of the recording.
    #[arg(long, value_enum, default_value_t = PaceArg::Asap)]
    pace: PaceArg,
    /// What the caches hold when the replay begins.
    #[arg(long, value_enum, default_value_t = InitialArg::Cold)]
    initial: InitialArg,
    /// How recorded threads become threads of the replay.
    #[arg(long, value_enum, default_value_t = ThreadsArg::Auto)]
    threads: ThreadsArg,
    /// Which files of the initial state get real data: those that are read or overwritten, all, or none.
    #[arg(long, value_enum, default_value_t = DataArg::Needed)]
    data: DataArg,
    /// Let files become setuid and setgid where the recording says so, which a recording from somebody else should not.
    #[arg(long)]
    allow_setuid: bool,
    /// Replay so many times, each in a state rebuilt for it, and show the median with its 95 % interval; what is shown
    /// of calls is of the replay in the middle.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    repeats: u32,
    /// Exit with 1 where more than this share of the outcomes is unlike the recorded ones.
    #[arg(long, value_name = "SHARE", value_parser = values::share)]
    max_differences: Option<f64>,
    #[command(flatten)]
    target_args: TargetArgs,
    #[command(flatten)]
    result: ResultArgs,
}

/// Whether time passes between calls.
#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum PaceArg {
    /// As fast as possible.
    Asap,
    /// As recorded.
    Recorded,
}

/// Caches at the start.
#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum InitialArg {
    /// Emptied.
    Cold,
    /// Filled by reading everything once.
    Warm,
}

/// Threads of the replay.
#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum ThreadsArg {
    /// As many as calls overlapped.
    Auto,
    /// One for each recorded thread.
    Keep,
    /// One.
    Single,
}

/// Data of the initial state.
#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum DataArg {
    /// Files that are read, overwritten or freed.
    Needed,
    /// All files.
    All,
    /// No file: holes of the right length.
    Sparse,
}

/// Schema of the result.
pub const SCHEMA: &str = "fsage.replay/1";

#[derive(Serialize)]
struct Output<'a> {
    workload: String,
    #[serde(flatten)]
    result: &'a ReplayResult,
    #[serde(skip_serializing_if = "Option::is_none")]
    repeats: Option<&'a replay::present::Repeats>,
}

/// Replays.
pub fn run(args: Args) -> failure::Result<ExitCode> {
    args.result.check()?;
    let reader = Reader::open(&args.workload)?;
    let options = ReplayOptions {
        pace: match args.pace {
            PaceArg::Asap => Pace::Asap,
            PaceArg::Recorded => Pace::Recorded,
        },
        initially: match args.initial {
            InitialArg::Cold => Initially::Cold,
            InitialArg::Warm => Initially::Warm,
        },
        threads: match args.threads {
            ThreadsArg::Auto => Threads::Auto,
            ThreadsArg::Keep => Threads::Keep,
            ThreadsArg::Single => Threads::Single,
        },
        data: match args.data {
            DataArg::Needed => Data::Needed,
            DataArg::All => Data::All,
            DataArg::Sparse => Data::Sparse,
        },
        allow_setuid: args.allow_setuid,
        ..ReplayOptions::default()
    };
    if args.repeats > 1 && args.target_args.keep {
        return Err(failure::usage("--keep: of several replays none is the one to keep; leave --repeats out"));
    }
    let results = several(&reader, &args.target, &args.target_args, &options, args.repeats)?;
    let (result, repeats) = replay::present::Repeats::of(&results);
    let workload = output::shown(&args.workload);
    let document = replay::present::replay(&workload, result, repeats.as_ref());
    args.result.emit(SCHEMA, &Output { workload, result, repeats: repeats.as_ref() }, &document)?;
    let differing = result.differences.total as f64 / result.calls.max(1) as f64;
    match args.max_differences {
        Some(limit) if differing > limit => Ok(failure::code(Kind::Check)),
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// Replays several times, each in a site of its own.
pub fn several(
    reader: &Reader,
    target: &Target,
    target_args: &TargetArgs,
    options: &ReplayOptions,
    repeats: u32,
) -> failure::Result<Vec<ReplayResult>> {
    let needs = replay::requirements(reader)?;
    let mut results = Vec::new();
    for number in 1..=repeats {
        let site = target_args.open(target, needs.bytes, needs.inodes)?;
        let bar = progress::bar(0, "replay");
        if repeats > 1 {
            bar.set_prefix(format!("{number} of {repeats}: "));
        }
        let mut report = |p: Progress| show(&bar, p);
        let result = replay::replay(reader, &*site, options, &mut report);
        bar.finish_and_clear();
        let closed = target_args.close(site);
        results.push(result?);
        closed?;
    }
    Ok(results)
}

/// A replay's progress on a bar.
pub fn show(bar: &indicatif::ProgressBar, p: Progress) {
    let stage = match p.stage {
        Stage::Scan => "reading the trace",
        Stage::Rebuild => "rebuilding the initial state",
        Stage::Caches => "preparing caches",
        Stage::Replay => "replaying",
        Stage::Sync => "writing back",
    };
    progress::update(bar, stage, p.done, p.total);
}
