//! A disk model against a measured trace.
//!
//! The trace is replayed closed loop, as it was measured: each request is issued its think time after the one before
//! completed. The demerit figure is the root mean square of the horizontal distance between the measured and the
//! modelled distribution of response times (Ruemmler and Wilkes, IEEE Computer 27(3), 1994, "Modeling").

mod demerit;
mod trace;

pub use demerit::{Quantiles, demerit_ns, demerit_up_to_ns};
pub use trace::{TraceError, Traced, parse_trace, read_trace};

use crate::disk::spec::DiskSpec;
use crate::disk::{Action, Disk, Refinement};
use crate::{Device, Operation, RequestError};
use serde::Serialize;

/// A replay of a trace on a model.
#[derive(Clone, Debug)]
pub struct Replay {
    /// Modelled response times, in the order of the trace.
    pub response_ns: Vec<u64>,
    /// What the model did about each request.
    pub actions: Vec<Action>,
}

/// Replays a trace closed loop on a disk with part of the model.
pub fn replay(spec: &DiskSpec, refinement: Refinement, trace: &[Traced]) -> Result<Replay, (usize, RequestError)> {
    let checked = crate::disk::QueuedDisk::new(Disk::new(spec.clone()));
    let mut disk = Disk::with_refinement(spec.clone(), refinement);
    let mut result = Replay { response_ns: Vec::with_capacity(trace.len()), actions: Vec::with_capacity(trace.len()) };
    let mut now_ns = 0u64;
    for (line, traced) in trace.iter().enumerate() {
        checked.check(&traced.request).map_err(|error| (line + 1, error))?;
        let served = disk.serve_one(now_ns, &traced.request);
        result.response_ns.push(served.at_ns - now_ns);
        result.actions.push(served.action);
        now_ns = served.at_ns.saturating_add(traced.think_ns);
    }
    Ok(result)
}

/// A step of the ladder.
#[derive(Clone, Debug, Serialize)]
pub struct Rung {
    /// Its name.
    pub name: &'static str,
    /// What it adds.
    pub adds: &'static str,
    /// Its demerit figure.
    pub demerit_ns: f64,
    /// The same as a share of the mean measured response.
    pub demerit_share: f64,
    /// Mean modelled response.
    pub mean_ns: f64,
}

/// How far the model is off in one class of requests.
#[derive(Clone, Debug, Serialize)]
pub struct Class {
    /// Its name.
    pub name: String,
    #[allow(missing_docs)]
    #[serde(flatten)]
    pub compared: Compared,
}

/// Requests, as they were measured and as they are modelled.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Compared {
    /// How many.
    pub requests: u64,
    /// Means of the measured and the modelled responses.
    pub measured_mean_ns: f64,
    #[allow(missing_docs)]
    pub modelled_mean_ns: f64,
    /// The demerit figure of these requests.
    pub demerit_ns: f64,
}

/// A validation of a disk model.
#[derive(Clone, Debug, Serialize)]
pub struct Validation {
    /// The drive's key and name.
    pub drive: String,
    #[allow(missing_docs)]
    pub name: String,
    /// All requests of the trace, with the full model.
    #[serde(flatten)]
    pub compared: Compared,
    /// The full model's demerit figure as a share of the mean measured response.
    pub demerit_share: f64,
    /// The ladder of refinements, from a constant to the full model.
    pub ladder: Vec<Rung>,
    /// Requests by direction and what the model did about them.
    pub classes: Vec<Class>,
    /// Share of requests whose own response the full model has to within [`CLOSE_NS`].
    pub close_share: f64,
    /// The full model's demerit figures over the first and the second half of the trace.
    pub half_demerit_ns: [f64; 2],
    /// Points of both distributions: share of requests, measured and modelled response.
    pub distribution: Vec<(f64, u64, u64)>,
}

const RUNGS: [(Refinement, &str, &str); 4] = [
    (Refinement::Seek, "seek", "overheads, transfer, seek by distance"),
    (Refinement::Rotation, "rotation", "rotational position"),
    (Refinement::Cache, "cache", "buffer and read-ahead"),
    (Refinement::Full, "full", "writes from the buffer, bus beside medium, zero latency, settling, disconnections"),
];

/// Two responses of the same request so near are called close: far less than a revolution of any disk.
pub const CLOSE_NS: u64 = 200_000;

/// Points of each plotted distribution.
const PLOTTED: usize = 400;

/// Replays a trace on every step of the ladder. An error names the trace's request, from 1.
pub fn validate(key: &str, name: &str, spec: &DiskSpec, trace: &[Traced]) -> Result<Validation, (usize, RequestError)> {
    let measured_ns: Vec<u64> = trace.iter().map(|traced| traced.response_ns).collect();
    let measured = Quantiles::new(&measured_ns);
    let mean_ns = mean(&measured_ns);
    let constant = vec![mean_ns.round() as u64; trace.len().max(1)];
    let mut ladder = vec![rung("constant", "the mean response, for every request", &measured, &constant, mean_ns)];
    let mut full = None;
    for (refinement, name, adds) in RUNGS {
        let run = replay(spec, refinement, trace)?;
        ladder.push(rung(name, adds, &measured, &run.response_ns, mean_ns));
        full = Some(run);
    }
    let full = full.unwrap_or(Replay { response_ns: Vec::new(), actions: Vec::new() });
    let modelled = Quantiles::new(&full.response_ns);
    let half = trace.len() / 2;
    let part = |range: std::ops::Range<usize>| {
        let (a, b) = (&measured_ns[range.clone()], &full.response_ns[range]);
        demerit_ns(&Quantiles::new(a), &Quantiles::new(b))
    };
    let total = demerit_ns(&measured, &modelled);
    let pairs = measured_ns.iter().zip(&full.response_ns);
    let close = pairs.filter(|(measured, modelled)| measured.abs_diff(**modelled) <= CLOSE_NS).count();
    let distribution = (0..=PLOTTED).map(|n| n as f64 / PLOTTED as f64);
    Ok(Validation {
        drive: key.to_owned(),
        name: name.to_owned(),
        compared: Compared {
            requests: trace.len() as u64,
            measured_mean_ns: mean_ns,
            modelled_mean_ns: mean(&full.response_ns),
            demerit_ns: total,
        },
        demerit_share: total / mean_ns,
        ladder,
        classes: classes(trace, &full),
        close_share: close as f64 / trace.len().max(1) as f64,
        half_demerit_ns: [part(0..half), part(half..trace.len())],
        distribution: distribution.map(|share| (share, measured.at(share), modelled.at(share))).collect(),
    })
}

pub(crate) fn mean(values: &[u64]) -> f64 {
    values.iter().map(|&v| v as f64).sum::<f64>() / values.len().max(1) as f64
}

fn rung(name: &'static str, adds: &'static str, measured: &Quantiles, modelled_ns: &[u64], mean_ns: f64) -> Rung {
    let demerit_ns = demerit_ns(measured, &Quantiles::new(modelled_ns));
    Rung { name, adds, demerit_ns, demerit_share: demerit_ns / mean_ns, mean_ns: mean(modelled_ns) }
}

/// The class of the `n`th request: direction, what the model did, whether it continues the request before, and the
/// direction before.
fn class_of(trace: &[Traced], replay: &Replay, n: usize) -> String {
    let action = match replay.actions[n] {
        Action::ReadHit => "read, whole hit",
        Action::ReadPartial => "read, partial hit",
        Action::ReadMiss => "read, miss",
        Action::WriteMedium | Action::WriteBuffer => "write",
        Action::Flush => "flush",
    };
    let Some(before) = n.checked_sub(1).map(|n| trace[n].request) else { return format!("{action}, first") };
    let place = if before.end() == trace[n].request.lbn { "sequential" } else { "elsewhere" };
    let after = if before.operation == Operation::Write { "after a write" } else { "after a read" };
    format!("{action}, {place}, {after}")
}

fn classes(trace: &[Traced], replay: &Replay) -> Vec<Class> {
    let mut names: Vec<(String, usize)> = (0..trace.len()).map(|n| (class_of(trace, replay, n), n)).collect();
    names.sort();
    let class = |of: &[(String, usize)]| {
        let measured: Vec<u64> = of.iter().map(|(_, n)| trace[*n].response_ns).collect();
        let modelled: Vec<u64> = of.iter().map(|(_, n)| replay.response_ns[*n]).collect();
        Class {
            name: of.first().map(|(name, _)| name.clone()).unwrap_or_default(),
            compared: Compared {
                requests: of.len() as u64,
                measured_mean_ns: mean(&measured),
                modelled_mean_ns: mean(&modelled),
                demerit_ns: demerit_ns(&Quantiles::new(&measured), &Quantiles::new(&modelled)),
            },
        }
    };
    names.chunk_by(|a, b| a.0 == b.0).map(class).collect()
}
