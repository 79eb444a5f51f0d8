//! Concurrent processes: hand-over, deadlock, panic.

use crate::common;
use posix::{Call, FileKind, FileSystem, Mode, Mounted, OpenFlags, Outcome, Process, Step};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Makes a file per turn; players take turns strictly.
struct Player<'a> {
    turn: &'a AtomicU32,
    me: u32,
    players: u32,
    left: u32,
    name: String,
}

impl Process for Player<'_> {
    fn next(&mut self, last: Option<&Outcome>) -> Step<'_> {
        if let Some(outcome) = last {
            assert!(outcome.result.is_ok(), "{outcome:?}");
            self.turn.store((self.me + 1) % self.players, Ordering::SeqCst);
            self.left -= 1;
        }
        if self.left == 0 {
            return Step::Done;
        }
        if self.turn.load(Ordering::SeqCst) != self.me {
            return Step::Blocked;
        }
        self.name = format!("{}-{}", self.me, self.left);
        Step::Call(Call::Mknod { at: Path::new(&self.name).into(), kind: FileKind::File, mode: Mode(0o644) })
    }
}

fn play(players: u32, turns: u32) {
    let dir = tempfile::tempdir().unwrap();
    let mut fs = Mounted::open(dir.path()).unwrap();
    let turn = AtomicU32::new(0);
    let crowd = (0..players)
        .map(|me| Box::new(Player { turn: &turn, me, players, left: turns, name: String::new() }) as Box<dyn Process>)
        .collect();
    fs.run(crowd).unwrap();
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), (players * turns) as usize);
}

/// A regression: the turn is passed on when the outcome is delivered, so it is the delivery that must wake the next
/// player; waking at the call's completion let both fall asleep.
#[test]
fn turns_are_handed_over_without_a_lost_wake_up() {
    play(2, 300);
    play(7, 60);
}

struct Steps<F>(F);

impl<F: FnMut(Option<&Outcome>) -> Step<'static> + Send> Process for Steps<F> {
    fn next(&mut self, last: Option<&Outcome>) -> Step<'_> {
        (self.0)(last)
    }
}

fn stat() -> Step<'static> {
    Step::Call(Call::Stat { at: ".".into(), follow: true })
}

#[test]
fn a_deadlock_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let mut fs = Mounted::open(dir.path()).unwrap();
    for processes in [1, 2, 5] {
        let mut calls = 0;
        let mut crowd: Vec<Box<dyn Process>> = vec![Box::new(Steps(move |_: Option<&Outcome>| {
            calls += 1;
            if calls < 100 { stat() } else { Step::Blocked }
        }))];
        crowd.extend((1..processes).map(|_| Box::new(Steps(|_: Option<&Outcome>| Step::Blocked)) as Box<dyn Process>));
        let error = fs.run(crowd).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::Deadlock, "{error}");
    }
}

#[test]
fn one_that_ends_or_pauses_is_no_deadlock() {
    let dir = tempfile::tempdir().unwrap();
    let mut fs = Mounted::open(dir.path()).unwrap();
    let over = AtomicBool::new(false);
    let mut paused = false;
    let pausing = Steps(|_: Option<&Outcome>| {
        if !std::mem::replace(&mut paused, true) {
            return Step::PauseNs(30_000_000);
        }
        over.store(true, Ordering::SeqCst);
        Step::Done
    });
    let waiting = Steps(|_: Option<&Outcome>| if over.load(Ordering::SeqCst) { Step::Done } else { Step::Blocked });
    fs.run(vec![Box::new(waiting), Box::new(pausing)]).unwrap();
    fs.run(Vec::new()).unwrap();
}

#[test]
fn a_panic_comes_out_after_the_others_have_stopped() {
    let dir = tempfile::tempdir().unwrap();
    let mut fs = Mounted::open(dir.path()).unwrap();
    for blocked in [true, false] {
        let mut calls = 0;
        let bad = Steps(move |_: Option<&Outcome>| {
            calls += 1;
            if calls == 50 { panic!("of process one") } else { stat() }
        });
        let other = Steps(move |_: Option<&Outcome>| if blocked { Step::Blocked } else { stat() });
        let run =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| fs.run(vec![Box::new(bad), Box::new(other)])));
        let payload = run.unwrap_err();
        assert_eq!(payload.downcast_ref::<&str>(), Some(&"of process one"));
    }
}

#[test]
fn processes_share_descriptors() {
    let dir = tempfile::tempdir().unwrap();
    let mut fs = Mounted::open(dir.path()).unwrap();
    let flags = OpenFlags { create: true, append: true, ..OpenFlags::WRITE };
    let fd = common::open(&mut fs, "log", flags).unwrap();
    let writer = || {
        let mut left = 100;
        Steps(move |last: Option<&Outcome>| {
            if let Some(outcome) = last {
                assert_eq!(outcome.count(), Ok(10));
            }
            left -= 1;
            if left < 0 { Step::Done } else { Step::Call(Call::Write { fd, offset: None, len_bytes: 10, data: None }) }
        })
    };
    fs.run(vec![Box::new(writer()), Box::new(writer()), Box::new(writer())]).unwrap();
    assert_eq!(dir.path().join("log").metadata().unwrap().len(), 3000);
}

#[test]
fn an_async_block_is_a_process() {
    let dir = tempfile::tempdir().unwrap();
    let mut fs = Mounted::open(dir.path()).unwrap();
    let (made, over) = (&AtomicBool::new(false), &AtomicBool::new(false));
    let maker = posix::process(|calls| async move {
        let flags = OpenFlags { create: true, ..OpenFlags::WRITE };
        let fd = calls.make(Call::Open { at: "log".into(), flags, mode: Mode(0o644) }).await.fd().unwrap();
        for written in 0..100 {
            let outcome = calls.make(Call::Write { fd, offset: Some(written), len_bytes: 1, data: None }).await;
            assert_eq!(outcome.count(), Ok(1));
        }
        calls.make(Call::Close { fd }).await.result.unwrap();
        made.store(true, Ordering::SeqCst);
    });
    let reader = posix::process(|calls| async move {
        while !made.load(Ordering::SeqCst) {
            calls.blocked().await;
        }
        let outcome = calls.make(Call::Stat { at: "log".into(), follow: true }).await;
        assert_eq!(outcome.stat().unwrap().size_bytes, 100);
        over.store(true, Ordering::SeqCst);
    });
    fs.run(vec![Box::new(reader), Box::new(maker)]).unwrap();
    assert!(over.load(Ordering::SeqCst), "both went to their end");
}

#[test]
fn an_async_block_that_has_ended_stays_so() {
    let mut process = posix::process(|calls| async move { calls.blocked().await });
    let steps: Vec<_> = (0..3).map(|_| format!("{:?}", process.next(None))).collect();
    assert_eq!(steps, ["Blocked", "Done", "Done"]);
}
