//! ARC: an adaptive replacement cache (Megiddo and Modha, FAST 2003, figure 4).
//!
//! `T1` holds what was used once since it came in, `T2` what was used again, both by recency; `B1` and `B2` remember
//! what each of them evicted lately. What is asked for while `B1` remembers it says that `T1` is too small, while `B2`
//! does that `T2` is: the target `p` of `T1` moves. Names are the paper's. Sizes are in pages, and so is what a ghost
//! moves the target by. As in libCacheSim the target need not be a whole number.

use super::{Evicted, Pass, queues::Queues};

const T1: usize = 0;
const T2: usize = 1;
const B1: usize = 2;
const B2: usize = 3;

/// The lists and the target.
#[derive(Clone, Debug)]
pub(in crate::pipeline) struct Arc {
    pub(super) queues: Queues<4>,
    limit: u64,
    /// What `T1` should hold, pages.
    p: f64,
    /// The list that remembered what comes in now.
    recalled: Option<usize>,
    /// A ghost that the last eviction gave up.
    forgotten: Option<u32>,
}

impl Arc {
    pub(super) fn new(limit_pages: u64) -> Arc {
        Arc { queues: Queues::default(), limit: limit_pages, p: 0.0, recalled: None, forgotten: None }
    }

    /// Cases II and III.
    #[inline]
    pub(super) fn recall(&mut self, id: u32) {
        self.recalled = self.queues.list_of(id);
        let Some(list) = self.recalled else { return };
        let (b1, b2) = (self.queues.pages(B1) as f64, self.queues.pages(B2) as f64);
        let pages = self.queues.pages_of(id) as f64;
        self.p = match list {
            B1 => (self.p + pages * (b2 / b1).max(1.0)).min(self.limit as f64),
            _ => (self.p - pages * (b1 / b2).max(1.0)).max(0.0),
        };
        self.queues.remove(id);
    }

    #[inline]
    pub(super) fn enter(&mut self, id: u32, pages: u8, used: u64) {
        let to = if self.recalled.take().is_some() { T2 } else { T1 };
        self.queues.push(to, id, pages, used);
    }

    /// Case I.
    #[inline]
    pub(super) fn touch(&mut self, id: u32, used: u64) {
        if self.queues.pass(id, used) == Pass::Again {
            self.queues.shift(T2, id);
        }
    }

    /// Room for what comes in: the paper's `REPLACE`, in case IV after what gives up ghosts.
    #[inline]
    pub(super) fn evict(&mut self, incoming: u64) -> Option<Evicted> {
        if self.recalled.is_none() {
            if self.l1() + incoming > self.limit {
                self.forgotten = self.queues.oldest(B1);
                if self.forgotten.is_none()
                    && let Some(id) = self.queues.oldest(T1)
                {
                    // T1 is all of the cache: what it gives up is not remembered.
                    self.queues.remove(id);
                    return Some(Evicted { id, is_ghost: false });
                }
            } else if self.total() >= 2 * self.limit {
                self.forgotten = self.queues.oldest(B2);
            }
            self.forgotten.iter().for_each(|&ghost| self.queues.remove(ghost));
        }
        self.replace()
    }

    /// Pages of `T1` and of what it gave up.
    fn l1(&self) -> u64 {
        self.queues.pages(T1) + self.queues.pages(B1)
    }

    fn total(&self) -> u64 {
        self.l1() + self.queues.pages(T2) + self.queues.pages(B2)
    }

    /// What the last eviction gave up; and where chunks differ in size, what is then too much by the paper's
    /// invariants.
    #[inline]
    pub(super) fn forget(&mut self) -> Option<u32> {
        if let Some(id) = self.forgotten.take() {
            return Some(id);
        }
        let too_old = match () {
            () if self.l1() > self.limit => self.queues.oldest(B1),
            () if self.total() > 2 * self.limit => self.queues.oldest(B2),
            () => None,
        };
        let id = too_old?;
        self.queues.remove(id);
        Some(id)
    }

    fn replace(&mut self) -> Option<Evicted> {
        let t1 = self.queues.pages(T1) as f64;
        let is_over = t1 > self.p || (t1 == self.p && self.recalled == Some(B2));
        let from_t1 = self.queues.oldest(T1).filter(|_| is_over);
        let (id, ghosts) = match (from_t1, self.queues.oldest(T2)) {
            (Some(id), _) => (id, B1),
            (None, Some(id)) => (id, B2),
            (None, None) => (self.queues.oldest(T1)?, B1),
        };
        self.queues.shift(ghosts, id);
        Some(Evicted { id, is_ghost: true })
    }
}
