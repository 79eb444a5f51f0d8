//! The arguments of `fsage age`, and what they come to.

use super::job::Job;
use super::kept;
use super::like::Like;
use crate::{failure, output, target, values};
use aging::age::{AgeError, AgeOptions, DataMode, Every, OnFull, Place, Room, SessionState, State, identity};
use aging::format::Reader;
use posix::cleanup::Temporary;
use posix::{Backing, Target};
use std::path::{Path, PathBuf};

/// The schema of the result.
pub(super) const SCHEMA: &str = "fsage.age/1";
/// The state's name in a result directory.
pub(super) const STATE_NAME: &str = "state.json";
/// Surveys of a run where no interval is given.
const SURVEYS: f64 = 32.0;

/// Age a file system: replay an aging workload on it.
///
/// The operations of a plan (`fsage plan`) are performed in order, without idle time, and the share in use is kept to
/// the plan's by bringing its deletions forward or holding them back. Nothing is left behind unless --keep asks for it.
/// With --keep and -o a run that is interrupted or killed can be gone on with.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  fsage age ext4:8G --like home --years 2 --data=fallocate -o aged
  fsage age ext4:8G --plan home.aging --keep aged.img -o aged
  fsage age /mnt/test --plan mail.aging --keep -o aged
  fsage age xfs:8G --plan home.aging --image aged-xfs.img.zst
  fsage age --resume aged/state.json")]
pub struct Args {
    /// A directory, a scratch file system (ext4:8G, xfs:8G, btrfs:8G), or one of the laboratory (ffs:OPTIONS@DRIVE).
    #[arg(value_name = "TARGET", value_parser = target::parse, required_unless_present = "resume")]
    target: Option<Target>,
    /// The aging workload, as `fsage plan` writes it.
    #[arg(long, value_name = "NAME.aging", required_unless_present_any = ["resume", "like"])]
    plan: Option<PathBuf>,
    /// Instead of a plan: plan for this target from a personality (home, mail, ... or a file; see
    /// `fsage plan personality`).
    #[arg(long, value_name = "NAME", conflicts_with = "plan")]
    like: Option<String>,
    /// With --like: simulated years [default: 1].
    #[arg(long, value_name = "N", requires = "like", conflicts_with = "days", value_parser = factor)]
    years: Option<f64>,
    /// With --like: utilisation at the end.
    #[arg(long, value_name = "SHARE", requires = "like", value_parser = values::share)]
    fill: Option<f64>,
    /// Go on with a run from its state (RESULTS/state.json); everything else is as it was.
    #[arg(long, value_name = "STATE", conflicts_with_all = ["target", "plan", "like", "data", "writers", "chunk",
        "on_full", "days",
        "look_ahead", "room", "real_time", "checkpoint_every", "survey_every", "snapshots_every", "snapshots_blocks",
        "seed", "keep", "output"])]
    resume: Option<PathBuf>,
    /// Write every byte, or only reserve space with fallocate (much faster; extents are then marked unwritten).
    #[arg(long, value_name = "write|fallocate", value_parser = data_mode, default_value = "write")]
    data: DataMode,
    /// How many writers share the work; the final tree does not depend on it.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    writers: u16,
    /// Most bytes of one write.
    #[arg(long, value_name = "SIZE", default_value = "1M", value_parser = values::size)]
    chunk: u64,
    /// When the target is full: leave the operation out, delete the oldest files, or stop.
    #[arg(long, value_name = "skip|delete-oldest|stop", value_parser = on_full, default_value = "skip")]
    on_full: OnFull,
    /// End after so many simulated days.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    days: Option<u32>,
    /// How many operations ahead deletions are looked for when space has to be won.
    #[arg(long, value_name = "N", default_value_t = 131_072,
        value_parser = clap::value_parser!(u32).range(1..=16_777_216))]
    look_ahead: u32,
    /// In a directory: take so much of its file system as the plan's whole [default: all of it where that fits the
    /// plan, else the plan's capacity].
    #[arg(long, value_name = "SIZE", value_parser = values::size)]
    room: Option<u64>,
    /// Keep a pace: so many simulated seconds in a second, for systems that work when idle.
    #[arg(long, value_name = "FACTOR", value_parser = factor)]
    real_time: Option<f64>,
    /// Write a state to go on from so often: operations, or simulated days with a d (30d). For runs with -o whose tree
    /// is kept.
    #[arg(long, value_name = "N|Nd", value_parser = every)]
    checkpoint_every: Option<Every>,
    /// Survey the layout every so many simulated days [default with -o or --html: about 32 surveys over the run].
    #[arg(long, value_name = "DAYS", value_parser = days)]
    survey_every: Option<f64>,
    /// Take a snapshot with simulated times every so many simulated days.
    #[arg(long, value_name = "DAYS", value_parser = days, requires = "snapshots_into")]
    snapshots_every: Option<f64>,
    /// The directory snapshots go to.
    #[arg(long, value_name = "DIR", requires = "snapshots_every")]
    snapshots_into: Option<PathBuf>,
    /// Keep in each snapshot where the files lie (block lists), for `fsage layout`.
    #[arg(long, requires = "snapshots_every")]
    snapshots_blocks: bool,
    /// Chooses the files deleted where the plan deletes none in time; with --like, the plan's seed too.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Keep the aged tree: of a directory target the directory made in it; of a scratch target or the
    /// laboratory its image, in this new file.
    #[arg(long, value_name = "IMAGE", num_args = 0..=1)]
    keep: Option<Option<PathBuf>>,
    /// Write the aged image of a scratch target or the laboratory to this new file, compressed with zstd (to restore
    /// it: zstd -d), and a manifest beside it.
    #[arg(long, value_name = "FILE.img.zst")]
    image: Option<PathBuf>,
    #[command(flatten)]
    pub(super) bench: super::bench::BenchArgs,
    /// Write everything into a directory: manifest, result, tables, surveys, report and, while it runs, the state.
    #[arg(long, short, value_name = "DIR")]
    pub(super) output: Option<PathBuf>,
    /// Print the result as JSON (schema named in its first field) and nothing else on standard output.
    #[arg(long)]
    pub(super) json: bool,
    /// Write a self-contained HTML report with plots.
    #[arg(long, value_name = "FILE")]
    pub(super) html: Option<PathBuf>,
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

fn positive(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|x: &f64| x.is_finite() && *x > 0.0)
}

fn factor(text: &str) -> Result<f64, String> {
    positive(text).ok_or_else(|| "a number above 0, such as 86400 for a day in a second".to_owned())
}

fn days(text: &str) -> Result<f64, String> {
    positive(text).ok_or_else(|| "a number of simulated days above 0".to_owned())
}

fn every(text: &str) -> Result<Every, String> {
    let wrong = || "a number of operations, or of simulated days with a d (30d)".to_owned();
    match text.trim().strip_suffix('d') {
        Some(number) => positive(number).map(Every::Days).ok_or_else(wrong),
        None => text.trim().parse().ok().filter(|n| *n > 0).map(Every::Operations).ok_or_else(wrong),
    }
}

/// What the arguments come to.
pub(super) struct Replay {
    pub(super) job: Job,
    /// Where the compressed image goes.
    pub(super) compress_to: Option<PathBuf>,
}

impl Args {
    /// Opens the plan, and checks that the arguments make sense together.
    pub(super) fn prepare(self) -> failure::Result<Replay> {
        if let Some(state) = &self.resume {
            return self.resumed(state);
        }
        let Some(target) = self.target.clone() else { return Err(failure::usage("name a target")) };
        let keep = self.keep(&target)?;
        let directory = matches!(target, Target::Directory(_));
        self.bench.check(&target)?;
        if self.image.is_some() && directory {
            return Err(failure::usage("--image: a directory has no image; see --keep"));
        }
        if self.room.is_some() && !directory {
            return Err(failure::usage("--room: a new file system is all the plan's; give it the size you want"));
        }
        if self.checkpoint_every.is_some() && matches!(target, Target::Lab(_)) {
            return Err(failure::usage(
                "--checkpoint-every: a laboratory's file system is in memory until the end and cannot be gone on with",
            ));
        }
        if self.checkpoint_every.is_some() && (keep.is_none() || self.output.is_none()) {
            return Err(failure::usage(
                "--checkpoint-every: a run is gone on with from a kept tree (--keep) and a state (-o)",
            ));
        }
        for path in self.image.iter().chain(self.keep.iter().flatten()) {
            output::must_be_new(path)?;
        }
        // A plan that cannot be read is found before anything is made.
        let given = self.plan.as_deref().map(Reader::open).transpose().map_err(AgeError::from)?;
        for directory in self.output.iter().chain(&self.snapshots_into) {
            std::fs::create_dir_all(directory)
                .map_err(|e| failure::environment(format!("cannot make {}: {e}", output::shown(directory))))?;
        }
        if let Some(results) = &self.output {
            for name in [STATE_NAME, "surveys.series"] {
                output::must_be_new(&results.join(name))?;
            }
        }
        let scratch_dir = Temporary::new()?;
        let plan = match (given, &self.like) {
            (Some(plan), _) => plan,
            (None, Some(name)) => {
                let path = self.output.as_deref().unwrap_or(scratch_dir.path()).join("plan.aging");
                self.like(name).plan(&target, &path)?
            }
            (None, None) => return Err(failure::usage("name a plan (--plan), or what the use is like (--like)")),
        };
        let plan_path = plan.path().to_owned();
        if plan.meta().counts.operations == 0 {
            return Err(failure::bad_input(format!("{}: the plan has no operations", output::shown(&plan_path))));
        }
        // What a laboratory has done is lost with it.
        let options = self.options(&plan, keep.is_some() && !matches!(target, Target::Lab(_)));
        let job = Job {
            target,
            identity: identity(&plan_path)?,
            plan_path,
            plan,
            options,
            keep,
            results: self.output,
            snapshots: self.snapshots_into,
            resume: None,
            notes: Vec::new(),
        };
        Ok(Replay { job, compress_to: self.image })
    }

    fn like<'a>(&self, name: &'a str) -> Like<'a> {
        let days = self.days.unwrap_or_else(|| (self.years.unwrap_or(1.0) * 365.0).round().max(1.0) as u32);
        Like { name, days, fill: self.fill, seed: self.seed, room: self.room }
    }

    fn keep(&self, target: &Target) -> failure::Result<Option<kept::Keep>> {
        match (&self.keep, target) {
            (None, _) => Ok(None),
            (Some(None), Target::Directory(_)) => Ok(Some(kept::Keep::Directory)),
            (Some(Some(path)), Target::Directory(_)) => Err(failure::usage(format!(
                "--keep {}: a directory target is kept where it is; name no file",
                output::shown(path)
            ))),
            (Some(None), Target::Scratch(_) | Target::Lab(_)) => {
                Err(failure::usage("--keep: name the file that the file system's image is to be in (--keep IMAGE)"))
            }
            (Some(Some(_)), Target::Scratch(spec)) if spec.backing != Backing::Default => {
                Err(failure::usage("--keep IMAGE says where the image lies; leave out backing="))
            }
            (Some(Some(path)), Target::Scratch(_) | Target::Lab(_)) => Ok(Some(kept::Keep::Image(path.clone()))),
        }
    }

    fn options(&self, plan: &Reader, kept: bool) -> AgeOptions {
        let days = f64::from(self.days.unwrap_or(plan.meta().days).min(plan.meta().days));
        let reported = self.output.is_some() || self.html.is_some();
        AgeOptions {
            data: self.data,
            writers: usize::from(self.writers),
            chunk_bytes: self.chunk,
            on_full: self.on_full,
            days: self.days,
            look_ahead: usize::try_from(self.look_ahead).unwrap_or(usize::MAX),
            room: self.room.map_or(Room::Whole, |bytes| Room::Beside { bytes }),
            seed: self.seed,
            real_time: self.real_time,
            // A kept run with a result directory can always be gone on with.
            checkpoint: self
                .checkpoint_every
                .or_else(|| (kept && self.output.is_some()).then(|| Every::Days((days / SURVEYS).max(1.0)))),
            survey_days: self.survey_every.or_else(|| reported.then(|| (days / SURVEYS).max(1.0).round())),
            snapshot_days: self.snapshots_every,
            snapshot_blocks: self.snapshots_blocks,
        }
    }

    /// As the state says.
    fn resumed(&self, path: &Path) -> failure::Result<Replay> {
        let state = State::load(path)?;
        let bad = |what: String| failure::bad_input(format!("{}: {what}", output::shown(path)));
        let session: SessionState = serde_json::from_value(state.session.clone())
            .map_err(|e| bad(format!("no state of a run of `fsage age`: {e}")))?;
        let plan = Reader::open(&session.plan).map_err(AgeError::from)?;
        let found = identity(&session.plan)?;
        if (found.bytes, &found.crc32c) != (state.result.plan.bytes, &state.result.plan.crc32c) {
            return Err(bad(format!(
                "the run's plan {} has changed since (CRC-32C {} instead of {}); restore it",
                output::shown(&session.plan),
                found.crc32c,
                state.result.plan.crc32c
            )));
        }
        let target = Target::parse(&session.target).map_err(|e| bad(e.to_string()))?;
        let keep = match &session.place {
            Place::Directory(_) => kept::Keep::Directory,
            Place::Image(image) => kept::Keep::Image(image.clone()),
        };
        let job = Job {
            target,
            identity: found,
            plan_path: session.plan,
            plan,
            options: session.options,
            keep: Some(keep),
            results: session.results,
            snapshots: session.snapshots,
            resume: Some(state),
            notes: session.notes,
        };
        Ok(Replay { job, compress_to: self.image.clone() })
    }
}
