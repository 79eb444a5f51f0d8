//! The 300 days of `alloc96` with one of their estimates changed: what depends on it, and how far.

use crate::alloc96::aged::{Aged, Aging, days, run_with};
use crate::{Bench, ExperimentError, parallel};
use aging::plan::alloc96::Parameters;
use posix::Errno;

/// One estimate changed.
#[derive(Clone, Debug)]
pub(super) struct Change {
    /// What it is changed to, in words.
    pub(super) name: String,
    /// All parameters, the others as published.
    pub(super) parameters: Parameters,
}

/// Ages a file system by each change under each choice of policies; of each change, what `look` finds under each choice. Nothing is found where
/// the file system is full before the days are over.
pub(super) fn aged_by_each<R: Send>(
    bench: &mut Bench<'_>,
    stage: &str,
    changes: &[Change],
    words: &[&str],
    look: impl Fn(Aged) -> Result<R, ExperimentError> + Sync,
) -> Result<Vec<Vec<Option<R>>>, ExperimentError> {
    let aging = Aging { days: bench.pick(5, days(bench)), ..Aging::of(bench) };
    let points: Vec<(&Parameters, &str)> =
        changes.iter().flat_map(|change| words.iter().map(|words| (&change.parameters, *words))).collect();
    let found = parallel::each(bench, stage, &points, |(parameters, words)| {
        match run_with((*parameters).clone(), words, aging, &mut |_, _| Ok(())) {
            Err(ExperimentError::Call { errno: Errno::ENOSPC, .. }) => Ok(None),
            aged => look(aged?).map(Some),
        }
    })?;
    let mut found = found.into_iter();
    Ok(changes.iter().map(|_| found.by_ref().take(words.len()).collect()).collect())
}
