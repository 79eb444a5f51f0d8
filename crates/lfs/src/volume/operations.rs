//! What is LFS's own of [`Volume`]: writing, synchronising, mounting. The rest is [`ufs::live`]'s.

use super::Lfs;
use crate::format::{NDADDR, PF_CLEAN, ROOT_INO};
use crate::ifile_state::IFILE;
use crate::planted::Bug;
use crate::policy::CleanerPolicy;
use crate::segment::Scope;
use kernel::{
    Attributes, BlockId, Cx, Durability, Entry, Ino, Lbn, Mapped, NewNode, Rename, SetAttributes, Volume, WriteRange,
};
use posix::{Errno, Extent, FreeExtent, FsUsage};
use ufs::live::{Backing as _, Files as _, push_free, time_of, truncate};

/// How often a checkpoint is made where nothing else asks for one (`update`, every 30 seconds).
const CHECKPOINT_NS: u64 = 30_000_000_000;

impl Lfs {
    /// Writes one piece of a range, inside one block.
    fn write_piece(&mut self, cx: &mut Cx, range: &WriteRange<'_>, at: u64, len: u32, done: u64) -> Result<(), Errno> {
        let (ino, bsize) = (range.ino, self.g.bsize);
        let lbn = at >> self.g.bshift;
        let within = (at & u64::from(bsize - 1)) as u32;
        // The block and what is above it have to have room in the log.
        let above = if lbn < NDADDR as u64 { 0 } else { 3 };
        self.make_room(cx, u64::from(bsize) * (1 + above), self.reserve_bytes())?;
        let target = self.block_for_writing(cx, ino, lbn, within + len)?;
        let block = self.file_block(self.node(ino)?, ino, lbn, target.piece);
        debug_assert_eq!(block.bytes, target.piece.bytes);
        cx.take_for_writing(&block, lbn << self.g.bshift, len, target.fresh);
        let bytes = range.data.and_then(|data| data.get(done as usize..(done as usize + len as usize)));
        // Dirty first: a block on its way to the disk is waited for before it changes.
        cx.dirty(block.id);
        cx.fill(block.id, at, within, len, bytes);
        let now = time_of(cx.date_ns());
        let d = &mut self.node_mut(ino)?.d;
        d.size = d.size.max(at + u64::from(len));
        (d.mtime, d.ctime) = (now, now);
        self.changed(cx, ino);
        Ok(())
    }

    /// Has both superblocks say that the file system is in use, or that it is not; the checkpoint is the last one made.
    fn mark(&mut self, cx: &mut Cx, clean: bool) {
        let flags = &mut self.sb.f.pflags;
        *flags = if clean { *flags | PF_CLEAN } else { *flags & !PF_CLEAN };
        for _ in 0..2 {
            self.write_superblock(cx, Durability::All);
        }
    }
}

impl Volume for Lfs {
    ufs::volume_operations! {}

    fn root(&self) -> Ino {
        ROOT_INO
    }

    fn block_bytes(&self) -> u32 {
        self.g.bsize
    }

    fn file_max_bytes(&self) -> u64 {
        // Block numbers are 32 bits wide in a summary.
        self.g.max_file_bytes().min((i32::MAX as u64) << self.g.bshift)
    }

    fn type_name(&self) -> &str {
        "lfs"
    }

    fn options(&self) -> String {
        self.options.to_string()
    }

    fn mount(&mut self, cx: &mut Cx) -> Result<(), Errno> {
        cx.read(&self.superblock_block());
        for lbn in 0..u64::from(self.g.cleansz + self.g.segtabsz) {
            self.read_ifile(cx, lbn)?;
        }
        self.mounted = true;
        self.last_checkpoint_ns = cx.now_ns();
        // Roll-forward may have met inodes for which the inode map on the disk has no block.
        let blocks = u64::from(self.g.cleansz + self.g.segtabsz) + u64::from(self.map.len() / self.g.ifpb.max(1));
        while self.node(IFILE)?.d.size >> self.g.bshift < blocks {
            self.lengthen_ifile(cx)?;
        }
        // What was held open when the power failed has lost its last name.
        let orphans: Vec<u32> = self.inodes.iter().filter(|(_, node)| node.d.nlink <= 0).map(|(ino, _)| ino).collect();
        for ino in orphans {
            self.release(cx, Ino(ino));
        }
        if self.recovered {
            // Serial numbers that a crash may have left behind in the log do not come again. Within a segment they
            // follow one another.
            if self.needed_bytes(cx) + self.log.left_bytes() <= self.log.room_bytes() && self.log.advance().is_ok() {
                self.log.serial += 1 << 20;
            }
            self.ifile.touch(0);
            self.checkpoint(cx, Durability::All)?;
            self.write_superblock(cx, Durability::All);
            self.recovered = false;
        } else {
            self.mark(cx, false);
        }
        Ok(())
    }

    fn unmount(&mut self, cx: &mut Cx) -> Result<(), Errno> {
        self.order_free_inodes(cx);
        if self.checkpoint(cx, Durability::All).is_err() {
            self.clean_for_room(cx, true)?;
            self.checkpoint(cx, Durability::All)?;
        }
        // Each superblock may make segments clean, which the ifile is to know; but it may be too full for that.
        for _ in 0..2 {
            self.order_free_inodes(cx);
            let _ = self.checkpoint(cx, Durability::All);
        }
        self.mounted = false;
        self.mark(cx, true);
        Ok(())
    }

    fn load(&mut self, cx: &mut Cx, ino: Ino) -> Result<(), Errno> {
        self.node(ino)?;
        let (lbn, _) = self.g.map_place(ino);
        self.read_ifile(cx, lbn)?;
        if let Some(block) = self.inode_block(ino) {
            cx.read(&block);
        }
        Ok(())
    }

    fn accessed(&mut self, cx: &mut Cx, ino: Ino) {
        // The time of access is in the inode map, so that reading does not move the inode.
        if let Some(node) = self.inodes.get_mut(ino.0) {
            node.d.atime = time_of(cx.date_ns());
            self.ifile.touch(self.g.map_place(ino).0);
        }
    }

    fn write(&mut self, cx: &mut Cx, range: &WriteRange<'_>) -> Result<u64, Errno> {
        let done = truncate::write_by_blocks(self, cx, range, |fs, cx, at, len, done| {
            fs.write_piece(cx, range, at, len, done)
        })?;
        match range.sync {
            Some(how) => self.fsync(cx, range.ino, how)?,
            None => self.settle(cx),
        }
        Ok(done)
    }

    fn fsync(&mut self, cx: &mut Cx, ino: Ino, how: Durability) -> Result<(), Errno> {
        if how == Durability::Started {
            // A daemon: as good a time as any to write everything.
            let old = cx.now_ns().saturating_sub(self.last_checkpoint_ns) >= CHECKPOINT_NS;
            if old || ino == IFILE {
                return self.sync(cx, how);
            }
            if self.node(ino).is_ok_and(|node| node.own.dirty) {
                self.write_dirty(cx);
            }
            return Ok(());
        }
        if self.node(ino)?.own.dirty && !self.keep_room(cx) && self.options.cleaner == CleanerPolicy::Off {
            // Without a cleaner, what is left is for unmounting.
            return Err(Errno::ENOSPC);
        }
        let node = self.node(ino)?;
        let (dirty, dirop) = (node.own.dirty, node.own.dirop);
        if dirty {
            let one = [ino];
            let scope = if dirop { Scope::Operations } else { Scope::Files(&one) };
            if self.flush(cx, scope, 0).is_err() {
                self.clean_for_room(cx, true)?;
                self.flush(cx, scope, 0)?;
            }
        }
        if !self.planted.has(Bug::FsyncReturnsEarly) {
            self.settle_log(cx);
        }
        Ok(())
    }

    fn sync(&mut self, cx: &mut Cx, how: Durability) -> Result<(), Errno> {
        if !self.keep_room(cx) && self.options.cleaner == CleanerPolicy::Off {
            // Without a cleaner, what is left is for unmounting.
            return Err(Errno::ENOSPC);
        }
        if self.checkpoint(cx, how).is_err() {
            self.clean_for_room(cx, true)?;
            self.checkpoint(cx, how)?;
        }
        Ok(())
    }

    fn write_back(&mut self, cx: &mut Cx, blocks: &[BlockId]) {
        if blocks.iter().any(|id| id.ino == IFILE && cx.cache().is_dirty(*id)) {
            // Nobody can be told if the disk is full; the blocks stay dirty.
            let _ = self.sync(cx, Durability::Started);
        } else if blocks.iter().any(|id| cx.cache().is_dirty(*id)) {
            self.write_dirty(cx);
        }
    }

    fn wants_work(&self, cx: &Cx) -> bool {
        self.mounted && self.wants_cleaning(cx)
    }

    fn idle_work_after_ns(&self, cx: &Cx) -> Option<u64> {
        if self.mounted { self.idle_cleaning_after_ns(cx) } else { None }
    }

    fn work(&mut self, cx: &mut Cx, idle: bool) -> bool {
        // The daemon may wake up while the last writes of unmounting are on their way.
        self.mounted && self.clean_in_background(cx, idle)
    }

    fn free_extents(&self) -> Vec<FreeExtent> {
        let mut extents = Vec::new();
        for (from, to) in self.free_places() {
            let (physical_bytes, len_bytes) = (self.g.byte_of(from), u64::from(to.0 - from.0) << self.g.fshift);
            push_free(&mut extents, physical_bytes, len_bytes);
        }
        extents
    }

    fn usage(&self) -> FsUsage {
        let bytes = |frags: u64| frags << self.g.fshift;
        let free = bytes(self.free_frags());
        let new_inodes = self.free_frags() / u64::from(self.g.ib_frags()) * u64::from(self.g.inopb);
        FsUsage {
            total_bytes: bytes(self.capacity_frags()),
            free_bytes: free,
            available_bytes: free,
            total_inodes: u64::from(self.inodes.len()) + new_inodes,
            free_inodes: new_inodes,
            block_bytes: self.g.fsize,
        }
    }
}
