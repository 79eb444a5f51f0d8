//! Partial segments that are going to be written: where each block and inode will lie.

use super::log::{INODE, INODE_BYTES, Log, NoCleanSegment, Written};
use crate::format::{Finfo, FragAddr, Geometry, Ino, SegmentSummary, SummaryHeader, summary_flags};
use kernel::program::IoId;
use kernel::{Block, BlockId, LogPiece};

/// An inode of an inode block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum InodeSlot {
    /// A file's, as it is when the block is encoded.
    Live(u32),
    /// That of a file that is no more: without links.
    Dead(Box<crate::format::Dinode>),
}

/// Blocks of one file in a partial segment: a FINFO whose block numbers its pieces say.
#[derive(Clone, Copy, Debug)]
struct FileBlocks {
    ino: u32,
    version: u32,
    /// Bytes of the last of them.
    lastlength: u32,
    count: u32,
}

/// An inode block: the number of its piece, and of its first inode in the partial segment's list.
#[derive(Clone, Copy, Debug)]
struct InodeBlock {
    at: FragAddr,
    piece: usize,
    first: usize,
}

/// A partial segment. Its lists are flat, and used again for others.
#[derive(Clone, Debug, Default)]
pub(crate) struct Partial {
    pub(crate) at: FragAddr,
    pub(crate) end: FragAddr,
    header: SummaryHeader,
    files: Vec<FileBlocks>,
    inode_blocks: Vec<InodeBlock>,
    inodes: Vec<InodeSlot>,
    pub(crate) pieces: Vec<LogPiece>,
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

    /// The inodes of the inode block that is its piece `piece`; none if that is another piece.
    pub(crate) fn inodes_of(&self, piece: usize) -> &[InodeSlot] {
        let Ok(at) = self.inode_blocks.binary_search_by_key(&piece, |block| block.piece) else { return &[] };
        let first = self.inode_blocks.get(at).map_or(0, |block| block.first);
        let end = self.inode_blocks.get(at + 1).map_or(self.inodes.len(), |next| next.first);
        self.inodes.get(first..end).unwrap_or_default()
    }

    /// Its summary, all but the sum of the blocks, given its pieces.
    pub(crate) fn summary(&self, pieces: &[LogPiece]) -> SegmentSummary {
        let mut summary = SegmentSummary::new(self.header.clone());
        let mut lbns = pieces.iter().filter_map(|piece| match piece {
            LogPiece::Cached(id) | LogPiece::Passing(Block { id, .. }) => Some(id.lbn.0 as i32),
            LogPiece::Made { .. } => None,
        });
        summary.finfos.extend(self.files.iter().map(|file| Finfo {
            version: file.version,
            ino: Ino(file.ino),
            lastlength: file.lastlength,
            lbns: lbns.by_ref().take(file.count as usize).collect(),
        }));
        summary.inode_blocks.extend(self.inode_blocks.iter().map(|block| block.at));
        summary
    }

    fn clear(&mut self) {
        self.files.clear();
        self.inode_blocks.clear();
        self.inodes.clear();
        self.pieces.clear();
    }
}

/// Partial segments in the making.
#[derive(Debug)]
pub(crate) struct Plan {
    g: Geometry,
    pub(crate) partials: Vec<Partial>,
    /// Used ones, for their lists.
    pub(crate) spare: Vec<Partial>,
    /// Whether another block may go into the last of them.
    open: bool,
    flags: u16,
    /// Whether indirect blocks that change with what is planned are left to a later write.
    pub(crate) data_only: bool,
    create_s: u64,
    /// The date, nanoseconds since 1970.
    date_ns: i64,
}

impl Plan {
    /// Written at a date, in seconds and, for the segments' ages, in nanoseconds.
    pub(crate) fn new(g: Geometry, flags: u16, (create_s, date_ns): (u64, i64), spare: Vec<Partial>) -> Plan {
        Plan { g, partials: Vec::new(), spare, open: false, flags, data_only: false, create_s, date_ns }
    }

    /// The partial segments from here on are of another kind.
    pub(crate) fn set_flags(&mut self, flags: u16) {
        self.flags = flags;
        self.open = false;
    }

    /// Whether a cleaner writes.
    pub(crate) fn cleans(&self) -> bool {
        self.flags & summary_flags::CLEAN != 0
    }

    /// The last partial segment is the last of its directory operations.
    pub(crate) fn end_of_operations(&mut self) {
        if let Some(last) = self.partials.last_mut() {
            last.header.flags &= !summary_flags::CONT;
        }
        self.open = false;
    }

    /// A place for a block of a file.
    pub(crate) fn block(
        &mut self,
        log: &mut Log,
        (id, version): (BlockId, u32),
        bytes: u32,
        piece: LogPiece,
    ) -> Result<FragAddr, NoCleanSegment> {
        let lbn = id.lbn.0 as i32;
        let frags = bytes >> self.g.fshift;
        // A shorter block ends its list, and so does an inode block.
        let same = |last: &Partial| {
            let behind_inodes = last.inode_blocks.last().is_some_and(|block| block.piece + 1 == last.pieces.len());
            !behind_inodes
                && last.files.last().is_some_and(|file| {
                    file.ino == id.ino.0 && file.version == version && file.lastlength == self.g.bsize
                })
        };
        let open = self.open && self.has_room(log, frags);
        let same = match self.partials.last() {
            Some(last) if open && last.summary_bytes + 20 <= self.g.sumsize => same(last),
            Some(last) if open && last.summary_bytes + 4 <= self.g.sumsize && same(last) => true,
            _ => {
                self.begin(log)?;
                false
            }
        };
        let addr = log.offset;
        log.offset = addr.plus(frags);
        if let Some(last) = self.partials.last_mut() {
            match last.files.last_mut().filter(|_| same) {
                Some(file) => {
                    file.lastlength = bytes;
                    file.count += 1;
                }
                None => {
                    last.files.push(FileBlocks { ino: id.ino.0, version, lastlength: bytes, count: 1 });
                    last.summary_bytes += 16;
                }
            }
            last.summary_bytes += 4;
            last.pieces.push(piece);
            last.end = log.offset;
        }
        log.note_written(bytes, Written { ino: id.ino.0, lbn, addr });
        Ok(addr)
    }

    /// A place for an inode: the inode block that it will be in.
    pub(crate) fn inode(&mut self, log: &mut Log, slot: InodeSlot) -> Result<FragAddr, NoCleanSegment> {
        let inopb = self.g.inopb as usize;
        let has_slot = self.open
            && self.partials.last().is_some_and(|last| {
                last.inode_blocks.last().is_some_and(|block| last.inodes.len() - block.first < inopb)
            });
        if !has_slot {
            self.inode_block(log)?;
        }
        let Some(last) = self.partials.last_mut() else { return Err(NoCleanSegment) };
        let addr = last.inode_blocks.last().map(|block| block.at).unwrap_or_default();
        last.header.ninos += 1;
        if let InodeSlot::Live(ino) = slot {
            log.note_written(INODE_BYTES, Written { ino, lbn: INODE, addr });
        }
        last.inodes.push(slot);
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
            last.inode_blocks.push(InodeBlock { at: addr, piece: last.pieces.len(), first: last.inodes.len() });
            last.summary_bytes += 4;
            last.pieces.push(LogPiece::Made { bytes: self.g.ibsize });
            last.end = log.offset;
            log.note_inode_block(addr);
        }
        Ok(())
    }

    /// No partial segment ends where its segment does: NetBSD's roll-forward would take the next segment on the disk
    /// for the next one of the log.
    fn has_room(&self, log: &Log, frags: u32) -> bool {
        log.offset.0 + frags < self.g.segment_end(log.current).0
    }

    /// Another partial segment, in the next segment if there is no room in this one.
    fn begin(&mut self, log: &mut Log) -> Result<(), NoCleanSegment> {
        if !self.g.partial_fits(log.offset) {
            log.advance()?;
        }
        let after = log.ready();
        let at = log.offset;
        log.offset = at.plus(self.g.sum_frags());
        log.note_summary(at, self.create_s, self.date_ns);
        let mut partial = self.spare.pop().unwrap_or_default();
        (partial.at, partial.end, partial.after) = (at, log.offset, after);
        partial.summary_bytes = SummaryHeader::BYTES as u32;
        partial.header = SummaryHeader {
            next: self.g.segment_base(log.next).0,
            ident: self.g.ident,
            flags: self.flags,
            serial: log.serial,
            create: self.create_s,
            ..SummaryHeader::default()
        };
        self.partials.push(partial);
        self.open = true;
        Ok(())
    }

    /// A partial segment has been written; its lists are used again.
    pub(crate) fn done(spare: &mut Vec<Partial>, mut partial: Partial) {
        if spare.len() < SPARE {
            partial.clear();
            spare.push(partial);
        }
    }
}

/// So many partial segments' lists are kept.
const SPARE: usize = 32;
