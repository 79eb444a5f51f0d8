//! What was made, for the controller and for the fit.

use super::prepared::Prepared;
use crate::DAY_NS;

/// Classes of a histogram over powers of two, eight to each.
pub(super) const CLASSES: usize = 8 * 60;

/// Class of a value of at least 2^-10.
pub(super) fn class(value: f64) -> usize {
    // A cast saturates at 0 and at the largest.
    (((value.max(1e-300).log2() + 10.0) * 8.0).floor() as usize).min(CLASSES - 1)
}

/// Upper end of a class.
pub(super) fn class_end(class: usize) -> f64 {
    ((class + 1) as f64 / 8.0 - 10.0).exp2()
}

/// Of one stream.
#[derive(Clone, Debug)]
pub(super) struct StreamBooks {
    /// Files created, by size.
    pub(super) sizes: Vec<u64>,
    /// Bytes in them, by size.
    pub(super) bytes: Vec<u64>,
    /// Files created in the first half of the time.
    pub(super) cohort: u64,
    /// Of these, those that died, by lifetime in seconds.
    pub(super) lifetimes: Vec<u64>,
    /// Expected per arrival: share of arrivals times files in each.
    files: f64,
    mean_bytes: f64,
    lasting_share: f64,
    mean_life_days: f64,
    passing_days: f64,
}

/// What is expected of one arrival.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    /// Bytes that last.
    pub(super) lasting_bytes: f64,
    /// How long these stay.
    pub(super) residence_days: f64,
    /// Bytes times days of what does not last.
    pub(super) passing_byte_days: f64,
}

/// Of all.
#[derive(Clone, Debug)]
pub(super) struct Books {
    pub(super) streams: Vec<StreamBooks>,
    half_ns: u64,
    /// Files deleted.
    pub(super) died: u64,
    /// Of these, deleted before their time to make room.
    pub(super) died_early: u64,
    /// Files not made because nothing could make room for them.
    pub(super) no_room: u64,
}

impl Books {
    pub(super) fn new(streams: &[Prepared], days: u32) -> Books {
        let shares: f64 = streams.iter().map(|s| s.stream.share).sum();
        let of = |s: &Prepared| StreamBooks {
            sizes: vec![0; CLASSES],
            bytes: vec![0; CLASSES],
            cohort: 0,
            lifetimes: vec![0; CLASSES],
            files: s.stream.share / shares * s.stream.batch.mean.min(s.batch_max),
            mean_bytes: s.size.mean_bytes(),
            lasting_share: 1.0 - s.life.share_below(43_200.0),
            mean_life_days: s.life.mean_s() / 86_400.0,
            // Of those that live less than half a day: how long.
            passing_days: (s.life.mean_up_to_s(43_200.0) / 86_400.0 - 0.5 * (1.0 - s.life.share_below(43_200.0)))
                .max(0.0),
        };
        Books {
            streams: streams.iter().map(of).collect(),
            half_ns: u64::from(days) * DAY_NS / 2,
            died: 0,
            died_early: 0,
            no_room: 0,
        }
    }

    /// What is expected of one arrival, in blocks of `block` bytes.
    pub(super) fn arrival(&self, block: f64) -> Arrival {
        let (mut bytes, mut byte_days, mut passing_byte_days) = (0.0, 0.0, 0.0);
        for s in &self.streams {
            let each = s.files * (s.mean_bytes + block / 2.0);
            bytes += each * s.lasting_share;
            byte_days += each * s.mean_life_days;
            passing_byte_days += each * s.passing_days;
        }
        let residence_days = (byte_days / bytes.max(1e-9)).max(1e-3);
        Arrival { lasting_bytes: bytes.max(1.0), residence_days, passing_byte_days }
    }

    /// Expected share of the live files that each stream has.
    pub(super) fn expected_alive(&self) -> Vec<f64> {
        self.streams.iter().map(|s| s.files * s.mean_life_days).collect()
    }

    pub(super) fn created(&mut self, stream: usize, size: u64, born_ns: u64) {
        let half = self.half_ns;
        if let Some(s) = self.streams.get_mut(stream) {
            let class = class(size as f64);
            if let (Some(n), Some(bytes)) = (s.sizes.get_mut(class), s.bytes.get_mut(class)) {
                *n += 1;
                *bytes += size;
            }
            s.cohort += u64::from(born_ns < half);
        }
    }

    pub(super) fn died(&mut self, stream: usize, born_ns: u64, now_ns: u64, early: bool, counted: bool) {
        self.died += 1;
        self.died_early += u64::from(early);
        let lived_s = now_ns.saturating_sub(born_ns) as f64 / 1e9;
        if let (true, Some(s)) = (counted && born_ns < self.half_ns, self.streams.get_mut(stream))
            && let Some(n) = s.lifetimes.get_mut(class(lived_s))
        {
            *n += 1;
        }
    }
}
