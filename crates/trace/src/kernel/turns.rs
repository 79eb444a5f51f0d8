//! Turns of threads on their way from records to a profile.
//!
//! What may not live here: what turns mean for a workload's time.

use super::wire::{self, turn_flag};
use crate::schedule::{Happened, Turn};
use rustc_hash::FxHashMap;

/// Turns that are handed over without waiting for events.
const MANY: usize = 1 << 16;

/// Turns that were read and not yet handed over.
#[derive(Debug, Default)]
pub(super) struct Turns {
    told: bool,
    ready: Vec<Turn>,
    /// Threads that have said that they exit, and when. They have work to do still, and leave the processor for the
    /// last time after it.
    exiting: FxHashMap<u32, u64>,
}

impl Turns {
    /// Whether the recorder tells of turns: then beginnings and ends belong to them.
    pub fn are_told(&mut self, told: bool) {
        self.told |= told;
    }

    fn push(&mut self, tid: u32, t_ns: u64, what: Happened) {
        if self.told {
            self.ready.push(Turn { tid, t_ns, what });
        }
    }

    pub fn began(&mut self, tid: u32, parent: u32, t_ns: u64) {
        self.end(tid);
        self.push(tid, t_ns, Happened::Began { parent });
    }

    /// A thread other than the first called exec, and took that one's number: as if it had made it, and ended.
    pub fn renumbered(&mut self, old_tid: u32, tid: u32, t_ns: u64) {
        self.end(tid);
        self.push(old_tid, t_ns, Happened::Ended);
        self.push(tid, t_ns, Happened::Began { parent: old_tid });
    }

    pub fn recorder(&mut self, tid: u32, t_ns: u64, own_ns: u64) {
        self.push(tid, t_ns, Happened::Recorder { own_ns });
    }

    pub fn exits(&mut self, tid: u32, t_ns: u64) {
        if self.told {
            self.exiting.insert(tid, t_ns);
        }
    }

    /// A thread's end is when it said so, if nothing later is known.
    fn end(&mut self, tid: u32) {
        if let Some(t_ns) = self.exiting.remove(&tid) {
            self.push(tid, t_ns, Happened::Ended);
        }
    }

    /// `None`: its times contradict each other.
    pub fn turn(&mut self, flags: u16, turn: &wire::Turn) -> Option<()> {
        let what = if flags & turn_flag::LAST != 0 {
            self.exiting.remove(&turn.tid);
            Happened::Ended
        } else if flags & turn_flag::SLEPT != 0 {
            let waker = Some(turn.waker_tid).filter(|&tid| tid != 0);
            Happened::Slept { woken_ns: turn.woke_ns, until_ns: turn.on_ns, waker }
        } else {
            Happened::Waited { until_ns: turn.on_ns }
        };
        let made = Turn { tid: turn.tid, t_ns: turn.off_ns, what };
        if made.fault().is_some() {
            return None;
        }
        self.push(made.tid, made.t_ns, what);
        Some(())
    }

    /// The recording ends.
    pub fn finish(&mut self) {
        let mut left: Vec<u32> = self.exiting.keys().copied().collect();
        left.sort_unstable();
        left.into_iter().for_each(|tid| self.end(tid));
    }

    pub fn are_many(&self) -> bool {
        self.ready.len() >= MANY
    }

    pub fn take(&mut self) -> Vec<Turn> {
        std::mem::take(&mut self.ready)
    }
}
