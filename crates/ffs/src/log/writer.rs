//! Writing a log while the file system is mounted: round its ring, one record behind the other.
//!
//! What lives here: where the next record goes, and how much room there is. What may not: what is in a record, and who
//! waits for it.

use super::format::SECTOR;
use super::replay::LogState;
use kernel::program::IoId;
use kernel::{Cx, Pbn};

/// What of a log is taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogWriter {
    place: LogState,
    /// Sectors that it has had, all in all: where the next record goes, not going round.
    head: u64,
    /// The same of the first record that a replay would need.
    tail: u64,
    /// The number of the next record.
    seq: u64,
}

impl LogWriter {
    pub(crate) fn new(place: LogState) -> LogWriter {
        LogWriter { place, head: place.at, tail: place.at, seq: place.seq }
    }

    /// The log as whoever mounts next finds it, if everything is in its place.
    pub(crate) fn left(&self) -> LogState {
        LogState { at: self.head % self.place.sectors, seq: self.seq, ..self.place }
    }

    /// The number of the next record.
    pub(crate) fn seq(&self) -> u64 {
        self.seq
    }

    /// All its sectors.
    pub(crate) fn sectors(&self) -> u64 {
        self.place.sectors
    }

    /// Its sectors that are taken.
    pub(crate) fn used(&self) -> u64 {
        self.head - self.tail
    }

    /// Starts writing a record of so many sectors.
    pub(crate) fn append(&mut self, cx: &mut Cx, sectors: u64, bytes: Option<&[u8]>) -> Vec<IoId> {
        let LogState { ring, sectors: all, .. } = self.place;
        assert!(self.used() + sectors <= all, "the log is full within an operation");
        let at = self.head % all;
        // Round the end of the ring.
        let first = sectors.min(all - at);
        let (front, back) = bytes.map(|bytes| bytes.split_at((first * SECTOR) as usize)).unzip();
        let mut requests = cx.write_through(Pbn(ring.0 + at), first * SECTOR, front);
        if first < sectors {
            requests.extend(cx.write_through(ring, (sectors - first) * SECTOR, back));
        }
        self.head += sectors;
        self.seq += 1;
        requests
    }

    /// What was written until then is in its place: its room may be used again.
    pub(crate) fn free_until(&mut self, then: LogWriter) {
        self.tail = then.head;
    }
}
