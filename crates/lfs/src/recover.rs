//! Roll-forward: what was written after a checkpoint.
//!
//! Partial segments follow one another from the checkpoint's `offset` on, each with a serial number one higher. The
//! first that does not (its checksums, its serial number or its file system are wrong) ends the log: it was being
//! written when the power failed, or is left over from before. Partial segments of directory operations carry a flag as
//! long as more of the same operations follow; a run without its end is dropped, so that a name and the inode it names
//! appear together or not at all.
//!
//! The rule for files is that of Sprite and of 4.4BSD's design (Seltzer et al., USENIX Winter 1993, section 4.4): **an
//! inode in the log is its file's new state**, and its pointers say where its blocks are; blocks without an inode
//! behind them are of a write that was not completed, and do not count. Writers put a file's blocks, then its indirect
//! blocks, then its inode into the log. (NetBSD takes blocks without an inode too. Nothing that was synced depends on
//! the difference.)
//!
//! An inode with no links says that the file is gone: writers put one into the log when the last name goes.

use crate::blocks::file_blocks;
use crate::format::{
    DINODE_BYTES, DIR_FORMAT, DIRBLKSIZ, DataSum, Dinode, FragAddr, Geometry, IFILE_INO, Ino, InodeMapEntry, NDADDR,
    Piece, ROOT_INO, SegNo, SegmentSummary, SegmentUsage, Superblock, inodes_of_block, parse_chunk, segment_flags,
    summary_flags,
};
use crate::image::inode_at;
use crate::planted::{Bug, Planted};
use crate::{Ifile, Image, LfsError, Store};
use device::store::read;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// A partial segment found in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partial {
    /// Where its summary is.
    pub addr: FragAddr,
    /// The fragment behind its last block.
    pub end: FragAddr,
    /// Its summary.
    pub summary: SegmentSummary,
    /// What is behind the summary.
    pub pieces: Vec<Piece>,
}

/// The log behind a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogTail {
    /// Partial segments that follow the checkpoint and one another.
    pub partials: Vec<Partial>,
    /// How many of them count: not an unfinished run of directory operations at the end, nor a checkpoint there without
    /// its superblock. That has nothing but the ifile, and its place is wanted for the checkpoint that recovery makes:
    /// however often the power fails while it does, the log gets no longer.
    pub complete: usize,
    /// Why the log ends where it does.
    pub ended_by: String,
}

/// Reads and checks the partial segment at a place. The error says why there is none.
pub fn partial_at<S: Store + ?Sized>(store: &S, g: &Geometry, addr: FragAddr) -> Result<Partial, LfsError> {
    let at_byte = g.byte_of(addr);
    if !g.within_segment(addr, g.sum_frags()) {
        return Err(ufs::FormatError::field("log", "offset", at_byte, "no segment has room for a summary here").into());
    }
    let summary = SegmentSummary::decode(&read(store, at_byte, g.sumsize as usize)?, g, at_byte)?;
    let (pieces, end) = summary.pieces(g, addr)?;
    Ok(Partial { addr, end, summary, pieces })
}

/// Whether the blocks of a partial segment are those that its summary was written with.
pub fn datasum_is_right<S: Store + ?Sized>(store: &S, g: &Geometry, partial: &Partial) -> Result<bool, LfsError> {
    let mut sum = DataSum::default();
    for piece in &partial.pieces {
        sum.add(&read(store, g.byte_of(piece.addr()), 4)?);
    }
    Ok(sum.get() == partial.summary.header.datasum)
}

/// Follows the log behind the checkpoint of a superblock. `has_superblock` says which segments begin with one.
pub fn log_tail<S: Store + ?Sized>(
    store: &S,
    g: &Geometry,
    sb: &Superblock,
    has_superblock: &dyn Fn(SegNo) -> bool,
    planted: Planted,
) -> LogTail {
    let mut tail = LogTail { partials: Vec::new(), complete: 0, ended_by: String::new() };
    let (offset, next) = (FragAddr(sb.offset), FragAddr(sb.nextseg));
    let within = |segment: &SegNo| (g.segment_base(*segment)..=g.segment_end(*segment)).contains(&offset);
    let mut places = match g.segment_of(FragAddr(sb.curseg)).filter(within) {
        Some(segment) => next_places(g, segment, offset, next, has_superblock),
        None => vec![log_place(g, offset, has_superblock)],
    };
    let mut serial = sb.serial;
    // Each place has one serial number, so that no place comes twice.
    loop {
        serial = serial.wrapping_add(1);
        let found = places.iter().map(|addr| expected_partial(store, g, *addr, serial, planted)).collect::<Vec<_>>();
        let mut why = String::new();
        let mut next = None;
        for one in found {
            match one {
                Ok(partial) => next = next.or(Some(partial)),
                Err(error) => why = error,
            }
        }
        let Some(partial) = next else {
            tail.ended_by = why;
            return tail;
        };
        let segment = g.segment_of(partial.addr).unwrap_or_default();
        places = next_places(g, segment, partial.end, FragAddr(partial.summary.header.next), has_superblock);
        let unfinished = partial.summary.is(summary_flags::CONT) || is_of_ifile(store, g, &partial);
        tail.partials.push(partial);
        if !unfinished || planted.has(Bug::UnfinishedCounts) {
            tail.complete = tail.partials.len();
        }
    }
}

fn expected_partial<S: Store + ?Sized>(
    store: &S,
    g: &Geometry,
    addr: FragAddr,
    serial: u64,
    planted: Planted,
) -> Result<Partial, String> {
    let partial = partial_at(store, g, addr).map_err(|error| error.to_string())?;
    let header = &partial.summary.header;
    if header.serial != serial {
        return Err(format!("the partial segment at {addr} has serial number {}, not {serial}", header.serial));
    }
    if header.ident != g.ident {
        return Err(format!("the partial segment at {addr} is of file system {:#x}", header.ident));
    }
    if partial.summary.is_empty() {
        return Err(format!("the partial segment at {addr} is empty"));
    }
    if planted.has(Bug::TornCounts) {
        return Ok(partial);
    }
    if !datasum_is_right(store, g, &partial).map_err(|error| error.to_string())? {
        return Err(format!("the blocks of the partial segment at {addr} are not those it was written with"));
    }
    let problem = structure_problem(store, g, &partial).map_err(|error| error.to_string())?;
    problem.map_or(Ok(partial), |problem| Err(format!("the partial segment at {addr} is damaged: {problem}")))
}

/// Whether nothing is in a partial segment that is of another file than the ifile.
fn is_of_ifile<S: Store + ?Sized>(store: &S, g: &Geometry, partial: &Partial) -> bool {
    let inodes_of = |addr: &FragAddr| read(store, g.byte_of(*addr), g.ibsize as usize);
    let only = |block: Vec<u8>| inodes_of_block(&block).all(|inode| inode.ino() == IFILE_INO);
    partial.summary.finfos.iter().all(|finfo| finfo.ino == IFILE_INO)
        && partial.summary.inode_blocks.iter().all(|addr| inodes_of(addr).is_ok_and(only))
}

/// What is wrong with the inodes, indirect blocks and directories of a partial segment; `None` if nothing is. The
/// checksum sees the first four bytes of a block only: one that was written in part is found here, if it can be found
/// at all.
fn structure_problem<S: Store + ?Sized>(
    store: &S,
    g: &Geometry,
    partial: &Partial,
) -> Result<Option<String>, LfsError> {
    let mut directories = BTreeMap::new();
    let mut inodes = 0_u32;
    for addr in &partial.summary.inode_blocks {
        let block = read(store, g.byte_of(*addr), g.ibsize as usize)?;
        for inode in inodes_of_block(&block) {
            inodes += 1;
            if let Some(problem) = inode_problem(g, &inode) {
                return Ok(Some(format!("inode {}: {problem}", inode.inumber)));
            }
            if inode.is_dir() {
                directories.insert(inode.ino(), inode.size);
            }
        }
    }
    if inodes != u32::from(partial.summary.header.ninos) {
        return Ok(Some(format!("{inodes} inodes, where there should be {}", partial.summary.header.ninos)));
    }
    for piece in &partial.pieces {
        let Piece::Block { addr, ino, lbn, bytes, .. } = *piece else { continue };
        let problem = match (u64::try_from(lbn), directories.get(&ino)) {
            (Err(_), _) => {
                let block = read(store, g.byte_of(addr), bytes as usize)?;
                let (pointers, _) = block.as_chunks::<4>();
                let wrong =
                    pointers.iter().map(|raw| i32::from_le_bytes(*raw).into()).find(|p| !g.is_pointer(*p, g.frag));
                wrong.map(|pointer: i64| format!("indirect block {lbn} of inode {ino}: pointer {pointer}"))
            }
            (Ok(lbn), Some(size)) => {
                let len = size.saturating_sub(lbn << g.bshift).min(bytes.into());
                let block = read(store, g.byte_of(addr), len as usize)?;
                let parsed = block.chunks(DIRBLKSIZ).try_for_each(|chunk| parse_chunk(chunk, DIR_FORMAT, 0).map(drop));
                parsed.err().map(|error| format!("directory, inode {ino}: {error}"))
            }
            (Ok(_), None) => None,
        };
        if problem.is_some() {
            return Ok(problem);
        }
    }
    Ok(None)
}

/// What cannot be about an inode by itself.
fn inode_problem(g: &Geometry, inode: &Dinode) -> Option<&'static str> {
    if !g.can_have_inode(inode.ino()) {
        return Some("no inode map on this disk has that number");
    }
    if inode.nlink <= 0 || inode.ino() == IFILE_INO {
        return None; // It says only that the file is gone; the ifile's counts in a checkpoint only.
    }
    if inode.file_type().is_none() {
        return Some("of no known type");
    }
    if !inode.has_blocks(g.maxsymlinklen) {
        return None;
    }
    if inode.size > g.max_file_bytes() {
        return Some("too large");
    }
    let held = |(lbn, pointer): (u64, &i64)| g.is_pointer(*pointer, g.block_bytes(inode.size, lbn) >> g.fshift);
    let direct = (0..).zip(&inode.db).take(inode.size.div_ceil(g.bsize.into()).min(NDADDR as u64) as usize).all(held);
    let indirect = inode.ib.iter().all(|pointer| g.is_pointer(*pointer, g.frag));
    (!direct || !indirect).then_some("a pointer out of the segments")
}

/// A place in the log; behind the superblock if it is the beginning of a segment.
fn log_place(g: &Geometry, offset: FragAddr, has_superblock: &dyn Fn(SegNo) -> bool) -> FragAddr {
    match g.segment_of(offset) {
        Some(segment) if g.segment_base(segment) == offset => g.log_start(segment, has_superblock(segment)),
        _ => offset,
    }
}

/// Where the partial segment behind one that ends at `end` in `segment` may be: there if there is room, else in the
/// next segment. Where NetBSD's writer and its roll-forward differ about the room, either.
fn next_places(
    g: &Geometry,
    segment: SegNo,
    end: FragAddr,
    next_segment: FragAddr,
    has_superblock: &dyn Fn(SegNo) -> bool,
) -> Vec<FragAddr> {
    let room = g.segment_end(segment).0.saturating_sub(end.0);
    let (here, start) = (log_place(g, end, has_superblock), log_place(g, next_segment, has_superblock));
    if room > g.sum_frags() + g.frag {
        vec![here]
    } else if room > g.frag {
        vec![here, start]
    } else {
        vec![start]
    }
}

/// What roll-forward found and did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RolledForward {
    /// Serial number of the checkpoint.
    pub from_serial: u64,
    /// Serial number of the last partial segment that counts.
    pub to_serial: u64,
    /// Partial segments that count.
    pub partial_segments: u64,
    /// Partial segments dropped: unfinished directory operations, and a checkpoint without its superblock.
    pub dropped: u64,
    /// Inodes that have a new state.
    pub inodes: Vec<Ino>,
    /// Inodes that are free now.
    pub freed: Vec<Ino>,
    /// Segments that were written, in the order of the log.
    pub segments: Vec<SegNo>,
    /// Why the log ends where it does.
    pub ended_by: String,
}

/// The new state of an inode.
struct Change {
    addr: FragAddr,
    inode: Dinode,
}

impl<S: Store> Image<S> {
    /// Brings what was written after the checkpoint into the inode map, the usage table and the superblock's counters,
    /// in memory: nothing is written. A file system that was unmounted cleanly is left as it is, and so is one where
    /// this fails.
    pub fn roll_forward(&mut self) -> Result<RolledForward, LfsError> {
        let serial = self.sb.serial;
        let mut done = RolledForward { from_serial: serial, to_serial: serial, ..RolledForward::default() };
        if self.sb.is_clean() {
            done.ended_by = "unmounted cleanly".to_owned();
            return Ok(done);
        }
        let tail = self.log_tail();
        done.dropped = (tail.partials.len() - tail.complete) as u64;
        done.ended_by = tail.ended_by;
        let counted = tail.partials.get(..tail.complete).unwrap_or_default();
        if counted.is_empty() || self.planted.has(Bug::NoRollForward) {
            return Ok(done);
        }
        let (sb, ifile) = (self.sb.clone(), self.ifile.clone());
        let result = self.take(counted, &mut done);
        if result.is_err() {
            (self.sb, self.ifile) = (sb, ifile);
        }
        result.map(|()| done)
    }

    fn take(&mut self, partials: &[Partial], done: &mut RolledForward) -> Result<(), LfsError> {
        let current = self.geometry.segment_of(FragAddr(self.sb.curseg));
        let numbered = (0..).map(SegNo).zip(&self.ifile.usage).zip(self.empty_segments());
        let spare = numbered.filter(|((_, usage), empty)| *empty && usage.is(segment_flags::DIRTY));
        let spare: Vec<SegNo> = spare.map(|((segment, _), _)| segment).collect();
        let mut changes = BTreeMap::new();
        for partial in partials {
            self.count_partial(partial, done);
            self.inodes_of(partial, &mut changes)?;
        }
        let overwritten = done.segments.iter().copied().filter(|s| Some(*s) != current).collect();
        self.apply(&changes, &overwritten, done)?;
        if let Some(last) = partials.last() {
            self.end_behind(last, &spare);
        }
        self.count_tables();
        Ok(())
    }

    /// The log behind the checkpoint, clean or not.
    pub fn log_tail(&self) -> LogTail {
        let has_superblock = |segment| self.ifile.usage(segment).is_some_and(|u| u.is(segment_flags::SUPERBLOCK));
        log_tail(&self.store, &self.geometry, &self.sb, &has_superblock, self.planted)
    }

    /// Counts what a partial segment takes.
    fn count_partial(&mut self, partial: &Partial, done: &mut RolledForward) {
        let g = self.geometry;
        let Some(segment) = g.segment_of(partial.addr) else { return };
        if g.segment_of(FragAddr(self.sb.curseg)) != Some(segment) {
            self.enter(segment);
        }
        if done.segments.last() != Some(&segment) {
            done.segments.push(segment);
        }
        let header = &partial.summary.header;
        let inode_blocks = u16::try_from(partial.summary.inode_blocks.len()).unwrap_or(u16::MAX);
        if let Some(usage) = self.ifile.usage.get_mut(segment.0 as usize) {
            usage.flags |= segment_flags::DIRTY | segment_flags::ACTIVE;
            usage.nsums = usage.nsums.saturating_add(1);
            usage.ninos = usage.ninos.saturating_add(inode_blocks);
            usage.lastmod = header.create;
        }
        let meta = g.sum_frags() + u32::from(inode_blocks) * g.ib_frags();
        let sb = &mut self.sb;
        sb.dmeta = sb.dmeta.saturating_add_unsigned(meta);
        sb.bfree = sb.bfree.saturating_sub_unsigned(meta);
        sb.avail = sb.avail.saturating_sub_unsigned(partial.end.0 - partial.addr.0);
        (sb.nextseg, sb.offset) = (header.next, partial.end.0);
        (sb.serial, sb.tstamp) = (header.serial, header.create);
        done.partial_segments += 1;
        done.to_serial = header.serial;
    }

    /// The log goes on in another segment.
    fn enter(&mut self, segment: SegNo) {
        let g = self.geometry;
        let sb = &mut self.sb;
        // The rest of the segment that is left is lost until it is cleaned.
        let left = g.segment_of(FragAddr(sb.curseg)).map_or(0, |left| g.segment_end(left).0.saturating_sub(sb.offset));
        sb.avail = sb.avail.saturating_sub_unsigned(left);
        sb.lastseg = sb.curseg;
        sb.curseg = g.segment_base(segment).0;
        self.clear(segment);
        let sb = &mut self.sb;
        if let Some(usage) = self.ifile.usage.get_mut(segment.0 as usize) {
            let taken = segment_flags::DIRTY | segment_flags::ACTIVE | segment_flags::EMPTY;
            let flags = usage.flags & segment_flags::SUPERBLOCK | taken;
            *usage = SegmentUsage { flags, ..SegmentUsage::default() };
            sb.offset = g.log_start(segment, usage.is(segment_flags::SUPERBLOCK)).0;
        }
    }

    /// Gathers the inodes of a partial segment; of several of one number the last counts, if it is not of an earlier
    /// version.
    fn inodes_of(&self, partial: &Partial, changes: &mut BTreeMap<Ino, Change>) -> Result<(), LfsError> {
        let g = &self.geometry;
        for addr in &partial.summary.inode_blocks {
            let block = read(&self.store, g.byte_of(*addr), g.ibsize as usize)?;
            for inode in inodes_of_block(&block).filter(|inode| inode.ino() != IFILE_INO) {
                let known = changes.get(&inode.ino()).map(|change| change.inode.generation);
                let known = known.or_else(|| self.ifile.entry(inode.ino()).map(|entry| entry.version)).unwrap_or(0);
                if inode.generation >= known {
                    changes.insert(inode.ino(), Change { addr: *addr, inode });
                }
            }
        }
        Ok(())
    }

    /// Brings new states into the inode map and the usage table.
    fn apply(
        &mut self,
        changes: &BTreeMap<Ino, Change>,
        overwritten: &BTreeSet<SegNo>,
        done: &mut RolledForward,
    ) -> Result<(), LfsError> {
        for (ino, change) in changes {
            self.extend_map(*ino)?;
            let was = self.ifile.entry(*ino).cloned().unwrap_or_default();
            if let Some(addr) = self.ifile.daddr(*ino) {
                // The old state can still be read: nothing that a checkpoint points to is overwritten before the next
                // one.
                let old = inode_at(&self.store, &self.geometry, addr, *ino)?;
                self.account(*ino, &old, addr, overwritten, false)?;
            }
            let is_gone = change.inode.nlink <= 0 && !self.planted.has(Bug::GoneStays);
            let entry = if is_gone {
                done.freed.push(*ino);
                InodeMapEntry { version: change.inode.generation.wrapping_add(1), daddr: 0, ..was }
            } else {
                done.inodes.push(*ino);
                self.account(*ino, &change.inode, change.addr, overwritten, true)?;
                let version = change.inode.generation;
                let (atime_sec, atime_nsec) = (change.inode.atime.s as u32, change.inode.atime.ns as u32);
                InodeMapEntry { version, daddr: change.addr.0, nextfree: was.nextfree, atime_sec, atime_nsec }
            };
            if let Some(place) = self.ifile.entry_mut(*ino) {
                *place = entry;
            }
        }
        for usage in &mut self.ifile.usage {
            usage.flags &= !segment_flags::EMPTY;
            usage.flags |= if usage.nbytes == 0 { segment_flags::EMPTY } else { 0 };
        }
        self.ifile.relink_free();
        Ok(())
    }

    /// Takes the blocks of an inode and itself to be live, or not any more.
    fn account(
        &mut self,
        ino: Ino,
        inode: &Dinode,
        addr: FragAddr,
        overwritten: &BTreeSet<SegNo>,
        live: bool,
    ) -> Result<(), LfsError> {
        let g = self.geometry;
        let usage = &mut self.ifile.usage;
        let mut count = |addr: FragAddr, bytes: u32| {
            let Some(segment) = g.segment_of(addr) else { return };
            let Some(usage) = usage.get_mut(segment.0 as usize) else { return };
            usage.nbytes = if live {
                usage.nbytes.saturating_add(bytes)
            } else if overwritten.contains(&segment) {
                usage.nbytes
            } else {
                usage.nbytes.saturating_sub(bytes)
            };
        };
        count(addr, DINODE_BYTES);
        let mut frags = 0;
        file_blocks(&self.store, &g, ino, inode, &mut |block| {
            count(block.addr, block.bytes);
            frags += block.bytes >> g.fshift;
            Ok(())
        })?;
        let bfree = &mut self.sb.bfree;
        *bfree = if live { bfree.saturating_sub_unsigned(frags) } else { bfree.saturating_add_unsigned(frags) };
        let nfiles = &mut self.sb.nfiles;
        *nfiles = if live { nfiles.saturating_add(1) } else { nfiles.saturating_sub(1) };
        Ok(())
    }

    /// Makes the inode map long enough for an inode.
    fn extend_map(&mut self, ino: Ino) -> Result<(), LfsError> {
        let g = &self.geometry;
        let (lbn, _) = g.map_place(ino);
        if !g.can_have_inode(ino) {
            let problem = "has a number that no inode map on this disk could hold".to_owned();
            return Err(LfsError::Inode { ino: ino.0, problem });
        }
        let entries = (lbn + 1 - u64::from(g.cleansz + g.segtabsz)) as usize * g.ifpb as usize;
        if entries > self.ifile.map.len() {
            self.ifile.map.resize(entries, InodeMapEntry { version: 1, ..InodeMapEntry::default() });
        }
        Ok(())
    }

    /// The log ends behind a partial segment, or at the beginning of the next segment if there is no room. `spare` are
    /// segments that the checkpoint knows as dirty, and both checkpoints with nothing in them: they may be written if
    /// none is clean.
    fn end_behind(&mut self, last: &Partial, spare: &[SegNo]) {
        let g = self.geometry;
        let Some(segment) = g.segment_of(last.addr) else { return };
        let named = g.segment_of(FragAddr(last.summary.header.next));
        // It was clean, though the checkpoint may know it as dirty and empty. If one of the two leads into it, a
        // superblock that made it clean is not on the disk: until that is, rolling forward reads what was there.
        let believed = |next: &SegNo| spare.contains(next) || self.planted.has(Bug::NextIsClean);
        named.filter(believed).inspect(|next| self.clear(*next));
        if g.segment_end(segment).0.saturating_sub(last.end.0) <= g.sum_frags() + g.frag
            && let Some(next) = named.filter(|next| self.is_clean(*next)).or_else(|| self.clean_behind(segment, spare))
        {
            self.enter(next);
        }
        let current = g.segment_of(FragAddr(self.sb.curseg)).unwrap_or_default();
        let named = g.segment_of(FragAddr(self.sb.nextseg)).filter(|next| self.is_clean(*next));
        if let Some(next) = named.or_else(|| self.clean_behind(current, spare)) {
            self.sb.nextseg = g.segment_base(next).0;
        }
        self.sb.lastpseg = self.sb.offset;
    }

    /// Makes a segment clean that is dirty and empty, and not of the log that is being rolled forward.
    fn clear(&mut self, segment: SegNo) {
        let g = self.geometry;
        let Some(usage) = self.ifile.usage.get_mut(segment.0 as usize) else { return };
        if usage.nbytes > 0 || !usage.is(segment_flags::DIRTY) || usage.is(segment_flags::ACTIVE) {
            return;
        }
        let meta = u32::from(usage.nsums) * g.sum_frags() + u32::from(usage.ninos) * g.ib_frags();
        let flags = usage.flags & segment_flags::SUPERBLOCK | segment_flags::EMPTY;
        *usage = SegmentUsage { flags, lastmod: usage.lastmod, ..SegmentUsage::default() };
        self.sb.dmeta = self.sb.dmeta.saturating_sub_unsigned(meta);
        self.sb.bfree = self.sb.bfree.saturating_add_unsigned(meta);
        let room = g.segment_end(segment).0 - g.log_start(segment, flags & segment_flags::SUPERBLOCK != 0).0;
        self.sb.avail = self.sb.avail.saturating_add_unsigned(room);
    }

    fn is_clean(&self, segment: SegNo) -> bool {
        self.ifile.usage(segment).is_some_and(SegmentUsage::is_clean)
    }

    /// The next clean segment behind one; a spare one is made clean if there is none.
    fn clean_behind(&mut self, segment: SegNo, spare: &[SegNo]) -> Option<SegNo> {
        let nseg = self.geometry.nseg;
        let clean = (1..nseg).map(|i| SegNo((segment.0 + i) % nseg)).find(|s| self.is_clean(*s));
        clean.or_else(|| {
            spare.iter().copied().find(|s| {
                self.clear(*s);
                self.is_clean(*s)
            })
        })
    }

    /// Puts the counts that follow from the tables into superblock and cleaner information.
    fn count_tables(&mut self) {
        let nclean = self.ifile.usage.iter().filter(|u| u.is_clean()).count() as u32;
        let info = &mut self.ifile.info;
        (self.sb.nclean, self.sb.freehd) = (nclean, info.free_head);
        (info.clean, info.dirty) = (nclean, self.geometry.nseg - nclean);
        (info.bfree, info.avail) = (self.sb.bfree, self.sb.avail);
    }
}

impl Ifile {
    /// The list of those inodes that are not in use now, in ascending order.
    fn relink_free(&mut self) {
        let free = |(ino, entry): &(Ino, &InodeMapEntry)| *ino > ROOT_INO && entry.daddr == 0;
        let list: Vec<Ino> = (0_u32..).map(Ino).zip(&self.map).filter(free).map(|(ino, _)| ino).collect();
        for (i, ino) in list.iter().enumerate() {
            let next = list.get(i + 1).map_or(0, |next| next.0);
            if let Some(entry) = self.map.get_mut(ino.0 as usize) {
                entry.nextfree = next;
            }
        }
        self.info.free_head = list.first().map_or(0, |ino| ino.0);
        self.info.free_tail = list.last().map_or(0, |ino| ino.0);
    }
}
