//! What happened between two snapshots: steps with times, and which must come before which.
//!
//! Times are simulated nanoseconds of the plan, within the interval. The rules, each with what a snapshot shows of it:
//!
//! * A new inode is made at its change time; a new directory no later than the first thing made in it.
//! * An inode that is gone was removed: just before its number is used again, or its name taken; with the rest of the
//!   tree where its directory is gone too; else at a time drawn from the lifetime model, no later than the last change
//!   of its directory.
//! * A directory's modification time is that of the last name made or removed in it: where nothing was made in it and
//!   no move explains the time, the last removal in that directory happened then.
//! * Another length or modification time means that the contents changed, at the modification time if that lies in the
//!   interval, else at the change time. A new change time alone is a change of attributes, and no step.
//! * The same inode under another name was renamed at its change time.

use super::Changes;
use super::compare::{Matching, NONE, View};
use super::lifetime::Lifetimes;
use crate::snapshot::Inode;
use crate::{NodeId, OpKind};
use posix::FileKind;
use rand_xoshiro::Xoshiro256PlusPlus;
use rustc_hash::{FxHashMap, FxHashSet};
use stats::random::unit;

/// What the planner keeps of an inode that is there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Live {
    pub(super) node: NodeId,
    /// Its change time when it was first seen, as in the snapshot: the best that is known of its birth.
    pub(super) born_ns: i64,
    pub(super) habit: Habit,
}

/// How a file was taken to be written when it was seen to change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) enum Habit {
    #[default]
    Unknown,
    Appended,
    Rewritten,
}

/// How contents changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// Truncated to nothing and written whole.
    Rewrite,
    /// Written at the end.
    Append,
    /// Written over, whole.
    Overwrite,
    /// In the steps of a habit, each a [`What::Write`].
    Habitual,
}

/// One step; indices are those of chosen names in the snapshot before (`a`) and after (`b`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Make {
        b: u32,
    },
    Remove {
        a: u32,
    },
    Move {
        a: u32,
        b: u32,
    },
    Change {
        a: u32,
        b: u32,
        how: Change,
    },
    /// A step of a habit: a write, or an fsync.
    Write {
        a: u32,
        kind: OpKind,
        offset_bytes: u64,
        size_bytes: u64,
    },
    /// A short-lived file is made, and removed.
    ShortBorn {
        short: u32,
    },
    ShortDied {
        short: u32,
    },
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) t_ns: u64,
    pub(super) what: What,
}

/// The steps between two snapshots, in no order.
#[derive(Default)]
pub(super) struct Interval {
    pub(super) steps: Vec<Step>,
    /// The first of each pair must be done before the second.
    pub(super) before: Vec<(u32, u32)>,
    /// Moves of directories. Where there are several they are set aside first, so that no order of moves can put one
    /// into itself.
    pub(super) directory_moves: Vec<u32>,
    pub(super) tally: Tally,
}

/// What was found, and how it was explained.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Tally {
    /// Files and links made.
    pub created: u64,
    /// Files and links removed.
    pub deleted: u64,
    /// Of those: when their inode number was used again or their name taken.
    pub deleted_when_replaced: u64,
    /// Of those: with the whole directory.
    pub deleted_with_directory: u64,
    /// Of those: at a time drawn.
    pub deleted_at_drawn_time: u64,
    /// Directories made and removed.
    pub directories_made: u64,
    /// See `directories_made`.
    pub directories_removed: u64,
    /// Inodes under another name.
    pub moved: u64,
    /// Files rewritten.
    pub rewritten: u64,
    /// Files appended to.
    pub appended: u64,
    /// Files written over in place.
    pub overwritten: u64,
    /// Changes of files appended to and written over that were given the steps of another workload's.
    pub with_habits: u64,
    /// Inodes of which only attributes changed.
    pub attributes_only: u64,
    /// Change times outside the interval (a clock was set), moved to its nearest end.
    pub times_clamped: u64,
}

impl Tally {
    pub(super) fn add(&mut self, other: &Tally) {
        let pairs = [
            (&mut self.created, other.created),
            (&mut self.deleted, other.deleted),
            (&mut self.deleted_when_replaced, other.deleted_when_replaced),
            (&mut self.deleted_with_directory, other.deleted_with_directory),
            (&mut self.deleted_at_drawn_time, other.deleted_at_drawn_time),
            (&mut self.directories_made, other.directories_made),
            (&mut self.directories_removed, other.directories_removed),
            (&mut self.moved, other.moved),
            (&mut self.rewritten, other.rewritten),
            (&mut self.appended, other.appended),
            (&mut self.overwritten, other.overwritten),
            (&mut self.with_habits, other.with_habits),
            (&mut self.attributes_only, other.attributes_only),
            (&mut self.times_clamped, other.times_clamped),
        ];
        for (mine, theirs) in pairs {
            *mine += theirs;
        }
    }
}

/// A file whose holes are at least this long is planned at the length of its data.
const HOLES_BYTES_MIN: u64 = 64 << 10;
/// Timestamps of one moment may differ by a tick of the kernel's clock.
const TICK_NS: i64 = 10_000_000;

/// The length a file is planned with.
pub(super) fn planned_bytes(inode: &Inode) -> u64 {
    if inode.kind != FileKind::File {
        return inode.size_bytes;
    }
    let holes = inode.size_bytes.saturating_sub(inode.allocated_bytes);
    if holes >= HOLES_BYTES_MIN { inode.allocated_bytes } else { inode.size_bytes }
}

/// Whether a file's contents are another than they were.
pub(super) fn contents_changed(was: &Inode, is: &Inode) -> bool {
    was.kind == FileKind::File && (planned_bytes(was) != planned_bytes(is) || was.mtime_ns != is.mtime_ns)
}

/// All that the steps are made from.
pub(super) struct Between<'a> {
    pub(super) a: &'a View,
    pub(super) b: &'a View,
    pub(super) matching: &'a Matching,
    /// By index of the snapshot before.
    pub(super) live: &'a [Option<Live>],
    /// From snapshot time to plan time: the plan time of 0.
    pub(super) origin_ns: i64,
    /// The interval in snapshot time: after the first, up to the second.
    pub(super) from_ns: i64,
    pub(super) to_ns: i64,
    /// `None`: every time in the interval is as likely.
    pub(super) lifetimes: Option<&'a Lifetimes>,
    pub(super) changes: Changes,
    /// The share of growing files that are appended to.
    pub(super) append_share: f64,
}

/// A thing removed on its own: a file, or a directory with all that is in it.
struct Removal {
    a: u32,
    /// The directory it was in, by the snapshot after; [`NONE`] where that is gone as well.
    directory: u32,
    at_ns: i64,
    drawn: bool,
}

impl Between<'_> {
    /// The steps; `habits` (by index of the snapshot before) is brought up to date.
    pub(super) fn steps(&self, random: &mut Xoshiro256PlusPlus, habits: &mut [Habit]) -> Interval {
        let mut out = Interval::default();
        let mut arrival = vec![NONE; self.b.len()];
        for (b, entry) in self.b.nodes().skip(1) {
            let a = self.matching.before_of(b);
            let made = if a == NONE {
                let count = if entry.inode.kind == FileKind::Directory {
                    &mut out.tally.directories_made
                } else {
                    &mut out.tally.created
                };
                *count += 1;
                Some(What::Make { b })
            } else {
                self.stayed(a, b, random, habits, &mut out);
                let moved = self.matching.moved(self.a, a, self.b, b);
                out.tally.moved += u64::from(moved);
                moved.then_some(What::Move { a, b })
            };
            let Some(what) = made else { continue };
            let at = self.clamped(entry.inode.ctime_ns, &mut out.tally);
            let step = out.push(self.plan_ns(at), what);
            arrival[b as usize] = step;
            if a != NONE && entry.inode.kind == FileKind::Directory {
                out.directory_moves.push(step);
            }
            let parent = arrival.get(entry.parent as usize).copied().unwrap_or(NONE);
            if parent != NONE && self.matching.before_of(entry.parent) == NONE {
                out.before.push((parent, step));
            }
        }
        self.directories_first(&mut out, &arrival);
        self.removals(random, &mut out, &arrival);
        out
    }

    fn plan_ns(&self, at_ns: i64) -> u64 {
        u64::try_from(at_ns.saturating_sub(self.origin_ns)).unwrap_or(0)
    }

    fn clamped(&self, at_ns: i64, tally: &mut Tally) -> i64 {
        let clamped = at_ns.clamp(self.from_ns, self.to_ns);
        tally.times_clamped += u64::from(clamped != at_ns);
        clamped
    }

    /// An inode that is still there: whether its contents changed, and how.
    fn stayed(&self, a: u32, b: u32, random: &mut Xoshiro256PlusPlus, habits: &mut [Habit], out: &mut Interval) {
        let (Some(was), Some(is)) = (self.a.entry(a), self.b.entry(b)) else { return };
        if !contents_changed(&was.inode, &is.inode) {
            out.tally.attributes_only +=
                u64::from(was.inode.ctime_ns != is.inode.ctime_ns && was.inode.kind == FileKind::File);
            return;
        }
        let (old, new) = (planned_bytes(&was.inode), planned_bytes(&is.inode));
        let mut unused = Habit::Unknown;
        let habit = habits.get_mut(a as usize).unwrap_or(&mut unused);
        let how = match self.changes {
            Changes::Rewrite => Change::Rewrite,
            Changes::Inferred if new == old => Change::Overwrite,
            Changes::Inferred if new < old => {
                *habit = Habit::Rewritten;
                Change::Rewrite
            }
            Changes::Inferred => {
                if *habit == Habit::Unknown {
                    let appended = unit(random) < self.append_share;
                    *habit = if appended { Habit::Appended } else { Habit::Rewritten };
                }
                if *habit == Habit::Appended { Change::Append } else { Change::Rewrite }
            }
        };
        match how {
            Change::Rewrite => out.tally.rewritten += 1,
            Change::Append => out.tally.appended += 1,
            Change::Overwrite => out.tally.overwritten += 1,
            Change::Habitual => {}
        }
        let written = is.inode.mtime_ns;
        let in_interval = written > self.from_ns && written <= is.inode.ctime_ns;
        let at = self.clamped(if in_interval { written } else { is.inode.ctime_ns }, &mut out.tally);
        out.push(self.plan_ns(at), What::Change { a, b, how });
    }

    /// A new directory is there before what is made in it: its change time is that of the last name in it.
    fn directories_first(&self, out: &mut Interval, arrival: &[u32]) {
        for (b, entry) in self.b.nodes().rev() {
            let at = |index: u32| arrival.get(index as usize).copied().unwrap_or(NONE) as usize;
            let (mine, parent) = (at(b), at(entry.parent));
            let is_new = self.matching.before_of(entry.parent) == NONE;
            let Some(t_ns) = out.steps.get(mine).map(|step| step.t_ns) else { continue };
            if let Some(step) = out.steps.get_mut(parent).filter(|_| is_new) {
                step.t_ns = step.t_ns.min(t_ns);
            }
        }
    }

    /// What is gone: when, and what must wait for it.
    fn removals(&self, random: &mut Xoshiro256PlusPlus, out: &mut Interval, arrival: &[u32]) {
        // Names taken in directories that were there before: by the directory's index in the snapshot before.
        let mut taken: FxHashMap<(u32, &[u8]), u32> = FxHashMap::default();
        // Directories whose modification time something made in them may explain.
        let mut explained: FxHashSet<u32> = FxHashSet::default();
        for (b, entry) in self.b.nodes().skip(1) {
            let step = arrival.get(b as usize).copied().unwrap_or(NONE);
            let directory = self.matching.before_of(entry.parent);
            if step == NONE || directory == NONE {
                continue;
            }
            taken.insert((directory, self.b.name(b)), step);
            // Where files are made, others that no snapshot shows are made and removed too.
            explained.insert(entry.parent);
        }
        let mut top = vec![NONE; self.a.len()];
        let mut at_ns: FxHashMap<u32, i64> = FxHashMap::default();
        let mut removals = self.times_of_removal(random, out, arrival, &taken, &mut explained, &mut top);
        self.last_removal_at_directory_time(&mut removals, &explained);
        for removal in &removals {
            at_ns.insert(removal.a, removal.at_ns);
        }
        self.leave(out, arrival, &taken, &top, &at_ns);
    }

    /// The time of everything removed on its own; `top` is filled in: for every name that is gone, the topmost
    /// directory that is gone with it (itself where its directory stays).
    fn times_of_removal(
        &self,
        random: &mut Xoshiro256PlusPlus,
        out: &mut Interval,
        arrival: &[u32],
        taken: &FxHashMap<(u32, &[u8]), u32>,
        explained: &mut FxHashSet<u32>,
        top: &mut [u32],
    ) -> Vec<Removal> {
        let mut removals = Vec::new();
        for (a, entry) in self.a.nodes().skip(1) {
            let directory = self.matching.after_of(entry.parent);
            if let (Some(is), true) = (self.b.entry(self.matching.after_of(a)), directory != NONE) {
                // One that moved away explains its old directory's time as well.
                let last = self.b.entry(directory).map_or(i64::MAX, |d| d.inode.mtime_ns);
                if arrival.get(self.matching.after_of(a) as usize).is_some_and(|step| *step != NONE)
                    && (is.inode.ctime_ns - last).abs() <= TICK_NS
                {
                    explained.insert(directory);
                }
                continue;
            }
            if self.matching.after_of(a) != NONE {
                continue;
            }
            let above = top.get(entry.parent as usize).copied().unwrap_or(NONE);
            top[a as usize] = if above == NONE { a } else { above };
            let known = self.replaced_at(a, taken, out, arrival);
            let is_file = entry.inode.kind != FileKind::Directory;
            if is_file {
                out.tally.deleted += 1;
                let count = match (known, above) {
                    (Some(_), _) => &mut out.tally.deleted_when_replaced,
                    (None, NONE) => &mut out.tally.deleted_at_drawn_time,
                    (None, _) => &mut out.tally.deleted_with_directory,
                };
                *count += 1;
            } else {
                out.tally.directories_removed += 1;
            }
            match known {
                Some(at_ns) => removals.push(Removal { a, directory, at_ns, drawn: false }),
                None if above == NONE => {
                    let at_ns = self.draw(a, directory, random);
                    removals.push(Removal { a, directory, at_ns, drawn: true });
                }
                None => {}
            }
        }
        removals
    }

    /// When the inode's number was used again, or its name taken.
    fn replaced_at(
        &self,
        a: u32,
        taken: &FxHashMap<(u32, &[u8]), u32>,
        out: &Interval,
        arrival: &[u32],
    ) -> Option<i64> {
        let entry = self.a.entry(a)?;
        let time = |step: u32| out.steps.get(step as usize).map(|s| s.t_ns);
        let name_taken = taken.get(&(entry.parent, self.a.name(a))).and_then(|step| time(*step));
        let reused = self.reused_by(a).and_then(|b| arrival.get(b as usize)).and_then(|step| time(*step));
        let t_ns = match (name_taken, reused) {
            (Some(x), Some(y)) => x.min(y),
            (x, y) => x.or(y)?,
        };
        Some(i64::try_from(t_ns).unwrap_or(i64::MAX).saturating_add(self.origin_ns))
    }

    /// The new inode under the number of one that is gone.
    fn reused_by(&self, a: u32) -> Option<u32> {
        let b = self.b.find(self.a.entry(a)?.inode.ino)?;
        (self.matching.before_of(b) == NONE).then_some(b)
    }

    /// A time for a removal of which nothing is known: by the age of the file (of a directory: of the first file in
    /// it).
    fn draw(&self, a: u32, directory: u32, random: &mut Xoshiro256PlusPlus) -> i64 {
        let u = unit(random);
        // Nothing was removed from the directory after its last change.
        let last = self.b.entry(directory).map_or(self.to_ns, |d| d.inode.mtime_ns);
        let to = if last > self.from_ns { last.min(self.to_ns) } else { self.to_ns };
        let Some(lifetimes) = self.lifetimes else {
            return self.from_ns + (u * (self.to_ns - self.from_ns) as f64) as i64;
        };
        let below = (a..).zip(self.a.snapshot.entries().iter().skip(a as usize)).skip(1);
        let first_file = below
            .take_while(|(_, e)| e.parent >= a)
            .find(|(i, e)| e.inode.kind == FileKind::File && self.matching.after_of(*i) == NONE)
            .map_or(a, |(i, _)| i);
        let born = self.live.get(first_file as usize).copied().flatten().map_or(self.from_ns, |l| l.born_ns);
        let age = self.from_ns.saturating_sub(born).max(0) as f64;
        let width = (to - self.from_ns) as f64;
        let died = lifetimes.death_in(age, age + width, u) - age;
        (self.from_ns + died as i64).clamp(self.from_ns, to)
    }

    /// Where only a removal can have been the last change of a directory, the last one drawn was.
    fn last_removal_at_directory_time(&self, removals: &mut [Removal], explained: &FxHashSet<u32>) {
        if self.lifetimes.is_none() {
            return;
        }
        let mut last: FxHashMap<u32, usize> = FxHashMap::default();
        let mut order = Vec::new();
        for (i, removal) in removals.iter().enumerate() {
            if removal.directory == NONE || explained.contains(&removal.directory) {
                continue;
            }
            match last.entry(removal.directory) {
                std::collections::hash_map::Entry::Vacant(empty) => {
                    empty.insert(i);
                    order.push(removal.directory);
                }
                std::collections::hash_map::Entry::Occupied(mut other) => {
                    if removals.get(*other.get()).is_some_and(|o| removal.at_ns > o.at_ns) {
                        other.insert(i);
                    }
                }
            }
        }
        for directory in order {
            let Some(time) = self.b.entry(directory).map(|d| d.inode.mtime_ns) else { continue };
            let latest = last.get(&directory).and_then(|i| removals.get_mut(*i));
            if let Some(removal) = latest.filter(|r| r.drawn && time > self.from_ns && time <= self.to_ns) {
                removal.at_ns = time;
            }
        }
    }

    /// The steps of everything that leaves its place, and what waits for it.
    fn leave(
        &self,
        out: &mut Interval,
        arrival: &[u32],
        taken: &FxHashMap<(u32, &[u8]), u32>,
        top: &[u32],
        at_ns: &FxHashMap<u32, i64>,
    ) {
        let mut removal = vec![NONE; self.a.len()];
        for (a, entry) in self.a.nodes().skip(1) {
            let after = self.matching.after_of(a);
            let step = if after == NONE {
                let alone = at_ns.get(&a).copied();
                let above = top.get(a as usize).and_then(|top| at_ns.get(top)).copied();
                let at = match (alone, above) {
                    (Some(x), Some(y)) => x.min(y),
                    (x, y) => x.or(y).unwrap_or(self.to_ns),
                };
                let step = out.push(self.plan_ns(at), What::Remove { a });
                removal[a as usize] = step;
                if let Some(arriving) = self.reused_by(a).and_then(|b| arrival.get(b as usize)) {
                    out.before.push((step, *arriving));
                }
                step
            } else {
                match arrival.get(after as usize).copied() {
                    Some(step) if step != NONE => step,
                    _ => continue,
                }
            };
            if let Some(arriving) = taken.get(&(entry.parent, self.a.name(a))).filter(|arriving| **arriving != step) {
                out.before.push((step, *arriving));
            }
            // A directory is removed when it is empty.
            let parent = removal.get(entry.parent as usize).copied().unwrap_or(NONE);
            if parent != NONE {
                out.before.push((step, parent));
            }
        }
    }
}

impl Interval {
    pub(super) fn push(&mut self, t_ns: u64, what: What) -> u32 {
        let index = self.steps.len() as u32;
        self.steps.push(Step { t_ns, what });
        index
    }
}
