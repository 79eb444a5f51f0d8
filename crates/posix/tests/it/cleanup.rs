//! Nothing is left behind: a helper program is stopped in the middle of a run in every way there is, and then mounts,
//! loop devices, files and journals are looked at.

use crate::common::can_make_scratch;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use testkit::{Need, Tool};

const HELPER: &str = env!("CARGO_BIN_EXE_work_until_stopped");
const PATIENCE: Duration = Duration::from_secs(60);

/// A directory of the test's own, where the helper's image and private directories go.
struct Place {
    dir: tempfile::TempDir,
}

struct Running {
    child: Child,
    /// The private directory, as the helper says.
    private: PathBuf,
    /// Its loop device and what that is attached to, if it has one.
    attached: Option<(String, Vec<u8>)>,
}

impl Place {
    fn new() -> Place {
        Place { dir: tempfile::tempdir_in("/var/tmp").unwrap() }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = testkit::process::with_default_signals(HELPER);
        command.args(arguments).env("TMPDIR", self.dir.path()).env("XDG_STATE_HOME", self.dir.path().join("state"));
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Starts a run and waits until it is in its middle.
    fn start(&self, target: &str, how: &str) -> Running {
        let mut child = self.command(&[target, how]).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert!(!line.is_empty(), "{target}: {}", output(child));
        let attached = loop_device_of(child.id());
        std::thread::sleep(Duration::from_millis(100));
        Running { child, private: PathBuf::from(line.trim_end()), attached }
    }

    fn sweep(&self) -> String {
        let output = self.command(&["sweep"]).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Looks everywhere; `pid` is the helper that has ended.
    fn assert_nothing_left(&self, pid: u32, attached: Option<&(String, Vec<u8>)>, what: &str) {
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        let here = self.dir.path().to_str().unwrap();
        assert!(!mounts.contains(here), "{what}: still mounted:\n{mounts}");
        if let Some((name, backing)) = attached {
            let start = Instant::now();
            while backing_file(name).as_ref() == Some(backing) {
                assert!(start.elapsed() < PATIENCE, "{what}: {name} is still attached");
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        let left: Vec<_> = std::fs::read_dir(self.dir.path()).unwrap().map(|e| e.unwrap().path()).collect();
        let left: Vec<_> = left.into_iter().filter(|p| !p.ends_with("state")).collect();
        assert!(left.is_empty(), "{what}: left behind: {left:?}");
        for state in [self.dir.path().join("state/fsage"), PathBuf::from("/run/fsage")] {
            let journals = std::fs::read_dir(state).into_iter().flatten().flatten();
            let prefix = format!("{pid}-");
            for journal in journals {
                assert!(!journal.file_name().to_string_lossy().starts_with(&prefix), "{what}: {journal:?}");
            }
        }
    }
}

impl Running {
    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Waits for the end; answers the exit code or 128 + signal.
    fn wait(&mut self) -> i32 {
        use std::os::unix::process::ExitStatusExt;
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code().or(status.signal().map(|s| 128 + s)).unwrap();
            }
            if start.elapsed() > PATIENCE {
                self.child.kill().unwrap();
                panic!("the helper does not end");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn output(child: Child) -> String {
    let output = child.wait_with_output().unwrap();
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn backing_file(name: &str) -> Option<Vec<u8>> {
    std::fs::read(format!("/sys/block/{name}/loop/backing_file")).ok()
}

fn loop_device_of(pid: u32) -> Option<(String, Vec<u8>)> {
    let links = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    links.flatten().find_map(|link| {
        let to = std::fs::read_link(link.path()).ok()?;
        let name =
            to.to_str()?.strip_prefix("/dev/").filter(|n| n.starts_with("loop") && !n.contains('-'))?.to_string();
        let backing = backing_file(&name)?;
        Some((name, backing))
    })
}

/// Every way to stop, on one target. `directory`: the target is a directory below the place.
fn stop_in_every_way(target: &str, directory: bool) {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129), (Signal::KILL, 137)] {
        let place = Place::new();
        let at = if directory { place.dir.path().to_str().unwrap().to_string() } else { target.to_string() };
        let what = format!("{at}, {signal:?}");
        let mut running = place.start(&at, "");
        let pid = running.child.id();
        assert_eq!(running.attached.is_some(), !directory, "{what}");
        assert_eq!(running.private.starts_with(place.dir.path()), directory, "{what}: {:?}", running.private);
        running.signal(signal);
        assert_eq!(running.wait(), code, "{what}");
        if signal == Signal::KILL {
            if directory {
                assert!(running.private.exists(), "{what}: nobody can have removed it yet");
            } else {
                place.assert_nothing_left(pid, running.attached.as_ref(), &format!("{what}, before the sweep"));
            }
            place.sweep();
        }
        place.assert_nothing_left(pid, running.attached.as_ref(), &what);
    }
    for (how, code) in [("panic", 101), ("finish", 0)] {
        let place = Place::new();
        let at = if directory { place.dir.path().to_str().unwrap().to_string() } else { target.to_string() };
        let mut running = place.start(&at, how);
        assert_eq!(running.wait(), code, "{at}, {how}");
        place.assert_nothing_left(running.child.id(), running.attached.as_ref(), &format!("{at}, {how}"));
    }
    let place = Place::new();
    let at = if directory { place.dir.path().to_str().unwrap().to_string() } else { target.to_string() };
    let mut running = place.start(&at, "stubborn");
    running.signal(Signal::INT);
    std::thread::sleep(Duration::from_millis(200));
    assert!(running.child.try_wait().unwrap().is_none(), "{at}: the first signal only asks");
    running.signal(Signal::TERM);
    assert_eq!(running.wait(), 143, "{at}: the second one insists");
    place.assert_nothing_left(running.child.id(), running.attached.as_ref(), &format!("{at}, stubborn"));
}

#[test]
fn concurrent_processes_end_on_a_signal() {
    let place = Place::new();
    let mut running = place.start(place.dir.path().to_str().unwrap(), "crowd");
    running.signal(Signal::TERM);
    assert_eq!(running.wait(), 143);
    place.assert_nothing_left(running.child.id(), None, "crowd");
}

#[test]
fn a_directory_is_left_clean() {
    stop_in_every_way("", true);
}

#[test]
fn ext4_is_left_clean() {
    if can_make_scratch("ext4:64M") {
        stop_in_every_way("ext4:64M", false);
    }
}

#[test]
fn ext4_in_memory_is_left_clean() {
    if can_make_scratch("ext4:64M,backing=ram") {
        stop_in_every_way("ext4:64M,backing=ram", false);
    }
}

#[test]
fn xfs_is_left_clean() {
    if can_make_scratch("xfs:300M") {
        stop_in_every_way("xfs:300M", false);
    }
}

#[test]
fn btrfs_is_left_clean() {
    if can_make_scratch("btrfs:160M") {
        stop_in_every_way("btrfs:160M", false);
    }
}

/// Killed at any moment of the setting up, not only in the middle of the run.
#[test]
fn a_kill_during_set_up_is_swept_up() {
    if !can_make_scratch("ext4:64M") {
        return;
    }
    for delay_ms in [0, 1, 2, 4, 7, 11, 16, 25, 40, 60, 90] {
        let place = Place::new();
        let mut child = place.command(&["ext4:64M", ""]).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(delay_ms));
        let attached = loop_device_of(child.id());
        child.kill().unwrap();
        let pid = child.id();
        child.wait().unwrap();
        // mkfs, which is not ours to kill, may hold the device a little longer.
        std::thread::sleep(Duration::from_millis(50));
        place.sweep();
        place.assert_nothing_left(pid, attached.as_ref(), &format!("killed after {delay_ms} ms"));
    }
}

/// A signal during the set-up needs no sweep.
#[test]
fn a_signal_during_set_up_leaves_nothing() {
    if !can_make_scratch("xfs:300M") {
        return;
    }
    for delay_ms in [5, 10, 20, 40, 80, 160] {
        let place = Place::new();
        let child = place.command(&["xfs:300M", ""]).spawn().unwrap();
        let mut running = Running { child, private: PathBuf::new(), attached: None };
        std::thread::sleep(Duration::from_millis(delay_ms));
        let attached = loop_device_of(running.child.id());
        running.signal(Signal::TERM);
        assert_eq!(running.wait(), 143, "after {delay_ms} ms");
        place.assert_nothing_left(running.child.id(), attached.as_ref(), &format!("SIGTERM after {delay_ms} ms"));
    }
}

#[test]
fn a_sweep_leaves_the_living_alone() {
    let place = Place::new();
    let mut running = place.start(place.dir.path().to_str().unwrap(), "");
    assert!(!place.sweep().contains(place.dir.path().to_str().unwrap()));
    assert!(running.private.exists());
    running.signal(Signal::INT);
    assert_eq!(running.wait(), 130);
}

/// A sweep in a container (a process number namespace of its own) that shares the list of what was made took the living
/// for dead, as it does not see their numbers.
#[test]
fn a_sweep_in_a_container_leaves_the_living_alone() {
    let mut unshare = vec!["unshare", "--pid", "--fork", "--mount-proc"];
    if !is_root() {
        unshare.insert(1, "--map-current-user");
    }
    let can = Command::new(unshare[0]).args(&unshare[1..]).arg("true").output().unwrap();
    if !can.status.success() {
        return testkit::skip(String::from_utf8_lossy(&can.stderr));
    }
    let place = Place::new();
    let mut running = place.start(place.dir.path().to_str().unwrap(), "");
    let inside = || {
        let mut sweep = Command::new(unshare[0]);
        sweep.args(&unshare[1..]).args([HELPER, "sweep"]).env("XDG_STATE_HOME", place.dir.path().join("state"));
        String::from_utf8(sweep.output().unwrap().stdout).unwrap()
    };
    let here = place.dir.path().to_str().unwrap();
    assert!(!inside().contains(here));
    assert!(running.private.exists());
    // In an overlay of the directory with the list, the lock beside it is another.
    let state = if is_root() { PathBuf::from("/run/fsage") } else { place.dir.path().join("state/fsage") };
    let prefix = format!("{}-", running.child.id());
    let locks = std::fs::read_dir(state).unwrap().map(|entry| entry.unwrap().path()).filter(|path| {
        path.extension().is_some_and(|e| e == "lock")
            && path.file_name().unwrap().to_string_lossy().starts_with(&prefix)
    });
    assert_eq!(locks.map(|lock| std::fs::remove_file(lock).unwrap()).count(), 1);
    assert!(!inside().contains(here));
    assert!(running.private.exists());
    running.signal(Signal::KILL);
    assert_eq!(running.wait(), 128 + 9);
    assert!(running.private.exists());
    inside();
    assert!(!running.private.exists());
    place.assert_nothing_left(running.child.id(), None, "killed, and swept in a container");
}

/// What was beside its place when a run was killed stayed there for ever, and so did what was in TMPDIR.
#[test]
fn files_on_their_way_are_swept() {
    let place = Place::new();
    let mut running = place.start(place.dir.path().to_str().unwrap(), "output");
    assert!(!place.sweep().contains("result"), "of the living");
    assert!(running.private.exists());
    running.signal(Signal::KILL);
    assert_eq!(running.wait(), 128 + 9);
    assert!(running.private.exists());
    assert_eq!(std::fs::read_dir(place.dir.path()).unwrap().count(), 3 - usize::from(is_root()));
    let said = place.sweep();
    assert!(is_root() || said.contains("result"), "{said}");
    place.assert_nothing_left(running.child.id(), None, "a killed output");
    let mut running = place.start(place.dir.path().to_str().unwrap(), "output");
    running.signal(Signal::TERM);
    running.wait();
    place.assert_nothing_left(running.child.id(), None, "an output that was given up");
}

/// A directory that could not be removed was struck off the list, and stayed for ever.
#[test]
fn what_could_not_be_removed_is_swept_later() {
    if !testkit::need(testkit::Need::Root) {
        return;
    }
    let place = Place::new();
    let mut running = place.start(place.dir.path().to_str().unwrap(), "mounted");
    let code = running.wait();
    if code == 1 {
        return testkit::skip(format!("cannot mount here: {}", output(running.child)));
    }
    let point = running.private.join("point");
    assert!(point.exists(), "something is mounted there");
    testkit::unmount(&point);
    assert_eq!(code, 3);
    place.sweep();
    place.assert_nothing_left(running.child.id(), None, "swept once nothing was in the way");
}

/// What was in deep directories stayed there where a process may have few descriptors: the clean-up held 64.
#[test]
fn deep_directories_go_with_few_descriptors() {
    let place = Place::new();
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 24 && exec \"$0\" \"$@\"", HELPER, place.dir.path().to_str().unwrap(), "deep"]);
    let output = command.env("XDG_STATE_HOME", place.dir.path().join("state")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let left = std::fs::read_dir(place.dir.path()).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(left.filter(|name| name != "state").collect::<Vec<_>>(), Vec::<std::ffi::OsString>::new());
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[test]
fn keeping_keeps() {
    let place = Place::new();
    let mut running = place.start(place.dir.path().to_str().unwrap(), "keep");
    assert_eq!(running.wait(), 0);
    assert!(running.private.join("file7").exists());
    if !can_make_scratch("ext4:64M") {
        return;
    }
    let mut running = place.start("ext4:64M", "keep");
    assert_eq!(running.wait(), 0);
    assert!(running.private.join("file7").exists(), "{:?}", running.private);
    place.sweep();
    assert!(running.private.join("file7").exists(), "a sweep does not take what was kept");
    let point = running.private.parent().unwrap();
    testkit::unmount(point);
    let (name, backing) = running.attached.unwrap();
    let start = Instant::now();
    while backing_file(&name).as_ref() == Some(&backing) {
        assert!(start.elapsed() < PATIENCE, "{name} stays attached after the unmount");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(point.parent().unwrap().join("image").exists());
}

/// A journal that says otherwise does not make a sweep remove what is not ours.
#[test]
fn a_false_journal_removes_nothing() {
    let place = Place::new();
    let precious = place.dir.path().join("precious");
    std::fs::create_dir_all(place.dir.path().join("state/fsage")).unwrap();
    std::fs::create_dir(&precious).unwrap();
    let named_so = place.dir.path().join("fsage-0123456789abcdef");
    std::fs::create_dir(&named_so).unwrap();
    let entry = |path: &Path, ino: u64| format!(r#"{{"what":"directory","path":"{}","ino":{ino}}}"#, path.display());
    let file = |path: &Path, ino: u64| format!(r#"{{"what":"file","path":"{}","ino":{ino}}}"#, path.display());
    let (thesis, beside) = (place.dir.path().join("thesis"), place.dir.path().join(".a.0123456789abcdef.tmp"));
    std::fs::write(&thesis, "all of it").unwrap();
    std::fs::write(&beside, "of somebody else").unwrap();
    let ino = std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(&thesis).unwrap());
    let mount = r#"{"what":"mount","point":"/"}"#.to_string();
    let entries =
        [entry(&precious, 1), entry(&named_so, 1), mount, file(&thesis, ino), file(&beside, 1), file(&named_so, 1)];
    let entries = entries.join(",");
    let journal = format!(r#"{{"version":1,"pid":1,"start_ticks":1,"boot":"x","resources":[{entries}]}}"#);
    std::fs::write(place.dir.path().join("state/fsage/1-1.json"), journal).unwrap();
    let said = if is_root() {
        // As root the journals of all runs are in /run/fsage, where a test does not meddle: nobody sweeps.
        if !testkit::need(Need::Tool(Tool::Setpriv)) {
            return;
        }
        let helper = tempfile::tempdir_in("/var/tmp").unwrap();
        std::fs::set_permissions(helper.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        testkit::process::copy_program(HELPER, helper.path().join("helper"));
        let given = Command::new("chown").args(["-R", "65534:65534"]).arg(place.dir.path()).status().unwrap();
        assert!(given.success());
        let mut nobody = Command::new("setpriv");
        nobody.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"]).arg(helper.path().join("helper"));
        nobody.arg("sweep").env("TMPDIR", place.dir.path()).env("XDG_STATE_HOME", place.dir.path().join("state"));
        String::from_utf8_lossy(&nobody.env_remove("XDG_RUNTIME_DIR").output().unwrap().stdout).into_owned()
    } else {
        place.sweep()
    };
    assert_eq!(said.matches("trouble:").count(), 6, "{said}");
    assert!(precious.exists() && named_so.exists() && thesis.exists() && beside.exists());
}
