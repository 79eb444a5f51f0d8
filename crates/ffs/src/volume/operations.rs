//! What is FFS's own of [`Volume`]: writing, synchronising, mounting (`ffs_vnops.c`, `ffs_vfsops.c`). The rest is
//! [`ufs::live`]'s.

use super::Ffs;
use crate::format::{FragAddr, GroupNo};
use crate::integrity::{About, mode};
use kernel::program::IoId;
use kernel::{
    Attributes, Block, BlockId, Cx, Durability, Entry, Ino, Lbn, Mapped, NewNode, Rename, SetAttributes, Volume,
    WriteRange,
};
use posix::{Errno, Extent, FreeExtent, FsUsage};
use ufs::live::{Backing as _, Files as _, push_free, time_of, truncate};

impl Ffs {
    /// Writes one piece of a range, inside one block.
    fn write_piece(&mut self, cx: &mut Cx, range: &WriteRange<'_>, at: u64, len: u32, done: u64) -> Result<(), Errno> {
        let (ino, bsize) = (range.ino, self.g.bsize);
        let lbn = at >> self.g.bshift;
        let within = (at & u64::from(bsize - 1)) as u32;
        let target = self.block_for_writing(cx, ino, lbn, within + len)?;
        let now = time_of(cx.date_ns());
        let node = self.node_mut(ino)?;
        node.d.size = node.d.size.max(at + u64::from(len));
        (node.d.mtime, node.d.ctime) = (now, now);
        let size = node.d.size;
        let block = self.file_block(self.node(ino)?, ino, lbn, target.piece);
        if target.fresh {
            cx.take(&block);
            if len < target.piece.bytes {
                cx.zero(block.id, lbn << self.g.bshift, 0);
            }
        } else if len < target.piece.bytes {
            cx.read(&block);
        } else {
            cx.take(&block);
        }
        let bytes = range.data.and_then(|data| data.get(done as usize..(done as usize + len as usize)));
        cx.fill(block.id, at, within, len, bytes);
        if range.sync.is_some() || within + len < bsize {
            cx.dirty(block.id);
        } else {
            kernel::cluster::write(self, cx, ino, Lbn(lbn as i64), block.pbn, size);
        }
        Ok(())
    }

    /// Writes a file's dirty blocks, then its inode.
    pub(crate) fn write_file(&mut self, cx: &mut Cx, ino: Ino, how: Durability) -> Result<(), Errno> {
        cx.flush_file(self, ino, how);
        if self.node(ino)?.own.pending {
            self.update(cx, ino);
        }
        let block = self.inode_block(ino).id;
        if cx.cache().is_dirty(block) {
            cx.write(self, block, how != Durability::Started);
        }
        Ok(())
    }

    /// The superblock and the summaries, written now.
    fn write_superblock(&mut self, cx: &mut Cx, wait: bool) {
        let g = self.g;
        self.sb.set_time(cx.date_ns().div_euclid(1_000_000_000));
        let summaries = u64::from(g.cssize);
        for at in (0..summaries).step_by(g.bsize as usize) {
            let bytes = (summaries - at).min(g.bsize.into()).next_multiple_of(g.fsize.into()) as u32;
            let block = Block::device(self.pbn(g.csaddr.plus(at >> g.fshift)), bytes);
            cx.make(&block);
            cx.write(self, block.id, wait);
        }
        let block = self.superblock_block();
        cx.make(&block);
        cx.write(self, block.id, wait);
        self.modified = false;
    }

    fn superblock_block(&self) -> Block {
        Block::device(kernel::Pbn(self.sb_at / 512), (self.sb.sb_bytes() as u32).next_multiple_of(512))
    }
}

impl Volume for Ffs {
    ufs::volume_operations! {}

    fn root(&self) -> Ino {
        crate::format::ROOT_INO
    }

    fn block_bytes(&self) -> u32 {
        self.g.bsize
    }

    fn file_max_bytes(&self) -> u64 {
        self.g.max_file_bytes()
    }

    fn type_name(&self) -> &str {
        "ffs"
    }

    fn options(&self) -> String {
        self.options.to_string()
    }

    fn mount(&mut self, cx: &mut Cx) -> Result<(), Errno> {
        cx.read(&self.superblock_block());
        let summaries = u64::from(self.g.cssize).next_multiple_of(self.g.fsize.into()) as u32;
        cx.read(&Block::device(self.pbn(self.g.csaddr), summaries.min(self.g.bsize)));
        self.mounted = true;
        if self.sb.wide() {
            self.sb.mtime = cx.date_ns().div_euclid(1_000_000_000);
        }
        self.write_superblock(cx, true);
        mode!(self.mounted(cx));
        Ok(())
    }

    fn unmount(&mut self, cx: &mut Cx) -> Result<(), Errno> {
        self.sync(cx, Durability::All)?;
        self.mounted = false;
        self.write_superblock(cx, true);
        Ok(())
    }

    fn load(&mut self, cx: &mut Cx, ino: Ino) -> Result<(), Errno> {
        self.node(ino)?;
        cx.read(&self.inode_block(ino));
        Ok(())
    }

    fn unload(&mut self, cx: &mut Cx, ino: Ino) {
        // Where nothing is pending, the inode, which nobody has used for long, need not be looked at.
        if !self.pending.is_empty() && self.inodes.get(ino.0).is_some_and(|node| node.own.pending) {
            self.update(cx, ino);
        }
    }

    fn accessed(&mut self, cx: &mut Cx, ino: Ino) {
        if let Some(node) = self.inodes.get_mut(ino.0) {
            node.d.atime = time_of(cx.date_ns());
            self.touch_later(ino);
        }
    }

    fn write(&mut self, cx: &mut Cx, range: &WriteRange<'_>) -> Result<u64, Errno> {
        let (ino, bsize) = (range.ino, u64::from(self.g.bsize));
        mode!(self.begins(cx));
        let size_before = self.node(ino)?.d.size;
        let mut done = 0;
        let mut failed = None;
        while done < range.len_bytes {
            let at = range.offset + done;
            let len = (bsize - at % bsize).min(range.len_bytes - done) as u32;
            if let Err(error) = self.write_piece(cx, range, at, len, done) {
                failed = Some(error);
                break;
            }
            done += u64::from(len);
        }
        if let Some(error) = failed {
            // The file may have been lengthened for a block that then was not to be had.
            let length = if done > 0 { size_before.max(range.offset + done) } else { size_before };
            if self.node(ino)?.d.size > length {
                truncate::shorten(self, cx, ino, length)?;
            }
            if done == 0 {
                return Err(error);
            }
        }
        self.update(cx, ino);
        if let Some(how) = range.sync {
            self.fsync(cx, ino, how)?;
        }
        Ok(done)
    }

    fn reallocate(&mut self, cx: &mut Cx, ino: Ino, first: Lbn, blocks: u32) -> bool {
        self.reallocate_cluster(cx, ino, first, blocks)
    }

    fn fsync(&mut self, cx: &mut Cx, ino: Ino, how: Durability) -> Result<(), Errno> {
        mode!(self.fsync(cx, ino, how))
    }

    fn sync(&mut self, cx: &mut Cx, how: Durability) -> Result<(), Errno> {
        self.settle_pending(cx);
        mode!(self.sync(cx, how));
        if self.modified {
            self.write_superblock(cx, how != Durability::Started);
        }
        Ok(())
    }

    fn write_back(&mut self, cx: &mut Cx, blocks: &[BlockId]) {
        mode!(self.about_to_write(cx, About::Blocks(blocks)));
        cx.write_in_place(self, blocks);
    }

    fn arrived(&mut self, cx: &mut Cx, io: IoId) {
        mode!(self.arrived(cx, io));
    }

    fn wants_work(&self, _cx: &Cx) -> bool {
        mode!(self.wants_work())
    }

    fn work(&mut self, cx: &mut Cx, _idle: bool) -> bool {
        mode!(self.work(cx))
    }

    fn free_extents(&self) -> Vec<FreeExtent> {
        let mut extents = Vec::new();
        for group in 0..self.g.ncg {
            let base = self.g.group_base(GroupNo(group));
            self.space.free_runs(GroupNo(group), &mut |from, frags| {
                let physical_bytes = self.g.byte_of(FragAddr(base.0 + u64::from(from)));
                push_free(&mut extents, physical_bytes, u64::from(frags) << self.g.fshift);
            });
        }
        extents
    }

    fn usage(&self) -> FsUsage {
        let bytes = |frags: i64| u64::try_from(frags).unwrap_or(0) << self.g.fshift;
        let free = self.space.free_frags();
        FsUsage {
            total_bytes: bytes(self.tuning.dsize),
            free_bytes: bytes(free),
            available_bytes: bytes(self.tuning.available(free)),
            total_inodes: u64::from(self.g.inodes()),
            free_inodes: u64::try_from(self.space.total.nifree).unwrap_or(0),
            block_bytes: self.g.fsize,
        }
    }

    fn shape(&self) -> posix::Shape {
        let groups = posix::GroupShape {
            first_bytes: 0,
            len_bytes: u64::from(self.g.fpg) << self.g.fshift,
            count: self.g.ncg.into(),
            inodes: self.g.ipg.into(),
        };
        posix::Shape { block_bytes: self.g.bsize, groups: Some(groups) }
    }
}
