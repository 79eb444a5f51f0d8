//! Partial segments that are going to be written: where each block and inode will lie.

use super::log::{INODE, INODE_BYTES, Log, NoCleanSegment, Written};
use crate::format::{Finfo, FragAddr, Geometry, Ino, SegmentSummary, SummaryHeader, summary_flags};
use kernel::program::IoId;
use kernel::{BlockId, LogPiece};

/// An inode of an inode block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum InodeSlot {
    /// A file's, as it is when the block is encoded.
    Live(u32),
    /// That of a file that is no more: without links.
    Dead(Box<crate::format::Dinode>),
}

/// A partial segment.
#[derive(Clone, Debug)]
pub(crate) struct Partial {
    pub(crate) at: FragAddr,
    end: FragAddr,
    pub(crate) summary: SegmentSummary,
    pub(crate) pieces: Vec<LogPiece>,
    /// The inodes of each inode block, with the number of its piece.
    pub(crate) inode_blocks: Vec<(usize, Vec<InodeSlot>)>,
    /// What has to be complete before it is written.
    pub(crate) after: Option<IoId>,
    /// Bytes of the summary in use.
    summary_bytes: u32,
}

impl Partial {
    /// How long it is.
    pub(crate) fn bytes(&self, g: &Geometry) -> u64 {
        u64::from(self.end.0 - self.at.0) << g.fshift
    }
}

/// Partial segments in the making.
#[derive(Debug)]
pub(crate) struct Plan {
    g: Geometry,
    pub(crate) partials: Vec<Partial>,
    /// Whether another block may go into the last of them.
    open: bool,
    flags: u16,
    pub(crate) create_s: u64,
}

impl Plan {
    pub(crate) fn new(g: Geometry, flags: u16, create_s: u64) -> Plan {
        Plan { g, partials: Vec::new(), open: false, flags, create_s }
    }

    /// The partial segments from here on are of another kind.
    pub(crate) fn set_flags(&mut self, flags: u16) {
        self.flags = flags;
        self.open = false;
    }

    /// The last partial segment is the last of its directory operations.
    pub(crate) fn end_of_operations(&mut self) {
        if let Some(last) = self.partials.last_mut() {
            last.summary.header.flags &= !summary_flags::CONT;
        }
        self.open = false;
    }

    /// A place for a block of a file.
    pub(crate) fn block(
        &mut self,
        log: &mut Log,
        id: BlockId,
        version: u32,
        bytes: u32,
    ) -> Result<FragAddr, NoCleanSegment> {
        let lbn = id.lbn.0 as i32;
        let frags = bytes >> self.g.fshift;
        // A shorter block ends its list.
        let fits = |partial: &Partial| {
            let same = partial.summary.finfos.last().is_some_and(|finfo| {
                finfo.ino.0 == id.ino.0 && finfo.version == version && finfo.lastlength == self.g.bsize
            });
            (partial.summary_bytes + if same { 4 } else { 20 } <= self.g.sumsize, same)
        };
        let same = match self.partials.last() {
            Some(last) if self.open && self.has_room(log, frags) && fits(last).0 => fits(last).1,
            _ => {
                self.begin(log)?;
                false
            }
        };
        let addr = log.offset;
        log.offset = addr.plus(frags);
        if let Some(last) = self.partials.last_mut() {
            if !same {
                let finfo = Finfo { version, ino: Ino(id.ino.0), lastlength: bytes, lbns: Vec::new() };
                last.summary.finfos.push(finfo);
                last.summary_bytes += 16;
            }
            if let Some(finfo) = last.summary.finfos.last_mut() {
                finfo.lastlength = bytes;
                finfo.lbns.push(lbn);
            }
            last.summary_bytes += 4;
            last.pieces.push(LogPiece::Cached(id));
            last.end = log.offset;
        }
        log.came(addr, bytes, Written { ino: id.ino.0, lbn, addr });
        Ok(addr)
    }

    /// A place for an inode: the inode block that it will be in.
    pub(crate) fn inode(&mut self, log: &mut Log, slot: InodeSlot) -> Result<FragAddr, NoCleanSegment> {
        let inopb = self.g.inopb as usize;
        let has_slot = self.open
            && self.partials.last().and_then(|last| last.inode_blocks.last()).is_some_and(|(_, all)| all.len() < inopb);
        if !has_slot {
            self.inode_block(log)?;
        }
        let Some(last) = self.partials.last_mut() else { return Err(NoCleanSegment) };
        let addr = last.summary.inode_blocks.last().copied().unwrap_or_default();
        let live = match &slot {
            InodeSlot::Live(ino) => Some(*ino),
            InodeSlot::Dead(_) => None,
        };
        last.summary.header.ninos += 1;
        if let Some((_, all)) = last.inode_blocks.last_mut() {
            all.push(slot);
        }
        if let Some(ino) = live {
            log.came(addr, INODE_BYTES, Written { ino, lbn: INODE, addr });
        }
        Ok(addr)
    }

    fn inode_block(&mut self, log: &mut Log) -> Result<(), NoCleanSegment> {
        let frags = self.g.ib_frags();
        let fits = self.open
            && self.has_room(log, frags)
            && self.partials.last().is_some_and(|last| last.summary_bytes + 4 <= self.g.sumsize);
        if !fits {
            self.begin(log)?;
        }
        let addr = log.offset;
        log.offset = addr.plus(frags);
        if let Some(last) = self.partials.last_mut() {
            last.summary.inode_blocks.push(addr);
            last.summary_bytes += 4;
            last.inode_blocks.push((last.pieces.len(), Vec::new()));
            last.pieces.push(LogPiece::Made { bytes: self.g.ibsize });
            last.end = log.offset;
            if let Some((_, segment)) = log.segment_of(addr) {
                segment.ninos = segment.ninos.saturating_add(1);
            }
            log.meta_frags += u64::from(frags);
        }
        Ok(())
    }

    /// No partial segment ends where its segment does: NetBSD's roll-forward would take the next segment on the disk for the
    /// next one of the log.
    fn has_room(&self, log: &Log, frags: u32) -> bool {
        log.offset.0 + frags < self.g.segment_end(log.current).0
    }

    /// Another partial segment, in the next segment if there is no room in this one.
    fn begin(&mut self, log: &mut Log) -> Result<(), NoCleanSegment> {
        if !self.g.partial_fits(log.offset) {
            log.advance()?;
        }
        let after = log.take_ready();
        let at = log.offset;
        log.serial += 1;
        log.offset = at.plus(self.g.sum_frags());
        log.meta_frags += u64::from(self.g.sum_frags());
        let header = SummaryHeader {
            next: self.g.segment_base(log.next).0,
            ident: self.g.ident,
            flags: self.flags,
            serial: log.serial,
            create: self.create_s,
            ..SummaryHeader::default()
        };
        if let Some((_, segment)) = log.segment_of(at) {
            segment.nsums = segment.nsums.saturating_add(1);
            segment.lastmod_s = self.create_s;
        }
        self.partials.push(Partial {
            at,
            end: log.offset,
            summary: SegmentSummary::new(header),
            pieces: Vec::new(),
            inode_blocks: Vec::new(),
            after,
            summary_bytes: SummaryHeader::BYTES as u32,
        });
        self.open = true;
        Ok(())
    }
}
