//! The moments of a log, and at each of them the states that a power failure may leave.

use super::disk::Disk;
use super::log::{DISCARDED, Event, SECTOR_BYTES};
use super::plan::{Plan, UnderWay, WriteCache};
use crate::store::Store;
use rustc_hash::FxHashMap;
use stats::random::mix;
use std::collections::BTreeSet;
use std::io;
use std::ops::Range;

/// A disk on its way through a log.
#[derive(Debug)]
pub struct Crash<'a, S> {
    log: &'a [Event],
    plan: Plan,
    /// What is certainly there.
    disk: Disk<S>,
    /// Entries that are complete, and one more: the next point.
    next: usize,
    /// Entries by the number that the log had when the drive got them.
    begin: FxHashMap<u64, Vec<usize>>,
    /// Entries whose sectors may be there or not: under way, or complete and in the drive's cache.
    open: BTreeSet<usize>,
    /// By sector: the last entry that has settled there. What is older never comes back.
    settled: FxHashMap<u64, usize>,
}

/// A sector that may be there or not.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    /// Of this entry of the log.
    event: usize,
    /// Where on the disk.
    sector: u64,
    /// Which of the entry's sectors.
    within: usize,
}

/// A moment at which the power may fail.
#[derive(Debug)]
pub struct Point {
    /// Entries of the log that are complete.
    pub number: usize,
    /// How many states of it are looked at.
    pub choices: u32,
    /// Whether these are all there are.
    pub all: bool,
    /// Sectors that would change something, in the order of the log.
    candidates: Vec<Candidate>,
    /// Which of them are of one entry.
    events: Vec<Range<usize>>,
}

impl<'a, S: Store> Crash<'a, S> {
    /// Begins before the first entry of the log, with a disk as it was then.
    pub fn new(base: S, log: &'a [Event], plan: Plan) -> Crash<'a, S> {
        let mut begin: FxHashMap<u64, Vec<usize>> = FxHashMap::default();
        for (number, event) in log.iter().enumerate() {
            let from = match event {
                Event::Write(write) => write.submitted_after,
                Event::Discard { .. } => number as u64 + 1,
                Event::Flush { .. } => continue,
            };
            begin.entry(from).or_default().push(number);
        }
        Crash { log, plan, disk: Disk::new(base), next: 0, begin, open: BTreeSet::new(), settled: FxHashMap::default() }
    }

    /// The next moment; `None` when the last entry is complete and that was the last one.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub fn next_point(&mut self) -> io::Result<Option<Point>> {
        let number = self.next;
        if number > self.log.len() {
            return Ok(None);
        }
        self.pass()?;
        self.point(number).map(Some)
    }

    /// Makes the moment at which so many entries are complete the next one, without working out the states of those
    /// before it. One that is past already is not come back to.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub fn skip_to(&mut self, number: usize) -> io::Result<()> {
        while self.next < number.min(self.log.len() + 1) {
            self.pass()?;
        }
        Ok(())
    }

    /// One more entry is complete.
    fn pass(&mut self) -> io::Result<()> {
        let number = self.next;
        self.next += 1;
        self.open.extend(self.begin.remove(&(number as u64)).into_iter().flatten());
        self.settle(number)
    }

    /// Lays a state of a point over the disk, which stays so until [`lift`](Crash::lift).
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub fn lay(&mut self, point: &Point, choice: u32) -> io::Result<()> {
        self.disk.try_out();
        let chosen = point.chosen(choice, self.plan);
        for (candidate, _) in point.candidates.iter().zip(&chosen).filter(|(_, chosen)| **chosen) {
            self.disk.put(candidate.sector, content(self.log, candidate))?;
        }
        Ok(())
    }

    /// Takes the state off again.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub fn lift(&mut self) -> io::Result<()> {
        self.disk.back()
    }

    /// The disk as it is now.
    pub fn disk(&self) -> &Disk<S> {
        &self.disk
    }

    /// Whether a complete write is on the medium without a flush.
    fn durable(&self, event: usize) -> bool {
        match (self.plan.cache, self.log.get(event)) {
            (WriteCache::Off, _) => true,
            (WriteCache::AsReported, Some(Event::Write(write))) => write.durable,
            // A drive without a cache has done it when it does the next request.
            (WriteCache::AsReported, Some(Event::Discard { .. })) => true,
            _ => false,
        }
    }

    /// What has become certain with `complete` entries complete.
    fn settle(&mut self, complete: usize) -> io::Result<()> {
        let Some(last) = complete.checked_sub(1) else { return Ok(()) };
        let flushed = match self.log.get(last) {
            Some(Event::Flush { submitted_after }) => *submitted_after as usize,
            _ => 0,
        };
        let now: Vec<usize> = self
            .open
            .iter()
            .copied()
            .take_while(|event| *event < complete)
            .filter(|event| {
                // A discard is entered when it begins: one request later it is over.
                let over = !matches!(self.log.get(*event), Some(Event::Discard { .. })) || *event < last;
                *event < flushed || over && self.durable(*event)
            })
            .collect();
        for event in now {
            self.open.remove(&event);
            for candidate in sectors(self.log, event) {
                let newest = self.settled.entry(candidate.sector).or_insert(event);
                if *newest <= event {
                    *newest = event;
                    self.disk.put(candidate.sector, content(self.log, &candidate))?;
                }
            }
        }
        Ok(())
    }

    fn point(&self, number: usize) -> io::Result<Point> {
        let counted = |event: &&usize| self.plan.under_way != UnderWay::Nothing || **event < number;
        let all: Vec<Candidate> =
            self.open.iter().filter(counted).flat_map(|event| sectors(self.log, *event)).collect();
        let mut times: FxHashMap<u64, u32> = FxHashMap::default();
        all.iter().for_each(|candidate| *times.entry(candidate.sector).or_default() += 1);
        let mut candidates = Vec::new();
        for candidate in all {
            let superseded = self.settled.get(&candidate.sector).is_some_and(|newest| *newest > candidate.event);
            let alone = times.get(&candidate.sector) == Some(&1);
            // What is there already is no choice, unless something else may come in between.
            let same = alone && self.disk.sector(candidate.sector)? == *content(self.log, &candidate);
            if !superseded && !same {
                candidates.push(candidate);
            }
        }
        let mut events: Vec<Range<usize>> = Vec::new();
        for (at, candidate) in candidates.iter().enumerate() {
            match events.last_mut() {
                Some(range) if candidates.get(range.start).is_some_and(|first| first.event == candidate.event) => {
                    range.end = at + 1;
                }
                _ => events.push(at..at + 1),
            }
        }
        let mut point = Point { number, choices: 0, all: false, candidates, events };
        let units = point.units(self.plan).min(63) as u32;
        point.all = 1_u64 << units <= u64::from(self.plan.most_of_a_point);
        point.choices = if point.all { 1 << units } else { self.plan.most_of_a_point.max(2) };
        Ok(point)
    }
}

/// The sectors of an entry.
fn sectors(log: &[Event], event: usize) -> impl Iterator<Item = Candidate> + use<> {
    let (at_byte, len_bytes) = match log.get(event) {
        Some(Event::Write(write)) => (write.at_byte, write.bytes.len() as u64),
        Some(Event::Discard { at_byte, len_bytes }) => (*at_byte, *len_bytes),
        Some(Event::Flush { .. }) | None => (0, 0),
    };
    let sector = SECTOR_BYTES as u64;
    assert!(at_byte.is_multiple_of(sector) && len_bytes.is_multiple_of(sector), "a log has whole sectors");
    (0..len_bytes / sector).map(move |n| Candidate { event, sector: at_byte / sector + n, within: n as usize })
}

/// What a sector holds if it is there.
fn content<'a>(log: &'a [Event], candidate: &Candidate) -> &'a [u8; SECTOR_BYTES] {
    match log.get(candidate.event) {
        Some(Event::Write(write)) => {
            let sectors = write.bytes.as_chunks::<SECTOR_BYTES>().0;
            sectors.get(candidate.within).unwrap_or(&DISCARDED)
        }
        _ => &DISCARDED,
    }
}

impl Point {
    /// What is there or not as one.
    fn units(&self, plan: Plan) -> usize {
        match plan.under_way {
            UnderWay::Torn => self.candidates.len(),
            UnderWay::Whole | UnderWay::Nothing => self.events.len(),
        }
    }

    /// How many sectors are open here that would change something.
    pub fn open_sectors(&self) -> usize {
        self.candidates.len()
    }

    /// The writes that are open here: which entry of the log, how many of its sectors would change something, how many
    /// of these are there in a state.
    pub fn open(&self, choice: u32, plan: Plan) -> Vec<(usize, usize, usize)> {
        let chosen = self.chosen(choice, plan);
        let there = |range: &Range<usize>| chosen.get(range.clone()).unwrap_or_default().iter().filter(|there| **there);
        let of = |range: &Range<usize>| {
            let first = self.candidates.get(range.start)?;
            Some((first.event, range.len(), there(range).count()))
        };
        self.events.iter().filter_map(of).collect()
    }

    /// Whether each candidate is there. The first two choices are nothing and everything.
    fn chosen(&self, choice: u32, plan: Plan) -> Vec<bool> {
        let mut chosen = vec![false; self.candidates.len()];
        if self.all {
            let bit = |unit: usize| choice >> unit & 1 == 1;
            match plan.under_way {
                UnderWay::Torn => chosen.iter_mut().enumerate().for_each(|(unit, there)| *there = bit(unit)),
                UnderWay::Whole | UnderWay::Nothing => {
                    self.events.iter().enumerate().for_each(|(unit, range)| put(&mut chosen, range.clone(), bit(unit)));
                }
            }
            return chosen;
        }
        let torn = plan.under_way == UnderWay::Torn;
        let events = self.events.len();
        let cuts = if torn { self.candidates.len() - events } else { 0 };
        let regular = 2 + 2 * events + 2 * cuts;
        let draw = mix(mix(plan.seed, self.number as u64), choice.into());
        let most = plan.most_of_a_point as usize;
        let asked = choice as usize;
        // Of many regular ones half the states are drawn, and the other half is irregular.
        let number = match asked {
            _ if regular <= most / 2 || asked < 2 => asked,
            _ if asked.is_multiple_of(2) => 2 + (draw >> 20) as usize % (regular - 2),
            _ => regular,
        };
        if number < regular {
            self.regular(number, &mut chosen);
        } else {
            self.drawn(draw, torn, &mut chosen);
        }
        chosen
    }

    fn regular(&self, number: usize, chosen: &mut [bool]) {
        let events = self.events.len();
        match number {
            0 => {}
            1 => chosen.fill(true),
            n if n < 2 + 2 * events => {
                // One write alone, or all others.
                let alone = n.is_multiple_of(2);
                chosen.fill(!alone);
                if let Some(range) = self.events.get((n - 2) / 2) {
                    put(chosen, range.clone(), alone);
                }
            }
            n => {
                // One write cut, with nothing else or everything else.
                let others = !n.is_multiple_of(2);
                let mut cut = (n - 2 - 2 * events) / 2;
                chosen.fill(others);
                for range in &self.events {
                    let places = range.len() - 1;
                    if cut < places {
                        put(chosen, range.start..range.start + cut + 1, true);
                        put(chosen, range.start + cut + 1..range.end, false);
                        return;
                    }
                    cut -= places;
                }
            }
        }
    }

    fn drawn(&self, draw: u64, torn: bool, chosen: &mut [bool]) {
        // Every second one in scattered sectors: there are most of these.
        let style = if torn { (draw % 4).min(2) } else { 0 };
        for (event, range) in self.events.iter().enumerate() {
            let draw = mix(draw, event as u64);
            let len = range.len() as u64;
            match (style, draw % 4) {
                (0, 0 | 1) | (1, 0) => put(chosen, range.clone(), true),
                (0, _) | (1, 1) => {}
                (1, _) => put(chosen, range.start..range.start + ((draw >> 8) % (len + 1)) as usize, true),
                _ => {
                    for at in range.clone() {
                        put(chosen, at..at + 1, mix(draw, at as u64).is_multiple_of(2));
                    }
                }
            }
        }
    }
}

fn put(chosen: &mut [bool], range: Range<usize>, there: bool) {
    if let Some(part) = chosen.get_mut(range) {
        part.fill(there);
    }
}
