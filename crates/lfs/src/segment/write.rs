//! The segment writer: gathers what is dirty into partial segments and writes them (`lfs_segment.c` of 4.4BSD).
//!
//! A plan is made first, with a place for each block; only then are bytes made and requests started. So everything that
//! is written together is written as it is at the end: indirect blocks and inodes with the new addresses of what they
//! point to, the usage table with what the plan itself has changed.

use super::log::{INODE_BYTES, NoCleanSegment};
use super::plan::{InodeSlot, Plan};
use crate::format::{FragAddr, IFILE_INO, NDADDR, SegNo, summary_flags};
use crate::planted::Bug;
use crate::policy::Order;
use crate::volume::{Body, INODE_LBN, Lfs, UNWRITTEN, pointers};
use kernel::{Block, BlockId, Contents, Cx, Ino, Lbn, LogPiece, LogWrite};
use posix::Errno;
use rustc_hash::FxHashSet;
use ufs::live::Files as _;

/// What is to be written.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Scope<'a> {
    /// Everything dirty.
    All,
    /// The same but for indirect blocks of files that no directory operation has changed, and their inodes.
    Data,
    /// The files that directory operations have changed which are not in the log yet.
    Operations,
    /// Some files, none of which a directory operation has changed.
    Files(&'a [Ino]),
    /// What the cleaner moves, with what else is dirty of its files. It has counted what the log needs for them.
    Moved,
}

impl From<NoCleanSegment> for Errno {
    fn from(_: NoCleanSegment) -> Errno {
        Errno::ENOSPC
    }
}

impl Lfs {
    /// Writes what is dirty, without a checkpoint. `ENOSPC` if the log cannot take it; then nothing has happened.
    pub(crate) fn flush(&mut self, cx: &mut Cx, scope: Scope<'_>, flags: u16) -> Result<(), Errno> {
        if !matches!(scope, Scope::Moved) && self.dirty_need_bytes(cx) > self.log.room_bytes() {
            return Err(Errno::ENOSPC);
        }
        let mut plan = self.new_plan(cx, flags);
        self.plan_scope(cx, &mut plan, scope)?;
        self.emit(cx, plan);
        Ok(())
    }

    /// The time that the log gets: never before its checkpoint, even if the clock was turned back, since NetBSD's
    /// roll-forward takes nothing older.
    pub(crate) fn log_time_s(&self, cx: &Cx) -> u64 {
        u64::try_from(cx.date_ns().div_euclid(1_000_000_000)).unwrap_or(0).max(self.sb.tstamp)
    }

    pub(crate) fn new_plan(&mut self, cx: &Cx, flags: u16) -> Plan {
        let dates = (self.log_time_s(cx), cx.date_ns());
        Plan::new(self.g, flags, dates, std::mem::take(&mut self.spare_partials))
    }

    pub(crate) fn plan_scope(&mut self, cx: &mut Cx, plan: &mut Plan, scope: Scope<'_>) -> Result<(), NoCleanSegment> {
        match scope {
            Scope::Files(files) => {
                for ino in files {
                    self.plan_file(cx, plan, *ino)?;
                }
            }
            Scope::Moved => {
                let dirty_files = self.dirty_files();
                for number in 0..self.cleaner.moving.files() {
                    let Some(ino) = self.cleaner.moving.file(number) else { break };
                    self.plan_file(cx, plan, ino)?;
                }
                if dirty_files == 0 {
                    return Ok(());
                }
            }
            Scope::All | Scope::Data => {
                plan.data_only = matches!(scope, Scope::Data);
                let dirty = std::mem::take(&mut self.dirty);
                for ino in &dirty {
                    if self.inodes.get(ino.0).is_some_and(|node| !node.own.dirop) {
                        self.plan_file(cx, plan, *ino)?;
                    }
                }
                self.dirty = dirty;
                plan.data_only = false;
                self.plan_operations(cx, plan)?;
            }
            Scope::Operations => self.plan_operations(cx, plan)?,
        }
        let inodes = &self.inodes;
        self.dirty.retain(|ino| inodes.get(ino.0).is_some_and(|node| node.own.dirty));
        Ok(())
    }

    /// Files of directory operations, in partial segments that count together or not at all.
    fn plan_operations(&mut self, cx: &mut Cx, plan: &mut Plan) -> Result<(), NoCleanSegment> {
        if self.operations == 0 && self.dead.is_empty() {
            return Ok(());
        }
        plan.set_flags(summary_flags::DIROP | summary_flags::CONT);
        let dirty = std::mem::take(&mut self.dirty);
        for ino in &dirty {
            if self.inodes.get(ino.0).is_some_and(|node| node.own.dirop) {
                self.plan_file(cx, plan, *ino)?;
            }
        }
        self.dirty = dirty;
        for dead in std::mem::take(&mut self.dead) {
            // If its number is in use again, that file's inode says so.
            if self.inodes.get(dead.inumber).is_none() {
                plan.inode(&mut self.log, InodeSlot::Dead(Box::new(dead)))?;
            }
        }
        plan.end_of_operations();
        self.operations = 0;
        plan.set_flags(0);
        Ok(())
    }

    /// A file: its dirty blocks in their order, the indirect blocks that point to them, its inode.
    fn plan_file(&mut self, cx: &mut Cx, plan: &mut Plan, ino: Ino) -> Result<(), NoCleanSegment> {
        if !self.inodes.get(ino.0).is_some_and(|node| node.own.dirty || node.own.moving != 0) {
            return Ok(());
        }
        if self.plan_blocks(cx, plan, ino, None)? {
            self.changed(cx, ino);
            return Ok(());
        }
        self.plan_inode(cx, plan, ino)
    }

    /// The dirty blocks of a file and those that the cleaner moves, and the indirect blocks above them. If the cleaner
    /// moves blocks that indirect blocks lead to, it writes nothing else of the file: what has changed for that is left
    /// to the next write, as by `lfs_markv`. Without an inode behind them the blocks do not count for roll-forward, and
    /// what leads to the old ones stays until a checkpoint. So it is where only data is planned. Says whether anything
    /// is left.
    ///
    /// What is `planned` already is passed over; what is not, is from now on.
    pub(crate) fn plan_blocks(
        &mut self,
        cx: &mut Cx,
        plan: &mut Plan,
        ino: Ino,
        mut planned: Option<&mut FxHashSet<i64>>,
    ) -> Result<bool, NoCleanSegment> {
        let Some(node) = self.inodes.get(ino.0) else { return Ok(false) };
        let (version, size, moving) = (node.d.generation, node.d.size, node.own.moving);
        let contents = match node.body {
            Body::File => Contents::Data,
            Body::Directory(_) | Body::Symlink(_) | Body::System => Contents::Metadata,
        };
        let n = u64::from(self.g.nindir);
        let (mut data, mut indirect) = std::mem::take(&mut self.scratch);
        let direct = 0..NDADDR as i64;
        let left = plan.cleans() && self.cleaner.moving.blocks(moving).any(|(number, _)| !direct.contains(&number));
        for id in cx.cache().dirty_blocks(ino).filter(|id| !left && id.lbn != INODE_LBN) {
            match id.lbn.0 {
                lbn if lbn >= 0 => data.push((lbn, None)),
                number => indirect.push(number),
            }
        }
        for (number, from) in self.cleaner.moving.blocks(moving) {
            if number >= 0 {
                data.push((number, from));
                continue;
            }
            indirect.push(number);
            // What is above it gets its new address.
            let first = pointers::of_number(number, n).map(|(first, _)| first);
            if let Some(way) = first.and_then(|first| pointers::way(first, n)) {
                indirect.extend(way.numbers.iter().take(way.slot + 1).take_while(|above| **above != number));
            }
        }
        data.sort_unstable_by_key(|(lbn, _)| *lbn);
        if let Some(planned) = planned.as_deref_mut() {
            data.retain(|(lbn, _)| planned.insert(*lbn));
        }
        let mut result = Ok(());
        for (lbn, from) in data.iter().copied() {
            let bytes = self.g.block_bytes(size, lbn as u64);
            let id = BlockId { ino, lbn: Lbn(lbn) };
            let piece = match from {
                None => LogPiece::Cached(id),
                Some(from) => LogPiece::Passing(Block { id, pbn: self.pbn(from), bytes, contents }),
            };
            match plan.block(&mut self.log, (id, version), bytes, piece) {
                Ok(addr) => {
                    self.moved(ino, lbn as u64, addr, bytes, &mut indirect);
                }
                Err(error) => result = Err(error),
            }
        }
        data.clear();
        indirect.sort_unstable_by_key(|number| pointers::of_number(*number, n).map(|(first, level)| (level, first)));
        indirect.dedup();
        let left = left || plan.data_only && !indirect.is_empty();
        if let Some(planned) = planned {
            indirect.retain(|number| planned.insert(*number));
        }
        for number in &indirect {
            if left {
                cx.change(&self.indirect_block(ino, *number, self.indirect_addr(ino, *number)));
            } else {
                result = result.and_then(|()| self.plan_indirect(cx, plan, ino, version, *number));
            }
        }
        indirect.clear();
        self.scratch = (data, indirect);
        result.map(|()| left)
    }

    /// A block of data has a new place.
    pub(crate) fn moved(&mut self, ino: Ino, lbn: u64, addr: FragAddr, bytes: u32, above: &mut Vec<i64>) {
        let frags = bytes >> self.g.fshift;
        let n = u64::from(self.g.nindir);
        let node = self.inodes.get_mut(ino.0).expect("what has moved is of a file");
        let old = match pointers::way(lbn, n) {
            None => {
                let slot = lbn.min(NDADDR as u64 - 1) as usize;
                let old_frags = std::mem::replace(&mut node.own.frags[slot], frags as u8);
                let old = std::mem::replace(&mut node.d.db[slot], addr.0.into());
                (old, u32::from(old_frags) << self.g.fshift)
            }
            Some(way) => {
                for number in way.numbers.iter().take(way.slot + 1) {
                    if above.last() != Some(number) && above.iter().rev().take(4).all(|known| known != number) {
                        above.push(*number);
                    }
                }
                let leaf = node.indirects.as_mut().and_then(|indirects| indirects.leaves.get_mut(&way.leaf));
                let place = leaf.and_then(|leaf| leaf.pointers.get_mut(way.index));
                (place.map_or(0, |place| std::mem::replace(place, addr.0.into())), self.g.bsize)
            }
        };
        self.left(old.0, old.1);
        self.usage_of_changed(self.log.current);
    }

    /// What was at a place is of no use any more.
    pub(crate) fn left(&mut self, pointer: i64, bytes: u32) {
        if pointer > 0
            && let Some(segment) = self.log.note_freed(FragAddr(pointer as u32), bytes)
        {
            self.usage_of_changed(segment);
        }
    }

    /// The usage of a segment has changed.
    #[inline]
    pub(crate) fn usage_of_changed(&mut self, segment: SegNo) {
        let (lbn, _) = self.g.usage_place(segment);
        self.ifile.touch(lbn);
    }

    fn plan_indirect(
        &mut self,
        cx: &mut Cx,
        plan: &mut Plan,
        ino: Ino,
        version: u32,
        number: i64,
    ) -> Result<(), NoCleanSegment> {
        let n = u64::from(self.g.nindir);
        let Some((first, level)) = pointers::of_number(number, n) else { return Ok(()) };
        let old = self.indirect_addr(ino, number);
        let block = self.indirect_block(ino, number, old);
        cx.read(&block);
        let addr = plan.block(&mut self.log, (block.id, version), self.g.bsize, LogPiece::Cached(block.id))?;
        if let Some(node) = self.inodes.get_mut(ino.0) {
            if let Some(indirects) = &mut node.indirects {
                match level {
                    0 => {
                        if let Some(leaf) = indirects.leaves.get_mut(&first) {
                            leaf.addr = addr.0.into();
                        }
                    }
                    _ => {
                        indirects.upper.insert(number, addr.0.into());
                    }
                }
            }
            if let Some(way) = pointers::way(first, n)
                && way.numbers.first() == Some(&number)
                && let Some(place) = node.d.ib.get_mut(way.slot)
            {
                *place = addr.0.into();
            }
        }
        self.left(old, self.g.bsize);
        self.usage_of_changed(self.log.current);
        Ok(())
    }

    /// A file's inode; it is clean then.
    pub(crate) fn plan_inode(&mut self, cx: &mut Cx, plan: &mut Plan, ino: Ino) -> Result<(), NoCleanSegment> {
        let addr = plan.inode(&mut self.log, InodeSlot::Live(ino.0))?;
        let Some(node) = self.inodes.get_mut(ino.0) else { return Ok(()) };
        let (old, was_dirty) = (node.own.daddr, node.own.dirty);
        (node.own.daddr, node.own.dirty, node.own.dirop, node.own.moving) = (addr, false, false, 0);
        debug_assert!(!node.d.db.contains(&UNWRITTEN) || !node.d.has_blocks(self.g.maxsymlinklen));
        self.left(old.0.into(), INODE_BYTES);
        self.usage_of_changed(self.log.current);
        if ino == IFILE_INO {
            return Ok(());
        }
        self.ifile.touch(self.g.map_place(ino).0);
        if was_dirty {
            cx.forget(BlockId { ino, lbn: INODE_LBN });
        }
        Ok(())
    }

    /// Starts the writes of a plan.
    pub(crate) fn emit(&mut self, cx: &mut Cx, plan: Plan) {
        let apart = self.options.order == Order::Barrier;
        let (mut started, mut heads) = (Vec::new(), Vec::new());
        let Plan { partials, mut spare, .. } = plan;
        for mut partial in partials {
            if let Some(io) = partial.after.take() {
                cx.wait_for(io);
            }
            self.counters.partial_segments += 1;
            self.counters.log_bytes += partial.bytes(&self.g);
            let pbn = self.pbn(partial.at);
            let pieces = std::mem::take(&mut partial.pieces);
            self.writing = Some(partial);
            let write = LogWrite { pbn, head_bytes: self.g.sumsize, pieces: &pieces, head_apart: apart };
            let requests = cx.write_log(self, &write);
            if let Some(mut partial) = self.writing.take() {
                partial.pieces = pieces;
                Plan::done(&mut spare, partial);
            }
            started.extend(requests.started);
            heads.extend(requests.head);
        }
        self.spare_partials = spare;
        if heads.is_empty() {
            return;
        }
        if !self.planted.has(Bug::SummaryFirst) {
            for io in started {
                cx.wait_for(io);
            }
            cx.flush_device(true);
        }
        for head in heads {
            cx.start(head, false);
        }
    }
}
