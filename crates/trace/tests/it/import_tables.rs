//! Descriptors in what is imported: tables of processes, offsets and lengths.

use crate::import_common::{import, import_with, rows, trace, try_import};
use trace::strace::ImportOptions;
use trace::{Op, flag};

/// Torture in the kernel, seed 12, 250,000 operations: a description of which a first call showed nothing never got its
/// file.
#[test]
fn a_descriptor_shown_late_has_its_file() {
    let calls = [
        r#"write(5, ""..., 10) = -1 EINVAL (Invalid argument)"#,
        r#"dup(5) = 6"#,
        r#"write(5</w/f>, ""..., 10) = 10"#,
        r#"write(6</w/f>, ""..., 10) = 10"#,
        r#"newfstatat(AT_FDCWD</w>, "f", {st_mode=S_IFREG|0644, st_size=20, ...}, 0) = 0"#,
    ];
    let rows = rows(&calls);
    let [.., first, second, stat] = rows.as_slice() else { panic!("{} rows", rows.len()) };
    assert!(stat.event.file.is_some());
    assert_eq!((first.event.file, second.event.file), (stat.event.file, stat.event.file));
    assert_eq!(first.event.ofd, second.event.ofd, "of one open");
}

/// A child that ended before the clone returned is gone: another process that gets its number begins with what its own
/// parent has (torture, roots, seed 1004).
#[test]
fn a_child_that_ended_before_the_clone_returned_is_gone() {
    let text = "\
1 1700000000.000001 chdir(\"/w/before\") = 0 <0.000001>
1 1700000000.000002 clone(child_stack=NULL, flags=CLONE_CHILD_CLEARTID|SIGCHLD, child_tidptr=0x7f <unfinished ...>
2 1700000000.000003 mkdir(\"one\", 0755) = 0 <0.000001>
2 1700000000.000004 +++ exited with 0 +++
1 1700000000.000005 <... clone resumed>) = 2 <0.000003>
1 1700000000.000006 chdir(\"/w/after\") = 0 <0.000001>
1 1700000000.000007 clone(child_stack=NULL, flags=CLONE_CHILD_CLEARTID|SIGCHLD, child_tidptr=0x7f) = 2 <0.000001>
2 1700000000.000008 mkdir(\"two\", 0755) = 0 <0.000001>
";
    let rows = import(text).rows;
    let made = rows.iter().filter(|row| row.event.op == Op::Mkdir).map(|row| row.path.as_deref().unwrap_or_default());
    assert_eq!(made.collect::<Vec<_>>(), [&b"/w/before/one"[..], b"/w/after/two"]);
}

#[test]
fn tables_are_copied_by_fork_and_shared_by_threads() {
    let text = "\
1 1700000000.000001 openat(AT_FDCWD</w>, \"f\", O_RDONLY|O_CLOEXEC) = 3</w/f> <0.000001>
1 1700000000.000002 clone(child_stack=NULL, flags=CLONE_CHILD_CLEARTID|SIGCHLD, child_tidptr=0x7f) = 2 <0.000001>
2 1700000000.000003 read(3</w/f>, \"\"..., 10) = 10 <0.000001>
1 1700000000.000004 read(3</w/f>, \"\"..., 10) = 10 <0.000001>
2 1700000000.000005 close(3</w/f>) = 0 <0.000001>
1 1700000000.000006 \
clone3({flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD, child_tid=0x7f, exit_signal=0} => \
{parent_tid=[3]}, 88) = 3 <0.000001>
3 1700000000.000007 read(3</w/f>, \"\"..., 10) = 10 <0.000001>
3 1700000000.000008 close(3</w/f>) = 0 <0.000001>
1 1700000000.000009 read(3, 0x7f, 10) = -1 EBADF (Bad file descriptor) <0.000001>
3 1700000000.000010 +++ exited with 0 +++
1 1700000000.000011 +++ exited with 5 +++
";
    let import = import(text);
    let reads: Vec<_> = import
        .rows
        .iter()
        .filter(|r| r.event.op == Op::Read)
        .map(|r| (r.event.pid, r.event.tid, r.event.offset))
        .collect();
    assert_eq!(reads, [(2, 2, Some(0)), (1, 1, Some(10)), (1, 3, Some(20)), (1, 1, None)]);
    let last: Vec<_> =
        import.rows.iter().filter(|r| r.event.op == Op::Close).map(|r| r.event.flags & flag::LAST != 0).collect();
    assert_eq!(last, [false, true]);
    assert_eq!(import.summary.first_status, Some(5));
}

#[test]
fn exec_closes_what_is_marked_and_says_so() {
    let rows = rows(&[
        "openat(AT_FDCWD</w>, \"f\", O_RDONLY|O_CLOEXEC) = 3</w/f>",
        "openat(AT_FDCWD</w>, \"g\", O_RDONLY) = 4</w/g>",
        "dup3(4</w/g>, 5, O_CLOEXEC) = 5</w/g>",
        "execve(\"/bin/true\", [...], 0x7f /* 1 var */) = 0",
        "read(3, 0x7f, 10) = -1 EBADF (Bad file descriptor)",
        "read(4</w/g>, \"\"..., 10) = 10",
        "dup2(4</w/g>, 6) = 6</w/g>",
        "openat(AT_FDCWD</w>, \"h\", O_RDONLY) = 3</w/h>",
        "dup2(3</w/h>, 6</w/g>) = 6</w/h>",
        "dup2(3</w/h>, 4</w/g>) = 4</w/h>",
        "+++ exited with 0 +++",
    ]);
    let implied: Vec<_> =
        rows.iter().filter(|r| r.event.flags & flag::IMPLIED != 0).map(|r| (r.event.seq, r.path())).collect();
    assert_eq!(implied, [(4, "/w/f"), (11, "/w/g"), (13, "/w/h")]);
    let bad = rows.iter().find(|r| r.event.errno == 9).expect("EBADF");
    assert_eq!((bad.event.ofd, bad.event.file), (None, None));
}

#[test]
fn append_truncate_and_seek_keep_offsets_and_lengths() {
    let rows = rows(&[
        "openat(AT_FDCWD</w>, \"f\", O_WRONLY|O_CREAT|O_EXCL|O_APPEND, 0600) = 3</w/f>",
        "write(3</w/f>, \"\"..., 10) = 10",
        "openat(AT_FDCWD</w>, \"f\", O_RDWR) = 4</w/f>",
        "pwrite64(4</w/f>, \"\"..., 5, 100) = 5",
        "write(3</w/f>, \"\"..., 10) = 10",
        "lseek(4</w/f>, 0, SEEK_CUR) = 0",
        "write(4</w/f>, \"\"..., 3) = 3",
        "openat(AT_FDCWD</w>, \"f\", O_WRONLY|O_TRUNC) = 5</w/f>",
        "write(4</w/f>, \"\"..., 3) = 3",
        "write(3</w/f>, \"\"..., 3) = -1 ENOSPC (No space left on device)",
        "write(3</w/f>, \"\"..., 3) = 2",
    ]);
    let writes: Vec<_> =
        rows.iter().filter(|r| r.event.op == Op::Write).map(|r| (r.event.offset, r.event.size_before)).collect();
    let s = Some;
    assert_eq!(
        writes,
        [(s(0), s(0)), (s(100), s(10)), (s(105), s(105)), (s(0), s(115)), (s(3), s(0)), (s(6), s(6)), (s(6), s(6)),]
    );
    assert_eq!(rows[7].event.size_before, s(115));
}

#[test]
fn without_descriptor_paths_our_own_tables_serve() {
    let text = trace(&[
        "openat(AT_FDCWD, \"f\", O_RDONLY) = 3",
        "read(3, \"\"..., 10) = 10",
        "chdir(\"d\") = 0",
        "openat(AT_FDCWD, \"g\", O_RDWR|O_CREAT|O_EXCL, 0600) = 4",
        "write(4, \"\"..., 10) = 10",
        "dup(4) = 5",
        "write(5, \"\"..., 10) = 10",
        "openat(4, \"x\", O_RDONLY) = -1 ENOTDIR (Not a directory)",
        "write(1, \"\"..., 10) = 10",
    ]);
    let options = ImportOptions { cwd: Some(b"/w".to_vec()), ..ImportOptions::default() };
    let rows = import_with(text.as_bytes(), options).expect("an import").rows;
    assert_eq!((rows[1].path(), rows[1].event.offset), ("/w/f", Some(0)));
    assert_eq!((rows[3].path(), rows[6].event.offset), ("/w/d/g", Some(10)));
    assert_eq!(rows[8].path, None);
    // Without a working directory, relative paths are unknown.
    let import = try_import(text.as_bytes()).expect("an import");
    assert_eq!(import.rows[0].path, None);
    assert_eq!(import.summary.coverage.unknown_directory_calls, 4);
}
