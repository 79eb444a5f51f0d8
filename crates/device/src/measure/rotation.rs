//! Rotation, tracks, skews and surfaces, from reads that go backwards.
//!
//! A read of the sector `k` before the last one ends `revolution - k sectors` after it, whatever command and bus take,
//! as long as they take less than that. So the time over `k` is a straight line: its slope is a sector, its beginning a
//! revolution. Where a track begins, the step is longer by the skew.

use super::probe::{Reader, median};
use serde::Serialize;
use std::io;

/// The rotation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Rotation {
    /// Time of a revolution.
    pub revolution_ns: f64,
    /// Reads that go backwards by few sectors: the median.
    pub near_ns: f64,
    /// How well a straight line describes the times: 1 is exactly.
    pub straightness: f64,
}

impl Rotation {
    /// Revolutions a minute.
    pub fn rpm(&self) -> f64 {
        60e9 / self.revolution_ns
    }
}

/// The tracks at a place.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Tracks {
    /// Where, as a share of the drive.
    pub place: f64,
    /// Sectors of a track.
    pub sectors: u32,
    /// By how much a track begins later than the one before on its cylinder.
    pub track_skew_ns: Option<f64>,
    /// The same for the first track of a cylinder.
    pub cylinder_skew_ns: Option<f64>,
}

/// Surfaces, and where a cylinder begins.
#[derive(Clone, Copy, Debug)]
pub(super) struct Surfaces {
    pub heads: u32,
    /// The first block of a cylinder, to the accuracy of a step, in the first of the measured places.
    pub cylinder_begins: u64,
    /// Whether cylinders were told from tracks.
    pub told: bool,
}

/// Steps of a chain of reads.
const STEPS: u32 = 21;

/// A line that explains less than this is no rotation.
const STRAIGHT: f64 = 0.98;

/// No disk turns faster or more slowly: 100 to 60,000 revolutions a minute.
const REVOLUTION_NS: std::ops::Range<f64> = 1e6..6e8;

/// Times of steps backwards by `k` sectors, from a place on.
fn chain(reader: &mut Reader<'_>, from: u64, k: u64, steps: u32) -> io::Result<Vec<u64>> {
    reader.read(from, 1)?;
    (1..=u64::from(steps)).map(|n| reader.read(from.saturating_sub(n * k), 1)).collect()
}

/// Median times of steps by several distances, from where they begin.
fn line(reader: &mut Reader<'_>, place: f64, distances: &[u64]) -> io::Result<Vec<(f64, f64)>> {
    let mut points = Vec::new();
    let room = distances.iter().map(|k| k * u64::from(STEPS)).max().unwrap_or(1) + 1;
    // Chains do not overlap: what was read may be in the buffer.
    let mut from = reader.at(place, 1).max((room * distances.len() as u64).min(reader.capacity - 1));
    for &k in distances {
        let times = chain(reader, from, k, STEPS)?;
        points.push((k as f64, median(&times)));
        from = from.saturating_sub(k * u64::from(STEPS + 2) + 64);
    }
    Ok(points)
}

/// Slope, beginning and straightness (the square of the correlation) of the falling part from the first point on.
fn falling(points: &[(f64, f64)]) -> Option<(f64, f64, f64)> {
    let fall = 1 + points.windows(2).take_while(|pair| pair[1].1 < pair[0].1).count();
    let points = points.get(..fall.min(points.len()))?;
    // Longer steps cross more tracks than not, and their skew is no sector.
    let first = points.first()?.1;
    let points: Vec<(f64, f64)> = points.iter().copied().filter(|point| point.1 > (1.0 - STEP_MOST) * first).collect();
    if points.len() < 4 {
        return None;
    }
    let n = points.len() as f64;
    let (mx, my) = (points.iter().map(|p| p.0).sum::<f64>() / n, points.iter().map(|p| p.1).sum::<f64>() / n);
    let sum = |of: fn(f64, f64) -> f64| points.iter().map(|p| of(p.0 - mx, p.1 - my)).sum::<f64>();
    let (xx, xy, yy) = (sum(|x, _| x * x), sum(|x, y| x * y), sum(|_, y| y * y));
    if xx == 0.0 || yy == 0.0 {
        return None;
    }
    let slope = xy / xx;
    Some((-slope, my - slope * mx, xy * xy / (xx * yy)))
}

/// Distances of the steps, for tracks of a few sectors and for tracks of many.
fn distances(scale: u64) -> Vec<u64> {
    [2, 4, 6, 8, 10, 12].map(|k| k * scale).into()
}

const SCALES: [u64; 3] = [1, 4, 16];

/// The rotation, if there is one.
pub(super) fn find(reader: &mut Reader<'_>) -> io::Result<Option<Rotation>> {
    let mut found: Vec<Rotation> = Vec::new();
    // Which distances fit depends on the sectors of a track, which nobody knows yet.
    for scale in SCALES {
        for place in [0.1, 0.3, 0.6] {
            let points = line(reader, place, &distances(scale))?;
            if let Some((_, revolution_ns, straightness)) = falling(&points)
                && straightness >= STRAIGHT
                && REVOLUTION_NS.contains(&revolution_ns)
            {
                let near_ns = points.first().map_or(0.0, |point| point.1);
                found.push(Rotation { revolution_ns, near_ns, straightness });
            }
        }
    }
    // They must agree: noise has a slope now and then, and never the same beginning.
    let agreeing = |one: &Rotation| {
        found.iter().filter(|other| (other.revolution_ns / one.revolution_ns - 1.0).abs() < 0.01).count()
    };
    let best = found.iter().max_by(|a, b| {
        (agreeing(a), a.straightness).partial_cmp(&(agreeing(b), b.straightness)).unwrap_or(std::cmp::Ordering::Equal)
    });
    Ok(best.filter(|best| agreeing(best) >= 2).copied())
}

/// Steps that go further than this share of a revolution cross a track too often to be compared.
const STEP_MOST: f64 = 0.3;

/// The sectors of a track at a place: the time of a sector from short steps, made more exact by longer ones that agree.
pub(super) fn tracks_at(reader: &mut Reader<'_>, rotation: &Rotation, place: f64) -> io::Result<Tracks> {
    let revolution_ns = rotation.revolution_ns;
    let mut sector_ns: Option<f64> = None;
    for scale in SCALES {
        for (k, ns) in line(reader, place, &distances(scale))? {
            let each_ns = (revolution_ns - ns) / k;
            let fits = match sector_ns {
                None => each_ns > 0.0,
                Some(known_ns) => (each_ns - known_ns).abs() * k < 0.25 * known_ns * k + 0.003 * revolution_ns,
            };
            if fits && each_ns > 0.0 && each_ns * k < STEP_MOST * revolution_ns {
                sector_ns = Some(each_ns);
            }
        }
    }
    let sectors = sector_ns.map_or(0.0, |sector_ns| (revolution_ns / sector_ns).round());
    Ok(Tracks { place, sectors: sectors.clamp(0.0, 1e6) as u32, track_skew_ns: None, cylinder_skew_ns: None })
}

/// So many steps cover a track.
const STEPS_A_TRACK: u32 = 12;

/// So many tracks are looked at for the surfaces of a cylinder.
const TRACKS_SEEN: u32 = 64;

/// Surfaces and skews, from the steps that are longer than others over many tracks at the first place; skews are times,
/// and the same on the whole drive.
pub(super) fn surfaces(
    reader: &mut Reader<'_>,
    rotation: &Rotation,
    tracks: &mut [Tracks],
    remarks: &mut Vec<String>,
) -> io::Result<Surfaces> {
    let unknown = Surfaces { heads: 1, cylinder_begins: 0, told: false };
    let Some(first) = tracks.first().filter(|first| first.sectors >= STEPS_A_TRACK) else {
        remarks.push("Tracks are too short to tell their skew.".to_owned());
        return Ok(unknown);
    };
    let (sectors, place) = (first.sectors, first.place);
    let sector_ns = rotation.revolution_ns / f64::from(sectors);
    let k = u64::from(sectors / STEPS_A_TRACK).max(1);
    let steps = TRACKS_SEEN * STEPS_A_TRACK;
    let from = reader.at(place, 1).max((u64::from(steps) + 2) * k).min(reader.capacity - 1);
    let times = chain(reader, from, k, steps)?;
    // How much later than its step each read's sector begins, in sectors.
    let longer: Vec<f64> = times
        .iter()
        .map(|&ns| {
            let expected = rotation.revolution_ns - k as f64 * sector_ns;
            (expected - ns as f64).rem_euclid(rotation.revolution_ns) / sector_ns
        })
        .collect();
    // A slipped sector or two are no track; nor is a step that is a little short of a revolution.
    let least = (f64::from(sectors) / 40.0).max(2.5);
    let crossings: Vec<(u64, f64)> = (0..)
        .zip(&longer)
        .filter(|(_, skew)| (least..f64::from(sectors) - least).contains(*skew))
        .map(|(n, skew)| (from - (n + 1) * k, *skew))
        .collect();
    let mut skews: Vec<f64> = crossings.iter().map(|crossing| crossing.1).collect();
    skews.sort_by(f64::total_cmp);
    let (Some(&low), Some(&high)) = (skews.first(), skews.last()) else {
        remarks.push("No skew shows: tracks follow each other at the same angle, or were not crossed.".to_owned());
        return Ok(unknown);
    };
    let middle = (low + high) / 2.0;
    let cylinders: Vec<u64> = crossings.iter().filter(|c| c.1 > middle).map(|c| c.0).collect();
    let same = high - low < least;
    let usual = stats::median(&skews).unwrap_or(low);
    if same || cylinders.len() < 2 {
        remarks.push("Surfaces were not told apart: one track is taken for a cylinder.".to_owned());
        for tracks in tracks {
            tracks.track_skew_ns = Some(usual * sector_ns);
            tracks.cylinder_skew_ns = Some(usual * sector_ns);
        }
        return Ok(unknown);
    }
    // Blocks from one cylinder to the next, over those of a track.
    let gaps: Vec<f64> = cylinders.windows(2).map(|pair| (pair[0] - pair[1]) as f64).collect();
    let gap = stats::median(&gaps).unwrap_or(0.0);
    let heads = (gap / f64::from(sectors)).round().clamp(1.0, 1024.0) as u32;
    let mean_of = |of: &dyn Fn(f64) -> bool| -> f64 {
        let chosen: Vec<f64> = skews.iter().copied().filter(|skew| of(*skew)).collect();
        stats::median(&chosen).unwrap_or(usual)
    };
    let (track_skew, cylinder_skew) = (mean_of(&|skew| skew <= middle), mean_of(&|skew| skew > middle));
    for tracks in tracks {
        tracks.track_skew_ns = Some(track_skew * sector_ns);
        tracks.cylinder_skew_ns = Some(cylinder_skew * sector_ns);
    }
    let begins = cylinders.first().map_or(0, |begin| begin + k);
    Ok(Surfaces { heads, cylinder_begins: finer(reader, rotation, begins, k, sector_ns)?, told: true })
}

/// Where a cylinder begins to a twelfth of a step.
fn finer(reader: &mut Reader<'_>, rotation: &Rotation, begins: u64, k: u64, sector_ns: f64) -> io::Result<u64> {
    let step = (k / u64::from(STEPS_A_TRACK)).max(1);
    reader.forget()?;
    let from = begins + k;
    let times = chain(reader, from, step, u32::try_from(2 * k / step).unwrap_or(u32::MAX))?;
    let expected = rotation.revolution_ns - step as f64 * sector_ns;
    let skew = |ns: u64| {
        let later = (expected - ns as f64).rem_euclid(rotation.revolution_ns);
        later.min(rotation.revolution_ns - later)
    };
    let crossing = (0..).zip(&times).max_by(|a, b| skew(*a.1).total_cmp(&skew(*b.1))).map_or(0, |(n, _)| n);
    Ok(from.saturating_sub((crossing + 1) * step) + step)
}
