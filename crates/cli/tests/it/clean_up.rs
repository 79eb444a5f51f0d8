//! What the clean-up meets half done: a call that makes, moves or unmounts something, held up by strace until the
//! signals have come. What lies in the directory afterwards judges.

use crate::common::process::{Running, status_field, until};
use crate::common::{self, apart, fsage, long_workload, names, run, succeeds, umount};
use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;
use testkit::{Need, Tool, need};

/// A command whose calls of a name are held up, and what it and strace keep elsewhere.
struct HeldUp {
    running: Running,
    elsewhere: tempfile::TempDir,
}

impl HeldUp {
    /// Starts a command whose `nth` system call of a name, in each thread, takes so long.
    fn start(directory: &Path, args: &[&str], (call, nth, ms): (&str, u32, u64)) -> HeldUp {
        let elsewhere = tempfile::tempdir().expect("a directory");
        let mut command = testkit::process::with_default_signals("strace");
        let held_up = format!("inject={call}:delay_enter={}:when={nth}", ms * 1000);
        // The clean-up takes its time, so that others go on beside it.
        let slow = "inject=unlinkat:delay_enter=100000";
        // The tracer is not its parent.
        command
            .args(["-D", "-f", "-e", &format!("trace={call},unlinkat"), "-e", &held_up, "-e", slow, "-o"])
            .arg(elsewhere.path().join("calls"));
        command.arg(env!("CARGO_BIN_EXE_fsage")).args(args).current_dir(directory).stdin(Stdio::null());
        command.env("XDG_STATE_HOME", elsewhere.path()).stdout(Stdio::null()).stderr(Stdio::piped());
        HeldUp { running: Running::start(&mut command), elsewhere }
    }

    /// Waits until a thread of it is held up; `false`: it has ended. What is no delay seldom lasts so long; where it
    /// does, the signal comes somewhere else.
    fn is_at_it(&self) -> bool {
        let tasks = format!("/proc/{}/task", self.running.pid());
        let mut looks = 0;
        loop {
            let stats = fs::read_dir(&tasks).expect("a child that nobody has waited for").flatten();
            let states: Vec<char> = stats
                .filter_map(|task| fs::read_to_string(task.path().join("stat")).ok())
                .filter_map(|stat| stat.rsplit_once(") ")?.1.chars().next())
                .collect();
            match () {
                () if states == ['Z'] => return false,
                () if states.contains(&'t') && looks == 10 => return true,
                () if states.contains(&'t') => looks += 1,
                () => looks = 0,
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Sends it a signal so often.
    fn signals(&self, signals: u32) {
        let pid = self.running.pid();
        for _ in 0..signals {
            self.running.signal("TERM");
            // Two that wait are one.
            until("the signal is heard", || {
                let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("nobody has waited for it");
                let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
                let is_pending = field("ShdPnd:").is_some_and(|pending| pending.contains(|digit| digit != '0'));
                !is_pending || field("State:").is_some_and(|state| state.starts_with('Z'))
            });
        }
    }

    /// Waits until it ends, for which strace does not let go of what it holds up, and takes that from it.
    fn is_let_go(&self) {
        let pid = self.running.pid();
        until("its other threads have ended", || status_field(pid, "Threads:") == Some(1));
        end(&self.tracer());
    }

    fn tracer(&self) -> String {
        status_field(self.running.pid(), "TracerPid:").expect("it is traced").to_string()
    }

    /// Waits for its end. The journals it leaves, too.
    fn ends(mut self) -> (Output, Vec<String>) {
        let pid = self.running.pid();
        let mut stderr = Vec::new();
        let mut pipe = self.running.child.stderr.take().expect("a pipe");
        pipe.read_to_end(&mut stderr).expect("messages");
        let status = self.running.ends();
        let states = [self.elsewhere.path().join("fsage"), "/run/fsage".into()];
        let there = states.iter().filter(|state| state.is_dir()).flat_map(|state| names(state));
        let journals = there.filter(|name| name.starts_with(&format!("{pid}-"))).collect();
        (Output { status, stdout: Vec::new(), stderr }, journals)
    }
}

/// Ends a process whatever it is at.
fn end(pid: &str) {
    assert!(Command::new("kill").args(["-s", "KILL", pid]).status().expect("kill runs").success());
}

/// Runs a command that is held up at its `nth` system call of a name, and signals it there. Whether it was still at
/// that.
fn ended_at(directory: &Path, args: &[&str], (call, nth): (&str, u32), signals: u32) -> bool {
    let held_up = HeldUp::start(directory, args, (call, nth, 300));
    let is_at_it = held_up.is_at_it();
    held_up.signals(signals);
    let (Output { status, stderr, .. }, journals) = held_up.ends();
    let messages = String::from_utf8_lossy(&stderr);
    let what = format!("{args:?}, {signals} signals at {call} {nth}: {status}: {messages}");
    // Before it has begun, a signal ends it as any program.
    let is_as_usual = matches!(status.code(), Some(0 | 143)) || status.signal() == Some(15);
    assert!(is_as_usual, "{what}");
    // The tracer has a say as well.
    let is_whole = |line: &str| line.starts_with("fsage: wrote x") && directory.join("x").exists();
    let is_said = |line: &&str| line.contains("fsage: ") && !common::is_of_another_run(line) && !is_whole(line);
    assert!(status.success() || messages.lines().filter(is_said).count() <= 1, "{what}");
    assert!(journals.is_empty(), "{what}: {journals:?}");
    is_at_it
}

fn write_strace(directory: &Path) {
    let text = "1 1700000000.000001 stat(\"/a\", {}) = 0 <0.000010>\n";
    fs::write(directory.join("a.strace"), text).expect("a new file");
}

/// What the signal's thread removed before it was there stayed: seen once on a busy machine, as `.x.workload.partial-…`
/// after SIGTERM. Here each call that makes something is held up until the clean-up has come: with the first signal
/// where that ends a command at once, with the second where not.
#[test]
fn what_is_being_made_when_the_clean_up_comes_does_not_stay() {
    if !need(Need::Tool(Tool::Strace)) {
        return;
    }
    let d = tempfile::tempdir().expect("a directory");
    long_workload(&d.path().join("w.workload"), 2_000);
    write_strace(d.path());
    // What was there before is there until the new one is.
    let commands: [(&[&str], u32, bool); 4] = [
        (&["export", "w.workload", "--anonymise", "-o", "x"], 1, false),
        (&["export", "w.workload", "-o", "x"], 1, false),
        (&["import", "a.strace", "--format", "strace", "-o", "x"], 2, false),
        (&["import", "a.strace", "--format", "strace", "--overwrite", "-o", "x"], 2, true),
    ];
    let calls = ["mkdir", "rename", "renameat2", "unlink"];
    let run = |args: &[&str]| succeeds(&fsage().current_dir(d.path()).args(args).output().expect("the binary runs"));
    let text = run(&["export", "w.workload"]);
    let x = d.path().join("x");
    for (args, signals, has_old) in commands {
        let before = names(d.path());
        let mut reached = 0;
        for (call, nth) in calls.iter().flat_map(|call| (1..=3).map(move |nth| (*call, nth))) {
            if has_old {
                run(args);
            }
            let is_at_it = ended_at(d.path(), args, (call, nth), signals);
            let made: Vec<_> = names(d.path()).into_iter().filter(|name| !before.contains(name)).collect();
            let what = format!("{args:?}, {signals} signals at {call} {nth}");
            assert!(made.is_empty() && !has_old || made == ["x"], "{what} left {made:?}");
            if x.is_dir() {
                run(&["inspect", "x"]);
                run(&["export", "x", "-o", "x.csv"]);
                fs::remove_file(d.path().join("x.csv")).expect("it was made");
            } else if x.exists() {
                assert!(fs::read_to_string(&x).expect("text") == text, "{what} left half of it");
            }
            let _ = fs::remove_file(&x).or_else(|_| fs::remove_dir_all(&x));
            reached += u32::from(is_at_it);
        }
        assert!(reached >= 5, "{args:?}: {reached} calls make something");
    }
}

/// The clean-up does not wait for ever. What it leaves was left without a word.
#[test]
fn what_still_moves_after_five_seconds_is_told_and_goes_with_the_next_run() {
    if !need(Need::Tool(Tool::Strace)) {
        return;
    }
    let d = tempfile::tempdir().expect("a directory");
    write_strace(d.path());
    let args = ["import", "a.strace", "--format", "strace", "-o", "x"];
    let held_up = HeldUp::start(d.path(), &args, ("renameat2", 1, 3_600_000));
    assert!(held_up.is_at_it());
    let state = held_up.elsewhere.path().to_owned();
    held_up.signals(2);
    held_up.is_let_go();
    let (Output { status, stderr, .. }, _) = held_up.ends();
    let messages = String::from_utf8_lossy(&stderr);
    assert_eq!(status.code(), Some(143), "{messages}");
    let partial = format!("{}/.x.partial-", d.path().display());
    let told = messages.lines().find(|line| line.contains(&partial)).unwrap_or_else(|| panic!("{messages}"));
    assert!(told.contains("still being made or moved after 5 s"), "{told}");
    // Whatever fsage is run next, here or by another test.
    succeeds(&fsage().args(["drive", "list"]).env("XDG_STATE_HOME", state).output().expect("the binary runs"));
    until("it is gone", || names(d.path()) == ["a.strace"]);
}

/// A directory with images of file systems, and one in it to mount them on.
fn with_images(images: &[&str]) -> (tempfile::TempDir, PathBuf) {
    let d = tempfile::tempdir().expect("a directory");
    for image in images {
        succeeds(&run(d.path(), &["mkfs", "ffs", image, "--size", "8M"]));
    }
    let mnt = d.path().join("mnt");
    fs::create_dir(&mnt).expect("a directory");
    (d, mnt)
}

/// While one thread unmounted, the clean-up did so as well, and took what the user had mounted below.
#[test]
fn what_is_mounted_below_stays_when_a_second_signal_comes_at_the_unmounting() {
    if !need(Need::Tool(Tool::Strace)) || !need(Need::Fuse) {
        return;
    }
    let (d, mnt) = with_images(&["disk.img"]);
    let there = Mounts(&mnt);
    there.mount_tmpfs();
    fs::write(mnt.join("precious"), "precious").expect("a new file");
    let held_up = HeldUp::start(d.path(), &["mount", "--foreground", "disk.img", "mnt"], ("umount2", 1, 500));
    until("it is mounted", || there.types().len() == 2);
    held_up.signals(1);
    assert!(held_up.is_at_it());
    held_up.signals(1);
    let (Output { status, stderr, .. }, journals) = held_up.ends();
    let messages = String::from_utf8_lossy(&stderr);
    assert!(status.success(), "{status}: {messages}");
    assert_eq!(there.types(), ["tmpfs"], "{messages}");
    assert!(journals.is_empty(), "{journals:?}: {messages}");
    assert_eq!(fs::read_to_string(mnt.join("precious")).expect("there"), "precious");
    succeeds(&run(d.path(), &["fsck", "disk.img"]));
}

/// A run that was killed before it had mounted anything was taken for the one whose mount is there.
#[test]
fn a_mount_that_was_never_made_is_not_looked_for_at_anothers() {
    if !need(Need::Tool(Tool::Strace)) || !need(Need::Fuse) {
        return;
    }
    let (d, mnt) = with_images(&["a.img", "b.img"]);
    let there = Mounts(&mnt);
    succeeds(&run(d.path(), &["mount", "a.img", "mnt"]));
    fs::write(mnt.join("precious"), "precious").expect("a new file");
    let held_up = HeldUp::start(d.path(), &["mount", "--foreground", "b.img", "mnt"], ("mount", 1, 3_600_000));
    assert!(held_up.is_at_it());
    let state = held_up.elsewhere.path().to_owned();
    let tracer = held_up.tracer();
    held_up.running.signal("KILL");
    end(&tracer);
    held_up.ends();
    succeeds(&fsage().args(["drive", "list"]).env("XDG_STATE_HOME", state).output().expect("the binary runs"));
    assert_eq!(there.types(), ["fuse.fsage"]);
    assert_eq!(fs::read_to_string(mnt.join("precious")).expect("there"), "precious");
    succeeds(&umount(d.path(), &["mnt"]));
}

/// A server whose mount had been taken away unmounted what was mounted there next: it had the same number.
#[test]
fn a_server_leaves_what_is_mounted_after_it_alone() {
    if !need(Need::Fuse) {
        return;
    }
    let (d, mnt) = with_images(&["a.img", "b.img"]);
    let there = Mounts(&mnt);
    // Others that mount something at the same time may get the number.
    let is_tested = (0..20).any(|_| {
        let server = there.serve(d.path(), "a.img", Stdio::piped());
        let number = || fs::metadata(&mnt).expect("there").dev();
        let first = number();
        server.signal("STOP");
        rustix::mount::unmount(&mnt, rustix::mount::UnmountFlags::DETACH).expect("unmounted");
        succeeds(&run(d.path(), &["mount", "b.img", "mnt"]));
        let is_same = number() == first;
        server.signal("CONT");
        succeeds(&server.output());
        assert_eq!(there.types(), ["fuse.fsage"]);
        succeeds(&umount(d.path(), &["mnt"]));
        succeeds(&run(d.path(), &["fsck", "a.img"]));
        is_same
    });
    assert!(is_tested, "the number of a mount that has gone is used again");
}

/// A pipe that nobody reads, and that takes no more.
fn unread() -> (std::io::PipeReader, std::io::PipeWriter) {
    let (reader, mut full) = std::io::pipe().expect("a pipe");
    rustix::io::ioctl_fionbio(&full, true).expect("a pipe");
    while full.write(&[0; 4096]).is_ok() {}
    rustix::io::ioctl_fionbio(&full, false).expect("a pipe");
    (reader, full)
}

/// Whoever reads no messages held the end up for ever.
#[test]
fn a_reader_that_does_not_read_holds_no_end_up() {
    let d = tempfile::tempdir().expect("a directory");
    long_workload(&d.path().join("w.workload"), 20_000);
    let (_errors, full) = unread();
    let (output, results) = std::io::pipe().expect("a pipe");
    let mut command = testkit::process::with_default_signals(env!("CARGO_BIN_EXE_fsage"));
    command.args(["inspect", "w.workload", "--rows", "--count", "20000"]).current_dir(d.path()).stdin(Stdio::null());
    let running = Running::start(command.stdout(results).stderr(full));
    // It writes what nobody reads.
    until("there are results", || rustix::io::ioctl_fionread(&output).expect("a pipe") > 0);
    running.signal("TERM");
    assert_eq!(running.ends().code(), Some(143));
}

/// A server waited for whoever was to read that it is still in use, and never wrote what was in its memory.
#[test]
fn a_reader_that_does_not_read_keeps_nothing_from_being_written() {
    if !need(Need::Fuse) {
        return;
    }
    let (d, mnt) = with_images(&["disk.img"]);
    let there = Mounts(&mnt);
    let (_errors, full) = unread();
    let server = there.serve(d.path(), "disk.img", full.into());
    fs::write(mnt.join("precious"), vec![7; 2_000_000]).expect("a new file");
    let in_use = fs::File::open(mnt.join("precious")).expect("there");
    server.signal("TERM");
    assert!(server.ends().success());
    drop(in_use);
    succeeds(&run(d.path(), &["fsck", "disk.img"]));
    succeeds(&run(d.path(), &["cp", "disk.img:/precious", "copy"]));
    assert!(fs::read(d.path().join("copy")).expect("there") == vec![7; 2_000_000]);
}

/// A server that was stopped, with half a file of a killed run in its mount, held up whatever was run next.
#[test]
fn a_server_that_is_stopped_holds_no_run_up() {
    if !need(Need::Fuse) || !need(Need::Mount) {
        return;
    }
    let d = tempfile::tempdir().expect("a directory");
    let script = r#"
        "$1" mkfs ffs a.img --size 128M && mkdir mnt && ln -s mnt link || exit 10
        "$1" mount --foreground a.img mnt & server=$!
        until mountpoint -q mnt; do kill -0 $server || exit 9; sleep 0.05; done
        for round in $(seq 50); do
            "$1" mkfs ffs link/x.img --size 64M & run=$!
            until ls -A mnt | grep -q x.img; do :; done
            kill -KILL $run; wait $run
            ls -A mnt | grep -q 'x.img.*tmp' && break
            rm -f mnt/x.img
        done
        kill -STOP $server
        timeout -s KILL 60 "$1" drive list >list 2>err || exit 11
        grep 'gives no answer' err || exit 12
        kill -CONT $server
        "$1" drive list >list 2>err || exit 13
        ls -A mnt | grep x.img && exit 14
        kill -TERM $server; wait $server || exit 15
    "#;
    apart(d.path(), script);
    succeeds(&run(d.path(), &["fsck", "a.img"]));
}

/// An image that was to be kept had its name before a file system was in it, and no run removed it.
#[test]
fn an_image_that_is_to_be_kept_has_its_name_once_a_file_system_is_in_it() {
    if !need(Need::Tool(Tool::Strace)) || !need(Need::LoopDevices) {
        return;
    }
    let d = tempfile::tempdir().expect("a directory");
    let plan = ["plan", "personality", "home", "--capacity", "1G", "--days", "2", "-o", "plan.aging"];
    succeeds(&run(d.path(), &plan));
    let args = ["age", "ext4:1G", "--plan", "plan.aging", "--keep", "aged.img"];
    let held_up = HeldUp::start(d.path(), &args, ("fallocate", 1, 2_000));
    until("the image is made", || names(d.path()).iter().any(|name| name.contains("aged.img")));
    assert!(held_up.is_at_it());
    held_up.signals(2);
    let (Output { status, stderr, .. }, journals) = held_up.ends();
    assert_eq!(status.code(), Some(143), "{}", String::from_utf8_lossy(&stderr));
    assert_eq!((names(d.path()), journals), (vec!["plan.aging".to_owned()], Vec::new()));
}

/// What is mounted on a directory. Goes with this.
struct Mounts<'a>(&'a Path);

impl Mounts<'_> {
    fn mount_tmpfs(&self) {
        let mounted = Command::new("mount").args(["-t", "tmpfs", "tmpfs"]).arg(self.0).status();
        assert!(mounted.expect("mount(8) runs").success());
    }

    /// A server in the foreground, once it is mounted.
    fn serve(&self, directory: &Path, image: &str, messages: Stdio) -> Running {
        let mut command = testkit::process::with_default_signals(env!("CARGO_BIN_EXE_fsage"));
        command.args(["mount", "--foreground", image, "mnt"]).current_dir(directory);
        let server = Running::start(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(messages));
        until("it is mounted", || self.types().len() == 1);
        server
    }

    /// The types of what is mounted there, the lowest first.
    fn types(&self) -> Vec<String> {
        let mounts = fs::read_to_string("/proc/self/mounts").expect("mounts");
        let fields = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        fields.filter(|fields| fields[1] == self.0.to_string_lossy()).map(|fields| fields[2].to_owned()).collect()
    }
}

impl Drop for Mounts<'_> {
    fn drop(&mut self) {
        for _ in self.types() {
            let _ = Command::new("umount").arg("-l").arg(self.0).status();
        }
    }
}
