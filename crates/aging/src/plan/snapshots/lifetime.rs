//! How long files live, estimated from what snapshots show of it, and deletion times drawn from that.
//!
//! A file seen at one snapshot and gone at the next died somewhere between. The published method deletes it at a
//! uniformly random time; but files that are young when they are last seen die soon. The model is a hazard (deaths per
//! file and nanosecond of age) that is constant within each bin of age, the bins growing in width. Observations are
//! censored: a death is known to a window of ages, a survivor only to have outlived one. The hazard of greatest
//! likelihood is found by expectation-maximisation (Turnbull, *The Empirical Distribution Function with Arbitrarily
//! Grouped, Censored and Truncated Data*, J. R. Stat. Soc. B 38, 1976, with constant hazard within bins in place of
//! point masses). Files are at risk only from the age at which they were first seen, so those that never lived to see a
//! snapshot bias nothing.

use std::collections::BTreeMap;

const SECOND_NS: f64 = 1e9;
/// The first bin ends at a second, each further one is wider by this factor, up to thirty years.
const FIRST_NS: f64 = SECOND_NS;
const FACTOR: f64 = std::f64::consts::SQRT_2;
const BINS: usize = 61;
/// Steps per factor of two to which the ages of deaths are rounded before the estimation.
const STEPS: f64 = 8.0;
const ROUNDS: usize = 100;

/// The upper end of a bin of age, nanoseconds.
fn edge(bin: usize) -> f64 {
    if bin + 1 >= BINS { f64::INFINITY } else { FIRST_NS * FACTOR.powi(i32::try_from(bin).unwrap_or(i32::MAX)) }
}

fn bin_of(age_ns: f64) -> usize {
    if age_ns < FIRST_NS {
        return 0;
    }
    // The logarithm can be off by one at the edges.
    let guess = ((age_ns / FIRST_NS).log2() / FACTOR.log2()).floor().clamp(0.0, BINS as f64) as usize;
    let bin = guess.min(BINS - 1);
    if age_ns >= edge(bin) { (bin + 1).min(BINS - 1) } else { bin }
}

/// The parts of an age interval by bins: (bin, length).
fn parts(from_ns: f64, to_ns: f64) -> impl Iterator<Item = (usize, f64)> {
    let last = bin_of(to_ns);
    (bin_of(from_ns)..=last).filter_map(move |bin| {
        let begin = if bin == 0 { 0.0 } else { edge(bin - 1) };
        let len = to_ns.min(edge(bin)) - from_ns.max(begin);
        (len > 0.0).then_some((bin, len))
    })
}

/// What was observed of lifetimes. Ages in nanoseconds.
#[derive(Clone, Debug)]
pub struct Evidence {
    /// Time lived in each bin by files that did not die while watched.
    exposure_ns: Vec<f64>,
    /// Deaths by (age when first watched, window of age at death), rounded.
    deaths: BTreeMap<(u16, u16, u16), u64>,
    count: u64,
}

impl Default for Evidence {
    fn default() -> Self {
        Evidence { exposure_ns: vec![0.0; BINS], deaths: BTreeMap::new(), count: 0 }
    }
}

fn rounded(age_ns: f64) -> u16 {
    ((age_ns.max(0.0) / FIRST_NS * 16.0 + 1.0).log2() * STEPS).round() as u16
}

fn unrounded(step: u16) -> f64 {
    ((f64::from(step) / STEPS).exp2() - 1.0) * FIRST_NS / 16.0
}

impl Evidence {
    /// A file was watched from one age to another, and lived.
    pub fn survived(&mut self, from_ns: f64, to_ns: f64) {
        for (bin, len) in parts(from_ns.max(0.0), to_ns.max(0.0)) {
            if let Some(exposure) = self.exposure_ns.get_mut(bin) {
                *exposure += len;
            }
        }
    }

    /// A file was watched from the age `from_ns`, and died at an age after `low_ns` and up to `high_ns`.
    pub fn died(&mut self, from_ns: f64, low_ns: f64, high_ns: f64) {
        let low = rounded(low_ns.max(from_ns));
        let high = rounded(high_ns).max(low + 1);
        *self.deaths.entry((rounded(from_ns).min(low), low, high)).or_default() += 1;
        self.count += 1;
    }

    /// Adds what another has seen.
    pub fn add(&mut self, other: &Evidence) {
        for (mine, theirs) in self.exposure_ns.iter_mut().zip(&other.exposure_ns) {
            *mine += theirs;
        }
        for (key, count) in &other.deaths {
            *self.deaths.entry(*key).or_default() += count;
        }
        self.count += other.count;
    }

    /// Deaths seen.
    pub fn deaths(&self) -> u64 {
        self.count
    }

    /// The hazard of greatest likelihood.
    pub fn estimate(&self) -> Lifetimes {
        let lived: f64 = self.exposure_ns.iter().sum();
        let windows: f64 = self
            .deaths
            .iter()
            .map(|((from, low, high), n)| *n as f64 * ((unrounded(*low) + unrounded(*high)) / 2.0 - unrounded(*from)))
            .sum();
        let overall = self.count as f64 / (lived + windows).max(1.0);
        let mut hazard = vec![overall; BINS];
        for _ in 0..ROUNDS {
            let (deaths, exposure) = self.expected(&hazard);
            let change = hazard.iter_mut().zip(deaths.iter().zip(&exposure)).map(|(h, (d, e))| {
                // Ages that nobody was watched at keep the overall rate: nothing is known of them.
                let new = if *e > 0.0 { d / e } else { overall };
                let change = (new - *h).abs() / h.max(overall * 1e-3).max(f64::MIN_POSITIVE);
                *h = new;
                change
            });
            if change.fold(0.0, f64::max) < 1e-4 {
                break;
            }
        }
        Lifetimes { hazard }
    }

    /// Deaths and time lived in each bin, as expected under a hazard.
    fn expected(&self, hazard: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let mut deaths = vec![0.0; BINS];
        let mut exposure = self.exposure_ns.clone();
        for ((from, low, high), count) in &self.deaths {
            let (from, low, high, n) = (unrounded(*from), unrounded(*low), unrounded(*high), *count as f64);
            for (bin, len) in parts(from, low) {
                exposure[bin] += n * len;
            }
            let cumulative: f64 = parts(low, high).map(|(bin, len)| hazard[bin] * len).sum();
            let all = -(-cumulative).exp_m1();
            if all <= 0.0 {
                // Where the hazard says that nobody dies, somebody did: anywhere in the window.
                let width = (high - low).max(f64::MIN_POSITIVE);
                for (bin, len) in parts(low, high) {
                    deaths[bin] += n * len / width;
                    exposure[bin] += n * len / 2.0;
                }
                continue;
            }
            let (mut alive, end) = (1.0, (-cumulative).exp());
            for (bin, len) in parts(low, high) {
                let x = hazard[bin] * len;
                let after = alive * (-x).exp();
                deaths[bin] += n * (alive - after) / all;
                // Those who die later live through the part; those who die in it, through half of it and less.
                let in_part = if x > 1e-4 { -(-x).exp_m1() / x - (-x).exp() } else { x / 2.0 };
                exposure[bin] += n * len * ((after - end).max(0.0) + alive * in_part) / all;
                alive = after;
            }
        }
        (deaths, exposure)
    }
}

/// A hazard, constant within each bin of age.
#[derive(Clone, Debug, PartialEq)]
pub struct Lifetimes {
    hazard: Vec<f64>,
}

impl Lifetimes {
    /// The age at death of a file that died at an age after `low_ns` and up to `high_ns`; `u` is uniform in 0 to 1.
    /// Where nothing is known of deaths at these ages, every age is as likely.
    pub fn death_in(&self, low_ns: f64, high_ns: f64, u: f64) -> f64 {
        let rate = |bin: usize| self.hazard.get(bin).copied().unwrap_or(0.0);
        let cumulative: f64 = parts(low_ns, high_ns).map(|(bin, len)| rate(bin) * len).sum();
        let uniform = low_ns + u * (high_ns - low_ns);
        if cumulative <= 1e-12 {
            return uniform.clamp(low_ns, high_ns);
        }
        // The inverse of the distribution function of an exponential clock that is cut off at `cumulative`.
        let mut left = -(u * (-cumulative).exp_m1()).ln_1p();
        let mut age = low_ns;
        for (bin, len) in parts(low_ns, high_ns) {
            let here = rate(bin) * len;
            if here >= left && here > 0.0 {
                return (age + len * left / here).clamp(low_ns, high_ns);
            }
            left -= here;
            age += len;
        }
        high_ns
    }

    /// Deaths per file and day, by the age in days at which the rate begins to hold: for the record.
    pub fn per_day(&self) -> Vec<(f64, f64)> {
        const DAY_NS: f64 = 86_400.0 * SECOND_NS;
        let begin = |bin: usize| if bin == 0 { 0.0 } else { edge(bin - 1) / DAY_NS };
        let mut steps: Vec<(f64, f64)> = Vec::new();
        for (bin, hazard) in self.hazard.iter().enumerate() {
            if steps.last().is_none_or(|(_, last)| *last != hazard * DAY_NS) {
                steps.push((begin(bin), hazard * DAY_NS));
            }
        }
        steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::SeedableRng;
    use rand_xoshiro::Xoshiro256PlusPlus;
    use stats::random::unit;

    const HOUR: f64 = 3600.0 * SECOND_NS;
    const DAY: f64 = 24.0 * HOUR;

    #[test]
    fn bins_meet_and_cover_all_ages() {
        for bin in 0..BINS - 1 {
            let at = edge(bin);
            assert_eq!((bin_of(at * 0.999_999), bin_of(at)), (bin, bin + 1));
        }
        for (from, to) in [(0.0, 1.0), (0.5 * HOUR, 3.0 * DAY), (0.0, 1e20), (DAY, DAY + 1000.0)] {
            let sum: f64 = parts(from, to).map(|(_, len)| len).sum();
            assert!((sum - (to - from)).abs() <= 1e-9 * to, "{from} to {to}: {sum}");
        }
        assert_eq!(parts(DAY, DAY).count(), 0);
    }

    #[test]
    fn rounding_is_fine() {
        for age in [0.0, SECOND_NS, 17.0 * SECOND_NS, HOUR, DAY, 1000.0 * DAY] {
            let back = unrounded(rounded(age));
            assert!((back - age).abs() <= 0.05 * age + SECOND_NS / 100.0, "{age}: {back}");
        }
    }

    #[test]
    fn draws_follow_the_hazard_within_the_window() {
        // Ten deaths a day in the first hours, one a day afterwards.
        let hazard = (0..BINS).map(|bin| if edge(bin) <= 4.0 * HOUR { 10.0 / DAY } else { 1.0 / DAY }).collect();
        let lifetimes = Lifetimes { hazard };
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        let (low, high) = (HOUR, HOUR + DAY);
        let split = (0..BINS).map(edge).filter(|e| *e <= 4.0 * HOUR).fold(0.0, f64::max);
        let n = 100_000;
        let draws: Vec<f64> = (0..n).map(|_| lifetimes.death_in(low, high, unit(&mut random))).collect();
        assert!(draws.iter().all(|age| (low..=high).contains(age)));
        let early = draws.iter().filter(|age| **age < split).count() as f64 / f64::from(n);
        let (a, b) = (10.0 * (split - low) / DAY, 10.0 * (split - low) / DAY + (high - split) / DAY);
        let expected = (1.0 - (-a).exp()) / (1.0 - (-b).exp());
        assert!((early - expected).abs() < 0.01, "{early} instead of {expected}");
        // Within one bin of the low rate the draws are nearly exponential: their mean is known.
        assert_eq!(lifetimes.death_in(low, high, 0.0), low);
        assert!((lifetimes.death_in(low, high, 1.0) - high).abs() < 1.0);
    }

    #[test]
    fn nothing_known_means_uniform() {
        let lifetimes = Evidence::default().estimate();
        for u in [0.0, 0.25, 0.5, 1.0] {
            assert_eq!(lifetimes.death_in(DAY, 3.0 * DAY, u), DAY + u * 2.0 * DAY);
        }
    }

    #[test]
    fn the_hazard_is_found_again_from_daily_snapshots() {
        // True lifetimes: 70 % die at a mean age of two hours, the rest at a mean of 20 days. Born at any time of day.
        let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
        let mut evidence = Evidence::default();
        let truth = |random: &mut Xoshiro256PlusPlus| {
            let mean = if unit(random) < 0.7 { 2.0 * HOUR } else { 20.0 * DAY };
            -mean * (1.0 - unit(random)).ln()
        };
        let mut died_on_first_day: Vec<(f64, f64)> = Vec::new();
        for _ in 0..200_000 {
            let (first_seen, life) = (unit(&mut random) * DAY, truth(&mut random));
            let mut age = first_seen;
            while age < life && age < 60.0 * DAY {
                if life <= age + DAY {
                    evidence.died(age, age, age + DAY);
                    if age == first_seen {
                        died_on_first_day.push((age, life));
                    }
                } else {
                    evidence.survived(age, age + DAY);
                }
                age += DAY;
            }
        }
        let lifetimes = evidence.estimate();
        let mean = |it: &mut dyn Iterator<Item = f64>| {
            let all: Vec<f64> = it.collect();
            all.iter().sum::<f64>() / all.len() as f64
        };
        // The mean time from the snapshot to the death of files under a day old: 12 hours if uniform.
        let real = mean(&mut died_on_first_day.iter().map(|(age, life)| life - age));
        let drawn = mean(
            &mut died_on_first_day.iter().map(|(age, _)| lifetimes.death_in(*age, age + DAY, unit(&mut random)) - age),
        );
        assert!(real < 6.0 * HOUR, "{}", real / HOUR);
        assert!((drawn - real).abs() < 0.6 * HOUR, "drawn {} h, real {} h", drawn / HOUR, real / HOUR);
        // And the hazard of old files is that of the long-lived.
        let old = lifetimes.hazard[bin_of(15.0 * DAY)] * 20.0 * DAY;
        assert!((old - 1.0).abs() < 0.1, "{old}");
    }
}
