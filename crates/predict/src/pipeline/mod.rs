//! The five pipeline stages: from a workload profile and system profiles to predicted times.
//!
//! | stage | module | answers |
//! |---|---|---|
//! | preprocess | [`preprocess`] (with `walk`, `tree`, `names`) | what each call asks for, whatever the caches hold |
//! | cache | [`cache`] (with `lru`, `pages`, `sync`, `writeback` and more) | what the target's caches make of it |
//! | pattern | [`pattern`] | sequential or random, for what goes to disk |
//! | price | [`price`] (with `request`, `fallback`, `ahead`) | nanoseconds |
//! | postprocess | [`postprocess`] | sums, distributions |
//!
//! All work on one [`annotated`] trace, batch by batch, in memory bounded by live files and caches; `run` drives them.
//! The method and its limits are in docs/method.md. Nothing here knows where profiles come from or how results are
//! shown.

mod ahead;
pub mod annotated;
pub mod cache;
pub(crate) mod entry_share;
mod export;
mod fallback;
mod given;
mod inodes;
mod list;
pub mod lru;
mod names;
pub mod near;
mod options;
pub mod pages;
mod parts;
pub mod pattern;
pub mod postprocess;
pub mod preprocess;
pub mod price;
mod ranges;
mod replacement;
pub mod request;
mod run;
pub mod source;
pub mod sync;
mod timeline;
mod tree;
mod walk;
mod warning;
mod writeback;

pub use annotated::{Annotated, Mark, Note, Status, Step};
pub use cache::{CacheCounts, Unstable};
pub use entry_share::EntryShare;
pub use export::{Stage, write_annotated};
pub use options::{Calls, InitialCaches, MissingEntry, Pace, PredictError, PredictOptions, with_cache};
pub use postprocess::{Coverage, DirectoryTotal, FileTotal, OpTotal, Timeline};
pub use preprocess::Preprocess;
pub use price::Fallback;
pub use run::{CallSink, PricedCall};
pub use source::{InMemory, Workload};
pub use timeline::CacheTimeline;
pub use warning::Warning;

pub use system::CachePolicy;

use crate::baseline::Baselines;
use crate::uncertainty::{Interval, total_interval};
use price::Pricer;
use run::{Group, Member, Pass};
use serde::Serialize;
use system::SystemProfile;

/// Write-back's part in a prediction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct WritebackTotal {
    /// What background write-back added to the latency of calls, nanoseconds (in the total and in the entries).
    pub overhead_ns: f64,
    /// What writers waited at the dirty limit, nanoseconds (in the total, in no entry).
    pub stall_ns: f64,
    /// Time the device spent on it, nanoseconds (in no total: nobody waits for it).
    pub device_ns: f64,
}

/// The prediction for one system.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SystemPrediction {
    /// The system's name.
    pub system: String,
    /// Predicted time in the file system: the sum of the latencies of all priced calls, nanoseconds.
    pub total_ns: f64,
    /// 95 % interval of the total, model error included.
    pub interval: Interval,
    /// Priced calls.
    pub calls: u64,
    /// By operation.
    pub by_op: Vec<OpTotal>,
    /// By entry of the vector, the largest share first.
    pub by_entry: Vec<EntryShare>,
    /// By directory, subtrees added up, the most expensive first.
    pub by_directory: Vec<DirectoryTotal>,
    /// The most expensive files.
    pub by_file: Vec<FileTotal>,
    /// Over the trace's time.
    pub timeline: Timeline,
    /// Write-back.
    pub writeback: WritebackTotal,
    /// Size of the data cache, bytes; 0: no limit.
    pub data_cache_bytes: u64,
    /// How the data cache evicted.
    pub cache_policy: CachePolicy,
    /// What the caches did.
    pub cache: CacheCounts,
    /// What they did over the trace's time.
    pub cache_timeline: CacheTimeline,
    /// Classes the profile lacks, and what stood in.
    pub fallbacks: Vec<Fallback>,
    /// What simpler methods say of the same workload and system.
    pub baselines: Baselines,
    /// Things to know before believing it.
    pub warnings: Vec<Warning>,
}

/// The result of [`predict`].
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Prediction {
    /// How much of the workload it covers.
    pub coverage: Coverage,
    /// What was assumed.
    pub options: PredictOptions,
    /// One for each system, in the order given.
    pub systems: Vec<SystemPrediction>,
}

/// Predicts a workload's time in the file system on each system.
///
/// # Errors
/// The workload cannot be read, shows too little of its activity, or needs entries that a profile has not.
pub fn predict(
    workload: &dyn Workload,
    systems: &[SystemProfile],
    options: &PredictOptions,
) -> Result<Prediction, PredictError> {
    predict_calls(workload, systems, options, None)
}

/// As [`predict`], and hands every priced call to `sink`, in the order of the trace within each system.
///
/// # Errors
/// As [`predict`].
pub fn predict_calls(
    workload: &dyn Workload,
    systems: &[SystemProfile],
    options: &PredictOptions,
    mut sink: Option<CallSink<'_>>,
) -> Result<Prediction, PredictError> {
    if systems.is_empty() {
        return Err(PredictError::NoSystem);
    }
    let systems = systems.iter().map(|s| options.applied_to(s)).collect::<Result<Vec<_>, _>>()?;
    // A shared pass may be thrown away, and a sink must not hear of it: with one, nothing is shared.
    let shared = match sink {
        None => run::pass(workload, &systems, options, true, None, None)?,
        Some(_) => None,
    };
    let pass = match shared {
        Some(pass) => Some(pass),
        None => {
            let sink = sink.as_mut().map(|s| &mut **s as CallSink<'_>);
            run::pass(workload, &systems, options, false, None, sink)?
        }
    };
    of_pass(pass, workload, systems.len(), options)
}

/// As [`predict`] for one system, with request vectors from a trace that [`write_annotated`] has written after
/// [`Stage::Price`], and that somebody may have changed since: of every call the column `request` is priced, in place
/// of what the stages before have found. What else a call finds (write-back under way, other threads in a call) is
/// simulated as ever.
///
/// # Errors
/// As [`predict`]; `given` has another trace than the workload, lacks the column, or has a request in it that is none.
pub fn predict_given(
    workload: &dyn Workload,
    system: &SystemProfile,
    options: &PredictOptions,
    given: &trace::profile::Reader,
) -> Result<Prediction, PredictError> {
    let systems = [options.applied_to(system)?];
    let pass = run::pass(workload, &systems, options, false, Some(given::Given::new(given)?), None)?;
    of_pass(pass, workload, 1, options)
}

/// Keeps something of every priced call.
pub(crate) trait Gather: Send {
    /// Takes a call, in the order of the trace within each system.
    fn call(&mut self, call: PricedCall<'_>);
    /// Forgets all: they come again from the first.
    fn again(&mut self);
}

/// As [`predict_calls`], of systems that share what they can: so calls may come twice.
pub(crate) fn predict_gathering(
    workload: &dyn Workload,
    systems: &[SystemProfile],
    options: &PredictOptions,
    gather: &mut dyn Gather,
) -> Result<Prediction, PredictError> {
    if systems.is_empty() {
        return Err(PredictError::NoSystem);
    }
    let systems = systems.iter().map(|s| options.applied_to(s)).collect::<Result<Vec<_>, _>>()?;
    let mut pass = run::pass(workload, &systems, options, true, None, Some(&mut |call| gather.call(call)))?;
    if pass.is_none() {
        gather.again();
        pass = run::pass(workload, &systems, options, false, None, Some(&mut |call| gather.call(call)))?;
    }
    of_pass(pass, workload, systems.len(), options)
}

fn of_pass(
    pass: Option<Pass<'_>>,
    workload: &dyn Workload,
    systems: usize,
    options: &PredictOptions,
) -> Result<Prediction, PredictError> {
    let Some(pass) = pass else { unreachable!("a pass that shares nothing is never thrown away") };
    let mut prediction = finish(pass, systems, options)?;
    for system in &mut prediction.systems {
        system.baselines = system.baselines.with_durations(workload.durations());
    }
    Ok(prediction)
}

/// Whether a profile has a price for a class, its own or a stand-in.
pub fn can_price(profile: &SystemProfile, class: system::vector::Class) -> bool {
    let resolved = fallback::resolve(&system::PriceTable::new(profile));
    resolved.get(class as usize).is_some_and(|r| *r != fallback::Resolved::Missing)
}

fn finish(pass: Pass<'_>, count: usize, options: &PredictOptions) -> Result<Prediction, PredictError> {
    let Pass { preprocess, groups, coverage } = pass;
    check_coverage(&coverage, options.min_coverage)?;
    let mut systems = vec![SystemPrediction::default(); count];
    for group in &groups {
        for member in &group.members {
            check_missing(member)?;
            if let Some(place) = systems.get_mut(member.system) {
                *place = system_prediction(group, member, &preprocess, &coverage, options);
            }
        }
    }
    Ok(Prediction { coverage, options: options.clone(), systems })
}

fn check_coverage(coverage: &Coverage, min: f64) -> Result<(), PredictError> {
    let share = coverage.share();
    if share >= min {
        return Ok(());
    }
    let mut parts: Vec<String> = coverage.uncovered_by_op.iter().map(|(op, n)| format!("{n} calls of {op}")).collect();
    if let Some(stated) = coverage.stated_share.filter(|s| *s < coverage.calls_share) {
        parts.push(format!(
            "by the tracer's account, with accesses through mapped files and io_uring, the events stand for {:.1} %",
            stated * 100.0
        ));
    }
    Err(PredictError::Coverage { share, min, detail: format!("not covered: {}", parts.join(", ")) })
}

fn check_missing(member: &Member<'_>) -> Result<(), PredictError> {
    let missing = member.pricer.missing();
    if missing.is_empty() {
        return Ok(());
    }
    let mut by_class: std::collections::BTreeMap<system::vector::Class, MissingEntry> =
        std::collections::BTreeMap::new();
    for &(class, op, requests) in missing {
        let entry = by_class.entry(class).or_insert_with(|| MissingEntry {
            class: class.name(),
            meaning: class.meaning().trim().trim_end_matches('.'),
            reason: member.profile.missing.get(class.name()).cloned(),
            needed_by: Vec::new(),
        });
        entry.needed_by.push((op.name(), requests));
    }
    Err(PredictError::MissingEntries { system: member.profile.name.clone(), missing: by_class.into_values().collect() })
}

fn system_prediction(
    group: &Group<'_>,
    member: &Member<'_>,
    preprocess: &Preprocess,
    coverage: &Coverage,
    options: &PredictOptions,
) -> SystemPrediction {
    let (pricer, post, profile) = (&member.pricer, &member.post, member.profile);
    let by_op = post.by_op(pricer, profile);
    let by_entry = entry_shares(pricer, profile);
    let cache = group.cache.counts();
    let mut prediction = SystemPrediction {
        system: profile.name.clone(),
        total_ns: post.total_ns,
        interval: total_interval(&by_entry, post.stall_ns, options.seed),
        calls: by_op.iter().map(|o| o.calls).sum(),
        baselines: Baselines::new(&by_op, profile),
        by_op,
        by_entry,
        by_directory: post.by_directory(preprocess.report_directories(), options.directories_top),
        by_file: post.by_file(preprocess),
        timeline: post.timeline(),
        writeback: WritebackTotal {
            overhead_ns: post.overhead_ns,
            stall_ns: post.stall_ns,
            device_ns: group.cache.writeback_ns(),
        },
        data_cache_bytes: profile.parameters.data_cache_to_simulate_bytes(),
        cache_policy: profile.parameters.cache_policy,
        cache,
        cache_timeline: group.cache_timeline(),
        fallbacks: pricer.fallbacks(),
        warnings: Vec::new(),
    };
    prediction.warnings = warning::warnings(&prediction, profile, coverage);
    prediction
}

fn entry_shares(pricer: &Pricer, profile: &SystemProfile) -> Vec<EntryShare> {
    let counted = pricer.names().iter().zip(pricer.weights()).zip(pricer.means_ns());
    let mut shares: Vec<EntryShare> = counted
        .filter(|((_, weight), _)| **weight != 0.0)
        .map(|((name, &weight), &mean_ns)| {
            let entry = profile.entries.get(name);
            EntryShare {
                entry: name.clone(),
                weight,
                mean_ns,
                ns: weight * mean_ns,
                rounds_ns: entry.map(|e| e.rounds_ns.clone()).unwrap_or_default(),
                interval_ns: entry.map_or((mean_ns, mean_ns), |e| (e.low_ns, e.high_ns)),
            }
        })
        .collect();
    shares.sort_by(|a, b| b.ns.total_cmp(&a.ns).then_with(|| a.entry.cmp(&b.entry)));
    shares
}
