//! The nodes of the plan and of the target: what the plan has alive, and what really is there.
//!
//! The two differ where a deletion was brought forward (in the plan, not on the target), held back (on the target, no
//! longer in the plan), or where the target was full. Memory is that of the nodes alive.

use crate::taken::Taken;
use crate::{AgingOp, Broken, NodeId};
use posix::FileKind;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::io::Write as _;

/// Whether a node of the plan is on the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Presence {
    /// In the plan and on the target.
    Present,
    /// In the plan only: deleted early, or never made for want of room.
    Absent,
    /// On the target only: its deletion is held back.
    Held,
}

/// A node alive in the plan, on the target, or in both.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) parent: NodeId,
    /// Length in the plan; of a symbolic link that of its target, which takes no blocks in the books.
    pub(super) size_bytes: u64,
    /// `None`: derived from the number.
    pub(super) name: Option<Box<[u8]>>,
    pub(super) kind: FileKind,
    pub(super) presence: Presence,
    /// Of a directory: names in it in the plan.
    children: u64,
    /// Of a directory: files in it whose deletion is held back.
    held_within: u32,
}

/// The nodes, and sums over them.
#[derive(Debug)]
pub(super) struct Nodes {
    map: FxHashMap<NodeId, Node>,
    /// Names that the plan has given to what it has alive.
    taken: Taken,
    /// Lengths of files on the target that are not the plan's (the target was full).
    odd: FxHashMap<NodeId, u64>,
    /// Files whose deletion is held back, the oldest deletion first; some may have been released out of turn.
    held: VecDeque<NodeId>,
    block_bytes: u64,
    /// Lengths in the plan, each rounded up to a block, summed.
    pub(super) planned_bytes: u64,
    /// Lengths on the target, each rounded up to a block, summed.
    pub(super) present_bytes: u64,
    /// Files and links in the plan and on the target.
    pub(super) planned_files: u64,
    pub(super) present_files: u64,
    pub(super) held_files: u64,
    chain: Vec<NodeId>,
}

impl Nodes {
    pub(super) fn new(block_bytes: u64) -> Nodes {
        let root = Node {
            parent: NodeId::ROOT,
            size_bytes: 0,
            name: None,
            kind: FileKind::Directory,
            presence: Presence::Present,
            children: 0,
            held_within: 0,
        };
        Nodes {
            map: FxHashMap::from_iter([(NodeId::ROOT, root)]),
            taken: Taken::default(),
            odd: FxHashMap::default(),
            held: VecDeque::new(),
            block_bytes: block_bytes.max(1),
            planned_bytes: 0,
            present_bytes: 0,
            planned_files: 0,
            present_files: 0,
            held_files: 0,
            chain: Vec::new(),
        }
    }

    pub(super) fn rounded(&self, bytes: u64) -> u64 {
        bytes.checked_next_multiple_of(self.block_bytes).unwrap_or(u64::MAX)
    }

    pub(super) fn get(&self, id: NodeId) -> Option<&Node> {
        self.map.get(&id)
    }

    /// All nodes, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (NodeId, &Node)> {
        self.map.iter().map(|(id, node)| (*id, node))
    }

    /// A node that the plan has alive.
    fn planned(&self, id: NodeId) -> Result<&Node, Broken> {
        self.map.get(&id).filter(|n| n.presence != Presence::Held).ok_or(Broken::Missing(id.0))
    }

    pub(super) fn file(&self, id: NodeId) -> Result<&Node, Broken> {
        let node = self.planned(id)?;
        if node.kind == FileKind::File { Ok(node) } else { Err(Broken::NotFile(id.0)) }
    }

    pub(super) fn directory(&self, id: NodeId) -> Result<&Node, Broken> {
        let node = self.planned(id)?;
        if node.kind == FileKind::Directory { Ok(node) } else { Err(Broken::NotDirectory(id.0)) }
    }

    /// The length a file has on the target.
    pub(super) fn actual_bytes(&self, id: NodeId) -> u64 {
        self.odd.get(&id).copied().unwrap_or_else(|| self.get(id).map_or(0, |n| n.size_bytes))
    }

    /// What a file takes on the target in whole blocks, bytes.
    pub(super) fn present_blocks(&self, id: NodeId) -> u64 {
        let is_file = self.get(id).is_some_and(|n| n.kind == FileKind::File);
        if is_file { self.rounded(self.actual_bytes(id)) } else { 0 }
    }

    /// Makes a node, in the plan and on the target.
    pub(super) fn make(&mut self, op: &AgingOp, kind: FileKind, size_bytes: u64) -> Result<(), Broken> {
        self.directory(op.dir)?;
        if op.node == NodeId::ROOT {
            return Err(Broken::Root);
        }
        if self.map.contains_key(&op.node) {
            return Err(Broken::Twice(op.node.0));
        }
        self.name_is_free(op, kind)?;
        self.taken.take(op.node, op.dir, op.name.as_deref());
        let node = Node {
            parent: op.dir,
            size_bytes,
            name: op.name.clone(),
            kind,
            presence: Presence::Present,
            children: 0,
            held_within: 0,
        };
        self.map.insert(op.node, node);
        self.count_child(op.dir, 1);
        if kind != FileKind::Directory {
            let bytes = if kind == FileKind::File { self.rounded(size_bytes) } else { 0 };
            self.planned_bytes = self.planned_bytes.saturating_add(bytes);
            self.present_bytes = self.present_bytes.saturating_add(bytes);
            self.planned_files += 1;
            self.present_files += 1;
        }
        Ok(())
    }

    fn name_is_free(&self, op: &AgingOp, kind: FileKind) -> Result<(), Broken> {
        let is_directory = |kind| kind == FileKind::Directory;
        let derived = |other, directory| {
            let planned = self.planned(other).ok().filter(|n| n.parent == op.dir && n.name.is_none());
            other != NodeId::ROOT && planned.is_some_and(|n| is_directory(n.kind) == directory)
        };
        let free = self.taken.is_free((op.node, is_directory(kind)), op.dir, op.name.as_deref(), derived);
        if free { Ok(()) } else { Err(Broken::NameTaken(op.node.0, op.dir.0)) }
    }

    fn count_child(&mut self, dir: NodeId, by: i64) {
        if let Some(node) = self.map.get_mut(&dir) {
            node.children = node.children.saturating_add_signed(by);
        }
    }

    /// Removes an empty directory, in the plan and on the target.
    pub(super) fn rmdir(&mut self, id: NodeId) -> Result<(), Broken> {
        if id == NodeId::ROOT {
            return Err(Broken::Root);
        }
        let node = self.directory(id)?;
        if node.children > 0 {
            return Err(Broken::NotEmpty(id.0, node.children));
        }
        let parent = node.parent;
        self.map.remove(&id);
        self.taken.free(id);
        self.count_child(parent, -1);
        Ok(())
    }

    /// Deletes a file in the plan; answers whether it is still on the target, where it is now held. One that is not is
    /// gone.
    pub(super) fn delete(&mut self, id: NodeId) -> Result<bool, Broken> {
        let node = self.planned(id)?;
        if node.kind == FileKind::Directory {
            return Err(Broken::IsDirectory(id.0));
        }
        let (parent, present) = (node.parent, node.presence == Presence::Present);
        let bytes = if node.kind == FileKind::File { self.rounded(node.size_bytes) } else { 0 };
        self.planned_bytes = self.planned_bytes.saturating_sub(bytes);
        self.planned_files = self.planned_files.saturating_sub(1);
        self.taken.free(id);
        self.count_child(parent, -1);
        if !present {
            self.forget(id);
            return Ok(false);
        }
        self.change(id, |node| node.presence = Presence::Held);
        self.held_files += 1;
        if let Some(directory) = self.map.get_mut(&parent) {
            directory.held_within += 1;
        }
        Ok(true)
    }

    /// Takes a held file off the target for good; it must be held.
    pub(super) fn drop_held(&mut self, id: NodeId) {
        let Some(node) = self.map.get(&id).filter(|n| n.presence == Presence::Held) else { return };
        let parent = node.parent;
        self.present_bytes = self.present_bytes.saturating_sub(self.present_blocks(id));
        self.present_files = self.present_files.saturating_sub(1);
        self.held_files = self.held_files.saturating_sub(1);
        if let Some(directory) = self.map.get_mut(&parent) {
            directory.held_within = directory.held_within.saturating_sub(1);
        }
        self.forget(id);
    }

    fn forget(&mut self, id: NodeId) {
        self.map.remove(&id);
        self.odd.remove(&id);
    }

    fn change(&mut self, id: NodeId, change: impl FnOnce(&mut Node)) {
        if let Some(node) = self.map.get_mut(&id) {
            change(node);
        }
    }

    /// Takes a present file off the target, though the plan still has it.
    pub(super) fn make_absent(&mut self, id: NodeId) {
        if !self.map.get(&id).is_some_and(|n| n.presence == Presence::Present) {
            return;
        }
        self.present_bytes = self.present_bytes.saturating_sub(self.present_blocks(id));
        self.present_files = self.present_files.saturating_sub(1);
        self.odd.remove(&id);
        self.change(id, |node| node.presence = Presence::Absent);
    }

    /// Gives a file another length, in the plan and, if it is present, on the target.
    pub(super) fn resize(&mut self, id: NodeId, planned: u64, actual: u64) {
        let Some(node) = self.map.get(&id) else { return };
        let (before, present) = (node.size_bytes, node.presence == Presence::Present);
        let actual_before = self.actual_bytes(id);
        self.planned_bytes =
            self.planned_bytes.saturating_sub(self.rounded(before)).saturating_add(self.rounded(planned));
        self.change(id, |node| node.size_bytes = planned);
        if present {
            self.set_actual(id, actual_before, actual);
        }
    }

    /// Notes the length that a file on the target has.
    pub(super) fn set_actual(&mut self, id: NodeId, before: u64, actual: u64) {
        self.present_bytes =
            self.present_bytes.saturating_sub(self.rounded(before)).saturating_add(self.rounded(actual));
        let Some(node) = self.map.get(&id) else { return };
        if node.size_bytes == actual {
            self.odd.remove(&id);
        } else {
            self.odd.insert(id, actual);
        }
    }

    /// Moves a node.
    pub(super) fn rename(&mut self, op: &AgingOp) -> Result<(), Broken> {
        self.directory(op.dir)?;
        if op.node == NodeId::ROOT {
            return Err(Broken::Root);
        }
        let node = self.planned(op.node)?;
        let (old, kind) = (node.parent, node.kind);
        let is_directory = kind == FileKind::Directory;
        if is_directory {
            crate::tree::not_into_itself(op, |above| Ok(self.directory(above)?.parent))?;
        }
        self.name_is_free(op, kind)?;
        self.taken.take(op.node, op.dir, op.name.as_deref());
        self.count_child(old, -1);
        self.count_child(op.dir, 1);
        let name = op.name.clone();
        self.change(op.node, |node| {
            node.parent = op.dir;
            node.name = name;
        });
        Ok(())
    }

    /// Puts a file whose deletion is held back into the queue.
    pub(super) fn hold(&mut self, id: NodeId) {
        self.held.push_back(id);
    }

    /// The file held longest.
    pub(super) fn next_held(&mut self) -> Option<NodeId> {
        while let Some(id) = self.held.pop_front() {
            if self.map.get(&id).is_some_and(|n| n.presence == Presence::Held) {
                return Some(id);
            }
        }
        None
    }

    /// Files held in a directory, or those of them with a name.
    pub(super) fn held_in(&self, dir: NodeId, name: Option<&[u8]>) -> Vec<NodeId> {
        if self.map.get(&dir).is_none_or(|d| d.held_within == 0) {
            return Vec::new();
        }
        let here = |id: &&NodeId| {
            let node = self.map.get(id).filter(|n| n.presence == Presence::Held && n.parent == dir);
            node.is_some_and(|n| name.is_none() || n.name.as_deref() == name)
        };
        self.held.iter().filter(here).copied().collect()
    }

    /// The queue of held files, for the state.
    pub(super) fn held_queue(&self) -> Vec<u64> {
        let held = |id: &&NodeId| self.map.get(id).is_some_and(|n| n.presence == Presence::Held);
        self.held.iter().filter(held).map(|id| id.0).collect()
    }

    /// The files whose length is not the plan's, in order.
    pub(super) fn odd_lengths(&self) -> Vec<(u64, u64)> {
        let mut odd: Vec<(u64, u64)> = self.odd.iter().map(|(id, bytes)| (id.0, *bytes)).collect();
        odd.sort_unstable();
        odd
    }

    /// The files that the plan has and the target has not, in order.
    pub(super) fn absent(&self) -> Vec<u64> {
        let absent = |(_, node): &(NodeId, &Node)| node.presence == Presence::Absent;
        let mut list: Vec<u64> = self.iter().filter(absent).map(|(id, _)| id.0).collect();
        list.sort_unstable();
        list
    }

    /// Present files with enough bytes in all, those first whose `rank` is lowest.
    pub(super) fn lowest_ranked(&self, need_bytes: u64, rank: impl Fn(NodeId) -> u64) -> Vec<NodeId> {
        let candidate = |(id, node): (NodeId, &Node)| {
            let bytes = self.present_blocks(id);
            (node.presence == Presence::Present && node.kind == FileKind::File && bytes > 0).then_some((
                rank(id),
                id,
                bytes,
            ))
        };
        let mut files: Vec<(u64, NodeId, u64)> = self.iter().filter_map(candidate).collect();
        files.sort_unstable();
        let mut won = 0u64;
        let enough = |(_, _, bytes): &(u64, NodeId, u64)| {
            let go_on = won < need_bytes;
            won = won.saturating_add(*bytes);
            go_on
        };
        files.into_iter().take_while(enough).map(|(_, id, _)| id).collect()
    }

    /// Appends a node's path, relative to the root of the aged tree.
    pub(super) fn path(&mut self, id: NodeId, out: &mut Vec<u8>) {
        let Nodes { map, chain, .. } = self;
        chain.clear();
        let mut at = id;
        while at != NodeId::ROOT {
            chain.push(at);
            at = map.get(&at).map_or(NodeId::ROOT, |n| n.parent);
        }
        let mut first = true;
        for id in chain.iter().rev() {
            if !std::mem::take(&mut first) {
                out.push(b'/');
            }
            match map.get(id) {
                Some(Node { name: Some(name), .. }) => out.extend_from_slice(name),
                Some(node) => write_derived(out, *id, node.kind == FileKind::Directory),
                None => {}
            }
        }
    }
}

/// [`AgingOp::derived_name`] without an allocation.
pub(super) fn write_derived(out: &mut Vec<u8>, node: NodeId, directory: bool) {
    // Writing into a vector cannot fail.
    let _ = write!(out, "{}{:x}", if directory { 'd' } else { 'f' }, node.0);
}
