//! How long files live: a mixture of lognormal components (short, medium, long).

use super::{Rng, normal};
use rand_distr::{Distribution as _, StandardNormal};
use serde::{Deserialize, Serialize};
use stats::random::unit;

/// One component.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Component {
    /// Its share of the files; shares are scaled to sum to 1.
    pub share: f64,
    /// Half of its files live shorter than this, seconds.
    pub median_s: f64,
    /// Standard deviation of the logarithm (base e) of the lifetime.
    pub sigma: f64,
}

/// Components with a median of at least a day make a file part of the lasting population.
const LONG_S: f64 = 86_400.0;

/// A mixture.
#[derive(Clone, Debug, PartialEq)]
pub struct Lifetime {
    components: Vec<Component>,
}

impl Lifetime {
    /// A mixture; `pace` divides the lifetimes of its long components (2: everything lasting lives half as long).
    pub fn new(components: &[Component], pace: f64) -> Lifetime {
        let total: f64 = components.iter().map(|c| c.share).sum();
        let scaled = |c: &Component| Component {
            share: c.share / total,
            median_s: if c.median_s >= LONG_S { (c.median_s / pace).max(LONG_S / 24.0) } else { c.median_s },
            ..*c
        };
        Lifetime { components: components.iter().map(scaled).collect() }
    }

    /// What is wrong with the components, if anything.
    pub fn check(components: &[Component]) -> Result<(), String> {
        if components.is_empty() {
            return Err("lifetime: at least one component is needed".into());
        }
        for c in components {
            if !(c.share > 0.0 && c.share.is_finite()) {
                return Err(format!("lifetime: share = {} is not above 0", c.share));
            }
            if !(1e-3..=1e11).contains(&c.median_s) {
                return Err(format!("lifetime: median_s = {} is not in 0.001 to 1e11", c.median_s));
            }
            if !(0.0..=5.0).contains(&c.sigma) {
                return Err(format!("lifetime: sigma = {} is not in 0 to 5", c.sigma));
            }
        }
        Ok(())
    }

    fn pick(&self, rng: &mut Rng, weight: impl Fn(&Component) -> f64) -> Component {
        let total: f64 = self.components.iter().map(&weight).sum();
        let mut at = unit(rng) * total;
        for c in &self.components {
            at -= weight(c);
            if at < 0.0 {
                return *c;
            }
        }
        self.components.last().copied().unwrap_or(Component { share: 1.0, median_s: LONG_S, sigma: 0.0 })
    }

    /// Draws a lifetime, seconds.
    pub fn draw_s(&self, rng: &mut Rng) -> f64 {
        let c = if let [only] = self.components[..] { only } else { self.pick(rng, |c| c.share) };
        let z: f64 = StandardNormal.sample(rng);
        c.median_s * (c.sigma * z).exp()
    }

    /// Draws how long a file found alive at a random moment will go on living, seconds: files found alive are the
    /// longer-lived ones (weighted by length: a lognormal stays one, its logarithm's mean raised by sigma^2), and one
    /// looks at a random moment of their lives.
    pub fn draw_residual_s(&self, rng: &mut Rng) -> f64 {
        let c = self.pick(rng, |c| c.share * mean_s(c));
        let z: f64 = StandardNormal.sample(rng);
        unit(rng) * c.median_s * (c.sigma * c.sigma + c.sigma * z).exp()
    }

    /// Share of files that live at most `s` seconds.
    pub fn share_below(&self, s: f64) -> f64 {
        let one = |c: &Component| {
            let below = if s <= 0.0 {
                0.0
            } else if c.sigma == 0.0 {
                f64::from(s >= c.median_s)
            } else {
                normal::cdf((s / c.median_s).ln() / c.sigma)
            };
            c.share * below
        };
        self.components.iter().map(one).sum()
    }

    /// Mean lifetime, seconds.
    pub fn mean_s(&self) -> f64 {
        self.components.iter().map(|c| c.share * mean_s(c)).sum()
    }

    /// Mean of the lifetime or `limit_s`, whichever is less, seconds.
    pub fn mean_up_to_s(&self, limit_s: f64) -> f64 {
        // E[min(L, x)] = E[L; L <= x] + x P(L > x).
        let one = |c: &Component| {
            if c.sigma == 0.0 {
                return c.share * c.median_s.min(limit_s);
            }
            let z = (limit_s / c.median_s).ln() / c.sigma;
            c.share * (mean_s(c) * normal::cdf(z - c.sigma) + limit_s * normal::cdf(-z))
        };
        self.components.iter().map(one).sum()
    }
}

fn mean_s(c: &Component) -> f64 {
    c.median_s * (0.5 * c.sigma * c.sigma).exp()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::rng;

    fn mixture() -> Lifetime {
        Lifetime::new(
            &[
                Component { share: 3.0, median_s: 10.0, sigma: 1.0 },
                Component { share: 1.0, median_s: 1e6, sigma: 0.5 },
            ],
            1.0,
        )
    }

    #[test]
    fn draws_follow_the_closed_forms() {
        let (life, mut rng) = (mixture(), rng(7));
        let n = 200_000;
        let draws: Vec<f64> = (0..n).map(|_| life.draw_s(&mut rng)).collect();
        for at in [5.0, 30.0, 1e5, 1e6, 2e6] {
            let share = draws.iter().filter(|d| **d <= at).count() as f64 / f64::from(n);
            assert!((share - life.share_below(at)).abs() < 0.005, "{at}: {share} {}", life.share_below(at));
            let mean = draws.iter().map(|d| d.min(at)).sum::<f64>() / f64::from(n);
            assert!((mean / life.mean_up_to_s(at) - 1.0).abs() < 0.02, "{at}: {mean} {}", life.mean_up_to_s(at));
        }
        let mean = draws.iter().sum::<f64>() / f64::from(n);
        assert!((mean / life.mean_s() - 1.0).abs() < 0.02);
    }

    /// In equilibrium the residual life has the density (1 - F) / mean: its distribution is E[min(L, x)] / E[L].
    #[test]
    fn residual_lives_are_those_of_the_equilibrium() {
        let (life, mut rng) = (mixture(), rng(8));
        let n = 200_000;
        let draws: Vec<f64> = (0..n).map(|_| life.draw_residual_s(&mut rng)).collect();
        for at in [1e4, 3e5, 1e6, 2e6] {
            let share = draws.iter().filter(|d| **d <= at).count() as f64 / f64::from(n);
            let expected = life.mean_up_to_s(at) / life.mean_s();
            assert!((share - expected).abs() < 0.005, "{at}: {share} {expected}");
        }
    }
}
