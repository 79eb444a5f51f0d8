//! Searching the states of many sequences.
//!
//! Sequences are numbered. Several are looked at at the same time, and what they give is taken in the order of their
//! numbers: how many threads there are changes nothing in the result. A state that is known with the same measure is
//! not looked at again.

use crate::judge::{Class, Verdict, judge};
use crate::{CrashError, Found, History, Op, Recovered, Start, Subject, Tally, Undone, Unrecoverable, Watched};
use device::crash::{Crash, Disk, Plan, StateId};
use device::store::{Frozen, Overlay, Store};
use kernel::Lab;
use posix::{Errno, FileSystem};
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError, RwLock, mpsc};

/// A history with what else is known of it.
#[derive(Debug)]
pub struct Ran {
    /// What happened.
    pub history: History,
    /// Operations that were refused.
    pub refused: u64,
    /// Counts of the file system's own, by name.
    pub counts: Vec<(&'static str, u64)>,
}

/// How to search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Which states.
    pub plan: Plan,
    /// As many are enough.
    pub states: u64,
    /// Of so many states that are repaired one is crashed again while it is; 0: none.
    pub recovery_of: u64,
    /// Of so many moments one is looked at.
    pub moment_of: u64,
    /// Of each class, failures that are kept.
    pub failures: usize,
    /// At the same time.
    pub threads: usize,
}

impl Default for Settings {
    fn default() -> Settings {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Settings { plan: Plan::default(), states: u64::MAX, recovery_of: 16, moment_of: 1, failures: 3, threads }
    }
}

/// A state that is worse than repaired without a loss.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What was done.
    pub ops: Vec<Op>,
    /// The state that the crash left.
    pub state: StateId,
    /// If the power failed again during recovery: the state that this left.
    pub again: Option<StateId>,
    /// What it is.
    pub verdict: Verdict,
}

/// What a search has found.
#[derive(Clone, Debug, Default)]
pub struct Search {
    /// Counted.
    pub tally: Tally,
    /// The first of each class.
    pub failures: Vec<Failure>,
    /// Why it ended early, if it did.
    pub undone: Option<Undone>,
}

/// A state that was looked at.
#[derive(Clone, Debug)]
struct Looked {
    key: u64,
    class: Class,
    exposed: bool,
    in_recovery: bool,
    events: Vec<(&'static str, u64)>,
}

/// What one sequence has given.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    looked: Vec<Looked>,
    failures: Vec<Failure>,
    moments: u64,
    complete: u64,
    refused: u64,
    counts: Vec<(&'static str, u64)>,
}

/// Makes what sequences begin with: what `before` does on a new file system, unmounted.
///
/// # Errors
/// It cannot be made.
pub fn start<S: Subject>(subject: &S, blank: Vec<u8>, before: &[Op]) -> Result<Start, CrashError>
where
    Lab<S::Volume>: FileSystem,
{
    let blank = Frozen(blank.into());
    let mut watched = Watched::mount(subject, blank, &Found::default(), 0)?;
    for op in before {
        watched.perform(op).map_err(|errno| CrashError::Refused { op: op.to_string(), errno })?;
    }
    let calls = watched.calls();
    let image = watched.unmount()?;
    let mut disk = Overlay::new(image.clone());
    let recovered = subject.recover(&mut disk).map_err(|why| CrashError::Mount(why.0))?;
    if recovered.repaired > 0 || recovered.shared.is_some() {
        return Err(CrashError::Mount("what was unmounted is not clean".to_owned()));
    }
    Ok(Start { image, seen: recovered.found, calls })
}

/// Does a sequence and lets time pass.
///
/// # Errors
/// What it begins with cannot be mounted, or `strict`, and one is refused.
pub fn run_ops<S: Subject>(subject: &S, start: &Start, ops: &[Op], strict: bool) -> Result<Ran, CrashError>
where
    Lab<S::Volume>: FileSystem,
{
    let mut watched = Watched::mount(subject, start.image.clone(), &start.seen, start.calls)?;
    let mut refused = 0;
    for op in ops {
        match watched.perform(op) {
            Ok(()) => {}
            Err(errno) if strict && errno != Errno::ENOSPC => {
                return Err(CrashError::Refused { op: op.to_string(), errno });
            }
            Err(_) => refused += 1,
        }
    }
    let settle = Op::Wait { ms: subject.settle_ms() };
    if ops.last() != Some(&settle) {
        watched.perform(&settle).map_err(|errno| CrashError::Refused { op: settle.to_string(), errno })?;
    }
    let counts = subject.counts(watched.volume());
    let mut history = watched.into_history();
    history.script = Some(ops.to_vec());
    Ok(Ran { history, refused, counts })
}

/// Looks at the states of a history.
pub(crate) fn explore<S: Subject>(
    subject: &S,
    history: &History,
    settings: &Settings,
    (part, parts): (u64, u64),
    known: &dyn Fn(u64) -> bool,
    go_on: &dyn Fn() -> bool,
) -> Result<Outcome, CrashError> {
    let mut outcome = Outcome::default();
    let mut crash = Crash::new(history.base.clone(), &history.log, settings.plan);
    // Within one sequence the same disk at the same measure comes up often.
    let mut here: FxHashSet<u64> = FxHashSet::default();
    while let Some(point) = crash.next_point()? {
        let number = point.number as u64;
        if number % parts != part || !mixed(settings.plan.seed, number).is_multiple_of(settings.moment_of.max(1)) {
            continue;
        }
        if !go_on() {
            break;
        }
        outcome.moments += 1;
        outcome.complete += u64::from(point.all);
        let measure = history.measure(point.number);
        for choice in 0..point.choices {
            crash.lay(&point, choice)?;
            let key = mixed(crash.disk().state(), measure);
            if !known(key) && here.insert(key) {
                let state = StateId { point: point.number as u32, choice };
                one(subject, history, crash.disk(), state, key, settings, &mut outcome)?;
            }
            crash.lift()?;
        }
    }
    Ok(outcome)
}

/// Recovers one state, judges it, and perhaps lets the power fail again meanwhile.
fn one<S: Subject>(
    subject: &S,
    history: &History,
    disk: &Disk<Frozen>,
    state: StateId,
    key: u64,
    settings: &Settings,
    outcome: &mut Outcome,
) -> Result<(), CrashError> {
    let reached = state.point as usize;
    let recovered = subject.recover(&mut Overlay::new(disk));
    let verdict = judge(history, reached, &recovered, subject.names());
    let (events, repaired) = match &recovered {
        Ok(recovered) => (recovered.events.iter().map(|(name, n)| (*name, *n)).collect(), recovered.repaired),
        Err(_) => (Vec::new(), 1),
    };
    // What cannot be recovered once is not interrupted in it.
    let again = settings.recovery_of > 0
        && repaired > 0
        && recovered.is_ok()
        && mixed(key, settings.plan.seed).is_multiple_of(settings.recovery_of);
    outcome.take(key, state, None, verdict, events, history, settings);
    if !again {
        return Ok(());
    }
    let Ok(before) = recovered else { return Ok(()) };
    if let Err(Unrecoverable(why)) = use_again(subject, disk, &before.found) {
        let verdict = Verdict { class: Class::Unresolvable, why, exposed: false };
        outcome.take(mixed(key, 1), state, None, verdict, Vec::new(), history, settings);
    }
    let log = subject.recovery_log(&disk).map_err(|why| CrashError::Mount(why.0))?;
    let plan = Plan { most_of_a_point: 4, ..settings.plan };
    let mut crash = Crash::new(disk, &log, plan);
    let mut here: FxHashSet<u64> = FxHashSet::default();
    while let Some(point) = crash.next_point()? {
        for choice in 0..point.choices {
            crash.lay(&point, choice)?;
            let sum = crash.disk().state();
            if sum != 0 && here.insert(sum) {
                let again = StateId { point: point.number as u32, choice };
                let recovered = without_promise(subject.recover(&mut Overlay::new(crash.disk())));
                let mut verdict = judge(history, reached, &recovered, subject.names());
                if subject.names().are_in_order()
                    && recovered.is_ok_and(|recovered| recovered.found != before.found)
                    && verdict.class < Class::Unresolvable
                {
                    let why = "an interrupted recovery gives another tree than one that is not".to_owned();
                    verdict = Verdict { class: Class::Unresolvable, why, exposed: false };
                }
                outcome.take(mixed(sum, key), state, Some(again), verdict, Vec::new(), history, settings);
            }
            crash.lift()?;
        }
    }
    Ok(())
}

/// What a crash may leave is promised of the file system, not of its check.
fn without_promise(recovered: Result<Recovered, Unrecoverable>) -> Result<Recovered, Unrecoverable> {
    recovered.map(|recovered| Recovered { beyond: None, ..recovered })
}

/// Uses what was recovered: mounts it, lets the power fail, mounts and unmounts it. Nothing is to be repaired then, and
/// everything still there.
fn use_again<S: Subject>(subject: &S, disk: &Disk<Frozen>, expected: &Found) -> Result<(), Unrecoverable> {
    let mut overlay = Overlay::new(disk);
    subject.recover(&mut overlay)?;
    let mut bytes = vec![0; usize::try_from(overlay.len_bytes())?];
    overlay.read_at(0, &mut bytes)?;
    let once = Watched::mount(subject, Frozen(bytes.into()), expected, 0)?.into_history();
    let unmounted = Watched::mount(subject, once.base, expected, 0)?.unmount()?;
    let after = subject.recover(&mut Overlay::new(unmounted))?;
    if after.repaired > 0 || after.shared.is_some() {
        let what: Vec<_> = after.events.keys().collect();
        return Err(Unrecoverable(format!("recovered, mounted twice and unmounted, it is not clean: {what:?}")));
    }
    if after.found != *expected {
        return Err(Unrecoverable("recovered, mounted twice and unmounted, it has another tree".to_owned()));
    }
    Ok(())
}

impl Outcome {
    #[allow(clippy::too_many_arguments)]
    fn take(
        &mut self,
        key: u64,
        state: StateId,
        again: Option<StateId>,
        verdict: Verdict,
        events: Vec<(&'static str, u64)>,
        history: &History,
        settings: &Settings,
    ) {
        let (class, exposed) = (verdict.class, verdict.exposed);
        self.looked.push(Looked { key, class, exposed, in_recovery: again.is_some(), events });
        let kept = self.failures.iter().filter(|failure| failure.verdict.class == class).count();
        if class >= Class::UnsyncedLost && kept < settings.failures {
            self.failures.push(Failure { ops: history.ops(), state, again, verdict });
        }
    }

    /// The failures.
    pub(crate) fn into_failures(self) -> Vec<Failure> {
        self.failures
    }

    /// Adds what is new to a search.
    fn merge(self, known: &mut FxHashMap<u64, ()>, search: &mut Search, settings: &Settings) {
        let mut fresh = false;
        for looked in self.looked {
            if known.insert(looked.key, ()).is_some() {
                continue;
            }
            fresh = true;
            let tally = &mut search.tally;
            tally.states += 1;
            *tally.by_class.entry(looked.class).or_default() += 1;
            tally.exposed += u64::from(looked.exposed);
            tally.in_recovery += u64::from(looked.in_recovery);
            for (name, n) in looked.events.into_iter().filter(|(_, n)| *n > 0) {
                *tally.events.entry(name.to_owned()).or_default() += n.min(1);
            }
        }
        let tally = &mut search.tally;
        tally.sequences += 1;
        tally.moments += self.moments;
        tally.moments_complete += self.complete;
        tally.refused += self.refused;
        for (name, n) in self.counts {
            *tally.events.entry(name.to_owned()).or_default() += n;
        }
        for failure in self.failures.into_iter().filter(|_| fresh) {
            let kept = search.failures.iter().filter(|other| other.verdict.class == failure.verdict.class).count();
            if kept < settings.failures {
                search.failures.push(failure);
            }
        }
    }
}

/// Searches the states of histories: `history` makes the one of a number, `None` behind the last; each is looked at in
/// `parts` parts. `go_on` is told of the tally now and then.
///
/// # Errors
/// A history cannot be made, or a store not be read.
pub fn search<S, F>(
    subject: &S,
    history: F,
    parts: u64,
    settings: &Settings,
    go_on: &mut dyn FnMut(&Tally) -> bool,
) -> Result<Search, CrashError>
where
    S: Subject,
    F: Fn(u64) -> Result<Option<Ran>, CrashError> + Sync,
{
    let parts = parts.max(1);
    let next = AtomicU64::new(0);
    let stop = AtomicBool::new(false);
    let seen: RwLock<FxHashMap<u64, ()>> = RwLock::default();
    let merged = (Mutex::new(0_u64), std::sync::Condvar::new());
    let threads = settings.threads.max(1);
    let (sender, receiver) = mpsc::channel();
    let mut found = Search::default();
    let mut failed = None;
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let sender = sender.clone();
            let (history, next, stop, seen, merged) = (&history, &next, &stop, &seen, &merged);
            scope.spawn(move || {
                let known = |key| seen.read().unwrap_or_else(PoisonError::into_inner).contains_key(&key);
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    // Nobody runs far ahead of what is taken: memory stays bounded.
                    {
                        let mut taken = merged.0.lock().unwrap_or_else(PoisonError::into_inner);
                        while number > *taken + 4 * threads as u64 && !stop.load(Ordering::Relaxed) {
                            taken = merged.1.wait(taken).unwrap_or_else(PoisonError::into_inner);
                        }
                    }
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                    let go_on = || !stop.load(Ordering::Relaxed) && !posix::interrupt::requested();
                    let outcome = match history(number / parts) {
                        Ok(None) => Ok(None),
                        Err(error) => Err(error),
                        Ok(Some(Ran { history, refused, counts })) => {
                            explore(subject, &history, settings, (number % parts, parts), &known, &go_on)
                                .map(|outcome| Some(Outcome { refused, counts, ..outcome }))
                        }
                    };
                    let last = !matches!(outcome, Ok(Some(_)));
                    if sender.send((number, outcome)).is_err() || last {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let mut waiting = BTreeMap::new();
        let mut wanted = 0;
        'all: for (number, outcome) in receiver {
            waiting.insert(number, outcome);
            while let Some(outcome) = waiting.remove(&wanted) {
                wanted += 1;
                match outcome {
                    Ok(Some(outcome)) => {
                        let mut known = seen.write().unwrap_or_else(PoisonError::into_inner);
                        outcome.merge(&mut known, &mut found, settings);
                    }
                    Ok(None) => break 'all,
                    Err(error) => {
                        failed = Some(error);
                        break 'all;
                    }
                }
                *merged.0.lock().unwrap_or_else(PoisonError::into_inner) = wanted;
                merged.1.notify_all();
                if found.tally.states >= settings.states {
                    found.undone = Some(Undone::States);
                    break 'all;
                }
                if !go_on(&found.tally) {
                    found.undone = Some(Undone::Stopped);
                    break 'all;
                }
            }
        }
        stop.store(true, Ordering::Relaxed);
        let _taken = merged.0.lock().unwrap_or_else(PoisonError::into_inner);
        merged.1.notify_all();
    });
    match failed {
        Some(error) => Err(error),
        None => Ok(found),
    }
}

/// A write that a state has in part or not at all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OpenWrite {
    /// Where on the disk.
    pub at_byte: u64,
    /// Its sectors that would change something.
    pub sectors: usize,
    /// Of these, how many are there.
    pub there: usize,
}

/// Makes one state again and judges it: its verdict, and the writes that it has in part or not at all.
///
/// # Errors
/// There is no such state.
pub fn one_state<S: Subject>(
    subject: &S,
    history: &History,
    plan: Plan,
    (state, again): (StateId, Option<StateId>),
) -> Result<(Verdict, Vec<OpenWrite>), CrashError> {
    let missing = || CrashError::NoState(state.to_string());
    let mut crash = Crash::new(history.base.clone(), &history.log, plan);
    while let Some(point) = crash.next_point()? {
        if point.number != state.point as usize {
            continue;
        }
        if state.choice >= point.choices {
            return Err(missing());
        }
        let open = point.open(state.choice, plan).into_iter();
        let open = open.map(|(event, sectors, there)| {
            let at_byte = match history.log.get(event) {
                Some(device::crash::Event::Write(write)) => write.at_byte,
                Some(device::crash::Event::Discard { at_byte, .. }) => *at_byte,
                _ => 0,
            };
            OpenWrite { at_byte, sectors, there }
        });
        let open = open.collect();
        crash.lay(&point, state.choice)?;
        let reached = point.number;
        let Some(again) = again else {
            let recovered = subject.recover(&mut Overlay::new(crash.disk()));
            return Ok((judge(history, reached, &recovered, subject.names()), open));
        };
        let log = subject.recovery_log(&crash.disk()).map_err(|why| CrashError::Mount(why.0))?;
        let plan = Plan { most_of_a_point: 4, ..plan };
        let mut recovery = Crash::new(crash.disk(), &log, plan);
        while let Some(point) = recovery.next_point()? {
            if point.number == again.point as usize && again.choice < point.choices {
                recovery.lay(&point, again.choice)?;
                let recovered = without_promise(subject.recover(&mut Overlay::new(recovery.disk())));
                return Ok((judge(history, reached, &recovered, subject.names()), open));
            }
        }
        return Err(CrashError::NoState(again.to_string()));
    }
    Err(missing())
}

/// What a state of a history leaves, as an image.
///
/// # Errors
/// There is no such state.
pub fn image_of(history: &History, plan: Plan, state: StateId) -> Result<Vec<u8>, CrashError> {
    let missing = || CrashError::NoState(state.to_string());
    let mut crash = Crash::new(history.base.clone(), &history.log, plan);
    while let Some(point) = crash.next_point()? {
        if point.number == state.point as usize && state.choice < point.choices {
            crash.lay(&point, state.choice)?;
            let disk = crash.disk();
            let mut bytes = vec![0; usize::try_from(disk.len_bytes()).map_err(|_| missing())?];
            disk.read_at(0, &mut bytes)?;
            return Ok(bytes);
        }
    }
    Err(missing())
}

/// One number of two (the finaliser of SplitMix64).
fn mixed(one: u64, other: u64) -> u64 {
    let mut z = one.wrapping_add(other.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
