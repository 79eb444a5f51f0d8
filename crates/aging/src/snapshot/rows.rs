//! The names that a walk found, made a snapshot: sorted, and without the contradictions of a tree that was changed
//! meanwhile.

use super::blocks::{ListAt, Lists, Place};
use super::{Builder, Inode, Snapshot, SnapshotMeta};
use columnar::FileError;
use posix::FileKind;
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};
use std::path::Path;
use trace::profile::escape;
use trace::snapshot::path_order;

/// A name as the walk found it.
pub(super) struct Row {
    pub path_at: usize,
    pub path_len: u32,
    /// Which of the places is its own, where there are block lists.
    pub place: u32,
    pub inode: Inode,
}

impl Row {
    fn path<'a>(&self, paths: &'a [u8]) -> &'a [u8] {
        let rest = paths.get(self.path_at..).unwrap_or_default();
        rest.get(..self.path_len as usize).unwrap_or_default()
    }
}

/// All that a walk found.
pub(super) struct Found {
    pub rows: Vec<Row>,
    /// The paths, one behind the other; the root's is empty.
    pub paths: Vec<u8>,
    /// Block lists, where they are kept.
    pub lists: Option<Lists>,
    /// Of each row, then.
    pub places: Vec<Place>,
    pub unreadable: Unreadable,
}

/// Names that could not be read: how many, and the first with their reasons.
#[derive(Default)]
pub(super) struct Unreadable {
    count: u64,
    first: Vec<String>,
}

impl Unreadable {
    /// Unreadable names that are kept with their reasons.
    const FIRST_MAX: usize = 20;

    /// Counts one.
    pub fn add(&mut self, path: &[u8], why: &str) {
        self.count += 1;
        if self.first.len() < Self::FIRST_MAX {
            let path = if path.is_empty() { "/".into() } else { escape(path) };
            self.first.push(format!("{path}: {why}"));
        }
    }
}

/// Why a name is left out: the walk has met another file of its inode number.
const USED_AGAIN: &str =
    "its inode number is another file's: the tree was changed meanwhile, or its file system gives numbers twice";

/// What is said of all names of an inode, of which the walk may have seen some before and some after a change.
struct Agreed {
    inode: Inode,
    at: Option<ListAt>,
    /// Whether one of the names has it.
    named: bool,
}

impl Agreed {
    /// Whether a row tells of the same file, and not of one that has had the number before or since.
    fn is_of(&self, inode: &Inode) -> bool {
        let known = self.inode.generation.zip(inode.generation);
        self.inode.kind == inode.kind && known.is_none_or(|(ours, theirs)| ours == theirs)
    }
}

impl Found {
    fn place(&mut self, row: &Row) -> Option<&mut Place> {
        self.places.get_mut(row.place as usize)
    }

    /// Makes all names of an inode tell the same of it. A file that was renamed under the walk has been met twice with
    /// one link: its first name stays. One that was given a name meanwhile has all that were met, and the link count of
    /// the last look. Where an inode number was used again, the directory stays, since there are names below it, and
    /// else the first.
    fn agree(&mut self) {
        let mut rows = std::mem::take(&mut self.rows);
        let mut met = FxHashSet::with_capacity_and_hasher(rows.len(), FxBuildHasher);
        let again: FxHashSet<u64> = rows.iter().map(|row| row.inode.ino).filter(|ino| !met.insert(*ino)).collect();
        drop(met);
        let mut agreed: FxHashMap<u64, Agreed> = FxHashMap::default();
        for row in rows.iter().filter(|row| again.contains(&row.inode.ino)) {
            let at = self.place(row).map(|place| place.at);
            let new = || Agreed { inode: row.inode, at, named: false };
            let before = agreed.entry(row.inode.ino).or_insert_with(new);
            if before.is_of(&row.inode) {
                before.inode.nlink = before.inode.nlink.max(row.inode.nlink);
            } else if row.inode.kind == FileKind::Directory {
                *before = new();
            }
        }
        rows.retain_mut(|row| {
            let Some(agreed) = agreed.get_mut(&row.inode.ino) else { return true };
            if !agreed.is_of(&row.inode) {
                self.unreadable.add(row.path(&self.paths), USED_AGAIN);
                return false;
            }
            let is_first = !std::mem::replace(&mut agreed.named, true);
            row.inode = agreed.inode;
            if let (Some(place), Some(at)) = (self.place(row), agreed.at) {
                place.at = at;
            }
            is_first || (row.inode.nlink > 1 && row.inode.kind != FileKind::Directory)
        });
        self.rows = rows;
    }
}

/// Sorts the names and puts the snapshot together.
pub(super) fn assemble(mut found: Found, meta: SnapshotMeta, target: &Path) -> Result<Snapshot, FileError> {
    let paths = &found.paths;
    found.rows.sort_unstable_by(|a, b| path_order(a.path(paths), b.path(paths)));
    found.rows.dedup_by(|later, first| later.path(paths) == first.path(paths));
    found.agree();
    let Found { rows, paths, lists, places, unreadable } = found;
    let mut builder = lists.map_or_else(Builder::default, Builder::with_lists);
    let invalid = |message: String| FileError::invalid(target, message);
    for row in &rows {
        let name = if row.path_len == 0 { b"/" } else { row.path(&paths) };
        let pushed = match places.get(row.place as usize) {
            Some(place) => builder.push_at(name, row.inode, *place),
            None => builder.push(name, row.inode),
        };
        pushed.map_err(|why| invalid(format!("{} {why}", escape(name))))?;
    }
    let meta = SnapshotMeta { unreadable: unreadable.count, first_unreadable: unreadable.first, ..meta };
    builder.finish(meta).map_err(|(row, why)| invalid(format!("name {row}: {why}")))
}
