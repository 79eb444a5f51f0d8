//! CLOCK and SIEVE: one queue with a hand.
//!
//! The hand goes from the oldest chunk to the newest and round again. It passes over what was used since it came by,
//! and evicts the first that was not. The two differ only in where a newcomer goes. In CLOCK (Corbató, *A paging
//! experiment with the Multics system*, 1968; one bit, as in libCacheSim) it takes the place that the hand has just
//! left, so that all others come before it, which makes it a queue with reinsertion. In SIEVE (Zhang et al., NSDI 2024,
//! algorithm 1) it goes to the end of the queue, where the hand may meet it soon: what nobody asks for again is gone
//! quickly.

use super::Pass;
use super::queues::Queues;

/// Where what comes in goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Newcomer {
    /// Where the hand comes last.
    BehindHand,
    /// At the newest end of the queue.
    AtEnd,
}

const QUEUE: usize = 0;

/// The queue.
#[derive(Clone, Debug)]
pub(in crate::pipeline) struct Hand {
    pub(super) queues: Queues<1>,
    newcomer: Newcomer,
    /// What it points at; nothing: it begins again with the oldest.
    hand: Option<u32>,
}

impl Hand {
    pub(super) fn new(newcomer: Newcomer) -> Hand {
        Hand { queues: Queues::default(), newcomer, hand: None }
    }

    #[inline]
    pub(super) fn enter(&mut self, id: u32, pages: u8, used: u64) {
        match self.hand {
            Some(hand) if self.newcomer == Newcomer::BehindHand => {
                self.queues.push_before(QUEUE, id, pages, used, hand);
            }
            _ => self.queues.push(QUEUE, id, pages, used),
        }
    }

    #[inline]
    pub(super) fn touch(&mut self, id: u32, used: u64) {
        if self.queues.pass(id, used) == Pass::Again {
            *self.queues.bits(id) = 1;
        }
    }

    #[inline]
    pub(super) fn evict(&mut self) -> Option<u32> {
        let mut at = self.hand.or_else(|| self.queues.oldest(QUEUE))?;
        while std::mem::take(self.queues.bits(at)) > 0 {
            at = self.queues.newer(at).or_else(|| self.queues.oldest(QUEUE))?;
        }
        self.hand = Some(at);
        self.remove(at);
        Some(at)
    }

    pub(super) fn remove(&mut self, id: u32) {
        if self.hand == Some(id) {
            self.hand = self.queues.newer(id);
        }
        self.queues.remove(id);
    }
}
