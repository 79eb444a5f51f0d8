//! One operation of the plan, resolved: what it changes in the books, and the job it makes.

use super::{DataMode, FileSystem, NodeId, PATH_BYTES_MAX, Presence, Replay, Trouble};
use crate::age::AgeError;
use crate::{AgingOp, OpKind};
use posix::FileKind;

/// A directory, and a name in it; `None`: derived from the node.
type Name = (NodeId, Option<Box<[u8]>>);

impl<F: FileSystem> Replay<'_, F> {
    /// Resolves one operation.
    pub(super) fn step(&mut self, number: u64, op: &AgingOp) -> Result<(), Trouble> {
        match op.kind {
            OpKind::Mkdir => self.mkdir(number, op),
            OpKind::Rmdir => self.rmdir(number, op),
            OpKind::Create => self.create(number, op, FileKind::File),
            OpKind::Symlink => self.create(number, op, FileKind::Symlink),
            OpKind::Append | OpKind::Truncate => self.resize(number, op),
            OpKind::Overwrite | OpKind::PunchHole | OpKind::Read => self.within(number, op),
            OpKind::Fsync => self.fsync(number, op),
            OpKind::Rename => self.rename(number, op),
            OpKind::Delete => self.delete(number, op),
        }
    }

    /// Adds a job on a node at its path.
    fn job(&mut self, kind: OpKind, node: NodeId, number: u64, range: (u64, u64)) -> Result<u32, Trouble> {
        let mut len = 0;
        let nodes = &mut self.nodes;
        let path = |out: &mut Vec<u8>| {
            let start = out.len();
            nodes.path(node, out);
            len = out.len() - start;
        };
        let job = self.window.push(kind, node, number, path, range);
        if len > PATH_BYTES_MAX { Err(Trouble::PathTooLong(node)) } else { Ok(job) }
    }

    /// Makes room for a new name: a file held back under it goes now.
    fn free_name(&mut self, number: u64, op: &AgingOp) -> Result<(), Trouble> {
        if op.name.is_none() {
            return Ok(());
        }
        for held in self.nodes.held_in(op.dir, op.name.as_deref()) {
            self.unlink_held(held, number)?;
            self.result.counters.released_for_name += 1;
        }
        Ok(())
    }

    fn mkdir(&mut self, number: u64, op: &AgingOp) -> Result<(), Trouble> {
        self.free_name(number, op)?;
        self.nodes.make(op, FileKind::Directory, 0)?;
        self.result.counters.perform(op.kind);
        if self.placed.remove(&op.node) {
            return Ok(());
        }
        let job = self.job(OpKind::Mkdir, op.node, number, (0, 0))?;
        self.window.takes_name(job, op.dir, op.name.as_deref());
        self.window.makes_directory(job, op.node);
        Ok(())
    }

    fn rmdir(&mut self, number: u64, op: &AgingOp) -> Result<(), Trouble> {
        for held in self.nodes.held_in(op.node, None) {
            self.unlink_held(held, number)?;
            self.result.counters.released_for_name += 1;
        }
        let (parent, name) = self.place_of(op.node)?;
        let job = self.job(OpKind::Rmdir, op.node, number, (0, 0))?;
        self.nodes.rmdir(op.node)?;
        self.window.wait_for_all(job);
        self.window.frees_name(job, parent, name.as_deref());
        self.result.counters.perform(op.kind);
        Ok(())
    }

    /// The directory and the name of a node.
    fn place_of(&self, node: NodeId) -> Result<Name, Trouble> {
        let node = self.nodes.get(node).ok_or(crate::Broken::Missing(node.0))?;
        Ok((node.parent, node.name.clone()))
    }

    fn create(&mut self, number: u64, op: &AgingOp, kind: FileKind) -> Result<(), Trouble> {
        self.free_name(number, op)?;
        self.nodes.make(op, kind, op.size_bytes)?;
        let job = self.job(op.kind, op.node, number, (0, op.size_bytes))?;
        self.window.takes_name(job, op.dir, op.name.as_deref());
        self.result.counters.perform(op.kind);
        Ok(())
    }

    /// Whether a file is on the target; an operation on one that is not is dropped.
    fn is_there(&mut self, node: NodeId) -> bool {
        let there = self.nodes.get(node).is_some_and(|n| n.presence == Presence::Present);
        if !there {
            self.result.counters.dropped += 1;
        }
        there
    }

    fn resize(&mut self, number: u64, op: &AgingOp) -> Result<(), Trouble> {
        let planned = self.nodes.file(op.node)?.size_bytes;
        let actual = self.nodes.actual_bytes(op.node);
        let beyond = crate::Broken::Beyond { node: op.node.0, size_bytes: planned, end: op.size_bytes };
        let (planned_after, actual_after) = match op.kind {
            OpKind::Append => {
                let end = planned.checked_add(op.size_bytes).ok_or(beyond)?;
                (end, actual.saturating_add(op.size_bytes))
            }
            _ if op.size_bytes > planned => return Err(beyond.into()),
            // A file that is shorter than planned, for want of room, is not made longer.
            _ => (op.size_bytes, actual.min(op.size_bytes)),
        };
        self.nodes.resize(op.node, planned_after, actual_after);
        if self.is_there(op.node) {
            let len = if op.kind == OpKind::Append { op.size_bytes } else { actual_after };
            self.job(op.kind, op.node, number, (actual, len))?;
            self.result.counters.perform(op.kind);
        }
        Ok(())
    }

    fn within(&mut self, number: u64, op: &AgingOp) -> Result<(), Trouble> {
        let planned = self.nodes.file(op.node)?.size_bytes;
        let end = op.offset_bytes.saturating_add(op.size_bytes);
        if end > planned {
            return Err(crate::Broken::Beyond { node: op.node.0, size_bytes: planned, end }.into());
        }
        if !self.is_there(op.node) {
            return Ok(());
        }
        let len = end.min(self.nodes.actual_bytes(op.node)).saturating_sub(op.offset_bytes);
        if len == 0 {
            return Ok(());
        }
        if op.kind == OpKind::Overwrite && self.options.data == DataMode::Fallocate {
            self.result.counters.overwrites_left_out += 1;
            return Ok(());
        }
        self.job(op.kind, op.node, number, (op.offset_bytes, len))?;
        self.result.counters.perform(op.kind);
        Ok(())
    }

    fn fsync(&mut self, number: u64, op: &AgingOp) -> Result<(), Trouble> {
        self.nodes.file(op.node)?;
        if self.is_there(op.node) {
            self.job(OpKind::Fsync, op.node, number, (0, 0))?;
            self.result.counters.perform(op.kind);
        }
        Ok(())
    }

    fn rename(&mut self, number: u64, op: &AgingOp) -> Result<(), Trouble> {
        self.free_name(number, op)?;
        let (parent, name) = self.place_of(op.node)?;
        let directory = self.nodes.get(op.node).is_some_and(|n| n.kind == FileKind::Directory);
        if !directory && !self.is_there(op.node) {
            return Ok(self.nodes.rename(op)?);
        }
        if directory {
            // Paths already written down lead through the old name.
            self.flush()?;
        }
        let job = self.job(OpKind::Rename, op.node, number, (0, 0))?;
        self.nodes.rename(op)?;
        let (nodes, node) = (&mut self.nodes, op.node);
        self.window.set_to(|out| nodes.path(node, out));
        self.window.takes_name(job, op.dir, op.name.as_deref());
        self.window.frees_name(job, parent, name.as_deref());
        self.result.counters.perform(op.kind);
        if directory {
            self.flush()?;
        }
        Ok(())
    }

    fn delete(&mut self, number: u64, op: &AgingOp) -> Result<(), Trouble> {
        if !self.nodes.delete(op.node)? {
            self.result.counters.dropped += 1;
            return Ok(());
        }
        let bytes = self.nodes.present_blocks(op.node);
        if self.control.holding && bytes > 0 {
            self.nodes.hold(op.node);
            self.result.counters.held_back += 1;
            self.result.counters.held_back_bytes += bytes;
            return Ok(());
        }
        Ok(self.unlink_held(op.node, number)?)
    }

    /// Deletes a file that the plan no longer has.
    pub(super) fn unlink_held(&mut self, node: NodeId, number: u64) -> Result<(), AgeError> {
        self.unlink(node, number)?;
        self.nodes.drop_held(node);
        Ok(())
    }

    /// Deletes a file that the plan still has.
    pub(super) fn unlink_early(&mut self, node: NodeId, number: u64) -> Result<(), AgeError> {
        self.unlink(node, number)?;
        self.nodes.make_absent(node);
        Ok(())
    }

    fn unlink(&mut self, node: NodeId, number: u64) -> Result<(), AgeError> {
        let job = self.job(OpKind::Delete, node, number, (0, 0)).map_err(|error| self.explain(number, error))?;
        if let Some((parent, Some(name))) = self.nodes.get(node).map(|n| (n.parent, n.name.clone())) {
            self.window.frees_name(job, parent, Some(&name));
        }
        self.result.counters.perform(OpKind::Delete);
        Ok(())
    }
}
