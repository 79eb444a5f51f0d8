//! Smart fragment allocation: the fragments at a file's end go behind its last full block, which is broken for them if
//! it is free. A file without full blocks keeps the original policy, as its fragments follow nothing.

use super::Fragments;
use crate::format::FragAddr;

/// The block to break for the fragments of block `lbn`; `None` for the original policy. `previous` is where the block
/// before it lies, 0 for nowhere.
pub(crate) fn block_to_break(policy: Fragments, lbn: u64, previous: i64, per_block: u32) -> Option<FragAddr> {
    let behind = FragAddr(previous.unsigned_abs()).plus(per_block.into());
    (policy == Fragments::Smart && lbn > 0 && previous > 0).then_some(behind)
}
