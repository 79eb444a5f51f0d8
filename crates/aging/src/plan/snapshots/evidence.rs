//! What a pair of snapshots tells of lifetimes and of how files grow.

use super::compare::{Matching, NONE, View};
use super::interval::{contents_changed, planned_bytes};
use super::lifetime::Evidence;
use posix::FileKind;
use rustc_hash::FxHashMap;

/// What all pairs of a series tell.
#[derive(Default)]
pub(super) struct SeriesEvidence {
    /// Lifetimes of files whose birth was seen.
    pub(super) born: Evidence,
    /// Lifetimes of files that were there at the first snapshot: their change time may be far from their birth.
    pub(super) initial: Evidence,
    pub(super) grew: u64,
    pub(super) shrank: u64,
}

/// Deaths of files whose birth was seen from which on the others are not needed.
const DEATHS_ENOUGH: u64 = 200;

impl SeriesEvidence {
    /// The lifetimes to plan with.
    pub(super) fn lifetimes(&self) -> Evidence {
        let mut evidence = self.born.clone();
        if evidence.deaths() < DEATHS_ENOUGH {
            evidence.add(&self.initial);
        }
        evidence
    }

    /// The share of growing files that are appended to. A file that is written anew is as likely to be shorter than
    /// before as longer: so as many of those that grew were rewritten as shrank.
    pub(super) fn append_share(&self) -> f64 {
        if self.grew == 0 { 0.0 } else { self.grew.saturating_sub(self.shrank) as f64 / self.grew as f64 }
    }

    /// Adds what two snapshots tell. `born_ns` (by index of the first): when each inode was first seen to have changed,
    /// and whether that was its birth.
    pub(super) fn watch(&mut self, a: &View, b: &View, matching: &Matching, born: &[Option<(i64, bool)>]) {
        let (from_ns, to_ns) = (a.snapshot.meta.taken_ns, b.snapshot.meta.taken_ns);
        let mut taken: FxHashMap<(u32, &[u8]), i64> = FxHashMap::default();
        for (ib, entry) in b.nodes().skip(1) {
            let directory = matching.before_of(entry.parent);
            if directory != NONE && matching.before_of(ib) == NONE {
                taken.insert((directory, b.name(ib)), entry.inode.ctime_ns);
            }
        }
        // The last change of the nearest directory above that is still there.
        let mut bound = vec![to_ns; a.len()];
        for (ia, entry) in a.nodes() {
            let stays = b.entry(matching.after_of(ia)).map(|d| d.inode.mtime_ns);
            let above = bound.get(entry.parent as usize).copied().unwrap_or(to_ns);
            bound[ia as usize] = stays.map_or(above, |at| if at > from_ns { at.min(to_ns) } else { to_ns });
            if entry.inode.kind != FileKind::File {
                continue;
            }
            let Some((born_ns, seen)) = born.get(ia as usize).copied().flatten() else { continue };
            let evidence = if seen { &mut self.born } else { &mut self.initial };
            let age = |at_ns: i64| at_ns.saturating_sub(born_ns).max(0) as f64;
            if let Some(now) = b.entry(matching.after_of(ia)) {
                evidence.survived(age(from_ns), age(to_ns));
                if contents_changed(&entry.inode, &now.inode) {
                    let (old, new) = (planned_bytes(&entry.inode), planned_bytes(&now.inode));
                    self.grew += u64::from(new > old);
                    self.shrank += u64::from(new < old);
                }
                continue;
            }
            let reused = b.find(entry.inode.ino).filter(|ib| matching.before_of(*ib) == NONE);
            let reused = reused.and_then(|ib| b.entry(ib)).map(|e| e.inode.ctime_ns);
            let name_taken = taken.get(&(entry.parent, a.name(ia))).copied();
            let known = reused.into_iter().chain(name_taken).min().map(|at| at.clamp(from_ns, to_ns));
            let (low, high) = known.map_or((from_ns, above), |at| (at, at));
            evidence.died(age(from_ns), age(low), age(high));
        }
    }
}
