//! Segments: what is in them, how much of it is live, which are clean, and where the log goes on.

use crate::format::{DINODE_BYTES, FragAddr, Geometry, SegNo};
use crate::planted::{Bug, Planted};
use kernel::program::IoId;

/// Block number that stands for an inode in [`Written`].
pub(crate) const INODE: i32 = i32::MIN;

/// Block number that stands for a summary in [`Written`], and for an inode block; their inode is 0.
pub(crate) const SUMMARY: i32 = i32::MIN + 1;
pub(crate) const INODES: i32 = i32::MIN + 2;

/// Something that has been written to a segment, live or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Written {
    pub(crate) ino: u32,
    /// Which block; [`INODE`] for the inode itself.
    pub(crate) lbn: i32,
    pub(crate) addr: FragAddr,
}

/// What a segment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SegmentState {
    /// May be written from its beginning.
    Clean,
    /// Is being written, or comes next.
    Active,
    /// Has been written.
    Dirty,
}

/// A segment.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    pub(crate) state: SegmentState,
    /// Live bytes, inodes included.
    pub(crate) live_bytes: u32,
    /// Partial segments in it.
    pub(crate) nsums: u16,
    /// Inode blocks in it.
    pub(crate) ninos: u16,
    pub(crate) superblock: bool,
    /// When it was last written, by whomever, nanoseconds since 1970.
    pub(crate) modified_ns: i64,
    /// When it was last written, seconds.
    pub(crate) lastmod_s: u64,
    /// Everything in it, in the order it lies.
    pub(crate) written: Vec<Written>,
    /// Whether that is all: of segments that were there at mounting and whose summaries do not describe all, only what
    /// was live is known.
    pub(crate) tiled: bool,
    /// Where what has been written to it ends, if the log is no longer there.
    pub(crate) end: FragAddr,
    /// Count of superblocks when one was first written that knows it as empty.
    empty_since: Option<u64>,
    /// Whether it is in the list of empty ones.
    listed: bool,
    /// Whether the next checkpoint moves all that is live in it.
    pub(crate) leaving: bool,
    /// What has to be complete before it is written again: a superblock's write.
    ready: Option<IoId>,
    /// Counts how often it was taken to be written.
    pub(crate) turn: u32,
}

/// Clean segments that a crash should leave, for the checkpoint that ends recovery and for the log to go on in.
const RECOVERY_SEGMENTS: u32 = 3;

/// All segments, and the end of the log.
#[derive(Clone, Debug)]
pub(crate) struct Log {
    g: Geometry,
    pub(crate) segments: Vec<Segment>,
    /// How many may be written from their beginnings, the next one not counted.
    pub(crate) clean: u32,
    /// Bytes of those that superblocks and the label take.
    clean_lost_bytes: u64,
    pub(crate) current: SegNo,
    pub(crate) next: SegNo,
    pub(crate) last: SegNo,
    /// Where the next partial segment goes.
    pub(crate) offset: FragAddr,
    /// Serial number of the last partial segment.
    pub(crate) serial: u64,
    /// Fragments of summaries and inode blocks in segments that are not clean.
    pub(crate) meta_frags: u64,
    /// Superblocks written.
    superblocks: u64,
    /// Dirty segments without a live byte.
    emptied: Vec<u32>,
    /// Dirty segments that the next checkpoint empties.
    leaving: Vec<u32>,
    /// Segments taken since the last checkpoint, and in all.
    pub(crate) since_checkpoint: u32,
    pub(crate) taken: u64,
    /// What has to be complete before the current segment is written.
    ready: Option<IoId>,
    /// The last superblock that made segments clean, and how many have become so since one was waited for.
    cleaning: (Option<IoId>, u32),
    /// Lists of segments that have become clean, for others.
    spare: Vec<Vec<Written>>,
    /// Bugs that tests plant.
    pub(crate) planted: Planted,
}

/// So many of them are kept.
const SPARE: usize = 32;

impl Log {
    /// All segments as `segments` says; the log goes on at `offset` in `current`.
    pub(crate) fn new(
        g: Geometry,
        segments: Vec<Segment>,
        current: SegNo,
        next: SegNo,
        offset: FragAddr,
        serial: u64,
    ) -> Log {
        let mut log = Log {
            g,
            segments,
            clean: 0,
            clean_lost_bytes: 0,
            current,
            next,
            last: current,
            offset,
            serial,
            meta_frags: 0,
            superblocks: 0,
            emptied: Vec::new(),
            leaving: Vec::new(),
            since_checkpoint: 0,
            taken: 0,
            ready: None,
            cleaning: (None, 0),
            spare: Vec::new(),
            planted: Planted::NONE,
        };
        for active in [current, next] {
            if let Some(segment) = log.segments.get_mut(active.0 as usize) {
                segment.state = SegmentState::Active;
            }
        }
        // What is left of the next one does not count: it will be written from its beginning.
        if let Some(segment) = log.segments.get_mut(next.0 as usize) {
            (segment.nsums, segment.ninos) = (0, 0);
        }
        for number in 0..log.segments.len() as u32 {
            let Some(segment) = log.segments.get(number as usize) else { continue };
            log.meta_frags += segment_meta_frags(&g, segment);
            match segment.state {
                SegmentState::Clean => {
                    log.clean += 1;
                    log.clean_lost_bytes += log.lost_bytes(SegNo(number));
                }
                SegmentState::Dirty if segment.live_bytes == 0 => log.list_empty(number),
                SegmentState::Dirty | SegmentState::Active => {}
            }
        }
        log
    }

    /// A segment that nothing is in.
    pub(crate) fn blank(superblock: bool) -> Segment {
        Segment {
            state: SegmentState::Clean,
            live_bytes: 0,
            nsums: 0,
            ninos: 0,
            superblock,
            modified_ns: 0,
            lastmod_s: 0,
            written: Vec::new(),
            tiled: false,
            end: FragAddr(0),
            empty_since: None,
            listed: false,
            leaving: false,
            ready: None,
            turn: 0,
        }
    }

    /// Bytes of a segment that a superblock and the label take.
    fn lost_bytes(&self, number: SegNo) -> u64 {
        let superblock = self.segments.get(number.0 as usize).is_some_and(|segment| segment.superblock);
        let lost = self.g.log_start(number, superblock).0 - self.g.segment_base(number).0;
        u64::from(lost) << self.g.fshift
    }

    /// The same of all segments.
    pub(crate) fn all_lost_bytes(&self) -> u64 {
        (0..self.segments.len() as u32).map(|number| self.lost_bytes(SegNo(number))).sum()
    }

    fn list_empty(&mut self, number: u32) {
        if let Some(segment) = self.segments.get_mut(number as usize)
            && !segment.listed
        {
            segment.listed = true;
            self.emptied.push(number);
        }
    }

    #[inline]
    pub(crate) fn segment_of(&mut self, addr: FragAddr) -> Option<(SegNo, &mut Segment)> {
        let number = self.g.segment_of(addr)?;
        self.segments.get_mut(number.0 as usize).map(|segment| (number, segment))
    }

    fn current(&mut self) -> Option<&mut Segment> {
        self.segments.get_mut(self.current.0 as usize)
    }

    /// Something has been written to the current segment.
    #[inline]
    pub(crate) fn note_written(&mut self, bytes: u32, written: Written) {
        if let Some(segment) = self.current() {
            segment.live_bytes += bytes;
            segment.written.push(written);
        }
    }

    /// Something has been written into a hole, of which the place in the segment's list is given. That makes the
    /// segment no younger.
    pub(crate) fn note_written_in_hole(&mut self, (number, index): (SegNo, usize), bytes: u32, written: Written) {
        let segment = &mut self.segments[number.0 as usize];
        segment.live_bytes += bytes;
        let place = &mut segment.written[index];
        assert!(place.addr == written.addr, "{place:?} is not where {written:?} is");
        *place = written;
    }

    /// A summary has been written, which begins a partial segment.
    pub(crate) fn note_summary(&mut self, addr: FragAddr, create_s: u64, date_ns: i64) {
        self.serial += 1;
        self.meta_frags += u64::from(self.g.sum_frags());
        if let Some(segment) = self.current() {
            segment.nsums = segment.nsums.saturating_add(1);
            (segment.lastmod_s, segment.modified_ns) = (create_s, date_ns);
            segment.written.push(Written { ino: 0, lbn: SUMMARY, addr });
        }
    }

    /// An inode block has been written, in front of its inodes.
    pub(crate) fn note_inode_block(&mut self, addr: FragAddr) {
        self.meta_frags += u64::from(self.g.ib_frags());
        if let Some(segment) = self.current() {
            segment.ninos = segment.ninos.saturating_add(1);
            segment.written.push(Written { ino: 0, lbn: INODES, addr });
        }
    }

    /// Something is of no use any more. Says which segment has lost it.
    pub(crate) fn note_freed(&mut self, addr: FragAddr, bytes: u32) -> Option<SegNo> {
        let (number, segment) = self.segment_of(addr)?;
        assert!(
            segment.live_bytes >= bytes,
            "segment {number} has {} bytes, and loses {bytes} at {addr}",
            segment.live_bytes
        );
        segment.live_bytes -= bytes;
        if segment.live_bytes == 0 && segment.state == SegmentState::Dirty {
            self.list_empty(number.0);
        }
        Some(number)
    }

    /// Bytes of data that fit into an empty segment for certain: less what is left over at its end, and what goes with
    /// them.
    pub(crate) fn usable_bytes(&self) -> u64 {
        let g = &self.g;
        u64::from(g.ssize).saturating_sub(u64::from(g.bsize + 2 * g.sumsize + g.ibsize)).max(1)
    }

    /// Bytes that can be written before a segment must be cleaned.
    pub(crate) fn room_bytes(&self) -> u64 {
        // Going on in the next segment takes a clean one that comes after it.
        let clean = u64::from(self.clean) * self.usable_bytes();
        self.left_bytes() + clean.saturating_sub(self.clean_lost_bytes + self.lost_bytes(self.next))
    }

    /// Those of them in the current segment.
    pub(crate) fn left_bytes(&self) -> u64 {
        let left = self.g.segment_end(self.current).0.saturating_sub(self.offset.0);
        let unused = self.g.bsize + 2 * self.g.sumsize + self.g.ibsize;
        (u64::from(left) << self.g.fshift).saturating_sub(unused.into())
    }

    /// Fragments of segments that may be written from their beginnings, the next one included.
    pub(crate) fn clean_frags(&self) -> u64 {
        let numbered = (0..).map(SegNo).zip(&self.segments);
        let clean = numbered.filter(|(number, segment)| segment.state == SegmentState::Clean || *number == self.next);
        clean
            .map(|(number, segment)| {
                u64::from(self.g.segment_end(number).0 - self.g.log_start(number, segment.superblock).0)
            })
            .sum()
    }

    /// What was live in a dirty segment has been moved, but for blocks of the ifile, which the next checkpoint moves.
    pub(crate) fn moved_out(&mut self, number: SegNo) {
        if let Some(segment) = self.segments.get_mut(number.0 as usize)
            && segment.live_bytes > 0
        {
            segment.leaving = true;
            self.leaving.push(number.0);
        }
    }

    /// A checkpoint has moved all of the ifile that was to be moved.
    pub(crate) fn ifile_written(&mut self) {
        for number in self.leaving.drain(..) {
            if let Some(segment) = self.segments.get_mut(number as usize) {
                segment.leaving = false;
            }
        }
    }

    /// Whether there are segments that one more checkpoint, or two, make clean.
    pub(crate) fn has_emptied(&self) -> bool {
        !self.leaving.is_empty()
            || self
                .emptied
                .iter()
                .any(|number| self.segments.get(*number as usize).is_some_and(|segment| segment.live_bytes == 0))
    }

    /// How many those are.
    pub(crate) fn emptied(&self) -> usize {
        self.emptied.len() + self.leaving.len()
    }

    /// What has to be complete before anything more is written to the current segment. Told each time: what follows in
    /// it may be of another process, which has not waited.
    pub(crate) fn ready(&mut self) -> Option<IoId> {
        // Recovery needs clean segments too: where few are known as clean on the disk, the superblock comes first that
        // says so of more.
        let (superblock, unsure) = self.cleaning;
        if self.clean.saturating_sub(unsure) < RECOVERY_SEGMENTS && unsure > 0 {
            self.ready = superblock;
            self.cleaning = (None, 0);
        }
        self.ready
    }

    /// The log goes on in the next segment, and another one comes next; an error if no segment is clean.
    pub(crate) fn advance(&mut self) -> Result<(), NoCleanSegment> {
        let after = self.find_clean().ok_or(NoCleanSegment)?;
        let old = self.current;
        let mut emptied = false;
        if let Some(segment) = self.segments.get_mut(old.0 as usize) {
            (segment.state, segment.end) = (SegmentState::Dirty, self.offset);
            emptied = segment.live_bytes == 0;
        }
        if emptied {
            self.list_empty(old.0);
        }
        self.last = old;
        self.current = self.next;
        self.next = after;
        self.clean -= 1;
        self.clean_lost_bytes -= self.lost_bytes(after);
        self.since_checkpoint += 1;
        self.taken += 1;
        if let Some(segment) = self.segments.get_mut(after.0 as usize) {
            segment.state = SegmentState::Active;
        }
        if let Some(segment) = self.segments.get_mut(self.current.0 as usize) {
            self.ready = segment.ready.take();
            segment.turn = segment.turn.wrapping_add(1);
            (segment.nsums, segment.ninos, segment.live_bytes, segment.modified_ns) = (0, 0, 0, 0);
            if let Some(spare) = self.spare.pop() {
                segment.written = spare;
            }
            segment.written.clear();
            segment.tiled = true;
            self.offset = self.g.log_start(self.current, segment.superblock);
        }
        Ok(())
    }

    /// The first clean segment behind the next one, round to the beginning.
    fn find_clean(&self) -> Option<SegNo> {
        let nseg = self.segments.len() as u32;
        let clean = |number: &u32| {
            self.segments.get(*number as usize).is_some_and(|segment| segment.state == SegmentState::Clean)
        };
        if self.clean == 0 {
            return None;
        }
        (self.next.0 + 1..nseg).chain(0..self.next.0).find(clean).map(SegNo)
    }

    /// A superblock with the state as it is now is being written by `io`. Segments that the one before it knew as empty
    /// too may be written again once it is complete. Returns those.
    pub(crate) fn superblock_written(&mut self, io: Option<IoId>) -> Vec<SegNo> {
        self.superblocks += 1;
        let mut cleaned = Vec::new();
        let mut emptied = std::mem::take(&mut self.emptied);
        emptied.retain(|number| {
            let Some(segment) = self.segments.get_mut(*number as usize) else { return false };
            if segment.live_bytes > 0 || segment.state != SegmentState::Dirty {
                (segment.listed, segment.empty_since) = (false, None);
                return false;
            }
            if segment.empty_since.is_none() && !self.planted.has(Bug::CleanAfterOne) {
                segment.empty_since = Some(self.superblocks);
                return true;
            }
            self.meta_frags -= segment_meta_frags(&self.g, segment);
            segment.state = SegmentState::Clean;
            (segment.listed, segment.empty_since, segment.ready) = (false, None, io);
            (segment.nsums, segment.ninos) = (0, 0);
            let written = std::mem::take(&mut segment.written);
            if self.spare.len() < SPARE {
                self.spare.push(written);
            }
            self.clean += 1;
            cleaned.push(SegNo(*number));
            false
        });
        self.emptied = emptied;
        self.clean_lost_bytes += cleaned.iter().map(|number| self.lost_bytes(*number)).sum::<u64>();
        if !cleaned.is_empty() {
            self.cleaning = (io, self.cleaning.1 + cleaned.len() as u32);
        }
        cleaned
    }
}

/// There is no segment to go on in. Space is reserved so that this does not happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoCleanSegment;

fn segment_meta_frags(g: &Geometry, segment: &Segment) -> u64 {
    u64::from(segment.nsums) * u64::from(g.sum_frags()) + u64::from(segment.ninos) * u64::from(g.ib_frags())
}

/// Live bytes of an inode.
pub(crate) const INODE_BYTES: u32 = DINODE_BYTES;
