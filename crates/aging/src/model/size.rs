//! File sizes: a lognormal body and a Pareto tail, cut off at the largest file that fits.
//!
//! The form is that of Agrawal et al., *A Five-Year Study of File-System Metadata* (FAST 2007) and *Generating
//! Realistic Impressions for File-System Benchmarking* (FAST 2009), and of Barford and Crovella's SURGE (SIGMETRICS
//! 1998). The shares of files and of bytes below a size are both closed forms, so that what was planned can be held
//! against them.

use super::{Rng, normal};
use serde::{Deserialize, Serialize};
use stats::random::unit;

/// The distribution before it is cut off.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SizeParameters {
    /// Mean of the logarithm (base e) of the body's sizes in bytes.
    pub mu: f64,
    /// Standard deviation of that logarithm.
    pub sigma: f64,
    /// Share of files that belong to the tail, 0 to 1.
    #[serde(default)]
    pub tail_share: f64,
    /// The tail's exponent: P(size > x) = (min / x)^alpha.
    #[serde(default = "one")]
    pub tail_alpha: f64,
    /// The tail's smallest size, bytes.
    #[serde(default = "one")]
    pub tail_min_bytes: f64,
    /// Largest file as a share of the capacity: where the distribution is cut off.
    #[serde(default = "largest")]
    pub max_share: f64,
}

const fn one() -> f64 {
    1.0
}

const fn largest() -> f64 {
    0.05
}

impl SizeParameters {
    /// What is wrong with them, if anything.
    pub fn check(&self) -> Result<(), String> {
        let within = |name: &str, value: f64, low: f64, high: f64| {
            if (low..=high).contains(&value) {
                Ok(())
            } else {
                Err(format!("{name} = {value} is not in {low} to {high}"))
            }
        };
        within("mu", self.mu, 0.0, 40.0)?;
        within("sigma", self.sigma, 0.01, 10.0)?;
        within("tail_share", self.tail_share, 0.0, 1.0)?;
        within("tail_alpha", self.tail_alpha, 0.1, 20.0)?;
        within("tail_min_bytes", self.tail_min_bytes, 1.0, 1e15)?;
        within("max_share", self.max_share, 1e-9, 0.5)
    }

    /// Share of files up to `x` bytes, before the cut.
    fn files_below(&self, x: f64) -> f64 {
        if x <= 0.0 {
            return 0.0;
        }
        let body = normal::cdf((x.ln() - self.mu) / self.sigma);
        let tail = if x > self.tail_min_bytes { 1.0 - (self.tail_min_bytes / x).powf(self.tail_alpha) } else { 0.0 };
        (1.0 - self.tail_share) * body + self.tail_share * tail
    }

    /// Mean bytes per file that lie in files up to `x` bytes, before the cut: the integral of size over its
    /// distribution.
    fn bytes_below(&self, x: f64) -> f64 {
        if x <= 0.0 {
            return 0.0;
        }
        let mean = (self.mu + 0.5 * self.sigma * self.sigma).exp();
        let body = mean * normal::cdf((x.ln() - self.mu - self.sigma * self.sigma) / self.sigma);
        let (a, min) = (self.tail_alpha, self.tail_min_bytes);
        let tail = if x <= min {
            0.0
        } else if (a - 1.0).abs() < 1e-9 {
            min * (x / min).ln()
        } else {
            a / (a - 1.0) * min * (1.0 - (min / x).powf(a - 1.0))
        };
        (1.0 - self.tail_share) * body + self.tail_share * tail
    }
}

/// Cells of the table that sizes are drawn from: 2 % wide over nine decades, so that a straight line in each is exact
/// enough.
const CELLS: usize = 1024;

/// A size distribution cut off at a largest size: drawing from it, and its cumulative distributions.
#[derive(Clone, Debug)]
pub struct SizeModel {
    parameters: SizeParameters,
    max_bytes: f64,
    /// `files_below(max_bytes)` and `bytes_below(max_bytes)` before the cut.
    all_files: f64,
    all_bytes: f64,
    /// Ends of the cells, bytes, and the share of files up to there.
    ends: Vec<(f64, f64)>,
    /// For each of `CELLS` equal steps of the share: the first cell it may be in.
    guide: Vec<u32>,
}

impl SizeModel {
    /// The distribution cut off at `max_bytes` (at least 1).
    pub fn new(parameters: SizeParameters, max_bytes: f64) -> SizeModel {
        let max_bytes = max_bytes.max(1.0).floor();
        // Where nearly all of the distribution lies above the cut there is nothing to scale up: all files are of the
        // largest size.
        let all_files = parameters.files_below(max_bytes).max(1e-300);
        let all_bytes = parameters.bytes_below(max_bytes).max(1e-300);
        let mut model = SizeModel { parameters, max_bytes, all_files, all_bytes, ends: Vec::new(), guide: Vec::new() };
        let end = |i: usize| if i == CELLS { max_bytes } else { max_bytes.powf(i as f64 / CELLS as f64) };
        model.ends = (0..=CELLS).map(|i| (end(i), model.share_of_files(end(i)))).collect();
        let mut cell = 0u32;
        for step in 0..CELLS {
            let share = step as f64 / CELLS as f64;
            while model.ends.get(cell as usize + 1).is_some_and(|(_, s)| *s <= share) {
                cell += 1;
            }
            model.guide.push(cell.min(CELLS as u32 - 1));
        }
        model
    }

    /// The parameters.
    pub fn parameters(&self) -> &SizeParameters {
        &self.parameters
    }

    /// Largest size, bytes.
    pub fn max_bytes(&self) -> f64 {
        self.max_bytes
    }

    /// Share of files of at most `bytes` bytes.
    pub fn share_of_files(&self, bytes: f64) -> f64 {
        if bytes >= self.max_bytes { 1.0 } else { self.parameters.files_below(bytes) / self.all_files }
    }

    /// Share of all bytes that lie in files of at most `bytes` bytes.
    pub fn share_of_bytes(&self, bytes: f64) -> f64 {
        if bytes >= self.max_bytes { 1.0 } else { self.parameters.bytes_below(bytes) / self.all_bytes }
    }

    /// Mean size, bytes.
    pub fn mean_bytes(&self) -> f64 {
        self.all_bytes / self.all_files
    }

    /// The size below which a share of files lies, bytes; at least 1.
    #[inline]
    pub fn quantile(&self, share: f64) -> u64 {
        let step = (share * CELLS as f64) as usize;
        let mut cell = self.guide.get(step).map_or(CELLS - 1, |c| *c as usize);
        while let (true, Some((_, end))) = (cell + 1 < CELLS, self.ends.get(cell + 1)) {
            if *end > share {
                break;
            }
            cell += 1;
        }
        let (Some((low, from)), Some((high, to))) = (self.ends.get(cell), self.ends.get(cell + 1)) else { return 1 };
        let within = if to > from { ((share - from) / (to - from)).clamp(0.0, 1.0) } else { 1.0 };
        ((low + (high - low) * within).ceil() as u64).max(1)
    }

    /// Draws a size.
    #[inline]
    pub fn draw(&self, rng: &mut Rng) -> u64 {
        self.quantile(unit(rng))
    }

    /// Cuts the distribution into `n` strata that hold about equal shares of files *and* bytes (the mean of the two),
    /// as ends of shares of files: ascending, the last 1. The largest files, few but heavy, get strata of their own.
    pub fn strata(&self, n: usize) -> Vec<f64> {
        let mut ends = Vec::with_capacity(n);
        let mut wanted = 1.0 / n as f64;
        for (bytes, files) in &self.ends {
            let weight = 0.5 * (files + self.share_of_bytes(*bytes));
            if weight >= wanted && *files < 1.0 && ends.last().is_none_or(|last| files > last) {
                ends.push(*files);
                while wanted <= weight {
                    wanted += 1.0 / n as f64;
                }
            }
        }
        ends.push(1.0);
        ends
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::rng;

    const IMPRESSIONS: SizeParameters = SizeParameters {
        mu: 9.48,
        sigma: 2.46,
        tail_share: 6e-5,
        tail_alpha: 0.91,
        tail_min_bytes: 536_870_912.0,
        max_share: 0.05,
    };

    /// The integral of the quantile function is the mean; sums over many equal steps come close to it.
    #[test]
    fn closed_forms_agree_with_integration() {
        for (parameters, max) in [
            (IMPRESSIONS, 1e8),
            (IMPRESSIONS, 1e12),
            (
                SizeParameters {
                    tail_share: 0.07,
                    tail_alpha: 1.1,
                    tail_min_bytes: 133e3,
                    mu: 9.357,
                    sigma: 1.318,
                    max_share: 0.05,
                },
                1e9,
            ),
            (
                SizeParameters {
                    tail_share: 0.5,
                    tail_alpha: 1.0,
                    tail_min_bytes: 1e4,
                    mu: 8.0,
                    sigma: 1.0,
                    max_share: 0.05,
                },
                1e7,
            ),
        ] {
            let model = SizeModel::new(parameters, max);
            // Steps that get finer towards the largest sizes: shares of 1 - exp(-i h).
            let (steps, h) = (1_000_000u32, 30.0 / 1e6);
            let (mut mean, mut below) = (0.0, 0.0);
            let cut = max / 10.0;
            for i in 0..steps {
                let (from, to) = ((-f64::from(i) * h).exp(), (-f64::from(i + 1) * h).exp());
                let size = model.quantile(1.0 - 0.5 * (from + to)) as f64;
                mean += size * (from - to);
                below += if size <= cut { size * (from - to) } else { 0.0 };
            }
            assert!((mean / model.mean_bytes() - 1.0).abs() < 0.01, "{mean} {}", model.mean_bytes());
            assert!(
                (below / mean - model.share_of_bytes(cut)).abs() < 0.01,
                "{} {}",
                below / mean,
                model.share_of_bytes(cut)
            );
        }
    }

    /// The body's moments without a tail and without a cut that matters: mean exp(mu + sigma^2/2), median exp(mu).
    #[test]
    fn moments_of_the_lognormal() {
        let parameters = SizeParameters { mu: 9.0, sigma: 1.0, tail_share: 0.0, ..IMPRESSIONS };
        let model = SizeModel::new(parameters, 1e15);
        assert!((model.mean_bytes() / 9.5f64.exp() - 1.0).abs() < 1e-6);
        assert!((model.quantile(0.5) as f64 / 9f64.exp() - 1.0).abs() < 0.01);
        assert!(
            (model.share_of_bytes(10f64.exp()) - 0.5).abs() < 1e-9,
            "half of the bytes lie below exp(mu + sigma^2)"
        );
    }

    #[test]
    fn the_quantile_inverts_the_share_and_never_passes_the_cut() {
        let mut rng = rng(1);
        for max in [1.0, 2.0, 4096.0, 1e6, 1e13] {
            let model = SizeModel::new(IMPRESSIONS, max);
            for _ in 0..10_000 {
                let share = unit(&mut rng);
                let size = model.quantile(share);
                assert!(size >= 1 && size as f64 <= max);
                let (low, high) = (model.share_of_files(size as f64 - 1.0), model.share_of_files(size as f64));
                // A line in a 2 % wide cell is off by a little.
                assert!(share > low - 1e-3 && share < high + 1e-3, "{share} is not in {low} to {high} for {size}");
            }
            let strata = model.strata(48);
            assert!(strata.windows(2).all(|w| w[0] < w[1]) && strata.last() == Some(&1.0));
        }
    }
}
