//! Distributions and how far apart two are.

/// Sorted values, for quantiles.
#[derive(Clone, Debug)]
pub struct Quantiles {
    sorted: Vec<u64>,
}

impl Quantiles {
    /// Of any number of values.
    pub fn new(values: &[u64]) -> Quantiles {
        let mut sorted = values.to_vec();
        sorted.sort_unstable();
        Quantiles { sorted }
    }

    /// The least value that a share (0 to 1) of all values do not exceed; 0 if there are none.
    pub fn at(&self, share: f64) -> u64 {
        stats::nearest_rank(&self.sorted, share).unwrap_or(0)
    }
}

/// Steps in which the distributions are sampled: 0.0001 each.
const STEPS: u32 = 10_000;

/// Root mean square of the horizontal distance between two distributions, sampled every 0.0001 of the share.
pub fn demerit_ns(a: &Quantiles, b: &Quantiles) -> f64 {
    demerit_up_to_ns(a, b, 1.0)
}

/// The same up to a share of both: with 0.99, without the slowest hundredth.
pub fn demerit_up_to_ns(a: &Quantiles, b: &Quantiles, share: f64) -> f64 {
    let steps = (f64::from(STEPS) * share).round() as u32;
    let squares = (0..steps).map(|step| {
        // The middle of each step, so that neither end counts twice.
        let share = (f64::from(step) + 0.5) / f64::from(STEPS);
        (a.at(share) as f64 - b.at(share) as f64).powi(2)
    });
    (squares.sum::<f64>() / f64::from(steps.max(1))).sqrt()
}
