//! Which chunk of pages leaves the data cache first.
//!
//! One file per idea: [`lru`](super::lru), [`hand`] (CLOCK and SIEVE), [`s3fifo`], [`arc`] and [`linux`]; the lists
//! that they are made of are [`queues`]. A chunk is a slot, a small integer, so nothing is hashed or allocated when a
//! page is touched. With chunks of one page each policy misses exactly as libCacheSim's of that name does
//! (tests/it/libcachesim.rs); Linux is held against the kernel (tests/it/kernel_cache.rs). With larger chunks sizes are
//! in pages, a chunk enters and leaves as a whole, and one pass over its pages is one use, however many requests make
//! it.
//!
//! A policy may remember what it has evicted (a *ghost*). The slot of a ghost stays the chunk's, and is given up when
//! the policy [forgets](Replacement::forget) it.

mod arc;
mod hand;
mod linux;
mod queues;
mod s3fifo;

use super::lru::Lru;
use arc::Arc;
use hand::{Hand, Newcomer};
use linux::Linux;
use queues::Pass;
use s3fifo::S3Fifo;
use system::CachePolicy;

/// The chunks of a cache in the order in which they leave it.
#[derive(Clone, Debug)]
pub(super) enum Replacement {
    Lru(Lru),
    Hand(Hand),
    S3Fifo(S3Fifo),
    Arc(Arc),
    Linux(Linux),
}

/// What was evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Evicted {
    pub id: u32,
    /// It is a ghost now: its slot is still needed.
    pub is_ghost: bool,
}

impl Replacement {
    /// Of a cache of so many pages; without a limit nothing leaves, and no policy needs an order.
    pub fn new(policy: CachePolicy, limit_pages: Option<u64>) -> Replacement {
        let Some(limit) = limit_pages else { return Replacement::Lru(Lru::new(None)) };
        match policy {
            // Chunks are counted in pages, so the list itself needs no limit, only an order.
            CachePolicy::Lru => Replacement::Lru(Lru::new(Some(usize::MAX))),
            CachePolicy::Clock => Replacement::Hand(Hand::new(Newcomer::BehindHand)),
            CachePolicy::Sieve => Replacement::Hand(Hand::new(Newcomer::AtEnd)),
            CachePolicy::S3Fifo => Replacement::S3Fifo(S3Fifo::new(limit)),
            CachePolicy::Arc => Replacement::Arc(Arc::new(limit)),
            CachePolicy::Linux => Replacement::Linux(Linux::new(limit)),
        }
    }

    /// A chunk that is not in the cache is about to come in: if it is a ghost, it is one no longer, and the policy
    /// learns from that.
    #[inline]
    pub fn recall(&mut self, id: u32) {
        match self {
            Replacement::Lru(_) | Replacement::Hand(_) => {}
            Replacement::S3Fifo(p) => p.recall(id),
            Replacement::Arc(p) => p.recall(id),
            Replacement::Linux(p) => p.recall(id),
        }
    }

    /// A chunk comes in with `pages` pages, of which those of `used` are what was asked for.
    #[inline]
    pub fn enter(&mut self, id: u32, pages: u8, used: u64) {
        match self {
            Replacement::Lru(p) => {
                p.touch(id);
            }
            Replacement::Hand(p) => p.enter(id, pages, used),
            Replacement::S3Fifo(p) => p.enter(id, pages, used),
            Replacement::Arc(p) => p.enter(id, pages, used),
            Replacement::Linux(p) => p.enter(id, pages, used),
        }
    }

    /// Pages of a chunk that is in the cache are touched; those of `used` were asked for.
    #[inline]
    pub fn touch(&mut self, id: u32, used: u64) {
        match self {
            Replacement::Lru(p) => {
                p.touch(id);
            }
            Replacement::Hand(p) => p.touch(id, used),
            Replacement::S3Fifo(p) => p.touch(id, used),
            Replacement::Arc(p) => p.touch(id, used),
            Replacement::Linux(p) => p.touch(id, used),
        }
    }

    /// A chunk has another number of pages now, not 0.
    #[inline]
    pub fn resize(&mut self, id: u32, pages: u8) {
        match self {
            Replacement::Lru(_) => {}
            Replacement::Hand(p) => p.queues.resize(id, pages),
            Replacement::S3Fifo(p) => p.queues.resize(id, pages),
            Replacement::Arc(p) => p.queues.resize(id, pages),
            Replacement::Linux(p) => p.queues.resize(id, pages),
        }
    }

    /// Evicts a chunk to let in another of `incoming` pages; `None` if there is none.
    #[inline]
    pub fn evict(&mut self, incoming: u64) -> Option<Evicted> {
        match self {
            Replacement::Lru(p) => p.pop_oldest().map(|id| Evicted { id, is_ghost: false }),
            Replacement::Hand(p) => p.evict().map(|id| Evicted { id, is_ghost: false }),
            Replacement::S3Fifo(p) => p.evict(),
            Replacement::Arc(p) => p.evict(incoming),
            Replacement::Linux(p) => p.evict(),
        }
    }

    /// A ghost that is not needed any more; to be asked after an eviction until there is none.
    #[inline]
    pub fn forget(&mut self) -> Option<u32> {
        match self {
            Replacement::Lru(_) | Replacement::Hand(_) => None,
            Replacement::S3Fifo(p) => p.forget(),
            Replacement::Arc(p) => p.forget(),
            Replacement::Linux(p) => p.forget(),
        }
    }

    /// A chunk or a ghost is gone for another reason than eviction.
    pub fn remove(&mut self, id: u32) {
        match self {
            Replacement::Lru(p) => {
                p.remove(id);
            }
            Replacement::Hand(p) => p.remove(id),
            Replacement::S3Fifo(p) => p.queues.remove(id),
            Replacement::Arc(p) => p.queues.remove(id),
            Replacement::Linux(p) => p.queues.remove(id),
        }
    }
}
