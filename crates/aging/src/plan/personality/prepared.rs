//! A stream of a personality, ready to draw from.

use super::population::FileRef;
use super::spec::Stream;
use crate::model::{Lifetime, Quota, Rng, SizeModel};
use crate::plan::PlannedFor;
use stats::random::unit;

/// Strata of a stream's sizes.
const STRATA: usize = 48;

/// The share of the capacity that one arrival of many files may take.
const ARRIVAL_SHARE_MAX: f64 = 0.05;

/// A stream, ready to draw from.
pub(super) struct Prepared {
    pub(super) stream: Stream,
    pub(super) size: SizeModel,
    pub(super) life: Lifetime,
    pub(super) quota: Quota,
    /// Files updated lately, a ring.
    pub(super) hot: Vec<FileRef>,
    pub(super) next_hot: usize,
    /// Updates per file and day, by the pace asked for.
    pub(super) update_rate: f64,
    /// The most files that one arrival may bring.
    pub(super) batch_max: f64,
}

impl Prepared {
    pub(super) fn new(stream: &Stream, planned_for: PlannedFor, pace: f64, rng: &mut Rng) -> Prepared {
        let capacity = planned_for.capacity_bytes as f64;
        let size = SizeModel::new(stream.size, stream.size.max_share * capacity);
        let strata = size.strata(STRATA);
        let mean = size.mean_bytes() + planned_for.block_bytes as f64 / 2.0;
        Prepared {
            life: Lifetime::new(&stream.lifetime, pace),
            quota: Quota::new(strata, unit(rng)),
            hot: Vec::new(),
            next_hot: 0,
            update_rate: stream.update.map_or(0.0, |u| u.per_file_per_day * pace),
            batch_max: (capacity * ARRIVAL_SHARE_MAX / mean).max(1.0),
            stream: stream.clone(),
            size,
        }
    }
}
