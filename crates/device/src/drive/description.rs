//! What a drive's figures add up to.

use crate::disk::Disk;
use crate::disk::spec::DiskSpec;
use crate::drive::{Drive, Figure, Model};
use crate::ssd::SsdSpec;
use serde::Serialize;

/// A drive in the terms of a data sheet.
#[derive(Clone, Debug, Serialize)]
pub struct Description {
    /// How it is called on the command line.
    pub key: String,
    /// Maker and model.
    pub name: String,
    /// What it is, in a sentence.
    pub summary: String,
    /// `disk` or `ssd`.
    pub kind: &'static str,
    /// What the host can store.
    pub capacity_bytes: u64,
    /// What follows from the figures.
    pub facts: Vec<Fact>,
    /// A disk's zones.
    pub zones: Vec<ZoneFact>,
    /// Every figure with its source.
    pub figures: Vec<Figure>,
    /// What can be and is seldom meant, with what it leads to.
    pub warnings: Vec<String>,
    /// How many of them are estimates.
    pub estimates: usize,
}

/// A derived quantity.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fact {
    /// What it is.
    pub name: &'static str,
    /// How much.
    #[serde(flatten)]
    pub value: Quantity,
}

/// A quantity with its unit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Nanoseconds.
    Ns(f64),
    /// Bytes.
    Bytes(f64),
    /// Bytes a second.
    BytesPerSecond(f64),
    /// A number of things.
    Count(u64),
    /// Revolutions a minute.
    Rpm(f64),
}

/// A zone of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ZoneFact {
    /// First cylinder.
    pub first_cylinder: u32,
    /// Last cylinder.
    pub last_cylinder: u32,
    /// Sectors of a track.
    pub sectors_per_track: u32,
    /// First block.
    pub first_lbn: u64,
    /// Blocks.
    pub lbns: u64,
    /// Rate at which sectors pass under the head.
    pub medium_bytes_per_s: f64,
}

impl Drive {
    /// What the figures add up to.
    pub fn describe(&self) -> Description {
        let (kind, capacity_bytes, facts, zones) = match &self.model {
            Model::Disk(spec) => {
                let disk = Disk::new((**spec).clone());
                let capacity = disk.geometry().capacity_sectors() * u64::from(spec.sector_bytes);
                ("disk", capacity, disk_facts(spec, &disk), zones(spec, &disk))
            }
            Model::Ssd(spec) => {
                let capacity = spec.capacity_sectors * u64::from(spec.sector_bytes);
                ("ssd", capacity, ssd_facts(spec), Vec::new())
            }
        };
        Description {
            key: self.key.clone(),
            name: self.name.clone(),
            summary: self.summary.clone(),
            kind,
            capacity_bytes,
            facts,
            zones,
            estimates: self.figures.iter().filter(|figure| figure.estimate).count(),
            figures: self.figures.clone(),
            warnings: self.warnings.clone(),
        }
    }
}

fn disk_facts(spec: &DiskSpec, disk: &Disk) -> Vec<Fact> {
    let per_s = |sector_ms: f64| f64::from(spec.sector_bytes) / (sector_ms / 1e3);
    let cache_sectors = u64::from(spec.cache.segments) * u64::from(spec.cache.segment_sectors);
    let cylinders = spec.zones.last().map_or(0, |zone| u64::from(zone.cylinders[1]) + 1);
    let mut facts = vec![
        fact("Rotation", Quantity::Rpm(spec.rpm)),
        fact("Revolution", Quantity::Ns(spec.revolution_ns() as f64)),
        fact("Cylinders", Quantity::Count(cylinders)),
        fact("Surfaces", Quantity::Count(u64::from(spec.heads))),
        fact("Seek over one cylinder", Quantity::Ns(disk.seek().distance_ns(1) as f64)),
        fact("Seek, mean of random pairs", Quantity::Ns(disk.seek().mean_ns())),
        fact("Seek over all", Quantity::Ns(disk.seek().full_ns() as f64)),
        fact("Buffer", Quantity::Bytes((cache_sectors * u64::from(spec.sector_bytes)) as f64)),
        fact("Buffer segments", Quantity::Count(u64::from(spec.cache.segments))),
        fact("Slipped defects", Quantity::Count(spec.zones.iter().map(|zone| zone.slips.len() as u64).sum())),
    ];
    if spec.bus.read_sector_ms > 0.0 {
        facts.push(fact("Host link", Quantity::BytesPerSecond(per_s(spec.bus.read_sector_ms))));
    }
    facts
}

fn zones(spec: &DiskSpec, disk: &Disk) -> Vec<ZoneFact> {
    let track_s = spec.revolution_ns() as f64 / 1e9;
    let zone = |zone: &crate::disk::Zone| ZoneFact {
        first_cylinder: zone.first_cylinder,
        last_cylinder: zone.last_cylinder,
        sectors_per_track: zone.sectors_per_track,
        first_lbn: zone.first_lbn.0,
        lbns: zone.lbns,
        medium_bytes_per_s: f64::from(zone.sectors_per_track) * f64::from(spec.sector_bytes) / track_s,
    };
    disk.geometry().zones().iter().map(zone).collect()
}

fn ssd_facts(spec: &SsdSpec) -> Vec<Fact> {
    let page = f64::from(spec.page_bytes) * f64::from(spec.planes_per_die);
    let flash = f64::from(spec.blocks_per_die()) * f64::from(spec.dies()) * page * f64::from(spec.pages_per_block);
    let program_rate = page * f64::from(spec.dies()) / (spec.program_us / 1e6);
    vec![
        fact("Channels", Quantity::Count(u64::from(spec.channels))),
        fact("Dies", Quantity::Count(u64::from(spec.dies()))),
        fact("Page of all planes", Quantity::Bytes(page)),
        fact("Block of all planes", Quantity::Bytes(page * f64::from(spec.pages_per_block))),
        fact("Flash", Quantity::Bytes(flash)),
        fact("Mapping unit", Quantity::Bytes(f64::from(spec.mapping_bytes))),
        fact("Write buffer", Quantity::Bytes(spec.write_buffer_bytes as f64)),
        fact("Programming, all dies", Quantity::BytesPerSecond(program_rate)),
        fact("Channels together", Quantity::BytesPerSecond(spec.channel_mb_per_s * 1e6 * f64::from(spec.channels))),
        fact("Host link", Quantity::BytesPerSecond(spec.link_mb_per_s * 1e6)),
    ]
}

fn fact(name: &'static str, value: Quantity) -> Fact {
    Fact { name, value }
}
