//! The arm: what reads take at least, by how far they are apart.
//!
//! The sector that is wanted comes by at any moment of a revolution. So times are spread evenly over one, from command
//! and seek on; their lower end is what is looked for.

use super::probe::{Reader, lower_end};
use super::rotation::{Rotation, Surfaces, Tracks};
use serde::Serialize;
use std::io;

/// A point of the seek curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SeekPoint {
    /// Distance in cylinders, as the measured surfaces and sectors make it.
    pub cylinders: u32,
    /// Time of the seek, without command, rotation and data.
    pub seek_ns: f64,
}

/// What was found.
pub(super) struct Arm {
    pub seeks: Vec<SeekPoint>,
    pub head_switch_ns: Option<f64>,
    pub miss_ns: f64,
}

/// Pairs of reads for each distance.
const PAIRS: u32 = 80;

/// Up to this distance cylinders must be told exactly: pairs are beside the one that was found.
const EXACT_CYLINDERS: u32 = 32;

/// Cylinders as far as tracks were measured: equal parts of the drive's blocks with the sectors found in the middle of
/// each.
pub(super) struct Cylinders {
    /// First block, first cylinder, and blocks of a cylinder.
    parts: Vec<(u64, u64, u64)>,
    pub all: u64,
}

impl Cylinders {
    pub fn new(capacity: u64, heads: u32, tracks: &[Tracks]) -> Cylinders {
        let count = tracks.len().max(1) as u64;
        let (mut parts, mut cylinder) = (Vec::new(), 0);
        for (n, tracks) in (0u64..).zip(tracks) {
            let (first, end) = (capacity * n / count, capacity * (n + 1) / count);
            let blocks = (u64::from(heads) * u64::from(tracks.sectors)).max(1);
            parts.push((first, cylinder, blocks));
            cylinder += (end - first).div_ceil(blocks);
        }
        Cylinders { parts, all: cylinder }
    }

    /// The parts: first cylinder, and cylinders up to the next.
    pub fn spans(&self) -> Vec<(u64, u64)> {
        let starts: Vec<u64> = self.parts.iter().map(|part| part.1).chain([self.all]).collect();
        starts.windows(2).map(|pair| (pair[0], pair[1] - pair[0])).collect()
    }

    /// First block and blocks of a cylinder.
    fn blocks(&self, cylinder: u64) -> (u64, u64) {
        let part = self.parts.partition_point(|part| part.1 <= cylinder).saturating_sub(1);
        let (first, from, blocks) = self.parts.get(part).copied().unwrap_or((0, 0, 1));
        (first + (cylinder - from) * blocks, blocks)
    }
}

/// The distances that are measured.
fn distances(all: u64) -> Vec<u32> {
    let most = u32::try_from(all * 19 / 20).unwrap_or(u32::MAX);
    let mut distances: Vec<u32> = vec![1, 2, 3, 4, 6, 8];
    while let Some(next) = distances.last().map(|last| last * 10 / 7).filter(|next| *next < most) {
        distances.push(next);
    }
    distances.retain(|distance| *distance < most);
    distances.push(most.max(1));
    distances
}

/// Seeks, switching heads and what a miss costs by itself.
pub(super) fn find(
    reader: &mut Reader<'_>,
    rotation: &Rotation,
    tracks: &[Tracks],
    surfaces: &Surfaces,
) -> io::Result<Arm> {
    let cylinders = Cylinders::new(reader.capacity, surfaces.heads, tracks);
    let sectors = u64::from(tracks.first().map_or(1, |first| first.sectors).max(16));
    let size = sectors * u64::from(surfaces.heads);
    let base = surfaces.cylinder_begins.min(reader.capacity - 1);
    let miss_ns = miss(reader, base, sectors, size)?;
    // From a track of the cylinder to another one.
    let mut head_switch_ns = None;
    if surfaces.told && surfaces.heads > 1 {
        let mut times = Vec::new();
        for pair in 0..PAIRS {
            let start = near(base, i64::from(pair % EXACT_CYLINDERS), size, reader);
            let from = start + reader.below(sectors);
            reader.read(from, 1)?;
            let head = 1 + reader.below(u64::from(surfaces.heads) - 1);
            let to = start + head * sectors + reader.below(sectors);
            times.push(reader.read(to, 1)?);
        }
        head_switch_ns = Some((lower_end(&times, rotation.revolution_ns) - miss_ns).max(0.0));
    }
    let mut seeks: Vec<SeekPoint> = Vec::new();
    for distance in distances(cylinders.all) {
        let mut times = Vec::new();
        for pair in 0..PAIRS {
            let there = pair % 2 == 0;
            let (from, to) = if distance <= EXACT_CYLINDERS {
                let first = i64::from(pair % EXACT_CYLINDERS);
                let second = first + i64::from(distance);
                let track = reader.below(u64::from(surfaces.heads)) * sectors;
                let [first, second] = [first, second].map(|n| near(base, n, size, reader) + track);
                (first + reader.below(sectors), second + reader.below(sectors))
            } else {
                let first = reader.below(cylinders.all - u64::from(distance));
                let mut within = |cylinder: u64| {
                    let (start, blocks) = cylinders.blocks(cylinder);
                    start + reader.below(blocks)
                };
                (within(first), within(first + u64::from(distance)))
            };
            let (from, to) = if there { (from, to) } else { (to, from) };
            reader.read(from, 1)?;
            times.push(reader.read(to, 1)?);
        }
        let seek_ns = (lower_end(&times, rotation.revolution_ns) - miss_ns).max(0.0);
        seeks.push(SeekPoint { cylinders: distance, seek_ns });
    }
    Ok(Arm { seeks, head_switch_ns, miss_ns })
}

/// The `n`th cylinder behind a known one; before it where the drive ends.
fn near(base: u64, n: i64, size: u64, reader: &Reader<'_>) -> u64 {
    let behind = base.saturating_add(n.unsigned_abs() * size);
    if behind + size < reader.capacity { behind } else { base.saturating_sub(n.unsigned_abs() * size) }
}

/// What a read of a sector of the same track takes, when its sector comes at once: the least over places before the
/// arm.
fn miss(reader: &mut Reader<'_>, base: u64, sectors: u64, size: u64) -> io::Result<f64> {
    const PLACES: u64 = 64;
    let step = (sectors / PLACES).max(1);
    let mut least = u64::MAX;
    let mut n = 0;
    let mut back = step;
    while back + 2 * step < sectors {
        // Each pair is on a cylinder of its own: what was read may be in the buffer.
        let start = near(base, i64::try_from(n % u64::from(EXACT_CYLINDERS)).unwrap_or(0), size, reader);
        let last = start + sectors - 1 - step;
        reader.read(last, 1)?;
        least = least.min(reader.read(last - back, 1)?);
        back += step;
        n += 1;
    }
    Ok(if least == u64::MAX { 0.0 } else { least as f64 })
}
