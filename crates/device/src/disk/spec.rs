//! The figures that describe a hard disk, as they stand in its file.

use crate::disk::scheduler::Scheduler;
use serde::{Deserialize, Serialize};

/// A hard disk. Times in files are milliseconds, as in data sheets; inside, nanoseconds.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct DiskSpec {
    /// Bytes of a sector.
    pub sector_bytes: u32,
    /// Blocks the drive offers, where that is less than its tracks hold.
    #[serde(default, skip_serializing_if = "is_default")]
    pub capacity_sectors: Option<u64>,
    /// Surfaces with data.
    pub heads: u32,
    /// Revolutions a minute.
    pub rpm: f64,
    /// Share of blocks (0 to 0.5) where a read or a write that waits for the medium succeeds only after
    /// `retry_revolutions` more. Which blocks these are follows from their numbers, so that it is the same ones each
    /// time.
    #[serde(default, skip_serializing_if = "is_default")]
    pub retry_share: f64,
    /// Revolutions that such a request loses.
    #[serde(default, skip_serializing_if = "is_default")]
    pub retry_revolutions: u32,
    /// How spare sectors are spread.
    #[serde(default, skip_serializing_if = "is_default")]
    pub sparing: Sparing,
    /// Cylinders of a range, for [`Sparing::SectorsPerRange`].
    #[serde(default, skip_serializing_if = "is_default")]
    pub range_cylinders: u32,
    /// In which order the surfaces of a cylinder are used.
    #[serde(default, skip_serializing_if = "is_default")]
    pub head_order: HeadOrder,
    /// Zones from the outer edge.
    pub zones: Vec<ZoneSpec>,
    /// Moving the arm.
    pub seek: SeekSpec,
    /// The electronics' times.
    pub controller: ControllerSpec,
    /// The buffer.
    pub cache: CacheSpec,
    /// The host link.
    pub bus: BusSpec,
}

/// A file that is written leaves out what it would be read as anyway.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl DiskSpec {
    /// Time of a revolution.
    pub fn revolution_ns(&self) -> u64 {
        (60e9 / self.rpm).round() as u64
    }
}

/// In which order the surfaces of a cylinder are used. On a serpentine one the first track of a cylinder is on the
/// surface of the last track of the cylinder before, so that going on needs no head switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum HeadOrder {
    /// From surface 0 on every cylinder.
    #[default]
    Ascending,
    /// Backwards on odd cylinders of the disk.
    Serpentine,
    /// Backwards on every second cylinder of a zone.
    SerpentineInZone,
}

/// How spare sectors are spread over the medium.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sparing {
    /// No spares.
    #[default]
    None,
    /// Whole tracks at the end of each zone; slips are track numbers of the zone.
    Track,
    /// Sectors at the end of each track.
    SectorsPerTrack,
    /// Sectors at the end of each cylinder.
    SectorsPerCylinder,
    /// Sectors at the end of each range of cylinders.
    SectorsPerRange,
    /// Sectors at the end of each zone.
    SectorsPerZone,
}

/// A zone.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ZoneSpec {
    /// First and last cylinder.
    pub cylinders: [u32; 2],
    /// Sectors on each track.
    pub sectors_per_track: u32,
    /// Sectors by which the first sector of the next track on the cylinder comes later.
    #[serde(default, skip_serializing_if = "is_default")]
    pub track_skew_sectors: u32,
    /// The same for the next cylinder.
    #[serde(default, skip_serializing_if = "is_default")]
    pub cylinder_skew_sectors: u32,
    /// Where on its track the zone's first sector is.
    #[serde(default, skip_serializing_if = "is_default")]
    pub first_angle_sectors: u32,
    /// Blocks' worth of space before the first block.
    #[serde(default, skip_serializing_if = "is_default")]
    pub lead_sectors: u64,
    /// Spares of each region (tracks for [`Sparing::Track`], sectors otherwise).
    #[serde(default, skip_serializing_if = "is_default")]
    pub spares: u32,
    /// Slipped defects, ascending: sector numbers of the zone (tracks for [`Sparing::Track`]).
    #[serde(default, skip_serializing_if = "is_default")]
    pub slips: Vec<u64>,
}

/// Moving the arm: a measured table, or a curve whose first distances may be a table.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SeekSpec {
    /// Measured points `[cylinders, ms]`, ascending; straight lines between them. For a drive with `short`, they cover
    /// only the first distances.
    #[serde(default, skip_serializing_if = "is_default")]
    pub table: Vec<(u32, f64)>,
    /// `[a, b]`: `a + b * sqrt(d)` ms up to `knee_cylinders`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub short: Option<[f64; 2]>,
    /// `[a, b]`: `a + b * d` ms beyond.
    #[serde(default, skip_serializing_if = "is_default")]
    pub long: Option<[f64; 2]>,
    /// Where the long curve begins.
    #[serde(default, skip_serializing_if = "is_default")]
    pub knee_cylinders: u32,
    /// `[cylinders, ms]`, ascending: how much longer a seek inward (to higher cylinders) takes than one outward over
    /// the same distance, of which table and curve are then. Negative if outward is slower.
    #[serde(default, skip_serializing_if = "is_default")]
    pub inward_by_distance: Vec<(u32, f64)>,
    /// Switching heads.
    pub head_switch_ms: f64,
    /// Added to each seek or head switch before a write; may be negative where the table was measured with writes.
    #[serde(default, skip_serializing_if = "is_default")]
    pub write_settle_ms: f64,
    /// `[cylinders, ms]`, ascending: settling by distance, where it is not the same for all; straight lines between,
    /// the ends drawn on level.
    #[serde(default, skip_serializing_if = "is_default")]
    pub write_settle_by_distance: Vec<(u32, f64)>,
    /// `[cylinders, ms]`, ascending: by how much settling before a write varies from seek to seek. A seek's share of
    /// it, 0 to 1 and all alike likely, follows from the blocks that the arm comes from and goes to, so that the same
    /// requests take the same time again.
    #[serde(default, skip_serializing_if = "is_default")]
    pub write_settle_spread_by_distance: Vec<(u32, f64)>,
}

/// The electronics' times. "After" is the direction of the request before.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ControllerSpec {
    /// A read found in the buffer.
    pub read_hit_after_read_ms: f64,
    #[allow(missing_docs)]
    pub read_hit_after_write_ms: f64,
    /// A read that needs the medium.
    pub read_miss_after_read_ms: f64,
    #[allow(missing_docs)]
    pub read_miss_after_write_ms: f64,
    /// A write.
    pub write_after_read_ms: f64,
    #[allow(missing_docs)]
    pub write_after_write_ms: f64,
    /// A write that neither goes on where the one before ended nor begins in what the buffer holds, where such writes
    /// have an overhead of their own (DiskSim's write misses).
    #[serde(default, skip_serializing_if = "is_default")]
    pub write_miss_after_read_ms: Option<f64>,
    #[allow(missing_docs)]
    #[serde(default, skip_serializing_if = "is_default")]
    pub write_miss_after_write_ms: Option<f64>,
    /// `[cylinders, ms]`, ascending from 0: the overhead of a write after a read that goes to another track, by how far
    /// the arm must go (0: another surface of the cylinder). The last entry whose distance is not greater counts; it
    /// takes the place of `write_after_read_ms`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub write_move_after_read: Vec<(u32, f64)>,
    /// The same of a write after a write.
    #[serde(default, skip_serializing_if = "is_default")]
    pub write_move_after_write: Vec<(u32, f64)>,
    /// A read that the buffer has and that does not go on where the request before ended, where such reads have an
    /// overhead of their own; in place of `read_hit_after_read_ms`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub read_hit_elsewhere_ms: Option<f64>,
    /// After a read's data.
    #[serde(default, skip_serializing_if = "is_default")]
    pub read_completion_ms: f64,
    /// After a write's data (or its medium access, if that is waited for).
    #[serde(default, skip_serializing_if = "is_default")]
    pub write_completion_ms: f64,
    /// Before each transfer of data.
    #[serde(default, skip_serializing_if = "is_default")]
    pub data_preparation_ms: f64,
    /// Getting the bus back for the data of a read, or the completion of a write.
    #[serde(default, skip_serializing_if = "is_default")]
    pub reselect_ms: f64,
    /// Letting the bus go between command and data of a read.
    #[serde(default, skip_serializing_if = "is_default")]
    pub read_disconnect_after_read_ms: f64,
    #[allow(missing_docs)]
    #[serde(default, skip_serializing_if = "is_default")]
    pub read_disconnect_after_write_ms: f64,
    /// Letting the bus go between data and completion of a write.
    #[serde(default, skip_serializing_if = "is_default")]
    pub write_disconnect_ms: f64,
    /// From a write's command to the start of its seek, where that is not the whole overhead.
    #[serde(default, skip_serializing_if = "is_default")]
    pub write_seek_ms: Option<f64>,
    /// The same of a write after a write, where that is another.
    #[serde(default, skip_serializing_if = "is_default")]
    pub write_seek_after_write_ms: Option<f64>,
    /// From a read's command to the start of its seek, likewise.
    #[serde(default, skip_serializing_if = "is_default")]
    pub read_seek_ms: Option<f64>,
    /// The same of a read after a write, where that is another.
    #[serde(default, skip_serializing_if = "is_default")]
    pub read_seek_after_write_ms: Option<f64>,
    /// Whether the bus is kept from command to completion.
    #[serde(default, skip_serializing_if = "is_default")]
    pub never_disconnect: bool,
    /// The least time between command and end of seek of a write.
    #[serde(default, skip_serializing_if = "is_default")]
    pub minimum_write_seek_ms: f64,
    /// The extra disconnection of writes that follow a write elsewhere, if the drive has that habit.
    #[serde(default, skip_serializing_if = "is_default")]
    pub extra_write_disconnect: Option<ExtraDisconnectSpec>,
    /// How requests are chosen from the drive's queue.
    #[serde(default, skip_serializing_if = "is_default")]
    pub scheduler: Scheduler,
}

/// A write that lets the bus go before taking its data.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ExtraDisconnectSpec {
    /// From the command to the first disconnection.
    pub command_ms: f64,
    /// The first disconnection.
    pub first_disconnect_ms: f64,
    /// From there to the reconnection.
    pub gap_ms: f64,
    /// The disconnection after the data.
    pub second_disconnect_ms: f64,
    /// Getting the bus back after that.
    pub reselect_ms: f64,
    /// From the command to the start of the seek, beyond `command_ms`.
    pub seek_delay_ms: f64,
}

/// How far a drive reads ahead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReadAhead {
    /// Not at all.
    #[default]
    None,
    /// To the end of the track.
    Track,
    /// To the end of the cylinder.
    Cylinder,
    /// Until the limit is reached or the segment is full.
    Segment,
    /// To the end of the track; of the next one too if the segment begins on an earlier track.
    NextTrack,
}

/// When a write is reported as done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WriteReport {
    /// When it is on the medium.
    #[default]
    Medium,
    /// When its data are in the buffer.
    Buffer,
}

/// The buffer.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct CacheSpec {
    /// Segments; 0 for no cache.
    pub segments: u32,
    /// Sectors of each.
    pub segment_sectors: u32,
    /// Segments that may hold data not yet on the medium.
    pub write_segments: u32,
    /// Whether one of the segments serves writes only, and its data no reads.
    #[serde(default, skip_serializing_if = "is_default")]
    pub dedicated_write_segment: bool,
    /// Reading ahead.
    #[serde(default, skip_serializing_if = "is_default")]
    pub read_ahead: ReadAhead,
    /// Whether a read that begins with the very sector that is being read ahead joins in; if not, it starts anew.
    #[serde(default, skip_serializing_if = "is_default")]
    pub join_read_ahead: bool,
    /// The most sectors read ahead of a request.
    #[serde(default, skip_serializing_if = "is_default")]
    pub read_ahead_sectors: u32,
    /// Whether a hit restarts reading ahead that has reached its limit.
    #[serde(default, skip_serializing_if = "is_default")]
    pub read_ahead_on_hit: bool,
    /// Share of a read that is in the buffer before its transfer begins (0 to 1).
    #[serde(default, skip_serializing_if = "is_default")]
    pub read_watermark: f64,
    /// Whether data sent to the host are dropped from the buffer, so that only what was read ahead can be hit.
    #[serde(default, skip_serializing_if = "is_default")]
    pub drop_when_read: bool,
    /// Sectors in which a read is handed to the bus, each when all of it is in the buffer; 0 for single sectors.
    #[serde(default, skip_serializing_if = "is_default")]
    pub read_chunk_sectors: u32,
    /// Sectors (or the whole write, if that is less) that must be in the buffer before the medium is written.
    #[serde(default, skip_serializing_if = "is_default")]
    pub write_start_sectors: u32,
    /// From a sector's arrival in the buffer until it can be written.
    #[serde(default, skip_serializing_if = "is_default")]
    pub write_start_ms: f64,
    /// Whether a read takes the sectors of a track in the order in which they come by ("zero latency").
    #[serde(default, skip_serializing_if = "is_default")]
    pub immediate_read: bool,
    /// The same for writes.
    #[serde(default, skip_serializing_if = "is_default")]
    pub immediate_write: bool,
    /// When a write is reported.
    #[serde(default, skip_serializing_if = "is_default")]
    pub write_report: WriteReport,
}

/// The host link.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct BusSpec {
    /// Time of a sector from the drive.
    pub read_sector_ms: f64,
    /// Time of a sector to the drive.
    pub write_sector_ms: f64,
    /// The most sectors of one command.
    pub max_transfer_sectors: u32,
    /// Commands the drive queues; 1 for none.
    pub queue_depth: u32,
}

/// Milliseconds of a file as nanoseconds; negative ones (allowed for settling only) are kept apart by the caller.
pub(crate) fn ns(ms: f64) -> u64 {
    (ms * 1e6).round().max(0.0) as u64
}

/// A value that cannot be, and its key.
pub(crate) type Invalid = (String, String);

impl DiskSpec {
    /// Everything a model relies on; the key and what is wrong with it.
    pub(crate) fn check(&self) -> Result<(), Invalid> {
        let bad = |key: &str, why: String| Err((key.to_owned(), why));
        if !self.sector_bytes.is_power_of_two() || !(128..=65536).contains(&self.sector_bytes) {
            return bad("sector_bytes", format!("{} is not a power of two from 128 to 65536", self.sector_bytes));
        }
        if !(1..=1024).contains(&self.heads) {
            return bad("heads", format!("{}: 1 to 1024", self.heads));
        }
        if !(self.rpm >= 100.0 && self.rpm <= 100_000.0) {
            return bad("rpm", format!("{}: 100 to 100000", self.rpm));
        }
        if !(0.0..=0.5).contains(&self.retry_share) {
            return bad("retry_share", format!("{}: 0 to 0.5", self.retry_share));
        }
        if self.retry_revolutions > 1000 {
            return bad("retry_revolutions", format!("{}: at most 1000", self.retry_revolutions));
        }
        if self.zones.is_empty() {
            return bad("zones", "there is none".into());
        }
        if self.sparing == Sparing::SectorsPerRange && self.range_cylinders == 0 {
            return bad("range_cylinders", "sparing per range needs the number of cylinders of a range".into());
        }
        let mut next_cylinder = 0;
        for (n, zone) in self.zones.iter().enumerate() {
            zone.check(self, next_cylinder).map_err(|(key, why)| (format!("zones[{n}].{key}"), why))?;
            next_cylinder = zone.cylinders[1] + 1;
        }
        if self.capacity_sectors == Some(0) {
            return bad("capacity_sectors", "0: leave it out or give the blocks of the drive".into());
        }
        self.seek.check().map_err(|(key, why)| (format!("seek.{key}"), why))?;
        self.controller.check().map_err(|(key, why)| (format!("controller.{key}"), why))?;
        self.cache.check().map_err(|(key, why)| (format!("cache.{key}"), why))?;
        self.bus.check().map_err(|(key, why)| (format!("bus.{key}"), why))
    }
}

/// Cylinders a model has at most: its seek table has an entry for each.
pub(crate) const MAX_CYLINDERS: u32 = 4_000_000;

impl ZoneSpec {
    fn check(&self, disk: &DiskSpec, next_cylinder: u32) -> Result<(), Invalid> {
        let bad = |key: &str, why: String| Err((key.to_owned(), why));
        let [first, last] = self.cylinders;
        if first < next_cylinder || last < first || last >= MAX_CYLINDERS {
            return bad(
                "cylinders",
                format!("[{first}, {last}]: ascending, from {next_cylinder}, below {MAX_CYLINDERS}"),
            );
        }
        if !(1..=1_000_000).contains(&self.sectors_per_track) {
            return bad("sectors_per_track", format!("{}: 1 to 1000000", self.sectors_per_track));
        }
        let spt = u64::from(self.sectors_per_track);
        for (key, skew) in [
            ("track_skew_sectors", self.track_skew_sectors),
            ("cylinder_skew_sectors", self.cylinder_skew_sectors),
            ("first_angle_sectors", self.first_angle_sectors),
        ] {
            if u64::from(skew) > spt {
                return bad(key, format!("{skew}: more than the {spt} sectors of a track"));
            }
        }
        let tracks = u64::from(last - first + 1) * u64::from(disk.heads);
        let cylinder = spt * u64::from(disk.heads);
        let (unit, units_of_zone, units_of_region) = match disk.sparing {
            Sparing::None | Sparing::SectorsPerZone => (1, tracks * spt, tracks * spt),
            Sparing::Track => (spt, tracks, tracks),
            Sparing::SectorsPerTrack => (1, tracks * spt, spt),
            Sparing::SectorsPerCylinder => (1, tracks * spt, cylinder),
            Sparing::SectorsPerRange => {
                (1, tracks * spt, (cylinder * u64::from(disk.range_cylinders)).min(tracks * spt))
            }
        };
        let spares = if disk.sparing == Sparing::None { 0 } else { u64::from(self.spares) };
        if spares >= units_of_region {
            return bad("spares", format!("{spares}: all of a region's {units_of_region}"));
        }
        if self.lead_sectors >= (units_of_zone - spares) * unit {
            return bad("lead_sectors", format!("{}: the whole zone", self.lead_sectors));
        }
        if !self.slips.is_sorted_by(|a, b| a < b) || self.slips.last().is_some_and(|&last| last >= units_of_zone) {
            return bad("slips", format!("not ascending, or not below {units_of_zone}"));
        }
        // A region's slips must fit into its spares, or two blocks would share a place.
        for region in self.slips.chunk_by(|a, b| a / units_of_region == b / units_of_region) {
            if region.len() as u64 > spares {
                return bad("slips", format!("{} of them in a region with {spares} spares", region.len()));
            }
        }
        Ok(())
    }
}

fn time(key: &str, ms: f64) -> Result<(), Invalid> {
    if (0.0..=60_000.0).contains(&ms) {
        Ok(())
    } else {
        Err((key.to_owned(), format!("{ms}: 0 to 60000 milliseconds")))
    }
}

impl SeekSpec {
    /// The table where it reaches; else the curve; else the table's last line drawn on.
    pub(super) fn distance_ms(&self, distance: u32) -> f64 {
        let at = self.table.partition_point(|&(d, _)| d < distance);
        let in_table = self.table.get(at);
        if let (None, Some([a, b]), Some([c, e])) = (in_table, self.short, self.long) {
            let d = f64::from(distance);
            return if distance <= self.knee_cylinders { a + b * d.sqrt() } else { c + e * d };
        }
        match (at.checked_sub(1).and_then(|before| self.table.get(before)), in_table) {
            (_, Some(&(d, ms))) if d == distance => ms,
            (None, Some(&(_, ms))) => ms,
            (Some(&low), Some(&high)) => line(low, high, distance),
            (Some(&last), None) => match at.checked_sub(2).and_then(|n| self.table.get(n)) {
                Some(&previous) => line(previous, last, distance),
                None => last.1,
            },
            (None, None) => 0.0,
        }
    }

    /// A curve as a table, its first points kept; nothing if there is no curve.
    pub(crate) fn sampled(&self, far: u32) -> Option<Vec<(u32, f64)>> {
        self.short.and(self.long)?;
        let mut points: Vec<(u32, f64)> = self.table.clone();
        let mut distance = points.last().map_or(1, |last| last.0 + 1);
        while distance < far {
            points.push((distance, self.distance_ms(distance)));
            distance += (distance / 5).max(1);
        }
        points.push((far.max(distance), self.distance_ms(far.max(distance))));
        Some(points)
    }

    /// By distance where the drive's file says so; else the same for all.
    pub(super) fn settle_ms(&self, distance: u32) -> f64 {
        between(&self.write_settle_by_distance, distance).unwrap_or(self.write_settle_ms)
    }

    fn check(&self) -> Result<(), Invalid> {
        let bad = |key: &str, why: &str| Err((key.to_owned(), why.to_owned()));
        time("head_switch_ms", self.head_switch_ms)?;
        if !(-1000.0..=1000.0).contains(&self.write_settle_ms) {
            return bad("write_settle_ms", "-1000 to 1000 milliseconds");
        }
        let settle = &self.write_settle_by_distance;
        if !settle.iter().all(|(_, ms)| (-1000.0..=1000.0).contains(ms)) || !settle.is_sorted_by(|a, b| a.0 < b.0) {
            return bad("write_settle_by_distance", "ascending distances with -1000 to 1000 milliseconds");
        }
        let inward = &self.inward_by_distance;
        if !inward.iter().all(|(_, ms)| (-1000.0..=1000.0).contains(ms)) || !inward.is_sorted_by(|a, b| a.0 < b.0) {
            return bad("inward_by_distance", "ascending distances with -1000 to 1000 milliseconds");
        }
        let spread = &self.write_settle_spread_by_distance;
        if !spread.iter().all(|(_, ms)| (0.0..=1000.0).contains(ms)) || !spread.is_sorted_by(|a, b| a.0 < b.0) {
            return bad("write_settle_spread_by_distance", "ascending distances with 0 to 1000 milliseconds");
        }
        for &(distance, ms) in &self.table {
            time("table", ms)?;
            if distance == 0 {
                return bad("table", "distances begin at 1 cylinder");
            }
        }
        if !self.table.is_sorted_by(|a, b| a.0 < b.0) {
            return bad("table", "the distances do not ascend");
        }
        match (self.short, self.long) {
            (None, None) if self.table.is_empty() => bad("table", "neither a table nor a curve"),
            (None, None) => Ok(()),
            (Some(short), Some(long)) => {
                let terms = short.into_iter().chain(long);
                if terms.into_iter().all(|x| x.is_finite() && (-1000.0..=60_000.0).contains(&x)) {
                    Ok(())
                } else {
                    bad("short", "not a curve in milliseconds")
                }
            }
            _ => bad("short", "a curve needs both `short` and `long`"),
        }
    }
}

/// Straight lines between points, their ends drawn on level; nothing if there are none.
pub(super) fn between(points: &[(u32, f64)], distance: u32) -> Option<f64> {
    let at = points.partition_point(|&(d, _)| d < distance);
    match (at.checked_sub(1).and_then(|before| points.get(before)), points.get(at)) {
        (Some(&low), Some(&high)) => Some(line(low, high, distance)),
        (Some(&(_, ms)), None) | (None, Some(&(_, ms))) => Some(ms),
        (None, None) => None,
    }
}

fn line((d0, t0): (u32, f64), (d1, t1): (u32, f64), distance: u32) -> f64 {
    t0 + (t1 - t0) * (f64::from(distance) - f64::from(d0)) / (f64::from(d1) - f64::from(d0))
}

impl ControllerSpec {
    fn check(&self) -> Result<(), Invalid> {
        time("read_hit_after_read_ms", self.read_hit_after_read_ms)?;
        time("read_hit_after_write_ms", self.read_hit_after_write_ms)?;
        time("read_miss_after_read_ms", self.read_miss_after_read_ms)?;
        time("read_miss_after_write_ms", self.read_miss_after_write_ms)?;
        time("write_after_read_ms", self.write_after_read_ms)?;
        time("write_after_write_ms", self.write_after_write_ms)?;
        time("write_miss_after_read_ms", self.write_miss_after_read_ms.unwrap_or(0.0))?;
        time("write_miss_after_write_ms", self.write_miss_after_write_ms.unwrap_or(0.0))?;
        for (key, moves) in [
            ("write_move_after_read", &self.write_move_after_read),
            ("write_move_after_write", &self.write_move_after_write),
        ] {
            for &(_, ms) in moves {
                time(key, ms)?;
            }
            if !moves.is_sorted_by(|a, b| a.0 < b.0) || moves.first().is_some_and(|first| first.0 != 0) {
                return Err((key.to_owned(), "distances in cylinders, ascending from 0".to_owned()));
            }
        }
        time("read_hit_elsewhere_ms", self.read_hit_elsewhere_ms.unwrap_or(0.0))?;
        time("read_completion_ms", self.read_completion_ms)?;
        time("write_completion_ms", self.write_completion_ms)?;
        time("data_preparation_ms", self.data_preparation_ms)?;
        time("reselect_ms", self.reselect_ms)?;
        time("read_disconnect_after_read_ms", self.read_disconnect_after_read_ms)?;
        time("read_disconnect_after_write_ms", self.read_disconnect_after_write_ms)?;
        time("write_disconnect_ms", self.write_disconnect_ms)?;
        time("minimum_write_seek_ms", self.minimum_write_seek_ms)?;
        time("write_seek_ms", self.write_seek_ms.unwrap_or(0.0))?;
        time("read_seek_ms", self.read_seek_ms.unwrap_or(0.0))?;
        time("write_seek_after_write_ms", self.write_seek_after_write_ms.unwrap_or(0.0))?;
        time("read_seek_after_write_ms", self.read_seek_after_write_ms.unwrap_or(0.0))?;
        let Some(extra) = &self.extra_write_disconnect else { return Ok(()) };
        time("extra_write_disconnect.command_ms", extra.command_ms)?;
        time("extra_write_disconnect.first_disconnect_ms", extra.first_disconnect_ms)?;
        time("extra_write_disconnect.gap_ms", extra.gap_ms)?;
        time("extra_write_disconnect.second_disconnect_ms", extra.second_disconnect_ms)?;
        time("extra_write_disconnect.reselect_ms", extra.reselect_ms)?;
        time("extra_write_disconnect.seek_delay_ms", extra.seek_delay_ms)
    }
}

impl CacheSpec {
    fn check(&self) -> Result<(), Invalid> {
        let bad = |key: &str, why: &str| Err((key.to_owned(), why.to_owned()));
        if self.segments > 4096 {
            return bad("segments", "at most 4096");
        }
        if self.segments > 0 && !(1..=16_777_216).contains(&self.segment_sectors) {
            return bad("segment_sectors", "1 to 16777216");
        }
        if self.write_segments > self.segments {
            return bad("write_segments", "more than there are segments");
        }
        if self.dedicated_write_segment && self.segments < 2 {
            return bad("dedicated_write_segment", "needs another segment for reads");
        }
        if self.write_report == WriteReport::Buffer && self.write_segments == 0 {
            return bad("write_segments", "reporting writes from the buffer needs at least one");
        }
        time("write_start_ms", self.write_start_ms)?;
        if !(0.0..=1.0).contains(&self.read_watermark) {
            return bad("read_watermark", "0 to 1");
        }
        if self.read_ahead == ReadAhead::Segment && self.read_ahead_sectors == 0 {
            return bad("read_ahead_sectors", "reading ahead to a limit needs the limit");
        }
        Ok(())
    }
}

impl BusSpec {
    fn check(&self) -> Result<(), Invalid> {
        time("read_sector_ms", self.read_sector_ms)?;
        time("write_sector_ms", self.write_sector_ms)?;
        if !(1..=1_048_576).contains(&self.max_transfer_sectors) {
            return Err(("max_transfer_sectors".into(), "1 to 1048576".into()));
        }
        if !(1..=65_536).contains(&self.queue_depth) {
            return Err(("queue_depth".into(), "1 to 65536".into()));
        }
        Ok(())
    }
}
