//! Linux's two lists, as its kernel keeps them where it is not built for generations (`CONFIG_LRU_GEN`).
//!
//! * What comes in is put at the head of the *inactive* list. Its first use marks it as referenced; the next moves it
//!   to the *active* list (`folio_mark_accessed`, mm/swap.c). A use of what is active only marks it: the active list is
//!   a queue.
//! * Reclaim takes the oldest of the inactive list, marked or not (file pages that nobody has mapped:
//!   `folio_check_references`, mm/vmscan.c). It takes from the active list at the same rate, in proportion to the
//!   lists' lengths, while the inactive list is too short (`inactive_is_low`: shorter than the active one divided by
//!   the square root of ten times the gigabytes of both) or something came back active since the last time
//!   (`prepare_scan_control`). What is taken from the active list begins anew in the inactive one, its mark kept.
//! * Every eviction and every activation advances an age by its pages. What comes back before the age has advanced by
//!   more than the active list's length would have been found had that list been the inactive one's: it becomes active
//!   at once (the *refault distance*; mm/workingset.c).
//!
//! Of memory that is not page cache (anonymous memory, which competes where there is swap) nothing is known here.

use super::{Evicted, Pass, queues::Queues};

const INACTIVE: usize = 0;
const ACTIVE: usize = 1;
const SHADOW: usize = 2;

/// Pages that one reclaim frees (`SWAP_CLUSTER_MAX`).
const RECLAIM_PAGES: u64 = 32;

/// Pages of a gigabyte.
const GB_PAGES: u64 = 1 << 18;

/// The lists.
#[derive(Clone, Debug)]
pub(in crate::pipeline) struct Linux {
    pub(super) queues: Queues<3>,
    limit: u64,
    /// Pages evicted and activated so far (`nonresident_age`).
    age: u64,
    /// The age at which each slot was evicted.
    evicted_at: Vec<u64>,
    /// When what comes in now was evicted.
    recalled: Option<u64>,
    /// Something came back active since the last reclaim.
    is_thrashing: bool,
    /// The reclaim that goes on takes from the active list because of that.
    takes_active: bool,
    /// Pages that it may still free.
    reclaim_left: u64,
    /// Pages that are due from the active list.
    due: f64,
}

impl Linux {
    pub(super) fn new(limit_pages: u64) -> Linux {
        Linux {
            queues: Queues::default(),
            limit: limit_pages,
            age: 0,
            evicted_at: Vec::new(),
            recalled: None,
            is_thrashing: false,
            takes_active: false,
            reclaim_left: 0,
            due: 0.0,
        }
    }

    #[inline]
    pub(super) fn recall(&mut self, id: u32) {
        self.recalled = None;
        if self.queues.list_of(id) == Some(SHADOW) {
            self.recalled = self.evicted_at.get(id as usize).copied();
            self.queues.remove(id);
        }
    }

    #[inline]
    pub(super) fn enter(&mut self, id: u32, pages: u8, used: u64) {
        let distance = self.recalled.take().map(|then| self.age - then);
        if distance.is_some_and(|distance| distance <= self.queues.pages(ACTIVE)) {
            self.queues.push(ACTIVE, id, pages, used);
            self.age += u64::from(pages);
            self.is_thrashing = true;
        } else {
            self.queues.push(INACTIVE, id, pages, used);
        }
        *self.queues.bits(id) = u8::from(used != 0);
    }

    #[inline]
    pub(super) fn touch(&mut self, id: u32, used: u64) {
        if self.queues.pass(id, used) == Pass::GoesOn {
            return;
        }
        let is_inactive = self.queues.list_of(id) == Some(INACTIVE);
        let was_referenced = std::mem::replace(self.queues.bits(id), 1) != 0;
        if is_inactive && was_referenced {
            *self.queues.bits(id) = 0;
            self.queues.shift(ACTIVE, id);
            self.age += self.queues.pages_of(id);
        }
    }

    #[inline]
    pub(super) fn evict(&mut self) -> Option<Evicted> {
        if self.reclaim_left == 0 {
            self.reclaim_left = RECLAIM_PAGES;
            self.takes_active = std::mem::take(&mut self.is_thrashing);
        }
        let (inactive, active) = (self.queues.pages(INACTIVE), self.queues.pages(ACTIVE));
        let id = match self.queues.oldest(INACTIVE) {
            Some(id) => id,
            None => {
                let id = self.queues.oldest(ACTIVE)?;
                self.queues.shift(INACTIVE, id);
                id
            }
        };
        let pages = self.queues.pages_of(id);
        self.reclaim_left = self.reclaim_left.saturating_sub(pages);
        let at = id as usize;
        if at >= self.evicted_at.len() {
            self.evicted_at.resize(at + 1 + at / 2, 0);
        }
        self.evicted_at[at] = self.age;
        self.age += pages;
        self.queues.shift(SHADOW, id);
        if self.takes_active || inactive_is_low(inactive, active) {
            self.due += pages as f64 * active as f64 / inactive.max(1) as f64;
            self.deactivate();
        } else {
            self.due = 0.0;
        }
        Some(Evicted { id, is_ghost: true })
    }

    fn deactivate(&mut self) {
        while self.due >= 1.0 {
            let Some(id) = self.queues.oldest(ACTIVE) else {
                self.due = 0.0;
                return;
            };
            self.due -= self.queues.pages_of(id) as f64;
            self.queues.shift(INACTIVE, id);
        }
    }

    /// What would come back too late whatever the active list's length.
    #[inline]
    pub(super) fn forget(&mut self) -> Option<u32> {
        let id = self.queues.oldest(SHADOW)?;
        let evicted_at = self.evicted_at.get(id as usize)?;
        if self.age - evicted_at <= self.limit {
            return None;
        }
        self.queues.remove(id);
        Some(id)
    }
}

fn inactive_is_low(inactive: u64, active: u64) -> bool {
    let gb = (inactive + active) / GB_PAGES;
    let ratio = if gb > 0 { (10 * gb).isqrt() } else { 1 };
    inactive * ratio < active
}

#[cfg(test)]
mod tests {
    use crate::pipeline::CachePolicy;
    use crate::pipeline::annotated::NodeId;
    use crate::pipeline::pages::{DataCache, PAGE_BYTES, Use};

    const FILE: NodeId = NodeId(1);

    fn cache(pages: u64) -> DataCache {
        DataCache::with_policy(Some(pages * PAGE_BYTES), 1, CachePolicy::Linux)
    }

    fn read(cache: &mut DataCache, pages: std::ops::Range<u64>) -> u64 {
        pages.map(|page| cache.touch(FILE, page, 1, false).misses).sum()
    }

    #[test]
    fn what_was_read_twice_survives_a_scan() {
        let mut cache = cache(1000);
        assert_eq!(read(&mut cache, 0..400) + read(&mut cache, 0..400), 400);
        assert_eq!(read(&mut cache, 10_000..15_000), 5000);
        assert_eq!(read(&mut cache, 0..400), 0);
    }

    #[test]
    fn what_was_read_once_does_not() {
        let mut cache = cache(1000);
        read(&mut cache, 0..400);
        read(&mut cache, 10_000..15_000);
        assert_eq!(read(&mut cache, 0..400), 400);
    }

    #[test]
    fn pages_read_ahead_are_not_used_yet() {
        let mut cache = cache(1000);
        for _ in 0..2 {
            cache.touch_as(FILE, 0, 400, false, Use::Ahead);
        }
        assert_eq!(read(&mut cache, 0..400), 0);
        read(&mut cache, 10_000..15_000);
        assert_eq!(read(&mut cache, 0..400), 400, "used once since");
    }

    #[test]
    fn small_reads_of_a_page_are_one_use() {
        let mut cache = cache(1000);
        for offset in (0..400 * PAGE_BYTES).step_by(512) {
            cache.touch_as(FILE, offset / PAGE_BYTES, 1, false, Use::at(offset));
        }
        read(&mut cache, 10_000..15_000);
        assert_eq!(read(&mut cache, 0..400), 400);
    }

    /// The active list holds 500 pages, so what comes back within 500 evictions is active at once, and a scan cannot
    /// take it away; what comes back later is not.
    #[test]
    fn what_comes_back_soon_is_active() {
        for (scanned, survives) in [(800, true), (1500, false)] {
            let mut cache = cache(1000);
            read(&mut cache, 0..500);
            read(&mut cache, 0..500);
            // The inactive list holds 500: the first of these pages are evicted `scanned` - 500 evictions before they
            // come back.
            read(&mut cache, 10_000..10_100);
            read(&mut cache, 20_000..20_000 + scanned);
            assert_eq!(read(&mut cache, 10_000..10_100), 100);
            read(&mut cache, 30_000..32_000);
            let misses = read(&mut cache, 10_000..10_100);
            assert_eq!(misses == 0, survives, "{scanned}: {misses} misses");
        }
    }

    #[test]
    fn an_old_working_set_gives_way() {
        let mut cache = cache(1000);
        for _ in 0..3 {
            read(&mut cache, 0..800);
        }
        let misses: Vec<u64> = (0..20).map(|_| read(&mut cache, 5000..5800)).collect();
        assert_eq!(misses.last(), Some(&0), "{misses:?}");
    }

    /// The table in mm/vmscan.c: 50 of 100 MB, 250 MB of 1 GB, 0.9 of 10 GB may be inactive.
    #[test]
    fn the_inactive_list_is_as_long_as_vmscan_says() {
        let low = |inactive_mb: u64, all_mb: u64| super::inactive_is_low(inactive_mb << 8, (all_mb - inactive_mb) << 8);
        for (all_mb, low_mb, enough_mb) in [(100, 49, 50), (1024, 255, 257), (10 << 10, 900, 960)] {
            assert!(low(low_mb, all_mb) && !low(enough_mb, all_mb), "{all_mb} MB");
        }
    }
}
