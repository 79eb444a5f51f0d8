//! `fsage record` through the binary: what is recorded goes on whatever becomes of the recorder. The judge is what the recorded
//! program itself leaves in its directory, and the kernel (`/proc`).
//!
//! The subject counts: it appends a line per round to a file and stops when told to by another file. A round that was
//! disturbed (a call that failed) would be missing or doubled. No test waits for a time, only for events; each gives up after a
//! minute without any.

use crate::common;
use crate::common::process::{Running, has, status_field, until};
use crate::common::{run, stderr, succeeds, with_each_tracer};
use std::fs;
use std::io::Write as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use testkit::{Need, Tool};

/// Counts into `counted`; ends when there is a file `enough`, saying `done`. A second process does the same with more calls.
const SUBJECT: &str = "\
import os, signal, sys, threading
def heard(number, frame):
    with open('signals', 'a') as f: f.write(f'{number}\\n')
    if os.path.exists('die'): os._exit(40 + number)
numbers = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGRTMIN + 3]
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

impl Place {
    /// A directory for a subject, recorded with a tracer; `None` where something is missing, for which the test is skipped.
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
        let recorder = self.started(command);
        // Names are none: the first frames behind the header and their end are records.
        self.frames(4);
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

    /// Waits until so many frames are in the spool. A frame is written by one call, so each change of the length is one at least.
    fn frames(&self, count: u64) {
        let (mut frames, mut length) = (0, 0);
        until("frames are spooled", || {
            let now = fs::metadata(self.at("out.spool")).map_or(0, |m| m.len());
            frames += u64::from(now != length);
            length = now;
            frames >= count
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

    /// The same, counted by the writes to a file, which must be of the lengths of that file's lines, from the first one on or (`from_any`)
    /// from any.
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

fn a_command_needs_no_dashes_and_keeps_its_own_options(with: &'static str) {
    let Some(place) = Place::new(with) else { return };
    // -o belongs to fsage before the command, and to the command behind its name.
    let out =
        run(place.dir.path(), &["record", "--with", with, "-o", "out", "sort", "-o", "sorted", "-r", "subject.py"]);
    succeeds(&out);
    assert!(place.at("sorted").exists() && place.at("out/meta.json").exists());
    assert!(out.stdout.is_empty(), "standard output is the command's");
    // With dashes, as before.
    succeeds(&run(
        place.dir.path(),
        &["record", "--with", with, "-o", "again", "--", "sort", "-o", "sorted2", "subject.py"],
    ));
    assert!(place.at("sorted2").exists());
    common::fails(
        &run(place.dir.path(), &["record", "--with", with, "-o", "none", "no-such-program"]),
        2,
        &["no such program"],
    );
    assert!(!place.names().iter().any(|name| name.contains("none")), "{:?}", place.names());
}

fn the_exit_status_of_the_command_is_passed_on(with: &'static str) {
    let Some(place) = Place::new(with) else { return };
    for (script, code) in
        [("exit 0", 0), ("exit 3", 3), ("exit 255", 255), ("kill -KILL $$", 137), ("kill -USR1 $$", 138)]
    {
        let out = run(place.dir.path(), &["record", "--with", with, "--overwrite", "-o", "out", "sh", "-c", script]);
        assert_eq!(out.status.code(), Some(code), "{script}: {}", common::stderr(&out));
        assert_eq!(place.names(), ["out", "subject.py"], "{script}: the spool is gone");
    }
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

fn sigterm_ends_the_recording_and_the_command_gets_it_too(with: &'static str) {
    a_signal_ends_the_recording(with, "TERM", 15);
}

fn sigint_ends_the_recording_and_the_command_gets_it_too(with: &'static str) {
    a_signal_ends_the_recording(with, "INT", 2);
}

/// That the command hears it at all is no matter of course: strace, asked to let go while it holds a signal for a program, drops it. Once seen
/// on a busy machine, when the command got the signal before strace had let go.
fn a_signal_ends_the_recording(with: &'static str, signal: &str, number: i32) {
    let Some(place) = Place::new(with) else { return };
    let recorder = place.record(&[]);
    place.goes_on(50);
    recorder.signal(signal);
    // The subject catches it and goes on: the profile does not wait for its end.
    until("the profile is there", || place.at("out.workload/meta.json").exists());
    until("the command has heard", || !place.read("signals").is_empty());
    assert_eq!(place.read("signals"), format!("{number}\n"), "once");
    assert_eq!(status_field(place.pid(), "TracerPid:"), Some(0));
    place.ends_well();
    assert!(recorder.ends().success(), "the status of the command that it waited for");
    assert_eq!(place.read("signals"), format!("{number}\n"), "once");
    assert!(place.recorded("out.workload", false) < place.all_rounds());
    assert!(!place.at("out.spool").exists());
}

/// Makes some thirty thousand calls, and waits to be killed.
const MANY: &str = "\
mkdir many; i=0
while [ $i -lt 4000 ]; do echo x >> many/f$((i % 500)); i=$((i + 1)); done
printf 1 > rounds; exec sleep 3600";

/// However much was recorded, the profile is there within a second of the signal. It takes less than a second of the processor's, always;
/// that it takes no longer by the clock either, one try of ten must show, as a busy machine may keep us from it.
fn a_signal_is_followed_by_the_profile_within_a_second(with: &'static str) {
    let second = Duration::from_secs(1);
    for _ in 0..10 {
        let Some(place) = Place::new(with) else { return };
        // Before others where we may: not their load is to be judged.
        let mut command = Command::new("nice");
        command.args(["-n", "-20", env!("CARGO_BIN_EXE_fsage"), "record", "--with", with, "-o", "out.workload"]);
        command.args(["--no-working-directory", "sh", "-c", MANY]).current_dir(place.dir.path());
        let recorder = place.started(command);
        let (_, before) = state_and_time(recorder.child.id());
        let signalled = Instant::now();
        recorder.signal("TERM");
        until("fsage ends", || state_and_time(recorder.child.id()).0 == "Z");
        let took = signalled.elapsed();
        let (_, after) = state_and_time(recorder.child.id());
        assert!(after - before < second, "{:?} of the processor's time", after - before);
        assert_eq!(recorder.ends().code(), Some(128 + 15));
        let csv = succeeds(&run(place.dir.path(), &["export", "out.workload"]));
        assert_eq!(csv.lines().filter(|line| line.contains(",write,") && line.contains("/many/f")).count(), 4000);
        if took < second {
            return;
        }
    }
    panic!("in no try of ten the profile was there within a second");
}

/// A process's state, and the processor's time that it has used; also of one that has ended and nobody has waited for.
fn state_and_time(pid: u32) -> (String, Duration) {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    (fields[0].to_owned(), Duration::from_secs(ticks) / u32::try_from(rustix::param::clock_ticks_per_second()).unwrap())
}

fn a_command_that_dies_of_the_signal_is_told_by_its_status(with: &'static str) {
    let Some(place) = Place::new(with) else { return };
    fs::write(place.at("die"), "").unwrap();
    let recorder = place.record(&[]);
    place.goes_on(20);
    recorder.signal("TERM");
    assert_eq!(recorder.ends().code(), Some(40 + 15));
    place.recorded("out.workload", false);
    fs::write(place.at("enough"), "").unwrap(); // For the child.
}

fn a_second_signal_leaves_the_command_running(with: &'static str) {
    let Some(place) = Place::new(with) else { return };
    let recorder = place.record(&[]);
    place.goes_on(20);
    recorder.signal("TERM");
    until("the profile is there", || place.at("out.workload/meta.json").exists());
    let mut recorder = recorder;
    // Signals within a second of the first are the same wish, so one is repeated until it is heard.
    until("fsage leaves", || {
        recorder.signal("TERM");
        recorder.child.try_wait().unwrap().is_some()
    });
    assert_eq!(recorder.child.wait().unwrap().code(), Some(128 + 15));
    place.ends_well();
}

fn processes_live_on_after_sigint_sigterm_and_the_time_is_over(with: &'static str) {
    for (signal, options) in [(Some("INT"), &[][..]), (Some("TERM"), &[]), (None, &["--duration", "300ms"])] {
        let Some(place) = Place::new(with) else { return };
        let (subject, recorder) = place.attach(options);
        place.goes_on(50);
        if let Some(signal) = signal {
            recorder.signal(signal);
        }
        assert!(recorder.ends().success(), "{signal:?}: {}", place.read("stderr"));
        assert_eq!(status_field(place.pid(), "TracerPid:"), Some(0));
        place.ends_well();
        assert!(subject.ends().success());
        assert_eq!(place.read("signals"), "", "no signal is for processes that were there before");
        assert!(place.recorded("out.workload", true) < place.all_rounds());
        assert!(!place.at("out.spool").exists());
    }
}

/// Ctrl-Z in front of a recording stopped fsage, its pipe filled, and strace held the process that was recorded.
fn the_stop_key_does_not_stop_the_recording_of_processes(with: &'static str) {
    let Some(place) = Place::new(with) else { return };
    let (subject, recorder) = place.attach(&[]);
    recorder.signal("TSTP");
    recorder.signal("TTOU");
    place.goes_on(20);
    assert_ne!(state_and_time(recorder.child.id()).0, "T");
    recorder.signal("TERM");
    assert!(recorder.ends().success(), "{}", place.read("stderr"));
    place.ends_well();
    assert!(subject.ends().success());
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

fn sigkill_of_fsage_leaves_the_command_unharmed_and_a_spool(with: &'static str) {
    let Some(place) = Place::new(with) else { return };
    let recorder = place.record(&[]);
    sigkill(&place, recorder, false);
}

fn sigkill_of_fsage_leaves_processes_unharmed_and_a_spool(with: &'static str) {
    let Some(place) = Place::new(with) else { return };
    let (subject, recorder) = place.attach(&[]);
    sigkill(&place, recorder, true);
    assert!(subject.ends().success());
}

fn sigkill(place: &Place, recorder: Running, from_any: bool) {
    place.frames(6);
    recorder.signal("KILL");
    assert_eq!(recorder.ends().signal(), Some(9));
    place.ends_well();
    assert_eq!(status_field(place.pid(), "TracerPid:").unwrap_or(0), 0);
    assert!(!place.at("out.workload").exists());
    // The spool is as a kill left it; what is torn off its end is left out.
    let spool = fs::read(place.at("out.spool")).unwrap();
    succeeds(&run(place.dir.path(), &["import", "out.spool"]));
    let whole = place.recorded("out.workload", from_any);
    is_cut_short(place, "out.workload", Some("recorder_ended"));
    // The kill itself may have torn what it was writing: the last frame that is whole is torn.
    let mut frames = trace::spool::Reader::open(&place.at("out.spool")).unwrap();
    let mut last = 0;
    while let at = frames.at_byte()
        && let Some(frame) = frames.next_frame().unwrap()
    {
        if matches!(frame, trace::spool::Frame::Records(_)) {
            last = at as usize;
        }
    }
    fs::write(place.at("cut.spool"), &spool[..last + 5]).unwrap();
    let out = run(place.dir.path(), &["import", "cut.spool"]);
    succeeds(&out);
    assert!(common::stderr(&out).contains("torn"), "{}", common::stderr(&out));
    assert!(place.recorded("cut.workload", from_any) < whole);
    assert_eq!(fs::read(place.at("out.spool")).unwrap(), spool, "an import leaves the spool as it was");
    let hidden: Vec<String> = place.names().into_iter().filter(|name| name.starts_with('.')).collect();
    assert_eq!(hidden, [""; 0], "what the killed one had begun is swept away");
}

#[test]
fn a_tracer_that_is_killed_leaves_the_command_unharmed_and_a_profile() {
    let Some(place) = Place::new("strace") else { return };
    fs::write(place.at("status"), "9").unwrap();
    let recorder = place.record(&[]);
    place.goes_on(50);
    let tracers = strace_of(place.dir.path());
    assert_eq!(tracers.len(), 1);
    assert!(Command::new("kill").args(["-s", "KILL", &tracers[0].to_string()]).status().unwrap().success());
    until("the profile is there", || place.at("out.workload/meta.json").exists());
    place.ends_well();
    assert_eq!(recorder.ends().code(), Some(9));
    assert!(place.recorded("out.workload", false) < place.all_rounds());
    assert!(place.read("stderr").contains("strace ended before"), "{}", place.read("stderr"));
    is_cut_short(&place, "out.workload", Some("tracer_ended"));
}

/// Who reads a profile later was not there when it was said that a part of the run is missing.
fn is_cut_short(place: &Place, profile: &str, why: Option<&str>) {
    let meta: serde_json::Value =
        serde_json::from_str(&place.read(&format!("{profile}/meta.json"))).expect("it is JSON");
    assert_eq!(meta.get("cut_short").and_then(|why| why.as_str()), why);
    let said = succeeds(&run(place.dir.path(), &["inspect", profile]));
    assert_eq!(said.contains("what was called then is not known"), why.is_some(), "{said}");
}

/// Records subject.py at a terminal of its own: the keyboard, and what ends with it.
fn at_a_terminal(place: &Place, with: &str) -> Option<(std::process::ChildStdin, Running)> {
    let fsage = env!("CARGO_BIN_EXE_fsage");
    // In place of script's shell: some shells wait for their command and then die of the Ctrl-C that they got as well.
    let line = format!("exec {fsage} record --with {with} -o out.workload --no-working-directory python3 subject.py");
    let mut script = testkit::process::with_default_signals("script");
    script.args(["-qec", &line, "typescript"]).current_dir(place.dir.path()).stdin(Stdio::piped());
    testkit::tool(Tool::Script)?;
    let mut child = script.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let keyboard = child.stdin.take().unwrap();
    Some((keyboard, Running { child }))
}

/// A terminal sends Ctrl-C to everybody in front of it, so the command must not get it from us as well.
fn ctrl_c_at_a_terminal_reaches_the_command_once(with: &'static str) {
    let Some(place) = Place::new(with) else { return };
    let Some((mut keyboard, terminal)) = at_a_terminal(&place, with) else { return };
    place.goes_on(20);
    // Ctrl-\, which a program may take for something else than its end, as Java's does. It ended fsage.
    keyboard.write_all(b"\x1c").unwrap();
    until("the command has heard", || !place.read("signals").is_empty());
    place.goes_on(20);
    keyboard.write_all(b"\x03").unwrap();
    until("the profile is there", || place.at("out.workload/meta.json").exists());
    until("the command has heard", || place.read("signals").lines().count() > 1);
    place.ends_well();
    assert!(terminal.ends().success(), "{}", place.read("typescript"));
    assert_eq!(place.read("signals"), "3\n2\n", "once");
}

/// An interactive program lives on after Ctrl-C. The second made fsage leave, and the shell took the terminal away from the program.
fn a_second_ctrl_c_leaves_nobody_behind_the_terminal(with: &'static str) {
    let Some(place) = Place::new(with) else { return };
    fs::write(place.at("status"), "9").unwrap();
    let Some((mut keyboard, terminal)) = at_a_terminal(&place, with) else { return };
    place.goes_on(20);
    // Signals within a second are one wish, so these are two at least.
    for count in 1..=4 {
        keyboard.write_all(b"\x03").unwrap();
        until("the command has heard", || place.read("signals").lines().count() == count);
        std::thread::sleep(Duration::from_millis(500));
    }
    place.ends_well();
    assert_eq!(terminal.ends().code(), Some(9), "{}", place.read("typescript"));
}

/// Who started fsage knows its number alone, and sends it what is for the program: to read its settings or begin its logs again, to end in its
/// own way, an alarm that was set. They ended fsage, and the program went on without anybody.
fn signals_for_the_command_reach_it(with: &'static str) {
    let Some(place) = Place::new(with) else { return };
    let recorder = place.record(&[]);
    let signals = [("HUP", 1), ("QUIT", 3), ("USR1", 10), ("USR2", 12), ("ALRM", 14), ("RTMIN+3", 37)];
    for (count, (signal, _)) in (1..).zip(&signals) {
        place.goes_on(5);
        recorder.signal(signal);
        until("the command has heard", || place.read("signals").lines().count() == count);
    }
    place.ends_well();
    assert!(recorder.ends().success(), "{}", place.read("stderr"));
    let expected: Vec<String> = signals.iter().map(|(_, number)| format!("{number}\n")).collect();
    assert_eq!(place.read("signals"), expected.concat());
    assert_eq!(place.recorded("out.workload", false), place.all_rounds());
}

/// What a program sends to its parent would have been for who started fsage. It does not come back.
fn a_signal_from_the_command_does_not_come_back(with: &'static str) {
    let Some(place) = Place::new(with) else { return };
    let program = "\
import os, signal
def heard(number, frame): open('signals', 'a').write(f'{number}\\n')
for number in (signal.SIGUSR1, signal.SIGUSR2): signal.signal(number, heard)
os.kill(os.getppid(), signal.SIGUSR1)
open('rounds', 'w').write('1')
while not os.path.exists('signals'): pass
";
    fs::write(place.at("subject.py"), program).unwrap();
    let recorder = place.record(&[]);
    recorder.signal("USR2");
    assert!(recorder.ends().success(), "{}", place.read("stderr"));
    assert_eq!(place.read("signals"), "12\n");
}

/// Who tells its whole process group to end, and sees to it that it survives that itself (`trap '' TERM; kill 0; trap - TERM`), was told again by fsage,
/// and died of it.
fn what_the_command_sends_to_its_group_does_not_come_back(with: &'static str) {
    let Some(place) = Place::new(with) else { return };
    let program = "\
import os, signal
def heard(number, frame): open('signals', 'a').write(f'{number}\\n')
for number in (signal.SIGTERM, signal.SIGUSR2): signal.signal(number, heard)
os.kill(0, signal.SIGTERM)
open('rounds', 'w').write('1')
while not open('signals').read().endswith('12\\n'): pass
open('late', 'w').write('late')
";
    fs::write(place.at("subject.py"), program).unwrap();
    let mut command = place.fsage();
    command.args(["record", "--with", with, "-o", "out.workload", "--no-working-directory", "python3", "subject.py"]);
    command.process_group(0);
    let recorder = place.started(command);
    recorder.signal("USR2");
    assert!(recorder.ends().success(), "{}", place.read("stderr"));
    assert_eq!(place.read("signals"), "15\n12\n");
    let rows = succeeds(&run(place.dir.path(), &["export", "out.workload"]));
    assert!(rows.lines().any(|row| row.contains(",write,") && row.contains("/late\"")), "{}", place.read("stderr"));
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
        assert!(Command::new("umount").arg(&other).status().unwrap().success());
        let told = told.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        assert!(told.contains(&format!("is mounted on {} too", other.display())), "{told}");
    });
    assert!(Command::new("umount").arg(&point).status().unwrap().success());
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
    assert!(Command::new("umount").arg(&point).status().unwrap().success());
    outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
}

/// Binds sockets to paths: well, where there is a name already, where there is no directory, twice, and to addresses that are no paths.
const BINDS: &str = "\
import errno, os, socket
def bound(path, s=None):
    s = s or socket.socket(socket.AF_UNIX)
    try: s.bind(path)
    except OSError as e: return e.errno
    return 0
s = socket.socket(socket.AF_UNIX)
said = [bound('box/s', s), bound('box/s'), bound('none/s'), bound('box/file/s'), bound('box/again', s), bound('\\0abstract'),
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

/// Notes go nowhere: the command runs, and its status is its own. fsage panicked, before it had started the command where there was
/// something to say.
fn a_standard_error_that_is_full_changes_nothing(with: &'static str) {
    let Some(place) = Place::new(with) else { return };
    let mut command = place.fsage();
    command.args([
        "record",
        "--with",
        with,
        "-o",
        "out.workload",
        "--no-working-directory",
        "sh",
        "-c",
        "echo > ran; exit 7",
    ]);
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(full).status().unwrap();
    assert_eq!(status.code(), Some(7));
    assert!(place.at("ran").exists() && place.at("out.workload/meta.json").exists());
}

/// Who ignores SIGCHLD is told of no child's end, and hands that on: fsage hears of its children, and the command finds it as it was.
fn ignored_ends_of_children_stay_ignored(with: &'static str) {
    let Some(place) = Place::new(with) else { return };
    let fsage = env!("CARGO_BIN_EXE_fsage");
    // A shell would hear of its children whatever it found.
    let ignore =
        "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execvp(sys.argv[1], sys.argv[1:])";
    let mut outer = Command::new("python3");
    outer.args(["-c", ignore, fsage, "record", "--with", with, "-o", "out.workload", "--no-working-directory"]);
    outer.args(["grep", "^SigIgn", "/proc/self/status"]).current_dir(place.dir.path());
    let out = outer.stdin(Stdio::null()).output().unwrap();
    assert_eq!(out.status.code(), Some(0), "{}", common::stderr(&out));
    assert!(place.at("out.workload/meta.json").exists(), "{}", common::stderr(&out));
    let ignored = String::from_utf8_lossy(&out.stdout);
    let mask = u64::from_str_radix(ignored.trim_start_matches("SigIgn:").trim(), 16).unwrap();
    assert_ne!(mask & 1 << (rustix::process::Signal::CHILD.as_raw() - 1), 0, "{ignored}");
}

/// Rust's runtime ignores SIGPIPE and lets no program find it so: one that a service of systemd's runs, which ignores it, was killed by a pipe that
/// nobody read, where it would have had an error.
fn a_closed_pipe_is_to_the_command_what_it_was(with: &'static str) {
    let Some(place) = Place::new(with) else { return };
    for (action, ignored) in [("SIG_IGN", 1), ("SIG_DFL", 0)] {
        let script = format!(
            "import os, signal, sys; signal.signal(signal.SIGPIPE, signal.{action}); os.execvp(sys.argv[1], sys.argv[1:])"
        );
        let mut outer = Command::new("python3");
        outer.args(["-c", &script, env!("CARGO_BIN_EXE_fsage"), "record", "--with", with, "-o", "out.workload"]);
        outer.args(["--overwrite", "--no-working-directory", "grep", "^SigIgn", "/proc/self/status"]);
        let out = outer.current_dir(place.dir.path()).stdin(Stdio::null()).output().unwrap();
        assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
        let mask = String::from_utf8_lossy(&out.stdout);
        let mask = u64::from_str_radix(mask.trim_start_matches("SigIgn:").trim(), 16).unwrap();
        assert_eq!(mask >> (rustix::process::Signal::PIPE.as_raw() - 1) & 1, ignored, "{action}");
    }
}

/// A command that closes its standard output, or input, and waits for what the other end does then, waited for ever: fsage had them open too.
fn standard_input_and_output_are_the_commands_alone(with: &'static str) {
    let Some(place) = Place::new(with) else { return };
    // After a minute it waits in vain.
    let waits = "n=0; until [ -e ended ]; do sleep 0.05; n=$((n + 1)); [ $n -lt 1200 ] || exit 9; done; exit 5";
    // Another descriptor, as a shell makes for `>(...)`, or who waits until a service is ready.
    let mut command = Command::new("bash");
    command.args(["-c", "exec \"$0\" \"$@\" 7>&1", env!("CARGO_BIN_EXE_fsage")]).current_dir(place.dir.path());
    command.args(["record", "--with", with, "-o", "out.workload", "--no-working-directory", "sh", "-c"]);
    command
        .arg(format!("exec <&- >&- 7>&-; {waits}"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut recorder = Running { child: command.spawn().unwrap() };
    let mut output = recorder.child.stdout.take().unwrap();
    assert_eq!(std::io::copy(&mut output, &mut std::io::sink()).unwrap(), 0);
    // It ends when nobody can read it any more.
    let mut input = recorder.child.stdin.take().unwrap();
    while input.write_all(&[0; 4096]).is_ok() {}
    fs::write(place.at("ended"), "").unwrap();
    assert_eq!(recorder.ends().code(), Some(5));
    let descriptors = |command: &mut Command| {
        let out = command.args(["ls", "/proc/self/fd"]).stdin(Stdio::null()).output().unwrap();
        let said = [out.stdout, out.stderr].concat();
        let lines: Vec<String> = String::from_utf8_lossy(&said).lines().map(str::to_owned).collect();
        lines.into_iter().filter(|line| line.parse::<u32>().is_ok()).collect::<Vec<_>>()
    };
    let mut aside = place.fsage();
    aside.args(["record", "--with", with, "-o", "listed", "--no-working-directory", "--json"]);
    assert_eq!(descriptors(&mut aside), descriptors(&mut Command::new("env")), "with --json too");
}

/// Limits of the shell were fsage's and strace's too, which take more than many a command: it went on without them, and its status was lost.
fn limits_of_time_data_and_descriptors_are_the_commands_alone(with: &'static str) {
    let Some(place) = Place::new(with) else { return };
    let record = |before: &str| {
        let asks = r#"ulimit -t; ulimit -d; ulimit -n; grep -E "^Max (cpu|data|open)" /proc/$PPID/limits; exit 5"#;
        let line = format!("{before} \"$0\" record --with \"$1\" -o out.workload sh -c '{asks}'");
        let mut command = Command::new("bash");
        command.args(["-c", &line, env!("CARGO_BIN_EXE_fsage"), with]).current_dir(place.dir.path());
        command.output().unwrap()
    };
    let out = record("ulimit -S -t 50; ulimit -S -d 60000; ulimit -S -n 30; exec");
    assert_eq!(out.status.code(), Some(5), "{}", stderr(&out));
    let said = String::from_utf8_lossy(&out.stdout);
    let (command, ours) = said.split_at(said.find("Max ").expect("what fsage has"));
    assert_eq!(command, "50\n60000\n30\n");
    for line in ours.lines() {
        let soft = line.split_whitespace().nth_back(2).unwrap();
        assert!(!["50", "61440000", "30"].contains(&soft), "{line}");
    }
    let out = record("ulimit -d 60000; exec setpriv --bounding-set -sys_resource --inh-caps -sys_resource");
    assert_eq!(out.status.code(), Some(3), "{}", stderr(&out));
    assert!(stderr(&out).contains("limited to 58.6 MiB (ulimit -d); recording takes 512 MiB"), "{}", stderr(&out));
    assert!(out.stdout.is_empty());
}

/// Where memory ends, the kernel ends whom it scores highest: that was the program as soon as it had more than fsage.
fn where_memory_ends_the_command_is_not_the_first_to_go(with: &'static str) {
    let Some(place) = Place::new(with) else { return };
    let ours = fs::read_to_string("/proc/self/oom_score_adj").unwrap();
    let mut command = place.fsage();
    command.args(["record", "--with", with, "-o", "out.workload", "--no-working-directory", "sh", "-c"]);
    let out = command.arg("cat /proc/self/oom_score_adj /proc/$PPID/oom_score_adj").output().unwrap();
    assert_eq!(succeeds(&out), format!("{ours}1000\n"), "{}", stderr(&out));
}

/// A thread's number was taken for a process's: nothing was recorded in the kernel, and one thread by strace, as if that had been all.
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

/// No profile can be made: the command's status is its own all the same, and nobody is sent to a spool that is gone.
fn the_exit_status_is_the_commands_also_without_a_profile(with: &'static str) {
    let Some(place) = Place::new(with) else { return };
    fs::create_dir(place.at("results")).unwrap();
    let line = "rm -r results; exit 7";
    let place_of = ["-o", "results/out.workload", "--spool-in", "results"];
    let args = [&["record", "--with", with][..], &place_of, &["sh", "-c", line]].concat();
    let out = run(place.dir.path(), &args);
    assert_eq!(out.status.code(), Some(7), "{}", common::stderr(&out));
    for said in ["no profile could be made", "results/out.spool meanwhile", "the command exited with 7"] {
        assert!(common::stderr(&out).contains(said), "{said}: {}", common::stderr(&out));
    }
}

/// A limit of file sizes is like a full disk for us, and for the command what it was.
fn a_limit_of_file_sizes_ends_the_command_alone(with: &'static str) {
    let Some(place) = Place::new(with) else { return };
    let line = "ulimit -f 8; exec \"$0\" record --with \"$1\" -o out.workload --spool-in . sh -c 'head -c 100000 /dev/zero >big; echo $?; exit 5'";
    // Whoever runs the tests may ignore the signal.
    let usual = "import os, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_DFL); os.execvp('bash', ['bash', *sys.argv[1:]])";
    let mut command = Command::new("python3");
    command.args(["-c", usual, "-c", line, env!("CARGO_BIN_EXE_fsage"), with]).current_dir(place.dir.path());
    let out = command.output().unwrap();
    assert_eq!(out.status.code(), Some(5), "{}", stderr(&out));
    assert_eq!(String::from_utf8_lossy(&out.stdout), "153\n", "128 and SIGXFSZ: {}", stderr(&out));
}

/// A limit of address space is the command's: recording takes more. Where it cannot be raised, nothing is run.
fn a_limit_of_address_space_is_the_commands_alone(with: &'static str) {
    let Some(place) = Place::new(with) else { return };
    let record = |before: &str| {
        let line = format!("{before} \"$0\" record --with \"$1\" -o out.workload sh -c 'ulimit -v; exit 5'");
        let mut command = Command::new("bash");
        command.args(["-c", &line, env!("CARGO_BIN_EXE_fsage"), with]).current_dir(place.dir.path());
        command.output().unwrap()
    };
    let out = record("ulimit -S -v 100000; exec");
    assert_eq!(out.status.code(), Some(5), "{}", stderr(&out));
    assert_eq!(String::from_utf8_lossy(&out.stdout), "100000\n");
    let out = record("ulimit -v 100000; exec setpriv --bounding-set -sys_resource --inh-caps -sys_resource");
    assert_eq!(out.status.code(), Some(3), "{}", stderr(&out));
    assert!(stderr(&out).contains("limited to 97.7 MiB (ulimit -v); recording takes 1 GiB"), "{}", stderr(&out));
    assert!(out.stdout.is_empty());
}

/// A signal at any moment of the start ends the recording: the command gets it or is not run.
fn a_signal_while_it_starts(with: &'static str) {
    let Some(place) = Place::new(with) else { return };
    for delay_ms in (0..60).step_by(3) {
        let mut command = place.fsage();
        command.args([
            "record",
            "--with",
            with,
            "--overwrite",
            "-o",
            "out.workload",
            "--spool-in",
            ".",
            "sleep",
            "1000",
        ]);
        let child = command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let recorder = Running { child };
        std::thread::sleep(Duration::from_millis(delay_ms));
        recorder.signal("TERM");
        let status = recorder.ends();
        assert!(status.signal() == Some(15) || status.code() == Some(128 + 15), "{delay_ms} ms: {status}");
    }
}

/// Nobody reads what we say: what is recorded goes on, and a signal lets it go.
fn a_standard_error_that_nobody_reads_stops_nothing(with: &'static str) {
    let Some(place) = Place::new(with) else { return };
    let mut alone = Command::new("python3");
    alone.arg("subject.py").current_dir(place.dir.path());
    let subject = place.started(alone);
    let (kept, mut full) = std::io::pipe().unwrap();
    rustix::pipe::fcntl_setpipe_size(&full, 4096).unwrap();
    full.write_all(&[b'x'; 4096]).unwrap();
    let mut command = place.fsage();
    command.args([
        "record",
        "--with",
        with,
        "-o",
        "out.workload",
        "--spool-in",
        ".",
        "--no-working-directory",
        "--pid",
    ]);
    let child = command.arg(place.pid().to_string()).stdin(Stdio::null()).stderr(full).spawn().unwrap();
    let recorder = Running { child };
    place.frames(4);
    place.goes_on(100);
    recorder.signal("TERM");
    until("the profile is there", || place.at("out.workload/meta.json").exists());
    until("nobody traces it", || status_field(subject.child.id(), "TracerPid:") == Some(0));
    drop(kept);
    recorder.ends();
    place.ends_well();
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

/// SIGKILL of fsage lets go at once of who sleeps too.
#[test]
fn sigkill_of_fsage_leaves_no_strace_at_who_sleeps() {
    let Some(place) = Place::new("strace") else { return };
    let mut alone = Command::new("sleep");
    let sleeper = Running { child: alone.arg("1000").stdin(Stdio::null()).spawn().unwrap() };
    let pid = sleeper.child.id();
    let mut command = place.fsage();
    command.args(["record", "--with", "strace", "-o", "out.workload", "--spool-in", ".", "--pid", &pid.to_string()]);
    let recorder = Running { child: command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap() };
    let traced = || status_field(pid, "TracerPid:").is_some_and(|tracer| tracer != 0);
    until("it is traced", traced);
    recorder.signal("KILL");
    until("nobody traces it", || !traced());
    assert!(Path::new(&format!("/proc/{pid}")).exists());
}

/// Its child has its memory until it ends, and does much before that. Asked to end, strace waited for the parent, the parent for the child, and the child for
/// strace: for ever.
const VFORKS: &str = "\
#include <fcntl.h>
#include <unistd.h>
int main(void) {
    if (vfork() == 0) {
        while (access(\"enough\", F_OK) != 0) {
            int to = open(\"rounds\", O_CREAT | O_WRONLY | O_APPEND, 0600);
            if (to < 0) break;
            write(to, \"x\", 1);
            close(to);
        }
        _exit(0);
    }
    return close(open(\"done\", O_CREAT | O_WRONLY, 0600));
}
";

#[test]
fn sigkill_of_fsage_does_not_hold_up_who_vforks() {
    if !testkit::needs(&[Need::Tool(Tool::Strace), Need::Tool(Tool::Cc)]) {
        return;
    }
    let d = tempfile::tempdir().unwrap();
    fs::write(d.path().join("vforks.c"), VFORKS).unwrap();
    let compiled = Command::new("cc").args(["-o", "vforks", "vforks.c"]).current_dir(d.path()).output().unwrap();
    assert!(compiled.status.success(), "{}", stderr(&compiled));
    let mut command = Command::new(env!("CARGO_BIN_EXE_fsage"));
    command
        .args(["record", "--with", "strace", "-o", "out.workload", "--spool-in", ".", "./vforks"])
        .current_dir(d.path());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let recorder = Running { child: command.spawn().unwrap() };
    let rounds = || fs::metadata(d.path().join("rounds")).map_or(0, |meta| meta.len());
    until("it runs", || rounds() > 50);
    recorder.signal("KILL");
    recorder.ends();
    let then = rounds();
    until("it goes on", || rounds() > then + 1_000);
    fs::write(d.path().join("enough"), "").unwrap();
    until("it ends", || d.path().join("done").exists());
}

/// Who reads the directory in which he works finds in it what would be there without us; so does who cleans it.
fn what_the_command_reads_is_not_ours(with: &'static str) {
    let Some(place) = Place::new(with) else { return };
    let list = "find . | sort";
    let plain = Command::new("sh").args(["-c", list]).current_dir(place.dir.path()).output().unwrap();
    for round in ["first", "second"] {
        let args = ["record", "--with", with, "--overwrite", "-o", "../out.workload", "sh", "-c", list];
        let work = place.at("work");
        fs::create_dir_all(&work).unwrap();
        let below = run(&work, &args);
        assert_eq!(String::from_utf8_lossy(&below.stdout), ".\n", "{round}: {}", stderr(&below));
        fs::remove_dir(&work).unwrap();
        fs::remove_dir_all(place.at("out.workload")).unwrap();
        let out = run(place.dir.path(), &["record", "--with", with, "-o", "out.workload", "sh", "-c", list]);
        assert_eq!(out.stdout, plain.stdout, "{round}: {}", stderr(&out));
        let elsewhere =
            stderr(&out).lines().find_map(|line| Some(line.split_once("the recording is in ")?.1.to_owned()));
        let elsewhere = PathBuf::from(elsewhere.expect("where it is"));
        assert!(!elsewhere.parent().unwrap().exists(), "gone with the end");
        fs::remove_dir_all(place.at("out.workload")).unwrap();
    }
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
    assert!(Command::new("umount").arg(&point).status().unwrap().success());
    outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
}

with_each_tracer!(
    a_closed_pipe_is_to_the_command_what_it_was,
    standard_input_and_output_are_the_commands_alone,
    limits_of_time_data_and_descriptors_are_the_commands_alone,
    where_memory_ends_the_command_is_not_the_first_to_go,
    the_number_of_a_thread_is_refused,
    a_limit_of_address_space_is_the_commands_alone,
    a_limit_of_file_sizes_ends_the_command_alone,
    a_signal_while_it_starts,
    a_standard_error_that_nobody_reads_stops_nothing,
    what_outlives_the_command_is_said_and_recorded,
    what_the_command_reads_is_not_ours,
    a_profile_that_does_not_fit_is_kept_elsewhere,
    a_command_needs_no_dashes_and_keeps_its_own_options,
    the_exit_status_of_the_command_is_passed_on,
    the_exit_status_is_the_commands_also_without_a_profile,
    a_standard_error_that_is_full_changes_nothing,
    ignored_ends_of_children_stay_ignored,
    a_whole_recording_holds_every_round,
    what_a_process_started_before_is_recorded_too,
    sigterm_ends_the_recording_and_the_command_gets_it_too,
    sigint_ends_the_recording_and_the_command_gets_it_too,
    a_signal_is_followed_by_the_profile_within_a_second,
    a_command_that_dies_of_the_signal_is_told_by_its_status,
    a_second_signal_leaves_the_command_running,
    processes_live_on_after_sigint_sigterm_and_the_time_is_over,
    the_stop_key_does_not_stop_the_recording_of_processes,
    sigkill_of_fsage_leaves_the_command_unharmed_and_a_spool,
    sigkill_of_fsage_leaves_processes_unharmed_and_a_spool,
    ctrl_c_at_a_terminal_reaches_the_command_once,
    a_second_ctrl_c_leaves_nobody_behind_the_terminal,
    signals_for_the_command_reach_it,
    a_signal_from_the_command_does_not_come_back,
    what_the_command_sends_to_its_group_does_not_come_back,
    a_socket_bound_to_a_path_is_a_name,
    room_is_left_to_the_program,
    rsync_of_eleven_thousand_files,
    a_virtual_environment_of_python,
);

/// Names in TMPDIR were made of the process's number: another user, who may write there too, could take them and stop every recording.
#[test]
fn a_name_that_others_took_stops_no_recording() {
    if !testkit::need(Need::Tool(Tool::Strace)) {
        return;
    }
    let d = tempfile::tempdir().unwrap();
    fs::create_dir(d.path().join("tmp")).unwrap();
    let take = "for n in 0 1 2; do mkdir tmp/fsage-record-$$-$n tmp/fsage-record-$$.$n tmp/.out.workload.partial-$$ 2>/dev/null; done";
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
