//! `fsage sweep` through the binary: tasks are commands of its own, and a run that is killed is gone on with.

use crate::common;
use assert_cmd::Command;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn fsage(directory: &Path) -> Command {
    let mut command = common::fsage();
    command.current_dir(directory);
    command
}

fn json(command: &mut Command) -> Value {
    serde_json::from_slice(&command.output().unwrap().stdout).unwrap()
}

const SPEC: &str = r#"format = "fsage.sweep/1"
run = ["bench", "smallfile", "ffs:{mode},size=8M@st32430n", "--files", "{files}"]
partition = ["mode"]
[axes]
mode = ["conventional", "softdep"]
files = [2, 3, 4, 5]
"#;

fn spec(body: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("mine.toml"), body).unwrap();
    directory
}

/// The data set, but for the times.
fn data_set(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for (below, names) in [
        ("", vec!["sweep.json", "spec.toml", "tasks.parquet"]),
        ("results/mode=softdep", vec!["figures.parquet"]),
        ("results/mode=conventional", vec!["figures.parquet"]),
    ] {
        for name in names {
            let path = Path::new(below).join(name);
            found.insert(path.clone(), std::fs::read(folder.join(path)).unwrap());
        }
    }
    found
}

#[test]
fn a_run_that_is_killed_is_gone_on_with_and_nothing_is_done_twice() {
    let directory = spec(SPEC);
    let whole = json(fsage(directory.path()).args(["sweep", "mine.toml", "-o", "whole", "--jobs", "2", "--json"]));
    assert_eq!(
        (&whole["schema"], &whole["ended"], &whole["failed"]),
        (&"fsage.sweep/1".into(), &8.into(), &0.into()),
        "{whole}"
    );
    assert_eq!(whole["report"]["metric"], "rate");

    let killed = directory.path().join("killed");
    let journal = killed.join("journal");
    let kept =
        || std::fs::read(&journal).map_or(0, |bytes| bytes.iter().filter(|b| **b == b'\n').count()).saturating_sub(1);
    for least in [1, 3] {
        let mut run = std::process::Command::new(assert_cmd::cargo::cargo_bin("fsage"))
            .current_dir(directory.path())
            .args(["sweep", "mine.toml", "-o", "killed", "--jobs", "1"])
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        // Killed as soon as some are kept, however long that takes; or it has ended.
        while kept() < least && run.try_wait().unwrap().is_none() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        run.kill().unwrap();
        run.wait().unwrap();
        assert!(kept() >= least);
    }
    fsage(directory.path()).args(["sweep", "mine.toml", "-o", "killed"]).assert().success();
    assert_eq!(kept(), 8, "no task has a second line");
    assert_eq!(data_set(&killed), data_set(&directory.path().join("whole")));
    let status = json(fsage(directory.path()).args(["sweep", "mine.toml", "-o", "killed", "--status", "--json"]));
    assert_eq!((&status["ended"], &status["to_do"]), (&8.into(), &Value::Array(Vec::new())));
}

#[test]
fn parts_by_number_are_collected_and_a_failure_is_counted() {
    let directory = spec(&SPEC.replace("files = [2, 3, 4, 5]", "files = [2, 900000]").replace("size=8M", "size=4M"));
    for (part, numbers) in [("a", "1..3"), ("b", "4")] {
        fsage(directory.path()).args(["sweep", "mine.toml", "-o", part, "--tasks", numbers]).assert().code(1);
        assert!(!directory.path().join(part).join("results").exists());
    }
    let collect = fsage(directory.path()).args(["sweep", "mine.toml", "--collect", "b", "a"]).assert().code(1);
    let shown = String::from_utf8(collect.get_output().stdout.clone()).unwrap();
    assert!(shown.contains("4 tasks: 2 done, 2 failed.") && shown.contains("Failures"), "{shown}");
    assert!(directory.path().join("mine.sweep/results").is_dir());
}

#[test]
fn arguments_are_checked_before_anything_runs_and_nothing_is_made() {
    let directory = spec(&SPEC.replace("--files", "--flies"));
    let refused = fsage(directory.path()).args(["sweep", "mine.toml"]).assert().code(4);
    let said = String::from_utf8(refused.get_output().stderr.clone()).unwrap();
    assert!(said.contains("mine.toml, task 1:") && said.contains("--flies"), "{said}");
    std::fs::write(directory.path().join("mine.toml"), SPEC).unwrap();
    let listed = json(fsage(directory.path()).args(["sweep", "mine.toml", "--list", "--json"]));
    assert_eq!(listed["tasks"], 8);
    assert_eq!(listed["commands"][7]["arguments"][2], "ffs:softdep,size=8M@st32430n");
    let dry = fsage(directory.path()).args(["sweep", "mine.toml", "--dry-run", "--sample", "1"]).assert().success();
    let shown = String::from_utf8(dry.get_output().stdout.clone()).unwrap();
    assert!(shown.contains("8 tasks, 8 to do") && shown.contains("as those of the sample"), "{shown}");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1, "only the file is there");
}

/// Each command whose result is read has figures: where a result's fields change, this says so.
#[test]
fn every_command_that_can_be_swept_has_figures() {
    let directory = spec("");
    let quickstart = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/small.strace");
    fsage(directory.path()).arg("import").arg(quickstart).args(["-o", "w.workload"]).assert().success();
    let profiles = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../profiles");
    std::fs::copy(profiles.join("ext4.system"), directory.path().join("s.system")).unwrap();
    std::fs::create_dir(directory.path().join("tree")).unwrap();
    std::fs::write(directory.path().join("tree/file"), "bytes").unwrap();
    let lab = "ffs:size=64M@st32430n";
    let runs = [
        format!("[\"bench\", \"smallfile\", \"{lab}\", \"--files\", \"{{x}}\"]"),
        "[\"predict\", \"w.workload\", \"s.system\", \"--min-coverage\", \"0\", \"--seed\", \"{x}\"]".to_owned(),
        "[\"layout\", \"tree\", \"--hot-days\", \"{x}\"]".to_owned(),
        format!("[\"age\", \"{lab}\", \"--like\", \"home\", \"--days\", \"{{x}}\"]"),
        "[\"reproduce\", \"alloc96/workload\", \"--quick\", \"--seed\", \"{x}\"]".to_owned(),
        format!("[\"replay\", \"w.workload\", \"{lab}\", \"--max-differences\", \"{{x}}\"]"),
        "[\"crash\", \"ffs:softdep\", \"--states\", \"20\", \"--seed\", \"{x}\"]".to_owned(),
    ];
    for (at, run) in runs.iter().enumerate() {
        let name = format!("{at}.toml");
        std::fs::write(
            directory.path().join(&name),
            format!("format = \"fsage.sweep/1\"\nrun = {run}\n[axes]\nx = [2]\n"),
        )
        .unwrap();
        let found = json(fsage(directory.path()).args(["sweep", &name, "--json"]));
        assert_eq!(found["failed"], 0, "{run}: {found}");
        assert!(!found["report"]["parts"].as_array().unwrap().is_empty(), "{run}: {found}");
    }
}
