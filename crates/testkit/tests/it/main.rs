//! What becomes of a test that lacks something: these run themselves again, as `run-tests` and CI would.

use std::process::{Command, Output};

/// Set in the process that plays the test.
const PLAYED: &str = "FSAGE_TESTKIT_PLAYED";

fn play(test: &str, ci: bool, file: Option<&std::path::Path>) -> Output {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["--exact", test, "--nocapture"]).env(PLAYED, "1").env_remove("CI").env_remove(testkit::SKIPPED_FILE);
    if ci {
        command.env("CI", "true");
    }
    command.envs(file.map(|file| (testkit::SKIPPED_FILE, file))).output().expect("started")
}

fn played() -> bool {
    std::env::var_os(PLAYED).is_some()
}

#[test]
fn what_is_missing_is_written_down() {
    if played() {
        return testkit::skip("a reason\n of two lines");
    }
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("skipped");
    let output = play("what_is_missing_is_written_down", false, Some(&file));
    assert!(output.status.success(), "{output:?}");
    let written = std::fs::read_to_string(&file).expect("a file");
    assert_eq!(written, "fsage-testkit\twhat_is_missing_is_written_down\ta reason of two lines\n");
    assert!(play("what_is_missing_is_written_down", false, None).status.success(), "without such a file too");
}

#[test]
fn under_ci_nothing_is_skipped() {
    if played() {
        return testkit::skip("a reason");
    }
    let output = play("under_ci_nothing_is_skipped", true, None);
    assert!(!output.status.success(), "it passed without doing anything");
    assert!(String::from_utf8_lossy(&output.stderr).contains("nothing is skipped: a reason"), "{output:?}");
}

#[test]
fn a_file_that_cannot_be_written_fails_the_test() {
    if played() {
        return testkit::skip("a reason");
    }
    let nowhere = std::path::Path::new("/nonexistent/skipped");
    assert!(!play("a_file_that_cannot_be_written_fails_the_test", false, Some(nowhere)).status.success());
}

#[test]
fn an_ordinary_user_does_what_root_cannot() {
    if testkit::as_ordinary_user("an_ordinary_user_does_what_root_cannot") {
        let error = std::fs::write("/proc/sys/vm/drop_caches", "1").expect_err("root's alone");
        assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied);
    }
}

#[test]
fn an_end_that_an_interrupt_brings_comes_where_interrupts_are_ignored() {
    // A shell that ignores them starts a shell of ours.
    let mut command = testkit::process::with_default_signals("sh");
    command.args(["-c", "kill -s INT $$; exit 3"]);
    let line = format!("trap '' INT; exec {command:?}");
    let status = Command::new("sh").args(["-c", &line]).status().expect("sh");
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(2), "{status}");
}

#[test]
fn what_tests_need_is_installed_for_them() {
    let setup = testkit::fixture::path("../../../scripts/setup");
    let setup = std::fs::read_to_string(setup).expect("the script");
    for tool in testkit::Tool::ALL {
        let everywhere = ["util-linux", "bsdutils"].contains(&tool.package());
        assert!(everywhere || setup.contains(tool.package()), "{}: {}", tool.program(), tool.package());
    }
}

/// Copied by `std::fs::copy`, one run in some hundred was "text file busy" while other tests started programs.
#[test]
fn a_copied_program_runs_while_others_start() {
    let directory = tempfile::tempdir().expect("a directory");
    let over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !over.load(std::sync::atomic::Ordering::Relaxed) {
                    Command::new("true").status().expect("true(1)");
                }
            });
        }
        let failed = (0..200).find_map(|n| {
            let program = directory.path().join(format!("true{n}"));
            testkit::process::copy_program("/bin/true", &program);
            Command::new(program).status().err()
        });
        over.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(failed.is_none(), "{failed:?}");
    });
}
