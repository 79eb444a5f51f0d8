//! `fsage bench` as people and scripts call it: no root needed, and the user's files are as they were.

use crate::common;
use assert_cmd::Command;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn bench() -> Command {
    let mut command = common::fsage();
    command.arg("bench");
    command
}

fn json(run: &assert_cmd::assert::Assert) -> Value {
    serde_json::from_slice(&run.get_output().stdout).unwrap()
}

/// Every file below a directory with its content.
fn contents(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(contents(&path));
        } else {
            found.insert(path.clone(), std::fs::read(&path).unwrap());
        }
    }
    found
}

#[test]
fn seqfile_runs_saves_compares_and_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let (a, b) = (directory.path().join("a"), directory.path().join("b"));
    std::fs::create_dir(&a).unwrap();
    std::fs::create_dir(&b).unwrap();
    let html = directory.path().join("report.html");
    let out = directory.path().join("out");
    let args = ["seqfile", "--data", "256K", "--sizes", "1K,64K", "--rounds", "2", "--json"];
    let run = bench().args(args).args([&a, &b]).arg("--html").arg(&html).arg("-o").arg(&out).assert().success();
    let result = json(&run);
    assert_eq!(result["schema"], "fsage.bench/1");
    assert_eq!(result["parameters"]["benchmark"], "seqfile");
    for target in result["targets"].as_array().unwrap() {
        let points = target["points"].as_array().unwrap();
        assert_eq!(
            points.iter().map(|p| p["point"]["size_bytes"].as_u64().unwrap()).collect::<Vec<_>>(),
            [1024, 65536]
        );
        for (point, files) in points.iter().zip([256, 4]) {
            let phases: Vec<&str> =
                point["phases"].as_array().unwrap().iter().map(|p| p["phase"].as_str().unwrap()).collect();
            assert_eq!(phases, ["create", "read", "overwrite", "delete"]);
            for phase in point["phases"].as_array().unwrap() {
                assert_eq!(phase["rounds"].as_array().unwrap().len(), 2);
                assert_eq!(phase["rounds"][0]["files"], files);
                assert!(phase["rate"]["median"].as_f64().unwrap() > 0.0);
            }
        }
    }
    assert!(contents(&a).is_empty() && std::fs::read_dir(&a).unwrap().next().is_none());
    assert!(std::fs::read_dir(&b).unwrap().next().is_none());
    let page = std::fs::read_to_string(&html).unwrap();
    assert!(page.contains("Rate of create by file size"));
    assert!(out.join("result.json").is_file() && out.join("ratios.csv").is_file() && out.join("create.csv").is_file());

    let run = bench().arg("--compare").args([&out, &out.join("result.json")]).arg("--json").assert().success();
    let compared = json(&run);
    assert_eq!(compared["schema"], "fsage.bench-comparison/1");
    let rows = compared["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 16);
    assert!(rows.iter().all(|row| row["verdict"] == "tie"), "a result against itself is a tie");
    let text = bench().arg("--compare").args([&out, &out]).assert().success();
    assert!(String::from_utf8_lossy(&text.get_output().stdout).contains("tie"));
}

#[test]
fn a_tree_is_scanned_and_its_hot_files_read_without_a_change() {
    let directory = tempfile::tempdir().unwrap();
    let tree = directory.path().join("tree");
    std::fs::create_dir_all(tree.join("deep/er")).unwrap();
    std::fs::write(tree.join("one\x1b[31m"), vec![1; 10_000]).unwrap();
    std::fs::write(tree.join("deep/two"), vec![2; 300_000]).unwrap();
    std::fs::write(tree.join("deep/er/three"), "").unwrap();
    std::os::unix::fs::symlink("/", tree.join("deep/root")).unwrap();
    let before = (contents(&tree.join("deep/er")), std::fs::read(tree.join("deep/two")).unwrap());
    let rounds = ["--rounds", "1", "--no-warm-up", "--json"];
    let scanned = json(&bench().arg("scan").arg(&tree).args(rounds).assert().success());
    let round = &scanned["targets"][0]["points"][0]["phases"][0]["rounds"][0];
    assert_eq!((round["files"].as_u64(), round["bytes"].as_u64()), (Some(3), Some(310_000)));
    let found = json(&bench().args(["scan", "--stat-only"]).arg(&tree).args(rounds).assert().success());
    assert_eq!(found["targets"][0]["points"][0]["phases"][0]["rounds"][0]["files"], 6);
    let hot = json(&bench().arg("hotfiles").arg(&tree).args(rounds).assert().success());
    assert_eq!(hot["targets"][0]["points"][0]["phases"][0]["rounds"][0]["bytes"], 310_000);
    let listed = directory.path().join("hot.txt");
    std::fs::write(&listed, "deep/two\n").unwrap();
    let hot = json(&bench().arg("hotfiles").arg(&tree).arg("--list").arg(&listed).args(rounds).assert().success());
    assert_eq!(hot["targets"][0]["points"][0]["phases"][0]["rounds"][0]["bytes"], 300_000);
    let text = bench().args(["hotfiles", "--rounds", "1"]).arg(&tree).assert().success();
    assert!(!text.get_output().stdout.contains(&0x1b), "a file name drove the terminal");

    let refused = bench().args(["hotfiles", "--overwrite"]).arg(&tree).args(rounds).assert().code(2);
    let said = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
    assert!(said.contains("refusing to overwrite") && said.contains(".fsage-aged"), "{said}");
    assert_eq!(before, (contents(&tree.join("deep/er")), std::fs::read(tree.join("deep/two")).unwrap()));
}

#[test]
fn a_tree_marked_as_ours_is_overwritten_in_place() {
    let tree = tempfile::tempdir().unwrap();
    std::fs::write(tree.path().join("hot"), vec![7; 50_000]).unwrap();
    std::fs::write(tree.path().join(".fsage-aged"), "{}").unwrap();
    let before = std::fs::metadata(tree.path().join("hot")).unwrap();
    let args = ["hotfiles", "--overwrite", "--rounds", "2", "--json"];
    let found = json(&bench().args(args).arg(tree.path()).assert().success());
    let phases = found["targets"][0]["points"][0]["phases"].as_array().unwrap();
    assert_eq!(phases.len(), 2);
    assert_eq!(phases[1]["rounds"][1]["bytes"], 50_000);
    let after = std::fs::metadata(tree.path().join("hot")).unwrap();
    assert_eq!((after.len(), after.modified().unwrap()), (before.len(), before.modified().unwrap()));
    assert_ne!(std::fs::read(tree.path().join("hot")).unwrap(), vec![7; 50_000]);
    assert_eq!(std::fs::read(tree.path().join(".fsage-aged")).unwrap(), b"{}");
}

#[test]
fn a_file_system_in_memory_has_no_cold_cache() {
    if !testkit::need(testkit::Need::Shm) {
        return;
    }
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let args = ["seqfile", "--data", "64K", "--sizes", "4K", "--rounds", "1", "--no-warm-up"];
    let run = bench().args(args).arg(directory.path()).assert().success();
    let text = String::from_utf8_lossy(&run.get_output().stdout).into_owned();
    let line = text.lines().find(|line| line.contains("caches before each phase")).unwrap();
    assert!(line.contains("data cold (verified) but for 3 of 4") || line.contains("not verified"), "{line}");
    let found = json(&bench().args(args).arg("--json").arg(directory.path()).assert().success());
    assert_eq!(found["targets"][0]["caches"]["data"], "unverified");
}

#[test]
fn scratch_file_systems_are_run_side_by_side_and_taken_down() {
    if !testkit::needs(&[testkit::Need::LoopDevices, testkit::Need::Tool(testkit::Tool::MkfsExt4)]) {
        return;
    }
    let args = ["seqfile", "ext4:32M", "ext4:64M,-O ^has_journal", "--data", "256K", "--sizes", "16K", "--rounds", "1"];
    let run = bench().args(args).args(["--no-warm-up", "--json"]).assert();
    let found = json(&run.success());
    let targets = found["targets"].as_array().unwrap();
    assert_eq!(targets.iter().map(|t| t["name"].as_str().unwrap()).collect::<Vec<_>>(), args[1..3]);
    for target in targets {
        assert_eq!(target["environment"]["fs_type"], "ext4");
        assert_eq!(target["points"][0]["phases"][0]["rounds"][0]["files"], 16);
    }
}

#[test]
fn wrong_use_has_its_exit_code() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, "{}").unwrap();
    let fails = |args: &[&str], code: i32, says: &str| {
        let run = bench().args(args).assert().code(code);
        let said = String::from_utf8_lossy(&run.get_output().stderr).into_owned();
        assert!(said.contains(says), "{args:?}: {said}");
    };
    let (dir, file) = (directory.path().to_str().unwrap(), file.to_str().unwrap());
    fails(&[], 2, "--compare");
    fails(&["seqfile"], 2, "TARGET");
    fails(&["seqfile", dir, "--sizes", "64M"], 2, "cannot be cut");
    fails(&["seqfile", dir, "--data", "100"], 2, "take more data");
    fails(&["seqfile", dir, "--rounds", "0"], 2, "rounds");
    fails(&["seqfile", "/no/such/place"], 2, "no such directory");
    fails(&["seqfile", dir, "--data", "900T", "--sizes", "1G"], 3, "free");
    fails(&["scan", "ext4:8G"], 2, "would be empty");
    fails(&["scan", "/no/such/place"], 2, "no such directory");
    fails(&["scan", file], 2, "is not a directory");
    fails(&["hotfiles", dir, "--newer-days", "-1"], 2, "");
    fails(&["hotfiles", dir, "--share", "10%", "--newer-days", "3"], 2, "cannot be used with");
    fails(&["hotfiles", dir, "--list", "/no/list"], 4, "cannot read");
    fails(&["--compare", file, file], 4, "schema");
    fails(&["--compare", "/no/a", "/no/b"], 4, "cannot read");
}

#[test]
fn an_interrupt_leaves_nothing_and_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = testkit::process::with_default_signals(env!("CARGO_BIN_EXE_fsage"));
    command.args(["bench", "seqfile", "--rounds", "100000", "--data", "1M", "--sizes", "1K"]).arg(directory.path());
    let null = std::process::Stdio::null;
    let mut run = testkit::process::Running::start(command.stdout(null()).stderr(null()));
    // Once it has made something it is at work.
    testkit::process::until("it begins", || {
        assert!(run.child.try_wait().unwrap().is_none(), "it never began");
        std::fs::read_dir(directory.path()).unwrap().next().is_some()
    });
    run.signal("INT");
    assert_eq!(run.ends().code(), Some(130));
    assert!(std::fs::read_dir(directory.path()).unwrap().next().is_none());
}
