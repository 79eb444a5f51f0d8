//! Habits of change: in what steps files of another aging workload were changed over a day.
//!
//! A snapshot shows that a file's contents changed, not that it took eighty small writes with fsyncs between them. For
//! a file system that writes over in place the difference is small; one that copies on write heals by one whole write
//! what many small ones break up.

use crate::{AgingOp, DAY_NS, NodeId, OpKind};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// File-days kept of one class at most, a fair sample of all.
const FILE_DAYS_MAX: usize = 512;
/// Steps kept of one file-day at most.
const STEPS_MAX: usize = 4096;
/// A file-day is used for files of at most so many times two its length, and as many times shorter ones.
const CLASS_DISTANCE_MAX: u32 = 3;
/// Days of a long interval that are given steps at most: the last ones before the change.
const DAYS_MAX: u64 = 31;
/// Offsets that are multiples of this stay so.
const ALIGNMENT_BYTES: u64 = 4096;

/// What a step does; shares are of a file's length then, or of what it grows by that day.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Act {
    Overwrite { offset_share: f64, aligned: bool, size_bytes: u64 },
    Append { share: f64 },
    Fsync,
}

/// Time of day, and what is done.
type Step = (u64, Act);

/// Whether the file grew, and the logarithm (base 2) of its length at the day's end.
type Class = (bool, u32);

fn class(old_bytes: u64, new_bytes: u64) -> Class {
    (new_bytes > old_bytes, new_bytes.max(1).ilog2())
}

/// The file-days of a class.
#[derive(Clone, Debug, Default)]
struct FileDays {
    kept: Vec<Vec<Step>>,
    seen: u64,
}

/// Habits to draw from.
#[derive(Clone, Debug, Default)]
pub(in crate::plan) struct Habits {
    classes: BTreeMap<Class, FileDays>,
}

/// A write or fsync of a file: time, kind, offset and size.
pub(in crate::plan) type Write = (u64, OpKind, u64, u64);

impl Habits {
    /// How many file-days are kept.
    pub(in crate::plan) fn len(&self) -> usize {
        self.classes.values().map(|days| days.kept.len()).sum()
    }

    /// The file-days of the nearest length, if one is near enough.
    fn near(&self, (grew, log2): Class) -> Option<&[Vec<Step>]> {
        let range = (grew, log2.saturating_sub(CLASS_DISTANCE_MAX))..=(grew, log2 + CLASS_DISTANCE_MAX);
        let nearest = self.classes.range(range).min_by_key(|((_, l), _)| l.abs_diff(log2));
        nearest.map(|(_, days)| days.kept.as_slice()).filter(|kept| !kept.is_empty())
    }

    /// The steps in which a file is changed between a time and its last change, one file-day drawn for each day; none
    /// where there is no habit of files like it. The last write is at the time of the change, and leaves the file at
    /// its new length.
    pub(in crate::plan) fn draw(
        &self,
        (old_bytes, new_bytes): (u64, u64),
        (from_ns, change_ns): (u64, u64),
        uniform: &mut dyn FnMut() -> f64,
    ) -> Vec<Write> {
        let Some(kept) = self.near(class(old_bytes, new_bytes)).filter(|_| new_bytes > 0) else { return Vec::new() };
        let growth = new_bytes.saturating_sub(old_bytes);
        let last_day = change_ns / DAY_NS;
        let days = (last_day.saturating_sub(from_ns / DAY_NS) + 1).min(DAYS_MAX);
        let first_day = (last_day + 1).saturating_sub(days);
        let mut writes: Vec<Write> = Vec::new();
        let mut length = old_bytes;
        for day in 0..days {
            let pick = (uniform() * kept.len() as f64) as usize;
            let mut share_done = 0.0;
            for (at_ns, act) in kept.get(pick).into_iter().flatten() {
                let t_ns = (first_day + day).saturating_mul(DAY_NS).saturating_add(*at_ns);
                match *act {
                    Act::Overwrite { offset_share, aligned, size_bytes } if length > 0 => {
                        let offset = ((offset_share * length as f64) as u64).min(length - 1);
                        let offset = if aligned { offset - offset % ALIGNMENT_BYTES } else { offset };
                        writes.push((t_ns, OpKind::Overwrite, offset, size_bytes.min(length - offset)));
                    }
                    Act::Overwrite { .. } => {}
                    Act::Append { share } => {
                        share_done += share;
                        let done = (day as f64 + share_done) / days as f64 * growth as f64;
                        let to = old_bytes.saturating_add(done as u64).clamp(length, new_bytes);
                        if to > length {
                            writes.push((t_ns, OpKind::Append, 0, to - length));
                        }
                        length = to;
                    }
                    Act::Fsync => writes.push((t_ns, OpKind::Fsync, 0, 0)),
                }
            }
        }
        // What rounding left over.
        if length < new_bytes {
            match writes.iter_mut().rev().find(|(_, kind, ..)| *kind == OpKind::Append) {
                Some((.., size_bytes)) => *size_bytes += new_bytes - length,
                None => writes.push((change_ns, OpKind::Append, 0, new_bytes - length)),
            }
        }
        if writes.iter().all(|(_, kind, ..)| *kind == OpKind::Fsync) {
            return Vec::new();
        }
        shift(&mut writes, from_ns, change_ns);
        writes
    }
}

/// Moves steps so that the last write is at the time of the change; they are drawn together where they would begin too
/// early.
fn shift(writes: &mut [Write], from_ns: u64, change_ns: u64) {
    let Some((first_ns, ..)) = writes.first().copied() else { return };
    let last = writes.iter().rev().find(|(_, kind, ..)| *kind != OpKind::Fsync);
    let last_ns = last.map_or(first_ns, |(t_ns, ..)| *t_ns);
    let (span, room) = (last_ns.saturating_sub(first_ns), change_ns.saturating_sub(from_ns));
    for (t_ns, ..) in writes {
        let before = last_ns.saturating_sub(*t_ns);
        let before = if span > room {
            u64::try_from(u128::from(before) * u128::from(room) / u128::from(span)).unwrap_or(room)
        } else {
            before
        };
        *t_ns = change_ns.saturating_sub(before);
    }
}

/// A file of the workload that is read.
#[derive(Default)]
struct File {
    length: u64,
    /// The day of the steps, and the length at its beginning.
    day: u64,
    began_bytes: u64,
    steps: Vec<(u64, Act, u64)>,
    /// Made, cut or renamed on that day.
    unfit: bool,
}

/// Watches the operations of an aging workload, in order.
pub(super) struct Watcher {
    files: FxHashMap<NodeId, File>,
    /// Those with something on the day that it is.
    touched: Vec<NodeId>,
    day: u64,
    habits: Habits,
    random: Xoshiro256PlusPlus,
}

impl Watcher {
    pub(super) fn new() -> Watcher {
        Watcher {
            files: FxHashMap::default(),
            touched: Vec::new(),
            day: 0,
            habits: Habits::default(),
            random: Xoshiro256PlusPlus::seed_from_u64(1),
        }
    }

    /// The next operation.
    pub(super) fn see(&mut self, op: &AgingOp) {
        let day = op.t_ns / DAY_NS;
        if day != self.day {
            self.end_day();
            self.day = day;
        }
        match op.kind {
            OpKind::Delete => drop(self.files.remove(&op.node)),
            OpKind::Create => {
                self.touched.push(op.node);
                self.files.insert(op.node, File { length: op.size_bytes, day, unfit: true, ..File::default() });
            }
            OpKind::Overwrite
            | OpKind::Append
            | OpKind::Fsync
            | OpKind::Truncate
            | OpKind::PunchHole
            | OpKind::Rename => {
                self.change(op);
            }
            _ => {}
        }
    }

    fn change(&mut self, op: &AgingOp) {
        let Some(file) = self.files.get_mut(&op.node) else { return };
        if file.day != self.day {
            *file = File { length: file.length, day: self.day, began_bytes: file.length, ..File::default() };
            self.touched.push(op.node);
        }
        let act = match op.kind {
            OpKind::Overwrite if file.length > 0 => Act::Overwrite {
                offset_share: op.offset_bytes as f64 / file.length as f64,
                aligned: op.offset_bytes.is_multiple_of(ALIGNMENT_BYTES),
                size_bytes: op.size_bytes,
            },
            OpKind::Append => {
                file.length = file.length.saturating_add(op.size_bytes);
                Act::Append { share: 0.0 }
            }
            OpKind::Fsync => Act::Fsync,
            OpKind::Truncate => {
                file.length = op.size_bytes;
                file.unfit = true;
                return;
            }
            _ => {
                file.unfit = true;
                return;
            }
        };
        // The first day makes the tree that the workload begins with.
        if !file.unfit && self.day > 0 && file.steps.len() < STEPS_MAX {
            file.steps.push((op.t_ns % DAY_NS, act, op.size_bytes));
        }
    }

    fn end_day(&mut self) {
        for node in std::mem::take(&mut self.touched) {
            let Some(file) = self.files.get_mut(&node) else { continue };
            let steps = std::mem::take(&mut file.steps);
            let growth = file.length.saturating_sub(file.began_bytes);
            let grown = |size_bytes: u64| size_bytes as f64 / growth.max(1) as f64;
            let changed = |act: &Act, size_bytes: u64| *act != Act::Fsync && size_bytes > 0;
            if file.unfit || !steps.iter().any(|(_, act, size_bytes)| changed(act, *size_bytes)) {
                continue;
            }
            let steps = steps.into_iter().map(|(at_ns, act, size_bytes)| match act {
                Act::Append { .. } => (at_ns, Act::Append { share: grown(size_bytes) }),
                _ => (at_ns, act),
            });
            let days = self.habits.classes.entry(class(file.began_bytes, file.length)).or_default();
            days.seen += 1;
            if days.kept.len() < FILE_DAYS_MAX {
                days.kept.push(steps.collect());
            } else if let Some(slot) =
                usize::try_from(self.random.next_u64() % days.seen).ok().and_then(|i| days.kept.get_mut(i))
            {
                *slot = steps.collect();
            }
        }
    }

    /// The habits, the last day's too.
    pub(super) fn finish(mut self) -> Habits {
        self.end_day();
        self.habits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn op(t_ns: u64, kind: OpKind, node: u64, offset_bytes: u64, size_bytes: u64) -> AgingOp {
        AgingOp { offset_bytes, size_bytes, ..AgingOp::new(t_ns, kind, NodeId(node)) }
    }

    fn seen(ops: &[AgingOp]) -> Habits {
        let mut watcher = Watcher::new();
        ops.iter().for_each(|op| watcher.see(op));
        watcher.finish()
    }

    #[test]
    fn steps_are_scaled_to_the_file_and_end_at_its_change() {
        let habits = seen(&[
            op(0, OpKind::Create, 1, 0, 1 << 20),
            op(DAY_NS + 10, OpKind::Overwrite, 1, 1 << 19, 4096),
            op(DAY_NS + 20, OpKind::Fsync, 1, 0, 0),
            op(DAY_NS + 30, OpKind::Overwrite, 1, 100, 1000),
            op(DAY_NS + 40, OpKind::Fsync, 1, 0, 0),
        ]);
        assert_eq!(habits.len(), 1);
        let length = (1 << 21) + 5000;
        let writes = habits.draw((length, length), (DAY_NS * 5, DAY_NS * 5 + 1000), &mut || 0.5);
        let (middle, early) = (length / 2 / 4096 * 4096, (100.0 / 1_048_576.0 * length as f64) as u64);
        let at = |ns| DAY_NS * 5 + ns;
        let expected = [
            (at(980), OpKind::Overwrite, middle, 4096),
            (at(990), OpKind::Fsync, 0, 0),
            (at(1000), OpKind::Overwrite, early, 1000),
            (at(1000), OpKind::Fsync, 0, 0),
        ];
        assert_eq!(writes, expected);
        // Too little time: drawn together. Two days: two file-days. Too far in length, or grown: none.
        let early = habits.draw((length, length), (DAY_NS * 5, DAY_NS * 5 + 10), &mut || 0.5);
        assert_eq!(early.iter().map(|w| w.0 - DAY_NS * 5).collect::<Vec<_>>(), [0, 5, 10, 10]);
        assert_eq!(habits.draw((length, length), (DAY_NS * 5, DAY_NS * 6 + 10), &mut || 0.5).len(), 8);
        assert!(habits.draw((1 << 24, 1 << 24), (DAY_NS * 5, DAY_NS * 6), &mut || 0.5).is_empty());
        assert!(habits.draw((1, length), (DAY_NS * 5, DAY_NS * 6), &mut || 0.5).is_empty());
    }

    #[test]
    fn growth_comes_in_pieces_and_ends_at_the_length() {
        let habits = seen(&[
            op(0, OpKind::Create, 1, 0, 600),
            op(DAY_NS, OpKind::Append, 1, 0, 100),
            op(DAY_NS + 7, OpKind::Append, 1, 0, 300),
        ]);
        for (days, pieces) in [(1, 2), (3, 6)] {
            let change_ns = (4 + days) * DAY_NS - 9;
            let writes = habits.draw((501, 1002), (4 * DAY_NS, change_ns), &mut || 0.0);
            assert_eq!(writes.len(), pieces);
            assert_eq!(writes.iter().map(|w| w.3).sum::<u64>(), 501);
            assert_eq!(writes.last().map(|w| w.0), Some(change_ns));
            assert!(writes.is_sorted_by_key(|w| w.0));
        }
    }

    #[test]
    fn files_made_cut_renamed_or_removed_that_day_and_mere_fsyncs_tell_nothing() {
        for kind in [OpKind::Truncate, OpKind::Rename, OpKind::Delete, OpKind::PunchHole] {
            let write = op(DAY_NS, OpKind::Overwrite, 1, 0, 10);
            let create = |t_ns| op(t_ns, OpKind::Create, 1, 0, 100);
            assert_eq!(seen(&[create(0), write.clone()]).len(), 1);
            assert_eq!(seen(&[create(DAY_NS), write.clone()]).len(), 0);
            assert_eq!(seen(&[create(0), write.clone(), op(DAY_NS + 1, kind, 1, 0, 10)]).len(), 0);
            assert_eq!(seen(&[create(0), op(DAY_NS, OpKind::Fsync, 1, 0, 0)]).len(), 0);
        }
    }

    #[test]
    fn a_class_keeps_a_bounded_sample() {
        let mut watcher = Watcher::new();
        watcher.see(&op(0, OpKind::Create, 1, 0, 100));
        for day in 1..2000 {
            watcher.see(&op(day * DAY_NS, OpKind::Overwrite, 1, 0, 10));
        }
        assert_eq!(watcher.finish().len(), FILE_DAYS_MAX);
    }
}
