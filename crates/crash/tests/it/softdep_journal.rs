//! Crashes under journaled Soft Updates: after recovery, which looks only at what the records name, the full check
//! finds nothing.
//!
//! `FSAGE_CRASH_STATES=1000000 cargo test --release -p fsage-crash --test it -- --nocapture softdep_journal::` looks at
//! all sequences of three operations (`FSAGE_CRASH_LONGEST`) and then at long ones until there were as many distinct
//! states.

use crate::ffs::{BLOCK_BYTES, each, explain, filled, nothing_fails};
use crate::softdep::NAMES;
use crash::{Class, FfsSubject, Settings, Start, Subject as _, Watched, parse_ops, sequence, start};
use device::crash::{Crash, Plan};
use device::store::Overlay;
use ffs::planted::Bug;
use lab::Spec;
use posix::OpenFlags;

/// Small, with a log that is full every few hundred operations.
const SHAPE: &str = "size=1M,bsize=4096,fsize=512,ipg=64,groups=2";
const LOG: &str = "168K";

fn subject(words: &str) -> (FfsSubject, Start) {
    let spec = Spec::parse(&format!("ffs:{words},{SHAPE},log={LOG}")).unwrap();
    let image = spec.image_in_memory(1 << 20, 1 << 26).unwrap();
    let subject = FfsSubject::new(spec).unwrap();
    let begin = start(&subject, image.0, &sequence::prologue(BLOCK_BYTES)).unwrap();
    (subject, begin)
}

#[test]
fn recovery_by_records_leaves_nothing_for_the_full_check() {
    let tally = nothing_fails("softdep+j", &subject("softdep+j"), &Settings::default(), 12);
    // A test in which nothing happens tests nothing.
    let count = |name: &str| tally.events.get(name).copied().unwrap_or(0);
    assert!(count("records") > 0 && count("files without a name freed") > 0, "{tally:#?}");
    assert_eq!((tally.exposed, tally.of(Class::UnsyncedLost)), (0, 0), "{tally:#?}");
    assert!(tally.of(Class::Repaired) > tally.states / 4, "{tally:#?}");
    assert!(tally.in_recovery > tally.states / 100, "{tally:#?}");
}

/// Each kind of record, and each rule, with a sequence that shows what it is for.
fn provoked() -> Vec<(Bug, String)> {
    let text = |text: &str| text.to_owned();
    vec![
        (Bug::SujRecordLate, text("create b; write b 0 3000; unlink a; unlink d/b")),
        (Bug::SujNoAddRef, text("create b")),
        (Bug::SujNoRemRef, text("unlink a")),
        (Bug::SujNoNewBlock, text("create b; write b 0 3000")),
        (Bug::SujNoFreeBlock, text("unlink a")),
        (Bug::SujNoFreeFrag, text("write a 2528 1500; create b; write b 0 2500; fsync b")),
        (Bug::SujTailEarly, text("create b; write b 0 9000; unlink d/b; sync")),
        (Bug::SujOrphanedMove, text("mkdir d/x; rename a d/x/a")),
        (Bug::SujMapsLast, text("unlink a; fsync d")),
    ]
}

#[test]
fn planted_bugs_of_records_are_found() {
    let mut missed = Vec::new();
    for (bug, text) in provoked() {
        let plan = Plan { most_of_a_point: 32, ..Plan::default() };
        let settings = Settings { plan, recovery_of: 4, ..Settings::default() };
        let sequences = [parse_ops(&text).unwrap()];
        let (sound, begin) = subject("softdep+j,root");
        let without = each(&sound, &begin, &sequences, &settings);
        assert_eq!(without.tally.failed(), 0, "without {bug:?}: {}", explain(&without));
        let found = each(&sound.planted(Some(bug)), &begin, &sequences, &settings);
        if found.tally.failed() == 0 {
            missed.push(format!("{bug:?}: {}", explain(&found)));
        } else {
            println!("{bug:?}: {}", explain(&found).lines().last().unwrap_or_default());
        }
    }
    assert!(missed.is_empty(), "nobody notices\n{}", missed.join("\n"));
}

/// What recovery makes of each state of a file that was removed while somebody had it open; how many were freed, or
/// what went wrong.
fn of_an_open_file(subject: &FfsSubject, begin: &Start) -> Result<u64, String> {
    let mut watched = Watched::mount(subject, begin.image.clone(), &begin.seen, begin.calls).unwrap();
    let fd = watched.open("d/b", OpenFlags::READ).unwrap();
    for op in parse_ops("unlink d/b; sync; create b; fsync b; wait 40000").unwrap() {
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
            let once = subject.recover(&mut disk).map_err(|error| error.0)?;
            freed += once.events["files without a name freed"];
            let again = subject.recover(&mut disk).unwrap();
            assert_eq!((again.repaired, &again.found), (0, &once.found));
            crash.lift().unwrap();
        }
    }
    Ok(freed)
}

/// A file without a name that is open keeps a record in the log, whatever of it is emptied.
#[test]
fn an_open_file_without_a_name_is_freed() {
    let (subject, begin) = subject("softdep+j");
    assert!(of_an_open_file(&subject, &begin).unwrap() > 0);
    let without_record = of_an_open_file(&subject.planted(Some(Bug::SujNoNumber)), &begin);
    assert!(without_record.is_err(), "nobody notices: {without_record:?}");
}

/// What recovery reads and writes after the same operations on a file system of some size, with so many files in it, at
/// the last moment: blocks read, records, sectors written.
fn read_by_recovery(size: &str, groups: u32, files: u32) -> (usize, u64, usize) {
    let words = format!("softdep+j,size={size},bsize=4096,fsize=512,ipg=256,groups={groups},log=288K");
    let spec = Spec::parse(&format!("ffs:{words}")).unwrap();
    let image = spec.image_in_memory(1 << 20, 1 << 26).unwrap();
    let subject = FfsSubject::new(spec).unwrap();
    let mut before = sequence::prologue(BLOCK_BYTES);
    before.extend(parse_ops(&filled(files)).unwrap_or_default());
    before.extend(parse_ops("sync").unwrap());
    let begin = start(&subject, image.0, &before).unwrap();
    let mut watched = Watched::mount(&subject, begin.image.clone(), &begin.seen, begin.calls).unwrap();
    for op in parse_ops("create b; write b 0 9000; mkdir e; rename a e/a; unlink d/b; fsync e/a").unwrap() {
        watched.perform(&op).unwrap();
    }
    let history = watched.into_history();
    let mut crash = Crash::new(history.base.clone(), &history.log, Plan::default());
    let mut last = (0, 0, 0);
    while let Some(point) = crash.next_point().unwrap() {
        crash.lay(&point, 0).unwrap();
        let mut disk = Overlay::new(crash.disk());
        let done = ffs::log::replay(&mut disk).unwrap().unwrap();
        last = (done.reads.len(), done.records, done.steps.len());
        crash.lift().unwrap();
    }
    last
}

/// Recovery looks at what the records name: neither the size of the file system nor what is in it matters.
#[test]
fn recovery_does_not_scan() {
    let small = read_by_recovery("2M", 2, 0);
    let full = read_by_recovery("2M", 2, 30);
    let large = read_by_recovery("32M", 16, 0);
    let large_full = read_by_recovery("32M", 16, 400);
    println!("reads, records, steps: {small:?}, full {full:?}; large {large:?}, full {large_full:?}");
    assert!(small.1 > 8, "{small:?}");
    for other in [full, large, large_full] {
        assert!(other.0.abs_diff(small.0) <= 4 && other.2.abs_diff(small.2) <= 4, "{other:?} instead of {small:?}");
    }
}

#[test]
fn names_that_go_before_they_are_written_leave_the_old_ones() {
    let (subject, begin) = subject("softdep+j,root");
    for text in NAMES {
        let found = each(&subject, &begin, &[parse_ops(text).unwrap()], &Settings::default());
        assert_eq!(found.tally.failed(), 0, "{text}: {}", explain(&found));
        assert!(found.tally.states > 4, "{text}: {}", explain(&found));
    }
}
