//! A plan performed in memory, with names: no two of one directory may be the same at any time.

use aging::snapshot::Snapshot;
use aging::{AgingOp, NodeId, OpKind, Tree};
use posix::FileKind;
use std::collections::BTreeMap;

#[derive(Default)]
pub struct Replayed {
    tree: Tree,
    names: BTreeMap<(NodeId, Vec<u8>), NodeId>,
    places: BTreeMap<NodeId, (NodeId, Vec<u8>)>,
    link_bytes: BTreeMap<NodeId, u64>,
}

impl Replayed {
    pub fn apply(&mut self, op: &AgingOp) {
        self.tree.apply(op).unwrap_or_else(|why| panic!("{op:?}: {why}"));
        match op.kind {
            OpKind::Mkdir | OpKind::Create | OpKind::Symlink | OpKind::Rename => {
                if let Some(old) = self.places.remove(&op.node) {
                    self.names.remove(&old);
                }
                let directory = self.tree.get(op.node).is_some_and(|n| n.kind == FileKind::Directory);
                let name = match &op.name {
                    Some(name) => name.to_vec(),
                    None => AgingOp::derived_name(op.node, directory).into_bytes(),
                };
                let place = (op.dir, name);
                self.places.insert(op.node, place.clone());
                if let Some(other) = self.names.insert(place, op.node) {
                    panic!("{op:?}: the name is that of node {}", other.0);
                }
                if op.kind == OpKind::Symlink {
                    self.link_bytes.insert(op.node, op.size_bytes);
                }
            }
            OpKind::Delete | OpKind::Rmdir => {
                let place = self.places.remove(&op.node).expect("a node of ours");
                self.names.remove(&place);
            }
            _ => {}
        }
    }

    fn path(&self, node: NodeId) -> Vec<u8> {
        match self.places.get(&node) {
            None => Vec::new(),
            Some((dir, name)) => [&self.path(*dir), &b"/"[..], name].concat(),
        }
    }

    /// Every path with kind and length.
    pub fn paths(&self) -> BTreeMap<Vec<u8>, (FileKind, u64)> {
        let nodes = self.tree.nodes().filter(|(id, _)| *id != NodeId::ROOT);
        nodes
            .map(|(id, node)| {
                let size = self.link_bytes.get(&id).copied().unwrap_or(node.size_bytes);
                (self.path(id), (node.kind, size))
            })
            .collect()
    }

    /// (directory's number, length) of every file and link, sorted.
    pub fn files_by_directory(&self) -> Vec<(u64, u64)> {
        let files = self.tree.nodes().filter(|(_, n)| n.kind != FileKind::Directory);
        let mut all: Vec<(u64, u64)> = files.map(|(_, n)| (n.parent.0, n.size_bytes)).collect();
        all.sort_unstable();
        all
    }

    /// Fails unless each inode of the snapshot is here once, under one of its names, with its kind and length, and
    /// nothing else is.
    pub fn compare(&self, snapshot: &Snapshot, day: u64) {
        let mine = self.paths();
        let mut inodes: BTreeMap<u64, u32> = BTreeMap::new();
        for (i, entry) in snapshot.entries().iter().enumerate().skip(1) {
            let inode = entry.inode;
            if inode.kind == FileKind::Special {
                continue;
            }
            let found = inodes.entry(inode.ino).or_default();
            let path = snapshot.path(i);
            if let Some((kind, size)) = mine.get(&path) {
                *found += 1;
                let expected = if inode.kind == FileKind::Directory { 0 } else { inode.size_bytes };
                let shown = String::from_utf8_lossy(&path).into_owned();
                assert_eq!((*kind, *size), (inode.kind, expected), "day {day}: {shown}");
            }
        }
        for (ino, found) in &inodes {
            assert_eq!(*found, 1, "day {day}: inode {ino} is there {found} times");
        }
        assert_eq!(mine.len(), inodes.len(), "day {day}: {mine:?}");
    }
}
