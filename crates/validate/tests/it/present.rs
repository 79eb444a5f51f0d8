//! What reports of validations draw.

use document::{Document, Plot};
use serde_json::{Value, json};
use validate::{Cell as Compared, OpComparison, Predicted, Validation, compare};

fn plot<'d>(document: &'d Document, title: &str) -> &'d Plot {
    document.plots().find(|plot| plot.title.starts_with(title)).expect(title)
}

fn rows(spec: &Value) -> &[Value] {
    spec["data"]["values"].as_array().expect("a plot has values")
}

fn compared(workload: &str, target: &str, ops: &[(&str, f64, f64)]) -> Compared {
    let sum = |of: fn(&(&str, f64, f64)) -> f64| ops.iter().map(of).sum::<f64>();
    let (prediction_ns, measured_ns) = (sum(|op| op.1), sum(|op| op.2));
    let per_op = ops.iter().map(|&(op, predicted_ns, measured_ns)| OpComparison {
        op: op.into(),
        predicted_calls: 1,
        measured_calls: 1,
        predicted_ns,
        measured_ns,
        error_ns: predicted_ns - measured_ns,
        error_of_total: (predicted_ns - measured_ns) / sum(|op| op.2),
        predicted_quantiles_ns: vec![0.0; 10],
        measured_quantiles_ns: vec![measured_ns; 10],
    });
    Compared {
        workload: workload.into(),
        target: target.into(),
        predicted: Predicted { prediction_ns, ..Predicted::default() },
        predicted_low_ns: prediction_ns,
        predicted_high_ns: prediction_ns,
        measured_all_ns: vec![measured_ns],
        measured_ns,
        measured_min_ns: measured_ns,
        measured_max_ns: measured_ns,
        measured_low_ns: measured_ns,
        measured_high_ns: measured_ns,
        spread: 0.0,
        error_ns: prediction_ns - measured_ns,
        error: prediction_ns / measured_ns - 1.0,
        predicted_calls: 1,
        measured_calls: 1,
        per_op: per_op.collect(),
        final_sync_ns: 0.0,
        differences: 0,
        cache_state: posix::CacheState::Unverified,
        threads: 1,
        environment: posix::Environment::default(),
        warnings: Vec::new(),
        drift: None,
    }
}

fn validated() -> Validation {
    let mut cells = vec![compared("bad", "t", &[("read", 3e9, 1e9), ("open", 1e9, 1e9)])];
    for i in 0..14 {
        let ops: Vec<(String, f64, f64)> =
            (0..12).map(|op| (format!("op{op}"), 1e6, 1e6 * (1.0 + f64::from(i) / 100.0))).collect();
        let ops: Vec<(&str, f64, f64)> = ops.iter().map(|(op, p, m)| (op.as_str(), *p, *m)).collect();
        cells.push(compared(&format!("w{i}"), "t", &ops));
    }
    compare(cells, None, 1)
}

#[test]
fn predicted_lies_beside_measured_for_the_greatest_errors() {
    let validation = validated();
    let document = validate::present::validation("v", "", &validation);
    let plot = plot(&document, "Predicted beside measured");
    let spec = &plot.spec;
    assert!(plot.title.contains("the 12 greatest errors"), "{}", plot.title);
    let titles = spec["facet"]["sort"].as_array().unwrap();
    assert_eq!((titles.len(), &titles[0]), (12, &json!("+100.0 %: bad on t (4.00 s for 2.00 s)")));
    assert!(!titles.iter().any(|title| title.as_str().unwrap().contains("w0 on")), "no error at all");
    // What is drawn of a cell is all of it: the shares of the measured bar sum to 1, those of the predicted one to 1
    // and the error.
    for (kind, whole) in [("measured", 1.0), ("predicted", 2.0)] {
        let of = rows(spec).iter().filter(|row| row["cell"] == titles[0] && row["kind"] == kind);
        let sum: f64 = of.map(|row| row["share"].as_f64().unwrap()).sum();
        assert!((sum - whole).abs() < 1e-9, "{kind}: {sum}");
    }
    let w13 = |row: &&Value| row["cell"].as_str().unwrap().contains("w13 on") && row["kind"] == "measured";
    let sum: f64 = rows(spec).iter().filter(w13).map(|row| row["share"].as_f64().unwrap()).sum();
    assert!((sum - 1.0).abs() < 1e-9, "the others are in it: {sum}");
    let calls = spec["spec"]["encoding"]["color"]["scale"]["domain"].as_array().unwrap();
    assert_eq!((calls.len(), &calls[0], &calls[9]), (10, &json!("read"), &json!("others")));
}

#[test]
fn distributions_of_every_workload_are_there() {
    let document = validate::present::validation("v", "", &validated());
    let spec = &plot(&document, "Latencies of single calls").spec;
    let workloads = spec["params"][0]["bind"]["options"].as_array().unwrap();
    assert_eq!(workloads.len(), 15);
    for workload in workloads {
        let of: Vec<&Value> = rows(spec).iter().filter(|row| row["workload"] == *workload).collect();
        // All calls together, and five call types at most.
        let panels = if workload == "bad" { 1 + 2 } else { 1 + 5 };
        assert_eq!(of.len(), 2 * panels, "{workload}: predicted and measured in {panels} panels");
    }
    assert_eq!(spec["spec"]["encoding"]["x"]["scale"]["type"], "log");
    let lowest = rows(spec).iter().flat_map(|row| row["us"].as_array().unwrap()).map(|us| us.as_f64().unwrap());
    assert_eq!(lowest.fold(f64::MAX, f64::min), 0.001, "what took no time still has a place on a logarithmic axis");
}
