//! A disk model fitted to a measured trace: the first half of the trace fits, the second judges.
//!
//! The fit is a search along one figure at a time ([`search`](fn@extract)): overheads, the bus, the seek curve,
//! switching heads, settling, rotation, and what the buffer does. What it makes small is the demerit of each class of
//! requests by itself (direction, place, and the direction before), so that errors of one class do not make up for
//! another's. Classes come from the trace alone, so that no figure can move a request out of a class in which it is
//! wrong. Geometry is not fitted: response times say too little about it. Where no drive is given to start from, it is
//! a guess that says so.

mod figures;
mod guess;
mod search;

pub use guess::guess;

use crate::disk::Refinement;
use crate::disk::spec::DiskSpec;
use crate::drive::{self, Drive, Figure};
use crate::validate::{self, Quantiles, Traced, demerit_ns, demerit_up_to_ns};
use crate::{Operation, RequestError};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// What is said about a figure that was fitted.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// Its key, from the top of the drive's file.
    pub key: String,
    /// Its value before and after, as they stand in the file; empty where there was none.
    pub before: String,
    #[allow(missing_docs)]
    pub after: String,
}

/// How far a model is from a trace.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Fit {
    /// Demerit figures over the first and the second half of the trace, each by itself.
    pub half_demerit_ns: [f64; 2],
    /// Mean modelled responses over the two halves.
    pub half_mean_ns: [f64; 2],
    /// The same demerit figures without the slowest hundredth of each half.
    pub half_demerit_without_slowest_ns: [f64; 2],
}

/// An extraction.
#[derive(Clone, Debug, Serialize)]
pub struct Extraction {
    /// The drive that the fit began with.
    pub from: String,
    /// Requests of the trace; half of them were fitted to.
    pub requests: u64,
    /// The seed of the search's order.
    pub seed: u64,
    /// How many models were tried.
    pub tried: u64,
    /// Mean measured responses over the two halves.
    pub half_measured_ns: [f64; 2],
    /// Demerit figure of one half of the measurement against the other: what the drive itself reaches.
    pub halves_demerit_ns: f64,
    /// The model before and after.
    pub before: Fit,
    #[allow(missing_docs)]
    pub after: Fit,
    /// What was changed.
    pub changes: Vec<Change>,
}

/// How long to search.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// The seed of the order in which figures are tried.
    pub seed: u64,
    /// The most models to try from each start.
    pub models: u64,
    /// How often to begin, each time with the next seed; what is best on the first half is kept.
    pub starts: u32,
}

/// Fits a disk to the first half of a trace. An error names the trace's request, from 1.
///
/// # Errors
/// A request that the disk cannot take.
pub fn extract(
    key: &str,
    start: &DiskSpec,
    trace: &[Traced],
    effort: Effort,
    progress: &mut dyn FnMut(u64),
) -> Result<(DiskSpec, Extraction), (usize, RequestError)> {
    let before = fit(start, trace)?;
    let first = &trace[..trace.len() / 2];
    let judge = Judge::new(first);
    // A model that keeps step with the trace is put right request by request first, which tells much more than
    // distributions do.
    let keeps_phase = judge.keeps_phase(start, first);
    let one_by_one = Weights { class: 0.0, pair: 1.0 };
    let weights = Weights { class: 1.0, pair: if keeps_phase { PAIRS_COUNT } else { 0.0 } };
    let (mut found, mut least, mut tried) = (start.clone(), judge.cost(start, first, weights), 0);
    for begun in 0..u64::from(effort.starts.max(1)) {
        let mut effort = Effort { seed: effort.seed.wrapping_add(begun), ..effort };
        let mut progress = |more: u64| progress(tried + more);
        let mut here = start.clone();
        let mut made = 0;
        if keeps_phase {
            (here, made) = search::search(&here, effort, |spec| judge.cost(spec, first, one_by_one), &mut progress);
            effort.models = effort.models.saturating_sub(made);
        }
        let (here, more) = search::search(&here, effort, |spec| judge.cost(spec, first, weights), &mut progress);
        tried += made + more;
        let cost = judge.cost(&here, first, weights);
        if cost < least {
            (found, least) = (here, cost);
        }
    }
    let after = fit(&found, trace)?;
    let measured: Vec<u64> = trace.iter().map(|traced| traced.response_ns).collect();
    let extraction = Extraction {
        from: key.to_owned(),
        requests: trace.len() as u64,
        seed: effort.seed,
        tried,
        half_measured_ns: halves(&measured).map(validate::mean),
        halves_demerit_ns: {
            let [first, second] = halves(&measured).map(Quantiles::new);
            demerit_ns(&first, &second)
        },
        before,
        after,
        changes: changes(start, &found),
    };
    Ok((found, extraction))
}

fn halves(values: &[u64]) -> [&[u64]; 2] {
    let (first, second) = values.split_at(values.len() / 2);
    [first, second]
}

fn fit(spec: &DiskSpec, trace: &[Traced]) -> Result<Fit, (usize, RequestError)> {
    let measured: Vec<u64> = trace.iter().map(|traced| traced.response_ns).collect();
    let modelled = validate::replay(spec, Refinement::Full, trace)?.response_ns;
    let (measured, modelled) = (halves(&measured), halves(&modelled));
    let demerit =
        |n: usize, share: f64| demerit_up_to_ns(&Quantiles::new(measured[n]), &Quantiles::new(modelled[n]), share);
    Ok(Fit {
        half_demerit_ns: [0, 1].map(|n| demerit(n, 1.0)),
        half_mean_ns: modelled.map(validate::mean),
        half_demerit_without_slowest_ns: [0, 1].map(|n| demerit(n, 0.99)),
    })
}

/// Blocks from one request to the next within which the arm hardly moves.
const NEAR_SECTORS: u64 = 400;

/// What the fit makes small.
struct Judge {
    /// Which requests each class has, and their measured responses in order.
    classes: Vec<(Vec<usize>, Vec<u64>)>,
}

/// What counts how much: distances within classes, and those of single requests.
#[derive(Clone, Copy)]
struct Weights {
    class: f64,
    pair: f64,
}

/// Two responses are of the same moment of a revolution if they differ by less than this share of it.
const SAME_MOMENT: f64 = 0.02;

/// If so many requests that wait for the medium are, the trace's times and the model's keep step from request to
/// request; by chance it would be two such shares.
const KEEPS_PHASE: f64 = 0.6;

/// What a request by itself counts beside its class: as much. A revolution lost here and gained there is no error of
/// the distribution, but tells where the arm was late; and it is chance less often than a distribution that fits.
const PAIRS_COUNT: f64 = 1.0;

impl Judge {
    fn new(trace: &[Traced]) -> Judge {
        let mut classes: BTreeMap<_, (Vec<usize>, Vec<u64>)> = BTreeMap::new();
        for (n, traced) in trace.iter().enumerate() {
            let before = n.checked_sub(1).map(|before| trace[before].request);
            let class = before.map(|before| {
                let (end, lbn) = (before.end().0, traced.request.lbn.0);
                let place = match lbn {
                    _ if lbn == end => 0,
                    _ if lbn > end && lbn - end <= NEAR_SECTORS => 1,
                    _ if lbn < end && end - lbn <= NEAR_SECTORS => 2,
                    _ => 3,
                };
                (place, before.operation == Operation::Write, traced.request.operation == Operation::Write)
            });
            let (requests, responses) = classes.entry(class).or_default();
            requests.push(n);
            responses.push(traced.response_ns);
        }
        let mut classes: Vec<_> = classes.into_values().collect();
        for (_, responses) in &mut classes {
            responses.sort_unstable();
        }
        Judge { classes }
    }

    /// Whether a model turns as the trace's drive did, from request to request.
    fn keeps_phase(&self, spec: &DiskSpec, trace: &[Traced]) -> bool {
        let Ok(replay) = validate::replay(spec, Refinement::Full, trace) else { return false };
        let revolution_ns = spec.revolution_ns();
        let (mut waiting, mut same) = (0u64, 0u64);
        for (traced, &modelled_ns) in trace.iter().zip(&replay.response_ns) {
            if modelled_ns.min(traced.response_ns) > revolution_ns * 2 / 3 {
                waiting += 1;
                let off_ns = traced.response_ns.abs_diff(modelled_ns) as f64;
                same += u64::from(off_ns < SAME_MOMENT * revolution_ns as f64);
            }
        }
        same as f64 > KEEPS_PHASE * waiting as f64
    }

    /// The root mean square of the distances between measured and modelled responses of the same rank in their class.
    /// By classes, this is never less than the demerit of all. Where the model keeps step with the trace, the same over
    /// single requests counts as well.
    fn cost(&self, spec: &DiskSpec, trace: &[Traced], weights: Weights) -> f64 {
        let Ok(replay) = validate::replay(spec, Refinement::Full, trace) else { return f64::INFINITY };
        let mut squares = 0.0;
        let mut modelled = Vec::new();
        for (requests, measured) in &self.classes {
            modelled.clear();
            modelled.extend(requests.iter().map(|&n| replay.response_ns[n]));
            modelled.sort_unstable();
            squares += measured.iter().zip(&modelled).map(|(a, b)| a.abs_diff(*b) as f64).map(|d| d * d).sum::<f64>();
        }
        let mean_root = |squares: f64| (squares / trace.len().max(1) as f64).sqrt();
        if weights.pair == 0.0 {
            return weights.class * mean_root(squares);
        }
        let off = |(traced, ns): (&Traced, &u64)| (traced.response_ns.abs_diff(*ns) as f64).powi(2);
        let pairs: f64 = trace.iter().zip(&replay.response_ns).map(off).sum();
        weights.class * mean_root(squares) + weights.pair * mean_root(pairs)
    }
}

/// Figures that differ, by key.
fn changes(before: &DiskSpec, after: &DiskSpec) -> Vec<Change> {
    let (before, after) = (drive::leaves(before), drive::leaves(after));
    let keys: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let value = |leaves: &BTreeMap<String, String>, key: &String| leaves.get(key).cloned().unwrap_or_default();
    let change = |key: &String| Change { key: key.clone(), before: value(&before, key), after: value(&after, key) };
    keys.into_iter().map(change).filter(|change| change.before != change.after).collect()
}

/// The text of the fitted drive's file. What was fitted says so; the rest keeps its source.
pub fn file(name: &str, start: &Start, found: &DiskSpec, extraction: &Extraction, trace: &str) -> String {
    let fitted = format!(
        "[estimate] extracted from the first half of {trace}, beginning with {}: least demerit by class of requests, \
         seed {}, {} models tried",
        extraction.from, extraction.seed, extraction.tried
    );
    let ms = |ns: f64| format!("{:.4} ms", ns / 1e6);
    let [first, second] = extraction.after.half_demerit_ns;
    let comment = [
        format!("Made by `fsage drive extract` from {trace}, beginning with {}.", extraction.from),
        format!("Demerit over the first half, which it was fitted to: {}; over the second: {}.", ms(first), ms(second)),
    ];
    let changed: BTreeSet<&str> = extraction.changes.iter().map(|change| change.key.as_str()).collect();
    let sources = drive::leaves(found).into_keys().map(|key| {
        let kept = start.figures.iter().find(|figure| figure.key == key);
        let source = match kept {
            _ if changed.contains(key.as_str()) => fitted.clone(),
            Some(figure) if figure.estimate => format!("[estimate] {}", figure.source),
            Some(figure) => figure.source.clone(),
            None => "[estimate] a guess: a drive of the middle of the nineties".to_owned(),
        };
        (key, source)
    });
    let summary = format!("{} Fitted to a measured trace.", start.summary);
    drive::written(name, &summary, &comment, found, &sources.collect())
}

/// What a fit begins with.
#[derive(Clone, Debug)]
pub struct Start {
    /// What it is, in a sentence.
    pub summary: String,
    /// Its figures with their sources.
    pub figures: Vec<Figure>,
}

impl Start {
    /// The beginning of [`guess`].
    pub fn guessed() -> Start {
        Start { summary: "A disk whose geometry is a guess.".to_owned(), figures: Vec::new() }
    }
}

impl From<&Drive> for Start {
    fn from(drive: &Drive) -> Start {
        Start { summary: drive.summary.clone(), figures: drive.figures.clone() }
    }
}
