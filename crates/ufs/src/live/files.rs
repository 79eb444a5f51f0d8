//! Files as blocks: where they lie, and how the cache knows them.

use super::backing::Backing;
use super::node::{Body, Node, Piece};
use crate::directory::Directory;
use crate::indirect::{NDADDR, Pointer, way};
use crate::{DiskInode as _, FileType};
use kernel::{Block, BlockId, Cx, Ino, Lbn, Mapped};
use posix::{Errno, Extent, ExtentFlags, FileKind, FreeExtent};

/// What processes call a file of a type.
pub fn kind_of(file_type: Option<FileType>) -> FileKind {
    match file_type {
        Some(FileType::Regular) => FileKind::File,
        Some(FileType::Directory) => FileKind::Directory,
        Some(FileType::Symlink) => FileKind::Symlink,
        _ => FileKind::Special,
    }
}

/// Files of a [`Backing`].
pub trait Files: Backing {
    /// A block of a file as the cache knows it.
    #[inline]
    fn file_block(&self, node: &Node<Self::Inode, Self::Own>, ino: Ino, lbn: u64, piece: Piece) -> Block {
        let (lbn, pbn) = (Lbn(lbn as i64), self.pbn_of(piece.addr));
        match node.body {
            Body::File => Block::data(ino, lbn, pbn, piece.bytes),
            Body::Directory(_) | Body::Symlink(_) | Body::System => Block::metadata(ino, lbn, pbn, piece.bytes),
        }
    }

    /// An indirect block as the cache knows it.
    #[inline]
    fn indirect_block(&self, ino: Ino, number: i64, addr: Pointer) -> Block {
        Block::metadata(ino, Lbn(number), self.pbn_of(addr), self.sizes().bsize)
    }

    /// Where a block lies; 0 for a hole.
    #[inline]
    fn pointer(&self, ino: Ino, lbn: u64) -> Result<Pointer, Errno> {
        Ok(self.node(ino)?.pointer(lbn, self.sizes().nindir))
    }

    /// Where an indirect block lies; 0 if there is none.
    #[inline]
    fn indirect_addr(&self, ino: Ino, number: i64) -> Pointer {
        self.node(ino).map_or(0, |node| node.indirect_addr(number, self.sizes().nindir))
    }

    /// A directory.
    #[inline]
    fn directory(&self, ino: Ino) -> Result<&Directory, Errno> {
        match &self.node(ino)?.body {
            Body::Directory(directory) => Ok(directory),
            Body::File | Body::Symlink(_) | Body::System => Err(Errno::ENOTDIR),
        }
    }

    /// The same, to be changed.
    #[inline]
    fn directory_mut(&mut self, ino: Ino) -> Result<&mut Directory, Errno> {
        match &mut self.node_mut(ino)?.body {
            Body::Directory(directory) => Ok(directory),
            Body::File | Body::Symlink(_) | Body::System => Err(Errno::ENOTDIR),
        }
    }

    /// The block of a directory that a byte is in.
    #[inline]
    fn directory_block(&self, dir: Ino, at: u64) -> Result<Block, Errno> {
        let sizes = self.sizes();
        let lbn = at >> sizes.bshift;
        let node = self.node(dir)?;
        let piece = node.piece(lbn, &sizes).ok_or(Errno::EIO)?;
        Ok(self.file_block(node, dir, lbn, piece))
    }

    /// Every block of a file in its order, holes left out.
    fn each_block(&self, ino: Ino, each: &mut dyn FnMut(u64, Piece)) -> Result<(), Errno> {
        let (node, sizes) = (self.node(ino)?, self.sizes());
        if !self.has_blocks(&node.d) {
            return Ok(());
        }
        let size = node.d.size();
        let blocks = size.div_ceil(sizes.bsize.into());
        let direct = (0..).zip(node.d.direct()).take(blocks.min(NDADDR as u64) as usize);
        for (lbn, addr) in direct.filter(|(_, addr)| **addr != 0) {
            each(lbn, Piece { addr: *addr, bytes: sizes.block_bytes(size, lbn) });
        }
        for (first, leaf) in node.indirects.iter().flat_map(|indirects| &indirects.leaves) {
            for (lbn, addr) in (*first..blocks).zip(&leaf.pointers).filter(|(_, addr)| **addr != 0) {
                each(lbn, Piece { addr: *addr, bytes: sizes.bsize });
            }
        }
        Ok(())
    }

    /// Where a block of a file lies, and how many lie behind it: [`Volume::map`](kernel::Volume::map).
    fn map_block(&mut self, cx: &mut Cx, ino: Ino, lbn: Lbn, ahead: u32) -> Result<Option<Mapped>, Errno> {
        let Ok(number) = u64::try_from(lbn.0) else { return Ok(None) };
        let sizes = self.sizes();
        if let Some(way) = way(number, sizes.nindir) {
            for indirect in way.numbers.iter().take(way.slot + 1) {
                let addr = self.node(ino)?.indirect_addr(*indirect, sizes.nindir);
                if addr == 0 {
                    return Ok(None);
                }
                cx.read(&self.indirect_block(ino, *indirect, addr));
            }
        }
        let node = self.node(ino)?;
        let Some(piece) = node.piece(number, &sizes) else {
            let shown = self.shown_in_hole(ino, number);
            return Ok(shown.map(|piece| Mapped { pbn: self.pbn_of(piece.addr), bytes: piece.bytes, ahead: 0 }));
        };
        // What has no place yet is in memory, and nothing lies behind it.
        debug_assert!(piece.addr > 0 || cx.cache().contains(BlockId { ino, lbn }), "inode {ino} block {number}");
        let (pointers, index) = node.pointers_beside(number, sizes.nindir);
        let full = (node.d.size() >> sizes.bshift).saturating_sub(number + 1);
        let most = u64::from(ahead).min(full) as usize;
        let frag = i64::from(sizes.bsize >> sizes.fshift);
        let here = pointers.get(index..).unwrap_or_default();
        let run = here.windows(2).take(most).take_while(|pair| matches!(pair, [a, b] if *a > 0 && *b == *a + frag));
        Ok(Some(Mapped { pbn: self.pbn_of(piece.addr), bytes: piece.bytes, ahead: run.count() as u32 }))
    }

    /// Where a file's data lie, in order of the file; what is in memory only is left out.
    fn extents_of(&self, ino: Ino) -> Result<Vec<Extent>, Errno> {
        let sizes = self.sizes();
        let mut extents: Vec<Extent> = Vec::new();
        self.each_block(ino, &mut |lbn, piece| {
            let Ok(frag) = u64::try_from(piece.addr) else { return };
            let (logical_bytes, physical_bytes) = (lbn << sizes.bshift, frag << sizes.fshift);
            let len_bytes = u64::from(piece.bytes);
            match extents.last_mut() {
                Some(last)
                    if last.logical_bytes + last.len_bytes == logical_bytes
                        && last.physical_bytes + last.len_bytes == physical_bytes =>
                {
                    last.len_bytes += len_bytes;
                }
                _ => {
                    extents.push(Extent { logical_bytes, physical_bytes, len_bytes, flags: ExtentFlags::default() });
                }
            }
        })?;
        Ok(extents)
    }

    /// The bytes of a block of a directory, or of a long symbolic link, made on demand.
    fn encode_content(&self, id: BlockId, out: &mut [u8]) {
        let from = (id.lbn.0 as usize) << self.sizes().bshift;
        let content = self.node(id.ino).ok().and_then(Node::content).unwrap_or_default();
        copy(content.get(from..).unwrap_or_default(), out);
    }
}

impl<B: Backing> Files for B {}

/// Bytes to the beginning of a place.
pub fn copy(bytes: &[u8], out: &mut [u8]) {
    for (place, byte) in out.iter_mut().zip(bytes) {
        *place = *byte;
    }
}

/// A stretch of free space behind those before it, one with the last where it touches it.
pub fn push_free(extents: &mut Vec<FreeExtent>, physical_bytes: u64, len_bytes: u64) {
    match extents.last_mut() {
        Some(last) if last.physical_bytes + last.len_bytes == physical_bytes => last.len_bytes += len_bytes,
        _ => extents.push(FreeExtent { physical_bytes, len_bytes }),
    }
}
