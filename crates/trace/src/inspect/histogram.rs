//! A histogram over the whole range of `u64` with a bounded relative error, from which quantiles are read.

use serde::Serialize;

/// Counts of values, in buckets that grow with the value: a quantile is off by one in 2^`SUB_BITS` at most; values
/// below 2^`SUB_BITS` are exact.
#[derive(Clone, Debug, Default)]
pub(super) struct Buckets<const SUB_BITS: u32> {
    buckets: Vec<u64>,
    count: u64,
    sum: u128,
    max: u64,
}

/// Quantiles within 1/16: enough for what has no unit of its own.
pub(super) type Histogram = Buckets<4>;
/// Quantiles within 1/1024.
pub(super) type FineHistogram = Buckets<10>;

/// JSON's readers know no longer numbers, and no workload takes 584 years: a sum beyond that is a damaged recording's.
pub(super) fn at_most_u64<S: serde::Serializer>(sum: &u128, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(u64::try_from(*sum).unwrap_or(u64::MAX))
}

/// What is known of a distribution. Quantiles are upper bounds within 1/16.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Distribution {
    /// Number of values.
    pub count: u64,
    /// Their sum.
    #[serde(serialize_with = "at_most_u64")]
    pub sum: u128,
    /// Mean; 0 where there are none.
    pub mean: f64,
    /// Quantiles.
    pub p5: u64,
    #[allow(missing_docs)]
    pub p25: u64,
    #[allow(missing_docs)]
    pub p50: u64,
    #[allow(missing_docs)]
    pub p75: u64,
    #[allow(missing_docs)]
    pub p95: u64,
    #[allow(missing_docs)]
    pub p99: u64,
    /// The largest.
    pub max: u64,
}

/// A bar: how many values lie above the bar before and at most at `up_to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Bar {
    /// Upper end, inclusive: a power of two less one, or 0.
    pub up_to: u64,
    /// How many.
    pub count: u64,
}

fn bucket_of(value: u64, sub_bits: u32) -> usize {
    if value < 1 << sub_bits {
        return value as usize;
    }
    let shift = value.ilog2() - sub_bits;
    ((shift as usize) << sub_bits) + (value >> shift) as usize
}

/// The largest value of a bucket.
fn top_of(bucket: usize, sub_bits: u32) -> u64 {
    if bucket < 1 << sub_bits {
        return bucket as u64;
    }
    let shift = (bucket >> sub_bits) - 1;
    let mantissa = (bucket & ((1 << sub_bits) - 1)) | 1 << sub_bits;
    ((((mantissa as u128) + 1) << shift) - 1) as u64
}

impl<const SUB_BITS: u32> Buckets<SUB_BITS> {
    pub(super) fn add(&mut self, value: u64) {
        self.add_many(value, 1);
    }

    /// Adds a value so many times.
    pub(super) fn add_many(&mut self, value: u64, times: u64) {
        if times == 0 {
            return;
        }
        let bucket = bucket_of(value, SUB_BITS);
        if bucket >= self.buckets.len() {
            self.buckets.resize(bucket + 1, 0);
        }
        self.buckets[bucket] = self.buckets[bucket].saturating_add(times);
        self.count = self.count.saturating_add(times);
        self.sum = self.sum.saturating_add(u128::from(value) * u128::from(times));
        self.max = self.max.max(value);
    }

    /// The value below or at which this share of the values lies.
    pub(super) fn quantile(&self, share: f64) -> u64 {
        let rank = ((self.count as f64 * share).ceil() as u64).max(1);
        let mut seen = 0;
        for (bucket, n) in self.buckets.iter().enumerate() {
            seen += n;
            if seen >= rank {
                return top_of(bucket, SUB_BITS).min(self.max);
            }
        }
        self.max
    }

    /// How many values, their sum and the largest.
    pub(super) fn totals(&self) -> (u64, u128, u64) {
        (self.count, self.sum, self.max)
    }

    /// Counts another's values as well.
    pub(super) fn merge(&mut self, other: &Self) {
        if self.buckets.len() < other.buckets.len() {
            self.buckets.resize(other.buckets.len(), 0);
        }
        for (mine, theirs) in self.buckets.iter_mut().zip(&other.buckets) {
            *mine += theirs;
        }
        self.count += other.count;
        self.sum += other.sum;
        self.max = self.max.max(other.max);
    }

    pub(super) fn distribution(&self) -> Distribution {
        if self.count == 0 {
            return Distribution::default();
        }
        Distribution {
            count: self.count,
            sum: self.sum,
            mean: self.sum as f64 / self.count as f64,
            p5: self.quantile(0.05),
            p25: self.quantile(0.25),
            p50: self.quantile(0.5),
            p75: self.quantile(0.75),
            p95: self.quantile(0.95),
            p99: self.quantile(0.99),
            max: self.max,
        }
    }

    /// One bar per power of two that holds something.
    pub(super) fn bars(&self) -> Vec<Bar> {
        let mut bars: Vec<Bar> = Vec::new();
        for (bucket, &count) in self.buckets.iter().enumerate().filter(|(_, n)| **n > 0) {
            let top = top_of(bucket, SUB_BITS);
            let up_to = if top == 0 { 0 } else { u64::MAX >> top.leading_zeros() };
            match bars.last_mut() {
                Some(bar) if bar.up_to == up_to => bar.count += count,
                _ => bars.push(Bar { up_to, count }),
            }
        }
        bars
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn buckets_hold_their_values(value in any::<u64>(), small in 0u64..1 << 20) {
            for (value, bits) in [(value, 4), (small, 4), (value, 10), (small, 10)] {
                let bucket = bucket_of(value, bits);
                prop_assert!(top_of(bucket, bits) >= value);
                prop_assert!(bucket == 0 || top_of(bucket - 1, bits) < value);
                prop_assert!(top_of(bucket, bits) - value <= value >> bits);
            }
        }

        #[test]
        fn quantiles_are_close(mut values in proptest::collection::vec(0u64..1 << 40, 1..300)) {
            let mut histogram = Histogram::default();
            values.iter().for_each(|&v| histogram.add(v));
            values.sort_unstable();
            let d = histogram.distribution();
            for (share, got) in [(0.05, d.p5), (0.5, d.p50), (0.99, d.p99), (1.0, d.max)] {
                let want = values[((values.len() as f64 * share).ceil() as usize).max(1) - 1];
                prop_assert!(got >= want && got - want <= want / 16, "{share}: {got} for {want}");
            }
            prop_assert_eq!(histogram.bars().iter().map(|b| b.count).sum::<u64>(), d.count);
        }
    }

    #[test]
    fn bars_are_powers_of_two() {
        let mut histogram = Histogram::default();
        [0, 1, 2, 3, 4, 4096, 5000, u64::MAX].into_iter().for_each(|v| histogram.add(v));
        let bars: Vec<_> = histogram.bars().iter().map(|b| (b.up_to, b.count)).collect();
        assert_eq!(bars, [(0, 1), (1, 1), (3, 2), (7, 1), (8191, 2), (u64::MAX, 1)]);
    }
}
