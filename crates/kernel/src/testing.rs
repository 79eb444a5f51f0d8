//! For tests and benchmarks of the kernel itself, a small file system: extents, first fit, nothing on the disk in any
//! format.
//!
//! It has what the kernel needs to be exercised: addresses, indirect blocks, inodes in blocks, directories with data
//! blocks, a disk that fills up. Metadata are delayed, or written at once and waited for ([`Metadata`]).

use crate::{
    Attributes, Block, BlockId, Cx, Durability, Encode, Entry, Ino, Lbn, Mapped, NewNode, Pbn, Rename, SetAttributes,
    Volume, WriteRange,
};
use posix::{Errno, Extent, ExtentFlags, FileKind, FreeExtent, FsUsage};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// When changes of inodes and directories are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metadata {
    /// With everything else that is dirty.
    Delayed,
    /// At once, and waited for.
    Synchronous,
}

const INODE_BYTES: u64 = 128;
const DIRECT_BLOCKS: i64 = 12;
const POINTERS_PER_BLOCK: i64 = 1024;
const ENTRY_BYTES: usize = 16;

/// The file system.
#[derive(Clone, Debug)]
pub struct MemVolume {
    block_bytes: u32,
    blocks: u64,
    metadata: Metadata,
    /// Whether what was left dirty goes with its neighbours.
    gathers_late: bool,
    /// Free blocks: start and length, coalesced.
    free: BTreeMap<u64, u64>,
    free_blocks: u64,
    first_block: u64,
    inodes: FxHashMap<Ino, Inode>,
    max_inodes: u32,
    free_inodes: Vec<u32>,
    next_inode: u32,
    generation: u32,
}

#[derive(Clone, Debug)]
struct Inode {
    attributes: Attributes,
    /// Blocks by number; a hole has none. Negative: indirect blocks.
    blocks: BTreeMap<i64, u64>,
    target: Vec<u8>,
    entries: Directory,
    parent: Ino,
}

/// Names in slots, so that an entry has a place; a new one takes the first free slot.
#[derive(Clone, Debug, Default)]
struct Directory {
    slots: Vec<Option<(Box<[u8]>, Ino)>>,
    free: std::collections::BTreeSet<usize>,
    by_name: FxHashMap<Box<[u8]>, usize>,
}

impl MemVolume {
    /// An empty file system.
    pub fn new(size_bytes: u64, block_bytes: u32, max_inodes: u32, metadata: Metadata) -> MemVolume {
        let blocks = size_bytes / u64::from(block_bytes);
        let inode_blocks = (u64::from(max_inodes) * INODE_BYTES).div_ceil(u64::from(block_bytes));
        let first_block = (1 + inode_blocks).min(blocks);
        let free_blocks = blocks - first_block;
        let mut volume = MemVolume {
            block_bytes,
            blocks,
            metadata,
            gathers_late: true,
            free: BTreeMap::from([(first_block, free_blocks)]),
            free_blocks,
            first_block,
            inodes: FxHashMap::default(),
            max_inodes,
            free_inodes: Vec::new(),
            next_inode: 3,
            generation: 0,
        };
        let root = volume.new_inode(FileKind::Directory, 0o755, 0, ROOT);
        volume.inodes.insert(ROOT, Inode { attributes: Attributes { nlink: 2, ..root.attributes }, ..root });
        volume
    }

    /// The same, but what was left dirty goes block by block, as in 4.4BSD.
    #[must_use]
    pub fn blockwise(self) -> MemVolume {
        MemVolume { gathers_late: false, ..self }
    }

    fn new_inode(&mut self, kind: FileKind, mode: u16, date_ns: i64, parent: Ino) -> Inode {
        self.generation += 1;
        Inode {
            attributes: Attributes {
                kind,
                mode,
                uid: 0,
                gid: 0,
                nlink: 0,
                generation: self.generation,
                size_bytes: 0,
                allocated_bytes: 0,
                atime_ns: date_ns,
                mtime_ns: date_ns,
                ctime_ns: date_ns,
            },
            blocks: BTreeMap::new(),
            target: Vec::new(),
            entries: Directory::default(),
            parent,
        }
    }

    fn pbn(&self, block: u64) -> Pbn {
        Pbn(block * (u64::from(self.block_bytes) / Pbn::BYTES))
    }

    fn inode(&self, ino: Ino) -> Result<&Inode, Errno> {
        self.inodes.get(&ino).ok_or(Errno::ESTALE)
    }

    fn inode_mut(&mut self, ino: Ino) -> Result<&mut Inode, Errno> {
        self.inodes.get_mut(&ino).ok_or(Errno::ESTALE)
    }

    fn inode_block(&self, ino: Ino) -> Block {
        let block = 1 + u64::from(ino.0) * INODE_BYTES / u64::from(self.block_bytes);
        Block::device(self.pbn(block), self.block_bytes)
    }

    /// An inode has changed.
    fn update(&mut self, cx: &mut Cx, ino: Ino) {
        let block = self.inode_block(ino);
        cx.change(&block);
        self.stored(cx, block.id);
    }

    /// A changed metadata block is written now or later.
    fn stored(&mut self, cx: &mut Cx, id: BlockId) {
        if self.metadata == Metadata::Synchronous {
            cx.write(self, id, true);
        }
    }

    /// The first free block at or after `goal`, or the first of all.
    fn allocate_block(&mut self, goal: u64) -> Option<u64> {
        let at = self.free.range(..=goal).next_back().filter(|(start, len)| goal < **start + **len);
        let (start, len, block) = match at {
            Some((&start, &len)) => (start, len, goal),
            None => {
                let (&start, &len) = self.free.range(goal..).next().or_else(|| self.free.iter().next())?;
                (start, len, start)
            }
        };
        self.free.remove(&start);
        if block > start {
            self.free.insert(start, block - start);
        }
        if block + 1 < start + len {
            self.free.insert(block + 1, start + len - block - 1);
        }
        self.free_blocks -= 1;
        Some(block)
    }

    fn free_block(&mut self, block: u64) {
        let (mut start, mut len) = (block, 1);
        if let Some((&before, &before_len)) = self.free.range(..block).next_back()
            && before + before_len == block
        {
            self.free.remove(&before);
            (start, len) = (before, before_len + 1);
        }
        if let Some(after_len) = self.free.remove(&(block + 1)) {
            len += after_len;
        }
        self.free.insert(start, len);
        self.free_blocks += 1;
    }

    /// The number of the indirect block that a block's pointer is in.
    fn indirect(lbn: i64) -> Option<i64> {
        (lbn >= DIRECT_BLOCKS).then(|| -1 - (lbn - DIRECT_BLOCKS) / POINTERS_PER_BLOCK)
    }

    fn give_block(&mut self, ino: Ino, lbn: i64) -> Result<u64, Errno> {
        let inode = self.inode(ino)?;
        let goal = match inode.blocks.range(..lbn).next_back() {
            Some((_, before)) => before + 1,
            None => self.first_block + u64::from(ino.0) * 7919 % (self.blocks - self.first_block).max(1),
        };
        let block = self.allocate_block(goal).ok_or(Errno::ENOSPC)?;
        let bytes = u64::from(self.block_bytes);
        let inode = self.inode_mut(ino)?;
        inode.blocks.insert(lbn, block);
        inode.attributes.allocated_bytes += bytes;
        Ok(block)
    }

    /// The block, allocated if it is missing; says whether it was there.
    fn block_for_writing(&mut self, cx: &mut Cx, ino: Ino, lbn: i64) -> Result<(u64, bool), Errno> {
        if let Some(&block) = self.inode(ino)?.blocks.get(&lbn) {
            return Ok((block, true));
        }
        cx.cpu(cx.costs().allocate_ns);
        if let Some(indirect) = Self::indirect(lbn) {
            let there = self.inode(ino)?.blocks.get(&indirect).copied();
            let new = there.is_none();
            let block = match there {
                Some(block) => block,
                None => self.give_block(ino, indirect)?,
            };
            let block = Block::metadata(ino, Lbn(indirect), self.pbn(block), self.block_bytes);
            if new { cx.make(&block) } else { cx.change(&block) }
        }
        self.give_block(ino, lbn).map(|block| (block, false))
    }

    /// Frees a file's blocks from a number on.
    fn free_blocks_from(&mut self, cx: &mut Cx, ino: Ino, from: i64) -> Result<(), Errno> {
        cx.forget_from(ino, Lbn(from));
        let keep_indirect = Self::indirect(from - 1).unwrap_or(0);
        let inode = self.inode_mut(ino)?;
        let mut freed = inode.blocks.split_off(&from.max(0));
        let useless: Vec<i64> = inode.blocks.range(..keep_indirect).map(|(lbn, _)| *lbn).collect();
        for lbn in useless {
            if let Some(block) = inode.blocks.remove(&lbn) {
                cx.forget(BlockId { ino, lbn: Lbn(lbn) });
                freed.insert(lbn, block);
            }
        }
        for block in freed.into_values() {
            self.free_block(block);
            cx.cpu(cx.costs().allocate_ns);
            let bytes = u64::from(self.block_bytes);
            self.inode_mut(ino)?.attributes.allocated_bytes -= bytes;
        }
        Ok(())
    }

    fn entries_per_block(&self) -> usize {
        (self.block_bytes as usize / ENTRY_BYTES).max(1)
    }

    /// Reads (or changes) the block of a directory that a slot is in.
    fn directory_block(&mut self, cx: &mut Cx, dir: Ino, slot: usize, change: bool) -> Result<(), Errno> {
        let lbn = (slot / self.entries_per_block()) as i64;
        let known = self.inode(dir)?.blocks.get(&lbn).copied();
        match known {
            Some(at) => {
                let block = Block::metadata(dir, Lbn(lbn), self.pbn(at), self.block_bytes);
                cx.read(&block);
                if change {
                    cx.dirty(block.id);
                    self.stored(cx, block.id);
                }
            }
            None if change => {
                let at = self.give_block(dir, lbn)?;
                let block = Block::metadata(dir, Lbn(lbn), self.pbn(at), self.block_bytes);
                cx.make(&block);
                self.stored(cx, block.id);
                let bytes = u64::from(self.block_bytes);
                self.inode_mut(dir)?.attributes.size_bytes += bytes;
            }
            None => {}
        }
        Ok(())
    }

    fn enter(&mut self, cx: &mut Cx, dir: Ino, name: &[u8], ino: Ino) -> Result<(), Errno> {
        cx.cpu(cx.costs().name_ns);
        let directory = &self.inode(dir)?.entries;
        let slot = directory.free.first().copied().unwrap_or(directory.slots.len());
        self.directory_block(cx, dir, slot, true)?;
        let date_ns = cx.date_ns();
        let directory = self.inode_mut(dir)?;
        (directory.attributes.mtime_ns, directory.attributes.ctime_ns) = (date_ns, date_ns);
        let entries = &mut directory.entries;
        entries.free.remove(&slot);
        let entry = Some((Box::from(name), ino));
        if slot == entries.slots.len() {
            entries.slots.push(entry);
        } else {
            entries.slots[slot] = entry;
        }
        entries.by_name.insert(Box::from(name), slot);
        self.update(cx, dir);
        Ok(())
    }

    fn leave(&mut self, cx: &mut Cx, dir: Ino, name: &[u8]) -> Result<(), Errno> {
        cx.cpu(cx.costs().name_ns);
        let slot = *self.inode(dir)?.entries.by_name.get(name).ok_or(Errno::ENOENT)?;
        self.directory_block(cx, dir, slot, true)?;
        let date_ns = cx.date_ns();
        let directory = self.inode_mut(dir)?;
        (directory.attributes.mtime_ns, directory.attributes.ctime_ns) = (date_ns, date_ns);
        directory.entries.by_name.remove(name);
        directory.entries.slots[slot] = None;
        directory.entries.free.insert(slot);
        self.update(cx, dir);
        Ok(())
    }

    fn add_links(&mut self, cx: &mut Cx, ino: Ino, change: i32) -> Result<(), Errno> {
        let date_ns = cx.date_ns();
        let attributes = &mut self.inode_mut(ino)?.attributes;
        attributes.nlink = attributes.nlink.saturating_add_signed(change);
        attributes.ctime_ns = date_ns;
        self.update(cx, ino);
        Ok(())
    }

    fn is_directory(&self, ino: Ino) -> bool {
        self.inodes.get(&ino).is_some_and(|inode| inode.attributes.kind == FileKind::Directory)
    }

    fn must_be_empty(&self, dir: Ino) -> Result<(), Errno> {
        if self.inode(dir)?.entries.by_name.is_empty() { Ok(()) } else { Err(Errno::ENOTEMPTY) }
    }

    fn room_for(&self, blocks: u64) -> Result<(), Errno> {
        if self.free_blocks >= blocks { Ok(()) } else { Err(Errno::ENOSPC) }
    }
}

const ROOT: Ino = Ino(2);

impl Encode for MemVolume {
    fn encode(&self, id: BlockId, pbn: Pbn, out: &mut [u8]) {
        // No format: enough to tell blocks apart in a test.
        let text = format!("{} {} {}", id.ino.0, id.lbn.0, pbn.0);
        let len = text.len().min(out.len());
        out[..len].copy_from_slice(&text.as_bytes()[..len]);
    }

    fn gathers_late(&self) -> bool {
        self.gathers_late
    }
}

impl Volume for MemVolume {
    fn root(&self) -> Ino {
        ROOT
    }

    fn block_bytes(&self) -> u32 {
        self.block_bytes
    }

    fn file_max_bytes(&self) -> u64 {
        1 << 43
    }

    fn type_name(&self) -> &str {
        "memory"
    }

    fn options(&self) -> String {
        match self.metadata {
            Metadata::Delayed => "delayed".into(),
            Metadata::Synchronous => "synchronous".into(),
        }
    }

    fn mount(&mut self, cx: &mut Cx) -> Result<(), Errno> {
        cx.read(&Block::device(Pbn(0), self.block_bytes));
        Ok(())
    }

    fn unmount(&mut self, cx: &mut Cx) -> Result<(), Errno> {
        self.sync(cx, Durability::All)
    }

    fn attributes(&self, ino: Ino) -> Result<Attributes, Errno> {
        self.inode(ino).map(|inode| inode.attributes)
    }

    fn load(&mut self, cx: &mut Cx, ino: Ino) -> Result<(), Errno> {
        self.inode(ino)?;
        cx.read(&self.inode_block(ino));
        Ok(())
    }

    fn set_attributes(&mut self, cx: &mut Cx, ino: Ino, set: &SetAttributes) -> Result<(), Errno> {
        let date_ns = cx.date_ns();
        let attributes = &mut self.inode_mut(ino)?.attributes;
        attributes.mode = set.mode.unwrap_or(attributes.mode);
        attributes.uid = set.uid.unwrap_or(attributes.uid);
        attributes.gid = set.gid.unwrap_or(attributes.gid);
        attributes.atime_ns = set.atime_ns.unwrap_or(attributes.atime_ns);
        attributes.mtime_ns = set.mtime_ns.unwrap_or(attributes.mtime_ns);
        attributes.ctime_ns = date_ns;
        self.update(cx, ino);
        Ok(())
    }

    fn lookup(&mut self, cx: &mut Cx, dir: Ino, name: &[u8]) -> Result<Option<Ino>, Errno> {
        let directory = &self.inode(dir)?.entries;
        let found = directory.by_name.get(name).copied();
        let last = found.unwrap_or(directory.slots.len().saturating_sub(1));
        let per_block = self.entries_per_block();
        for first in (0..=last).step_by(per_block) {
            self.directory_block(cx, dir, first, false)?;
        }
        cx.cpu(cx.costs().entry_ns * (last as u64 + 1));
        Ok(found.and_then(|slot| self.inodes.get(&dir)?.entries.slots.get(slot)?.as_ref().map(|(_, ino)| *ino)))
    }

    fn parent(&mut self, _cx: &mut Cx, dir: Ino) -> Result<Ino, Errno> {
        self.inode(dir).map(|inode| inode.parent)
    }

    fn create(&mut self, cx: &mut Cx, dir: Ino, name: &[u8], new: &NewNode<'_>) -> Result<Ino, Errno> {
        self.room_for(1)?;
        cx.cpu(cx.costs().inode_ns);
        let number = match self.free_inodes.pop() {
            Some(number) => number,
            None if self.next_inode < self.max_inodes => {
                self.next_inode += 1;
                self.next_inode - 1
            }
            None => return Err(Errno::ENOSPC),
        };
        let ino = Ino(number);
        let mut inode = self.new_inode(new.kind, new.mode, cx.date_ns(), dir);
        let directory = new.kind == FileKind::Directory;
        inode.attributes.nlink = if directory { 2 } else { 1 };
        inode.target = new.target.to_vec();
        inode.attributes.size_bytes = new.target.len() as u64;
        self.inodes.insert(ino, inode);
        self.update(cx, ino);
        if directory {
            self.add_links(cx, dir, 1)?;
        }
        self.enter(cx, dir, name, ino)?;
        Ok(ino)
    }

    fn link(&mut self, cx: &mut Cx, ino: Ino, dir: Ino, name: &[u8]) -> Result<(), Errno> {
        self.room_for(1)?;
        self.add_links(cx, ino, 1)?;
        self.enter(cx, dir, name, ino)
    }

    fn unlink(&mut self, cx: &mut Cx, dir: Ino, name: &[u8], ino: Ino) -> Result<(), Errno> {
        self.leave(cx, dir, name)?;
        self.add_links(cx, ino, -1)
    }

    fn rmdir(&mut self, cx: &mut Cx, dir: Ino, name: &[u8], ino: Ino) -> Result<(), Errno> {
        self.must_be_empty(ino)?;
        self.leave(cx, dir, name)?;
        self.add_links(cx, dir, -1)?;
        self.add_links(cx, ino, -2)
    }

    fn rename(&mut self, cx: &mut Cx, rename: &Rename<'_>) -> Result<(), Errno> {
        let Rename { from_dir, from_name, ino, to_dir, to_name, replaced } = *rename;
        let directory = self.is_directory(ino);
        match replaced {
            None => self.room_for(1)?,
            Some(old) if self.is_directory(old) => {
                self.must_be_empty(old)?;
                self.leave(cx, to_dir, to_name)?;
                self.add_links(cx, to_dir, -1)?;
                self.add_links(cx, old, -2)?;
            }
            Some(old) => {
                self.leave(cx, to_dir, to_name)?;
                self.add_links(cx, old, -1)?;
            }
        }
        self.enter(cx, to_dir, to_name, ino)?;
        self.leave(cx, from_dir, from_name)?;
        let date_ns = cx.date_ns();
        self.inode_mut(ino)?.attributes.ctime_ns = date_ns;
        if directory && from_dir != to_dir {
            self.inode_mut(ino)?.parent = to_dir;
            self.add_links(cx, from_dir, -1)?;
            self.add_links(cx, to_dir, 1)?;
        }
        self.update(cx, ino);
        Ok(())
    }

    fn release(&mut self, cx: &mut Cx, ino: Ino) {
        cx.cpu(cx.costs().inode_ns);
        if self.free_blocks_from(cx, ino, 0).is_ok() {
            cx.forget_file(ino);
            self.update(cx, ino);
            self.inodes.remove(&ino);
            self.free_inodes.push(ino.0);
        }
    }

    fn readlink(&mut self, _cx: &mut Cx, ino: Ino) -> Result<Vec<u8>, Errno> {
        self.inode(ino).map(|inode| inode.target.clone())
    }

    fn readdir(
        &mut self,
        cx: &mut Cx,
        dir: Ino,
        cookie: u64,
        sink: &mut dyn FnMut(Entry<'_>) -> bool,
    ) -> Result<(), Errno> {
        let parent = self.inode(dir)?.parent;
        for (at, (name, ino)) in (0..).zip([(&b"."[..], dir), (&b".."[..], parent)]) {
            if cookie <= at && !sink(Entry { name, ino, kind: FileKind::Directory, cookie: at + 1 }) {
                return Ok(());
            }
        }
        let mut slot = usize::try_from(cookie.saturating_sub(2)).map_err(|_| Errno::EINVAL)?;
        while slot < self.inode(dir)?.entries.slots.len() {
            self.directory_block(cx, dir, slot, false)?;
            let end = (slot / self.entries_per_block() + 1) * self.entries_per_block();
            let slots = &self.inode(dir)?.entries.slots;
            for (at, entry) in slots.iter().enumerate().take(end).skip(slot) {
                let Some((name, ino)) = entry else { continue };
                let kind = self.inode(*ino)?.attributes.kind;
                if !sink(Entry { name, ino: *ino, kind, cookie: at as u64 + 3 }) {
                    return Ok(());
                }
            }
            slot = end;
        }
        Ok(())
    }

    fn map(&mut self, cx: &mut Cx, ino: Ino, lbn: Lbn, ahead: u32) -> Result<Option<Mapped>, Errno> {
        if let Some(indirect) = Self::indirect(lbn.0)
            && let Some(&block) = self.inode(ino)?.blocks.get(&indirect)
        {
            cx.read(&Block::metadata(ino, Lbn(indirect), self.pbn(block), self.block_bytes));
        }
        let blocks = &self.inode(ino)?.blocks;
        let Some(&block) = blocks.get(&lbn.0) else { return Ok(None) };
        let following = blocks.range(lbn.0 + 1..).take(ahead as usize);
        let contiguous = following
            .zip(1..)
            .take_while(|((next, at), n): &((&i64, &u64), i64)| **next == lbn.0 + n && **at == block + n.unsigned_abs())
            .count();
        Ok(Some(Mapped { pbn: self.pbn(block), bytes: self.block_bytes, ahead: contiguous as u32 }))
    }

    fn write(&mut self, cx: &mut Cx, range: &WriteRange<'_>) -> Result<u64, Errno> {
        let WriteRange { ino, offset, len_bytes, data, sync } = *range;
        let size = u64::from(self.block_bytes);
        let mut done = 0;
        while done < len_bytes {
            let at = offset + done;
            let within = at % size;
            let piece = (size - within).min(len_bytes - done);
            let lbn = (at / size) as i64;
            let (block, was_there) = match self.block_for_writing(cx, ino, lbn) {
                Ok(found) => found,
                Err(error) if done == 0 => return Err(error),
                Err(_) => break,
            };
            let block = Block::data(ino, Lbn(lbn), self.pbn(block), self.block_bytes);
            if was_there && piece < size {
                cx.read(&block);
            } else {
                cx.take(&block);
            }
            let bytes = data.and_then(|data| data.get(done as usize..(done + piece) as usize));
            cx.fill(block.id, at, within as u32, piece as u32, bytes);
            done += piece;
            let date_ns = cx.date_ns();
            let attributes = &mut self.inode_mut(ino)?.attributes;
            attributes.size_bytes = attributes.size_bytes.max(at + piece);
            (attributes.mtime_ns, attributes.ctime_ns) = (date_ns, date_ns);
            let length = attributes.size_bytes;
            if sync.is_some() || within + piece < size {
                cx.dirty(block.id);
            } else {
                crate::cluster::write(self, cx, ino, Lbn(lbn), block.pbn, length);
            }
        }
        cx.change(&self.inode_block(ino));
        if let Some(how) = sync {
            self.fsync(cx, ino, how)?;
        }
        Ok(done)
    }

    fn truncate(&mut self, cx: &mut Cx, ino: Ino, size_bytes: u64) -> Result<(), Errno> {
        let size = u64::from(self.block_bytes);
        let (old, date_ns) = (self.inode(ino)?.attributes.size_bytes, cx.date_ns());
        if size_bytes < old {
            self.free_blocks_from(cx, ino, size_bytes.div_ceil(size) as i64)?;
            let (lbn, within) = ((size_bytes / size) as i64, size_bytes % size);
            if within > 0
                && let Some(&block) = self.inode(ino)?.blocks.get(&lbn)
            {
                // The rest of the last block reads as zeros if the file grows again.
                let block = Block::data(ino, Lbn(lbn), self.pbn(block), self.block_bytes);
                cx.change(&block);
                cx.zero(block.id, size_bytes, within as u32);
            }
        }
        let attributes = &mut self.inode_mut(ino)?.attributes;
        attributes.size_bytes = size_bytes;
        (attributes.mtime_ns, attributes.ctime_ns) = (date_ns, date_ns);
        self.update(cx, ino);
        Ok(())
    }

    fn punch_hole(&mut self, cx: &mut Cx, ino: Ino, offset: u64, len: u64) -> Result<(), Errno> {
        let size = u64::from(self.block_bytes);
        let (first, end) = (offset.div_ceil(size), offset.saturating_add(len) / size);
        let inside: Vec<i64> =
            self.inode(ino)?.blocks.range(first as i64..(end as i64).max(first as i64)).map(|(lbn, _)| *lbn).collect();
        for lbn in inside {
            cx.forget(BlockId { ino, lbn: Lbn(lbn) });
            if let Some(block) = self.inode_mut(ino)?.blocks.remove(&lbn) {
                self.free_block(block);
                self.inode_mut(ino)?.attributes.allocated_bytes -= size;
            }
        }
        self.update(cx, ino);
        Ok(())
    }

    fn fsync(&mut self, cx: &mut Cx, ino: Ino, how: Durability) -> Result<(), Errno> {
        cx.flush_file(self, ino, how);
        let block = self.inode_block(ino).id;
        if cx.cache().is_dirty(block) {
            cx.write(self, block, how != Durability::Started);
        }
        Ok(())
    }

    fn sync(&mut self, cx: &mut Cx, how: Durability) -> Result<(), Errno> {
        cx.flush_all(self, how);
        Ok(())
    }

    fn extents(&self, ino: Ino) -> Result<Vec<Extent>, Errno> {
        let size = u64::from(self.block_bytes);
        let mut extents: Vec<Extent> = Vec::new();
        for (&lbn, &block) in self.inode(ino)?.blocks.range(0..) {
            let (logical_bytes, physical_bytes) = (lbn as u64 * size, block * size);
            match extents.last_mut() {
                Some(last)
                    if last.logical_bytes + last.len_bytes == logical_bytes
                        && last.physical_bytes + last.len_bytes == physical_bytes =>
                {
                    last.len_bytes += size;
                }
                _ => extents.push(Extent {
                    logical_bytes,
                    physical_bytes,
                    len_bytes: size,
                    flags: ExtentFlags::default(),
                }),
            }
        }
        Ok(extents)
    }

    fn free_extents(&self) -> Vec<FreeExtent> {
        let size = u64::from(self.block_bytes);
        let free = self.free.iter().filter(|(_, len)| **len > 0);
        free.map(|(start, len)| FreeExtent { physical_bytes: start * size, len_bytes: len * size }).collect()
    }

    fn usage(&self) -> FsUsage {
        let size = u64::from(self.block_bytes);
        let free_inodes = u64::from(self.max_inodes - self.next_inode) + self.free_inodes.len() as u64;
        FsUsage {
            total_bytes: self.blocks * size,
            free_bytes: self.free_blocks * size,
            available_bytes: self.free_blocks * size,
            total_inodes: u64::from(self.max_inodes),
            free_inodes,
            block_bytes: self.block_bytes,
        }
    }
}
