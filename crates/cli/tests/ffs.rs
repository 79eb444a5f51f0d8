//! `fsage mkfs`, `fsck`, `dump` and `cp` as people and scripts call them.

#![allow(clippy::unwrap_used)] // In helpers too a test may fail by panicking.

mod common;

use common::{code, fails, run, succeeds};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

fn json(directory: &Path, args: &[&str]) -> Value {
    let output = run(directory, &[args, &["--json"]].concat());
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", common::stderr(&output)))
}

fn made(directory: &Path, args: &[&str]) {
    let base = ["mkfs", "ffs", "disk.img", "--size", "8M", "--time", "1000", "--lost-found"];
    succeeds(&run(directory, &[&base, args].concat()));
}

#[test]
fn an_image_is_made_checked_shown_and_copied() {
    let scratch = tempfile::tempdir().unwrap();
    let at = scratch.path();
    for (args, superblock_at) in
        [(&["--ufs", "1"][..], 8192), (&["--ufs", "2", "--endian", "big", "--label", "home"], 65536)]
    {
        made(at, args);
        let bytes = std::fs::read(at.join("disk.img")).unwrap();
        assert_eq!(bytes.len(), 8 << 20);
        let text = succeeds(&run(at, &["fsck", "disk.img"]));
        assert!(text.contains("Clean."), "{text}");
        let report = json(at, &["fsck", "disk.img", "-n"]);
        assert_eq!(report["schema"], "fsage.fsck-ffs/1");
        assert_eq!((&report["problem_count"], &report["contents"]["directories"]), (&Value::from(0), &Value::from(2)));
        assert_eq!(std::fs::read(at.join("disk.img")).unwrap(), bytes, "a check changes nothing");

        let superblock = json(at, &["dump", "disk.img"]);
        assert_eq!(superblock["at_byte"], superblock_at);
        let groups = json(at, &["dump", "disk.img", "groups"]);
        let ncg = groups["groups"].as_array().unwrap().len();
        assert_eq!(ncg, superblock["copies_at"].as_array().unwrap().len());
        let free = json(at, &["dump", "disk.img", "free"]);
        let free: u64 = free["free"].as_array().unwrap().iter().map(|run| run["frags"].as_u64().unwrap()).sum();
        assert_eq!(report["contents"]["free_frags"], free);
        assert_eq!(json(at, &["dump", "disk.img", "group", "1"])["group"], 1);
        assert_eq!(json(at, &["dump", "disk.img", "inode", "/lost+found"])["ino"], 3);
        let entries = json(at, &["dump", "disk.img", "directory"]);
        let names: Vec<&str> =
            entries["entries"].as_array().unwrap().iter().map(|e| e["name"].as_str().unwrap()).collect();
        assert_eq!(names, [".", "..", "lost+found"]);

        let copied = json(at, &["cp", "disk.img:/", "out"]);
        assert_eq!((&copied["directories"], &copied["files"]), (&Value::from(2), &Value::from(0)));
        assert_eq!(at.join("out/lost+found").metadata().unwrap().permissions().mode() & 0o7777, 0o755);

        // The same again is byte for byte the same.
        std::fs::remove_dir_all(at.join("out")).unwrap();
        std::fs::rename(at.join("disk.img"), at.join("first.img")).unwrap();
        made(at, args);
        assert!(std::fs::read(at.join("disk.img")).unwrap() == bytes);
        std::fs::remove_file(at.join("disk.img")).unwrap();
    }
}

#[test]
fn damage_is_found_and_repaired_in_a_copy_or_in_place() {
    let scratch = tempfile::tempdir().unwrap();
    let at = scratch.path();
    made(at, &[]);
    let image = at.join("disk.img");
    let mut bytes = std::fs::read(&image).unwrap();
    bytes[8192..8192 + 1376].fill(0);
    std::fs::write(&image, &bytes).unwrap();

    let found = run(at, &["fsck", "disk.img"]);
    assert_eq!(code(&found), 1);
    assert!(String::from_utf8_lossy(&found.stdout).contains("superblock at byte 8192 is damaged"));
    fails(&run(at, &["dump", "disk.img"]), 4, &["disk.img", "no UFS1 or UFS2 superblock"]);
    assert_eq!(json(at, &["dump", "disk.img", "superblock", "--copies"])["at_byte"], 16384);

    assert_eq!(code(&run(at, &["fsck", "disk.img", "--repair"])), 1);
    assert!(std::fs::read(&image).unwrap() == bytes, "the image itself is left alone");
    succeeds(&run(at, &["fsck", "disk.img.repaired"]));
    fails(&run(at, &["fsck", "disk.img", "--repair"]), 2, &["disk.img.repaired", "already there"]);
    let repaired = std::fs::read(at.join("disk.img.repaired")).unwrap();
    assert_eq!(code(&run(at, &["fsck", "disk.img", "--repair", "--in-place"])), 1);
    assert!(std::fs::read(&image).unwrap() == repaired);
    succeeds(&run(at, &["fsck", "disk.img"]));
}

#[test]
fn what_cannot_be_done_has_its_exit_code() {
    let scratch = tempfile::tempdir().unwrap();
    let at = scratch.path();
    std::fs::write(at.join("zeros"), vec![0; 300_000]).unwrap();
    fails(&run(at, &["fsck", "zeros"]), 4, &["zeros", "no UFS1 or UFS2 superblock"]);
    fails(&run(at, &["fsck", "missing"]), 4, &["missing"]);
    fails(&run(at, &["mkfs", "ffs", "new.img"]), 2, &["--size"]);
    assert!(!at.join("new.img").exists(), "a refused image leaves nothing behind");
    fails(&run(at, &["mkfs", "ffs", "new.img", "--size", "8M", "--bsize", "5000"]), 2, &["power of two"]);
    assert!(!at.join("new.img").exists());
    fails(&run(at, &["mkfs", "ffs", "zeros", "--size", "8M"]), 2, &["already there"]);
    made(at, &[]);
    fails(&run(at, &["dump", "disk.img", "group", "99"]), 2, &["group 99", "only"]);
    fails(&run(at, &["dump", "disk.img", "group"]), 2, &["which group"]);
    fails(&run(at, &["dump", "disk.img", "inode", "/nothing"]), 2, &["/nothing", "no such name"]);
    fails(&run(at, &["cp", "disk.img", "out"]), 2, &["IMAGE:/PATH"]);
    fails(&run(at, &["cp", "disk.img:/nothing", "out"]), 2, &["no such name"]);
    fails(&run(at, &["cp", "disk.img:/", "zeros"]), 3, &["zeros"]);
}
