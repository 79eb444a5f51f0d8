//! Two successive snapshots compared: which inodes stayed, came, went and moved.

use crate::snapshot::{Entry, Inode, Snapshot};
use posix::FileKind;
use rustc_hash::{FxBuildHasher, FxHashMap};

/// A snapshot with one name chosen for each inode: hard links count once.
pub(super) struct View {
    pub(super) snapshot: Snapshot,
    /// The chosen name of each inode that is planned (files, symbolic links, directories).
    chosen: FxHashMap<u64, u32>,
    /// Whether a name is the chosen one of its inode.
    is_chosen: Vec<bool>,
}

/// Whether a kind of file is planned: special files have no data, and are left out.
fn planned(kind: FileKind) -> bool {
    kind != FileKind::Special
}

impl View {
    /// Chooses names: the one an inode had before where it still has it, else its first.
    pub(super) fn new(snapshot: Snapshot, before: Option<&View>) -> View {
        let entries = snapshot.entries();
        let mut chosen: FxHashMap<u64, u32> = FxHashMap::with_capacity_and_hasher(entries.len(), FxBuildHasher);
        for (i, entry) in (0u32..).zip(entries) {
            if !planned(entry.inode.kind) {
                continue;
            }
            match chosen.entry(entry.inode.ino) {
                std::collections::hash_map::Entry::Vacant(empty) => drop(empty.insert(i)),
                std::collections::hash_map::Entry::Occupied(mut first) => {
                    let had = before.is_some_and(|b| b.had_name(&snapshot, entry));
                    if had {
                        first.insert(i);
                    }
                }
            }
        }
        let mut is_chosen = vec![false; entries.len()];
        for at in chosen.values() {
            if let Some(slot) = is_chosen.get_mut(*at as usize) {
                *slot = true;
            }
        }
        View { snapshot, chosen, is_chosen }
    }

    /// Whether the name chosen for an inode here was this one: same directory inode, same last component.
    fn had_name(&self, after: &Snapshot, entry: &Entry) -> bool {
        let Some(mine) = self.find(entry.inode.ino).and_then(|i| self.entry(i)) else { return false };
        let parent = |snapshot: &Snapshot, e: &Entry| snapshot.entries().get(e.parent as usize).map(|p| p.inode.ino);
        self.snapshot.name(mine) == after.name(entry) && parent(&self.snapshot, mine) == parent(after, entry)
    }

    pub(super) fn find(&self, ino: u64) -> Option<u32> {
        self.chosen.get(&ino).copied()
    }

    pub(super) fn entry(&self, index: u32) -> Option<&Entry> {
        self.snapshot.entries().get(index as usize)
    }

    pub(super) fn name(&self, index: u32) -> &[u8] {
        self.entry(index).map(|e| self.snapshot.name(e)).unwrap_or_default()
    }

    /// The chosen names, in order, root first.
    pub(super) fn nodes(&self) -> impl DoubleEndedIterator<Item = (u32, &Entry)> {
        let entries = self.snapshot.entries().iter().enumerate();
        entries.filter(|(i, _)| self.is_chosen.get(*i).copied().unwrap_or(false)).map(|(i, e)| (i as u32, e))
    }

    pub(super) fn len(&self) -> usize {
        self.snapshot.entries().len()
    }
}

/// No counterpart in the other snapshot.
pub(super) const NONE: u32 = u32::MAX;

/// Who is who in two snapshots, by indices of chosen names.
pub(super) struct Matching {
    /// For each name of the first: the same inode in the second, or [`NONE`].
    pub(super) after: Vec<u32>,
    /// For each name of the second: the same inode in the first, or [`NONE`].
    pub(super) before: Vec<u32>,
}

impl Matching {
    pub(super) fn new(a: &View, b: &View) -> Matching {
        let mut matching = Matching { after: vec![NONE; a.len()], before: vec![NONE; b.len()] };
        for (ib, entry) in b.nodes() {
            let Some(ia) = (if ib == 0 { Some(0) } else { a.find(entry.inode.ino) }) else { continue };
            let Some(was) = a.entry(ia) else { continue };
            let stayed = || matching.before_of(entry.parent) == was.parent && a.name(ia) == b.name(ib);
            if ib == 0 || same(&was.inode, &entry.inode, stayed) {
                if let Some(slot) = matching.before.get_mut(ib as usize) {
                    *slot = ia;
                }
                if let Some(slot) = matching.after.get_mut(ia as usize) {
                    *slot = ib;
                }
            }
        }
        matching
    }

    pub(super) fn before_of(&self, b: u32) -> u32 {
        self.before.get(b as usize).copied().unwrap_or(NONE)
    }

    pub(super) fn after_of(&self, a: u32) -> u32 {
        self.after.get(a as usize).copied().unwrap_or(NONE)
    }

    /// Whether an inode that stayed has another name or directory.
    pub(super) fn moved(&self, a: &View, ia: u32, b: &View, ib: u32) -> bool {
        let (Some(was), Some(is)) = (a.entry(ia), b.entry(ib)) else { return false };
        ib != 0 && (self.before_of(is.parent) != was.parent || a.name(ia) != b.name(ib))
    }
}

/// Whether two inodes of one number are the same file. With generations that is known. Without (symbolic links, file
/// systems that have none) it is taken to be so if the kind is the same and it kept its place, or its length and
/// modification time.
fn same(was: &Inode, is: &Inode, stayed: impl Fn() -> bool) -> bool {
    if was.kind != is.kind {
        return false;
    }
    // The target of a symbolic link cannot change.
    if was.kind == FileKind::Symlink && was.size_bytes != is.size_bytes {
        return false;
    }
    match (was.generation, is.generation) {
        (Some(a), Some(b)) => a == b,
        _ => stayed() || (was.size_bytes == is.size_bytes && was.mtime_ns == is.mtime_ns),
    }
}
