//! A drive's figures from timed reads alone.
//!
//! What can be known so: the rate by place, the rotation, the sectors of a track, skews, surfaces, the seek curve,
//! switching heads, what a hit costs, and how the buffer keeps and reads ahead. What cannot: anything about writes,
//! spares and defects, where a zone exactly begins. The methods are those of Worthington, Ganger, Patt and Wilkes,
//! "On-Line Extraction of SCSI Disk Drive Parameters" (SIGMETRICS 1995), and of Talagala, Arpaci-Dusseau and Patterson,
//! "Microbenchmark-based Extraction of Local and Global Disk Characteristics" (UCB/CSD-99-1063, 2000), turned round:
//! reads go **backwards**, so that no read-ahead serves them.
//!
//! It knows a drive through [`Probe`] only: a real one, read past the page cache, or a model in virtual time, whose
//! figures are then known and judge what is found.

mod arm;
mod buffer;
mod file;
mod probe;
mod rotation;

pub use arm::SeekPoint;
pub use buffer::Buffer;
pub use probe::{Modelled, Probe};
pub use rotation::{Rotation, Tracks};

use serde::Serialize;
use std::io;

/// The rate of consecutive reads at a place.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Rate {
    /// Where, as a share of the drive.
    pub place: f64,
    /// Bytes a second.
    pub bytes_per_s: f64,
}

/// What was found.
#[derive(Clone, Debug, Serialize)]
pub struct Measurement {
    /// What was read.
    pub device: String,
    /// Its size.
    pub capacity_bytes: u64,
    /// The unit of its addresses.
    pub sector_bytes: u32,
    /// Reads that were made.
    pub reads: u64,
    /// The seed of their places.
    pub seed: u64,
    /// Consecutive reads by place.
    pub rates: Vec<Rate>,
    /// Reads of a sector each at random places: the median.
    pub random_ns: f64,
    /// Reads of a sector each that go backwards by a few sectors: the median.
    pub near_ns: f64,
    /// The rotation; nothing if none shows.
    pub rotation: Option<Rotation>,
    /// Tracks by place.
    pub tracks: Vec<Tracks>,
    /// The seek curve.
    pub seeks: Vec<SeekPoint>,
    /// Surfaces; 1 if they were not told apart.
    pub heads: u32,
    /// Switching heads on a cylinder, if surfaces were told apart.
    pub head_switch_ns: Option<f64>,
    /// From the command of a read that misses to its data, on the same track.
    pub miss_ns: f64,
    /// The buffer.
    pub buffer: Buffer,
    /// Whether this is a disk with an arm, as far as reads tell.
    pub arm: bool,
    /// Why not; or what to be careful with.
    pub remarks: Vec<String>,
}

/// Places at which rates and tracks are measured.
const PLACES: u32 = 8;

/// A rate is measured over so much.
const RATE_BYTES: u64 = 4 << 20;
const RATE_READ_BYTES: u64 = 64 << 10;

/// Reads at random places.
const RANDOM_READS: u32 = 150;

/// Measures a drive by reading it. Nothing is written, and no state of the drive but its buffer changes.
///
/// # Errors
/// A read that fails, or a drive too small to have places.
pub fn measure(device: &str, probe: &mut dyn Probe, seed: u64) -> io::Result<Measurement> {
    let mut reader = probe::Reader::new(probe, seed)?;
    let mut remarks = Vec::new();
    let rates = rates(&mut reader)?;
    let mut random = Vec::new();
    for _ in 0..RANDOM_READS {
        let lbn = reader.anywhere(1);
        random.push(reader.read(lbn, 1)?);
    }
    // The first of them follows the rates; what it costs is not theirs.
    let random_ns = probe::median(&random);
    let rotation = rotation::find(&mut reader)?;
    let near_ns = rotation.as_ref().map_or(random_ns, |found| found.near_ns);
    let mut tracks = Vec::new();
    let mut arm = None;
    let mut heads = 1;
    if let Some(rotation) = &rotation {
        for place in 0..PLACES {
            tracks.push(rotation::tracks_at(&mut reader, rotation, (f64::from(place) + 0.5) / f64::from(PLACES))?);
        }
        let surfaces = rotation::surfaces(&mut reader, rotation, &mut tracks, &mut remarks)?;
        heads = surfaces.heads;
        arm = Some(arm::find(&mut reader, rotation, &tracks, &surfaces)?);
    }
    // Without a rotation hits and misses cannot be told apart.
    let buffer = match &rotation {
        Some(rotation) => {
            let sectors: Vec<f64> = tracks.iter().map(|tracks| f64::from(tracks.sectors)).collect();
            buffer::find(&mut reader, rotation.revolution_ns, stats::median(&sectors).unwrap_or(0.0) as u32)?
        }
        None => Buffer::default(),
    };
    let (seeks, head_switch_ns, miss_ns) =
        arm.map_or((Vec::new(), None, near_ns), |arm| (arm.seeks, arm.head_switch_ns, arm.miss_ns));
    let moves = seeks.last().is_some_and(|far| far.seek_ns > random_ns * 0.05);
    if rotation.is_none() {
        remarks.push(
            "No rotation shows: reads that go backwards by more and more sectors do not come sooner and sooner."
                .to_owned(),
        );
    } else if !moves {
        remarks.push("Reads far apart take as long as reads side by side: nothing moves between them.".to_owned());
    }
    Ok(Measurement {
        device: device.to_owned(),
        capacity_bytes: reader.capacity * u64::from(reader.sector_bytes),
        sector_bytes: reader.sector_bytes,
        reads: reader.reads,
        seed,
        rates,
        random_ns,
        near_ns,
        arm: rotation.is_some() && moves,
        rotation,
        tracks,
        seeks,
        heads,
        head_switch_ns,
        miss_ns,
        buffer,
        remarks,
    })
}

fn rates(reader: &mut probe::Reader<'_>) -> io::Result<Vec<Rate>> {
    let sector = u64::from(reader.sector_bytes);
    let each = (RATE_READ_BYTES / sector).max(1);
    let all = (RATE_BYTES / sector).min(reader.capacity / u64::from(2 * PLACES)).max(2 * each);
    let mut rates = Vec::new();
    for n in 0..PLACES {
        let place = (f64::from(n) + 0.5) / f64::from(PLACES);
        let start = reader.at(place, all);
        let mut ns = 0;
        // The first read has the way there.
        reader.read(start, each as u32)?;
        let mut done = each;
        while done + each <= all {
            ns += reader.read(start + done, each as u32)?;
            done += each;
        }
        let bytes = ((done - each) * sector) as f64;
        rates.push(Rate { place, bytes_per_s: bytes / (ns.max(1) as f64 / 1e9) });
    }
    Ok(rates)
}
