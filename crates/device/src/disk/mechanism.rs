//! The arm and the platters: when sectors pass under the head.
//!
//! The rotational position is a function of absolute time (phase 0 at time 0), so that it is kept between requests.

use crate::Lbn;
use crate::disk::geometry::{Geometry, Spot};
use crate::disk::seek::Seek;

/// Rounding to whole nanoseconds, sector after sector, must not cost a revolution: a sector missed by less than this is
/// not missed.
const SLACK_NS: u64 = 1_000;

/// Where the arm is: cylinder and head.
pub(crate) type Arm = (u32, u32);

/// Consecutive blocks on one track, in the order of their numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    /// Blocks.
    pub first: Lbn,
    pub count: u64,
    /// When the first one begins to pass under the head.
    pub start_ns: u64,
    /// When the last one has passed. Less than the first's passing plus the run's length where the head arrived within
    /// the run and took its end first.
    pub end_ns: u64,
    /// Blocks at the run's beginning that are taken last, for that reason; `count` otherwise.
    pub wrapped: u64,
    /// Where it is.
    pub spot: Spot,
}

impl Run {
    /// When the head has passed the run's `index`th block, of those not taken ahead.
    pub fn passed_ns(&self, mechanism: &Mechanism, index: u64) -> u64 {
        self.start_ns + mechanism.geometry.sectors_ns(self.spot.zone, index + 1)
    }

    /// When the run's `index`th block has been read at the latest, in whatever order they are taken.
    pub fn read_ns(&self, mechanism: &Mechanism, index: u64) -> u64 {
        if index >= self.wrapped || index + 1 == self.count { self.end_ns } else { self.passed_ns(mechanism, index) }
    }

    pub fn arm(&self) -> Arm {
        (self.spot.pbn.cylinder, self.spot.pbn.head)
    }
}

/// Arm movement and rotation.
#[derive(Clone, Debug)]
pub(crate) struct Mechanism {
    pub geometry: Geometry,
    pub seek: Seek,
    /// Whether the rotational position counts; if not, every access waits half a revolution.
    pub rotates: bool,
}

/// How a run is reached.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Approach {
    pub write: bool,
    /// The first run of a request, as opposed to one that continues it.
    pub first: bool,
    /// Seeks take at least so long.
    pub minimum_ns: u64,
    /// The access begins no sooner than this.
    pub not_before_ns: u64,
    /// Whether the sectors are taken as they come.
    pub immediate: bool,
}

impl Mechanism {
    fn latency_ns(&self, angle_ns: u64, at_ns: u64, first: bool) -> u64 {
        let revolution_ns = self.geometry.revolution_ns();
        if !self.rotates {
            return if first { revolution_ns / 2 } else { 0 };
        }
        let now_ns = at_ns % revolution_ns;
        let wait_ns = if angle_ns >= now_ns { angle_ns - now_ns } else { angle_ns + revolution_ns - now_ns };
        if wait_ns + SLACK_NS > revolution_ns { 0 } else { wait_ns }
    }

    /// Moves the arm to a block's track and waits for it; the blocks up to `end` that are on the same track.
    pub fn run(&self, arm: Arm, at_ns: u64, lbn: Lbn, end: Lbn, how: Approach) -> Run {
        let spot = self.geometry.spot(lbn);
        let to = (spot.pbn.cylinder, spot.pbn.head);
        let there_ns = at_ns + self.seek.move_ns(arm, to, how.write).max(how.minimum_ns);
        let there_ns = there_ns.max(how.not_before_ns);
        let angle_ns = self.geometry.angle_ns(&spot);
        let wait_ns = self.latency_ns(angle_ns, there_ns, how.first);
        let last = Lbn(end.0.min(self.geometry.track_end(&spot).0).max(lbn.0 + 1) - 1);
        let span = self.geometry.span(&spot, last) + 1;
        let count = last.0 - lbn.0 + 1;
        let span_ns = self.geometry.sectors_ns(spot.zone, span);
        let start_ns = there_ns + wait_ns;
        let revolution_ns = self.geometry.revolution_ns();
        if how.immediate && self.rotates && wait_ns + span_ns > revolution_ns {
            // The head arrives within the run: what it finds first is taken first, the beginning after a turn.
            let missed_ns = revolution_ns - wait_ns;
            let sector_ns = self.geometry.sectors_ns(spot.zone, 1).max(1);
            let wrapped = missed_ns.div_ceil(sector_ns).min(count);
            let end_ns = start_ns + self.geometry.sectors_ns(spot.zone, wrapped);
            return Run { first: lbn, count, start_ns, end_ns, wrapped, spot };
        }
        Run { first: lbn, count, start_ns, end_ns: start_ns + span_ns, wrapped: count, spot }
    }

    /// Seek and rotational delay before a block could be read or written.
    pub fn positioning_ns(&self, arm: Arm, at_ns: u64, lbn: Lbn, write: bool) -> u64 {
        let spot = self.geometry.spot(lbn);
        let move_ns = self.seek.move_ns(arm, (spot.pbn.cylinder, spot.pbn.head), write);
        move_ns + self.latency_ns(self.geometry.angle_ns(&spot), at_ns + move_ns, true)
    }
}
