//! `fsage age TARGET --plan NAME.aging`: replays an aging workload on a target.

mod bench;
mod job;
mod kept;
mod like;
mod options;

use crate::output::{self, ResultArgs};
use crate::{failure, progress, target};
use aging::age::{
    self, AgeError, AgeOptions, AgeResult, Begin, Marker, Place, Reconciled, Session, SessionState, State,
};
use bench::FreshAndAged;
use document::Document;
use fault::Fault as _;
use job::Job;
use layout::{Series, SeriesWriter};
use options::Replay;
use posix::cleanup::Temporary;
use posix::{FileSystem, Image, Site, Target, Workspace, WorkspaceOptions};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub use options::Args;

/// Ages.
pub fn run(args: Args) -> failure::Result<ExitCode> {
    let mut result_args = ResultArgs { json: args.json, html: args.html.clone(), output: args.output.clone() };
    result_args.check()?;
    let bench = args.bench.clone();
    let Replay { mut job, compress_to } = args.prepare()?;
    result_args.output.clone_from(&job.results);
    let beside = compress_to.as_deref().map(|to| lab_image(&job, to)).transpose()?.flatten();
    let packed = beside.as_ref().map(|directory| directory.path().join("image"));
    let site = open(&job, packed.clone(), !bench.is_empty())?;
    let image = match &job.keep {
        Some(kept::Keep::Image(path)) => Some(posix::cleanup::Kept::new(path)),
        _ => None,
    };
    let series_dir = Temporary::new()?;
    let series_path = job.results.as_deref().unwrap_or(series_dir.path()).join("surveys.series");
    let (result, mended) = replay(&mut job, &*site, &series_path)?;
    let benchmarks = bench.run(&job.target, &*site)?;
    let kept = finish(&job, site, &result, compress_to.as_deref(), packed)?;
    if let Some(image) = image {
        image.told();
    }
    let series = series_path.exists().then(|| Series::load(&series_path)).transpose()?;
    show(&result_args, &job, &result, series.as_ref(), &benchmarks, kept, mended)
}

/// Makes the target ready: new (its image written out where benchmarks are to compare it), or as the run that is
/// resumed left it. `packed` is where a laboratory's image goes before it is compressed.
fn open(job: &Job, packed: Option<PathBuf>, written: bool) -> failure::Result<Box<dyn Site>> {
    let keep = job.keep.as_ref();
    let image = keep.and_then(|keep| keep.image(job.resume.is_some())).or(packed.map(Image::New));
    let options = WorkspaceOptions {
        keep: matches!(keep, Some(kept::Keep::Directory)),
        image,
        written,
        ..WorkspaceOptions::default()
    };
    if let Some(state) = &job.resume
        && let Place::Directory(path) = session_of(state)?.place
    {
        return Ok(Box::new(Workspace::reopen(&job.target, &path)?));
    }
    let site = target::open(&job.target, &options)?;
    if let (aging::format::Placement::Groups { .. }, Some(workspace)) = (job.plan.meta().placement, site.workspace()) {
        // Every directory's group is looked at: nothing depends on it.
        workspace.spread("");
    }
    Ok(site)
}

/// In what the image of a laboratory that is to be compressed is in the meantime: beside what it becomes.
fn lab_image(job: &Job, to: &Path) -> failure::Result<Option<Temporary>> {
    if !matches!(job.target, Target::Lab(_)) || job.keep.is_some() {
        return Ok(None);
    }
    let absolute = std::path::absolute(to)?;
    Ok(Some(Temporary::within(absolute.parent().unwrap_or(&absolute))?))
}

fn session_of(state: &State) -> failure::Result<SessionState> {
    serde_json::from_value(state.session.clone())
        .map_err(|error| failure::bad_input(format!("no state of a run of `fsage age`: {error}")))
}

/// Replays, from the beginning or from the state.
fn replay(job: &mut Job, site: &dyn Site, series: &Path) -> failure::Result<(AgeResult, Option<Reconciled>)> {
    let mut fs = site.handle();
    let mended = match &job.resume {
        Some(state) => Some(age::reconcile(&mut fs, &job.plan, state, job.options.data)?),
        None => {
            let usage = fs.usage()?;
            let (scratch, target) = (!matches!(job.target, Target::Directory(_)), job.target.to_string());
            let (room, note) = age::room(job.plan.meta(), &usage, &target, scratch, job.room())?;
            job.options.room = room;
            job.notes.extend(note);
            None
        }
    };
    let bar = progress::bar(job.plan.meta().counts.operations, "aging");
    let mut tell = |at: &age::Progress| {
        if !bar.is_hidden() {
            let day = at.simulated_ns / aging::DAY_NS + 1;
            let message = format!("day {day}, {:.1} % in use", at.used_share * 100.0);
            progress::update(&bar, &message, at.operations, Some(at.of_operations));
        }
    };
    let mut session = Session::new(&mut tell);
    session.snapshots = job.snapshots.clone();
    session.snapshot_blocks = job.options.snapshot_blocks;
    session.state = state_place(job, site)?;
    if job.options.survey_days.is_some() || job.options.snapshot_days.is_some() {
        let writer = match &job.resume {
            Some(state) if series.exists() => {
                session.clock = Series::load(series)?.clock.iter().map(|c| (c.unix_ns, c.simulated_ns)).collect();
                session.clock.retain(|(_, simulated)| *simulated <= state.simulated_ns);
                SeriesWriter::resume(series, state.simulated_ns as f64 / aging::DAY_NS as f64)?.writer
            }
            _ => SeriesWriter::create(series, &Session::header(job.plan.meta(), &fs.environment(), &job.notes))?,
        };
        session.series = Some(writer);
    }
    let begin =
        Begin { plan: job.identity.clone(), groups: layout::groups_of_handle(&*fs), resume: job.resume.as_ref() };
    let aged = age::age(&mut fs, &job.plan, &job.options, begin, &mut session);
    let saved = session.state.as_ref().map(|(path, _)| path.clone());
    bar.finish_and_clear();
    let mut result = aged.map_err(|error| explained(error, saved.as_deref(), job.keep.as_ref()))?;
    for note in &job.notes {
        if !result.notes.contains(note) {
            result.notes.push(note.clone());
        }
    }
    if job.keep.is_some() && !Marker::of(&result).write(&mut *fs)? {
        result.notes.push(format!(
            "the file system is full: there is no {} in the tree, and benchmarks will not overwrite it",
            age::MARKER_NAME
        ));
    }
    sync(&mut *fs)?;
    Ok((result, mended))
}

fn sync(fs: &mut dyn FileSystem) -> failure::Result<()> {
    fs.call(&posix::Call::SyncFs).result.map_err(std::io::Error::from)?;
    Ok(())
}

/// Where the state is written: with a result directory and a tree that stays, and not without. A laboratory is in
/// memory: it cannot be gone on with.
fn state_place(job: &Job, site: &dyn Site) -> failure::Result<Option<(PathBuf, SessionState)>> {
    let (Some(keep), Some(results), Some(workspace)) = (&job.keep, &job.results, site.workspace()) else {
        return Ok(None);
    };
    let place = match keep {
        kept::Keep::Directory => Place::Directory(workspace.path().to_owned()),
        kept::Keep::Image(path) => Place::Image(std::path::absolute(path)?),
    };
    let session = SessionState {
        target: job.target.to_string(),
        plan: std::path::absolute(&job.plan_path)?,
        place,
        results: Some(std::path::absolute(results)?),
        snapshots: job.snapshots.as_deref().map(std::path::absolute).transpose()?,
        options: job.options.clone(),
        notes: job.notes.clone(),
    };
    Ok(Some((results.join(options::STATE_NAME), session)))
}

/// An interrupted run says how it is gone on with.
fn explained(error: AgeError, state: Option<&Path>, keep: Option<&kept::Keep>) -> failure::Failure {
    let there = state.filter(|path| path.exists());
    let hint = match (&error, there) {
        (AgeError::Plan(_) | AgeError::Broken { .. } | AgeError::Capacity { .. }, _) => None,
        (_, Some(path)) => Some(format!("to go on: fsage age --resume {}", output::shown(path))),
        (AgeError::Interrupted { .. }, None) => Some(match keep {
            Some(_) => "with -o beside --keep a run can be gone on with".to_owned(),
            None => "what it made is removed; with --keep and -o a run can be gone on with".to_owned(),
        }),
        _ => None,
    };
    match hint {
        Some(hint) => failure::Failure::new(error.kind(), format!("{error}; {hint}")),
        None => error.into(),
    }
}

/// What became of the tree.
#[derive(Debug, Serialize)]
struct Kept {
    /// The directory or image that was kept.
    path: Option<PathBuf>,
    /// The compressed image.
    compressed: Option<kept::CompressedImage>,
}

/// Ends the site: removes the tree, keeps it, or packs it.
fn finish(
    job: &Job,
    site: Box<dyn Site>,
    result: &AgeResult,
    to: Option<&Path>,
    packed: Option<PathBuf>,
) -> failure::Result<Kept> {
    let mut image = match (to, site.workspace()) {
        (Some(_), Some(workspace)) => {
            let trimmed = workspace.fs().trim();
            Some((workspace.image()?, trimmed))
        }
        _ => None,
    };
    let path = match &job.keep {
        Some(kept::Keep::Directory) => Some(site.root_path().to_owned()),
        Some(kept::Keep::Image(path)) => Some(path.clone()),
        None => None,
    };
    let in_laboratory = site.workspace().is_none();
    site.close()?;
    if let (Some(_), true, Some(written)) = (to, in_laboratory, packed.as_deref().or(path.as_deref())) {
        // Free blocks have no bytes in it, unless the laboratory kept every byte.
        image = Some((Some(std::fs::File::open(written)?), Ok(0)));
    }
    let compressed = match (to, image) {
        (Some(to), Some((Some(image), trimmed))) => Some(kept::pack(&image, trimmed, to, result)?),
        _ => None,
    };
    if let Some(path) = &path {
        progress::note(&format!("kept {}", output::shown(path)));
    }
    Ok(Kept { path, compressed })
}

/// The result with what became of the tree.
#[derive(Serialize)]
struct AgedResult<'a> {
    #[serde(flatten)]
    result: &'a AgeResult,
    options: &'a AgeOptions,
    benchmarks: &'a [FreshAndAged],
    mended: Option<Reconciled>,
    kept: Kept,
}

fn show(
    args: &ResultArgs,
    job: &Job,
    result: &AgeResult,
    series: Option<&Series>,
    benchmarks: &[FreshAndAged],
    kept: Kept,
    mended: Option<Reconciled>,
) -> failure::Result<ExitCode> {
    let mut document: Document = aging::present::age(result);
    if let Some(mended) = mended.filter(|m| *m != Reconciled::default()) {
        document.paragraph(format!(
            "On resumption {} names were moved back, {} made after the checkpoint removed, {} made again and {} given \
             their length.",
            mended.moved, mended.removed, mended.made, mended.resized
        ));
    }
    if let Some(packed) = &kept.compressed {
        document.paragraph(packed.describe());
    }
    let mut short = document.clone();
    for benchmark in benchmarks {
        if let Some(comparison) = &benchmark.comparison {
            let sides = (&benchmark.result, &benchmark.result);
            short.paragraph(benchmark.describe());
            short.append(workload::present::bench_comparison(comparison, sides.0, sides.1));
        }
    }
    let by_size = benchmarks.iter().find(|b| b.is_by_size()).and_then(|b| b.comparison.as_ref());
    if let Some(series) = series.filter(|s| !s.points.is_empty()) {
        let input = aging::present::course::Input { throughput: by_size, ..aging::present::course::Input::new(series) };
        // What it came to, the map and the curves stand before the tables of how it went.
        let run = std::mem::replace(&mut document, aging::present::course::document(&input));
        document.heading("The run");
        document.blocks.extend(run.blocks);
    }
    for benchmark in benchmarks.iter().filter(|b| series.is_none() || !b.is_by_size()) {
        if let Some(comparison) = &benchmark.comparison {
            document.paragraph(benchmark.describe());
            document.append(workload::present::bench_comparison(comparison, &benchmark.result, &benchmark.result));
        }
    }
    let shown = AgedResult { result, options: &job.options, benchmarks, mended, kept };
    if let Some(results) = &job.results {
        std::fs::create_dir_all(results)?;
        for benchmark in benchmarks {
            benchmark.write(results)?;
        }
        let manifest = kept::manifest(result, &job.options)?;
        output::write_file(&results.join("manifest.json"), manifest.as_bytes())?;
    }
    args.emit_short(options::SCHEMA, &shown, &short, &document)?;
    // A finished run is not gone on with.
    if let Some(results) = &job.results {
        let _ = std::fs::remove_file(results.join(options::STATE_NAME));
    }
    Ok(ExitCode::SUCCESS)
}

impl Job {
    /// The room asked for.
    fn room(&self) -> Option<u64> {
        match self.options.room {
            age::Room::Beside { bytes } => Some(bytes),
            age::Room::Whole => None,
        }
    }
}
