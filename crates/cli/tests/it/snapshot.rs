//! `fsage snapshot` and the plans made from what is on this machine.

use crate::common::fsage;
use std::fs;

#[test]
fn two_snapshots_make_a_plan() {
    let work = tempfile::tempdir().unwrap();
    let path = |name: &str| work.path().join(name).to_str().unwrap().to_owned();
    fs::create_dir_all(work.path().join("tree/d")).unwrap();
    fs::write(work.path().join("tree/d/file"), vec![0; 3000]).unwrap();
    fsage().args(["snapshot", &path("tree"), "--quiet", "-o", &path("%Y.snapshot")]).assert().success().stdout("");
    let year = fs::read_dir(work.path()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    let first = year.into_iter().find(|n| n.ends_with(".snapshot")).unwrap();
    assert!(first.len() == "2026.snapshot".len() && first.starts_with("20"), "{first}");
    fs::write(work.path().join("tree/new"), vec![0; 5000]).unwrap();
    fs::remove_file(work.path().join("tree/d/file")).unwrap();
    let out = fsage().args(["snapshot", &path("tree"), "--json", "-o", &path("second.snapshot")]).output().unwrap();
    let value: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!((value["schema"].as_str(), value["files"].as_u64()), (Some("fsage.snapshot/1"), Some(1)));
    let plan = ["plan", "snapshots", &path(&first), &path("second.snapshot"), "-o", &path("p.aging"), "--json"];
    let out = fsage().args(plan).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let value: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(
        (value["counts"]["files_at_end"].as_u64(), value["counts"]["bytes_at_end"].as_u64()),
        (Some(1), Some(5000))
    );
    fsage().args(["inspect", &path("second.snapshot")]).assert().success();
}

#[test]
fn mistakes_are_named_with_their_exit_codes() {
    let work = tempfile::tempdir().unwrap();
    let path = |name: &str| work.path().join(name).to_str().unwrap().to_owned();
    let fails = |args: &[&str], code: i32, part: &str| {
        let out = fsage().args(args).output().unwrap();
        let text = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(code), "{args:?}: {text}");
        assert!(text.contains(part), "{args:?}: {text}");
    };
    fs::write(work.path().join("there.snapshot"), b"no snapshot").unwrap();
    fails(&["snapshot", &path(""), "-o", &path("there.snapshot")], 2, "already there");
    fails(&["snapshot", &path(""), "-o", &path("%Q")], 2, "percent sign");
    fails(&["snapshot", &path("missing"), "-o", &path("a")], 3, "missing");
    fails(&["plan", "snapshots", &path("there.snapshot"), "-o", &path("p.aging")], 4, "there.snapshot");
    fails(
        &["plan", "snapshots", &path("there.snapshot"), "--groups", "3", "-o", &path("p.aging")],
        2,
        "--place groups",
    );
    fails(&["plan", "git", &path(""), "--capacity", "1G", "-o", &path("p.aging")], 4, "git repository");
    fails(&["plan", "profile", &path("none.workload"), "--capacity", "1G", "-o", &path("p.aging")], 4, "none.workload");
    assert!(!work.path().join("p.aging").exists());
}
