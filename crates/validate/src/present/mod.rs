//! A validation: how far predictions are from replays, and which call types the misses come from.

mod plots;

use crate::compare::OpComparison;
use crate::residuals::contexts::Context;
use crate::{PairVerdict, Validation};
use document::plot::{Point, agreement};
use document::{Cell, Document, Table};
use plots::{beside, distributions};
use posix::CacheState;
use trace::profile::Durations;
use units::show;

/// Call types shown for each cell, the greatest errors first.
const OPS: usize = 6;

/// Everything a validation found.
pub fn validation(title: &str, command: &str, validation: &Validation) -> Document {
    let mut document = Document::new(title);
    let carried = validation.cells.iter().any(|cell| cell.predicted.not_rescaled_ns.is_some());
    let rescaled = if carried { ", carried over to how the target was just before each replay" } else { "" };
    let times = match (validation.repeats, validation.repeats_most) {
        (least, most) if least == most => least.to_string(),
        (least, most) => format!("{least} to {most}"),
    };
    document.paragraph(format!(
        "Each workload was replayed {times} times on each target, in random order (seed {}), and predicted from the \
         target's system profile{rescaled}. Measured is the median of the replays. An error is predicted less \
         measured, as a share of measured.",
        validation.seed
    ));
    if let Some(precision) = &validation.precision {
        document.paragraph(format!(
            "Replays went on until half the 95 % interval of their median was {} of it, or for {times} times: {} of {} \
             cells came to that; the median is {}, the greatest {}.",
            show::share(precision.wanted),
            precision.reached,
            validation.cells.len(),
            show::share(precision.median),
            show::share(precision.worst)
        ));
    }
    if !command.is_empty() {
        document.code(command);
    }
    found(&mut document, validation);
    document
}

/// What a validation found, without how it was made: totals, errors by target and by call type, rankings,
/// distributions.
pub fn found(document: &mut Document, validation: &Validation) {
    document.heading("Totals").table(cells(validation)).plot(scatter(validation));
    document.heading("By target").table(targets(validation)).table(calibration(validation));
    document.paragraph(model_error(validation));
    if validation.targets.iter().any(|target| !target.drift.is_empty()) {
        document.table(drift(validation));
    }
    document.heading("Beside simpler methods").table(methods(validation)).paragraph(traced(validation));
    document.heading("Rankings").table(pairs(validation));
    document.heading("Where the errors come from").plot(beside(validation)).table(by_op(validation));
    document.plot(distributions(validation));
    if let Some(found) = &validation.contexts {
        document.heading("Which states the errors come from");
        if let Some(costs) = validation.looking_costs {
            document.paragraph(format!(
                "Of replays made for this alone: looking into every call made them {} slower (median), and they are in \
                 no other figure.",
                show::share(costs)
            ));
        }
        document.table(contexts(found));
    }
    let mut seen: Vec<&str> = Vec::new();
    document.heading("Targets");
    for cell in &validation.cells {
        if !seen.contains(&cell.target.as_str()) {
            seen.push(&cell.target);
            let mut table = document::facts("environment", &cell.environment.facts());
            table.name = format!("environment_{}", seen.len());
            table.caption = format!("{}.", cell.target);
            document.table(table);
        }
    }
}

fn cells(validation: &Validation) -> Table {
    let mut table = Table::new(
        "totals",
        "",
        &[
            ("Workload", "workload"),
            ("Target", "target"),
            ("Predicted", "predicted_ns"),
            ("Measured (least to most)", "measured_ns"),
            ("Error", "error"),
            ("Spread", "spread"),
            ("Calls", "calls"),
            ("Unlike the trace", "differences"),
            ("Caches", "cache_state"),
            ("Mostly", "mostly"),
        ],
    );
    for cell in &validation.cells {
        table.row(vec![
            Cell::from(cell.workload.as_str()),
            Cell::from(cell.target.as_str()),
            Cell::NsInterval {
                value: cell.predicted.prediction_ns,
                low: cell.predicted_low_ns,
                high: cell.predicted_high_ns,
            },
            Cell::NsInterval { value: cell.measured_ns, low: cell.measured_min_ns, high: cell.measured_max_ns },
            Cell::SignedShare(cell.error),
            Cell::Share(cell.spread),
            Cell::Count(cell.measured_calls),
            Cell::Count(cell.differences),
            Cell::from(state(cell.cache_state)),
            Cell::from(mostly(cell)),
        ]);
    }
    table
}

/// Errors of which is said what they mostly are of.
const TELLING_ERROR: f64 = 0.1;

/// The call type that adds most to a cell's error, and how much.
fn mostly(cell: &crate::compare::Cell) -> String {
    let same_way = |op: &&OpComparison| op.error_of_total * cell.error > 0.0;
    let most =
        cell.per_op.iter().filter(same_way).max_by(|a, b| a.error_of_total.abs().total_cmp(&b.error_of_total.abs()));
    match most {
        Some(op) if cell.error.abs() > TELLING_ERROR => {
            format!("{} {}", op.op, show::signed_share(op.error_of_total))
        }
        _ => String::new(),
    }
}

fn state(state: CacheState) -> &'static str {
    match state {
        CacheState::Cold => "cold",
        CacheState::Warm => "warm",
        CacheState::Unverified => "unverified",
    }
}

fn targets(validation: &Validation) -> Table {
    let mut table = Table::new(
        "targets",
        "Sizes of the prediction's errors; how often the measured time is inside the 95 % interval; and the noise: the \
         median over the workloads of the replays' spread.",
        &[
            ("Target", "target"),
            ("Workloads", "cells"),
            ("Median error", "median_error"),
            ("90th percentile", "p90_error"),
            ("Worst", "worst_error"),
            ("Bias (median)", "bias"),
            ("Inside the interval", "inside_interval"),
            ("Noise", "spread"),
        ],
    );
    for target in &validation.targets {
        table.row(vec![
            Cell::from(if target.target.is_empty() { "all" } else { target.target.as_str() }),
            Cell::Count(target.cells),
            Cell::Share(target.median_error),
            Cell::Share(target.p90_error),
            Cell::Share(target.worst_error),
            Cell::SignedShare(target.bias),
            Cell::Share(target.inside_interval),
            Cell::Share(target.spread),
        ]);
    }
    table
}

fn calibration(validation: &Validation) -> Table {
    let mut table = Table::new(
        "calibration",
        "Calibration: the share of measured times inside the prediction's intervals of each level. Levels other than \
         95 % are those of the log-normal distribution with the same 95 % interval.",
        &[("Level", "level"), ("Inside", "inside")],
    );
    for at in &validation.calibration {
        table.row(vec![Cell::Share(at.level), Cell::Share(at.inside)]);
    }
    table
}

fn model_error(validation: &Validation) -> String {
    let Some(found) = validation.model_error else { return String::new() };
    let mut said =
        format!("The errors of totals as found: root mean square of ln(predicted / measured) {:.3}", found.sd);
    if let Some(share) = found.common_share {
        said += &format!(", {:.0} % of its square common to the targets of one workload", 100.0 * share);
    }
    said += &format!(
        ". Intervals are as wide as if the model's error were {:.2}, {:.0} % of its variance common.",
        predict::uncertainty::MODEL_ERROR_SD,
        100.0 * predict::uncertainty::MODEL_ERROR_COMMON_SHARE
    );
    said
}

fn drift(validation: &Validation) -> Table {
    let mut table = Table::new(
        "drift",
        "How far the targets had moved from their profiles just before the replays: the profile's references, measured \
         again; how many times as long they took.",
        &[("Target", "target"), ("Reference", "reference"), ("Median", "median"), ("Least", "least"), ("Most", "most")],
    );
    for target in validation.targets.iter().filter(|target| !target.target.is_empty()) {
        for moved in &target.drift {
            table.row(vec![
                Cell::from(target.target.as_str()),
                Cell::from(moved.reference.name()),
                Cell::Ratio(moved.median),
                Cell::Ratio(moved.least),
                Cell::Ratio(moved.most),
            ]);
        }
    }
    table
}

fn methods(validation: &Validation) -> Table {
    let mut table = Table::new(
        "methods",
        "Errors over all cells; rankings over the pairs that the replays tell apart. Regret: how much longer the \
         workloads take on the target that the method says is fastest than on the fastest, on average. Kendall's tau \
         of each workload's targets, on average, pairs that the replays do not tell apart among them.",
        &[
            ("Method", "method"),
            ("Cells", "cells"),
            ("Median error", "median_error"),
            ("Mean", "mean_error"),
            ("RMS", "rms_error"),
            ("Bias", "bias"),
            ("Correlation", "correlation"),
            ("Of logarithms", "correlation_log"),
            ("Regret", "mean_regret"),
            ("Kendall's tau", "kendall_tau"),
            ("Ranked right", "ranked_right"),
            ("Pairs", "pairs"),
            ("Ties", "ties"),
        ],
    );
    for method in &validation.methods {
        let share = |share: Option<f64>| share.map_or(Cell::Empty, Cell::Share);
        let number = |number: Option<f64>| number.map_or(Cell::Empty, Cell::Number);
        table.row(vec![
            Cell::from(method.method.as_str()),
            Cell::Count(method.cells),
            share(method.median_error),
            share(method.mean_error),
            share(method.rms_error),
            method.bias.map_or(Cell::Empty, Cell::SignedShare),
            number(method.correlation),
            number(method.correlation_log),
            share(method.mean_regret),
            number(method.kendall_tau),
            share(method.ranking.share_right()),
            Cell::Count(method.ranking.decided),
            Cell::Count(method.ranking.ties),
        ]);
    }
    table
}

/// What "same as traced" is worth, by workload.
fn traced(validation: &Validation) -> String {
    let named = |durations: Durations| {
        let mut names: Vec<&str> = Vec::new();
        for cell in validation.cells.iter().filter(|cell| cell.predicted.traced == durations) {
            if !names.contains(&cell.workload.as_str()) {
                names.push(&cell.workload);
            }
        }
        names.join(", ")
    };
    let mut said = Vec::new();
    for (durations, what) in [
        (Durations::InKernel, "is an honest baseline, its durations taken in the kernel"),
        (Durations::Inflated, "is inflated by tracing: no honest baseline"),
        (Durations::None, "says nothing, its trace having no durations"),
    ] {
        let names = named(durations);
        if !names.is_empty() {
            said.push(format!("Same as traced, of {names}, {what}."));
        }
    }
    said.join(" ")
}

fn pairs(validation: &Validation) -> Table {
    let mut table = Table::new(
        "pairs",
        "",
        &[
            ("Workload", "workload"),
            ("Faster, as measured", "faster"),
            ("Slower", "slower"),
            ("Measured", "measured_ratio"),
            ("Predicted", "predicted_ratio"),
            ("Ranked", "verdict"),
        ],
    );
    for pair in &validation.pairs {
        let verdict = match pair.verdict {
            PairVerdict::Right => "right",
            PairVerdict::Wrong => "wrong",
            PairVerdict::Tie => "a tie by noise",
        };
        table.row(vec![
            Cell::from(pair.workload.as_str()),
            Cell::from(pair.faster.as_str()),
            Cell::from(pair.slower.as_str()),
            Cell::Ratio(pair.measured_ratio),
            Cell::Ratio(pair.predicted_ratio),
            Cell::from(verdict),
        ]);
    }
    table
}

fn by_op(validation: &Validation) -> Table {
    let caption =
        "Of each cell the call types with the greatest errors; the last column is what they add to the cell's error.";
    let mut table = Table::new(
        "by_op",
        caption,
        &[
            ("Workload", "workload"),
            ("Target", "target"),
            ("Call", "call"),
            ("Calls", "calls"),
            ("Predicted", "predicted_ns"),
            ("Measured", "measured_ns"),
            ("Of the total", "error_of_total"),
        ],
    );
    for cell in &validation.cells {
        for op in cell.per_op.iter().take(OPS) {
            table.row(vec![
                Cell::from(cell.workload.as_str()),
                Cell::from(cell.target.as_str()),
                Cell::from(op.op.as_str()),
                Cell::Count(op.measured_calls.max(op.predicted_calls)),
                Cell::Ns(op.predicted_ns),
                Cell::Ns(op.measured_ns),
                Cell::SignedShare(op.error_of_total),
            ]);
        }
    }
    table
}

/// Contexts shown, the greatest errors first.
const CONTEXTS: usize = 20;

fn contexts(found: &[Context]) -> Table {
    let mut table = Table::new(
        "contexts",
        "Found by a regression tree over the residuals of all replays made; each call is in one row. The share is that \
         of the sizes of all rows' errors, those not shown among them.",
        &[
            ("State", "state"),
            ("Calls", "calls"),
            ("Predicted", "predicted_ns"),
            ("Measured", "measured_ns"),
            ("Error", "error"),
            ("Of the errors", "share"),
            ("Mostly", "entries"),
        ],
    );
    for context in found.iter().take(CONTEXTS) {
        let state = if context.conditions.is_empty() { "any".to_owned() } else { context.conditions.join("; ") };
        let error = if context.measured_ns > 0.0 { context.error_ns / context.measured_ns } else { f64::INFINITY };
        let entries: Vec<&str> = context.entries.iter().map(|(name, _)| name.as_str()).collect();
        table.row(vec![
            Cell::from(state.as_str()),
            Cell::Count(context.calls),
            Cell::Ns(context.predicted_ns),
            Cell::Ns(context.measured_ns),
            if error.is_finite() { Cell::SignedShare(error) } else { Cell::Empty },
            Cell::Share(context.share),
            Cell::from(entries.join(", ").as_str()),
        ]);
    }
    table
}

fn scatter(validation: &Validation) -> document::Plot {
    let points: Vec<Point<'_>> = validation
        .cells
        .iter()
        .map(|cell| Point {
            workload: &cell.workload,
            target: &cell.target,
            measured_s: cell.measured_ns / 1e9,
            low_s: cell.measured_min_ns / 1e9,
            high_s: cell.measured_max_ns / 1e9,
            predicted_s: cell.predicted.prediction_ns / 1e9,
        })
        .collect();
    agreement("Predicted against measured; on the line they agree. Bars span the replays.", &points)
}
