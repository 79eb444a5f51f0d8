//! The same map with fewer cells, for media that cannot show them all.

use super::{Map, MapOrder};
use crate::Available;

impl Map {
    /// The map in cells of 4^k of these; itself where it is as coarse already. Cells keep their borders and sums.
    pub fn coarser(&self, order: MapOrder) -> Map {
        if order >= self.order {
            return self.clone();
        }
        let merged = 1usize << (2 * (self.order.get() - order.get()));
        let sums = |column: &[u64]| -> Vec<u64> {
            column
                .chunks(merged)
                .map(|cells| cells.iter().fold(0, |sum: u64, bytes| sum.saturating_add(*bytes)))
                .collect()
        };
        Map {
            order,
            file_bytes: sums(&self.file_bytes),
            free_bytes: match &self.free_bytes {
                Available::Known(free) => Available::Known(sums(free)),
                Available::Unavailable(why) => Available::Unavailable(why.clone()),
            },
            written_unix_ns: self
                .written_unix_ns
                .chunks(merged)
                .zip(self.file_bytes.chunks(merged))
                .map(|(written, bytes)| mean(written, bytes))
                .collect(),
            ..*self
        }
    }
}

/// The mean moment over bytes; none of nothing.
fn mean(written: &[Option<i64>], bytes: &[u64]) -> Option<i64> {
    let known = || written.iter().zip(bytes).filter_map(|(w, b)| Some(((*w)?, *b)));
    let of: i128 = known().map(|(_, b)| i128::from(b)).sum();
    let sum: i128 = known().map(|(w, b)| i128::from(w) * i128::from(b)).sum();
    // A mean lies between what it is of.
    (of > 0).then(|| i64::try_from(sum / of).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use crate::map::{MapBuilder, MapOrder, Span};
    use posix::{Extent, ExtentFlags, FreeExtent};
    use proptest::prelude::*;

    proptest! {
        /// A map made coarser is the map that would have been made so coarse.
        #[test]
        fn as_if_made_so(span in 16u64..9000, fine in 0u8..5, coarse in 0u8..5) {
            let make = |order: u8| {
                let mut map = MapBuilder::new(MapOrder::new(order).unwrap(), Span { start_bytes: 0, len_bytes: span });
                let flags = ExtentFlags::default();
                for (i, at) in (0..span).step_by(13).enumerate() {
                    let extent = Extent { logical_bytes: 0, physical_bytes: at, len_bytes: 7.min(span - at), flags };
                    map.file(&[extent], i as i64 * 1_000_000);
                }
                map.finished(Ok(&[FreeExtent { physical_bytes: 7, len_bytes: 5.min(span - 7) }]), &[])
            };
            let (made, expected) = (make(fine).coarser(MapOrder::new(coarse).unwrap()), make(fine.min(coarse)));
            prop_assert_eq!(&made.file_bytes, &expected.file_bytes);
            prop_assert_eq!(&made.free_bytes, &expected.free_bytes);
            prop_assert_eq!(made.totals(), expected.totals());
            // Rounded once more on the way.
            let near = |a: &Option<i64>, b: &Option<i64>| a.zip(*b).map_or(a == b, |(a, b)| a.abs_diff(b) <= 1);
            prop_assert!(made.written_unix_ns.iter().zip(&expected.written_unix_ns).all(|(a, b)| near(a, b)));
        }
    }
}
