//! Parts of a trace on their way from the first stage, which comes once, to the others, which may be many and in
//! threads of their own.

use super::annotated::Annotated;
use super::options::Calls;
use super::preprocess::Preprocess;
use super::source::Workload;
use columnar::FileError;
use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{Builder, Scope};
use trace::{Batch, Snapshot};

/// Parts that wait for a thread at most: the first stage goes on meanwhile, and no more memory is taken for it.
const WAITING_MAX: usize = 2;

/// A batch and the annotations of a part of it.
pub(super) type Part = (Arc<Batch>, Arc<Annotated>);

/// What is lent to threads, to be used again when none of them looks at it any more.
struct Lent<T>(VecDeque<Arc<T>>);

impl<T: Default> Lent<T> {
    fn lend(&mut self, thing: T) -> Arc<T> {
        let thing = Arc::new(thing);
        self.0.push_back(thing.clone());
        thing
    }

    /// The oldest, if it has come back, or a new one.
    fn spare(&mut self) -> T {
        let is_back = self.0.front().is_some_and(|oldest| Arc::strong_count(oldest) == 1);
        let back = if is_back { self.0.pop_front() } else { None };
        back.and_then(Arc::into_inner).unwrap_or_default()
    }
}

/// Takes the trace through the first stage, and hands on its parts in their order until it is told `false`.
pub(super) fn each(
    workload: &dyn Workload,
    unread: &[&str],
    preprocess: &mut Preprocess,
    hand_on: &mut dyn FnMut(&Part) -> bool,
) -> Result<(), FileError> {
    let (mut batches, mut notes) = (Lent(VecDeque::new()), Lent(VecDeque::new()));
    let mut annotated = Annotated::default();
    let (mut goes_on, mut failed) = (true, None);
    workload.visit(unread, &mut |batch| {
        let shared: Arc<Batch> = batches.lend(std::mem::take(batch));
        let parts = each_part(preprocess, workload.path(), &shared, &mut annotated, &mut |annotated| {
            let spare = notes.spare();
            let part = notes.lend(std::mem::replace(annotated, spare));
            goes_on = goes_on && hand_on(&(shared.clone(), part));
        });
        drop(shared);
        *batch = batches.spare();
        failed = parts.err();
        goes_on && failed.is_none()
    })?;
    failed.map_or(Ok(()), Err)
}

/// The first stage with the names of a snapshot.
pub(super) fn begin(workload: &Path, snapshot: &Snapshot, calls: Calls) -> Result<Preprocess, FileError> {
    let preprocess = Preprocess::new(snapshot, calls);
    if preprocess.is_too_deep() {
        return Err(too_deep(workload, "snapshot".to_owned()));
    }
    Ok(preprocess)
}

/// Annotates a batch, and hands on each of its parts.
pub(super) fn each_part(
    preprocess: &mut Preprocess,
    workload: &Path,
    batch: &Batch,
    annotated: &mut Annotated,
    part: &mut dyn FnMut(&mut Annotated),
) -> Result<(), FileError> {
    let mut done = 0;
    while done < batch.events.len() {
        done = preprocess.annotate(batch, done, annotated);
        posix::interrupt::check().map_err(|source| interrupted(workload, source))?;
        if preprocess.is_too_deep() {
            let call = batch.events.get(done.saturating_sub(1)).map_or(0, |event| event.head.seq);
            return Err(too_deep(workload, format!("call {call}")));
        }
        part(annotated);
    }
    Ok(())
}

fn interrupted(workload: &Path, source: std::io::Error) -> FileError {
    FileError::io(workload, "go on")(source)
}

fn too_deep(workload: &Path, place: String) -> FileError {
    trace::profile::FORMAT.corrupt(workload, place, trace::profile::too_deep())
}

/// A thread that takes parts until it has enough or there are no more.
pub(super) fn thread<'scope>(
    scope: &'scope Scope<'scope, '_>,
    mut take: impl FnMut(&Part) -> bool + Send + 'scope,
) -> io::Result<SyncSender<Part>> {
    let (parts, waiting) = sync_channel::<Part>(WAITING_MAX);
    let name = "predict".to_owned();
    Builder::new().name(name).spawn_scoped(scope, move || waiting.iter().all(|part| take(&part)))?;
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_come_back_is_lent_again() {
        let mut lent = Lent(VecDeque::new());
        let first = lent.lend(vec![1]);
        let second = lent.lend(vec![2]);
        assert!(lent.spare().is_empty(), "somebody looks at both");
        drop(second);
        assert!(lent.spare().is_empty(), "the oldest is still out");
        drop(first);
        assert_eq!((lent.spare(), lent.spare(), lent.spare()), (vec![1], vec![2], vec![]));
    }
}
