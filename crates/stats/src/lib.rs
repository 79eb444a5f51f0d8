//! The statistics that measurements, comparisons and predictions share: each in one form, in one place.
//!
//! What lives here: what stands for many values ([`median`], [`midmean`], [`quantile`]), how sure it is ([`bootstrap`],
//! [`Estimate`], [`median_interval`]), and what is drawn from a seeded generator ([`random`]). What may not: anything
//! that knows what was measured. Sums run in the order given, so that results are the same everywhere.

mod middle;
pub mod random;
mod spread;

pub use middle::{QUANTILES, mean, median, midmean, nearest_rank, pearson, quantile, rms};
pub use spread::{
    CERTAIN, Estimate, bootstrap, coverage_of_rounds, mean_interval, median_interval, middle_95, midmean_interval,
    outliers,
};
