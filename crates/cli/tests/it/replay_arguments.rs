//! Arguments of calls that a replay must not lose: a small program is recorded by either recorder and replayed; the
//! tree of the replay must be the program's own: names, types, lengths, targets, and which names are of one file.
//!
//! The program is this test binary itself ([`program`]).

use crate::common::{fsage, run, stderr, succeeds, with_each_tracer};
use rustix::fs::{
    AtFlags, CWD, FallocateFlags, Mode, OFlags, ResolveFlags, copy_file_range, fallocate, linkat, open, openat2,
    sendfile,
};
use rustix::io::{pwrite, write};
use rustix::pipe::{SpliceFlags, pipe, splice};
use std::collections::BTreeMap;
use std::fs;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::{Path, PathBuf};

/// Which case is to be run, in the directory where that is done, instead of tests.
const CASE: &str = "FSAGE_TEST_CASE";

fn made(name: &str, bytes: usize) -> OwnedFd {
    let file = open(name, OFlags::RDWR | OFlags::CREATE | OFlags::TRUNC, Mode::from_raw_mode(0o644)).unwrap();
    assert_eq!(pwrite(&file, &vec![b'x'; bytes], 0).unwrap(), bytes);
    file
}

fn unnamed(dir: &str) -> OwnedFd {
    open(dir, OFlags::RDWR | OFlags::TMPFILE, Mode::from_raw_mode(0o644)).unwrap()
}

fn link_by_proc(file: &OwnedFd, to: &str) {
    let link = format!("/proc/self/fd/{}", file.as_raw_fd());
    linkat(CWD, link, CWD, to, AtFlags::SYMLINK_FOLLOW).unwrap();
}

/// Files without a name, of which some get one, and one of which is in another root.
fn files_without_a_name() {
    fs::create_dir("sub").unwrap();
    let file = unnamed(".");
    write(&file, b"abc").unwrap();
    link_by_proc(&file, "one");
    write(&file, b"def").unwrap();
    link_by_proc(&file, "sub/two");
    drop(file);
    let never = unnamed("sub");
    write(&never, b"gone").unwrap();
    let long = unnamed("sub");
    fs::rename("sub", "moved").unwrap();
    write(&long, &[7; 5000]).unwrap();
    link_by_proc(&long, "moved/three");
    let replaced = unnamed(".");
    assert!(
        linkat(CWD, format!("/proc/self/fd/{}", replaced.as_raw_fd()), CWD, "one", AtFlags::SYMLINK_FOLLOW).is_err()
    );
    rustix::fs::fsetxattr(&replaced, "user.x", b"123", rustix::fs::XattrFlags::empty()).ok();
    write(&replaced, b"12").unwrap();
}

/// A file without a name in a directory that is the root for its open, linked by its descriptor.
fn without_a_name_in_another_root() {
    fs::create_dir("d").unwrap();
    let dir = open("d", OFlags::PATH | OFlags::DIRECTORY, Mode::empty()).unwrap();
    let flags = OFlags::RDWR | OFlags::TMPFILE;
    let file = openat2(&dir, "/", flags, Mode::from_raw_mode(0o644), ResolveFlags::IN_ROOT).unwrap();
    write(&file, b"rooted").unwrap();
    // By the descriptor itself where this user may.
    if linkat(&file, "", &dir, "named", AtFlags::EMPTY_PATH).is_err() {
        link_by_proc(&file, "d/named");
    }
}

/// Copies whose offsets are given, some after the end of what is there, and from and to pipes that hold less than is
/// asked for.
fn copies_at_offsets() {
    let (from, to) = (made("from", 300_000), made("to", 0));
    let (mut at, mut goes) = (0, 5000);
    assert_eq!(copy_file_range(&from, Some(&mut at), &to, Some(&mut goes), 100_000).unwrap(), 100_000);
    rustix::fs::seek(&from, rustix::fs::SeekFrom::Start(10)).unwrap();
    assert_eq!(copy_file_range(&from, None, &to, None, 77).unwrap(), 77);
    let (out, into) = pipe().unwrap();
    let none = SpliceFlags::empty();
    let mut at = 1000;
    assert_eq!(splice(&from, Some(&mut at), &into, None, 5000, none).unwrap(), 5000);
    let mut goes = 900_000;
    assert_eq!(splice(&out, None, &to, Some(&mut goes), 65_536, none).unwrap(), 5000);
    // At its description's place, 87; the pipe takes less than it is offered.
    let filled = splice(&from, None, &into, None, 200_000, none).unwrap();
    assert!(filled < 200_000);
    let rest = made("rest", 0);
    let mut moved = 0;
    while moved < filled {
        moved += splice(&out, None, &rest, None, 1 << 20, none).unwrap();
    }
    write(&rest, b"behind").unwrap();
    let mut at = 299_000;
    assert_eq!(sendfile(&rest, &from, Some(&mut at), 5000).unwrap(), 1000);
    assert_eq!(sendfile(&rest, &from, None, 1000).unwrap(), 1000);
}

/// Every mode of fallocate at a file of its own; those that the file system lacks fail in the replay as they did here.
fn modes_of_fallocate() {
    for bits in [0x00, 0x01, 0x02, 0x03, 0x08, 0x09, 0x10, 0x11, 0x20, 0x21, 0x40, 0x41, 0x80] {
        let mode = FallocateFlags::from_bits_retain(bits);
        for (offset, bytes) in [(4096, 8192), (16384, 100_000)] {
            let file = made(&format!("mode{bits}-at{offset}"), 32_768);
            let _ = fallocate(&file, mode, offset, bytes);
        }
    }
}

/// A link to what a symbolic link leads to, and one to the symbolic link itself.
fn links_of_links() {
    drop(made("file", 10));
    symlink("file", "link").unwrap();
    linkat(CWD, "link", CWD, "of-file", AtFlags::SYMLINK_FOLLOW).unwrap();
    linkat(CWD, "link", CWD, "of-link", AtFlags::empty()).unwrap();
}

/// No test: what is recorded.
#[test]
fn program() {
    match std::env::var(CASE).unwrap_or_default().as_str() {
        // Not recorded, it shows that a case that fails is seen to fail.
        "" => {
            let mut again = std::process::Command::new(std::env::current_exe().unwrap());
            again.args(["--exact", "replay_arguments::program", "--test-threads=1"]).env(CASE, "no such case");
            assert!(!again.output().unwrap().status.success());
        }
        "files_without_a_name" => files_without_a_name(),
        "without_a_name_in_another_root" => without_a_name_in_another_root(),
        "copies_at_offsets" => copies_at_offsets(),
        "modes_of_fallocate" => modes_of_fallocate(),
        "links_of_links" => links_of_links(),
        other => panic!("no such case: {other}"),
    }
}

/// Type, length, number of names, target, and the first name of the same file, of every name below a directory.
fn tree(top: &Path) -> BTreeMap<PathBuf, String> {
    let (mut out, mut first, mut left) = (BTreeMap::new(), BTreeMap::new(), vec![top.to_owned()]);
    while let Some(dir) = left.pop() {
        let mut names: Vec<PathBuf> = fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path()).collect();
        names.sort();
        for path in names {
            let name = path.strip_prefix(top).unwrap().to_owned();
            let meta = fs::symlink_metadata(&path).unwrap();
            if meta.is_dir() {
                left.push(path);
                out.insert(name, "directory".into());
                continue;
            }
            let same = first.entry(meta.ino()).or_insert_with(|| name.clone());
            let (len, links, target) = (meta.len(), meta.nlink(), fs::read_link(&path).ok());
            out.insert(name, format!("{:?} {len} {links} {target:?} {same:?}", meta.file_type()));
        }
    }
    out
}

/// The directory `work` of a case that has been recorded, and the profile; `None` where the recorder cannot run.
fn recorded(with: &str, case: &str, dir: &Path) -> Option<(PathBuf, String)> {
    let work = dir.join("work");
    fs::create_dir(&work).unwrap();
    let profile = dir.join("p.workload").into_os_string().into_string().unwrap();
    let program = std::env::current_exe().unwrap();
    let out = fsage()
        .current_dir(&work)
        .env(CASE, case)
        .args(["record", "--with", with, "-o", &profile])
        .arg(program)
        .args(["--exact", "replay_arguments::program", "--test-threads=1"])
        .output()
        .unwrap();
    if out.status.code() == Some(3) {
        testkit::skip(stderr(&out));
        return None;
    }
    succeeds(&out);
    let against = run(dir, &["inspect", &profile, "--against", work.to_str().unwrap()]);
    assert_eq!(against.status.code(), Some(0), "{}", String::from_utf8_lossy(&against.stdout));
    Some((work, profile))
}

/// Records a case, replays it, and compares the trees.
fn check(with: &str, case: &str) {
    let dir = tempfile::tempdir().unwrap();
    let base = dir.path().canonicalize().unwrap();
    let Some((work, profile)) = recorded(with, case, &base) else { return };
    let target = base.join("target");
    fs::create_dir(&target).unwrap();
    let replayed = run(&base, &["replay", &profile, target.to_str().unwrap(), "--keep", "--json"]);
    let result = succeeds(&replayed);
    let kept = fs::read_dir(&target).unwrap().map(|entry| entry.unwrap().path()).next().unwrap();
    let found = with_names_of(&kept.join("root"), work.strip_prefix("/").unwrap());
    assert_eq!(tree(&found), tree(&work), "{result}");
    let work = work.to_str().unwrap();
    assert!(!result.split("\"differences\"").nth(1).unwrap_or_default().contains(work), "{result}");
}

/// A volume of the laboratory makes no files without a name: what stands in for them is counted and leaves nothing.
#[test]
fn where_files_have_names_the_stand_in_leaves_none() {
    let dir = tempfile::tempdir().unwrap();
    let base = dir.path().canonicalize().unwrap();
    let Some((work, profile)) = recorded("strace", "files_without_a_name", &base) else { return };
    let replayed = run(&base, &["replay", &profile, "ffs:size=200M", "--keep", "--json"]);
    let result: serde_json::Value = serde_json::from_str(&succeeds(&replayed)).unwrap();
    let unlike = serde_json::json!([{"op": "open", "expected": "success", "got": "EOPNOTSUPP", "count": 4}]);
    assert!(holds(&result, &unlike), "{result}");
    succeeds(&run(&base, &["cp", "ffs-1.img:/", "out"]));
    let found = with_names_of(&base.join("out"), work.strip_prefix("/").unwrap());
    assert_eq!(tree(&found), tree(&work));
}

/// Whether a JSON value is anywhere in another.
fn holds(all: &serde_json::Value, part: &serde_json::Value) -> bool {
    let mut parts: Box<dyn Iterator<Item = &serde_json::Value>> = match all {
        serde_json::Value::Object(fields) => Box::new(fields.values()),
        serde_json::Value::Array(items) => Box::new(items.iter()),
        _ => Box::new(std::iter::empty()),
    };
    all == part || parts.any(|one| holds(one, part))
}

/// The directory below another, or below one in it, that has these names at its end.
fn with_names_of(top: &Path, below: &Path) -> PathBuf {
    let entries = fs::read_dir(top).unwrap().map(|entry| entry.unwrap().path());
    let found = entries.chain([top.to_owned()]).map(|dir| dir.join(below)).find(|path| path.exists());
    found.unwrap_or_else(|| panic!("{} is below {}", below.display(), top.display()))
}

fn a_file_without_a_name_gets_the_names_it_got(with: &str) {
    check(with, "files_without_a_name");
}

fn a_file_without_a_name_below_another_root_is_that_file(with: &str) {
    check(with, "without_a_name_in_another_root");
}

fn copies_are_at_the_offsets_they_were_given(with: &str) {
    check(with, "copies_at_offsets");
}

fn fallocate_keeps_its_mode(with: &str) {
    check(with, "modes_of_fallocate");
}

fn a_link_follows_where_it_did(with: &str) {
    check(with, "links_of_links");
}

with_each_tracer!(
    a_file_without_a_name_gets_the_names_it_got,
    a_file_without_a_name_below_another_root_is_that_file,
    copies_are_at_the_offsets_they_were_given,
    fallocate_keeps_its_mode,
    a_link_follows_where_it_did,
);
