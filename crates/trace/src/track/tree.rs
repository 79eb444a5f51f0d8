//! A tracker that starts from a snapshot, and the tree of names that it ended with.

use super::call::Kind;
use super::names::{Birth, Names};
use super::resolve::is_foreign;
use super::{File, Tracker};
use crate::snapshot::parent_of;
use crate::{FileId, Provenance, Snapshot, SnapshotEntry};
use posix::FileKind;
use rustc_hash::FxHashMap;

/// A name that is there, so far as is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Its absolute path, free of links.
    pub path: Vec<u8>,
    /// The file it names; names of one file share it.
    pub file: Option<FileId>,
    /// What it is.
    pub kind: Kind,
    /// Its length in bytes; directories have none.
    pub size_bytes: Option<u64>,
    /// How many names the file has, those outside the tree included.
    pub links: Option<u32>,
    /// A symbolic link's target.
    pub target: Option<Vec<u8>>,
    /// The trace made the name: a directory made by it holds what the trace put there and nothing else.
    pub made: bool,
}

impl Tracker {
    /// Takes the names of a snapshot as those that are there, before the first call. `whole`: it holds all names of
    /// every directory that the trace uses, as a recorder's does.
    pub fn begin_with(&mut self, snapshot: &Snapshot, whole: bool) {
        self.names_known = whole;
        let mut inodes: FxHashMap<(u64, u64), File> = FxHashMap::default();
        for entry in snapshot.entries.iter().filter(|entry| !is_foreign(&entry.path)) {
            self.names.begin_with(entry, &mut inodes);
        }
    }

    /// Every name that is there now but the root's, in no order.
    pub fn standing(&self) -> Vec<Standing> {
        let mut all = Vec::new();
        self.names.for_each(|node| {
            let mut path = Vec::new();
            self.names.path(node, &mut path);
            let file = self.names.file_of(node);
            let state = self.names.file(file);
            all.push(Standing {
                path,
                file: self.names.id(file),
                kind: state.kind,
                size_bytes: if state.kind == Kind::Directory { None } else { state.size },
                links: self.names.links(file),
                target: state.target.as_deref().map(<[u8]>::to_vec),
                made: self.names.birth(node) == Birth::Made,
            });
        });
        all
    }

    /// The directory that an absolute path's last component is looked up in, and the file it leads to, so far as is
    /// known now.
    pub(crate) fn look(&mut self, path: &[u8], follow: bool) -> (Option<FileId>, Option<FileId>) {
        let walk = self.names.walk(self.names.root(), path, follow, false);
        let id = |node| self.names.id_of(node);
        (walk.parent.and_then(id), walk.node.and_then(id))
    }
}

impl Names {
    fn begin_with(&mut self, entry: &SnapshotEntry, inodes: &mut FxHashMap<(u64, u64), File>) {
        let Some(parent) = parent_of(&entry.path) else { return };
        let Some(dir) = self.canonical(parent, true) else { return };
        // What the trace only implies has no attributes: zero stands for unknown there.
        let implied = entry.provenance == Provenance::Trace;
        let kind = match entry.kind {
            FileKind::File if implied => Kind::Unknown,
            FileKind::File => Kind::Regular,
            FileKind::Directory => Kind::Directory,
            FileKind::Symlink => Kind::Symlink,
            FileKind::Special => Kind::Special,
        };
        let known = (entry.ino != 0).then_some((entry.dev, entry.ino)).filter(|_| kind != Kind::Directory);
        let file = match (self.child(dir, entry.name()), known.and_then(|inode| inodes.get(&inode).copied())) {
            (Some(node), _) => self.file_of(node),
            (None, Some(file)) => {
                self.add(dir, entry.name(), file, Birth::Before);
                let state = self.file_mut(file);
                state.links_elsewhere = state.links_elsewhere.map(|links| links.saturating_sub(1));
                return;
            }
            (None, None) => {
                let file = self.new_file(kind);
                self.add(dir, entry.name(), file, Birth::Before);
                file
            }
        };
        if let Some(inode) = known {
            inodes.insert(inode, file);
        }
        let state = self.file_mut(file);
        state.kind = kind;
        state.mode = Some(entry.mode);
        state.target = entry.target.as_deref().map(Into::into);
        state.links_elsewhere = if implied { None } else { entry.nlink.checked_sub(1) };
        if matches!(kind, Kind::Regular | Kind::Unknown) && !(implied && entry.size_bytes == 0) {
            state.size = Some(entry.size_bytes);
        }
    }
}
