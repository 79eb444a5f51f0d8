//! Filling a map while the survey walks.

use super::claimed::Claimed;
use super::{Map, MapOrder, bounds};
use crate::Available;
use posix::{Extent, FreeExtent};
use serde::{Deserialize, Serialize};

/// The addresses a file system uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// The first.
    pub start_bytes: u64,
    /// How many.
    pub len_bytes: u64,
}

/// A map being made. What lies beyond its end makes it twice as long, so that a size that was not known exactly does no
/// harm.
#[derive(Clone, Debug)]
pub(crate) struct MapBuilder {
    order: MapOrder,
    span: Span,
    files: Vec<u64>,
    /// Of each cell, bytes times the moment they were written (nanoseconds since the epoch).
    written: Vec<i128>,
    free: Vec<u64>,
    claimed: Claimed,
    unplaced_bytes: u64,
    shared_again_bytes: u64,
    excess_bytes: u64,
}

impl MapBuilder {
    /// An empty map of these addresses.
    pub(crate) fn new(order: MapOrder, span: Span) -> MapBuilder {
        let cells = order.cells();
        MapBuilder {
            order,
            span: Span { len_bytes: span.len_bytes.max(1), ..span },
            files: vec![0; cells],
            written: vec![0; cells],
            free: vec![0; cells],
            claimed: Claimed::default(),
            unplaced_bytes: 0,
            shared_again_bytes: 0,
            excess_bytes: 0,
        }
    }

    /// Adds a file's extents and when it was last modified.
    pub(crate) fn file(&mut self, extents: &[Extent], mtime_ns: i64) {
        for extent in extents {
            let f = extent.flags;
            let (start, end) = (extent.physical_bytes, extent.physical_bytes.saturating_add(extent.len_bytes));
            if f.encoded || f.delayed || f.unknown {
                self.unplaced_bytes = self.unplaced_bytes.saturating_add(extent.len_bytes);
            } else if f.shared {
                let mut claimed = std::mem::take(&mut self.claimed);
                let mut first = 0u64;
                claimed.claim(start, end, |from, to| {
                    first = first.saturating_add(to - from);
                    self.add_file(from, to, mtime_ns);
                });
                self.claimed = claimed;
                let again = extent.len_bytes.saturating_sub(first);
                self.shared_again_bytes = self.shared_again_bytes.saturating_add(again);
            } else if !f.inline {
                self.add_file(start, end, mtime_ns);
            }
        }
    }

    fn add_file(&mut self, start: u64, end: u64, mtime_ns: i64) {
        self.cut(start, end, |map, cell, bytes| {
            if let (Some(files), Some(written)) = (map.files.get_mut(cell), map.written.get_mut(cell)) {
                *files = files.saturating_add(bytes);
                *written = written.saturating_add(i128::from(bytes) * i128::from(mtime_ns));
            }
        });
    }

    fn add_free(&mut self, extent: &FreeExtent) {
        self.cut(extent.physical_bytes, extent.physical_bytes.saturating_add(extent.len_bytes), |map, cell, bytes| {
            if let Some(free) = map.free.get_mut(cell) {
                *free = free.saturating_add(bytes);
            }
        });
    }

    /// Cuts a range at the borders of cells.
    fn cut(&mut self, start: u64, end: u64, each: impl Fn(&mut MapBuilder, usize, u64)) {
        while end.saturating_sub(self.span.start_bytes) > self.span.len_bytes {
            if !self.grow() {
                self.excess_bytes = self.excess_bytes.saturating_add(end.saturating_sub(start));
                return;
            }
        }
        let mut at = start.max(self.span.start_bytes);
        self.excess_bytes = self.excess_bytes.saturating_add(at.min(end).saturating_sub(start));
        while at < end {
            let cell = self.cell_of(at);
            let to = bounds(self.order, self.span.start_bytes, self.span.len_bytes, cell).1.min(end);
            if to <= at {
                return;
            }
            each(self, cell, to - at);
            at = to;
        }
    }

    /// The cell of an address within the span.
    fn cell_of(&self, at: u64) -> usize {
        let offset = u128::from(at - self.span.start_bytes);
        let cells = self.order.cells() as u128;
        // Below the number of cells, because the offset is below the span.
        (offset * cells / u128::from(self.span.len_bytes)) as usize
    }

    /// Makes the map cover twice the addresses, each cell what two covered; `false` at the end of all addresses.
    fn grow(&mut self) -> bool {
        let Some(len_bytes) = self.span.len_bytes.checked_mul(2) else { return false };
        if self.span.start_bytes.checked_add(len_bytes).is_none() {
            return false;
        }
        self.span.len_bytes = len_bytes;
        // Lists that somebody made may claim each byte many times.
        halve(&mut self.files, u64::saturating_add);
        halve(&mut self.written, i128::saturating_add);
        halve(&mut self.free, u64::saturating_add);
        true
    }

    /// The map. `free` and `unallocated` are in the addresses that extents are in.
    pub(crate) fn finished(mut self, free: Result<&[FreeExtent], &str>, unallocated: &[FreeExtent]) -> Map {
        free.unwrap_or_default().iter().chain(unallocated).for_each(|extent| self.add_free(extent));
        let (span, order) = (self.span, self.order);
        let mut excess_bytes = self.excess_bytes;
        let mut written_unix_ns = Vec::with_capacity(order.cells());
        for (cell, (files, written)) in self.files.iter_mut().zip(&self.written).enumerate() {
            let mean = i128::from(*files);
            written_unix_ns.push((mean > 0).then(|| i64::try_from(written / mean).unwrap_or(i64::MAX)));
            let (start, end) = bounds(order, span.start_bytes, span.len_bytes, cell);
            excess_bytes = excess_bytes.saturating_add(files.saturating_sub(end - start));
            *files = (*files).min(end - start);
            if let Some(free) = self.free.get_mut(cell) {
                *free = (*free).min(end - start);
            }
        }
        Map {
            order,
            start_bytes: span.start_bytes,
            span_bytes: span.len_bytes,
            file_bytes: self.files,
            free_bytes: match free {
                Ok(_) => Available::Known(self.free),
                Err(why) => Available::Unavailable(why.to_owned()),
            },
            written_unix_ns,
            unallocated_bytes: unallocated.iter().fold(0, |sum, e| sum.saturating_add(e.len_bytes)),
            unplaced_bytes: self.unplaced_bytes,
            shared_again_bytes: self.shared_again_bytes,
            excess_bytes,
        }
    }
}

/// Adds pairs of cells into the first half.
fn halve<T: Copy + Default>(cells: &mut [T], add: fn(T, T) -> T) {
    for cell in 0..cells.len() {
        let pair = |i: usize| cells.get(i).copied().unwrap_or_default();
        let sum = add(pair(2 * cell), pair(2 * cell + 1));
        if let Some(place) = cells.get_mut(cell) {
            *place = sum;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use posix::ExtentFlags;
    use proptest::prelude::*;

    fn extent(physical_bytes: u64, len_bytes: u64) -> Extent {
        Extent { logical_bytes: 0, physical_bytes, len_bytes, flags: ExtentFlags::default() }
    }

    fn builder(order: u8, len_bytes: u64) -> MapBuilder {
        MapBuilder::new(MapOrder::new(order).unwrap(), Span { start_bytes: 0, len_bytes })
    }

    #[test]
    fn parts_and_moments_of_a_cell() {
        let mut map = builder(1, 400);
        map.file(&[extent(50, 100)], 1000);
        map.file(&[extent(150, 50)], 4000);
        let map = map.finished(Ok(&[FreeExtent { physical_bytes: 300, len_bytes: 60 }]), &[]);
        assert_eq!(map.file_bytes, [50, 100, 0, 0]);
        assert_eq!(map.free_bytes, Available::Known(vec![0, 0, 0, 60]));
        assert_eq!(map.written_unix_ns, [Some(1000), Some(2500), None, None]);
        assert_eq!((0..4).map(|i| map.other_in(i)).collect::<Vec<_>>(), [50, 0, 100, 40]);
        assert_eq!(map.check(), Ok(()));
    }

    #[test]
    fn what_has_no_place_or_several_owners_is_counted_apart() {
        let mut map = builder(1, 400);
        let flagged = |flags| Extent { flags, ..extent(0, 80) };
        map.file(&[flagged(ExtentFlags { encoded: true, ..ExtentFlags::default() })], 1);
        map.file(&[flagged(ExtentFlags { inline: true, ..ExtentFlags::default() })], 1);
        let shared = flagged(ExtentFlags { shared: true, ..ExtentFlags::default() });
        map.file(&[shared], 1);
        map.file(&[Extent { physical_bytes: 40, ..shared }], 1);
        let map = map.finished(Err("why"), &[]);
        assert_eq!((map.unplaced_bytes, map.shared_again_bytes, map.excess_bytes), (80, 40, 0));
        assert_eq!(map.totals().file_bytes, 120);
        assert_eq!(map.free_bytes.why(), Some("why"));
    }

    #[test]
    fn no_address_is_too_far() {
        let mut map = builder(1, 1);
        map.file(&[extent(0, 1), extent(u64::MAX - 10, 100)], i64::MAX);
        let map = map.finished(Ok(&[]), &[]);
        assert!(map.totals().file_bytes + map.excess_bytes >= 11, "{map:?}");
        assert_eq!(map.check(), Ok(()));
    }

    #[test]
    fn bytes_claimed_more_often_than_can_be_counted_are_no_fault() {
        let mut map = builder(1, 1 << 62);
        for _ in 0..40 {
            map.file(&[extent(0, 1 << 62)], i64::MAX);
        }
        map.file(&[extent(1 << 62, 1)], i64::MIN);
        let map = map.finished(Ok(&[]), &[]);
        assert_eq!(map.span_bytes, 1 << 63);
        assert_eq!(map.check(), Ok(()));
    }

    proptest! {
        /// Whatever the guess of the size, no byte is lost or counted twice.
        #[test]
        fn sums_are_kept(guess in 1u64..5000, order in 0u8..5,
            pieces in proptest::collection::vec((1u64..300, any::<bool>()), 1..50)) {
            let mut map = builder(order, guess);
            let (mut at, mut files, mut free) = (0, 0, Vec::new());
            for (len, is_free) in pieces {
                if is_free {
                    free.push(FreeExtent { physical_bytes: at, len_bytes: len });
                } else {
                    map.file(&[extent(at, len)], 7);
                    files += len;
                }
                at += len;
            }
            let free_sum: u64 = free.iter().map(|e| e.len_bytes).sum();
            let map = map.finished(Ok(&free), &[]);
            let totals = map.totals();
            prop_assert_eq!((totals.file_bytes, totals.free_bytes), (files, Some(free_sum)));
            prop_assert!(map.span_bytes >= at && map.excess_bytes == 0);
            prop_assert!(map.written_unix_ns.iter().all(|w| w.is_none_or(|ns| ns == 7)));
            let other: u64 = (0..map.order.cells()).map(|cell| map.other_in(cell)).sum();
            prop_assert_eq!(other + files + free_sum, map.span_bytes);
            prop_assert_eq!(map.check(), Ok(()));
        }
    }
}
