//! `fsage mkfs lfs`, and `fsck`, `dump` and `cp` of what it makes, as people and scripts call them.

use crate::common;
use crate::common::{code, fails, run, succeeds};
use serde_json::Value;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _};
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
    fails(&run(at, &["cp", "file", "log.img:/", "--policy", "dirpref"]), 2, &["log.img: --policy is for FFS images"]);
    succeeds(&run(at, &["mkfs", "ffs", "disk.img", "--size", "8M"]));
    fails(&run(at, &["dump", "disk.img", "segments"]), 2, &["is an FFS image"]);

    fails(&run(at, &["dump", "disk.img", "--checkpoint"]), 2, &["is an FFS image"]);
    fails(&run(at, &["cp", "--copies", "log.img:/", "out"]), 2, &["log.img: --copies is for FFS images"]);

    // A byte of the usage table: found, and said which.
    let mut bytes = std::fs::read(at.join("log.img")).unwrap();
    let usage = 26 << 10;
    bytes[usage] ^= 1;
    std::fs::write(at.join("log.img"), &bytes).unwrap();
    let found = run(at, &["fsck", "log.img"]);
    assert_eq!(code(&found), 1);
    assert!(String::from_utf8_lossy(&found.stdout).contains("the usage table says"));
    // What is damaged is not written to: where, what, and what to do.
    for how in [&[][..], &["--in-place"]] {
        let refused = run(at, &[&["cp", "file", "log.img:/"], how].concat());
        fails(&refused, 4, &["log.img", "cannot be written to", "segment 0", "fsage fsck"]);
        assert!(std::fs::read(at.join("log.img")).unwrap() == bytes);
    }
    // A damaged superblock: the other one will do. Without either, nothing.
    bytes[8192 + 400] ^= 1;
    std::fs::write(at.join("log.img"), &bytes).unwrap();
    assert_eq!(json(at, &["dump", "log.img"])["at_byte"], 786_432);
    bytes[786_432 + 400] ^= 1;
    std::fs::write(at.join("log.img"), &bytes).unwrap();
    fails(&run(at, &["dump", "log.img"]), 4, &["log.img", "cksum"]);
}

/// A tree with a file, links, a hole, a pipe and a directory.
fn small_tree(at: &Path) {
    std::fs::create_dir_all(at.join("dir/below")).unwrap();
    std::fs::write(at.join("dir/file"), vec![7; 70_000]).unwrap();
    std::fs::hard_link(at.join("dir/file"), at.join("hard")).unwrap();
    std::os::unix::fs::symlink("dir/file", at.join("link")).unwrap();
    let sparse = std::fs::File::create(at.join("sparse")).unwrap();
    sparse.write_all_at(b"behind a hole", 3 << 20).unwrap();
    sparse.set_permissions(std::fs::Permissions::from_mode(0o4711)).unwrap();
}

#[test]
fn files_are_copied_in_and_out_again() {
    let scratch = tempfile::tempdir().unwrap();
    let at = scratch.path();
    small_tree(&at.join("tree"));
    succeeds(&run(at, &["mkfs", "lfs", "log.img", "--size", "8M", "--time", "1000", "--lost-found"]));
    let copied = json(at, &["cp", "tree", "log.img:/"]);
    assert_eq!(copied["schema"], "fsage.cp-into-lfs/1");
    let figures = [("files", 2), ("directories", 3), ("hard_links", 1), ("symlinks", 1), ("data_bytes", 70_013)];
    assert!(figures.iter().all(|(name, n)| copied[*name] == *n), "{copied}");
    succeeds(&run(at, &["cp", "tree/hard", "tree/link", "log.img:/lost+found"]));
    succeeds(&run(at, &["cp", "tree/hard", "log.img:/new name"]));
    assert!(succeeds(&run(at, &["fsck", "log.img"])).contains("Clean."));

    // Nothing is overwritten unasked, and what is refused changes nothing.
    let before = std::fs::read(at.join("log.img")).unwrap();
    fails(&run(at, &["cp", "tree/hard", "log.img:/new name"]), 2, &["tree/hard", "--overwrite"]);
    fails(&run(at, &["cp", "tree", "log.img:/no/where"]), 2, &["/no/where", "no such directory"]);
    fails(&run(at, &["cp", "missing", "log.img:/"]), 3, &["missing"]);
    fails(&run(at, &["cp", "tree", "log.img:/", "--owners"]), 2, &["--owners", "out of an image"]);
    std::fs::write(at.join("large"), vec![5; 9 << 20]).unwrap();
    fails(&run(at, &["cp", "large", "log.img:/"]), 3, &["large", "no space", "fsage mkfs lfs"]);
    assert!(std::fs::read(at.join("log.img")).unwrap() == before);

    succeeds(&run(at, &["cp", "--overwrite", "--in-place", "tree/dir/file", "log.img:/new name"]));
    std::fs::create_dir(at.join("out")).unwrap();
    let done = json(at, &["cp", "log.img:/tree", "log.img:/new name", "out"]);
    assert_eq!((&done["files"], &done["hard_links"]), (&Value::from(3), &Value::from(1)));
    assert_eq!(std::fs::read(at.join("out/new name")).unwrap(), vec![7; 70_000]);
    assert_eq!(std::fs::read_link(at.join("out/tree/link")).unwrap(), Path::new("dir/file"));
    let sparse = at.join("out/tree/sparse");
    assert!(std::fs::read(&sparse).unwrap() == std::fs::read(at.join("tree/sparse")).unwrap());
    assert_eq!(sparse.metadata().unwrap().permissions().mode() & 0o7777, 0o711, "nobody asked for setuid");
    assert_eq!(done["set_ids_dropped"], 1);
    assert!(sparse.metadata().unwrap().blocks() < 100, "holes stay holes");

    // In place, a file that does not fit leaves a sound file system with what came before it.
    fails(&run(at, &["cp", "--in-place", "tree/hard", "large", "log.img:/lost+found", "--overwrite"]), 3, &["large"]);
    assert!(succeeds(&run(at, &["fsck", "log.img"])).contains("Clean."));
}

#[test]
fn a_file_system_is_made_with_files_in_it() {
    let scratch = tempfile::tempdir().unwrap();
    let at = scratch.path();
    small_tree(&at.join("tree"));
    let populated = |image: &str| {
        run(at, &["mkfs", "lfs", image, "--size", "8M", "--time", "5000", "--populate", "tree", "--owner", "3:4"])
    };
    let text = succeeds(&populated("one.img"));
    assert!(text.contains("Copied") && text.contains("68.4 KiB"), "{text}");
    assert!(succeeds(&run(at, &["fsck", "one.img"])).contains("Clean."));
    let inode = json(at, &["dump", "one.img", "inode", "/dir/file"]);
    let field = |name: &str| {
        let fields = inode["fields"].as_array().unwrap();
        fields.iter().find(|field| field["name"] == name).unwrap()["value"].as_str().unwrap().to_owned()
    };
    assert_eq!((field("uid"), field("gid"), field("nlink")), ("3".into(), "4".into(), "2".into()));
    assert_eq!(field("mtime"), "5000.000000000");
    let _ = std::fs::read(at.join("tree/dir/file")).unwrap();
    succeeds(&populated("two.img"));
    assert!(std::fs::read(at.join("one.img")).unwrap() == std::fs::read(at.join("two.img")).unwrap());

    std::fs::write(at.join("tree/large"), vec![1; 9 << 20]).unwrap();
    fails(&populated("three.img"), 3, &["tree/./large", "no space", "larger"]);
    assert!(!at.join("three.img").exists(), "half a file system is not left behind");
    let alone = run(at, &["mkfs", "lfs", "four.img", "--size", "8M", "--owner", "0:0"]);
    assert!(code(&alone) == 2 && common::stderr(&alone).contains("--populate"));
}

/// Whether the log has partial segments that a cleaner has written.
fn has_cleaner_s_writes(at: &Path, image: &str) -> bool {
    let segments = json(at, &["dump", image, "segments"]);
    let numbers = 0..segments["segments"].as_array().unwrap().len();
    numbers.into_iter().any(|n| {
        let segment = json(at, &["dump", image, "segment", &n.to_string()]);
        let flags = |partial: &Value| partial["flags"].as_array().unwrap().contains(&Value::from("clean"));
        segment["partials"].as_array().unwrap().iter().any(flags)
    })
}

/// Files, then years of use in the laboratory, then the cleaner, then more files: what other systems are to mount.
#[test]
fn an_image_that_was_used_and_cleaned_is_complete() {
    let scratch = tempfile::tempdir().unwrap();
    let at = scratch.path();
    small_tree(&at.join("tree"));
    succeeds(&run(at, &["mkfs", "lfs", "log.img", "--size", "28M", "--populate", "tree", "--segment", "256K"]));
    succeeds(&run(at, &["plan", "personality", "home", "--capacity", "20M", "--days", "3", "-o", "p.aging"]));
    succeeds(&run(at, &["age", "lfs:image=log.img,cache=1M", "--plan", "p.aging", "--keep", "aged.img"]));
    assert!(succeeds(&run(at, &["fsck", "aged.img"])).contains("Clean."));

    let aged = std::fs::read(at.join("aged.img")).unwrap();
    let few = json(at, &["clean", "aged.img", "--segments", "3", "--policy", "greedy", "--time", "2000000000"]);
    assert_eq!(few["schema"], "fsage.clean/1");
    let clean = |done: &Value, name: &str| done[name].as_u64().unwrap();
    assert!(clean(&few, "clean_after") >= clean(&few, "clean_before") + 3, "{few}");
    std::fs::write(at.join("aged.img"), &aged).unwrap();
    let all = json(at, &["clean", "aged.img", "--in-place", "--time", "2000000000"]);
    assert!(clean(&all, "clean_after") > clean(&few, "clean_after"), "{all}");
    assert!(has_cleaner_s_writes(at, "aged.img"));
    assert!(succeeds(&run(at, &["fsck", "aged.img"])).contains("Clean."));
    let again = json(at, &["clean", "aged.img"]);
    assert!(clean(&again, "clean_after") < clean(&all, "clean_after") + 4, "there is little left to gain: {again}");

    succeeds(&run(at, &["cp", "tree", "aged.img:/again"]));
    assert!(succeeds(&run(at, &["fsck", "aged.img"])).contains("Clean."));
    for (copy, to) in [("dir", "first"), ("again/dir", "second")] {
        succeeds(&run(at, &["cp", &format!("aged.img:/{copy}"), to]));
        assert_eq!(std::fs::read(at.join(to).join("file")).unwrap(), vec![7; 70_000]);
    }
}

#[test]
fn only_a_sound_log_is_cleaned() {
    let scratch = tempfile::tempdir().unwrap();
    let at = scratch.path();
    succeeds(&run(at, &["mkfs", "ffs", "disk.img", "--size", "8M"]));
    fails(&run(at, &["clean", "disk.img"]), 4, &["disk.img", "no LFS image"]);
    fails(&run(at, &["clean", "missing"]), 4, &["missing"]);
    succeeds(&run(at, &["mkfs", "lfs", "log.img", "--size", "8M"]));
    let unknown = run(at, &["clean", "log.img", "--policy", "off"]);
    assert!(code(&unknown) == 2 && common::stderr(&unknown).contains("there are cost-benefit, greedy and netbsd"));
    let mut bytes = std::fs::read(at.join("log.img")).unwrap();
    bytes[26 << 10] ^= 1;
    std::fs::write(at.join("log.img"), &bytes).unwrap();
    fails(&run(at, &["clean", "log.img"]), 4, &["cannot be written to", "segment 0", "fsage fsck"]);
    assert!(std::fs::read(at.join("log.img")).unwrap() == bytes);
}

/// The image that NetBSD's kernel left behind in a crash.
fn crashed(directory: &Path) -> std::path::PathBuf {
    testkit::fixture::unpack("images/lfs-netbsd-crashed.img", directory)
}

/// A log that nobody unmounted is rolled forward before anything is copied into it: what was synced is there, with the
/// rest.
#[test]
fn files_are_copied_into_a_log_that_was_not_unmounted() {
    let scratch = tempfile::tempdir().unwrap();
    let at = scratch.path();
    std::fs::rename(crashed(at), at.join("log.img")).unwrap();
    small_tree(&at.join("tree"));
    assert!(
        succeeds(&run(at, &["fsck", "log.img"])).contains("Not unmounted, 2 partial segments after the checkpoint.")
    );
    succeeds(&run(at, &["cp", "log.img:/", "before"]));
    succeeds(&run(at, &["cp", "tree", "log.img:/tree"]));
    let text = succeeds(&run(at, &["fsck", "log.img"]));
    assert!(text.contains("Unmounted cleanly.") && text.contains("Clean."), "{text}");
    succeeds(&run(at, &["cp", "log.img:/", "after"]));
    let same = |name: &Path| {
        let read = |side: &str| std::fs::read(at.join(side).join(name)).unwrap();
        assert!(read("before") == read("after"), "{}", name.display());
    };
    let mut files = 0;
    for entry in std::fs::read_dir(at.join("before")).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_file() {
            files += 1;
            same(Path::new(&entry.file_name()));
        }
    }
    assert!(files > 0);
    assert_eq!(std::fs::read(at.join("after/tree/hard")).unwrap(), vec![7; 70_000]);
    succeeds(&run(at, &["clean", "log.img"]));
    assert!(succeeds(&run(at, &["fsck", "log.img"])).contains("Clean."));
}
