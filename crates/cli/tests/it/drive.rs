//! `fsage drive` as people and scripts call it.

use crate::common;
use assert_cmd::Command;
use serde_json::Value;

fn fsage() -> Command {
    let mut command = common::fsage();
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

#[test]
fn drives_are_imported_fitted_and_validated() {
    let d = tempfile::tempdir().unwrap();
    for file in ["hp_c2247a.diskspecs", "hp_c2247a_validate.model"] {
        testkit::fixture::unpack(&format!("drives/{file}"), d.path());
    }
    let toml = d.path().join("hp.toml");
    let run = fsage().arg("import").arg(d.path().join("hp_c2247a.diskspecs")).arg("-o").arg(&toml).assert().success();
    let notes = String::from_utf8_lossy(&run.get_output().stderr).into_owned();
    assert!(notes.contains("Low (write) water mark") && notes.contains("no disksim_bus"), "{notes}");
    assert!(run.get_output().stdout.is_empty());
    let run = fsage().arg("import").arg(d.path().join("hp_c2247a.diskspecs")).assert().success();
    assert_eq!(run.get_output().stdout, std::fs::read(&toml).unwrap());
    fsage().arg("describe").arg(&toml).assert().success();

    let whole = String::from_utf8(testkit::fixture::unpacked("drives/hp_c2247a.trace")).unwrap();
    let trace = d.path().join("short.trace");
    std::fs::write(&trace, whole.lines().take(300).map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    let fitted = d.path().join("fitted.toml");
    let extract = |models: &str| {
        let mut command = fsage();
        command
            .arg("extract")
            .arg(&trace)
            .arg("--from")
            .arg(&toml)
            .args(["--models", models, "--starts", "1", "--json", "--drive"])
            .arg(&fitted);
        let run = command.assert().success();
        serde_json::from_slice::<Value>(&run.get_output().stdout).unwrap()
    };
    let found = extract("150");
    assert_eq!(found["schema"], "fsage.drive-extraction/1");
    let first = |of: &str| found[of]["half_demerit_ns"][0].as_f64().unwrap();
    assert!(first("after") < first("before"), "{found}");
    assert_eq!(found, extract("150"), "the same seed finds the same");
    fsage().arg("validate").arg(&fitted).arg(&trace).assert().success();
    fsage().arg("extract").arg(&trace).args(["--from", "ssd-nvme"]).assert().code(2);
    fsage().args(["import", "/no/such.parv"]).assert().code(4);
}

#[test]
fn a_file_is_measured_without_a_change_and_is_no_disk() {
    let d = tempfile::tempdir().unwrap();
    let image = d.path().join("image");
    let bytes: Vec<u8> = (0..1u32 << 20).map(|n| (n >> 9) as u8).collect();
    std::fs::write(&image, &bytes).unwrap();
    std::fs::File::options().write(true).open(&image).unwrap().set_len(72 << 20).unwrap();
    let blocks = || std::os::unix::fs::MetadataExt::blocks(&std::fs::metadata(&image).unwrap());
    let allocated = blocks();
    let mut permissions = std::fs::metadata(&image).unwrap().permissions();
    permissions.set_readonly(true);
    std::fs::set_permissions(&image, permissions).unwrap();
    let before = std::fs::metadata(&image).unwrap();
    // Some file systems have no direct reads.
    if testkit::have(posix::raw_disk::RawDisk::open(&image)).is_none() {
        return;
    }
    let run = fsage().arg("measure").arg(&image).arg("--json").assert().success();
    let found: Value = serde_json::from_slice(&run.get_output().stdout).unwrap();
    assert_eq!(found["schema"], "fsage.drive-measurement/1");
    assert_eq!(found["arm"], false, "{found}");
    assert!(found["reads"].as_u64().unwrap() > 100);
    let drive = d.path().join("drive.toml");
    let run = fsage().arg("measure").arg(&image).arg("--drive").arg(&drive).assert().code(1);
    let text = String::from_utf8_lossy(&run.get_output().stdout).into_owned();
    assert!(text.contains("No disk with an arm"), "{text}");
    assert!(!drive.exists());
    assert_eq!(std::fs::read(&image).unwrap()[..bytes.len()], bytes);
    assert_eq!(blocks(), allocated, "holes are holes");
    assert_eq!(std::fs::metadata(&image).unwrap().modified().unwrap(), before.modified().unwrap());
    fsage().args(["measure", "/dev/null"]).assert().code(4);
}

#[test]
fn a_disk_of_the_laboratory_is_measured_and_its_file_is_a_drive() {
    let d = tempfile::tempdir().unwrap();
    let drive = d.path().join("mine.toml");
    let run = fsage().args(["measure", "model:hp-97560", "--json", "--drive"]).arg(&drive).assert().success();
    let found: Value = serde_json::from_slice(&run.get_output().stdout).unwrap();
    assert_eq!((found["arm"].as_bool(), found["heads"].as_u64()), (Some(true), Some(19)));
    let text = std::fs::read_to_string(&drive).unwrap();
    assert!(text.contains("cannot know"), "{text}");
    fsage().arg("describe").arg(&drive).assert().success();
}
