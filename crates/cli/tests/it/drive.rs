//! `fsage drive` as people and scripts call it.

use assert_cmd::Command;
use serde_json::Value;

fn fsage() -> Command {
    let mut command = Command::cargo_bin("fsage").expect("cargo builds the binary");
    command.arg("drive");
    command
}

#[test]
fn the_list_and_every_description_are_there() {
    let run = fsage().args(["list", "--json"]).assert().success();
    let list: Value = serde_json::from_slice(&run.get_output().stdout).unwrap();
    assert_eq!(list["schema"], "fsage.drives/1");
    let run = fsage().args(["describe", "hp-c2247a", "--json"]).assert().success();
    let drive: Value = serde_json::from_slice(&run.get_output().stdout).unwrap();
    assert_eq!(drive["schema"], "fsage.drive/1");
    assert_eq!(drive["capacity_bytes"], 2_054_864u64 * 512);
    assert_eq!(drive["zones"].as_array().unwrap().len(), 8);
    let figures = drive["figures"].as_array().unwrap();
    assert!(figures.iter().all(|figure| !figure["source"].as_str().unwrap().is_empty()));
}

#[test]
fn a_model_is_validated_and_its_demerit_can_fail() {
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join("small.trace");
    let lines: String = (0..200u64).map(|n| format!("R Miss {} 8 15000.0 10000.0\n", n * 7919 % 2_000_000)).collect();
    std::fs::write(&trace, lines).unwrap();
    let html = directory.path().join("report.html");
    let run =
        fsage().args(["validate", "hp-c2247a"]).arg(&trace).arg("--json").arg("--html").arg(&html).assert().success();
    let validation: Value = serde_json::from_slice(&run.get_output().stdout).unwrap();
    assert_eq!(validation["schema"], "fsage.drive-validation/1");
    assert_eq!(validation["requests"], 200);
    assert_eq!(validation["ladder"].as_array().unwrap().len(), 5);
    assert!(std::fs::read_to_string(&html).unwrap().contains("share of requests at most so long"));
    fsage().args(["validate", "hp-c2247a"]).arg(&trace).args(["--max-demerit", "0.001"]).assert().code(1);
    fsage().args(["validate", "hp-c2247a"]).arg(&trace).args(["--max-demerit", "-1"]).assert().code(2);
}

#[test]
fn what_cannot_be_has_its_exit_code() {
    let directory = tempfile::tempdir().unwrap();
    let damaged = directory.path().join("mine.toml");
    std::fs::write(&damaged, "name = 'x'\nsumary = 'y'\n").unwrap();
    let says = |command: &mut Command, code: i32, word: &str| {
        let run = command.assert().code(code);
        let message = String::from_utf8_lossy(&run.get_output().stderr).into_owned();
        assert!(message.contains(word), "{message:?} names {word}");
        assert!(run.get_output().stdout.is_empty());
    };
    says(fsage().args(["describe", "no-such-drive"]), 2, "st39102lw");
    says(fsage().arg("describe").arg(&damaged), 4, "sumary");
    says(fsage().args(["describe", "./missing.toml"]), 4, "missing.toml");
    says(fsage().args(["validate", "ssd-nvme"]).arg(&damaged), 2, "not a disk");
    says(fsage().args(["validate", "hp-97560"]).arg(&damaged), 4, "line 1");
}

/// Two of the four measured drives; `crates/device` holds all four against their bars.
#[test]
fn the_measured_drives_stay_within_their_bars() {
    let d = tempfile::tempdir().unwrap();
    for (drive, trace, bar_ms) in
        [("hp-c2247a", "hp_c2247a.trace", "0.089"), ("st39102lw", "cheetah9LP.trace", "0.107")]
    {
        fsage()
            .args(["validate", drive])
            .arg(testkit::fixture::unpack(&format!("drives/{trace}"), d.path()))
            .args(["--max-demerit", bar_ms])
            .assert()
            .success();
    }
}
