//! Benchmarks whose phases differ in kind: a row for each phase, with its own unit, time, calls and data.

use super::{caches, end, how, outliers, phases, rate, unit};
use crate::{BenchResult, PhaseResult, TargetResult, TimedBy};
use document::{Cell, Document, Table};

/// A result, on one target or several.
pub(crate) fn document(result: &BenchResult) -> Document {
    let names: Vec<&str> = result.targets.iter().map(|t| t.name.as_str()).collect();
    let mut document = Document::new(format!("{}: {}", result.parameters.name(), names.join(", ")));
    document.paragraph(result.parameters.benchmark().what()).paragraph(how(result.parameters.repeat()));
    let alone = result.targets.len() == 1;
    for target in &result.targets {
        let remarks = std::iter::once(caches(target)).chain(target.notes.clone()).chain(outliers(target));
        let remarks = remarks.map(|remark| if alone { remark } else { format!("{}: {remark}", target.name) });
        document.list(remarks.collect());
    }
    match result.targets.as_slice() {
        [target] => drop(document.table(phases_table(target))),
        targets => {
            document.table(side_by_side(targets));
            for target in targets {
                document.heading(target.name.clone()).table(phases_table(target));
            }
        }
    }
    for target in &result.targets {
        if let Some((heading, text)) = result.parameters.benchmark().own_report(target) {
            document.heading(format!("{heading}: {}", target.name)).code(text.replace('\t', "        "));
        }
    }
    end(&mut document, result, "Counted", counts_table(&result.targets));
    document
}

/// One target: a row for each phase at each point.
fn phases_table(target: &TargetResult) -> Table {
    let mut table = Table::new(
        "phases",
        "Time is the median over rounds, with the syncfs where the phase ends with one; calls, files and data are \
         those of the last round.",
        &[
            ("What", "point"),
            ("Phase", "phase"),
            ("Rate", "rate"),
            ("Unit", "unit"),
            ("Time", "time_ns"),
            ("of it syncfs", "sync_ns"),
            ("Calls", "calls"),
            ("Files", "files"),
            ("Data", "bytes"),
        ],
    );
    for (point, phase) in target.points.iter().flat_map(|p| p.phases.iter().map(move |phase| (p, phase))) {
        let last = phase.rounds.last();
        table.row(vec![
            Cell::from(point.point.label.clone()),
            Cell::from(phase.phase.name()),
            rate(Some(&phase.rate), phase.unit),
            Cell::from(unit(phase.unit).0),
            phase.seconds().map_or(Cell::Empty, |s| Cell::Ns(s * 1e9)),
            sync(phase),
            Cell::Count(last.map_or(0, |r| r.calls)),
            Cell::Count(last.map_or(0, |r| r.files)),
            Cell::Bytes(last.map_or(0, |r| r.bytes) as f64),
        ]);
    }
    let by_clock = |p: &PhaseResult| p.rounds.iter().any(|r| r.timed_by == TimedBy::Clock);
    if target.points.iter().flat_map(|p| &p.phases).any(by_clock) {
        table.caption.push_str(" Times are the clock's: computing and waiting are in them.");
    }
    table
}

fn sync(phase: &PhaseResult) -> Cell {
    let found: Vec<f64> = phase.rounds.iter().filter_map(|r| Some(r.sync_ns? as f64)).collect();
    stats::median(&found).map_or(Cell::Empty, Cell::Ns)
}

/// Several targets: a row for each phase, a column for each target.
fn side_by_side(targets: &[TargetResult]) -> Table {
    let first = [("What", "point"), ("Phase", "phase"), ("Unit", "unit")];
    let columns: Vec<(&str, &str)> =
        first.into_iter().chain(targets.iter().map(|t| (t.name.as_str(), t.name.as_str()))).collect();
    let mut table = Table::new("side_by_side", "", &columns);
    for point in targets.first().map(|t| t.points.as_slice()).unwrap_or_default() {
        for phase in phases(targets) {
            let label = &point.point.label;
            let found: Vec<_> = targets.iter().map(|t| t.phase(label, phase)).collect();
            let Some(of) = found.iter().flatten().next().map(|p| p.unit) else { continue };
            let cells = found.iter().map(|p| rate(p.map(|p| &p.rate), of));
            let first = [Cell::from(label.clone()), Cell::from(phase.name()), Cell::from(unit(of).0)];
            table.row(first.into_iter().chain(cells).collect());
        }
    }
    table
}

/// What each benchmark counts beyond what all count, of the last round.
fn counts_table(targets: &[TargetResult]) -> Table {
    let columns = [("Target", "target"), ("What", "point"), ("Phase", "phase"), ("Of", "name"), ("Number", "value")];
    let mut table = Table::new("counts", "", &columns);
    for target in targets {
        for (point, phase) in target.points.iter().flat_map(|p| p.phases.iter().map(move |phase| (p, phase))) {
            for found in phase.rounds.last().map(|r| r.counts.as_slice()).unwrap_or_default() {
                table.row(vec![
                    Cell::from(target.name.clone()),
                    Cell::from(point.point.label.clone()),
                    Cell::from(phase.phase.name()),
                    Cell::from(found.name.clone()),
                    Cell::Count(found.value),
                ]);
            }
        }
    }
    table
}
