//! `fsage record` through the binary: what is recorded goes on whatever becomes of the recorder. The judge is what the
//! recorded program itself leaves in its directory, and the kernel (`/proc`).
//!
//! The subject counts: it appends a line per round to a file and stops when told to by another file. A round that was
//! disturbed (a call that failed) would be missing or doubled. No test waits for a time, only for events; each gives up
//! after a minute without any.

mod alone;
mod ends;

use crate::common;
use crate::common::process::{Running, has, until};
use crate::common::{run, stderr, succeeds, with_each_tracer};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use testkit::{Need, Tool};

/// Counts into `counted`; ends when there is a file `enough`, saying `done`. A second process does the same with more
/// calls.
const SUBJECT: &str = "\
import os, signal, sys, threading
def heard(number, frame):
    with open('signals', 'a') as f: f.write(f'{number}\\n')
    if os.path.exists('die'): os._exit(40 + number)
numbers = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, \
signal.SIGALRM, signal.SIGRTMIN + 3]
for number in numbers: signal.signal(number, heard)
def churn(name):
    i = 0
    # Nobody is left behind: a child whose parent was killed ends.
    while not os.path.exists('enough') and (name != 'of-child' or os.getppid() == parent):
        fd = os.open(name, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        assert os.write(fd, b'%d\\n' % i) == len(b'%d\\n' % i)
        os.close(fd)
        i += 1
        with open('rounds', 'w') as f: f.write(str(i))
open('pid', 'w').write(f'{os.getpid()}\\n')
parent = os.getpid()
child = os.fork()
if child == 0:
    for number in numbers: signal.signal(number, signal.SIG_IGN)
    churn('of-child')
    os._exit(0)
thread = threading.Thread(target=churn, args=('of-thread',))
thread.start()
churn('counted')
thread.join()
os.waitpid(child, 0)
open('done', 'w').write('done\\n')
sys.exit(int(open('status').read()) if os.path.exists('status') else 0)
";

struct Place {
    dir: tempfile::TempDir,
    with: &'static str,
}

/// A test that fails leaves nobody behind, who would also go on to make files in a directory that is being removed.
impl Drop for Place {
    fn drop(&mut self) {
        if std::thread::panicking() && fs::write(self.at("enough"), "").is_ok() {
            let begun = Instant::now();
            while self.at("pid").exists() && !self.at("done").exists() && begun.elapsed() < Duration::from_secs(10) {
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }
}

impl Place {
    /// A directory for a subject, recorded with a tracer; `None` where something is missing, for which the test is
    /// skipped.
    fn new(with: &'static str) -> Option<Place> {
        testkit::tool(Tool::Python)?;
        let dir = tempfile::tempdir().unwrap();
        let out = run(dir.path(), &["record", "--with", with, "-o", "tried", "--no-working-directory", "true"]);
        if out.status.code() == Some(3) {
            testkit::skip(common::stderr(&out));
            return None;
        }
        succeeds(&out);
        fs::remove_dir_all(dir.path().join("tried")).unwrap();
        fs::write(dir.path().join("subject.py"), SUBJECT).unwrap();
        Some(Place { dir, with })
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.at(name)).unwrap_or_default()
    }

    fn rounds(&self) -> u64 {
        self.read("rounds").parse().unwrap_or(0)
    }

    /// Waits until the subject has done more rounds.
    fn goes_on(&self, rounds: u64) {
        let mut before = self.rounds();
        let mut more = 0;
        until("the subject goes on", || {
            let now = self.rounds();
            // The file is written anew each round, and by three: only a change is progress.
            more += u64::from(now != before);
            before = now;
            more >= rounds
        });
    }

    /// Starts `fsage record`, with these options, on the subject as its command.
    fn record(&self, options: &[&str]) -> Running {
        let mut command = self.fsage();
        command
            .args(["record", "--with", self.with, "-o", "out.workload", "--spool-in", ".", "--no-working-directory"])
            .args(options);
        command.args(["python3", "subject.py"]);
        self.started(command)
    }

    /// Starts the subject by itself, and `fsage record --pid` on it.
    fn attach(&self, options: &[&str]) -> (Running, Running) {
        let mut alone = Command::new("python3");
        alone.arg("subject.py").current_dir(self.dir.path());
        let subject = self.started(alone);
        let pid = self.pid().to_string();
        let mut command = self.fsage();
        command
            .args([
                "record",
                "--with",
                self.with,
                "-o",
                "out.workload",
                "--spool-in",
                ".",
                "--no-working-directory",
                "--pid",
                &pid,
            ])
            .args(options);
        let mut recorder = self.started(command);
        // Names are none: the first frames behind the header and their end are records. Whose time is short may be
        // over before they are seen.
        self.frames_or(4, || recorder.child.try_wait().unwrap().is_some());
        (subject, recorder)
    }

    fn fsage(&self) -> Command {
        let mut command = testkit::process::with_default_signals(env!("CARGO_BIN_EXE_fsage"));
        command.current_dir(self.dir.path()).env_remove("RUST_BACKTRACE");
        command
    }

    fn started(&self, mut command: Command) -> Running {
        let stderr = fs::OpenOptions::new().create(true).append(true).open(self.at("stderr")).unwrap();
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(stderr).spawn().unwrap();
        let running = Running { child };
        until("the subject starts", || self.rounds() > 0);
        running
    }

    fn pid(&self) -> u32 {
        self.read("pid").trim().parse().unwrap()
    }

    /// Waits until so many frames are in the spool. A frame is written by one call, so each change of the length is one
    /// at least.
    fn frames(&self, count: u64) {
        self.frames_or(count, || false);
    }

    fn frames_or(&self, count: u64, mut is_over: impl FnMut() -> bool) {
        let (mut frames, mut length) = (0, 0);
        until("frames are spooled", || {
            let now = fs::metadata(self.at("out.spool")).map_or(0, |m| m.len());
            frames += u64::from(now != length);
            length = now;
            frames >= count || is_over()
        });
    }

    /// Lets the subject end, and checks that it did all it had to, undisturbed.
    fn ends_well(&self) {
        self.goes_on(20);
        fs::write(self.at("enough"), "").unwrap();
        until("the subject ends", || self.at("done").exists());
        for name in ["counted", "of-child", "of-thread"] {
            let counted = self.read(name);
            let lines: Vec<u64> = counted.lines().map(|line| line.parse().unwrap()).collect();
            assert_eq!(lines, (0..lines.len() as u64).collect::<Vec<_>>(), "{name}: nothing missing, nothing twice");
        }
        until("nothing of strace's is left", || strace_of(self.dir.path()).is_empty());
    }

    /// How many rounds are in a profile.
    fn recorded(&self, profile: &str, from_any: bool) -> usize {
        self.recorded_in(profile, "counted", from_any)
    }

    /// The same, counted by the writes to a file, which must be of the lengths of that file's lines, from the first one
    /// on or (`from_any`) from any.
    fn recorded_in(&self, profile: &str, name: &str, from_any: bool) -> usize {
        let csv = succeeds(&run(self.dir.path(), &["export", profile]));
        let mut lines = csv.lines();
        let columns: Vec<&str> = lines.next().unwrap().split(',').collect();
        let column = |name: &str| columns.iter().position(|c| *c == name).unwrap();
        let (op, path, ret) = (column("op"), column("path"), column("ret"));
        let mut written = Vec::new();
        for line in lines.filter(|line| line.contains(&format!("/{name}"))) {
            let fields: Vec<&str> = line.split(',').collect();
            if fields[op] == "write"
                && fields[path].trim_matches('"').ends_with(&format!("/{name}"))
                && fields[ret] != "-1"
            {
                written.push(fields[ret].parse::<usize>().unwrap());
            }
        }
        let counted = self.read(name);
        let lengths: Vec<usize> = counted.lines().map(|line| line.len() + 1).collect();
        assert!(!written.is_empty(), "something was recorded");
        let fits =
            if from_any { lengths.windows(written.len()).any(|w| w == written) } else { lengths.starts_with(&written) };
        assert!(fits, "{} writes recorded, {} lines written", written.len(), lengths.len());
        written.len()
    }

    fn all_rounds(&self) -> usize {
        self.read("counted").lines().count()
    }

    fn names(&self) -> Vec<String> {
        common::names(self.dir.path())
    }
}

/// Processes of strace's that were started in a directory.
fn strace_of(directory: &Path) -> Vec<u32> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        let is_there = fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd == directory);
        if is_there && fs::read_to_string(entry.path().join("comm")).is_ok_and(|comm| comm == "strace\n") {
            found.push(pid);
        }
    }
    found
}

fn a_whole_recording_holds_every_round(with: &'static str) {
    let Some(place) = Place::new(with) else { return };
    fs::write(place.at("status"), "7").unwrap();
    let recorder = place.record(&[]);
    place.ends_well();
    assert_eq!(recorder.ends().code(), Some(7));
    assert_eq!(place.recorded("out.workload", false), place.all_rounds());
    assert!(!place.at("out.spool").exists(), "the spool goes with success");
}

/// `--pid` is of a service: its workers run already, and it may itself do nothing but wait for them.
fn what_a_process_started_before_is_recorded_too(with: &'static str) {
    let Some(place) = Place::new(with) else { return };
    let (subject, recorder) = place.attach(&[]);
    place.goes_on(50);
    recorder.signal("INT");
    assert!(recorder.ends().success(), "{}", place.read("stderr"));
    place.ends_well();
    assert!(subject.ends().success());
    for name in ["counted", "of-thread", "of-child"] {
        assert!(place.recorded_in("out.workload", name, true) > 0, "{name}");
    }
}

/// Whether the names before the run, with the trace applied, are the tree on disk.
fn leads_to(place: &Place, profile: &str, tree: &str) {
    succeeds(&run(place.dir.path(), &["inspect", profile, "--against", tree]));
}

/// Whoever touches a file system, from the moment that fsage says it records.
#[test]
fn whoever_touches_a_mount_is_recorded_by_ebpf() {
    let Some(place) = Place::new("ebpf") else { return };
    let point = place.at("mounted");
    fs::create_dir(&point).unwrap();
    let mounted = Command::new("mount").args(["-t", "tmpfs", "fsage-test"]).arg(&point).output().unwrap();
    if !mounted.status.success() {
        return testkit::skip(format!("no tmpfs can be mounted: {}", String::from_utf8_lossy(&mounted.stderr)));
    }
    let outcome = std::panic::catch_unwind(|| {
        let mut command = place.fsage();
        command.args(["record", "-o", "out.workload", "--mount", "mounted"]);
        let stderr = fs::File::create(place.at("stderr")).unwrap();
        let recorder = Running { child: command.stdin(Stdio::null()).stderr(stderr).spawn().unwrap() };
        until("it records", || place.read("stderr").contains("recording; "));
        for i in 0..10 {
            assert!(Command::new("touch").arg(point.join(format!("f{i}"))).status().unwrap().success());
            fs::write(place.at(&format!("elsewhere{i}")), "").unwrap();
        }
        recorder.signal("INT");
        assert!(recorder.ends().success(), "{}", place.read("stderr"));
        let csv = succeeds(&run(place.dir.path(), &["export", "out.workload"]));
        let opened = |name: &str| csv.lines().filter(|l| l.contains(",open,") && l.contains(name)).count();
        for i in 0..10 {
            assert_eq!(opened(&format!("/mounted/f{i}\"")), 1, "{csv}");
        }
        assert_eq!(opened("elsewhere"), 0, "{csv}");
        assert!(!place.read("stderr").contains("is mounted on"), "{}", place.read("stderr"));
        // The same by another mount of it: what is not recorded is told.
        let other = place.at("other");
        fs::create_dir(&other).unwrap();
        assert!(Command::new("mount").arg("--bind").args([&point, &other]).status().unwrap().success());
        let told = std::panic::catch_unwind(|| {
            let mut command = place.fsage();
            command.args(["record", "-o", "two.workload", "--duration", "1s", "--mount", "mounted"]);
            let recorder = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
            let touch = format!("while :; do cat '{}'/f0; sleep 0.05; done", point.display());
            let mut toucher = Command::new("sh").args(["-c", &touch]).spawn().unwrap();
            let ended = recorder.wait_with_output();
            toucher.kill().and_then(|()| toucher.wait()).unwrap();
            String::from_utf8(ended.unwrap().stderr).unwrap()
        });
        testkit::unmount(&other);
        let told = told.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        assert!(told.contains(&format!("is mounted on {} too", other.display())), "{told}");
    });
    testkit::unmount(&point);
    outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
}

/// What looks up names that do not shrink when they are packed, and writes a file at last.
const LOOKS_UP: &str = "\
import hashlib, os
for i in range(40000):
    try: os.stat(hashlib.sha512(str(i).encode()).hexdigest())
    except FileNotFoundError: pass
open('last', 'wb').write(b'x' * 80000)
";

/// A recording that would fill the file system on which the program works leaves room for it.
fn room_is_left_to_the_program(with: &'static str) {
    let Some(place) = Place::new(with) else { return };
    let point = place.at("small");
    fs::create_dir(&point).unwrap();
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=2m", "fsage-test"]).arg(&point).output();
    let mounted = mounted.unwrap();
    if !mounted.status.success() {
        return testkit::skip(format!("no tmpfs can be mounted: {}", String::from_utf8_lossy(&mounted.stderr)));
    }
    let outcome = std::panic::catch_unwind(|| {
        let args = ["record", "--with", with, "-o", "out.workload", "--spool-in", ".", "python3", "-c", LOOKS_UP];
        let out = run(&point, &args);
        let said = stderr(&out);
        assert_eq!(out.status.code(), Some(0), "{said}");
        assert_eq!(fs::metadata(point.join("last")).unwrap().len(), 80_000);
        assert!(said.contains("are to stay free on its file system (--keep-free)"), "{said}");
        let free = rustix::fs::statvfs(&point).unwrap();
        let twentieth = free.f_blocks / 20;
        assert!(free.f_bavail * free.f_frsize + 80_000 + 65_536 > twentieth * free.f_frsize);
    });
    testkit::unmount(&point);
    outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
}

/// Binds sockets to paths: well, where there is a name already, where there is no directory, twice, and to addresses
/// that are no paths.
const BINDS: &str = "\
import errno, os, socket
def bound(path, s=None):
    s = s or socket.socket(socket.AF_UNIX)
    try: s.bind(path)
    except OSError as e: return e.errno
    return 0
s = socket.socket(socket.AF_UNIX)
said = [bound('box/s', s), bound('box/s'), bound('none/s'), bound('box/file/s'), bound('box/again', s), \
bound('\\0abstract'),
    bound(''), bound(os.path.abspath('box/kept'))]
assert said == [0, errno.EADDRINUSE, errno.ENOENT, errno.ENOTDIR, errno.EINVAL, 0, 0, 0], said
assert socket.socket(socket.AF_INET).bind(('127.0.0.1', 0)) is None
os.chmod('box/s', 0o600)
os.stat('box/s')
os.rename('box/s', 'box/t')
os.unlink('box/t')
os.chmod('box/kept', 0o400)
";

/// Found by recording redis and PostgreSQL: a socket bound to a path is a name on disk, which no trace told of.
fn a_socket_bound_to_a_path_is_a_name(with: &'static str) {
    let Some(place) = Place::new(with) else { return };
    fs::create_dir_all(place.at("box")).unwrap();
    fs::create_dir(place.at("target")).unwrap();
    fs::write(place.at("box/file"), "").unwrap();
    fs::write(place.at("binds.py"), BINDS).unwrap();
    let args = ["record", "--with", with, "-o", "out.workload", "python3", "binds.py"];
    succeeds(&run(place.dir.path(), &args));
    leads_to(&place, "out.workload", "box");
    let csv = succeeds(&run(place.dir.path(), &["export", "out.workload"]));
    let made = csv.lines().filter(|line| line.contains(",mknod,")).count();
    assert_eq!(made, 6, "each bind to a path, and no other: {csv}");
    let out = run(place.dir.path(), &["replay", "out.workload", "target", "--initial", "warm", "--json"]);
    let replayed: serde_json::Value = serde_json::from_str(&succeeds(&out)).unwrap();
    assert_eq!(replayed["differences"]["total"], 0, "{}", replayed["differences"]);
}

/// Batches were handed over while events still held ids of paths of an older one: 500 files do not show it.
fn rsync_of_eleven_thousand_files(with: &'static str) {
    let Some(place) = Place::new(with) else { return };
    if !testkit::need(Need::Tool(Tool::Rsync)) {
        return;
    }
    for i in 0..11_000 {
        let dir = place.at(&format!("src/{}", i % 110));
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join(format!("f{i}")), format!("{i}\n")).unwrap();
    }
    fs::create_dir(place.at("dst")).unwrap();
    let args = ["record", "--with", with, "-o", "out.workload", "rsync", "-a", "src/", "dst/"];
    succeeds(&run(place.dir.path(), &args));
    assert!(Command::new("diff").args(["-r", "src", "dst"]).current_dir(place.dir.path()).status().unwrap().success());
    leads_to(&place, "out.workload", "dst");
}

/// A rename made a cycle in the tree of names, which was then followed for ever.
fn a_virtual_environment_of_python(with: &'static str) {
    let Some(place) = Place::new(with) else { return };
    if !has("python3", &["-m", "ensurepip", "--version"]) {
        return;
    }
    let args = ["record", "--with", with, "-o", "out.workload", "python3", "-m", "venv", "v"];
    succeeds(&run(place.dir.path(), &args));
    assert!(place.at("v/bin/pip").exists());
    leads_to(&place, "out.workload", "v");
}

/// A thread's number was taken for a process's: nothing was recorded in the kernel, and one thread by strace, as if
/// that had been all.
fn the_number_of_a_thread_is_refused(with: &'static str) {
    let Some(place) = Place::new(with) else { return };
    let script = "import sys, threading
def work():
    print(threading.get_native_id(), flush=True)
    sys.stdin.read()
threading.Thread(target=work).start()";
    let mut command = Command::new("python3");
    command.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut threads = Running { child: command.spawn().unwrap() };
    let mut tid = String::new();
    let answer = threads.child.stdout.take().unwrap();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(answer), &mut tid).unwrap();
    let mut command = place.fsage();
    let out = command.args(["record", "--with", with, "-o", "out.workload", "--pid", tid.trim()]).output().unwrap();
    assert_eq!(out.status.code(), Some(2), "{}", stderr(&out));
    let says = format!("name its process, {}", threads.child.id());
    assert!(stderr(&out).contains(&says), "{}", stderr(&out));
    assert!(!place.at("out.workload").exists());
}

/// The command has ended and what it started goes on: that is said, and its status is kept.
fn what_outlives_the_command_is_said_and_recorded(with: &'static str) {
    let Some(place) = Place::new(with) else { return };
    let line = "(until [ -e enough ]; do sleep 0.1; done; echo late >late) >/dev/null 2>&1 & exit 3";
    let mut command = place.fsage();
    command.args(["record", "--with", with, "-o", "out.workload", "sh", "-c", line]);
    let stderr = fs::File::create(place.at("stderr")).unwrap();
    let recorder = Running { child: command.stdin(Stdio::null()).stderr(stderr).spawn().unwrap() };
    until("it is said", || place.read("stderr").contains("the command has ended; what it started goes on"));
    fs::write(place.at("enough"), "").unwrap();
    assert_eq!(recorder.ends().code(), Some(3));
    let csv = succeeds(&run(place.dir.path(), &["export", "out.workload"]));
    assert_eq!(csv.lines().filter(|l| l.contains(",write,") && l.contains("/late\"")).count(), 1, "{csv}");
}

/// A profile for which there is no room where the command works is kept where there is.
fn a_profile_that_does_not_fit_is_kept_elsewhere(with: &'static str) {
    let Some(place) = Place::new(with) else { return };
    let point = place.at("small");
    fs::create_dir(&point).unwrap();
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=1m", "fsage-test"]).arg(&point).output();
    let mounted = mounted.unwrap();
    if !mounted.status.success() {
        return testkit::skip(format!("no tmpfs can be mounted: {}", String::from_utf8_lossy(&mounted.stderr)));
    }
    let outcome = std::panic::catch_unwind(|| {
        let out = run(&point, &["record", "--with", with, "-o", "out.workload", "python3", "-c", LOOKS_UP]);
        let said = stderr(&out);
        assert_eq!(out.status.code(), Some(0), "{said}");
        assert!(said.contains("are to stay free on its file system (--keep-free)"), "{said}");
        assert_eq!(fs::read_dir(&point).unwrap().count(), 1, "but for what the program wrote: {said}");
        let spool = PathBuf::from(said.split_once("fsage import ").expect("how to go on").1.lines().next().unwrap());
        succeeds(&run(place.dir.path(), &["import", "-o", "out.workload", spool.to_str().unwrap()]));
        fs::remove_dir_all(spool.parent().unwrap()).unwrap();
    });
    testkit::unmount(&point);
    outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
}

/// Names in TMPDIR were made of the process's number: another user, who may write there too, could take them and stop
/// every recording.
#[test]
fn a_name_that_others_took_stops_no_recording() {
    if !testkit::need(Need::Tool(Tool::Strace)) {
        return;
    }
    let d = tempfile::tempdir().unwrap();
    fs::create_dir(d.path().join("tmp")).unwrap();
    let take = "for n in 0 1 2; do mkdir tmp/fsage-record-$$-$n tmp/fsage-record-$$.$n tmp/.out.workload.partial-$$ \
        2>/dev/null; done";
    let script = format!("{take}; exec \"$0\" record --with strace -o out.workload sh -c 'echo a >made'");
    let mut command = Command::new("sh");
    command
        .args(["-c", &script, env!("CARGO_BIN_EXE_fsage")])
        .current_dir(d.path())
        .env("TMPDIR", d.path().join("tmp"));
    let output = command.output().unwrap();
    succeeds(&output);
    assert!(d.path().join("out.workload/meta.json").exists());
    assert!(d.path().join("made").exists());
    let taken = common::names(&d.path().join("tmp"));
    assert_eq!(taken.len(), 7, "what is somebody else's stays: {taken:?}");
}

with_each_tracer!(
    the_number_of_a_thread_is_refused,
    what_outlives_the_command_is_said_and_recorded,
    a_profile_that_does_not_fit_is_kept_elsewhere,
    a_whole_recording_holds_every_round,
    what_a_process_started_before_is_recorded_too,
    a_socket_bound_to_a_path_is_a_name,
    room_is_left_to_the_program,
    rsync_of_eleven_thousand_files,
    a_virtual_environment_of_python,
);
