//! Crashes of the Fast File System: all short sequences, long ones, and bugs that have to be found.
//!
//! `FSAGE_CRASH_STATES=1000000 cargo test --release -p fsage-crash --test it -- --nocapture ffs::` looks at all
//! sequences of three operations and then at long ones until there were as many distinct states.

use crash::sequence::{self, Drawn, MIXES};
use crash::{
    Class, Failure, FfsSubject, Op, Search, Settings, Start, Tally, minimise, one_state, parse_ops, run_ops, search,
    shown_ops, start,
};
use device::crash::Plan;
use device::store::MemoryStore;
use ffs::planted::Bug;
use lab::Spec;

/// Small, so that all of it is checked in no time, with two groups.
const SHAPE: &str = "size=640K,bsize=4096,fsize=512,ipg=64,groups=2";
pub(super) const BLOCK_BYTES: u32 = 4096;

/// A new file system.
pub(super) fn blank(words: &str) -> MemoryStore {
    let spec = Spec::parse(&format!("ffs:{words},{SHAPE}")).unwrap();
    spec.image_in_memory(1 << 20, 1 << 26).unwrap()
}

pub(super) fn subject(words: &str) -> (FfsSubject, Start) {
    let spec = Spec::parse(&format!("ffs:{words},{SHAPE}")).unwrap();
    let image = blank(words);
    let subject = FfsSubject::new(spec).unwrap();
    let begin = start(&subject, image.0, &sequence::prologue(BLOCK_BYTES)).unwrap();
    (subject, begin)
}

pub(super) fn each(subject: &FfsSubject, begin: &Start, sequences: &[Vec<Op>], settings: &Settings) -> Search {
    let history = |number: u64| match sequences.get(number as usize) {
        Some(ops) => run_ops(subject, begin, ops, false).map(Some),
        None => Ok(None),
    };
    search(subject, history, 1, settings, &mut |_| true).unwrap()
}

/// Long sequences by number: each mix in turn.
pub(super) fn long(begin: &Start, number: u64, len: usize) -> Vec<Op> {
    let mix = &MIXES[number as usize % MIXES.len()];
    Drawn::new(number, mix, &begin.seen, 0, BLOCK_BYTES).take(len).collect()
}

pub(super) fn explain(found: &Search) -> String {
    let line = |failure: &Failure| {
        let Failure { ops, state, again, verdict } = failure;
        format!("{:?} {state} {again:?}: {}\n    {}", verdict.class, verdict.why, shown_ops(ops))
    };
    let lines: Vec<String> = found.failures.iter().map(line).collect();
    format!("{:#?}\n{}", found.tally, lines.join("\n"))
}

/// No state of any sequence fails: those of all sequences of one operation (`FSAGE_CRASH_LONGEST`), and of `most` long
/// ones. With `FSAGE_CRASH_STATES` those of all sequences of three operations, and of long ones until so many distinct
/// states were looked at.
pub(super) fn nothing_fails(
    what: &str,
    (subject, begin): &(FfsSubject, Start),
    settings: &Settings,
    most: u64,
) -> Tally {
    const AT_A_TIME: u64 = 6;
    let wanted: Option<u64> = testkit::parameter("FSAGE_CRASH_STATES");
    let longest = testkit::parameter("FSAGE_CRASH_LONGEST").unwrap_or(if wanted.is_some() { 3 } else { 1 });
    let settings = Settings { failures: 3, ..*settings };
    let long_settings = Settings { moment_of: if wanted.is_some() { 1 } else { 8 }, ..settings };
    let mut tally = Tally::default();
    let mut add = |sequences: &[Vec<Op>], settings: &Settings| {
        let found = each(subject, begin, sequences, settings);
        assert_eq!(found.tally.failed(), 0, "{what}: {}", explain(&found));
        tally.add(&found.tally);
        tally.states
    };
    let mut states = add(&sequence::all(longest, BLOCK_BYTES), &settings);
    // Disks of different histories are different, but for those of their beginnings.
    let mut number = 1;
    while wanted.map_or(number <= most, |wanted| states < wanted) {
        let some: Vec<Vec<Op>> = (number..number + AT_A_TIME).map(|number| long(begin, number, 60)).collect();
        states = add(&some, &long_settings);
        number += AT_A_TIME;
        if wanted.is_some() {
            println!("{what}: {number} {states}");
        }
    }
    println!("{what}: {tally:#?}");
    assert!(wanted.is_none_or(|wanted| tally.states >= wanted), "{what}: {tally:#?}");
    tally
}

#[test]
fn conventional_updates_can_always_be_repaired() {
    let tally = nothing_fails("conventional", &subject("conventional"), &Settings::default(), 12);
    // A test in which nothing happens tests nothing.
    assert!(tally.of(Class::Repaired) > tally.states / 4 && tally.of(Class::Clean) > 0, "{tally:#?}");
    assert!(tally.in_recovery > tally.states / 100 && tally.moments_complete > 0, "{tally:#?}");
}

/// Published (McKusick and Ganger 1999): a block in two files in about 30 % of the crashes of a benchmark.
#[test]
fn no_order_damages_much_of_what_it_is_given() {
    let (subject, begin) = subject("noorder");
    let settings = Settings { recovery_of: 0, moment_of: 4, ..Settings::default() };
    let some: Vec<Vec<Op>> = (1..=18).map(|number| long(&begin, number, 60)).collect();
    let tally = each(&subject, &begin, &some, &settings).tally;
    println!("{tally:#?}");
    let share = tally.of(Class::Unresolvable) as f64 / tally.states as f64;
    assert!(share > 0.05, "{share} of {tally:#?}");
}

/// Files that fill the disk, or most of it.
pub(super) fn filled(files: u32) -> String {
    (0..files).map(|n| format!("create d/{n}; write d/{n} 0 40000; fsync d/{n}; ")).collect()
}

/// A file that was being made had no name yet, and there was no room for lost+found: the check left it as it was, for
/// ever.
#[test]
fn what_was_being_made_on_a_full_disk_is_cleared() {
    let (subject, begin) = subject("conventional,root");
    let ops = parse_ops(&(filled(16) + "create b; create d/c")).unwrap();
    let found = each(&subject, &begin, &[ops], &Settings::default());
    assert_eq!(found.tally.failed(), 0, "{}", explain(&found));
    assert!(found.tally.refused > 0, "the disk was not full");
}

/// The rules of conventional updates and the phases of fsck, each with a sequence that shows what it is for. Link
/// counts, the first block of a new directory and a new indirect block are not among them: fsck puts any of them right,
/// and nothing is lost.
fn provoked() -> Vec<(Bug, String)> {
    let text = |text: &str| text.to_owned();
    let names: String = (0..20).map(|n| format!("create d/a-long-name-of-a-file-{n}; ")).collect();
    vec![
        (Bug::InodeAfterName, text("create b")),
        (Bug::NameOutlivesInode, text("unlink a")),
        (
            Bug::FreeBeforeInode,
            format!(
                "create b; write b 0 60000; fsync b; {}unlink b; create d/z; write d/z 0 40000; fsync d/z",
                filled(12)
            ),
        ),
        (Bug::ReuseBeforePointer, text("write a 2528 1500; create b; write b 0 2500; fsync b")),
        (
            Bug::PointersStayFresh,
            text(
                "create b; write b 0 600; create d/c; write d/c 0 600; sync; \
                 write b 600 3000; create e; write e 0 2500; fsync e",
            ),
        ),
        (Bug::OldNameFirst, text("rename a b")),
        (Bug::DirectoryLengthLate, names),
        (Bug::FsckLinksBeforeNames, text("create b")),
        (Bug::FsckGroupsFirst, text("write a 2528 1500; create b")),
        (Bug::FsckNoConnectivity, text("mkdir e")),
    ]
}

#[test]
fn planted_bugs_are_found() {
    let mut missed = Vec::new();
    for (bug, text) in provoked() {
        let settings = Settings { plan: Plan { most_of_a_point: 32, ..Plan::default() }, ..Settings::default() };
        let sequences = [parse_ops(&text).unwrap()];
        let (sound, begin) = subject("conventional,root");
        let without = each(&sound, &begin, &sequences, &settings);
        assert_eq!(without.tally.failed(), 0, "without {bug:?}: {}", explain(&without));
        let found = each(&sound.planted(Some(bug)), &begin, &sequences, &settings);
        if found.tally.failed() == 0 {
            missed.push(format!("{bug:?}: {}", explain(&found)));
        }
    }
    assert!(missed.is_empty(), "nobody notices\n{}", missed.join("\n"));
}

/// Without phase 1b a block stays in two files.
#[test]
fn a_check_without_duplicates_leaves_them() {
    let (subject, begin) = subject("noorder");
    let sequences: Vec<Vec<Op>> = (1..=6).map(|number| long(&begin, number, 60)).collect();
    let settings = Settings { recovery_of: 0, moment_of: 4, failures: usize::MAX, ..Settings::default() };
    let left = |found: &Search| found.failures.iter().filter(|f| f.verdict.why.contains("is not clean")).count();
    assert_eq!(left(&each(&subject, &begin, &sequences, &settings)), 0);
    let subject = subject.planted(Some(Bug::FsckNoDuplicates));
    assert!(left(&each(&subject, &begin, &sequences, &settings)) > 0, "nobody notices");
}

/// A failure among much else becomes as short as it can be, and is made again by its name.
#[test]
fn a_failure_is_made_small_and_made_again() {
    let (subject, begin) = subject("conventional");
    let subject = subject.planted(Some(Bug::OldNameFirst));
    let text = "create b; write b 0 3000; mkdir e; link a c; rename d/b e/x; truncate b 100; fsync b; unlink c; sync; \
                rename a e/a; wait 3000; create z";
    let ops = parse_ops(text).unwrap();
    let settings = Settings { recovery_of: 0, ..Settings::default() };
    let found = each(&subject, &begin, &[ops], &settings);
    let failure = found.failures.iter().find(|failure| failure.verdict.class == Class::PromiseBroken).unwrap();
    let small = minimise(&subject, &begin, failure, &settings, &|| true).unwrap();
    println!("{} in {} tries: {:?}", shown_ops(&small.failure.ops), small.tries, small.failure.verdict);
    let renames = small.failure.ops.iter().filter(|op| matches!(op, Op::Rename { .. })).count();
    assert!(renames == 1 && small.failure.ops.len() <= 2, "{}", shown_ops(&small.failure.ops));
    assert_eq!(small.lost_sectors, 0, "the order of writes alone is wrong");
    let ran = run_ops(&subject, &begin, &small.failure.ops, true).unwrap();
    let (verdict, open) = one_state(&subject, &ran.history, settings.plan, (small.failure.state, None)).unwrap();
    assert_eq!(verdict, small.failure.verdict);
    assert!(open.iter().all(|write| write.there == write.sectors));
    let none = device::crash::StateId { point: 100_000, choice: 0 };
    assert!(one_state(&subject, &ran.history, settings.plan, (none, None)).is_err());
}

/// The result does not depend on how many look.
#[test]
fn threads_change_nothing() {
    let (subject, begin) = subject("noorder");
    let sequences: Vec<Vec<Op>> = sequence::all(2, BLOCK_BYTES).into_iter().step_by(16).collect();
    let with = |threads| {
        let settings =
            Settings { threads, states: 1500, plan: Plan { seed: 3, ..Plan::default() }, ..Settings::default() };
        each(&subject, &begin, &sequences, &settings)
    };
    let (one, three) = (with(1), with(3));
    assert_eq!(one.tally, three.tally);
    assert_eq!(one.failures, three.failures);
}

/// The fragments that a growing file has left were another file's while the inode on the disk still had them: the block
/// was in two files, and what had been synced was gone. And their new place was in the inode before the data was there.
#[test]
fn a_moved_fragment_is_not_used_again_before_its_pointer_is_written() {
    let (subject, begin) = subject("conventional");
    let settings = Settings { plan: Plan { most_of_a_point: 512, ..Plan::default() }, ..Settings::default() };
    for text in [
        "write a 2528 1500; create b; write b 0 2500; fsync b",
        "write a 2528 1500",
        "write a 2528 4000; write d/b 4992 3000; create b; write b 0 2500; fsync b",
        // Clusters likewise.
        "write a 0 40000; wait 32000; write a 40000 40000; create b; write b 0 60000; fsync b",
    ] {
        let found = each(&subject, &begin, &[parse_ops(text).unwrap()], &settings);
        assert_eq!(found.tally.failed(), 0, "{}", explain(&found));
        assert!(found.tally.states > 40, "{}", explain(&found));
    }
}
