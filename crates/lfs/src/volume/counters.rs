//! What a log-structured file system has done, and what that has cost.

use crate::cleaner::counters::CleanerCounters;

/// What a log-structured file system has done since it was mounted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counters {
    /// Partial segments written.
    pub partial_segments: u64,
    /// Checkpoints made.
    pub checkpoints: u64,
    /// Superblocks written.
    pub superblocks: u64,
    /// What the cleaner has done.
    pub cleaner: CleanerCounters,
    /// Bytes that the log has taken: new data, what the cleaner has moved, and all that goes with them.
    pub log_bytes: u64,
}

impl Counters {
    /// Bytes moved to and from the disk for each byte of new data in the log (Rosenblum and Ousterhout, 1992, section
    /// 3.4): 1 if nothing had to be cleaned.
    pub fn write_cost(&self) -> f64 {
        let new = self.log_bytes.saturating_sub(self.cleaner.written_bytes);
        if new == 0 {
            return 1.0;
        }
        (self.log_bytes + self.cleaner.plugged_bytes + self.cleaner.read_bytes) as f64 / new as f64
    }
}
