//! An inode in memory, and the pieces that its file lies in.

use crate::DiskInode;
use crate::directory::Directory;
use crate::indirect::{Indirects, NDADDR, Pointer, way};

/// An inode in memory, with what its file holds as far as the file system knows that.
#[derive(Clone, Debug)]
pub struct Node<D, O> {
    /// The inode as it is on disk.
    pub d: D,
    /// Its indirect blocks, if it has any.
    pub indirects: Option<Box<Indirects>>,
    /// What only the file system's own files have.
    pub body: Body,
    /// What only this file system keeps of it.
    pub own: O,
}

/// The contents that are the file system's own.
#[derive(Clone, Debug)]
pub enum Body {
    /// None: a process's data, or nothing.
    File,
    /// A directory.
    Directory(Box<Directory>),
    /// Where a symbolic link leads.
    Symlink(Box<[u8]>),
    /// A file of the file system itself (the ifile): everything in it is elsewhere in memory.
    System,
}

/// A piece of a block of a file, as long as it is on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Where it lies.
    pub addr: Pointer,
    /// Its length, in whole fragments.
    pub bytes: u32,
}

/// A block to write to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// Where it lies and how long it is now.
    pub piece: Piece,
    /// Whether it is new: what is not written of it is zeros.
    pub fresh: bool,
}

/// The sizes of blocks and fragments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Bytes of a block.
    pub bsize: u32,
    /// Its logarithm.
    pub bshift: u32,
    /// Bytes of a fragment.
    pub fsize: u32,
    /// Its logarithm.
    pub fshift: u32,
    /// Pointers of an indirect block.
    pub nindir: u64,
}

impl Sizes {
    /// Bytes of block `lbn` of a file of `size` bytes (`blksize`): the last direct block may be a fragment.
    #[inline]
    pub fn block_bytes(&self, size: u64, lbn: u64) -> u32 {
        if lbn >= NDADDR as u64 || size >= (lbn + 1) << self.bshift {
            return self.bsize;
        }
        let rest = size.saturating_sub(lbn << self.bshift);
        (rest.next_multiple_of(self.fsize.into())) as u32
    }
}

impl<D: DiskInode, O> Node<D, O> {
    /// The pointers among which that of a block is, and its place; behind the end of the list all are 0.
    #[inline]
    pub fn pointers_beside(&self, lbn: u64, nindir: u64) -> (&[Pointer], usize) {
        match way(lbn, nindir) {
            None => (self.d.direct(), lbn.min(NDADDR as u64) as usize),
            Some(way) => (self.pointers_of_leaf(way.leaf), way.index),
        }
    }

    /// The pointers of the indirect block that reaches data from block `first` on; behind the end of the list all are
    /// 0.
    #[inline]
    pub fn pointers_of_leaf(&self, first: u64) -> &[Pointer] {
        let leaf = self.indirects.as_ref().and_then(|indirects| indirects.leaves.get(&first));
        leaf.map(|leaf| leaf.pointers.as_slice()).unwrap_or_default()
    }

    /// Where a block lies; 0 for a hole.
    #[inline]
    pub fn pointer(&self, lbn: u64, nindir: u64) -> Pointer {
        let (pointers, index) = self.pointers_beside(lbn, nindir);
        pointers.get(index).copied().unwrap_or(0)
    }

    /// Where a block lies, and how long it is; nothing for a hole, or behind the end.
    #[inline]
    pub fn piece(&self, lbn: u64, sizes: &Sizes) -> Option<Piece> {
        let addr = self.pointer(lbn, sizes.nindir);
        let bytes = sizes.block_bytes(self.d.size(), lbn);
        (addr != 0 && bytes > 0).then_some(Piece { addr, bytes })
    }

    /// Where an indirect block lies; 0 if there is none.
    #[inline]
    pub fn indirect_addr(&self, number: i64, nindir: u64) -> Pointer {
        self.indirects.as_ref().map_or(0, |indirects| indirects.addr(number, nindir))
    }

    /// The bytes of a directory, or of a symbolic link's target; `None` for what the file system knows no bytes of.
    pub fn content(&self) -> Option<&[u8]> {
        match &self.body {
            Body::Directory(directory) => Some(directory.bytes()),
            Body::Symlink(target) => Some(target),
            Body::File | Body::System => None,
        }
    }
}
