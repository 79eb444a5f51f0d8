//! Tasks are run, kept, gone on with and collected; the data set is the same whatever happened on the way.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use sweep::report::report;
use sweep::run::{Progress, Ran, RunOptions, run, sample};
use sweep::spec::ReportSpec;
use sweep::{Folder, Outcome, Spec, Tasks, data, folder};

/// Prints a result of one phase whose rate is its second argument, and does what the first says before.
const PROGRAM: &str = r#"#!/bin/sh
case $2 in
    fail) echo "fsage: the disk of $3 is on fire" >&2; exit 3 ;;
    once) [ -e "$4" ] || { : >"$4"; kill -9 $$; } ;;
    die) kill -9 $$ ;;
    hang) exec sleep 60 ;;
    garbage) printf '{"schema": \377\000 nonsense'; exit 0 ;;
    empty) exit 0 ;;
    loud) yes "much is said" | head -c 3000000 >&2; printf "\nfsage: the last of it\n" >&2; exit 3 ;;
esac
printf '{"schema": "fsage.bench/1", "targets": [{"name": "t%s", "points": [{"point": {"label": "p"}, "phases": [
    {"phase": "create", "unit": "files_per_second", "rate": {"median": %s, "low": %s, "high": %s},
     "rounds": []}]}]}]}' $3 $3 $3 $3
"#;

struct Place {
    directory: tempfile::TempDir,
    spec: Spec,
    tasks: Tasks,
}

impl Place {
    fn new(body: &str) -> Place {
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("program");
        std::fs::write(&program, PROGRAM).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let file = directory.path().join("mine.toml");
        std::fs::write(&file, format!("format = \"fsage.sweep/1\"\n{body}")).unwrap();
        let spec = Spec::load(&file).unwrap();
        let tasks = Tasks::of(&spec).unwrap();
        Place { directory, spec, tasks }
    }

    fn folder(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn open(&self, name: &str) -> Folder {
        Folder::open(&self.folder(name), &self.spec, &self.tasks).unwrap()
    }

    fn run(&self, folder: &mut Folder, numbers: &[u64], jobs: usize) -> Ran {
        let options = RunOptions { program: self.folder("program"), jobs };
        run(&self.spec, &self.tasks, numbers, folder, &options, &mut |_: Progress| {}).unwrap()
    }

    fn write(&self, folder: &mut Folder) -> BTreeMap<PathBuf, Vec<u8>> {
        data::write(&self.spec, &self.tasks, folder).unwrap();
        contents(folder.path())
    }
}

/// What must not depend on how a sweep was run: all but the journal, its lock and the times.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut directories = vec![folder.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(folder).unwrap().to_owned();
            if path.is_dir() {
                directories.push(path);
            } else if !["journal", "lock", data::TIMING].contains(&name.to_str().unwrap()) {
                found.insert(name, std::fs::read(&path).unwrap());
            }
        }
    }
    found
}

const GRID: &str = "run = [\"bench\", \"{mood}\", \"{rate}\"]\npartition = [\"mood\"]\n\
                    [axes]\nmood = [\"well\", \"fail\"]\nrate = { from = 1, to = 12 }\n";

#[test]
fn the_data_set_is_the_same_whatever_the_number_of_jobs_and_the_order() {
    let place = Place::new(GRID);
    let all: Vec<u64> = (1..=24).collect();
    let mut alone = place.open("alone");
    let ran = place.run(&mut alone, &all, 1);
    assert_eq!((ran.tasks, ran.failed, ran.interrupted), (24, 12, false));
    let alone = place.write(&mut alone);
    assert!(alone.contains_key(Path::new("results/mood=well/figures.parquet")), "{:?}", alone.keys());
    assert!(!alone.contains_key(Path::new("results/mood=fail/figures.parquet")), "what failed has no figures");

    let mut apart = place.open("apart");
    for numbers in [&all[13..], &all[..5], &all[5..13]] {
        let reversed: Vec<u64> = numbers.iter().rev().copied().collect();
        place.run(&mut apart, &reversed, 3);
        // A data set of a part is written over.
        place.write(&mut apart);
        drop(apart);
        apart = place.open("apart");
    }
    assert_eq!(place.write(&mut apart), alone);

    let mut collected = place.open("collected");
    for (name, numbers) in [("p2", &all[9..]), ("p1", &all[..11])] {
        let mut part = place.open(name);
        place.run(&mut part, numbers, 2);
    }
    assert_eq!(collected.collect(&place.folder("p2")).unwrap(), (15, 0));
    assert_eq!(collected.collect(&place.folder("p1")).unwrap(), (9, 0));
    assert_eq!(place.write(&mut collected), alone);
}

#[test]
fn a_failure_is_kept_with_its_message_and_run_again_only_when_asked() {
    let place = Place::new(GRID);
    let mut held = place.open("x");
    let open = held.to_do(false);
    place.run(&mut held, &open, 2);
    assert!(held.to_do(false).is_empty());
    assert_eq!(held.to_do(true), (13..=24).collect::<Vec<u64>>());
    let entry = held.entry(15).unwrap().unwrap();
    assert_eq!(entry.outcome, Outcome::Failed { exit: Some(3), message: "the disk of 3 is on fire".to_owned() });
    drop(held);
    let status = folder::status(&place.folder("x")).unwrap();
    assert_eq!((status.ended, status.failed, status.failures.len(), status.running), (24, 12, 12, false));
    assert_eq!(status.to_do, []);
}

#[test]
fn a_task_that_a_signal_ends_is_begun_once_more_and_one_that_hangs_is_ended() {
    let ended = |body: &str| {
        let place = Place::new(&format!("run = [\"bench\", \"{{mood}}\", \"1\", \"mark\"]\n{body}"));
        let mut held = place.open("x");
        let open = held.to_do(false);
        place.run(&mut held, &open, 2);
        open.iter().map(|number| held.entry(*number).unwrap().unwrap()).collect::<Vec<_>>()
    };
    let [once, die] = &ended("[axes]\nmood = [\"once\", \"die\"]\n")[..] else { panic!("two tasks") };
    assert!(matches!(once.outcome, Outcome::Figures(_)) && once.attempts == 2, "{once:?}");
    assert_eq!(die.outcome, failed("was ended by signal 9"));
    // By itself: on a busy machine the others may take as long.
    let [hang] = &ended("timeout = \"300ms\"\n[axes]\nmood = [\"hang\"]\n")[..] else { panic!("one task") };
    assert_eq!(hang.outcome, failed("took longer than timeout allows"));
}

fn failed(message: &str) -> Outcome {
    Outcome::Failed { exit: None, message: message.to_owned() }
}

/// Why a task has no result.
fn message_of(outcome: &Outcome) -> &str {
    match outcome {
        Outcome::Failed { message, .. } => message,
        Outcome::Figures(_) => panic!("{outcome:?}"),
    }
}

/// What a command said last was looked for in the first 64 KiB.
#[test]
fn whoever_prints_garbage_or_says_too_much_costs_itself_alone() {
    let place = Place::new(
        "run = [\"bench\", \"{mood}\", \"1\"]\n[axes]\nmood = [\"garbage\", \"empty\", \"loud\", \"well\"]\n",
    );
    let mut held = place.open("x");
    place.run(&mut held, &[1, 2, 3, 4], 2);
    let outcome = |held: &mut Folder, number| held.entry(number).unwrap().unwrap().outcome;
    for number in [1, 2] {
        let outcome = outcome(&mut held, number);
        assert!(!message_of(&outcome).is_empty(), "{outcome:?}");
    }
    assert_eq!(message_of(&outcome(&mut held, 3)), "the last of it");
    assert!(matches!(outcome(&mut held, 4), Outcome::Figures(_)));
    place.write(&mut held);
}

/// One argument that the system takes from nobody ended the whole sweep, each time it was gone on with.
#[test]
fn an_argument_that_is_too_long_costs_its_task_alone() {
    let long = "x".repeat(200_000);
    let place =
        Place::new(&format!("run = [\"bench\", \"well\", \"1\", \"{{more}}\"]\n[axes]\nmore = [\"{long}\", \"a\"]\n"));
    let mut held = place.open("x");
    let ran = place.run(&mut held, &[1, 2], 1);
    assert_eq!((ran.tasks, ran.failed), (2, 1));
    let outcome = held.entry(1).unwrap().unwrap().outcome;
    assert!(message_of(&outcome).contains("too long"), "{outcome:?}");
}

/// A user's own directory that holds the sweep's file under the name that ours has was taken for what a killed run
/// had left.
#[test]
fn nothing_of_the_users_is_taken_for_a_folder_of_ours() {
    let place = Place::new(GRID);
    let theirs = place.folder("theirs");
    std::fs::create_dir(&theirs).unwrap();
    std::fs::write(theirs.join("spec.toml"), "mine").unwrap();
    std::fs::write(theirs.join("journal"), "dear diary").unwrap();
    let refused = Folder::open(&theirs, &place.spec, &place.tasks).unwrap_err().to_string();
    assert!(refused.contains("no folder of a sweep"), "{refused}");
    assert_eq!(std::fs::read_to_string(theirs.join("spec.toml")).unwrap(), "mine");
    assert_eq!(std::fs::read_to_string(theirs.join("journal")).unwrap(), "dear diary");
    assert_eq!(std::fs::read_dir(&theirs).unwrap().count(), 2);
    // What a run that was killed while it made the folder leaves is gone on with.
    std::fs::remove_file(theirs.join("journal")).unwrap();
    std::fs::write(theirs.join("spec.toml"), &place.spec.text).unwrap();
    std::fs::write(theirs.join(".sweep.json.0123456789abcdef.tmp"), "{").unwrap();
    Folder::open(&theirs, &place.spec, &place.tasks).unwrap();
}

/// The report and the status of a data set that cannot be written to, or that somebody writes now.
#[test]
fn whoever_looks_changes_nothing_and_waits_for_nobody() {
    let place = Place::new(GRID);
    let mut held = place.open("x");
    place.run(&mut held, &[1, 2, 3], 1);
    let beside = Folder::look(&place.folder("x"), &place.spec, &place.tasks).unwrap();
    assert_eq!(beside.counts(), (3, 0));
    drop(beside);
    drop(held);
    let before = contents(&place.folder("x"));
    for name in ["", "lock", "journal", "sweep.json", "spec.toml"] {
        let path = place.folder("x").join(name);
        let mode = if path.is_dir() { 0o555 } else { 0o444 };
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    let looked = || {
        let status = folder::status(&place.folder("x")).unwrap();
        let mut folder = Folder::look(&place.folder("x"), &place.spec, &place.tasks).unwrap();
        let found = report(&place.spec, &place.tasks, &mut folder, &ReportSpec::default()).unwrap();
        (status.ended, found.is_some())
    };
    assert_eq!(looked(), (3, true));
    assert_eq!(contents(&place.folder("x")), before);
    std::fs::set_permissions(place.folder("x"), std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// A full disk ends the run; what had ended is kept, and the same command goes on when there is room.
#[test]
fn a_disk_that_fills_up_costs_nothing_that_was_kept() {
    let place = Place::new(GRID);
    let journal = place.folder("x").join("journal");
    let mut held = place.open("x");
    place.run(&mut held, &[1, 2], 1);
    drop(held);
    // As a disk does that takes half a line: what follows on the same run must not stand behind it.
    let whole = std::fs::read(&journal).unwrap();
    let torn = [&whole[..], &whole[whole.len() - 40..whole.len() - 10]].concat();
    std::fs::write(&journal, torn).unwrap();
    let mut held = place.open("x");
    assert_eq!(held.counts(), (2, 0));
    let open = held.to_do(false);
    place.run(&mut held, &open, 2);
    drop(held);
    assert_eq!(place.open("x").counts(), (24, 12));
}

#[test]
fn a_folder_is_of_one_state_of_its_sweep_and_of_one_run_at_a_time() {
    let place = Place::new("run = [\"bench\", \"{input}\", \"1\"]\n[axes]\ninput = [\"a.txt\"]\n");
    std::fs::write(place.folder("a.txt"), "one").unwrap();
    let held = place.open("x");
    let again = |place: &Place| {
        Folder::open(&place.folder("x"), &place.spec, &place.tasks).map(drop).map_err(|e| e.to_string())
    };
    assert!(again(&place).unwrap_err().contains("another run"));
    assert!(folder::status(&place.folder("x")).unwrap().running);
    drop(held);
    again(&place).unwrap();
    std::fs::write(place.folder("a.txt"), "two").unwrap();
    assert!(again(&place).unwrap_err().contains("a.txt has changed"));
    std::fs::write(place.folder("a.txt"), "one").unwrap();
    again(&place).unwrap();
    let text = std::fs::read_to_string(&place.spec.file).unwrap();
    let other = Spec::parse(&format!("{text}# changed\n"), &place.spec.file).unwrap();
    let message = Folder::open(&place.folder("x"), &other, &place.tasks).unwrap_err().to_string();
    assert!(message.contains("another state"), "{message}");
    std::fs::create_dir(place.folder("theirs")).unwrap();
    std::fs::write(place.folder("theirs/letter"), "dear").unwrap();
    let message = Folder::open(&place.folder("theirs"), &place.spec, &place.tasks).unwrap_err().to_string();
    assert!(message.contains("no folder of a sweep"), "{message}");
    assert_eq!(std::fs::read_dir(place.folder("theirs")).unwrap().count(), 1);
}

#[test]
fn a_sample_keeps_nothing() {
    let place = Place::new(GRID);
    let found = sample(&place.spec, &place.tasks, &[2, 20], &place.folder("program")).unwrap();
    assert_eq!(
        found.iter().map(|(number, _, outcome)| (*number, matches!(outcome, Outcome::Figures(_)))).collect::<Vec<_>>(),
        [(2, true), (20, false)]
    );
    assert_eq!(std::fs::read_dir(place.directory.path()).unwrap().count(), 2);
}

#[test]
fn the_report_has_means_by_axis_curves_and_the_front() {
    let place = Place::new(
        "run = [\"bench\", \"{mood}\", \"{rate}\"]\n[axes]\nmood = [\"well\", \"better\"]\nrate = [1, 2, 6]\n",
    );
    let mut held = place.open("x");
    place.run(&mut held, &[1, 2, 3, 4, 5, 6], 2);
    let asked = ReportSpec { pareto: Some(["rate:create".into(), "rate:create:min".into()]), ..ReportSpec::default() };
    let found = report(&place.spec, &place.tasks, &mut held, &asked).unwrap().unwrap();
    assert_eq!((found.metric.as_str(), found.unit.as_str()), ("rate", "files_per_second"));
    let part = &found.parts[0];
    assert_eq!((part.part.as_str(), part.all.n, part.all.mean), ("create", 6, 3.0));
    let means: Vec<(&str, &str, u64, f64)> =
        part.marginals.iter().map(|m| (m.axis.as_str(), m.value.as_str(), m.mean.n, m.mean.mean)).collect();
    assert_eq!(
        means,
        [
            ("mood", "well", 3, 3.0),
            ("mood", "better", 3, 3.0),
            ("rate", "1", 2, 1.0),
            ("rate", "2", 2, 2.0),
            ("rate", "6", 2, 6.0)
        ]
    );
    let curves = part.curves.as_ref().unwrap();
    assert_eq!((curves.x.as_str(), curves.series.as_deref(), curves.points.len()), ("rate", Some("mood"), 6));
    // More and less of the same: nothing beats anything.
    assert_eq!(found.pareto.unwrap().points.iter().filter(|point| point.on_front).count(), 6);
    let asked = ReportSpec { metric: Some("speed".into()), ..ReportSpec::default() };
    let message = report(&place.spec, &place.tasks, &mut held, &asked).unwrap_err().to_string();
    assert!(message.contains("no figure is called \"speed\"; there are rate"), "{message}");
}

/// Seeds that change nothing must not make a mean look surer than it is.
#[test]
fn repetitions_are_no_further_combinations() {
    let mean = |axes: &str| {
        let place = Place::new(&format!("run = [\"bench\", \"well\", \"{{rate}}\", \"{{seed}}\"]\n[axes]\n{axes}\n"));
        let mut held = place.open("x");
        let open = held.to_do(false);
        place.run(&mut held, &open, 2);
        report(&place.spec, &place.tasks, &mut held, &ReportSpec::default()).unwrap().unwrap().parts[0].all
    };
    let (one, four) = (mean("rate = [1, 2, 6]\nseed = [1]"), mean("rate = [1, 2, 6]\nseed = [1, 2, 3, 4]"));
    assert_eq!(one, four);
    assert_eq!(mean("rate = [1]\nseed = [1, 2, 3]").n, 3, "of one combination, its repetitions");
}
