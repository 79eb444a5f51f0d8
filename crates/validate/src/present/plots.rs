//! Predicted beside measured: by call type in the cells with the greatest errors, and the latencies of single calls.

use crate::{Cell, OpComparison, Validation};
use document::Plot;
use document::plot::{SCHEMA, WIDTH, palette};
use serde_json::{Value, json};
use units::show;

/// Cells shown beside each other, those with the greatest errors.
const CELLS: usize = 12;

/// Call types with a colour of their own; the last colour is for the others.
const COLOURS: usize = 9;

/// Call types of a workload whose distributions are shown, those that take the most time.
const PANELS: usize = 5;

type Kind = (&'static str, fn(&OpComparison) -> &[f64], fn(&OpComparison) -> u64);

/// What is compared: its name, the quantiles of a call type's latencies, and how many calls they are of.
const KINDS: [Kind; 2] = [
    ("predicted", |op| &op.predicted_quantiles_ns, |op| op.predicted_calls),
    ("measured", |op| &op.measured_quantiles_ns, |op| op.measured_calls),
];

/// Points of a distribution of all calls.
const POINTS: usize = 60;

/// Microseconds on a logarithmic axis, in units of time; ticks without a label stay so.
const LATENCY_LABEL: &str = "!datum.label ? '' : datum.value >= 1e6 ? datum.value / 1e6 + ' s' : datum.value >= 1e3 ? \
                             datum.value / 1e3 + ' ms' : datum.value >= 1 ? datum.value + ' µs' : round(1e3 * \
                             datum.value) + ' ns'";

/// Width and height of one of several panels, pixels.
const PANEL: (u32, u32) = (285, 200);

/// Stacked bars, predicted over measured, of the cells with the greatest errors. Cells take from milliseconds to hours,
/// so that each is drawn over its own measured time.
pub(crate) fn beside(validation: &Validation) -> Plot {
    let mut cells: Vec<&Cell> = validation.cells.iter().filter(|cell| cell.measured_ns > 0.0).collect();
    cells.sort_by(|a, b| b.error.abs().total_cmp(&a.error.abs()));
    cells.truncate(CELLS);
    let ops = call_types(&cells);
    let (coloured, rest) = ops.split_at(ops.len().min(COLOURS));
    let mut order: Vec<&str> = coloured.to_vec();
    if !rest.is_empty() {
        order.push("others");
    }
    let titles: Vec<String> = cells.iter().map(|cell| title(cell)).collect();
    let mut rows = Vec::new();
    for (cell, title) in cells.iter().zip(&titles) {
        for (rank, part) in order.iter().enumerate() {
            let of_part = |op: &str| if rank < coloured.len() { op == *part } else { rest.contains(&op) };
            let ops = || cell.per_op.iter().filter(|op| of_part(&op.op));
            let (predicted_ns, measured_ns): (f64, f64) =
                (ops().map(|op| op.predicted_ns).sum(), ops().map(|op| op.measured_ns).sum());
            for (kind, ns) in [("predicted", predicted_ns), ("measured", measured_ns)] {
                if ns > 0.0 {
                    rows.push(
                        json!({ "cell": title, "kind": kind, "call": part, "rank": rank, "share": ns / cell.measured_ns,
                                      "time": show::duration_ns(ns) }),
                    );
                }
            }
        }
    }
    let tooltip = json!([
        { "field": "cell", "type": "nominal", "title": "cell" },
        { "field": "kind", "type": "nominal", "title": "which" },
        { "field": "call", "type": "nominal", "title": "call" },
        { "field": "time", "type": "nominal", "title": "time" },
        { "field": "share", "type": "quantitative", "title": "of the measured total", "format": ".1%" },
    ]);
    let spec = json!({
        "$schema": SCHEMA,
        "data": { "values": rows },
        "facet": { "field": "cell", "type": "nominal", "sort": titles, "title": null,
            "header": { "labelAnchor": "start" } },
        "columns": 1,
        "spacing": 6,
        "spec": {
            "width": WIDTH,
            "height": { "step": 17 },
            "mark": { "type": "bar", "height": { "band": 0.85 } },
            "encoding": {
                "y": { "field": "kind", "type": "nominal", "sort": ["predicted", "measured"], "title": null,
                       "axis": { "ticks": false, "domain": false } },
                "x": { "field": "share", "type": "quantitative", "title": "share of the measured \
                    total", "axis": { "format": "%" } },
                "color": { "field": "call", "type": "nominal", "title": null, "sort": order,
                           "scale": { "domain": order, "range": palette() } },
                "order": { "field": "rank", "type": "ordinal" },
                "tooltip": tooltip,
            },
        },
    });
    let which = if validation.cells.len() > cells.len() {
        format!("the {} greatest errors", cells.len())
    } else {
        "all cells".to_owned()
    };
    Plot {
        title: format!(
            "Predicted beside measured by call type: {which}, the greatest first. Each call type is the median over \
             the replays, as is the total, so that a measured bar may end beside 100 %."
        ),
        spec,
    }
}

/// The error first: in a narrow window the end is cut off.
fn title(cell: &Cell) -> String {
    let (predicted, measured) = (show::duration_ns(cell.predicted.prediction_ns), show::duration_ns(cell.measured_ns));
    let error = show::signed_share(cell.error);
    units::text::printable(&format!("{error}: {} on {} ({predicted} for {measured})", cell.workload, cell.target))
}

/// Call types of some cells, those that take the greatest share of any of them first.
fn call_types<'a>(cells: &[&'a Cell]) -> Vec<&'a str> {
    let mut ops: Vec<(&str, f64)> = Vec::new();
    for cell in cells {
        for op in &cell.per_op {
            let share = op.predicted_ns.max(op.measured_ns) / cell.measured_ns;
            match ops.iter_mut().find(|(name, _)| *name == op.op) {
                Some((_, most)) => *most = most.max(share),
                None => ops.push((&op.op, share)),
            }
        }
    }
    ops.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(b.0)));
    ops.into_iter().map(|(op, _)| op).collect()
}

/// Distributions of the latencies of single calls, predicted and measured, of all calls and of the call types that take
/// the most time in each workload: one workload at a time, a panel for each call type, a colour for each target.
pub(crate) fn distributions(validation: &Validation) -> Plot {
    let mut workloads: Vec<&str> = Vec::new();
    let mut targets: Vec<&str> = Vec::new();
    for cell in &validation.cells {
        for (names, name) in [(&mut workloads, &cell.workload), (&mut targets, &cell.target)] {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
    }
    let mut rows = Vec::new();
    for workload in &workloads {
        let cells: Vec<&Cell> = validation.cells.iter().filter(|cell| cell.workload == *workload).collect();
        let longest = longest(&cells);
        let mut add = |rank: usize, panel: &str, target: &str, kind: &str, points: Vec<(f64, f64)>| {
            if !points.is_empty() {
                // A logarithmic axis has no zero.
                let [half, most] = [0.5, 0.99].map(|share| at_most(&points, share));
                let us: Vec<f64> = points.iter().map(|(ns, _)| ns.max(1.0).round() / 1e3).collect();
                let share: Vec<f64> = points.iter().map(|(_, share)| *share).collect();
                rows.push(json!({ "workload": workload, "panel": panel, "rank": rank, "target": target, "kind": kind,
                    "us": us,
                                  "share": share, "half": half, "most": most }));
            }
        };
        for cell in &cells {
            for (kind, latencies, calls) in KINDS {
                let known = cell.per_op.iter().filter(|op| !latencies(op).is_empty());
                let parts: Vec<(u64, &[f64])> = known.map(|op| (calls(op), latencies(op))).collect();
                add(0, "all calls", &cell.target, kind, mixed(&parts, &validation.quantiles));
            }
            for (rank, (op, share)) in longest.iter().take(PANELS).enumerate() {
                let panel = format!("{op}: up to {} of the time", show::share(*share));
                for found in cell.per_op.iter().filter(|found| found.op == *op) {
                    for (kind, latencies, _) in KINDS {
                        let points = latencies(found).iter().copied().zip(validation.quantiles.iter().copied());
                        add(rank + 1, &panel, &cell.target, kind, points.collect());
                    }
                }
            }
        }
    }
    let line = json!({ "type": "line", "strokeWidth": 1.8 });
    // A line is one mark: what is said of it is of all its points.
    let words = [
        ("panel", "calls"),
        ("target", "target"),
        ("kind", "which"),
        ("half", "half take at most"),
        ("most", "99 % take at most"),
    ];
    let tooltip = words.map(|(field, title)| json!({ "field": field, "type": "nominal", "title": title }));
    let mut transform: Vec<Value> = vec![json!({ "flatten": ["us", "share"] })];
    let mut params = Vec::new();
    if let [first, _, ..] = workloads.as_slice() {
        params.push(json!({ "name": "workload", "value": first,
                            "bind": { "input": "select", "options": workloads, "name": "Workload" } }));
        transform.insert(0, json!({ "filter": "datum.workload === workload" }));
    }
    let spec = json!({
        "$schema": SCHEMA,
        "params": params,
        "data": { "values": rows },
        "transform": transform,
        "facet": { "field": "panel", "type": "nominal", "sort": { "field": "rank", "op": "min" }, "title": null },
        "columns": 3,
        "resolve": { "axis": { "x": "independent" } },
        "spec": {
            "width": PANEL.0,
            "height": PANEL.1,
            "mark": line,
            "encoding": {
                "x": { "field": "us", "type": "quantitative", "title": "latency", "scale": { "type": "log" },
                       "axis": { "tickCount": 5, "labelExpr": LATENCY_LABEL, "labelFlush": false } },
                "y": { "field": "share", "type": "quantitative", "title": "share of calls",
                    "scale": { "domain": [0, 1] },
                       "axis": { "format": ".0%", "tickCount": 5 } },
                "order": { "field": "share", "type": "quantitative" },
                "color": { "field": "target", "type": "nominal", "title": null, "sort": targets,
                           "scale": { "domain": targets, "range": palette() } },
                "strokeDash": { "field": "kind", "type": "nominal", "title": null, "sort": ["measured", "predicted"],
                                "scale": { "domain": ["measured", "predicted"], "range": [[1, 0], [5, 3]] },
                                "legend": { "symbolType": "stroke" } },
                "tooltip": tooltip,
            },
        },
    });
    let title = "Latencies of single calls: share of calls at most so long, predicted and measured, of all calls and \
        of the call types that take the most time.";
    Plot { title: title.to_owned(), spec }
}

/// How long so great a share of calls takes at most, in words.
fn at_most(points: &[(f64, f64)], share: f64) -> String {
    let reached = points.iter().find(|point| point.1 >= share).or(points.last());
    reached.map_or(String::new(), |(ns, _)| show::duration_ns(*ns))
}

/// Call types by their greatest share of the measured time of any of the cells.
fn longest<'a>(cells: &[&'a Cell]) -> Vec<(&'a str, f64)> {
    let mut ops: Vec<(&str, f64)> = Vec::new();
    for cell in cells.iter().filter(|cell| cell.measured_ns > 0.0) {
        for op in cell.per_op.iter().filter(|op| !op.measured_quantiles_ns.is_empty() && op.measured_ns > 0.0) {
            let share = op.measured_ns / cell.measured_ns;
            match ops.iter_mut().find(|(name, _)| *name == op.op) {
                Some((_, most)) => *most = most.max(share),
                None => ops.push((&op.op, share)),
            }
        }
    }
    ops.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(b.0)));
    ops
}

/// The distribution of calls of several types together, as (latency, share of calls at most so long): of each type
/// there are so many, and these are the latencies at `quantiles`. Between two quantiles the logarithm of the latency is
/// taken to be evenly spread.
fn mixed(parts: &[(u64, &[f64])], quantiles: &[f64]) -> Vec<(f64, f64)> {
    let calls: u64 = parts.iter().map(|(calls, _)| calls).sum();
    let mut at: Vec<f64> =
        parts.iter().filter(|(calls, _)| *calls > 0).flat_map(|(_, ns)| ns.iter().copied()).collect();
    at.sort_by(f64::total_cmp);
    at.dedup();
    if calls == 0 || at.is_empty() {
        return Vec::new();
    }
    let step = (at.len() - 1) as f64 / (POINTS.min(at.len()) - 1).max(1) as f64;
    let thinned = (0..POINTS.min(at.len())).filter_map(|i| at.get((i as f64 * step).round() as usize).copied());
    thinned
        .map(|ns| {
            let below: f64 =
                parts.iter().map(|(calls, latencies)| *calls as f64 * share_below(ns, latencies, quantiles)).sum();
            (ns, below / calls as f64)
        })
        .collect()
}

/// The share of calls that are at most so long.
fn share_below(ns: f64, latencies: &[f64], quantiles: &[f64]) -> f64 {
    let above = latencies.partition_point(|latency| *latency <= ns);
    let point = |i: usize| Some((*latencies.get(i)?, *quantiles.get(i)?));
    match (above.checked_sub(1).and_then(point), point(above)) {
        (None, _) => 0.0,
        (Some(_), None) => 1.0,
        (Some((low_ns, low)), Some((high_ns, high))) => {
            let (low_ns, high_ns) = (low_ns.max(1.0), high_ns.max(1.0));
            let span = (high_ns / low_ns).ln();
            let along = if span > 0.0 { (ns.max(1.0) / low_ns).ln() / span } else { 0.0 };
            low + along * (high - low)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_how_long_half_and_nearly_all_of_its_calls_take() {
        let points = [(10.0, 0.2), (2_000.0, 0.6), (3e6, 0.99)];
        assert_eq!([0.5, 0.99].map(|share| at_most(&points, share)), ["2.00 µs", "3.00 ms"].map(str::to_owned));
    }

    #[test]
    fn calls_of_two_types_lie_where_each_does() {
        let quantiles = [0.01, 0.5, 0.999];
        let (short, long) = ([10.0, 100.0, 1000.0], [1e6, 1e7, 1e8]);
        let points = mixed(&[(3, &short), (1, &long)], &quantiles);
        assert!(points.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1), "{points:?}");
        let at = |ns: f64| points.iter().find(|point| point.0 == ns).unwrap().1;
        // Half of three quarters; all of them and half of the quarter; all.
        assert_eq!((at(100.0), at(1e7), at(1e8)), (0.375, 0.875, 1.0));
        // Half way between two quantiles, in the logarithm.
        assert!((share_below(1e3f64.sqrt(), &short, &quantiles) - 0.255).abs() < 1e-12);
        assert!(mixed(&[(0, &short)], &quantiles).is_empty());
        let many: Vec<f64> = (1..500).map(f64::from).collect();
        let shares: Vec<f64> = many.iter().map(|i| i / 500.0).collect();
        let points = mixed(&[(1, &many)], &shares);
        assert_eq!((points.len(), points[0].0, points[POINTS - 1]), (POINTS, 1.0, (499.0, 1.0)));
    }
}
