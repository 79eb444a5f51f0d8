//! What each call costs.

use system::vector::Class;

/// What an operation costs, nanoseconds: a different straight line for every class.
pub fn cost(class: Class, at: u64) -> u64 {
    use Class::*;
    let number = class as u64;
    let base = match class {
        LookupHit => return 120,
        // It has no processor.
        LookupFar | LookupFarInOrder | ReadFarByte | ReadFar => return 0,
        // Names are hashed, and it has no arm that could be near.
        NegativeEach => return 0,
        CreateNext => return cost(Create, 0),
        SymlinkNext => return cost(Symlink, 0),
        ReadFirstNext => return cost(ReadFirst, at),
        RemoveNext => return cost(Remove, at),
        RemoveDirtyNext => return cost(RemoveDirty, at),
        RemoveUncachedNext => return cost(RemoveUncached, at),
        LookupSeqMiss | LookupRandMiss | LookupSeqAttrHit | LookupRandAttrHit => 40_000 + 1000 * number,
        // Each inode has a block of its own.
        LookupNearMiss => return cost(LookupSeqMiss, 0),
        LookupFewMiss => return cost(LookupRandMiss, 0),
        ReadSeq => 20_000,
        ReadRand | ReadFirst | ReadDirect | WriteDirect | WritePartial => 60_000 + 100 * number,
        FsyncClean => 5_000,
        FsyncAppend | FsyncOverwrite | FsyncCreate | FdatasyncAppend | FdatasyncOverwrite | FdatasyncCreate
        | FsyncContiguous | FsyncLate | FdatasyncContiguous | FdatasyncLate | FsyncDir | FdatasyncDir | SyncFs => {
            500_000 + 1000 * number
        }
        FsyncOther | FsyncLog => 100_000,
        SyncIdle => 20_000,
        SyncFirst => 300_000,
        _ => 1000 + 10 * number,
    };
    base + at * (1 + number % 3) / 8
}

/// What a device that has rested for so long takes longer: in steps.
pub(super) fn rest_cost(rested_ns: u64) -> u64 {
    let reached = Class::SyncIdle.points().iter().rev().find(|point| **point <= rested_ns);
    reached.map_or(0, |point| cost(Class::SyncIdle, *point))
}
