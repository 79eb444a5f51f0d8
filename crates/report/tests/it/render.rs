//! One document in every medium.

use document::{Block, Cell, Document, Plot};
use predict::cache_sizes::{CacheSize, WithCache};
use predict::pipeline::{CacheTimeline, Prediction, SystemPrediction};
use predict::rank::rank;
use predict::uncertainty::Interval;
use serde_json::{Value, json};
use validate::{Cell as Compared, OpComparison, Predicted, Validation, compare};

/// The plot of a report whose title begins so.
fn plot<'d>(document: &'d Document, title: &str) -> &'d Plot {
    let plots = document.blocks.iter().filter_map(|block| match block {
        Block::Plot(plot) => Some(plot),
        _ => None,
    });
    let found: Vec<&Plot> = plots.filter(|plot| plot.title.starts_with(title)).collect();
    assert_eq!(found.len(), 1, "{title}");
    found[0]
}

fn rows(spec: &Value) -> &[Value] {
    spec["data"]["values"].as_array().expect("a plot has values")
}

fn predicted(name: &str, total_ns: f64) -> SystemPrediction {
    SystemPrediction {
        system: name.into(),
        total_ns,
        data_cache_bytes: 64 << 20,
        cache_timeline: CacheTimeline {
            stretch_ns: 500_000_000,
            page_hits: vec![30, 0, 0],
            page_misses: vec![10, 0, 5],
            dirty_bytes: vec![0, 2 << 20, 1 << 20],
            written_back_bytes: vec![0, 0, 1 << 20],
        },
        ..SystemPrediction::default()
    }
}

fn prediction(systems: Vec<SystemPrediction>, sizes: &[CacheSize]) -> Document {
    let prediction = Prediction { systems, ..Prediction::default() };
    let ranking = rank(&prediction.systems, 1);
    report::prediction("w", &prediction, &ranking, None, None, &[], sizes)
}

#[test]
fn caches_over_time_are_drawn_for_one_system_at_a_time() {
    let mut other = predicted("other", 3e9);
    other.cache_timeline.page_hits[0] += 1;
    let document = prediction(vec![predicted("slow", 2e9), other, predicted("fast", 1e9)], &[]);
    let spec = &plot(&document, "The caches over the time").spec;
    assert_eq!(
        spec["params"][0]["value"], "fast, slow",
        "one view of caches that did the same, in the ranking's order"
    );
    assert_eq!(spec["params"][0]["bind"]["options"], json!(["fast, slow", "other"]));
    let fast: Vec<&Value> = rows(spec).iter().filter(|row| row["system"] == "fast, slow").collect();
    let column = |field: &str| fast.iter().map(|row| row[field].clone()).collect::<Vec<_>>();
    assert_eq!(column("from"), [json!(0.0), json!(0.5), json!(1.0)]);
    assert_eq!(column("share"), [json!(0.75), Value::Null, json!(0.0)], "no reads are no share");
    assert_eq!(column("dirty"), [json!(0.0), json!(2.0), json!(1.0)]);
    assert_eq!(column("written"), [json!(0.0), json!(0.0), json!(1.0)]);

    let idle = SystemPrediction { system: "idle".into(), total_ns: 1.0, ..SystemPrediction::default() };
    let document = prediction(vec![idle], &[]);
    let titled = |block: &Block| matches!(block, Block::Plot(plot) if plot.title.starts_with("The caches"));
    assert!(!document.blocks.iter().any(titled), "nothing happened, so nothing is drawn");
}

#[test]
fn the_slider_goes_over_the_sizes_and_begins_at_the_systems_own() {
    let with = |system: &str, total_ns: f64, page_misses| WithCache {
        system: system.into(),
        total_ns,
        interval: Interval { low_ns: 0.5 * total_ns, high_ns: 2.0 * total_ns },
        page_hits: 10,
        page_misses,
    };
    let size = |mib: u64, ns: f64| CacheSize {
        cache_bytes: mib << 20,
        systems: vec![with("slow", 2.0 * ns, 1234), with("fast", ns, 1000)],
    };
    let sizes = [size(16, 4e9), size(32, 3e9), size(64, 2e9), size(128, 1e9)];
    let document = prediction(vec![predicted("slow", 2e9), predicted("fast", 1e9)], &sizes);
    let spec = &plot(&document, "What if every system's data cache").spec;
    let slider = &spec["params"][0];
    assert_eq!((slider["value"].as_u64(), &slider["bind"]["input"]), (Some(2), &json!("range")));
    assert_eq!(
        (&slider["bind"]["min"], &slider["bind"]["max"], &slider["bind"]["step"]),
        (&json!(0), &json!(3), &json!(1))
    );
    assert_eq!(spec["params"][1]["value"], json!(["16 MiB", "32 MiB", "64 MiB", "128 MiB"]));
    let first = &rows(spec)[0];
    assert_eq!((&first["i"], &first["bytes"], &first["misses"]), (&json!(0), &json!(16 << 20), &json!(1234)));
    assert_eq!((&first["total"], &first["low"], &first["high"]), (&json!(8.0), &json!(4.0), &json!(16.0)));
    assert_eq!(first["said"], json!(["slow", "8.00 s (4.00 to 16.0), 1,234 page misses"]));
    // The axis of the bars stays where it is when the slider moves.
    assert_eq!(spec["vconcat"][0]["layer"][0]["encoding"]["x"]["scale"]["domain"], json!([0, 16.0]));
    let table = document.tables().find(|table| table.name == "cache_sizes").unwrap();
    let keys: Vec<&str> = table.columns.iter().map(|column| column.key.as_str()).collect();
    assert_eq!(keys, ["cache_bytes", "fast_ns", "slow_ns", "fast_page_misses", "slow_page_misses"]);
    assert_eq!((table.rows.len(), &table.rows[0][3], &table.rows[3][4]), (4, &Cell::Count(1000), &Cell::Count(1234)));
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
    let document = report::validation("v", "", &validation);
    let plot = plot(&document, "Predicted beside measured");
    let spec = &plot.spec;
    assert!(plot.title.contains("the 12 greatest errors"), "{}", plot.title);
    let titles = spec["facet"]["sort"].as_array().unwrap();
    assert_eq!((titles.len(), &titles[0]), (12, &json!("+100.0 %: bad on t (4.00 s for 2.00 s)")));
    assert!(!titles.iter().any(|title| title.as_str().unwrap().contains("w0 on")), "no error at all");
    // What is drawn of a cell is all of it: the shares of the measured bar sum to 1, those of the predicted one to 1 and the error.
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
    let document = report::validation("v", "", &validated());
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
