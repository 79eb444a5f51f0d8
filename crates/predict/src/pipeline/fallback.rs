//! What stands in for a class that a profile has no entry for. Every use is reported.

use system::PriceTable;
use system::vector::Class;

/// Bytes that getdents returns for an entry with a name of usual length.
const DIRENT_BYTES: u64 = 32;

/// The size a stand-in is taken at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// The size asked for.
    Same,
    /// A fixed size.
    Fixed(u64),
    /// So many times the size asked for.
    Times(u64),
}

impl At {
    /// The size.
    pub fn size(self, asked: u64) -> u64 {
        match self {
            At::Same => asked,
            At::Fixed(size) => size,
            At::Times(n) => asked.saturating_mul(n),
        }
    }
}

/// One class of a stand-in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The class.
    pub class: Class,
    /// At which size.
    pub at: At,
}

/// How a profile prices a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resolved {
    /// By its own entries.
    Own,
    /// By others, in the sum; an empty sum leaves it out.
    Instead(Vec<Part>),
    /// Not at all.
    Missing,
}

/// The next class to try, in order of likeness. `None`: there is nothing like it.
fn alternative(class: Class) -> Option<(Class, At)> {
    use Class::*;
    let same = |class| Some((class, At::Same));
    match class {
        LookupSeqMiss | LookupFewMiss => same(LookupRandMiss),
        LookupSeqAttrHit => same(LookupRandAttrHit),
        LookupRandAttrHit => same(LookupSeqMiss),
        NegativeHit => same(Stat),
        NegativeMiss | OpenMissing => same(NegativeHit),
        OpenDir | Mmap => same(Open),
        CloseWritten => same(Close),
        CloseTruncated | CloseTruncatedEmpty => same(CloseWritten),
        ReadLinkNone => same(ReadLink),
        Close | Fcntl | Fadvise => same(Seek),
        Seek | FsyncClean | WriteOverhead => same(ReadOverhead),
        Fstat | Access | StatFs | ReadLink | GetXattr => same(Stat),
        GetXattrMissing | ListXattr => same(GetXattr),
        CreateNext | Mkdir | Symlink | Link => same(Create),
        SymlinkNext => same(Symlink),
        Rmdir => Some((Remove, At::Fixed(0))),
        RenameOver => same(Rename),
        RenameOverDirty => Some((RenameOver, At::Fixed(0))),
        Fchmod | Chown | Utimens | SetXattr => same(Chmod),
        Fchown => same(Fchmod),
        Futimens => same(Utimens),
        RemoveXattr => same(SetXattr),
        ReadDir => Some((ReadCached, At::Times(DIRENT_BYTES))),
        ReadOverhead => Some((ReadCached, At::Fixed(1))),
        ReadFirstNext => same(ReadFirst),
        ReadSeq | ReadFirst | ReadDirect => same(ReadRand),
        WriteExtendAllocated => same(WriteExtend),
        WriteAppend | WriteExtend | WriteUncached => same(WriteCached),
        WritePartial => Some((ReadRand, At::Fixed(4096))),
        WriteDirect => same(ReadDirect),
        Fallocate | CopyRange => same(WriteAppend),
        CopyDirty => same(CopyRange),
        TruncateDirty => Some((TruncateCached, At::Fixed(0))),
        TruncateUncached => same(TruncateCached),
        TruncateCached => same(TruncateUncached),
        RemoveDirty | RemoveUncached | RemoveNext => same(Remove),
        RemoveDirtyNext => same(RemoveDirty),
        RemoveUncachedNext => same(RemoveUncached),
        FsyncAppend | FsyncOverwrite | FsyncCreate | FdatasyncAppend | FdatasyncOverwrite | FdatasyncCreate => {
            alternative_sync(class)
        }
        FsyncContiguous | FsyncLate => same(FsyncOverwrite),
        FdatasyncContiguous | FdatasyncLate => same(FdatasyncOverwrite),
        FsyncDir => Some((FsyncCreate, At::Fixed(4096))),
        FdatasyncDir => same(FsyncDir),
        FsyncDirClean => same(FsyncClean),
        // Closing a file that was emptied starts its write-back, too.
        SyncRangeStart => same(CloseTruncated),
        SyncFs => same(FsyncAppend),
        _ => None,
    }
}

fn alternative_sync(class: Class) -> Option<(Class, At)> {
    use Class::*;
    let next = match class {
        FdatasyncAppend => FsyncAppend,
        FdatasyncOverwrite => FsyncOverwrite,
        FdatasyncCreate => FsyncCreate,
        FsyncOverwrite => FsyncAppend,
        FsyncCreate => FsyncAppend,
        _ => return None,
    };
    Some((next, At::Same))
}

/// How each class is priced with these entries, by class number.
pub fn resolve(table: &PriceTable) -> Vec<Resolved> {
    Class::ALL.iter().map(|&class| resolve_class(table, class)).collect()
}

fn resolve_class(table: &PriceTable, class: Class) -> Resolved {
    let thesis =
        has_thesis_remove(table) && matches!(class, Class::Remove | Class::RemoveDirty | Class::RemoveUncached);
    if thesis && !(class != Class::Remove && table.has(class)) {
        // The thesis measures the removal of an empty file and prices the rest as a truncation.
        let truncate = if class == Class::RemoveUncached { Class::TruncateUncached } else { Class::TruncateCached };
        let truncate = if table.has(truncate) { truncate } else { other_truncate(truncate) };
        return Resolved::Instead(vec![
            Part { class: Class::Remove, at: At::Fixed(0) },
            Part { class: truncate, at: At::Same },
        ]);
    }
    if class == Class::Fallocate && table.refuses_fallocate() {
        // As every call on a descriptor that fails.
        let failed = [Class::Fstat, Class::Stat].into_iter().find(|&class| table.has(class));
        return failed.map_or(Resolved::Missing, |class| Resolved::Instead(vec![Part { class, at: At::Same }]));
    }
    if table.has(class) {
        return Resolved::Own;
    }
    if class == Class::LookupNearMiss {
        return match resolve_class(table, Class::LookupSeqMiss) {
            Resolved::Own => Resolved::Instead(vec![Part { class: Class::LookupSeqMiss, at: At::Same }]),
            other => other,
        };
    }
    // What comes on top of another class, and is small.
    if matches!(
        class,
        Class::FsyncOther
            | Class::SyncIdle
            | Class::SyncFirst
            | Class::FsyncLog
            | Class::NegativeEach
            | Class::LookupFar
            | Class::LookupFarInOrder
            | Class::ReadFarByte
            | Class::ReadFar
    ) {
        return Resolved::Instead(Vec::new());
    }
    if let Some(parts) = cold_names(table, class) {
        return Resolved::Instead(parts);
    }
    // Chains are short; two classes may stand in for each other, so the number of hops is bounded.
    let (mut at, mut here) = (At::Same, class);
    for _ in 0..8 {
        let Some((next, how)) = alternative(here) else { return last_resort(table, class) };
        if how != At::Same {
            at = how;
        }
        if table.has(next) {
            return Resolved::Instead(vec![Part { class: next, at }]);
        }
        here = next;
    }
    last_resort(table, class)
}

/// Cold lookups where none could be measured, as without root, when names cannot be dropped from the caches: what is
/// read for them is a block of the directory at a random place, and inodes of which a block holds many.
fn cold_names(table: &PriceTable, class: Class) -> Option<Vec<Part>> {
    use Class::*;
    let measured = [LookupSeqMiss, LookupRandMiss].into_iter().any(|c| table.has(c));
    if measured
        && matches!(class, LookupSeqMiss | LookupRandMiss | LookupFewMiss | LookupSeqAttrHit | LookupRandAttrHit)
    {
        return None;
    }
    let block = |class: Class| table.has(class).then_some(Part { class, at: At::Fixed(4096) });
    let random = block(ReadRand).or_else(|| block(ReadFirst)).or_else(|| block(ReadSeq));
    let same = |class: Class| table.has(class).then_some(Part { class, at: At::Same });
    match class {
        LookupRandMiss | LookupFewMiss | LookupRandAttrHit => Some(vec![random?]),
        LookupSeqMiss => Some(vec![block(ReadSeq).or(random)?]),
        LookupSeqAttrHit => Some(Vec::new()),
        NegativeCold => Some(vec![same(NegativeMiss).or_else(|| same(NegativeHit)).or_else(|| same(Stat))?, random?]),
        ReadDirCold => {
            let entries = table.has(ReadCached).then_some(Part { class: ReadCached, at: At::Times(DIRENT_BYTES) });
            Some(vec![same(ReadDir).or(entries)?, random?])
        }
        _ => None,
    }
}

/// Classes for which the chain leads the wrong way round.
fn last_resort(table: &PriceTable, class: Class) -> Resolved {
    use Class::*;
    let others: &[Class] = match class {
        LookupRandMiss => &[LookupSeqMiss],
        ReadRand => &[ReadSeq, ReadFirst, ReadDirect],
        ReadSeq | ReadFirst => &[ReadSeq, ReadFirst, ReadDirect],
        ReadDirect | WritePartial => &[ReadSeq, ReadFirst],
        WriteCached => &[WriteAppend],
        WriteExtend | WriteExtendAllocated | WriteUncached | WriteDirect => &[WriteAppend, WriteCached],
        Remove => &[TruncateCached, TruncateUncached],
        FsyncAppend | FsyncCreate | FsyncOverwrite | FdatasyncAppend | FdatasyncCreate | FdatasyncOverwrite
        | SyncFs => &[FsyncCreate, FdatasyncAppend, FdatasyncCreate, FsyncOverwrite, FdatasyncOverwrite],
        ReadDir => &[ReadDirCold],
        GetXattr => &[GetXattrMissing],
        Close | Seek | Fstat => &[Stat],
        _ => &[],
    };
    match others.iter().find(|&&other| table.has(other)) {
        Some(&class) => Resolved::Instead(vec![Part { class, at: At::Same }]),
        None => Resolved::Missing,
    }
}

/// Whether the only remove measured is that of an empty file, while truncation has sizes.
fn has_thesis_remove(table: &PriceTable) -> bool {
    let sizes = |class: Class| {
        let points = class.points().iter().filter(|&&at| at > 0);
        let two = |at: &&u64| table.point(class, **at).is_some_and(|p| p.second.is_none() && p.first.weight == 1.0);
        points.filter(two).count()
    };
    let flat = table.point(Class::Remove, 0) == table.point(Class::Remove, 1 << 20);
    table.has(Class::Remove) && flat && (sizes(Class::TruncateCached) > 1 || sizes(Class::TruncateUncached) > 1)
}

fn other_truncate(class: Class) -> Class {
    if class == Class::TruncateCached { Class::TruncateUncached } else { Class::TruncateCached }
}
