//! Which experiments there are, and how they are run.

use crate::published::Experiment;
use crate::{
    Bench, ExperimentError, Outcome, Scale, aging97, alloc96, beyond, hbench01, jvsu00, lfs92, lfs95, softdep99,
};
use serde::Serialize;

/// In the order of their keys.
const ALL: &[Experiment] = &[
    aging97::verify::EXPERIMENT,
    alloc96::aggregate::EXPERIMENT,
    alloc96::by_size::EXPERIMENT,
    alloc96::hot_files::EXPERIMENT,
    alloc96::old_machine::EXPERIMENT,
    alloc96::sensitivity::EXPERIMENT,
    alloc96::sequential::EXPERIMENT,
    alloc96::workload::EXPERIMENT,
    beyond::lfs_sweep::EXPERIMENT,
    beyond::modern::EXPERIMENT,
    hbench01::andrew::EXPERIMENT,
    hbench01::empty_aged::EXPERIMENT,
    hbench01::fragments::EXPERIMENT,
    hbench01::noswitch::EXPERIMENT,
    hbench01::validation::EXPERIMENT,
    jvsu00::NETNEWS,
    jvsu00::POSTMARK,
    jvsu00::SDET,
    jvsu00::SSH_BUILD,
    lfs92::micro::LARGEFILE,
    lfs92::simulator::EXPERIMENT,
    lfs92::micro::SMALLFILE,
    lfs92::two_files::EXPERIMENT,
    lfs92::write_cost::EXPERIMENT,
    lfs95::by_date::EXPERIMENT,
    lfs95::file_size::EXPERIMENT,
    lfs95::fragmentation::EXPERIMENT,
    lfs95::fragments_only::EXPERIMENT,
    lfs95::idle_cleaning::EXPERIMENT,
    lfs95::m8r0_m8r2::EXPERIMENT,
    lfs95::regions::EXPERIMENT,
    lfs95::scaled::EXPERIMENT,
    lfs95::tpcb::EXPERIMENT,
    softdep99::crash::EXPERIMENT,
    softdep99::fsck::EXPERIMENT,
    softdep99::noorder::EXPERIMENT,
    softdep99::recovery::EXPERIMENT,
    softdep99::softdep::EXPERIMENT,
];

/// All experiments, by key.
pub fn all() -> &'static [Experiment] {
    ALL
}

/// The experiments that some names stand for, each once, in the order of [`all`]: `alloc96/aggregate`, `alloc96/*`,
/// `all`.
///
/// # Errors
/// A name stands for none.
pub fn select(names: &[String]) -> Result<Vec<&'static Experiment>, ExperimentError> {
    let stands_for = |name: &str, key: &str| {
        name == "all" || name == key || name.strip_suffix('*').is_some_and(|start| key.starts_with(start))
    };
    if let Some(asked) = names.iter().find(|name| !all().iter().any(|e| stands_for(name, e.key))) {
        let there: Vec<&str> = all().iter().map(|e| e.key).collect();
        return Err(ExperimentError::Unknown { asked: asked.clone(), there: there.join(", ") });
    }
    Ok(all().iter().filter(|e| names.iter().any(|name| stands_for(name, e.key))).collect())
}

/// What `fsage reproduce` has run: byte-identical for the same experiments, scale, seed and version.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct Reproduction {
    pub version: &'static str,
    pub scale: Scale,
    /// One, or those whose means the outcomes are.
    pub seeds: Vec<u64>,
    pub outcomes: Vec<Outcome>,
}

/// Runs one experiment.
///
/// # Errors
/// As the experiment.
pub fn run(experiment: &Experiment, bench: &mut Bench<'_>) -> Result<Outcome, ExperimentError> {
    let outcome = (experiment.run)(bench)?;
    Ok(Outcome {
        key: experiment.key.to_owned(),
        title: experiment.title.to_owned(),
        source: experiment.source.to_owned(),
        ..outcome
    })
}

impl Reproduction {
    /// A reproduction of nothing yet.
    pub fn new(scale: Scale, seeds: Vec<u64>) -> Reproduction {
        Reproduction { version: env!("CARGO_PKG_VERSION"), scale, seeds, outcomes: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_in_order_and_of_the_right_form() {
        assert!(all().is_sorted_by(|a, b| a.key < b.key), "by key, and each once");
        for experiment in all() {
            let parts: Vec<&str> = experiment.key.split('/').collect();
            assert!(parts.len() == 2 && parts.iter().all(|part| !part.is_empty()), "{}", experiment.key);
            assert!(!experiment.source.is_empty() && !experiment.runs.is_empty(), "{}", experiment.key);
        }
    }
}
