//! What is in an image, structure by structure, for people and programs to look at.

use crate::format::{
    Field, FileType, FragAddr, IFILE_INO, Ino, InodeMapEntry, Piece, SegNo, SegmentUsage, segment_flags, summary_flags,
};
use crate::image::superblock_at;
use crate::recover::{Partial, datasum_is_right, partial_at};
use crate::{Image, LfsError, Store};
use serde::Serialize;
pub use ufs::image::{DirectoryDump, EntryRow};

/// A superblock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SuperblockDump {
    /// Its byte in the image.
    pub at_byte: u64,
    /// Every superblock: its byte, and its serial number if it is whole.
    pub all: Vec<(u64, Option<u64>)>,
    /// Every field with its byte in the superblock.
    pub fields: Vec<Field>,
}

/// A line of the segment usage table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SegmentRow {
    /// Which.
    pub segment: u32,
    /// First fragment.
    pub base: u32,
    /// Live bytes.
    pub nbytes: u32,
    /// Live bytes as a share of the segment.
    pub utilisation: f64,
    /// Partial segments.
    pub nsums: u16,
    /// Inode blocks.
    pub ninos: u16,
    /// When it was last written, seconds.
    pub lastmod: u64,
    /// Its flags in words.
    pub flags: Vec<&'static str>,
}

/// A partial segment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PartialRow {
    /// Fragment of its summary.
    pub addr: u32,
    /// The fragment behind it.
    pub end: u32,
    /// Its serial number.
    pub serial: u64,
    /// When it was written, seconds.
    pub create: u64,
    /// Where the log goes on when the segment is full.
    pub next: u32,
    /// Its flags in words.
    pub flags: Vec<&'static str>,
    /// Inodes.
    pub ninos: u16,
    /// Whether the blocks are those that it was written with.
    pub datasum_is_right: bool,
    /// What is in it.
    pub pieces: Vec<Piece>,
}

/// A segment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SegmentDump {
    /// Its line of the usage table.
    pub usage: SegmentRow,
    /// Its partial segments, as far as each follows the one before; behind those that count, what is left
    /// over from before the segment was clean.
    pub partials: Vec<PartialRow>,
    /// How many of them the usage table counts, or roll-forward found.
    pub counted: u16,
    /// Why there are no more.
    pub ended_by: String,
}

/// A stretch of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RunRow {
    /// First block of the file; negative for an indirect block.
    pub lbn: i64,
    /// First fragment.
    pub addr: u32,
    /// Its segment.
    pub segment: u32,
    /// Bytes on disk.
    pub bytes: u64,
}

/// An inode.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InodeDump {
    /// Which.
    pub ino: u32,
    /// Fragment of its inode block.
    pub addr: u32,
    /// The segment of that.
    pub segment: u32,
    /// What it is.
    pub file_type: Option<FileType>,
    /// Its entry of the inode map.
    pub map: Option<InodeMapEntry>,
    /// Its fields.
    pub fields: Vec<Field>,
    /// Where its blocks are.
    pub runs: Vec<RunRow>,
    /// The target of a symbolic link, escaped.
    pub target: Option<String>,
}

/// The ifile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct IfileDump {
    /// Its size in blocks.
    pub blocks: u64,
    /// Cleaner information.
    pub cleaner: Vec<Field>,
    /// Inodes that there is an entry for.
    pub entries: u64,
    /// Inodes in use.
    pub in_use: Vec<MapRow>,
    /// Free inodes.
    pub free: u64,
}

/// An inode in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct MapRow {
    /// Which.
    pub ino: u32,
    /// Its version.
    pub version: u32,
    /// Fragment of its inode block; of the ifile, the stale one of the map.
    pub addr: u32,
    /// Last read, seconds.
    pub atime: u32,
}

/// Flags in words, by their bits.
type Words = &'static [(u32, &'static str)];

const SEGMENT_FLAGS: Words = &[
    (segment_flags::ACTIVE, "active"),
    (segment_flags::DIRTY, "dirty"),
    (segment_flags::SUPERBLOCK, "superblock"),
    (segment_flags::ERROR, "error"),
    (segment_flags::EMPTY, "empty"),
    (segment_flags::INVALID, "invalid"),
];
const SUMMARY_FLAGS: Words = &[
    (summary_flags::DIROP as u32, "dirop"),
    (summary_flags::CONT as u32, "cont"),
    (summary_flags::CLEAN as u32, "clean"),
    (summary_flags::RFW as u32, "rfw"),
    (summary_flags::RECLAIM as u32, "reclaim"),
];

fn words(flags: u32, all: Words) -> Vec<&'static str> {
    all.iter().filter(|(bit, _)| flags & bit != 0).map(|(_, word)| *word).collect()
}

impl<S: Store> Image<S> {
    /// The superblock.
    pub fn dump_superblock(&self) -> SuperblockDump {
        let places = self.sb.sboffs.iter().take_while(|addr| **addr != 0);
        let all = places.map(|addr| {
            let at = self.geometry.byte_of(FragAddr(*addr));
            (at, superblock_at(&self.store, at).ok().map(|located| located.sb.serial))
        });
        SuperblockDump { at_byte: self.superblock_at(), all: all.collect(), fields: self.sb.f.fields() }
    }

    /// The segment usage table.
    pub fn dump_segments(&self) -> Vec<SegmentRow> {
        (0_u32..).map(SegNo).zip(&self.ifile.usage).map(|(segment, usage)| self.segment_row(segment, usage)).collect()
    }

    fn segment_row(&self, segment: SegNo, usage: &SegmentUsage) -> SegmentRow {
        SegmentRow {
            segment: segment.0,
            base: self.geometry.segment_base(segment).0,
            nbytes: usage.nbytes,
            utilisation: f64::from(usage.nbytes) / f64::from(self.geometry.ssize),
            nsums: usage.nsums,
            ninos: usage.ninos,
            lastmod: usage.lastmod,
            flags: words(usage.flags, SEGMENT_FLAGS),
        }
    }

    /// A segment and its partial segments.
    pub fn dump_segment(&self, segment: SegNo) -> Result<SegmentDump, LfsError> {
        let Some(usage) = self.ifile.usage(segment) else {
            let problem = format!("there are segments 0 to {} only", self.geometry.nseg - 1);
            return Err(LfsError::Path { path: format!("segment {segment}"), problem });
        };
        let mut addr = self.geometry.log_start(segment, usage.is(segment_flags::SUPERBLOCK));
        let mut partials: Vec<PartialRow> = Vec::new();
        let ended_by = loop {
            match partial_at(&self.store, &self.geometry, addr) {
                Ok(partial) => {
                    addr = partial.end;
                    partials.push(self.partial_row(partial)?);
                }
                Err(LfsError::Io(error)) => return Err(error.into()),
                Err(LfsError::Format(error)) => break error.to_string(),
                Err(error) => break error.to_string(),
            }
        };
        Ok(SegmentDump { usage: self.segment_row(segment, usage), partials, counted: usage.nsums, ended_by })
    }

    fn partial_row(&self, partial: Partial) -> Result<PartialRow, LfsError> {
        let datasum_is_right = datasum_is_right(&self.store, &self.geometry, &partial)?;
        let Partial { addr, end, summary, pieces } = partial;
        let header = summary.header;
        Ok(PartialRow {
            addr: addr.0,
            end: end.0,
            serial: header.serial,
            create: header.create,
            next: header.next,
            flags: words(header.flags.into(), SUMMARY_FLAGS),
            ninos: header.ninos,
            datasum_is_right,
            pieces,
        })
    }

    /// The ifile.
    pub fn dump_ifile(&self) -> IfileDump {
        let row = |(ino, entry): (Ino, &InodeMapEntry)| MapRow {
            ino: ino.0,
            version: entry.version,
            addr: entry.daddr,
            atime: entry.atime_sec,
        };
        IfileDump {
            blocks: self.ifile.blocks(&self.geometry),
            cleaner: self.ifile.info.fields(),
            entries: self.ifile.map.len() as u64,
            in_use: self.ifile.in_use().map(row).collect(),
            free: self.ifile.free_list().count() as u64,
        }
    }

    /// An inode that is in use.
    pub fn dump_inode(&self, ino: Ino) -> Result<InodeDump, LfsError> {
        let inode = self.inode(ino)?;
        let segment_of = |addr: FragAddr| self.geometry.segment_of(addr).unwrap_or_default().0;
        let mut runs: Vec<RunRow> = Vec::new();
        self.blocks(ino, &inode, &mut |block| {
            let bytes = u64::from(block.bytes);
            let (addr, segment) = (block.addr.0, segment_of(block.addr));
            match runs.last_mut() {
                // Indirect blocks have a line of their own.
                Some(last)
                    if last.lbn >= 0
                        && block.lbn == last.lbn + last.bytes.div_ceil(self.geometry.bsize.into()) as i64
                        && u64::from(addr) == u64::from(last.addr) + (last.bytes >> self.geometry.fshift)
                        && segment == last.segment =>
                {
                    last.bytes += bytes;
                }
                _ => runs.push(RunRow { lbn: block.lbn, addr, segment, bytes }),
            }
            Ok(())
        })?;
        let file_type = inode.file_type();
        let target = match file_type {
            Some(FileType::Symlink) => Some(crate::text::escaped(&self.symlink(ino, &inode)?)),
            _ => None,
        };
        let at = if ino == IFILE_INO { Some(FragAddr(self.sb.idaddr)) } else { self.ifile.daddr(ino) };
        let at = at.unwrap_or_default();
        let map = self.ifile.entry(ino).cloned();
        let fields = inode.fields();
        Ok(InodeDump { ino: ino.0, addr: at.0, segment: segment_of(at), file_type, map, fields, runs, target })
    }

    /// A directory.
    pub fn dump_directory(&self, ino: Ino) -> Result<DirectoryDump, LfsError> {
        ufs::image::dump_directory(self, ino)
    }
}
