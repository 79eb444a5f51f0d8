//! `fsage mkfs`, `fsck`, `dump` and `cp` as people and scripts call them.

use crate::common;
use crate::common::{code, fails, run, succeeds};
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

/// A tree with a file, a link and a directory.
fn small_tree(at: &Path) {
    std::fs::create_dir_all(at.join("dir/below")).unwrap();
    std::fs::write(at.join("dir/file"), vec![7; 70_000]).unwrap();
    std::fs::hard_link(at.join("dir/file"), at.join("hard")).unwrap();
    std::os::unix::fs::symlink("dir/file", at.join("link")).unwrap();
}

#[test]
fn files_are_copied_in_and_out_again() {
    let scratch = tempfile::tempdir().unwrap();
    let at = scratch.path();
    small_tree(&at.join("tree"));
    for ufs in ["1", "2"] {
        made(at, &["--ufs", ufs, "--force"]);
        let copied = json(at, &["cp", "--policy", "noswitch,dirpref", "tree", "disk.img:/"]);
        assert_eq!(copied["schema"], "fsage.cp-into-ffs/1");
        let figures = [("files", 1), ("directories", 3), ("hard_links", 1), ("symlinks", 1), ("data_bytes", 70_000)];
        assert!(figures.iter().all(|(name, n)| copied[*name] == *n), "{copied}");
        succeeds(&run(at, &["cp", "tree/hard", "tree/link", "disk.img:/lost+found"]));
        succeeds(&run(at, &["cp", "tree/hard", "disk.img:/new name"]));
        assert!(succeeds(&run(at, &["fsck", "disk.img"])).contains("Clean."));

        // Nothing is overwritten unasked, and what is refused changes nothing.
        let before = std::fs::read(at.join("disk.img")).unwrap();
        fails(&run(at, &["cp", "tree/hard", "disk.img:/new name"]), 2, &["tree/hard", "--overwrite"]);
        fails(&run(at, &["cp", "tree", "disk.img:/no/where"]), 2, &["/no/where", "no such directory"]);
        fails(&run(at, &["cp", "missing", "disk.img:/"]), 3, &["missing"]);
        let unknown = run(at, &["cp", "tree", "disk.img:/", "--policy", "softdeps"]);
        assert!(code(&unknown) == 2 && common::stderr(&unknown).contains("there are original, realloc"));
        fails(&run(at, &["cp", "tree", "disk.img:/", "--owners"]), 2, &["--owners", "out of an image"]);
        fails(&run(at, &["cp", "disk.img:/tree", "out", "--in-place"]), 2, &["--in-place", "into an image"]);
        fails(&run(at, &["cp", "disk.img:/tree", "disk.img:/"]), 2, &["from an image into an image"]);
        fails(&run(at, &["cp", "tree", "tree2"]), 2, &["IMAGE:/PATH"]);
        assert!(std::fs::read(at.join("disk.img")).unwrap() == before);

        succeeds(&run(at, &["cp", "--overwrite", "--in-place", "tree/dir/file", "disk.img:/new name"]));
        std::fs::create_dir(at.join("out")).unwrap();
        let done = json(at, &["cp", "disk.img:/tree", "disk.img:/new name", "out"]);
        assert_eq!((&done["files"], &done["hard_links"]), (&Value::from(2), &Value::from(1)));
        assert_eq!(std::fs::read(at.join("out/new name")).unwrap(), vec![7; 70_000]);
        assert_eq!(std::fs::read_link(at.join("out/tree/link")).unwrap(), Path::new("dir/file"));
        std::fs::remove_dir_all(at.join("out")).unwrap();

        let mut dirty = before;
        dirty[if ufs == "1" { 8192 } else { 65536 } + 209] = 0;
        std::fs::write(at.join("dirty.img"), &dirty).unwrap();
        fails(&run(at, &["cp", "tree", "dirty.img:/x"]), 4, &["not unmounted cleanly", "fsage fsck"]);
        assert!(std::fs::read(at.join("dirty.img")).unwrap() == dirty);
    }
}

#[test]
fn a_file_system_is_made_with_files_in_it() {
    let scratch = tempfile::tempdir().unwrap();
    let at = scratch.path();
    small_tree(&at.join("tree"));
    let populated = |image: &str, more: &[&str]| {
        let base = ["mkfs", "ffs", image, "--size", "8M", "--time", "5000", "--populate", "tree", "--owner", "3:4"];
        run(at, &[&base, more].concat())
    };
    let text = succeeds(&populated("one.img", &["--ufs", "2", "--endian", "big"]));
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
    succeeds(&populated("two.img", &["--ufs", "2", "--endian", "big"]));
    assert!(std::fs::read(at.join("one.img")).unwrap() == std::fs::read(at.join("two.img")).unwrap());

    std::fs::write(at.join("tree/large"), vec![1; 9 << 20]).unwrap();
    fails(&populated("three.img", &[]), 3, &["tree/./large", "no space", "larger"]);
    assert!(!at.join("three.img").exists(), "half a file system is not left behind");
    let alone = run(at, &["mkfs", "ffs", "four.img", "--size", "8M", "--owner", "0:0"]);
    assert!(code(&alone) == 2 && common::stderr(&alone).contains("--populate"));
}

#[test]
fn a_file_system_again_from_its_free_maps() {
    let scratch = tempfile::tempdir().unwrap();
    let at = scratch.path();
    std::fs::create_dir(at.join("tree")).unwrap();
    for n in 0..40_usize {
        std::fs::write(at.join(format!("tree/{n}")), vec![1; n * 1777]).unwrap();
    }
    made(at, &["--populate", "tree"]);
    let maps = succeeds(&run(at, &["dump", "disk.img", "free-maps", "--json"]));
    std::fs::write(at.join("disk.maps"), maps).unwrap();
    assert!(succeeds(&run(at, &["dump", "disk.img", "free-maps"])).contains("runs of free fragments"));

    let again = json(at, &["mkfs", "free-maps", "again.img", "disk.maps"]);
    assert_eq!(again["schema"], "fsage.mkfs-free-maps/1");
    assert!(succeeds(&run(at, &["fsck", "again.img", "-n"])).contains("Clean."));
    let free = |image: &str| json(at, &["dump", image, "free"])["free"].clone();
    assert_eq!(free("again.img"), free("disk.img"));
    let entries = json(at, &["dump", "again.img", "directory"]);
    assert_eq!(entries["entries"].as_array().unwrap().len(), 3, "its root has nothing but what holds space");

    let emptied = json(at, &["mkfs", "free-maps", "empty.img", "disk.maps", "--emptied"]);
    assert!(emptied["free_bytes"].as_u64() > again["free_bytes"].as_u64());
    assert!(succeeds(&run(at, &["fsck", "empty.img", "-n"])).contains("Clean."));

    fails(&run(at, &["mkfs", "free-maps", "again.img", "disk.maps"]), 2, &["already there"]);
    std::fs::write(at.join("other.json"), "{\"schema\": \"fsage.ffs-free/1\"}").unwrap();
    fails(&run(at, &["mkfs", "free-maps", "new.img", "other.json"]), 4, &["other.json", "free-maps --json"]);
}
