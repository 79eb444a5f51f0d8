//! The order in which calls started, from records in the order in which they returned.

use crate::track::Place;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// Starts that wait for their turn, and places given to calls that have not returned.
#[derive(Debug, Default)]
pub(super) struct Order {
    /// Start and thread, sorted. Returns come nearly in the order of starts, so nearly all go to the end.
    waiting: VecDeque<(u64, u32)>,
    /// By thread: a call whose start was told by a record of its own.
    entered: FxHashMap<u32, u64>,
    places: FxHashMap<(u32, u64), Place>,
    /// The latest start that has its place.
    latest_ns: u64,
    late: u64,
}

impl Order {
    /// A record of a call was read. `enter`: one of its beginning.
    pub fn saw(&mut self, tid: u32, start_ns: u64, enter: bool) {
        if enter {
            self.entered.insert(tid, start_ns);
        } else if self.entered.remove(&tid) == Some(start_ns) {
            return;
        }
        self.wait(tid, start_ns);
    }

    /// A record was read of what is no call: a thread makes them beside its calls.
    pub fn saw_beside(&mut self, tid: u32, start_ns: u64) {
        self.wait(tid, start_ns);
    }

    fn wait(&mut self, tid: u32, start_ns: u64) {
        let start = (start_ns, tid);
        if self.waiting.back().is_none_or(|&last| last <= start) {
            self.waiting.push_back(start);
        } else {
            let at = self.waiting.partition_point(|&other| other <= start);
            self.waiting.insert(at, start);
        }
    }

    /// A record was read by which a thread goes on under another number: the return of its call will tell that one.
    pub fn saw_renumbered(&mut self, from: u32, to: u32) {
        if let Some(start_ns) = self.entered.remove(&from) {
            self.entered.insert(to, start_ns);
        }
    }

    /// Takes out the next call that started before a moment.
    pub fn next_start(&mut self, before_ns: u64) -> Option<(u32, u64)> {
        let &(start_ns, tid) = self.waiting.front()?;
        if start_ns >= before_ns {
            return None;
        }
        self.waiting.pop_front();
        if start_ns < self.latest_ns {
            self.late += 1;
        }
        self.latest_ns = self.latest_ns.max(start_ns);
        Some((tid, start_ns))
    }

    /// Keeps a call's place until it returns. Gives back the place of what began at the same moment in the same thread
    /// (two records of one fault): one place is kept.
    pub fn give(&mut self, tid: u32, start_ns: u64, place: Place) -> Option<Place> {
        self.places.insert((tid, start_ns), place)
    }

    /// Takes out the places of all that never came.
    pub fn left(&mut self) -> Vec<Place> {
        self.places.drain().map(|(_, place)| place).collect()
    }

    /// Takes a call's place.
    pub fn take(&mut self, tid: u32, start_ns: u64) -> Option<Place> {
        self.places.remove(&(tid, start_ns))
    }

    /// A thread goes on under another number from a moment on: so do its calls that started before and have not
    /// returned.
    pub fn renumber(&mut self, from: u32, to: u32, at_ns: u64) {
        let until = self.waiting.partition_point(|&(start_ns, _)| start_ns <= at_ns);
        for (_, tid) in self.waiting.range_mut(..until).filter(|(_, tid)| *tid == from) {
            *tid = to;
        }
        let moved: Vec<(u32, u64)> = self.places.keys().copied().filter(|&(tid, _)| tid == from).collect();
        for (tid, start_ns) in moved {
            if let Some(place) = self.places.remove(&(tid, start_ns)) {
                self.places.insert((to, start_ns), place);
            }
        }
    }

    /// Calls that took their place after calls that started later.
    pub fn late(&self) -> u64 {
        self.late
    }
}
