//! A profile with its names hidden: none of them is left in any byte of it, and it predicts and replays as before.

use crate::common;
use crate::common::{run, small_system, small_workload, succeeds, trace_text};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).expect("standard output is one JSON document")
}

/// Puts what a recording would state into an imported profile's description.
fn describe(profile: &Path) {
    let path = profile.join("meta.json");
    let mut meta = parsed(&std::fs::read_to_string(&path).unwrap());
    meta.as_object_mut().unwrap().remove("meta_crc32c");
    meta["host"]["name"] = json!("db17.acme.example");
    meta["command"] = json!({
        "argv": ["/opt/acme/bin/billing", "--customer=Miller", "/srv/accounts/2026"],
        "working_directory": "/home/joe/payroll", "exit_status": 0, "signal": null
    });
    meta["file_systems"] = json!([{
        "fs_type": "nfs", "mount_point": "/srv/accounts", "device": "filer.acme.example:/vol/accounts",
        "options": "rw,vers=4,addr=files.acme.example,relatime", "dev": 3
    }]);
    meta["tracer"]["options"] = json!(["-f", "-o/home/joe/trace", "-p", "4711"]);
    meta["snapshot"]["unreadable"] =
        json!([{ "path": "/home/joe/secrets", "error": "Permission denied (os error 13)" }]);
    std::fs::write(path, serde_json::to_string_pretty(&meta).unwrap()).unwrap();
}

/// Every name longer than two bytes that the profile holds.
fn names(directory: &Path, profile: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut take = |text: &str| {
        for name in text.split(['/', '"', ',', ' ', '\n', '=', ':']).filter(|name| name.len() > 2) {
            names.insert(name.to_owned());
        }
    };
    let rows = parsed(&succeeds(&run(directory, &["inspect", profile, "--rows", "--count", "100000", "--json"])));
    let columns = ["Path", "Second path", "From", "path", "path2", "caller_dir", "caller_dir2"];
    for row in rows["files"][0]["rows"].as_array().unwrap() {
        columns.iter().filter_map(|column| row[column].as_str()).for_each(&mut take);
    }
    let found = parsed(&succeeds(&run(directory, &["inspect", profile, "--snapshot", "--json"])));
    for entry in found["files"][0]["entries"].as_array().unwrap() {
        ["path", "target"].iter().filter_map(|column| entry[column].as_str()).for_each(&mut take);
    }
    for said in [
        "db17.acme.example",
        "/opt/acme/bin/billing",
        "--customer=Miller",
        "/srv/accounts/2026",
        "/home/joe/payroll",
        "filer.acme.example:/vol/accounts",
        "files.acme.example",
        "/home/joe/trace",
        "/home/joe/secrets",
    ] {
        take(said);
    }
    names
}

/// All of a Parquet file as text, by DuckDB. `None` where it is missing.
fn duckdb_text(file: &Path) -> Option<String> {
    const SCRIPT: &str = "
import sys
import duckdb
for row in duckdb.execute('select * from read_parquet(?)', [sys.argv[1]]).fetchall():
    print(row)
for row in duckdb.execute('select key, value from parquet_kv_metadata(?)', [sys.argv[1]]).fetchall():
    print(row)
";
    let python = testkit::python_with("duckdb")?;
    let output = Command::new(python).args(["-c", SCRIPT]).arg(file).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn no_name_is_left() {
    let d = tempfile::tempdir().unwrap();
    let profile = small_workload(d.path());
    describe(&profile);
    let names = names(d.path(), "small.workload");
    assert!(names.len() > 30, "{names:?}");
    succeeds(&run(d.path(), &["export", "small.workload", "--anonymise", "-o", "hidden.workload"]));
    let hidden = d.path().join("hidden.workload");
    let mut texts: Vec<(String, Vec<u8>)> = Vec::new();
    for file in common::names(&hidden) {
        texts.push((file.clone(), std::fs::read(hidden.join(&file)).unwrap()));
    }
    for file in ["trace.parquet", "snapshot.parquet"] {
        // Without a reader of Parquet, pages that are packed are not searched.
        if let Some(text) = duckdb_text(&hidden.join(file)) {
            assert!(text.lines().count() > 5, "{file}: {text}");
            texts.push((format!("{file}, decompressed"), text.into_bytes()));
        }
    }
    // Where the workload has a name that is in a word of the format (`all` is in `wall_ns`), the word proves nothing.
    let format = words_of_the_format(&hidden);
    let searched: Vec<&String> = names.iter().filter(|name| !format.contains(name.as_str())).collect();
    assert!(searched.len() > 25, "{searched:?}");
    for (file, text) in &texts {
        // Three compressed bytes can be any three letters.
        let least = if file.ends_with(".parquet") { 6 } else { 3 };
        for name in searched.iter().filter(|name| name.len() >= least) {
            let found = text.windows(name.len()).any(|window| window == name.as_bytes());
            assert!(!found, "{name} is in {file}");
        }
    }
    // What is no name is still there.
    let meta = std::fs::read_to_string(hidden.join("meta.json")).unwrap();
    for kept in ["\"nfs\"", "rw,vers=4,addr=", ",relatime", "\"-f\"", "\"4711\"", "Permission denied"] {
        assert!(meta.contains(kept), "{kept} is not in {meta}");
    }
    // Two exports have two keys.
    succeeds(&run(d.path(), &["export", "small.workload", "--anonymise", "-o", "again.workload"]));
    let columns = |profile: &str| succeeds(&run(d.path(), &["export", profile, "--format", "snapshot"]));
    assert_ne!(columns("hidden.workload"), columns("again.workload"));
    assert_eq!(common::code(&run(d.path(), &["export", "small.workload", "--anonymise"])), 2);
}

/// Keys of the description, words of JSON, columns, operations and kinds, which stand in every profile.
fn words_of_the_format(profile: &Path) -> String {
    fn keys(value: &Value, words: &mut Vec<String>) {
        if let Value::Object(map) = value {
            words.extend(map.keys().cloned());
        }
        let children: Vec<&Value> = match value {
            Value::Object(map) => map.values().collect(),
            Value::Array(items) => items.iter().collect(),
            _ => Vec::new(),
        };
        children.into_iter().for_each(|child| keys(child, words));
    }
    let mut words: Vec<String> =
        ["null", "true", "false", "None", "fsage.row_groups", "Permission denied (os error 13)"]
            .map(str::to_owned)
            .to_vec();
    keys(&parsed(&std::fs::read_to_string(profile.join("meta.json")).unwrap()), &mut words);
    words.extend(
        ["file", "directory", "symlink", "special", "before", "after", "trace", trace::text::trace::HEADER]
            .map(str::to_owned),
    );
    words.extend(trace::Op::ALL.iter().map(|op| op.name().to_owned()));
    words.join(" ")
}

#[test]
fn it_predicts_and_replays_as_before() {
    let d = tempfile::tempdir().unwrap();
    small_workload(d.path());
    small_system(d.path(), "a", 2_000.0);
    succeeds(&run(d.path(), &["export", "small.workload", "--anonymise", "-o", "hidden.workload"]));
    let trace = trace_text();
    let imported = ["import", trace.to_str().unwrap(), "--anonymise", "-o", "imported.workload"];
    succeeds(&run(d.path(), &imported));
    let predicted = |profile: &str| {
        let value =
            parsed(&succeeds(&run(d.path(), &["predict", profile, "a.system", "--min-coverage", "0", "--json"])));
        let system = &value["prediction"]["systems"][0];
        json!([
            system["total_ns"],
            system["by_op"],
            system["by_entry"],
            system["cache"],
            value["prediction"]["coverage"]
        ])
    };
    let replayed = |profile: &str| {
        let target = d.path().join(format!("on-{profile}"));
        std::fs::create_dir(&target).unwrap();
        let target = target.to_str().unwrap();
        let value = parsed(&succeeds(&run(d.path(), &["replay", profile, target, "--json"])));
        let counts: Vec<Value> =
            value["per_op"].as_array().unwrap().iter().map(|op| json!([op["op"], op["count"], op["errors"]])).collect();
        json!([value["calls"], value["differences"]["total"], counts])
    };
    let (prediction, replay) = (predicted("small.workload"), replayed("small.workload"));
    assert!(prediction[0].as_f64().unwrap() > 0.0 && replay[0].as_u64().unwrap() > 100, "{prediction} {replay}");
    for profile in ["hidden.workload", "imported.workload"] {
        assert_eq!(predicted(profile), prediction, "{profile}");
        assert_eq!(replayed(profile), replay, "{profile}");
    }
}
