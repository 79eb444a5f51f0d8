//! `fsage layout` as people and scripts call it: no root needed.

use assert_cmd::Command;
use serde_json::Value;

fn fsage() -> Command {
    let mut command = Command::cargo_bin("fsage").expect("cargo builds the binary");
    command.arg("layout");
    command
}

#[test]
fn a_directory_is_surveyed_saved_and_compared() {
    let directory = tempfile::tempdir().unwrap();
    let content = directory.path().join("content");
    std::fs::create_dir(&content).unwrap();
    std::fs::write(content.join("file\x1b[31m"), vec![1; 100_000]).unwrap();
    let saved = directory.path().join("survey.json");
    let html = directory.path().join("report.html");
    let run = fsage().arg(&content).arg("-o").arg(&saved).arg("--html").arg(&html).arg("--json").assert().success();
    let printed: Value = serde_json::from_slice(&run.get_output().stdout).unwrap();
    assert_eq!(printed["schema"], "fsage.layout/1");
    assert_eq!(printed["walked"]["files"], 1);
    let kept: Value = serde_json::from_slice(&std::fs::read(&saved).unwrap()).unwrap();
    assert_eq!(kept, printed);
    assert!(std::fs::read_to_string(&html).unwrap().contains("<h1>Layout of "));

    let run = fsage().arg("--compare").arg(&saved).arg(&content).arg("--json").assert().success();
    let compared: Value = serde_json::from_slice(&run.get_output().stdout).unwrap();
    assert_eq!(compared["schema"], "fsage.layout-comparison/1");
    let files = compared["figures"].as_array().unwrap().iter().find(|f| f["figure"] == "files");
    // A file system without FIEMAP has no such figure.
    assert!(files.is_none_or(|f| f["difference"] == 0.0), "{files:?}");
    let text = fsage().arg(&content).assert().success();
    assert!(!text.get_output().stdout.contains(&0x1b), "a file name drove the terminal");
}

#[test]
fn what_cannot_be_surveyed_has_its_exit_code() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    let run = |args: &[&std::ffi::OsStr]| {
        let out = fsage().args(args).assert().get_output().clone();
        (out.status.code(), String::from_utf8_lossy(&out.stderr).into_owned())
    };
    std::fs::write(&file, "{}").unwrap();
    let (code, error) = run(&["--compare".as_ref(), file.as_os_str(), file.as_os_str()]);
    assert_eq!(code, Some(4), "{error}");
    assert!(error.contains("schema"), "{error}");
    std::fs::write(&file, "neither").unwrap();
    let (code, error) = run(&[file.as_os_str()]);
    assert_eq!(code, Some(2), "{error}");
    assert!(error.contains("no ext2, ext3 or ext4 superblock"), "{error}");
    let (code, error) = run(&["ext4:8G".as_ref()]);
    assert_eq!(code, Some(2), "{error}");
    assert_eq!(run(&[]).0, Some(2));
    assert_eq!(run(&[directory.path().as_os_str(), "--hot-days".as_ref(), "-1".as_ref()]).0, Some(2));
    // An ext4 magic number on nonsense.
    let mut image = vec![0xAB; 8192];
    image[1024 + 0x38..1024 + 0x3A].copy_from_slice(&[0x53, 0xEF]);
    std::fs::write(&file, image).unwrap();
    let (code, error) = run(&[file.as_os_str()]);
    assert_eq!(code, Some(4), "{error}");
}
