//! Prices between and beyond the measured points, as linear combinations of entries.
//!
//! A request vector counts entries, so the price of any size must be a weighted sum of them:
//!
//! * a single cost: that entry;
//! * a curve, between two points: linear in the size;
//! * below the first point: the first point's cost (a request of 100 bytes costs no less than one of the smallest
//!   size, whose cost is the call's own);
//! * beyond the last point: along the last segment. Where noise makes that segment fall, the last point's
//!   cost in proportion to the size, so that no price is ever negative.
//!
//! A class without an entry in the profile has no price: the caller decides what stands in for it, and says so.

use super::{Reuse, SystemProfile};
use crate::vector::{Class, Part, parse_entry_name};

/// A price as a linear combination of at most two entries; weights may be negative beyond the last point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PricePoint {
    /// The first (or only) entry.
    pub first: Term,
    /// The second entry.
    pub second: Option<Term>,
}

/// An entry, by its number in [`PriceTable::names`], and how often it counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Term {
    /// Number of the entry.
    pub entry: u16,
    /// Its weight.
    pub weight: f64,
}

impl PricePoint {
    /// The terms, in order.
    pub fn terms(&self) -> impl Iterator<Item = Term> {
        std::iter::once(self.first).chain(self.second)
    }
}

/// A reuse distance ([`Reuse`]) to the nearest power of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Distance(u8);

impl Distance {
    /// How many there are: from 1 to [`Reuse::FARTHEST`].
    pub const STEPS: usize = Reuse::FARTHEST.ilog2() as usize + 1;

    /// The power of two.
    #[inline]
    pub fn step(self) -> usize {
        usize::from(self.0)
    }

    /// Of a number of calls.
    #[inline]
    pub fn of(calls: u64) -> Distance {
        let calls = calls.clamp(1, Reuse::FARTHEST);
        let below = calls.ilog2();
        // The middle between two powers is that of their logarithms: a half more than the lower one, and a little less.
        let up = calls * calls > 1 << (2 * below + 1);
        Distance((below + u32::from(up)) as u8)
    }
}

/// A profile prepared for pricing: entries numbered in the order of [`SystemProfile::entries`], curves sorted by size.
#[derive(Clone, Debug)]
pub struct PriceTable {
    names: Vec<String>,
    means_ns: Vec<f64>,
    by_distance: Vec<[f64; Distance::STEPS]>,
    beside: Vec<f64>,
    /// By class number: the points (size, entry) in order of size; a single cost has the one point (0, entry).
    points: Vec<Vec<(u64, u16)>>,
    refuses_fallocate: bool,
}

impl PriceTable {
    /// Numbers a profile's entries. Names that are not of the system vector are left out; a loaded profile has none.
    pub fn new(profile: &SystemProfile) -> PriceTable {
        let mut table = PriceTable {
            names: Vec::with_capacity(profile.entries.len()),
            means_ns: Vec::with_capacity(profile.entries.len()),
            by_distance: Vec::with_capacity(profile.entries.len()),
            beside: Vec::with_capacity(profile.entries.len()),
            points: vec![Vec::new(); Class::ALL.len()],
            refuses_fallocate: profile.behaviour.preallocates == Some(false),
        };
        let beside = profile.parameters.slowdown_beside();
        for (name, entry) in &profile.entries {
            let Some((class, at)) = parse_entry_name(name) else { continue };
            let Ok(number) = u16::try_from(table.names.len()) else { break };
            table.names.push(name.clone());
            table.means_ns.push(entry.mean_ns);
            table.by_distance.push(std::array::from_fn(|step| entry.reuse.map_or(1.0, |r| r.factor(1 << step))));
            table.beside.push(if class.part() == Part::Processor { beside } else { 1.0 });
            if let Some(points) = table.points.get_mut(class as usize) {
                points.push((at, number));
            }
        }
        for points in &mut table.points {
            points.sort_unstable();
        }
        table
    }

    /// Entry names by number.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Mean costs by number, nanoseconds.
    pub fn means_ns(&self) -> &[f64] {
        &self.means_ns
    }

    /// What a cost is multiplied by where a call of the same kind was made so many calls ago ([`Distance`]), by number.
    #[inline]
    pub fn reused(&self, entry: usize, distance: Distance) -> f64 {
        self.by_distance.get(entry).map_or(1.0, |factors| factors[distance.step()])
    }

    /// What a cost is multiplied by while another thread is in a call, by number.
    #[inline]
    pub fn beside(&self, entry: usize) -> f64 {
        self.beside.get(entry).copied().unwrap_or(1.0)
    }

    /// Whether fallocate was refused when the system was measured.
    pub fn refuses_fallocate(&self) -> bool {
        self.refuses_fallocate
    }

    /// Whether the class has any price.
    pub fn has(&self, class: Class) -> bool {
        self.points.get(class as usize).is_some_and(|points| !points.is_empty())
    }

    /// The price of one operation of the class at a size (ignored for a single cost), in entries.
    #[inline]
    pub fn point(&self, class: Class, size: u64) -> Option<PricePoint> {
        let points = self.points.get(class as usize)?;
        match points.as_slice() {
            // Most calls are single costs.
            &[(at, entry)] if size <= at || !class.is_curve() => {
                Some(PricePoint { first: Term { entry, weight: 1.0 }, second: None })
            }
            points => self.point_of_curve(points, class, size),
        }
    }

    fn point_of_curve(&self, points: &[(u64, u16)], class: Class, size: u64) -> Option<PricePoint> {
        let only = |entry, weight| Some(PricePoint { first: Term { entry, weight }, second: None });
        let above = points.partition_point(|&(at, _)| at < size);
        match (above.checked_sub(1).and_then(|below| points.get(below)), points.get(above)) {
            (_, Some(&(at, entry))) if at == size => only(entry, 1.0),
            (None, Some(&(_, entry))) => only(entry, 1.0),
            (None, None) => None,
            (Some(&low), Some(&high)) => Some(along(low, high, size)),
            (Some(&(_, entry)), None) if !class.is_curve() => only(entry, 1.0),
            (Some(&last), None) => {
                let previous = above.checked_sub(2).and_then(|at| points.get(at));
                match previous {
                    Some(&previous) if self.mean(last.1) >= self.mean(previous.1) => Some(along(previous, last, size)),
                    _ if last.0 > 0 => only(last.1, size as f64 / last.0 as f64),
                    _ => only(last.1, 1.0),
                }
            }
        }
    }

    /// The price of one operation in nanoseconds.
    pub fn price_ns(&self, class: Class, size: u64) -> Option<f64> {
        self.point(class, size).map(|point| point.terms().map(|t| t.weight * self.mean(t.entry)).sum())
    }

    fn mean(&self, entry: u16) -> f64 {
        self.means_ns.get(usize::from(entry)).copied().unwrap_or(0.0)
    }
}

/// The straight line through two points, at `size`.
fn along(low: (u64, u16), high: (u64, u16), size: u64) -> PricePoint {
    let share = (size - low.0) as f64 / (high.0 - low.0) as f64;
    PricePoint {
        first: Term { entry: low.1, weight: 1.0 - share },
        second: Some(Term { entry: high.1, weight: share }),
    }
}

impl SystemProfile {
    /// The price of one operation in entries by name and weight. For many prices build a [`PriceTable`] once.
    pub fn price_point(&self, class: Class, size: u64) -> Option<Vec<(String, f64)>> {
        let table = PriceTable::new(self);
        let point = table.point(class, size)?;
        Some(point.terms().filter_map(|t| Some((table.names.get(usize::from(t.entry))?.clone(), t.weight))).collect())
    }

    /// The price of one operation in nanoseconds, by interpolation. For many prices build a [`PriceTable`] once.
    pub fn get(&self, class: Class, size: u64) -> Option<f64> {
        PriceTable::new(self).price_ns(class, size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Entry;

    fn profile(entries: &[(&str, f64)]) -> SystemProfile {
        SystemProfile {
            entries: entries.iter().map(|&(name, mean)| (name.to_owned(), Entry::exactly(mean))).collect(),
            ..SystemProfile::default()
        }
    }

    #[test]
    fn on_between_below_and_beyond_the_points() {
        let p = profile(&[("open", 7.0), ("rdc_4096", 100.0), ("rdc_16384", 400.0), ("rdc_65536", 1600.0)]);
        assert_eq!(p.get(Class::Open, 123), Some(7.0));
        assert_eq!(p.get(Class::ReadCached, 4096), Some(100.0));
        assert_eq!(p.get(Class::ReadCached, 10240), Some(250.0));
        assert_eq!(p.get(Class::ReadCached, 1), Some(100.0));
        assert_eq!(p.get(Class::ReadCached, 131072), Some(3200.0));
        assert_eq!(p.get(Class::Create, 0), None);
    }

    #[test]
    fn distances_are_powers_of_two_up_to_the_farthest() {
        let steps: Vec<u8> = [0, 1, 2, 3, 4, 5, 6, 11, 12, 180, 182, 256, u64::MAX].map(|n| Distance::of(n).0).to_vec();
        assert_eq!(steps, [0, 0, 1, 2, 2, 2, 3, 3, 4, 7, 8, 8, 8]);
        let mut p = profile(&[("open", 100.0), ("close", 10.0)]);
        p.entries.get_mut("open").unwrap().reuse = Some(Reuse { distance: 16.0, power: 0.5 });
        let table = PriceTable::new(&p);
        let open = table.names().iter().position(|name| name == "open").unwrap();
        let factors = [1, 16, 64, 100_000].map(|calls| table.reused(open, Distance::of(calls)));
        assert_eq!(factors, [0.25, 1.0, 2.0, 4.0]);
        assert_eq!(table.reused(1 - open, Distance::of(1)), 1.0);
    }

    #[test]
    fn a_falling_last_segment_is_not_followed() {
        let p = profile(&[("rm_0", 50.0), ("rm_4096", 40.0)]);
        assert_eq!(p.get(Class::Remove, 40960), Some(400.0));
        let p = profile(&[("rm_0", 50.0)]);
        assert_eq!(p.get(Class::Remove, 40960), Some(50.0));
    }

    #[test]
    fn points_are_ordered_by_size_and_not_by_name() {
        let p = profile(&[("readdir_0", 1.0), ("readdir_10", 2.0), ("readdir_100", 11.0), ("readdir_1000", 101.0)]);
        assert_eq!(p.get(Class::ReadDir, 55), Some(6.5));
        assert_eq!(p.get(Class::ReadDir, 2000), Some(201.0));
    }
}
