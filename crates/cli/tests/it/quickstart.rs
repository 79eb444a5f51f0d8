//! `fsage quickstart` as an ordinary user meets it.

use crate::common;
use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::process::Stdio;
use testkit::process::{Running, copy_program, until, with_default_signals};
use testkit::{Need, Tool};

const NOBODY: u32 = 65534;

/// In the user namespace that keeps an ordinary user's replays inside their target, strace may trace nothing, and the
/// bundled recording took the place of what could not be recorded: for every ordinary user. What cannot be traced on
/// the way there is told apart by what `fsage record` says.
#[test]
fn an_ordinary_user_has_the_workload_recorded() {
    if !testkit::needs(&[Need::Root, Need::Tool(Tool::Strace)]) {
        return;
    }
    let d = tempfile::tempdir().expect("a directory");
    fs::set_permissions(d.path(), fs::Permissions::from_mode(0o755)).expect("a mode");
    let (copy, target, said) = (d.path().join("fsage"), d.path().join("target"), d.path().join("said"));
    copy_program(env!("CARGO_BIN_EXE_fsage"), &copy);
    fs::create_dir(&target).expect("a directory");
    chown(&target, Some(NOBODY), Some(NOBODY)).expect("root may");
    let as_nobody = |args: &[&str]| {
        let mut command = with_default_signals(&copy);
        command.args(args).current_dir(&target).uid(NOBODY).gid(NOBODY).stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(File::create(&said).expect("a new file"));
        command
    };
    let messages = || fs::read_to_string(&said).expect("text");
    if !as_nobody(&["record", "--with", "strace", "-o", "r.workload", "--", "true"]).status().expect("runs").success() {
        return testkit::skip(format!("an ordinary user cannot trace here: {}", messages()));
    }
    fs::remove_dir_all(target.join("r.workload")).expect("it was recorded");
    let mut running = Running::start(&mut as_nobody(&["quickstart"]));
    until("it measures", || {
        assert!(running.child.try_wait().expect("a child of ours").is_none(), "{}", messages());
        messages().contains("2 of 4")
    });
    running.signal("TERM");
    assert_eq!(running.ends().code(), Some(143), "{}", messages());
    assert!(messages().contains("recorded by strace") && !messages().contains("bundled recording:"), "{}", messages());
    assert_eq!(common::names(&target), [""; 0]);
}
