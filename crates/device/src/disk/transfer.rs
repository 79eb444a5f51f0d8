//! The bus beside the medium: data that come in while the arm moves, and go out while the medium delivers.

use crate::disk::mechanism::{Mechanism, Run};

/// The data of a write on their way into the buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Data {
    /// When the first sector can be written.
    pub first_ns: u64,
    /// From one sector to the next.
    pub each_ns: u64,
    /// Sectors that must be in before the medium is written at all.
    pub at_least: u64,
}

impl Data {
    pub fn in_buffer_ns(&self, index: u64) -> u64 {
        self.first_ns + index * self.each_ns
    }

    /// Time lost in revolutions because a sector passes before its data are there; `index` is the run's first sector in
    /// the request.
    pub fn lost_ns(&self, mechanism: &Mechanism, run: &Run, index: u64) -> u64 {
        let revolution_ns = mechanism.geometry.revolution_ns();
        let sector_ns = mechanism.geometry.sectors_ns(run.spot.zone, 1);
        let (mut done, mut lost_ns) = (0, 0);
        loop {
            let passes_ns = run.start_ns + done * sector_ns + lost_ns;
            let needed_ns = self.in_buffer_ns((index + done).max(self.at_least.saturating_sub(1)));
            if needed_ns > passes_ns {
                lost_ns += revolution_ns * (needed_ns - passes_ns).div_ceil(revolution_ns);
                continue;
            }
            if self.each_ns <= sector_ns {
                return lost_ns;
            }
            // The medium is faster than the bus: after so many sectors it has caught up.
            done += (passes_ns - needed_ns) / (self.each_ns - sector_ns) + 1;
            if done >= run.count {
                return lost_ns;
            }
        }
    }
}

/// The data of a read on their way to the host, at the bus's rate but no sector before it is in the buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transfer {
    pub sectors: u64,
    each_ns: u64,
    /// When the bus could begin, and what the host and the medium so far allow the end to be.
    start_ns: u64,
    end_ns: u64,
    /// Sectors that must be in the buffer before the bus begins, and the time to get the bus then.
    pub watermark: u64,
    pub reconnect_ns: u64,
    /// Sectors handed over together; 0 for single ones.
    pub chunk: u64,
}

impl Transfer {
    pub fn new(start_ns: u64, sectors: u64, each_ns: u64) -> Transfer {
        Transfer { sectors, each_ns, start_ns, end_ns: 0, watermark: 0, reconnect_ns: 0, chunk: 0 }
    }

    /// So many sectors are in the buffer already.
    pub fn held(&mut self, sectors: u64) {
        if sectors >= self.watermark {
            self.watermark = 0;
        }
    }

    /// A run's sectors come into the buffer; its first is the request's `index`th. The bus sends them in order, so the
    /// end is bound by the first and the last of the run.
    pub fn arrives(&mut self, mechanism: &Mechanism, run: &Run, index: u64) {
        let left = self.sectors - index;
        if self.chunk > 0 {
            self.chunks_arrive(mechanism, run, index);
        }
        let first_ns = run.passed_ns(mechanism, 0);
        let last_ns = run.end_ns;
        self.end_ns = self.end_ns.max(first_ns + left * self.each_ns);
        self.end_ns = self.end_ns.max(last_ns + (left - run.wrapped.min(run.count) + 1) * self.each_ns);
        if self.watermark > 0 && self.watermark <= index + run.count {
            let needed = self.watermark - 1 - index.min(self.watermark - 1);
            let there_ns = run.read_ns(mechanism, needed);
            self.start_ns = self.start_ns.max(there_ns + self.reconnect_ns);
            self.watermark = 0;
        }
    }

    /// The same in chunks: from the last sector of each, the bus has that chunk and all behind it to send.
    fn chunks_arrive(&mut self, mechanism: &Mechanism, run: &Run, index: u64) {
        let mut chunk = index / self.chunk;
        while chunk * self.chunk < index + run.count {
            let last = ((chunk + 1) * self.chunk).min(self.sectors) - 1;
            if last >= index && last < index + run.count {
                let place = last - index;
                let there_ns = run.read_ns(mechanism, place);
                self.end_ns = self.end_ns.max(there_ns + (self.sectors - chunk * self.chunk) * self.each_ns);
            }
            chunk += 1;
        }
    }

    pub fn end_ns(&self) -> u64 {
        self.end_ns.max(self.start_ns + self.sectors * self.each_ns)
    }
}
