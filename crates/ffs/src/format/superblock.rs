//! The superblock (`struct fs`).

use super::{Disk, Endian, FragAddr, Layout, Version, check_hash, check_hashes, on_disk};
use crate::FormatError;
use serde::Serialize;
use ufs::Text;

/// `FS_UFS1_MAGIC`.
pub const UFS1_MAGIC: u32 = 0x0001_1954;
/// `FS_UFS2_MAGIC`.
pub const UFS2_MAGIC: u32 = 0x1954_0119;
/// The most bytes a superblock has (`SBLOCKSIZE`).
pub const SB_SIZE_MAX: usize = 8192;
/// Bytes of the named part.
const NAMED_BYTES: usize = 1376;
const MAGIC_AT: usize = 1372;
/// Where a log's place stands: a magic number, then the inode, first fragment and fragments of its file, and whether it
/// is in use.
pub(crate) const LOG_AT: usize = 888;
/// "FSJP": the place of a log follows.
const LOG_MAGIC: u32 = 0x4653_4A50;

/// Bits of `flags`.
pub mod flags {
    /// Was mounted without having been clean.
    pub const UNCLEAN: i32 = 1;
    /// Soft Updates.
    pub const DOSOFTDEP: i32 = 2;
    /// A foreground check is needed.
    pub const NEEDSFSCK: i32 = 4;
    /// Journaled Soft Updates.
    pub const SUJ: i32 = 8;
    /// `metackhash` says which check hashes are kept.
    pub const METACKHASH: i32 = 0x200;
    /// Those that FreeBSD or NetBSD give a meaning.
    pub const KNOWN: i32 = 0xFFF;
}

/// Bits of `old_flags`.
pub mod old_flags {
    /// The wide fields (64-bit sizes, times, totals) of a UFS1 superblock are in use.
    pub const UPDATED: u8 = 0x80;
}

/// What a group has (`struct csum`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Csum {
    /// Directories.
    pub ndir: i32,
    /// Free whole blocks.
    pub nbfree: i32,
    /// Free inodes.
    pub nifree: i32,
    /// Free fragments outside whole free blocks.
    pub nffree: i32,
}

impl Csum {
    /// Bytes on disk.
    pub const BYTES: usize = 16;

    /// Reads one.
    pub fn decode(bytes: &[u8], endian: Endian) -> Csum {
        Csum::get(endian, bytes, 0)
    }

    /// Writes one.
    pub fn encode(&self, bytes: &mut [u8], endian: Endian) {
        self.put(endian, bytes, 0);
    }
}

impl Disk for Csum {
    const BYTES: usize = 16;
    fn get(endian: Endian, bytes: &[u8], at: usize) -> Csum {
        let [ndir, nbfree, nifree, nffree] = <[i32; 4]>::get(endian, bytes, at);
        Csum { ndir, nbfree, nifree, nffree }
    }
    fn put(&self, endian: Endian, bytes: &mut [u8], at: usize) {
        [self.ndir, self.nbfree, self.nifree, self.nffree].put(endian, bytes, at);
    }
}

/// What the file system has (`struct csum_total`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CsumTotal {
    /// Directories.
    pub ndir: i64,
    /// Free whole blocks.
    pub nbfree: i64,
    /// Free inodes.
    pub nifree: i64,
    /// Free fragments outside whole free blocks.
    pub nffree: i64,
    /// Free clusters; not kept by any system known to us.
    pub numclusters: i64,
    /// Not used.
    pub spare: [i64; 3],
}

impl CsumTotal {
    /// Adds a group's.
    pub fn add(&mut self, group: &Csum) {
        self.ndir += i64::from(group.ndir);
        self.nbfree += i64::from(group.nbfree);
        self.nifree += i64::from(group.nifree);
        self.nffree += i64::from(group.nffree);
    }

    /// Whether the four sums agree.
    pub fn same(&self, other: &CsumTotal) -> bool {
        (self.ndir, self.nbfree, self.nifree, self.nffree) == (other.ndir, other.nbfree, other.nifree, other.nffree)
    }
}

impl Disk for CsumTotal {
    const BYTES: usize = 64;
    fn get(endian: Endian, bytes: &[u8], at: usize) -> CsumTotal {
        let [ndir, nbfree, nifree, nffree, numclusters, a, b, c] = <[i64; 8]>::get(endian, bytes, at);
        CsumTotal { ndir, nbfree, nifree, nffree, numclusters, spare: [a, b, c] }
    }
    fn put(&self, endian: Endian, bytes: &mut [u8], at: usize) {
        let [a, b, c] = self.spare;
        [self.ndir, self.nbfree, self.nifree, self.nffree, self.numclusters, a, b, c].put(endian, bytes, at);
    }
}

on_disk! {
    /// The fields of the superblock as they stand on disk. Counts in fragments unless said otherwise.
    pub struct SuperblockFields {
        /// Of a group: its superblock.
        8 sblkno: i32,
        /// Of a group: its cylinder group block.
        12 cblkno: i32,
        /// Of a group: its inodes.
        16 iblkno: i32,
        /// Of a group: its first data.
        20 dblkno: i32,
        /// UFS1: how far the metadata of successive groups is shifted.
        24 old_cgoffset: i32,
        /// UFS1: after how many groups the shift starts again.
        28 old_cgmask: i32,
        /// Last written, seconds.
        32 old_time: i32,
        /// Size.
        36 old_size: i32,
        /// Data fragments.
        40 old_dsize: i32,
        /// Cylinder groups.
        44 ncg: u32,
        /// Bytes of a block.
        48 bsize: i32,
        /// Bytes of a fragment.
        52 fsize: i32,
        /// Fragments of a block.
        56 frag: i32,
        /// Per cent of space held back.
        60 minfree: i32,
        /// Milliseconds between successive blocks of a file.
        64 old_rotdelay: i32,
        /// Revolutions per second.
        68 old_rps: i32,
        /// Mask of a block's offset.
        72 bmask: i32,
        /// Mask of a fragment's offset.
        76 fmask: i32,
        /// log2 bsize.
        80 bshift: i32,
        /// log2 fsize.
        84 fshift: i32,
        /// Blocks of a cluster.
        88 maxcontig: i32,
        /// Blocks of one file in a group before the next group is taken.
        92 maxbpg: i32,
        /// log2 frag.
        96 fragshift: i32,
        /// log2 of sectors of a fragment.
        100 fsbtodb: i32,
        /// Bytes of the superblock.
        104 sbsize: i32,
        /// Once csmask and csshift.
        108 spare1: [i32; 2],
        /// Pointers of an indirect block.
        116 nindir: i32,
        /// Inodes of a block.
        120 inopb: u32,
        /// Sectors of a fragment.
        124 old_nspf: i32,
        /// 0 saves time, 1 saves space.
        128 optim: i32,
        /// Sectors of a track with spares.
        132 old_npsect: i32,
        /// Interleave of sectors.
        136 old_interleave: i32,
        /// Skew of sector 0 from track to track.
        140 old_trackskew: i32,
        /// Identity of the file system.
        144 id: [i32; 2],
        /// Where the group summaries are.
        152 old_csaddr: i32,
        /// Bytes of the group summaries.
        156 cssize: i32,
        /// Bytes of a cylinder group.
        160 cgsize: i32,
        /// Once tracks of a cylinder.
        164 spare2: i32,
        /// Sectors of a track.
        168 old_nsect: i32,
        /// Sectors of a cylinder.
        172 old_spc: i32,
        /// Cylinders.
        176 old_ncyl: i32,
        /// Cylinders of a group.
        180 old_cpg: i32,
        /// Inodes of a group.
        184 ipg: u32,
        /// Fragments of a group.
        188 fpg: i32,
        /// Totals.
        192 old_cstotal: Csum,
        /// Modified in memory.
        208 fmod: i8,
        /// Unmounted cleanly.
        209 clean: i8,
        /// Mounted read-only.
        210 ronly: i8,
        /// See [`old_flags`].
        211 old_flags: u8,
        /// Last mounted on.
        212 fsmnt: Text<468>,
        /// Volume name.
        680 volname: Text<32>,
        /// System-wide identity.
        712 swuid: u64,
        /// Group searched last.
        724 cgrotor: i32,
        /// Cylinders before the rotational pattern repeats.
        856 old_cpc: i32,
        /// Largest cluster in bytes.
        860 maxbsize: i32,
        /// Unreferenced inodes.
        864 unrefs: i64,
        /// Bytes of the device.
        872 providersize: i64,
        /// Fragments of a group held for metadata.
        880 metaspace: i64,
        /// Byte of this superblock.
        992 sblockactualloc: i64,
        /// Byte of the standard superblock.
        1000 sblockloc: i64,
        /// Totals.
        1008 cstotal: CsumTotal,
        /// Last written, seconds.
        1072 time: i64,
        /// Size.
        1080 size: i64,
        /// Data fragments.
        1088 dsize: i64,
        /// Where the group summaries are.
        1096 csaddr: i64,
        /// Blocks being freed.
        1104 pendingblocks: i64,
        /// Inodes being freed.
        1112 pendinginodes: u32,
        /// Inodes of snapshots.
        1116 snapinum: [u32; 20],
        /// Expected size of a file.
        1196 avgfilesize: u32,
        /// Expected files of a directory.
        1200 avgfpdir: u32,
        /// The cgsize saved by old kernels.
        1204 save_cgsize: i32,
        /// Last mounted or checked, seconds.
        1208 mtime: i64,
        /// Free list of the Soft Updates journal.
        1216 sujfree: i32,
        /// Check hash of the superblock.
        1304 ckhash: u32,
        /// Which check hashes are kept.
        1308 metackhash: u32,
        /// See [`flags`].
        1312 flags: i32,
        /// Sizes counted in a group's cluster summary.
        1316 contigsumsize: i32,
        /// Longest symbolic link kept in an inode.
        1320 maxsymlinklen: i32,
        /// 2: 4.4BSD inodes; -1: 4.2BSD.
        1324 old_inodefmt: i32,
        /// Largest file, bytes.
        1328 maxfilesize: u64,
        /// Complement of bmask.
        1336 qbmask: i64,
        /// Complement of fmask.
        1344 qfmask: i64,
        /// Validates clean.
        1352 state: i32,
        /// 1: rotational tables at postbloff and rotbloff; -1: static ones.
        1356 old_postblformat: i32,
        /// Rotational positions.
        1360 old_nrpos: i32,
        /// Where the table of first blocks by position is.
        1364 old_postbloff: i32,
        /// Where the table of next blocks is.
        1368 old_rotbloff: i32,
        /// Which format.
        1372 magic: u32,
    }
}

/// Where the log lies, as the superblock knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LogPlace {
    /// The inode of its file.
    pub ino: u32,
    /// Its first fragment.
    pub first: FragAddr,
    /// How many there are: whole blocks.
    pub frags: u32,
}

/// A superblock: its fields, and every byte it was read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Superblock {
    /// The fields.
    pub f: SuperblockFields,
    /// Format and byte order.
    pub layout: Layout,
    /// The bytes it was read from: what has no name is kept from here.
    raw: Vec<u8>,
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
    /// A superblock of zeros with its magic.
    pub fn new(layout: Layout) -> Superblock {
        let mut f = SuperblockFields::get(Endian::Little, &[]);
        f.magic = magic(layout.version);
        Superblock { f, layout, raw: vec![0; SB_SIZE_MAX] }
    }

    /// Reads one from the 1376 to 8192 bytes at byte `at_byte` of the image. Only the magic is checked: see
    /// [`Geometry::new`](super::Geometry::new) for what must hold before anything is found with it.
    pub fn decode(bytes: &[u8], at_byte: u64) -> Result<Superblock, FormatError> {
        if bytes.len() < NAMED_BYTES {
            let (needed, found) = (NAMED_BYTES, bytes.len());
            return Err(FormatError::Short { structure: "superblock".into(), at_byte, needed, found });
        }
        let layouts = [Endian::Little, Endian::Big]
            .into_iter()
            .flat_map(|endian| [Version::Ufs2, Version::Ufs1].map(|version| Layout { version, endian }));
        for layout in layouts {
            if u32::get(layout.endian, bytes, MAGIC_AT) == magic(layout.version) {
                let f = SuperblockFields::get(layout.endian, bytes);
                return Ok(Superblock { f, layout, raw: bytes.iter().take(SB_SIZE_MAX).copied().collect() });
            }
        }
        let (found, at_byte) = (u32::get(Endian::Little, bytes, MAGIC_AT), at_byte + MAGIC_AT as u64);
        Err(FormatError::Magic { structure: "superblock".into(), at_byte, found, expected: UFS2_MAGIC })
    }

    /// Its bytes, as many as `sbsize` says (as many as it was read from, where that is not sensible). The check hash is
    /// worked out anew where one is kept.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = self.raw.clone();
        let len = self.sb_bytes().min(bytes.len());
        bytes.truncate(len);
        self.f.put(self.layout.endian, &mut bytes);
        if self.keeps(check_hashes::SUPERBLOCK) {
            0_u32.put(self.layout.endian, &mut bytes, 1304);
            check_hash(&bytes).put(self.layout.endian, &mut bytes, 1304);
        }
        bytes
    }

    /// Bytes of the superblock on disk.
    pub fn sb_bytes(&self) -> usize {
        usize::try_from(self.f.sbsize).ok().filter(|n| (NAMED_BYTES..=SB_SIZE_MAX).contains(n)).unwrap_or(NAMED_BYTES)
    }

    /// Whether the check hash is as it should be; `None` where none is kept.
    pub fn hash_is_right(&self) -> Option<bool> {
        if !self.keeps(check_hashes::SUPERBLOCK) {
            return None;
        }
        let mut bytes = self.raw.clone();
        bytes.truncate(self.sb_bytes());
        0_u32.put(self.layout.endian, &mut bytes, 1304);
        Some(check_hash(&bytes) == self.f.ckhash)
    }

    /// Whether a check hash is kept. NetBSD uses the flag's bit for something else, but leaves `metackhash` zero.
    pub fn keeps(&self, hash: u32) -> bool {
        self.layout.version == Version::Ufs2
            && self.f.flags & flags::METACKHASH != 0
            && self.f.metackhash & !7 == 0
            && self.f.metackhash & hash != 0
    }

    /// The bytes it was read from, rotational tables among them; named fields may have changed since.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.raw
    }

    /// Bytes beyond the named fields, for rotational tables.
    pub fn space_mut(&mut self) -> &mut [u8] {
        self.raw.get_mut(NAMED_BYTES..).unwrap_or_default()
    }

    /// Whether the wide fields (64-bit sizes, totals, times) are those in use: always in UFS2. FreeBSD says so of UFS1
    /// by `maxbsize`, NetBSD by a flag.
    pub fn wide(&self) -> bool {
        self.layout.version == Version::Ufs2
            || self.f.old_flags & old_flags::UPDATED != 0
            || self.f.maxbsize == self.f.bsize
    }

    /// Fragments of the file system.
    pub fn size_frags(&self) -> i64 {
        if self.wide() { self.f.size } else { self.f.old_size.into() }
    }

    /// Data fragments.
    pub fn dsize_frags(&self) -> i64 {
        if self.wide() { self.f.dsize } else { self.f.old_dsize.into() }
    }

    /// Where the group summaries are.
    pub fn csaddr(&self) -> i64 {
        if self.wide() { self.f.csaddr } else { self.f.old_csaddr.into() }
    }

    /// Where the log of a journaled file system lies; `None` where there is none. It stands in bytes that no BSD uses.
    pub fn log_place(&self) -> Option<LogPlace> {
        let endian = self.layout.endian;
        if !self.wide() || u32::get(endian, &self.raw, LOG_AT) != LOG_MAGIC {
            return None;
        }
        let ino = u32::get(endian, &self.raw, LOG_AT + 4);
        let first = FragAddr(u64::get(endian, &self.raw, LOG_AT + 8));
        Some(LogPlace { ino, first, frags: u32::get(endian, &self.raw, LOG_AT + 16) })
    }

    /// Whether it says of itself that it was unmounted in order and nothing is to be done.
    pub(crate) fn is_marked_clean(&self) -> bool {
        self.clean == 1 && !(self.wide() && self.flags & (flags::UNCLEAN | flags::NEEDSFSCK) != 0)
    }

    /// Whether whoever has mounted it writes to the log.
    pub fn log_in_use(&self) -> bool {
        self.log_place().is_some() && u32::get(self.layout.endian, &self.raw, LOG_AT + 20) == 1
    }

    /// Says so.
    pub(crate) fn set_log_in_use(&mut self, in_use: bool) {
        u32::from(in_use).put(self.layout.endian, &mut self.raw, LOG_AT + 20);
    }

    /// There is none.
    pub(crate) fn forget_log(&mut self) {
        0_u32.put(self.layout.endian, &mut self.raw, LOG_AT);
    }

    /// There is a log.
    pub(crate) fn set_log_place(&mut self, place: LogPlace) {
        let endian = self.layout.endian;
        LOG_MAGIC.put(endian, &mut self.raw, LOG_AT);
        place.ino.put(endian, &mut self.raw, LOG_AT + 4);
        place.first.0.put(endian, &mut self.raw, LOG_AT + 8);
        place.frags.put(endian, &mut self.raw, LOG_AT + 16);
    }

    /// When it was last written, seconds.
    pub fn time(&self) -> i64 {
        if self.wide() { self.f.time } else { self.f.old_time.into() }
    }

    /// Totals.
    pub fn cstotal(&self) -> CsumTotal {
        if self.wide() {
            return self.f.cstotal;
        }
        let mut total = CsumTotal::default();
        total.add(&self.f.old_cstotal);
        total
    }

    /// Sets the totals, narrow and wide.
    pub fn set_cstotal(&mut self, total: &CsumTotal) {
        if self.wide() {
            let CsumTotal { numclusters, spare, .. } = self.f.cstotal;
            self.f.cstotal = CsumTotal { numclusters, spare, ..*total };
        }
        if self.layout.version == Version::Ufs1 {
            // UFS1 has no more fragments than an i32 counts; a foreign sum that does not fit is cut to it.
            let narrow = |n: i64| i32::try_from(n).unwrap_or(i32::MAX);
            self.f.old_cstotal = Csum {
                ndir: narrow(total.ndir),
                nbfree: narrow(total.nbfree),
                nifree: narrow(total.nifree),
                nffree: narrow(total.nffree),
            };
        }
    }

    /// Sets the time of the last writing, seconds.
    pub fn set_time(&mut self, time_s: i64) {
        if self.wide() {
            self.f.time = time_s;
        }
        if self.layout.version == Version::Ufs1 {
            self.f.old_time = time_s as i32; // Wraps in 2038, as UFS1 does.
        }
    }
}

fn magic(version: Version) -> u32 {
    match version {
        Version::Ufs1 => UFS1_MAGIC,
        Version::Ufs2 => UFS2_MAGIC,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_those_of_the_header() {
        let fields = SuperblockFields::default().fields();
        let at = |name: &str| fields.iter().find(|f| f.name == name).map(|f| f.at);
        assert_eq!((at("magic"), at("fpg"), at("old_cstotal")), (Some(1372), Some(188), Some(192)));
        assert!(fields.windows(2).all(|pair| pair[0].at < pair[1].at), "in the order of the header");
    }

    #[test]
    fn bytes_without_a_name_are_kept() {
        for endian in [Endian::Little, Endian::Big] {
            let mut bytes: Vec<u8> = (0..2048_u32).map(|i| (i * 7 + 3) as u8).collect();
            UFS1_MAGIC.put(endian, &mut bytes, MAGIC_AT);
            2048_i32.put(endian, &mut bytes, 104);
            let sb = Superblock::decode(&bytes, 0).unwrap();
            assert_eq!(sb.layout, Layout { version: Version::Ufs1, endian });
            assert_eq!(sb.encode(), bytes);
        }
        assert!(matches!(Superblock::decode(&[0; 1376], 8192), Err(FormatError::Magic { at_byte: 9564, .. })));
    }
}
