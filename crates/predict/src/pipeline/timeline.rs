//! What the caches did over the time of the trace, in a series that is never longer than a plot can show.

use super::pages::PAGE_BYTES;
use serde::Serialize;

/// Stretches of a series at most, an even number; their width doubles as the trace goes on.
const STRETCHES_MAX: usize = 256;

/// Width of the first stretches, nanoseconds.
const STRETCH_NS: u64 = 1 << 20;

/// What the caches did in each stretch of the time of the trace: as the simulation had it at the calls of the stretch,
/// which with calls as fast as possible is another clock than the recording's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CacheTimeline {
    /// Width of a stretch of traced time, nanoseconds.
    pub stretch_ns: u64,
    /// Pages read in each that were in memory, and pages that were not.
    pub page_hits: Vec<u64>,
    #[allow(missing_docs)]
    pub page_misses: Vec<u64>,
    /// The most dirty data at any call of each, bytes; where there is none, what is left of before.
    pub dirty_bytes: Vec<u64>,
    /// What background write-back took up in each, bytes.
    pub written_back_bytes: Vec<u64>,
}

/// Counts of a cache at one moment, since its beginning but for what is dirty now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub page_hits: u64,
    pub page_misses: u64,
    pub dirty_pages: u64,
    pub written_back_pages: u64,
}

/// Builds a [`CacheTimeline`] from the counts after each call.
#[derive(Clone, Debug)]
pub(super) struct Recorder {
    stretch_ns: u64,
    /// Stretches that are over: what was added in each, and the most that was dirty.
    done: Vec<Counts>,
    /// When the one under way ends.
    end_ns: u64,
    before: Counts,
    dirty_most_pages: u64,
}

impl Recorder {
    pub(super) fn new() -> Recorder {
        Recorder {
            stretch_ns: STRETCH_NS,
            done: Vec::new(),
            end_ns: STRETCH_NS,
            before: Counts::default(),
            dirty_most_pages: 0,
        }
    }

    /// A call at a time of the trace is about to be simulated: whether a stretch is over, whose counts
    /// [`Recorder::close`] then takes.
    #[inline]
    pub(super) fn is_over(&self, t_ns: u64) -> bool {
        t_ns >= self.end_ns
    }

    /// So much is dirty after a call.
    #[inline]
    pub(super) fn dirty(&mut self, pages: u64) {
        self.dirty_most_pages = self.dirty_most_pages.max(pages);
    }

    /// Ends stretches until a time is within the one under way; `counts` are those before its call. Calls that come
    /// late count where the others are.
    pub(super) fn close(&mut self, t_ns: u64, counts: Counts) {
        while self.is_over(t_ns) {
            if self.done.len() + 1 == STRETCHES_MAX {
                self.halve();
                continue;
            }
            self.done.push(self.under_way(counts));
            self.before = counts;
            // Nothing happens in a stretch without calls, and what is dirty stays so.
            self.dirty_most_pages = counts.dirty_pages;
            self.end_ns = self.end_ns.saturating_add(self.stretch_ns);
            if self.end_ns == u64::MAX {
                return;
            }
        }
    }

    fn under_way(&self, counts: Counts) -> Counts {
        Counts {
            page_hits: counts.page_hits - self.before.page_hits,
            page_misses: counts.page_misses - self.before.page_misses,
            dirty_pages: self.dirty_most_pages,
            written_back_pages: counts.written_back_pages - self.before.written_back_pages,
        }
    }

    /// Makes one of every two stretches. Their number is odd, one less than [`STRETCHES_MAX`]: the last becomes the
    /// beginning of the one under way.
    fn halve(&mut self) {
        let Some(last) = self.done.pop() else { return };
        self.before.page_hits -= last.page_hits;
        self.before.page_misses -= last.page_misses;
        self.before.written_back_pages -= last.written_back_pages;
        self.dirty_most_pages = self.dirty_most_pages.max(last.dirty_pages);
        let pairs = self.done.chunks(2).map(|pair| pair.iter().copied().fold(Counts::default(), sum));
        self.done = pairs.collect();
        self.stretch_ns = self.stretch_ns.saturating_mul(2);
    }

    /// The series up to now.
    pub(super) fn timeline(&self, counts: Counts) -> CacheTimeline {
        let last = self.under_way(counts);
        let mut timeline = CacheTimeline { stretch_ns: self.stretch_ns, ..CacheTimeline::default() };
        for stretch in self.done.iter().chain(std::iter::once(&last)) {
            timeline.page_hits.push(stretch.page_hits);
            timeline.page_misses.push(stretch.page_misses);
            timeline.dirty_bytes.push(stretch.dirty_pages * PAGE_BYTES);
            timeline.written_back_bytes.push(stretch.written_back_pages * PAGE_BYTES);
        }
        timeline
    }
}

fn sum(a: Counts, b: Counts) -> Counts {
    Counts {
        page_hits: a.page_hits + b.page_hits,
        page_misses: a.page_misses + b.page_misses,
        dirty_pages: a.dirty_pages.max(b.dirty_pages),
        written_back_pages: a.written_back_pages + b.written_back_pages,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(calls: &[(u64, Counts)]) -> CacheTimeline {
        let (mut recorder, mut before) = (Recorder::new(), Counts::default());
        for &(t_ns, after) in calls {
            if recorder.is_over(t_ns) {
                recorder.close(t_ns, before);
            }
            recorder.dirty(after.dirty_pages);
            before = after;
        }
        recorder.timeline(before)
    }

    #[test]
    fn what_is_dirty_stays_so_where_nothing_happens() {
        let counts = |page_hits, dirty_pages, written_back_pages| Counts {
            page_hits,
            dirty_pages,
            written_back_pages,
            page_misses: 0,
        };
        let found = record(&[
            (0, counts(1, 5, 0)),
            (1, counts(3, 2, 3)),
            (3 * STRETCH_NS, counts(4, 0, 5)),
            (2, counts(9, 1, 5)),
        ]);
        assert_eq!(found.page_hits, [3, 0, 0, 6]);
        assert_eq!(found.dirty_bytes, [5, 2, 2, 2].map(|pages| pages * PAGE_BYTES));
        assert_eq!(found.written_back_bytes, [3, 0, 0, 2].map(|pages| pages * PAGE_BYTES));
    }

    /// Against the same sums made the plain way, when the length of the trace is known.
    #[test]
    fn a_long_trace_is_summed_up_in_wider_stretches() {
        let mut state = 7u64;
        let mut random = |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % n
        };
        let (mut t_ns, mut now, mut calls) = (0, Counts::default(), Vec::new());
        for _ in 0..20_000 {
            t_ns += random(STRETCH_NS);
            now.page_hits += random(3);
            now.page_misses += random(2);
            now.dirty_pages = random(100);
            calls.push((t_ns, now));
        }
        let found = record(&calls);
        assert!(found.page_hits.len() > STRETCHES_MAX / 2 - 1 && found.page_hits.len() <= STRETCHES_MAX, "{found:?}");
        let mut before = Counts::default();
        let mut plain = vec![Counts::default(); found.page_hits.len()];
        for (t_ns, after) in calls {
            let at = usize::try_from(t_ns / found.stretch_ns).unwrap();
            plain[at].page_hits += after.page_hits - before.page_hits;
            plain[at].page_misses += after.page_misses - before.page_misses;
            // What was dirty when it began counts as well.
            plain[at].dirty_pages = plain[at].dirty_pages.max(after.dirty_pages);
            if at + 1 < plain.len() {
                plain[at + 1].dirty_pages = after.dirty_pages;
            }
            before = after;
        }
        assert_eq!(found.page_hits, plain.iter().map(|c| c.page_hits).collect::<Vec<_>>());
        assert_eq!(found.page_misses, plain.iter().map(|c| c.page_misses).collect::<Vec<_>>());
        assert_eq!(found.dirty_bytes, plain.iter().map(|c| c.dirty_pages * PAGE_BYTES).collect::<Vec<_>>());
    }
}
