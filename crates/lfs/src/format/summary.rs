//! The summary of a partial segment (`SEGSUM`, `FINFO`): what the fragments behind it are.
//!
//! A partial segment is what is written at once: a summary, then blocks of files and inode blocks. The summary begins
//! with a header of 48 bytes; behind it are the FINFOs, one for each file with blocks here; from its end down are the
//! addresses of the inode blocks, the first one last. Blocks lie in the order of the FINFOs and of the numbers in them;
//! an inode block lies wherever its address says: before the blocks of one of the FINFOs, or behind all of them.

use super::{ENDIAN, FragAddr, Geometry, Ino, cksum};
use serde::Serialize;
use ufs::{Disk as _, FormatError, on_disk};

/// `SS_MAGIC`.
pub const SUMMARY_MAGIC: u32 = 0x0006_1561;
const FINFO_BYTES: usize = 16;

/// Bits of [`SummaryHeader::flags`].
pub mod summary_flags {
    /// Holds directory operations: it and those before it with [`CONT`] count together or not at all.
    pub const DIROP: u16 = 1;
    /// More partial segments of the same directory operations follow.
    pub const CONT: u16 = 2;
    /// Written by the cleaner.
    pub const CLEAN: u16 = 4;
    /// Written by roll-forward.
    pub const RFW: u16 = 8;
    /// Written while an inode was being reclaimed.
    pub const RECLAIM: u16 = 0x10;
}

on_disk! {
    /// The header of a summary.
    pub struct SummaryHeader {
        /// [`cksum`] of the summary from byte 4 on.
        0 sumsum: u32,
        /// [`DataSum`] of the blocks behind the summary.
        4 datasum: u32,
        /// [`SUMMARY_MAGIC`].
        8 magic: u32,
        /// Beginning of the segment in which the log goes on when this one is full.
        12 next: u32,
        /// `ident` of the superblock.
        16 ident: u32,
        /// FINFOs.
        20 nfinfo: u16,
        /// Inodes (not inode blocks).
        22 ninos: u16,
        /// See [`summary_flags`].
        24 flags: u16,
        /// Not used.
        26 pad: u16,
        /// The inode being reclaimed; 0 for none.
        28 reclino: u32,
        /// Counts partial segments; the next one written has one more.
        32 serial: u64,
        /// When it was written, seconds.
        40 create: u64,
    }
}

impl SummaryHeader {
    /// Bytes of it.
    pub const BYTES: usize = 48;
}

/// Blocks of one file in a partial segment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finfo {
    /// `version` of the inode in the inode map.
    pub version: u32,
    /// Whose they are.
    pub ino: Ino,
    /// Bytes on disk of the last of them: whole fragments. All others are whole blocks.
    pub lastlength: u32,
    /// Their numbers; negative ones are indirect blocks (see [`ufs::indirect`]).
    pub lbns: Vec<i32>,
}

/// Something behind a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Piece {
    /// An inode block.
    Inodes {
        /// Where.
        addr: FragAddr,
    },
    /// A block of a file.
    Block {
        /// Where.
        addr: FragAddr,
        /// Whose.
        ino: Ino,
        /// Which version of that inode.
        version: u32,
        /// Which block; negative for an indirect one.
        lbn: i32,
        /// Bytes on disk.
        bytes: u32,
    },
}

impl Piece {
    /// Where it is.
    pub fn addr(&self) -> FragAddr {
        match *self {
            Piece::Inodes { addr } | Piece::Block { addr, .. } => addr,
        }
    }
}

/// The checksum of a partial segment's blocks: [`cksum`] of the first 4 bytes of each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DataSum(u32);

impl DataSum {
    /// Adds a block of a file, or an inode block.
    pub fn add(&mut self, block: &[u8]) {
        self.0 ^= cksum(block.get(..4).unwrap_or(block));
    }

    /// The sum.
    pub fn get(self) -> u32 {
        self.0
    }
}

/// A summary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentSummary {
    /// Its header. `nfinfo` and `sumsum` follow from the rest when it is written.
    pub header: SummaryHeader,
    /// The files with blocks in the partial segment.
    pub finfos: Vec<Finfo>,
    /// Where its inode blocks are, in the order in which they lie.
    pub inode_blocks: Vec<FragAddr>,
    /// The bytes it was read from: what has no name is kept from here.
    raw: Vec<u8>,
}

impl SegmentSummary {
    /// An empty one.
    pub fn new(header: SummaryHeader) -> SegmentSummary {
        let header = SummaryHeader { magic: SUMMARY_MAGIC, ..header };
        SegmentSummary { header, finfos: Vec::new(), inode_blocks: Vec::new(), raw: Vec::new() }
    }

    /// Reads one from its bytes, which are at byte `at_byte` of the image. Magic and checksum must be right, and what
    /// the header counts must fit.
    pub fn decode(bytes: &[u8], g: &Geometry, at_byte: u64) -> Result<SegmentSummary, FormatError> {
        let structure = || "segment summary".to_owned();
        let wrong = |(field, at): (&'static str, u64), problem: String| {
            FormatError::field(structure(), field, at_byte + at, problem)
        };
        let Some(raw) = bytes.get(..g.sumsize as usize) else {
            let (needed, found) = (g.sumsize as usize, bytes.len());
            return Err(FormatError::Short { structure: structure(), at_byte, needed, found });
        };
        let header = SummaryHeader::get(ENDIAN, raw);
        if header.magic != SUMMARY_MAGIC {
            let (at_byte, found) = (at_byte + 8, header.magic);
            return Err(FormatError::Magic { structure: structure(), at_byte, found, expected: SUMMARY_MAGIC });
        }
        let right = cksum(raw.get(4..).unwrap_or_default());
        if header.sumsum != right {
            return Err(wrong(
                SummaryHeader::sumsum.place(),
                format!("{:#x} is not that of its bytes, {right:#x}", header.sumsum),
            ));
        }
        let blocks = u32::from(header.ninos).div_ceil(g.inopb) as usize;
        let Some(end) = raw.len().checked_sub(4 * blocks).filter(|end| *end >= SummaryHeader::BYTES) else {
            return Err(wrong(
                SummaryHeader::ninos.place(),
                format!("{} inodes are more than a summary has room for", header.ninos),
            ));
        };
        let inode_blocks =
            (0..blocks).map(|i| FragAddr(u32::get(ENDIAN, raw, raw.len() - 4 * (i + 1)))).collect::<Vec<_>>();
        let mut finfos = Vec::new();
        let mut at = SummaryHeader::BYTES;
        for _ in 0..header.nfinfo {
            let nblocks = u32::get(ENDIAN, raw, at) as usize;
            let next = nblocks.checked_mul(4).and_then(|bytes| bytes.checked_add(at + FINFO_BYTES));
            let Some(next) = next.filter(|next| *next <= end) else {
                return Err(wrong(
                    ("nblocks", at as u64),
                    format!("{nblocks} blocks of a file do not fit the summary"),
                ));
            };
            finfos.push(Finfo {
                version: u32::get(ENDIAN, raw, at + 4),
                ino: Ino(u32::get(ENDIAN, raw, at + 8)),
                lastlength: u32::get(ENDIAN, raw, at + 12),
                lbns: (0..nblocks).map(|i| i32::get(ENDIAN, raw, at + FINFO_BYTES + 4 * i)).collect(),
            });
            at = next;
        }
        Ok(SegmentSummary { header, finfos, inode_blocks, raw: raw.to_vec() })
    }

    /// Its bytes, the checksum worked out anew; `None` if they do not fit.
    pub fn encode(&self, g: &Geometry) -> Option<Vec<u8>> {
        if self.bytes() > g.sumsize as usize {
            return None;
        }
        let mut bytes = self.raw.clone();
        bytes.resize(g.sumsize as usize, 0);
        let header = SummaryHeader { nfinfo: u16::try_from(self.finfos.len()).ok()?, ..self.header.clone() };
        header.put(ENDIAN, &mut bytes);
        let mut at = SummaryHeader::BYTES;
        for finfo in &self.finfos {
            let words = [finfo.lbns.len() as u32, finfo.version, finfo.ino.0, finfo.lastlength];
            words.put(ENDIAN, &mut bytes, at);
            at += FINFO_BYTES;
            for lbn in &finfo.lbns {
                lbn.put(ENDIAN, &mut bytes, at);
                at += 4;
            }
        }
        for (i, addr) in self.inode_blocks.iter().enumerate() {
            let at = bytes.len() - 4 * (i + 1);
            addr.0.put(ENDIAN, &mut bytes, at);
        }
        cksum(bytes.get(4..).unwrap_or_default()).put(ENDIAN, &mut bytes, 0);
        Some(bytes)
    }

    /// Bytes of it that are in use: at most `sumsize`. A further file takes 16, a further block or inode block 4.
    pub fn bytes(&self) -> usize {
        let finfos = self.finfos.iter().map(|finfo| FINFO_BYTES + 4 * finfo.lbns.len()).sum::<usize>();
        SummaryHeader::BYTES + finfos + 4 * self.inode_blocks.len()
    }

    /// Whether there is nothing in it: roll-forward takes such a one for the end of the log.
    pub fn is_empty(&self) -> bool {
        self.finfos.is_empty() && self.header.ninos == 0
    }

    /// Whether a flag is set.
    pub fn is(&self, flag: u16) -> bool {
        self.header.flags & flag != 0
    }

    /// What is behind the summary at `at`, in the order in which it lies, and the fragment behind it all. An error
    /// where that leaves the segment, or an inode block is at a place that no block ends at.
    pub fn pieces(&self, g: &Geometry, at: FragAddr) -> Result<(Vec<Piece>, FragAddr), FormatError> {
        let wrong = |field, problem| FormatError::field("segment summary", field, g.byte_of(at), problem);
        let mut pieces = Vec::new();
        let mut next = at.plus(g.sum_frags());
        let mut inode_blocks = self.inode_blocks.iter().copied().peekable();
        let mut inodes_here = |pieces: &mut Vec<Piece>, next: &mut FragAddr| {
            while let Some(addr) = inode_blocks.next_if_eq(next) {
                pieces.push(Piece::Inodes { addr });
                *next = next.plus(g.ib_frags());
            }
            inode_blocks.peek().copied()
        };
        for finfo in &self.finfos {
            inodes_here(&mut pieces, &mut next);
            if finfo.lastlength == 0 || finfo.lastlength > g.bsize || finfo.lbns.is_empty() {
                let problem = format!(
                    "{} blocks of inode {}, {} bytes in the last",
                    finfo.lbns.len(),
                    finfo.ino,
                    finfo.lastlength
                );
                return Err(wrong("lastlength", problem));
            }
            for (i, lbn) in finfo.lbns.iter().enumerate() {
                let last = i + 1 == finfo.lbns.len();
                let bytes = if last { finfo.lastlength.next_multiple_of(g.fsize) } else { g.bsize };
                pieces.push(Piece::Block { addr: next, ino: finfo.ino, version: finfo.version, lbn: *lbn, bytes });
                next = next.plus(bytes >> g.fshift);
            }
        }
        if let Some(addr) = inodes_here(&mut pieces, &mut next) {
            return Err(wrong("inode blocks", format!("the one at {addr} is not behind a file's blocks")));
        }
        if !g.within_segment(at, next.0 - at.0) {
            return Err(wrong("nfinfo", format!("its blocks reach to {next}, out of the segment")));
        }
        Ok((pieces, next))
    }
}
