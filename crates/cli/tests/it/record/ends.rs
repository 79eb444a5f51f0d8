//! How a recording ends: signals to the recorder, to the command and at a terminal, and SIGKILL.

use super::{Place, strace_of};
use crate::common;
use crate::common::process::{Running, status_field, until};
use crate::common::{run, stderr, succeeds, with_each_tracer};
use std::fs;
use std::io::Write as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use testkit::{Need, Tool};

fn sigterm_ends_the_recording_and_the_command_gets_it_too(with: &'static str) {
    a_signal_ends_the_recording(with, "TERM", 15);
}

fn sigint_ends_the_recording_and_the_command_gets_it_too(with: &'static str) {
    a_signal_ends_the_recording(with, "INT", 2);
}

/// That the command hears it at all is no matter of course: strace, asked to let go while it holds a signal for a
/// program, drops it. Once seen on a busy machine, when the command got the signal before strace had let go.
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

/// However much was recorded, the profile is there within a second of the signal. It takes less than a second of the
/// processor's, always; that it takes no longer by the clock either, one try of ten must show, as a busy machine may
/// keep us from it.
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
    assert_eq!(recorder.child.wait().unwrap().code(), Some(128 + 15), "{}", place.read("stderr"));
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
        let then = place.all_rounds();
        until("it goes on unrecorded", || place.all_rounds() > then);
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

/// An interactive program lives on after Ctrl-C. The second made fsage leave, and the shell took the terminal away from
/// the program.
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

/// Who started fsage knows its number alone, and sends it what is for the program: to read its settings or begin its
/// logs again, to end in its own way, an alarm that was set. They ended fsage, and the program went on without anybody.
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

/// Who tells its whole process group to end, and sees to it that it survives that itself
/// (`trap '' TERM; kill 0; trap - TERM`), was told again by fsage, and died of it.
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

/// Its child has its memory until it ends, and does much before that. Asked to end, strace waited for the parent, the
/// parent for the child, and the child for strace: for ever.
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

with_each_tracer!(
    a_signal_while_it_starts,
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
);
