//! Where files go: directories of the original, of which only the group is known.

use super::Parameters;
use crate::model::Rng;
use crate::plan::personality::time::Clock;
use stats::random::{shuffle, unit};

/// The original's directories by how busy they are.
#[derive(Clone, Debug)]
pub(super) struct Places {
    directories: Vec<Directory>,
    /// Sums of the shares up to each directory, of lasting files and of sessions.
    lasting: Vec<f64>,
    sessions: Vec<f64>,
}

/// A directory of the original.
#[derive(Clone, Copy, Debug)]
pub(super) struct Directory {
    /// Its allocation group.
    pub(super) group: u32,
    /// When it is busiest, nanoseconds from midnight.
    pub(super) peak_ns: u64,
}

impl Places {
    pub(super) fn new(p: &Parameters, clock: &Clock, rng: &mut Rng) -> Places {
        // Ranks are dealt out at random: no group has the busiest by its number.
        let mut groups: Vec<u32> = (0..p.directories).map(|n| n % p.groups.max(1)).collect();
        shuffle(rng, &mut groups);
        let sums = |exponent: f64| {
            let mut sum = 0.0;
            (0..groups.len())
                .map(|rank| {
                    sum += (rank as f64 + 1.0).powf(-exponent);
                    sum
                })
                .collect()
        };
        let (lasting, sessions) = (sums(p.lasting_popularity), sums(p.session_popularity));
        let directories = groups.iter().map(|&group| Directory { group, peak_ns: clock.draw_ns(rng) }).collect();
        Places { directories, lasting, sessions }
    }

    /// Where a lasting file goes.
    pub(super) fn of_lasting(&self, rng: &mut Rng) -> Directory {
        self.pick(&self.lasting, rng)
    }

    /// Where a session takes place.
    pub(super) fn of_session(&self, rng: &mut Rng) -> Directory {
        self.pick(&self.sessions, rng)
    }

    fn pick(&self, sums: &[f64], rng: &mut Rng) -> Directory {
        let at = unit(rng) * sums.last().copied().unwrap_or(0.0);
        let place = sums.partition_point(|end| *end <= at);
        self.directories.get(place).copied().unwrap_or(Directory { group: 0, peak_ns: 0 })
    }
}
