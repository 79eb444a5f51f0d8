//! Files that are born and die between two snapshots: profiles of them, and how they are put into a plan.
//!
//! After Smith and Seltzer (*File System Aging*, 1997, section 3.3): a profile is what short-lived files did in one
//! directory on one day of a trace (there an NFS trace; here a workload profile, or another aging workload). On each
//! simulated day profiles are picked at random, put in the busiest directories, and shifted in time so that the
//! profile's peak falls on the directory's. How many: the source has so many short-lived files for each file that
//! lasted (and that a snapshot would have shown); the plan gets as many for each file that lasts. Or, as published, it
//! gets as many a day, in proportion to the sizes of the two file systems.
//!
//! Nor do snapshots show in how many steps a file was changed: another aging workload tells that too (`habits`).

mod aging;
pub(super) mod habits;
mod read;
mod workload;

use super::PlanError;
use super::snapshots::lifetime::Evidence;
use crate::format::Input;
use crate::{DAY_NS, OpKind};
use habits::Habits;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::hash::Hash;
use std::path::Path;

const HOUR_NS: u64 = DAY_NS / 24;

/// One short-lived file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShortFile {
    /// When it was made, from the middle of its profile's busiest hour, nanoseconds.
    pub at_ns: i64,
    /// How long it lived.
    pub life_ns: u64,
    /// How long it was in bytes, at its longest.
    pub size_bytes: u64,
}

/// Short-lived activity to draw from.
#[derive(Clone, Debug)]
pub struct ShortLived {
    input: Input,
    /// Each the short-lived files of one directory on one day.
    profiles: Vec<Vec<ShortFile>>,
    source: Source,
}

/// What the file it comes from tells of all its files together.
#[derive(Clone, Debug, Default)]
struct Source {
    /// Files that were made and removed on one day, and all others.
    short: u64,
    lasting: u64,
    /// Simulated or recorded days, at least one.
    days: f64,
    /// Size of the file system; 0: not known.
    capacity_bytes: u64,
    lifetimes: Evidence,
    habits: Habits,
}

/// By what the number of short-lived files goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Number {
    /// As many for each file that lasts as in the source: busy days have more.
    #[default]
    ForEachLasting,
    /// As many a day as in the source, in proportion to the sizes of the two file systems, as published: a tree that
    /// grows fast has no more than one that is full.
    EachDay,
}

/// Birth and death of a file in nanoseconds, and how long it was at most in bytes.
type Life = (u64, u64, u64);

/// A file that is there.
struct Alive {
    dir: u64,
    born_ns: u64,
    size_bytes: u64,
    longest_bytes: u64,
}

impl Alive {
    fn append(&mut self, len_bytes: u64) {
        self.size_bytes = self.size_bytes.saturating_add(len_bytes);
        self.longest_bytes = self.longest_bytes.max(self.size_bytes);
    }
}

/// The files that are there, by what the source tells them apart by.
type Living<K> = FxHashMap<K, Alive>;

/// What is seen of files being made and removed, in order of time.
#[derive(Default)]
struct Collector {
    /// By day and directory.
    found: BTreeMap<(u64, u64), Vec<Life>>,
    source: Source,
}

impl Collector {
    /// A file that is there grew by `size_bytes`, was cut to them, or was removed.
    fn changed<K: Eq + Hash>(&mut self, living: &mut Living<K>, file: K, kind: OpKind, size_bytes: u64, at_ns: u64) {
        match kind {
            OpKind::Append => {
                if let Some(file) = living.get_mut(&file) {
                    file.append(size_bytes);
                }
            }
            OpKind::Truncate => {
                if let Some(file) = living.get_mut(&file) {
                    file.size_bytes = size_bytes;
                }
            }
            OpKind::Delete => {
                if let Some(file) = living.remove(&file) {
                    self.deleted(&file, at_ns);
                }
            }
            _ => {}
        }
    }

    /// A file was removed. If it was made on the same day, no snapshot at the end of a day shows it.
    fn deleted(&mut self, file: &Alive, at_ns: u64) {
        let &Alive { dir, born_ns, longest_bytes, .. } = file;
        if born_ns / DAY_NS == at_ns / DAY_NS {
            self.source.short += 1;
            self.found.entry((born_ns / DAY_NS, dir)).or_default().push((born_ns, at_ns, longest_bytes));
        } else {
            self.source.lasting += 1;
        }
        let life_ns = (at_ns - born_ns) as f64;
        self.source.lifetimes.died(0.0, life_ns, life_ns);
    }

    fn finish(self, input: Input, path: &Path) -> Result<ShortLived, PlanError> {
        if self.source.short == 0 && self.source.habits.len() == 0 {
            let message =
                "no file in it is made and removed on one day: there are no short-lived files to take from it";
            return Err(PlanError::input(path, "whole file", message));
        }
        let profiles = self.found.values().map(|files| profile(files)).collect();
        Ok(ShortLived { input, profiles, source: Source { days: self.source.days.max(1.0), ..self.source } })
    }
}

fn profile(files: &[Life]) -> Vec<ShortFile> {
    let peak = peak_ns(files.iter().flat_map(|(born, died, _)| [*born, *died]));
    let file = |(born, died, size_bytes): &Life| ShortFile {
        at_ns: i64::try_from(*born).unwrap_or(i64::MAX) - i64::try_from(peak).unwrap_or(i64::MAX),
        life_ns: died - born,
        size_bytes: *size_bytes,
    };
    files.iter().map(file).collect()
}

/// The middle of the hour with the most times in it, the first of several.
fn peak_ns(times: impl Iterator<Item = u64>) -> u64 {
    let mut hours: BTreeMap<u64, u64> = BTreeMap::new();
    for t_ns in times {
        *hours.entry(t_ns / HOUR_NS).or_default() += 1;
    }
    let busiest = hours.iter().max_by_key(|(hour, n)| (**n, std::cmp::Reverse(**hour)));
    busiest.map_or(0, |(hour, _)| hour * HOUR_NS + HOUR_NS / 2)
}

/// What a day of a plan does without short-lived files.
#[derive(Default)]
pub(super) struct Activity {
    /// By directory: times of operations.
    directories: BTreeMap<u32, Vec<u64>>,
    lasting: u64,
}

impl Activity {
    /// An operation in a directory; `lasting`: it makes a file that a snapshot shows.
    pub(super) fn add(&mut self, directory: u32, t_ns: u64, lasting: bool) {
        self.directories.entry(directory).or_default().push(t_ns);
        self.lasting += u64::from(lasting);
    }
}

/// Files that fractions of days still owe.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Carry(f64);

impl ShortLived {
    /// The file it comes from.
    pub fn input(&self) -> &Input {
        &self.input
    }

    /// How many short-lived files there are for each lasting one.
    pub fn per_lasting_file(&self) -> f64 {
        self.source.short as f64 / self.source.lasting.max(1) as f64
    }

    /// How many short-lived files there are in a day of the source.
    pub fn per_day(&self) -> f64 {
        self.source.short as f64 / self.source.days
    }

    /// The same from a file system of this size, which a recorded workload does not say.
    #[must_use]
    pub fn of_size(self, capacity_bytes: u64) -> ShortLived {
        ShortLived { source: Source { capacity_bytes, ..self.source }, ..self }
    }

    /// So many times as large as the file system of the source is one of `capacity_bytes`; `None` where either is not
    /// known.
    pub fn times_as_large(&self, capacity_bytes: u64) -> Option<f64> {
        let known = self.source.capacity_bytes > 0 && capacity_bytes > 0;
        known.then(|| capacity_bytes as f64 / self.source.capacity_bytes as f64)
    }

    /// How many a day is to have, in which so much else happens.
    pub(super) fn wanted(&self, activity: &Activity, number: Number) -> f64 {
        match number {
            Number::ForEachLasting => activity.lasting as f64 * self.per_lasting_file(),
            Number::EachDay => self.per_day(),
        }
    }

    /// The profiles.
    pub fn profiles(&self) -> &[Vec<ShortFile>] {
        &self.profiles
    }

    /// How many days of changed files it has, each with the steps of the change; a recorded workload has none.
    pub fn changed_file_days(&self) -> usize {
        self.source.habits.len()
    }

    /// In what steps files were changed.
    pub(super) fn habits(&self) -> &Habits {
        &self.source.habits
    }

    /// What it tells of lifetimes.
    pub(super) fn lifetimes(&self) -> &Evidence {
        &self.source.lifetimes
    }

    /// Places a day's short-lived files, `wanted` of them: calls `each` with directory, birth, death and length.
    pub(super) fn place(
        &self,
        activity: &Activity,
        (from_ns, to_ns): (u64, u64),
        wanted: f64,
        carry: &mut Carry,
        uniform: &mut dyn FnMut() -> f64,
        each: &mut dyn FnMut(u32, u64, u64, u64),
    ) {
        carry.0 += wanted;
        let mut busiest: Vec<(u32, &Vec<u64>)> = activity.directories.iter().map(|(d, times)| (*d, times)).collect();
        busiest.sort_by_key(|(directory, times)| (std::cmp::Reverse(times.len()), *directory));
        let mut next = 0;
        while carry.0 > 0.0 {
            let pick = (uniform() * self.profiles.len() as f64) as usize;
            let Some(profile) = self.profiles.get(pick).filter(|p| !p.is_empty()) else { break };
            // One that would be too many is taken in proportion to what is missing.
            let owed = carry.0 / profile.len() as f64;
            if owed < 1.0 && uniform() >= owed {
                carry.0 = 0.0;
                break;
            }
            carry.0 = (carry.0 - profile.len() as f64).max(0.0);
            let (directory, peak) = match busiest.get(next % busiest.len().max(1)) {
                Some((directory, times)) => (*directory, peak_ns(times.iter().copied())),
                None => (0, from_ns + (to_ns - from_ns) / 2),
            };
            next += 1;
            place_profile(profile, directory, peak, (from_ns, to_ns), each);
        }
    }
}

/// Puts a profile's peak on a directory's, as nearly as the day allows.
fn place_profile(
    profile: &[ShortFile],
    directory: u32,
    peak_ns: u64,
    (from_ns, to_ns): (u64, u64),
    each: &mut dyn FnMut(u32, u64, u64, u64),
) {
    let (from, to) = (i128::from(from_ns), i128::from(to_ns));
    let peak = i128::from(peak_ns);
    let first = profile.iter().map(|f| i128::from(f.at_ns)).min().unwrap_or(0);
    let last = profile.iter().map(|f| i128::from(f.at_ns) + i128::from(f.life_ns)).max().unwrap_or(0);
    let peak = peak.min(to - last).max(from - first);
    for file in profile {
        let born = (peak + i128::from(file.at_ns)).clamp(from, to);
        let died = (born + i128::from(file.life_ns)).min(to);
        let ns = |t: i128| u64::try_from(t).unwrap_or(from_ns);
        each(directory, ns(born), ns(died), file.size_bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn short_lived(profiles: Vec<Vec<ShortFile>>, short: u64, lasting: u64) -> ShortLived {
        let source = Source { short, lasting, days: 2.0, ..Source::default() };
        ShortLived { input: Input::default(), profiles, source }
    }

    #[test]
    fn profiles_fall_on_the_peak_of_the_busiest_directory_and_stay_in_the_day() {
        let file = |at_ns, life_ns| ShortFile { at_ns, life_ns, size_bytes: 9 };
        let hour = HOUR_NS as i64;
        let source = short_lived(vec![vec![file(-hour, HOUR_NS), file(2 * hour, 5)]], 4, 2);
        let mut activity = Activity::default();
        for (directory, t_hours, lasting) in [(3, 10, true), (3, 10, false), (3, 20, false), (5, 1, true)] {
            activity.add(directory, DAY_NS + t_hours * HOUR_NS, lasting);
        }
        let mut placed = Vec::new();
        let mut carry = Carry::default();
        let window = (DAY_NS, 2 * DAY_NS - 1);
        let wanted = source.wanted(&activity, Number::ForEachLasting);
        assert_eq!((wanted, source.wanted(&activity, Number::EachDay)), (4.0, 2.0));
        source.place(&activity, window, wanted, &mut carry, &mut || 0.0, &mut |d, born, died, size| {
            placed.push((d, born, died, size));
        });
        // Two lasting files, two short ones for each: two profiles, one for each directory.
        let peak = DAY_NS + 10 * HOUR_NS + HOUR_NS / 2;
        assert_eq!(placed.len(), 4);
        assert_eq!(placed[0], (3, peak - HOUR_NS, peak, 9));
        assert_eq!(placed[1], (3, peak + 2 * HOUR_NS, peak + 2 * HOUR_NS + 5, 9));
        assert_eq!((placed[2].0, placed[2].1), (5, DAY_NS + HOUR_NS / 2));
        assert!(carry.0 == 0.0);
    }

    #[test]
    fn one_that_does_not_fit_a_day_is_moved_into_it() {
        let profile = [
            ShortFile { at_ns: 0, life_ns: DAY_NS, size_bytes: 1 },
            ShortFile { at_ns: -7, life_ns: 1, size_bytes: 1 },
        ];
        let mut placed = Vec::new();
        place_profile(&profile, 0, DAY_NS / 2, (100, 1000), &mut |_, born, died, _| placed.push((born, died)));
        assert_eq!(placed, [(107, 1000), (100, 101)]);
    }

    #[test]
    fn fractions_are_met_on_average() {
        let file = ShortFile { at_ns: 0, life_ns: 1, size_bytes: 1 };
        let source = short_lived(vec![vec![file; 10]], 1, 2);
        let (mut carry, mut n, mut state) = (Carry::default(), 0, 1u64);
        let mut uniform = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        for day in 0..20_000u64 {
            let mut activity = Activity::default();
            activity.add(0, day * DAY_NS, true);
            let window = (day * DAY_NS, (day + 1) * DAY_NS - 1);
            let wanted = source.wanted(&activity, Number::default());
            source.place(&activity, window, wanted, &mut carry, &mut uniform, &mut |_, _, _, _| n += 1);
        }
        assert!((9_000..11_000).contains(&n), "{n} instead of 10,000");
    }
}
