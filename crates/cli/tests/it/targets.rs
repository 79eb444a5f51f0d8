//! Targets that fail, and what is left behind: nothing.

use crate::common::{code, fails, fsage, names, run, small_workload, stderr};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use testkit::Need;
use testkit::process::Running;

/// A tmpfs mounted for a test, unmounted at its end.
struct Tmpfs(tempfile::TempDir);

impl Tmpfs {
    fn mount(options: &str) -> Tmpfs {
        let d = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", options, "fsage-test"]).arg(d.path()).status();
        assert!(mounted.unwrap().success());
        Tmpfs(d)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

#[test]
fn a_target_that_is_not_there_or_no_directory() {
    let d = tempfile::tempdir().unwrap();
    fs::write(d.path().join("file"), "x").unwrap();
    fails(&run(d.path(), &["measure", "./absent"]), 2, &["absent"]);
    fails(&run(d.path(), &["measure", "./file"]), 2, &["file", "directory"]);
}

#[test]
fn a_full_target_is_refused_before_anything_is_done() {
    if !testkit::need(Need::Root) {
        return;
    }
    let small = Tmpfs::mount("size=8m");
    let d = tempfile::tempdir().unwrap();
    let target = small.path().to_str().unwrap();
    fails(&run(d.path(), &["measure", target]), 3, &[target, "free"]);
    assert_eq!(names(small.path()), [""; 0]);
    assert_eq!(names(d.path()), [""; 0], "no profile is written");
}

#[test]
fn a_read_only_target_is_refused() {
    if !testkit::need(Need::Root) {
        return;
    }
    let read_only = Tmpfs::mount("ro,size=1g");
    let d = tempfile::tempdir().unwrap();
    small_workload(d.path());
    let target = read_only.path().to_str().unwrap();
    fails(&run(d.path(), &["measure", target]), 3, &[target, "read-only"]);
    fails(&run(d.path(), &["replay", "small.workload", target]), 3, &[target, "read-only"]);
}

#[test]
fn a_scratch_target_needs_root_and_says_so() {
    if !testkit::need(Need::Root) {
        return;
    }
    // A copy that nobody may run: the build's own directories may be closed.
    let d = tempfile::tempdir().unwrap();
    fs::set_permissions(d.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let copy = d.path().join("fsage");
    testkit::process::copy_program(env!("CARGO_BIN_EXE_fsage"), &copy);
    let output = Command::new(&copy)
        .args(["measure", "ext4:1G", "-o", "/dev/null"])
        .current_dir("/")
        .uid(65534)
        .gid(65534)
        .output()
        .unwrap();
    fails(&output, 3, &["ext4:1G", "root"]);
}

#[test]
fn a_missing_tool_is_named() {
    if !testkit::need(Need::Root) {
        return;
    }
    let d = tempfile::tempdir().unwrap();
    let empty = tempfile::tempdir().unwrap();
    // In a mount namespace of its own, the administrators' directory is empty.
    let script = "mount --bind \"$1\" /usr/sbin && exec \"$2\" measure xfs:1G --budget 1s";
    let output = Command::new("unshare")
        .args(["-m", "sh", "-c", script, "sh"])
        .arg(empty.path())
        .arg(env!("CARGO_BIN_EXE_fsage"))
        .current_dir(d.path())
        .env("TMPDIR", d.path())
        .output();
    match output {
        Ok(output) if stderr(&output).starts_with("fsage: ") => {
            fails(&output, 3, &["mkfs.xfs", "xfsprogs"]);
            assert_eq!(names(d.path()), [""; 0]);
        }
        other => testkit::skip(format!("no mount namespace can be made: {other:?}")),
    }
}

#[test]
fn missing_strace_is_named() {
    let d = tempfile::tempdir().unwrap();
    let output = fsage()
        .current_dir(d.path())
        .env("PATH", d.path())
        .args(["record", "--with", "strace", "-o", "w.workload", "--", "/bin/true"])
        .output()
        .unwrap();
    fails(&output, 3, &["strace", "install"]);
    assert_eq!(names(d.path()), [""; 0]);
}

fn measuring(target: &str, tmp: &Path) -> Running {
    let mut command = testkit::process::with_default_signals(env!("CARGO_BIN_EXE_fsage"));
    command.args(["measure", target, "--budget", "60s", "-o", "x.system"]).current_dir(tmp).env("TMPDIR", tmp);
    Running::start(command.stdout(Stdio::null()).stderr(Stdio::piped()))
}

/// Waits until the process works in its private directory.
fn wait_until_working(run: &mut Running) {
    let fds = format!("/proc/{}/fd", run.pid());
    for _ in 0..6000 {
        let working = fs::read_dir(&fds).is_ok_and(|entries| {
            entries.flatten().any(|e| {
                fs::read_link(e.path()).is_ok_and(|to| {
                    to.to_string_lossy().matches("/d").count() > 0 && to.to_string_lossy().contains("fsage-")
                })
            })
        });
        if working {
            return;
        }
        assert!(run.child.try_wait().unwrap().is_none(), "the measurement ended by itself");
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("the measurement never began");
}

/// Loop devices whose backing file is below a directory.
fn loops_on(directory: &Path) -> Vec<String> {
    let Ok(devices) = fs::read_dir("/sys/block") else { return Vec::new() };
    devices
        .flatten()
        .filter_map(|d| fs::read_to_string(d.path().join("loop/backing_file")).ok())
        .filter(|file| Path::new(file.trim()).starts_with(directory))
        .collect()
}

#[test]
fn an_interrupt_during_a_measurement_leaves_nothing() {
    if !testkit::need(Need::Root) {
        return;
    }
    for (signal, expected) in [("INT", 130), ("TERM", 143)] {
        let d = tempfile::tempdir().unwrap();
        let mut run = measuring("ext4:1G", d.path());
        wait_until_working(&mut run);
        run.signal(signal);
        let output = run.output();
        assert_eq!(code(&output), expected, "{}", stderr(&output));
        assert!(stderr(&output).contains("interrupted"), "{}", stderr(&output));
        assert_eq!(names(d.path()), [""; 0], "neither image nor profile is left");
        assert_eq!(loops_on(d.path()), [""; 0], "no loop device is left");
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        assert!(!mounts.contains(d.path().to_str().unwrap()), "{mounts}");
    }
}

/// Interrupted while it was set up, a target that was to be kept stayed without a word, and the message said that it
/// was removed.
#[test]
fn what_is_kept_of_an_interrupted_run_is_named() {
    if !testkit::need(Need::LoopDevices) {
        return;
    }
    for after_ms in (40..500).step_by(40) {
        let d = tempfile::tempdir().unwrap();
        let mut command = testkit::process::with_default_signals(env!("CARGO_BIN_EXE_fsage"));
        command.args(["measure", "ext4:1G", "--keep", "-o", "x.system"]).current_dir(d.path()).env("TMPDIR", d.path());
        let run = Running::start(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
        std::thread::sleep(Duration::from_millis(after_ms));
        run.signal("TERM");
        let output = run.output();
        let said = stderr(&output);
        let kept: Vec<&Path> =
            said.lines().filter_map(|line| line.strip_prefix("fsage: kept ")).map(Path::new).collect();
        assert!(kept.len() <= 1 && kept.iter().all(|path| path.is_dir()), "{said}");
        for path in &kept {
            let point = path.parent().unwrap();
            testkit::unmount(point);
            fs::remove_dir_all(point.parent().unwrap()).unwrap();
        }
        assert_eq!(names(d.path()), [""; 0], "after {after_ms} ms: {said}");
        assert_eq!(loops_on(d.path()), [""; 0], "after {after_ms} ms: {said}");
    }
}

#[test]
fn a_target_that_vanishes_is_an_error_of_the_environment() {
    let d = tempfile::tempdir().unwrap();
    let target = d.path().join("target");
    fs::create_dir(&target).unwrap();
    let mut run = measuring("target", d.path());
    wait_until_working(&mut run);
    fs::remove_dir_all(&target).or_else(|_| fs::remove_dir_all(&target)).ok();
    let output = run.output();
    fails(&output, 3, &[]);
    assert!(!d.path().join("x.system").exists(), "no profile is made of half a measurement");
}
