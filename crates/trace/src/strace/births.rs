//! Threads that are new: whose children they are, and their lines, which wait until that is known.

use super::Importer;
use super::line::{self, Body, Head, Leader};
use crate::track::{CloneFlags, Cloning, Place};

/// Lines of threads of unknown parent kept back at most, in bytes.
const HELD_BYTES_MAX: usize = 32 << 20;

/// A line kept back.
#[derive(Debug)]
pub(super) struct Held {
    tid: u32,
    number: u64,
    /// The place in the order that its call takes, if it begins one, or if that kept none when it began.
    place: Option<Place>,
    line: Vec<u8>,
}

impl Importer {
    /// The thread a line belongs to, made known to the tracker; `None` if the line has to wait.
    pub(super) fn admit(&mut self, head: Head<'_>, body: &Body<'_>, line: &[u8]) -> Option<u32> {
        let Some(tid) = head.tid else { return Some(self.tracker.sole_thread().unwrap_or(0)) };
        if self.held_threads.contains(&tid) {
            self.hold(tid, body, line);
            return None;
        }
        if self.tracker.knows(tid) {
            return Some(tid);
        }
        // Without -o, the first process has no number until a second one appears.
        let anonymous = self.tracker.knows(0) && tid != 0;
        if anonymous && (matches!(body, Body::Resumed { .. }) || self.cloning.is_empty()) {
            self.renumber(0, tid);
            return Some(tid);
        }
        match self.cloning.len() {
            0 => Some(tid),
            1 => {
                self.adopt(tid);
                Some(tid)
            }
            _ => {
                self.hold(tid, body, line);
                None
            }
        }
    }

    /// Keeps a line back until its thread's parent is known.
    fn hold(&mut self, tid: u32, body: &Body<'_>, line: &[u8]) {
        self.held_bytes += line.len();
        let has_event =
            matches!(body, Body::Call(_) | Body::Unfinished(_) | Body::Changed { .. } | Body::Resumed { .. });
        let place = has_event.then(|| self.tracker.start());
        self.held.push_back(Held { tid, number: self.line_number, place, line: line.to_vec() });
        self.held_threads.insert(tid);
        if self.held_bytes > HELD_BYTES_MAX {
            self.release_held(true);
        }
    }

    fn renumber(&mut self, from: u32, to: u32) {
        self.tracker.renumber(from, to);
        if self.first_tid == Some(from) {
            self.first_tid = Some(to);
        }
        if let Some(running) = self.running.remove(&from) {
            self.running.insert(to, running);
        }
        for tid in &mut self.cloning {
            if *tid == from {
                *tid = to;
            }
        }
    }

    /// Makes a new thread the child of the clone that has been running longest.
    fn adopt(&mut self, child: u32) {
        if self.cloning.is_empty() {
            return;
        }
        let parent = self.cloning.remove(0);
        self.parents_changed = true;
        if let Some(clone) = self.running.get_mut(&parent).and_then(|running| running.clone.as_mut()) {
            let (flags, begun) = (clone.flags, clone.begun.take());
            self.spawn(parent, child, flags, begun);
        }
    }

    fn spawn(&mut self, parent: u32, child: u32, flags: CloneFlags, begun: Option<Cloning>) {
        match begun {
            Some(begun) => self.tracker.spawn_begun(parent, child, flags, begun),
            None => self.tracker.spawn(parent, child, flags),
        }
    }

    /// Takes in the lines kept back, as far as their threads' parents are known now. With `all`, guesses.
    pub(super) fn release_held(&mut self, all: bool) {
        if self.held.is_empty() || !(all || self.parents_changed) {
            return;
        }
        self.parents_changed = false;
        let mut at = 0;
        while let Some(held) = self.held.get(at) {
            let tid = held.tid;
            if !self.tracker.knows(tid) {
                if !all && self.cloning.len() > 1 {
                    at += 1;
                    continue;
                }
                self.adopt(tid);
            }
            if let Some(held) = self.held.remove(at) {
                self.held_bytes -= held.line.len();
                self.take_held(held);
            }
            // What a line tells may free lines before it, of threads that were unknown then.
            if std::mem::take(&mut self.parents_changed) {
                at = 0;
            }
        }
        self.held_threads = self.held.iter().map(|held| held.tid).collect();
    }

    fn take_held(&mut self, held: Held) {
        let Leader::Stamped(head) = line::leader(&held.line) else { return };
        let taken = line::body(head.rest).and_then(|body| self.take_body(held.tid, head.at_ns, body, held.place));
        if let Err(reason) = taken {
            if let Some(place) = held.place {
                self.tracker.skip_place(place);
            }
            self.problem(held.number, &held.line, reason);
        }
    }
}
