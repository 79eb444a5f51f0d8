//! `fsage library DIR`.

use crate::commands::{measure, replay};
use crate::output::{self, ResultArgs};
use crate::target::{self, TargetArgs};
use crate::{failure, progress, values};
use ::library::{Library, SCHEMA, matrix, page};
use ::measure::MeasureOptions;
use ::replay::ReplayOptions;
use posix::Target;
use predict::pipeline::PredictOptions;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use trace::anonymise::anonymise;
use trace::profile::{Reader, WriterOptions};

/// Keep workloads and systems together, and show every prediction and replay as one page.
///
/// Recordings go in with their names hidden, so that the folder may be given to others. Each target is measured once,
/// and each workload replayed on it once: what is there is not made again. The page is index.html in the folder, one
/// file that needs nothing else.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  fsage library ours --add web.workload mail.workload
  fsage library ours --on ext4:8G --on xfs:8G
  fsage library ours --system ext4 laptop.system --html matrix.html")]
pub struct Args {
    /// The library's folder; made if it is not there.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Take these recordings in, their names hidden.
    #[arg(long, value_name = "W.workload", num_args = 1..)]
    add: Vec<PathBuf>,
    /// Take these system profiles in, bundled ones by their names (ext4, xfs, btrfs).
    #[arg(long, value_name = "S.system", num_args = 1..)]
    system: Vec<PathBuf>,
    /// Measure this target, and replay every workload on it. May be given several times.
    #[arg(long, value_name = "TARGET", value_parser = target::parse)]
    on: Vec<Target>,
    /// Time that measuring a target may take (default: as fsage measure has it).
    #[arg(long, value_name = "TIME", value_parser = values::span_ns, requires = "on")]
    budget: Option<u64>,
    /// Measure only, and replay nothing.
    #[arg(long, requires = "on")]
    no_replay: bool,
    /// Seed of every random choice.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print the result as JSON (schema named in its first field) and nothing else on standard output.
    #[arg(long)]
    json: bool,
    /// Write the page into this file as well.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// Makes or shows a library.
pub fn run(args: Args) -> failure::Result<ExitCode> {
    // The page is the library's own; the terminal and JSON are as everywhere.
    ResultArgs { json: false, html: args.html.clone(), output: None }.check()?;
    output::writable_parent(&args.folder)?;
    let library = Library::open(&args.folder)?;
    for path in &args.add {
        add(&library, path)?;
    }
    for word in &args.system {
        for called in system::called(word)? {
            let name = output::file_name(&called.stem);
            let place = library.system(&name);
            if !is_there(&name, &place) {
                called.profile.save(&place)?;
                progress::note(&format!("took in the system {name}"));
            }
        }
    }
    for target in &args.on {
        measured(&args, &library, target)?;
        if !args.no_replay {
            replayed(&library, target)?;
        }
    }
    let options = PredictOptions { seed: args.seed, ..PredictOptions::default() };
    let bar = progress::bar(0, "predicting");
    let found = matrix(&library, &options, &mut |done, of| progress::update(&bar, "predicting", done, Some(of)));
    bar.finish_and_clear();
    let found = found?;
    let page = page(&found).map_err(|error| failure::environment(format!("the matrix cannot be written: {error}")))?;
    let json = document::json_text(&output::envelope(SCHEMA, &found)?);
    let own = library.publish(&json, &page)?;
    if let Some(path) = &args.html {
        output::write_file(path, page.as_bytes())?;
    }
    let result = ResultArgs { json: args.json, html: None, output: None };
    result.emit(SCHEMA, &found, &::library::present::matrix(&found))?;
    progress::note(&format!("wrote {}", output::shown(&own)));
    Ok(ExitCode::SUCCESS)
}

/// Whether something is there already; then it is said that it stays.
fn is_there(name: &str, place: &Path) -> bool {
    let is_there = place.exists();
    if is_there {
        progress::note(&format!(
            "{name} is there already, and stays as it is; remove {} to have it anew",
            output::shown(place)
        ));
    }
    is_there
}

/// Takes in a recording. One that is there stays.
fn add(library: &Library, path: &Path) -> failure::Result<()> {
    let name = output::file_name(&path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy());
    let place = library.workload(&name);
    if is_there(&name, &place) {
        return Ok(());
    }
    // Those of a recording that had this name, and was removed.
    let forgotten = library.forget_replays(&name)?;
    if forgotten > 0 {
        let replays = units::show::counted(forgotten as u64, "replay", "replays");
        progress::note(&format!("forgot {replays} of another recording that was called {name}"));
    }
    let reader = Reader::open(path)?;
    anonymise(&reader, &place, WriterOptions::default())?;
    progress::note(&format!("took in the workload {name}, its names hidden"));
    Ok(())
}

/// Measures a target whose profile is not there.
fn measured(args: &Args, library: &Library, target: &Target) -> failure::Result<()> {
    let name = output::file_name(&target.to_string());
    let place = library.system(&name);
    if place.exists() {
        // `ext4:8G` and a directory `ext4-8G` would be one file: replays on the one would stand beside prices of the
        // other.
        let there = library.open_system(&name)?.name;
        return match there == target.to_string() || output::file_name(&there) != name {
            true => Ok(()),
            false => Err(failure::usage(format!(
                "{target}: its profile would be {}, and that is of {there}; rename the one, or use another library",
                output::shown(&place)
            ))),
        };
    }
    let quick = MeasureOptions::quick(args.seed);
    let options = MeasureOptions {
        budget: args.budget.map(Duration::from_nanos).or(quick.budget),
        name: target.to_string(),
        ..quick
    };
    let profile = measure::measure(target, &TargetArgs { keep: false }, &options)?;
    profile.save(&place)?;
    progress::note(&format!("measured {target}"));
    Ok(())
}

/// Replays each workload on a target on which it has not been replayed. One that cannot be is said, and is no reason to
/// stop.
fn replayed(library: &Library, target: &Target) -> failure::Result<()> {
    let system = output::file_name(&target.to_string());
    for workload in library.workloads()? {
        if library.replayed(&workload, &system)?.is_some() {
            continue;
        }
        let reader = library.open_workload(&workload)?;
        match replay::several(&reader, target, &TargetArgs { keep: false }, &ReplayOptions::default(), 1) {
            Ok(results) => {
                for result in &results {
                    library.keep_replay(&workload, &system, &output::envelope(replay::SCHEMA, result)?)?;
                }
                progress::note(&format!("replayed {workload} on {target}"));
            }
            Err(error) if posix::interrupt::requested() => return Err(error),
            Err(error) => progress::note(&format!("{workload} on {target}: not replayed: {error}")),
        }
    }
    Ok(())
}
