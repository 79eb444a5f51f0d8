//! How long the arm takes over a distance.

use crate::disk::spec::{DiskSpec, between, ns};

/// Seek times by distance, and what else moving costs.
#[derive(Clone, Debug)]
pub struct Seek {
    /// Entry d is a seek over d cylinders.
    by_distance_ns: Vec<u32>,
    /// The same for what a write adds.
    settle_ns: Vec<i32>,
    /// What a seek inward takes longer than one outward; empty where both are alike.
    inward_ns: Vec<i32>,
    /// By how much settling varies; empty if it does not.
    spread_ns: Vec<u32>,
    head_switch_ns: u64,
}

impl Seek {
    /// The times of a checked specification.
    pub(crate) fn new(spec: &DiskSpec) -> Seek {
        let cylinders = spec.zones.last().map_or(1, |zone| zone.cylinders[1] + 1);
        let mut by_distance_ns = vec![0u32; cylinders as usize];
        for (distance, entry) in by_distance_ns.iter_mut().enumerate().skip(1) {
            *entry = u32::try_from(ns(spec.seek.distance_ms(distance as u32))).unwrap_or(u32::MAX);
        }
        let settle = |distance| (spec.seek.settle_ms(distance as u32) * 1e6).round() as i32;
        let settle_ns = (0..by_distance_ns.len()).map(settle).collect();
        let points = &spec.seek.write_settle_spread_by_distance;
        let spread = |distance| (between(points, distance as u32).unwrap_or(0.0) * 1e6).round() as u32;
        let spread_ns = if points.is_empty() { Vec::new() } else { (0..by_distance_ns.len()).map(spread).collect() };
        let points = &spec.seek.inward_by_distance;
        let inward = |distance| (between(points, distance as u32).unwrap_or(0.0) * 1e6).round() as i32;
        let inward_ns = if points.is_empty() { Vec::new() } else { (0..by_distance_ns.len()).map(inward).collect() };
        Seek { by_distance_ns, settle_ns, inward_ns, spread_ns, head_switch_ns: ns(spec.seek.head_switch_ms) }
    }

    /// A seek over a distance, without switching heads or settling. Distances beyond the disk count as its widest.
    pub fn distance_ns(&self, cylinders: u32) -> u64 {
        let index = (cylinders as usize).min(self.by_distance_ns.len() - 1);
        u64::from(self.by_distance_ns[index])
    }

    /// From one track to another: the arm and the head switch overlap; a write settles after either.
    pub fn move_ns(&self, from: (u32, u32), to: (u32, u32), write: bool) -> u64 {
        let distance = (from.0.abs_diff(to.0) as usize).min(self.by_distance_ns.len() - 1);
        let mut arm_ns = u64::from(self.by_distance_ns[distance]);
        if to.0 > from.0
            && let Some(&inward_ns) = self.inward_ns.get(distance)
        {
            arm_ns = arm_ns.saturating_add_signed(i64::from(inward_ns));
        }
        let head_ns = if from.1 == to.1 { 0 } else { self.head_switch_ns };
        let move_ns = arm_ns.max(head_ns);
        if !write || move_ns == 0 {
            return move_ns;
        }
        let settled_ns = move_ns.saturating_add_signed(i64::from(self.settle_ns[distance]));
        match self.spread_ns.get(distance) {
            Some(&spread_ns) => settled_ns + varied(from, to, spread_ns),
            None => settled_ns,
        }
    }

    /// Mean over random pairs of cylinders: distance d of N has probability 2 (N - d) / N^2.
    pub fn mean_ns(&self) -> f64 {
        let n = self.by_distance_ns.len() as f64;
        let weighted = |(d, &time): (usize, &u32)| f64::from(time) * 2.0 * (n - d as f64) / (n * n);
        self.by_distance_ns.iter().enumerate().map(weighted).sum()
    }

    /// A seek over the whole width.
    pub fn full_ns(&self) -> u64 {
        self.by_distance_ns.last().map_or(0, |&time| u64::from(time))
    }
}

/// A seek's share of a spread: from where to where it goes decides, so that the same seek always takes the same time.
fn varied(from: (u32, u32), to: (u32, u32), spread_ns: u32) -> u64 {
    let track = |(cylinder, head): (u32, u32)| u64::from(cylinder) << 32 | u64::from(head);
    let share = stats::random::mix(track(from), track(to)) >> 32;
    (u64::from(spread_ns) * share) >> 32
}
