//! The bytes of a block, made on demand.

use super::Lfs;
use super::pointers::Pointer;
use crate::format::{
    CleanerInfo, DINODE_BYTES, DataSum, Disk as _, ENDIAN, InodeMapEntry, SegmentUsage, segment_flags,
};
use crate::ifile_state::IFILE;
use crate::segment::SegmentState;
use crate::segment::plan::InodeSlot;
use kernel::{BlockId, Encode, Ino, LogEncode, LogWrite, Pbn};
use ufs::live::{Files as _, copy};

impl Encode for Lfs {
    fn encode(&self, id: BlockId, _pbn: Pbn, out: &mut [u8]) {
        if id.ino == Ino::DEVICE {
            // The only block outside the log that is ever written.
            copy(&self.sb.encode(), out);
        } else if id.lbn.0 < 0 {
            self.encode_indirect(id, out);
        } else if id.ino == IFILE {
            self.encode_ifile(id.lbn.0 as u64, out);
        } else {
            self.encode_content(id, out);
        }
    }
}

impl LogEncode for Lfs {
    fn encode_piece(&self, _pbn: Pbn, piece: usize, out: &mut [u8]) {
        let partial = self.writing.as_ref().expect("a piece is of a partial segment that is written");
        for (slot, place) in partial.inodes_of(piece).iter().zip(out.chunks_exact_mut(DINODE_BYTES as usize)) {
            match slot {
                InodeSlot::Live(ino) => self.inodes.get(*ino).expect("a live inode is there").d.encode(place),
                InodeSlot::Dead(d) => d.encode(place),
            }
        }
    }

    fn encode_head(&self, write: &LogWrite<'_>, firsts: &[[u8; 4]], out: &mut [u8]) {
        if let Some(summary) = &self.rewriting {
            return copy(summary, out);
        }
        let partial = self.writing.as_ref().expect("a head is of a partial segment that is written");
        let mut summary = partial.summary(write.pieces);
        let mut sum = DataSum::default();
        firsts.iter().for_each(|first| sum.add(first));
        summary.header.datasum = sum.get();
        // The plan has counted the bytes of each entry.
        copy(&summary.encode(&self.g).expect("a summary has room for what was planned"), out);
    }
}

impl Lfs {
    pub(super) fn encode_indirect(&self, id: BlockId, out: &mut [u8]) {
        let Some(indirects) = self.inodes.get(id.ino.0).and_then(|node| node.indirects.as_ref()) else { return };
        indirects.content(id.lbn.0, self.g.nindir.into(), &mut |at, addr: Pointer| {
            (addr as i32).put(ENDIAN, out, at * 4);
        });
    }

    /// A block of the ifile.
    pub(super) fn encode_ifile(&self, lbn: u64, out: &mut [u8]) {
        let g = &self.g;
        let map_at = u64::from(g.cleansz + g.segtabsz);
        if lbn == 0 {
            self.cleaner_info().put(ENDIAN, out);
        } else if lbn >= map_at {
            let first = (lbn - map_at) as u32 * g.ifpb;
            for (ino, place) in (first..).zip(out.chunks_exact_mut(InodeMapEntry::BYTES)).take(g.ifpb as usize) {
                self.map_entry(ino).put(ENDIAN, place);
            }
        } else if lbn >= u64::from(g.cleansz) {
            let first = (lbn - u64::from(g.cleansz)) as u32 * g.sepb;
            for (number, place) in (first..g.nseg).zip(out.chunks_exact_mut(SegmentUsage::BYTES)).take(g.sepb as usize)
            {
                self.usage_entry(number).put(ENDIAN, place);
            }
        }
    }

    /// What the kernel tells a cleaner.
    pub(crate) fn cleaner_info(&self) -> CleanerInfo {
        let clean = self.log.clean + 1;
        CleanerInfo {
            clean,
            dirty: self.g.nseg - clean,
            bfree: self.bfree(),
            avail: self.avail(),
            free_head: self.map.head(),
            free_tail: self.map.tail(),
            flags: 0,
        }
    }

    /// Usage of a segment, as it is on disk.
    pub(crate) fn usage_entry(&self, number: u32) -> SegmentUsage {
        let Some(segment) = self.log.segments.get(number as usize) else { return SegmentUsage::default() };
        let mut flags = if segment.superblock { segment_flags::SUPERBLOCK } else { 0 };
        let current = number == self.log.current.0;
        if segment.state == SegmentState::Dirty || current {
            flags |= segment_flags::DIRTY;
        }
        if current {
            flags |= segment_flags::ACTIVE;
        }
        if segment.live_bytes == 0 {
            flags |= segment_flags::EMPTY;
        }
        SegmentUsage {
            nbytes: segment.live_bytes,
            olastmod: 0,
            nsums: segment.nsums,
            ninos: segment.ninos,
            flags,
            lastmod: segment.lastmod_s,
        }
    }

    /// The entry of an inode, as it is on disk.
    pub(crate) fn map_entry(&self, ino: u32) -> InodeMapEntry {
        let entry = self.map.get(ino).copied().unwrap_or_default();
        let Some(node) = self.inodes.get(ino) else {
            return InodeMapEntry { version: entry.version, nextfree: entry.next, ..InodeMapEntry::default() };
        };
        let orphan = node.d.nlink <= 0;
        InodeMapEntry {
            version: entry.version,
            // The ifile's own place is in the superblock.
            daddr: if ino == IFILE.0 { self.sb.idaddr } else { node.own.daddr.0 },
            nextfree: if orphan { InodeMapEntry::ORPHAN } else { 0 },
            atime_sec: node.d.atime.s as u32,
            atime_nsec: node.d.atime.ns.unsigned_abs(),
        }
    }
}
