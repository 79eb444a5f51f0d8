//! Calls through `Mounted` behave as the same calls made directly, and its promises hold at the extremes.

use crate::common::{close, create, mkdir, open, write};
use posix::{
    AccessMode, At, Call, Errno, Fallocate, FileKind, FileSystem, Lock, Mode, Mounted, OpenFlags, Reply, SetTime,
    Whence,
};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::Path;

fn result(fs: &mut Mounted, call: Call<'_>) -> Result<Reply, Errno> {
    let before = fs.now_ns();
    let outcome = fs.call(&call);
    let after = fs.now_ns();
    assert!(outcome.start_ns >= before && outcome.dur_ns <= after - before, "{call:?}: {outcome:?}");
    outcome.result
}

/// The table that any POSIX file system must agree with, after pjdfstest's basics.
#[test]
fn failures_have_the_error_numbers_of_posix() {
    let dir = tempfile::tempdir().unwrap();
    let fs = &mut Mounted::open(dir.path()).unwrap();
    mkdir(fs, "d").unwrap();
    mkdir(fs, "d/sub").unwrap();
    let fd = create(fs, "f").unwrap();
    close(fs, fd).unwrap();
    result(fs, Call::Symlink { target: Path::new("loop"), at: "loop".into() }).unwrap();
    let long = "x".repeat(256);
    let mode = Mode(0o755);
    let rename = |from: &'static str, to: &'static str, noreplace| Call::Rename {
        from: from.into(),
        to: to.into(),
        noreplace,
        exchange: false,
    };
    let table = [
        (Call::Mkdir { at: "d".into(), mode }, Errno::EEXIST),
        (Call::Mkdir { at: "f/x".into(), mode }, Errno::ENOTDIR),
        (Call::Mkdir { at: "none/x".into(), mode }, Errno::ENOENT),
        (Call::Mkdir { at: long.as_str().into(), mode }, Errno::ENAMETOOLONG),
        (Call::Rmdir { at: "d".into() }, Errno::ENOTEMPTY),
        (Call::Rmdir { at: "f".into() }, Errno::ENOTDIR),
        (Call::Rmdir { at: "none".into() }, Errno::ENOENT),
        (Call::Rmdir { at: "d/.".into() }, Errno::EINVAL),
        (Call::Unlink { at: "d".into() }, Errno::EISDIR),
        (Call::Unlink { at: "none".into() }, Errno::ENOENT),
        (Call::Stat { at: "loop/x".into(), follow: true }, Errno::ELOOP),
        (Call::Stat { at: "loop".into(), follow: true }, Errno::ELOOP),
        (Call::Stat { at: "".into(), follow: true }, Errno::ENOENT),
        (Call::Stat { at: "a\0b".into(), follow: true }, Errno::EINVAL),
        (rename("d", "d/sub/x", false), Errno::EINVAL),
        (rename("d", "f", false), Errno::ENOTDIR),
        (rename("f", "d", false), Errno::EISDIR),
        (rename("none", "x", false), Errno::ENOENT),
        (rename("f", "loop", true), Errno::EEXIST),
        (Call::Link { from: "f".into(), to: "d".into(), follow: false }, Errno::EEXIST),
        (Call::Link { from: "d".into(), to: "x".into(), follow: false }, Errno::EPERM),
        (Call::ReadLink { at: "f".into() }, Errno::EINVAL),
        (Call::Truncate { at: "d".into(), len_bytes: 0 }, Errno::EISDIR),
        (Call::Access { at: "none".into(), mode: AccessMode::default() }, Errno::ENOENT),
        (Call::Open { at: "f".into(), flags: OpenFlags::DIRECTORY, mode }, Errno::ENOTDIR),
        (Call::Open { at: "f".into(), flags: OpenFlags::CREATE_NEW, mode }, Errno::EEXIST),
        (Call::Open { at: "d".into(), flags: OpenFlags::WRITE, mode }, Errno::EISDIR),
        (Call::Open { at: "loop".into(), flags: OpenFlags { nofollow: true, ..OpenFlags::READ }, mode }, Errno::ELOOP),
        (Call::GetXattr { at: "f".into(), follow: true, name: OsStr::new("user.none") }, Errno::ENODATA),
    ];
    for (call, errno) in table {
        assert_eq!(result(fs, call), Err(errno), "{call:?}");
    }
}

/// What text cannot tell is up to the kernel: links, and calls that take no directory.
#[test]
fn no_contained_call_leaves_the_root() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["private", "private/root", "private/root/a", "private/root/a/b"] {
        std::fs::create_dir(dir.path().join(name)).unwrap();
    }
    for name in ["outside", "private/root/inside", "private/root/a/inside"] {
        std::fs::write(dir.path().join(name), "content").unwrap();
    }
    std::os::unix::fs::symlink(dir.path().join("outside"), dir.path().join("private/root/absolute")).unwrap();
    std::os::unix::fs::symlink("../../../../outside", dir.path().join("private/root/a/climbs")).unwrap();
    let (here, threads) = (std::env::current_dir().unwrap(), std::thread::available_parallelism().unwrap());
    let mut fs = Mounted::open(&dir.path().join("private")).unwrap();
    fs.contained(&mut |fs| {
        let a = fs.call(&Call::Open { at: "a".into(), flags: OpenFlags::DIRECTORY, mode: Mode(0) }).fd().unwrap();
        let from = |path| At { dir: Some(a), path: Path::new(path) };
        for path in ["../outside", "/../outside", "absolute", "a/climbs", "a/../../outside", "a/../../../outside"] {
            assert_eq!(fs.call(&Call::Truncate { at: path.into(), len_bytes: 0 }).result, Err(Errno::ENOENT), "{path}");
            assert_eq!(fs.call(&Call::StatFs { at: path.into() }).result, Err(Errno::ENOENT), "{path}");
            assert_eq!(fs.call(&Call::Chmod { at: path.into(), mode: Mode(0) }).result, Err(Errno::ENOENT), "{path}");
        }
        // Calls without a directory find their way from one, in each of several threads.
        let truncate = Call::Truncate { at: from("inside"), len_bytes: 3 };
        assert_eq!(fs.call(&truncate).result, Ok(Reply::Done));
        let of_root = Call::Truncate { at: from("../../inside"), len_bytes: 4 };
        fs.run(vec![Box::new(Repeat(truncate, 1000)), Box::new(Repeat(of_root, 1000))]).unwrap();
        fs.call(&Call::Close { fd: a });
    })
    .unwrap();
    let len = |name: &str| std::fs::metadata(dir.path().join(name)).unwrap().len();
    assert_eq!((len("outside"), len("private/root/inside"), len("private/root/a/inside")), (7, 4, 3));
    // The rest of the process is where it was.
    assert_eq!((std::env::current_dir().unwrap(), std::thread::available_parallelism().unwrap()), (here, threads));
    assert!(Path::new("/proc/self").exists());
    let panic = std::panic::catch_unwind(move || fs.contained(&mut |_| panic!("inside")));
    assert_eq!(panic.unwrap_err().downcast_ref(), Some(&"inside"), "a panic inside is a panic outside");
}

/// Makes one call so often, and insists on success.
struct Repeat<'a>(Call<'a>, u32);

impl posix::Process for Repeat<'_> {
    fn next(&mut self, last: Option<&posix::Outcome>) -> posix::Step<'_> {
        assert!(last.is_none_or(|outcome| outcome.result.is_ok()), "{last:?}");
        match self.1.checked_sub(1) {
            Some(left) => {
                self.1 = left;
                posix::Step::Call(self.0)
            }
            None => posix::Step::Done,
        }
    }
}

#[test]
fn no_call_leaves_the_root_by_its_text() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("root")).unwrap();
    std::fs::write(dir.path().join("outside"), "x").unwrap();
    let fs = &mut Mounted::open(&dir.path().join("root")).unwrap();
    mkdir(fs, "/a").unwrap();
    mkdir(fs, "///a/b").unwrap();
    assert!(dir.path().join("root/a/b").is_dir());
    let escape = |path: &'static str| Call::Stat { at: path.into(), follow: true };
    assert_eq!(result(fs, escape("../outside")), Err(Errno::EXDEV));
    assert_eq!(result(fs, escape("/../outside")), Err(Errno::EXDEV));
    assert_eq!(result(fs, escape("a/../../outside")), Err(Errno::EXDEV));
    assert!(result(fs, escape("a/b/../..")).is_ok());
    let b = open(fs, "a/b", OpenFlags::DIRECTORY).unwrap();
    let from_b = |path| At { dir: Some(b), path: Path::new(path) };
    assert!(result(fs, Call::Stat { at: from_b("../.."), follow: true }).is_ok());
    assert_eq!(result(fs, Call::Stat { at: from_b("../../.."), follow: true }), Err(Errno::EXDEV));
    assert_eq!(result(fs, Call::Unlink { at: from_b("../../../outside") }), Err(Errno::EXDEV));
    assert!(fs.subdir("../x").is_err());
    assert!(dir.path().join("outside").exists());
}

#[test]
fn descriptors_are_good_in_every_handle_and_nowhere_else() {
    let dir = tempfile::tempdir().unwrap();
    let mut one = Mounted::open(dir.path()).unwrap();
    let fd = create(&mut one, "f").unwrap();
    let mut two = one.clone();
    let mut deeper = one.subdir("x/y").unwrap();
    assert_eq!(write(&mut two, fd, None, 10), Ok(10));
    assert_eq!(write(&mut deeper, fd, None, 10), Ok(10));
    let mut stranger = Mounted::open(dir.path()).unwrap();
    assert_eq!(write(&mut stranger, fd, None, 10), Err(Errno::EBADF));
    assert_eq!(write(&mut two, posix::Fd(0), None, 10), Err(Errno::EBADF));
    let linked = format!("/proc/self/fd/{}", fd.0);
    drop((one, two));
    assert!(std::fs::read_link(&linked).is_ok_and(|to| to.ends_with("f")));
    assert_eq!(deeper.open_descriptors(), 1);
    drop(deeper);
    assert!(!std::fs::read_link(&linked).is_ok_and(|to| to.starts_with(dir.path())));
}

#[test]
fn requests_of_any_size_are_one_call() {
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    let fs = &mut Mounted::open(dir.path()).unwrap();
    let fd = create(fs, "f").unwrap();
    let big = (40 << 20) + 123;
    assert_eq!(write(fs, fd, None, big), Ok(big));
    assert_eq!(write(fs, fd, Some(5), 0), Ok(0));
    let read = |fs: &mut Mounted, offset, len_bytes| fs.call(&Call::Read { fd, offset, len_bytes }).count();
    assert_eq!(read(fs, Some(0), big), Ok(big));
    assert_eq!(read(fs, Some(10), 1 << 40), Ok(big - 10));
    assert_eq!(read(fs, Some(big), 4096), Ok(0));
    assert_eq!(result(fs, Call::Seek { fd, offset: -5, whence: Whence::End }), Ok(Reply::Count(big - 5)));
    assert_eq!(read(fs, None, 4096), Ok(5));
    assert_eq!(result(fs, Call::Seek { fd, offset: -1, whence: Whence::Set }), Err(Errno::EINVAL));
    // No block is all zeros, and none is like its neighbour.
    let mut contents = vec![0; 1 << 20];
    assert_eq!(fs.read_into(fd, 17 << 20, &mut contents), Ok(1 << 20));
    let blocks: std::collections::BTreeSet<&[u8]> = contents.chunks(4096).collect();
    assert_eq!(blocks.len(), 256);
}

#[test]
fn given_data_arrives() {
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    let fs = &mut Mounted::open(dir.path()).unwrap();
    let fd = create(fs, "f").unwrap();
    let data = Some(&b"hello"[..]);
    assert_eq!(result(fs, Call::Write { fd, offset: Some(3), len_bytes: 5, data }), Ok(Reply::Count(5)));
    assert_eq!(result(fs, Call::Write { fd, offset: Some(3), len_bytes: 6, data }), Err(Errno::EINVAL));
    assert_eq!(std::fs::read(dir.path().join("f")).unwrap(), b"\0\0\0hello");
}

#[test]
fn direct_io_is_aligned() {
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    let fs = &mut Mounted::open(dir.path()).unwrap();
    let flags = OpenFlags { create: true, direct: true, ..OpenFlags::READ_WRITE };
    let fd = match open(fs, "f", flags) {
        Err(Errno::EINVAL) => return testkit::skip(format!("no O_DIRECT in {}", dir.path().display())),
        other => other.unwrap(),
    };
    for len in [4096, 65536, 20 << 20] {
        assert_eq!(write(fs, fd, Some(0), len), Ok(len));
        assert_eq!(fs.call(&Call::Read { fd, offset: Some(0), len_bytes: len }).count(), Ok(len));
    }
    let unaligned = vec![7u8; 8193];
    let data = unaligned.get(1..).unwrap();
    assert_eq!(
        result(fs, Call::Write { fd, offset: Some(0), len_bytes: 8192, data: Some(data) }),
        Ok(Reply::Count(8192))
    );
}

#[test]
fn ten_thousand_descriptors_are_open_at_once() {
    if posix::raise_descriptor_limit() < 10_100 {
        return testkit::skip(format!("the hard limit on open descriptors is {}", posix::raise_descriptor_limit()));
    }
    let dir = tempfile::tempdir().unwrap();
    let fs = &mut Mounted::open(dir.path()).unwrap();
    create(fs, "f").unwrap();
    let fds: std::collections::BTreeSet<_> = (0..10_000).map(|_| open(fs, "f", OpenFlags::READ).unwrap()).collect();
    assert_eq!((fds.len(), fs.open_descriptors()), (10_000, 10_001));
    for fd in fds {
        close(fs, fd).unwrap();
    }
    assert_eq!(fs.open_descriptors(), 1);
}

#[test]
fn a_path_of_a_thousand_components_is_walked() {
    let dir = tempfile::tempdir().unwrap();
    let fs = &mut Mounted::open(dir.path()).unwrap();
    let path = vec!["d"; 1000].join("/");
    let mut at = None;
    for _ in 0..1000 {
        let here = At { dir: at, path: Path::new("d") };
        mkdir(fs, here).unwrap();
        let next = open(fs, here, OpenFlags::DIRECTORY).unwrap();
        at.replace(next).map(|fd| close(fs, fd));
    }
    assert!(
        fs.call(&Call::Stat { at: path.as_str().into(), follow: true }).stat().unwrap().kind == FileKind::Directory
    );
    let too_long = vec!["dddddddd"; 1000].join("/");
    assert_eq!(result(fs, Call::Stat { at: too_long.as_str().into(), follow: true }), Err(Errno::ENAMETOOLONG));
}

#[test]
fn names_may_be_any_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let fs = &mut Mounted::open(dir.path()).unwrap();
    let names = [&b"new\nline"[..], b"\xff\xfe", b" ", b"-rf", b"\x01"];
    for name in names {
        create(fs, Path::new(OsStr::from_bytes(name))).unwrap();
    }
    let root = open(fs, ".", OpenFlags::DIRECTORY).unwrap();
    let mut found = fs.entries(root).unwrap();
    found.sort();
    let mut expected: Vec<_> = names.map(|n| (OsStr::from_bytes(n).to_os_string(), FileKind::File)).to_vec();
    expected.sort();
    assert_eq!(found, expected);
    // `entries` does not move the descriptor's own position.
    assert!(matches!(result(fs, Call::GetDents { fd: root, len_bytes: 32768 }), Ok(Reply::Count(n)) if n > 0));
    assert_eq!(result(fs, Call::GetDents { fd: root, len_bytes: 32768 }), Ok(Reply::Count(0)));
}

/// Each call, and what the standard library sees of it afterwards.
#[test]
fn every_call_has_its_effect() {
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    let on_disk = |name: &str| dir.path().join(name);
    let fs = &mut Mounted::open(dir.path()).unwrap();
    let fd = create(fs, "f").unwrap();
    write(fs, fd, None, 10_000).unwrap();
    for call in [
        Call::Fsync { fd },
        Call::Fdatasync { fd },
        Call::SyncRange { fd, offset: 0, len_bytes: 4096, how: posix::SyncRange::STARTED },
        Call::SyncRange { fd, offset: 0, len_bytes: 4096, how: posix::SyncRange::WAITED },
        Call::SyncFs,
        Call::StatFs { at: "f".into() },
        Call::Access { at: "f".into(), mode: AccessMode { read: true, ..AccessMode::default() } },
        Call::DontNeed { fd, offset: 0, len_bytes: 0 },
        Call::Advise { fd, offset: 0, len_bytes: 0, advice: posix::Advice::Random },
        Call::Lock { fd, offset: 0, len_bytes: 10, lock: Lock::Exclusive },
        Call::Lock { fd, offset: 0, len_bytes: 10, lock: Lock::Unlock },
        Call::MapUnmap { fd, len_bytes: 10_000 },
    ] {
        assert_eq!(result(fs, call), Ok(Reply::Done), "{call:?}");
    }
    result(fs, Call::Ftruncate { fd, len_bytes: 5000 }).unwrap();
    assert_eq!(on_disk("f").metadata().unwrap().len(), 5000);
    result(fs, Call::Truncate { at: "f".into(), len_bytes: 3000 }).unwrap();
    assert_eq!(on_disk("f").metadata().unwrap().len(), 3000);
    let allocate = |how| Call::Fallocate { fd, how, offset: 0, len_bytes: 65536 };
    if result(fs, allocate(Fallocate::AllocateKeepSize)) != Err(Errno::EOPNOTSUPP) {
        assert_eq!(on_disk("f").metadata().unwrap().len(), 3000);
        assert!(on_disk("f").metadata().unwrap().blocks() * 512 >= 65536);
        result(fs, allocate(Fallocate::Allocate)).unwrap();
        assert_eq!(on_disk("f").metadata().unwrap().len(), 65536);
        result(fs, allocate(Fallocate::PunchHole)).unwrap();
        assert_eq!(on_disk("f").metadata().unwrap().blocks(), 0);
        assert_eq!(result(fs, Call::Seek { fd, offset: 0, whence: Whence::Data }), Err(Errno::ENXIO));
    }
    result(fs, Call::Mknod { at: "fifo".into(), kind: FileKind::Special, mode: Mode(0o600) }).unwrap();
    let fifo = open(fs, "fifo", OpenFlags::READ).unwrap();
    close(fs, fifo).unwrap();
    result(fs, Call::Symlink { target: Path::new("f"), at: "s".into() }).unwrap();
    assert_eq!(result(fs, Call::ReadLink { at: "s".into() }), Ok(Reply::Count(1)));
    result(fs, Call::Link { from: "f".into(), to: "g".into(), follow: false }).unwrap();
    assert_eq!(on_disk("g").metadata().unwrap().nlink(), 2);
    result(fs, Call::Chmod { at: "g".into(), mode: Mode(0o600) }).unwrap();
    assert_eq!(on_disk("f").metadata().unwrap().permissions().mode() & 0o7777, 0o600);
    result(fs, Call::Fchmod { fd, mode: Mode(0o1640) }).unwrap();
    assert_eq!(on_disk("f").metadata().unwrap().permissions().mode() & 0o7777, 0o1640);
    result(fs, Call::Chown { at: "f".into(), follow: true, uid: None, gid: None }).unwrap();
    result(fs, Call::Fchown { fd, uid: None, gid: Some(u32::MAX) }).unwrap();
    let times = |atime, mtime| Call::Utimens { at: "f".into(), follow: true, atime, mtime };
    result(fs, times(SetTime::Omit, SetTime::To(-1_500_000_000))).unwrap();
    let stat = fs.call(&Call::Stat { at: "f".into(), follow: true }).stat().unwrap();
    assert_eq!((stat.mtime_ns, stat.mode, stat.nlink), (-1_500_000_000, Mode(0o1640), 2));
    result(fs, Call::Futimens { fd, atime: SetTime::To(7), mtime: SetTime::Now }).unwrap();
    let stat = fs.call(&Call::Fstat { fd }).stat().unwrap();
    assert!(stat.atime_ns == 7 && stat.mtime_ns > 1_000_000_000_000_000_000, "{stat:?}");
    result(fs, Call::Rename { from: "g".into(), to: "h".into(), noreplace: true, exchange: false }).unwrap();
    result(fs, Call::Rename { from: "h".into(), to: "s".into(), noreplace: false, exchange: true }).unwrap();
    assert!(on_disk("h").is_symlink() && !on_disk("s").is_symlink());
    result(fs, Call::Unlink { at: "h".into() }).unwrap();
    let to = create(fs, "copy").unwrap();
    write(fs, fd, Some(0), 70_000).unwrap();
    let copied = result(fs, Call::CopyRange { from: fd, from_offset: Some(0), to, to_offset: None, len_bytes: 70_000 });
    assert_eq!(copied, Ok(Reply::Count(70_000)));
    assert_eq!(std::fs::read(on_disk("copy")).unwrap(), std::fs::read(on_disk("f")).unwrap());
    mkdir(fs, "d").unwrap();
    result(fs, Call::Rmdir { at: "d".into() }).unwrap();
    assert!(!on_disk("d").exists());
    let anonymous = open(fs, ".", OpenFlags { tmpfile: true, ..OpenFlags::READ_WRITE });
    assert!(matches!(anonymous, Ok(_) | Err(Errno::EOPNOTSUPP)), "{anonymous:?}");
    if let Ok(fd) = anonymous {
        write(fs, fd, None, 123).unwrap();
        result(fs, Call::LinkFd { fd, to: "named".into() }).unwrap();
        result(fs, Call::LinkFd { fd, to: "again".into() }).unwrap();
        let named = std::fs::metadata(on_disk("named")).unwrap();
        assert_eq!((named.len(), named.nlink()), (123, 2));
        assert_eq!(result(fs, Call::LinkFd { fd, to: "again".into() }), Err(Errno::EEXIST));
    }
    std::os::unix::fs::symlink("f", on_disk("to-f")).unwrap();
    for (follow, is_symlink) in [(false, true), (true, false)] {
        let name = format!("linked-{follow}");
        result(fs, Call::Link { from: "to-f".into(), to: name.as_str().into(), follow }).unwrap();
        assert_eq!(on_disk(&name).is_symlink(), is_symlink);
    }
}

#[test]
fn extended_attributes_are_set_and_gone() {
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    let fs = &mut Mounted::open(dir.path()).unwrap();
    create(fs, "f").unwrap();
    let (at, name) = (At::from("f"), OsStr::new("user.colour"));
    match result(fs, Call::SetXattr { at, follow: true, name, value: b"green" }) {
        Err(Errno::EOPNOTSUPP) => return testkit::skip(format!("no extended attributes in {}", dir.path().display())),
        other => assert_eq!(other, Ok(Reply::Done)),
    }
    let mut value = [0u8; 16];
    assert_eq!(rustix::fs::getxattr(dir.path().join("f"), "user.colour", &mut value), Ok(5));
    assert!(value.starts_with(b"green"));
    assert_eq!(result(fs, Call::GetXattr { at, follow: true, name }), Ok(Reply::Count(5)));
    let Ok(Reply::Count(listed)) = result(fs, Call::ListXattr { at, follow: true }) else { panic!("not listed") };
    assert!(listed > "user.colour".len() as u64);
    result(fs, Call::RemoveXattr { at, follow: true, name }).unwrap();
    assert_eq!(result(fs, Call::GetXattr { at, follow: true, name }), Err(Errno::ENODATA));

    // Of a link that leads nowhere, or of what it would lead to.
    result(fs, Call::Symlink { target: "nowhere".as_ref(), at: "link".into() }).unwrap();
    for (follow, listed, got) in
        [(true, Err(Errno::ENOENT), Err(Errno::ENOENT)), (false, Ok(Reply::Count(0)), Err(Errno::ENODATA))]
    {
        let at = At::from("link");
        let name = OsStr::new("trusted.none");
        assert_eq!(result(fs, Call::ListXattr { at, follow }), listed, "follow {follow}");
        assert_eq!(result(fs, Call::GetXattr { at, follow, name }), got, "follow {follow}");
    }
}

#[test]
fn what_one_handle_writes_the_disk_has() {
    let dir = tempfile::tempdir().unwrap();
    let fs = &mut Mounted::open(dir.path()).unwrap();
    let fd = create(fs, "f").unwrap();
    write(fs, fd, Some(8192), 4096).unwrap();
    let direct = std::fs::File::open(dir.path().join("f")).unwrap();
    let (mut ours, mut theirs) = (vec![0; 12_288], vec![1; 12_288]);
    assert_eq!(fs.read_into(fd, 0, &mut ours), Ok(12_288));
    direct.read_exact_at(&mut theirs, 0).unwrap();
    assert_eq!(ours, theirs);
}

/// Pages of a file that are in memory, in the words of util-linux.
fn fincore(path: &Path) -> Option<u64> {
    let output = std::process::Command::new("fincore").args(["-b", "-n", "-r", "-o", "PAGES"]).arg(path).output();
    String::from_utf8(output.ok()?.stdout).ok()?.trim().parse().ok()
}

/// What is in memory of ranges of a file, where the test has put it there and taken it away; fincore is asked as well.
#[test]
fn a_look_at_the_cache_finds_what_is_there() {
    // On a disk: a file in memory alone cannot be dropped.
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    let page = rustix::param::page_size() as u64;
    let fs = &mut Mounted::open(dir.path()).unwrap();
    let fd = create(fs, "f").unwrap();
    write(fs, fd, None, 64 * page + 1).unwrap();
    let look = |fs: &mut Mounted, offset, len_bytes| {
        let outcome = fs.call(&Call::Residency { fd, offset, len_bytes });
        assert_eq!(outcome.dur_ns, 0, "it is no call of the workload's");
        outcome.residency().unwrap()
    };
    let all = look(fs, 0, 0);
    assert_eq!((all.cached_bytes, all.missing_bytes), (65 * page, 0));
    let dirty = all.dirty_bytes;
    result(fs, Call::Fdatasync { fd }).unwrap();
    assert!(dirty.is_none_or(|dirty| dirty > 0 && dirty <= 65 * page), "{dirty:?}");
    assert_eq!(look(fs, 0, 0).dirty_bytes, dirty.map(|_| 0));
    // All of it: a large folio is given up whole or not at all.
    result(fs, Call::DontNeed { fd, offset: 0, len_bytes: 0 }).unwrap();
    assert_eq!(look(fs, 0, 0).missing_bytes, 65 * page);
    assert_eq!(look(fs, 3, 2).missing_bytes, page);
    let reader = open(fs, "f", OpenFlags::READ).unwrap();
    result(fs, Call::Advise { fd: reader, offset: 0, len_bytes: 0, advice: posix::Advice::Random }).unwrap();
    result(fs, Call::Read { fd: reader, offset: Some(40 * page), len_bytes: 10 }).unwrap();
    let left = look(fs, 0, 0);
    if let Some(pages) = fincore(&dir.path().join("f")) {
        assert_eq!(left.cached_bytes, pages * page, "as fincore counts");
    }
    assert_eq!(left.cached_bytes + left.missing_bytes, 65 * page);
    assert_eq!(look(fs, 40 * page, page).missing_bytes, 0);
    assert_eq!(look(fs, 0, 8 * page).cached_bytes, 0, "{left:?}");
    let root = open(fs, ".", OpenFlags::DIRECTORY).unwrap();
    assert_eq!(result(fs, Call::Residency { fd: root, offset: 0, len_bytes: 0 }), Err(Errno::EINVAL));
}
