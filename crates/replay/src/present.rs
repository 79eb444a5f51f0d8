//! A replay: what it measured, by call type and by directory, and where it went differently than the trace.

use crate::{Pace, ReplayResult};
use document::plot::{Bar, Counted, interval_bars};
use document::{Cell, Document, Plot, Table};
use posix::CacheState;
use serde::Serialize;
use stats::{Estimate, QUANTILES};
use units::show;

/// What several replays of one workload on one target come to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Repeats {
    /// The totals in the order made, nanoseconds.
    pub totals_ns: Vec<u64>,
    /// Their median, with its bootstrap 95 % interval, nanoseconds.
    pub total_ns: Estimate,
}

/// The draws of the interval: the same replays have the same.
const SEED: u64 = 1;

impl Repeats {
    /// The replay in the middle, and what all of them come to, where there are several.
    ///
    /// # Panics
    /// Of no replay: who shows results has one.
    pub fn of(results: &[ReplayResult]) -> (&ReplayResult, Option<Repeats>) {
        let mut order: Vec<&ReplayResult> = results.iter().collect();
        order.sort_by_key(|result| result.total_ns);
        let middle = order.get((order.len().max(1) - 1) / 2).expect("there is at least one replay");
        let totals_ns: Vec<u64> = results.iter().map(|result| result.total_ns).collect();
        let totals: Vec<f64> = totals_ns.iter().map(|ns| *ns as f64).collect();
        let estimate = Estimate::of(&totals, SEED).filter(|_| results.len() > 1);
        (middle, estimate.map(|total_ns| Repeats { totals_ns, total_ns }))
    }

    fn table(&self) -> Table {
        let columns = [
            ("Replays", "replays"),
            ("Median (95 % interval)", "total_ns"),
            ("Least", "least_ns"),
            ("Most", "most_ns"),
        ];
        let mut table = Table::new(
            "repeats",
            "Time in the file system of all replays; all else is of the one in the middle.",
            &columns,
        );
        let end = |end: Option<&u64>| end.map_or(Cell::Empty, |ns| Cell::Ns(*ns as f64));
        let total = self.total_ns;
        table.row(vec![
            Cell::Count(self.totals_ns.len() as u64),
            Cell::NsInterval { value: total.median, low: total.low, high: total.high },
            end(self.totals_ns.iter().min()),
            end(self.totals_ns.iter().max()),
        ]);
        table
    }
}

/// Everything a replay measured, or several.
pub fn replay(workload: &str, result: &ReplayResult, repeats: Option<&Repeats>) -> Document {
    let mut document = Document::new(format!("Replay of {workload} on {}", result.environment.target));
    if let Some(repeats) = repeats {
        document.table(repeats.table().all_about(&result.environment.target));
    }
    document.table(summary(result));
    document.heading("Time by call type").plot(by_op_plot(result)).plot(latencies(result)).table(by_op(result));
    document.heading("Time by directory").table(by_subtree(result));
    differences(&mut document, result);
    if !result.skipped.is_empty() {
        let mut table = Table::new(
            "skipped",
            "Calls of the trace that were not made.",
            &[("Calls", "calls"), ("Reason", "reason")],
        );
        for (skip, calls) in &result.skipped {
            table.row(vec![Cell::Count(*calls), Cell::from(skip.meaning())]);
        }
        document.heading("Not replayed").table(table);
    }
    document.heading("Environment").table(document::facts("environment", &result.environment.facts()));
    document
}

fn summary(result: &ReplayResult) -> Table {
    let kernel = &result.environment.kernel;
    let mut table = Table::new("summary", kernel.whose_times(), &[("What", "what"), ("Value", "value")]);
    let mut add = |what: &str, value: Cell| table.row(vec![Cell::from(what), Cell::Text(value.shown())]);
    add("time in the file system", Cell::Ns(result.total_ns as f64));
    add(
        if kernel.is_in_virtual_time() { "from beginning to end" } else { "wall-clock time" },
        Cell::Ns(result.wall_ns as f64),
    );
    add("writing back what was left dirty", Cell::Ns(result.final_sync_ns as f64));
    let of = format!("{} of {}", show::count(result.calls), show::count(result.traced_calls));
    add("calls replayed", Cell::from(of));
    add("outcomes unlike the trace", Cell::Count(result.differences.total));
    let caches = match result.cache_state {
        CacheState::Cold => "cold, verified",
        CacheState::Warm => "warm",
        CacheState::Unverified => "asked to be cold; could not be verified",
    };
    add("caches at the start", Cell::from(caches));
    let pace = match result.options.pace {
        Pace::Asap => "as fast as possible",
        Pace::Recorded => "as recorded",
    };
    add("pace", Cell::from(pace));
    let c = &result.concurrency;
    let threads = format!(
        "{} for {} traced, at most {} in flight",
        c.replay_threads,
        c.traced_threads,
        show::counted(c.in_flight_max, "call", "calls")
    );
    add("threads", Cell::from(threads));
    let rebuilt = format!(
        "{}, {} of data, in {}",
        show::counted(result.rebuilt.entries, "name", "names"),
        show::bytes(result.rebuilt.data_bytes as f64),
        show::duration_ns(result.rebuild_ns as f64)
    );
    add("initial state", Cell::from(rebuilt));
    table
}

/// Bars drawn at most.
const BARS: usize = 12;

/// The call types that took the most time.
fn largest(result: &ReplayResult) -> Vec<&crate::OpResult> {
    let mut ops: Vec<&crate::OpResult> = result.per_op.iter().filter(|op| op.total_ns > 0).collect();
    ops.sort_by_key(|op| std::cmp::Reverse(op.total_ns));
    ops.truncate(BARS);
    ops
}

fn by_op_plot(result: &ReplayResult) -> Plot {
    let bars: Vec<Bar<'_>> = largest(result)
        .into_iter()
        .map(|op| {
            let total_s = op.total_ns as f64 / 1e9;
            Bar { label: &op.op, value_s: total_s, low_s: total_s, high_s: total_s }
        })
        .collect();
    interval_bars("Measured time by call type.", Counted::Time("time in the file system"), &bars)
}

/// How long single calls took: quantiles of each type, on a logarithmic axis.
fn latencies(result: &ReplayResult) -> Plot {
    let points: Vec<(String, f64, f64)> = largest(result)
        .into_iter()
        .take(BARS / 2)
        .flat_map(|op| {
            let quantiles = QUANTILES.iter().zip(&op.quantiles_ns);
            quantiles.map(|(share, ns)| (op.op.clone(), *ns as f64 / 1e3, 100.0 * share))
        })
        .collect();
    let title =
        "Latencies of single calls of the types that took the most time: so many per cent of the calls took no longer.";
    document::plot::lines(title, ("latency of a call, µs", true), ("calls, %", false), &points)
}

fn by_op(result: &ReplayResult) -> Table {
    let mut table = Table::new(
        "by_op",
        "",
        &[
            ("Call", "call"),
            ("Calls", "calls"),
            ("Failed", "failed"),
            ("Total", "total_ns"),
            ("Share", "share"),
            ("Mean", "mean_ns"),
            ("Median", "median_ns"),
            ("99 %", "p99_ns"),
        ],
    )
    .all_about(&result.environment.target);
    let mut ops: Vec<_> = result.per_op.iter().collect();
    ops.sort_by_key(|op| std::cmp::Reverse(op.total_ns));
    for op in ops {
        let quantile = |wanted: f64| {
            let at = QUANTILES.iter().position(|q| *q == wanted);
            at.and_then(|i| op.quantiles_ns.get(i)).map_or(Cell::Empty, |ns| Cell::Ns(*ns as f64))
        };
        table.row(vec![
            Cell::from(op.op.as_str()),
            Cell::Count(op.count),
            Cell::Count(op.failed),
            Cell::Ns(op.total_ns as f64),
            Cell::Share(share(op.total_ns, result.total_ns)),
            Cell::Ns(op.mean_ns),
            quantile(0.5),
            quantile(0.99),
        ]);
    }
    table
}

fn by_subtree(result: &ReplayResult) -> Table {
    let mut table = Table::new(
        "by_directory",
        "",
        &[("Directory", "directory"), ("Calls", "calls"), ("Total", "total_ns"), ("Share", "share")],
    )
    .all_about(&result.environment.target);
    for subtree in result.per_subtree.iter().take(15) {
        table.row(vec![
            Cell::from(subtree.path.as_str()),
            Cell::Count(subtree.count),
            Cell::Ns(subtree.total_ns as f64),
            Cell::Share(share(subtree.total_ns, result.total_ns)),
        ]);
    }
    table
}

fn differences(document: &mut Document, result: &ReplayResult) {
    let columns = [("Call", "call"), ("Traced", "traced"), ("Replayed", "replayed"), ("Calls", "calls")];
    let mut kinds = Table::new("differences", "Outcomes unlike the trace, by kind.", &columns);
    for kind in &result.differences.kinds {
        kinds.row(vec![
            Cell::from(kind.op.as_str()),
            Cell::from(kind.expected.as_str()),
            Cell::from(kind.got.as_str()),
            Cell::Count(kind.count),
        ]);
    }
    let columns = [("Row", "seq"), ("Call", "call"), ("Path", "path"), ("Traced", "traced"), ("Replayed", "replayed")];
    let mut first = Table::new("first_differences", "The first of them.", &columns);
    for difference in &result.differences.first {
        first.row(vec![
            Cell::Count(difference.seq),
            Cell::from(difference.op.as_str()),
            Cell::from(difference.path.as_str()),
            Cell::from(difference.expected.as_str()),
            Cell::from(difference.got.as_str()),
        ]);
    }
    document.heading("Differences").table(kinds).table(first);
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
