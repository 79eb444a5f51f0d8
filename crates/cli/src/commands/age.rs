//! `fsage age TARGET --plan NAME.aging`: replays an aging workload on a target.

use crate::output::ResultArgs;
use crate::{failure, progress, target, values};
use aging::age::{self, AgeError, AgeOptions, Begin, DataMode, Marker, Observer, OnFull, Progress};
use aging::format::Reader;
use posix::{FileSystem as _, Mounted, Target};
use std::path::PathBuf;
use std::process::ExitCode;

/// Age a file system: replay an aging workload on it.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// A directory, or a scratch file system (ext4:8G, xfs:8G, btrfs:8G).
    #[arg(value_name = "TARGET", value_parser = target::parse)]
    target: Target,
    /// The aging workload, as `fsage plan` writes it.
    #[arg(long, value_name = "NAME.aging")]
    plan: PathBuf,
    /// Write every byte, or only reserve space (much faster; extents are then marked unwritten).
    #[arg(long, value_name = "HOW", value_parser = data_mode, default_value = "write")]
    data: DataMode,
    /// How many writers share the work; the final tree does not depend on it.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    writers: u16,
    /// Most bytes of one write.
    #[arg(long, value_name = "SIZE", default_value = "1M", value_parser = values::size)]
    chunk: u64,
    /// When the target is full: skip the operation, delete-oldest files, or stop.
    #[arg(long, value_name = "POLICY", value_parser = on_full, default_value = "skip")]
    on_full: OnFull,
    /// End after so many simulated days.
    #[arg(long, value_name = "N")]
    days: Option<u32>,
    #[command(flatten)]
    target_args: target::TargetArgs,
    #[command(flatten)]
    result: ResultArgs,
}

fn data_mode(text: &str) -> Result<DataMode, String> {
    match text {
        "write" => Ok(DataMode::Write),
        "fallocate" => Ok(DataMode::Fallocate),
        _ => Err("write or fallocate".to_owned()),
    }
}

fn on_full(text: &str) -> Result<OnFull, String> {
    match text {
        "skip" => Ok(OnFull::Skip),
        "delete-oldest" => Ok(OnFull::DeleteOldest),
        "stop" => Ok(OnFull::Stop),
        _ => Err("skip, delete-oldest or stop".to_owned()),
    }
}

struct Watch {
    bar: indicatif::ProgressBar,
}

impl Observer<Mounted> for Watch {
    fn progress(&mut self, at: &Progress) {
        if !self.bar.is_hidden() {
            let message = format!("day {}, {:.1} % in use", at.simulated_ns / aging::DAY_NS + 1, at.used_share * 100.0);
            progress::update(&self.bar, &message, at.operations, Some(at.of_operations));
        }
    }
}

/// Ages.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    args.result.check()?;
    target::sweep();
    let plan = Reader::open(&args.plan).map_err(AgeError::from)?;
    let identity = age::identity(&args.plan)?;
    let workspace = args.target_args.open(&args.target, 0, 0)?;
    let mut fs = workspace.fs();
    let usage = fs.usage()?;
    let scratch = matches!(args.target, Target::Scratch(_));
    let (room, note) = age::room(plan.meta(), &usage, &args.target.to_string(), scratch, None)?;
    let options = AgeOptions {
        data: args.data,
        writers: usize::from(args.writers),
        chunk_bytes: args.chunk,
        on_full: args.on_full,
        days: args.days,
        room,
        ..AgeOptions::default()
    };
    let groups = layout::groups_of(workspace.path());
    let begin = Begin { plan: identity, groups, resume: None };
    let mut watch = Watch { bar: progress::bar(plan.meta().counts.operations, "aging") };
    let aged = age::age(&mut fs, &plan, &options, begin, &mut watch);
    watch.bar.finish_and_clear();
    let mut result = aged?;
    result.notes.extend(note);
    if args.target_args.keep {
        Marker::of(&result).write(workspace.path())?;
    }
    drop(fs);
    args.target_args.close(workspace)?;
    if result.counters.operations == 0 {
        return Err(failure::bad_input(format!("{}: no operations", args.plan.display())));
    }
    args.result.emit("fsage.age/1", &result, &report::age(&result))?;
    Ok(ExitCode::SUCCESS)
}
