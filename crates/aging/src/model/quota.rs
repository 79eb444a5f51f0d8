//! Keeping a live population to a distribution: each new member goes where the population lacks most.
//!
//! Drawing every size independently leaves the shares of *bytes* to luck, because a few large files hold most of them.
//! Here the distribution is cut into strata; for a population of n each stratum's number is known to within one, and a
//! new member is drawn into a stratum that has too few.

use super::Rng;
use stats::random::{index, unit};

/// How many members each stratum has, and should have.
#[derive(Clone, Debug)]
pub struct Quota {
    /// Share of members up to the end of each stratum; the last is 1.
    ends: Vec<f64>,
    have: Vec<u32>,
    want: Vec<u32>,
    lacking: u64,
    population: u64,
    planned_for: u64,
    phase: f64,
}

impl Quota {
    /// Strata that end at these shares (ascending, the last 1). `phase`, 0 to 1, decides which strata round up.
    pub fn new(ends: Vec<f64>, phase: f64) -> Quota {
        let n = ends.len();
        Quota { ends, have: vec![0; n], want: vec![0; n], lacking: 0, population: 0, planned_for: 0, phase }
    }

    /// Members now.
    pub fn population(&self) -> u64 {
        self.population
    }

    /// Members of each stratum now.
    pub fn have(&self) -> &[u32] {
        &self.have
    }

    /// Members of each stratum as planned.
    pub fn want(&self) -> &[u32] {
        &self.want
    }

    /// Share of members up to the end of each stratum, as planned.
    pub fn ends(&self) -> &[f64] {
        &self.ends
    }

    /// Plans for a population of `n`, and for no larger one while it is not reached.
    pub fn plan_for(&mut self, n: u64) {
        self.planned_for = n;
        self.lacking = 0;
        let mut before = 0u64;
        for ((want, have), end) in self.want.iter_mut().zip(&self.have).zip(&self.ends) {
            // Rounding the cumulative number keeps every cumulative share to within one member.
            let up_to = ((n as f64 * end + self.phase).floor() as u64).max(before);
            *want = u32::try_from(up_to - before).unwrap_or(u32::MAX);
            self.lacking += u64::from(want.saturating_sub(*have));
            before = up_to;
        }
    }

    /// Draws the stratum of a new member. It counts once it is [added](Quota::add).
    pub fn draw(&mut self, rng: &mut Rng) -> usize {
        // The plan is for a population a little larger than now, so that there is always something lacking.
        if self.lacking == 0 || self.planned_for <= self.population {
            self.plan_for(self.population + 1 + self.population / 64);
        }
        if self.lacking == 0 {
            return self.at(unit(rng));
        }
        let mut place = index(rng, usize::try_from(self.lacking).unwrap_or(usize::MAX)) as u64;
        for (i, (want, have)) in self.want.iter().zip(&self.have).enumerate() {
            let lack = u64::from(want.saturating_sub(*have));
            if place < lack {
                return i;
            }
            place -= lack;
        }
        self.have.len() - 1
    }

    /// The stratum that holds a share.
    pub fn at(&self, share: f64) -> usize {
        self.ends.partition_point(|end| *end <= share).min(self.ends.len() - 1)
    }

    /// Where a stratum begins and ends, as shares of members.
    pub fn range(&self, stratum: usize) -> (f64, f64) {
        let low = stratum.checked_sub(1).and_then(|i| self.ends.get(i)).copied().unwrap_or(0.0);
        (low, self.ends.get(stratum).copied().unwrap_or(1.0))
    }

    /// A random place in a stratum, as a share of members.
    #[inline]
    pub fn within(&self, stratum: usize, rng: &mut Rng) -> f64 {
        let (low, high) = self.range(stratum);
        low + (high - low) * unit(rng)
    }

    /// One more member.
    pub fn add(&mut self, stratum: usize) {
        if let (Some(have), Some(want)) = (self.have.get_mut(stratum), self.want.get(stratum)) {
            self.lacking -= u64::from(*have < *want);
            *have += 1;
            self.population += 1;
        }
    }

    /// One member less.
    pub fn remove(&mut self, stratum: usize) {
        if let (Some(have), Some(want)) = (self.have.get_mut(stratum), self.want.get(stratum)) {
            *have -= 1;
            self.lacking += u64::from(*have < *want);
            self.population -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::rng;

    #[test]
    fn the_population_keeps_to_the_shares_as_members_come_and_go() {
        let ends = vec![0.5, 0.8, 0.95, 0.999, 1.0];
        let (mut quota, mut rng) = (Quota::new(ends.clone(), 0.3), rng(3));
        let mut members = Vec::new();
        for step in 0..60_000 {
            if members.len() < 3_000 || step % 2 == 0 {
                let stratum = quota.draw(&mut rng);
                quota.add(stratum);
                members.push(stratum);
            } else {
                quota.remove(members.swap_remove(index(&mut rng, members.len())));
            }
            let n = members.len() as f64;
            let mut up_to = 0.0;
            for (have, end) in quota.have().iter().zip(&ends) {
                up_to += f64::from(*have);
                // Within a sixty-fourth of the population, the slack of the plan, and sampling of what leaves.
                assert!((up_to / n - end).abs() < 0.04 + 4.0 / n, "step {step}: {up_to} of {n}, {end}");
            }
        }
        assert_eq!(quota.population(), members.len() as u64);
    }
}
