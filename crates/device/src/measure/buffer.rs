//! The drive's buffer: what it keeps, and how far it reads ahead.

use super::probe::{FORGOTTEN_AFTER, Reader, median};
use serde::Serialize;
use std::io;

/// What reads tell about the buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Buffer {
    /// Whether what was just read is there when it is read again.
    pub keeps: bool,
    /// From the command of a hit to its data, and each sector of it.
    pub hit_ns: Option<f64>,
    #[allow(missing_docs)]
    pub sector_ns: Option<f64>,
    /// Places elsewhere that are remembered at the same time.
    pub segments: Option<u32>,
    /// The most consecutive sectors of which the first is still there.
    pub segment_sectors: Option<u32>,
    /// Sectors behind a read that are there after a rest.
    pub read_ahead_sectors: Option<u32>,
}

/// Trials of each question.
const TRIALS: u32 = 6;

/// No reading ahead takes longer.
const REST_NS: u64 = 300_000_000;

/// No segment is looked for that is longer.
const SECTORS_MAX: u64 = 1 << 16;

/// A question to the buffer.
struct Asked<'r, 'a> {
    reader: &'r mut Reader<'a>,
    /// Hits take nearly the same time, and less than most of this; misses are spread over it.
    revolution_ns: f64,
}

impl Asked<'_, '_> {
    /// The times of a last read after what `before` does at a fresh place.
    fn times(
        &mut self,
        before: impl Fn(&mut Reader<'_>, u64) -> io::Result<()>,
        behind: u64,
        sectors: u32,
    ) -> io::Result<Vec<u64>> {
        let mut times = Vec::new();
        for _ in 0..TRIALS {
            let place = self.reader.anywhere(2 * SECTORS_MAX);
            before(self.reader, place)?;
            // A miss would come at the same moment of a revolution each time, and look like a hit.
            let moment_ns = self.reader.below(self.revolution_ns as u64);
            self.reader.rest(moment_ns)?;
            times.push(self.reader.read(place + behind, sectors)?);
        }
        Ok(times)
    }

    fn is_hit(&self, times: &[u64]) -> bool {
        let (least, most) = (times.iter().min().copied().unwrap_or(0), times.iter().max().copied().unwrap_or(0));
        ((most - least) as f64) < self.revolution_ns / 6.0 && (most as f64) < 0.8 * self.revolution_ns
    }

    fn hits(&mut self, before: impl Fn(&mut Reader<'_>, u64) -> io::Result<()>, behind: u64) -> io::Result<bool> {
        let times = self.times(before, behind, 1)?;
        Ok(self.is_hit(&times))
    }

    /// The greatest number up to a limit of which something holds that holds of all smaller ones; 0 if it does not hold
    /// of 1.
    fn greatest(&mut self, limit: u64, mut holds: impl FnMut(&mut Self, u64) -> io::Result<bool>) -> io::Result<u64> {
        let (mut good, mut bad) = (0, 1);
        while bad <= limit && holds(self, bad)? {
            good = bad;
            bad *= 2;
        }
        while bad - good > 1 && good > 0 {
            let middle = good + (bad - good) / 2;
            if holds(self, middle)? {
                good = middle;
            } else {
                bad = middle;
            }
        }
        Ok(good)
    }
}

/// Asks the buffer.
pub(super) fn find(reader: &mut Reader<'_>, revolution_ns: f64, track_sectors: u32) -> io::Result<Buffer> {
    let limit = SECTORS_MAX.min(reader.capacity / 8);
    let mut asked = Asked { reader, revolution_ns };
    let one = |reader: &mut Reader<'_>, place: u64| reader.read(place, 1).map(drop);
    let keeps = asked.hits(one, 0)?;
    let rested = |reader: &mut Reader<'_>, place: u64| {
        reader.read(place, 1)?;
        reader.rest(REST_NS)
    };
    let ahead = asked.greatest(limit, |asked, sectors| asked.hits(rested, sectors))?;
    // What can be hit: the same again, or what comes next.
    if !keeps && ahead == 0 {
        return Ok(Buffer::default());
    }
    let behind = u64::from(!keeps);
    let mut sizes = Vec::new();
    for sectors in [1u32, 2, 4, 8, 16] {
        let times = asked.times(
            |reader, place| {
                reader.read(place, sectors)?;
                reader.rest(REST_NS)
            },
            if keeps { 0 } else { u64::from(sectors) },
            sectors,
        )?;
        if asked.is_hit(&times) {
            sizes.push((f64::from(sectors), median(&times)));
        }
    }
    let line = match (sizes.first(), sizes.last()) {
        (Some(first), Some(last)) if last.0 > first.0 => {
            let each = (last.1 - first.1) / (last.0 - first.0);
            Some((first.1 - first.0 * each, each))
        }
        _ => None,
    };
    let others = asked.greatest(u64::from(FORGOTTEN_AFTER), |asked, others| {
        asked.hits(
            |reader, place| {
                rested(reader, place)?;
                for _ in 0..others {
                    let elsewhere = reader.anywhere(1);
                    reader.read(elsewhere, 1)?;
                }
                Ok(())
            },
            behind,
        )
    })?;
    let longest = if keeps {
        asked.greatest(limit, |asked, sectors| {
            asked.hits(
                |reader, place| {
                    let mut next = 0;
                    while next < sectors {
                        let part = (sectors - next).min(64);
                        reader.read(place + next, part as u32)?;
                        next += part;
                    }
                    Ok(())
                },
                0,
            )
        })?
    } else {
        0
    };
    // While the moment of the question is waited for, reading ahead goes on at the end and drops as much of the start.
    let dropped = ahead.min(u64::from(track_sectors) * u64::from(TRIALS) / u64::from(TRIALS + 1));
    let longest = if longest > 0 { longest + dropped } else { 0 };
    let count = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
    Ok(Buffer {
        keeps,
        hit_ns: line.map(|(begins, _)| begins.max(0.0)),
        sector_ns: line.map(|(_, each)| each.max(0.0)),
        segments: Some(count(others + 1)),
        segment_sectors: (longest > 0).then(|| count(longest)),
        read_ahead_sectors: Some(count(ahead)),
    })
}
