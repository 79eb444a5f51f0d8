//! `fsage layout` as people and scripts call it: no root needed.

use crate::common;
use assert_cmd::Command;
use serde_json::Value;

fn fsage() -> Command {
    let mut command = common::fsage();
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
    let mut printed: Value = serde_json::from_slice(&run.get_output().stdout).unwrap();
    assert_eq!(printed["schema"], "fsage.layout/1");
    assert_eq!(printed["walked"]["files"], 1);
    // Where it comes from is said of what is printed; the survey itself is the same.
    assert!(printed.as_object_mut().unwrap().remove("run").is_some());
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
    assert_eq!(code, Some(4), "{error}");
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

/// One byte: `..` becomes `.,`, an ordinary name of the directory above. The survey went round for ever, in more and
/// more memory.
#[test]
fn a_directory_with_two_names_ends_the_survey() {
    let directory = tempfile::tempdir().unwrap();
    let below = directory.path().join("tree/dir/below");
    std::fs::create_dir_all(&below).unwrap();
    for kind in ["ffs", "lfs"] {
        let image = directory.path().join(kind);
        let mut mkfs = common::fsage();
        mkfs.args(["mkfs", kind]).arg(&image).args(["--size", "16M", "--populate"]).arg(directory.path().join("tree"));
        mkfs.assert().success();
        fsage().arg(&image).timeout(std::time::Duration::from_secs(60)).assert().success();
        let mut bytes = std::fs::read(&image).unwrap();
        // Type directory, two bytes of name (FFS and LFS of 4.4BSD, little-endian).
        let entries: Vec<usize> =
            bytes.windows(5).enumerate().filter(|(_, w)| w == b"\x04\x02..\0").map(|(at, _)| at).collect();
        assert!(entries.len() >= 2, "{kind}: {entries:?}");
        for at in entries {
            bytes[at + 3] = b',';
        }
        std::fs::write(&image, bytes).unwrap();
        let out = fsage().arg(&image).timeout(std::time::Duration::from_secs(60)).assert().code(4);
        let error = String::from_utf8_lossy(&out.get_output().stderr).into_owned();
        assert!(error.contains("a directory with two names") && error.contains(kind), "{error}");
    }
}

#[test]
fn maps_and_series_are_shown() {
    use layout::series::day_of;
    use layout::{Series, SeriesHeader, SeriesPoint, SeriesWriter};
    let directory = tempfile::tempdir().unwrap();
    let content = directory.path().join("content");
    std::fs::create_dir(&content).unwrap();
    std::fs::write(content.join("file"), vec![1; 100_000]).unwrap();
    let saved = directory.path().join("survey.json");
    let run = fsage().arg(&content).arg("--map=8").arg("-o").arg(&saved).arg("--json").assert().success();
    let printed: Value = serde_json::from_slice(&run.get_output().stdout).unwrap();
    // A file system without FIEMAP says why it has no map.
    let map = &printed["map"];
    assert!(map["unavailable"].is_string() || map["known"]["file_bytes"].as_array().is_some_and(|c| c.len() == 64));
    let survey = layout::load(&saved).unwrap();
    assert_eq!(serde_json::to_value(&survey.map).unwrap(), *map);
    let error = |args: &[&std::ffi::OsStr]| {
        let out = fsage().args(args).assert().get_output().clone();
        (out.status.code(), String::from_utf8_lossy(&out.stderr).into_owned())
    };
    let (code, why) = error(&[content.as_os_str(), "--map=100".as_ref()]);
    assert!(code == Some(2) && why.contains("a power of two"), "{code:?} {why}");

    let file = directory.path().join("run.series");
    let mut writer =
        SeriesWriter::create(&file, &SeriesHeader { name: "scratch".into(), ..Default::default() }).unwrap();
    for day in 0..3u64 {
        let simulated_ns = day * 86_400_000_000_000;
        writer.clock(1_000 + day as i64, simulated_ns).unwrap();
        let survey = survey.clone();
        let point = SeriesPoint { day: day_of(simulated_ns), t_unix_ns: 1_000, operations: day, survey };
        writer.point(&point).unwrap();
    }
    let html = directory.path().join("report.html");
    let run = fsage().arg("--series").arg(&file).arg("--json").arg("--html").arg(&html).assert().success();
    let printed: Value = serde_json::from_slice(&run.get_output().stdout).unwrap();
    assert_eq!(printed["schema"], "fsage.layout-series/1");
    assert_eq!(printed["series"][0]["points"].as_array().map(Vec::len), Some(3));
    assert_eq!(printed["series"][0]["points"][2]["operations"], 2);
    assert!(std::fs::read_to_string(&html).unwrap().contains("<h1>Aging of scratch"));
    let run = fsage().arg("--series").arg(&file).arg(&file).assert().success();
    assert!(String::from_utf8_lossy(&run.get_output().stdout).starts_with("Aging of 2 file systems"));
    assert_eq!(Series::load(&file).unwrap().points.len(), 3);

    let (code, why) = error(&["--series".as_ref(), saved.as_os_str()]);
    assert!(code == Some(4) && why.contains("is not a series"), "{code:?} {why}");
    let arguments: [&std::ffi::OsStr; 6] = [
        "--series".as_ref(),
        file.as_os_str(),
        file.as_os_str(),
        "--fresh=a".as_ref(),
        "--aged".as_ref(),
        "b".as_ref(),
    ];
    let (code, why) = error(&arguments);
    assert!(code == Some(2) && why.contains("1 files for 2 series"), "{code:?} {why}");
}
