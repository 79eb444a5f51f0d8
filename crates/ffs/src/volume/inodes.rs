//! The inodes in use, by number.

use crate::format::Dinode;

pub(crate) use ufs::live::Body;

/// What this file system keeps of an inode beside the inode itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct Own {
    /// Whether it has changes that are in no block yet (a time of access).
    pub(crate) pending: bool,
}

/// An inode in memory.
pub(crate) type Node = ufs::live::Node<Dinode, Own>;

/// Inodes of a page of the table.
const PAGE: usize = 16;

/// Inodes with successive numbers. Those of a group are used from its first on, so that pages are nearly full or not
/// there.
#[derive(Clone, Debug)]
struct Page {
    nodes: [Option<Node>; PAGE],
    used: u32,
}

/// A table with room only where there are inodes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Inodes {
    pages: Vec<Option<Box<Page>>>,
}

impl Inodes {
    #[inline]
    pub(crate) fn get(&self, ino: u32) -> Option<&Node> {
        let page = self.pages.get(ino as usize / PAGE)?.as_ref()?;
        page.nodes.get(ino as usize % PAGE)?.as_ref()
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, ino: u32) -> Option<&mut Node> {
        let page = self.pages.get_mut(ino as usize / PAGE)?.as_mut()?;
        page.nodes.get_mut(ino as usize % PAGE)?.as_mut()
    }

    pub(crate) fn insert(&mut self, ino: u32, node: Node) {
        let at = ino as usize / PAGE;
        if at >= self.pages.len() {
            self.pages.resize_with(at + 1, || None);
        }
        if let Some(page) = self.pages.get_mut(at) {
            let empty = || Box::new(Page { nodes: [const { None }; PAGE], used: 0 });
            let page = page.get_or_insert_with(empty);
            if let Some(place) = page.nodes.get_mut(ino as usize % PAGE) {
                page.used += u32::from(place.is_none());
                *place = Some(node);
            }
        }
    }

    pub(crate) fn remove(&mut self, ino: u32) {
        let Some(place) = self.pages.get_mut(ino as usize / PAGE) else { return };
        let Some(page) = place else { return };
        if let Some(node) = page.nodes.get_mut(ino as usize % PAGE) {
            page.used -= u32::from(node.is_some());
            *node = None;
        }
        if page.used == 0 {
            *place = None;
        }
    }

    /// All of them, in order of number.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Node)> + Clone {
        let pages = (0_u32..).zip(&self.pages).filter_map(|(at, page)| page.as_ref().map(|page| (at, page)));
        pages.flat_map(|(at, page)| {
            let inodes = (at * PAGE as u32..).zip(page.nodes.iter());
            inodes.filter_map(|(ino, node)| node.as_ref().map(|node| (ino, node)))
        })
    }
}
