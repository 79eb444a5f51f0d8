//! A search as somebody asks for it: a target, what is to be done on it, and a report.

use crate::search::{OpenWrite, Ran, Search, start};
use crate::sequence::{self, Drawn, MIXES};
use crate::start_state::Start;
use crate::{
    Class, CrashError, Failure, FfsSubject, LfsSubject, Op, Settings, Subject, Tally, Undone, Watched, image_of,
    minimise, one_state, run_ops, search, shown_ops,
};
use device::crash::{StateId, UnderWay, WriteCache};
use kernel::{Lab, Volume};
use lab::{Spec, System};
use posix::FileSystem;
use serde::Serialize;

/// Bytes of a new file system where the target says nothing: all of it is checked for every state.
const DEFAULT_BYTES: u64 = 4 << 20;
/// An image is held in memory.
const MOST_BYTES: u64 = 1 << 30;
/// Operations of a long sequence.
const LONG: usize = 60;

/// Drives a file system: a recording that is replayed.
pub type Driver<'a> = dyn Fn(&mut dyn FileSystem) -> Result<(), CrashError> + Sync + 'a;

/// What is done on the target.
pub enum Work<'a> {
    /// All sequences of one to so many operations, and then long ones that are drawn.
    Sequences {
        /// So many.
        longest: u32,
    },
    /// These operations.
    Ops(Vec<Op>),
    /// What a driver does; the state that it begins with is there when it has the caches emptied.
    Driven(&'a Driver<'a>),
    /// These operations, on the state that a driver begins with.
    OpsOn(&'a Driver<'a>, Vec<Op>),
}

/// A failure as it is shown: as small as it could be made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SmallestFailure {
    /// How bad.
    pub class: Class,
    /// Why.
    pub why: String,
    /// What was done.
    pub operations: String,
    /// How many operations that is, and how many it was.
    pub length: usize,
    #[allow(missing_docs)]
    pub found_in_length: usize,
    /// The state.
    pub state: String,
    /// Writes that were open then, and what of them is there.
    pub writes: Vec<OpenWrite>,
}

/// What a search has found, for whoever asked for it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Campaign {
    /// The target, as it was written.
    pub target: String,
    /// The seed.
    pub seed: u64,
    /// What the drive's cache was taken for.
    pub write_cache: &'static str,
    /// What becomes of a write under way.
    pub under_way: &'static str,
    /// States by verdict.
    pub tally: Tally,
    /// Of so many moments one was looked at.
    pub moment_of: u64,
    /// Why it ended before its end, if it did.
    pub undone: Option<Undone>,
    /// Whether there was no memory for all that was done.
    pub cut_short: bool,
    /// Failures, the worst first.
    pub failures: Vec<SmallestFailure>,
}

/// One state made again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Replayed {
    /// The target, as it was written.
    pub target: String,
    /// The state.
    pub state: String,
    /// Its verdict.
    pub class: Class,
    /// Why; empty where nothing is wrong.
    pub why: String,
    /// Writes that were open then, and what of them is there.
    pub writes: Vec<OpenWrite>,
    /// What the crash leaves, before recovery.
    #[serde(skip)]
    pub image: Vec<u8>,
}

/// The words for a drive's cache.
pub(crate) fn cache_word(cache: WriteCache) -> &'static str {
    match cache {
        WriteCache::AsReported => "drive",
        WriteCache::Off => "off",
        WriteCache::On => "on",
    }
}

/// The words for a write under way.
pub(crate) fn under_way_word(under_way: UnderWay) -> &'static str {
    match under_way {
        UnderWay::Nothing => "nothing",
        UnderWay::Whole => "whole",
        UnderWay::Torn => "torn",
    }
}

/// Searches a target. `go_on` is told of the tally now and then.
///
/// # Errors
/// The target cannot be set up, or an operation is refused.
pub fn campaign(
    spec: &Spec,
    work: &Work<'_>,
    settings: &Settings,
    go_on: &mut dyn FnMut(&Tally) -> bool,
) -> Result<Campaign, CrashError> {
    match &spec.system {
        System::Ffs(_) => on(&FfsSubject::new(spec.clone())?, spec, work, settings, go_on),
        System::Lfs(_) => on(&LfsSubject::new(spec)?, spec, work, settings, go_on),
    }
}

/// Makes one state again.
///
/// # Errors
/// The target cannot be set up, an operation is refused, or there is no such state.
pub fn replayed(
    spec: &Spec,
    work: &Work<'_>,
    settings: &Settings,
    state: (StateId, Option<StateId>),
) -> Result<Replayed, CrashError> {
    match &spec.system {
        System::Ffs(_) => again(&FfsSubject::new(spec.clone())?, spec, work, settings, state),
        System::Lfs(_) => again(&LfsSubject::new(spec)?, spec, work, settings, state),
    }
}

/// What sequences begin with, and the size of its blocks.
fn beginning<S: Subject>(subject: &S, spec: &Spec, work: &Work<'_>) -> Result<(Start, u32), CrashError>
where
    Lab<S::Volume>: FileSystem,
{
    let blank = spec.image_in_memory(DEFAULT_BYTES, MOST_BYTES)?;
    match work {
        Work::Sequences { .. } | Work::Ops(_) => {
            let block_bytes = subject.mount(device::store::Frozen(blank.0.clone().into()))?.volume().block_bytes();
            let prologue = if spec.image.is_some() { Vec::new() } else { sequence::prologue(block_bytes) };
            Ok((start(subject, blank.0, &prologue)?, block_bytes))
        }
        Work::Driven(driver) | Work::OpsOn(driver, _) => {
            let (ran, block_bytes) = driven(subject, spec, driver)?;
            Ok((ran.history.start(), block_bytes))
        }
    }
}

/// What a driver does on a new file system, or on the image that the target names.
fn driven<S: Subject>(subject: &S, spec: &Spec, driver: &Driver<'_>) -> Result<(Ran, u32), CrashError>
where
    Lab<S::Volume>: FileSystem,
{
    let blank = spec.image_in_memory(DEFAULT_BYTES, MOST_BYTES)?;
    let empty = start(subject, blank.0, &[])?;
    let mut watched = Watched::mount(subject, empty.image, &empty.seen, 0)?;
    watched.begins_cold = true;
    driver(&mut watched)?;
    watched.pause_ns(subject.settle_ms() * 1_000_000);
    let (block_bytes, counts) = (watched.volume().block_bytes(), subject.counts(watched.volume()));
    Ok((Ran { history: watched.into_history(), refused: 0, counts }, block_bytes))
}

fn on<S: Subject>(
    subject: &S,
    spec: &Spec,
    work: &Work<'_>,
    settings: &Settings,
    go_on: &mut dyn FnMut(&Tally) -> bool,
) -> Result<Campaign, CrashError>
where
    Lab<S::Volume>: FileSystem,
{
    let mut settings = *settings;
    let mut cut_short = false;
    let (begin, found) = match work {
        Work::Sequences { longest } => {
            let (begin, block_bytes) = beginning(subject, spec, work)?;
            let short: Vec<Vec<Op>> = if spec.image.is_some() {
                Vec::new()
            } else {
                (1..=*longest).flat_map(|length| sequence::all(length, block_bytes)).collect()
            };
            let seed = settings.plan.seed;
            let history = |number: u64| {
                let drawn;
                let ops = match short.get(number as usize) {
                    Some(ops) => ops,
                    None => {
                        let number = number - short.len() as u64;
                        let mix = &MIXES[(number % MIXES.len() as u64) as usize];
                        let seed = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(number);
                        drawn = Drawn::new(seed, mix, &begin.seen, 0, block_bytes).take(LONG).collect::<Vec<_>>();
                        &drawn
                    }
                };
                run_ops(subject, &begin, ops, false).map(Some)
            };
            let found = search(subject, history, 1, &settings, go_on)?;
            (begin, found)
        }
        Work::Ops(ops) | Work::OpsOn(_, ops) => {
            let (begin, _) = beginning(subject, spec, work)?;
            let parts = settings.threads as u64;
            let history =
                |number: u64| if number == 0 { run_ops(subject, &begin, ops, true).map(Some) } else { Ok(None) };
            let found = search(subject, history, parts, &settings, go_on)?;
            (begin, found)
        }
        Work::Driven(driver) => {
            let (first, _) = driven(subject, spec, driver)?;
            cut_short = first.history.cut_short;
            let moments = first.history.log.len() as u64 + 1;
            // As many moments as give about the states asked for, spread over all of it.
            let most = u64::from(settings.plan.most_of_a_point).max(1);
            settings.moment_of = (moments.saturating_mul(most) / settings.states.max(1)).max(1);
            let begin = first.history.start();
            drop(first);
            let parts = settings.threads as u64;
            let history = |number: u64| match number {
                0 => driven(subject, spec, driver).map(|(ran, _)| Some(ran)),
                _ => Ok(None),
            };
            let found = search(subject, history, parts, &settings, go_on)?;
            (begin, found)
        }
    };
    let Search { tally, mut failures, undone } = found;
    failures.sort_by_key(|failure| std::cmp::Reverse(failure.verdict.class));
    let mut shown: Vec<SmallestFailure> = Vec::new();
    for failure in &failures {
        // One of each class is made small: the others are mostly the same once more.
        let bad = failure.verdict.class >= Class::Unresolvable;
        if bad && shown.iter().all(|other| other.class != failure.verdict.class) && !posix::interrupt::requested() {
            shown.push(small(subject, &begin, failure, &settings)?);
        }
    }
    Ok(Campaign {
        target: spec.text.clone(),
        seed: settings.plan.seed,
        write_cache: cache_word(settings.plan.cache),
        under_way: under_way_word(settings.plan.under_way),
        tally,
        moment_of: settings.moment_of,
        undone,
        cut_short,
        failures: shown,
    })
}

fn named(state: StateId, again: Option<StateId>) -> String {
    again.map_or(state.to_string(), |again| format!("{state}/{again}"))
}

fn small<S: Subject>(
    subject: &S,
    begin: &Start,
    failure: &Failure,
    settings: &Settings,
) -> Result<SmallestFailure, CrashError>
where
    Lab<S::Volume>: FileSystem,
{
    let found_in_length = failure.ops.len();
    let small = minimise(subject, begin, failure, settings, &|| !posix::interrupt::requested())?;
    let Failure { ops, state, again, verdict } = small.failure;
    let Ran { history, .. } = run_ops(subject, begin, &ops, false)?;
    let (_, writes) = one_state(subject, &history, settings.plan, (state, again))?;
    let (operations, length) = (shown_ops(&ops), ops.len());
    let (class, why, state) = (verdict.class, verdict.why, named(state, again));
    Ok(SmallestFailure { class, why, operations, length, found_in_length, state, writes })
}

fn again<S: Subject>(
    subject: &S,
    spec: &Spec,
    work: &Work<'_>,
    settings: &Settings,
    (state, again): (StateId, Option<StateId>),
) -> Result<Replayed, CrashError>
where
    Lab<S::Volume>: FileSystem,
{
    let ran = match work {
        Work::Ops(ops) | Work::OpsOn(_, ops) => {
            let (begin, _) = beginning(subject, spec, work)?;
            run_ops(subject, &begin, ops, false)?
        }
        Work::Driven(driver) => driven(subject, spec, driver)?.0,
        Work::Sequences { .. } => return Err(CrashError::NoState(state.to_string())),
    };
    let (verdict, writes) = one_state(subject, &ran.history, settings.plan, (state, again))?;
    let image = image_of(&ran.history, settings.plan, state)?;
    let (class, why, state) = (verdict.class, verdict.why, named(state, again));
    Ok(Replayed { target: spec.text.clone(), state, class, why, writes, image })
}
