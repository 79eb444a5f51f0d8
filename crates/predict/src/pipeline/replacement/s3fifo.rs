//! S3-FIFO: a small queue, a main queue and a queue of ghosts (Yang et al., *FIFO queues are all you need for cache
//! eviction*, SOSP 2023, section 4, algorithm 1), with the parameters of libCacheSim.
//!
//! What comes in goes through the small queue, a tenth of the cache. What was used at least twice there moves to the
//! main queue, the rest leaves and is remembered; what is asked for while it is remembered enters the main queue at
//! once. The main queue is CLOCK with two bits. As in libCacheSim, and other than in the paper, what comes in before
//! anything was evicted enters the main queue when the small one is full.

use super::{Evicted, Pass, queues::Queues};

const SMALL: usize = 0;
const MAIN: usize = 1;
const GHOST: usize = 2;

/// The small queue's share of the cache.
const SMALL_SHARE: f64 = 0.1;

/// Pages that are remembered, per page of the cache.
const GHOST_SHARE: f64 = 0.9;

/// Uses in the small queue that lead to the main one.
const USES_TO_MAIN: u8 = 2;

/// Uses that are counted at most: two bits.
const USES_MAX: u8 = 3;

/// The queues.
#[derive(Clone, Debug)]
pub(in crate::pipeline) struct S3Fifo {
    pub(super) queues: Queues<3>,
    small_limit: u64,
    main_limit: u64,
    ghost_limit: u64,
    has_evicted: bool,
    was_ghost: bool,
}

impl S3Fifo {
    pub(super) fn new(limit_pages: u64) -> S3Fifo {
        let small_limit = ((limit_pages as f64 * SMALL_SHARE) as u64).max(1);
        S3Fifo {
            queues: Queues::default(),
            small_limit,
            main_limit: limit_pages - small_limit,
            ghost_limit: (limit_pages as f64 * GHOST_SHARE) as u64,
            has_evicted: false,
            was_ghost: false,
        }
    }

    #[inline]
    pub(super) fn recall(&mut self, id: u32) {
        self.was_ghost = self.queues.list_of(id) == Some(GHOST);
        if self.was_ghost {
            self.queues.remove(id);
        }
    }

    #[inline]
    pub(super) fn enter(&mut self, id: u32, pages: u8, used: u64) {
        let small_is_full = self.queues.pages(SMALL) >= self.small_limit;
        let to = if self.was_ghost || (!self.has_evicted && small_is_full) { MAIN } else { SMALL };
        self.queues.push(to, id, pages, used);
    }

    #[inline]
    pub(super) fn touch(&mut self, id: u32, used: u64) {
        if self.queues.pass(id, used) == Pass::Again {
            let uses = self.queues.bits(id);
            *uses = (*uses + 1).min(USES_MAX);
        }
    }

    #[inline]
    pub(super) fn evict(&mut self) -> Option<Evicted> {
        self.has_evicted = true;
        if self.queues.pages(MAIN) > self.main_limit {
            return self.evict_main();
        }
        // What leaves the small queue may all go to the main one.
        self.evict_small().or_else(|| self.evict_main())
    }

    fn evict_small(&mut self) -> Option<Evicted> {
        loop {
            let id = self.queues.oldest(SMALL)?;
            if std::mem::take(self.queues.bits(id)) >= USES_TO_MAIN {
                self.queues.shift(MAIN, id);
                continue;
            }
            let is_ghost = self.queues.pages_of(id) <= self.ghost_limit;
            if is_ghost {
                self.queues.shift(GHOST, id);
            } else {
                self.queues.remove(id);
            }
            return Some(Evicted { id, is_ghost });
        }
    }

    fn evict_main(&mut self) -> Option<Evicted> {
        loop {
            let id = self.queues.oldest(MAIN)?;
            let uses = self.queues.bits(id);
            if *uses == 0 {
                self.queues.remove(id);
                return Some(Evicted { id, is_ghost: false });
            }
            *uses -= 1;
            self.queues.shift(MAIN, id);
        }
    }

    #[inline]
    pub(super) fn forget(&mut self) -> Option<u32> {
        if self.queues.pages(GHOST) <= self.ghost_limit {
            return None;
        }
        let id = self.queues.oldest(GHOST)?;
        self.queues.remove(id);
        Some(id)
    }
}
