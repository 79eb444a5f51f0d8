//! Files and directories by path, made and removed in a plan.

use super::history::Mode;
use crate::format::Writer;
use crate::{AgingOp, NodeId, OpKind};
use columnar::FileError;
use rustc_hash::FxHashMap;

#[derive(Clone, Copy, Debug)]
struct Directory {
    node: NodeId,
    names: u64,
}

/// A tree that is kept up by path. Paths are relative, without slashes at their ends; the empty one is the root.
pub(super) struct Tree<'w> {
    pub(super) writer: &'w mut Writer,
    directories: FxHashMap<Vec<u8>, Directory>,
    files: FxHashMap<Vec<u8>, NodeId>,
    next_node: u64,
    pub(super) t_ns: u64,
}

fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match memchr::memrchr(b'/', path) {
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None => (b"", path),
    }
}

impl<'w> Tree<'w> {
    pub(super) fn new(writer: &'w mut Writer) -> Tree<'w> {
        let root = Directory { node: NodeId::ROOT, names: 0 };
        let directories = FxHashMap::from_iter([(Vec::new(), root)]);
        Tree { writer, directories, files: FxHashMap::default(), next_node: 1, t_ns: 0 }
    }

    /// Files and links.
    pub(super) fn files(&self) -> usize {
        self.files.len()
    }

    /// Whether there is a file or link.
    pub(super) fn has_file(&self, path: &[u8]) -> bool {
        self.files.contains_key(path)
    }

    /// Names in a directory.
    pub(super) fn names_in(&self, directory: &[u8]) -> u64 {
        self.directories.get(directory).map_or(0, |d| d.names)
    }

    fn push(&mut self, op: AgingOp) -> Result<(), FileError> {
        self.writer.push(op)
    }

    fn new_node(&mut self) -> NodeId {
        self.next_node += 1;
        NodeId(self.next_node - 1)
    }

    fn count(&mut self, directory: &[u8], by: i64) {
        if let Some(directory) = self.directories.get_mut(directory) {
            directory.names = directory.names.saturating_add_signed(by);
        }
    }

    /// Makes a directory with those above it, where they are not there.
    pub(super) fn directory(&mut self, path: &[u8]) -> Result<NodeId, FileError> {
        if let Some(found) = self.directories.get(path) {
            return Ok(found.node);
        }
        let (above, name) = split(path);
        let dir = self.directory(above)?;
        let node = self.new_node();
        self.push(AgingOp { dir, name: Some(name.into()), ..AgingOp::new(self.t_ns, OpKind::Mkdir, node) })?;
        self.directories.insert(path.to_vec(), Directory { node, names: 0 });
        self.count(above, 1);
        Ok(node)
    }

    /// Makes a file or link, in place of one that is there.
    pub(super) fn put(&mut self, path: &[u8], mode: Mode, size_bytes: u64) -> Result<(), FileError> {
        if mode == Mode::Submodule {
            return self.directory(path).map(drop);
        }
        if self.files.contains_key(path) {
            self.unlink(path)?;
        }
        let (above, name) = split(path);
        let dir = self.directory(above)?;
        let node = self.new_node();
        let kind = if mode == Mode::Symlink { OpKind::Symlink } else { OpKind::Create };
        self.push(AgingOp { dir, name: Some(name.into()), size_bytes, ..AgingOp::new(self.t_ns, kind, node) })?;
        self.files.insert(path.to_vec(), node);
        self.count(above, 1);
        Ok(())
    }

    /// Removes a file or link; the directory stays.
    pub(super) fn unlink(&mut self, path: &[u8]) -> Result<(), FileError> {
        let Some(node) = self.files.remove(path) else { return Ok(()) };
        self.count(split(path).0, -1);
        self.push(AgingOp::new(self.t_ns, OpKind::Delete, node))
    }

    /// Removes a file, link or submodule, and the directories that are empty then, as git does.
    pub(super) fn remove(&mut self, path: &[u8]) -> Result<(), FileError> {
        if self.files.contains_key(path) {
            self.unlink(path)?;
        } else if !self.remove_empty(path)? {
            return Ok(());
        }
        let mut above = split(path).0;
        while !above.is_empty() && self.remove_empty(above)? {
            above = split(above).0;
        }
        Ok(())
    }

    /// Removes a directory if it is empty, and says whether it was.
    pub(super) fn remove_empty(&mut self, path: &[u8]) -> Result<bool, FileError> {
        let Some(directory) = self.directories.get(path).copied().filter(|d| d.names == 0) else { return Ok(false) };
        self.directories.remove(path);
        self.count(split(path).0, -1);
        self.push(AgingOp::new(self.t_ns, OpKind::Rmdir, directory.node))?;
        Ok(true)
    }

    /// Writes a file under another name first, and renames it over the old one: as git replaces its own files.
    pub(super) fn replace(&mut self, path: &[u8], temporary: &[u8], size_bytes: u64) -> Result<(), FileError> {
        self.put(temporary, Mode::File, size_bytes)?;
        if self.files.contains_key(path) {
            // The rename takes the old file's place: it goes at that moment.
            self.unlink(path)?;
        }
        let (above, name) = split(path);
        let dir = self.directory(above)?;
        let Some(node) = self.files.remove(temporary) else { return Ok(()) };
        self.count(split(temporary).0, -1);
        self.count(above, 1);
        self.files.insert(path.to_vec(), node);
        self.push(AgingOp { dir, name: Some(name.into()), ..AgingOp::new(self.t_ns, OpKind::Rename, node) })
    }

    /// Adds to the end of a file, made if it is not there.
    pub(super) fn append(&mut self, path: &[u8], size_bytes: u64) -> Result<(), FileError> {
        match self.files.get(path) {
            Some(node) => self.push(AgingOp { size_bytes, ..AgingOp::new(self.t_ns, OpKind::Append, *node) }),
            None => self.put(path, Mode::File, size_bytes),
        }
    }
}
