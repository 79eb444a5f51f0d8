//! Figures that a disk's file may have, and that are seldom meant.

use crate::disk::geometry::Geometry;
use crate::disk::scheduler::Scheduler;
use crate::disk::spec::{DiskSpec, HeadOrder, Invalid, ReadAhead};

impl DiskSpec {
    /// What can be and is seldom meant: the key, and what it leads to. docs/drives.md has these traps.
    pub(crate) fn traps(&self) -> Vec<Invalid> {
        let mut traps = Vec::new();
        let mut trap = |key: &str, why: String| traps.push((key.to_owned(), why));
        let cache = &self.cache;
        let (limit, segment) = (u64::from(cache.read_ahead_sectors), u64::from(cache.segment_sectors));
        let reads = cache.segments - u32::from(cache.dedicated_write_segment);
        let track = u64::from(self.zones.iter().map(|zone| zone.sectors_per_track).max().unwrap_or(0));
        let natural = match cache.read_ahead {
            ReadAhead::None | ReadAhead::Segment => 0,
            ReadAhead::Track => track,
            ReadAhead::Cylinder => track * u64::from(self.heads),
            ReadAhead::NextTrack => 2 * track,
        };
        if cache.read_ahead == ReadAhead::None {
            if limit > 0 {
                trap("cache.read_ahead_sectors", "has no effect: read_ahead is \"none\"".to_owned());
            }
        } else if reads == 0 {
            trap("cache.read_ahead", "has no effect: there is no segment for reads".to_owned());
        } else if limit > segment {
            trap(
                "cache.read_ahead_sectors",
                format!(
                    "{limit}: more than a segment of {segment} sectors, so reading ahead drops the segment's start"
                ),
            );
        } else if limit == 0 && natural > segment {
            trap(
                "cache.read_ahead_sectors",
                format!(
                    "0 is no limit: up to {natural} sectors are read ahead into segments of {segment}, and drop their \
                     start"
                ),
            );
        }
        let one_ms = self.seek.distance_ms(1).max(self.seek.head_switch_ms);
        for (n, zone) in self.zones.iter().enumerate() {
            let sector_ms = self.revolution_ns() as f64 / 1e6 / f64::from(zone.sectors_per_track);
            let skew_ms = |sectors: u32| f64::from(sectors) * sector_ms;
            if self.heads > 1 && skew_ms(zone.track_skew_sectors) < self.seek.head_switch_ms {
                let why = "shorter than switching heads: going on to the next track costs a revolution".to_owned();
                trap(&format!("zones[{n}].track_skew_sectors"), why);
            }
            let one_ms = if self.head_order == HeadOrder::Ascending { one_ms } else { self.seek.distance_ms(1) };
            if zone.cylinders[0] < zone.cylinders[1] && skew_ms(zone.cylinder_skew_sectors) < one_ms {
                let why = "shorter than a seek over one cylinder: going on to it costs a revolution".to_owned();
                trap(&format!("zones[{n}].cylinder_skew_sectors"), why);
            }
        }
        if self.bus.queue_depth == 1 && self.controller.scheduler != Scheduler::Fcfs {
            trap("controller.scheduler", "has nothing to choose from: bus.queue_depth is 1".to_owned());
        }
        let unbounded = DiskSpec { capacity_sectors: None, ..self.clone() };
        let holds = Geometry::new(&unbounded).capacity_sectors();
        if let Some(capacity) = self.capacity_sectors.filter(|capacity| *capacity > holds) {
            trap("capacity_sectors", format!("{capacity}: the tracks hold {holds}, and no more is offered"));
        }
        traps
    }
}
