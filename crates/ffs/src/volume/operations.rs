//! What is FFS's own of [`Volume`]: writing, synchronising, mounting (`ffs_vnops.c`, `ffs_vfsops.c`). The rest is
//! [`ufs::live`]'s.

use super::Ffs;
use crate::format::{FragAddr, GroupNo};
use crate::integrity::mode;
use crate::log::Step;
use crate::log::format::SECTOR;
use kernel::program::IoId;
use kernel::{
    Attributes, Block, BlockId, CheckEnd, Correction, Cx, Durability, Entry, Ino, Lbn, Mapped, NewNode, Pbn, Rename,
    SetAttributes, Volume, WriteRange,
};
use posix::{Errno, Extent, FreeExtent, FsUsage};
use std::collections::BTreeSet;
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
        debug_assert_eq!(block.bytes, target.piece.bytes);
        cx.take_for_writing(&block, lbn << self.g.bshift, len, target.fresh);
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
    pub(crate) fn write_superblock(&mut self, cx: &mut Cx, wait: bool) {
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

    /// What a replay has done already takes its time: the log is read, and what it had is written in its place.
    fn replay_in_time(&mut self, cx: &mut Cx) {
        let (Some(done), Some(log)) = (self.replayed.take(), self.log) else { return };
        cx.read_through(log.header, SECTOR);
        // The transactions that were read lie before where the next one goes, round the end of the ring.
        let sectors = done.log_sectors.min(log.sectors);
        let first = (log.at + log.sectors - (sectors - 1).min(log.at + log.sectors)) % log.sectors;
        let front = sectors.min(log.sectors - first);
        cx.read_through(Pbn(log.ring.0 + first), front * SECTOR);
        if front < sectors {
            cx.read_through(log.ring, (sectors - front) * SECTOR);
        }
        // Each block once: they are kept meanwhile.
        let bsize = u64::from(self.g.bsize);
        let blocks = done.reads.iter().flat_map(|(at, len)| at / bsize..(at + len).div_ceil(bsize));
        for block in blocks.collect::<BTreeSet<u64>>() {
            cx.read_through(Pbn(block * bsize / SECTOR), bsize);
        }
        if done.counted {
            for group in 0..self.g.ncg {
                cx.read(&Ffs::group_block(&self.g, GroupNo(group)));
            }
        }
        for step in &done.steps {
            match step {
                Step::Write { at_byte, bytes } => {
                    let made = cx.wants_metadata().then_some(bytes.as_slice());
                    cx.write_through(Pbn(at_byte / SECTOR), bytes.len() as u64, made);
                }
                Step::Flush => {
                    cx.wait_for_writes();
                    cx.flush_device(true);
                }
            }
        }
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
        if self.options.integrity.has_log() && self.log.is_none() {
            return Err(Errno::EINVAL);
        }
        self.replay_in_time(cx);
        cx.read(&self.superblock_block());
        let summaries = u64::from(self.g.cssize).next_multiple_of(self.g.fsize.into()) as u32;
        cx.read(&Block::device(self.pbn(self.g.csaddr), summaries.min(self.g.bsize)));
        self.mounted = true;
        if self.sb.wide() {
            self.sb.mtime = cx.date_ns().div_euclid(1_000_000_000);
        }
        mode!(self.mounting(cx));
        self.write_superblock(cx, true);
        mode!(self.mounted(cx));
        self.settle_crash(cx)
    }

    fn unmount(&mut self, cx: &mut Cx) -> Result<(), Errno> {
        self.sync(cx, Durability::All)?;
        if self.journal.is_some() {
            // Summaries and totals before the mark: nobody counts them again then.
            cx.flush_device(true);
        }
        self.mounted = false;
        self.write_superblock(cx, true);
        mode!(self.unmounted(cx));
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
            mode!(self.begins(cx));
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
        let ino = range.ino;
        self.may_write(ino)?;
        mode!(self.begins(cx));
        let done = truncate::write_by_blocks(self, cx, range, |fs, cx, at, len, done| {
            if done > 0 {
                mode!(fs.goes_on(cx, ino));
            }
            fs.write_piece(cx, range, at, len, done)
        })?;
        self.update(cx, ino);
        if let Some(how) = range.sync {
            self.fsync(cx, ino, how)?;
        }
        Ok(done)
    }

    fn reallocate(&mut self, cx: &mut Cx, ino: Ino, first: Lbn, blocks: u32) -> bool {
        self.reallocate_cluster(cx, ino, first, blocks)
    }

    fn snapshot(&mut self, cx: &mut Cx, dir: Ino, name: &[u8]) -> Result<Ino, Errno> {
        self.take_snapshot(cx, dir, name)
    }

    fn give_back(&mut self, cx: &mut Cx, correction: &Correction) -> Result<Vec<Ino>, Errno> {
        self.take_back(cx, correction)
    }

    fn snapshot_to_check(&mut self, cx: &mut Cx) -> Result<Ino, Errno> {
        self.take_snapshot_to_check(cx)
    }

    fn checked(&mut self, cx: &mut Cx, end: CheckEnd) -> Result<(), Errno> {
        self.end_of_check(cx, end)
    }

    fn fsync(&mut self, cx: &mut Cx, ino: Ino, how: Durability) -> Result<(), Errno> {
        mode!(self.fsync(cx, ino, how))
    }

    fn sync(&mut self, cx: &mut Cx, how: Durability) -> Result<(), Errno> {
        self.settle_pending(cx);
        mode!(self.sync(cx, how));
        if how != Durability::Started {
            self.write_snapshot_inode(cx);
        }
        if self.modified {
            self.write_superblock(cx, how != Durability::Started);
        }
        Ok(())
    }

    fn write_back(&mut self, cx: &mut Cx, blocks: &[BlockId]) {
        mode!(self.write_back(cx, blocks));
    }

    fn wants_work(&self, cx: &Cx) -> bool {
        mode!(self.wants_work(cx))
    }

    fn idle_work_after_ns(&self, _cx: &Cx) -> Option<u64> {
        mode!(self.idle_work_after_ns())
    }

    fn work(&mut self, cx: &mut Cx, idle: bool) -> bool {
        mode!(self.work(cx, idle))
    }

    fn arrived(&mut self, cx: &mut Cx, io: IoId) {
        mode!(self.arrived(cx, io));
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
        let free = self.space.free_frags() + self.frags_kept();
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
