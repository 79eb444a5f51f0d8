//! Segment usage against what was met, and summaries against what is live.

use super::{Check, Live, Phase};
use crate::format::{FragAddr, Ino, Piece, SegNo, SegmentUsage, segment_flags};
use crate::recover::{datasum_is_right, partial_at};
use crate::{LfsError, Store};

impl<S: Store> Check<'_, S> {
    /// Every segment: its entry of the usage table, and its summaries.
    pub(super) fn segments(&mut self) -> Result<(), LfsError> {
        self.asked(Phase::Segments)?;
        let mut live = std::mem::take(&mut self.live);
        live.sort_unstable();
        let mut rest = live.as_slice();
        for segment in (0..self.g.nseg).map(SegNo) {
            if segment.0 % 1024 == 0 {
                self.asked(Phase::Segments)?;
            }
            let end = self.g.segment_end(segment);
            let (here, behind) = rest.split_at(rest.partition_point(|live| live.addr < end));
            rest = behind;
            let Some(usage) = self.image.ifile.usage(segment).cloned() else {
                self.segment_problem("usage", segment, "has no entry in the segment usage table");
                continue;
            };
            self.entry(segment, &usage);
            // One that had become empty may have been taken for writing again since the checkpoint.
            let again = usage.nbytes == 0 && !usage.is(segment_flags::ACTIVE) && !self.report.marked_clean;
            if !usage.is_clean() && again {
                continue;
            }
            if !usage.is_clean() {
                self.summaries(segment, &usage, here)?;
            } else if let Some(first) = here.first() {
                let message =
                    format!("is said to be clean, and has {} live blocks, the first at {}", here.len(), first.addr);
                self.segment_problem("clean", segment, message);
            }
        }
        Ok(())
    }

    fn entry(&mut self, segment: SegNo, usage: &SegmentUsage) {
        let nbytes = self.nbytes.get(segment.0 as usize).copied().unwrap_or(0);
        if u64::from(usage.nbytes) != nbytes {
            let message = format!("has {nbytes} live bytes, the usage table says {}", usage.nbytes);
            self.segment_problem("nbytes", segment, message);
        }
        // NetBSD sets and clears this one when it writes the entry, from the entry's own count.
        if usage.is(segment_flags::EMPTY) != (usage.nbytes == 0) {
            let message = format!("has {} live bytes, and flags {:#x}", usage.nbytes, usage.flags);
            self.segment_problem("empty", segment, message);
        }
        let mut superblocks = self.image.sb.sboffs.iter().take_while(|addr| **addr != 0);
        let has = superblocks.any(|addr| self.g.segment_of(FragAddr(*addr)) == Some(segment));
        if usage.is(segment_flags::SUPERBLOCK) != has {
            let message = if has { "has a superblock, and no flag for it" } else { "has no superblock, but its flag" };
            self.segment_problem("superblock", segment, message);
        }
    }

    /// Follows the partial segments that the usage table counts: each has the serial number after the one before it,
    /// and every live block is described by one.
    fn summaries(&mut self, segment: SegNo, usage: &SegmentUsage, live: &[Live]) -> Result<(), LfsError> {
        let image = self.image;
        let mut addr = self.g.log_start(segment, usage.is(segment_flags::SUPERBLOCK));
        let mut described = Vec::new();
        let (mut last_serial, mut inode_blocks) = (None, 0);
        for i in 0..usage.nsums {
            let partial = match partial_at(&image.store, &self.g, addr) {
                Ok(partial) => partial,
                Err(LfsError::Io(error)) => return Err(error.into()),
                Err(error) => {
                    let message = format!("of {} partial segments, number {i} is missing: {error}", usage.nsums);
                    self.segment_problem("summary", segment, message);
                    break;
                }
            };
            let header = &partial.summary.header;
            if header.ident != self.g.ident
                || last_serial.is_some_and(|last: u64| header.serial != last.wrapping_add(1))
            {
                let message = format!(
                    "the partial segment at {addr} has serial number {} and identity {:#x}, the one before it number \
                     {:?}",
                    header.serial, header.ident, last_serial
                );
                self.segment_problem("serial", segment, message);
            }
            last_serial = Some(header.serial);
            // Of a partial segment with holes the sum may be that from before a cleaner began to fill them and was cut
            // off.
            let from = live.partition_point(|live| live.addr < addr);
            let to = live.partition_point(|live| live.addr < partial.end);
            let whole = to - from == partial.pieces.len();
            if whole && !datasum_is_right(&image.store, &self.g, &partial)? {
                let message = format!("the blocks of the partial segment at {addr} are not those it was written with");
                self.segment_problem("datasum", segment, message);
            }
            inode_blocks += partial.summary.inode_blocks.len();
            described.extend(partial.pieces);
            addr = partial.end;
        }
        if inode_blocks != usize::from(usage.ninos) {
            let message = format!("has {inode_blocks} inode blocks, the usage table says {}", usage.ninos);
            self.segment_problem("ninos", segment, message);
        }
        self.described(segment, live, &described);
        Ok(())
    }

    /// Both lists are in the order of their addresses.
    fn described(&mut self, segment: SegNo, live: &[Live], pieces: &[Piece]) {
        let mut pieces = pieces.iter().peekable();
        for one in live {
            while pieces.next_if(|piece| piece.addr() < one.addr).is_some() {}
            let agrees = pieces.peek().is_some_and(|piece| match **piece {
                Piece::Inodes { addr } => addr == one.addr && one.ino == Ino(0),
                Piece::Block { addr, ino, lbn, bytes, version } => {
                    let at = (addr, ino, lbn, bytes) == (one.addr, one.ino, one.lbn, one.bytes);
                    at && self.image.ifile.entry(ino).is_some_and(|entry| entry.version == version)
                }
            });
            if !agrees {
                let what = if one.ino == Ino(0) {
                    format!("the inode block at {}", one.addr)
                } else {
                    format!("block {} of inode {}, {} bytes at {},", one.lbn, one.ino, one.bytes, one.addr)
                };
                let found = pieces.peek().map_or("nothing".to_owned(), |piece| format!("{piece:?}"));
                let message = format!("{what} is not what its summary says is there: {found}");
                self.segment_problem("described", segment, message);
            }
        }
    }
}
