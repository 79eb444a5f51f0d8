//! What each form of a system call becomes.

#![allow(clippy::type_complexity)] // The tables are tuples, to be read as tables.

use crate::import_common;
use crate::import_common::{import, import_with, rows, trace, try_import};
use posix::FileKind;
use trace::strace::ImportOptions;
use trace::{Op, flag};

/// A call on an open file `/w/f` (descriptor 3) in `/w`, after the open: its row.
fn on_file(call: &str) -> import_common::Row {
    let open = r#"openat(AT_FDCWD</w>, "f", O_RDWR) = 3</w/f>"#;
    let stat = r#"fstat(3</w/f>, {st_mode=S_IFREG|0644, st_size=100, ...}) = 0"#;
    rows(&[open, stat, call]).pop().expect("a row")
}

#[test]
fn descriptor_calls() {
    #[rustfmt::skip]
    let table: &[(&str, Op, Option<u64>, Option<u64>, i64)] = &[
        ("read(3</w/f>, \"\"..., 40) = 40", Op::Read, Some(0), Some(40), 40),
        ("readv(3</w/f>, [{iov_base=\"\"..., iov_len=10}, {iov_base=\"\"..., iov_len=20}], 2) = 30", Op::Read, Some(0), Some(30), 30),
        ("readv(3</w/f>, [...], 2) = 30", Op::Read, Some(0), None, 30),
        ("pread64(3</w/f>, \"\"..., 10, 90) = 10", Op::Read, Some(90), Some(10), 10),
        ("preadv(3</w/f>, [{iov_base=\"\", iov_len=8}], 1, 70) = 8", Op::Read, Some(70), Some(8), 8),
        ("preadv2(3</w/f>, [{iov_base=\"\", iov_len=8}], 1, -1, 0) = 8", Op::Read, Some(0), Some(8), 8),
        ("write(3</w/f>, \"ab\", 2) = 2", Op::Write, Some(0), Some(2), 2),
        ("pwrite64(3</w/f>, \"ab\", 2, 500) = 2", Op::Write, Some(500), Some(2), 2),
        ("pwritev2(3</w/f>, [{iov_base=\"aa\", iov_len=2}], 1, 5, RWF_DSYNC) = 2", Op::Write, Some(5), Some(2), 2),
        ("lseek(3</w/f>, -3, SEEK_END) = 97", Op::Seek, None, None, 97),
        ("fsync(3</w/f>) = 0", Op::Fsync, None, None, 0),
        ("fdatasync(3</w/f>) = 0", Op::Fdatasync, None, None, 0),
        ("sync_file_range(3</w/f>, 4096, 8192, SYNC_FILE_RANGE_WRITE) = 0", Op::SyncRange, Some(4096), Some(8192), 0),
        ("syncfs(3</w/f>) = 0", Op::SyncFs, None, None, 0),
        ("sync() = 0", Op::Sync, None, None, 0),
        ("msync(0x7fc5bb7a0000, 100, MS_SYNC) = 0", Op::Msync, None, Some(100), 0),
        ("ftruncate(3</w/f>, 10) = 0", Op::Ftruncate, None, Some(10), 0),
        ("fallocate(3</w/f>, 0, 50, 200) = 0", Op::Fallocate, Some(50), Some(200), 0),
        ("fadvise64(3</w/f>, 0, 0, POSIX_FADV_DONTNEED) = 0", Op::Fadvise, Some(0), Some(0), 0),
        ("readahead(3</w/f>, 0, 4096) = 0", Op::Readahead, Some(0), Some(4096), 0),
        ("fstat(3</w/f>, {st_mode=S_IFREG|0644, st_size=100, ...}) = 0", Op::Fstat, None, None, 0),
        ("newfstatat(3</w/f>, \"\", {st_mode=S_IFREG|0644, st_size=100, ...}, AT_EMPTY_PATH) = 0", Op::Fstat, None, None, 0),
        ("statx(3</w/f>, \"\", AT_STATX_SYNC_AS_STAT|AT_EMPTY_PATH, STATX_ALL, {stx_mask=STATX_ALL, stx_mode=S_IFREG|0644, stx_size=100, ...}) = 0", Op::Fstat, None, None, 0),
        ("fstatfs(3</w/f>, {f_type=EXT2_SUPER_MAGIC, f_bsize=4096}) = 0", Op::StatFs, None, None, 0),
        ("getdents64(3</w/f>, 0x55 /* 2 entries */, 32768) = 48", Op::GetDents, None, Some(32768), 48),
        ("fchmod(3</w/f>, 0600) = 0", Op::Fchmod, None, None, 0),
        ("fchown(3</w/f>, 0, -1) = 0", Op::Fchown, None, None, 0),
        ("utimensat(3</w/f>, NULL, NULL, 0) = 0", Op::Futimens, None, None, 0),
        ("fsetxattr(3</w/f>, \"user.a\", \"x\", 1, 0) = 0", Op::SetXattr, None, None, 0),
        ("fgetxattr(3</w/f>, \"user.a\", 0x55, 128) = 2", Op::GetXattr, None, None, 2),
        ("flistxattr(3</w/f>, NULL, 0) = 0", Op::ListXattr, None, None, 0),
        ("fremovexattr(3</w/f>, \"user.a\") = 0", Op::RemoveXattr, None, None, 0),
        ("mmap(NULL, 100, PROT_READ|PROT_WRITE, MAP_SHARED, 3</w/f>, 0x1000) = 0x7fc5bb7a0000", Op::Mmap, Some(4096), Some(100), 0x7fc5_bb7a_0000),
        ("dup(3</w/f>) = 4</w/f>", Op::Dup, None, None, 4),
        ("dup2(3</w/f>, 9) = 9</w/f>", Op::Dup, None, None, 9),
        ("dup3(3</w/f>, 9, O_CLOEXEC) = 9</w/f>", Op::Dup, None, None, 9),
        ("fcntl(3</w/f>, F_DUPFD_CLOEXEC, 10) = 10</w/f>", Op::Dup, None, None, 10),
        ("fcntl(3</w/f>, F_SETFD, FD_CLOEXEC) = 0", Op::Fcntl, None, None, 0),
        ("fcntl(3</w/f>, F_SETLKW, {l_type=F_WRLCK, l_whence=SEEK_SET, l_start=0, l_len=0}) = 0", Op::Fcntl, None, None, 0),
        ("flock(3</w/f>, LOCK_EX) = 0", Op::Fcntl, None, None, 0),
        ("ioctl(3</w/f>, TCGETS, 0x7ffd) = -1 ENOTTY (Inappropriate ioctl for device)", Op::Ioctl, None, None, -1),
        ("fchdir(3</w/f>) = 0", Op::Fchdir, None, None, 0),
        ("close(3</w/f>) = 0", Op::Close, None, None, 0),
        ("quotactl_fd(3</w/f>, 1, 2, 3) = 0", Op::Other, None, None, 0),
        ("some_new_call(3</w/f>, {a=1}) = 0", Op::Other, None, None, 0),
    ];
    for (call, op, offset, len, ret) in table {
        let row = on_file(call);
        let e = row.event;
        let about = (e.op, e.offset, e.req_bytes, e.ret);
        assert_eq!(about, (*op, *offset, *len, *ret), "{call}");
        if !matches!(op, Op::Sync | Op::Msync) {
            assert_eq!(row.path(), "/w/f", "{call}");
            assert_eq!(e.flags & flag::FOREIGN, 0, "{call}");
            assert!(e.ofd.is_some() && e.file.is_some() && e.parent.is_some(), "{call}");
            assert_eq!(e.size_before, if *op == Op::GetDents { e.size_before } else { Some(100) }, "{call}");
        }
    }
}

/// Found by residuals: write-back that is only started was taken for one that is waited for, and `DONTNEED` for any advice.
#[test]
fn what_was_asked_of_a_range_is_kept() {
    for (call, asked) in [
        ("sync_file_range(3</w/f>, 0, 0, SYNC_FILE_RANGE_WRITE) = 0", Some(2)),
        (
            "sync_file_range(3</w/f>, 0, 0, SYNC_FILE_RANGE_WAIT_BEFORE|SYNC_FILE_RANGE_WRITE|SYNC_FILE_RANGE_WAIT_AFTER) = 0",
            Some(7),
        ),
        ("sync_file_range(3</w/f>, 0, 0, 0) = 0", Some(0)),
        ("fadvise64(3</w/f>, 0, 0, POSIX_FADV_DONTNEED) = 0", Some(4)),
        ("fadvise64(3</w/f>, 0, 0, POSIX_FADV_NORMAL) = 0", Some(0)),
        ("fadvise64(3</w/f>, 0, 0, POSIX_FADV_SEQUENTIAL) = 0", Some(2)),
        ("readahead(3</w/f>, 0, 4096) = 0", None),
    ] {
        assert_eq!(on_file(call).event.mode, asked, "{call}");
    }
}

/// Found by replaying bsdtar: a fcntl on flags was not told from a lock.
#[test]
fn fcntl_on_flags_is_no_lock() {
    for (call, on_flags) in [
        ("fcntl(3</w/f>, F_GETFD) = 0", true),
        ("fcntl(3</w/f>, F_SETFD, FD_CLOEXEC) = 0", true),
        ("fcntl(3</w/f>, F_GETFL) = 0x8002 (flags O_RDWR|O_LARGEFILE)", true),
        ("fcntl(3</w/f>, F_SETFL, O_RDWR|O_APPEND) = 0", true),
        ("fcntl(3</w/f>, F_SETLK, {l_type=F_UNLCK, l_whence=SEEK_SET, l_start=0, l_len=0}) = 0", false),
        ("flock(3</w/f>, LOCK_SH) = 0", false),
    ] {
        let event = on_file(call).event;
        let want = if on_flags { flag::DESCRIPTOR_FLAGS } else { 0 };
        assert_eq!((event.op, event.flags), (Op::Fcntl, want), "{call}");
    }
    for call in ["fcntl(3</w/f>, F_SET_RW_HINT, [RWH_WRITE_LIFE_SHORT]) = 0", "fcntl(3</w/f>, F_SETLEASE, F_RDLCK) = 0"]
    {
        let event = on_file(call).event;
        assert_eq!((event.op, event.flags), (Op::Fcntl, flag::NO_LOCK), "{call}");
    }
}

#[test]
fn path_calls() {
    #[rustfmt::skip]
    let table: &[(&str, Op, &str, Option<&str>, u32, Option<u16>)] = &[
        ("open(\"a\", O_RDONLY) = 3</w/a>", Op::Open, "/w/a", None, flag::READ, None),
        ("openat(AT_FDCWD</w>, \"a\", O_WRONLY|O_CREAT|O_TRUNC|O_CLOEXEC, 0640) = 3</w/a>", Op::Open, "/w/a", None, flag::WRITE | flag::CREATE | flag::TRUNC | flag::CLOEXEC, Some(0o640)),
        ("openat(AT_FDCWD</w>, \"a\", O_RDWR|O_APPEND|O_DIRECT|O_SYNC|O_NOATIME|O_NOFOLLOW|0x40000000) = 3</w/a>", Op::Open, "/w/a", None, flag::READ | flag::WRITE | flag::APPEND | flag::DIRECT | flag::SYNC | flag::NOATIME | flag::NOFOLLOW, None),
        ("openat(-100</w>, \"a\", 0x80042 /* O_RDWR|O_CREAT|O_CLOEXEC */, 0600) = 3</w/a>", Op::Open, "/w/a", None, flag::READ | flag::WRITE | flag::CREATE | flag::CLOEXEC, Some(0o600)),
        ("openat2(AT_FDCWD</w>, \"a\", {flags=O_WRONLY|O_CREAT, mode=0600, resolve=0}, 24) = 3</w/a>", Op::Open, "/w/a", None, flag::WRITE | flag::CREATE, Some(0o600)),
        ("openat(5</w/d>, \"a\", O_RDONLY|O_DSYNC|O_PATH|O_DIRECTORY) = 3</w/d/a>", Op::Open, "/w/d/a", None, flag::READ | flag::DSYNC | flag::PATH_ONLY | flag::DIRECTORY, None),
        ("openat(AT_FDCWD</w>, \"d\", O_RDWR|O_TMPFILE, 0600) = 3</w/d/#12>(deleted)", Op::Open, "/w/d", None, flag::READ | flag::WRITE | flag::TMPFILE, Some(0o600)),
        ("creat(\"a\", 0644) = 3</w/a>", Op::Open, "/w/a", None, flag::WRITE | flag::CREATE | flag::TRUNC, Some(0o644)),
        ("stat(\"a\", {st_mode=S_IFREG|0644, st_size=5, ...}) = 0", Op::Stat, "/w/a", None, 0, None),
        ("lstat(\"a\", {st_mode=S_IFLNK|0777, st_size=5, ...}) = 0", Op::Stat, "/w/a", None, flag::NOFOLLOW, None),
        ("newfstatat(AT_FDCWD</w>, \"a\", {st_mode=S_IFREG|0644, st_size=5, ...}, AT_SYMLINK_NOFOLLOW) = 0", Op::Stat, "/w/a", None, flag::NOFOLLOW, None),
        ("statx(AT_FDCWD</w>, \"a\", AT_STATX_SYNC_AS_STAT, STATX_ALL, 0x7ffd) = -1 ENOENT (No such file or directory)", Op::Stat, "/w/a", None, 0, None),
        ("statfs(\"a\", {f_type=EXT2_SUPER_MAGIC}) = 0", Op::StatFs, "/w/a", None, 0, None),
        ("access(\"a\", R_OK|X_OK) = 0", Op::Access, "/w/a", None, 0, Some(5)),
        ("faccessat2(AT_FDCWD</w>, \"a\", W_OK, AT_EACCESS) = 0", Op::Access, "/w/a", None, 0, Some(2)),
        ("readlink(\"a\", \"\"..., 4096) = 3", Op::ReadLink, "/w/a", None, flag::NOFOLLOW, None),
        ("readlinkat(5</w/d>, \"a\", \"xyz\", 4096) = 3", Op::ReadLink, "/w/d/a", None, flag::NOFOLLOW, None),
        ("truncate(\"a\", 7) = 0", Op::Truncate, "/w/a", None, 0, None),
        ("mkdir(\"a\", 0755) = 0", Op::Mkdir, "/w/a", None, 0, Some(0o755)),
        ("mkdirat(5</w/d>, \"a\", 0755) = 0", Op::Mkdir, "/w/d/a", None, 0, Some(0o755)),
        ("rmdir(\"a\") = 0", Op::Rmdir, "/w/a", None, 0, None),
        ("unlinkat(5</w/d>, \"a\", AT_REMOVEDIR) = 0", Op::Rmdir, "/w/d/a", None, 0, None),
        ("unlink(\"a\") = 0", Op::Unlink, "/w/a", None, 0, None),
        ("unlinkat(AT_FDCWD</w>, \"a\", 0) = 0", Op::Unlink, "/w/a", None, 0, None),
        ("rename(\"a\", \"/x/b\") = 0", Op::Rename, "/w/a", Some("/x/b"), 0, None),
        ("renameat(5</w/d>, \"a\", AT_FDCWD</w>, \"b\") = 0", Op::Rename, "/w/d/a", Some("/w/b"), 0, None),
        ("renameat2(AT_FDCWD</w>, \"a\", AT_FDCWD</w>, \"b\", RENAME_NOREPLACE) = 0", Op::Rename, "/w/a", Some("/w/b"), flag::NOREPLACE, None),
        ("renameat2(AT_FDCWD</w>, \"a\", AT_FDCWD</w>, \"b\", RENAME_EXCHANGE) = 0", Op::Rename, "/w/a", Some("/w/b"), flag::EXCHANGE, None),
        ("link(\"a\", \"b\") = 0", Op::Link, "/w/a", Some("/w/b"), flag::NOFOLLOW, None),
        ("linkat(AT_FDCWD</w>, \"a\", 5</w/d>, \"b\", AT_SYMLINK_FOLLOW) = 0", Op::Link, "/w/a", Some("/w/d/b"), 0, None),
        ("symlink(\"../t\", \"a\") = 0", Op::Symlink, "/w/a", Some("../t"), 0, None),
        ("symlinkat(\"/t\", 5</w/d>, \"a\") = 0", Op::Symlink, "/w/d/a", Some("/t"), 0, None),
        ("mknod(\"a\", S_IFREG|0644) = 0", Op::Mknod, "/w/a", None, 0, Some(0o644)),
        ("mknodat(AT_FDCWD</w>, \"a\", S_IFIFO|0600) = 0", Op::Mknod, "/w/a", None, 0, Some(0o600)),
        ("bind(3<UNIX-STREAM:[7]>, {sa_family=AF_UNIX, sun_path=\"a\"}, 110) = 0", Op::Mknod, "/w/a", None, flag::BOUND, Some(0o777)),
        ("bind(3<UNIX-STREAM:[7]>, {sa_family=AF_UNIX, sun_path=\"/r/a\"}, 110) = -1 EADDRINUSE (Address already in use)", Op::Mknod, "/r/a", None, flag::BOUND, Some(0o777)),
        ("bind(3<UNIX-STREAM:[7]>, {sa_family=AF_UNIX, sun_path=\"a\"}, 110) = -1 EINVAL (Invalid argument)", Op::Mknod, "/w/a", None, flag::BOUND | flag::FOREIGN, Some(0o777)),
        ("chmod(\"a\", 04755) = 0", Op::Chmod, "/w/a", None, 0, Some(0o4755)),
        ("fchmodat(AT_FDCWD</w>, \"a\", 0600) = 0", Op::Chmod, "/w/a", None, 0, Some(0o600)),
        ("fchmodat2(AT_FDCWD</w>, \"a\", 0600, AT_SYMLINK_NOFOLLOW) = 0", Op::Chmod, "/w/a", None, flag::NOFOLLOW, Some(0o600)),
        ("lchown(\"a\", 1, 2) = 0", Op::Chown, "/w/a", None, flag::NOFOLLOW, None),
        ("fchownat(AT_FDCWD</w>, \"a\", 1, 2, 0) = 0", Op::Chown, "/w/a", None, 0, None),
        ("utimensat(AT_FDCWD</w>, \"a\", [...], AT_SYMLINK_NOFOLLOW) = 0", Op::Utimens, "/w/a", None, flag::NOFOLLOW, None),
        ("utimes(\"a\", NULL) = 0", Op::Utimens, "/w/a", None, 0, None),
        ("lsetxattr(\"a\", \"\"..., \"\"..., 2, 0) = 0", Op::SetXattr, "/w/a", None, flag::NOFOLLOW, None),
        ("getxattr(\"a\", \"\"..., 0x7f, 20) = -1 ENODATA (No data available)", Op::GetXattr, "/w/a", None, 0, None),
        ("llistxattr(\"a\", NULL, 0) = 0", Op::ListXattr, "/w/a", None, flag::NOFOLLOW, None),
        ("removexattr(\"a\", \"\"...) = 0", Op::RemoveXattr, "/w/a", None, 0, None),
        ("chdir(\"a\") = 0", Op::Chdir, "/w/a", None, 0, None),
        ("execve(\"a\", [...], 0x7ffe /* 39 vars */) = 0", Op::Exec, "/w/a", None, 0, None),
        ("execveat(5</w/d>, \"a\", [...], 0x7ffe /* 39 vars */, 0) = -1 ENOEXEC (Exec format error)", Op::Exec, "/w/d/a", None, 0, None),
        ("chroot(\"a\") = 0", Op::Other, "/w/a", None, 0, None),
        ("name_to_handle_at(AT_FDCWD</w>, \"a\", {handle_bytes=128}, 0x7f, 0) = 0", Op::Other, "/w/a", None, 0, None),
        ("a_call_of_the_future(AT_FDCWD</w>, \"a\", 0x7f) = 0", Op::Other, "/w/a", None, 0, None),
    ];
    for (call, op, path, path2, flags, mode) in table {
        let first = "newfstatat(AT_FDCWD</w>, \"\", 0x7f, AT_EMPTY_PATH) = -1 EFAULT (Bad address)";
        let row = rows(&[first, call]).into_iter().find(|r| r.event.seq == 1).expect("a row");
        assert_eq!((row.event.op, row.path()), (*op, *path), "{call}");
        assert_eq!(row.path2.as_deref(), path2.map(str::as_bytes), "{call}");
        assert_eq!(row.event.flags, *flags, "{call}: flags {:#x}", row.event.flags);
        assert_eq!(row.event.mode, *mode, "{call}");
    }
}

/// An abstract address, one that the kernel chooses, and those of other families are no names on disk.
#[test]
fn addresses_that_are_no_paths() {
    let first = "newfstatat(AT_FDCWD</w>, \"\", 0x7f, AT_EMPTY_PATH) = -1 EFAULT (Bad address)";
    for address in [
        "{sa_family=AF_UNIX, sun_path=@\"a\"}, 4",
        "{sa_family=AF_UNIX}, 2",
        "{sa_family=AF_INET, sin_port=htons(0), sin_addr=inet_addr(\"127.0.0.1\")}, 16",
        "0x7ffe, 110",
    ] {
        let bind = format!("bind(3<UNIX-STREAM:[7]>, {address}) = 0");
        assert_eq!(rows(&[first, &bind]).len(), 1, "{bind}");
    }
}

#[test]
fn relative_paths_keep_their_dots_and_name_their_directory() {
    let rows = rows(&[
        "newfstatat(AT_FDCWD</w/d>, \"../x//./y\", {st_mode=S_IFREG|0644, st_size=5, ...}, 0) = 0",
        "newfstatat(AT_FDCWD</w/d>, \"/w/x/y\", {st_mode=S_IFREG|0644, st_size=5, ...}, 0) = 0",
    ]);
    assert_eq!(rows[0].path(), "/w/d/../x//./y");
    assert_eq!(rows[0].caller_dir.as_deref(), Some(&b"/w/d"[..]));
    assert_eq!(rows[1].caller_dir, None);
    assert_eq!(rows[0].event.file, rows[1].event.file);
    assert!(rows[0].event.file.is_some());
}

#[test]
fn foreign_objects() {
    for call in [
        "read(0</dev/pts/0<char 136:0>>, \"\"..., 10) = 1",
        "write(1<pipe:[12]>, \"a\", 1) = 1",
        "read(5<TCP:[127.0.0.1:80->127.0.0.1:5000]>, \"\"..., 5) = 5",
        "write(5<UNIX-STREAM:[1->2,\"/run/x>\"]>, \"\"..., 5) = 5",
        "openat(AT_FDCWD</w>, \"/proc/self/maps\", O_RDONLY) = 3</proc/7/maps>",
        "openat(AT_FDCWD</w>, \"/tmp/null\", O_RDONLY) = 3</dev/null<char 1:3>>",
        "access(\"/sys/kernel\", F_OK) = 0",
        "fstat(0<socket:[5]>, {st_mode=S_IFSOCK|0777, st_size=0, ...}) = 0",
        "ftruncate(4</memfd:x>(deleted), 10) = 0",
        "close(6<anon_inode:[eventfd]>) = 0",
    ] {
        let row = rows(&[call]).remove(0);
        assert_ne!(row.event.flags & flag::FOREIGN, 0, "{call}");
        assert_eq!((row.event.file, row.event.offset), (None, None), "{call}");
    }
    let row = rows(&["openat(AT_FDCWD</w>, \"/proc/self/fd/4\", O_RDONLY) = 5</w/f>"]).remove(0);
    assert_eq!(row.event.flags & flag::FOREIGN, 0, "a file reached through /proc is a file");
}

/// Torture in the kernel, seed 12, 250,000 operations: a description of which a first call showed nothing never got its file.
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

/// Torture in the kernel, seed 7, a million operations: a directory was forgotten with all below it, as a path that led to it by `..`
/// failed on the way.
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

/// What is mounted has no name any more: a link leads to it all the same, `..` leads out of it, and it can be unmounted (torture, seeds 48,
/// 64 and 149).
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

/// Where one stands can be covered: one stays there, and mounts and unmounts concern what covers it. `..` at a root leads to what covers
/// that, and the root itself does not (torture, roots, seeds 301, 316 and 404).
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

/// A child that ended before the clone returned is gone: another process that gets its number begins with what its own parent has (torture, roots,
/// seed 1004).
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

/// Requests of ioctl that make, remove or change files are not modelled; an open for reading alone truncates too; what is written through a
/// mapping between one msync and the next is reckoned.
#[test]
fn what_changes_files_beside_the_common_calls() {
    let import = import(&trace(&[
        r#"openat(AT_FDCWD</w>, "f", O_RDWR) = 3</w/f>"#,
        r#"fstat(3</w/f>, {st_mode=S_IFREG|0644, st_size=1048576, ...}) = 0"#,
        r#"ioctl(3</w/f>, BTRFS_IOC_SNAP_CREATE_V2, {fd=4, flags=0, name="s"}) = 0"#,
        r#"ioctl(3</w/f>, _IOC(_IOC_WRITE, 0x58, 0x81, 0x28), 0x7ffe) = 0"#,
        r#"ioctl(3</w/f>, FS_IOC_GETFLAGS, [FS_EXTENT_FL]) = 0"#,
        r#"ioctl(3</w/f>, _IOC(_IOC_READ, 0x58, 0x7c, 0x28), 0x7ffe) = 0"#,
        r#"mmap(NULL, 1048576, PROT_READ|PROT_WRITE, MAP_SHARED, 3</w/f>, 0) = 0x7f"#,
        r#"msync(0x7f, 1048576, MS_SYNC) = 0"#,
        r#"msync(0x7f, 8192, MS_SYNC) = 0"#,
        r#"msync(0x7f, 8192, MS_SYNC) = -1 ENOMEM (Cannot allocate memory)"#,
        r#"openat(AT_FDCWD</w>, "f", O_RDONLY|O_TRUNC) = 4</w/f>"#,
        r#"read(4</w/f>, "", 10) = 0"#,
    ]));
    let coverage = &import.summary.coverage;
    assert_eq!(coverage.other_by_name.get("ioctl"), Some(&2), "{coverage:?}");
    assert_eq!(coverage.data_map_accesses, 16 + 256 + 2);
    let (open, read) = (&import.rows[import.rows.len() - 2], &import.rows[import.rows.len() - 1]);
    assert_eq!((open.event.size_before, read.event.size_before), (Some(1_048_576), Some(0)));
}

/// Somebody stays in what is unmounted, however much is mounted and unmounted after that: nothing is above it (torture, roots, seeds 912, 913
/// and 917).
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

/// What was renamed is not known: the file that had its new name is not that any more (torture, seed 149). And two names of one file are not
/// exchanged: what is mounted stays where it is (seed 105).
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

#[test]
fn copies() {
    let open = |fd, name| format!("openat(AT_FDCWD</w>, \"{name}\", O_RDWR|O_CREAT|O_EXCL, 0600) = {fd}</w/{name}>");
    let (a, b) = (open(3, "a"), open(4, "b"));
    let rows = rows(&[
        &a,
        &b,
        "write(3</w/a>, \"\"..., 1000) = 1000",
        "copy_file_range(3</w/a>, [100 => 150], 4</w/b>, NULL, 50, 0) = 50",
        "lseek(3</w/a>, 0, SEEK_SET) = 0",
        "sendfile(4</w/b>, 3</w/a>, NULL, 300) = 300",
        "splice(3</w/a>, NULL, 9<pipe:[1]>, NULL, 10, 0) = 10",
        "splice(9<pipe:[1]>, NULL, 4</w/b>, [2000], 10, 0) = 10",
        "ioctl(4</w/b>, FICLONE, 3</w/a>) = 0",
        "ioctl(4</w/b>, BTRFS_IOC_CLONE or FICLONE, 3</w/a>) = -1 EOPNOTSUPP (Operation not supported)",
        "fstat(4</w/b>, 0x7f) = -1 EFAULT (Bad address)",
    ]);
    let copies: Vec<_> = rows
        .iter()
        .filter(|r| r.event.op == Op::Copy)
        .map(|r| (r.event.offset, r.event.offset2, r.path.is_some(), r.path2.is_some(), r.event.flags & flag::FOREIGN))
        .collect();
    assert_eq!(
        copies,
        [
            (Some(100), Some(0), true, true, 0),
            (Some(0), Some(50), true, true, 0),
            (Some(300), None, true, false, 0),
            (None, Some(2000), false, true, 0),
            (Some(0), Some(0), true, true, 0),
            (Some(0), Some(0), true, true, 0),
        ]
    );
    assert_eq!(rows.last().and_then(|r| r.event.size_before), Some(2010));
}

#[test]
fn tables_are_copied_by_fork_and_shared_by_threads() {
    let text = "\
1 1700000000.000001 openat(AT_FDCWD</w>, \"f\", O_RDONLY|O_CLOEXEC) = 3</w/f> <0.000001>
1 1700000000.000002 clone(child_stack=NULL, flags=CLONE_CHILD_CLEARTID|SIGCHLD, child_tidptr=0x7f) = 2 <0.000001>
2 1700000000.000003 read(3</w/f>, \"\"..., 10) = 10 <0.000001>
1 1700000000.000004 read(3</w/f>, \"\"..., 10) = 10 <0.000001>
2 1700000000.000005 close(3</w/f>) = 0 <0.000001>
1 1700000000.000006 clone3({flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD, child_tid=0x7f, exit_signal=0} => {parent_tid=[3]}, 88) = 3 <0.000001>
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

/// A directory of which no call says what it is, and in which the trace makes all the names, was told as a file: nothing could be planned from such
/// a text, as nothing can be made in a file.
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

#[test]
fn coverage_counts_what_is_unseen() {
    let import = import(&trace(&[
        "openat(AT_FDCWD</w>, \"db\", O_RDWR) = 3</w/db>",
        "fstat(3</w/db>, {st_mode=S_IFREG|0644, st_size=1048576, ...}) = 0",
        "mmap(NULL, 2097152, PROT_READ|PROT_WRITE, MAP_SHARED, 3</w/db>, 0) = 0x7f0000000000",
        "mmap(NULL, 4096, PROT_READ, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0) = 0x7f0000000000",
        "openat(AT_FDCWD</w>, \"/usr/lib/libc.so.6\", O_RDONLY) = 4</usr/lib/libc.so.6>",
        "mmap(NULL, 8192, PROT_READ|PROT_EXEC, MAP_PRIVATE|MAP_DENYWRITE, 4</usr/lib/libc.so.6>, 0) = 0x7f0000000000",
        "io_uring_setup(8, {flags=0, sq_thread_cpu=0}) = 5<anon_inode:[io_uring]>",
        "io_uring_enter(5<anon_inode:[io_uring]>, 8, 0, 0, NULL, 8) = 8",
        "quotactl_fd(3</w/db>, 1, 2, 3) = 0",
    ]));
    let c = &import.summary.coverage;
    assert_eq!((c.data_maps, c.data_mapped_bytes, c.data_map_accesses), (1, 1 << 20, 16));
    assert_eq!((c.image_maps, c.io_uring_setups, c.io_uring_submitted), (1, 1, 8));
    assert_eq!(c.other_by_name.get("quotactl_fd"), Some(&1));
    let share = c.share(0).expect("a share");
    assert!((share - 3.0 / (3.0 + 1.0 + 8.0 + 16.0)).abs() < 1e-12, "{share}");
}

/// A ring that the kernel polls, beside one that is entered: what was submitted to the first, no call tells.
#[test]
fn rings_that_are_polled_leave_the_coverage_unknown() {
    let calls = |flags: &str| {
        import(&trace(&[
            "openat(AT_FDCWD</w>, \"/w/db\", O_RDWR) = 3</w/db>",
            &format!("io_uring_setup(8, {{flags={flags}, sq_thread_cpu=0}}) = 5<anon_inode:[io_uring]>"),
            "io_uring_enter(5<anon_inode:[io_uring]>, 1, 0, IORING_ENTER_SQ_WAKEUP, NULL, 8) = 1",
        ]))
        .summary
        .coverage
        .share(0)
    };
    assert_eq!(calls("IORING_SETUP_CLAMP|IORING_SETUP_SQPOLL"), None);
    assert!(calls("IORING_SETUP_CLAMP").is_some());
}

/// `python3 -m venv`: a stat of the empty path was taken for news of the working directory, whose place in the tree
/// was then given to another name while the process still pointed at it. The tree got a cycle.
#[test]
fn the_empty_path_says_nothing_of_the_working_directory() {
    let rows = rows(&[
        r#"newfstatat(AT_FDCWD</tmp/run/v>, "", 0x7ffda15c92d0, 0) = -1 ENOENT (No such file or directory)"#,
        r#"openat(AT_FDCWD</tmp/run/v>, "", O_RDONLY|O_CLOEXEC) = -1 ENOENT (No such file or directory)"#,
        r#"newfstatat(AT_FDCWD</tmp/run/v>, "/tmp/run/v/lib/site-packages", {st_mode=S_IFDIR|0755, st_size=4096, ...}, 0) = 0"#,
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

/// The kernel replaces only empty directories: where the tree believes otherwise, it was wrong, and must not lose what moved.
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
