//! How long a service's own calls took: by operation, and where the time went.
//!
//! What lives here: counting durations from one pass over the events. Calls that are no request of a service are left
//! out: the ends and beginnings of processes, closes that the kernel did, calls that never returned. Calls on pipes,
//! sockets and the like are counted apart.

use super::histogram::FineHistogram;
use super::histogram::at_most_u64;
use crate::profile::{Durations, Reader};
use crate::{Batch, Event, Op, flag};
use columnar::FileError;
use serde::Serialize;
use std::collections::BTreeMap;

/// Latencies of a trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Latencies {
    /// How far the durations are the calls' own.
    pub durations: Durations,
    /// All calls on files.
    pub all: Latency,
    /// By operation, the most time first.
    pub operations: Vec<Latency>,
    /// Calls on pipes, sockets, /proc, /sys and /dev, left out.
    pub foreign_calls: u64,
    /// Calls that never returned in the trace, left out.
    pub unfinished_calls: u64,
}

/// Latencies of one operation, nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Latency {
    /// Its name; `all` for all.
    pub op: &'static str,
    /// Calls.
    pub calls: u64,
    /// Calls that failed.
    pub errors: u64,
    /// Sum.
    #[serde(serialize_with = "at_most_u64")]
    pub total_ns: u128,
    /// Mean.
    pub mean_ns: f64,
    /// Quantiles: upper bounds within 1/1024.
    pub p50_ns: u64,
    #[allow(missing_docs)]
    pub p90_ns: u64,
    #[allow(missing_docs)]
    pub p99_ns: u64,
    #[allow(missing_docs)]
    pub p999_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// Where the time went; `None` where the tracer cannot tell.
    pub spent: Option<Spent>,
}

/// Where the time of calls went, over those of which the tracer tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Spent {
    /// Calls of which it is known.
    pub calls: u64,
    /// On a processor, nanoseconds.
    #[serde(serialize_with = "at_most_u64")]
    pub running_ns: u128,
    /// Asleep: waiting for the device, a lock, another process.
    #[serde(serialize_with = "at_most_u64")]
    pub blocked_ns: u128,
    /// The rest: ready to run, and no processor was free.
    #[serde(serialize_with = "at_most_u64")]
    pub waiting_ns: u128,
}

/// Counts a whole profile.
///
/// # Errors
/// What reading finds wrong.
pub fn latencies(reader: &Reader) -> Result<Latencies, FileError> {
    let mut counting = Counting::default();
    let mut batches = reader.batches()?;
    let mut batch = Batch::default();
    while batches.next_into(&mut batch)? {
        batch.events.iter().for_each(|event| counting.add(event));
    }
    Ok(counting.finish(reader.meta().durations()))
}

#[derive(Default)]
struct Counting {
    rows: BTreeMap<Op, Row>,
    foreign: u64,
    unfinished: u64,
}

#[derive(Default)]
struct Row {
    durations: FineHistogram,
    errors: u64,
    spent: Spent,
}

impl Counting {
    fn add(&mut self, event: &Event) {
        if event.head.flags & flag::IMPLIED != 0 || matches!(event.op(), Op::Clone | Op::Exit) {
            return;
        }
        if event.head.flags & flag::UNFINISHED != 0 {
            self.unfinished += 1;
        } else if event.head.flags & flag::FOREIGN != 0 {
            self.foreign += 1;
        } else {
            self.rows.entry(event.op()).or_default().add(event);
        }
    }

    fn finish(self, durations: Durations) -> Latencies {
        let mut all = Row::default();
        self.rows.values().for_each(|row| all.merge(row));
        let mut operations: Vec<Latency> = self.rows.iter().map(|(op, row)| row.latency(op.name())).collect();
        operations.sort_by(|a, b| b.total_ns.cmp(&a.total_ns).then(b.calls.cmp(&a.calls)).then(a.op.cmp(b.op)));
        Latencies {
            durations,
            all: all.latency("all"),
            operations,
            foreign_calls: self.foreign,
            unfinished_calls: self.unfinished,
        }
    }
}

impl Row {
    fn add(&mut self, event: &Event) {
        self.durations.add(event.head.dur_ns);
        self.errors += u64::from(event.head.errno.is_some());
        if let (Some(running), Some(blocked)) = (event.head.running_ns, event.head.blocked_ns) {
            self.spent.calls += 1;
            self.spent.running_ns += u128::from(running);
            self.spent.blocked_ns += u128::from(blocked);
            self.spent.waiting_ns += u128::from(event.head.dur_ns.saturating_sub(running).saturating_sub(blocked));
        }
    }

    fn merge(&mut self, other: &Row) {
        self.durations.merge(&other.durations);
        self.errors += other.errors;
        self.spent.calls += other.spent.calls;
        self.spent.running_ns += other.spent.running_ns;
        self.spent.blocked_ns += other.spent.blocked_ns;
        self.spent.waiting_ns += other.spent.waiting_ns;
    }

    fn latency(&self, op: &'static str) -> Latency {
        let (calls, total_ns, max_ns) = self.durations.totals();
        let quantile = |share| if calls == 0 { 0 } else { self.durations.quantile(share) };
        Latency {
            op,
            calls,
            errors: self.errors,
            total_ns,
            mean_ns: if calls == 0 { 0.0 } else { total_ns as f64 / calls as f64 },
            p50_ns: quantile(0.5),
            p90_ns: quantile(0.9),
            p99_ns: quantile(0.99),
            p999_ns: quantile(0.999),
            max_ns,
            spent: (self.spent.calls > 0).then_some(self.spent),
        }
    }
}
