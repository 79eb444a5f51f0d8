//! `fsage library` through the binary: what is there stays.

use crate::common;
use std::fs;
use std::path::Path;

fn library(directory: &Path, args: &[&str]) -> assert_cmd::assert::Assert {
    common::fsage().current_dir(directory).args(["library", "ours"]).args(args).assert()
}

/// A profile of another system under the same name took the place of the one by which everything there was predicted.
#[test]
fn a_system_that_is_there_stays() {
    let directory = tempfile::tempdir().unwrap();
    let dear = common::small_system(directory.path(), "mine", 9000.0);
    let workload = common::small_workload(directory.path());
    library(directory.path(), &["--add", workload.to_str().unwrap(), "--system", dear.to_str().unwrap()]).success();
    let kept = directory.path().join("ours/systems/mine.system");
    let before = fs::read(&kept).unwrap();
    let cheap = common::small_system(directory.path(), "mine", 10.0);
    let said = library(directory.path(), &["--system", cheap.to_str().unwrap()]).success();
    let said = String::from_utf8(said.get_output().stderr.clone()).unwrap();
    assert!(said.contains("mine is there already, and stays as it is") && said.contains("mine.system"), "{said}");
    assert_eq!(fs::read(&kept).unwrap(), before);
    fs::remove_file(&kept).unwrap();
    library(directory.path(), &["--system", cheap.to_str().unwrap()]).success();
    assert_ne!(fs::read(&kept).unwrap(), before, "what was removed is taken in anew");
}

/// `ext4:1G` and something that is called `ext4-1G` are one file: replays on the one stood beside prices of the other.
/// Nothing is measured for that.
#[test]
fn two_targets_of_one_file_name_are_not_mixed() {
    let directory = tempfile::tempdir().unwrap();
    let other = common::small_system(directory.path(), "ext4-1G", 10.0);
    let workload = common::small_workload(directory.path());
    library(directory.path(), &["--add", workload.to_str().unwrap(), "--system", other.to_str().unwrap()]).success();
    let output = common::fsage()
        .current_dir(directory.path())
        .args(["library", "ours", "--on", "ext4:1G", "--no-replay"])
        .output()
        .unwrap();
    common::fails(&output, 2, &["ext4:1G: its profile would be", "ext4-1G.system, and that is of ext4-1G"]);
}
