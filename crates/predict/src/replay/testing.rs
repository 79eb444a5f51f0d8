//! What tests of this room share.

use super::{Concurrency, OpResult, QUANTILES, Rebuilt, ReplayOptions, ReplayResult};
use trace::{Event, Op};

/// An event of one operation with nothing else said.
pub(crate) fn event(op: Op) -> Event {
    Event::new(0, 0, op)
}

/// A replay that made so many calls of each operation in so much time.
pub(crate) fn result(ops: &[(&str, u64, u64)]) -> ReplayResult {
    let per_op = ops.iter().map(|&(op, count, total_ns)| OpResult {
        op: op.to_owned(),
        count,
        failed: 0,
        total_ns,
        mean_ns: total_ns as f64 / count as f64,
        quantiles_ns: vec![total_ns / count; QUANTILES.len()],
    });
    ReplayResult {
        environment: posix::Environment::default(),
        options: ReplayOptions::default(),
        traced_calls: 0,
        calls: ops.iter().map(|o| o.1).sum(),
        skipped: std::collections::BTreeMap::new(),
        total_ns: ops.iter().map(|o| o.2).sum(),
        wall_ns: 0,
        final_sync_ns: 0,
        rebuild_ns: 0,
        rebuilt: Rebuilt::default(),
        cache_state: posix::CacheState::Cold,
        concurrency: Concurrency {
            traced_threads: 1,
            traced_alive_max: 1,
            in_flight_max: 1,
            overlapped_calls: 0,
            replay_threads: 1,
        },
        sample: super::Sample::default(),
        per_op: per_op.collect(),
        per_subtree: Vec::new(),
        differences: super::Differences::default(),
    }
}
