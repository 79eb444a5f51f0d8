//! The map: a disk cut into equal cells in address order, and for each how much of it is files, free, and when its
//! files were written. Made during the survey from the extents that the scores are made from; drawn along [Hilbert's
//! curve](hilbert).
//!
//! Three parts make a cell: **files** (placed blocks of the surveyed regular files, written or preallocated), **free**
//! (as the file system's own list has it), and the **rest**: metadata, directories, files outside the surveyed
//! directory, second copies, and whatever has no known place. Bytes are exact: over all cells they sum to the survey's
//! own figures.
//!
//! Memory is bounded by the number of cells and, where files share blocks, by a list of shared ranges of bounded
//! length.

mod builder;
mod claimed;
mod coarser;
pub mod hilbert;

pub(crate) use builder::MapBuilder;
pub use builder::Span;

use crate::Available;
use serde::{Deserialize, Serialize};

/// How fine a map is: 4^order cells, drawn as a square of 2^order by 2^order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub struct MapOrder(u8);

impl MapOrder {
    /// The finest: a million cells.
    pub const MAX: MapOrder = MapOrder(10);

    /// An order from 0 to [`MapOrder::MAX`].
    pub fn new(order: u8) -> Option<MapOrder> {
        (order <= MapOrder::MAX.0).then_some(MapOrder(order))
    }

    /// The order of a square so many cells wide, where there is one.
    pub fn of_side(side: u32) -> Option<MapOrder> {
        side.is_power_of_two().then(|| u8::try_from(side.trailing_zeros()).ok().and_then(MapOrder::new)).flatten()
    }

    /// The number.
    pub fn get(self) -> u8 {
        self.0
    }

    /// Cells in a row.
    pub fn side(self) -> u32 {
        1 << self.0
    }

    /// Cells in all.
    pub fn cells(self) -> usize {
        1 << (2 * self.0)
    }
}

impl Default for MapOrder {
    /// 128 by 128.
    fn default() -> Self {
        MapOrder(7)
    }
}

impl TryFrom<u8> for MapOrder {
    type Error = String;

    fn try_from(order: u8) -> Result<MapOrder, String> {
        MapOrder::new(order).ok_or_else(|| format!("a map of order {order}; the largest is {}", MapOrder::MAX.0))
    }
}

impl From<MapOrder> for u8 {
    fn from(order: MapOrder) -> u8 {
        order.0
    }
}

/// Where each kind of bytes lies. Cell `i` of `n` covers the addresses from `start + ceil(i * span / n)` up to the next
/// cell's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Map {
    /// How fine it is.
    pub order: MapOrder,
    /// The first address on it, bytes; not 0 only for btrfs addresses that are not a device's.
    pub start_bytes: u64,
    /// How many bytes of addresses it covers.
    pub span_bytes: u64,
    /// Bytes of files in each cell.
    pub file_bytes: Vec<u64>,
    /// Free bytes in each cell, or why they are not known: then what is not files may be free.
    pub free_bytes: Available<Vec<u64>>,
    /// When the files in each cell were last modified: the mean over their bytes, nanoseconds since the epoch; none
    /// where there are none.
    pub written_unix_ns: Vec<Option<i64>>,
    /// Of the free bytes, those of a device that no chunk has been given (btrfs).
    pub unallocated_bytes: u64,
    /// Bytes in files that have no known place (compressed, delayed, unknown), and so are not on the map.
    pub unplaced_bytes: u64,
    /// Bytes of shared extents beyond their first owner: on the map once.
    pub shared_again_bytes: u64,
    /// Bytes of files beyond what their cell holds: the file system changed during the survey, or more was shared than
    /// is kept count of. Left out.
    pub excess_bytes: u64,
}

/// The sums over a map.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MapTotals {
    /// Addresses covered.
    pub span_bytes: u64,
    /// Bytes of files.
    pub file_bytes: u64,
    /// Free bytes; `None` where they are not known.
    pub free_bytes: Option<u64>,
}

impl Map {
    /// The addresses of a cell: start and end, bytes.
    pub fn bounds(&self, cell: usize) -> (u64, u64) {
        bounds(self.order, self.start_bytes, self.span_bytes, cell)
    }

    /// The bytes of addresses in a cell.
    pub fn covered_bytes(&self, cell: usize) -> u64 {
        let (start, end) = self.bounds(cell);
        end.saturating_sub(start)
    }

    /// Free bytes of a cell, where they are known.
    pub fn free_in(&self, cell: usize) -> Option<u64> {
        self.free_bytes.known().and_then(|free| free.get(cell).copied())
    }

    /// Bytes of a cell that are neither files nor free. Where free space is not known, all that is not files.
    pub fn other_in(&self, cell: usize) -> u64 {
        let files = self.file_bytes.get(cell).copied().unwrap_or(0);
        self.covered_bytes(cell).saturating_sub(files).saturating_sub(self.free_in(cell).unwrap_or(0))
    }

    /// Where a cell is drawn: column and row.
    pub fn position(&self, cell: usize) -> (u32, u32) {
        hilbert::position(self.order.get(), cell as u64)
    }

    /// The sums.
    pub fn totals(&self) -> MapTotals {
        let sum = |column: &[u64]| column.iter().fold(0u64, |sum, bytes| sum.saturating_add(*bytes));
        MapTotals {
            span_bytes: self.span_bytes,
            file_bytes: sum(&self.file_bytes),
            free_bytes: self.free_bytes.known().map(|free| sum(free)),
        }
    }

    /// Whether the parts fit together, as those of a map from a file must before anything relies on it.
    pub(crate) fn check(&self) -> Result<(), String> {
        let cells = self.order.cells();
        let free = self.free_bytes.known().map_or(cells, Vec::len);
        for (column, len) in [
            ("file_bytes", self.file_bytes.len()),
            ("free_bytes", free),
            ("written_unix_ns", self.written_unix_ns.len()),
        ] {
            if len != cells {
                return Err(format!("the map's {column} has {len} cells instead of {cells}"));
            }
        }
        if self.start_bytes.checked_add(self.span_bytes).is_none() {
            return Err("the map ends beyond the last address there can be".to_owned());
        }
        for cell in 0..cells {
            let covered = self.covered_bytes(cell);
            let files = self.file_bytes.get(cell).copied().unwrap_or(0);
            if files > covered || self.free_in(cell).unwrap_or(0) > covered {
                return Err(format!("cell {cell} of the map holds more than its {covered} bytes"));
            }
        }
        Ok(())
    }
}

/// The addresses of a cell.
fn bounds(order: MapOrder, start_bytes: u64, span_bytes: u64, cell: usize) -> (u64, u64) {
    let cells = order.cells() as u128;
    let at = |cell: usize| {
        let cell = (cell as u128).min(cells);
        // At most the span.
        let offset = (u128::from(span_bytes) * cell).div_ceil(cells) as u64;
        start_bytes.saturating_add(offset)
    };
    (at(cell), at(cell.saturating_add(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_bounded() {
        assert_eq!(MapOrder::of_side(128), Some(MapOrder::default()));
        assert_eq!((MapOrder::of_side(0), MapOrder::of_side(100), MapOrder::of_side(2048)), (None, None, None));
        assert_eq!(serde_json::from_str::<MapOrder>("7").unwrap(), MapOrder::default());
        assert!(serde_json::from_str::<MapOrder>("11").unwrap_err().to_string().contains("largest is 10"));
    }

    #[test]
    fn cells_tile_any_span() {
        for span in [0, 1, 15, 16, 17, 4096, 999_999_999_989, u64::MAX] {
            let order = MapOrder(2);
            let mut at = 0;
            for cell in 0..order.cells() {
                let (start, end) = bounds(order, 0, span, cell);
                assert_eq!(start, at, "{span}");
                at = end;
            }
            assert_eq!(at, span);
        }
    }
}
