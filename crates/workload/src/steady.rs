//! When a workload has warmed up: its rate neither drifts nor jumps any more.
//!
//! Rates come window by window. What the kernel does now and then (the syncer every 30 seconds) makes short windows
//! jump for ever, so they are grouped, and the groups grow with the time that has passed.

/// Groups that are looked at, in two halves.
const GROUPS: usize = 8;
/// Windows so far, for each window in a group: the last quarter of them is looked at.
const WINDOWS_PER_GROUP_SIZE: usize = 32;
/// How far the means of the halves may lie apart: more is drift.
const DRIFT_MAX: f64 = 0.02;
/// How far the latest groups may lie from their mean: more is not settled.
const SPREAD_MAX: f64 = 0.10;

/// The rates of the windows so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Steady {
    rates: Vec<f64>,
}

impl Steady {
    pub(crate) fn push(&mut self, rate: f64) {
        self.rates.push(rate);
    }

    pub(crate) fn windows(&self) -> usize {
        self.rates.len()
    }

    /// Whether the last eight groups are alike: the later four on average within 2 % of the earlier four, and each of
    /// them within 10 % of that average.
    pub(crate) fn is_steady(&self) -> bool {
        let size = (self.rates.len() / WINDOWS_PER_GROUP_SIZE).max(1);
        let Some(from) = self.rates.len().checked_sub(GROUPS * size) else { return false };
        let mean = |rates: &[f64]| rates.iter().sum::<f64>() / rates.len() as f64;
        let groups: Vec<f64> = self.rates.get(from..).unwrap_or_default().chunks(size).map(mean).collect();
        let (earlier, later) = groups.split_at(groups.len() / 2);
        let (before, now) = (mean(earlier), mean(later));
        let near = |value: f64, max: f64| (value - now).abs() <= max * now;
        near(before, DRIFT_MAX) && later.iter().all(|rate| near(*rate, SPREAD_MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steady(rates: impl IntoIterator<Item = f64>) -> bool {
        let mut steady = Steady::default();
        rates.into_iter().for_each(|rate| steady.push(rate));
        steady.is_steady()
    }

    #[test]
    fn level_rates_are_steady_and_others_are_not() {
        assert!(steady([10.0; 8]));
        assert!(steady([1.0, 50.0, 10.1, 9.9, 10.0, 10.2, 9.8, 10.0, 10.1, 10.0]), "what was long ago does not matter");
        assert!(!steady([10.0; 7]), "too few to say");
        assert!(!steady((0..8).map(|n| 10.0 + f64::from(n))), "a drift");
        assert!(!steady([10.0, 10.0, 10.0, 10.0, 10.0, 10.0, 12.0, 8.0]), "a jump");
        let every_third = |n: u32| if n.is_multiple_of(3) { 5.0 } else { 10.0 };
        assert!(
            !steady((0..31).map(every_third)) && steady((0..96).map(every_third)),
            "jumps that come again and again"
        );
    }
}
