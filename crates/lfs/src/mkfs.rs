//! Making file systems: the layout of NetBSD's newfs_lfs.
//!
//! The sizes are worked out as `sbin/newfs_lfs/make_lfs.c` does: segment 0 begins at fragment 0 and holds the label and
//! the first superblock, further superblocks are at the beginning of every tenth of the segments, and behind the first
//! one lies a log of one checkpoint: the root directory, the ifile, their inodes. Same options, same bytes.
//!
//! In two things it follows the image that NetBSD's kernel has been seen to mount instead of newfs_lfs, which leaves a
//! last segment unused for the sake of the label, and does not fill in `nspf`. docs/lfs-format.md lists them.

use crate::format::{
    CleanerInfo, DINODE_BYTES, DIR_FORMAT, DIRBLKSIZ, DataSum, Dinode, Disk as _, ENDIAN, FileType, Finfo, FragAddr,
    Geometry, IFILE_FLAGS, IFILE_INO, Ino, InodeMapEntry, LABEL_BYTES, LFS_MAGIC, LFS_VERSION, LOST_FOUND_INO,
    MAX_SUPERBLOCKS, NDADDR, PF_CLEAN, ROOT_INO, SB_PAD_BYTES, SYMLINK_AREA_BYTES, SegNo, SegmentSummary, SegmentUsage,
    SummaryHeader, Superblock, SuperblockFields, Time, fresh_chunk, insert, segment_flags,
};
use crate::{Ifile, LfsError, Store};
use device::store::write;
use rand_core::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::Serialize;
use std::collections::BTreeMap;
use ufs::indirect::{Way, way};

/// Bytes of a sector (`DEV_BSIZE`).
const SECTOR: u32 = 512;
/// Segments between superblocks, at least (`LFS_MIN_SBINTERVAL`).
const MIN_SUPERBLOCK_INTERVAL: u32 = 5;
/// One in so many segments is room for the cleaner (`DFL_MIN_FREE_SEGS`), in a file system of few segments.
const SMALL_MIN_FREE: u32 = 8;
/// Likewise in one of many.
const MIN_FREE: u32 = 20;
/// Segments for the cleaner at least, in a file system of many segments (`MIN_FREE_SEGS`).
const MIN_FREE_SEGMENTS: u32 = 20;
/// Segments for the cleaner alone at least, likewise (`MIN_RESV_SEGS`).
const MIN_RESERVED_SEGMENTS: u32 = 15;
/// From so many segments on there are many: newfs_lfs makes segments smaller until it has them.
const MANY_SEGMENTS: u32 = 4 * MIN_FREE_SEGMENTS;
/// Bytes of a segment where nothing else is asked for (`DFL_LFSSEG`).
const SEGMENT_BYTES: u32 = 1 << 20;

/// What to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MkfsOptions {
    /// Bytes of the file system; what is left after the last segment is not used.
    pub size_bytes: u64,
    /// Bytes of a block: a power of two from 4096 to 32768.
    pub bsize: u32,
    /// Bytes of a fragment: a power of two, at least an eighth of a block and at most 8192.
    pub fsize: u32,
    /// Bytes of a segment, whole fragments; `None` for a megabyte, or less if there would be fewer than 80 segments.
    pub ssize: Option<u32>,
    /// Bytes of an inode block; `None` for a fragment.
    pub ibsize: Option<u32>,
    /// Per cent of space held back.
    pub minfree: u32,
    /// Segments that are room for the cleaner, not counted as space; `None` for a twentieth (of few segments an
    /// eighth).
    pub minfreeseg: Option<u32>,
    /// Segments that only the cleaner may write; `None` for half of those and one.
    pub resvseg: Option<u32>,
    /// Identity of the file system; `None` for one from the seed.
    pub ident: Option<u32>,
    /// Of the identity.
    pub seed: u64,
    /// When it is made, seconds since 1970.
    pub time_s: i64,
    /// Whether to make `lost+found`.
    pub lost_found: bool,
}

impl MkfsOptions {
    /// The usual options: blocks of 8 KiB in fragments of 1 KiB.
    pub fn new(size_bytes: u64) -> MkfsOptions {
        MkfsOptions {
            size_bytes,
            bsize: 8192,
            fsize: 1024,
            ssize: None,
            ibsize: None,
            minfree: 10,
            minfreeseg: None,
            resvseg: None,
            ident: None,
            seed: 1,
            time_s: 0,
            lost_found: false,
        }
    }

    /// Whether these options make a file system: what [`mkfs`] would refuse, before anything is touched.
    pub fn check(&self) -> Result<(), LfsError> {
        let (mut sb, g) = superblock(self)?;
        let log = Log::plan(self, &sb, &g)?;
        log.finish(self, &mut sb, &g).map(drop)
    }
}

/// What was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Made {
    /// Bytes of the segments.
    pub size_bytes: u64,
    /// Bytes of a block.
    pub bsize: u32,
    /// Bytes of a fragment.
    pub fsize: u32,
    /// Segments.
    pub segments: u32,
    /// Bytes of a segment.
    pub ssize: u32,
    /// Segments that are room for the cleaner.
    pub minfreeseg: u32,
    /// Bytes for data.
    pub data_bytes: u64,
    /// Bytes that are free.
    pub free_bytes: u64,
    /// Blocks of the ifile.
    pub ifile_blocks: u64,
    /// Bytes of the superblocks.
    pub superblocks_at: Vec<u64>,
    /// Identity of the file system.
    pub ident: u32,
}

/// Makes a file system in a store that is at least as long as it. Only what it needs is written: what was there before
/// stays in the clean segments, where its partial segments count for nothing since they are of another identity.
pub fn mkfs<S: Store + ?Sized>(store: &mut S, options: &MkfsOptions) -> Result<Made, LfsError> {
    if store.len_bytes() < options.size_bytes {
        let (have, want) = (store.len_bytes(), options.size_bytes);
        return Err(LfsError::Options(format!("a file system of {want} bytes does not fit into {have}")));
    }
    let (mut sb, g) = superblock(options)?;
    let log = Log::plan(options, &sb, &g)?;
    let ifile = log.finish(options, &mut sb, &g)?;
    log.write(store, options, &g, &ifile)?;
    let sb = Superblock::new(sb);
    let mut padded = sb.encode().to_vec();
    padded.resize(SB_PAD_BYTES as usize, 0);
    let superblocks_at: Vec<u64> =
        sb.sboffs.iter().filter(|addr| **addr != 0).map(|addr| g.byte_of(FragAddr(*addr))).collect();
    for at in &superblocks_at {
        write(store, *at, &padded)?;
    }
    Ok(Made {
        size_bytes: u64::from(g.nseg) * u64::from(g.ssize),
        bsize: g.bsize,
        fsize: g.fsize,
        segments: g.nseg,
        ssize: g.ssize,
        minfreeseg: sb.minfreeseg,
        data_bytes: u64::from(sb.dsize) << g.fshift,
        free_bytes: u64::from(sb.bfree.max(0).unsigned_abs()) << g.fshift,
        ifile_blocks: ifile.blocks(&g),
        superblocks_at,
        ident: sb.ident,
    })
}

fn bad(what: impl Into<String>) -> LfsError {
    LfsError::Options(what.into())
}

/// Sizes and places; the checkpoint is still missing.
fn superblock(o: &MkfsOptions) -> Result<(SuperblockFields, Geometry), LfsError> {
    check_options(o)?;
    let size = u32::try_from(o.size_bytes / u64::from(o.fsize)).ok().filter(|n| *n <= i32::MAX as u32);
    let Some(size) = size else {
        let most = (i32::MAX as u64 * u64::from(o.fsize)) >> 30;
        return Err(bad(format!("fragments of {} bytes reach {most} GiB only; larger ones reach further", o.fsize)));
    };
    let ssize = segment_bytes(o, size)?;
    let (fsbpseg, ibsize) = (ssize / o.fsize, o.ibsize.unwrap_or(o.fsize));
    let nseg = size / fsbpseg;
    let (minfreeseg, resvseg) = reserves(o, nseg);
    let interval = (nseg / MAX_SUPERBLOCKS as u32).max(MIN_SUPERBLOCK_INTERVAL);
    if nseg <= interval || nseg < minfreeseg + 4 || resvseg >= nseg {
        return Err(bad(format!(
            "{nseg} segments of {ssize} bytes, {minfreeseg} of them for the cleaner, are too few; make the file system \
larger or the segments smaller"
        )));
    }
    let mut sboffs = [0; MAX_SUPERBLOCKS];
    for (i, place) in (0_u32..).zip(&mut sboffs) {
        *place = match i {
            0 => LABEL_BYTES / o.fsize,
            _ if i * interval < nseg => i * interval * fsbpseg,
            _ => 0,
        };
    }
    let n = u64::from(o.bsize / 4);
    let superblocks = sboffs.iter().filter(|addr| **addr != 0).count() as u32;
    let f = SuperblockFields {
        magic: LFS_MAGIC,
        version: LFS_VERSION,
        size,
        ssize,
        dsize: ((nseg - minfreeseg) * fsbpseg).saturating_sub(superblocks * (SB_PAD_BYTES / o.fsize)),
        bsize: o.bsize,
        fsize: o.fsize,
        frag: o.bsize / o.fsize,
        ifile: IFILE_INO.0,
        inopf: SECTOR / DINODE_BYTES,
        minfree: o.minfree,
        maxfilesize: (NDADDR as u64 + n + n * n + n * n * n) << o.bsize.trailing_zeros(),
        fsbpseg,
        inopb: ibsize / DINODE_BYTES,
        ifpb: o.bsize / InodeMapEntry::BYTES as u32,
        sepb: o.bsize / SegmentUsage::BYTES as u32,
        nindir: o.bsize / 4,
        nseg,
        nspf: o.fsize / SECTOR,
        cleansz: (CleanerInfo::BYTES as u32).div_ceil(o.bsize),
        segtabsz: nseg.div_ceil(o.bsize / SegmentUsage::BYTES as u32),
        bshift: o.bsize.trailing_zeros(),
        ffshift: o.fsize.trailing_zeros(),
        fbshift: (o.bsize / o.fsize).trailing_zeros(),
        bmask: u64::from(o.bsize - 1),
        ffmask: u64::from(o.fsize - 1),
        fbmask: u64::from(o.bsize / o.fsize - 1),
        blktodb: (o.bsize / SECTOR).trailing_zeros(),
        maxsymlinklen: SYMLINK_AREA_BYTES as i32,
        sboffs,
        pflags: PF_CLEAN,
        minfreeseg,
        sumsize: o.fsize,
        ibsize,
        tstamp: o.time_s.max(0).unsigned_abs(),
        ident: o.ident.unwrap_or_else(|| Xoshiro256PlusPlus::seed_from_u64(o.seed).next_u32()),
        fsbtodb: (o.fsize / SECTOR).trailing_zeros(),
        resvseg,
        ..SuperblockFields::default()
    };
    let sb = Superblock::new(f);
    let g = sb.geometry(Superblock::FIRST_AT)?;
    Ok((sb.f, g))
}

fn check_options(o: &MkfsOptions) -> Result<(), LfsError> {
    let power = |name: &str, n: u32, low: u32, high: u32| {
        if n.is_power_of_two() && (low..=high).contains(&n) {
            Ok(())
        } else {
            Err(bad(format!("{name} is a power of two from {low} to {high}, not {n}")))
        }
    };
    power("the block size", o.bsize, 4096, 32768)?;
    power("the fragment size", o.fsize, SECTOR.max(o.bsize / 8), o.bsize.min(LABEL_BYTES))?;
    let ibsize = o.ibsize.unwrap_or(o.fsize);
    if !ibsize.is_multiple_of(o.fsize) || ibsize == 0 || ibsize > o.bsize {
        return Err(bad(format!("an inode block is whole fragments and at most a block, not {ibsize} bytes")));
    }
    if o.minfree > 99 {
        return Err(bad("minfree is at most 99 per cent"));
    }
    Ok(())
}

/// Bytes of a segment: halved until there are many, where nothing else is asked for.
fn segment_bytes(o: &MkfsOptions, size: u32) -> Result<u32, LfsError> {
    // A partial segment with a block, behind label and superblock.
    let least = (LABEL_BYTES + SB_PAD_BYTES + 4 * o.bsize).next_multiple_of(o.fsize);
    if let Some(ssize) = o.ssize {
        if !ssize.is_multiple_of(o.fsize) || ssize < least || ssize > 1 << 30 {
            let fsize = o.fsize;
            return Err(bad(format!(
                "a segment is a multiple of {fsize} bytes from {least} to 1 GiB (a gigabyte), not {ssize}"
            )));
        }
        return Ok(ssize);
    }
    let mut ssize = SEGMENT_BYTES;
    while size / (ssize / o.fsize) < MANY_SEGMENTS && ssize / 2 >= least {
        ssize /= 2;
    }
    Ok(ssize)
}

/// Segments that are room for the cleaner, and those that it alone may write.
fn reserves(o: &MkfsOptions, nseg: u32) -> (u32, u32) {
    let many = nseg >= MANY_SEGMENTS;
    let usual = if many { (nseg / MIN_FREE).max(MIN_FREE_SEGMENTS) } else { (nseg / SMALL_MIN_FREE).max(2) };
    let minfreeseg = o.minfreeseg.unwrap_or(usual).min(nseg);
    let least = if many && o.minfreeseg.is_none() { MIN_RESERVED_SEGMENTS } else { 0 };
    (minfreeseg, o.resvseg.unwrap_or((minfreeseg / 2 + 1).max(least)))
}

/// A block of the first checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Item {
    /// A directory's only block: one fragment.
    Directory(Ino),
    /// A block of the ifile; negative for an indirect one.
    Ifile(i64),
    /// The inodes.
    Inodes,
}

/// The first checkpoint: what is written where.
struct Log {
    /// Each partial segment's summary place, and what is behind it.
    partials: Vec<(FragAddr, Vec<(Item, FragAddr)>)>,
    /// Where each item is.
    addrs: BTreeMap<Item, FragAddr>,
    /// The fragment behind the last.
    end: FragAddr,
    /// Blocks of the ifile, indirect ones not counted.
    ifile_blocks: u64,
}

impl Log {
    fn plan(o: &MkfsOptions, sb: &SuperblockFields, g: &Geometry) -> Result<Log, LfsError> {
        let ifile_blocks = u64::from(g.cleansz + g.segtabsz) + 1;
        let mut items = vec![Item::Directory(ROOT_INO)];
        if o.lost_found {
            items.push(Item::Directory(LOST_FOUND_INO));
        }
        items.extend((0..ifile_blocks as i64).map(Item::Ifile));
        items.extend(indirect_numbers(ifile_blocks, u64::from(g.nindir))?.into_iter().map(Item::Ifile));
        items.push(Item::Inodes);
        let mut log =
            Log { partials: Vec::new(), addrs: BTreeMap::new(), end: g.log_start(SegNo(0), true), ifile_blocks };
        let mut room = 0;
        for item in items {
            let frags = item.bytes(g) >> g.fshift;
            let needed = 16 + 4;
            if room < needed || !log.has_room(g, frags) {
                log.open(sb, g, frags)?;
                room = g.sumsize as usize - SummaryHeader::BYTES;
            }
            room -= needed;
            if let Some((_, pieces)) = log.partials.last_mut() {
                pieces.push((item, log.end));
            }
            log.addrs.insert(item, log.end);
            log.end = log.end.plus(frags);
        }
        if !g.partial_fits(log.end) {
            log.end = log.next_segment(sb, g)?;
        }
        Ok(log)
    }

    /// Whether so many fragments fit the partial segment that is being filled. None ends where its segment does:
    /// NetBSD's roll-forward would take the next segment on the disk for the next one of the log.
    fn has_room(&self, g: &Geometry, frags: u32) -> bool {
        self.partials.last().is_some_and(|(addr, _)| {
            g.within_segment(*addr, self.end.0.saturating_sub(addr.0).saturating_add(frags + 1))
        })
    }

    /// Begins a partial segment that has room for so many fragments at least.
    fn open(&mut self, sb: &SuperblockFields, g: &Geometry, frags: u32) -> Result<(), LfsError> {
        if !g.partial_fits(self.end) || !g.within_segment(self.end, g.sum_frags() + frags + 1) {
            self.end = self.next_segment(sb, g)?;
        }
        self.partials.push((self.end, Vec::new()));
        self.end = self.end.plus(g.sum_frags());
        Ok(())
    }

    fn next_segment(&self, sb: &SuperblockFields, g: &Geometry) -> Result<FragAddr, LfsError> {
        let next = SegNo(g.segment_of(FragAddr(self.end.0 - 1)).map_or(u32::MAX, |s| s.0 + 1));
        if next.0.saturating_add(sb.minfreeseg) >= g.nseg {
            return Err(bad("the segment usage table leaves no room; make the segments larger"));
        }
        Ok(g.log_start(next, has_superblock(sb, g, next)))
    }

    /// Where an item is.
    fn addr(&self, item: Item) -> FragAddr {
        self.addrs.get(&item).copied().unwrap_or_default()
    }

    /// Fills in the checkpoint; the ifile that goes with it.
    fn finish(&self, o: &MkfsOptions, sb: &mut SuperblockFields, g: &Geometry) -> Result<Ifile, LfsError> {
        let current = g.segment_of(self.end).unwrap_or_default();
        let mut usage = (0..g.nseg).map(|n| new_usage(sb, g, SegNo(n))).collect::<Vec<_>>();
        for (addr, pieces) in &self.partials {
            let Some(usage) = g.segment_of(*addr).and_then(|s| usage.get_mut(s.0 as usize)) else { continue };
            usage.flags = usage.flags & !segment_flags::EMPTY | segment_flags::DIRTY;
            usage.nsums += 1;
            usage.lastmod = sb.tstamp;
            for (item, _) in pieces {
                match item {
                    Item::Inodes => {
                        usage.ninos += 1;
                        usage.nbytes += DINODE_BYTES * (2 + u32::from(o.lost_found));
                    }
                    _ => usage.nbytes += item.bytes(g),
                }
            }
        }
        if let Some(usage) = usage.get_mut(current.0 as usize) {
            usage.flags |= segment_flags::DIRTY | segment_flags::ACTIVE;
        }
        self.count(sb, g, &usage, current);
        let last_used = if o.lost_found { LOST_FOUND_INO } else { ROOT_INO };
        let info = CleanerInfo {
            clean: sb.nclean,
            dirty: g.nseg - sb.nclean,
            bfree: sb.bfree,
            avail: sb.avail,
            free_head: last_used.0 + 1,
            free_tail: g.ifpb - 1,
            flags: 0,
        };
        (sb.freehd, sb.nfiles) = (info.free_head, last_used.0);
        let idaddr = sb.idaddr;
        let entry = |i: u32| match i {
            0 => InodeMapEntry { version: 1, ..InodeMapEntry::default() },
            _ if i <= last_used.0 => {
                InodeMapEntry { version: 1, daddr: idaddr, nextfree: 0, atime_sec: o.time_s as u32, atime_nsec: 0 }
            }
            _ => InodeMapEntry { version: 1, nextfree: (i + 1) % g.ifpb, ..InodeMapEntry::default() },
        };
        let inode = self.ifile_inode(o, g);
        Ok(Ifile { inode, info, usage, map: (0..g.ifpb).map(entry).collect() })
    }

    /// The superblock's places and counters.
    fn count(&self, sb: &mut SuperblockFields, g: &Geometry, usage: &[SegmentUsage], current: SegNo) {
        let base = |n: u32| g.segment_base(SegNo(n)).0;
        sb.idaddr = self.addr(Item::Inodes).0;
        sb.curseg = base(current.0);
        sb.lastseg = base(current.0.checked_sub(1).unwrap_or(g.nseg - 1));
        sb.nextseg = base((current.0 + 1) % g.nseg);
        sb.offset = self.end.0;
        sb.lastpseg = self.end.0;
        sb.serial = self.partials.len() as u64;
        sb.nclean = usage.iter().filter(|u| u.is_clean()).count() as u32;
        let meta: u32 =
            usage.iter().map(|u| u32::from(u.nsums) * g.sum_frags() + u32::from(u.ninos) * g.ib_frags()).sum();
        let data: u32 = self.partials.iter().flat_map(|(_, pieces)| pieces).map(|(i, _)| i.data_frags(g)).sum();
        let label = g.frags_of(LABEL_BYTES.into());
        sb.dmeta = meta as i32;
        sb.bfree = sb.dsize as i32 - (label + meta + data) as i32;
        sb.avail = available(sb, g, usage);
    }

    /// The ifile's inode, with where its blocks are.
    fn ifile_inode(&self, o: &MkfsOptions, g: &Geometry) -> Dinode {
        let mut inode = new_inode(IFILE_INO, 0o100_600, self.ifile_blocks << g.bshift, o.time_s);
        inode.flags = IFILE_FLAGS;
        let pieces = self.partials.iter().flat_map(|(_, pieces)| pieces);
        let ifile = pieces.filter_map(|(item, addr)| match item {
            Item::Ifile(lbn) => Some((*lbn, i64::from(addr.0))),
            _ => None,
        });
        for (lbn, addr) in ifile {
            inode.blocks += g.frag;
            if let Some(place) = usize::try_from(lbn).ok().and_then(|lbn| inode.db.get_mut(lbn)) {
                *place = addr;
            }
            if let Some(slot) = top_slot(lbn, u64::from(g.nindir))
                && let Some(place) = inode.ib.get_mut(slot)
            {
                *place = addr;
            }
        }
        inode
    }

    fn write<S: Store + ?Sized>(
        &self,
        store: &mut S,
        o: &MkfsOptions,
        g: &Geometry,
        ifile: &Ifile,
    ) -> Result<(), LfsError> {
        for ((addr, pieces), serial) in self.partials.iter().zip(1..) {
            let segment = g.segment_of(*addr).unwrap_or_default();
            let mut summary = SegmentSummary::new(SummaryHeader {
                next: g.segment_base(SegNo((segment.0 + 1) % g.nseg)).0,
                ident: g.ident,
                serial,
                create: o.time_s.max(0).unsigned_abs(),
                ..SummaryHeader::default()
            });
            let mut sum = DataSum::default();
            for (item, at) in pieces {
                let block = self.content(*item, o, g, ifile);
                sum.add(&block);
                write(store, g.byte_of(*at), &block)?;
                item.describe(*at, o, g, &mut summary);
            }
            summary.header.datasum = sum.get();
            let bytes = summary.encode(g).ok_or_else(|| bad("a summary of one fragment is too small"))?;
            write(store, g.byte_of(*addr), &bytes)?;
        }
        Ok(())
    }

    /// The bytes of an item.
    fn content(&self, item: Item, o: &MkfsOptions, g: &Geometry, ifile: &Ifile) -> Vec<u8> {
        let mut block = vec![0; item.bytes(g) as usize];
        match item {
            Item::Directory(ino) => {
                for (place, byte) in block.iter_mut().zip(directory(ino, o.lost_found)) {
                    *place = byte;
                }
            }
            Item::Ifile(lbn) if lbn >= 0 => return ifile.block(g, lbn.unsigned_abs()),
            Item::Ifile(number) => {
                for (i, child) in children(number, self.ifile_blocks, u64::from(g.nindir)) {
                    (self.addr(Item::Ifile(child)).0).put(ENDIAN, &mut block, i * 4);
                }
            }
            Item::Inodes => {
                let mut inodes = vec![ifile.inode.clone(), self.directory_inode(ROOT_INO, o, g)];
                if o.lost_found {
                    inodes.push(self.directory_inode(LOST_FOUND_INO, o, g));
                }
                for (place, inode) in block.chunks_exact_mut(DINODE_BYTES as usize).zip(&inodes) {
                    inode.encode(place);
                }
            }
        }
        block
    }

    fn directory_inode(&self, ino: Ino, o: &MkfsOptions, g: &Geometry) -> Dinode {
        let mut inode = new_inode(ino, 0o040_755, DIRBLKSIZ as u64, o.time_s);
        inode.nlink = if ino == ROOT_INO && o.lost_found { 3 } else { 2 };
        inode.blocks = Item::Directory(ino).bytes(g) >> g.fshift;
        if let Some(first) = inode.db.first_mut() {
            *first = self.addr(Item::Directory(ino)).0.into();
        }
        inode
    }
}

impl Item {
    /// Bytes on disk.
    fn bytes(self, g: &Geometry) -> u32 {
        match self {
            Item::Directory(_) => (DIRBLKSIZ as u32).next_multiple_of(g.fsize),
            Item::Ifile(_) => g.bsize,
            Item::Inodes => g.ibsize,
        }
    }

    /// Fragments of a file's data that it is.
    fn data_frags(self, g: &Geometry) -> u32 {
        if self == Item::Inodes { 0 } else { self.bytes(g) >> g.fshift }
    }

    /// Enters it into its summary.
    fn describe(self, at: FragAddr, o: &MkfsOptions, g: &Geometry, summary: &mut SegmentSummary) {
        let (ino, lbn) = match self {
            Item::Directory(ino) => (ino, 0),
            Item::Ifile(lbn) => (IFILE_INO, lbn as i32),
            Item::Inodes => {
                summary.inode_blocks.push(at);
                summary.header.ninos = 2 + u16::from(o.lost_found);
                return;
            }
        };
        match summary.finfos.last_mut() {
            Some(finfo) if finfo.ino == ino => finfo.lbns.push(lbn),
            _ => summary.finfos.push(Finfo { version: 1, ino, lastlength: self.bytes(g), lbns: vec![lbn] }),
        }
    }
}

/// The entry of a segment before anything is in it.
fn new_usage(sb: &SuperblockFields, g: &Geometry, segment: SegNo) -> SegmentUsage {
    let superblock = if has_superblock(sb, g, segment) { segment_flags::SUPERBLOCK } else { 0 };
    SegmentUsage { flags: segment_flags::EMPTY | superblock, ..SegmentUsage::default() }
}

fn has_superblock(sb: &SuperblockFields, g: &Geometry, segment: SegNo) -> bool {
    sb.sboffs.iter().any(|addr| *addr != 0 && g.segment_of(FragAddr(*addr)) == Some(segment))
}

/// Fragments that can be written before segments must be cleaned, as newfs_lfs and fsck_lfs count them: what is left of
/// the current segment and all clean ones, less half of the cleaner's.
pub fn available(sb: &SuperblockFields, g: &Geometry, usage: &[SegmentUsage]) -> i32 {
    let clean = (0_u32..).map(SegNo).zip(usage).filter(|(_, u)| u.is_clean());
    let room = |(segment, usage): (SegNo, &SegmentUsage)| {
        i64::from(g.segment_end(segment).0 - g.log_start(segment, usage.is(segment_flags::SUPERBLOCK)).0)
    };
    let current = g.segment_of(FragAddr(sb.offset)).map_or(0, |s| i64::from(g.segment_end(s).0 - sb.offset));
    let held = i64::from(sb.minfreeseg - sb.minfreeseg / 2) * i64::from(g.fsbpseg);
    i32::try_from(clean.map(room).sum::<i64>() + current - held).unwrap_or(i32::MAX)
}

fn new_inode(ino: Ino, mode: u16, size: u64, time_s: i64) -> Dinode {
    let time = Time { s: time_s, ns: 0 };
    let (inumber, nlink, generation) = (ino.0, 1, 1);
    Dinode { mode, nlink, inumber, size, atime: time, mtime: time, ctime: time, generation, ..Dinode::default() }
}

/// The chunk of a new directory.
fn directory(ino: Ino, lost_found: bool) -> Vec<u8> {
    let mut chunk = fresh_chunk(DIR_FORMAT);
    let kind = FileType::Directory.entry_type();
    insert(&mut chunk, DIR_FORMAT, ino, kind, b".");
    insert(&mut chunk, DIR_FORMAT, ROOT_INO, kind, b"..");
    if lost_found && ino == ROOT_INO {
        insert(&mut chunk, DIR_FORMAT, LOST_FOUND_INO, kind, b"lost+found");
    }
    chunk
}

/// The ways to the blocks of a file without holes, from the first that needs one.
fn ways(blocks: u64, n: u64) -> impl Iterator<Item = (u64, Way)> {
    (NDADDR as u64..blocks).filter_map(move |lbn| way(lbn, n).map(|way| (lbn, way)))
}

/// Numbers of the indirect blocks of a file without holes, those that point to data first.
fn indirect_numbers(blocks: u64, n: u64) -> Result<Vec<i64>, LfsError> {
    if blocks > NDADDR as u64 && way(blocks - 1, n).is_none() {
        return Err(bad("there are more segments than a segment usage table can hold"));
    }
    let mut numbers: Vec<(usize, i64)> = Vec::new();
    for (_, way) in ways(blocks, n).filter(|(_, way)| way.index == 0) {
        for (i, number) in way.numbers.iter().take(way.slot + 1).enumerate() {
            let level = way.slot - i;
            if !numbers.contains(&(level, *number)) {
                numbers.push((level, *number));
            }
        }
    }
    numbers.sort_by_key(|(level, number)| (*level, -*number));
    Ok(numbers.into_iter().map(|(_, number)| number).collect())
}

/// What an indirect block of a file without holes points to: place and block number.
fn children(number: i64, blocks: u64, n: u64) -> Vec<(usize, i64)> {
    let Some((first, level)) = ufs::indirect::of_number(number, n) else { return Vec::new() };
    let span = n.pow(level);
    let at = |i: u64| first + i * span;
    let child = |i: u64| if level == 0 { at(i) as i64 } else { -(at(i) as i64) - i64::from(level - 1) };
    (0..n).take_while(|i| at(*i) < blocks).map(|i| (i as usize, child(i))).collect()
}

/// Which of an inode's indirect pointers leads to an indirect block directly.
fn top_slot(number: i64, n: u64) -> Option<usize> {
    let (first, level) = ufs::indirect::of_number(number, n)?;
    let way = way(first, n)?;
    (way.slot == level as usize && way.numbers.first() == Some(&number)).then_some(way.slot)
}
