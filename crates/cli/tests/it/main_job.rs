//! Import, inspect, predict, replay: the main job on a small recorded trace, through the binary.

use crate::common;
use crate::common::{fails, fsage, run, small_system, small_workload, succeeds};
use serde_json::Value;
use std::path::Path;
use trace::profile::{Reader, Values, Writer, WriterOptions};

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("standard output is one JSON document")
}

#[test]
fn a_prediction_is_made_ranked_and_reported() {
    let d = tempfile::tempdir().unwrap();
    small_workload(d.path());
    small_system(d.path(), "slow", 20_000.0);
    small_system(d.path(), "fast", 1_000.0);
    let predict = ["predict", "small.workload", "slow.system", "fast.system", "--min-coverage", "0"];
    let text = succeeds(&run(d.path(), &predict));
    let fast = text.find("fast").unwrap();
    let slow = text.find("slow").unwrap();
    assert!(fast < slow, "the faster system comes first:\n{text}");

    let output = run(
        d.path(),
        &[&predict[..], &["--json", "--html", "r.html", "--explain", "slow", "fast", "-o", "out"]].concat(),
    );
    let value = json(&succeeds(&output));
    assert_eq!(value["schema"], "fsage.predict/1");
    assert_eq!(value["seed"], 1);
    assert_eq!(value["ranking"]["systems"][0]["system"], "fast");
    let total = |i: usize| value["prediction"]["systems"][i]["total_ns"].as_f64().unwrap();
    assert!(total(0) > 5.0 * total(1), "{} {}", total(0), total(1));
    assert!(value["explanation"]["by_class"].as_array().is_some_and(|parts| !parts.is_empty()));
    let html = std::fs::read_to_string(d.path().join("r.html")).unwrap();
    assert!(html.contains("vegaEmbed") && html.contains("Ranking"));
    let written = common::names(&d.path().join("out"));
    for file in ["result.json", "report.html", "report.md", "ranking.csv", "by_op.csv"] {
        assert!(written.iter().any(|name| name == file), "{file} is not in {written:?}");
    }
}

#[test]
fn sizes_of_the_cache_stand_in_reports_or_where_asked_for() {
    let d = tempfile::tempdir().unwrap();
    small_workload(d.path());
    small_system(d.path(), "a", 2_000.0);
    let predict = ["predict", "small.workload", "a.system", "--min-coverage", "0", "--json"];
    let with = |more: &[&str]| json(&succeeds(&run(d.path(), &[&predict[..], more].concat())));
    let sizes = |value: &Value| -> Vec<u64> {
        let found = value["cache_sizes"].as_array().into_iter().flatten();
        found.map(|size| size["cache_bytes"].as_u64().unwrap()).collect()
    };
    assert_eq!(sizes(&with(&[])), [0; 0], "nobody asked");
    let asked = with(&["--cache-sizes", "64M,16k"]);
    assert_eq!(sizes(&asked), [16 << 10, 64 << 20]);
    let small = with(&["--cache", "16k"]);
    let total_ns = &small["prediction"]["systems"][0]["total_ns"];
    assert!(total_ns.is_f64() && *total_ns == asked["cache_sizes"][0]["systems"][0]["total_ns"], "what --cache says");
    let reported = with(&["--html", "r.html"]);
    assert_eq!(sizes(&reported), (20..32).map(|power| 1 << power).collect::<Vec<u64>>(), "up to twice its gigabyte");
    assert_eq!(sizes(&with(&["--html", "r.html", "--cache-sizes", "none"])), [0; 0]);
    let refused = run(d.path(), &[&predict[..], &["--cache-sizes", "1"]].concat());
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(refused.status.code() == Some(2) && said.contains("less than a page"), "{said}");
}

#[test]
fn the_same_prediction_has_the_same_bytes() {
    let d = tempfile::tempdir().unwrap();
    small_workload(d.path());
    small_system(d.path(), "a", 2_000.0);
    small_system(d.path(), "b", 2_100.0);
    let args = ["predict", "small.workload", "a.system", "b.system", "--min-coverage", "0", "--json"];
    assert_eq!(succeeds(&run(d.path(), &args)), succeeds(&run(d.path(), &args)));
}

#[test]
fn stages_can_be_written_out_and_read() {
    let d = tempfile::tempdir().unwrap();
    small_workload(d.path());
    small_system(d.path(), "a", 2_000.0);
    let args = ["predict", "small.workload", "a.system", "--min-coverage", "0", "--stages-out", "stages"];
    succeeds(&run(d.path(), &args));
    let stages = common::names(&d.path().join("stages"));
    assert_eq!(stages, ["1-preprocess-a.workload", "2-cache-a.workload", "3-pattern-a.workload", "4-price-a.workload"]);
    let columns = |stage: &str| {
        let value = json(&succeeds(&run(d.path(), &["inspect", &format!("stages/{stage}"), "--rows", "--json"])));
        value["files"][0]["rows"][0].as_object().unwrap().len()
    };
    assert!(columns(&stages[0]) < columns(&stages[1]) && columns(&stages[1]) < columns(&stages[3]));
}

/// Changes the requests of a written stage, as a program of the user's does; without one, that row is left out.
fn change_stage(stage: &Path, change: impl Fn(usize, Option<&str>) -> Option<Option<String>>) {
    let reader = Reader::open(stage).unwrap();
    let mut rows = reader.rows(0, usize::MAX).unwrap();
    let annotations = reader.meta().annotations.clone();
    let at = annotations.iter().position(|a| a.name == "request").unwrap();
    let Values::Utf8(requests) = &rows.annotations[at].1 else { panic!("a request is text") };
    let changed: Vec<_> = requests.iter().enumerate().map(|(row, request)| change(row, request.as_deref())).collect();
    let mut values: Vec<Values> = rows.annotations.into_iter().map(|(_, values)| values).collect();
    let keep = |row: usize| changed[row].is_some();
    for column in &mut values {
        let mut row = 0;
        let mut next = || (keep(row), row += 1).0;
        match column {
            Values::F64(v) => v.retain(|_| next()),
            Values::U64(v) => v.retain(|_| next()),
            Values::Bool(v) => v.retain(|_| next()),
            Values::Utf8(v) => v.retain(|_| next()),
        }
    }
    let mut row = 0;
    rows.batch.events.retain(|_| (keep(row), row += 1).0);
    values[at] = Values::Utf8(changed.into_iter().flatten().collect());
    let options = WriterOptions { overwrite: true, annotations, ..WriterOptions::default() };
    let mut writer = Writer::create(stage, options).unwrap();
    writer.push_annotated(&rows.batch, &values).unwrap();
    writer.finish(reader.meta().clone(), &reader.snapshot().unwrap()).unwrap();
}

#[test]
fn a_stage_of_the_users_own_changes_the_price() {
    let d = tempfile::tempdir().unwrap();
    small_workload(d.path());
    small_system(d.path(), "a", 2_000.0);
    small_system(d.path(), "b", 3_000.0);
    let base = ["predict", "small.workload", "a.system", "b.system", "--min-coverage", "0"];
    succeeds(&run(d.path(), &[&base[..], &["--stages-out", "stages"]].concat()));
    let totals = |more: &[&str]| {
        let value = json(&succeeds(&run(d.path(), &[&base[..], &["--json"], more].concat())));
        [0, 1].map(|i| value["prediction"]["systems"][i]["total_ns"].as_f64().unwrap())
    };
    let stages_in = ["--stages-in", "stages"];
    let plain = totals(&[]);
    assert_eq!(totals(&stages_in), plain, "nothing is changed yet");
    let stage = d.path().join("stages/4-price-a.workload");
    let same = |request: Option<&str>| Some(request.map(str::to_owned));
    let priced = Reader::open(&stage).unwrap().rows(0, usize::MAX).unwrap();
    let Some((_, Values::Utf8(requests))) = priced.annotations.iter().find(|(name, _)| name == "request") else {
        panic!("no requests")
    };
    let first = requests.iter().position(Option::is_some).unwrap();
    let with = |text: &'static str| {
        move |row: usize, request: Option<&str>| {
            if row == first { Some(request.map(|request| format!("{request} + {text}"))) } else { same(request) }
        }
    };
    change_stage(&stage, with("1000 stat"));
    let changed = totals(&stages_in);
    assert!((changed[0] - plain[0] - 1000.0 * 2_000.0).abs() < 1e-3 * plain[0], "{plain:?}, then {changed:?}");
    assert_eq!(changed[1], plain[1], "only the file of the first was changed");
    change_stage(&stage, |_, _| Some(None));
    assert_eq!(totals(&stages_in)[0], 0.0, "no call has a request");
    change_stage(&stage, |row, _| Some((row == first).then(|| "1000 stta".to_owned())));
    let bad = || run(d.path(), &[&base[..], &stages_in].concat());
    fails(&bad(), 4, &["4-price-a.workload", &format!("row {first}"), "stta"]);
    change_stage(&stage, |row, _| (row > 0).then_some(None));
    fails(&bad(), 4, &["4-price-a.workload", "row 0", "keeps every row"]);
    std::fs::remove_dir_all(&stage).unwrap();
    fails(&bad(), 4, &["4-price-a.workload"]);
    let both = run(d.path(), &[&base[..], &stages_in, &["--stages-out", "more"]].concat());
    assert!(common::code(&both) == 2 && common::stderr(&both).contains("cannot be used with"), "one or the other");
}

#[test]
fn what_ifs_change_what_they_say() {
    let d = tempfile::tempdir().unwrap();
    small_workload(d.path());
    small_system(d.path(), "a", 2_000.0);
    let base = ["predict", "small.workload", "a.system", "--min-coverage", "0", "--json"];
    let total = |more: &[&str]| {
        let value = json(&succeeds(&run(d.path(), &[&base[..], more].concat())));
        value["prediction"]["systems"][0]["total_ns"].as_f64().unwrap()
    };
    let plain = total(&[]);
    assert!(total(&["--set", "open=1s"]) > plain + 1e9, "opens cost a second each");
    assert!(total(&["--initial", "warm"]) < plain, "warm caches save misses");
    fails(&run(d.path(), &[&base[..], &["--set", "opne=1s"]].concat()), 2, &["opne", "open"]);
    fails(&run(d.path(), &[&base[..], &["--explain", "a", "z"]].concat()), 2, &["z", "a"]);
}

#[test]
fn too_little_coverage_is_refused_with_what_is_missing() {
    let d = tempfile::tempdir().unwrap();
    small_workload(d.path());
    small_system(d.path(), "a", 2_000.0);
    let output = run(d.path(), &["predict", "small.workload", "a.system", "--min-coverage", "100%"]);
    fails(&output, 1, &["--min-coverage", "not covered"]);
}

#[test]
fn a_replay_leaves_nothing_behind() {
    let d = tempfile::tempdir().unwrap();
    small_workload(d.path());
    let target = d.path().join("target");
    std::fs::create_dir(&target).unwrap();
    let value = json(&succeeds(&run(d.path(), &["replay", "small.workload", "target", "--json"])));
    assert_eq!(value["schema"], "fsage.replay/1");
    assert!(value["calls"].as_u64().unwrap() > 100, "{}", value["calls"]);
    assert!(value["total_ns"].as_u64().unwrap() > 0);
    assert_eq!(value["differences"]["total"], 0, "{}", value["differences"]);
    assert_eq!(common::names(&target), [""; 0], "the target is as it was");
}

#[test]
fn inspection_shows_the_mix_and_the_rows() {
    let d = tempfile::tempdir().unwrap();
    small_workload(d.path());
    let text = succeeds(&run(d.path(), &["inspect", "small.workload"]));
    assert!(text.contains("Mix of calls") && text.contains("fsync"), "{text}");
    let value = json(&succeeds(&run(
        d.path(),
        &["inspect", "small.workload", "--rows", "--from", "3", "--count", "2", "--json"],
    )));
    let rows = value["files"][0]["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[0]["seq"], 3);
    let value = json(&succeeds(&run(d.path(), &["inspect", "small.workload", "--json"])));
    assert!(value["files"][0]["inspection"]["calls"].as_u64().unwrap() > 100);
}

#[test]
fn exports_are_text_that_can_be_read_back() {
    let d = tempfile::tempdir().unwrap();
    small_workload(d.path());
    small_system(d.path(), "a", 2_000.0);
    let csv = succeeds(&run(d.path(), &["export", "small.workload"]));
    assert!(csv.starts_with("seq,t_ns,"), "{}", csv.lines().next().unwrap_or_default());
    succeeds(&run(d.path(), &["export", "a.system", "-o", "a.thesis"]));
    succeeds(&run(d.path(), &["import", "a.thesis", "--format", "thesis", "-o", "back.system"]));
    let value = json(&succeeds(&run(d.path(), &["inspect", "back.system", "--json"])));
    let open = &value["files"][0]["system"]["entries"]["open"]["mean_ns"];
    assert!((open.as_f64().unwrap() - 2_000.0).abs() < 1.0, "{open}");
    fails(&run(d.path(), &["export", "a.system", "-o", "a.thesis"]), 2, &["a.thesis", "already there"]);
    fails(&run(d.path(), &["export", "a.system", "--format", "csv"]), 2, &["a.system"]);
}

#[test]
fn a_pipe_that_closes_early_is_not_an_error() {
    let d = tempfile::tempdir().unwrap();
    small_workload(d.path());
    let script = format!("{} export small.workload | head -n 1", env!("CARGO_BIN_EXE_fsage"));
    let output = std::process::Command::new("bash")
        .args(["-o", "pipefail", "-c", &script])
        .current_dir(d.path())
        .output()
        .unwrap();
    let said_nothing = common::stderr(&output).lines().all(common::is_of_another_run);
    assert!(output.status.success() && said_nothing, "{output:?}");
    drop(fsage());
}
