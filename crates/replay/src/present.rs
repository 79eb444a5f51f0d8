//! A replay: what it measured, by call type and by directory, and where it went differently than the trace.

use crate::{Pace, ReplayResult};
use document::{Cell, Document, Table};
use posix::CacheState;
use stats::QUANTILES;
use units::show;

/// Everything a replay measured.
pub fn replay(workload: &str, result: &ReplayResult) -> Document {
    let mut document = Document::new(format!("Replay of {workload} on {}", result.environment.target));
    document.table(summary(result));
    document.heading("Time by call type").table(by_op(result));
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
    );
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
    );
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
