//! Inodes in memory: the attribute cache, and what reading and writing in sequence need to remember of a file.

use crate::cache::{Index, Links, List, hash};
use crate::{Ino, Lbn, Pbn};

/// An inode in memory.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Node {
    pub(crate) ino: Ino,
    /// Open file descriptions that hold it here.
    pub(crate) opens: u32,
    pub(crate) reading: Reading,
    pub(crate) writing: Writing,
    /// Advice about it: reads are said to come at random.
    pub(crate) random: bool,
}

/// What [`crate::readahead`] remembers (`v_lastr`, `v_ralen`, `v_maxra` of 4.4BSD).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reading {
    pub(crate) last: Lbn,
    pub(crate) window_blocks: u32,
    pub(crate) ahead_to: Lbn,
}

/// What [`crate::cluster`] remembers (`v_lastw`, `v_cstart`, `v_lasta`, `v_clen`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Writing {
    pub(crate) last: Lbn,
    pub(crate) start: Lbn,
    pub(crate) last_pbn: Pbn,
    pub(crate) len_blocks: u32,
}

/// The inodes in memory: all that are open, and as many others, last used, as there is room for.
#[derive(Clone, Debug)]
pub(crate) struct Nodes {
    capacity: usize,
    nodes: Vec<Node>,
    free: Vec<u32>,
    index: Index,
    links: Links,
    /// Nodes that are not open.
    idle: List,
}

impl Nodes {
    pub(crate) fn new(capacity: usize) -> Nodes {
        Nodes {
            capacity,
            nodes: Vec::new(),
            free: Vec::new(),
            index: Index::default(),
            links: Links::default(),
            idle: List::default(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.index.len()
    }

    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    #[inline]
    fn find(&self, ino: Ino) -> Option<u32> {
        self.index.find(hash(ino.0.into()), |slot| self.nodes[slot as usize].ino == ino)
    }

    #[inline]
    pub(crate) fn get(&self, ino: Ino) -> Option<&Node> {
        self.find(ino).map(|slot| &self.nodes[slot as usize])
    }

    /// For reading and writing in sequence; a file that is not here is as if it had not been touched before.
    pub(crate) fn get_mut(&mut self, ino: Ino) -> Option<&mut Node> {
        self.find(ino).map(|slot| &mut self.nodes[slot as usize])
    }

    /// Notes a use; says whether the inode was here.
    #[inline]
    pub(crate) fn touch(&mut self, ino: Ino) -> bool {
        let Some(slot) = self.find(ino) else { return false };
        if self.nodes[slot as usize].opens == 0 {
            self.links.renew(&mut self.idle, slot);
        }
        true
    }

    /// Puts in an inode that is not here.
    pub(crate) fn insert(&mut self, ino: Ino) {
        let node = Node { ino, ..Node::default() };
        let slot = match self.free.pop() {
            Some(slot) => {
                self.nodes[slot as usize] = node;
                slot
            }
            None => {
                self.nodes.push(node);
                (self.nodes.len() - 1) as u32
            }
        };
        self.index.insert(hash(ino.0.into()), slot);
        self.links.push(&mut self.idle, slot);
    }

    /// One more open file description holds it.
    pub(crate) fn open(&mut self, ino: Ino) {
        let slot = self.find(ino).expect("what is opened is in memory");
        let node = &mut self.nodes[slot as usize];
        if node.opens == 0 {
            self.links.remove(&mut self.idle, slot);
        }
        node.opens += 1;
    }

    /// One fewer; returns how many are left.
    pub(crate) fn close(&mut self, ino: Ino) -> u32 {
        let Some(slot) = self.find(ino) else { return 0 };
        let node = &mut self.nodes[slot as usize];
        assert!(node.opens > 0, "inode {ino} was not open");
        node.opens -= 1;
        if node.opens == 0 {
            self.links.push(&mut self.idle, slot);
        }
        self.nodes[slot as usize].opens
    }

    /// The number has no file any more.
    pub(crate) fn remove(&mut self, ino: Ino) {
        let Some(slot) = self.find(ino) else { return };
        self.index.remove(hash(ino.0.into()), slot);
        if self.nodes[slot as usize].opens == 0 {
            self.links.remove(&mut self.idle, slot);
        }
        self.free.push(slot);
    }

    /// Gives up the inode not used for longest, if there are more than there is room for.
    #[inline]
    pub(crate) fn evict(&mut self) -> Option<Ino> {
        if self.index.len() <= self.capacity { None } else { self.evict_idle() }
    }

    /// Gives up the inode not used for longest that is not open.
    pub(crate) fn evict_idle(&mut self) -> Option<Ino> {
        let slot = self.links.iter(self.idle).next()?;
        let ino = self.nodes[slot as usize].ino;
        self.remove(ino);
        Some(ino)
    }
}
