//! Puts events back into the order of call starts, and makes batches of them.
//!
//! A call takes its place when it starts and is filled in when it returns. A call that is still running after
//! [`WINDOW`] later ones loses its place: it is put at the end when it returns, with its true start time, and counted.
//! So memory is bounded however long a call blocks.
//!
//! The ids of paths are those of the batch being made. So an event under way is a [`Draft`], which knows its batch and
//! is not taken for another's; one that waits for its call to return waits here ([`Sequence::park`]), where
//! [`take`](Sequence::take) carries its paths over into the next batch.

use crate::profile::Row;
use crate::{Batch, Event, Op, PathId, Paths, flag};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};

/// Events of a batch, unless a running call holds them back.
const BATCH: usize = 16 * 1024;
/// How many later events wait for a running call.
const WINDOW: usize = 64 * 1024;

/// The place of a call that has started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place(u64);

/// An event under way. It is put into the batch in which it was begun, or parked. Until then it is a row, as what is
/// known of it comes piece by piece.
#[derive(Clone, Copy, Debug)]
pub(super) struct Draft {
    event: Row,
    epoch: u32,
}

impl Deref for Draft {
    type Target = Row;

    fn deref(&self) -> &Row {
        &self.event
    }
}

impl DerefMut for Draft {
    fn deref_mut(&mut self) -> &mut Row {
        &mut self.event
    }
}

/// An event that waits for its call to return.
#[derive(Debug)]
pub(super) struct Parked(u64);

// Nearly all are `Ready`, so a box would only add an allocation an event.
#[allow(clippy::large_enum_variant)]
#[derive(Debug)]
enum Held {
    Running,
    Ready(Row),
    /// A call and what the kernel did on its way.
    Several(Vec<Row>),
    Skipped,
}

/// A path with its id in the batch being made, so that it is interned once a batch.
#[derive(Clone, Debug, Default)]
pub(super) struct Interned {
    bytes: Vec<u8>,
    epoch: u32,
    id: Option<PathId>,
}

impl Interned {
    /// Another path.
    pub fn set(&mut self, bytes: &[u8]) {
        if self.bytes != bytes {
            self.bytes.clear();
            self.bytes.extend_from_slice(bytes);
            self.id = None;
        }
    }

    /// The path; empty if there is none.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// The events on their way out.
#[derive(Debug, Default)]
pub(super) struct Sequence {
    batch: Batch,
    epoch: u32,
    /// Events behind the first running call, which is at the front.
    held: VecDeque<Held>,
    /// Place of `held`'s front.
    front: u64,
    /// Events that wait for their calls to return, by number.
    parked: FxHashMap<u64, Row>,
    next_parked: u64,
    next_seq: u64,
    late: u64,
    /// Time covered by calls on files so far, and where that ends.
    busy_ns: u64,
    busy_until_ns: u64,
}

impl Sequence {
    /// Interns a path in the batch being made.
    pub fn intern(&mut self, path: &[u8]) -> PathId {
        self.batch.paths.intern(path)
    }

    /// Interns a path once a batch; `None` if it is empty.
    pub fn intern_cached(&mut self, path: &mut Interned) -> Option<PathId> {
        if path.bytes.is_empty() {
            return None;
        }
        match path.id {
            Some(id) if path.epoch == self.epoch => Some(id),
            _ => {
                let id = self.batch.paths.intern(&path.bytes);
                path.epoch = self.epoch;
                path.id = Some(id);
                Some(id)
            }
        }
    }

    /// Begins an event in the batch being made.
    #[inline]
    pub fn draft(&self, event: Row) -> Draft {
        Draft { event, epoch: self.epoch }
    }

    /// Keeps an event until its call returns, over batches.
    pub fn park(&mut self, draft: Draft) -> Parked {
        let event = *self.check(&draft);
        let number = self.next_parked;
        self.next_parked += 1;
        self.parked.insert(number, event);
        Parked(number)
    }

    /// Goes on with an event that was kept.
    pub fn unpark(&mut self, parked: Parked) -> Draft {
        let event =
            self.parked.remove(&parked.0).expect("each parked event is taken once, as its ticket cannot be copied");
        Draft { event, epoch: self.epoch }
    }

    /// The event, with the ids of this batch.
    #[inline]
    fn check<'d>(&self, draft: &'d Draft) -> &'d Row {
        assert_eq!(draft.epoch, self.epoch, "an event of an older batch: its paths are gone");
        &draft.event
    }

    /// Takes the next place for a call that has started.
    pub fn start(&mut self) -> Place {
        let place = Place(self.front + self.held.len() as u64);
        self.held.push_back(Held::Running);
        place
    }

    /// An event in its place; without one, it starts now.
    #[inline]
    pub fn put(&mut self, place: Option<Place>, draft: &Draft) {
        let event = self.check(draft);
        self.put_event(place, event);
    }

    fn put_event(&mut self, place: Option<Place>, event: &Row) {
        match place {
            None if self.held.is_empty() => {
                self.front += 1;
                self.emit(event);
            }
            None => self.held.push_back(Held::Ready(*event)),
            Some(place) => match self.held_at(place) {
                Some(held) => {
                    *held = Held::Ready(*event);
                    self.advance();
                }
                None => {
                    self.late += 1;
                    self.put_event(None, event);
                }
            },
        }
    }

    /// An event that belongs to the call that was put last: it stands right behind it, before later calls of its thread
    /// that have their places already.
    pub fn put_behind(&mut self, place: Option<Place>, draft: &Draft) {
        let event = *self.check(draft);
        match place.and_then(|place| self.held_at(place)) {
            Some(Held::Several(events)) => events.push(event),
            Some(held) => {
                let before = std::mem::replace(held, Held::Skipped);
                let first = if let Held::Ready(first) = before { Some(first) } else { None };
                *held = Held::Several(first.into_iter().chain([event]).collect());
                self.advance();
            }
            // The call has gone out, and nothing of its thread's behind it.
            None if place.is_some() => {
                self.emit(&event);
            }
            None => self.put_event(None, &event),
        }
    }

    /// The call was none of ours after all.
    pub fn skip(&mut self, place: Place) {
        if let Some(held) = self.held_at(place) {
            *held = Held::Skipped;
            self.advance();
        }
    }

    /// Whether the call still has its place.
    fn held_at(&mut self, place: Place) -> Option<&mut Held> {
        let i = usize::try_from(place.0.checked_sub(self.front)?).ok()?;
        self.held.get_mut(i)
    }

    fn advance(&mut self) {
        while self.held.front().is_some_and(|held| !matches!(held, Held::Running)) {
            self.front += 1;
            match self.held.pop_front() {
                Some(Held::Ready(event)) => self.emit(&event),
                Some(Held::Several(events)) => events.iter().for_each(|event| self.emit(event)),
                Some(Held::Running | Held::Skipped) | None => {}
            }
        }
    }

    #[inline]
    fn emit(&mut self, event: &Row) {
        if event.flags & flag::FOREIGN == 0 && event.op != Op::Clone {
            let end = event.t_ns.saturating_add(event.dur_ns);
            self.busy_ns += end.saturating_sub(self.busy_until_ns.max(event.t_ns));
            self.busy_until_ns = self.busy_until_ns.max(end);
        }
        let row = Row { seq: self.next_seq, ..*event };
        let event = Event::from(row);
        debug_assert_eq!(Row::from(&event), row, "a call has what its operation has");
        self.batch.events.push(event);
        self.next_seq += 1;
    }

    /// Whether a batch is worth taking.
    pub fn is_full(&self) -> bool {
        self.batch.events.len() >= BATCH || self.held.len() >= WINDOW
    }

    /// Takes the finished events. Running calls that hold back too many lose their places.
    pub fn take(&mut self) -> Batch {
        if self.held.len() >= WINDOW {
            while self.held.len() > WINDOW / 2 {
                if matches!(self.held.front(), Some(Held::Running)) {
                    self.held.pop_front();
                    self.front += 1;
                }
                self.advance();
                if self.held.is_empty() {
                    break;
                }
            }
        }
        // What stays behind moves into the next batch with its paths.
        let mut paths = Paths::with_room_of(&self.batch.paths);
        let ready = self.held.iter_mut().flat_map(|held| match held {
            Held::Ready(event) => std::slice::from_mut(event),
            Held::Several(events) => events,
            Held::Running | Held::Skipped => &mut [],
        });
        for event in ready.chain(self.parked.values_mut()) {
            for id in [&mut event.path, &mut event.path2, &mut event.caller_dir, &mut event.caller_dir2] {
                *id = id.map(|id| paths.intern(self.batch.paths.get(id)));
            }
        }
        self.epoch = self.epoch.wrapping_add(1);
        let events = Vec::with_capacity(BATCH);
        std::mem::replace(&mut self.batch, Batch { events, paths, schedule: Vec::new() })
    }

    /// Events made so far.
    pub fn count(&self) -> u64 {
        self.next_seq
    }

    /// Time in which at least one call on files was running.
    pub fn busy_ns(&self) -> u64 {
        self.busy_ns
    }

    /// Calls that lost their places.
    pub fn late(&self) -> u64 {
        self.late
    }
}
