//! Crashes of file systems with a log of metadata: all short sequences, long ones, and rules that are broken on
//! purpose.
//!
//! `FSAGE_CRASH_STATES=1000000 cargo test --release -p fsage-crash --test it -- --nocapture journal::` looks at all
//! sequences of three operations and then at long ones until there were as many distinct states of each mode.

use crate::ffs::{BLOCK_BYTES, each, explain, nothing_fails};
use crash::sequence;
use crash::{Class, FfsSubject, Settings, Start, Subject as _, Tally, Watched, parse_ops, start};
use device::crash::{Crash, Plan, WriteCache};
use device::store::Overlay;
use ffs::planted::Bug;
use lab::Spec;
use posix::OpenFlags;

/// Small, with a log that is full every few operations.
const SHAPE: &str = "size=1M,bsize=4096,fsize=512,ipg=64,groups=2";
const LOG: &str = "168K";

fn subject(words: &str, log: &str) -> (FfsSubject, Start) {
    let spec = Spec::parse(&format!("ffs:{words},{SHAPE},log={log}")).unwrap();
    let image = spec.image_in_memory(1 << 20, 1 << 26).unwrap();
    let subject = FfsSubject::new(spec).unwrap();
    let begin = start(&subject, image.0, &sequence::prologue(BLOCK_BYTES)).unwrap();
    (subject, begin)
}

/// Sequences of each mix, with no failure; the tally of all.
fn nothing_is_lost(words: &str, plan: Plan) -> Tally {
    let tally = nothing_fails(words, &subject(words, LOG), &Settings { plan, ..Settings::default() }, 6);
    // A test in which nothing happens tests nothing.
    let count = |name: &str| tally.events.get(name).copied().unwrap_or(0);
    assert!(tally.of(Class::Repaired) > tally.states / 10 && count("log replayed") > 0, "{tally:#?}");
    assert!(count("checkpoints") > 0 && count("extents revoked") > 0, "{tally:#?}");
    assert!(tally.in_recovery > tally.states / 100 && tally.moments_complete > 0, "{tally:#?}");
    tally
}

#[test]
fn asynchronous_commits_lose_nothing_that_was_promised() {
    let tally = nothing_is_lost("journal=async", Plan::default());
    assert_eq!((tally.exposed, tally.of(Class::UnsyncedLost)), (0, 0), "{tally:#?}");
}

#[test]
fn a_cache_that_the_power_failure_empties_changes_nothing() {
    let tally = nothing_is_lost("journal=async", Plan { cache: WriteCache::On, ..Plan::default() });
    assert_eq!((tally.exposed, tally.of(Class::UnsyncedLost)), (0, 0), "{tally:#?}");
}

#[test]
fn synchronous_commits_keep_every_name() {
    let tally = nothing_is_lost("journal=sync", Plan::default());
    assert_eq!((tally.exposed, tally.of(Class::UnsyncedLost)), (0, 0), "{tally:#?}");
}

/// Writes of the two drives overtake one another.
#[test]
fn a_log_on_a_drive_of_its_own_loses_nothing_either() {
    for words in ["journal=async,logdrive=st32171w", "journal=sync,logdrive=st32171w"] {
        let tally = nothing_is_lost(words, Plan::default());
        assert_eq!((tally.exposed, tally.of(Class::UnsyncedLost)), (0, 0), "{words}: {tally:#?}");
    }
}

/// Without an order of data the names are as safe; files may show what was in their blocks before.
#[test]
fn unordered_data_is_exposed_and_nothing_else() {
    let tally = nothing_is_lost("journal=async,unordered", Plan::default());
    assert_eq!(tally.of(Class::Unresolvable), 0, "{tally:#?}");
}

/// Files that fill the disk, or most of it.
fn filled(files: u32) -> String {
    (0..files).map(|n| format!("create d/{n}; write d/{n} 0 40000; fsync d/{n}; ")).collect()
}

/// Each rule, with the size of a log and a sequence that show what it is for.
fn provoked() -> Vec<(Bug, &'static str, String)> {
    let text = |text: &str| text.to_owned();
    // Nothing is free but what is given up.
    let refill = format!("{}unlink d/1; unlink d/2; create z; write z 0 60000; wait 9000", filled(20));
    let reuse = "create x; write x 0 40000; fsync x; unlink x; sync; create b; write b 0 20000; fsync d/b";
    let small: String = ["p", "d/p", "q", "d/q", "r", "d/r"]
        .map(|name| format!("create {name}; write {name} 0 400; fsync {name}; "))
        .concat();
    // Transactions of nine sectors each, of which forty are a lap.
    let lap: String = (0..50).map(|n| format!("truncate a {}; fsync a; ", 2499 - n)).collect();
    vec![
        (Bug::HomeBeforeLog, LOG, text("create b; mkdir e; rename a e/a; sync; create z; unlink d/b; sync")),
        (Bug::ReuseBeforeCommit, LOG, refill),
        (Bug::DataAfterLog, LOG, text(reuse)),
        (Bug::CheckpointTooFar, LOG, text("create b; mkdir e; sync; create z; sync")),
        (Bug::NoRevocation, "400K", format!("mkdir e; fsync a; rmdir e; fsync a; {small}")),
        (Bug::CommitWithinOperation, LOG, text("mkdir e; sync; rename d e/d; wait 9000")),
        (Bug::FsyncWithoutCommit, LOG, text("create b; write b 0 2000; fsync b")),
        (Bug::LogChecksumIgnored, LOG, text("create b; fsync b; mkdir e; fsync b")),
        (Bug::LogOldLap, "184K", lap),
        (Bug::ReplayEmptiesFirst, LOG, text("create b; mkdir e; fsync b; unlink d/b; fsync b")),
    ]
}

#[test]
fn planted_bugs_are_found() {
    let mut missed = Vec::new();
    for (bug, log, text) in provoked() {
        let plan = Plan { most_of_a_point: 64, ..Plan::default() };
        let settings = Settings { plan, recovery_of: 4, ..Settings::default() };
        let sequences = [parse_ops(&text).unwrap()];
        let (sound, begin) = subject("journal=async,root", log);
        let without = each(&sound, &begin, &sequences, &settings);
        assert_eq!(without.tally.failed(), 0, "without {bug:?}: {}", explain(&without));
        let found = each(&sound.planted(Some(bug)), &begin, &sequences, &settings);
        if found.tally.failed() == 0 {
            missed.push(format!("{bug:?}: {}", explain(&found)));
        }
    }
    assert!(missed.is_empty(), "nobody notices\n{}", missed.join("\n"));
}

/// A file that was removed while somebody had it open is freed by the replay, whatever of that was committed.
#[test]
fn an_open_file_without_a_name_is_freed() {
    for words in ["journal=async", "journal=sync"] {
        let (subject, begin) = subject(words, LOG);
        let mut watched = Watched::mount(&subject, begin.image.clone(), &begin.seen, begin.calls).unwrap();
        let fd = watched.open("d/b", OpenFlags::READ).unwrap();
        for op in parse_ops("unlink d/b; fsync a; create b; fsync b; wait 40000").unwrap() {
            watched.perform(&op).unwrap();
        }
        let history = watched.into_history();
        let _still_open = fd;
        let mut crash = Crash::new(history.base.clone(), &history.log, Plan::default());
        let mut freed = 0;
        while let Some(point) = crash.next_point().unwrap() {
            for choice in 0..point.choices.min(8) {
                crash.lay(&point, choice).unwrap();
                let mut disk = Overlay::new(crash.disk());
                let once = subject.recover(&mut disk).unwrap();
                freed += once.events["files without a name freed"];
                let again = subject.recover(&mut disk).unwrap();
                assert_eq!((again.repaired, &again.found), (0, &once.found));
                crash.lift().unwrap();
            }
        }
        assert!(freed > 0, "{words}");
    }
}
