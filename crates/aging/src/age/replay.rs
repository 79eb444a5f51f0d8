//! The replay: the plan's operations in windows, control between them.
//!
//! One thread reads the plan, keeps the books, decides and resolves; the writers perform. A window ends at a fixed
//! count of operations, so control sees the target at the same points of the plan whatever the number of writers.

mod full;
mod step;

use super::ahead::Ahead;
use super::control::{Control, Need, used};
use super::error::{AgeError, advice};
use super::nodes::{Nodes, Presence};
use super::options::{AgeOptions, DataMode, Every, Room};
use super::result::{AgeResult, ControlPoint, Counters, DayRow, PlanIdentity};
use super::state::{STATE_VERSION, State};
use super::window::Window;
use super::writer::{self, Report};
use crate::format::{Placement, Reader};
use crate::{DAY_NS, NodeId};
use fault::refused;
use layout::geometry::Groups;
use posix::{Call, FileSystem, Step};
use rustc_hash::FxHashSet;
use stats::random::{GOLDEN, finalise};
use std::io;
use std::path::Path;

/// The longest path (`PATH_MAX`), without the terminating NUL.
const PATH_BYTES_MAX: usize = 4095;

/// What a caller is told and asked while a replay runs. The writers are at rest during each call.
pub trait Observer<F> {
    /// How far it is: called at the end of each window, and before the first.
    ///
    /// # Errors
    /// Any error ends the run.
    fn progress(&mut self, _at: &Progress) -> Result<(), AgeError> {
        Ok(())
    }

    /// A survey is due, at this simulated time.
    ///
    /// # Errors
    /// Any error ends the run.
    fn survey(&mut self, _fs: &mut F, _simulated_ns: u64) -> Result<(), AgeError> {
        Ok(())
    }

    /// A snapshot is due, at this simulated time.
    ///
    /// # Errors
    /// Any error ends the run.
    fn snapshot(&mut self, _fs: &mut F, _simulated_ns: u64) -> Result<(), AgeError> {
        Ok(())
    }

    /// The target is on stable storage; this is the state to go on from. The observer fills in `session`.
    ///
    /// # Errors
    /// Any error ends the run.
    fn checkpoint(&mut self, _fs: &mut F, _state: State) -> Result<(), AgeError> {
        Ok(())
    }
}

/// How far a replay is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Operations done, and of how many.
    pub operations: u64,
    /// Of how many; where the run ends early, of those up to there.
    pub of_operations: u64,
    /// Simulated time, nanoseconds.
    pub simulated_ns: u64,
    /// The date that files get now, nanoseconds since 1970.
    pub date_ns: i64,
    /// What the plan has in use, as a share of its capacity.
    pub planned_share: f64,
    /// What is in use, as a share.
    pub used_share: f64,
}

/// What a replay begins with.
pub struct Begin<'a> {
    /// Which plan it is, for the state.
    pub plan: PlanIdentity,
    /// The allocation groups of the target, or why they are not known.
    pub groups: Result<Groups, String>,
    /// The checkpoint to go on from; the target has been brought to it (see [`super::reconcile`]).
    pub resume: Option<&'a State>,
}

/// Replays a plan on a file system, whose root is empty or, on a resumption, holds the tree of the checkpoint.
///
/// # Errors
/// [`AgeError`]; the tree is left as it is, and the observer has been given the state of the last checkpoint.
pub fn age<F: FileSystem>(
    fs: &mut F,
    plan: &Reader,
    options: &AgeOptions,
    begin: Begin<'_>,
    observer: &mut dyn Observer<F>,
) -> Result<AgeResult, AgeError> {
    let mut replay = Replay::new(fs, plan, options, &begin)?;
    if let (None, Placement::Groups { count }) = (begin.resume, plan.meta().placement) {
        replay.place_in_groups(count, &begin.groups)?;
    }
    replay.run(observer)
}

/// Most and fewest operations of a window.
const WINDOW_OPERATIONS_MAX: u64 = 8192;
const WINDOW_OPERATIONS_MIN: u64 = 256;
/// How many control points a plan has at least, where windows may be that small.
const CONTROL_POINTS: u64 = 400;
/// Paced runs look at the clock this often at least.
const PACE_NS: u64 = 100_000_000;

pub(super) struct Replay<'a, F> {
    pub(super) fs: &'a mut F,
    plan: &'a Reader,
    options: &'a AgeOptions,
    pub(super) target: String,
    pub(super) ahead: Ahead<'a>,
    nodes: Nodes,
    control: Control,
    window: Window,
    window_operations: u64,
    pub(super) result: AgeResult,
    /// Directories made ahead of their operation.
    pub(super) placed: FxHashSet<NodeId>,
    /// Simulated days that have ended.
    days_ended: u32,
    day_began: DayMarks,
    last_day: u32,
    now_sim_ns: u64,
    window_sim_ns: u64,
    /// File system's clock when this run began, and the simulated time then.
    pace_from: (u64, u64),
    /// The date that the plan's beginning has on this file system.
    date_from_ns: i64,
    next_survey_ns: Option<u64>,
    next_snapshot_ns: Option<u64>,
    next_checkpoint: Option<u64>,
    settle_reading: Settling,
}

/// Counters at the beginning of the present day.
#[derive(Clone, Copy, Debug, Default)]
struct DayMarks {
    operations: u64,
    wall_ns: u64,
    early: u64,
    held: u64,
    full: u64,
}

/// What a file system needs before `statvfs` tells what is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Settling {
    /// Nothing: its counters follow every call.
    None,
    /// A commit, and until nothing changes any more.
    Commit,
}

impl<'a, F: FileSystem> Replay<'a, F> {
    fn new(fs: &'a mut F, plan: &'a Reader, options: &'a AgeOptions, begin: &Begin<'_>) -> Result<Self, AgeError> {
        let environment = fs.environment();
        let target = environment.target.clone();
        let meta = plan.meta();
        let usage = fs.usage().map_err(refused(Path::new(&target), "look at the free space"))?;
        let room_bytes = options.room.bytes(&usage);
        let beside = options.room != Room::Whole;
        let settle_reading = if environment.fs_type.counts_at_once() { Settling::None } else { Settling::Commit };
        let control = match begin.resume {
            Some(state) => state.control,
            None => Control::new(meta.capacity_bytes, room_bytes, beside, &usage),
        };
        let block_bytes = if meta.block_bytes > 0 { meta.block_bytes } else { u64::from(usage.block_bytes) };
        let nodes = match begin.resume {
            Some(state) => super::reconcile::nodes_at(plan, block_bytes, state)?,
            None => Nodes::new(block_bytes),
        };
        let first = begin.resume.map_or(0, |state| state.next_operation);
        let result = match begin.resume {
            Some(state) => AgeResult { resumed: state.result.resumed + 1, ..state.result.clone() },
            None => AgeResult {
                plan: begin.plan.clone(),
                meta: crate::format::PlanMeta { utilisation: Vec::new(), ..meta.clone() },
                environment,
                data: options.data,
                writers: options.writers as u64,
                on_full: options.on_full,
                seed: options.seed,
                room: Some(options.room),
                room_bytes: control.room_bytes(),
                base_bytes: control.base_bytes(),
                counters: Counters::new(),
                ..AgeResult::default()
            },
        };
        let last_day = options.days.unwrap_or(meta.days).min(meta.days);
        let operations = meta.counts.operations;
        let window_operations = (operations / CONTROL_POINTS).clamp(WINDOW_OPERATIONS_MIN, WINDOW_OPERATIONS_MAX);
        let now_sim_ns = begin.resume.map_or(0, |state| state.simulated_ns);
        let every = |days: Option<f64>| {
            days.map(|days| ((now_sim_ns as f64 / day_ns(days)).floor() * day_ns(days) + day_ns(days)) as u64)
        };
        let pace_from = (fs.now_ns(), now_sim_ns);
        let date_from_ns = fs.date_ns().saturating_sub_unsigned(now_sim_ns);
        let mut replay = Replay {
            target,
            ahead: Ahead::new(plan, first, options.look_ahead),
            nodes,
            control,
            window: Window::new(options.writers, options.data, options.chunk_bytes),
            window_operations,
            placed: begin.resume.map(|s| s.placed.iter().map(|id| NodeId(*id)).collect()).unwrap_or_default(),
            days_ended: result.days_done,
            day_began: DayMarks::default(),
            last_day,
            now_sim_ns,
            window_sim_ns: now_sim_ns,
            pace_from,
            date_from_ns,
            next_survey_ns: every(options.survey_days),
            next_snapshot_ns: every(options.snapshot_days),
            next_checkpoint: None,
            settle_reading,
            result,
            fs,
            plan,
            options,
        };
        replay.day_began = replay.marks();
        replay.next_checkpoint = replay.checkpoint_after();
        Ok(replay)
    }

    fn run(mut self, observer: &mut dyn Observer<F>) -> Result<AgeResult, AgeError> {
        let end_ns = u64::from(self.last_day).saturating_mul(DAY_NS);
        observer.progress(&self.progress())?;
        loop {
            let next = self.ahead.peek()?.map(|op| op.t_ns).filter(|t| *t < end_ns);
            let Some(t_ns) = next else { break };
            self.end_days(t_ns / DAY_NS);
            self.due(t_ns, observer)?;
            self.pace(t_ns);
            let Some((number, op)) = self.ahead.take() else { break };
            self.now_sim_ns = op.t_ns;
            self.step(number, &op).map_err(|error| self.explain(number, error))?;
            self.result.counters.operations += 1;
            self.steer(number)?;
            if self.window_ends(number, t_ns) {
                self.end_window(observer)?;
            }
        }
        self.end_window(observer)?;
        self.read_use()?;
        self.end_days(u64::from(self.last_day));
        self.finish(observer, end_ns)
    }

    fn finish(mut self, observer: &mut dyn Observer<F>, end_ns: u64) -> Result<AgeResult, AgeError> {
        self.sync()?;
        if self.options.survey_days.is_some() {
            observer.survey(self.fs, end_ns)?;
        }
        if self.options.snapshot_days.is_some() {
            observer.snapshot(self.fs, end_ns)?;
        }
        self.sums();
        Ok(self.result)
    }

    fn sums(&mut self) {
        self.result.days_done = self.days_ended;
        self.result.files = self.nodes.present_files;
        self.result.file_bytes = self.nodes.present_bytes;
    }

    fn explain(&self, operation: u64, error: Trouble) -> AgeError {
        match error {
            Trouble::Broken(why) => AgeError::Broken { path: self.plan.path().to_owned(), operation, why },
            Trouble::PathTooLong(node) => AgeError::PathTooLong { operation, node: node.0, max: PATH_BYTES_MAX },
            Trouble::Run(error) => error,
        }
    }

    /// Whether a window ends after this operation: at fixed counts, when it is full, and often enough to keep the pace.
    fn window_ends(&self, number: u64, t_ns: u64) -> bool {
        let paced = self
            .options
            .real_time
            .is_some_and(|factor| t_ns.saturating_sub(self.window_sim_ns) as f64 > factor * PACE_NS as f64);
        (number + 1).is_multiple_of(self.window_operations)
            || self.window.jobs.len() as u64 >= 4 * WINDOW_OPERATIONS_MAX
            || paced
    }

    /// Performs what has been resolved so far.
    fn flush(&mut self) -> Result<(), AgeError> {
        if self.window.jobs.is_empty() {
            return Ok(());
        }
        // Where dates are virtual, files get those of the plan: idle days are left out, but have passed.
        self.fs.advance_date(self.date_from_ns.saturating_add_unsigned(self.now_sim_ns));
        let began = self.fs.now_ns();
        let window = std::mem::take(&mut self.window);
        let settled = self.perform(&window).and_then(|report| self.settle(&window, report));
        self.window = window;
        self.window.clear();
        self.result.wall_ns += self.fs.now_ns().saturating_sub(began);
        settled
    }

    /// Has the writers perform a window. To its end even if a signal comes, where the run can be gone on with from
    /// there: one operation of a plan from elsewhere may write for as long as there is room.
    fn perform(&mut self, window: &Window) -> Result<Report, AgeError> {
        let to_the_end = self.options.checkpoint.is_some();
        let report = match perform(self.fs, window, to_the_end) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Err(self.interruption()),
            ran => ran.map_err(refused(Path::new(&self.target), "run the writers"))?,
        };
        self.result.counters.calls += report.calls;
        self.result.counters.written_bytes += report.written_bytes;
        self.result.counters.holes_unsupported += report.unsupported;
        Ok(report)
    }

    fn end_window(&mut self, observer: &mut dyn Observer<F>) -> Result<(), AgeError> {
        self.flush()?;
        if self.ahead.position().is_multiple_of(self.window_operations) {
            self.read_use()?;
        }
        self.window_sim_ns = self.now_sim_ns;
        observer.progress(&self.progress())?;
        if posix::interrupt::requested() {
            return self.interrupted(observer);
        }
        if self.next_checkpoint.is_some_and(|at| self.checkpoint_clock() >= at) {
            self.checkpoint(observer)?;
            self.next_checkpoint = self.checkpoint_after();
        }
        Ok(())
    }

    fn progress(&self) -> Progress {
        let meta = self.plan.meta();
        let last = usize::try_from(self.last_day).ok().and_then(|n| meta.utilisation.get(n.checked_sub(1)?));
        Progress {
            operations: self.ahead.position(),
            of_operations: last.map_or(meta.counts.operations, |day| day.operations),
            simulated_ns: self.now_sim_ns,
            date_ns: self.fs.date_ns(),
            planned_share: self.control.planned_share(self.nodes.planned_bytes),
            used_share: self.control.share(self.control.estimate_bytes(self.nodes.present_bytes)),
        }
    }

    fn interrupted(&mut self, observer: &mut dyn Observer<F>) -> Result<(), AgeError> {
        if self.options.checkpoint.is_some() {
            self.checkpoint(observer)?;
        }
        Err(self.interruption())
    }

    /// How far the run has come.
    fn interruption(&self) -> AgeError {
        let day = u32::try_from(self.now_sim_ns / DAY_NS).unwrap_or(u32::MAX).saturating_add(1);
        AgeError::Interrupted { day, days: self.last_day, operations: self.ahead.position() }
    }

    /// What checkpoints are counted in.
    fn checkpoint_clock(&self) -> u64 {
        match self.options.checkpoint {
            Some(Every::Days(_)) => self.now_sim_ns,
            _ => self.ahead.position(),
        }
    }

    fn checkpoint_after(&self) -> Option<u64> {
        let step = match self.options.checkpoint? {
            Every::Days(days) => day_ns(days) as u64,
            Every::Operations(n) => n,
        };
        Some(self.checkpoint_clock().saturating_add(step.max(1)))
    }

    fn checkpoint(&mut self, observer: &mut dyn Observer<F>) -> Result<(), AgeError> {
        self.sync()?;
        self.sums();
        let mut placed: Vec<u64> = self.placed.iter().map(|id| id.0).collect();
        placed.sort_unstable();
        let state = State {
            version: STATE_VERSION,
            next_operation: self.ahead.position(),
            simulated_ns: self.now_sim_ns,
            reach_operations: self.reach(),
            result: self.result.clone(),
            control: self.control,
            held: self.nodes.held_queue(),
            absent: self.nodes.absent(),
            odd: self.nodes.odd_lengths(),
            placed,
            session: serde_json::Value::Null,
        };
        observer.checkpoint(self.fs, state)
    }

    /// How many operations may be done before the next checkpoint: up to its due point and to the end of that window,
    /// by operations or, where it comes by simulated time, to the plan's end.
    fn reach(&self) -> u64 {
        match self.options.checkpoint {
            Some(Every::Operations(n)) => n.saturating_add(self.window_operations),
            _ => u64::MAX,
        }
    }

    fn sync(&mut self) -> Result<(), AgeError> {
        let outcome = self.fs.call(&Call::SyncFs);
        outcome.result.map(drop).map_err(|errno| AgeError::Target {
            target: self.target.clone(),
            what: "syncfs of",
            path: ".".into(),
            operation: self.ahead.position(),
            errno,
            advice: advice(errno),
        })
    }

    /// Surveys and snapshots that are due before an operation at this time.
    fn due(&mut self, t_ns: u64, observer: &mut dyn Observer<F>) -> Result<(), AgeError> {
        if self.next_survey_ns.is_some_and(|at| at <= t_ns) {
            self.rest(observer)?;
            observer.survey(self.fs, self.next_survey_ns.unwrap_or(t_ns))?;
            self.next_survey_ns = after(self.next_survey_ns, self.options.survey_days, t_ns);
        }
        if self.next_snapshot_ns.is_some_and(|at| at <= t_ns) {
            self.rest(observer)?;
            observer.snapshot(self.fs, self.next_snapshot_ns.unwrap_or(t_ns))?;
            self.next_snapshot_ns = after(self.next_snapshot_ns, self.options.snapshot_days, t_ns);
        }
        Ok(())
    }

    /// Everything resolved so far is done and on stable storage.
    fn rest(&mut self, observer: &mut dyn Observer<F>) -> Result<(), AgeError> {
        self.end_window(observer)?;
        self.sync()
    }

    /// Waits until an operation's time has come.
    fn pace(&mut self, t_ns: u64) {
        let Some(factor) = self.options.real_time else { return };
        let (wall, sim) = self.pace_from;
        let due = (t_ns.saturating_sub(sim) as f64 / factor) as u64;
        let gone = self.fs.now_ns().saturating_sub(wall);
        if due > gone + PACE_NS / 10 && !posix::interrupt::requested() {
            self.fs.pause_ns(due - gone);
        }
    }

    fn marks(&self) -> DayMarks {
        let counters = &self.result.counters;
        DayMarks {
            operations: counters.operations,
            wall_ns: self.result.wall_ns,
            early: counters.brought_forward + counters.out_of_plan,
            held: counters.held_back,
            full: counters.full,
        }
    }

    /// Ends the simulated days before `day` (from 0).
    fn end_days(&mut self, day: u64) {
        while u64::from(self.days_ended) < day {
            self.days_ended += 1;
            let (now, before) = (self.marks(), self.day_began);
            let planned = self.nodes.planned_bytes;
            self.result.days.push(DayRow {
                day: self.days_ended,
                planned_share: self.control.planned_share(planned),
                target_share: self.control.share(self.control.target_bytes(planned)),
                used_share: self.control.share(self.control.estimate_bytes(self.nodes.present_bytes)),
                files: self.nodes.present_files,
                operations: now.operations - before.operations,
                wall_ns: now.wall_ns - before.wall_ns,
                early_deletions: now.early - before.early,
                held_back: now.held - before.held,
                full: now.full - before.full,
            });
            self.day_began = now;
        }
    }

    /// Reads what is in use and has the controller follow it.
    fn read_use(&mut self) -> Result<(), AgeError> {
        let used_bytes = self.settled_use()?;
        self.control.read(used_bytes, self.nodes.present_bytes);
        let planned = self.nodes.planned_bytes;
        let point = ControlPoint {
            operation: self.ahead.position(),
            day: self.now_sim_ns as f64 / DAY_NS as f64,
            planned_share: self.control.planned_share(planned),
            target_share: self.control.share(self.control.target_bytes(planned)),
            used_share: self.control.share(used_bytes),
        };
        let base_share =
            if self.options.room == Room::Whole { self.control.share(self.control.base_bytes()) } else { 0.0 };
        self.result.add_point(point, base_share);
        Ok(())
    }

    /// What `statvfs` says once it says what is. XFS frees the space of removed files in the background, on a busy
    /// machine much later, and meanwhile nothing changes: no time of standing still shows that it has. Root waits for
    /// it by a call. A reading far from what is expected is believed only when it has stayed the same for longer.
    fn settled_use(&mut self) -> Result<u64, AgeError> {
        const MOMENT_NS: u64 = 1_000_000;
        const NEAR_SHARE: f64 = 0.002;
        /// Moments without a change.
        const NEAR_STILL: u32 = 1;
        const FAR_STILL: u32 = 100;
        const TRIES: u32 = 2_000;
        if self.settle_reading == Settling::None {
            return self.usage();
        }
        self.sync()?;
        self.fs.finish_removals();
        let expected_share = self.control.share(self.control.estimate_bytes(self.nodes.present_bytes));
        let mut last = self.usage()?;
        let mut still = 0;
        for _ in 0..TRIES {
            self.fs.pause_ns(MOMENT_NS);
            let again = self.usage()?;
            still = if again == last { still + 1 } else { 0 };
            last = again;
            let near = (self.control.share(last) - expected_share).abs() <= NEAR_SHARE;
            if still >= if near { NEAR_STILL } else { FAR_STILL } {
                break;
            }
        }
        Ok(last)
    }

    fn usage(&mut self) -> Result<u64, AgeError> {
        let usage = self.fs.usage().map_err(refused(Path::new(&self.target), "look at the free space"))?;
        Ok(used(&usage))
    }

    /// Brings deletions forward, or makes up for those held back, until the estimated use is what it should be.
    fn steer(&mut self, number: u64) -> Result<(), AgeError> {
        let Need::Win(bytes) = self.control.look(self.nodes.planned_bytes, self.nodes.present_bytes) else {
            return Ok(());
        };
        let goal = self.nodes.present_bytes.saturating_sub(bytes);
        while self.nodes.present_bytes > goal {
            let Some(held) = self.nodes.next_held() else { break };
            self.unlink_held(held, number)?;
            self.result.counters.released += 1;
        }
        if self.nodes.present_bytes <= goal {
            return Ok(());
        }
        let present = |id: &NodeId| self.nodes.get(*id).is_some_and(|n| n.presence == Presence::Present);
        let mut left = self.nodes.present_bytes - goal;
        let mut chosen = Vec::new();
        for id in self.ahead.deletions().filter(present) {
            let bytes = self.nodes.present_blocks(id);
            if bytes == 0 {
                continue;
            }
            chosen.push((id, bytes));
            left = left.saturating_sub(bytes);
            if left == 0 {
                break;
            }
        }
        for (id, bytes) in chosen {
            self.unlink_early(id, number)?;
            self.result.counters.brought_forward += 1;
            self.result.counters.brought_forward_bytes += bytes;
        }
        if self.nodes.present_bytes > goal {
            let seed = self.options.seed;
            for id in self.nodes.lowest_ranked(self.nodes.present_bytes - goal, |id| scramble(seed, id)) {
                let bytes = self.nodes.present_blocks(id);
                self.unlink_early(id, number)?;
                self.result.counters.out_of_plan += 1;
                self.result.counters.out_of_plan_bytes += bytes;
            }
        }
        Ok(())
    }
}

/// Why one operation could not be resolved.
enum Trouble {
    Broken(crate::Broken),
    PathTooLong(NodeId),
    Run(AgeError),
}

impl From<crate::Broken> for Trouble {
    fn from(why: crate::Broken) -> Trouble {
        Trouble::Broken(why)
    }
}

impl From<AgeError> for Trouble {
    fn from(error: AgeError) -> Trouble {
        Trouble::Run(error)
    }
}

fn day_ns(days: f64) -> f64 {
    (days * DAY_NS as f64).max(1.0)
}

/// The first due time after now.
fn after(due: Option<u64>, days: Option<f64>, now_ns: u64) -> Option<u64> {
    let step = (day_ns(days?) as u64).max(1);
    let due = due?;
    Some(due.saturating_add((now_ns.saturating_sub(due) / step + 1).saturating_mul(step)))
}

/// A number that looks random, the same for the same seed and node (the finaliser of SplitMix64).
fn scramble(seed: u64, node: NodeId) -> u64 {
    finalise(seed.wrapping_mul(GOLDEN) ^ node.0)
}

/// Runs a window's writers. A signal interrupts the runner; what is left is finished here if the state at the window's
/// end is to be known.
fn perform<F: FileSystem>(fs: &mut F, window: &Window, to_the_end: bool) -> io::Result<Report> {
    window.begin();
    let mut writers: Vec<writer::Progress> =
        (0..window.writers()).filter(|n| !window.queue(*n).is_empty()).map(writer::Progress::new).collect();
    match fs.run(writers.iter_mut().map(|at| at.go_on(window)).collect()) {
        Err(error) if error.kind() == io::ErrorKind::Interrupted && to_the_end => {
            finish_alone(fs, window, &mut writers)
        }
        ran => ran?,
    }
    let mut all = Report::default();
    for writer::Progress { report, .. } in writers {
        all.calls += report.calls;
        all.written_bytes += report.written_bytes;
        all.unsupported += report.unsupported;
        all.failures.extend(report.failures);
    }
    all.failures.sort_unstable_by_key(|failure| failure.job);
    Ok(all)
}

/// What writers were interrupted in, job by job, in turns.
fn finish_alone<F: FileSystem>(fs: &mut F, window: &Window, writers: &mut [writer::Progress]) {
    window.tolerate();
    let mut writers: Vec<_> = writers.iter_mut().map(|at| at.go_on(window)).collect();
    let mut going_on = true;
    while going_on {
        going_on = false;
        for writer in &mut writers {
            let mut last = None;
            loop {
                match writer.next(last.as_ref()) {
                    Step::Call(call) => last = Some(fs.call(&call)),
                    Step::PauseNs(_) => last = None,
                    Step::Blocked => {
                        going_on = true;
                        break;
                    }
                    Step::Done => break,
                }
            }
        }
    }
}
