//! What paths mean to a recording: working directories, root directories and mounts. The judge is the disk: the names
//! before the run, with the trace applied, are the tree that the program left, and a replay leads to it too.
//!
//! Each program is Python, run by its absolute path, so that its first relative path is its own.

use crate::common;
use crate::common::process::{Running, until};
use crate::common::{run, stderr, succeeds, with_each_tracer};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Mounts in a namespace of the program's own.
const MOUNTS: &str = "\
import ctypes, os
C = ctypes.CDLL(None, use_errno=True)
def called(result, what):
    assert result == 0, f'{what}: {os.strerror(ctypes.get_errno())}'
def text(path): return None if path is None else os.fsencode(path)
def mount(what, where, flags=4096): called(C.mount(text(what), text(where), None, ctypes.c_ulong(flags), None), \
f'mount {what} {where}')
def unmount(where): called(C.umount2(text(where), 2), f'umount {where}')
def write(path, words='x'): open(path, 'w').write(words)
def append(path, words='y'): open(path, 'a').write(words)
def own_mounts():
    called(C.unshare(0x20000), 'unshare')
    mount('none', '/', 16384 | 1 << 18)
";

/// The tree that each program begins with.
fn tree(directory: &Path) {
    for name in ["a/sub", "b/sub", "c/y", "d"] {
        fs::create_dir_all(directory.join(name)).unwrap();
    }
    for (name, text) in
        [("a/f1", "1\n"), ("a/f2", "11\n"), ("b/f2", "22\n"), ("a/sub/g", "333\n"), ("b/sub/h", "4444\n")]
    {
        fs::write(directory.join(name), text).unwrap();
    }
    std::os::unix::fs::symlink("../b", directory.join("a/lb")).unwrap();
}

/// Records a program in its tree with a tracer; `None` where something is missing.
fn recorded(with: &str, program: &str) -> Option<tempfile::TempDir> {
    let dir = tempfile::tempdir().unwrap();
    let work = dir.path().join("work");
    tree(&work);
    let script = dir.path().join("program.py");
    fs::write(&script, format!("{MOUNTS}{program}")).unwrap();
    let output = dir.path().join("out.workload");
    let (script, output) = (script.to_str().unwrap(), output.to_str().unwrap());
    let out = run(&work, &["record", "--with", with, "-o", output, "python3", "-B", script]);
    if out.status.code() == Some(3) && !stderr(&out).contains("no profile could be made") {
        testkit::skip(stderr(&out));
        return None;
    }
    if stderr(&out).contains("Operation not permitted") {
        testkit::skip(stderr(&out));
        return None;
    }
    succeeds(&out);
    fs::write(dir.path().join("said"), stderr(&out)).unwrap();
    Some(dir)
}

/// What the recording leads to is the tree on disk, and every call has its path.
fn leads_to_the_tree(dir: &tempfile::TempDir) {
    let work = dir.path().join("work");
    succeeds(&run(dir.path(), &["inspect", "out.workload", "--against", work.to_str().unwrap()]));
}

fn leads_there(with: &str, program: &str) {
    let Some(dir) = recorded(with, program) else { return };
    leads_to_the_tree(&dir);
}

/// Under strace such calls had no path, until one that names a directory (`openat`) had a relative one: they counted as
/// covered, and what they did was lost.
fn the_first_relative_calls_of_a_command(with: &str) {
    let program = "\
os.mkdir('made')
os.rename('a/f1', 'made/f1')
os.unlink('a/f2')
os.symlink('f1', 'made/link')
os.link('b/f2', 'made/f3')
";
    leads_there(with, program);
    leads_there(with, "own_mounts()\nmount('a', 'c')\nos.mkdir('c/made')\nos.rename('c/f1', 'c/made/f1')\n");
}

/// Records a program that runs already, and its child: each does a part, says so in a file `ready-parent` or
/// `ready-child` below `a` or `b`, waits to be recorded, and goes on.
fn attached(with: &str, before: &str, behind: &str) -> Option<tempfile::TempDir> {
    let dir = tempfile::tempdir().unwrap();
    let work = dir.path().join("work");
    tree(&work);
    // They wait for a pipe's end: no path before the first call that counts.
    let script = dir.path().join("program.py");
    fs::write(
        &script,
        format!("import os\nchild = os.fork()\n{before}\nos.read(0, 1)\n{behind}\nif child: os.waitpid(child, 0)\n"),
    )
    .unwrap();
    let child = Command::new("python3").arg("-B").arg(&script).current_dir(&work).stdin(Stdio::piped()).spawn();
    let mut subject = match child {
        Ok(child) => Running { child },
        Err(e) => {
            testkit::skip(format!("python3: {e}"));
            return None;
        }
    };
    until("both wait", || work.join("a/ready-parent").exists() && work.join("b/ready-child").exists());
    let pid = subject.child.id().to_string();
    let said = dir.path().join("said");
    let recorder = Command::new(env!("CARGO_BIN_EXE_fsage"))
        .args(["record", "--with", with, "-o", "out.workload", "--no-working-directory", "--root"])
        .arg(&work)
        .args(["--pid", &pid])
        .current_dir(dir.path())
        .stdin(Stdio::null())
        .stderr(fs::File::create(&said).unwrap())
        .spawn()
        .unwrap();
    let mut recorder = Running { child: recorder };
    let heard = || fs::read_to_string(&said).unwrap_or_default();
    until("it records, or cannot", || heard().contains("recording; ") || recorder.child.try_wait().unwrap().is_some());
    drop(subject.child.stdin.take());
    assert!(subject.ends().success());
    let ended = recorder.ends();
    if ended.code() == Some(3) {
        testkit::skip(heard());
        return None;
    }
    assert!(ended.success(), "{}", heard());
    Some(dir)
}

/// The same of processes that run already, each in a directory of its own.
fn the_first_relative_calls_of_processes(with: &str) {
    let before = "\
os.chdir('a' if child else 'b')
open('ready-' + ('parent' if child else 'child'), 'w').close()";
    let Some(dir) = attached(with, before, "os.mkdir('made')\nos.rename('sub', 'made/sub')") else { return };
    leads_to_the_tree(&dir);
}

/// What they do between the reading of the names and the first call that is recorded is in neither: that is said.
/// Nothing was said of it.
fn names_that_change_before_it_begins(with: &str) {
    let before = "\
import select
os.chdir('a' if child else 'b')
open('ready-' + ('parent' if child else 'child'), 'w').close()
n = 0
while not select.select([0], [], [], 0)[0]:
    os.mkdir(f'made{n}')
    os.rename(f'made{n}', f'moved{n}')
    if n >= 10: os.rmdir(f'moved{n - 10}')
    n += 1";
    let Some(dir) = attached(with, before, "") else { return };
    let said = fs::read_to_string(dir.path().join("said")).unwrap();
    let against = run(dir.path(), &["inspect", "out.workload", "--against", dir.path().join("work").to_str().unwrap()]);
    let is_said = said.contains("changed between their reading and the beginning of the recording");
    assert!(is_said || against.status.success(), "{said}\n{}", String::from_utf8_lossy(&against.stdout));
}

/// And each with a root directory of its own.
fn roots_from_before(with: &str) {
    let before = "\
os.chroot('a' if child else 'b')
os.chdir('/')
open('/ready-' + ('parent' if child else 'child'), 'w').close()";
    let behind = "os.mkdir('/made')\nos.rename('/sub', '/made/sub')\nopen('../../x', 'w').close()";
    let Some(dir) = attached(with, before, behind) else { return };
    leads_to_the_tree(&dir);
}

/// A link from before the recording is known by where the tracer shows it to lead, which is no path in a root of one's
/// own.
fn a_link_from_before_in_a_root(with: &str) {
    let program = "\
os.mkdir('a/target')
os.symlink('/target', 'a/absolute')
pid = os.fork()
if pid == 0:
    os.chroot('a')
    os.chdir('/')
    os.close(os.open('lb', os.O_RDONLY | os.O_NOFOLLOW | os.O_PATH))
    os.close(os.open('/absolute', os.O_RDONLY))
    os.mkdir('/absolute/in')
    os.mkdir('lb-not')
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
";
    leads_there(with, program);
}

/// A file that is gone and opened again by way of its descriptor is not made again.
fn a_file_that_is_gone_by_way_of_its_descriptor(with: &str) {
    let program = "\
fd = os.open('a/f1', os.O_RDWR)
os.unlink('a/f1')
write(f'/proc/self/fd/{fd}', 'into what nobody finds')
";
    leads_there(with, program);
}

/// `..` at the new root and absolute links led out of it in the kernel's recordings; strace's knew of no root at all.
fn a_root_of_its_own(with: &str) {
    let program = "\
outside = os.open('.', os.O_RDONLY)
os.chroot('a')
os.mkdir('b/before')
os.chdir('/')
write('/r1')
write('../../r2')
os.mkdir('/dir')
os.rename('/f1', '/dir/moved')
os.symlink('/dir', 'absolute')
write('/absolute/n')
os.mkdir('../../other')
os.chroot('/sub')
write('/absolute-not', 'still outside of it, by the directory')
os.rename('other', '/renamed')
os.chdir('/')
os.mkdir('../../inner')
os.fchdir(outside)
os.mkdir('d/by-descriptor')
os.chroot('.')
os.rename('/a/r1', '/d/r1')
os.mkdir('/../last')
";
    leads_there(with, program);
}

/// A root is of threads and of processes: those that share it go with it, others do not; and it moves with its
/// directory.
fn a_root_is_shared_and_moves(with: &str) {
    let program = "\
import threading
root = os.open('.', os.O_RDONLY)
child = os.fork()
if child == 0:
    os.chroot('b')
    os.chdir('/')
    os.rename('/f2', '/of-child')
    os._exit(0)
os.waitpid(child, 0)
os.rename('a/f2', 'd/of-parent')
os.chroot('a')
thread = threading.Thread(target=lambda: os.mkdir('/by-thread'))
thread.start()
thread.join()
os.rename('a', 'moved')
os.mkdir('/inside')
os.rename('/f1', '/inside/f1')
os.mkdir('outside')
";
    leads_there(with, program);
}

/// A path with `..` in it was kept as given for a descriptor, and was wrong once a name in it was moved.
fn a_descriptor_by_way_of_what_is_moved(with: &str) {
    for program in [
        "mount('c', 'b'); os.chdir('d'); g = os.open('../c/y', os.O_RDONLY); os.chdir('..'); os.rename('d', 'e'); \
         os.mkdir('n5', dir_fd=g)",
        "mount('c/y', 'b'); g = os.open('d/../b', os.O_RDONLY); os.rename('d', 'e'); os.mkdir('n5', dir_fd=g)",
        "mount('c', 'b'); g = os.open('d/../b/y', os.O_RDONLY); os.rename('d', 'e'); os.mkdir('../n4', dir_fd=g); \
         os.mkdir('n5', dir_fd=g)",
    ] {
        leads_there(with, &format!("own_mounts()\n{program}\n"));
    }
}

/// What covers the working directory is not where one works.
fn a_working_directory_that_is_covered(with: &str) {
    let program = "\
own_mounts()
os.chdir('a')
mount('../b', '.')
write('v1')
write('../a/v2')
os.chdir('../a')
write('v3')
unmount('.')
";
    leads_there(with, program);
}

/// A link at a path's end that leads across a mount: the file that it leads to there was known, and the row named
/// another.
fn a_link_across_a_mount(with: &str) {
    let program = "\
own_mounts()
mount('b', 'd')
os.symlink('../d/f2', 'a/relative')
os.symlink(os.getcwd() + '/d', 'a/absolute')
append('a/relative')
write('a/absolute/n1')
write('a/absolute/../n3')
mount('a', 'c')
append('c/relative', 'yyy')
os.symlink('../c/sub/made', 'b/dangling')
write('a/absolute/dangling', 'q')
unmount('d')
append('a/relative', 'zzzzz')
os.symlink('../a/f1', 'b/over')
mount('b/f2', 'b/over')
append('b/over')
append('a/f1', 'zzz')
unmount('a/f1')
append('b/over')
";
    leads_there(with, program);
}

/// strace shows what is in a mount that is mounted nowhere any more by a path from that mount on.
fn a_descriptor_in_what_is_unmounted(with: &str) {
    let program = "\
own_mounts()
mount('a', 'c')
g = os.open('c/sub', os.O_RDONLY)
unmount('c')
os.mkdir('../q5', dir_fd=g)
os.mkdir('../../q6', dir_fd=g)
os.fchdir(g)
os.mkdir('q7')
os.mkdir('../q8')
";
    leads_there(with, program);
}

/// A recording whose calls have no paths says so: there was no difference, and the check passed.
#[test]
fn calls_without_a_path_are_not_covered_and_fail_the_check() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("tree")).unwrap();
    let lines = "\
1 1700000000.000001 mkdir(\"made\", 0755) = 0 <0.000001>
1 1700000000.000002 rename(\"made\", \"moved\") = 0 <0.000001>
1 1700000000.000003 mkdir(\"/somewhere\", 0755) = 0 <0.000001>
";
    fs::write(dir.path().join("t.strace"), lines).unwrap();
    let said = succeeds(&run(dir.path(), &["import", "t.strace", "--json"]));
    let value: serde_json::Value = serde_json::from_str(&said).unwrap();
    let share = value["meta"]["coverage_share"].as_f64().unwrap();
    assert!(share < 0.5, "{share} of three calls, of which one has a path: {value}");
    let out = run(dir.path(), &["inspect", "t.workload", "--against", "tree"]);
    assert_eq!(out.status.code(), Some(1), "{}", stderr(&out));
    assert!(String::from_utf8_lossy(&out.stdout).contains("does not tell the paths of all calls"));
}

/// `--mount` records a whole file system: a directory in it is not enough.
#[test]
fn a_directory_that_is_no_mount_point_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("plain")).unwrap();
    let out = run(dir.path(), &["record", "--mount", "plain", "-o", "out.workload"]);
    assert_eq!(out.status.code(), Some(2), "{}", stderr(&out));
    assert!(stderr(&out).contains("plain: is no mount point"), "{}", stderr(&out));
    assert_eq!(common::names(dir.path()), ["plain"]);
}

/// A file opened by way of another descriptor is that file, and not `/proc/self/fd/3`.
fn a_file_by_way_of_a_descriptor(with: &str) {
    let program = "\
fd = os.open('a/f1', os.O_RDWR)
write(f'/proc/self/fd/{fd}', 'longer than it was')
append(f'/dev/fd/{fd}', 'and more')
";
    leads_there(with, program);
}

/// Calls by way of what is open are on what is behind it: that is how glibc's fchmodat changes a mode, and how a file
/// without a name gets one.
fn what_is_open_by_way_of_proc(with: &str) {
    let program = "\
fd = os.open('a', os.O_TMPFILE | os.O_RDWR, 0o600)
os.write(fd, b'made without a name')
for name in b'a/named', b'b/too':
    called(C.linkat(-100, b'/proc/self/fd/%d' % fd, -100, name, 0x400), 'linkat')
os.write(fd, b' and longer')
only = os.open('a/f1', os.O_PATH)
os.truncate(f'/proc/self/fd/{only}', 3)
os.chmod(f'/proc/thread-self/fd/{only}', 0o600)
os.rename('a/f1', 'a/moved')
os.truncate(f'/dev/fd/{only}', 2)
assert os.stat(f'/proc/{os.getpid()}/fd/{only}').st_size == 2
sub = os.open('a', os.O_PATH)
os.rename('a', 'e')
os.mkdir(f'/proc/self/fd/{sub}/made')
os.rename(f'/proc/self/fd/{sub}/moved', '/proc/self/cwd/d/up')
os.symlink('x', f'/proc/self/fd/{sub}/link')
os.chdir(f'/proc/self/fd/{sub}')
os.rename('link', 'link2')
os.unlink(f'/proc/self/root{os.getcwd()}/link2')
write(f'/proc/self/fd/{sub}/made/file', 'text')
assert os.lstat(f'/proc/self/fd/{sub}').st_mode & 0o170000 == 0o120000
";
    leads_there(with, program);
}

/// A directory can be the root for one call (openat2, `RESOLVE_IN_ROOT`).
fn a_root_for_one_call(with: &str) {
    let program = "\
import struct
a = os.open('a', os.O_RDONLY)
def make(path):
    how = struct.pack('QQQ', os.O_CREAT | os.O_RDWR | os.O_TRUNC, 0o600, 0x10)
    fd = C.syscall(437, a, os.fsencode(path), how, ctypes.c_size_t(len(how)))
    assert fd >= 0, os.strerror(ctypes.get_errno())
    os.write(fd, b'12345')
os.symlink('/sub', 'a/absolute')
make('/sub/new')
make('../../../top')
make('/absolute/made')
make('sub/g')
";
    leads_there(with, program);
}

/// Threads and processes in a process number namespace are told by other numbers there: under strace nobody knew whose
/// they were.
fn numbers_of_another_namespace(with: &str) {
    let program = "\
import threading
called(C.unshare(0x20000000), 'unshare')
child = os.fork()
if child == 0:
    thread = threading.Thread(target=lambda: os.chdir('a'))
    thread.start()
    thread.join()
    os.mkdir('made')
    os.rename('f1', 'made/f1')
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
";
    leads_there(with, program);
}

/// What a program submits to Linux AIO is counted as not modelled: nothing told of it.
fn requests_of_linux_aio_are_not_covered(with: &str) {
    let program = "\
import struct
context = ctypes.c_ulong(0)
called(C.syscall(206, 8, ctypes.byref(context)), 'io_setup')
fd = os.open('a/f1', os.O_RDWR)
data = ctypes.create_string_buffer(b'abc')
for i in range(50):
    # struct iocb: data, key, flags, opcode (pwrite), priority, descriptor, buffer, bytes, offset
    block = ctypes.create_string_buffer(struct.pack('QIIHhIQQqQII', 0, 0, 0, 1, 0, fd, ctypes.addressof(data), 3, 0, \
    0, 0, 0))
    blocks = (ctypes.c_void_p * 1)(ctypes.addressof(block))
    assert C.syscall(209, context, 1, blocks) == 1
    events = ctypes.create_string_buffer(32)
    assert C.syscall(208, context, 1, 1, events, None) == 1
";
    let Some(dir) = recorded(with, program) else { return };
    let meta = fs::read_to_string(dir.path().join("out.workload/meta.json")).unwrap();
    let meta: serde_json::Value = serde_json::from_str(&meta).unwrap();
    assert_eq!(meta["unmodelled"]["io_submit request"], 50, "{meta}");
    assert!(meta["coverage_share"].as_f64().unwrap() < 1.0, "{meta}");
}

/// A link that was there before is in the snapshot, also where it is used behind a `..` or another link: a replay did
/// not find what is behind it.
fn a_link_behind_others_that_was_there_before(with: &str) {
    let program = "\
os.chdir('d')
write('../a/lb/n1')
write('../a/lb/../a/lb/sub/n2')
os.chdir('../a/lb')
write('../a/lb/n3')
";
    let Some(dir) = recorded(with, program) else { return };
    leads_to_the_tree(&dir);
    fs::create_dir(dir.path().join("target")).unwrap();
    let out = run(dir.path(), &["replay", "out.workload", "target", "--initial", "warm", "--json"]);
    let replayed: serde_json::Value = serde_json::from_str(&succeeds(&out)).unwrap();
    assert_eq!(replayed["differences"]["total"], 0, "{}", replayed["differences"]);
}

/// A thread that is not the first of its process executes a program and goes on under the first one's number, with what
/// it has. Everybody else is recorded all the same.
fn a_program_executed_by_a_second_thread(with: &str) {
    let program = "\
import threading, time
child = os.fork()
if child == 0:
    os.chdir('d')
    kept = os.open('../a/f1', os.O_WRONLY | os.O_APPEND)
    os.set_inheritable(kept, True)
    def go():
        os.mkdir('from-thread')
        os.execl('/bin/sh', 'sh', '-c', f'echo more >&{kept}; mkdir k; echo 1 >one; mv one k; exit 5')
    threading.Thread(target=go).start()
    time.sleep(60)
    os._exit(1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 5
write('after')
os.mkdir('aft')
";
    let Some(dir) = recorded(with, program) else { return };
    leads_to_the_tree(&dir);
    let csv = succeeds(&run(dir.path(), &["export", "out.workload"]));
    let made = |name: &str| csv.lines().filter(|l| l.contains(",mkdir,") && l.contains(name)).count();
    assert_eq!((made("from-thread"), made("/k\""), made("/aft\"")), (1, 1, 1));
    let said = fs::read_to_string(dir.path().join("said")).unwrap();
    assert!(!said.contains("not understood"), "{said}");
}

/// A descriptor is sent over a socket and closed at once, as those of logs and windows are; the name of the file is
/// another file's by the time it arrives. The sender's close counted as the last, and what the receiver did was done to
/// the other file.
#[test]
fn a_file_that_is_nobodys_while_it_is_sent() {
    let program = "\
import array, socket
a, b = socket.socketpair()
def send(fd):
    a.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [fd]))])
    os.close(fd)
def receive():
    fds = array.array('i')
    fds.frombytes(b.recvmsg(1, 100)[1][0][2])
    return fds[0]
for i in range(3):
    fd = os.open('log', os.O_RDWR | os.O_CREAT)
    os.write(fd, b'x' * 100)
    os.unlink('log')
    send(fd)
    write('log', 'new')
    fd = receive()
    os.ftruncate(fd, 3000)
    send(fd)
    fd = receive()
    os.write(fd, b'more')
    os.close(fd)
fd = os.open('log2', os.O_RDWR | os.O_CREAT)
os.rename('log2', 'renamed')
send(fd)
write('log2', 'another')
fd = receive()
os.ftruncate(fd, 2000)
";
    let Some(dir) = recorded("ebpf", program) else { return };
    leads_to_the_tree(&dir);
    // The same on a disk.
    let at = dir.path();
    fs::create_dir(at.join("scratch")).unwrap();
    succeeds(&run(at, &["replay", "out.workload", "scratch", "--keep"]));
    let kept = fs::read_dir(at.join("scratch")).unwrap().next().unwrap().unwrap().path().join("root");
    let length = |name: &str| {
        let path = [&kept, at.join("work").strip_prefix("/").unwrap(), Path::new(name)].iter().collect::<PathBuf>();
        fs::metadata(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display())).len()
    };
    for name in ["log", "log2", "renamed"] {
        assert_eq!(length(name), fs::metadata(at.join("work").join(name)).unwrap().len(), "{name}");
    }
    // A copy of the profile says the same.
    succeeds(&run(at, &["export", "out.workload", "--anonymise", "-o", "hidden.workload"]));
    let csv = |profile: &str| {
        let rows = succeeds(&run(at, &["export", profile]));
        rows.lines().filter(|l| l.contains(",close,") && l.contains("last")).count()
    };
    assert_eq!(csv("out.workload"), csv("hidden.workload"));
}

/// What is not followed is said.
fn what_changes_paths_and_is_not_followed_is_said(with: &str) {
    let program = "\
own_mounts()
mount('a', 'a')
mount(None, 'a', 1 << 20)
called(C.setns(os.open('/proc/self/ns/mnt', os.O_RDONLY), 0), 'setns')
";
    let Some(dir) = recorded(with, program) else { return };
    let meta = fs::read_to_string(dir.path().join("out.workload/meta.json")).unwrap();
    let meta: serde_json::Value = serde_json::from_str(&meta).unwrap();
    assert_eq!(meta["unmodelled"]["setns"], 1, "{meta}");
    assert_eq!(meta["unmodelled"]["mount(MS_SHARED)"], 1, "{meta}");
    let said = fs::read_to_string(dir.path().join("said")).unwrap();
    assert!(said.contains("setns, mount(MS_SHARED) can give paths another meaning, which is not followed"), "{said}");
}

with_each_tracer!(
    a_program_executed_by_a_second_thread,
    the_first_relative_calls_of_a_command,
    the_first_relative_calls_of_processes,
    names_that_change_before_it_begins,
    roots_from_before,
    a_root_of_its_own,
    a_link_from_before_in_a_root,
    a_file_that_is_gone_by_way_of_its_descriptor,
    a_root_is_shared_and_moves,
    a_descriptor_by_way_of_what_is_moved,
    a_working_directory_that_is_covered,
    a_link_across_a_mount,
    a_descriptor_in_what_is_unmounted,
    a_file_by_way_of_a_descriptor,
    what_is_open_by_way_of_proc,
    a_root_for_one_call,
    numbers_of_another_namespace,
    requests_of_linux_aio_are_not_covered,
    a_link_behind_others_that_was_there_before,
    what_changes_paths_and_is_not_followed_is_said,
);
