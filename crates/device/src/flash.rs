//! What flash has been made to do, counted.

use serde::Serialize;
use std::ops::{Add, Sub};

/// Counts of a flash drive since it was new, or of all members of an array.
///
/// The map itself is not kept on flash by the model: nothing is programmed for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FlashCounts {
    /// Bytes of the host's write requests.
    pub host_bytes: u64,
    /// Bytes programmed for them: mapping units are written whole, so a request that ends inside one counts more here.
    /// What is still in the write buffer is not programmed yet.
    pub host_programmed_bytes: u64,
    /// Bytes that garbage collection has moved.
    pub moved_bytes: u64,
    /// Bytes programmed without data, because a flush could not wait for a full page.
    pub padding_bytes: u64,
    /// Bytes on flash that the host has given up by trims.
    pub trimmed_bytes: u64,
    /// Pages (of all planes of a die) programmed for the host.
    pub host_pages: u64,
    /// Pages that garbage collection has filled.
    pub collector_pages: u64,
    /// Blocks (of all planes of a die) erased.
    pub erased_blocks: u64,
    /// How often a die had to collect before it could take a page.
    pub collections: u64,
}

impl FlashCounts {
    /// Bytes programmed for whatever reason.
    pub fn programmed_bytes(&self) -> u64 {
        self.host_programmed_bytes + self.moved_bytes + self.padding_bytes
    }

    /// Bytes programmed for each byte that the host wrote; 1 if it wrote nothing.
    pub fn write_amplification(&self) -> f64 {
        if self.host_bytes == 0 { 1.0 } else { self.programmed_bytes() as f64 / self.host_bytes as f64 }
    }

    fn with(self, other: FlashCounts, each: impl Fn(u64, u64) -> u64) -> FlashCounts {
        FlashCounts {
            host_bytes: each(self.host_bytes, other.host_bytes),
            host_programmed_bytes: each(self.host_programmed_bytes, other.host_programmed_bytes),
            moved_bytes: each(self.moved_bytes, other.moved_bytes),
            padding_bytes: each(self.padding_bytes, other.padding_bytes),
            trimmed_bytes: each(self.trimmed_bytes, other.trimmed_bytes),
            host_pages: each(self.host_pages, other.host_pages),
            collector_pages: each(self.collector_pages, other.collector_pages),
            erased_blocks: each(self.erased_blocks, other.erased_blocks),
            collections: each(self.collections, other.collections),
        }
    }
}

/// Of two drives together.
impl Add for FlashCounts {
    type Output = FlashCounts;

    fn add(self, other: FlashCounts) -> FlashCounts {
        self.with(other, u64::saturating_add)
    }
}

/// Since an earlier look at the same drive.
impl Sub for FlashCounts {
    type Output = FlashCounts;

    fn sub(self, earlier: FlashCounts) -> FlashCounts {
        self.with(earlier, u64::saturating_sub)
    }
}
