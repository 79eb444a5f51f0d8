//! Hole-plugging: when the disk is nearly full, live blocks go into the holes of other segments instead of to the end
//! of the log.
//!
//! Cleaning a segment of which a share u is live gains 1-u of a segment for 1+u read and written; near u = 1 that is
//! next to nothing. The other way (Wilkes, Golding, Staelin and Sullivan, TOCS 14(1), 1996; Matthews, Roselli,
//! Costello, Wang and Anderson, SOSP
//! 1997) empties one segment at the price of a random write for each of its live blocks.
//!
//! A hole is a block that a partial segment has and that no file has any more. What goes into it takes its place in the
//! partial segment too: the summary is written again with the new owner, so that everything that reads segments (a
//! cleaner, a check, other systems) finds the block. Roll-forward would not, as it only goes on from the end of the
//! log. Therefore:
//!
//! 1. A checkpoint that both superblocks know: what is a hole in memory now is one for any mount.
//! 2. Blocks are written into holes, then the summaries of their partial segments.
//! 3. A checkpoint that both superblocks know: files lead to the new places, and the old segment is clean.
//!
//! After a crash before the end of 3 the holes are holes again. All that is left of it is that the sum over the first
//! words of a partial segment with dead blocks may be wrong (`fsck` knows).

use super::Seen;
use crate::format::{Finfo, FragAddr, SegNo, SegmentSummary};
use crate::ifile_state::IFILE;
use crate::planted::Bug;
use crate::segment::{INODE, INODES, SUMMARY, SegmentState, Written};
use crate::volume::{Body, Lfs, pointers, with_overhead};
use kernel::{Block, BlockId, Contents, Cx, Durability, Ino, Lbn, LogPiece, LogWrite};
use posix::Errno;
use std::collections::{BTreeMap, VecDeque};
use ufs::live::{Backing as _, Files as _};

/// A block that moves.
#[derive(Clone, Copy, Debug)]
struct Moved {
    ino: u32,
    lbn: i32,
    from: FragAddr,
    bytes: u32,
}

/// A block of a partial segment.
#[derive(Clone, Copy, Debug)]
struct Slot {
    /// Its place in the segment's list.
    index: usize,
    addr: FragAddr,
    bytes: u32,
    lbn: i32,
    /// Whose it is, and in which version; `None` for a hole.
    owner: Option<(u32, u32)>,
    /// What goes into it.
    new: Option<Moved>,
    /// Whether an inode block lies in front of it.
    after_inodes: bool,
}

/// A partial segment of which holes are filled.
#[derive(Clone, Debug)]
struct Holed {
    segment: SegNo,
    at: FragAddr,
    slots: Vec<Slot>,
    inode_blocks: usize,
    /// Bytes of a full block.
    bsize: u32,
}

/// What is done in one go.
#[derive(Debug, Default)]
struct Plugging {
    victims: Vec<SegNo>,
    targets: Vec<SegNo>,
    partials: Vec<Holed>,
    /// Holes that nothing goes into yet, by their bytes: which partial segment, which block of it.
    holes: BTreeMap<u32, VecDeque<(usize, usize)>>,
}

/// So many segments are looked through for holes for one that is emptied: below a hundredth of holes nothing pays.
const TARGETS: usize = 128;

impl Holed {
    /// The FINFOs that describe the blocks as they will be. A hole counts to the file in front of it: whose it was does
    /// not matter, as no pointer leads there.
    fn finfos(&self) -> Vec<Finfo> {
        let mut finfos: Vec<Finfo> = Vec::new();
        let mut owner = self.slots.iter().find_map(|slot| slot.owner).unwrap_or_default();
        for slot in &self.slots {
            let same = slot.owner.is_none_or(|own| own == owner);
            owner = slot.owner.unwrap_or(owner);
            let lbn = if slot.owner.is_some() { slot.lbn } else { slot.lbn.max(0) };
            match finfos.last_mut() {
                Some(last) if same && !slot.after_inodes && last.lastlength >= self.bsize => {
                    last.lastlength = slot.bytes;
                    last.lbns.push(lbn);
                }
                _ => {
                    let (ino, version) = owner;
                    let ino = Ino(ino);
                    finfos.push(Finfo { version, ino, lastlength: slot.bytes, lbns: vec![lbn] });
                }
            }
        }
        finfos
    }

    /// Whether its summary has room for them.
    fn fits(&self, sumsize: u32) -> bool {
        let mut summary = SegmentSummary::new(Default::default());
        summary.finfos = self.finfos();
        summary.bytes() + 4 * self.inode_blocks <= sumsize as usize
    }
}

impl Plugging {
    /// A hole for a block; `None` if there is no other of its size.
    fn take_hole(&mut self, moved: Moved, version: u32, sumsize: u32) -> Option<(usize, usize)> {
        while let Some((partial, slot)) = self.holes.get_mut(&moved.bytes)?.pop_front() {
            let holed = self.partials.get_mut(partial)?;
            let place = holed.slots.get_mut(slot)?;
            let was = *place;
            (place.owner, place.lbn, place.new) = (Some((moved.ino, version)), moved.lbn, Some(moved));
            if holed.fits(sumsize) {
                return Some((partial, slot));
            }
            if let Some(place) = holed.slots.get_mut(slot) {
                *place = was;
            }
        }
        None
    }

    /// A hole is one again.
    fn give_back(&mut self, (partial, slot): (usize, usize)) {
        let place = self.partials.get_mut(partial).and_then(|holed| holed.slots.get_mut(slot));
        if let Some(place) = place {
            (place.owner, place.new) = (None, None);
        }
    }
}

impl Lfs {
    /// Whether segments as full as these are left alone, and holes plugged instead. In need, when as many as the log
    /// takes are cleaned together, only if that gains no more than the checkpoint behind it takes.
    pub(super) fn prefers_plugging(&self, victims: &[SegNo], need: bool) -> bool {
        if !self.plugs() {
            return false;
        }
        let live = |number: &SegNo| self.log.segments.get(number.0 as usize).map_or(0, |s| u64::from(s.live_bytes));
        let live: u64 = victims.iter().map(live).sum();
        let (all, usable) = (u64::from(self.g.ssize), self.log.usable_bytes());
        let victims = victims.len() as u64;
        let full = live * 100 >= victims * all * u64::from(self.options.plug_percent);
        let gained = (victims * usable).saturating_sub(live);
        if need { gained <= self.checkpoint_need_bytes(self.dirty_files() + victims * 64) } else { full }
    }

    /// Empties segments into the holes of others, and makes them clean. Says whether any has become clean, by this or
    /// by the checkpoint before it.
    pub(super) fn plug_holes(&mut self, cx: &mut Cx) -> Result<bool, Errno> {
        let clean = self.log.clean;
        if !self.planted.has(Bug::PlugWithoutCheckpoint) {
            self.checkpoint(cx, Durability::All)?;
            self.write_superblock(cx, Durability::All);
        }
        if self.log.clean > clean {
            return Ok(true);
        }
        let plugging = self.plan_plugging(cx);
        if plugging.victims.is_empty() {
            return Ok(false);
        }
        self.read_segments(cx, &plugging.victims);
        self.read_segments(cx, &plugging.targets);
        self.fill_holes(cx, &plugging);
        self.lead_to_holes(cx, &plugging);
        self.checkpoint_twice(cx)?;
        Ok(self.log.clean > clean)
    }

    /// The emptiest segments whose blocks all find holes, as many as memory has room for.
    fn plan_plugging(&self, cx: &Cx) -> Plugging {
        let mut dirty: Vec<(u32, SegNo)> = (0..)
            .map(SegNo)
            .zip(&self.log.segments)
            .filter(|(_, s)| {
                s.state == SegmentState::Dirty && s.live_bytes > 0 && !s.leaving && !self.empties_itself(s)
            })
            .map(|(number, segment)| (segment.live_bytes, number))
            .collect();
        dirty.sort_unstable();
        let most = ((self.options.memory_bytes / u64::from(self.g.ssize)) as usize).clamp(1, (dirty.len() / 8).max(1));
        let (victims, targets) = dirty.split_at(most.min(dirty.len()));
        let mut targets = targets.iter().map(|(_, number)| *number);
        let mut plugging = Plugging::default();
        let mut seen = Seen::default();
        let mut bytes = self.dirty_need_bytes(cx);
        for (_, victim) in victims {
            bytes += self.bytes_around(cx, *victim, &mut seen);
            let affordable =
                bytes + self.checkpoint_need_bytes(self.dirty_files() + seen.files) <= self.log.room_bytes();
            if !affordable || !self.place_in_holes(&mut plugging, &mut targets, *victim) {
                break;
            }
        }
        plugging
    }

    /// Finds a hole for each block of a segment; `false`, and nothing is changed, if there are too few.
    fn place_in_holes(
        &self,
        plugging: &mut Plugging,
        targets: &mut impl Iterator<Item = SegNo>,
        victim: SegNo,
    ) -> bool {
        let mut taken = Vec::new();
        let mut looked = 0;
        for moved in self.blocks_to_move(victim) {
            let Ok(version) = self.node(Ino(moved.ino)).map(|node| node.d.generation) else { continue };
            let hole = loop {
                if let Some(hole) = plugging.take_hole(moved, version, self.g.sumsize) {
                    break Some(hole);
                }
                let Some(target) = targets.next().filter(|_| looked < TARGETS) else { break None };
                looked += 1;
                self.find_holes(plugging, target);
            };
            let Some(hole) = hole else {
                taken.into_iter().for_each(|hole| plugging.give_back(hole));
                return false;
            };
            taken.push(hole);
        }
        plugging.victims.push(victim);
        true
    }

    /// What is live of a segment and can go into holes: blocks of files and directories, in their order. Inodes,
    /// indirect blocks and the ifile go with the checkpoint.
    fn blocks_to_move(&self, victim: SegNo) -> Vec<Moved> {
        let Some(segment) = self.log.segments.get(victim.0 as usize) else { return Vec::new() };
        let blocks = segment.written.iter().filter(|e| e.lbn >= 0 && e.ino != IFILE.0 && self.is_live(e));
        let mut blocks: Vec<Moved> = blocks
            .filter_map(|entry| {
                let bytes = self.bytes_of_block(Ino(entry.ino), entry.lbn as u64).ok()?;
                Some(Moved { ino: entry.ino, lbn: entry.lbn, from: entry.addr, bytes })
            })
            .collect();
        blocks.sort_unstable_by_key(|moved| (moved.ino, moved.lbn));
        blocks
    }

    /// The partial segments of a segment with their holes. None if only what is live in it is known, as of one that has
    /// been there when the file system was mounted.
    fn find_holes(&self, plugging: &mut Plugging, number: SegNo) {
        let Some(segment) = self.log.segments.get(number.0 as usize).filter(|segment| segment.tiled) else { return };
        let first = plugging.partials.len();
        let places = segment.written.iter().enumerate().filter(|(_, entry)| entry.lbn != INODE);
        let mut places = places.peekable();
        let mut after_inodes = false;
        while let Some((index, entry)) = places.next() {
            let end = places.peek().map_or(segment.end, |(_, next)| next.addr);
            match entry.lbn {
                SUMMARY => {
                    let (slots, bsize) = (Vec::new(), self.g.bsize);
                    plugging.partials.push(Holed { segment: number, at: entry.addr, slots, inode_blocks: 0, bsize });
                    continue;
                }
                INODES => after_inodes = true,
                _ => {}
            }
            let Some(partial) = plugging.partials.last_mut().filter(|partial| partial.segment == number) else { break };
            if entry.lbn == INODES {
                partial.inode_blocks += 1;
                continue;
            }
            let bytes = end.0.saturating_sub(entry.addr.0) << self.g.fshift;
            let node = self.inodes.get(entry.ino).filter(|_| self.is_live(entry));
            let owner = node.map(|node| (entry.ino, node.d.generation));
            partial.slots.push(Slot {
                index,
                addr: entry.addr,
                bytes,
                lbn: entry.lbn,
                owner,
                new: None,
                after_inodes: std::mem::take(&mut after_inodes),
            });
        }
        let mut any = false;
        for (number, partial) in (first..).zip(plugging.partials.get(first..).unwrap_or_default()) {
            for (at, slot) in partial.slots.iter().enumerate().filter(|(_, slot)| slot.owner.is_none()) {
                plugging.holes.entry(slot.bytes).or_default().push_back((number, at));
                any = true;
            }
        }
        if any {
            plugging.targets.push(number);
        }
    }

    /// Writes what goes into holes, and then the summaries that describe it.
    fn fill_holes(&mut self, cx: &mut Cx, plugging: &Plugging) {
        let filled = plugging.partials.iter().filter(|partial| partial.slots.iter().any(|slot| slot.new.is_some()));
        let filled: Vec<&Holed> = filled.collect();
        let mut pieces: Vec<LogPiece> = Vec::new();
        for partial in &filled {
            let mut slots = partial.slots.iter().peekable();
            while let Some(first) = slots.next() {
                let Some(moved) = first.new else { continue };
                pieces.push(self.piece(cx, &moved));
                let mut end = first.addr.plus(first.bytes >> self.g.fshift);
                while let Some(next) = slots.next_if(|slot| slot.addr == end && slot.new.is_some()) {
                    pieces.extend(next.new.map(|moved| self.piece(cx, &moved)));
                    end = next.addr.plus(next.bytes >> self.g.fshift);
                }
                let write = LogWrite { pbn: self.pbn(first.addr), head_bytes: 0, pieces: &pieces, head_apart: false };
                cx.write_log(self, &write);
                self.counters.cleaner.plugged_bytes += u64::from(end.0 - first.addr.0) << self.g.fshift;
                self.counters.cleaner.plugged_blocks += pieces.len() as u64;
                pieces.clear();
            }
        }
        self.settle_log(cx);
        for partial in &filled {
            self.rewriting = self.described_anew(cx, partial);
            let write =
                LogWrite { pbn: self.pbn(partial.at), head_bytes: self.g.sumsize, pieces: &[], head_apart: false };
            cx.write_log(self, &write);
            self.counters.cleaner.plugged_bytes += u64::from(self.g.sumsize);
        }
        self.rewriting = None;
        // Roll-forward takes the inodes of the next checkpoint before it is complete.
        if !self.planted.has(Bug::CheckpointBeforeHoles) {
            self.settle_log(cx);
        }
    }

    fn piece(&self, cx: &Cx, moved: &Moved) -> LogPiece {
        let id = BlockId { ino: Ino(moved.ino), lbn: Lbn(moved.lbn.into()) };
        if cx.cache().contains(id) {
            return LogPiece::Cached(id);
        }
        let file = self.inodes.get(moved.ino).is_some_and(|node| matches!(node.body, Body::File));
        let contents = if file { Contents::Data } else { Contents::Metadata };
        LogPiece::Passing(Block { id, pbn: self.pbn(moved.from), bytes: moved.bytes, contents })
    }

    /// The bytes of a partial segment's summary as it is to be, if the disk has bytes.
    fn described_anew(&self, cx: &mut Cx, partial: &Holed) -> Option<Vec<u8>> {
        let mut bytes = vec![0; self.g.sumsize as usize];
        let at = self.pbn(partial.at);
        if !cx.on_disk(at, &mut bytes) {
            return None;
        }
        let mut summary = SegmentSummary::decode(&bytes, &self.g, at.bytes()).ok()?;
        summary.finfos = partial.finfos();
        let mut sum = crate::format::DataSum::default();
        let blocks = partial.slots.iter().map(|slot| slot.addr).chain(summary.inode_blocks.iter().copied());
        for addr in blocks {
            let mut first = [0; 4];
            cx.on_disk(self.pbn(addr), &mut first);
            sum.add(&first);
        }
        summary.header.datasum = sum.get();
        summary.encode(&self.g)
    }

    /// Files lead to what was holes; everything else of the segments that are emptied is to be written with a
    /// checkpoint.
    fn lead_to_holes(&mut self, cx: &mut Cx, plugging: &Plugging) {
        for number in &plugging.victims {
            let Some(segment) = self.log.segments.get(number.0 as usize) else { continue };
            let live = f64::from(segment.live_bytes) / f64::from(self.g.ssize);
            let others: Vec<Written> = segment
                .written
                .iter()
                .filter(|entry| (entry.lbn < 0 || entry.ino == IFILE.0) && self.is_live(entry))
                .copied()
                .collect();
            self.counters.cleaner.count(live);
            self.counters.cleaner.plugged_segments += 1;
            for entry in others {
                self.take_to_checkpoint(cx, &entry);
            }
        }
        let mut above = Vec::new();
        for partial in &plugging.partials {
            for slot in &partial.slots {
                let Some(moved) = slot.new else { continue };
                let (ino, lbn) = (Ino(moved.ino), moved.lbn as u64);
                self.indirects_changed(cx, ino, lbn);
                self.changed(cx, ino);
                let written = Written { ino: moved.ino, lbn: moved.lbn, addr: slot.addr };
                self.log.note_written_in_hole((partial.segment, slot.index), moved.bytes, written);
                self.moved(ino, lbn, slot.addr, moved.bytes, &mut above);
                self.usage_of_changed(partial.segment);
                above.clear();
            }
        }
    }

    /// An inode, an indirect block or a block of the ifile is written with the next checkpoint.
    fn take_to_checkpoint(&mut self, cx: &mut Cx, entry: &Written) {
        let ino = Ino(entry.ino);
        if ino == IFILE {
            return self.touch_ifile(entry);
        }
        if entry.lbn != INODE {
            let block = self.indirect_block(ino, entry.lbn.into(), entry.addr.0.into());
            cx.adopt(&block);
            cx.dirty(block.id);
            // What is above it gets its new address.
            let n = u64::from(self.g.nindir);
            let way = pointers::of_number(entry.lbn.into(), n).and_then(|(first, _)| pointers::way(first, n));
            let above = way.iter().flat_map(|way| way.numbers.iter().take(way.slot + 1));
            for number in above.take_while(|number| **number != i64::from(entry.lbn)) {
                cx.change(&self.indirect_block(ino, *number, self.indirect_addr(ino, *number)));
            }
        }
        self.changed(cx, ino);
    }

    /// What the log needs when the blocks of a segment have gone into holes: for inodes and indirect blocks that
    /// change.
    fn bytes_around(&self, cx: &Cx, number: SegNo, seen: &mut Seen) -> u64 {
        let all = self.bytes_to_move(cx, number, seen);
        let blocks: u64 = self.blocks_to_move(number).iter().map(|moved| u64::from(moved.bytes)).sum();
        all.saturating_sub(with_overhead(blocks))
    }
}
