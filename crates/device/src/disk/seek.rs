//! How long the arm takes over a distance.

use crate::disk::spec::{DiskSpec, between, ns};

/// Seek times by distance, and what else moving costs.
#[derive(Clone, Debug)]
pub struct Seek {
    /// Entry d is a seek over d cylinders.
    by_distance: Vec<Times>,
    head_switch_ns: u64,
}

/// Of a seek over a distance.
#[derive(Clone, Copy, Debug)]
struct Times {
    outward_ns: u32,
    inward_ns: u32,
    /// What a write adds.
    settle_ns: i32,
    /// By how much settling varies.
    spread_ns: u32,
}

impl Seek {
    /// The times of a checked specification.
    pub(crate) fn new(spec: &DiskSpec) -> Seek {
        let cylinders = spec.zones.last().map_or(1, |zone| zone.cylinders[1] + 1);
        let seek = &spec.seek;
        let inward_ns = |distance| (between(&seek.inward_by_distance, distance).unwrap_or(0.0) * 1e6).round() as i32;
        let spread_ms = |distance| between(&seek.write_settle_spread_by_distance, distance).unwrap_or(0.0);
        let times = |distance| {
            let outward_ns =
                if distance == 0 { 0 } else { u32::try_from(ns(seek.distance_ms(distance))).unwrap_or(u32::MAX) };
            Times {
                outward_ns,
                inward_ns: outward_ns.saturating_add_signed(inward_ns(distance)),
                settle_ns: (seek.settle_ms(distance) * 1e6).round() as i32,
                spread_ns: (spread_ms(distance) * 1e6).round() as u32,
            }
        };
        Seek { by_distance: (0..cylinders).map(times).collect(), head_switch_ns: ns(seek.head_switch_ms) }
    }

    /// Distances beyond the disk count as its widest.
    #[inline]
    fn over(&self, cylinders: u32) -> Times {
        self.by_distance[(cylinders as usize).min(self.by_distance.len() - 1)]
    }

    /// A seek over a distance, without switching heads or settling. Distances beyond the disk count as its widest.
    pub fn distance_ns(&self, cylinders: u32) -> u64 {
        u64::from(self.over(cylinders).outward_ns)
    }

    /// From one track to another: the arm and the head switch overlap; a write settles after either.
    #[inline(always)] // Once for each run of blocks: a call of its own costs a hundredth of a model's instructions.
    pub fn move_ns(&self, from: (u32, u32), to: (u32, u32), write: bool) -> u64 {
        let times = self.over(from.0.abs_diff(to.0));
        let arm_ns = u64::from(if to.0 > from.0 { times.inward_ns } else { times.outward_ns });
        let head_ns = if from.1 == to.1 { 0 } else { self.head_switch_ns };
        let move_ns = arm_ns.max(head_ns);
        if !write || move_ns == 0 {
            return move_ns;
        }
        let settled_ns = move_ns.saturating_add_signed(i64::from(times.settle_ns));
        if times.spread_ns == 0 { settled_ns } else { settled_ns + varied(from, to, times.spread_ns) }
    }

    /// Mean over random pairs of cylinders: distance d of N has probability 2 (N - d) / N^2.
    pub fn mean_ns(&self) -> f64 {
        let n = self.by_distance.len() as f64;
        let weighted = |(d, times): (usize, &Times)| f64::from(times.outward_ns) * 2.0 * (n - d as f64) / (n * n);
        self.by_distance.iter().enumerate().map(weighted).sum()
    }

    /// A seek over the whole width.
    pub fn full_ns(&self) -> u64 {
        self.by_distance.last().map_or(0, |times| u64::from(times.outward_ns))
    }
}

/// A seek's share of a spread: from where to where it goes decides, so that the same seek always takes the same time.
fn varied(from: (u32, u32), to: (u32, u32), spread_ns: u32) -> u64 {
    let track = |(cylinder, head): (u32, u32)| u64::from(cylinder) << 32 | u64::from(head);
    let share = stats::random::mix(track(from), track(to)) >> 32;
    (u64::from(spread_ns) * share) >> 32
}
