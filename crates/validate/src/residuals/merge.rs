//! Prices and observations of one replay, brought together in the order of the trace.

use super::write::Source;
use super::{Priced, ResidualWriter, Row, Seen};
use columnar::FileError;
use predict::pipeline::{PredictError, PredictOptions, PricedCall, Workload, predict_calls};
use replay::{InOrder, Observation, Observations};
use std::io;
use std::iter::Peekable;
use system::SystemProfile;
use trace::Op;

/// Predicts a workload once more, and writes a row for every call that has a price or that the replay made.
///
/// # Errors
/// As the prediction; the observations cannot be read back, or the file not be written.
pub fn residuals_of(
    workload: &dyn Workload,
    system: &SystemProfile,
    options: &PredictOptions,
    observations: &Observations,
    source: Source<'_>,
    out: &mut ResidualWriter,
) -> Result<(), PredictError> {
    let mut merge = Merge { source, out, seen: observations.read().peekable(), previous: None, burst: 0, failed: None };
    predict_calls(workload, std::slice::from_ref(system), options, Some(&mut |call| merge.priced(&call)))?;
    merge.rest();
    match merge.failed {
        Some(error) => Err(error.into()),
        None => Ok(()),
    }
}

struct Merge<'m, 'o> {
    source: Source<'m>,
    out: &'m mut ResidualWriter,
    seen: Peekable<InOrder<'o>>,
    /// What was called last in the replay, and how often in a row.
    previous: Option<Op>,
    burst: u64,
    /// The first error; nothing is done after it.
    failed: Option<FileError>,
}

impl Merge<'_, '_> {
    /// A call with a price: first come those before it that have none.
    fn priced(&mut self, call: &PricedCall<'_>) {
        let seq = call.event.head.seq;
        self.unpriced(|before| before < seq);
        let seen = match self.seen.peek() {
            Some(Ok(observation)) if observation.seq == seq => self.take(),
            _ => None,
        };
        let seen = seen.map(|observation| self.seen_of(&observation));
        let names = call.pricer.names();
        let mut terms: Vec<(&str, f64, f64)> = Vec::new();
        call.pricer.terms(call.requests, call.context, &mut |entry, weight| {
            let (name, mean_ns) = (&names[usize::from(entry)], call.pricer.means_ns()[usize::from(entry)]);
            match terms.iter_mut().find(|term| term.0 == name) {
                Some(term) => (term.1, term.2) = (term.1 + weight, term.2 + weight * mean_ns),
                None => terms.push((name, weight, weight * mean_ns)),
            }
        });
        let e = call.event;
        let moves = matches!(e.op(), Op::Read | Op::Write | Op::Copy | Op::GetDents);
        let priced = Priced {
            thread: e.head.tid,
            failed: e.head.errno.is_some(),
            bytes: if moves { u64::try_from(e.head.ret).unwrap_or(0) } else { 0 },
            ns: call.ns,
            stall_ns: call.stall_ns,
            entry: names.get(usize::from(call.dominant)).map_or("", String::as_str),
            terms,
            lookups: u64::from(call.note.lookups),
            lookup_misses: call.lookup_misses(),
            cached_bytes: call.cached_bytes(),
            disk_bytes: call.disk_bytes(),
            new_bytes: call.new_bytes(),
            dirty: call.dirt(),
            pattern: call.pattern(),
            file_dirty_pages: call.file_dirty_pages,
            dirty_pages: call.unstable.dirty_pages,
            dirty_files: call.unstable.dirty_files,
            metadata_changes: call.unstable.metadata_changes,
            since_commit_ns: call.unstable.since_commit_ns,
        };
        self.push(&Row { source: self.source, seq, op: e.op(), priced: Some(priced), seen });
    }

    /// Calls at the head that were made and have no price.
    fn unpriced(&mut self, due: impl Fn(u64) -> bool) {
        while self.seen.peek().is_some_and(|next| next.as_ref().map_or(true, |o| due(o.seq))) {
            let Some(observation) = self.take() else { return };
            let seen = self.seen_of(&observation);
            let (seq, op) = (observation.seq, observation.op);
            self.push(&Row { source: self.source, seq, op, priced: None, seen: Some(seen) });
        }
    }

    fn rest(&mut self) {
        self.unpriced(|_| true);
    }

    fn take(&mut self) -> Option<Observation> {
        match self.seen.next()? {
            Ok(observation) => Some(observation),
            Err(error) => {
                self.fail(error);
                None
            }
        }
    }

    fn fail(&mut self, source: io::Error) {
        let error = FileError::io(self.out.path(), "read what the replay saw for")(source);
        self.failed.get_or_insert(error);
    }

    fn seen_of(&mut self, observation: &Observation) -> Seen {
        let &Observation { op, latency_ns, in_flight, unlike, found, .. } = observation;
        let previous_op = self.previous.replace(op);
        self.burst = if previous_op == Some(op) { self.burst + 1 } else { 1 };
        Seen { ns: latency_ns, unlike, in_flight, found, burst: self.burst, previous_op }
    }

    fn push(&mut self, row: &Row<'_>) {
        if self.failed.is_none() {
            self.failed = self.out.push(row).err();
        }
    }
}
