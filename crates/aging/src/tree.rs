//! The tree that a workload has made so far: what makes an operation possible, and what it changes.
//!
//! Planners use it to keep their books, readers to refuse a workload whose operations contradict each other. Memory is
//! that of the nodes alive.

use crate::taken::Taken;
use crate::{AgingOp, NodeId, OpKind};
use rustc_hash::FxHashMap;

/// A node alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// The directory it is in.
    pub parent: NodeId,
    /// What it is.
    pub kind: posix::FileKind,
    /// Length of a file in bytes; 0 otherwise.
    pub size_bytes: u64,
    /// Names in it, of a directory.
    pub children: u64,
}

/// An operation that the tree does not allow: the workload contradicts itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum Broken {
    #[error("node {0} is made a second time")]
    Twice(u64),
    #[error("node {0} does not exist (never made, or removed)")]
    Missing(u64),
    #[error("node {0} is a directory")]
    IsDirectory(u64),
    #[error("node {0} is no directory")]
    NotDirectory(u64),
    #[error("node {0} is no file")]
    NotFile(u64),
    #[error("directory {0} is removed with {1} names in it")]
    NotEmpty(u64, u64),
    #[error("file {node} is {size_bytes} bytes long; the operation reaches to byte {end}")]
    Beyond { node: u64, size_bytes: u64, end: u64 },
    #[error("directory {0} is moved into itself")]
    IntoItself(u64),
    #[error("the name of node {0} is taken in directory {1}")]
    NameTaken(u64, u64),
    #[error("time goes back from {0} ns to {1} ns")]
    TimeBack(u64, u64),
    #[error("the root cannot be made, moved or removed")]
    Root,
}

/// The nodes alive.
#[derive(Clone, Debug)]
pub struct Tree {
    nodes: FxHashMap<NodeId, Node>,
    taken: Taken,
    now_ns: u64,
    files: u64,
    bytes: u64,
}

impl Default for Tree {
    fn default() -> Self {
        Tree::new()
    }
}

impl Tree {
    /// A tree with nothing but its root.
    pub fn new() -> Tree {
        let root = Node { parent: NodeId::ROOT, kind: posix::FileKind::Directory, size_bytes: 0, children: 0 };
        Tree {
            nodes: FxHashMap::from_iter([(NodeId::ROOT, root)]),
            taken: Taken::default(),
            now_ns: 0,
            files: 0,
            bytes: 0,
        }
    }

    /// Files and symbolic links alive.
    pub fn files(&self) -> u64 {
        self.files
    }

    /// Sum of the lengths of the files alive, bytes (holes counted as data).
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Simulated time of the last operation.
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// A node, if it is alive.
    pub fn get(&self, node: NodeId) -> Option<&Node> {
        self.nodes.get(&node)
    }

    /// The nodes alive, in no order.
    pub fn nodes(&self) -> impl Iterator<Item = (NodeId, &Node)> {
        self.nodes.iter().map(|(id, node)| (*id, node))
    }

    /// Performs one operation, and answers the file's length before it (0 where there was none).
    ///
    /// # Errors
    /// [`Broken`]; the tree is as before.
    pub fn apply(&mut self, op: &AgingOp) -> Result<u64, Broken> {
        if op.t_ns < self.now_ns {
            return Err(Broken::TimeBack(self.now_ns, op.t_ns));
        }
        let before = match op.kind {
            OpKind::Mkdir => self.make(op, posix::FileKind::Directory, 0)?,
            OpKind::Create => self.make(op, posix::FileKind::File, op.size_bytes)?,
            OpKind::Symlink => self.make(op, posix::FileKind::Symlink, 0)?,
            OpKind::Rmdir => self.rmdir(op.node)?,
            OpKind::Delete => self.delete(op.node)?,
            OpKind::Rename => self.rename(op)?,
            OpKind::Fsync => self.file(op.node)?.size_bytes,
            OpKind::Append => {
                let file = self.file(op.node)?;
                let end = file.size_bytes.checked_add(op.size_bytes);
                let end = end.ok_or(Broken::Beyond { node: op.node.0, size_bytes: file.size_bytes, end: u64::MAX })?;
                self.resize(op.node, end)?
            }
            OpKind::Truncate => {
                self.within(op.node, 0, op.size_bytes)?;
                self.resize(op.node, op.size_bytes)?
            }
            OpKind::Overwrite | OpKind::PunchHole | OpKind::Read => {
                self.within(op.node, op.offset_bytes, op.size_bytes)?
            }
        };
        self.now_ns = op.t_ns;
        Ok(before)
    }

    fn directory(&self, dir: NodeId) -> Result<&Node, Broken> {
        let node = self.nodes.get(&dir).ok_or(Broken::Missing(dir.0))?;
        if node.kind == posix::FileKind::Directory { Ok(node) } else { Err(Broken::NotDirectory(dir.0)) }
    }

    fn file(&self, id: NodeId) -> Result<&Node, Broken> {
        let node = self.nodes.get(&id).ok_or(Broken::Missing(id.0))?;
        if node.kind == posix::FileKind::File { Ok(node) } else { Err(Broken::NotFile(id.0)) }
    }

    fn within(&self, id: NodeId, offset: u64, len: u64) -> Result<u64, Broken> {
        let size_bytes = self.file(id)?.size_bytes;
        let end = offset.saturating_add(len);
        if end <= size_bytes { Ok(size_bytes) } else { Err(Broken::Beyond { node: id.0, size_bytes, end }) }
    }

    fn resize(&mut self, id: NodeId, size_bytes: u64) -> Result<u64, Broken> {
        let node = self.nodes.get_mut(&id).ok_or(Broken::Missing(id.0))?;
        let before = std::mem::replace(&mut node.size_bytes, size_bytes);
        self.bytes = self.bytes.saturating_sub(before).saturating_add(size_bytes);
        Ok(before)
    }

    fn count_child(&mut self, dir: NodeId, by: i64) {
        if let Some(node) = self.nodes.get_mut(&dir) {
            node.children = node.children.saturating_add_signed(by);
        }
    }

    fn make(&mut self, op: &AgingOp, kind: posix::FileKind, size_bytes: u64) -> Result<u64, Broken> {
        self.directory(op.dir)?;
        if op.node == NodeId::ROOT {
            return Err(Broken::Root);
        }
        if self.nodes.contains_key(&op.node) {
            return Err(Broken::Twice(op.node.0));
        }
        self.name_is_free(op, kind)?;
        self.taken.take(op.node, op.dir, op.name.as_deref());
        self.nodes.insert(op.node, Node { parent: op.dir, kind, size_bytes, children: 0 });
        self.count_child(op.dir, 1);
        if kind != posix::FileKind::Directory {
            self.files += 1;
            self.bytes = self.bytes.saturating_add(size_bytes);
        }
        Ok(0)
    }

    fn name_is_free(&self, op: &AgingOp, kind: posix::FileKind) -> Result<(), Broken> {
        let is_directory = |kind| kind == posix::FileKind::Directory;
        let derived = |other, directory| {
            let there = self.nodes.get(&other).is_some_and(|n| n.parent == op.dir && is_directory(n.kind) == directory);
            there && other != NodeId::ROOT && !self.taken.has_given(other)
        };
        let free = self.taken.is_free((op.node, is_directory(kind)), op.dir, op.name.as_deref(), derived);
        if free { Ok(()) } else { Err(Broken::NameTaken(op.node.0, op.dir.0)) }
    }

    fn rmdir(&mut self, id: NodeId) -> Result<u64, Broken> {
        if id == NodeId::ROOT {
            return Err(Broken::Root);
        }
        let Node { parent, children, .. } = *self.directory(id)?;
        if children > 0 {
            return Err(Broken::NotEmpty(id.0, children));
        }
        self.nodes.remove(&id);
        self.taken.free(id);
        self.count_child(parent, -1);
        Ok(0)
    }

    fn delete(&mut self, id: NodeId) -> Result<u64, Broken> {
        let node = *self.nodes.get(&id).ok_or(Broken::Missing(id.0))?;
        if node.kind == posix::FileKind::Directory {
            return Err(Broken::IsDirectory(id.0));
        }
        self.nodes.remove(&id);
        self.taken.free(id);
        self.count_child(node.parent, -1);
        self.files -= 1;
        self.bytes = self.bytes.saturating_sub(node.size_bytes);
        Ok(node.size_bytes)
    }

    fn rename(&mut self, op: &AgingOp) -> Result<u64, Broken> {
        self.directory(op.dir)?;
        if op.node == NodeId::ROOT {
            return Err(Broken::Root);
        }
        let Node { parent, size_bytes, kind, .. } = *self.nodes.get(&op.node).ok_or(Broken::Missing(op.node.0))?;
        if kind == posix::FileKind::Directory {
            not_into_itself(op, |above| Ok(self.directory(above)?.parent))?;
        }
        self.name_is_free(op, kind)?;
        self.taken.take(op.node, op.dir, op.name.as_deref());
        self.count_child(parent, -1);
        self.count_child(op.dir, 1);
        if let Some(node) = self.nodes.get_mut(&op.node) {
            node.parent = op.dir;
        }
        Ok(size_bytes)
    }
}

/// Refuses to move a directory below itself.
pub(crate) fn not_into_itself(op: &AgingOp, parent: impl Fn(NodeId) -> Result<NodeId, Broken>) -> Result<(), Broken> {
    let mut above = op.dir;
    while above != NodeId::ROOT {
        if above == op.node {
            return Err(Broken::IntoItself(op.node.0));
        }
        above = parent(above)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn op(kind: OpKind, node: u64, dir: u64, offset_bytes: u64, size_bytes: u64) -> AgingOp {
        AgingOp { dir: NodeId(dir), offset_bytes, size_bytes, ..AgingOp::new(0, kind, NodeId(node)) }
    }

    #[test]
    fn a_life_of_a_file() {
        let mut tree = Tree::new();
        for step in [
            op(OpKind::Mkdir, 1, 0, 0, 0),
            op(OpKind::Create, 2, 1, 0, 100),
            op(OpKind::Append, 2, 0, 0, 50),
            op(OpKind::Overwrite, 2, 0, 100, 50),
            op(OpKind::PunchHole, 2, 0, 0, 10),
            op(OpKind::Truncate, 2, 0, 0, 20),
            op(OpKind::Fsync, 2, 0, 0, 0),
            op(OpKind::Rename, 2, 0, 0, 0),
            op(OpKind::Rmdir, 1, 0, 0, 0),
        ] {
            tree.apply(&step).expect("a possible operation");
        }
        assert_eq!((tree.files(), tree.bytes()), (1, 20));
        assert_eq!(tree.apply(&op(OpKind::Delete, 2, 0, 0, 0)), Ok(20));
        assert_eq!((tree.files(), tree.bytes()), (0, 0));
        assert_eq!(tree.get(NodeId::ROOT).map(|n| n.children), Some(0));
    }

    #[test]
    fn contradictions_are_refused_and_change_nothing() {
        let mut tree = Tree::new();
        tree.apply(&op(OpKind::Mkdir, 1, 0, 0, 0)).expect("possible");
        tree.apply(&op(OpKind::Mkdir, 3, 1, 0, 0)).expect("possible");
        tree.apply(&op(OpKind::Create, 2, 1, 0, 100)).expect("possible");
        for (step, why) in [
            (op(OpKind::Create, 2, 1, 0, 1), Broken::Twice(2)),
            (op(OpKind::Create, 9, 7, 0, 1), Broken::Missing(7)),
            (op(OpKind::Create, 9, 2, 0, 1), Broken::NotDirectory(2)),
            (op(OpKind::Append, 1, 0, 0, 1), Broken::NotFile(1)),
            (op(OpKind::Overwrite, 2, 0, 90, 11), Broken::Beyond { node: 2, size_bytes: 100, end: 101 }),
            (op(OpKind::Truncate, 2, 0, 0, 101), Broken::Beyond { node: 2, size_bytes: 100, end: 101 }),
            (op(OpKind::Rmdir, 1, 0, 0, 0), Broken::NotEmpty(1, 2)),
            (op(OpKind::Delete, 1, 0, 0, 0), Broken::IsDirectory(1)),
            (op(OpKind::Rename, 1, 3, 0, 0), Broken::IntoItself(1)),
            (op(OpKind::Rmdir, 0, 0, 0, 0), Broken::Root),
        ] {
            assert_eq!(tree.apply(&step), Err(why));
        }
        assert_eq!((tree.files(), tree.bytes()), (1, 100));
    }

    #[test]
    fn a_name_is_taken_once() {
        let named = |kind, node, dir, name: &[u8]| AgingOp { name: Some(name.into()), ..op(kind, node, dir, 0, 0) };
        let mut tree = Tree::new();
        for step in [
            named(OpKind::Mkdir, 1, 0, b"a"),
            named(OpKind::Create, 2, 1, b"a"),
            op(OpKind::Create, 3, 1, 0, 0),
            named(OpKind::Symlink, 4, 1, b"b"),
            named(OpKind::Create, 6, 1, b"f7"),
        ] {
            tree.apply(&step).expect("a possible operation");
        }
        for (step, node) in [
            (named(OpKind::Create, 9, 1, b"a"), 9),
            (named(OpKind::Mkdir, 9, 0, b"a"), 9),
            (named(OpKind::Rename, 4, 1, b"a"), 4),
            // Derived from the numbers 3 and 7.
            (named(OpKind::Create, 9, 1, b"f3"), 9),
            (op(OpKind::Create, 7, 1, 0, 0), 7),
        ] {
            assert_eq!(tree.apply(&step), Err(Broken::NameTaken(node, step.dir.0)), "{step:?}");
        }
        for step in [
            named(OpKind::Create, 8, 1, b"d3"),
            named(OpKind::Rename, 2, 1, b"a"),
            named(OpKind::Rename, 2, 1, b"c"),
            named(OpKind::Rename, 4, 1, b"a"),
            op(OpKind::Delete, 6, 0, 0, 0),
            op(OpKind::Create, 7, 1, 0, 0),
            op(OpKind::Delete, 4, 0, 0, 0),
            op(OpKind::Rename, 3, 0, 0, 0),
            named(OpKind::Create, 9, 1, b"f3"),
        ] {
            tree.apply(&step).expect("a possible operation");
        }
    }
}
