//! What is known of inodes (`inodedep`, `indirdep`).

use super::record::{Number, Waiters};
use crate::format::{NDADDR, NIADDR};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::ops::Range;

/// Records of pointers in an inode, by place: 12 direct ones and 3 indirect ones.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Slots {
    numbers: [Option<Number>; NDADDR + NIADDR],
    /// Bit by bit, where there is one.
    set: u16,
}

impl Slots {
    pub(super) fn get(&self, slot: usize) -> Option<Number> {
        *self.numbers.get(slot)?
    }

    pub(super) fn set(&mut self, slot: usize, number: Number) {
        self.numbers[slot] = Some(number);
        self.set |= 1 << slot;
    }

    pub(super) fn clear(&mut self, slot: usize) {
        self.numbers[slot] = None;
        self.set &= !(1 << slot);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.set == 0
    }

    /// Places and records, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, Number)> {
        bits(u64::from(self.set)).filter_map(|slot| Some((slot, self.numbers[slot]?)))
    }

    /// Records in the order of their places.
    pub(super) fn numbers(&self) -> impl Iterator<Item = Number> {
        self.iter().map(|(_, number)| number)
    }
}

/// What is known of an inode.
#[derive(Clone, Debug, Default)]
pub(super) struct InodeDep {
    /// It is new, and may never have been on the disk.
    pub(super) new: Option<Number>,
    /// Pointers that are not stable.
    pub(super) slots: Slots,
    /// The same in its indirect blocks, by block and place.
    pub(super) indirects: BTreeMap<i64, BTreeMap<usize, Number>>,
    /// Links that the disk has more than memory: names that are gone from memory only.
    pub(super) owed: i32,
    /// To be freed when nothing is owed.
    pub(super) released: bool,
    /// Names of it that are not stable.
    pub(super) names: SmallVec<[Number; 2]>,
    /// Of a directory: changes by which a name of it goes from the disk.
    pub(super) leaving: SmallVec<[Number; 1]>,
    /// Records that wait for it to be on the disk.
    pub(super) awaited: Waiters,
}

impl InodeDep {
    fn is_empty(&self) -> bool {
        self.new.is_none()
            && self.slots.is_empty()
            && self.indirects.is_empty()
            && self.owed == 0
            && !self.released
            && self.names.is_empty()
            && self.leaving.is_empty()
            && self.awaited.is_empty()
    }
}

/// The places of the bits that are set.
fn bits(mut set: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = (set != 0).then(|| set.trailing_zeros() as usize)?;
        set &= set - 1;
        Some(bit)
    })
}

/// Entries of inodes.
#[derive(Clone, Debug, Default)]
pub(super) struct Inodes {
    deps: FxHashMap<u32, InodeDep>,
    /// A bit for each inode that has an entry, 64 to a word.
    present: FxHashMap<u32, u64>,
}

impl Inodes {
    pub(super) fn get(&self, ino: u32) -> Option<&InodeDep> {
        self.deps.get(&ino)
    }

    pub(super) fn get_mut(&mut self, ino: u32) -> Option<&mut InodeDep> {
        self.deps.get_mut(&ino)
    }

    /// The entry of an inode; makes one if there is none.
    pub(super) fn make(&mut self, ino: u32) -> &mut InodeDep {
        let present = &mut self.present;
        self.deps.entry(ino).or_insert_with(|| {
            *present.entry(ino / 64).or_default() |= 1 << (ino % 64);
            InodeDep::default()
        })
    }

    /// Removes the entry of an inode if it is empty.
    pub(super) fn tidy(&mut self, ino: u32) {
        if !self.deps.get(&ino).is_some_and(InodeDep::is_empty) {
            return;
        }
        self.deps.remove(&ino);
        if let Some(set) = self.present.get_mut(&(ino / 64)) {
            *set &= !(1 << (ino % 64));
            if *set == 0 {
                self.present.remove(&(ino / 64));
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.deps.is_empty()
    }

    /// Inodes of a range that have an entry, in order.
    pub(super) fn within(&self, inodes: Range<u32>) -> impl Iterator<Item = u32> + use<> {
        let words = inodes.start / 64..inodes.end.div_ceil(64);
        let sets: SmallVec<[(u32, u64); 2]> =
            words.map(|word| (word, self.present.get(&word).copied().unwrap_or(0))).collect();
        let all = sets.into_iter().flat_map(|(word, set)| bits(set).map(move |bit| word * 64 + bit as u32));
        all.filter(move |ino| inodes.contains(ino))
    }

    /// All of them, in no order.
    pub(super) fn values(&self) -> impl Iterator<Item = &InodeDep> {
        self.deps.values()
    }

    /// All of them, in order.
    pub(super) fn in_order(&self) -> Vec<(u32, &InodeDep)> {
        let mut all: Vec<(u32, &InodeDep)> = self.deps.iter().map(|(ino, dep)| (*ino, dep)).collect();
        all.sort_unstable_by_key(|(ino, _)| *ino);
        all
    }
}
