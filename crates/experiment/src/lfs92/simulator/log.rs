//! A log that knows segments and files only, as the simulator of the publication (section 3.5): no disk, no time but
//! the number of writes. What a real log has besides can be added, one thing at a time ([`Costs`], [`Age`]).

use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use workload::hotcold::Skew;

/// A file, and what the log is written in.
const BLOCK_BYTES: u32 = 4096;
/// An inode of 4.4BSD's log.
const INODE_BYTES: u32 = 128;
const INODES_PER_BLOCK: u32 = BLOCK_BYTES / INODE_BYTES;
/// An entry of its inode map.
const MAP_ENTRY_BYTES: u32 = 20;

/// Which segments are cleaned first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Policy {
    /// Those with the fewest live bytes.
    Greedy,
    /// The greatest `(1 - u) * age / (1 + u)`.
    CostBenefit,
}

/// What the age of a segment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Age {
    /// Since the youngest block in it was written by its user, as in the publication: moving a block does not make it
    /// younger.
    Youngest,
    /// Since anything was written to the segment, by whomever.
    Written,
}

/// What the log writes besides the files' blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Costs {
    /// Inodes in blocks of their own, behind the files, and a summary block before them.
    pub(super) inodes: bool,
    /// The blocks of the inode map that have changed, whenever the cleaner has done its work.
    pub(super) map: bool,
    /// Files are written when so many have changed: a file that is written over before that is written once. 0: each at
    /// once, in one partial segment as long as the segment.
    pub(super) dirty_files: u32,
}

impl Costs {
    pub(super) const NONE: Costs = Costs { inodes: false, map: false, dirty_files: 0 };
}

/// A run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Case {
    pub(super) policy: Policy,
    pub(super) skew: Skew,
    /// Live share of all segments.
    pub(super) utilisation: f64,
    pub(super) segments: u32,
    pub(super) blocks_per_segment: u32,
    /// Segments that are cleaned together.
    pub(super) together: u32,
    /// The cleaner begins when no more segments are clean than are kept in reserve: none in the publication.
    pub(super) reserve: u32,
    /// It ends when so many more are.
    pub(super) spare: u32,
    /// Whether live blocks are written again in order of their age.
    pub(super) age_sort: bool,
    /// Whether the cleaner writes to segments of its own, or to the one that new data goes to.
    pub(super) apart: bool,
    pub(super) age: Age,
    pub(super) costs: Costs,
    /// Writes for each file, before and while measuring.
    pub(super) warm_up: u64,
    pub(super) measured: u64,
}

/// What a run found.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Found {
    /// Bytes read and written for each byte that is new in the log.
    pub(super) write_cost: f64,
    /// The same in the first and in the second half of what was measured.
    pub(super) halves: [f64; 2],
    /// Mean utilisation of the segments cleaned.
    pub(super) cleaned_at: f64,
    /// Segments cleaned, by class of utilisation.
    pub(super) cleaned: Vec<f64>,
    /// Live share of all segments, as it was.
    pub(super) live: f64,
}

/// Classes of the histogram.
const CLASSES: usize = 25;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Clean,
    /// Something is being written to it.
    Open,
    Full,
}

#[derive(Clone, Debug)]
struct Segment {
    state: State,
    /// What was written, in this order; dead if its file lies elsewhere now.
    files: Vec<u32>,
    used_bytes: u32,
    live_bytes: u32,
    /// Of `files`, those that are live.
    live: usize,
    /// When the youngest block in it was written by its user, and when it was written to.
    youngest: u64,
    written: u64,
}

/// Where something is written: an open segment, and what of its partial segment is there.
#[derive(Clone, Copy, Debug, Default)]
struct Head {
    segment: Option<u32>,
    /// Whether a partial segment has begun, and inodes in it.
    begun: bool,
    inodes: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    new_bytes: u64,
    moved_bytes: u64,
    read_bytes: u64,
}

impl Counters {
    fn cost_since(&self, was: &Counters) -> f64 {
        let new = self.new_bytes - was.new_bytes;
        let all = new + self.moved_bytes - was.moved_bytes + self.read_bytes - was.read_bytes;
        all as f64 / new.max(1) as f64
    }
}

/// Who writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    User,
    Cleaner,
}

struct Log<'a> {
    case: &'a Case,
    segments: Vec<Segment>,
    clean: Vec<u32>,
    /// Of each file, then of each block of the inode map: its segment and its number there.
    place: Vec<(u32, u32)>,
    /// When its user wrote it.
    modified: Vec<u64>,
    files: u32,
    heads: [Head; 2],
    now: u64,
    counters: Counters,
    cleaned: Vec<f64>,
    utilisation_sum: f64,
    segments_cleaned: u64,
    /// Blocks of the inode map that have changed.
    changed: Vec<bool>,
    /// Files that have changed and are not written yet.
    dirty: Vec<u32>,
    is_dirty: Vec<bool>,
    /// Whether the cleaner is at work.
    cleaning: bool,
}

/// Not written yet.
const NOWHERE: (u32, u32) = (u32::MAX, 0);

impl Case {
    fn segment_bytes(&self) -> u32 {
        self.blocks_per_segment * BLOCK_BYTES
    }

    /// Live bytes of a file.
    fn file_bytes(&self) -> u32 {
        BLOCK_BYTES + if self.costs.inodes { INODE_BYTES } else { 0 }
    }

    fn files(&self) -> u32 {
        let live = f64::from(self.segments) * f64::from(self.segment_bytes()) * self.utilisation;
        let each = f64::from(self.file_bytes()) + if self.costs.map { f64::from(MAP_ENTRY_BYTES) } else { 0.0 };
        (live / each) as u32
    }

    /// Runs it.
    pub(super) fn run(&self, seed: u64) -> Found {
        let mut log = Log::new(self);
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        for file in 0..log.files {
            log.write(file);
        }
        let files = u64::from(log.files);
        let mut writes = |log: &mut Log<'_>, n: u64| {
            for _ in 0..n {
                let file = self.skew.pick(files, &mut random);
                log.write(u32::try_from(file).unwrap_or(u32::MAX));
            }
        };
        writes(&mut log, files * self.warm_up);
        let begin = log.counters;
        let cleaned = (log.utilisation_sum, log.segments_cleaned);
        log.cleaned.fill(0.0);
        let half = (files * self.measured).div_ceil(2);
        writes(&mut log, half);
        let middle = log.counters;
        writes(&mut log, half);
        let all = log.cleaned.iter().sum::<f64>().max(1.0);
        let times = (log.segments_cleaned - cleaned.1).max(1) as f64;
        let live: u64 = log.segments.iter().map(|segment| u64::from(segment.live_bytes)).sum();
        Found {
            write_cost: log.counters.cost_since(&begin),
            halves: [middle.cost_since(&begin), log.counters.cost_since(&middle)],
            cleaned_at: (log.utilisation_sum - cleaned.0) / times,
            cleaned: log.cleaned.iter().map(|n| n / all).collect(),
            live: live as f64 / (f64::from(self.segments) * f64::from(self.segment_bytes())),
        }
    }
}

impl Log<'_> {
    fn new(case: &Case) -> Log<'_> {
        let empty = Segment {
            state: State::Clean,
            files: Vec::new(),
            used_bytes: 0,
            live_bytes: 0,
            live: 0,
            youngest: 0,
            written: 0,
        };
        let files = case.files();
        let map = if case.costs.map { (files * MAP_ENTRY_BYTES).div_ceil(BLOCK_BYTES) } else { 0 };
        Log {
            case,
            segments: vec![empty; case.segments as usize],
            clean: (0..case.segments).rev().collect(),
            place: vec![NOWHERE; (files + map) as usize],
            modified: vec![0; (files + map) as usize],
            files,
            heads: [Head::default(); 2],
            now: 0,
            counters: Counters::default(),
            cleaned: vec![0.0; CLASSES],
            utilisation_sum: 0.0,
            segments_cleaned: 0,
            changed: vec![false; map as usize],
            dirty: Vec::new(),
            is_dirty: vec![false; files as usize],
            cleaning: false,
        }
    }

    /// A user writes a file over.
    fn write(&mut self, file: u32) {
        self.now += 1;
        if self.case.costs.dirty_files == 0 {
            self.modified[file as usize] = self.now;
            return self.append(file, By::User);
        }
        self.modified[file as usize] = self.now;
        if !std::mem::replace(&mut self.is_dirty[file as usize], true) {
            self.dirty.push(file);
        }
        if self.dirty.len() >= self.case.costs.dirty_files as usize {
            self.write_dirty();
        }
    }

    /// Everything that has changed goes into partial segments of its own.
    fn write_dirty(&mut self) {
        for file in std::mem::take(&mut self.dirty) {
            self.is_dirty[file as usize] = false;
            self.append(file, By::User);
        }
        let at = self.head_of(By::User);
        self.heads[at].begun = false;
    }

    fn head_of(&self, by: By) -> usize {
        usize::from(by == By::Cleaner && self.case.apart)
    }

    /// Bytes that one more block takes at a head, with what has to come with it.
    fn bytes_of_next(&self, head: &Head, has_inode: bool) -> u32 {
        let mut bytes = BLOCK_BYTES;
        if self.case.costs.inodes {
            if !head.begun {
                bytes += BLOCK_BYTES;
            }
            let inodes = if head.begun { head.inodes } else { 0 };
            if has_inode && inodes % INODES_PER_BLOCK == 0 {
                bytes += BLOCK_BYTES;
            }
        }
        bytes
    }

    /// A file's block, or one of the inode map, goes to the end of the log.
    fn append(&mut self, file: u32, by: By) {
        let has_inode = file < self.files;
        let at = self.head_of(by);
        let mut bytes = self.bytes_of_next(&self.heads[at], has_inode);
        let room = |log: &Self| {
            let segment = log.heads[at].segment.map(|number| &log.segments[number as usize]);
            segment.map_or(0, |segment| log.case.segment_bytes() - segment.used_bytes)
        };
        if room(self) < bytes {
            self.take_segment(at);
            // The cleaner may have written to the new segment already.
            bytes = self.bytes_of_next(&self.heads[at], has_inode);
            assert!(room(self) >= bytes, "a segment that was just taken has room");
        }
        let head = &mut self.heads[at];
        let number = head.segment.expect("there is an open segment");
        if !head.begun {
            (head.begun, head.inodes) = (true, 0);
        }
        head.inodes += u32::from(has_inode);
        let (old, _) = std::mem::replace(&mut self.place[file as usize], NOWHERE);
        let live = if has_inode { self.case.file_bytes() } else { BLOCK_BYTES };
        if old != NOWHERE.0 {
            self.segments[old as usize].live_bytes -= live;
            self.segments[old as usize].live -= 1;
        }
        let segment = &mut self.segments[number as usize];
        self.place[file as usize] = (number, segment.files.len() as u32);
        segment.files.push(file);
        segment.used_bytes += bytes;
        segment.live_bytes += live;
        segment.live += 1;
        segment.youngest = segment.youngest.max(self.modified[file as usize]);
        segment.written = self.now;
        match by {
            By::User => self.counters.new_bytes += u64::from(bytes),
            By::Cleaner => self.counters.moved_bytes += u64::from(bytes),
        }
        if has_inode && self.case.costs.map {
            self.changed[(file * MAP_ENTRY_BYTES / BLOCK_BYTES) as usize] = true;
        }
    }

    fn take_segment(&mut self, at: usize) {
        if let Some(full) = self.heads[at].segment.take() {
            self.segments[full as usize].state = State::Full;
        }
        self.heads[at].begun = false;
        if self.clean.len() <= self.case.reserve as usize && !self.cleaning {
            self.clean_some();
            // Where there is one head, the cleaner has left it open.
            if self.heads[at].segment.is_some() && self.room_at(at) >= 3 * BLOCK_BYTES {
                return;
            }
            if let Some(full) = self.heads[at].segment.take() {
                self.segments[full as usize].state = State::Full;
            }
            self.heads[at].begun = false;
        }
        let number = self.clean.pop().expect("a pass frees more segments than it fills");
        self.segments[number as usize].state = State::Open;
        self.heads[at].segment = Some(number);
    }

    fn room_at(&self, at: usize) -> u32 {
        let segment = self.heads[at].segment.map(|number| &self.segments[number as usize]);
        segment.map_or(0, |segment| self.case.segment_bytes() - segment.used_bytes)
    }

    /// The cleaner: until so many segments are clean as it is to leave behind.
    fn clean_some(&mut self) {
        self.cleaning = true;
        let mut passes = 0;
        while self.clean.len() < (self.case.reserve + self.case.spare) as usize {
            passes += 1;
            assert!(passes <= 64 * self.case.segments, "no segment is worth cleaning: the disk is too full");
            self.pass();
        }
        self.checkpoint();
        self.cleaning = false;
    }

    fn value(&self, segment: &Segment) -> f64 {
        let u = f64::from(segment.live_bytes) / f64::from(self.case.segment_bytes());
        let since = match self.case.age {
            Age::Youngest => segment.youngest,
            Age::Written => segment.written,
        };
        match self.case.policy {
            Policy::Greedy => 1.0 - u,
            Policy::CostBenefit => (1.0 - u) * (self.now - since + 1) as f64 / (1.0 + u),
        }
    }

    /// Cleans some segments together.
    fn pass(&mut self) {
        let mut worth: Vec<(f64, u32)> = Vec::new();
        for (number, segment) in (0..).zip(&self.segments) {
            // Where nothing is dead there is nothing to gain, though inodes and summaries leave it less than full.
            if segment.state == State::Full && segment.live < segment.files.len() {
                worth.push((self.value(segment), number));
            }
        }
        worth.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        worth.truncate(self.case.together as usize);
        let mut live: Vec<(u64, u32)> = Vec::new();
        for (_, number) in worth {
            let own = &mut self.segments[number as usize];
            let files = std::mem::take(&mut own.files);
            let utilisation = f64::from(own.live_bytes) / f64::from(self.case.segment_bytes());
            // What is empty need not be read.
            if own.live_bytes > 0 {
                self.counters.read_bytes += u64::from(self.case.segment_bytes());
            }
            (own.state, own.used_bytes, own.youngest) = (State::Clean, 0, 0);
            self.utilisation_sum += utilisation;
            self.segments_cleaned += 1;
            let class = ((utilisation * CLASSES as f64) as usize).min(CLASSES - 1);
            self.cleaned[class] += 1.0;
            for (slot, file) in (0..).zip(files) {
                if self.place[file as usize] == (number, slot) {
                    live.push((self.modified[file as usize], file));
                    // In memory now.
                    self.place[file as usize] = NOWHERE;
                }
            }
            (self.segments[number as usize].live_bytes, self.segments[number as usize].live) = (0, 0);
            self.clean.push(number);
        }
        if self.case.age_sort {
            live.sort_unstable();
        }
        for (_, file) in live {
            self.append(file, By::Cleaner);
        }
    }

    /// The blocks of the inode map that have changed are written. They count as new, as in the counters of the real
    /// log.
    fn checkpoint(&mut self) {
        for block in 0..self.changed.len() {
            if std::mem::take(&mut self.changed[block]) {
                let file = self.files + block as u32;
                self.modified[file as usize] = self.now;
                self.append(file, By::User);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) const SMALL: Case = Case {
        policy: Policy::Greedy,
        skew: Skew::Uniform,
        utilisation: 0.7,
        segments: 64,
        blocks_per_segment: 32,
        together: 4,
        reserve: 0,
        spare: 6,
        age_sort: true,
        apart: true,
        age: Age::Youngest,
        costs: Costs::NONE,
        warm_up: 4,
        measured: 2,
    };

    /// Every file is in the log once, and the counts of live bytes are those of the files.
    #[test]
    fn nothing_is_lost_whatever_is_written() {
        let all = Costs { inodes: true, map: true, dirty_files: 20 };
        for (apart, age, costs) in [
            (true, Age::Youngest, Costs::NONE),
            (false, Age::Written, Costs { inodes: true, ..Costs::NONE }),
            (false, Age::Written, all),
            (true, Age::Youngest, all),
        ] {
            let reserve = if costs.map { 3 } else { 0 };
            let case = Case { apart, age, costs, reserve, policy: Policy::CostBenefit, skew: Skew::PAPER, ..SMALL };
            let mut log = Log::new(&case);
            let mut random = Xoshiro256PlusPlus::seed_from_u64(3);
            for file in 0..log.files {
                log.write(file);
            }
            for _ in 0..5 * log.files {
                let file = case.skew.pick(log.files.into(), &mut random) as u32;
                log.write(file);
            }
            let mut live = vec![0; log.segments.len()];
            for (file, (segment, slot)) in log.place.iter().enumerate() {
                if *segment == NOWHERE.0 {
                    assert!(log.dirty.contains(&(file as u32)), "{file} is nowhere");
                    continue;
                }
                assert_eq!(log.segments[*segment as usize].files[*slot as usize], file as u32);
                live[*segment as usize] += if (file as u32) < log.files { case.file_bytes() } else { BLOCK_BYTES };
            }
            for (segment, live) in log.segments.iter().zip(live) {
                assert_eq!(segment.live_bytes, live);
                assert!(segment.live_bytes <= segment.used_bytes && segment.used_bytes <= case.segment_bytes());
            }
        }
    }

    #[test]
    fn a_nearly_empty_disk_costs_nothing_but_the_writing() {
        let found = Case { utilisation: 0.02, ..SMALL }.run(1);
        assert!((1.0..1.2).contains(&found.write_cost), "{found:?}");
        assert_eq!(found, Case { utilisation: 0.02, ..SMALL }.run(1));
    }
}
