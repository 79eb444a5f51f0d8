//! `fsage validate --residuals` and `--explain`: the file as other software reads it (DuckDB), and what is found in it.
//!
//! Needs `python3` with the `duckdb` module; what needs it is skipped otherwise.

use crate::common;
use crate::common::{fails, names, run, small_system, small_workload, succeeds};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// The rows of a query over a file, or `None` where DuckDB is missing.
fn duckdb(file: &Path, query: &str) -> Option<Vec<Value>> {
    const SCRIPT: &str = "
import sys, json
import duckdb
duckdb.execute(f\"create view r as select * from read_parquet('{sys.argv[1]}')\")
print(json.dumps(duckdb.execute(sys.argv[2]).fetchall()))
";
    let python = testkit::python_with("duckdb")?;
    let output = Command::new(python).args(["-c", SCRIPT]).arg(file).arg(query).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let rows: Value = serde_json::from_slice(&output.stdout).unwrap();
    Some(rows.as_array().unwrap().clone())
}

/// What `validate --json` says, with options after those that all share. The targets are in virtual time.
fn validate(at: &Path, more: &[&str]) -> Value {
    let system = small_system(at, "flat", 1e6);
    let systems: Vec<String> =
        ["ffs:size=32M@st39102lw", "lfs:size=32M@st39102lw"].map(|t| format!("{t}={}", system.display())).into();
    let mut args = vec!["validate", "small.workload", "--json"];
    for system in &systems {
        args.extend(["--on", system.rsplit_once('=').unwrap().0, "--system", system]);
    }
    let mut value: Value = serde_json::from_str(&succeeds(&run(at, &[&args, more].concat()))).unwrap();
    // The command differs, and nothing else is to.
    value.as_object_mut().unwrap().remove("run");
    value
}

fn close(a: &Value, b: &Value) {
    let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
    assert!((a - b).abs() <= 1e-9 * a.abs().max(b.abs()), "{a} and {b}");
}

#[test]
fn the_rows_add_up_to_the_report() {
    let d = tempfile::tempdir().unwrap();
    small_workload(d.path());
    let without = validate(d.path(), &[]);
    let report = validate(d.path(), &["--residuals", "r.parquet"]);
    assert_eq!(report, without, "looking changes nothing in virtual time");
    let file = d.path().join("r.parquet");
    let query = "select workload, target, replay, sum(predicted_ns), sum(measured_ns), count(predicted_ns), \
                 count(measured_ns) from r group by all order by target";
    let Some(sums) = duckdb(&file, query) else { return };
    assert_eq!(sums.len(), 2, "one replay of each in virtual time: {sums:?}");
    for (sums, cell) in sums.iter().zip(report["cells"].as_array().unwrap()) {
        assert_eq!((&sums[0], &sums[1], &sums[2]), (&cell["workload"], &cell["target"], &Value::from(0)));
        close(&sums[3], &cell["predicted"]["prediction_ns"]);
        assert_eq!(sums[4].as_f64(), cell["measured_ns"].as_f64());
        assert_eq!((&sums[5], &sums[6]), (&cell["predicted_calls"], &cell["measured_calls"]));
        assert_eq!(sums[5], sums[6], "what is predicted is what the replay makes");
    }
    // By call, too.
    let query = "select target, op, sum(predicted_ns), sum(measured_ns)::double from r group by all order by all";
    for row in duckdb(&file, query).unwrap() {
        let cell = report["cells"].as_array().unwrap().iter().find(|c| c["target"] == row[0]).unwrap();
        let op = cell["per_op"].as_array().unwrap().iter().find(|o| o["op"] == row[1]).unwrap();
        close(&Value::from(row[2].as_f64().unwrap_or(0.0)), &op["predicted_ns"]);
        close(&Value::from(row[3].as_f64().unwrap_or(0.0)), &op["measured_ns"]);
    }
    // The entries of a call, and what it waited, are its price; the largest is named.
    let query = "select count(*) from r where abs(predicted_ns - stall_ns - list_sum([e.ns for e in entries])) > 1e-6 \
                 * predicted_ns or (len(entries) > 0 and not list_contains([e.entry for e in entries], entry))";
    assert_eq!(duckdb(&file, query).unwrap()[0][0], 0);
    // Bursts and the call before, recomputed from the order.
    let query = "with m as (select *, lag(op) over w as before from r where measured_ns is not null window w as \
                 (partition by workload, target, replay order by seq)), \
                 g as (select *, sum(case when before is distinct from op then 1 else 0 end) over \
                 (partition by workload, target, replay order by seq) as run from m), \
                 b as (select *, row_number() over (partition by workload, target, replay, run order by seq) as n from \
                 g) select count(*) filter (where previous_op is distinct from before or burst <> n), count(*) from b";
    let counts = &duckdb(&file, query).unwrap()[0];
    assert!(counts[0] == 0 && counts[1].as_u64().unwrap() > 100, "{counts}");
    // What the cache held, as found: never more than there is, and never what was not looked for.
    let query = "select count(*) filter (where found_dirty_bytes > found_cached_bytes), count(found_cached_bytes), \
                 count(*) filter (where cache is not null and op not in ('read', 'copy')) from r";
    let counts = &duckdb(&file, query).unwrap()[0];
    assert!(counts[0] == 0 && counts[1].as_u64().unwrap() > 10 && counts[2] == 0, "{counts}");
}

#[test]
fn a_planted_price_is_the_first_context() {
    let d = tempfile::tempdir().unwrap();
    let at = d.path();
    small_workload(at);
    let target = "ffs:size=480M,cache=2M";
    succeeds(&run(at, &["measure", target, "--budget", "20m", "--name", "true"]));
    let system = format!("{target}=true.system");
    let explain = |more: &[&str]| -> Value {
        let args = ["validate", "small.workload", "--on", target, "--system", &system, "--json", "--explain"];
        serde_json::from_str(&succeeds(&run(at, &[&args, more].concat()))).unwrap()
    };
    for (entry, time) in [("open", "1s"), ("stat", "2s"), ("close", "3s")] {
        let file = format!("{entry}.parquet");
        let setting = format!("{entry}={time}");
        let report = explain(&["--residuals", &file, "--set", &setting]);
        let first = &report["contexts"][0];
        // Whatever tells these calls from others as well (a close looks nothing up) may be the condition: the entry
        // that carries it is named.
        assert!(first["share"].as_f64().unwrap() > 0.5 && first["entries"][0][0] == entry, "{first}");
    }
    let plain = || explain(&["--residuals", "a.parquet"]);
    assert_eq!(plain(), plain(), "the same contexts every time");
}

#[test]
fn what_cannot_be_is_said_before_the_work() {
    let d = tempfile::tempdir().unwrap();
    small_workload(d.path());
    let base = ["validate", "small.workload", "--on", "ffs:size=32M@st39102lw"];
    let said = |more: &[&str]| run(d.path(), &[&base[..], more].concat());
    fails(&said(&["--residuals", "none/r.parquet"]), 2, &["none/r.parquet"]);
    assert_eq!(common::code(&said(&["--explain"])), 2, "without residuals there is nothing to explain");
    assert_eq!(names(d.path()), ["small.workload"]);
}
