//! `fsage layout TARGET`, `fsage layout --compare A B` and `fsage layout --series FILE...`; a snapshot with block lists
//! may stand for a target.

use crate::output::{self, ResultArgs};
use crate::{failure, images, progress, target};
use aging::present::course::Input;
use aging::snapshot::{Snapshot, layout_by_day};
use aging::verify::SelfCheck;
use lab::LabSite;
use layout::{MapOrder, Series, Survey, SurveyOptions};
use posix::{FileSystem, Site as _, Target};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Show how a file system has placed its files, and what is left of its free space.
///
/// Reads a mounted directory tree (FIEMAP, GETFSMAP, btrfs's trees), or an unmounted image or device with ext2, ext3,
/// ext4, UFS1, UFS2 or LFS; changes nothing. As root, more figures are available; what is not is said with the reason.
/// Of a snapshot that `fsage snapshot --blocks` took it shows the layout of that moment, without free space.
///
/// With --series, shows what surveys over time have: those that fsage age took while it aged a file system, or the
/// snapshots of a tree.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  fsage layout /mnt/data -o fresh.json
  fsage layout aged.img --hot-days 30 --html layout.html
  fsage layout /mnt/data --map --html layout.html
  fsage layout --compare fresh.json aged.json
  fsage layout --series ext4.series xfs.series --html aging.html
  fsage layout --series ext4.series --fresh fresh.json --aged aged.json --html aging.html
  fsage layout --series replayed.series --original original.series --within 0.02
  fsage layout home-2026-11-28.snapshot
  fsage layout --series home-*.snapshot --html home.html")]
pub struct Args {
    /// A directory; an unmounted image or device with ext4, UFS or LFS; or a snapshot with block lists.
    #[arg(value_name = "TARGET", required_unless_present_any = ["compare", "series"])]
    target: Option<PathBuf>,
    /// Compare two surveys: files that -o wrote, or targets to survey now.
    #[arg(long, num_args = 2, value_names = ["A", "B"], conflicts_with = "target")]
    compare: Option<Vec<PathBuf>>,
    /// Show surveys over time: one file in full, several over each other. Snapshots of one directory, oldest first, are
    /// one series.
    #[arg(long, num_args = 1.., value_name = "FILE", conflicts_with_all = ["target", "compare"])]
    series: Option<Vec<PathBuf>>,
    /// With --series: a benchmark of each file system when it was fresh (fsage bench -o), as many as series.
    #[arg(long, num_args = 1.., value_name = "FILE", requires_all = ["series", "aged"])]
    fresh: Vec<PathBuf>,
    /// With --series: the same benchmark when it was aged.
    #[arg(long, num_args = 1.., value_name = "FILE", requires_all = ["series", "fresh"])]
    aged: Vec<PathBuf>,
    /// With --series: the runs that these are replays of, to say how well layout was reproduced day by day.
    #[arg(long, num_args = 1.., value_name = "FILE", requires = "series")]
    original: Vec<PathBuf>,
    /// With --original: end with code 1 where mean or final difference of the layout score is not below this.
    #[arg(long, value_name = "SCORE", requires = "original")]
    within: Option<f64>,
    /// Make a map of the disk, SIDE by SIDE cells along a Hilbert curve; SIDE is a power of two up to 1024.
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "SIDE", default_missing_value = "128")]
    map: Option<u32>,
    /// Count files modified in the last N days apart ("hot" files).
    #[arg(long, value_name = "N", default_value_t = 30.0)]
    hot_days: f64,
    /// How many of the worst files to list.
    #[arg(long, value_name = "N", default_value_t = 20)]
    worst: usize,
    /// Write the survey to a file, for --compare; with --series: write report, tables and result into this directory.
    #[arg(long, short, value_name = "FILE", conflicts_with = "compare")]
    output: Option<PathBuf>,
    /// Print the result as JSON (schema named in its first field) and nothing else on standard output.
    #[arg(long)]
    json: bool,
    /// Write a self-contained HTML report with plots.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// Surveys, or compares.
pub fn run(args: Args) -> failure::Result<ExitCode> {
    let result = ResultArgs { json: args.json, html: args.html.clone(), output: None };
    result.check()?;
    if !(args.hot_days.is_finite() && args.hot_days >= 0.0) {
        return Err(failure::usage("--hot-days: a number of days, 0 or more"));
    }
    if let Some(files) = &args.series {
        return series(&ResultArgs { output: args.output.clone(), ..result }, files, &args);
    }
    let options = options(&args)?;
    if let Some([a, b]) = args.compare.as_deref() {
        let (a, b) = (saved_or_taken(a, &options)?, saved_or_taken(b, &options)?);
        let comparison = layout::compare(&a, &b);
        result.emit(
            "fsage.layout-comparison/1",
            &comparison,
            &layout::present::layout_comparison(&comparison, &a, &b),
        )?;
        return Ok(ExitCode::SUCCESS);
    }
    let Some(target) = args.target else { return Err(failure::usage("name a target")) };
    if let Some(path) = &args.output {
        output::writable_parent(path)?;
    }
    let survey = listed_or_taken(&target, &options)?;
    if let Some(path) = &args.output {
        layout::save(&survey, path)?;
        progress::note(&format!("wrote {}", output::shown(path)));
    }
    result.emit(layout::SCHEMA, &survey, &layout::present::layout(&survey))?;
    Ok(ExitCode::SUCCESS)
}

/// What a survey is asked for.
fn options(args: &Args) -> failure::Result<SurveyOptions> {
    let map = args.map.map(|side| {
        MapOrder::of_side(side).ok_or_else(|| {
            let most = MapOrder::MAX.side();
            failure::usage(format!("--map={side}: a power of two from 1 to {most}, such as 128"))
        })
    });
    Ok(SurveyOptions {
        hot_days: Some(args.hot_days),
        worst_files: args.worst,
        map: map.transpose()?,
        ..SurveyOptions::default()
    })
}

fn series(result: &ResultArgs, files: &[PathBuf], args: &Args) -> failure::Result<ExitCode> {
    result.check()?;
    let loaded = load(files, args)?;
    let beside = [("--fresh", &args.fresh), ("--aged", &args.aged), ("--original", &args.original)];
    for (option, given) in beside {
        if !given.is_empty() && given.len() != loaded.len() {
            let (given, wanted) = (given.len(), loaded.len());
            return Err(failure::usage(format!(
                "{option}: {given} files for {wanted} series; give one for each, in their order"
            )));
        }
    }
    let throughput = args.fresh.iter().zip(&args.aged).map(|(a, b)| benchmarks(a, b)).collect::<Result<Vec<_>, _>>()?;
    let originals = args.original.iter().map(|path| Series::load(path)).collect::<Result<Vec<_>, _>>()?;
    let checked = |(original, replayed): (&Series, &Series)| {
        let Series { header, .. } = replayed;
        aging::verify::compare(&format!("{}, {}", header.name, header.workload), original, replayed)
    };
    let checks: Vec<SelfCheck> = originals.iter().zip(&loaded).map(checked).collect();
    let inputs: Vec<Input<'_>> = loaded
        .iter()
        .enumerate()
        .map(|(i, series)| Input { throughput: throughput.get(i), check: checks.get(i), series })
        .collect();
    let document = match inputs.as_slice() {
        [one] => aging::present::course::document(one),
        several => aging::present::course::compare(several),
    };
    let summaries: Vec<_> = loaded.iter().map(Series::summary).collect();
    let found = json!({ "series": summaries, "throughput": throughput, "checks": checks });
    result.emit("fsage.layout-series/1", &found, &document)?;
    let apart = args.within.is_some_and(|bound| !checks.iter().all(|check| check.within(bound)));
    Ok(if apart { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The series, in the order of their first files. Snapshots of one directory of one machine are one.
fn load(files: &[PathBuf], args: &Args) -> failure::Result<Vec<Series>> {
    /// A file of its own, or the snapshots of a tree.
    enum Given {
        File(PathBuf),
        Tree((String, String), Vec<PathBuf>),
    }
    let mut given: Vec<Given> = Vec::new();
    for path in files {
        if !Snapshot::is_one(path) {
            given.push(Given::File(path.clone()));
            continue;
        }
        let meta = Snapshot::read_meta(path)?;
        let tree = (meta.host, meta.root);
        let known = given.iter_mut().find_map(|g| match g {
            Given::Tree(of, paths) if *of == tree => Some(paths),
            _ => None,
        });
        match known {
            Some(paths) => paths.push(path.clone()),
            None => given.push(Given::Tree(tree, vec![path.clone()])),
        }
    }
    let options = options(args)?;
    let one = |given: &Given| match given {
        Given::File(path) => Ok(Series::load(path)?),
        Given::Tree(_, paths) => {
            let bar = progress::bar(0, "reading snapshots");
            let series = layout_by_day(paths, &options, &mut |done| {
                bar.set_message(format!("reading snapshots: {done} of {}", paths.len()));
                !posix::interrupt::requested()
            });
            bar.finish_and_clear();
            Ok(series?)
        }
    };
    given.iter().map(one).collect()
}

/// A benchmark of a fresh and of the aged file system.
fn benchmarks(fresh: &Path, aged: &Path) -> failure::Result<workload::Comparison> {
    let (a, b) = (workload::load(fresh)?, workload::load(aged)?);
    Ok(workload::compare(&a, &b, (&output::shown(fresh), &output::shown(aged)))?)
}

/// A survey file begins with a brace; a directory has no beginning, and an image begins otherwise.
fn saved_or_taken(path: &Path, options: &SurveyOptions) -> failure::Result<Survey> {
    use std::io::Read as _;
    let mut first = [0];
    let is_json = path.is_file()
        && std::fs::File::open(path).and_then(|mut file| file.read(&mut first)).is_ok_and(|n| n == 1)
        && first == *b"{";
    if is_json { Ok(layout::load(path)?) } else { listed_or_taken(path, options) }
}

/// What a snapshot knows of the layout of its moment, or a survey.
fn listed_or_taken(path: &Path, options: &SurveyOptions) -> failure::Result<Survey> {
    if Snapshot::is_one(path) { Ok(Snapshot::layout_of(path, options)?) } else { take(path, options) }
}

fn take(target: &Path, options: &SurveyOptions) -> failure::Result<Survey> {
    let mut handle = handle(target)?;
    let bar = progress::bar(0, "surveying");
    let mut tell = |so_far: layout::Progress| {
        bar.set_message(format!("surveying: {} files, {} directories", so_far.files, so_far.directories));
        true
    };
    let survey = match &mut handle {
        Some(handle) => layout::survey_handle(&mut **handle, options, &mut tell),
        None => layout::survey(target, options, &mut tell),
    };
    bar.finish_and_clear();
    Ok(survey?)
}

/// A handle on what only the laboratory reads: images of UFS and LFS.
fn handle(target: &Path) -> failure::Result<Option<Box<dyn FileSystem>>> {
    let written = target.to_str().and_then(|text| Target::parse(text).ok());
    match (target.exists(), written) {
        (false, Some(Target::Lab(text))) => Ok(Some(target::open_image(&text)?.handle())),
        (false, Some(Target::Scratch(_))) => Err(failure::usage(format!(
            "{}: a scratch file system would be made empty; name a directory, or an image of ext4, UFS or LFS",
            output::shown(target)
        ))),
        _ if images::is_image(target) => Ok(Some(LabSite::look_at(target)?.handle())),
        _ => Ok(None),
    }
}
