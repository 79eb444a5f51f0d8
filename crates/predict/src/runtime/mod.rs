//! How long the program itself takes on a system, on the wall clock: not only its time in the file system.
//!
//! A recording of the recorder in the kernel tells when each thread had a processor, when it slept and who woke it
//! ([`trace::schedule`]). From that a [`Timeline`] is made: each thread as a list of steps (compute, call, wait for
//! another, sleep, wake another, start another, end). [`simulate`] lets the threads go through their steps again, on so
//! many processors, with other latencies of the calls that move to another file system. What may not live here: pricing
//! calls.
//!
//! docs/method.md ("Run time") says what the model leaves out.

mod simulate;
mod timeline;

pub use simulate::{Latency, Processors, Stuck, simulate};
pub use timeline::{Span, Timeline};

use crate::pipeline::annotated::{Found, Pattern};
use crate::pipeline::{self, Gather, Mark, PredictError, PredictOptions, Prediction, PricedCall};
use crate::uncertainty::Interval;
use serde::Serialize;
use system::SystemProfile;
use trace::profile::{Durations, Meta, Reader, SCHEDULE_FILE, unescape};
use trace::schedule::{Happened, Turn};

/// How the time that a program takes is predicted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunTimeOptions {
    /// Another number of processors than the recording's machine had.
    pub processors: Option<u32>,
    /// By how much each system's processor differs from the one that recorded: computing takes so many times as long.
    /// One for each system; 1 where there is none.
    pub computing: Vec<f64>,
}

/// What of a run time is the same on every system.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Basis {
    /// How long the workload took when it was recorded: from the first call to the end of the last thread, nanoseconds.
    pub recorded_ns: u64,
    /// What the simulation makes of the recording itself, with calls as long as recorded and processors to queue for.
    /// It is without what the recorder took, and without other programs that had a share of the processors.
    pub recorded_simulated_ns: u64,
    /// Processors that the threads share.
    pub processors: u32,
    /// What it takes at most from a thread's waking to its having a free processor, nanoseconds: the median of all
    /// wakings recorded.
    pub wake_ns: u64,
    /// Threads.
    pub threads: u64,
    /// Time in which threads had a processor outside the calls that are priced, without the recorder's, all threads
    /// together, nanoseconds.
    pub computing_ns: u64,
    /// Time on processors that was the recorder's, and is left out, nanoseconds.
    pub recorder_ns: u64,
    /// Time in which threads slept outside those calls, all threads together, nanoseconds.
    pub waiting_ns: u64,
    /// Calls whose predicted latencies take the place of the recorded ones.
    pub calls: u64,
    /// Calls that have a price and stay as recorded, as they are on other file systems than the working directory.
    pub calls_elsewhere: u64,
    /// Where the calls are that are priced: the mount point of the working directory's file system, escaped; `None`:
    /// everywhere.
    pub moved: Option<String>,
    /// Latency of the priced calls as recorded, all threads together, nanoseconds.
    pub recorded_calls_ns: u64,
}

/// How long a workload takes on a system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct RunTime {
    /// From its first call to the end of its last thread, nanoseconds.
    pub ns: u64,
    /// 95 %: the simulation with all calls at the lower and at the upper end of the interval of their total. Computing
    /// is taken as it was.
    pub interval: Interval,
    /// Latency of the calls that are priced, all threads together, nanoseconds.
    pub calls_ns: f64,
}

/// The run times on all systems.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RunTimes {
    /// Why they are not known.
    Unknown(String),
    /// They are.
    Known {
        /// What they have in common.
        basis: Basis,
        /// One for each system, in the order of the predictions.
        systems: Vec<RunTime>,
    },
}

/// Predicts a workload's time in the file system on each system, and how long it takes there.
///
/// # Errors
/// Those of [`pipeline::predict`]; a schedule that contradicts itself.
pub fn predict(
    reader: &Reader,
    systems: &[SystemProfile],
    options: &PredictOptions,
    run_time: &RunTimeOptions,
) -> Result<(Prediction, RunTimes), PredictError> {
    predict_calls(reader, reader, systems, options, run_time)
}

/// The same with the recording's calls read through somebody who stands before it.
///
/// # Errors
/// As [`predict`].
pub fn predict_calls(
    reader: &Reader,
    calls: &dyn pipeline::Workload,
    systems: &[SystemProfile],
    options: &PredictOptions,
    run_time: &RunTimeOptions,
) -> Result<(Prediction, RunTimes), PredictError> {
    let unknown = |why: &str| -> Result<_, PredictError> {
        Ok((pipeline::predict(calls, systems, options)?, RunTimes::Unknown(why.to_owned())))
    };
    if reader.meta().durations() != Durations::InKernel {
        return unknown(
            "the tracer stops the program at each call, so what lies between calls is not its own; record with --with \
             ebpf",
        );
    }
    let Some(schedule) = reader.schedule()? else {
        return unknown(
            "the recording does not say when its threads had a processor: it is of one file system alone, or of an \
             older fsage",
        );
    };
    let meta = reader.meta();
    let processors = run_time.processors.unwrap_or(meta.host.cpus);
    if processors == 0 {
        return unknown("the recording does not say how many processors its machine had; say it with --processors");
    }
    let mut gathered =
        Gathered { moved: Moved::of(meta), latencies: vec![Vec::new(); systems.len()], ..Gathered::default() };
    let prediction = pipeline::predict_gathering(calls, systems, options, &mut gathered)?;
    let simulated = known(&gathered, &schedule, processors, &prediction, &run_time.computing);
    let simulated = simulated
        .map_err(|stuck| trace::profile::FORMAT.corrupt(&reader.directory().join(SCHEDULE_FILE), "turns", stuck))?;
    Ok((prediction, simulated))
}

fn known(
    gathered: &Gathered,
    schedule: &[Turn],
    processors: u32,
    prediction: &Prediction,
    computing: &[f64],
) -> Result<RunTimes, Stuck> {
    let timeline = Timeline::new(&gathered.spans, schedule).with_wakes();
    let recorded = |call: usize| {
        gathered
            .spans
            .get(call)
            .map_or(Latency::default(), |span| Latency { running_ns: span.running_ns, blocked_ns: span.blocked_ns })
    };
    let shared = Processors::Shared(processors);
    let slept = |turn: &Turn| match turn.what {
        Happened::Slept { woken_ns, .. } => woken_ns.saturating_sub(turn.t_ns),
        _ => 0,
    };
    let recorded_calls_ns: u64 = gathered.spans.iter().fold(0, |sum, span| sum.saturating_add(span.dur_ns));
    let blocked_ns: u64 = gathered.spans.iter().fold(0, |sum, span| sum.saturating_add(span.blocked_ns));
    let basis = Basis {
        recorded_ns: timeline.recorded_ns(),
        recorded_simulated_ns: simulate(&timeline, shared, 1.0, &recorded)?,
        processors,
        wake_ns: timeline.wake_ns(),
        threads: timeline.threads(),
        computing_ns: timeline.computing_ns(),
        recorder_ns: timeline.recorder_ns(),
        waiting_ns: schedule.iter().map(slept).fold(0, u64::saturating_add).saturating_sub(blocked_ns),
        calls: gathered.spans.len() as u64,
        calls_elsewhere: gathered.elsewhere,
        moved: gathered.moved.shown(),
        recorded_calls_ns,
    };
    let mut systems = Vec::new();
    for (i, (latencies, system)) in gathered.latencies.iter().zip(&prediction.systems).enumerate() {
        let computing = computing.get(i).copied().unwrap_or(1.0);
        let at = |factor: f64| {
            simulate(&timeline, shared, computing, &|call| {
                latencies.get(call).copied().unwrap_or_default().scaled(factor)
            })
        };
        let share = |ns: f64| if system.total_ns > 0.0 { ns / system.total_ns } else { 1.0 };
        let (ns, low, high) = (at(1.0)?, at(share(system.interval.low_ns))?, at(share(system.interval.high_ns))?);
        systems.push(RunTime {
            ns,
            // Another order of threads can make a program faster with slower calls.
            interval: Interval { low_ns: low.min(ns) as f64, high_ns: high.max(ns) as f64 },
            calls_ns: latencies.iter().map(|latency| latency.ns() as f64).sum(),
        });
    }
    Ok(RunTimes::Known { basis, systems })
}

/// Which calls move to the system predicted: those on the file system of the workload's working directory.
#[derive(Clone, Debug, Default)]
struct Moved {
    /// Mount points of the file systems that the workload touched.
    mounts: Vec<Vec<u8>>,
    /// Which of them; `None`: all calls move, as it is not known where the workload worked.
    home: Option<usize>,
}

impl Moved {
    fn of(meta: &Meta) -> Moved {
        let bytes = |text: &str| unescape(text.as_bytes()).map(|bytes| bytes.into_owned()).unwrap_or_default();
        let mounts: Vec<Vec<u8>> = meta.file_systems.iter().map(|fs| bytes(&fs.mount_point)).collect();
        let mut moved = Moved { mounts, home: None };
        let worked = meta.command.as_ref().map(|command| bytes(&command.working_directory));
        moved.home = worked.filter(|path| !path.is_empty()).and_then(|path| moved.mount_of(&path));
        moved
    }

    fn mount_of(&self, path: &[u8]) -> Option<usize> {
        let below = |mount: &[u8]| {
            let mount = mount.strip_suffix(b"/").unwrap_or(mount);
            path.strip_prefix(mount).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
        };
        let mounts = self.mounts.iter().enumerate().filter(|(_, mount)| !mount.is_empty() && below(mount));
        mounts.max_by_key(|(_, mount)| mount.len()).map(|(i, _)| i)
    }

    fn holds(&self, path: Option<&[u8]>) -> bool {
        match (self.home, path) {
            (None, _) | (_, None) => true,
            (home, Some(path)) => self.mount_of(path) == home,
        }
    }

    fn shown(&self) -> Option<String> {
        let mount = self.mounts.get(self.home?)?;
        Some(trace::profile::escape(mount).into_owned())
    }
}

/// The calls that are priced, as recorded and as predicted.
#[derive(Default)]
struct Gathered {
    moved: Moved,
    spans: Vec<Span>,
    elsewhere: u64,
    /// By system, and by place in `spans`.
    latencies: Vec<Vec<Latency>>,
}

impl Gather for Gathered {
    fn call(&mut self, call: PricedCall<'_>) {
        let event = call.event;
        // Only what took its thread's own time: not requests of io_uring, nor closes that the kernel did at an exit.
        let Some(running_ns) = event.head.running_ns else { return };
        let is_first = call.system == 0;
        if !self.moved.holds(event.path().map(|path| call.paths.get(path))) {
            self.elsewhere += u64::from(is_first);
            return;
        }
        if is_first {
            let blocked_ns = event.head.blocked_ns.unwrap_or(0);
            let (tid, t_ns, dur_ns) = (event.head.tid, event.head.t_ns, event.head.dur_ns);
            self.spans.push(Span { tid, t_ns, dur_ns, running_ns, blocked_ns });
        }
        let ns = nanoseconds(call.ns);
        let running_ns = if waits(&call) { running_ns.min(ns) } else { ns };
        if let Some(latencies) = self.latencies.get_mut(call.system) {
            latencies.push(Latency { running_ns, blocked_ns: ns - running_ns });
        }
    }

    fn again(&mut self) {
        self.spans.clear();
        self.elsewhere = 0;
        self.latencies.iter_mut().for_each(Vec::clear);
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Saturates; a latency below zero is none.
fn nanoseconds(ns: f64) -> u64 {
    ns.max(0.0).round() as u64
}

/// Whether a call's price has a part in which its thread waits for the device.
fn waits(call: &PricedCall<'_>) -> bool {
    let cold = |mark: &Mark| match *mark {
        Mark::Lookup { found, pattern, .. } => {
            matches!(found, Found::Miss | Found::NegativeCold) || pattern != Pattern::None
        }
        Mark::Read { disk_bytes, .. } => disk_bytes > 0,
        Mark::Write { partial_blocks, sync, .. } => partial_blocks > 0 || sync.is_some(),
        Mark::Copy { flushed_bytes, .. } | Mark::Close { flushed_bytes, .. } => flushed_bytes > 0,
        Mark::Remove { uncached, .. } | Mark::Truncate { uncached, .. } => uncached,
        Mark::ReadDir { cold } => cold,
        Mark::Sync(_) | Mark::SyncRange { .. } | Mark::SyncAll { .. } => true,
        Mark::Nothing => false,
    };
    call.stall_ns > 0.0 || call.marks.iter().any(cold)
}

#[cfg(test)]
mod tests {
    use super::*;
    use trace::profile::{Command, TracedFileSystem};

    #[test]
    fn what_lies_on_the_file_system_of_the_working_directory_moves() {
        let mount = |point: &str| TracedFileSystem { mount_point: point.into(), ..TracedFileSystem::default() };
        let command = Command { working_directory: "/mnt/data/work".into(), ..Command::default() };
        let mut meta = Meta {
            file_systems: vec![mount("/"), mount("/mnt/data"), mount("/mnt/data/other")],
            command: Some(command),
            ..Meta::default()
        };
        let moved = Moved::of(&meta);
        assert_eq!(moved.shown().as_deref(), Some("/mnt/data"));
        let holds = |path: &str| moved.holds(Some(path.as_bytes()));
        assert!(holds("/mnt/data") && holds("/mnt/data/work/a"));
        assert!(!holds("/usr/bin/cc") && !holds("/mnt/data/other/a") && !holds("/mnt/database"));
        assert!(moved.holds(None), "what has no path is of no other file system");
        meta.command = None;
        assert!(Moved::of(&meta).holds(Some(b"/usr/bin/cc")), "nobody knows where it worked");
    }
}
