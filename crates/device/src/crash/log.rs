//! The log of what a drive was asked for.

use std::sync::Arc;

/// Bytes that a drive writes whole or not at all.
pub const SECTOR_BYTES: usize = 512;

/// What discarded sectors hold afterwards: nobody may rely on anything.
pub(super) const DISCARDED: [u8; SECTOR_BYTES] = [0xD1; SECTOR_BYTES];

/// A write that was asked for: whole sectors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// Where; a multiple of [`SECTOR_BYTES`].
    pub at_byte: u64,
    /// What; as many bytes as whole sectors have.
    pub bytes: Arc<[u8]>,
    /// Entries that the log had when the drive got the request: it is under way from then on.
    pub submitted_after: u64,
    /// Whether the drive has reported it as being on the medium, and not in a cache that the power failure empties.
    pub durable: bool,
}

/// An entry of a log: requests in the order in which they were completed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A write.
    Write(Write),
    /// A flush: what was complete when the drive got it is on the medium.
    Flush {
        /// Entries that the log had when the drive got it.
        submitted_after: u64,
    },
    /// A discard, entered when the drive got it: what was there may be lost from then on.
    Discard {
        /// Where.
        at_byte: u64,
        /// How much.
        len_bytes: u64,
    },
}

impl Event {
    /// Bytes that it carries: what a log takes of memory.
    pub fn held_bytes(&self) -> u64 {
        match self {
            Event::Write(write) => write.bytes.len() as u64,
            Event::Flush { .. } | Event::Discard { .. } => 0,
        }
    }
}
