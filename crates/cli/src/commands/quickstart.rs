//! `fsage quickstart`: record, measure, predict, check, on this machine and without root.

use crate::commands::measure as measuring;
use crate::failure::{self, Context as _};
use crate::output::{self, ResultArgs};
use crate::quickstart::present::{Checked, Quickstart};
use crate::quickstart::recording;
use crate::target::TargetArgs;
use crate::{progress, values};
use measure::MeasureOptions;
use posix::output::Output as Placed;
use posix::{CacheState, Target};
use predict::answer::Answer;
use predict::pipeline::{Calls, PredictOptions};
use replay::{ReplayOptions, ReplayResult};
use serde::Serialize;
use std::fs::File;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use system::{Drift, SystemProfile, bundled};
use trace::profile::Reader;

/// The main job end to end on this machine, without root, in about two minutes.
///
/// Records a small workload with strace (or uses a bundled recording where strace cannot run), measures the file system
/// of the current directory, predicts the workload on it, and replays it here three times to check the prediction. The
/// same workload on bundled profiles of ext4, XFS and btrfs shows how file systems are compared; they were measured on
/// one other machine, and are compared with each other only. The workload and the profile stay, to be explored: in -o
/// DIR, else in fsage/quickstart of your data directory (XDG_DATA_HOME, ~/.local/share).
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The directory to work in, on the file system to measure.
    #[arg(default_value = ".")]
    directory: PathBuf,
    /// Use the bundled recording even where strace can run.
    #[arg(long)]
    bundled: bool,
    /// Time that measuring may take.
    #[arg(long, value_name = "TIME", default_value = "45s", value_parser = values::span_ns)]
    budget: u64,
    /// Seed of every random choice.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    result: ResultArgs,
}

/// Schema of the result.
const SCHEMA: &str = "fsage.quickstart/2";

#[derive(Serialize)]
struct Output<'a> {
    #[serde(flatten)]
    quickstart: &'a Quickstart,
    /// The workload on what was measured here.
    here: &'a Answer,
    /// And on the bundled profiles, which are of another machine.
    elsewhere: &'a Answer,
}

/// Does all of it.
pub fn run(args: Args) -> failure::Result<ExitCode> {
    args.result.check()?;
    let place = Target::Directory(args.directory.clone());
    let temporary = TargetArgs { keep: false };
    let site = temporary.open(&place, 64 << 20, 4000)?;
    let done = in_site(&args, &place, site.root_path());
    let closed = temporary.close(site);
    done.and_then(|code| closed.map(|()| code))
}

fn in_site(args: &Args, place: &Target, directory: &Path) -> failure::Result<ExitCode> {
    let profile = directory.join("quickstart.workload");
    let mut said = Quickstart::default();
    progress::note("1 of 4: recording a small workload: files made, packed, unpacked, compiled, logged and removed");
    match recording::record(directory, &profile, args.bundled)? {
        recording::Source::Recorded => said.recorded = true,
        recording::Source::Bundled { why } => {
            progress::note(&format!("using the bundled recording: {why}"));
            said.bundled_because = why;
        }
    }
    let reader = Reader::open(&profile)?;

    progress::note(&format!("2 of 4: measuring the file system here, at most {} s", args.budget / 1_000_000_000));
    let mut options = MeasureOptions::quick(args.seed);
    options.budget = Some(Duration::from_nanos(args.budget));
    let mut here = measuring::measure(place, &TargetArgs { keep: false }, &options)?;
    // Without a mount table (in a bare chroot) the type is not known.
    here.name = match here.environment.fs_type.name() {
        "" => "here".to_owned(),
        fs_type => format!("here ({fs_type})"),
    };
    let here_name = here.name.clone();

    progress::note("3 of 4: predicting the workload here and on the bundled profiles");
    let systems = [here];
    let bundled = bundled::systems()?;
    said.bundled = bundled.iter().map(Into::into).collect();
    let options = PredictOptions { seed: args.seed, calls: Calls::Replayed, ..PredictOptions::default() };
    let predicted = |systems: &[SystemProfile]| -> failure::Result<Answer> {
        let mut answer = Answer::predict("quickstart".to_owned(), &reader, &reader, systems, &options, None)?;
        answer.explanation = answer.explained(None)?;
        Ok(answer)
    };
    let (output, elsewhere) = (predicted(&systems)?, predicted(&bundled)?);

    progress::note("4 of 4: replaying it here, to check the prediction");
    match check(place, &reader, &options, &systems, &output, &here_name) {
        Ok(checked) => said.checked = Some(checked),
        // The prediction stands without its check, and says so.
        Err(error) if !posix::interrupt::requested() => said.unchecked_because = error.to_string(),
        Err(error) => return Err(error),
    }
    let [here] = &systems;
    match (&args.result.output, data_directory()) {
        (Some(directory), _) => keep(directory, &profile, here)?,
        (None, Some(directory)) => match keep(&directory, &profile, here) {
            Ok(()) => said.kept = output::shown(&directory),
            // What was found is shown all the same.
            Err(error) => progress::note(&format!("the workload is not kept: {error}")),
        },
        (None, None) => {}
    }
    let full = crate::quickstart::present::full(&said, output.document(), elsewhere.document());
    let short = crate::quickstart::present::short(&said, &output.prediction, &elsewhere);
    let result = Output { quickstart: &said, here: &output, elsewhere: &elsewhere };
    args.result.emit_short(SCHEMA, &result, &short, &full)?;
    Ok(ExitCode::SUCCESS)
}

/// How often the workload is replayed: one replay says nothing of how busy the machine is. No further one begins after
/// so long.
const REPLAYS: usize = 3;
const REPLAYS_TIME: Duration = Duration::from_secs(20);

/// Replays the workload in the same place and holds the prediction against it. Just before each replay the references
/// of the profile are measured again: where the machine has become slower or faster since it was measured, the
/// prediction is carried over to that.
fn check(
    place: &Target,
    reader: &Reader,
    options: &PredictOptions,
    systems: &[SystemProfile],
    output: &Answer,
    here: &str,
) -> failure::Result<Checked> {
    let needs = replay::requirements(reader)?;
    let profile = systems.iter().find(|system| system.name == here).expect("what was measured here is predicted");
    let began = Instant::now();
    let mut results = Vec::new();
    let mut drifts = Vec::new();
    while results.len() < REPLAYS && (results.is_empty() || began.elapsed() < REPLAYS_TIME) {
        let temporary = TargetArgs { keep: false };
        let site = temporary.open(place, needs.bytes.saturating_add(measure::REFERENCES_BYTES), needs.inodes)?;
        let references = measure::references(&*site, options.seed);
        let replayed =
            references.map(|now| (now, replay::replay(reader, &*site, &ReplayOptions::default(), &mut |_| {})));
        let closed = temporary.close(site);
        let (now, result) = replayed?;
        let result: ReplayResult = result?;
        drifts.extend(Drift::between(profile, &now).map(|drift| drift.with_core(profile, result.core_ns)));
        results.push(result);
        closed?;
    }
    let replays_ns: Vec<f64> = results.iter().map(|result| result.total_ns as f64).collect();
    let certain = results.iter().all(|result| result.cache_state != CacheState::Unverified);
    let first = results.first().expect("there is at least one replay");
    let predicted_ns = output.ranking.systems.iter().find(|s| s.system == here).map_or(0.0, |s| s.total_ns);
    let drift = Drift::middle(&drifts);
    let now = match &drift {
        Some(drift) => {
            predict::pipeline::predict(reader, &[profile.rescaled(drift)], options)?.systems.into_iter().next()
        }
        None => None,
    };
    Ok(Checked {
        predicted_ns,
        predicted_now_ns: now.map(|system| system.total_ns),
        drift,
        replayed_ns: stats::median(&replays_ns).unwrap_or(0.0),
        replays_ns,
        cache_state: if certain { first.cache_state } else { CacheState::Unverified },
        differences: results.iter().map(|result| result.differences.total).max().unwrap_or(0),
        calls: first.calls,
    })
}

/// Copies a file, for its owner alone, whole or not at all.
fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    let (output, mut file) = Placed::create(to, 0o600)?;
    std::io::copy(&mut File::open(from)?, &mut file)?;
    output.finish()
}

/// Where what was recorded stays if nobody says where: a place of fsage's own in the user's data directory (XDG Base
/// Directory Specification). The next quickstart takes its place.
fn data_directory() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let data = absolute("XDG_DATA_HOME").or_else(|| absolute("HOME").map(|home| home.join(".local/share")))?;
    Some(data.join("fsage/quickstart"))
}

/// Puts what was recorded and measured beside the report.
fn keep(directory: &Path, profile: &Path, here: &SystemProfile) -> failure::Result<()> {
    let kept = directory.join("quickstart.workload");
    // As private as any profile.
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&kept);
    made.with_context(|| format!("cannot make {}", output::shown(&kept)))?;
    // What an earlier recording had and this one has not: the two would be taken for one.
    for part in ["meta.json", "trace.parquet", "snapshot.parquet", "schedule.parquet"] {
        let old = kept.join(part);
        if !profile.join(part).exists() && old.exists() {
            std::fs::remove_file(&old).with_context(|| format!("cannot remove {}", output::shown(&old)))?;
        }
    }
    for entry in std::fs::read_dir(profile)? {
        let entry = entry?;
        copy(&entry.path(), &kept.join(entry.file_name()))
            .with_context(|| format!("cannot copy into {}", output::shown(&kept)))?;
    }
    here.save(&directory.join("here.system"))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use system::{Moved, Reference};

    /// A real one takes a minute: this is its document, made of its type from the bundled recording, whatever of it
    /// may be missing.
    #[test]
    fn its_document_is_as_its_schema_says() {
        let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/quickstart/recorded");
        let reader = Reader::open(&recorded).unwrap();
        let systems = bundled::systems().unwrap();
        let options = PredictOptions { calls: Calls::Replayed, ..PredictOptions::default() };
        let predicted = |systems: &[SystemProfile]| {
            let name = "quickstart".to_owned();
            let mut answer = Answer::predict(name, &reader, &reader, systems, &options, None).unwrap();
            answer.explanation = answer.explained(None).unwrap();
            answer
        };
        let (here, elsewhere) = (predicted(&systems[..1]), predicted(&systems[..2]));
        // A bundled profile has no references.
        let moved = |reference| Moved { reference, then_ns: 1.0, now_ns: 1.5 };
        let drift = Some(Drift { references: Reference::ALL.map(moved).to_vec() });
        let checked = Checked {
            predicted_ns: 2.0,
            predicted_now_ns: Some(2.5),
            drift,
            replayed_ns: 3.0,
            replays_ns: vec![3.0],
            cache_state: CacheState::Unverified,
            differences: 0,
            calls: 7,
        };
        let whole = Quickstart {
            recorded: true,
            bundled: systems.iter().map(Into::into).collect(),
            kept: "/home/u/.local/share/fsage/quickstart".to_owned(),
            checked: Some(checked.clone()),
            ..Quickstart::default()
        };
        let without_drift = Checked { predicted_now_ns: None, drift: None, ..checked };
        let documents = [whole.clone(), Quickstart { checked: Some(without_drift), ..whole }, Quickstart::default()];
        let documents = documents.map(|quickstart| {
            let output = Output { quickstart: &quickstart, here: &here, elsewhere: &elsewhere };
            output::envelope(SCHEMA, &output).unwrap()
        });
        testkit::schema::hold(&documents);
    }
}
