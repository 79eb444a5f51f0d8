//! Crashes under Soft Updates: nothing but what the mode promises, and each rule of it broken on purpose.
//!
//! `FSAGE_CRASH_STATES=1000000 cargo test --release -p fsage-crash --test it -- --nocapture softdep::` looks at all
//! sequences of three operations (`FSAGE_CRASH_LONGEST`) and then at long ones until there were as many distinct
//! states.

use crate::ffs::{BLOCK_BYTES, blank, each, explain, filled, nothing_fails, subject};
use crash::{Class, FfsSubject, Op, Settings, Start, parse_ops, sequence, start};
use device::crash::Plan;
use ffs::planted::Bug;
use lab::Spec;

/// There is a `lost+found`, so that the check never takes what was free.
fn begun(words: &str) -> (FfsSubject, Start) {
    let (subject, _) = subject(words);
    let mut before = sequence::prologue(BLOCK_BYTES);
    before.insert(0, Op::Mkdir { path: "lost+found".to_owned() });
    let begin = start(&subject, blank(words).0, &before).unwrap();
    (subject, begin)
}

/// Every state is mended by what the mode promises: what [`ffs::fsck::Report::beyond_soft_updates`] finds more is
/// unresolvable.
#[test]
fn soft_updates_keep_what_they_promise() {
    let tally = nothing_fails("softdep", &subject("softdep"), &Settings::default(), 12);
    // No file shows what was on the disk before it: data comes before pointers.
    assert_eq!(tally.exposed, 0, "{tally:#?}");
    assert!(tally.of(Class::Repaired) > tally.states / 4 && tally.of(Class::Clean) > 0, "{tally:#?}");
}

/// The check in the background puts right what a crash leaves, and loses nothing that the full check would keep; what
/// nobody has synced and has no name goes.
#[test]
fn the_check_in_the_background_recovers() {
    let (subject, begin) = subject("softdep");
    let settings = Settings { recovery_of: 0, moment_of: 4, ..Settings::default() };
    let tally = nothing_fails("softdep, in the background", &(subject.in_background(), begin), &settings, 6);
    assert_eq!(tally.exposed, 0, "{tally:#?}");
    for what in ["without a name", "link counts", "numbers", "fragments"] {
        assert!(tally.events.get(what).is_some_and(|n| *n > 0), "{what}: {tally:#?}");
    }
}

/// Rules of Soft Updates, each with a sequence that shows what it is for. That a pointer waits for an indirect block is
/// not among them: a length is pulled back to what can be found, and hides what is behind it.
fn provoked() -> Vec<(Bug, String)> {
    let text = |text: &str| text.to_owned();
    let reused = format!(
        "create b; write b 0 60000; fsync b; {}unlink b; wait 70000; create d/z; write d/z 0 40000; fsync d/z",
        filled(10)
    );
    // Of what was written before, the disk has data where the new blocks are.
    let removed: String = (0..10).map(|n| format!("unlink d/{n}; ")).collect();
    let used = |ops: &str| format!("{}{removed}sync; {ops}", filled(10));
    vec![
        (Bug::SoftMapLate, text("create b; write b 0 3000")),
        (Bug::SoftDataLate, used("create b; write b 0 9000; create y; write y 0 600; fsync y")),
        (Bug::SoftLengthEarly, text("create b; write b 0 70000")),
        (Bug::SoftFragmentEarly, text("write a 2528 1500; create b; write b 0 2500; fsync b")),
        (Bug::SoftFreeEarly, reused),
        (Bug::SoftNumberEarly, text("unlink a; wait 62000; create b; fsync b")),
        (Bug::SoftReleaseEarly, text("unlink a; fsync d")),
        (Bug::SoftNameEarly, text("create b")),
        (Bug::SoftMkdirBody, text("mkdir e; mkdir g; create y; write y 0 600; fsync y")),
        (Bug::SoftMkdirParent, text("mkdir d/x; fsync d/x; mkdir d/y; fsync d/y; mkdir d/x/z; fsync d/x/z")),
        (Bug::SoftLinkEarly, text("link a b; sync; unlink b")),
        (Bug::SoftOldNameFirst, text("rename a d/x")),
    ]
}

#[test]
fn planted_bugs_of_soft_updates_are_found() {
    let mut missed = Vec::new();
    for (bug, text) in provoked() {
        let settings = Settings { plan: Plan { most_of_a_point: 32, ..Plan::default() }, ..Settings::default() };
        let sequences = [parse_ops(&text).unwrap()];
        let (sound, begin) = begun("softdep,root");
        let without = each(&sound, &begin, &sequences, &settings);
        assert_eq!(without.tally.failed(), 0, "without {bug:?}: {}", explain(&without));
        let found = each(&sound.planted(Some(bug)), &begin, &sequences, &settings);
        if found.tally.failed() == 0 && found.tally.exposed == 0 {
            missed.push(format!("{bug:?}: {}", explain(&found)));
        } else {
            println!("{bug:?}: {}", explain(&found).lines().last().unwrap_or_default());
        }
    }
    assert!(missed.is_empty(), "nobody notices\n{}", missed.join("\n"));
}

/// A fragment had grown in place and then moved before either was on the disk: all of it was free at once, with what
/// the inode on the disk still had of it.
#[test]
fn a_fragment_that_has_grown_and_moved_is_kept() {
    let (subject, begin) = begun("softdep,root");
    let text = "write a 2496 500; create b; write b 0 600; write a 2976 1000; create c; write c 0 3000; fsync c";
    let found = each(&subject, &begin, &[parse_ops(text).unwrap()], &Settings::default());
    assert_eq!(found.tally.failed(), 0, "{}", explain(&found));
    assert!(found.tally.states > 40, "{}", explain(&found));
}

/// An indirect block had lost its last pointers while the inode on the disk had the old length (long sequences from 7
/// on).
#[test]
fn a_file_is_cut_on_the_disk_before_its_indirect_block() {
    let (subject, begin) = begun("softdep,root");
    let text = "create b; write b 17056 110735; wait 70000; truncate b 118458; write b 131744 4418; wait 70000";
    let found = each(&subject, &begin, &[parse_ops(text).unwrap()], &Settings::default());
    assert_eq!(found.tally.failed(), 0, "{}", explain(&found));
    assert!(found.tally.states > 40, "{}", explain(&found));
}

/// The last chunk of a fragment was zeros on the disk when the directory's new length was there: fragments of more than
/// a sector (crashes of SDET, softdep99/crash). What another mode has left of a directory is not filled.
#[test]
fn a_directory_that_grows_within_its_fragment_is_sound() {
    let spec = |words: &str| {
        Spec::parse(&format!("ffs:{words},root,size=640K,bsize=8192,fsize=1024,ipg=128,groups=2")).unwrap()
    };
    for bug in [None, Some(Bug::SoftChunkLate)] {
        let image = spec("conventional").image_in_memory(1 << 20, 1 << 26).unwrap();
        let before = FfsSubject::new(spec("conventional")).unwrap();
        let begin = start(&before, image.0, &sequence::prologue(8192)).unwrap();
        let subject = FfsSubject::new(spec("softdep")).unwrap().planted(bug);
        let names: String = (0..17).map(|n| format!("create d/{n:020}; ")).collect();
        let ops = parse_ops(&format!("{names}wait 70000")).unwrap();
        let found = each(&subject, &begin, &[ops], &Settings::default());
        assert_eq!(found.tally.failed() == 0, bug.is_none(), "{bug:?}: {}", explain(&found));
        assert!(found.tally.states > 10, "{}", explain(&found));
    }
}

/// Names that are made, moved and removed again before the disk has them. Those with a comment were found by crashes
/// after all sequences of two and three operations, and after long ones.
pub(super) const NAMES: [&str; 20] = [
    // The old name was gone from the disk before the new one was there.
    "link a b; unlink a",
    "link d/b b; rename a d/b",
    // The links that d/b had given up went with the old name of a, and d/b was still on the disk.
    "write a 2528 1500; rename a d/b; rename d/b a",
    // The links of a directory were dropped while its first name was on the disk.
    "unlink d/b; rename d e; rmdir e",
    // A directory's first name was gone before the file that had moved out of it had another one.
    "rename d/b a; rename d e; rmdir e",
    // A directory's new name was in a directory that had none on the disk.
    "rename d e; mkdir d; rename e d/e",
    // Where a directory's `..` leads came after the only name of it on the disk.
    "mkdir e; mkdir e/f; fsync e/f; wait 31000; rename e/f f; wait 20000; rename f d/f; wait 5000; rename d/f g; wait \
     70000",
    // A new name waited for the one that had its room, that for another directory's new name, and so on back to it (an
    // ager with seed 1).
    "mkdir p; mkdir q; mkdir p/x; mkdir q/y; sync; rename p/x q/x; rename q/y p/y; rename q/x q/z; fsync d/b",
    "mkdir p; mkdir q; create p/x; create q/y; sync; rename p/x q/x; rename q/y p/y; rename q/x q/z; fsync d/b",
    // The same with one directory: it came back to where its name was on the disk and its `..` led elsewhere (processes
    // on a mount).
    "mkdir t; mkdir p; mkdir q; mkdir t/x; sync; rename t/x p/a; fsync p; rename p/a q/y; rename q/y p/c; fsync d/b",
    // A directory had its old name on the disk again, and `..` led elsewhere still (random renames).
    "mkdir p; mkdir q; mkdir p/x; sync; rename p/x q/y; fsync q; rename q/y p/x",
    // A circle by way of two directories (random renames under `softdep+j`).
    "mkdir p; mkdir q; mkdir r; mkdir q/f; mkdir q/f/g; mkdir q/f/h; rename q/f/g q/f/i; mkdir q/f/h/j; mkdir p/k; \
     mkdir q/l; rename p/k r/m; rename q/l r/n; fsync q/f/h/j; rename q/f/h r/m/o; rename r/m/o q/f/i/s; rename \
     q/f/i/s r/n/t; rename r/n/t q/f/i/u; mkdir q/f/i/u/v",
    // A directory's `..` was on the disk before the directory that it leads to had its name there.
    "mkdir e; rename d e/d; rename e d",
    "rename d e; rename e/b a; rmdir e",
    "mkdir x; sync; rename d e; rename e x/f; unlink x/f/b; rmdir x/f",
    "rename d e; mkdir g; rename e/b a; rename g e",
    "rename d e; create e/c; rename e/b c; unlink e/c; rmdir e; create e; unlink e",
    "link a b; link d/b c; rename a d/b; rename d/b a; unlink b; unlink c",
    "mkdir e; rename d e/d; rename e/d f; rename f e/d; rename e/d d",
    "mkdir e; mkdir e/f; sync; rename e/f d/f; rename d/f f; rename f e/g; rmdir e/g; rmdir e",
];

#[test]
fn names_that_go_before_they_are_written_leave_the_old_ones() {
    let (subject, begin) = begun("softdep,root");
    for text in NAMES {
        let found = each(&subject, &begin, &[parse_ops(text).unwrap()], &Settings::default());
        assert_eq!(found.tally.failed(), 0, "{text}: {}", explain(&found));
        assert!(found.tally.states > 4, "{text}: {}", explain(&found));
    }
}
