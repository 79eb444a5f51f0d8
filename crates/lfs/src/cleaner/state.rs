//! What the cleaner is doing, and why.

use super::moving::Moving;
use crate::format::SegNo;

/// Why the daemon works.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Round {
    /// It does not, before fewer segments are clean than the low-water mark says, or nobody calls for long enough.
    #[default]
    Resting,
    /// Nobody called. When somebody does, it stops.
    Idle,
    /// Too few segments were clean: it goes on to the high-water mark, whoever calls.
    Short,
}

/// What the cleaner is doing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cleaner {
    /// What is being moved.
    pub(crate) moving: Moving,
    /// Segments that the daemon has read, with their turns.
    pub(super) read: Vec<(SegNo, u32)>,
    pub(super) round: Round,
    /// Segments that the log had taken when nothing was worth cleaning: not again before it has taken another.
    pub(super) idle_since: Option<u64>,
    /// Segments that the log had taken when all of them had been cleaned.
    pub(super) swept: Option<u64>,
    /// The most clean segments since this round began.
    pub(super) best: u32,
    /// Segments moved since there were that many, and since anybody else wanted room.
    pub(super) fruitless: u32,
}

impl Cleaner {
    /// An operation uses room: what the daemon gains may be gone at once without it having worked in vain.
    #[inline]
    pub(crate) fn room_is_wanted(&mut self) {
        self.fruitless = 0;
    }
}
