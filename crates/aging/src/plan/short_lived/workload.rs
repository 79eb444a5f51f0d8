//! Short-lived files of a recorded workload.

use super::{Alive, Collector, Living, ShortLived};
use crate::plan::profile::script::Script;
use crate::plan::{PlanError, inputs::input};
use crate::{DAY_NS, OpKind};
use std::path::Path;

/// No directory of the script's: the root.
const ROOT: u64 = u64::MAX;

/// Reads them. A file that outlives the trace counts as lasting.
pub(super) fn read(path: &Path) -> Result<ShortLived, PlanError> {
    let script = Script::read(path, false)?;
    let mut alive = Living::<u32>::default();
    // A recording does not say how large the file system was.
    let mut collector = Collector::default();
    for op in &script.ops {
        match op.kind {
            OpKind::Create => {
                let dir = op.dir.map_or(ROOT, u64::from);
                alive.insert(op.node, Alive { dir, born_ns: op.t_ns, size_bytes: 0, longest_bytes: 0 });
            }
            kind => collector.changed(&mut alive, op.node, kind, op.size_bytes, op.t_ns),
        }
    }
    // A trace of some hours is a day's: nobody traces idle hours on purpose.
    collector.source.days = script.span_ns as f64 / DAY_NS as f64;
    collector.source.lasting += alive.len() as u64;
    let mut ages: Vec<u64> = alive.values().map(|file| script.span_ns.saturating_sub(file.born_ns)).collect();
    ages.sort_unstable();
    for age_ns in ages {
        collector.source.lifetimes.survived(0.0, age_ns as f64);
    }
    collector.finish(input(path)?, path)
}
