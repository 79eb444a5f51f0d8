//! Checkpoints: everything written, then the ifile, then a superblock that says where they are.
//!
//! The first two superblocks are written in turn. A segment that has become empty is written again only when both know
//! it as empty: whichever of the two a mount starts from, nothing that it needs has been overwritten.

use crate::format::{FragAddr, LABEL_BYTES, PF_CLEAN, SB_BYTES, SegNo, Superblock};
use crate::ifile_state::IFILE;
use crate::planted::Bug;
use crate::policy::{Discard, Order};
use crate::segment::Scope;
use crate::segment::plan::Plan;
use crate::volume::Lfs;
use kernel::program::IoId;
use kernel::{Block, Cx, Durability, Ino, Pbn};
use posix::Errno;
use rustc_hash::FxHashSet;
use std::collections::BTreeSet;
use ufs::live::{Backing as _, Files as _, Piece};

impl Lfs {
    /// Writes everything dirty and makes a checkpoint of it. Nothing if nothing has changed. `ENOSPC` if the log cannot
    /// take it.
    pub(crate) fn checkpoint(&mut self, cx: &mut Cx, how: Durability) -> Result<(), Errno> {
        if self.dirty.is_empty() && self.dead.is_empty() && self.ifile.changed() == 0 {
            if how != Durability::Started {
                cx.wait_for_writes();
            }
            return Ok(());
        }
        if self.checkpoint_takes_bytes(cx) > self.log.room_bytes() {
            return Err(Errno::ENOSPC);
        }
        let mut plan = self.new_plan(cx, 0);
        self.plan_scope(cx, &mut plan, Scope::All)?;
        plan.set_flags(0);
        self.plan_ifile(cx, &mut plan)?;
        self.emit(cx, plan);
        self.log.ifile_written();
        self.note_checkpoint(cx);
        self.write_superblock(cx, how);
        self.counters.checkpoints += 1;
        Ok(())
    }

    /// Makes segments clean that have become empty: a checkpoint that both superblocks know.
    pub(crate) fn checkpoint_twice(&mut self, cx: &mut Cx) -> Result<(), Errno> {
        self.checkpoint(cx, Durability::Started)?;
        self.write_superblock(cx, Durability::Started);
        Ok(())
    }

    /// Puts the list of free inodes into ascending order, if there is room for the blocks of the ifile that change.
    pub(crate) fn order_free_inodes(&mut self, cx: &Cx) {
        let places = |ino: u32| self.g.map_place(Ino(ino)).0;
        let blocks: BTreeSet<u64> = self.map.out_of_order().into_iter().map(places).collect();
        // With what is above them, twice over: there may be a checkpoint that fails.
        let takes = blocks.len() as u64 * 2 * u64::from(self.g.bsize) + self.checkpoint_takes_bytes(cx);
        if blocks.is_empty() || takes > self.log.room_bytes() {
            return;
        }
        self.map.order();
        self.ifile.touch(0);
        blocks.into_iter().for_each(|lbn| self.ifile.touch(lbn));
    }

    /// Everything of the log is on the disk before what comes next.
    pub(crate) fn settle_log(&mut self, cx: &mut Cx) {
        cx.wait_for_writes();
        if self.options.order == Order::Barrier {
            cx.flush_device(true);
        }
    }

    /// The blocks of the ifile that have changed, those that planning them changes included, and its inode.
    fn plan_ifile(&mut self, cx: &mut Cx, plan: &mut Plan) -> Result<(), Errno> {
        self.ifile.touch(0);
        self.usage_of_changed(self.log.current);
        self.usage_of_changed(self.log.next);
        let ifile_at = self.inodes.get(IFILE.0).and_then(|node| self.g.segment_of(node.own.daddr));
        ifile_at.into_iter().for_each(|segment| self.usage_of_changed(segment));
        // Each block has one place in the plan; what changes in it afterwards is still in its bytes, which are made at
        // the end.
        let mut planned: FxHashSet<i64> = FxHashSet::default();
        self.plan_changed_blocks(cx, plan, &mut planned)?;
        self.plan_inode(cx, plan, IFILE)?;
        // The inode may have opened another segment; and a checkpoint says where the log goes on, which must be a place
        // with room.
        loop {
            if !self.g.partial_fits(self.log.offset) {
                self.log.advance()?;
                plan.set_flags(0);
                self.usage_of_changed(self.log.current);
            }
            if !self.plan_changed_blocks(cx, plan, &mut planned)? {
                break;
            }
        }
        self.ifile.clear();
        Ok(())
    }

    /// Those of them that are not in the plan yet, until there are no more. Says whether there were any.
    fn plan_changed_blocks(
        &mut self,
        cx: &mut Cx,
        plan: &mut Plan,
        planned: &mut FxHashSet<i64>,
    ) -> Result<bool, Errno> {
        let before = planned.len();
        loop {
            let more: Vec<u64> = self.ifile.numbers().filter(|lbn| !planned.contains(&(*lbn as i64))).collect();
            if more.is_empty() {
                return Ok(planned.len() > before);
            }
            for lbn in &more {
                self.change_ifile_block(cx, *lbn)?;
            }
            self.plan_blocks(cx, plan, IFILE, Some(planned))?;
        }
    }

    fn change_ifile_block(&mut self, cx: &mut Cx, lbn: u64) -> Result<(), Errno> {
        let addr = self.pointer(IFILE, lbn)?;
        let block = self.file_block(self.node(IFILE)?, IFILE, lbn, Piece { addr, bytes: self.g.bsize });
        cx.change(&block);
        self.indirects_changed(cx, IFILE, lbn);
        Ok(())
    }

    /// Fragments that are neither live nor of a summary, an inode block or the label.
    pub(crate) fn bfree(&self) -> i32 {
        let label = self.g.frags_of(LABEL_BYTES.into()).saturating_sub(self.sb.s0addr);
        signed(i64::from(self.sb.dsize) - i64::from(label) - (self.used_frags + self.log.meta_frags) as i64)
    }

    /// Fragments that can be written before segments must be cleaned, as NetBSD's tools count them: all of clean
    /// segments and what is left of the current one, less half of what is kept for the cleaner.
    pub(crate) fn avail(&self) -> i32 {
        let rest = i64::from(self.g.segment_end(self.log.current).0) - i64::from(self.log.offset.0);
        let held = i64::from(self.sb.minfreeseg - self.sb.minfreeseg / 2) * i64::from(self.g.fsbpseg);
        signed(self.log.clean_frags() as i64 + rest - held)
    }

    /// The superblock's fields as they are now.
    pub(crate) fn note_checkpoint(&mut self, cx: &Cx) {
        let base = |segment| self.g.segment_base(segment).0;
        let (bfree, avail) = (self.bfree(), self.avail());
        let tstamp = self.log_time_s(cx);
        let f = &mut self.sb.f;
        f.freehd = self.map.head();
        f.nfiles = self.inodes.len();
        f.idaddr = self.inodes.get(IFILE.0).map_or(0, |node| node.own.daddr.0);
        (f.lastseg, f.curseg, f.nextseg) = (base(self.log.last), base(self.log.current), base(self.log.next));
        (f.offset, f.lastpseg) = (self.log.offset.0, self.log.offset.0);
        f.nclean = self.log.clean + 1;
        f.dmeta = signed(self.log.meta_frags as i64);
        (f.bfree, f.avail) = (bfree, avail);
        f.serial = self.log.serial;
        f.tstamp = tstamp;
        f.pflags &= !PF_CLEAN;
        self.log.since_checkpoint = 0;
        self.last_checkpoint_ns = cx.now_ns();
    }

    /// Writes the superblock whose turn it is, after everything that is on its way, whoever has sent it.
    pub(crate) fn write_superblock(&mut self, cx: &mut Cx, how: Durability) {
        if !self.planted.has(Bug::SuperblockFirst) {
            self.settle_log(cx);
        }
        let block = self.superblock_block();
        cx.make(&block);
        cx.write(self, block.id, false);
        let mut io: Option<IoId> = cx.io_of(block.id);
        if let Some(io) = io
            && (how != Durability::Started || self.options.order == Order::Barrier)
        {
            cx.wait_for(io);
        }
        if self.options.order == Order::Barrier {
            io = Some(cx.flush_device(how != Durability::Started));
        }
        self.counters.superblocks += 1;
        self.turn = !self.turn;
        let cleaned = self.log.superblock_written(io);
        self.rest_if_enough_is_clean();
        for segment in &cleaned {
            self.usage_of_changed(*segment);
        }
        if self.options.discard == Discard::On && !cleaned.is_empty() {
            self.discard_segments(cx, &cleaned, io);
        }
    }

    /// Tells the disk that nothing is in some clean segments any more, once the superblock that lets them be written
    /// again is there.
    fn discard_segments(&mut self, cx: &mut Cx, cleaned: &[SegNo], superblock: Option<IoId>) {
        if let Some(io) = superblock.filter(|_| !self.planted.has(Bug::DiscardFirst)) {
            cx.wait_for(io);
        }
        for number in cleaned {
            let superblock = self.log.segments.get(number.0 as usize).is_some_and(|segment| segment.superblock);
            let (first, end) = (self.g.log_start(*number, superblock), self.g.segment_end(*number));
            cx.discard(self.pbn(first), u64::from(end.0.saturating_sub(first.0)) << self.g.fshift);
        }
    }

    /// The superblock to be written next: the first two in turn, or the first if there is no second.
    pub(crate) fn superblock_block(&self) -> Block {
        let second = self.sb.sboffs.get(1).copied().filter(|at| *at != 0 && self.turn);
        let first = self.sb.sboffs.first().copied().filter(|at| *at != 0);
        let at = second.or(first).map_or(Superblock::FIRST_AT, |at| self.g.byte_of(FragAddr(at)));
        Block::device(Pbn(at / Pbn::BYTES), SB_BYTES as u32)
    }
}

fn signed(frags: i64) -> i32 {
    i32::try_from(frags).unwrap_or(if frags < 0 { i32::MIN } else { i32::MAX })
}
