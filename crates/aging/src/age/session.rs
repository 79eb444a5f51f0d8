//! What stands around a replay on a mounted target: which plan it is, whether the target is the one it was made for,
//! surveys, snapshots and states as they fall due, and the mark on an aged tree.

use super::error::AgeError;
use super::options::{AgeOptions, Room};
use super::replay::{Observer, Progress};
use super::result::{AgeResult, PlanIdentity};
use super::state::State;
use crate::DAY_NS;
use crate::format::PlanMeta;
use crate::snapshot::{TakeOptions, take_handle};
use layout::{MapOrder, SeriesHeader, SeriesPoint, SeriesWriter, SurveyOptions};
use posix::{Call, Errno, FileSystem, FsUsage, Mode, OpenFlags};
use serde::{Deserialize, Serialize};
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// What the file [`super::MARKER_NAME`] in the root of an aged tree says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Marker {
    /// `fsage.aged/1`
    pub schema: String,
    /// Version of the program.
    pub fsage: String,
    /// Name of the plan.
    pub plan: String,
    /// CRC-32C of the plan.
    pub plan_crc32c: String,
    /// Seed of the plan.
    pub seed: u64,
    /// Simulated days gone through.
    pub days: u32,
    /// How contents came about.
    pub data: super::DataMode,
}

impl Marker {
    /// What to say of a result.
    pub fn of(result: &AgeResult) -> Marker {
        Marker {
            schema: "fsage.aged/1".to_owned(),
            fsage: env!("CARGO_PKG_VERSION").to_owned(),
            plan: result.plan.name.clone(),
            plan_crc32c: result.plan.crc32c.clone(),
            seed: result.meta.seed,
            days: result.days_done,
            data: result.data,
        }
    }

    /// Writes it into the root of the tree; whether there was room for it. A full file system has none, and no part of
    /// it then.
    ///
    /// # Errors
    /// [`AgeError::Io`].
    pub fn write(&self, fs: &mut dyn FileSystem) -> Result<bool, AgeError> {
        let target = format!("{}, {}", fs.environment().target, super::MARKER_NAME);
        let io = || fault::refused(Path::new(&target), "write the mark");
        let text = serde_json::to_string_pretty(self).map_err(|e| io()(e.into()))?;
        let mut write = || -> Result<(), Errno> {
            let flags = OpenFlags { create: true, truncate: true, ..OpenFlags::WRITE };
            let fd = fs.call(&Call::Open { at: super::MARKER_NAME.into(), flags, mode: Mode(0o644) }).fd()?;
            let bytes = format!("{text}\n");
            let written =
                fs.call(&Call::Write { fd, offset: None, len_bytes: bytes.len() as u64, data: Some(bytes.as_bytes()) });
            let closed = fs.call(&Call::Close { fd }).result;
            let whole = written.count()? == bytes.len() as u64;
            closed.and(if whole { Ok(()) } else { Err(Errno::ENOSPC) })
        };
        match write() {
            Ok(()) => Ok(true),
            Err(Errno::ENOSPC) => {
                // It may not have been made at all.
                let _ = fs.call(&Call::Unlink { at: super::MARKER_NAME.into() });
                Ok(false)
            }
            Err(errno) => Err(io()(errno.into()).into()),
        }
    }
}

/// Reads a plan's file once, for its checksum.
///
/// # Errors
/// [`AgeError::Io`].
pub fn identity(path: &Path) -> Result<PlanIdentity, AgeError> {
    let io = || fault::refused(path, "read the plan");
    let mut file = posix::input::open(path).map_err(io())?;
    let (mut buffer, mut bytes, mut crc) = (vec![0u8; 1 << 20], 0u64, 0u32);
    loop {
        let n = file.read(&mut buffer).map_err(io())?;
        let Some(read) = buffer.get(..n).filter(|read| !read.is_empty()) else { break };
        crc = crc32c::crc32c_append(crc, read);
        bytes += n as u64;
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(PlanIdentity { name, bytes, crc32c: format!("{crc:08x}") })
}

/// Decides what part of the target is the plan's whole, and says so where that needs saying.
///
/// A file system whose capacity is within [`Room::DIFFERENCE_MAX`] of the plan's is taken whole; on a directory's
/// larger file system the plan's capacity is a room of its own beside what others use.
///
/// # Errors
/// [`AgeError::Capacity`], with the command that makes a fitting plan.
pub fn room(
    meta: &PlanMeta,
    usage: &FsUsage,
    target: &str,
    scratch: bool,
    asked: Option<u64>,
) -> Result<(Room, Option<String>), AgeError> {
    let refuse =
        |difference: String, advice: String| Err(AgeError::Capacity { target: target.to_owned(), difference, advice });
    let gib = |bytes: u64| format!("{:.2} GiB", bytes as f64 / (1u64 << 30) as f64);
    let used = usage.total_bytes.saturating_sub(usage.free_bytes);
    let difference = Room::difference(meta.capacity_bytes, usage);
    let percent = format!("{:+.1} %", difference * 100.0);
    let fits = difference.abs() <= Room::DIFFERENCE_MAX;
    // More than that in use before we begin is somebody's files.
    let empty = used <= usage.total_bytes / 10;
    let plan_for = |bytes: u64| format!("plan for it: fsage plan ... --capacity {bytes}");
    if asked.is_none() && fits && (scratch || empty) {
        let note = (difference.abs() > 0.005).then(|| {
            format!(
                "the plan is for {} and the file system has {} ({percent}): its deletions are brought forward or held \
                 back to match",
                gib(meta.capacity_bytes),
                gib(usage.total_bytes)
            )
        });
        return Ok((Room::Whole, note));
    }
    if scratch && asked.is_none() {
        let what = format!(
            "the plan is for {} and the file system has {} ({percent}); up to {:.0} % is steered",
            gib(meta.capacity_bytes),
            gib(usage.total_bytes),
            Room::DIFFERENCE_MAX * 100.0
        );
        return refuse(what, plan_for(usage.total_bytes));
    }
    let bytes = asked.unwrap_or(meta.capacity_bytes);
    let planned_max = meta.utilisation.iter().fold(0.0f64, |most, day| most.max(day.used_share));
    let peak =
        if meta.capacity_bytes > 0 { meta.counts.used_bytes_max as f64 / meta.capacity_bytes as f64 } else { 0.0 };
    // A margin of a sixteenth for what the file system adds.
    let need = (bytes as f64 * planned_max.max(peak) * (1.0 + 1.0 / 16.0)) as u64;
    if need > usage.available_bytes {
        let what = format!("the plan needs {} and {} are free", gib(need), gib(usage.available_bytes));
        return refuse(what, format!("{}, or age a part of it: --room SIZE", plan_for(usage.available_bytes)));
    }
    let note = format!(
        "{} of the file system's {} are the plan's, beside the {} in use when it began; shares are of that room, and \
         what others write meanwhile shows in them",
        gib(bytes),
        gib(usage.total_bytes),
        gib(used)
    );
    Ok((Room::Beside { bytes }, Some(note)))
}

/// Where the aged tree of a run is that can be gone on with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// A private directory in a directory target.
    Directory(PathBuf),
    /// The image of a scratch target.
    Image(PathBuf),
}

/// What a run has to remember beyond the replay's own state, in [`State::session`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionState {
    /// The target as it was written.
    pub target: String,
    /// The plan's file.
    pub plan: PathBuf,
    /// Where the tree is.
    pub place: Place,
    /// The result directory.
    pub results: Option<PathBuf>,
    /// Where snapshots go.
    pub snapshots: Option<PathBuf>,
    /// The replay's options.
    pub options: AgeOptions,
    /// What the reader of the result should know.
    pub notes: Vec<String>,
}

/// Surveys, snapshots and states of a run on a mounted target.
pub struct Session<'a> {
    /// Told how far the run is.
    pub progress: &'a mut dyn FnMut(&Progress),
    /// Where surveys, the clock and the use are recorded.
    pub series: Option<SeriesWriter>,
    /// Where snapshots go.
    pub snapshots: Option<PathBuf>,
    /// Whether they have block lists.
    pub snapshot_blocks: bool,
    /// Where the state goes, and what is to be in it.
    pub state: Option<(PathBuf, SessionState)>,
    /// Wall clock (nanoseconds since the epoch) against simulated nanoseconds, in order of time.
    pub clock: Vec<(i64, u64)>,
    /// Day of the last use recorded.
    used_day: Option<u64>,
    operations: u64,
}

/// The disk's map in a survey: 2^7 by 2^7 cells, enough to see and small enough for every survey to have one.
const MAP_ORDER: u8 = 7;
/// "Hot" files: modified in the last month (Smith and Seltzer 1996).
const HOT_DAYS: f64 = 30.0;

impl<'a> Session<'a> {
    /// One that records nothing yet.
    pub fn new(progress: &'a mut dyn FnMut(&Progress)) -> Session<'a> {
        Session {
            progress,
            series: None,
            snapshots: None,
            snapshot_blocks: false,
            state: None,
            clock: Vec::new(),
            used_day: None,
            operations: 0,
        }
    }

    /// What a series of a run says of itself.
    pub fn header(meta: &PlanMeta, environment: &posix::Environment, notes: &[String]) -> SeriesHeader {
        SeriesHeader {
            name: environment.target.clone(),
            workload: if meta.source.name.is_empty() { meta.source.kind.clone() } else { meta.source.name.clone() },
            environment: environment.clone(),
            notes: notes.to_vec(),
            ..SeriesHeader::default()
        }
    }

    /// The wall-clock time of a simulated time, by the clock so far.
    fn wall_of(&self, simulated_ns: u64) -> Option<i64> {
        let after = self.clock.partition_point(|(_, sim)| *sim < simulated_ns);
        self.clock.get(after).or(self.clock.last()).map(|(wall, _)| *wall)
    }

    /// Days of wall-clock time that stand for the month before now.
    fn hot_days(&self, simulated_ns: u64, now_ns: i64) -> Option<f64> {
        let since = simulated_ns.checked_sub((HOT_DAYS * DAY_NS as f64) as u64)?;
        let wall = self.wall_of(since)?;
        Some((now_ns - wall).max(0) as f64 / DAY_NS as f64)
    }

    fn series_error(doing: &'static str) -> impl Fn(layout::LayoutError) -> AgeError {
        move |source| AgeError::Survey { doing, source }
    }
}

impl<F: FileSystem> Observer<F> for Session<'_> {
    fn progress(&mut self, at: &Progress) -> Result<(), AgeError> {
        self.operations = at.operations;
        if self.series.is_some() || self.snapshots.is_some() {
            self.clock.push((at.date_ns, at.simulated_ns));
        }
        if let (Some(series), Some((wall, simulated))) = (&mut self.series, self.clock.last()) {
            series.clock(*wall, *simulated).map_err(Session::series_error("cannot record the clock"))?;
            let day = at.simulated_ns / DAY_NS;
            if self.used_day != Some(day) {
                self.used_day = Some(day);
                let used = series.used(day_of(at.simulated_ns), Some(at.planned_share), at.used_share);
                used.map_err(Session::series_error("cannot record the use"))?;
            }
        }
        (self.progress)(at);
        Ok(())
    }

    fn survey(&mut self, fs: &mut F, simulated_ns: u64) -> Result<(), AgeError> {
        let now_ns = fs.date_ns();
        let hot_days = self.hot_days(simulated_ns, now_ns);
        let Some(series) = &mut self.series else { return Ok(()) };
        let options = SurveyOptions { hot_days, map: MapOrder::new(MAP_ORDER), ..SurveyOptions::default() };
        let survey = layout::survey_handle(fs, &options, &mut |_| true)
            .map_err(Session::series_error("cannot survey the target"))?;
        let point = SeriesPoint { day: day_of(simulated_ns), t_unix_ns: now_ns, operations: self.operations, survey };
        series.point(&point).map_err(Session::series_error("cannot record the survey"))
    }

    fn snapshot(&mut self, fs: &mut F, simulated_ns: u64) -> Result<(), AgeError> {
        let Some(into) = &self.snapshots else { return Ok(()) };
        let clock = |wall_ns: i64| i64::try_from(simulated_of(&self.clock, wall_ns)).unwrap_or(i64::MAX);
        let taken_ns = i64::try_from(simulated_ns).unwrap_or(i64::MAX);
        let blocks = self.snapshot_blocks;
        let options = TakeOptions { clock: Some(&clock), taken_ns: Some(taken_ns), blocks, ..TakeOptions::default() };
        let path = into.join(format!("day-{:06}.snapshot", simulated_ns / DAY_NS));
        take_handle(fs, &options).and_then(|snapshot| snapshot.write(&path)).map_err(AgeError::Snapshot)
    }

    fn checkpoint(&mut self, _fs: &mut F, mut state: State) -> Result<(), AgeError> {
        let Some((path, session)) = &self.state else { return Ok(()) };
        let io = fault::refused(path, "write the state");
        state.session = serde_json::to_value(session).map_err(|error| io(error.into()))?;
        state.save(path)
    }
}

/// The simulated time of a wall-clock time, in proportion between the points of the clock. Times of inodes lag by up to
/// a timer tick, so a time just before a point belongs to what came before it.
fn simulated_of(clock: &[(i64, u64)], wall_ns: i64) -> u64 {
    let after = clock.partition_point(|(wall, _)| *wall <= wall_ns);
    let before = after.checked_sub(1).and_then(|i| clock.get(i));
    match (before, clock.get(after)) {
        (None, None) => 0,
        (Some((_, only)), None) | (None, Some((_, only))) => *only,
        (Some((wall_a, a)), Some((wall_b, b))) => {
            let part = wall_ns.abs_diff(*wall_a) as f64 / wall_b.abs_diff(*wall_a) as f64;
            a + ((b - a) as f64 * part) as u64
        }
    }
}

/// Simulated time in days.
fn day_of(simulated_ns: u64) -> f64 {
    simulated_ns as f64 / DAY_NS as f64
}
