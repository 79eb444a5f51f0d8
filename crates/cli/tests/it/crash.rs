//! `fsage crash`: verdicts, a failure that is made again by the command that is printed, recordings, and signals.

use crate::common::{code, names, run, small_workload, stderr, succeeds};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::process::Stdio;
use std::time::{Duration, Instant};

#[test]
fn conventional_updates_are_repaired() {
    let d = tempfile::tempdir().unwrap();
    let args = ["crash", "ffs:conventional,size=1M", "--states", "300", "--json", "--html", "c.html"];
    let value: Value = serde_json::from_str(&succeeds(&run(d.path(), &args))).unwrap();
    assert_eq!(value["schema"], "fsage.crash/1");
    assert!(value["tally"]["states"].as_u64().unwrap() >= 300, "{}", value["tally"]);
    assert!(value["tally"]["by_class"]["repaired"].as_u64().unwrap() > 0, "{}", value["tally"]);
    assert_eq!(value["failures"].as_array().unwrap().len(), 0);
    assert!(std::fs::read_to_string(d.path().join("c.html")).unwrap().trim_end().ends_with("</html>"));
    assert_eq!(names(d.path()), ["c.html"], "nothing else is left");
}

#[test]
fn a_failure_is_made_again_by_the_command_that_is_printed() {
    let d = tempfile::tempdir().unwrap();
    let output = run(d.path(), &["crash", "ffs:noorder,size=1M", "--states", "1000", "--seed", "7"]);
    assert_eq!(code(&output), 1, "{}", stderr(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    let again = text.lines().find_map(|line| line.strip_prefix("    fsage crash ")).expect("the command");
    let output = std::process::Command::new("sh")
        .args(["-c", &format!("exec \"$0\" crash {again} --image crashed.img"), env!("CARGO_BIN_EXE_fsage")])
        .current_dir(d.path())
        .output()
        .unwrap();
    assert_eq!(code(&output), 1, "{again}: {}", stderr(&output));
    let said = |text: &str| text.lines().filter(|line| line.contains("(inode ")).map(str::to_owned).collect::<Vec<_>>();
    let (first, second) = (said(&text), said(&String::from_utf8(output.stdout).unwrap()));
    assert!(second.iter().all(|line| first.contains(line)), "{second:?} of {first:?}");
    // The image is of the moment after the power failed: the check has something to say, or the mark of an unclean
    // unmount.
    assert!(std::fs::metadata(d.path().join("crashed.img")).unwrap().len() >= 1 << 20);
}

#[test]
fn a_recording_is_crashed() {
    let d = tempfile::tempdir().unwrap();
    small_workload(d.path());
    let args = ["crash", "lfs:size=32M,order=barrier", "--workload", "small.workload", "--states", "40", "--json"];
    let value: Value = serde_json::from_str(&succeeds(&run(d.path(), &args))).unwrap();
    assert!(value["tally"]["states"].as_u64().unwrap() >= 20, "{}", value["tally"]);
}

#[test]
fn what_is_refused_names_what_is_wrong() {
    let d = tempfile::tempdir().unwrap();
    for (args, named) in
        [(["ffs:noorder,size=1M", "--ops", "explode a"], "explode"), (["ext4:1G", "--seed", "1"], "ext4")]
    {
        let output = run(d.path(), &[&["crash"][..], &args].concat());
        assert!(code(&output) == 2 && stderr(&output).contains(named), "{}", stderr(&output));
    }
}

/// Memory was asked for as much as an operation said, and the program aborted.
#[test]
fn a_write_of_more_than_there_is_takes_no_memory() {
    let d = tempfile::tempdir().unwrap();
    let ops = "write a 0 9223372036854775807; fsync a";
    let args = ["crash", "ffs:size=256K", "--states", "20", "--ops", ops, "--json"];
    let value: Value = serde_json::from_str(&succeeds(&run(d.path(), &args))).unwrap();
    assert!(value["tally"]["states"].as_u64().unwrap() > 0, "{}", value["tally"]);
}

#[test]
fn a_signal_ends_it() {
    let d = tempfile::tempdir().unwrap();
    let args = ["crash", "ffs:noorder,size=1M", "--states", "1000000"];
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_fsage"));
    let child = command.args(args).current_dir(d.path()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    std::thread::sleep(Duration::from_secs(2));
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let began = Instant::now();
    let output = child.wait_with_output().unwrap();
    assert!(matches!(code(&output), 130 | 143), "{output:?}");
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    assert_eq!(names(d.path()), [""; 0]);
}

#[test]
fn options_that_would_do_nothing_are_refused() {
    let d = tempfile::tempdir().unwrap();
    let target = ["crash", "ffs:noorder,size=1M", "--ops", "create a"];
    for more in [&["--longest", "3"][..], &["--state", "0.1", "--states", "10"]] {
        let output = run(d.path(), &[&target[..], more].concat());
        assert_eq!(code(&output), 2, "{}", stderr(&output));
        assert!(stderr(&output).contains("cannot be used with"), "{}", stderr(&output));
    }
}

/// It was said not to be found.
#[test]
fn a_file_that_is_no_workload_is_named_with_what_is_expected() {
    let d = tempfile::tempdir().unwrap();
    std::fs::write(d.path().join("text"), "not a recording").unwrap();
    for args in [&["crash", "ffs:size=1M", "--workload", "text"][..], &["replay", "text", "ffs:size=16M"]] {
        let output = run(d.path(), args);
        let said = stderr(&output);
        assert!(
            code(&output) == 4 && said.contains("text: is a file") && !said.contains("not found"),
            "{args:?}: {said}"
        );
        assert!(said.contains("a directory NAME.workload made by fsage record or fsage import"), "{args:?}: {said}");
    }
}

/// It was told that a snapshot cannot be taken.
#[test]
fn a_log_is_no_matter_for_the_check_in_the_background() {
    let d = tempfile::tempdir().unwrap();
    for (n, target) in ["ffs:journal=async,size=4M", "ffs:softdep+j,size=4M"].into_iter().enumerate() {
        let image = format!("{n}.img");
        let crash = [
            "crash",
            target,
            "--ops",
            "create a; write a 0 9000; fsync a; unlink a",
            "--state",
            "3.1",
            "--image",
            &image,
        ];
        succeeds(&run(d.path(), &crash));
        for checked in [image.clone(), format!("ffs:softdep,image={image}")] {
            let refused = run(d.path(), &["fsck", &checked, "--background"]);
            let said = stderr(&refused);
            assert_eq!(code(&refused), 4, "{said}");
            assert!(
                said.contains(&image)
                    && said.contains("has a log (/.fsjournal)")
                    && said.contains("--repair --in-place"),
                "{said}"
            );
        }
    }
}

/// What a crash of Soft Updates has left is given back in the background: of an image, and of a target in virtual time.
#[test]
fn a_check_in_the_background_gives_back_what_a_crash_has_left() {
    let d = tempfile::tempdir().unwrap();
    let ops = "create b; write b 0 60000; mkdir e; create e/c; unlink a; rename d e/d; wait 5000";
    let mut given_back = 0;
    for moment in 4..14 {
        let (state, image) = (format!("{moment}.1"), format!("{moment}.img"));
        let crash = ["crash", "ffs:softdep,root,size=1M", "--ops", ops, "--state", &state, "--image", &image];
        if run(d.path(), &crash).status.code() != Some(0) {
            break; // There are no more moments.
        }
        let target = format!("ffs:softdep,image={image}");
        let timed = run(d.path(), &["fsck", &target, "--background", "--json"]);
        let checked = run(d.path(), &["fsck", &image, "--background", "--json"]);
        let json = |output: &std::process::Output| -> Value { serde_json::from_slice(&output.stdout).unwrap() };
        let (timed_is, is) = (json(&timed), json(&checked));
        assert_eq!((&is["schema"], &timed_is["schema"]), (&"fsage.fsck-background/1".into(), &is["schema"]));
        assert_eq!(is["left"], timed_is["left"], "the same in virtual time");
        let times = &timed_is["virtual_time"];
        let ns = |name: &str| times[name].as_u64().unwrap();
        assert!(0 < ns("usable_ns") && ns("usable_ns") < ns("ended_ns"), "{times}");
        let left: u64 = is["left"].as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum();
        assert_eq!((code(&checked), code(&timed)), if left > 0 { (1, 1) } else { (0, 0) }, "{}", is["left"]);
        given_back += left;
        succeeds(&run(d.path(), &["fsck", &image]));
        assert_eq!(code(&run(d.path(), &["fsck", &image, "--background"])), 0);
    }
    assert!(given_back > 0);
    // Another mode's image has no such promise.
    let crash = ["crash", "ffs:noorder,root,size=1M", "--ops", ops, "--state", "5.1", "--image", "noorder.img"];
    run(d.path(), &crash);
    let refused = run(d.path(), &["fsck", "noorder.img", "--background"]);
    assert!(code(&refused) == 4 && stderr(&refused).contains("not unmounted cleanly"), "{}", stderr(&refused));
}
