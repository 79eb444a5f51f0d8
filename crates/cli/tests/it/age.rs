//! `fsage age` as its users meet it: kept trees, runs that are killed and gone on with, and what is refused.

use crate::aged::plans::{Shape, write};
use crate::aged::{Listing, planned, same, walked};
use aging::format::Reader;
use assert_cmd::cargo::cargo_bin_cmd;
use rand_core::{Rng, SeedableRng};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// A plan that is small against any disk.
fn plan(dir: &Path, shape: Shape) -> PathBuf {
    let path = dir.join("a.aging");
    write(&path, shape);
    path
}

/// Planned for a file system so large that control has nothing to do: what others write to the disk under the test
/// changes nothing about the tree.
fn small() -> Shape {
    let (capacity_bytes, share) = (1 << 40, 1.5e-5);
    Shape { operations: 6000, mean_bytes: 8192, named: true, capacity_bytes, share, ..Shape::default() }
}

fn fsage() -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("fsage"));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(bytes)))
}

/// The directory a run has kept.
fn kept(target: &Path) -> PathBuf {
    let mut found = std::fs::read_dir(target).unwrap().map(|e| e.unwrap().path());
    let path = found.next().expect("something is kept");
    assert_eq!(found.next(), None);
    path
}

fn aged(dir: &Path, plan: &Path, more: &[&str]) -> (Value, Listing) {
    let target = dir.join("whole");
    std::fs::create_dir(&target).unwrap();
    let out = fsage().args(["age", "--json", "--keep", "--plan"]).arg(plan).args(more).arg(&target).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    (json(&out.stdout), walked(&kept(&target)))
}

#[test]
fn a_directory_is_aged_and_kept_or_left_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let plan = plan(dir.path(), small());
    let (result, tree) = aged(dir.path(), &plan, &["--writers", "2"]);
    assert_eq!(result["schema"], "fsage.age/1");
    assert_eq!(result["counters"]["operations"], 6000);
    assert!(tree.len() > 100);
    let expected = planned(&Reader::open(&plan).unwrap());
    same(&tree, &expected, "two writers");

    let target = dir.path().join("clean");
    std::fs::create_dir(&target).unwrap();
    std::fs::write(target.join("mine"), "untouched").unwrap();
    let out = fsage().args(["age", "--plan"]).arg(&plan).arg(&target).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let left: Vec<_> = std::fs::read_dir(&target).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["mine"]);
}

#[test]
fn a_killed_run_goes_on_to_the_same_tree() {
    let dir = tempfile::tempdir().unwrap();
    let plan = plan(dir.path(), small());
    let (_, expected) = aged(dir.path(), &plan, &[]);
    let mut random = rand_xoshiro::Xoshiro256PlusPlus::seed_from_u64(5);
    let mut mended = 0;
    for round in 0..4 {
        let target = dir.path().join(format!("target-{round}"));
        let results = dir.path().join(format!("results-{round}"));
        std::fs::create_dir(&target).unwrap();
        let mut command = fsage();
        command.args(["age", "--json", "--keep", "--checkpoint-every", "700", "--survey-every", "10", "--writers"]);
        command
            .arg(if round % 2 == 0 { "1" } else { "3" })
            .arg("--plan")
            .arg(&plan)
            .arg("-o")
            .arg(&results)
            .arg(&target);
        let state = results.join("state.json");
        let mut kills = 0;
        let out = loop {
            let mut child = command.spawn().unwrap();
            // The third time it is let run.
            if kills < 3 {
                // A minute, on a machine that has much else to do.
                for _ in 0..30_000 {
                    if state.exists() || child.try_wait().unwrap().is_some() {
                        break;
                    }
                    std::thread::sleep(Duration::from_millis(2));
                }
                std::thread::sleep(Duration::from_millis(random.next_u64() % 150));
                let _ = child.kill();
                kills += 1;
            }
            let out = child.wait_with_output().unwrap();
            if out.status.success() {
                break out;
            }
            // Before the first checkpoint there is nothing to go on from.
            assert!(kills < 3 || state.exists(), "{}", String::from_utf8_lossy(&out.stderr));
            assert!(out.status.code().is_none(), "{}", String::from_utf8_lossy(&out.stderr));
            command = fsage();
            command.args(["age", "--json", "--resume"]).arg(&state);
        };
        let result = json(&out.stdout);
        assert_eq!(result["counters"]["operations"], 6000);
        if let Some(m) = result["mended"].as_object() {
            mended += m.values().map(|v| v.as_u64().unwrap()).sum::<u64>();
        }
        same(&walked(&kept(&target)), &expected, &format!("round {round}"));
        assert!(!state.exists() && results.join("manifest.json").exists() && results.join("report.html").exists());
    }
    println!("{mended} names and lengths were put right on resumptions");
}

#[test]
fn what_makes_no_sense_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let plan = plan(dir.path(), Shape { operations: 300, ..small() });
    let target = dir.path().to_str().unwrap();
    let plan = plan.to_str().unwrap();
    let nothing = dir.path().join("no.aging");
    for (code, args) in [
        (2, vec!["age", target]),
        (2, vec!["age", target, "--plan", plan, "--room", "0x"]),
        (2, vec!["age", target, "--plan", plan, "--keep", "file"]),
        (2, vec!["age", target, "--plan", plan, "--image", "file"]),
        (2, vec!["age", target, "--plan", plan, "--checkpoint-every", "10"]),
        (2, vec!["age", "ext4:64M", "--plan", plan, "--keep"]),
        (2, vec!["age", target, "--plan", plan, "--room", "900000T"]),
        (4, vec!["age", target, "--plan", nothing.to_str().unwrap()]),
        (4, vec!["age", target, "--plan", target]),
        (4, vec!["age", "--resume", plan]),
    ] {
        let out = fsage().args(&args).output().unwrap();
        assert_eq!(out.status.code(), Some(code), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
    }
    let left = std::fs::read_dir(dir.path()).unwrap().count();
    assert_eq!(left, 1, "only the plan");
}

#[test]
fn a_state_is_not_taken_for_another_plan_or_tree() {
    let dir = tempfile::tempdir().unwrap();
    let plan = plan(dir.path(), small());
    let target = dir.path().join("t");
    std::fs::create_dir(&target).unwrap();
    let results = dir.path().join("r");
    let state = results.join("state.json");
    let mut child = fsage()
        .args(["age", "--keep", "--checkpoint-every", "500", "--real-time", "200000", "--plan"])
        .arg(&plan)
        .arg("-o")
        .arg(&results)
        .arg(&target)
        .spawn()
        .unwrap();
    for _ in 0..3000 {
        if state.exists() || child.try_wait().unwrap().is_some() {
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(state.exists());
    // Somebody's file in the tree stops it, and is still there afterwards.
    let tree = kept(&target);
    std::fs::write(tree.join("precious"), "mine").unwrap();
    let out = fsage().args(["age", "--resume"]).arg(&state).output().unwrap();
    assert_eq!(out.status.code(), Some(3), "{}", String::from_utf8_lossy(&out.stderr));
    assert!(String::from_utf8_lossy(&out.stderr).contains("precious"));
    assert_eq!(std::fs::read_to_string(tree.join("precious")).unwrap(), "mine");
    // Another plan under the same name.
    write(&plan, Shape { seed: 9, ..small() });
    let out = fsage().args(["age", "--resume"]).arg(&state).output().unwrap();
    assert_eq!(out.status.code(), Some(4), "{}", String::from_utf8_lossy(&out.stderr));
    assert!(String::from_utf8_lossy(&out.stderr).contains("has changed"));
    cargo_bin_cmd!("fsage").args(["age", "--resume", "/dev/null"]).assert().code(4);
}

/// What a killed run had in TMPDIR stayed there for ever, and what it had in its target until a command came that uses
/// targets.
#[test]
fn what_a_killed_run_left_goes_with_the_next_of_any_command() {
    let dir = tempfile::tempdir().unwrap();
    let plan = plan(dir.path(), small());
    let places = ["target", "tmp", "state"].map(|name| dir.path().join(name));
    places.iter().for_each(|place| std::fs::create_dir(place).unwrap());
    let command = |args: &[&std::ffi::OsStr]| {
        let mut command = fsage();
        command.args(args).env("TMPDIR", &places[1]).env("XDG_STATE_HOME", &places[2]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    let names = |place: usize| std::fs::read_dir(&places[place]).unwrap().count();
    let slowly = ["--real-time".as_ref(), "1".as_ref()];
    let args = [&["age".as_ref(), places[0].as_os_str(), "--plan".as_ref(), plan.as_os_str()][..], &slowly].concat();
    let mut killed = command(&args).spawn().unwrap();
    let begun = std::time::Instant::now();
    while names(0) == 0 || names(1) == 0 {
        assert!(begun.elapsed() < Duration::from_secs(600), "the run does not begin");
        std::thread::sleep(Duration::from_millis(5));
    }
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert!(command(&["drive".as_ref(), "list".as_ref()]).status().unwrap().success());
    assert_eq!((names(0), names(1)), (0, 0));
}
