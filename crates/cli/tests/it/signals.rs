//! A signal ends whatever a command is doing, soon.
//!
//! How soon is measured in the processor time that it still takes, which no other load on the machine lengthens. The
//! signal comes once a command has taken so much: while it reads, scans or works out, as far as that reaches.

use crate::common;
use crate::common::plan_file::{self, Row};
use crate::common::process::Running;
use crate::common::{fsage, long_workload, small_system, succeeds};
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};
use testkit::{Need, Tool};

/// What a command itself may still take: ten looks a second in an optimised build, and a fraction of its speed in this
/// one.
const STILL_MS: u64 = 1_500;
/// The same with what the kernel takes for it, on a machine that others use: to give back a file of gigabytes took
/// 1,880 ms beside a full load.
const STILL_IN_ALL_MS: u64 = 6_000;
/// What it is to have taken when the signal comes.
const AFTER_MS: [u64; 3] = [10, 300, 1_200];
/// Nothing here waits for anything but the processor, of which others may have most.
const PATIENCE: Duration = Duration::from_secs(300);

/// What the kernel says of a process, from its state on. Its parent has not asked for its end yet.
fn stat(pid: u32) -> Vec<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("a child that nobody has waited for");
    stat.rsplit_once(") ").expect("a name").1.split(' ').map(str::to_owned).collect()
}

/// What a process has taken, and whether it has ended.
fn taken_ms(pid: u32) -> (Taken, bool) {
    let fields = stat(pid);
    let ticks = |at: usize| fields[at].parse::<u64>().expect("a number");
    // A hundred a second, on every Linux (USER_HZ).
    (Taken { own_ms: ticks(11) * 10, all_ms: (ticks(11) + ticks(12)) * 10 }, fields[0] == "Z")
}

/// Time of the processor.
#[derive(Clone, Copy)]
struct Taken {
    /// By the process itself.
    own_ms: u64,
    /// With the kernel's for it.
    all_ms: u64,
}

/// How a command came to its end.
enum End {
    /// Before the signal, or it had not begun.
    Missed,
    /// So much of the processor's time after it; whether of itself.
    After { still: Taken, done: bool },
}

/// Runs a command, and ends it once it has taken so much.
fn ended(directory: &Path, args: &[&str], after_ms: u64, signal: &str) -> End {
    let there = names(directory);
    let mut command = testkit::process::with_default_signals(env!("CARGO_BIN_EXE_fsage"));
    command.args(args).current_dir(directory).stdin(Stdio::null()).stdout(Stdio::null());
    let file = fs::File::create(directory.join("messages")).expect("a new file");
    let running = Running { child: command.stderr(file).spawn().expect("the binary runs") };
    let pid = running.child.id();
    let begun = Instant::now();
    let until = |is_so: &dyn Fn(u64, bool) -> bool| loop {
        let (taken, has_ended) = taken_ms(pid);
        let ms = taken.all_ms;
        if is_so(ms, has_ended) {
            return (taken, has_ended);
        }
        assert!(begun.elapsed() < PATIENCE, "{args:?}: {ms} ms of the processor in {PATIENCE:?}, after {signal}");
        std::thread::sleep(Duration::from_millis(2));
    };
    let (before, has_ended) = until(&|ms, has_ended| has_ended || ms >= after_ms);
    let messages = || fs::read_to_string(directory.join("messages")).expect("text");
    if has_ended {
        assert_eq!(running.ends().code(), Some(0), "{args:?}: {}", messages());
        return End::Missed;
    }
    running.signal(signal);
    let (after, _) = until(&|_, has_ended| has_ended);
    let status = running.ends();
    let expected = if signal == "INT" { 130 } else { 143 };
    // While its arguments are read, and before it does anything, a signal ends it as any program.
    if status.signal().is_some() && after_ms == AFTER_MS[0] && names(directory) == there {
        return End::Missed;
    }
    // What had done all its work by then may end as it would have.
    assert!(matches!(status.code(), Some(code) if code == expected || code == 0), "{args:?}: {status}: {}", messages());
    let still = Taken { own_ms: after.own_ms - before.own_ms, all_ms: after.all_ms - before.all_ms };
    End::After { still, done: status.success() }
}

/// What is in a directory, and in those below that commands write to, but for the messages.
fn names(directory: &Path) -> Vec<String> {
    let mut names = common::names(directory);
    let below = ["target", "stages", "results"].map(|below| directory.join(below));
    names.extend(below.iter().filter(|path| path.is_dir()).flat_map(|path| common::names(path)));
    names.retain(|name| name != "messages");
    names
}

/// Removes what a command made that was done.
fn remove(directory: &Path, names: &[String]) {
    for name in names {
        let path = directory.join(name);
        let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path));
    }
}

/// Whether every file in a directory is one of another's.
fn is_part_of(copy: &Path, tree: &Path) -> bool {
    common::names(copy).iter().all(|name| fs::read(copy.join(name)).ok() == fs::read(tree.join(name)).ok())
}

/// Whether what a command left is what it makes when nothing disturbs it: the signal came after its last step. Moves it
/// aside, and leaves what the undisturbed run made.
fn is_whole(directory: &Path, args: &[&str], left: &[String]) -> bool {
    let aside = tempfile::tempdir().expect("a directory");
    // What is left in a directory below is no result.
    if left.iter().any(|name| fs::rename(directory.join(name), aside.path().join(name)).is_err()) {
        return false;
    }
    succeeds(&fsage().args(args).current_dir(directory).output().expect("the binary runs"));
    left.iter().all(|name| {
        let (there, made) = (aside.path().join(name), directory.join(name));
        if there.is_dir() {
            let is_same = || match args.contains(&"--anonymise") {
                // Its key is another each time.
                true => lengths(&there) == lengths(&made),
                false => is_part_of(&there, &made),
            };
            made.is_dir() && common::names(&there) == common::names(&made) && is_same()
        } else {
            fs::read(there).ok() == fs::read(made).ok()
        }
    })
}

/// How long each line of a profile as text is: hidden names are as long as they were.
fn lengths(workload: &Path) -> Vec<usize> {
    let text = succeeds(&fsage().arg("export").arg(workload).output().expect("the binary runs"));
    text.lines().map(str::len).collect()
}

/// How often a command is run until the signal comes within its work: where others have most of the processor, it may
/// be done between two looks.
const TRIES: usize = 20;

/// Each of these commands, from the first to its end at each of the times. A command that is done before the first of
/// them tests nothing.
fn each_ends(directory: &Path, commands: &[&[&str]]) {
    let mut late = Vec::new();
    for args in commands {
        let mut reached = 0;
        for (after_ms, signal) in AFTER_MS.into_iter().zip(["TERM", "INT", "TERM"]) {
            let before = names(directory);
            let left = || names(directory).into_iter().filter(|name| !before.contains(name)).collect::<Vec<_>>();
            let tries = if reached == 0 { TRIES } else { 1 };
            let end = (0..tries).find_map(|_| match ended(directory, args, after_ms, signal) {
                End::Missed => {
                    remove(directory, &left());
                    None
                }
                End::After { still, done } => Some((still, done)),
            });
            let Some((Taken { own_ms, all_ms }, done)) = end else {
                if reached > 0 {
                    break;
                }
                continue;
            };
            let left = left();
            let still = format!("{own_ms} ms itself, {all_ms} ms with the kernel's, after {signal} at {after_ms} ms");
            println!("{args:?}: {still}");
            if own_ms > STILL_MS || all_ms > STILL_IN_ALL_MS {
                late.push(format!("{args:?} took {still}"));
            }
            // What was copied out of an image stays, as with cp(1): whole files.
            let halves: Vec<String> = left
                .iter()
                .filter(|name| *name != "out" || !is_part_of(&directory.join(name), &directory.join("tree")))
                .cloned()
                .collect();
            assert!(done || halves.is_empty() || is_whole(directory, args, &halves), "{args:?} left {halves:?}");
            remove(directory, &left);
            reached += 1;
        }
        assert!(reached >= 1, "{args:?} ended by itself before {} ms: give it more to do", AFTER_MS[0]);
    }
    assert!(late.is_empty(), "{late:#?}");
}

#[test]
fn what_is_done_with_a_recording_ends() {
    let d = tempfile::tempdir().expect("a directory");
    long_workload(&d.path().join("w.workload"), 400_000);
    small_system(d.path(), "a", 2_000.0);
    small_system(d.path(), "b", 3_000.0);
    // Directories of results are made early, and hold what is whole.
    for directory in ["target", "stages"] {
        fs::create_dir(d.path().join(directory)).expect("a directory");
    }
    each_ends(
        d.path(),
        &[
            &["inspect", "w.workload", "--latency"],
            &["inspect", "w.workload", "--rows", "--count", "400000"],
            &["export", "w.workload", "-o", "w.csv"],
            &["export", "w.workload", "--anonymise", "-o", "x.workload"],
            &["export", "w.workload", "--format", "fio", "-o", "w.fio"],
            &["predict", "w.workload", "a.system", "b.system"],
            &["predict", "w.workload", "a.system", "b.system", "--explain", "a", "b"],
            &["predict", "w.workload", "a.system", "--stages-out", "stages"],
            &["replay", "w.workload", "target"],
            &["replay", "w.workload", "ffs:size=900M,density=2048"],
            &["validate", "w.workload", "--on", "target", "--system", "target=a.system"],
            &["plan", "profile", "w.workload", "--repeat", "50", "--capacity", "8G", "-o", "p.aging"],
        ],
    );
}

#[test]
fn reading_a_text_ends() {
    let d = tempfile::tempdir().expect("a directory");
    let mut strace = String::new();
    let mut perf = String::new();
    let mut fio = "fio version 3 iolog\n0 /f add\n1 /f open\n".to_owned();
    for n in 0..300_000_u64 {
        let (s, us) = (1_700_000_000 + n / 1000, n % 1000);
        writeln!(
            strace,
            "1 {s}.{us:06} stat(\"/d{}/f{n}\", {{st_mode=S_IFREG|0644, st_size=5}}) = 0 <0.000010>",
            n % 50
        )
        .expect("into a string");
        writeln!(perf, "{n:>10}.000 ( 0.010 ms): cat/1 stat(filename: \"/d{}/f{n}\") = 0", n % 50)
            .expect("into a string");
        writeln!(fio, "{} /f write {} 4096", n + 2, n * 4096).expect("into a string");
    }
    for (name, text) in [("a.strace", strace), ("a.perf", perf), ("a.iolog", fio)] {
        fs::write(d.path().join(name), text).expect("a new file");
    }
    each_ends(
        d.path(),
        &[
            &["import", "a.strace", "--format", "strace"],
            &["import", "a.perf", "--format", "perf"],
            &["import", "a.iolog", "--format", "fio"],
        ],
    );
}

/// Nobody writes to it, or not for now.
#[test]
fn waiting_for_a_fifo_ends() {
    let d = tempfile::tempdir().expect("a directory");
    let fifo = d.path().join("fifo");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, 0o600.into()).expect("a FIFO");
    let args = ["import", "fifo", "--format", "strace", "-o", "w.workload"];
    for writes in [false, true] {
        for (signal, code) in [("INT", 130), ("TERM", 143)] {
            // Opened both ways, a FIFO waits for nobody. Who stops writing ends the text: it stays open, or was never
            // opened.
            let _writer = writes.then(|| {
                let mut both = fs::File::options().read(true).write(true).open(&fifo).expect("the FIFO");
                both.write_all(b"1 1700000000.000001 stat(\"/a\", {}) = 0 <0.000010>\n").expect("room in the FIFO");
                both
            });
            let mut command = testkit::process::with_default_signals(env!("CARGO_BIN_EXE_fsage"));
            command.args(args).current_dir(d.path()).stdout(Stdio::null()).stderr(Stdio::null());
            let running = Running { child: command.spawn().expect("the binary runs") };
            // It waits when it sleeps and has the FIFO open.
            let pid = running.child.id();
            common::process::until("the FIFO is read", || {
                let open = fs::read_dir(format!("/proc/{pid}/fd")).expect("it runs");
                open.flatten().any(|fd| fs::read_link(fd.path()).is_ok_and(|to| to == fifo))
            });
            running.signal(signal);
            assert_eq!(running.ends().code(), Some(code), "{signal}, {writes}");
            assert_eq!(common::names(d.path()), ["fifo"]);
        }
    }
}

#[test]
fn what_is_done_with_an_image_ends() {
    let d = tempfile::tempdir().expect("a directory");
    let run = |args: &[&str]| succeeds(&fsage().current_dir(d.path()).args(args).output().expect("the binary runs"));
    fs::create_dir(d.path().join("tree")).expect("a directory");
    for n in 0..3_000 {
        fs::write(d.path().join(format!("tree/{n}")), vec![7; 40_000]).expect("a new file");
    }
    run(&["mkfs", "ffs", "ffs.img", "--size", "400M", "--ufs", "2", "--populate", "tree"]);
    run(&["mkfs", "lfs", "lfs.img", "--size", "400M", "--populate", "tree"]);
    run(&["mkfs", "ffs", "wide.img", "--size", "24G", "--ufs", "2"]);
    each_ends(
        d.path(),
        &[
            &["mkfs", "ffs", "new.img", "--size", "400M", "--populate", "tree"],
            &["mkfs", "lfs", "new.img", "--size", "400M", "--populate", "tree"],
            &["mkfs", "ffs", "new.img", "--size", "400G", "--ufs", "2"],
            &["layout", "lfs.img"],
            &["layout", "wide.img"],
            &["fsck", "wide.img"],
            &["fsck", "wide.img", "--repair"],
            &["dump", "wide.img", "free-maps"],
            &["cp", "ffs.img:/", "out"],
            &["cp", "lfs.img:/", "out"],
            // Before what is copied into it takes its room.
            &["bench", "seqfile", "ffs:image=ffs.img"],
            &["cp", "tree", "ffs.img:/new"],
            &["cp", "tree", "lfs.img:/new"],
            &["clean", "lfs.img"],
        ],
    );
}

#[test]
fn what_a_target_goes_through_ends() {
    let d = tempfile::tempdir().expect("a directory");
    let run = |args: &[&str]| succeeds(&fsage().current_dir(d.path()).args(args).output().expect("the binary runs"));
    for directory in ["target", "results"] {
        fs::create_dir(d.path().join(directory)).expect("a directory");
    }
    run(&["plan", "personality", "home", "--capacity", "1G", "--days", "60", "-o", "plan.aging"]);
    each_ends(
        d.path(),
        &[
            &["plan", "personality", "home", "--capacity", "8G", "--years", "3", "-o", "new.aging"],
            &["inspect", "plan.aging"],
            &["age", "target", "--plan", "plan.aging", "--data", "fallocate", "--room", "1G"],
            &["age", "ffs:size=1G", "--plan", "plan.aging"],
            &["age", "lfs:size=1G", "--plan", "plan.aging"],
            &["measure", "target", "--budget", "60s", "-o", "new.system"],
            &["measure", "ffs:size=1G", "-o", "new.system"],
            &["bench", "seqfile", "target"],
            &["bench", "seqfile", "ffs:size=400M", "lfs:size=400M"],
            &["bench", "postmark", "ffs:size=400M", "--transactions", "500000"],
            &["bench", "scan", "/usr"],
            &["layout", "/usr"],
            &["snapshot", "/usr", "-o", "usr.snapshot"],
            &["reproduce", "alloc96/aggregate", "-o", "results"],
            &["quickstart", "target"],
        ],
    );
}

/// What was begun of a plan was done to its end first: one operation writes as long as there is room, and took minutes
/// more.
#[test]
fn one_long_operation_of_a_plan_ends() {
    let d = tempfile::tempdir().expect("a directory");
    fs::create_dir(d.path().join("target")).expect("a directory");
    let row = Row { file_id: 1, size_bytes: 300 << 20, ..Row::new("create", Some(b"a".to_vec().into())) };
    plan_file::write(&d.path().join("long.aging"), &[vec![row]], 1);
    // Writes of 64 bytes: the operation takes many seconds, and little room.
    let args = ["age", "target", "--plan", "long.aging", "--chunk", "64"];
    for signal in ["INT", "TERM"] {
        match ended(d.path(), &args, 300, signal) {
            End::After { still: Taken { all_ms, .. }, done: false } => {
                assert!(all_ms < 700, "{all_ms} ms more after {signal}")
            }
            _ => panic!(
                "it was done before {signal} came: {}",
                fs::read_to_string(d.path().join("messages")).expect("text")
            ),
        }
        assert_eq!(common::names(&d.path().join("target")), Vec::<String>::new());
    }
}

/// Whatever of ours has its working directory there.
fn working_in(directory: &Path) -> Vec<String> {
    let processes = fs::read_dir("/proc").expect("processes").flatten();
    let there = processes
        .filter(|process| fs::read_link(process.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(directory)));
    let line = |process: fs::DirEntry| fs::read(process.path().join("cmdline")).unwrap_or_default();
    there.map(|process| String::from_utf8_lossy(&line(process)).replace('\0', " ")).collect()
}

/// Its workload is a command that nobody but it has started: the signal is for the whole, from before the first call is
/// recorded to the last.
#[test]
fn a_quickstart_that_records_ends() {
    if !testkit::need(Need::Tool(Tool::Strace)) {
        return;
    }
    let d = tempfile::tempdir().expect("a directory");
    let target = d.path().join("target");
    for directory in ["target", "tmp"] {
        fs::create_dir(d.path().join(directory)).expect("a directory");
    }
    // A compiler that leaves a temporary file behind, as one that is killed at the wrong moment does.
    let tools = d.path().join("tools");
    fs::create_dir(&tools).expect("a directory");
    let path = std::env::var("PATH").expect("a path");
    let compiler = format!("#!/bin/sh\n: >\"${{TMPDIR:-/tmp}}/left.$$\"\nPATH='{path}' exec cc \"$@\"\n");
    fs::write(tools.join("cc"), compiler).expect("a new file");
    fs::set_permissions(tools.join("cc"), PermissionsExt::from_mode(0o755)).expect("a program");
    let path = format!("{}:{path}", tools.display());
    // What of the workload is there when the signal comes: first its directory, before anything runs.
    let moments = ["", "project/docs/figures.bin", "unpacked", "build"];
    let mut reached = 0;
    for (at, made) in moments.into_iter().enumerate() {
        let (signal, code) = [("INT", 130), ("TERM", 143)][at % 2];
        let messages = d.path().join("messages");
        let mut command = testkit::process::with_default_signals(env!("CARGO_BIN_EXE_fsage"));
        command.args(["quickstart", "target"]).current_dir(d.path());
        command.env("TMPDIR", d.path().join("tmp")).env("PATH", &path);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(fs::File::create(&messages).expect("a new file"));
        let running = Running { child: command.spawn().expect("the binary runs") };
        let pid = running.child.id();
        let begun = Instant::now();
        let is_there = || common::works_in(&target).iter().any(|place| place.join("work").join(made).exists());
        let mut is_too_late = false;
        while !is_too_late && !is_there() {
            let said = fs::read_to_string(&messages).expect("text");
            assert!(begun.elapsed() < PATIENCE, "{made}: waited in vain: {said}");
            // The workload may end while others have the processor.
            is_too_late = taken_ms(pid).1 || said.contains("2 of 4");
            std::thread::sleep(Duration::from_millis(2));
        }
        running.signal(signal);
        if is_too_late {
            running.ends();
            continue;
        }
        reached += 1;
        let status = running.ends();
        let said = fs::read_to_string(&messages).expect("text");
        assert_eq!(status.code(), Some(code), "{signal} at {made:?}: {said}");
        assert!(said.contains("interrupted") && !said.contains("failed"), "{signal} at {made:?}: {said}");
        for directory in ["target", "tmp"] {
            let left = common::names(&d.path().join(directory));
            assert!(left.is_empty(), "{signal} at {made:?} left {left:?} in {directory}");
        }
        assert_eq!(working_in(&target), [""; 0], "{signal} at {made:?}");
    }
    assert!(reached > 0, "every signal came too late");
}
