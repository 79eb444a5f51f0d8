//! What cleaning has cost.

/// Classes of the histogram of utilisations.
const CLASSES: usize = 20;

/// What the cleaner has done.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CleanerCounters {
    /// Segments cleaned that something was live in.
    pub segments: u64,
    /// Sum of their utilisations.
    pub utilisation_sum: f64,
    /// How many were cleaned at which utilisation: twenty classes of 5 %.
    pub utilisations: [u64; CLASSES],
    /// Bytes read: whole segments.
    pub read_bytes: u64,
    /// Bytes written: what was live, and what goes with it.
    pub written_bytes: u64,
    /// Of the segments, those emptied into the holes of others.
    pub plugged_segments: u64,
    /// Blocks written into holes.
    pub plugged_blocks: u64,
    /// Bytes of them, and of the summaries written again for them.
    pub plugged_bytes: u64,
    /// How often an operation had to wait for room.
    pub stalls: u64,
    /// How often it had to wait until all segments worth cleaning were clean.
    pub sweeps: u64,
}

impl CleanerCounters {
    pub(super) fn count(&mut self, utilisation: f64) {
        self.segments += 1;
        self.utilisation_sum += utilisation;
        let class = (utilisation * CLASSES as f64) as usize;
        if let Some(count) = self.utilisations.get_mut(class.min(CLASSES - 1)) {
            *count += 1;
        }
    }

    /// Mean utilisation of the segments cleaned.
    pub fn mean_utilisation(&self) -> f64 {
        if self.segments == 0 { 0.0 } else { self.utilisation_sum / self.segments as f64 }
    }
}
