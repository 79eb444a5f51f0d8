//! Short-lived files of another aging workload, and in what steps it changes files.

use super::habits::Watcher;
use super::{Alive, Collector, Living, ShortLived};
use crate::format::Reader;
use crate::plan::{PlanError, inputs::input};
use crate::{DAY_NS, NodeId, OpKind};
use std::path::Path;

/// Reads them. The first day, which makes the tree that the workload begins with, is left out.
pub(super) fn read(path: &Path) -> Result<ShortLived, PlanError> {
    let reader = Reader::open(path)?;
    let mut alive = Living::<NodeId>::default();
    let mut collector = Collector::default();
    collector.source.capacity_bytes = reader.meta().capacity_bytes;
    let mut watcher = Watcher::new();
    let mut now_ns = 0;
    for batch in reader.batches(0) {
        for op in batch? {
            now_ns = op.t_ns;
            watcher.see(&op);
            match op.kind {
                OpKind::Create if op.t_ns >= DAY_NS => {
                    let (born_ns, size_bytes) = (op.t_ns, op.size_bytes);
                    alive.insert(op.node, Alive { dir: op.dir.0, born_ns, size_bytes, longest_bytes: size_bytes });
                }
                kind => collector.changed(&mut alive, op.node, kind, op.size_bytes, op.t_ns),
            }
        }
    }
    collector.source.lasting += alive.len() as u64;
    let mut survivors: Vec<u64> = alive.values().map(|file| now_ns.saturating_sub(file.born_ns)).collect();
    survivors.sort_unstable();
    for age_ns in survivors {
        collector.source.lifetimes.survived(0.0, age_ns as f64);
    }
    // Without the first.
    collector.source.days = now_ns.div_ceil(DAY_NS).saturating_sub(1) as f64;
    collector.source.habits = watcher.finish();
    collector.finish(input(path)?, path)
}
