//! The inodes in use, by number.

use super::pointers::Indirects;
use crate::format::Dinode;
use ufs::directory::Directory;

/// An inode in memory, with what its file holds as far as the file system knows that.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// The inode as it is on disk.
    pub(crate) d: Dinode,
    /// Its indirect blocks, if it has any.
    pub(crate) indirects: Option<Box<Indirects>>,
    /// What only the file system's own files have.
    pub(crate) body: Body,
    /// Whether it has changes that are in no block yet (a time of access).
    pub(crate) pending: bool,
}

/// The contents that are the file system's own.
#[derive(Clone, Debug)]
pub(crate) enum Body {
    /// None: a process's data, or nothing.
    File,
    /// A directory.
    Directory(Box<Directory>),
    /// Where a symbolic link leads.
    Symlink(Box<[u8]>),
}

/// Inodes of a page of the table.
const PAGE: usize = 64;

type Page = [Option<Box<Node>>; PAGE];

/// A table with room only where there are inodes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Inodes {
    pages: Vec<Option<Box<Page>>>,
}

impl Inodes {
    #[inline]
    pub(crate) fn get(&self, ino: u32) -> Option<&Node> {
        let page = self.pages.get(ino as usize / PAGE)?.as_ref()?;
        page.get(ino as usize % PAGE)?.as_deref()
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, ino: u32) -> Option<&mut Node> {
        let page = self.pages.get_mut(ino as usize / PAGE)?.as_mut()?;
        page.get_mut(ino as usize % PAGE)?.as_deref_mut()
    }

    pub(crate) fn insert(&mut self, ino: u32, node: Node) {
        let at = ino as usize / PAGE;
        if at >= self.pages.len() {
            self.pages.resize_with(at + 1, || None);
        }
        if let Some(page) = self.pages.get_mut(at) {
            let page = page.get_or_insert_with(|| Box::new(std::array::from_fn(|_| None)));
            if let Some(place) = page.get_mut(ino as usize % PAGE) {
                *place = Some(Box::new(node));
            }
        }
    }

    pub(crate) fn remove(&mut self, ino: u32) -> Option<Box<Node>> {
        self.pages.get_mut(ino as usize / PAGE)?.as_mut()?.get_mut(ino as usize % PAGE)?.take()
    }

    /// All of them, in order of number.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Node)> {
        let pages = (0_u32..).zip(&self.pages).filter_map(|(at, page)| page.as_ref().map(|page| (at, page)));
        pages.flat_map(|(at, page)| {
            let inodes = (at * PAGE as u32..).zip(page.iter());
            inodes.filter_map(|(ino, node)| node.as_deref().map(|node| (ino, node)))
        })
    }
}
