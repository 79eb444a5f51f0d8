//! The use of the thesis's file system with one thing changed that is an estimate or not known: what depends on it, and
//! how far.

use crate::alloc96::aged::{Aged, Aging, run_with};
use crate::{Bench, ExperimentError, Study, parallel};
use aging::plan::alloc96::Parameters;
use posix::Errno;
use std::sync::Arc;

/// One thing changed.
#[derive(Clone, Debug)]
pub(super) struct Change {
    /// What it is changed to, in words.
    pub(super) name: String,
    /// What is aged.
    pub(super) study: Study,
    /// By which use, if not by the study's own.
    pub(super) parameters: Option<Parameters>,
}

impl Change {
    /// Something about the use of a study's file system.
    pub(super) fn of_use(name: String, study: Study, parameters: Parameters) -> Change {
        Change { name, study, parameters: Some(parameters) }
    }

    /// Another study's file system, under its own use.
    pub(super) fn to(name: &str, study: Study) -> Change {
        Change { name: name.to_owned(), study, parameters: None }
    }
}

/// Ages a file system by each change under each choice of policies; of each change, what `look` finds under each
/// choice. Nothing is found where the file system is full before the days are over.
pub(super) fn aged_by_each<R: Send>(
    bench: &mut Bench<'_>,
    stage: &str,
    changes: &[Change],
    words: &[&str],
    look: impl Fn(&Aged) -> Result<R, ExperimentError> + Sync,
) -> Result<Vec<Vec<Option<R>>>, ExperimentError> {
    let made = bench.made();
    let points: Vec<(&Change, &str, Aging)> = changes
        .iter()
        .flat_map(|change| {
            let own = Aging::of_study(bench, change.study);
            // At the quick scale five days show that it runs; what other experiments have too is of as many as theirs.
            let days = if change.parameters.is_some() { bench.pick(5, own.days) } else { own.days };
            words.iter().map(move |words| (change, *words, Aging { days, ..own }))
        })
        .collect();
    let found = parallel::each(bench, stage, &points, |(change, words, aging)| {
        let run = |parameters| run_with(parameters, words, *aging, &mut |_, _| Ok(()));
        let aged = match &change.parameters {
            Some(parameters) => run(parameters.clone()).map(Arc::new),
            None => made.get(&change.study.aged(words), || run((change.study.workload)())),
        };
        match aged {
            Err(ExperimentError::Call { errno: Errno::ENOSPC, .. }) => Ok(None),
            aged => look(&*aged?).map(Some),
        }
    })?;
    let mut found = found.into_iter();
    Ok(changes.iter().map(|_| found.by_ref().take(words.len()).collect()).collect())
}
