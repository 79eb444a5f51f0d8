//! The buffer: segments of consecutive blocks, least recently used replaced first.

use crate::Lbn;

/// A run of blocks in the buffer; empty if `start == end`.
#[derive(Clone, Copy, Debug, Default)]
struct Segment {
    start: u64,
    end: u64,
    used: u64,
}

/// What of a read is in the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hit {
    /// All of it.
    Whole(usize),
    /// Its beginning, so many sectors.
    Partial(usize, u64),
    /// Nothing.
    None,
}

/// The segments.
#[derive(Clone, Debug)]
pub(crate) struct Cache {
    segments: Vec<Segment>,
    segment_sectors: u64,
    clock: u64,
}

impl Cache {
    pub fn new(segments: u32, segment_sectors: u32) -> Cache {
        Cache {
            segments: vec![Segment::default(); segments as usize],
            segment_sectors: u64::from(segment_sectors),
            clock: 0,
        }
    }

    /// The segment that holds most of a read's beginning.
    pub fn find(&self, lbn: Lbn, sectors: u64) -> Hit {
        let mut best = Hit::None;
        let mut most = 0;
        for (n, segment) in self.segments.iter().enumerate() {
            if lbn.0 < segment.start || lbn.0 >= segment.end {
                continue;
            }
            let held = segment.end - lbn.0;
            if held >= sectors {
                return Hit::Whole(n);
            }
            if held > most {
                most = held;
                best = Hit::Partial(n, held);
            }
        }
        best
    }

    /// Takes a segment for blocks beginning at `lbn`: an empty one, or the least recently used, `spared` last.
    pub fn take(&mut self, lbn: Lbn, spared: Option<usize>) -> Option<usize> {
        let candidate = |(n, segment): (usize, &Segment)| {
            let empty = segment.start == segment.end;
            (!empty, Some(n) == spared, segment.used)
        };
        let n = (0..self.segments.len()).min_by_key(|&n| candidate((n, &self.segments[n])))?;
        self.clock += 1;
        self.segments[n] = Segment { start: lbn.0, end: lbn.0, used: self.clock };
        Some(n)
    }

    /// Marks a segment as just used.
    pub fn touch(&mut self, segment: usize) {
        self.clock += 1;
        if let Some(segment) = self.segments.get_mut(segment) {
            segment.used = self.clock;
        }
    }

    /// A segment now reaches to `end`; what no longer fits falls off its beginning.
    pub fn grow(&mut self, segment: usize, end: Lbn) {
        let size = self.segment_sectors;
        if let Some(segment) = self.segments.get_mut(segment) {
            segment.end = segment.end.max(end.0);
            segment.start = segment.start.max(segment.end.saturating_sub(size));
        }
    }

    /// End of what a segment holds.
    pub fn end(&self, segment: usize) -> Lbn {
        Lbn(self.segments.get(segment).map_or(0, |segment| segment.end))
    }

    /// Start of what a segment holds.
    pub fn start(&self, segment: usize) -> Lbn {
        Lbn(self.segments.get(segment).map_or(0, |segment| segment.start))
    }

    /// Forgets every segment that holds any of these blocks.
    pub fn invalidate(&mut self, lbn: Lbn, end: Lbn) {
        for segment in self.segments.iter_mut().filter(|segment| segment.start < end.0 && lbn.0 < segment.end) {
            segment.end = segment.start;
        }
    }

    /// The segment that holds a block.
    pub fn segment_at(&self, lbn: Lbn) -> Option<usize> {
        self.segments.iter().position(|segment| (segment.start..segment.end).contains(&lbn.0))
    }

    /// Drops what a segment holds before `end`.
    pub fn drop_before(&mut self, segment: usize, end: Lbn) {
        if let Some(segment) = self.segments.get_mut(segment) {
            segment.start = segment.start.max(end.0).min(segment.end);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }
}
