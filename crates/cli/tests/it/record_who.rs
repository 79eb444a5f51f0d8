//! Who can record what, through the binary: without privileges, with three capabilities, somebody else's process, a
//! 32-bit program, a container, a control group, calls that no kernel knows. Each works, or fsage says why not. The
//! judge is what the program leaves behind, and the kernel (`/proc`).
//!
//! All but the programs of one's own need root, to become somebody else or to make what is recorded.

use crate::common;
use crate::common::process::{Running, has, status_field, until};
use crate::common::{stderr, succeeds};
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use testkit::{Need, Tool};

const TRACERS: [&str; 2] = ["strace", "ebpf"];

/// A directory that anybody may write to.
struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).unwrap();
        Place { dir }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.at(name)).unwrap_or_default()
    }

    /// A program that nobody in particular runs, with these capabilities and no others.
    fn as_nobody(&self, program: &Path, capabilities: &[&str]) -> Command {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-sys_admin"]);
        let set: Vec<String> = capabilities.iter().map(|name| format!("+{name}")).collect();
        if !set.is_empty() {
            command.arg(format!("--inh-caps={}", set.join(","))).arg(format!("--ambient-caps={}", set.join(",")));
        }
        command.arg(program).current_dir(self.dir.path()).env_remove("RUST_BACKTRACE");
        command
    }

    /// fsage in a place where anybody may run it.
    fn fsage_of_anybody(&self) -> PathBuf {
        let copy = self.at("fsage");
        if !copy.exists() {
            testkit::process::copy_program(env!("CARGO_BIN_EXE_fsage"), &copy);
        }
        copy
    }

    fn fsage(&self, args: &[&str]) -> Output {
        common::run(self.dir.path(), args)
    }

    /// What is in a profile, as a table of columns separated by commas.
    fn rows(&self, profile: &str) -> String {
        succeeds(&self.fsage(&["export", profile]))
    }

    /// `fsage record` in the background, once it says that it records.
    fn recorder(&self, args: &[&str]) -> Running {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fsage"));
        command.arg("record").args(args).current_dir(self.dir.path()).env_remove("RUST_BACKTRACE");
        let said = fs::File::create(self.at("said")).unwrap();
        let recorder = Running { child: command.stdin(Stdio::null()).stderr(said).spawn().unwrap() };
        until("it records", || self.read("said").contains("recording; "));
        recorder
    }

    fn ends_well(&self, recorder: Running) {
        recorder.signal("TERM");
        assert!(recorder.ends().success(), "{}", self.read("said"));
    }
}

/// Whether a tracer works here; where not, the test is skipped.
fn works(with: &str) -> bool {
    let place = Place::new();
    let out = place.fsage(&["record", "--with", with, "--no-working-directory", "-o", "tried", "true"]);
    if out.status.code() == Some(3) {
        testkit::skip(format!("{with}: {}", stderr(&out)));
        return false;
    }
    succeeds(&out);
    true
}

/// A shell that runs a script in a directory until there is a file `enough`.
fn shell(mut command: Command, place: &Place, script: &str) -> Running {
    command.args(["-c", script]).current_dir(place.dir.path()).stdin(Stdio::null());
    Running { child: command.spawn().unwrap() }
}

/// Counts its rounds into `counted`.
const COUNTS: &str = "i=0; while [ ! -e enough ]; do i=$((i + 1)); echo $i >> counted; done";

fn goes_on(place: &Place) {
    let before = place.read("counted").lines().count();
    until("the process goes on", || place.read("counted").lines().count() > before + 20);
}

#[test]
fn without_privileges_somebody_elses_process_is_refused_and_goes_on() {
    if !testkit::needs(&[Need::Root, Need::Tool(Tool::Setpriv)]) {
        return;
    }
    let place = Place::new();
    let fsage = place.fsage_of_anybody();
    let subject = shell(Command::new("sh"), &place, COUNTS);
    let pid = subject.child.id().to_string();
    for (with, says) in [
        (&["--with", "strace"][..], &["Operation not permitted", "be root, or their owner"][..]),
        (&["--with", "ebpf"], &["fsage lacks CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE", "be root"]),
        (&[], &["CAP_BPF", "Operation not permitted", "be root, or their owner"]),
    ] {
        let mut command = place.as_nobody(&fsage, &[]);
        let out = command.arg("record").args(with).args(["-o", "out.workload", "--pid", &pid]).output().unwrap();
        let said = stderr(&out);
        assert_eq!(out.status.code(), Some(3), "{with:?}: {said}");
        for text in says {
            assert!(said.contains(text), "{with:?}: {text:?} is not in: {said}");
        }
        assert!(!said.contains("fsage: recording;"), "{with:?}: {said}");
        assert_eq!(status_field(subject.child.id(), "TracerPid:"), Some(0));
        goes_on(&place);
        let left: Vec<String> = common::names(place.dir.path());
        assert_eq!(left, ["counted", "fsage"], "nothing is left of the attempt");
    }
    fs::write(place.at("enough"), "").unwrap();
    assert!(subject.ends().success());
}

/// That the profile could not be made was found after the whole run.
#[test]
fn where_nothing_may_be_made_nothing_is_run() {
    if !testkit::needs(&[Need::Root, Need::Tool(Tool::Setpriv)]) || !works("strace") {
        return;
    }
    let place = Place::new();
    let fsage = place.fsage_of_anybody();
    fs::create_dir(place.at("of-root")).unwrap();
    let mut command = place.as_nobody(&fsage, &[]);
    let out = command.args(["record", "-o", "of-root/out.workload", "touch", "made"]).output().unwrap();
    let said = stderr(&out);
    assert_eq!(out.status.code(), Some(3), "{said}");
    assert!(said.contains("of-root/out.workload") && said.contains("Permission denied"), "{said}");
    assert!(!place.at("made").exists());
}

/// strace attached to a child that is one's own, and the profile said nothing of the process that was asked for; or it
/// hung.
#[test]
fn without_privileges_somebody_elses_process_with_a_child_of_ones_own_is_refused() {
    if !testkit::needs(&[Need::Root, Need::Tool(Tool::Setpriv)]) || !works("strace") {
        return;
    }
    let place = Place::new();
    let fsage = place.fsage_of_anybody();
    let line = "setpriv --reuid 65534 --regid 65534 --clear-groups sleep 1000 & echo $! >child; echo 1 >>counted; read \
        word; kill $!; wait";
    let mut shell = Command::new("sh");
    shell.args(["-c", line]).current_dir(place.dir.path()).stdin(Stdio::piped());
    let mut subject = Running { child: shell.spawn().unwrap() };
    until("both run", || place.at("counted").exists());
    let child: u32 = fs::read_to_string(place.at("child")).unwrap().trim().parse().unwrap();
    until("it is nobody's", || fs::metadata(format!("/proc/{child}")).is_ok_and(|m| m.uid() == 65534));
    let mut command = place.as_nobody(&fsage, &[]);
    let args = ["record", "--with", "strace", "-o", "out.workload", "--pid", &subject.child.id().to_string()];
    let out = command.args(args).output().unwrap();
    let said = stderr(&out);
    assert_eq!(out.status.code(), Some(3), "{said}");
    assert!(said.contains(&format!("process {}: Operation not permitted", subject.child.id())), "{said}");
    assert_eq!(status_field(child, "TracerPid:"), Some(0));
    drop(subject.child.stdin.take());
    assert!(subject.ends().success());
}

#[test]
fn without_privileges_a_command_is_recorded_by_strace() {
    if !testkit::needs(&[Need::Root, Need::Tool(Tool::Setpriv)]) || !works("strace") {
        return;
    }
    let place = Place::new();
    let fsage = place.fsage_of_anybody();
    let mut command = place.as_nobody(&fsage, &[]);
    command.args(["record", "-o", "out.workload", "--no-working-directory", "sh", "-c", "echo hello > made; exit 5"]);
    let out = command.output().unwrap();
    assert_eq!(out.status.code(), Some(5), "{}", stderr(&out));
    for text in ["recording with strace, as", "fsage lacks CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE", "recorded by strace"]
    {
        assert!(stderr(&out).contains(text), "{text:?} is not in: {}", stderr(&out));
    }
    assert_eq!(place.read("made"), "hello\n");
    assert_eq!(
        place.rows("out.workload").lines().filter(|l| l.contains(",write,") && l.contains("/made\"")).count(),
        1
    );
}

/// The kernel's programs read its own clock, and fsage that of its time namespace: the recording began days before or
/// after.
#[test]
fn a_recording_in_a_time_namespace_begins_when_it_does() {
    let unshare = ["--time", "--monotonic", "1000000"];
    if !testkit::need(Need::Root) || !has("unshare", &[&unshare[..], &["true"]].concat()) || !works("ebpf") {
        return;
    }
    let place = Place::new();
    let now = || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos();
    let before = now();
    let mut command = Command::new("unshare");
    command.args(unshare).arg(env!("CARGO_BIN_EXE_fsage")).current_dir(place.dir.path());
    command.args(["record", "--with", "ebpf", "-o", "out.workload", "--no-working-directory", "true"]);
    succeeds(&command.output().unwrap());
    let meta: serde_json::Value = serde_json::from_str(&place.read("out.workload/meta.json")).unwrap();
    let began = u128::from(meta["started_unix_ns"].as_u64().unwrap());
    assert!((before..now()).contains(&began), "{before} {began}");
}

/// The first file of that name on the path was taken, though it was somebody else's to run.
#[test]
fn a_program_is_found_where_its_user_may_run_it() {
    if !testkit::needs(&[Need::Root, Need::Tool(Tool::Setpriv)]) || !works("strace") {
        return;
    }
    let place = Place::new();
    let fsage = place.fsage_of_anybody();
    for (directory, status, mode) in [("first", 1, 0o700), ("second", 7, 0o755)] {
        fs::create_dir(place.at(directory)).unwrap();
        let program = place.at(directory).join("program");
        fs::write(&program, format!("#!/bin/sh\nexit {status}\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(mode)).unwrap();
    }
    let usual = std::env::var("PATH").unwrap();
    let path = format!("{}:{}:{usual}", place.at("first").display(), place.at("second").display());
    let mut command = place.as_nobody(&fsage, &[]);
    command.args(["record", "--with", "strace", "-o", "out.workload", "--no-working-directory", "program"]);
    let out = command.env("PATH", path).output().unwrap();
    assert_eq!(out.status.code(), Some(7), "{}", stderr(&out));
}

/// Takes every process that its user may have, and every one that becomes free, until it is told to end. It is not told
/// between a fork and the note of it: a process that nobody had noted stayed, and whoever read our output waited for
/// it.
const TAKES_ALL: &str = "\
import os, signal, time
taken = []
def end(number, frame):
    for pid in taken: os.kill(pid, signal.SIGKILL)
    os._exit(9)
signal.signal(signal.SIGTERM, end)
parent, here = os.getppid(), os.getpid()
while os.getppid() == parent:
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    try:
        pid = os.fork()
        if pid > 0: taken.append(pid)
    except OSError:
        pid = -1
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
    while pid == 0:
        if os.getppid() != here: os._exit(0)
        time.sleep(1)
    if pid < 0:
        if taken: open('taken', 'w').close()
        time.sleep(0.0002)
end(0, None)
";

/// fsage made a thread to end the recording, got none, and was gone: without a profile or a spool, and the command
/// never heard of the signal.
#[test]
fn a_command_that_takes_every_process_is_recorded_to_the_end() {
    if !testkit::need(Need::Root)
        || !testkit::need(Need::Tool(Tool::Setpriv))
        || !has("prlimit", &["true"])
        || !works("strace")
    {
        return;
    }
    let place = Place::new();
    let fsage = place.fsage_of_anybody();
    // Nobody else's number, as what he runs counts too.
    let uid = 61_000 + std::process::id() % 1_000;
    let mut command = Command::new("prlimit");
    command
        .args(["--nproc=40", "setpriv", "--clear-groups"])
        .arg(format!("--reuid={uid}"))
        .arg(format!("--regid={uid}"));
    command.arg(&fsage);
    command.args(["record", "--with", "strace", "-o", "out.workload", "--no-working-directory", "python3", "-c"]);
    command.arg(TAKES_ALL).current_dir(place.dir.path()).stdin(Stdio::null());
    let recorder = Running { child: command.stderr(fs::File::create(place.at("said")).unwrap()).spawn().unwrap() };
    until("all are taken", || place.at("taken").exists());
    recorder.signal("TERM");
    assert_eq!(recorder.ends().code(), Some(9), "{}", place.read("said"));
    assert!(place.rows("out.workload").contains("/taken\""), "{}", place.read("said"));
}

#[test]
fn three_capabilities_suffice_in_the_kernel_and_each_one_missing_is_named() {
    const ALL: [&str; 3] = ["bpf", "perfmon", "sys_ptrace"];
    if !testkit::need(Need::Root) || !has("setpriv", &["--inh-caps=+bpf", "true"]) || !works("ebpf") {
        return;
    }
    let place = Place::new();
    let fsage = place.fsage_of_anybody();
    let command = ["record", "--with", "ebpf", "--no-working-directory", "-o", "out.workload"];
    let record = |capabilities: &[&str]| {
        let mut nobody = place.as_nobody(&fsage, capabilities);
        nobody.args(command).args(["sh", "-c", "echo hello > made; exit 5"]).output().unwrap()
    };
    for missing in ALL {
        let others: Vec<&str> = ALL.into_iter().filter(|name| *name != missing).collect();
        let out = record(&others);
        assert_eq!(out.status.code(), Some(3), "{}", stderr(&out));
        let says = format!("fsage lacks CAP_{}: ", missing.to_uppercase());
        assert!(stderr(&out).contains(&says), "{says:?} is not in: {}", stderr(&out));
        assert!(!place.at("made").exists(), "the command was not run");
    }
    let out = record(&ALL);
    assert_eq!(out.status.code(), Some(5), "{}", stderr(&out));
    assert_eq!(
        place.rows("out.workload").lines().filter(|l| l.contains(",write,") && l.contains("/made\"")).count(),
        1
    );
    // Somebody else's process too: that is what the third one is for.
    let subject = shell(Command::new("sh"), &place, COUNTS);
    let mut nobody = place.as_nobody(&fsage, &ALL);
    nobody.args([
        "record",
        "--with",
        "ebpf",
        "-o",
        "other.workload",
        "--spool-in",
        ".",
        "--no-working-directory",
        "--pid",
    ]);
    let child = nobody.arg(subject.child.id().to_string()).stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let recorder = Running { child };
    until("something is spooled", || fs::metadata(place.at("other.spool")).is_ok_and(|m| m.len() > 4096));
    recorder.signal("TERM");
    assert!(recorder.ends().success());
    goes_on(&place);
    fs::write(place.at("enough"), "").unwrap();
    assert!(subject.ends().success());
    assert!(place.rows("other.workload").lines().any(|l| l.contains(",write,") && l.contains("/counted\"")));
}

#[test]
fn root_records_another_users_process() {
    if !testkit::needs(&[Need::Root, Need::Tool(Tool::Setpriv)]) {
        return;
    }
    for with in TRACERS.into_iter().filter(|with| works(with)) {
        let place = Place::new();
        let subject = shell(place.as_nobody(Path::new("sh"), &[]), &place, COUNTS);
        let pid = subject.child.id().to_string();
        let args = ["--with", with, "-o", "out.workload", "--no-working-directory", "--pid", &pid];
        let recorder = place.recorder(&args);
        goes_on(&place);
        place.ends_well(recorder);
        goes_on(&place);
        fs::write(place.at("enough"), "").unwrap();
        assert!(subject.ends().success());
        let written =
            place.rows("out.workload").lines().filter(|l| l.contains(",write,") && l.contains("/counted\"")).count();
        assert!((20..place.read("counted").lines().count()).contains(&written), "{with}: {written}");
    }
}

/// Compiles a C program; where it cannot be, the test is skipped.
fn compiled(place: &Place, source: &str, options: &[&str]) -> bool {
    fs::write(place.at("program.c"), source).unwrap();
    let compiler =
        Command::new("cc").args(options).args(["-o", "program", "program.c"]).current_dir(place.dir.path()).output();
    match compiler {
        Ok(out) if out.status.success() => true,
        Ok(out) => {
            testkit::skip(format!("cc {}: {}", options.join(" "), String::from_utf8_lossy(&out.stderr)));
            false
        }
        Err(e) => {
            testkit::skip(format!("cc: {e}"));
            false
        }
    }
}

/// Its calls have other numbers. strace knows them; the recorder in the kernel says that it does not.
#[test]
fn a_32_bit_program_is_recorded_by_strace_and_counted_in_the_kernel() {
    let source = "#include <fcntl.h>\n#include <stdio.h>\n#include <unistd.h>\n\
        int main(void) { int fd = open(\"made\", O_CREAT | O_WRONLY | O_TRUNC, 0644);\n\
        if (fd < 0 || write(fd, \"hello\", 5) != 5 || close(fd) || rename(\"made\", \"moved\")) return 1;\n\
        return sizeof(void *) == 4 ? 7 : 2; }\n";
    for with in TRACERS.into_iter().filter(|with| works(with)) {
        let place = Place::new();
        if !compiled(&place, source, &["-m32"]) {
            return;
        }
        let out = place.fsage(&["record", "--with", with, "-o", "out.workload", "--no-working-directory", "./program"]);
        assert_eq!(out.status.code(), Some(7), "{with}: {}", stderr(&out));
        assert_eq!(place.read("moved"), "hello", "{with}");
        let rows = place.rows("out.workload");
        let of = |op: &str| rows.lines().filter(|l| l.contains(op) && l.contains("/made\"")).count();
        let note = stderr(&out).contains("calls were made by a 32-bit program");
        match with {
            "strace" => assert_eq!((of(",open,"), of(",write,"), of(",rename,"), note), (1, 1, 1, false), "{rows}"),
            _ => {
                assert!(note && stderr(&out).contains("--with strace"), "{}", stderr(&out));
                assert_eq!((of(",open,"), of(",write,"), of(",rename,")), (0, 0, 0), "no call is taken for another");
                let inspected = succeeds(&place.fsage(&["inspect", "out.workload"]));
                assert!(inspected.contains("32-bit call 4"), "write(2) by its number: {inspected}");
            }
        }
    }
}

#[test]
fn a_call_that_no_kernel_knows_fails_as_it_would_and_is_counted_in_the_kernel() {
    let source = "#include <errno.h>\n#include <sys/syscall.h>\n#include <unistd.h>\n\
        int main(void) { for (int i = 0; i < 3; i++) if (syscall(9999, 1, 2) != -1 || errno != ENOSYS) return 1;\n\
        return 9; }\n";
    for with in TRACERS.into_iter().filter(|with| works(with)) {
        let place = Place::new();
        if !compiled(&place, source, &[]) {
            return;
        }
        let out = place.fsage(&["record", "--with", with, "-o", "out.workload", "--no-working-directory", "./program"]);
        assert_eq!(out.status.code(), Some(9), "{with}: {}", stderr(&out));
        let inspected = succeeds(&place.fsage(&["inspect", "out.workload"]));
        let counted = inspected.lines().find(|line| line.contains("call 9999"));
        match with {
            "strace" => assert_eq!(counted, None, "it is not asked for calls that are not on files"),
            _ => assert!(counted.is_some_and(|line| line.ends_with(" 3")), "{inspected}"),
        }
    }
}

/// Does what a program in a container does: in a mount and a process namespace of its own, on a file system mounted
/// there.
const BOX: &str = "\
mount -t tmpfs fsage-test \"$1/box\"; cd \"$1/box\"
echo before > old; mkdir d; echo below > d/f; ln -s d link
echo ready > \"$1/ready\"; until [ -e \"$1/go\" ]; do sleep 0.01; done
echo more >> old; mv old d/new; rm d/f; echo made > link/made; (cd d; mkdir sub; echo x > sub/y)
echo done > \"$1/done\"; until [ -e \"$1/enough\" ]; do sleep 0.01; done";

/// A process that is the first in namespaces of its own, and the number that it has here.
fn boxed(place: &Place) -> Option<(Running, u32)> {
    fs::create_dir(place.at("box")).unwrap();
    if !has("unshare", &["-mpf", "--mount-proc", "true"]) {
        return None;
    }
    let mut command = Command::new("unshare");
    command.args(["-mpf", "--mount-proc", "sh", "-ec", BOX, "sh"]).arg(place.dir.path()).stdin(Stdio::null());
    let unshare = Running { child: command.spawn().unwrap() };
    until("the box is ready", || place.at("ready").exists());
    let id = unshare.child.id();
    let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap();
    Some((unshare, children.trim().parse().unwrap()))
}

/// The names before and after are those that the container sees: outside, its directory is empty.
#[test]
fn a_process_in_a_container_is_recorded_with_the_names_it_sees() {
    if !testkit::need(Need::Root) {
        return;
    }
    for with in TRACERS.into_iter().filter(|with| works(with)) {
        let place = Place::new();
        let Some((unshare, pid)) = boxed(&place) else { return };
        let recorder = place.recorder(&["--with", with, "-o", "out.workload", "--pid", &pid.to_string()]);
        fs::write(place.at("go"), "").unwrap();
        until("the box is done", || place.at("done").exists());
        place.ends_well(recorder);
        assert!(place.read("said").contains("mount namespace of its own"), "{}", place.read("said"));
        assert_eq!(fs::read_dir(place.at("box")).unwrap().count(), 0, "outside there is nothing");
        // The judge of trees sees what the container sees.
        let judge = |tree: &str| {
            let mut inside = Command::new("nsenter");
            inside.args(["-m", "-t", &pid.to_string(), env!("CARGO_BIN_EXE_fsage"), "inspect"]);
            inside.arg(place.at("out.workload")).arg("--against").arg(place.at(tree)).output().unwrap()
        };
        succeeds(&judge("box"));
        assert!(place.rows("out.workload").contains("/box/link/made\""), "{with}");
        fs::write(place.at("enough"), "").unwrap();
        assert!(unshare.ends().success());
        // A replay starts from what was there: it gets every answer.
        fs::create_dir(place.at("target")).unwrap();
        let out = place.fsage(&["replay", "out.workload", "target", "--initial", "warm", "--json"]);
        let replayed: serde_json::Value = serde_json::from_str(&succeeds(&out)).unwrap();
        let first = replayed["differences"]["first"].as_array().unwrap();
        let inside: Vec<_> = first.iter().filter(|d| d["path"].as_str().is_some_and(|p| p.contains("/box/"))).collect();
        assert!(inside.is_empty(), "{with}: {inside:?}");
    }
}

/// A container started by the command that is recorded: its processes tell paths as they see them.
#[test]
fn a_command_that_makes_a_container_is_recorded_into_it() {
    if !testkit::need(Need::Root) || !has("unshare", &["-mpf", "--mount-proc", "true"]) {
        return;
    }
    for with in TRACERS.into_iter().filter(|with| works(with)) {
        let place = Place::new();
        fs::create_dir(place.at("box")).unwrap();
        for name in ["go", "enough"] {
            fs::write(place.at(name), "").unwrap();
        }
        let at = place.dir.path().to_str().unwrap();
        let command = ["unshare", "-mpf", "--mount-proc", "sh", "-ec", BOX, "sh", at];
        let fsage = ["record", "--with", with, "-o", "out.workload", "--no-working-directory"];
        succeeds(&place.fsage(&[&fsage[..], &command[..]].concat()));
        assert!(place.at("done").exists());
        let rows = place.rows("out.workload");
        let of = |op: &str, path: &str| rows.lines().filter(|l| l.contains(op) && l.contains(path)).count();
        assert_eq!((of(",write,", "/box/d/sub/y\""), of(",rename,", "/box/old\"")), (1, 1), "{with}: {rows}");
    }
}

/// Where cgroup2 is mounted, if anywhere.
fn hierarchy() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    let mut found = mounts.lines().filter_map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        (words.get(2) == Some(&"cgroup2")).then(|| PathBuf::from(words[1]))
    });
    found.next()
}

/// A control group that is removed with its last process.
struct Group(PathBuf);

impl Drop for Group {
    fn drop(&mut self) {
        until("the group can be removed", || fs::remove_dir(&self.0).is_ok() || !self.0.exists());
    }
}

#[test]
fn a_control_group_is_recorded_and_what_is_none_is_refused() {
    if !testkit::need(Need::Root) || !works("ebpf") {
        return;
    }
    let place = Place::new();
    let no_group = ["record", "-o", "none.workload", "--cgroup", "."];
    common::fails(&place.fsage(&no_group), 3, &["is no directory of cgroup2", "mount -t cgroup2"]);
    let by_strace = ["record", "--with", "strace", "-o", "none.workload", "--cgroup", "."];
    common::fails(&place.fsage(&by_strace), 3, &["strace follows processes only", "--with ebpf"]);
    assert_eq!(common::names(place.dir.path()), [""; 0]);
    let Some(hierarchy) = hierarchy() else {
        return testkit::skip("cgroup2 is mounted nowhere");
    };
    let group = hierarchy.join(format!("fsage-test-{}", std::process::id()));
    if let Err(e) = fs::create_dir(&group) {
        return testkit::skip(format!("no control group can be made in {}: {e}", hierarchy.display()));
    }
    let group = Group(group);
    let stranger = shell(Command::new("sh"), &place, &COUNTS.replace("counted", "by-stranger"));
    let subject = shell(Command::new("sh"), &place, COUNTS);
    fs::write(group.0.join("cgroup.procs"), subject.child.id().to_string()).unwrap();
    let recorder = place.recorder(&["-o", "out.workload", "--cgroup", group.0.to_str().unwrap()]);
    goes_on(&place);
    place.ends_well(recorder);
    goes_on(&place);
    fs::write(place.at("enough"), "").unwrap();
    assert!(subject.ends().success() && stranger.ends().success());
    let rows = place.rows("out.workload");
    let written = |name: &str| rows.lines().filter(|l| l.contains(",write,") && l.contains(name)).count();
    assert!(written("/counted\"") >= 20);
    assert_eq!(written("/by-stranger\""), 0);
}
