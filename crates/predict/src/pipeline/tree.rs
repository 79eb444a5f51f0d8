//! The name tree: which names exist, and what they stand for.
//!
//! Slots are names in directories, nodes are files. A slot exists from the first time its name is looked up, present
//! or absent, because a name cache holds absent names too; absent ones are bounded by [`ABSENT_SLOTS`].

use super::annotated::{NodeId, SlotId};
use super::lru::Lru;
use super::names::{NameId, Names};
use super::pages::PAGE_BYTES;
use super::ranges::Ranges;
use posix::FileKind;
use rustc_hash::FxHashMap;

/// How many absent names are kept; the least recently used is forgotten first.
pub const ABSENT_SLOTS: usize = 1 << 18;

#[derive(Clone, Copy, Debug)]
pub struct Slot {
    pub dir: NodeId,
    pub name: NameId,
    pub node: NodeId,
    newer: SlotId,
    older: SlotId,
}

/// A file as the tree knows it.
#[derive(Clone, Copy, Debug)]
pub struct Node {
    pub kind: FileKind,
    /// Names.
    pub links: u32,
    /// Open file descriptions.
    pub opens: u32,
    pub size_bytes: u64,
    /// One of its directories.
    pub dir: NodeId,
    /// One of its names.
    pub slot: SlotId,
    /// Directories: how many names are present.
    pub entries: u32,
    /// Directories: bytes that getdents returns for the names.
    pub dirent_bytes: u64,
    /// The report directory that what is below or in this belongs to.
    pub report: u32,
    newest: SlotId,
    sparse: bool,
    preallocated: bool,
    live: bool,
}

/// A removed file's number with its last size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemovedFile {
    pub node: NodeId,
    pub size_bytes: u64,
}

/// The tree.
#[derive(Debug)]
pub struct Tree {
    pub names: Names,
    slots: Vec<Slot>,
    free_slots: Vec<SlotId>,
    nodes: Vec<Node>,
    free_nodes: Vec<NodeId>,
    children: FxHashMap<u64, SlotId>,
    absent: Lru,
    links: FxHashMap<NodeId, Box<[u8]>>,
    holes: FxHashMap<NodeId, Ranges>,
    /// What fallocate reserved and nobody wrote, also beyond a file's end.
    unwritten: FxHashMap<NodeId, Ranges>,
}

fn key(dir: NodeId, name: NameId) -> u64 {
    u64::from(dir.0) << 32 | u64::from(name.0)
}

/// Bytes of one `linux_dirent64`: 19 bytes of header, the name, a NUL, rounded up to 8.
fn dirent_bytes(name: &[u8]) -> u64 {
    (19 + name.len() as u64 + 1).next_multiple_of(8)
}

/// Pages of a directory's blocks by the length of its listing: a block holds shorter records of the same names, and is
/// seldom full.
pub(super) fn directory_pages(dirent_bytes: u64) -> u32 {
    u32::try_from(dirent_bytes.div_ceil(PAGE_BYTES)).unwrap_or(u32::MAX).max(1)
}

/// The page of a directory that a name is in: which one it is, its hash decides.
pub(super) fn page_of(slot: SlotId, dirent_bytes: u64) -> u32 {
    // Fibonacci hashing (Knuth, *The Art of Computer Programming* 3, section 6.4).
    let hash = u64::from(slot.0.wrapping_mul(0x9e37_79b9));
    ((hash * u64::from(directory_pages(dirent_bytes))) >> 32) as u32
}

impl Tree {
    /// A tree with nothing but the root directory.
    pub fn new() -> Tree {
        let mut tree = Tree {
            names: Names::default(),
            slots: Vec::new(),
            free_slots: Vec::new(),
            nodes: Vec::new(),
            free_nodes: Vec::new(),
            children: FxHashMap::default(),
            absent: Lru::new(Some(ABSENT_SLOTS)),
            links: FxHashMap::default(),
            holes: FxHashMap::default(),
            unwritten: FxHashMap::default(),
        };
        let root = tree.new_node(FileKind::Directory, 0);
        assert_eq!(root, NodeId::ROOT);
        let node = tree.node_mut(root);
        node.links = 1;
        node.dir = root;
        tree
    }

    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    pub fn node_mut(&mut self, id: NodeId) -> &mut Node {
        &mut self.nodes[id.index()]
    }

    pub fn slot(&self, id: SlotId) -> &Slot {
        &self.slots[id.index()]
    }

    /// How many node numbers were ever in use at once.
    pub fn nodes_max(&self) -> usize {
        self.nodes.len()
    }

    /// Files that exist, in the order of their numbers, the root first.
    pub fn live_nodes(&self) -> impl Iterator<Item = (NodeId, &Node)> {
        self.nodes.iter().enumerate().filter(|(_, n)| n.live).map(|(i, n)| (NodeId(i as u32), n))
    }

    /// Names that exist, in the order of their numbers.
    pub fn live_slots(&self) -> impl Iterator<Item = (SlotId, &Slot)> {
        let live = |s: &&Slot| s.node != NodeId::NONE;
        self.slots.iter().enumerate().map(|(i, s)| (SlotId(i as u32), s)).filter(move |(_, s)| live(s))
    }

    /// A file without a name yet.
    pub fn new_node(&mut self, kind: FileKind, size_bytes: u64) -> NodeId {
        let node = Node {
            kind,
            links: 0,
            opens: 0,
            size_bytes,
            dir: NodeId::ROOT,
            slot: SlotId::NONE,
            entries: 0,
            dirent_bytes: 48,
            report: 0,
            newest: SlotId::NONE,
            sparse: false,
            preallocated: false,
            live: true,
        };
        match self.free_nodes.pop() {
            Some(id) => {
                self.nodes[id.index()] = node;
                id
            }
            None => {
                self.nodes.push(node);
                NodeId(u32::try_from(self.nodes.len() - 1).unwrap_or(u32::MAX - 1))
            }
        }
    }

    /// The slot of a name if it was ever looked up.
    #[inline]
    pub fn find(&self, dir: NodeId, name: NameId) -> Option<SlotId> {
        self.children.get(&key(dir, name)).copied()
    }

    /// Whether a slot remembered from before is still that of this name.
    #[inline]
    pub fn is_slot_of(&self, slot: SlotId, dir: NodeId, name: NameId) -> bool {
        self.slots.get(slot.index()).is_some_and(|s| s.dir == dir && s.name == name)
    }

    /// An absent name was looked up again.
    #[inline]
    pub fn touch_absent(&mut self, slot: SlotId) {
        self.absent.touch(slot.0);
    }

    /// The slot of a name, made absent if new. `forgotten` receives an absent slot whose number had to be re-used.
    pub fn slot_of(&mut self, dir: NodeId, name: NameId, forgotten: &mut Option<SlotId>) -> SlotId {
        if let Some(slot) = self.find(dir, name) {
            if self.slots[slot.index()].node == NodeId::NONE {
                self.absent.touch(slot.0);
            }
            return slot;
        }
        self.names.hold(name);
        let older = self.nodes[dir.index()].newest;
        let record = Slot { dir, name, node: NodeId::NONE, newer: SlotId::NONE, older };
        let slot = match self.free_slots.pop() {
            Some(id) => {
                self.slots[id.index()] = record;
                id
            }
            None => {
                self.slots.push(record);
                SlotId(u32::try_from(self.slots.len() - 1).unwrap_or(u32::MAX - 1))
            }
        };
        if older != SlotId::NONE {
            self.slots[older.index()].newer = slot;
        }
        self.nodes[dir.index()].newest = slot;
        self.children.insert(key(dir, name), slot);
        self.absent.touch(slot.0);
        if let Some(old) = self.absent.pop_over_limit() {
            self.drop_slot(SlotId(old));
            *forgotten = Some(SlotId(old));
        }
        slot
    }

    fn drop_slot(&mut self, slot: SlotId) {
        let Slot { dir, name, newer, older, .. } = self.slots[slot.index()];
        self.children.remove(&key(dir, name));
        self.names.release(name);
        self.slots[slot.index()].dir = NodeId::NONE;
        if newer == SlotId::NONE {
            self.nodes[dir.index()].newest = older;
        } else {
            self.slots[newer.index()].older = older;
        }
        if older != SlotId::NONE {
            self.slots[older.index()].newer = newer;
        }
        self.free_slots.push(slot);
    }

    /// Gives a slot a file; the slot must be absent.
    pub fn attach(&mut self, slot: SlotId, node: NodeId) {
        let at = slot.index();
        assert_eq!(self.slots[at].node, NodeId::NONE, "a name stands for one file");
        self.absent.remove(slot.0);
        self.slots[at].node = node;
        let Slot { dir, name, .. } = self.slots[at];
        let bytes = dirent_bytes(self.names.get(name));
        let parent = self.node_mut(dir);
        parent.entries += 1;
        parent.dirent_bytes += bytes;
        let node = self.node_mut(node);
        node.links += 1;
        node.dir = dir;
        node.slot = slot;
    }

    /// Takes the file from a slot, which becomes absent. Returns the file.
    pub fn detach(&mut self, slot: SlotId) -> NodeId {
        let Slot { dir, name, node, .. } = self.slots[slot.index()];
        assert_ne!(node, NodeId::NONE, "only a present name can be removed");
        self.slots[slot.index()].node = NodeId::NONE;
        self.absent.touch(slot.0);
        let bytes = dirent_bytes(self.names.get(name));
        let parent = self.node_mut(dir);
        parent.entries -= 1;
        parent.dirent_bytes -= bytes;
        let file = self.node_mut(node);
        file.links -= 1;
        if file.slot == slot {
            file.slot = SlotId::NONE;
        }
        node
    }

    /// Frees a file that has no names and no descriptors; its number may be used again at once.
    pub fn reap(&mut self, id: NodeId, forgotten: &mut Vec<SlotId>) -> Option<RemovedFile> {
        let node = *self.node(id);
        if !node.live || node.links > 0 || node.opens > 0 || id == NodeId::ROOT {
            return None;
        }
        let mut slot = node.newest;
        while slot != SlotId::NONE {
            let older = self.slots[slot.index()].older;
            let child = self.slots[slot.index()].node;
            if child != NodeId::NONE {
                // The trace removed a directory that the model thinks is not empty: its files go with it.
                self.detach(slot);
                self.orphan(child);
            }
            self.absent.remove(slot.0);
            self.drop_slot(slot);
            forgotten.push(slot);
            slot = older;
        }
        self.links.remove(&id);
        if node.sparse {
            self.holes.remove(&id);
        }
        if node.preallocated {
            self.unwritten.remove(&id);
        }
        self.node_mut(id).live = false;
        self.free_nodes.push(id);
        Some(RemovedFile { node: id, size_bytes: node.size_bytes })
    }

    /// Names of a vanished directory: the files stay allocated without a name until nothing refers to them; they are
    /// attached to the root so that paths of open descriptors still resolve.
    fn orphan(&mut self, id: NodeId) {
        self.node_mut(id).dir = NodeId::ROOT;
    }

    /// The target of a symbolic link.
    pub fn link_target(&self, id: NodeId) -> Option<&[u8]> {
        self.links.get(&id).map(|t| &**t)
    }

    /// Sets the target of a symbolic link.
    pub fn set_link_target(&mut self, id: NodeId, target: &[u8]) {
        self.links.insert(id, target.into());
    }

    /// A path of a file, for people: its present name, or the directory it was in and `(deleted)`.
    pub fn path_of(&self, id: NodeId) -> Vec<u8> {
        let mut parts: Vec<&[u8]> = Vec::new();
        let mut at = id;
        // A tree deeper than this does not fit PATH_MAX; a loop cannot be, but is not worth a hang either.
        for _ in 0..4096 {
            if at == NodeId::ROOT {
                break;
            }
            let node = self.node(at);
            if node.slot == SlotId::NONE {
                parts.push(b"(deleted)");
            } else {
                parts.push(self.names.get(self.slot(node.slot).name));
            }
            at = node.dir;
        }
        if parts.is_empty() {
            return b"/".to_vec();
        }
        parts.iter().rev().flat_map(|part| std::iter::once(b'/').chain(part.iter().copied())).collect()
    }

    // ---- lengths and holes ----------------------------------------------------------------------------

    /// Writes `[offset, offset + len)`: grows the file, fills holes, and returns how many of the bytes held no data
    /// before: they had no blocks, or such as were preallocated and never written.
    pub fn write_range(&mut self, id: NodeId, offset: u64, len_bytes: u64, block: u64) -> u64 {
        let end = offset.saturating_add(len_bytes);
        let node = *self.node(id);
        let size = node.size_bytes;
        let mut new_bytes = end.saturating_sub(size.max(offset));
        // Blocks between the old end's block and the first written one are a hole.
        if offset > size {
            self.add_hole(id, size.next_multiple_of(block), offset / block * block);
        }
        if node.sparse {
            new_bytes += self.fill_holes(id, offset, end, size, block);
        }
        if node.preallocated
            && let Some(unwritten) = self.unwritten.get_mut(&id)
        {
            new_bytes += unwritten.bytes_in(offset, end.min(size));
            unwritten.remove(offset / block * block, end.next_multiple_of(block));
        }
        if end > size {
            self.node_mut(id).size_bytes = end;
        }
        new_bytes.min(len_bytes)
    }

    /// Sets the length; a longer file ends in a hole.
    pub fn set_size(&mut self, id: NodeId, to_bytes: u64, block: u64) {
        let node = *self.node(id);
        let size = node.size_bytes;
        if node.preallocated
            && let Some(unwritten) = self.unwritten.get_mut(&id)
        {
            // Whatever lies beyond the new end is given back, also what lay beyond the old one already.
            unwritten.cut(to_bytes.next_multiple_of(block));
        }
        if to_bytes > size {
            self.add_hole(id, size.next_multiple_of(block), to_bytes.next_multiple_of(block));
        } else if let Some(holes) = self.holes.get_mut(&id) {
            holes.cut(to_bytes.next_multiple_of(block));
        }
        self.node_mut(id).size_bytes = to_bytes;
    }

    /// Gives the blocks inside a range back.
    pub fn punch(&mut self, id: NodeId, offset: u64, len_bytes: u64, block: u64) {
        let end = offset.saturating_add(len_bytes).min(self.node(id).size_bytes);
        let (start, end) = (offset.next_multiple_of(block), end / block * block);
        if start < end {
            if let Some(unwritten) = self.unwritten.get_mut(&id) {
                unwritten.remove(start, end);
            }
            self.add_hole(id, start, end);
        }
    }

    /// Gives a range blocks; returns the bytes that had none.
    pub fn allocate(&mut self, id: NodeId, offset: u64, len_bytes: u64, keep_size: bool, block: u64) -> u64 {
        let size = self.node(id).size_bytes;
        let end = offset.saturating_add(len_bytes);
        if !keep_size && offset > size {
            self.add_hole(id, size.next_multiple_of(block), offset / block * block);
        }
        let (from, to) = (offset / block * block, end.next_multiple_of(block));
        let holes = self.holes.get(&id).map(|holes| holes.within(from, to)).unwrap_or_default();
        let reserved = self.unwritten.get(&id).map_or(0, |u| u.bytes_in(size.max(offset), end));
        let beyond = end.saturating_sub(size.max(offset)).saturating_sub(reserved);
        let filled = self.fill_holes(id, offset, end, size, block);
        let unwritten = self.unwritten.entry(id).or_default();
        for (start, stop) in holes {
            unwritten.add(start, stop);
        }
        unwritten.add(from.max(size.next_multiple_of(block)), to);
        let node = self.node_mut(id);
        node.preallocated = true;
        if !keep_size && end > size {
            node.size_bytes = end;
        }
        filled + beyond
    }

    /// Bytes of a range that hold data: with blocks, and written.
    pub fn data_in(&self, id: NodeId, offset: u64, len_bytes: u64) -> u64 {
        let end = offset.saturating_add(len_bytes).min(self.node(id).size_bytes);
        let unwritten = match self.node(id).preallocated {
            true => self.unwritten.get(&id).map_or(0, |u| u.bytes_in(offset, end)),
            false => 0,
        };
        self.allocated_in(id, offset, len_bytes).saturating_sub(unwritten)
    }

    /// Bytes of a range that have blocks.
    pub fn allocated_in(&self, id: NodeId, offset: u64, len_bytes: u64) -> u64 {
        let end = offset.saturating_add(len_bytes).min(self.node(id).size_bytes);
        let len = end.saturating_sub(offset);
        if !self.node(id).sparse {
            return len;
        }
        len.saturating_sub(self.holes.get(&id).map_or(0, |holes| holes.bytes_in(offset, end)))
    }

    fn add_hole(&mut self, id: NodeId, start: u64, end: u64) {
        if start >= end {
            return;
        }
        self.node_mut(id).sparse = true;
        let holes = self.holes.entry(id).or_default();
        holes.add(start, end);
        // What was preallocated beyond the end has blocks.
        if let Some(unwritten) = self.unwritten.get(&id) {
            for (start, end) in unwritten.within(start, end) {
                holes.remove(start, end);
            }
        }
    }

    /// Allocates the blocks of a range; counts the bytes of it below `size` that had none.
    fn fill_holes(&mut self, id: NodeId, start: u64, end: u64, size: u64, block: u64) -> u64 {
        let Some(holes) = self.holes.get_mut(&id) else { return 0 };
        let filled = holes.bytes_in(start, end.min(size));
        holes.remove(start / block * block, end.next_multiple_of(block));
        filled
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BLOCK: u64 = 4;

    proptest! {
        /// Against a map of bytes: which blocks are allocated, and how many written bytes were new.
        #[test]
        fn holes_are_those_of_a_block_map(ops in prop::collection::vec((0u8..6, 0u64..60, 1u64..20), 0..40)) {
            let mut tree = Tree::new();
            let file = tree.new_node(FileKind::File, 0);
            let mut size = 0u64;
            let (mut blocks, mut data) = ([false; 64], [false; 64]);
            for (op, offset, len) in ops {
                let end = offset + len;
                match op {
                    0 | 1 => {
                        let new = (offset..end).filter(|&b| b >= size || !data[(b / BLOCK) as usize]).count() as u64;
                        prop_assert_eq!(tree.write_range(file, offset, len, BLOCK), new);
                        for b in offset / BLOCK..end.div_ceil(BLOCK) { (blocks[b as usize], data[b as usize]) = (true,
                            true); }
                        size = size.max(end);
                    }
                    2 => {
                        tree.set_size(file, offset, BLOCK);
                        for b in offset.div_ceil(BLOCK)..64 { (blocks[b as usize], data[b as usize]) = (false, false); }
                        size = offset;
                    }
                    4 | 5 => {
                        // What has blocks already, or lies in the last block with data, is left as it is.
                        let keep = op == 5;
                        tree.allocate(file, offset, len, keep, BLOCK);
                        for b in offset / BLOCK..end.div_ceil(BLOCK) { blocks[b as usize] = true; }
                        if !keep { size = size.max(end); }
                    }
                    _ => {
                        tree.punch(file, offset, len, BLOCK);
                        for b in offset.div_ceil(BLOCK)..end.min(size) / BLOCK { (blocks[b as usize],
                            data[b as usize]) = (false, false); }
                    }
                }
                prop_assert_eq!(tree.node(file).size_bytes, size);
                for b in 0..size.div_ceil(BLOCK) {
                    let len = (size - b * BLOCK).min(BLOCK);
                    let expected = if blocks[b as usize] { len } else { 0 };
                    prop_assert_eq!(tree.allocated_in(file, b * BLOCK, len), expected, "block {}", b);
                    let expected = if data[b as usize] { len } else { 0 };
                    prop_assert_eq!(tree.data_in(file, b * BLOCK, len), expected, "block {}", b);
                }
            }
        }
    }

    #[test]
    fn a_name_comes_and_goes() {
        let mut tree = Tree::new();
        let name = tree.names.intern(b"file");
        let mut forgotten = None;
        let slot = tree.slot_of(NodeId::ROOT, name, &mut forgotten);
        let file = tree.new_node(FileKind::File, 10);
        tree.attach(slot, file);
        assert_eq!(tree.path_of(file), b"/file");
        assert_eq!((tree.node(NodeId::ROOT).entries, tree.node(NodeId::ROOT).dirent_bytes), (1, 48 + 24));
        tree.node_mut(file).opens = 1;
        assert_eq!(tree.detach(slot), file);
        assert_eq!(tree.reap(file, &mut Vec::new()), None, "still open");
        tree.node_mut(file).opens = 0;
        assert_eq!(tree.reap(file, &mut Vec::new()), Some(RemovedFile { node: file, size_bytes: 10 }));
        assert_eq!(tree.find(NodeId::ROOT, name), Some(slot), "the absent name is remembered");
        assert_eq!(tree.new_node(FileKind::File, 0), file, "the number is used again");
    }
}
