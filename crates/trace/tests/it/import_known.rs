//! What is known of files and names from what a trace shows, and what is not guessed.

use crate::import_common::{import, rows, trace};
use posix::FileKind;

/// Who works in a directory that is gone is not where its path leads now (torture, roots, seed 703).
#[test]
fn a_working_directory_that_is_gone_is_itself() {
    let rows = rows(&[
        "mkdir(\"/w/a\", 0755) = 0",
        "openat(AT_FDCWD</w>, \"/w/a\", O_RDONLY|O_DIRECTORY) = 3</w/a>",
        "rmdir(\"/w/a\") = 0",
        "mkdir(\"/w/a\", 0755) = 0",
        "fchdir(3</w/a (deleted)>) = 0",
        "newfstatat(AT_FDCWD</w/a (deleted)>, \".\", {st_mode=S_IFDIR|0755, st_size=0, ...}, 0) = 0",
        "chroot(\".\") = 0",
        "newfstatat(AT_FDCWD</w/a (deleted)>, \"/x\", 0x7ffda15c92d0, 0) = -1 ENOENT (No such file or directory)",
    ]);
    let file = |i: usize| rows[i].event.file;
    assert_eq!((file(5), file(6)), (file(0), file(0)));
    assert_ne!(file(3), file(0));
    assert_eq!(file(7), None, "nothing is below a root that is gone");
}

/// What was renamed is not known: the file that had its new name is not that any more (torture, seed 149). And two
/// names of one file are not exchanged: what is mounted stays where it is (seed 105).
#[test]
fn renames_of_the_unknown_and_of_nothing() {
    let rows = rows(&[
        "openat(AT_FDCWD</w>, \"/w/a\", O_WRONLY|O_CREAT|O_EXCL, 0600) = 3</w/a>",
        "openat(AT_FDCWD</w>, \"/w/c\", O_WRONLY|O_CREAT|O_EXCL, 0600) = 4</w/c>",
        "renameat2(77, \"x\", AT_FDCWD</w>, \"/w/a\", RENAME_EXCHANGE) = 0",
        "truncate(\"/w/a\", 7) = 0",
        "link(\"/w/c\", \"/w/d\") = 0",
        "openat(AT_FDCWD</w>, \"/w/e\", O_WRONLY|O_CREAT|O_EXCL, 0600) = 5</w/e>",
        "mount(\"/w/e\", \"/w/d\", NULL, MS_BIND, NULL) = 0",
        "renameat2(AT_FDCWD</w>, \"/w/c\", AT_FDCWD</w>, \"/w/d\", RENAME_EXCHANGE) = 0",
        "truncate(\"/w/c\", 7) = 0",
        "truncate(\"/w/d\", 7) = 0",
    ]);
    let file = |i: usize| rows[i].event.file.expect("a file");
    assert_ne!(file(3), file(0), "another file has the name");
    assert_eq!((file(8), file(9)), (file(1), file(5)), "the mount did not move");
}

#[test]
fn what_is_not_known_is_not_guessed() {
    let rows = rows(&[
        "read(3</w/f>, \"\"..., 10) = 10",
        "lseek(3</w/f>, 0, SEEK_CUR) = 50",
        "read(3</w/f>, \"\"..., 10) = 10",
        "write(4</w/g>, \"\"..., 10) = 10",
    ]);
    assert_eq!(rows[0].event.offset, None);
    assert_eq!(rows[2].event.offset, Some(50));
    assert_eq!((rows[3].event.offset, rows[3].event.size_before), (None, None));
    // A descriptor that is another file than we thought: received over a socket, say.
    let rows = self::rows(&["openat(AT_FDCWD</w>, \"f\", O_RDONLY) = 3</w/f>", "read(3</w/other>, \"\"..., 10) = 10"]);
    assert_eq!(rows[1].event.offset, None);
    assert_ne!(rows[0].event.ofd, rows[1].event.ofd);
}

#[test]
fn identities_follow_names() {
    let rows = rows(&[
        "openat(AT_FDCWD</w>, \"t\", O_WRONLY|O_CREAT|O_EXCL, 0600) = 3</w/t>",
        "stat(\"/w/f\", {st_mode=S_IFREG|0644, st_size=9, ...}) = 0",
        "rename(\"t\", \"f\") = 0",
        "write(3</w/f>, \"\"..., 4) = 4",
        "stat(\"f\", {st_mode=S_IFREG|0644, st_size=4, ...}) = 0",
        "link(\"f\", \"g\") = 0",
        "unlink(\"f\") = 0",
        "stat(\"g\", {st_mode=S_IFREG|0644, st_size=4, ...}) = 0",
        "openat(AT_FDCWD</w>, \"f\", O_WRONLY|O_CREAT|O_EXCL, 0600) = 4</w/f>",
        "rename(\"/w\", \"/v\") = 0",
        "stat(\"/v/g\", {st_mode=S_IFREG|0644, st_size=4, ...}) = 0",
        "renameat2(AT_FDCWD</v>, \"f\", AT_FDCWD</v>, \"g\", RENAME_EXCHANGE) = 0",
        "stat(\"/v/f\", {st_mode=S_IFREG|0644, st_size=4, ...}) = 0",
    ]);
    let file = |i: usize| rows[i].event.file.expect("a file");
    let first = file(0);
    for i in [2, 3, 4, 5, 6, 7, 10, 12] {
        assert_eq!(file(i), first, "row {i}: {}", rows[i].text());
    }
    assert_ne!(file(1), first);
    assert_ne!(file(8), first);
    assert_eq!(rows[3].path(), "/w/f");
}

#[test]
fn links_are_learnt_from_what_strace_shows() {
    let import = import(&trace(&[
        "openat(AT_FDCWD</w>, \"/lib/x/libc.so\", O_RDONLY) = 3</usr/lib/x/libc.so>",
        "stat(\"/lib/x/libm.so\", {st_mode=S_IFREG|0644, st_size=4, ...}) = 0",
        "stat(\"/usr/lib/x/libm.so\", {st_mode=S_IFREG|0644, st_size=4, ...}) = 0",
        "symlink(\"/w/real\", \"/w/link\") = 0",
        "mkdir(\"/w/real\", 0755) = 0",
        "openat(AT_FDCWD</w>, \"link/a\", O_WRONLY|O_CREAT|O_EXCL, 0600) = 4</w/real/a>",
        "stat(\"/w/real/a\", {st_mode=S_IFREG|0644, st_size=0, ...}) = 0",
        "unlink(\"/w/link/a\") = 0",
        "access(\"/w/real/a\", F_OK) = -1 ENOENT (No such file or directory)",
    ]));
    let file = |i: usize| import.rows[i].event.file;
    assert_eq!(file(1), file(2));
    assert_eq!(file(5), file(6));
    assert_eq!(file(6), file(7));
    let link = import.implied.iter().find(|e| e.path == b"/lib").expect("the link /lib");
    assert_eq!(link.target.as_deref(), Some(&b"/usr/lib"[..]));
    assert!(import.implied.iter().all(|e| e.path != b"/w/link" && e.path != b"/w/real"));
}

#[test]
fn the_implied_snapshot_undoes_the_trace() {
    let import = import(&trace(&[
        "stat(\"/w/gone\", {st_mode=S_IFREG|0600, st_size=77, ...}) = 0",
        "unlink(\"/w/gone\") = 0",
        "stat(\"/w/grown\", {st_mode=S_IFREG|0644, st_size=5, ...}) = 0",
        "openat(AT_FDCWD</w>, \"grown\", O_WRONLY|O_APPEND) = 3</w/grown>",
        "write(3</w/grown>, \"\"..., 10) = 10",
        "rename(\"/w/d\", \"/w/e\") = 0",
        "unlink(\"/w/e/inside\") = 0",
        "mkdir(\"/w/new\", 0755) = 0",
        "openat(AT_FDCWD</w>, \"new/f\", O_WRONLY|O_CREAT, 0644) = 4</w/new/f>",
    ]));
    let mut found: Vec<(String, u64)> = import
        .implied
        .iter()
        .map(|e| (String::from_utf8_lossy(&e.path).into_owned(), e.size_bytes))
        .filter(|(path, _)| path != "/w")
        .collect();
    found.sort();
    let want = [("/w/d", 0), ("/w/d/inside", 0), ("/w/gone", 77), ("/w/grown", 5)];
    assert_eq!(found, want.map(|(p, n)| (p.to_owned(), n)));
}

/// A directory of which no call says what it is, and in which the trace makes all the names, was told as a file:
/// nothing could be planned from such a text, as nothing can be made in a file.
#[test]
fn what_a_name_is_made_in_was_a_directory() {
    let import = import(&trace(&[
        "openat(AT_FDCWD, \"/d/f\", O_WRONLY|O_CREAT|O_EXCL, 0644) = 3</d/f>",
        "unlink(\"/d/f\") = 0",
        "openat(AT_FDCWD, \"/file\", O_RDONLY) = 4</file>",
    ]));
    let kinds = import.implied.iter().map(|entry| (&*entry.path, entry.kind));
    let mut kinds: Vec<(&[u8], FileKind)> = kinds.filter(|(path, _)| *path != b"/w").collect();
    kinds.sort();
    assert_eq!(kinds, [(&b"/d"[..], FileKind::Directory), (b"/file", FileKind::File)]);
}

/// `python3 -m venv`: a stat of the empty path was taken for news of the working directory, whose place in the tree
/// was then given to another name while the process still pointed at it. The tree got a cycle.
#[test]
fn the_empty_path_says_nothing_of_the_working_directory() {
    let rows = rows(&[
        r#"newfstatat(AT_FDCWD</tmp/run/v>, "", 0x7ffda15c92d0, 0) = -1 ENOENT (No such file or directory)"#,
        r#"openat(AT_FDCWD</tmp/run/v>, "", O_RDONLY|O_CLOEXEC) = -1 ENOENT (No such file or directory)"#,
        r#"newfstatat(AT_FDCWD</tmp/run/v>, "/tmp/run/v/lib/site-packages", {st_mode=S_IFDIR|0755, ...}, 0) = 0"#,
        r#"newfstatat(AT_FDCWD</tmp/run/v>, "lib", {st_mode=S_IFDIR|0755, st_size=4096, ...}, 0) = 0"#,
    ]);
    assert_eq!(rows[0].event.file, rows[1].event.file, "the working directory is still there");
    assert_eq!(rows[2].event.parent, rows[3].event.file, "one lib, by either path");
}

/// A working directory that is gone, and the names that took its place in memory.
#[test]
fn a_removed_working_directory_is_not_taken_for_another() {
    let rows = rows(&[
        r#"mkdir("/w/d", 0755) = 0"#,
        r#"chdir("/w/d") = 0"#,
        r#"rmdir("/w/d") = 0"#,
        r#"mkdir("/w/e", 0755) = 0"#,
        r#"mkdir("/w/e/f", 0755) = 0"#,
        r#"openat(AT_FDCWD, "f", O_RDONLY|O_DIRECTORY) = -1 ENOENT (No such file or directory)"#,
        r#"rename("/w/e", "/w/d") = 0"#,
        r#"openat(AT_FDCWD, "..", O_RDONLY|O_DIRECTORY) = 3"#,
    ]);
    assert_eq!((rows[5].event.file, rows[5].event.parent), (None, None), "nothing is below a directory that is gone");
    assert_eq!(rows[6].event.file, rows[3].event.file);
}

/// The kernel replaces only empty directories: where the tree believes otherwise, it was wrong, and must not lose what
/// moved.
#[test]
fn a_rename_over_the_directory_above_moves_what_it_names() {
    let rows = rows(&[
        r#"newfstatat(AT_FDCWD</>, "/w/a/b", {st_mode=S_IFDIR|0755, st_size=4096, ...}, 0) = 0"#,
        r#"rename("/w/a/b", "/w/a") = 0"#,
        r#"newfstatat(AT_FDCWD</>, "/w/a", {st_mode=S_IFDIR|0755, st_size=4096, ...}, 0) = 0"#,
        r#"rename("/w/a", "/w/a/c") = 0"#,
        r#"newfstatat(AT_FDCWD</>, "/w/a", 0x7ffda15c92d0, 0) = -1 ENOENT (No such file or directory)"#,
    ]);
    assert_eq!(rows[2].event.file, rows[0].event.file);
}

/// Found by the model test: an open that makes a file through a link that led nowhere made the link forgotten.
#[test]
fn a_file_made_through_a_link_is_where_the_link_leads() {
    for behind in ["", "</w/made>"] {
        let open = format!(r#"openat(AT_FDCWD, "/w/link", O_WRONLY|O_CREAT, 0644) = 3{behind}"#);
        let rows = rows(&[
            r#"mkdir("/w", 0755) = 0"#,
            r#"symlink("made", "/w/link") = 0"#,
            &open,
            r#"rename("/w/made", "/w/moved") = 0"#,
            r#"unlink("/w/link") = 0"#,
        ]);
        assert_eq!(rows[3].event.file, rows[2].event.file, "what was made is not the link");
        assert_eq!(rows[4].event.file, rows[1].event.file, "the link is still there");
    }
}

/// Found by the model test: `O_PATH | O_NOFOLLOW` opens a link itself; its printed path is no news of what the name is.
#[test]
fn a_link_that_was_opened_itself_stays_a_link() {
    let rows = rows(&[
        r#"symlink("there", "/w/link") = 0"#,
        r#"openat(AT_FDCWD</w>, "link", O_RDONLY|O_NOFOLLOW|O_PATH) = 3</w/link>"#,
        r#"close(3</w/link>) = 0"#,
        r#"unlink("/w/link") = 0"#,
    ]);
    assert_eq!((rows[1].event.file, rows[3].event.file), (rows[0].event.file, rows[0].event.file));
}

/// Found by the model test: an open file that was moved and then removed is shown under a name it never was opened by.
#[test]
fn an_open_file_that_was_moved_and_removed_is_still_the_same() {
    let rows = rows(&[
        r#"openat(AT_FDCWD</w>, "a", O_RDWR|O_CREAT|O_EXCL, 0600) = 3</w/a>"#,
        r#"write(3</w/a>, ""..., 5) = 5"#,
        r#"rename("/w/a", "/w/b") = 0"#,
        r#"unlink("/w/b") = 0"#,
        r#"write(3</w/b>(deleted), ""..., 5) = 5"#,
    ]);
    let last = &rows[4].event;
    assert_eq!((last.file, last.offset, last.size_before), (rows[0].event.file, Some(5), Some(5)));
}

/// Found by the model test: a file whose first name is gone is still known by its others.
#[test]
fn a_file_with_several_names_is_known_by_those_that_are_left() {
    let rows = rows(&[
        r#"openat(AT_FDCWD, "/w/a", O_RDWR|O_CREAT|O_EXCL, 0600) = 3"#,
        r#"link("/w/a", "/w/b") = 0"#,
        r#"unlink("/w/b") = 0"#,
        r#"rename("/w/a", "/w/c") = 0"#,
        r#"write(3, ""..., 5) = 5"#,
    ]);
    assert_eq!(rows[4].path(), "/w/c");
}
