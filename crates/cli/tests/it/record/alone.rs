//! What is the command's alone: its options, status, streams, limits, the signals it ignores, and what it sees of its
//! directory.

use super::Place;
use crate::common;
use crate::common::process::{Running, status_field, until};
use crate::common::{run, stderr, succeeds, with_each_tracer};
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

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

/// Notes go nowhere: the command runs, and its status is its own. fsage panicked, before it had started the command
/// where there was something to say.
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

/// Who ignores SIGCHLD is told of no child's end, and hands that on: fsage hears of its children, and the command finds
/// it as it was.
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

/// Rust's runtime ignores SIGPIPE and lets no program find it so: one that a service of systemd's runs, which ignores
/// it, was killed by a pipe that nobody read, where it would have had an error.
fn a_closed_pipe_is_to_the_command_what_it_was(with: &'static str) {
    let Some(place) = Place::new(with) else { return };
    for (action, ignored) in [("SIG_IGN", 1), ("SIG_DFL", 0)] {
        let script = format!(
            "import os, signal, sys; signal.signal(signal.SIGPIPE, signal.{action}); os.execvp(sys.argv[1], \
             sys.argv[1:])"
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

/// A command that closes its standard output, or input, and waits for what the other end does then, waited for ever:
/// fsage had them open too.
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

/// Limits of the shell were fsage's and strace's too, which take more than many a command: it went on without them, and
/// its status was lost.
fn limits_of_time_data_and_descriptors_are_the_commands_alone(with: &'static str) {
    let Some(place) = Place::new(with) else { return };
    let record = |before: &str| {
        let asks = r#"ulimit -t; ulimit -d; ulimit -n; grep -E "^Max (cpu|data|open)" /proc/$PPID/limits; exit 5"#;
        let line = format!("{before} \"$0\" record --with \"$1\" -o out.workload --overwrite sh -c '{asks}'");
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
    let line = "ulimit -f 8; exec \"$0\" record --with \"$1\" -o out.workload --spool-in . sh -c 'head -c 100000 \
        /dev/zero >big; echo $?; exit 5'";
    // Whoever runs the tests may ignore the signal.
    let usual = "import os, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_DFL); os.execvp('bash', ['bash', \
        *sys.argv[1:]])";
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
        let line =
            format!("{before} \"$0\" record --with \"$1\" -o out.workload --overwrite sh -c 'ulimit -v; exit 5'");
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

with_each_tracer!(
    a_closed_pipe_is_to_the_command_what_it_was,
    standard_input_and_output_are_the_commands_alone,
    limits_of_time_data_and_descriptors_are_the_commands_alone,
    where_memory_ends_the_command_is_not_the_first_to_go,
    a_limit_of_address_space_is_the_commands_alone,
    a_limit_of_file_sizes_ends_the_command_alone,
    a_standard_error_that_nobody_reads_stops_nothing,
    what_the_command_reads_is_not_ours,
    a_command_needs_no_dashes_and_keeps_its_own_options,
    the_exit_status_of_the_command_is_passed_on,
    the_exit_status_is_the_commands_also_without_a_profile,
    a_standard_error_that_is_full_changes_nothing,
    ignored_ends_of_children_stay_ignored,
);
