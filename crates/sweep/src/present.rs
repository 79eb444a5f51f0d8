//! What a sweep's report shows: how many tasks, the means, the curves, the front, and what failed.

use crate::folder::Status;
use crate::report::{Mean, Pareto, PartReport, Report};
use crate::run::Ran;
use crate::spec::Spec;
use document::plot::{Multiple, Weighed};
use document::{Cell, Document, Table};
use std::collections::BTreeMap;

/// Messages of failures that are listed; the data set has all.
const MESSAGES_MAX: usize = 20;
/// Combinations of a front's table.
const FRONT_MAX: usize = 100;

/// A value in its unit.
fn cell(value: f64, unit: &str) -> Cell {
    match unit {
        "ns" => Cell::Ns(value),
        "bytes" => Cell::Bytes(value),
        "share" => Cell::Share(value),
        "score" => Cell::Score(value),
        _ => Cell::Number(value),
    }
}

fn mean_cell(mean: &Mean, unit: &str) -> Cell {
    match unit {
        _ if mean.n < 2 => cell(mean.mean, unit),
        "ns" => Cell::NsInterval { value: mean.mean, low: mean.low, high: mean.high },
        _ => Cell::Interval { value: mean.mean, low: mean.low, high: mean.high },
    }
}

/// A figure with its unit, as an axis says it.
fn titled(metric: &str, part: &str, unit: &str) -> String {
    let of = if part.is_empty() { metric.to_owned() } else { format!("{metric} of {part}") };
    if metric.ends_with(&format!("_{unit}")) { of } else { format!("{of}, {}", unit.replace('_', " ")) }
}

/// A sweep's report.
pub fn sweep(spec: &Spec, status: &Status, report: Option<&Report>, ran: Option<&Ran>) -> Document {
    let mut document = Document::new(format!("Sweep {}", spec.name));
    document.paragraph(spec.description.clone());
    document.paragraph(told(status));
    if let Some(ran) = ran.filter(|ran| ran.tasks > 0) {
        let overhead = ran.overhead_s().unwrap_or_default();
        document.paragraph(format!(
            "This run: {} in {:.1} s, {} at a time; a task took {:.0} ms, and {:.1} ms beyond that to start it and to \
             keep its result.",
            units::show::counted(ran.tasks, "task", "tasks"),
            ran.seconds,
            ran.jobs,
            ran.task_seconds / ran.tasks as f64 * 1e3,
            overhead * 1e3,
        ));
    }
    if let Some(report) = report {
        for part in &report.parts {
            part_of(&mut document, report, part);
        }
        if let Some(pareto) = &report.pareto {
            front(&mut document, pareto);
        }
        others(&mut document, report);
    }
    failures(&mut document, status);
    document
}

/// How far it is, in a sentence.
pub fn told(status: &Status) -> String {
    let (done, open) = (status.ended - status.failed, status.tasks - status.ended);
    let mut text =
        format!("{}: {} done", units::show::counted(status.tasks, "task", "tasks"), units::show::count(done));
    if status.failed > 0 {
        text.push_str(&format!(", {} failed", units::show::count(status.failed)));
    }
    if open > 0 {
        text.push_str(&format!(", {} to do", units::show::count(open)));
    }
    text + "."
}

fn part_of(document: &mut Document, report: &Report, part: &PartReport) {
    let title = titled(&report.metric, &part.part, &report.unit);
    document.heading(title.clone());
    if let Some(curves) = part.curves.as_ref().filter(|curves| curves.points.len() > 1) {
        let points: Vec<Multiple<'_>> = curves
            .points
            .iter()
            .map(|point| Multiple {
                panel: &point.panel,
                series: &point.series,
                x: &point.x,
                x_number: point.x_number.filter(|_| curves.is_numeric),
                y: point.mean.mean,
                low: point.mean.low,
                high: point.mean.high,
            })
            .collect();
        let by = [Some(&curves.x), curves.series.as_ref(), curves.panel.as_ref()];
        let by: Vec<&str> = by.into_iter().flatten().map(String::as_str).collect();
        let sentence = format!("{} by {}: means with 95 % intervals", title, by.join(", "));
        document.plot(document::plot::multiples(&sentence, &curves.x, &title, &points));
    }
    let caption = "Means over the combinations that have this value (each the mean of its repetitions), with 95 % \
                   intervals; against the \
                   mean of all.";
    let columns = [
        ("Axis", "axis"),
        ("Value", "value"),
        ("Combinations", "combinations"),
        ("Mean", "mean"),
        ("Against all", "against_all"),
    ];
    let mut table = Table::new(&table_name("means", &part.part), caption, &columns);
    for marginal in &part.marginals {
        let against = if part.all.mean == 0.0 { Cell::Empty } else { Cell::Ratio(marginal.mean.mean / part.all.mean) };
        table.row(vec![
            Cell::from(marginal.axis.as_str()),
            Cell::from(marginal.value.as_str()),
            Cell::Count(marginal.mean.n),
            mean_cell(&marginal.mean, &report.unit),
            against,
        ]);
    }
    let (all, n) = (mean_cell(&part.all, &report.unit), Cell::Count(part.all.n));
    table.row(vec![Cell::from("all"), Cell::from(""), n, all, Cell::Ratio(1.0)]);
    document.table(table);
}

/// A table's name in file names.
fn table_name(what: &str, part: &str) -> String {
    let plain: String = part.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    if plain.is_empty() { what.to_owned() } else { format!("{what}-{plain}") }
}

fn front(document: &mut Document, pareto: &Pareto) {
    let [a, b] = &pareto.measures;
    let titles = [titled(&a.metric, &a.part, &a.unit), titled(&b.metric, &b.part, &b.unit)];
    document.heading(format!("{} against {}", titles[0], titles[1]));
    let word = |more: bool| if more { "more" } else { "less" };
    let on_front = pareto.points.iter().filter(|point| point.on_front).count();
    document.paragraph(format!(
        "{on_front} of {} combinations are on the Pareto front: no other is better in one figure without being worse \
         in the \
         other ({} of the first is better, and {} of the second). Figures are means over repetitions.",
        pareto.points.len(),
        word(a.more_is_better),
        word(b.more_is_better),
    ));
    let names: Vec<String> = pareto.points.iter().map(|point| point.values.join(" ")).collect();
    let points: Vec<Weighed<'_>> = pareto
        .points
        .iter()
        .zip(&names)
        .map(|(point, name)| Weighed { name, x: point.figures[0], y: point.figures[1], on_front: point.on_front })
        .collect();
    let sentence = "Every combination, and the front".to_owned();
    document.plot(document::plot::front(&sentence, &titles[0], &titles[1], &points));
    let keys = [table_name(&a.metric, &a.part), table_name(&b.metric, &b.part)];
    let mut columns: Vec<(&str, &str)> = pareto.axes.iter().map(|axis| (axis.as_str(), axis.as_str())).collect();
    columns.extend(titles.iter().zip(&keys).map(|(title, key)| (title.as_str(), key.as_str())));
    let mut table = Table::new("pareto", "The front.", &columns);
    for point in pareto.points.iter().filter(|point| point.on_front).take(FRONT_MAX) {
        let mut cells: Vec<Cell> = point.values.iter().map(|value| Cell::from(value.as_str())).collect();
        cells.extend([cell(point.figures[0], &a.unit), cell(point.figures[1], &b.unit)]);
        table.row(cells);
    }
    document.table(table);
}

fn others(document: &mut Document, report: &Report) {
    let metrics: Vec<&str> = report.metrics.iter().map(String::as_str).filter(|name| *name != report.metric).collect();
    let mut text = Vec::new();
    if !report.parts_left_out.is_empty() {
        let shown: Vec<&str> = report.parts_left_out.iter().take(30).map(String::as_str).collect();
        text.push(format!("Further parts (--part): {}.", shown.join(", ")));
    }
    if !metrics.is_empty() {
        text.push(format!("Further figures (--metric): {}.", metrics.join(", ")));
    }
    document.paragraph(text.join(" "));
}

fn failures(document: &mut Document, status: &Status) {
    let mut by_message: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for (task, message) in &status.failures {
        let (count, first) = by_message.entry(message).or_insert((0, *task));
        *count += 1;
        *first = (*first).min(*task);
    }
    let mut messages: Vec<(&str, (u64, u64))> = by_message.into_iter().collect();
    messages.sort_by_key(|(_, (count, first))| (std::cmp::Reverse(*count), *first));
    let caption =
        "Tasks without a result, by what their command said; tasks.parquet has each. --retry-failed runs them again.";
    let columns = [("Message", "message"), ("Tasks", "tasks"), ("First", "first_task")];
    let mut table = Table::new("failures", caption, &columns);
    for (message, (count, first)) in messages.into_iter().take(MESSAGES_MAX) {
        table.row(vec![Cell::from(message), Cell::Count(count), Cell::Count(first)]);
    }
    if !table.rows.is_empty() {
        document.heading("Failures");
        document.table(table);
    }
}
