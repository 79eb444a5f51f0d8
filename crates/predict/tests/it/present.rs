//! What reports of predictions draw.

use document::{Block, Cell, Document, Plot};
use predict::cache_sizes::{CacheSize, WithCache};
use predict::explain::explain;
use predict::pipeline::{CacheTimeline, EntryShare, OpTotal, Prediction, SystemPrediction};
use predict::rank::rank;
use predict::runtime::{Basis, RunTimes};
use predict::uncertainty::Interval;
use serde_json::{Value, json};

fn plot<'d>(document: &'d Document, title: &str) -> &'d Plot {
    document.plots().find(|plot| plot.title.starts_with(title)).expect(title)
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
    predict::present::prediction("w", &prediction, &ranking, None, None, &[], sizes)
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

fn text(systems: Vec<SystemPrediction>, explained: bool) -> String {
    let prediction = Prediction { systems, ..Prediction::default() };
    let ranking = rank(&prediction.systems, 1);
    let explanation = explained.then(|| explain(&prediction.systems[0], &prediction.systems[1]));
    predict::present::prediction("w", &prediction, &ranking, None, explanation.as_ref(), &[], &[]).to_text(None)
}

fn with_ops(name: &str, ops: &[(&str, f64)]) -> SystemPrediction {
    let by_op = ops.iter().map(|&(op, ns)| OpTotal { op: op.into(), calls: 10, ns, ..OpTotal::default() });
    let total_ns = ops.iter().map(|(_, ns)| ns).sum();
    SystemPrediction { system: name.into(), total_ns, by_op: by_op.collect(), ..SystemPrediction::default() }
}

/// "The program's 1 threads compute, call and wait for each other".
#[test]
fn one_thread_is_one() {
    let prediction = Prediction { systems: vec![predicted("a", 1e9)], ..Prediction::default() };
    let ranking = rank(&prediction.systems, 1);
    let said = |threads, processors, calls| {
        let basis = Basis { threads, processors, calls, ..Basis::default() };
        let times = RunTimes::Known { basis, systems: Vec::new() };
        predict::present::prediction("w", &prediction, &ranking, Some(&times), None, &[], &[]).to_text(None)
    };
    let one = said(1, 1, 1);
    assert!(
        one.contains("The program's 1 thread computes and calls again, on 1 processor: 1 call is priced;"),
        "{one}"
    );
    let several = said(1234, 2, 5);
    let text =
        "The program's 1,234 threads compute, call and wait for each other again, on 2 processors: 5 calls are priced;";
    assert!(several.contains(text), "{several}");
}

/// No replay reads through a mapping: a total that does was compared with one that does not.
#[test]
fn what_no_replay_makes_is_said_beside_the_totals() {
    let mapped = |name: &str, ns| with_ops(name, &[("open", 3e9), ("map_read", ns), ("map_write", 1e9)]);
    let said = text(vec![mapped("a", 2e9), mapped("b", 1e9)], false);
    let line = said.lines().find(|line| line.contains("mapped files")).expect("a line about mapped files");
    assert!(line.contains("2.00 s on b, 3.00 s on a") && line.contains("A replay does not make them"), "{line}");
    assert!(!text(vec![with_ops("a", &[("open", 3e9)])], false).contains("mapped files"));
}

/// It was +300 % and -200 % of the difference of the totals.
#[test]
fn shares_of_a_difference_are_of_all_that_differs() {
    let (a, b) = ([("read", 1e9), ("open", 4e9)], [("read", 4e9), ("open", 2e9)]);
    let said = text(vec![with_ops("a", &a), with_ops("b", &b)], true);
    let row =
        |op: &str| said.lines().rfind(|line| line.trim_start().starts_with(op)).expect("a row").split_whitespace();
    let has =
        |op: &str, wanted: &[&str]| row(op).collect::<Vec<_>>().windows(wanted.len()).any(|words| words == wanted);
    assert!(has("read", &["3.00", "s", "+60.0", "%"]), "{said}");
    assert!(has("open", &["-2.00", "s", "-40.0", "%"]), "{said}");
}

/// The marks and the sentence below them are about the same pairs.
#[test]
fn places_that_are_tied_are_marked_with_the_place_that_they_share() {
    let priced = |name: &str, ns: f64| {
        let rounds_ns = vec![ns; 6];
        let open = EntryShare { entry: "open".into(), weight: 1.0, mean_ns: ns, ns, rounds_ns, interval_ns: (ns, ns) };
        SystemPrediction { by_entry: vec![open], ..predicted(name, ns) }
    };
    let said = text(vec![priced("a", 1e9), priced("b", 1.01e9), priced("c", 9e9), priced("d", 9.1e9)], false);
    assert!(said.contains("Cannot be told apart: a and b; c and d."), "{said}");
    for place in ["  1     a ", "  = 1   b ", "  3     c ", "  = 3   d "] {
        assert!(said.lines().any(|line| line.starts_with(place)), "{place}: {said}");
    }
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
