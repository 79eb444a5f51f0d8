//! What was found, counted.

use crate::Class;
use serde::Serialize;
use std::collections::BTreeMap;

/// States by verdict.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Distinct states of disks, each with what it is measured by.
    pub states: u64,
    /// Of them, by verdict.
    pub by_class: BTreeMap<Class, u64>,
    /// Of them, those where a file shows bytes that were on the disk before it had the block.
    pub exposed: u64,
    /// Of them, those of a crash during recovery.
    pub in_recovery: u64,
    /// Moments of which every state was looked at, and all moments.
    pub moments_complete: u64,
    #[allow(missing_docs)]
    pub moments: u64,
    /// Sequences of operations.
    pub sequences: u64,
    /// Operations of them all that were refused.
    pub refused: u64,
    /// What happened in recoveries, by name; and in runs.
    pub events: BTreeMap<String, u64>,
}

impl Tally {
    /// States of a class.
    pub fn of(&self, class: Class) -> u64 {
        self.by_class.get(&class).copied().unwrap_or(0)
    }

    /// States of which something is lost that must not be: the last two classes.
    pub fn failed(&self) -> u64 {
        self.of(Class::Unresolvable) + self.of(Class::PromiseBroken)
    }

    /// States that needed a repair.
    pub fn repaired(&self) -> u64 {
        self.states - self.of(Class::Clean)
    }

    /// Adds what another search has found, of other states.
    pub fn add(&mut self, other: &Tally) {
        self.states += other.states;
        other.by_class.iter().for_each(|(class, n)| *self.by_class.entry(*class).or_default() += n);
        self.exposed += other.exposed;
        self.in_recovery += other.in_recovery;
        self.moments_complete += other.moments_complete;
        self.moments += other.moments;
        self.sequences += other.sequences;
        self.refused += other.refused;
        other.events.iter().for_each(|(name, n)| *self.events.entry(name.clone()).or_default() += n);
    }
}

/// Why a search ended before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Undone {
    /// There were as many states as asked for.
    States,
    /// Somebody stopped it.
    Stopped,
}
