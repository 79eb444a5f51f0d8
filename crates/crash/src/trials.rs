//! Trials: one run, crashed at moments that are drawn, once at each, as somebody does who pulls the plug.
//!
//! A search looks for states that are bad, and counts each once. Trials say how often a crash is bad: a state that the
//! disk is in for long counts as often as it is met.

use crate::judge::{Class, judge};
use crate::{CrashError, History, Subject};
use device::crash::{Crash, Plan, StateId};
use device::store::Overlay;
use rand_core::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;

/// When the power fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// At any time of the run, each as likely as any other.
    Time,
    /// When one of the disk's writes has just been completed, each as likely as any other.
    Write,
}

/// What is tried.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trials {
    /// How often.
    pub count: u32,
    /// When the power fails.
    pub when: When,
    /// The run is over after so many nanoseconds: what comes then (cleaning up) is not crashed.
    pub run_ns: u64,
    /// What the drive may hold then; its seed draws moments and states.
    pub plan: Plan,
}

/// What one crash has left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trial {
    /// When the power failed, nanoseconds since the run began.
    pub at_ns: u64,
    /// The state that the crash left.
    pub state: StateId,
    /// How bad it was.
    pub class: Class,
    /// Why; empty where nothing is wrong.
    pub why: String,
    /// Problems that the check repaired.
    pub repaired: u64,
    /// Whether two files had a block.
    pub shared: bool,
    /// Whether some file shows bytes that were on the disk before it had the block.
    pub exposed: bool,
}

/// Crashes a run at moments that are drawn, and judges what recovery makes of each; in the order of time. `go_on` is
/// asked before each.
///
/// # Errors
/// A store cannot be read, the history was too long for memory before the run was over, or `go_on` says no.
pub fn trials<S: Subject>(
    subject: &S,
    history: &History,
    with: &Trials,
    go_on: &dyn Fn() -> bool,
) -> Result<Vec<Trial>, CrashError> {
    if history.cut_short {
        return Err(CrashError::Io(std::io::Error::other("the run takes too much memory to be crashed")));
    }
    let mut random = Xoshiro256PlusPlus::seed_from_u64(with.plan.seed);
    let end_ns = history.begun_ns.saturating_add(with.run_ns);
    let entries = history.completed_ns.partition_point(|at| *at <= end_ns);
    let mut draw = || match with.when {
        When::Time => {
            let at_ns = history.begun_ns + random.next_u64() % with.run_ns.max(1);
            (history.completed_ns.partition_point(|at| *at <= at_ns), at_ns, random.next_u64())
        }
        When::Write => {
            let number = 1 + (random.next_u64() % entries.max(1) as u64) as usize;
            let at_ns = history.completed_ns.get(number - 1).copied().unwrap_or(history.begun_ns);
            (number.min(entries), at_ns, random.next_u64())
        }
    };
    let mut moments: Vec<(usize, u64, u64)> = (0..with.count).map(|_| draw()).collect();
    moments.sort_unstable();
    let mut crash = Crash::new(history.base.clone(), &history.log, with.plan);
    let mut found = Vec::with_capacity(moments.len());
    for at_this in moments.chunk_by(|one, other| one.0 == other.0) {
        let Some((number, ..)) = at_this.first() else { continue };
        crash.skip_to(*number)?;
        let Some(point) = crash.next_point()? else { break };
        for (_, at_ns, drawn) in at_this {
            if !go_on() {
                return Err(CrashError::Io(std::io::ErrorKind::Interrupted.into()));
            }
            let choice = (drawn % u64::from(point.choices)) as u32;
            crash.lay(&point, choice)?;
            let recovered = subject.recover(&mut Overlay::new(crash.disk()));
            let verdict = judge(history, point.number, &recovered, subject.names());
            let (repaired, shared) = match &recovered {
                Ok(recovered) => (recovered.repaired, recovered.shared.is_some()),
                Err(_) => (1, false),
            };
            found.push(Trial {
                at_ns: at_ns - history.begun_ns,
                state: StateId { point: point.number as u32, choice },
                class: verdict.class,
                why: verdict.why,
                repaired,
                shared,
                exposed: verdict.exposed,
            });
            crash.lift()?;
        }
    }
    Ok(found)
}
