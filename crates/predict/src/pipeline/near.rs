//! How far what is cached is from the processor: bytes touched since a thing was last touched.
//!
//! A system's caches say whether a name, an inode or a page is in memory. What it costs to get it from there depends on
//! whether the processor still has it in a cache of its own, and so on how much else was touched in between (its *stack
//! distance*; Mattson et al., *Evaluation techniques for storage hierarchies*, IBM Systems Journal 9, 1970). The clock
//! here advances by a thing's bytes only when that was touched longer ago than [`NEAR_BYTES`], so that a few hot things
//! do not push out the others by being touched again and again: an approximation of the distance at one number a thing.
//!
//! Things that came into the cache one after the other lie side by side, and are fetched ahead where they are met again
//! in that order; only out of order is each an access of its own.

use system::vector::OBJECT_BYTES;

/// Closer than this nothing is far: it is in the processor's second-level cache.
pub const NEAR_BYTES: u64 = 256 << 10;

/// Things that came in within so many of one another lie side by side.
const BESIDE: u64 = 4;

/// How far a thing was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Distance {
    /// Bytes touched since; 0: it is near.
    pub bytes: u64,
    /// It came into the cache just after the one that was touched before it.
    pub in_order: bool,
}

/// Pages of one request that were far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FarPages {
    /// How many.
    pub pages: u64,
    /// Their distances, bytes, summed up.
    pub sum_bytes: u64,
}

impl FarPages {
    /// Counts pages at a distance.
    #[inline]
    pub fn add(&mut self, pages: u64, distance_bytes: u64) {
        if distance_bytes > 0 {
            self.pages += pages;
            self.sum_bytes = self.sum_bytes.saturating_add(pages.saturating_mul(distance_bytes));
        }
    }

    /// Their mean distance, bytes.
    pub fn mean_bytes(&self) -> u64 {
        self.sum_bytes.checked_div(self.pages).unwrap_or(0)
    }
}

/// The clock of bytes touched.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clock {
    now: u64,
}

impl Clock {
    /// A thing is touched that was last touched at `last`: how far it was, and the time to remember.
    #[inline]
    pub fn touch(&mut self, last: u64, bytes: u64) -> (u64, u64) {
        let distance = self.now - last;
        if distance <= NEAR_BYTES {
            return (0, self.now);
        }
        self.now += bytes;
        (distance, self.now)
    }

    /// Bytes touched since then.
    #[inline]
    pub fn since(&self, last: u64) -> u64 {
        self.now - last
    }

    /// A thing is touched for the first time.
    #[inline]
    pub fn enter(&mut self, bytes: u64) -> u64 {
        self.now += bytes;
        self.now
    }
}

/// Names by number: when each was last touched, and how many had entered by then, itself included.
#[derive(Clone, Debug, Default)]
pub struct NearNames {
    names: Vec<(u64, u64)>,
    entered: u64,
    before: u64,
}

impl NearNames {
    fn of(&mut self, name: u32) -> &mut (u64, u64) {
        let at = name as usize;
        if at >= self.names.len() {
            self.names.resize(at + 1 + at / 2, (0, 0));
        }
        &mut self.names[at]
    }

    /// A name comes into the cache.
    #[inline]
    pub fn enter(&mut self, clock: &mut Clock, name: u32) {
        self.entered += 1;
        self.before = self.entered;
        *self.of(name) = (clock.enter(OBJECT_BYTES), self.entered);
    }

    /// A name in the cache is looked up.
    #[inline]
    pub fn touch(&mut self, clock: &mut Clock, name: u32) -> Distance {
        let before = self.before;
        let (last, entered) = self.of(name);
        let (bytes, now) = clock.touch(*last, OBJECT_BYTES);
        *last = now;
        let entered = *entered;
        self.before = entered;
        Distance { bytes, in_order: entered > before && entered - before <= BESIDE }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entered(clock: &mut Clock, all: u32) -> NearNames {
        let mut names = NearNames::default();
        (0..all).for_each(|name| names.enter(clock, name));
        names
    }

    #[test]
    fn what_is_touched_again_and_again_pushes_nothing_out() {
        let mut clock = Clock::default();
        let mut names = entered(&mut clock, 3);
        (0..1_000_000).for_each(|_| _ = names.touch(&mut clock, 2));
        assert_eq!(names.touch(&mut clock, 1).bytes, 0);
    }

    #[test]
    fn a_cycle_is_as_far_as_it_is_long() {
        let (mut clock, all) = (Clock::default(), 1u32 << 14);
        let mut names = entered(&mut clock, all);
        for _ in 0..2 {
            for name in 0..all {
                let found = names.touch(&mut clock, name);
                assert_eq!(found.bytes, (u64::from(all) - 1) * OBJECT_BYTES);
                assert_eq!(found.in_order, name > 0);
            }
        }
        names.touch(&mut clock, 0);
        assert!(!names.touch(&mut clock, 5).in_order, "it is beside nothing that was touched");
    }

    #[test]
    fn what_comes_in_again_is_near() {
        let mut clock = Clock::default();
        let mut names = entered(&mut clock, 10_000);
        names.enter(&mut clock, 0);
        assert_eq!(names.touch(&mut clock, 0).bytes, 0);
        assert!(names.touch(&mut clock, 1).bytes > NEAR_BYTES);
    }
}
