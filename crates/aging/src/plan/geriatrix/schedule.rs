//! How much churn it takes until the ages of the files are those asked for, and which of the files created on the way
//! stay.
//!
//! Geriatrix counts age in operations: the file system's age, from its first file on, is the profile's oldest age, and
//! a class of ages is a window of creations (Kadekodi et al., USENIX ATC 2018, section 4). A window must hold at least
//! as many creations as files of that age are wanted; that alone decides how long the churn must go on.

use super::profile::AgeRow;
use crate::fit;

/// Creations of a run, youngest class first.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    /// Creations that fill the file system.
    pub fill: u64,
    /// Creations after that, each with a deletion.
    pub churn: u64,
    /// Creations in each age class's window.
    pub created: Vec<u64>,
    /// How many of them are alive at the end.
    pub kept: Vec<u64>,
    /// Distance of the ages at the end from the profile's.
    pub ks: f64,
}

impl Schedule {
    /// What `churn` creations after filling with `fill` files come to.
    pub fn new(ages: &[AgeRow], fill: u64, churn: u64) -> Schedule {
        let total = fill + churn;
        let oldest = ages.last().map_or(1.0, |row| row.age);
        let weights: f64 = ages.iter().map(|row| row.weight).sum();
        let (mut created, mut kept) = (Vec::new(), Vec::new());
        let (mut windows, mut survivors, mut wanted) = (0u64, 0u64, 0.0);
        for row in ages {
            let up_to = (row.age / oldest * total as f64).round() as u64;
            let window = up_to.min(total) - windows;
            wanted += row.weight / weights * fill as f64;
            // What a younger class could not hold goes to the next older one.
            let keep = (wanted.round() as u64).saturating_sub(survivors).min(window);
            windows += window;
            survivors += keep;
            created.push(window);
            kept.push(keep);
        }
        let have: Vec<f64> = kept.iter().map(|k| *k as f64).collect();
        let want: Vec<f64> = ages.iter().map(|row| row.weight).collect();
        let ks = fit::ks_of_classes(&have, &want);
        Schedule { fill, churn, created, kept, ks }
    }

    /// The shortest churn after which the ages are within `ks`; the best within `churn_max` creations where there is
    /// none.
    pub fn converging(ages: &[AgeRow], fill: u64, ks: f64, churn_max: u64) -> Schedule {
        let good = |churn| Schedule::new(ages, fill, churn).ks <= ks;
        if !good(churn_max) {
            return Schedule::new(ages, fill, churn_max);
        }
        let (mut low, mut high) = (0, churn_max);
        while low < high {
            let middle = low + (high - low) / 2;
            if good(middle) { high = middle } else { low = middle + 1 }
        }
        Schedule::new(ages, fill, high)
    }

    /// Files alive at the end.
    pub fn survivors(&self) -> u64 {
        self.kept.iter().sum()
    }
}

/// Says of each creation, oldest first, whether its file is alive at the end; evenly spread over its window.
#[derive(Clone, Debug)]
pub struct Keepers<'a> {
    schedule: &'a Schedule,
    class: usize,
    in_window: u64,
}

impl<'a> Keepers<'a> {
    /// From the first creation on.
    pub fn new(schedule: &'a Schedule) -> Keepers<'a> {
        Keepers { schedule, class: schedule.created.len().saturating_sub(1), in_window: 0 }
    }

    /// The next creation.
    pub fn next_stays(&mut self) -> bool {
        loop {
            let class = |of: &[u64]| of.get(self.class).copied().unwrap_or(0);
            let (created, kept) = (class(&self.schedule.created), class(&self.schedule.kept));
            if self.in_window < created {
                let (i, c, k) = (u128::from(self.in_window), u128::from(created), u128::from(kept));
                self.in_window += 1;
                return (i + 1) * k / c > i * k / c;
            }
            if self.class == 0 {
                return true;
            }
            (self.class, self.in_window) = (self.class - 1, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ages(rows: &[(f64, f64)]) -> Vec<AgeRow> {
        rows.iter().map(|(age, weight)| AgeRow { age: *age, weight: *weight }).collect()
    }

    #[test]
    fn a_young_population_needs_long_churn() {
        // Half of the files in the youngest hundredth: 100 files need a window of 50 creations, a hundredth of 5,000.
        let ages = ages(&[(1.0, 1.0), (100.0, 1.0)]);
        let schedule = Schedule::converging(&ages, 100, 0.0, 1_000_000);
        assert!((4_850..=4_900).contains(&schedule.churn), "{}", schedule.churn);
        assert_eq!((schedule.kept.clone(), schedule.ks), (vec![50, 50], 0.0));
        // With half of that churn only half of them can be so young.
        let half = Schedule::new(&ages, 100, 2_400);
        assert_eq!(half.kept, [25, 75]);
        assert!((half.ks - 0.25).abs() < 1e-12);
        let capped = Schedule::converging(&ages, 100, 0.0, 2_400);
        assert_eq!(capped, half);
    }

    #[test]
    fn as_many_stay_as_are_wanted() {
        let ages = ages(&[(1.0, 3.0), (4.0, 2.0), (10.0, 0.0), (64.0, 4.0)]);
        for (fill, churn) in [(1, 0), (1, 5), (1000, 0), (1000, 77), (1000, 50_000)] {
            let schedule = Schedule::new(&ages, fill, churn);
            assert_eq!(schedule.created.iter().sum::<u64>(), fill + churn);
            assert_eq!(schedule.survivors(), fill.min(schedule.survivors()));
            let mut keepers = Keepers::new(&schedule);
            let stay = (0..fill + churn).filter(|_| keepers.next_stays()).count() as u64;
            assert_eq!(stay, schedule.survivors());
        }
        assert_eq!(Schedule::new(&ages, 1000, 50_000).survivors(), 1000);
    }
}
