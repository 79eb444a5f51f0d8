//! How busy a personality is, and how much shorter its lasting files must live for the churn asked for.
//!
//! In equilibrium (Little's law) the bytes alive are the bytes that arrive per day times how long they stay. Given the
//! lifetimes and the utilisation, the churn follows; given another churn, the lasting lifetimes are divided, and the
//! updates multiplied, by one factor: the pace.

use super::spec::{Personality, Stream, Write};
use super::time::Curve;
use super::{Churn, Options};
use crate::model::{Lifetime, SizeModel};
use crate::plan::PlanError;

/// What is written and done per day, as expected.
#[derive(Clone, Copy, Debug, PartialEq)]
struct PerDay {
    bytes: f64,
    operations: f64,
}

/// The pace for the churn asked for.
pub(super) fn pace(personality: &Personality, options: &Options, curve: &Curve) -> Result<f64, PlanError> {
    type Figure = fn(PerDay) -> f64;
    let capacity = options.planned_for.capacity_bytes as f64;
    let (name, wanted, figure): (_, _, Figure) = match options.churn {
        Churn::Implied => return Ok(1.0),
        Churn::BytesPerDay(share) => ("churn", share * capacity, |d| d.bytes),
        Churn::OperationsPerDay(n) => ("operations per day", n, |d| d.operations),
    };
    if !(wanted.is_finite() && wanted > 0.0) {
        return Err(PlanError::parameter(name, "a number above 0 is needed"));
    }
    let at = |pace: f64| figure(per_day(personality, options, curve, pace));
    let (mut low, mut high) = (1e-4f64, 1e4f64);
    if !(at(low)..=at(high)).contains(&wanted) {
        let message = format!("{wanted:.3e} a day cannot be: {:.3e} to {:.3e} can", at(low), at(high));
        return Err(PlanError::parameter(name, message));
    }
    for _ in 0..60 {
        let middle = (low * high).sqrt();
        if at(middle) < wanted { low = middle } else { high = middle }
    }
    Ok((low * high).sqrt())
}

fn per_day(personality: &Personality, options: &Options, curve: &Curve, pace: f64) -> PerDay {
    let capacity = options.planned_for.capacity_bytes as f64;
    let block = options.planned_for.block_bytes as f64;
    let days = f64::from(options.days);
    let steps = 100;
    let mean_share =
        (0..steps).map(|i| curve.at((f64::from(i) + 0.5) / f64::from(steps) * days)).sum::<f64>() / f64::from(steps);
    // Of one arrival of share 1: bytes times days alive, bytes written, operations; and what updates add per day alive.
    let (mut byte_days, mut bytes, mut operations) = (0.0, 0.0, 0.0);
    for stream in &personality.stream {
        let size = SizeModel::new(stream.size, stream.size.max_share * capacity).mean_bytes();
        let life_days = Lifetime::new(&stream.lifetime, pace).mean_s() / 86_400.0;
        let files = stream.share * stream.batch.mean;
        byte_days += files * (size + block / 2.0) * life_days;
        let (update_bytes, update_operations) = updates(stream, size);
        bytes += files * (size + life_days * pace * update_bytes);
        operations += files * (file_operations(stream, size) + life_days * pace * update_operations);
    }
    let arrivals = mean_share * capacity / byte_days;
    PerDay { bytes: arrivals * bytes, operations: arrivals * operations }
}

/// Operations of a file's birth and death.
fn file_operations(stream: &Stream, size: f64) -> f64 {
    let writes = match stream.write {
        Write::Whole => 1.0,
        Write::Staged => 2.0,
        Write::Grown { chunk_bytes, .. } => (size / chunk_bytes as f64).ceil().clamp(1.0, 256.0),
    };
    let own = stream.batch.files_per_directory;
    let directories = if own > 0.0 { 2.0 / own } else { 0.0 };
    writes * if stream.fsync { 2.0 } else { 1.0 } + 1.0 + directories
}

/// Bytes and operations of a file's updates in a day.
fn updates(stream: &Stream, size: f64) -> (f64, f64) {
    let Some(u) = &stream.update else { return (0.0, 0.0) };
    let all = u.overwrite + u.rewrite + u.replace + u.punch;
    let fsync = f64::from(u8::from(u.fsync));
    let pieces = f64::from(u.pieces);
    let bytes = u.overwrite * pieces * (u.piece_bytes as f64).min(size) + (u.rewrite + u.replace) * size;
    let operations = (u.overwrite + u.punch) * (pieces + fsync) + u.rewrite * (2.0 + fsync) + u.replace * 4.0;
    let rate = u.per_file_per_day * f64::from(u.together) / all;
    (rate * bytes, rate * operations)
}
