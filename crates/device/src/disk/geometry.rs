//! Where a sector is: zones, tracks, skews, spares and slipped defects, and the two ways between block numbers and
//! places.
//!
//! A zone's sectors are counted physically from its first track. They are cut into regions (a track, a cylinder, a
//! range of cylinders, the zone) with a number of spare sectors each; a defect is *slipped*: the blocks behind it move
//! up by one, into the spares at the region's end. After Ganger, Worthington and Patt, "The DiskSim Simulation
//! Environment", and Ruemmler and Wilkes, "An Introduction to Disk Drive Modeling", IEEE Computer 27(3), 1994.

use crate::Lbn;
use crate::disk::spec::{DiskSpec, HeadOrder, Sparing, ZoneSpec};

/// A sector's place on the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pbn {
    /// Cylinder, from the outer edge.
    pub cylinder: u32,
    /// Surface.
    pub head: u32,
    /// Sector on the track, in the order in which the sectors pass under the head.
    pub sector: u32,
}

/// A run of defective sectors, in the zone's physical count.
#[derive(Clone, Copy, Debug)]
struct Slip {
    start: u64,
    len: u64,
    /// Defective sectors of the zone before this run.
    before: u64,
}

/// A zone, ready for arithmetic.
#[derive(Clone, Debug)]
pub struct Zone {
    /// First cylinder.
    pub first_cylinder: u32,
    /// Last cylinder.
    pub last_cylinder: u32,
    /// Sectors on each track.
    pub sectors_per_track: u32,
    /// First block.
    pub first_lbn: Lbn,
    /// Blocks.
    pub lbns: u64,
    /// Blocks' worth of space before the first one.
    lead: u64,
    /// Physical sectors of a region, and how many of them hold blocks.
    region_sectors: u64,
    region_lbns: u64,
    slips: Vec<Slip>,
    angle_ns: u64,
    track_skew_ns: u64,
    cylinder_skew_ns: u64,
}

impl Zone {
    fn sectors(&self, heads: u32) -> u64 {
        u64::from(self.last_cylinder - self.first_cylinder + 1) * u64::from(heads) * u64::from(self.sectors_per_track)
    }

    /// Physical number of the zone's `index`th block.
    fn physical(&self, index: u64) -> u64 {
        let index = index + self.lead;
        let region = index / self.region_lbns;
        let start = region * self.region_sectors;
        let plain = start + index % self.region_lbns;
        if self.slips.is_empty() {
            return plain;
        }
        let before = self.defects_before(start);
        // Each defect at or before the block moves it up by one: the nth run does if it begins no later than the block
        // would be with the runs before it.
        let runs = self.slips.partition_point(|slip| slip.start - slip.before <= plain - before);
        let after = match runs.checked_sub(1).map(|last| self.slips[last]) {
            Some(last) => last.before + last.len,
            None => 0,
        };
        plain + after.saturating_sub(before)
    }

    /// Defective sectors before a physical one.
    fn defects_before(&self, physical: u64) -> u64 {
        match self.slips.partition_point(|slip| slip.start < physical).checked_sub(1).map(|last| self.slips[last]) {
            Some(last) => last.before + last.len.min(physical - last.start),
            None => 0,
        }
    }

    /// Blocks of the zone that lie before a physical sector.
    fn lbns_before(&self, physical: u64) -> u64 {
        let region = physical / self.region_sectors;
        let start = region * self.region_sectors;
        let good = physical - start - (self.defects_before(physical) - self.defects_before(start));
        (region * self.region_lbns + good.min(self.region_lbns)).saturating_sub(self.lead).min(self.lbns)
    }
}

/// The geometry of a disk.
#[derive(Clone, Debug)]
pub struct Geometry {
    zones: Vec<Zone>,
    heads: u32,
    order: HeadOrder,
    revolution_ns: u64,
    capacity: u64,
}

/// A block's place in the form that timing needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spot {
    pub zone: usize,
    /// Physical sector in the zone.
    pub physical: u64,
    /// Track in the zone.
    pub track: u64,
    pub pbn: Pbn,
}

impl Geometry {
    /// The geometry of a checked specification.
    pub(crate) fn new(spec: &DiskSpec) -> Geometry {
        let revolution_ns = spec.revolution_ns();
        let mut first_lbn = 0;
        let mut zones = Vec::with_capacity(spec.zones.len());
        for zone in &spec.zones {
            let zone = new_zone(spec, zone, first_lbn, revolution_ns);
            first_lbn += zone.lbns;
            zones.push(zone);
        }
        // A published block count may be less than the tracks hold: the rest is the drive's own.
        let capacity = spec.capacity_sectors.map_or(first_lbn, |limit| limit.min(first_lbn));
        Geometry { zones, heads: spec.heads, order: spec.head_order, revolution_ns, capacity }
    }

    /// Blocks of the disk.
    pub fn capacity_sectors(&self) -> u64 {
        self.capacity
    }

    /// Its zones, from the outer edge.
    pub fn zones(&self) -> &[Zone] {
        &self.zones
    }

    /// Time of a revolution.
    pub fn revolution_ns(&self) -> u64 {
        self.revolution_ns
    }

    /// Place of a block; `None` behind the end.
    pub fn place(&self, lbn: Lbn) -> Option<Pbn> {
        (lbn.0 < self.capacity).then(|| self.spot(lbn).pbn)
    }

    /// Block at a place; `None` for spares, defects and places that are not there.
    pub fn block(&self, pbn: Pbn) -> Option<Lbn> {
        let zone = self.zones.iter().find(|z| (z.first_cylinder..=z.last_cylinder).contains(&pbn.cylinder))?;
        if pbn.head >= self.heads || pbn.sector >= zone.sectors_per_track {
            return None;
        }
        let head = self.turned(pbn.cylinder, zone.first_cylinder, pbn.head);
        let track = u64::from(pbn.cylinder - zone.first_cylinder) * u64::from(self.heads) + u64::from(head);
        let physical = track * u64::from(zone.sectors_per_track) + u64::from(pbn.sector);
        let index = zone.lbns_before(physical);
        let lbn = Lbn(zone.first_lbn.0 + index);
        (index < zone.lbns && zone.physical(index) == physical && lbn.0 < self.capacity).then_some(lbn)
    }

    /// Place of a block that is there.
    pub(crate) fn spot(&self, lbn: Lbn) -> Spot {
        let zone = self.zone_of(lbn);
        let z = &self.zones[zone];
        self.spot_at(zone, z.physical(lbn.0 - z.first_lbn.0))
    }

    fn zone_of(&self, lbn: Lbn) -> usize {
        self.zones.partition_point(|zone| zone.first_lbn.0 <= lbn.0).saturating_sub(1)
    }

    fn spot_at(&self, zone: usize, physical: u64) -> Spot {
        let z = &self.zones[zone];
        let spt = u64::from(z.sectors_per_track);
        let (track, sector) = (physical / spt, physical % spt);
        let (cylinder, head) = (track / u64::from(self.heads), track % u64::from(self.heads));
        let cylinder = z.first_cylinder + cylinder as u32;
        let head = self.turned(cylinder, z.first_cylinder, head as u32);
        Spot { zone, physical, track, pbn: Pbn { cylinder, head, sector: sector as u32 } }
    }

    /// The surface of a cylinder's nth track; of a surface, its track. The two are one: an order turned twice is as it
    /// was.
    fn turned(&self, cylinder: u32, first_of_zone: u32, nth: u32) -> u32 {
        let backwards = match self.order {
            HeadOrder::Ascending => false,
            HeadOrder::Serpentine => cylinder % 2 == 1,
            HeadOrder::SerpentineInZone => (cylinder - first_of_zone) % 2 == 1,
        };
        if backwards { self.heads - 1 - nth } else { nth }
    }

    /// When in a revolution a sector begins to pass under the head.
    pub(crate) fn angle_ns(&self, spot: &Spot) -> u64 {
        let z = &self.zones[spot.zone];
        let cylinders = u64::from(spot.pbn.cylinder - z.first_cylinder);
        let head_switches = spot.track - cylinders;
        let skew_ns = z.angle_ns + head_switches * z.track_skew_ns + cylinders * z.cylinder_skew_ns;
        (skew_ns + self.sectors_ns(spot.zone, u64::from(spot.pbn.sector))) % self.revolution_ns
    }

    /// Time in which a number of sectors of a zone pass.
    pub(crate) fn sectors_ns(&self, zone: usize, sectors: u64) -> u64 {
        sectors * self.revolution_ns / u64::from(self.zones[zone].sectors_per_track)
    }

    /// The block behind the last one of a spot's track.
    pub(crate) fn track_end(&self, spot: &Spot) -> Lbn {
        let z = &self.zones[spot.zone];
        let end = (spot.track + 1) * u64::from(z.sectors_per_track);
        Lbn((z.first_lbn.0 + z.lbns_before(end)).min(self.capacity))
    }

    /// The first block of a spot's track.
    pub(crate) fn track_start(&self, spot: &Spot) -> Lbn {
        let z = &self.zones[spot.zone];
        Lbn(z.first_lbn.0 + z.lbns_before(spot.track * u64::from(z.sectors_per_track)))
    }

    /// The block behind the last one of a spot's cylinder.
    pub(crate) fn cylinder_end(&self, spot: &Spot) -> Lbn {
        let z = &self.zones[spot.zone];
        let cylinder = spot.track / u64::from(self.heads);
        let end = (cylinder + 1) * u64::from(self.heads) * u64::from(z.sectors_per_track);
        Lbn((z.first_lbn.0 + z.lbns_before(end)).min(self.capacity))
    }

    /// Physical sectors from one block to another in the same zone and track, slipped ones included.
    pub(crate) fn span(&self, from: &Spot, to: Lbn) -> u64 {
        let z = &self.zones[from.zone];
        z.physical(to.0 - z.first_lbn.0) - from.physical
    }
}

fn new_zone(spec: &DiskSpec, zone: &ZoneSpec, first_lbn: u64, revolution_ns: u64) -> Zone {
    let spt = u64::from(zone.sectors_per_track);
    let [first_cylinder, last_cylinder] = zone.cylinders;
    let cylinder_sectors = spt * u64::from(spec.heads);
    let whole = u64::from(last_cylinder - first_cylinder + 1) * cylinder_sectors;
    let spares = u64::from(zone.spares);
    // A slipped track is all of its sectors slipped.
    let (region_sectors, region_spares, unit) = match spec.sparing {
        Sparing::None => (whole, 0, 1),
        Sparing::Track => (whole, spares * spt, spt),
        Sparing::SectorsPerTrack => (spt, spares, 1),
        Sparing::SectorsPerCylinder => (cylinder_sectors, spares, 1),
        Sparing::SectorsPerRange => (cylinder_sectors * u64::from(spec.range_cylinders.max(1)), spares, 1),
        Sparing::SectorsPerZone => (whole, spares, 1),
    };
    let region_sectors = region_sectors.min(whole);
    let mut slips: Vec<Slip> = Vec::new();
    for &slip in &zone.slips {
        let start = slip * unit;
        match slips.last_mut() {
            Some(last) if last.start + last.len == start => last.len += unit,
            last => {
                let before = last.map_or(0, |last| last.before + last.len);
                slips.push(Slip { start, len: unit, before });
            }
        }
    }
    let region_lbns = region_sectors - region_spares;
    let remainder = (whole % region_sectors).saturating_sub(region_spares);
    let held = whole / region_sectors * region_lbns + remainder;
    let sector_ns = |sectors: u32| u64::from(sectors) * revolution_ns / spt;
    let zone = Zone {
        first_cylinder,
        last_cylinder,
        sectors_per_track: zone.sectors_per_track,
        first_lbn: Lbn(first_lbn),
        lbns: held.saturating_sub(zone.lead_sectors),
        lead: zone.lead_sectors,
        region_sectors,
        region_lbns,
        slips,
        angle_ns: sector_ns(zone.first_angle_sectors),
        track_skew_ns: sector_ns(zone.track_skew_sectors),
        cylinder_skew_ns: sector_ns(zone.cylinder_skew_sectors),
    };
    debug_assert_eq!(zone.sectors(spec.heads), whole);
    zone
}
