//! `fsage mkfs lfs`, and `fsck`, `dump` and `cp` of what it makes, as people and scripts call them.

#![allow(clippy::unwrap_used)] // In helpers too a test may fail by panicking.

mod common;

use common::{code, fails, run, succeeds};
use serde_json::Value;
use std::path::Path;

fn json(directory: &Path, args: &[&str]) -> Value {
    let output = run(directory, &[args, &["--json"]].concat());
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", common::stderr(&output)))
}

#[test]
fn an_image_is_made_checked_shown_and_copied() {
    let scratch = tempfile::tempdir().unwrap();
    let at = scratch.path();
    let make = ["mkfs", "lfs", "log.img", "--size", "8M", "--time", "1000", "--lost-found"];
    let made = json(at, &make);
    assert_eq!((&made["schema"], &made["segments"]), (&Value::from("fsage.mkfs-lfs/1"), &Value::from(128)));
    let bytes = std::fs::read(at.join("log.img")).unwrap();
    fails(&run(at, &make), 2, &["log.img"]);
    succeeds(&run(at, &[&make[..], &["--force"]].concat()));
    assert!(std::fs::read(at.join("log.img")).unwrap() == bytes, "the same again is byte for byte the same");

    let text = succeeds(&run(at, &["fsck", "log.img"]));
    assert!(text.contains("Unmounted cleanly.") && text.contains("Clean."), "{text}");
    let report = json(at, &["fsck", "log.img"]);
    assert_eq!((&report["schema"], &report["problem_count"]), (&Value::from("fsage.fsck-lfs/1"), &Value::from(0)));
    assert_eq!(std::fs::read(at.join("log.img")).unwrap(), bytes, "a check changes nothing");

    assert_eq!(json(at, &["dump", "log.img"])["at_byte"], 8192);
    let segments = json(at, &["dump", "log.img", "segments"]);
    let segments = segments["segments"].as_array().unwrap();
    assert_eq!((segments.len(), &segments[0]["nsums"]), (128, &Value::from(1)));
    let segment = json(at, &["dump", "log.img", "segment", "0"]);
    assert_eq!(segment["partials"][0]["pieces"][0]["ino"], 2, "the root directory comes first");
    assert_eq!(json(at, &["dump", "log.img", "ifile"])["in_use"].as_array().unwrap().len(), 3);
    assert_eq!(json(at, &["dump", "log.img", "inode", "/lost+found"])["ino"], 3);
    let entries = json(at, &["dump", "log.img", "directory"]);
    let names: Vec<&str> = entries["entries"].as_array().unwrap().iter().map(|e| e["name"].as_str().unwrap()).collect();
    assert_eq!(names, [".", "..", "lost+found"]);
    for what in ["groups", "free"] {
        fails(&run(at, &["dump", "log.img", what]), 2, &["is an LFS image"]);
    }
    assert_eq!(json(at, &["cp", "log.img:/", "out"])["directories"], 2);
}

#[test]
fn what_cannot_be_is_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let at = scratch.path();
    fails(&run(at, &["mkfs", "lfs", "log.img", "--size", "8M", "--bsize", "5K"]), 2, &["power of two"]);
    fails(&run(at, &["mkfs", "lfs", "log.img", "--size", "100K"]), 2, &["too few"]);
    assert!(!at.join("log.img").exists());
    succeeds(&run(at, &["mkfs", "lfs", "log.img", "--size", "8M"]));
    fails(&run(at, &["fsck", "log.img", "--repair"]), 2, &["only looks"]);
    std::fs::write(at.join("file"), "x").unwrap();
    fails(&run(at, &["cp", "file", "log.img:/"]), 2, &["is an LFS image"]);
    succeeds(&run(at, &["mkfs", "ffs", "disk.img", "--size", "8M"]));
    fails(&run(at, &["dump", "disk.img", "segments"]), 2, &["is an FFS image"]);

    fails(&run(at, &["dump", "disk.img", "--checkpoint"]), 2, &["is an FFS image"]);
    fails(&run(at, &["cp", "--copies", "log.img:/", "out"]), 2, &["--copies"]);

    // A byte of the usage table: found, and said which.
    let mut bytes = std::fs::read(at.join("log.img")).unwrap();
    let usage = 26 << 10;
    bytes[usage] ^= 1;
    std::fs::write(at.join("log.img"), &bytes).unwrap();
    let found = run(at, &["fsck", "log.img"]);
    assert_eq!(code(&found), 1);
    assert!(String::from_utf8_lossy(&found.stdout).contains("the usage table says"));
    // A damaged superblock: the other one will do. Without either, nothing.
    bytes[8192 + 400] ^= 1;
    std::fs::write(at.join("log.img"), &bytes).unwrap();
    assert_eq!(json(at, &["dump", "log.img"])["at_byte"], 786_432);
    bytes[786_432 + 400] ^= 1;
    std::fs::write(at.join("log.img"), &bytes).unwrap();
    fails(&run(at, &["dump", "log.img"]), 4, &["log.img", "cksum"]);
}
