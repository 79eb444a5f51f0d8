//! What was measured as a drive's file.

use super::Measurement;
use super::arm::Cylinders;
use crate::disk::spec::{BusSpec, CacheSpec, DiskSpec, ReadAhead, SeekSpec, ZoneSpec};
use crate::extract;
use std::collections::BTreeMap;

impl Measurement {
    /// The file of the drive, each figure with its source; nothing if this is no disk with an arm.
    pub fn file(&self) -> Option<String> {
        let spec = self.spec()?;
        let measured = format!("measured on {} by `fsage drive measure`, seed {}", self.device, self.seed);
        let estimate = |why: &str| format!("[estimate] {why}");
        let mut sources: BTreeMap<String, String> = BTreeMap::new();
        let mut source = |key: &str, text: String| drop(sources.insert(key.to_owned(), text));
        source("disk.sector_bytes", format!("{measured}: the unit of its addresses"));
        source("disk.capacity_sectors", format!("{measured}: its size"));
        source("disk.heads", self.surfaces_source(&measured));
        source("disk.rpm", format!("{measured}: reads that go backwards"));
        source(
            "disk.zones",
            format!("{measured}: tracks at {} places; where a zone begins is not known", self.tracks.len()),
        );
        source("disk.seek", format!("{measured}: the least time of random pairs of reads by distance"));
        source(
            "disk.seek.head_switch_ms",
            match self.head_switch_ns {
                Some(_) => format!("{measured}: the least time between tracks of a cylinder, at most their skew"),
                None => estimate("surfaces were not told apart"),
            },
        );
        source("disk.seek.write_settle_ms", estimate("writes are not measured; a usual figure"));
        source("disk.controller", format!("{measured}: the least time of a read on the same track"));
        source("disk.controller.read_hit_after_read_ms", self.hit_source(&measured));
        source("disk.controller.read_hit_after_write_ms", estimate("writes are not measured; as after a read"));
        source("disk.controller.read_miss_after_write_ms", estimate("writes are not measured; as after a read"));
        source("disk.controller.write_after_read_ms", estimate("writes are not measured; as reads that miss"));
        source("disk.controller.write_after_write_ms", estimate("writes are not measured; as reads that miss"));
        source("disk.cache", format!("{measured}: which reads are hits"));
        if self.buffer.segment_sectors.is_none() {
            source("disk.cache.segment_sectors", estimate("what was read does not stay; as much as is read ahead"));
        }
        source("disk.cache.write_segments", estimate("writes are not measured"));
        source("disk.bus", self.hit_source(&measured));
        source("disk.bus.write_sector_ms", estimate("writes are not measured; as for reads"));
        source("disk.bus.max_transfer_sectors", estimate("not measured; 16 bits"));
        source("disk.bus.queue_depth", estimate("not measured: one read at a time"));
        // What has its default value is not in the file, and needs no source.
        let leaves = crate::drive::leaves(&spec);
        sources.retain(|key, _| {
            let below = format!("{key}.");
            leaves.keys().any(|leaf| leaf == key || leaf.starts_with(&below))
        });
        let comment = [
            format!("Made by `fsage drive measure` from timed reads of {}.", self.device),
            "It cannot know: anything about writes, the drive's own cache of writes, spares and defects, where zones \
             begin,"
                .to_owned(),
            "the angles between zones, and what the drive does with several commands at once.".to_owned(),
        ];
        let summary = format!("A disk of {:.0} rpm, measured by reading it.", spec.rpm);
        Some(crate::written(&self.device, &summary, &comment, &spec, &sources))
    }

    fn surfaces_source(&self, measured: &str) -> String {
        match self.head_switch_ns {
            Some(_) => format!("{measured}: how often the skew is that of a cylinder"),
            None => "[estimate] surfaces were not told apart: one track is taken for a cylinder".to_owned(),
        }
    }

    fn hit_source(&self, measured: &str) -> String {
        match self.buffer.hit_ns {
            Some(_) => format!("{measured}: hits of 1 to 16 sectors"),
            None => "[estimate] no read was a hit".to_owned(),
        }
    }

    /// The figures as the model takes them.
    fn spec(&self) -> Option<DiskSpec> {
        let rotation = self.rotation.filter(|_| self.arm)?;
        // Downwards, so that what just fits still does.
        let ms = |ns: f64| (ns / 1e3).floor() / 1e3;
        let capacity = self.capacity_bytes / u64::from(self.sector_bytes);
        let heads = self.heads;
        let cylinders = Cylinders::new(capacity, heads, &self.tracks);
        let mut zones: Vec<ZoneSpec> = Vec::new();
        for (tracks, (first, count)) in self.tracks.iter().zip(cylinders.spans()) {
            let sector_ns = rotation.revolution_ns / f64::from(tracks.sectors.max(1));
            let skew = |ns: Option<f64>| ns.map_or(0, |ns| (ns / sector_ns).round() as u32 % tracks.sectors.max(1));
            let last = u32::try_from(first + count).ok()?.checked_sub(1)?;
            match zones.last_mut().filter(|zone| zone.sectors_per_track == tracks.sectors) {
                Some(zone) => zone.cylinders[1] = last,
                None => zones.push(ZoneSpec {
                    cylinders: [u32::try_from(first).ok()?, last],
                    sectors_per_track: tracks.sectors,
                    track_skew_sectors: skew(tracks.track_skew_ns),
                    cylinder_skew_sectors: skew(tracks.cylinder_skew_ns),
                    first_angle_sectors: 0,
                    lead_sectors: 0,
                    spares: 0,
                    slips: Vec::new(),
                }),
            }
        }
        // A maker skews tracks so that a switch fits. One that is measured a little longer than that would lose a
        // revolution at each track.
        let least_skew_ns = |of: fn(&super::Tracks) -> Option<f64>| {
            let whole = |tracks: &super::Tracks| {
                let sector_ns = rotation.revolution_ns / f64::from(tracks.sectors.max(1));
                of(tracks).map(|ns| (ns / sector_ns).round() * sector_ns)
            };
            self.tracks.iter().filter_map(whole).fold(f64::INFINITY, f64::min)
        };
        let next_ns = least_skew_ns(|tracks| tracks.cylinder_skew_ns);
        let seek_ms = |point: &super::SeekPoint| {
            ms(if point.cylinders == 1 { point.seek_ns.min(next_ns) } else { point.seek_ns })
        };
        let sector_ns = self.buffer.sector_ns.unwrap_or(0.0);
        // On a track the last of a read is data; the rest of the least time is the command's.
        let miss_ms =
            ms((self.miss_ns - sector_ns - rotation.revolution_ns / f64::from(self.tracks.first()?.sectors.max(1)))
                .max(0.0));
        let hit_ms = self.buffer.hit_ns.map_or(miss_ms, ms);
        let ahead = self.buffer.read_ahead_sectors.unwrap_or(0);
        let segment_sectors = self.buffer.segment_sectors.unwrap_or(ahead).max(ahead).max(1);
        let mut spec = extract::guess(&[]);
        spec.sector_bytes = self.sector_bytes;
        spec.capacity_sectors = Some(capacity);
        spec.heads = heads;
        spec.rpm = (rotation.rpm() * 10.0).round() / 10.0;
        spec.zones = zones;
        spec.seek = SeekSpec {
            table: self.seeks.iter().map(|point| (point.cylinders, seek_ms(point))).collect(),
            short: None,
            long: None,
            knee_cylinders: 0,
            inward_by_distance: Vec::new(),
            head_switch_ms: self
                .head_switch_ns
                .map_or(0.0, |ns| ms(ns.min(least_skew_ns(|tracks| tracks.track_skew_ns)))),
            write_settle_ms: 0.5,
            write_settle_by_distance: Vec::new(),
            write_settle_spread_by_distance: Vec::new(),
        };
        spec.controller.read_hit_after_read_ms = hit_ms;
        spec.controller.read_hit_after_write_ms = hit_ms;
        spec.controller.read_miss_after_read_ms = miss_ms;
        spec.controller.read_miss_after_write_ms = miss_ms;
        spec.controller.write_after_read_ms = miss_ms;
        spec.controller.write_after_write_ms = miss_ms;
        spec.cache = CacheSpec {
            segments: self.buffer.segments.unwrap_or(0),
            segment_sectors,
            write_segments: self.buffer.segments.map_or(0, |segments| segments.min(1)),
            read_ahead: if ahead > 0 { ReadAhead::Segment } else { ReadAhead::None },
            read_ahead_sectors: ahead,
            drop_when_read: !self.buffer.keeps && ahead > 0,
            ..spec.cache
        };
        spec.bus = BusSpec {
            read_sector_ms: sector_ns.round() / 1e6,
            write_sector_ms: sector_ns.round() / 1e6,
            max_transfer_sectors: 65_535,
            queue_depth: 1,
        };
        Some(spec)
    }
}
