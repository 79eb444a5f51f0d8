//! How long the arm takes over a distance.

use crate::disk::spec::{DiskSpec, SeekSpec, ns};

/// Seek times by distance, and what else moving costs.
#[derive(Clone, Debug)]
pub struct Seek {
    /// Entry d is a seek over d cylinders.
    by_distance_ns: Vec<u32>,
    /// The same for what a write adds.
    settle_ns: Vec<i32>,
    head_switch_ns: u64,
}

impl Seek {
    /// The times of a checked specification.
    pub(crate) fn new(spec: &DiskSpec) -> Seek {
        let cylinders = spec.zones.last().map_or(1, |zone| zone.cylinders[1] + 1);
        let mut by_distance_ns = vec![0u32; cylinders as usize];
        for (distance, entry) in by_distance_ns.iter_mut().enumerate().skip(1) {
            *entry = u32::try_from(ns(distance_ms(&spec.seek, distance as u32))).unwrap_or(u32::MAX);
        }
        let settle = |distance| (settle_ms(&spec.seek, distance as u32) * 1e6).round() as i32;
        let settle_ns = (0..by_distance_ns.len()).map(settle).collect();
        Seek { by_distance_ns, settle_ns, head_switch_ns: ns(spec.seek.head_switch_ms) }
    }

    /// A seek over a distance, without switching heads or settling. Distances beyond the disk count as its widest.
    pub fn distance_ns(&self, cylinders: u32) -> u64 {
        let index = (cylinders as usize).min(self.by_distance_ns.len() - 1);
        u64::from(self.by_distance_ns[index])
    }

    /// From one track to another: the arm and the head switch overlap; a write settles after either.
    pub fn move_ns(&self, from: (u32, u32), to: (u32, u32), write: bool) -> u64 {
        let distance = (from.0.abs_diff(to.0) as usize).min(self.by_distance_ns.len() - 1);
        let arm_ns = u64::from(self.by_distance_ns[distance]);
        let head_ns = if from.1 == to.1 { 0 } else { self.head_switch_ns };
        let move_ns = arm_ns.max(head_ns);
        if write && move_ns > 0 { move_ns.saturating_add_signed(i64::from(self.settle_ns[distance])) } else { move_ns }
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

/// The table where it reaches; else the curve; else the table's last line drawn on.
fn distance_ms(spec: &SeekSpec, distance: u32) -> f64 {
    let at = spec.table.partition_point(|&(d, _)| d < distance);
    let in_table = spec.table.get(at);
    if let (None, Some([a, b]), Some([c, e])) = (in_table, spec.short, spec.long) {
        let d = f64::from(distance);
        return if distance <= spec.knee_cylinders { a + b * d.sqrt() } else { c + e * d };
    }
    match (at.checked_sub(1).and_then(|before| spec.table.get(before)), in_table) {
        (_, Some(&(d, ms))) if d == distance => ms,
        (None, Some(&(_, ms))) => ms,
        (Some(&low), Some(&high)) => line(low, high, distance),
        (Some(&last), None) => match at.checked_sub(2).and_then(|n| spec.table.get(n)) {
            Some(&previous) => line(previous, last, distance),
            None => last.1,
        },
        (None, None) => 0.0,
    }
}

/// By distance where the drive's file says so; else the same for all.
fn settle_ms(spec: &SeekSpec, distance: u32) -> f64 {
    let points = &spec.write_settle_by_distance;
    let at = points.partition_point(|&(d, _)| d < distance);
    match (at.checked_sub(1).and_then(|before| points.get(before)), points.get(at)) {
        (Some(&low), Some(&high)) => line(low, high, distance),
        (Some(&(_, ms)), None) | (None, Some(&(_, ms))) => ms,
        (None, None) => spec.write_settle_ms,
    }
}

fn line((d0, t0): (u32, f64), (d1, t1): (u32, f64), distance: u32) -> f64 {
    t0 + (t1 - t0) * (f64::from(distance) - f64::from(d0)) / (f64::from(d1) - f64::from(d0))
}
