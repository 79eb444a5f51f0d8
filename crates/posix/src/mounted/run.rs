//! Concurrent processes on OS threads.
//!
//! A process that is blocked waits for any other process to complete a call (or a pause) or to end. A call counts once
//! its outcome has been *delivered*, as that is where processes tell one another. Progress is a counter,
//! read *before* a process is asked for its step: if it has moved by the time the process says "blocked", the process
//! is asked again at once, so no wake-up is lost. When every live process sleeps on the same counter value, nobody
//! can ever move it: that is a deadlock, and reported.

use super::Mounted;
use super::resolve::{Reach, open_in_root};
use crate::{Contained, FileSystem, Outcome, Process, Step, contain, interrupt};
use rustix::fs::{Mode, OFlags};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// Why a run ends before its processes do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    Deadlock,
    Interrupted,
    Panicked,
    /// A thread could not get a working directory of its own, and why.
    NoDirectories(i32),
}

/// What the threads of one run share.
struct Room {
    /// Outcomes delivered, pauses over and processes ended.
    progress: AtomicU64,
    /// Processes asleep or falling asleep, on whatever value: who moves `progress` wakes them.
    sleepers: AtomicUsize,
    /// Set with `gate.stop`, so that running threads need not take the lock.
    stopping: AtomicBool,
    gate: Mutex<Gate>,
    woken: Condvar,
    /// Whether waiting may spin first: only with a processor for every thread.
    spin: bool,
}

struct Gate {
    live: usize,
    /// The latest value of `progress` that a process fell asleep on, and how many did. Sleepers on an older value have
    /// been or are about to be woken, so they must not count towards a deadlock.
    asleep_on: u64,
    asleep: usize,
    stop: Option<Stop>,
}

const SPINS: u32 = 2000;
/// How often a sleeper looks whether it has been interrupted.
const POLL: Duration = Duration::from_millis(50);

/// The directory below a handle's root that contained calls have for theirs. They can give it any mode, and whoever
/// could then move a directory out of it, while they work in that, would lead them out. So it is reached by the one
/// above alone, which they cannot name.
const INSIDE: &str = "root";

/// Has work done by a thread whose root directory is [`INSIDE`] the handle's root, or else by one that has every path
/// resolved below it; see [`FileSystem::contained`].
pub(super) fn contained(handle: &Mounted, work: &mut Contained<'_>) -> io::Result<()> {
    let handle = &handle.subdir(INSIDE)?;
    // What is read below /proc for it is not there inside.
    processors();
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("contained".into()).spawn_scoped(scope, move || {
            let reach = match contain::enter(&handle.shared.root) {
                Ok(()) => Reach::Rooted,
                Err(refused) => {
                    let flags = OFlags::PATH | OFlags::CLOEXEC;
                    let opened = open_in_root(&handle.shared.root, c".", flags, Mode::empty());
                    opened.map_err(|errno| no_means(&refused, errno))?;
                    Reach::Resolved
                }
            };
            work(&mut Mounted { reach, ..handle.clone() });
            Ok(())
        })?;
        thread.join().unwrap_or_else(|payload| resume_unwind(payload))
    })
}

fn no_means(chroot: &io::Error, openat2: rustix::io::Errno) -> io::Error {
    let message = format!(
        "calls cannot be kept inside a directory here: chroot(2): {chroot}; openat2(2): {openat2}; run as root, or on \
         Linux 5.6 or later, or choose a target of the laboratory, such as ffs:"
    );
    io::Error::new(chroot.kind(), message)
}

fn processors() -> usize {
    static PROCESSORS: OnceLock<usize> = OnceLock::new();
    *PROCESSORS.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// Runs every process to its end; see [`FileSystem::run`].
pub(super) fn run(handle: &Mounted, mut processes: Vec<Box<dyn Process + '_>>) -> io::Result<()> {
    let room = Room {
        progress: AtomicU64::new(0),
        sleepers: AtomicUsize::new(0),
        stopping: AtomicBool::new(false),
        gate: Mutex::new(Gate { live: processes.len(), asleep_on: 0, asleep: 0, stop: None }),
        woken: Condvar::new(),
        spin: processes.len() <= processors(),
    };
    if let [only] = processes.as_mut_slice() {
        let mut own = handle.clone();
        room.drive(&mut own, only.as_mut());
        return room.verdict();
    }
    let mut panic = None;
    std::thread::scope(|scope| {
        let mut threads = Vec::with_capacity(processes.len());
        for mut process in processes {
            let mut own = handle.clone();
            let room = &room;
            let spawned = std::thread::Builder::new().name("process".into()).spawn_scoped(scope, move || {
                if own.reach == Reach::Rooted
                    && let Err(error) = contain::own_directories()
                {
                    room.stop(Stop::NoDirectories(error.raw_os_error().unwrap_or(0)));
                    return Ok(());
                }
                let driven = catch_unwind(AssertUnwindSafe(|| room.drive(&mut own, process.as_mut())));
                if driven.is_err() {
                    room.stop(Stop::Panicked);
                }
                driven
            });
            match spawned {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    room.stop(Stop::Interrupted);
                    return Err(io::Error::new(error.kind(), format!("cannot start a thread for a process: {error}")));
                }
            }
        }
        for thread in threads {
            if let Err(payload) = thread.join().and_then(|driven| driven) {
                panic.get_or_insert(payload);
            }
        }
        Ok(())
    })?;
    if let Some(payload) = panic {
        resume_unwind(payload);
    }
    room.verdict()
}

impl Room {
    /// One process, from its first step to its end or the run's.
    fn drive(&self, handle: &mut Mounted, process: &mut dyn Process) {
        let mut last: Option<Outcome> = None;
        let mut went_on = true;
        loop {
            if self.stopping.load(Ordering::Relaxed) {
                return;
            }
            if interrupt::requested() {
                return self.stop(Stop::Interrupted);
            }
            let seen = self.progress.load(Ordering::SeqCst);
            let step = process.next(last.take().as_ref());
            if std::mem::take(&mut went_on) {
                self.advance();
            }
            match step {
                Step::Call(call) => {
                    last = Some(handle.call(&call));
                    went_on = true;
                }
                Step::PauseNs(ns) => {
                    handle.pause_ns(ns);
                    went_on = true;
                }
                Step::Blocked => self.wait(seen),
                Step::Done => {
                    self.lock().live -= 1;
                    return self.advance();
                }
            }
        }
    }

    /// Counts a completed call, a pause or an ended process, and wakes who waits for one.
    fn advance(&self) {
        self.progress.fetch_add(1, Ordering::SeqCst);
        if self.sleepers.load(Ordering::SeqCst) > 0 {
            // With the lock held no process is between its last look at the counter and its sleep.
            let _gate = self.lock();
            self.woken.notify_all();
        }
    }

    /// Waits until `progress` is no longer `seen`.
    fn wait(&self, seen: u64) {
        let moved = || self.progress.load(Ordering::SeqCst) != seen || self.stopping.load(Ordering::Relaxed);
        if self.spin {
            for _ in 0..SPINS {
                if moved() {
                    return;
                }
                std::hint::spin_loop();
            }
        }
        let mut gate = self.lock();
        // Announced before the last look at the counter: whoever moves it after this look sees a sleeper.
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        if !moved() {
            if gate.asleep_on != seen {
                (gate.asleep_on, gate.asleep) = (seen, 0);
            }
            gate.asleep += 1;
            // All live processes sleep on the present value: none is left to move it.
            if gate.asleep >= gate.live {
                self.set_stop(&mut gate, Stop::Deadlock);
            }
        }
        while !moved() {
            gate = self.woken.wait_timeout(gate, POLL).unwrap_or_else(PoisonError::into_inner).0;
            if interrupt::requested() {
                self.set_stop(&mut gate, Stop::Interrupted);
            }
        }
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
    }

    fn stop(&self, why: Stop) {
        self.set_stop(&mut self.lock(), why);
    }

    fn set_stop(&self, gate: &mut Gate, why: Stop) {
        gate.stop.get_or_insert(why);
        self.stopping.store(true, Ordering::Relaxed);
        self.woken.notify_all();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Gate> {
        self.gate.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn verdict(&self) -> io::Result<()> {
        let gate = self.lock();
        match gate.stop {
            None => Ok(()),
            Some(Stop::Interrupted) => Err(io::Error::new(io::ErrorKind::Interrupted, "interrupted")),
            Some(Stop::NoDirectories(errno)) => Err(io::Error::from_raw_os_error(errno)),
            Some(Stop::Deadlock | Stop::Panicked) => Err(io::Error::new(
                io::ErrorKind::Deadlock,
                format!("{} processes wait for one another and none can go on", gate.live),
            )),
        }
    }
}
