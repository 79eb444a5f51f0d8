//! The shortest sequence that still fails, and of its failing states the one with the fewest lost sectors.
//!
//! Delta debugging (Zeller and Hildebrandt, IEEE TSE 28(2), 2002) over operations: halves, quarters and so on are left
//! out as long as what is left fails in the same way. Then every state of what is left is looked at.

use crate::search::{Ran, Settings, explore, run_ops};
use crate::start_state::Start;
use crate::{Class, CrashError, Failure, Op, Subject};
use device::crash::{Crash, StateId};
use kernel::Lab;
use posix::FileSystem;

/// Sequences that are tried at most.
const MOST_TRIES: u32 = 2000;

/// A failure made small.
#[derive(Clone, Debug)]
pub struct Minimised {
    /// The failure.
    pub failure: Failure,
    /// Sequences that were tried.
    pub tries: u32,
    /// Sectors that are not there in its state.
    pub lost_sectors: usize,
}

/// Makes a failure small. `go_on` is asked between tries; what was found until then is good.
///
/// # Errors
/// What sequences begin with cannot be mounted.
pub fn minimise<S: Subject>(
    subject: &S,
    start: &Start,
    failure: &Failure,
    settings: &Settings,
    go_on: &dyn Fn() -> bool,
) -> Result<Minimised, CrashError>
where
    Lab<S::Volume>: FileSystem,
{
    let class = failure.verdict.class;
    // If the crash of a recovery is needed, every recovery is crashed.
    let recovery_of = u64::from(failure.again.is_some());
    let settings = Settings { recovery_of, moment_of: 1, failures: usize::MAX, ..*settings };
    let mut tries = 0;
    let mut fails = |ops: &[Op]| -> Result<Option<Failure>, CrashError> {
        if tries >= MOST_TRIES || !go_on() {
            return Ok(None);
        }
        tries += 1;
        best(subject, start, ops, class, &settings)
    };
    let mut ops = failure.ops.clone();
    let mut smallest = fails(&ops)?.map_or_else(|| (failure.clone(), 0), |found| (found, 0));
    let mut pieces = 2;
    while ops.len() > 1 && pieces <= ops.len() {
        let len = ops.len().div_ceil(pieces);
        let mut shorter = None;
        for from in (0..ops.len()).step_by(len) {
            let mut rest = ops.clone();
            rest.drain(from..(from + len).min(rest.len()));
            if let Some(found) = fails(&rest)? {
                shorter = Some((rest, found));
                break;
            }
        }
        match shorter {
            Some((rest, found)) => {
                ops = rest;
                smallest.0 = found;
                pieces = pieces.saturating_sub(1).max(2);
            }
            None if pieces == ops.len() => break,
            None => pieces = (pieces * 2).min(ops.len()),
        }
    }
    let Ran { history, .. } = run_ops(subject, start, &smallest.0.ops, false)?;
    smallest.1 = lost_sectors(&history, &settings, smallest.0.state)?;
    Ok(Minimised { failure: smallest.0, tries, lost_sectors: smallest.1 })
}

/// Of the states of a sequence that fail like this, the one with the fewest lost sectors.
fn best<S: Subject>(
    subject: &S,
    start: &Start,
    ops: &[Op],
    class: Class,
    settings: &Settings,
) -> Result<Option<Failure>, CrashError>
where
    Lab<S::Volume>: FileSystem,
{
    let Ran { history, .. } = run_ops(subject, start, ops, false)?;
    let outcome = explore(subject, &history, settings, (0, 1), &|_| false, &|| true)?;
    let failures = outcome.into_failures().into_iter().filter(|failure| failure.verdict.class == class);
    let mut best: Option<(usize, Failure)> = None;
    for failure in failures {
        let lost = lost_sectors(&history, settings, failure.state)?;
        if best.as_ref().is_none_or(|(least, _)| lost < *least) {
            best = Some((lost, Failure { ops: ops.to_vec(), ..failure }));
        }
        if lost == 0 {
            break;
        }
    }
    Ok(best.map(|(_, failure)| failure))
}

fn lost_sectors(history: &crate::History, settings: &Settings, state: StateId) -> Result<usize, CrashError> {
    let mut crash = Crash::new(history.base.clone(), &history.log, settings.plan);
    while let Some(point) = crash.next_point()? {
        if point.number == state.point as usize {
            let open = point.open(state.choice, settings.plan);
            return Ok(open.into_iter().map(|(_, sectors, there)| sectors - there).sum());
        }
    }
    Err(CrashError::NoState(state.to_string()))
}
