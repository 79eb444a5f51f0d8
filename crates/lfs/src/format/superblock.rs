//! The superblock (`struct dlfs`): 512 bytes.

use super::{ENDIAN, LABEL_BYTES, cksum};
use ufs::{Disk as _, FormatError, Text, on_disk};

/// `LFS_MAGIC`.
pub const LFS_MAGIC: u32 = 0x0007_0162;
/// The version that this crate reads and writes.
pub const LFS_VERSION: u32 = 2;
/// Bytes of a superblock.
pub const SB_BYTES: usize = 512;
/// Superblocks that a file system has at most (`LFS_MAXNUMSB`).
pub const MAX_SUPERBLOCKS: usize = 10;
/// Bit of `pflags`: unmounted cleanly, so that nothing behind the checkpoint need be looked for.
pub const PF_CLEAN: u16 = 1;
const CKSUM_AT: usize = 508;

on_disk! {
    /// The fields of the superblock as they stand on disk. Addresses and counts are in fragments unless said otherwise.
    ///
    /// The fields from `freehd` to `lastpseg` are a checkpoint: with them everything else is found. Those from
    /// `maxfilesize` on that follow from others are checked by [`Geometry::new`](super::Geometry::new), and not read.
    pub struct SuperblockFields {
        /// [`LFS_MAGIC`].
        0 magic: u32,
        /// [`LFS_VERSION`].
        4 version: u32,
        /// Fragments of the disk.
        8 size: u32,
        /// Bytes of a segment.
        12 ssize: u32,
        /// Fragments for data: those of all segments but `minfreeseg`, less the superblocks' room.
        16 dsize: u32,
        /// Bytes of a block.
        20 bsize: u32,
        /// Bytes of a fragment.
        24 fsize: u32,
        /// Fragments of a block.
        28 frag: u32,
        /// First inode of the free list; version 2 has it in the ifile's cleaner information, and copies it here.
        32 freehd: u32,
        /// Free fragments: `dsize` less what is live and less `dmeta`.
        36 bfree: i32,
        /// Inodes in use, the ifile's included (newfs counts the ifile and the root).
        40 nfiles: u32,
        /// Fragments that can be written before segments must be cleaned.
        44 avail: i32,
        /// Inodes in memory that are to be written; of no meaning on disk.
        48 uinodes: i32,
        /// Fragment of the inode block that has the ifile's inode.
        52 idaddr: u32,
        /// The ifile's inode: 1.
        56 ifile: u32,
        /// Beginning of the segment written before `curseg`.
        60 lastseg: u32,
        /// Beginning of the segment to be written after `curseg`; chosen in advance, since summaries name it.
        64 nextseg: u32,
        /// Beginning of the segment being written.
        68 curseg: u32,
        /// Where the next partial segment goes: roll-forward begins here.
        72 offset: u32,
        /// NetBSD: the same as `offset` when a checkpoint is complete.
        76 lastpseg: u32,
        /// Inodes of a sector. (Version 1: time stamp.)
        80 inopf: u32,
        /// Per cent of space held back.
        84 minfree: u32,
        /// Largest file, bytes.
        88 maxfilesize: u64,
        /// Fragments of a segment.
        96 fsbpseg: u32,
        /// Inodes of an inode block.
        100 inopb: u32,
        /// Inode-map entries of a block.
        104 ifpb: u32,
        /// Segment-usage entries of a block.
        108 sepb: u32,
        /// Pointers of an indirect block.
        112 nindir: u32,
        /// Segments.
        116 nseg: u32,
        /// Sectors of a fragment; newfs leaves it 0.
        120 nspf: u32,
        /// Blocks of the ifile for cleaner information.
        124 cleansz: u32,
        /// Blocks of the ifile for segment usage.
        128 segtabsz: u32,
        /// Version 1.
        132 segmask: u32,
        /// Version 1.
        136 segshift: u32,
        /// log2 `bsize`.
        140 bshift: u32,
        /// log2 `fsize`.
        144 ffshift: u32,
        /// log2 `frag`.
        148 fbshift: u32,
        /// `bsize` - 1.
        152 bmask: u64,
        /// `fsize` - 1.
        160 ffmask: u64,
        /// `frag` - 1.
        168 fbmask: u64,
        /// log2 of sectors of a block.
        176 blktodb: u32,
        /// Version 1.
        180 sushift: u32,
        /// A symbolic link shorter than this is kept in its inode.
        184 maxsymlinklen: i32,
        /// Fragments of the superblocks; 0 for none. The first two are written by checkpoints in turn, the others by
        /// newfs only.
        188 sboffs: [u32; MAX_SUPERBLOCKS],
        /// Clean segments.
        228 nclean: u32,
        /// Last mounted on.
        232 fsmnt: Text<90>,
        /// See [`PF_CLEAN`].
        322 pflags: u16,
        /// Fragments of summaries and inode blocks in dirty segments.
        324 dmeta: i32,
        /// Segments not counted in `dsize`: room for the cleaner.
        328 minfreeseg: u32,
        /// Bytes of a summary.
        332 sumsize: u32,
        /// Serial number of the last partial segment of the checkpoint.
        336 serial: u64,
        /// Bytes of an inode block.
        344 ibsize: u32,
        /// Fragment where segment 0 begins.
        348 s0addr: u32,
        /// When the checkpoint was made, seconds.
        352 tstamp: u64,
        /// Inode format: 0.
        360 inodefmt: u32,
        /// Not used.
        364 interleave: u32,
        /// Identity of the file system: every summary carries it, so that roll-forward takes none of an earlier one.
        368 ident: u32,
        /// log2 of sectors of a fragment.
        372 fsbtodb: u32,
        /// Segments kept for the cleaner alone.
        376 resvseg: u32,
        /// Exclusive or of the 16-bit words before it.
        508 cksum: u32,
    }
}

/// A superblock: its fields, and every byte it was read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Superblock {
    /// The fields.
    pub f: SuperblockFields,
    /// The bytes it was read from: what has no name is kept from here.
    raw: [u8; SB_BYTES],
}

impl std::ops::Deref for Superblock {
    type Target = SuperblockFields;
    fn deref(&self) -> &SuperblockFields {
        &self.f
    }
}

impl std::ops::DerefMut for Superblock {
    fn deref_mut(&mut self) -> &mut SuperblockFields {
        &mut self.f
    }
}

impl Superblock {
    /// One with these fields.
    pub fn new(f: SuperblockFields) -> Superblock {
        Superblock { f, raw: [0; SB_BYTES] }
    }

    /// Reads one from its 512 bytes, which are at byte `at_byte` of the image. Magic, version and checksum must be
    /// right; see [`Geometry::new`](super::Geometry::new) for what must hold before anything is found with it.
    pub fn decode(bytes: &[u8], at_byte: u64) -> Result<Superblock, FormatError> {
        let structure = || "superblock".to_owned();
        let Some(raw) = bytes.first_chunk::<SB_BYTES>() else {
            let (needed, found) = (SB_BYTES, bytes.len());
            return Err(FormatError::Short { structure: structure(), at_byte, needed, found });
        };
        let f = SuperblockFields::get(ENDIAN, raw);
        if f.magic != LFS_MAGIC {
            return Err(FormatError::Magic { structure: structure(), at_byte, found: f.magic, expected: LFS_MAGIC });
        }
        if f.version != LFS_VERSION {
            let problem = format!("{} is not supported, only {LFS_VERSION} is", f.version);
            return Err(FormatError::field("superblock", "version", at_byte + SuperblockFields::version.at, problem));
        }
        let right = cksum(raw.get(..CKSUM_AT).unwrap_or_default());
        if f.cksum != right {
            let problem = format!("{:#x} is not that of its bytes, {right:#x}", f.cksum);
            return Err(FormatError::field("superblock", "cksum", at_byte + SuperblockFields::cksum.at, problem));
        }
        Ok(Superblock { f, raw: *raw })
    }

    /// Its bytes, the checksum worked out anew.
    pub fn encode(&self) -> [u8; SB_BYTES] {
        let mut bytes = self.raw;
        self.f.put(ENDIAN, &mut bytes);
        cksum(bytes.get(..CKSUM_AT).unwrap_or_default()).put(ENDIAN, &mut bytes, CKSUM_AT);
        bytes
    }

    /// Whether it was unmounted cleanly.
    pub fn is_clean(&self) -> bool {
        self.f.pflags & PF_CLEAN != 0
    }

    /// The byte where the first superblock is looked for.
    pub const FIRST_AT: u64 = LABEL_BYTES as u64;
}
