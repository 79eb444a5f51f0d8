//! Mounts, roots and working directories in what is imported: where a path leads.

use crate::import_common::{import, rows};
use trace::{Op, flag};

/// Torture in the kernel, seed 7, a million operations: a directory was forgotten with all below it, as a path that led
/// to it by `..` failed on the way.
#[test]
fn enoent_on_the_way_says_nothing_of_where_the_path_leads() {
    let rows = rows(&[
        "newfstatat(AT_FDCWD</w>, \"/w/d/f\", {st_mode=S_IFREG|0644, st_size=5, ...}, 0) = 0",
        "newfstatat(AT_FDCWD</w>, \"/w/d/sub\", {st_mode=S_IFDIR|0755, st_size=5, ...}, 0) = 0",
        "readlink(\"/w/d/sub/..\", 0x7f, 100) = -1 ENOENT (No such file or directory)",
        "newfstatat(AT_FDCWD</w>, \"/w/d/f\", {st_mode=S_IFREG|0644, st_size=5, ...}, 0) = 0",
    ]);
    assert!(rows[0].event.file.is_some());
    assert_eq!(rows[3].event.file, rows[0].event.file);
}

/// Whoever replays a trace has no mounts: paths across them are those by which the file system itself knows the files.
#[test]
fn paths_across_bind_mounts_are_translated() {
    const OK: &str = "{st_mode=S_IFREG|0644, st_size=5, ...}, 0) = 0";
    let stat = |cwd: &str, path: &str| format!("newfstatat(AT_FDCWD<{cwd}>, \"{path}\", {OK}");
    let calls = [
        "mkdir(\"/w/a\", 0755) = 0".to_owned(),
        "mkdir(\"/w/a/sub\", 0755) = 0".to_owned(),
        "mkdir(\"/w/b\", 0755) = 0".to_owned(),
        "mount(\"/w/a\", \"/w/b\", NULL, MS_BIND, NULL) = 0".to_owned(),
        "openat(AT_FDCWD</w>, \"b/f\", O_WRONLY|O_CREAT|O_EXCL, 0600) = 3</w/b/f>".to_owned(),
        stat("/w", "/w/a/f"),
        "symlink(\"b/sub\", \"/w/link\") = 0".to_owned(),
        "mkdir(\"/w/link/deep\", 0755) = 0".to_owned(),
        "chdir(\"/w/b/sub\") = 0".to_owned(),
        stat("/w/b/sub", "deep/../../f"),
        stat("/w/b/sub", "../../link/deep"),
        "rmdir(\"/w/b\") = -1 EBUSY (Device or resource busy)".to_owned(),
        "mount(\"/gone\", \"/w/b\", NULL, MS_BIND, NULL) = -1 ENOENT (No such file or directory)".to_owned(),
        stat("/w", "/w/b/f"),
        "umount2(\"/w/b\", MNT_DETACH) = 0".to_owned(),
        "mkdir(\"/w/b/own\", 0755) = 0".to_owned(),
    ];
    let calls: Vec<&str> = calls.iter().map(String::as_str).collect();
    let rows = rows(&calls);
    let path = |i: usize| String::from_utf8_lossy(rows[i].path.as_deref().unwrap_or_default()).into_owned();
    assert_eq!(path(4), "/w/a/f");
    assert_eq!(rows[4].event.flags & flag::BY_MOUNT, flag::BY_MOUNT);
    assert_eq!((path(5).as_str(), rows[5].event.flags & flag::BY_MOUNT), ("/w/a/f", 0));
    let f = rows[4].event.file;
    assert!(f.is_some());
    assert_eq!((rows[5].event.file, rows[9].event.file, rows[13].event.file), (f, f, f));
    assert_eq!(path(7), "/w/a/sub/deep", "a link into a mount");
    assert_eq!(path(10), "/w/a/sub/deep", "up and out of the mount, and in again");
    assert_eq!(rows[10].event.file, rows[7].event.file);
    assert_eq!(path(11), "/w/b", "the name itself, and not what is mounted there");
    assert_eq!(path(13), "/w/a/f");
    assert_eq!((path(15).as_str(), rows[15].event.flags & flag::BY_MOUNT), ("/w/b/own", 0), "unmounted");
}

/// What is mounted has no name any more: a link leads to it all the same, `..` leads out of it, and it can be unmounted
/// (torture, seeds 48, 64 and 149).
#[test]
fn what_is_mounted_can_lose_its_name() {
    const OK: &str = "{st_mode=S_IFREG|0644, st_size=5, ...}, 0) = 0";
    let stat = |path: &str| format!("newfstatat(AT_FDCWD</w>, \"{path}\", {OK}");
    let calls = [
        "openat(AT_FDCWD</w>, \"/w/a\", O_WRONLY|O_CREAT|O_EXCL, 0600) = 3</w/a>".to_owned(),
        "openat(AT_FDCWD</w>, \"/w/b\", O_WRONLY|O_CREAT|O_EXCL, 0600) = 4</w/b>".to_owned(),
        "mkdir(\"/w/dir\", 0755) = 0".to_owned(),
        "mkdir(\"/w/dir/sub\", 0755) = 0".to_owned(),
        "mkdir(\"/w/point\", 0755) = 0".to_owned(),
        "mount(\"/w/a\", \"/w/b\", NULL, MS_BIND, NULL) = 0".to_owned(),
        "mount(\"/w/dir/sub\", \"/w/point\", NULL, MS_BIND, NULL) = 0".to_owned(),
        "symlink(\"b\", \"/w/link\") = 0".to_owned(),
        "unlink(\"/w/a\") = 0".to_owned(),
        "rmdir(\"/w/dir/sub\") = 0".to_owned(),
        stat("/w/b"),
        stat("/w/link"),
        "readlink(\"/w/link\", \"b\", 100) = 1".to_owned(),
        "truncate(\"/w/link\", 7) = 0".to_owned(),
        stat("/w/point/../dir/../link"),
        "rename(\"/w/point/../link\", \"/w/other\") = 0".to_owned(),
        "umount2(\"/w/other\", 0) = 0".to_owned(),
        stat("/w/b"),
    ];
    let calls: Vec<&str> = calls.iter().map(String::as_str).collect();
    let rows = rows(&calls);
    let file = |i: usize| rows[i].event.file.expect("a file");
    let (a, b, link) = (file(0), file(1), file(7));
    assert_eq!([file(10), file(11), file(13), file(14)], [a; 4], "what is mounted there");
    assert_eq!([file(12), file(15)], [link; 2], "the link itself");
    assert_eq!(file(17), b, "unmounted by way of the link");
}

/// Where one stands can be covered: one stays there, and mounts and unmounts concern what covers it. `..` at a root
/// leads to what covers that, and the root itself does not (torture, roots, seeds 301, 316 and 404).
#[test]
fn where_one_stands_can_be_covered() {
    const OK: &str = "{st_mode=S_IFDIR|0755, st_size=5, ...}, 0) = 0";
    let stat = |path: &str| format!("newfstatat(AT_FDCWD</w/a>, \"{path}\", {OK}");
    let calls = [
        "mkdir(\"/w/a\", 0755) = 0".to_owned(),
        "mkdir(\"/w/b\", 0755) = 0".to_owned(),
        "mkdir(\"/w/c\", 0755) = 0".to_owned(),
        "chdir(\"/w/a\") = 0".to_owned(),
        "mount(\"../b\", \".\", NULL, MS_BIND, NULL) = 0".to_owned(),
        "mount(\"../c\", \".\", NULL, MS_BIND, NULL) = 0".to_owned(),
        stat("/w/a"),
        stat("."),
        "umount2(\".\", 0) = 0".to_owned(),
        stat("/w/a"),
        "chroot(\"../c\") = 0".to_owned(),
        "mount(\"../b\", \"/\", NULL, MS_BIND, NULL) = 0".to_owned(),
        stat("/"),
        stat("/.."),
        stat("/../.."),
    ];
    let calls: Vec<&str> = calls.iter().map(String::as_str).collect();
    let rows = rows(&calls);
    let file = |i: usize| rows[i].event.file.expect("a file");
    let (a, b, c) = (file(0), file(1), file(2));
    assert_eq!((file(6), file(7)), (c, a), "the last one covers, and one stays");
    assert_eq!(file(9), b, "the last one went");
    assert_eq!((file(12), file(13), file(14)), (c, b, b), "the root, and what covers it");
}

/// Somebody goes to what is mounted and has no name any more (torture, roots, seed 915), and makes it the root.
#[test]
fn where_one_goes_can_have_lost_its_name() {
    const STAT: &str = "{st_mode=S_IFDIR|0755, st_size=5, ...}, 0) = 0";
    let calls = [
        "mkdir(\"/w/dir\", 0755) = 0".to_owned(),
        "mkdir(\"/w/dir/sub\", 0755) = 0".to_owned(),
        "mkdir(\"/w/point\", 0755) = 0".to_owned(),
        "mount(\"/w/dir/sub\", \"/w/point\", NULL, MS_BIND, NULL) = 0".to_owned(),
        "rmdir(\"/w/dir/sub\") = 0".to_owned(),
        "chdir(\"/w/point\") = 0".to_owned(),
        format!("stat(\".\", {STAT}"),
        "chroot(\"/w/point\") = 0".to_owned(),
        format!("stat(\"/\", {STAT}"),
        format!("stat(\"/..\", {STAT}"),
        "chdir(\"/\") = 0".to_owned(),
        format!("stat(\".\", {STAT}"),
        "chdir(\".\") = 0".to_owned(),
        format!("stat(\".\", {STAT}"),
        "chroot(\".\") = 0".to_owned(),
        format!("stat(\"/\", {STAT}"),
    ];
    let rows = rows(&calls.iter().map(String::as_str).collect::<Vec<_>>());
    let file = |i: usize| rows[i].event.file;
    let sub = file(1);
    assert_eq!([5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15].map(file), [sub; 11]);
}

/// Somebody stays in what is unmounted, however much is mounted and unmounted after that: nothing is above it (torture,
/// roots, seeds 912, 913 and 917).
#[test]
fn who_is_in_what_is_unmounted_stays_there() {
    const STAT: &str = "{st_mode=S_IFDIR|0755, st_size=5, ...}, 0) = 0";
    let mut calls: Vec<String> =
        ["a", "a/in", "b", "m", "n"].map(|name| format!("mkdir(\"/w/{name}\", 0755) = 0")).into();
    calls.extend([
        "mount(\"/w/a\", \"/w/m\", NULL, MS_BIND, NULL) = 0".to_owned(),
        "openat(AT_FDCWD</w>, \"/w/m\", O_RDONLY|O_DIRECTORY) = 3</w/m>".to_owned(),
        "chdir(\"/w/m\") = 0".to_owned(),
        "umount2(\"/w/m\", MNT_DETACH) = 0".to_owned(),
    ]);
    for _ in 0..200 {
        calls.push("mount(\"/w/b\", \"/w/n\", NULL, MS_BIND, NULL) = 0".to_owned());
        calls.push("umount2(\"/w/n\", 0) = 0".to_owned());
    }
    calls.push(format!("newfstatat(AT_FDCWD</>, \"..\", {STAT}"));
    calls.push(format!("newfstatat(3</>, \"in/../..\", {STAT}"));
    let rows = rows(&calls.iter().map(String::as_str).collect::<Vec<_>>());
    let a = rows[0].event.file.expect("a file");
    assert_eq!(rows[calls.len() - 2].event.file, Some(a), "by the working directory");
    assert_eq!(rows[calls.len() - 1].event.file, Some(a), "by the descriptor");
}

/// A mount is seen where it was made, in its namespace, and as deep as was asked for.
#[test]
fn mounts_are_of_a_namespace_and_of_a_mount() {
    let text = "\
1 1700000000.000001 mkdir(\"/w/a\", 0755) = 0 <0.000001>
1 1700000000.000002 mkdir(\"/w/a/in\", 0755) = 0 <0.000001>
1 1700000000.000003 mkdir(\"/w/b\", 0755) = 0 <0.000001>
1 1700000000.000004 mkdir(\"/w/c\", 0755) = 0 <0.000001>
1 1700000000.000005 mkdir(\"/w/d\", 0755) = 0 <0.000001>
1 1700000000.000006 clone(child_stack=NULL, flags=CLONE_CHILD_CLEARTID|SIGCHLD, child_tidptr=0x7f) = 2 <0.000001>
2 1700000000.000007 unshare(CLONE_NEWNS) = 0 <0.000001>
2 1700000000.000008 mount(\"/w/d\", \"/w/a/in\", NULL, MS_BIND, NULL) = 0 <0.000001>
2 1700000000.000009 mount(\"/w/a\", \"/w/b\", NULL, MS_BIND, NULL) = 0 <0.000001>
2 1700000000.000010 mount(\"/w/a\", \"/w/c\", NULL, MS_BIND|MS_REC, NULL) = 0 <0.000001>
2 1700000000.000011 mkdir(\"/w/a/in/1\", 0755) = 0 <0.000001>
2 1700000000.000012 mkdir(\"/w/b/in/2\", 0755) = 0 <0.000001>
2 1700000000.000013 mkdir(\"/w/c/in/3\", 0755) = 0 <0.000001>
2 1700000000.0000131 mount(\"x\", \"/w/c\", \"tmpfs\", 0, NULL) = 0 <0.000001>
2 1700000000.0000132 umount2(\"/w/c\", 0) = 0 <0.000001>
2 1700000000.0000133 mkdir(\"/w/c/6\", 0755) = 0 <0.000001>
2 1700000000.0000134 mkdir(\"/w/e\", 0755) = 0 <0.000001>
2 1700000000.0000135 mount(\"/w/c\", \"/w/e\", NULL, MS_MOVE, NULL) = 0 <0.000001>
2 1700000000.0000136 mount(NULL, \"/w/e\", NULL, MS_REC|MS_PRIVATE, NULL) = 0 <0.000001>
2 1700000000.0000137 mkdir(\"/w/e/in/7\", 0755) = 0 <0.000001>
2 1700000000.0000138 mkdir(\"/w/c/8\", 0755) = 0 <0.000001>
2 1700000000.0000139 umount2(\"/w/e/no/thing\", 0) = -1 ENOENT (No such file or directory) <0.000001>
2 1700000000.0000139 mkdir(\"/w/e/no\", 0755) = 0 <0.000001>
1 1700000000.000014 mkdir(\"/w/a/in/4\", 0755) = 0 <0.000001>
1 1700000000.000015 mkdir(\"/w/b/5\", 0755) = 0 <0.000001>
";
    let rows = import(text).rows;
    let made: Vec<String> = rows
        .iter()
        .filter(|row| row.event.op == Op::Mkdir)
        .skip(5)
        .map(|row| String::from_utf8_lossy(row.path.as_deref().unwrap_or_default()).into_owned())
        .collect();
    let by_two = ["/w/d/1", "/w/a/in/2", "/w/d/3", "/w/a/6", "/w/e", "/w/d/7", "/w/c/8", "/w/a/no"];
    assert_eq!(made[..8], by_two);
    assert_eq!(made[8..], ["/w/a/in/4", "/w/b/5"]);
}
