//! When threads had no processor and who gave it back to them. The program prints what it did; that is the truth.

use crate::common::{Recorded, compiled, may_record, record_to};
use std::ffi::OsString;
use trace::kernel::wire::{self, Kind};
use trace::schedule::{Happened, Turn};

/// When the trace began, on the clock of the program.
fn began_ns(recorded: &Recorded) -> u64 {
    let mut rest = &recorded.records[..];
    let mut first = u64::MAX;
    while let Some(record) = wire::next(&mut rest).expect("records") {
        if let (Some(Kind::Call | Kind::Enter), Some((_, start_ns))) = (record.kind, wire::Call::peek(record.body)) {
            first = first.min(start_ns);
        }
    }
    first
}

/// A line of the program's.
struct Said {
    kind: String,
    tid: u32,
    waker: Option<u32>,
    between_ns: (u64, u64),
}

fn said(printed: &str) -> Vec<Said> {
    let lines = printed.lines().filter_map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |i: usize| words.get(i)?.parse::<u64>().ok();
        let tid = |i: usize| u32::try_from(number(i)?).ok();
        let waker = Some(tid(2)?).filter(|&tid| tid != 0);
        Some(Said { kind: words[0].to_owned(), tid: tid(1)?, waker, between_ns: (number(3)?, number(4)?) })
    });
    lines.collect()
}

#[test]
fn each_wait_has_the_waker_and_the_time_that_the_program_noted() {
    if !may_record() {
        return;
    }
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    let Some(program) = compiled(include_str!("../programs/waits.c"), directory.path()) else { return };
    let output = directory.path().join("printed");
    let recorded = record_to(&[program], directory.path(), &output);
    assert_eq!((recorded.status.code(), recorded.totals.lost), (Some(0), 0));
    let began = began_ns(&recorded);
    let printed = std::fs::read_to_string(&output).expect("its output");
    let said = said(&printed);
    let kinds = |kind: &str| said.iter().filter(|said| said.kind == kind).count();
    assert_eq!((kinds("pipe"), kinds("join"), kinds("child"), kinds("timer")), (10, 1, 1, 1), "{printed}");
    for Said { kind, tid, waker, between_ns: (from, to) } in &said {
        let fits = |turn: &&Turn| match turn.what {
            Happened::Slept { woken_ns, waker: by, .. } => {
                turn.tid == *tid && by == *waker && (*from..=*to).contains(&(woken_ns + began))
            }
            _ => false,
        };
        // Somebody who wakes another may be held up, so that the wait ends where the program cannot see it: but never
        // without a turn.
        let turns: Vec<&Turn> = recorded.schedule.iter().filter(fits).collect();
        let all: Vec<&Turn> = recorded.schedule.iter().filter(|turn| turn.tid == *tid).collect();
        assert_eq!(turns.len(), 1, "{kind} of {tid}, woken by {waker:?} between {from} and {to}, {began}: {all:#?}");
    }
}

#[test]
fn threads_begin_and_end_and_what_is_theirs_lies_between() {
    if !may_record() {
        return;
    }
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    let script = "(exit 3) & wait; /bin/true; exit 0";
    let command = ["/bin/sh", "-c", script].map(OsString::from);
    let recorded = record_to(&command, directory.path(), &directory.path().join("printed"));
    let schedule = &recorded.schedule;
    let began: Vec<(u32, u64)> = schedule
        .iter()
        .filter_map(|turn| matches!(turn.what, Happened::Began { .. }).then_some((turn.tid, turn.t_ns)))
        .collect();
    assert_eq!(began.len(), 2, "{schedule:?}");
    let root = recorded.rows[0].event.tid;
    for &(tid, t_ns) in &began {
        assert!(schedule.iter().any(|turn| turn.what == Happened::Began { parent: root } && turn.tid == tid));
        let ends: Vec<u64> =
            schedule.iter().filter(|t| t.tid == tid && t.what == Happened::Ended).map(|t| t.t_ns).collect();
        assert_eq!(ends.len(), 1, "{tid}");
        let of: Vec<&Turn> = schedule.iter().filter(|turn| turn.tid == tid).collect();
        // It waits for its first processor from its beginning on.
        assert!(matches!(of[1], Turn { t_ns: at, what: Happened::Waited { .. }, .. } if *at == t_ns), "{of:?}");
        assert!(of.iter().all(|turn| (t_ns..=ends[0]).contains(&turn.t_ns)), "{of:?}");
        let rows = recorded.rows.iter().filter(|row| row.event.tid == tid);
        assert!(rows.into_iter().all(|row| (t_ns..=ends[0]).contains(&row.event.t_ns)));
    }
}

#[test]
fn what_a_thread_slept_in_a_call_is_told_by_the_call_and_by_its_turns() {
    if !may_record() {
        return;
    }
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    let script = "dd if=/dev/zero of=file bs=64k count=20 oflag=sync 2>/dev/null";
    let command = ["/bin/sh", "-c", script].map(OsString::from);
    let recorded = record_to(&command, directory.path(), &directory.path().join("printed"));
    let mut slept_rows = 0;
    for row in recorded.rows.iter().filter(|row| row.event.running_ns.is_some()) {
        let event = &row.event;
        let (Some(blocked), Some(running)) = (event.blocked_ns, event.running_ns) else { continue };
        let within = event.t_ns..=event.t_ns + event.dur_ns;
        let (mut slept, mut off) = (0, 0);
        for turn in recorded.schedule.iter().filter(|turn| turn.tid == event.tid && within.contains(&turn.t_ns)) {
            match turn.what {
                Happened::Slept { woken_ns, until_ns, .. } => {
                    slept += woken_ns - turn.t_ns;
                    off += until_ns - turn.t_ns;
                }
                Happened::Waited { until_ns } => off += until_ns - turn.t_ns,
                Happened::Began { .. } | Happened::Recorder { .. } | Happened::Ended => {}
            }
        }
        // Accesses through mappings are within the time of their thread's, not calls.
        // Turns of the command begin with the command, within its execve.
        if event.seq > 0 && !matches!(event.op, trace::Op::MapRead | trace::Op::MapWrite) {
            assert_eq!((slept, event.dur_ns.saturating_sub(off)), (blocked, running), "{event:?}");
            slept_rows += u64::from(slept > 0);
        }
    }
    assert!(slept_rows > 0, "nothing slept in a synchronous write");
}
