//! The operation mix: which calls, how often, how long, and which failed.

use super::histogram::{Distribution, Histogram};
use crate::{Event, Op, flag};
use posix::Errno;
use serde::Serialize;
use std::collections::BTreeMap;

/// One operation's calls.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OperationRow {
    /// Its name.
    pub op: &'static str,
    /// Calls.
    pub calls: u64,
    /// Share of all calls, 0 to 1.
    pub share: f64,
    /// Calls that failed.
    pub errors: u64,
    /// Calls on files that are not modelled.
    pub foreign: u64,
    /// Sum of traced durations, nanoseconds.
    pub traced_ns: u64,
    /// Share of the traced time, 0 to 1.
    pub traced_share: f64,
    /// Traced durations of single calls, nanoseconds.
    pub dur_ns: Distribution,
    /// Sums of the time running and blocked, nanoseconds; `None` where the tracer cannot tell.
    pub running_ns: Option<u64>,
    #[allow(missing_docs)]
    pub blocked_ns: Option<u64>,
}

/// Calls that failed in one way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// Operation.
    pub op: &'static str,
    /// Error number.
    pub errno: u16,
    /// Its symbolic name, where it has one.
    pub name: String,
    /// Calls.
    pub calls: u64,
}

#[derive(Default)]
struct Row {
    calls: u64,
    errors: u64,
    foreign: u64,
    durations: Histogram,
    traced_ns: u64,
    running_ns: Option<u64>,
    blocked_ns: Option<u64>,
}

#[derive(Default)]
pub(super) struct Operations {
    rows: BTreeMap<Op, Row>,
    failures: BTreeMap<(Op, Errno), u64>,
}

impl Operations {
    pub(super) fn add(&mut self, event: &Event) {
        let row = self.rows.entry(event.op()).or_default();
        row.calls += 1;
        row.foreign += u64::from(event.head.flags & flag::FOREIGN != 0);
        row.traced_ns = row.traced_ns.saturating_add(event.head.dur_ns);
        row.durations.add(event.head.dur_ns);
        for (sum, part) in [(&mut row.running_ns, event.head.running_ns), (&mut row.blocked_ns, event.head.blocked_ns)]
        {
            if let Some(part) = part {
                *sum = Some(sum.unwrap_or(0).saturating_add(part));
            }
        }
        if let Some(errno) = event.head.errno {
            row.errors += 1;
            *self.failures.entry((event.op(), errno)).or_default() += 1;
        }
    }

    pub(super) fn finish(self) -> (Vec<OperationRow>, Vec<Failure>) {
        let calls: u64 = self.rows.values().map(|r| r.calls).sum();
        let traced: u64 = self.rows.values().fold(0, |sum, r| sum.saturating_add(r.traced_ns));
        let share = |part: u64, whole: u64| if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
        let row = |(op, row): (Op, Row)| OperationRow {
            op: op.name(),
            calls: row.calls,
            share: share(row.calls, calls),
            errors: row.errors,
            foreign: row.foreign,
            traced_ns: row.traced_ns,
            traced_share: share(row.traced_ns, traced),
            dur_ns: row.durations.distribution(),
            running_ns: row.running_ns,
            blocked_ns: row.blocked_ns,
        };
        let mut rows: Vec<OperationRow> = self.rows.into_iter().map(row).collect();
        // Stable sorts: operations of equal counts stay in the order of `Op`.
        rows.sort_by_key(|r| std::cmp::Reverse(r.calls));
        let failure = |((op, errno), calls): ((Op, Errno), u64)| Failure {
            op: op.name(),
            errno: errno.0,
            name: errno.to_string(),
            calls,
        };
        let mut failures: Vec<Failure> = self.failures.into_iter().map(failure).collect();
        failures.sort_by_key(|f| std::cmp::Reverse(f.calls));
        (rows, failures)
    }
}
