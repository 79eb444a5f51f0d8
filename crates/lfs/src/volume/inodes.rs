//! The inodes in use, by number, and the map of all numbers.

use crate::format::{Dinode, FragAddr, NDADDR};

pub(crate) use ufs::live::Body;

/// What this file system keeps of an inode beside the inode itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct Own {
    /// Where it lies; 0 if it has never been written.
    pub(crate) daddr: FragAddr,
    /// Fragments of each direct block as they lie on disk.
    pub(crate) frags: [u8; NDADDR],
    /// Whether it or a block of it differs from the disk.
    pub(crate) dirty: bool,
    /// Whether a directory operation has changed it that is not in the log.
    pub(crate) dirop: bool,
    /// Its number among the files that the cleaner moves now, counted from 1; 0 for none.
    pub(crate) moving: u32,
}

/// An inode in memory; pointers to blocks that are in memory only are [`UNWRITTEN`](super::UNWRITTEN).
pub(crate) type Node = ufs::live::Node<Dinode, Own>;

/// A table of inodes. Numbers are dense: the lowest that were freed are used again.
#[derive(Clone, Debug, Default)]
pub(crate) struct Inodes {
    nodes: Vec<Option<Box<Node>>>,
    len: u32,
}

impl Inodes {
    #[inline]
    pub(crate) fn get(&self, ino: u32) -> Option<&Node> {
        self.nodes.get(ino as usize)?.as_deref()
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, ino: u32) -> Option<&mut Node> {
        self.nodes.get_mut(ino as usize)?.as_deref_mut()
    }

    pub(crate) fn insert(&mut self, ino: u32, node: Node) {
        let at = ino as usize;
        if at >= self.nodes.len() {
            self.nodes.resize_with(at + 1, || None);
        }
        if let Some(place) = self.nodes.get_mut(at)
            && place.replace(Box::new(node)).is_none()
        {
            self.len += 1;
        }
    }

    pub(crate) fn remove(&mut self, ino: u32) -> Option<Box<Node>> {
        let node = self.nodes.get_mut(ino as usize)?.take()?;
        self.len -= 1;
        Some(node)
    }

    /// How many are in use.
    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    /// All of them, in order of number.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Node)> + Clone {
        (0..).zip(&self.nodes).filter_map(|(ino, node)| node.as_deref().map(|node| (ino, node)))
    }
}

/// What the inode map says of a number beside where its inode lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MapEntry {
    /// Counts up each time the number is freed.
    pub(crate) version: u32,
    /// Of a free one: the next in the list.
    pub(crate) next: u32,
}

/// All numbers that the ifile has entries for, and the list of the free ones: the one freed last is used first, as in
/// 4.4BSD. A file system that is not mounted has them in ascending order: NetBSD's kernel sorts the list when it mounts
/// one, and writes only those blocks of the result that change afterwards.
#[derive(Clone, Debug, Default)]
pub(crate) struct InodeMap {
    entries: Vec<MapEntry>,
    head: u32,
    tail: u32,
    free: u32,
}

impl InodeMap {
    /// With these entries; those for which `used` says so are not free.
    pub(crate) fn new(entries: Vec<MapEntry>, used: impl Fn(u32) -> bool) -> InodeMap {
        let mut map = InodeMap { entries, ..InodeMap::default() };
        for ino in (0..map.entries.len() as u32).rev().filter(|ino| *ino > 2 && !used(*ino)) {
            map.free(ino);
        }
        map
    }

    pub(crate) fn get(&self, ino: u32) -> Option<&MapEntry> {
        self.entries.get(ino as usize)
    }

    /// How many numbers there are.
    pub(crate) fn len(&self) -> u32 {
        self.entries.len() as u32
    }

    /// The first free number; 0 if there is none.
    pub(crate) fn head(&self) -> u32 {
        self.head
    }

    /// The last free number.
    pub(crate) fn tail(&self) -> u32 {
        self.tail
    }

    /// How many are free.
    pub(crate) fn free_count(&self) -> u32 {
        self.free
    }

    /// More numbers, all of them free.
    pub(crate) fn grow(&mut self, by: u32) {
        let first = self.len();
        let new = MapEntry { version: 1, next: 0 };
        self.entries.extend((0..by).map(|_| new));
        for ino in (first..first + by).rev() {
            self.free(ino);
        }
    }

    /// The free numbers whose entries differ once the list is in ascending order.
    pub(crate) fn out_of_order(&self) -> Vec<u32> {
        let mut listed = Vec::new();
        let mut at = self.head;
        while at != 0 {
            listed.push(at);
            at = self.get(at).map_or(0, |entry| entry.next);
        }
        listed.sort_unstable();
        let next = listed.iter().skip(1).copied().chain([0]);
        listed
            .iter()
            .copied()
            .zip(next)
            .filter(|(ino, next)| self.get(*ino).is_some_and(|e| e.next != *next))
            .map(|(ino, _)| ino)
            .collect()
    }

    /// Puts the list into ascending order.
    pub(crate) fn order(&mut self) {
        let mut listed = Vec::new();
        while let Some((ino, _)) = self.take() {
            listed.push(ino);
        }
        listed.sort_unstable();
        listed.into_iter().rev().for_each(|ino| self.free(ino));
    }

    fn free(&mut self, ino: u32) {
        if let Some(entry) = self.entries.get_mut(ino as usize) {
            entry.next = self.head;
            if self.head == 0 {
                self.tail = ino;
            }
            self.head = ino;
            self.free += 1;
        }
    }

    /// Takes the first free number; says its version.
    pub(crate) fn take(&mut self) -> Option<(u32, u32)> {
        let ino = self.head;
        let entry = self.entries.get_mut(ino as usize).filter(|_| ino != 0)?;
        self.head = std::mem::take(&mut entry.next);
        self.free -= 1;
        if self.head == 0 {
            self.tail = 0;
        }
        Some((ino, entry.version))
    }

    /// A number is free again, for another version of it.
    pub(crate) fn give_back(&mut self, ino: u32) {
        if let Some(entry) = self.entries.get_mut(ino as usize) {
            entry.version = entry.version.wrapping_add(1).max(1);
        }
        self.free(ino);
    }
}
