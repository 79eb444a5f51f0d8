//! Making file systems: the layout of BSD's newfs.
//!
//! Fields and places follow `sbin/newfs/mkfs.c`: superblock at 8192 (UFS1) or 65536 (UFS2), a copy of it in every
//! group, the group summaries at the first data of group 0, then the root directory. UFS1 without a disk geometry takes
//! a group for one cylinder of one track, as newfs has done since rotational layout was given up; with one, metadata is
//! staggered over the tracks and the rotational tables are filled in, as in 4.4BSD. Same options, same bytes.

use crate::format::{
    CsumTotal, CylinderGroup, DIRBLKSIZ, Dinode, Disk as _, Endian, FileType, FragAddr, Geometry, GroupNo,
    GroupOffsets, Ino, Layout, ROOT_INO, Superblock, Time, Version, fresh_chunk, insert, old_flags,
};
use crate::image::write_inode;
use crate::{FfsError, Store};
use device::store::write;
use rand_core::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::Serialize;
use ufs::ImageError as _;

/// Bytes kept for the superblock and each of its copies (`SBLOCKSIZE`).
const SBLOCK_BYTES: u32 = 8192;
/// Bytes of a sector (`DEV_BSIZE`).
const SECTOR: u32 = 512;
/// Groups that a file system has at least, where it is large enough (`MINCYLGRPS`).
const MIN_GROUPS: u64 = 4;
/// The longest cluster counted (`FS_MAXCONTIG`).
const MAX_CLUSTER: u32 = 16;

/// How large cylinder groups are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupSize {
    /// Cylinders; needs a disk geometry.
    Cylinders(u32),
    /// Fragments, a multiple of those of a block.
    Fragments(u32),
}

/// The disk that rotational layout is worked out for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskGeometry {
    /// Tracks of a cylinder.
    pub heads: u32,
    /// Sectors of a track.
    pub sectors: u32,
    /// Revolutions per minute.
    pub rpm: u32,
    /// Rotational positions told apart.
    pub positions: u32,
}

/// What to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MkfsOptions {
    /// Bytes of the file system; what is left after the last fragment is not used.
    pub size_bytes: u64,
    /// Format.
    pub version: Version,
    /// Byte order.
    pub endian: Endian,
    /// Bytes of a block.
    pub bsize: u32,
    /// Bytes of a fragment.
    pub fsize: u32,
    /// Per cent of space held back.
    pub minfree: u32,
    /// Blocks of one file in a group before the next is taken; `None` for the pointers of an indirect block.
    pub maxbpg: Option<u32>,
    /// Blocks of a cluster; `None` for 128 KiB.
    pub maxcontig: Option<u32>,
    /// Milliseconds between successive blocks of a file.
    pub rotdelay: u32,
    /// Expected size of a file.
    pub avgfilesize: u32,
    /// Expected files of a directory.
    pub avgfpdir: u32,
    /// Size of groups; `None` for as large as a block's maps allow, but at least four.
    pub group: Option<GroupSize>,
    /// Inodes of a group; `None` for one per `density` bytes.
    pub ipg: Option<u32>,
    /// Bytes of space for each inode; `None` for four fragments.
    pub density: Option<u32>,
    /// UFS1: the disk that layout is worked out for.
    pub disk: Option<DiskGeometry>,
    /// Whether space rather than time is saved.
    pub optimize_space: bool,
    /// Volume name.
    pub label: String,
    /// Of the file system's identity and the inodes' generations.
    pub seed: u64,
    /// When it is made, seconds since 1970.
    pub time_s: i64,
    /// Whether to make `lost+found`.
    pub lost_found: bool,
    /// Whether the store is known to be all zeros, so that inodes need not be zeroed.
    pub blank: bool,
}

impl MkfsOptions {
    /// The usual options of a format: blocks of 8 KiB in fragments of 1 KiB for UFS1, 16 and 2 KiB for UFS2.
    pub fn new(version: Version, size_bytes: u64) -> MkfsOptions {
        let (bsize, fsize) = match version {
            Version::Ufs1 => (8192, 1024),
            Version::Ufs2 => (16384, 2048),
        };
        MkfsOptions {
            size_bytes,
            version,
            endian: Endian::Little,
            bsize,
            fsize,
            minfree: 8,
            maxbpg: None,
            maxcontig: None,
            rotdelay: 0,
            avgfilesize: 16384,
            avgfpdir: 64,
            group: None,
            ipg: None,
            density: None,
            disk: None,
            optimize_space: false,
            label: String::new(),
            seed: 1,
            time_s: 0,
            lost_found: false,
            blank: false,
        }
    }

    /// Whether these options make a file system: what [`mkfs`] would refuse, before anything is touched.
    pub fn check(&self) -> Result<(), FfsError> {
        superblock(self, &mut Xoshiro256PlusPlus::seed_from_u64(self.seed)).map(drop)
    }
}

/// What was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Made {
    /// Format.
    pub version: Version,
    /// Byte order.
    pub endian: Endian,
    /// Bytes of the file system.
    pub size_bytes: u64,
    /// Bytes of a block.
    pub bsize: u32,
    /// Bytes of a fragment.
    pub fsize: u32,
    /// Cylinder groups.
    pub groups: u32,
    /// Fragments of a group.
    pub fpg: u32,
    /// Inodes of a group.
    pub ipg: u32,
    /// Bytes for data.
    pub data_bytes: u64,
    /// Byte of the superblock.
    pub superblock_at: u64,
    /// Bytes of its copies.
    pub copies_at: Vec<u64>,
    /// What the totals say.
    pub total: CsumTotal,
    /// Seed of identity and generations.
    pub seed: u64,
}

/// Makes a file system in a store that is at least as long as it.
pub fn mkfs<S: Store + ?Sized>(store: &mut S, options: &MkfsOptions) -> Result<Made, FfsError> {
    mkfs_while(store, options, &mut || true)
}

/// [`mkfs`], which asks before each cylinder group whether to go on. What is stopped ([`FfsError::Interrupted`]) leaves
/// half a file system in the store: the superblock is written last.
pub fn mkfs_while<S: Store + ?Sized>(
    store: &mut S,
    options: &MkfsOptions,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<Made, FfsError> {
    let mut go_on = || if go_on() { Ok(()) } else { Err(FfsError::interrupted()) };
    if store.len_bytes() < options.size_bytes {
        let (have, want) = (store.len_bytes(), options.size_bytes);
        return Err(FfsError::Options(format!("a file system of {want} bytes does not fit into {have}")));
    }
    let New { sb, home, g, groups, directories, dsize, total } = compose(options, &mut go_on)?;
    zero_inodes(store, &g, options, &mut go_on)?;
    for NewDirectory { ino, inode, at, bytes } in directories {
        let mut data = bytes;
        data.resize(data.len().next_multiple_of(g.fsize as usize), 0);
        write(store, g.byte_of(at), &data)?;
        write_inode(store, &g, ino, &inode)?;
    }
    let mut summaries = vec![0; g.cssize as usize];
    for (i, group) in groups.iter().enumerate() {
        go_on()?;
        group.cs.encode(summaries.get_mut(i * 16..).unwrap_or_default(), g.endian());
        write(store, g.byte_of(g.group_block(GroupNo(i as u32))), &group.encode(&g))?;
    }
    write(store, g.byte_of(g.csaddr), &summaries)?;
    let bytes = sb.encode();
    let copies_at: Vec<u64> = (0..g.ncg).map(|c| sb.copy_at(&g, GroupNo(c))).collect();
    for at in &copies_at {
        go_on()?;
        write(store, *at, &bytes)?;
    }
    write(store, home, &bytes)?;
    if options.version == Version::Ufs2 {
        write(store, home - RECOVERY_BYTES as u64, &recovery(&sb))?;
    }
    Ok(Made {
        version: options.version,
        endian: options.endian,
        size_bytes: g.size_frags << g.fshift,
        bsize: g.bsize,
        fsize: g.fsize,
        groups: g.ncg,
        fpg: g.fpg,
        ipg: g.ipg,
        data_bytes: dsize.unsigned_abs() << g.fshift,
        superblock_at: home,
        copies_at,
        total,
        seed: options.seed,
    })
}

/// Fails when the work is to stop.
type GoOn<'a> = &'a mut dyn FnMut() -> Result<(), FfsError>;

/// A new file system's structures.
pub(crate) struct New {
    pub(crate) sb: Superblock,
    /// Byte of the superblock.
    pub(crate) home: u64,
    pub(crate) g: Geometry,
    pub(crate) groups: Vec<CylinderGroup>,
    pub(crate) directories: Vec<NewDirectory>,
    /// Fragments for data.
    dsize: i64,
    total: CsumTotal,
}

/// A directory of a new file system.
pub(crate) struct NewDirectory {
    pub(crate) ino: Ino,
    pub(crate) inode: Dinode,
    /// Where its first block is.
    at: FragAddr,
    /// What it holds: as long as its inode says.
    pub(crate) bytes: Vec<u8>,
}

/// Works out everything that options say, without a place to put it.
pub(crate) fn compose(options: &MkfsOptions, go_on: GoOn<'_>) -> Result<New, FfsError> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(options.seed);
    let mut sb = superblock(options, &mut random)?;
    let home = home(options.version);
    let g = sb.geometry(home)?;
    let mut groups: Vec<CylinderGroup> = Vec::with_capacity(g.ncg as usize);
    for number in (0..g.ncg).map(GroupNo) {
        go_on()?;
        // Most groups differ from the one before in their number alone.
        let alike = |before: &&CylinderGroup| {
            let number_before = GroupNo(before.cgx);
            number_before.0 > 0
                && before.ndblk == g.group_frags(number)
                && metadata(&g, number_before) == metadata(&g, number)
        };
        let group = match groups.last().filter(alike) {
            Some(before) => {
                let mut group = before.clone();
                group.cgx = number.0;
                group
            }
            None => new_group(&g, number, options.time_s),
        };
        groups.push(group);
    }
    let dsize =
        groups.iter().map(|group| i64::from(group.cs.nbfree) * i64::from(g.frag) + i64::from(group.cs.nffree)).sum();
    let directories = directories(&g, &mut groups, options, &mut random)?;
    let mut total = CsumTotal::default();
    groups.iter().for_each(|group| total.add(&group.cs));
    sb.dsize = dsize;
    if options.version == Version::Ufs1 {
        sb.old_dsize = dsize as i32;
    }
    sb.set_cstotal(&total);
    Ok(New { sb, home, g, groups, directories, dsize, total })
}

/// Byte of the superblock.
fn home(version: Version) -> u64 {
    match version {
        Version::Ufs1 => 8192,
        Version::Ufs2 => 65536,
    }
}

const RECOVERY_BYTES: usize = 20;

/// What fsck finds copies by when the superblock is lost (`struct fsrecovery`), at the end of the boot area.
fn recovery(sb: &Superblock) -> [u8; RECOVERY_BYTES] {
    let mut bytes = [0; RECOVERY_BYTES];
    let fields = [sb.magic, sb.fsbtodb as u32, sb.sblkno as u32, sb.fpg as u32, sb.ncg];
    fields.put(sb.layout.endian, &mut bytes, 0);
    bytes
}

fn bad(what: impl Into<String>) -> FfsError {
    FfsError::Options(what.into())
}

/// The sizes that everything else follows from.
struct Shape {
    frag: u32,
    sblkno: u32,
    cblkno: u32,
    iblkno: u32,
    /// UFS1 cylinders.
    cpg: u32,
    spc: u32,
    nsect: u32,
    ntrak: u32,
    nrpos: u32,
    cgoffset: u32,
    cgmask: u32,
    contigsumsize: u32,
    maxcontig: u32,
    inopb: u32,
}

impl Shape {
    /// Sizes apart from the group's, which `cpg`, `spc` and `nsect` may still depend on.
    fn new(o: &MkfsOptions) -> Result<Shape, FfsError> {
        let power = |name: &str, n: u32, low: u32, high: u32| {
            if n.is_power_of_two() && (low..=high).contains(&n) {
                Ok(())
            } else {
                Err(bad(format!("{name} is a power of two from {low} to {high}, not {n}")))
            }
        };
        power("the block size", o.bsize, 4096, 65536)?;
        power("the fragment size", o.fsize, SECTOR.max(o.bsize / 8), o.bsize)?;
        if o.minfree > 99 || o.avgfilesize == 0 || o.avgfpdir == 0 {
            return Err(bad(
                "minfree is at most 99 per cent; average file size and files per directory are at least 1",
            ));
        }
        if o.label.len() >= 32 || o.label.contains(['\0', '/']) {
            return Err(bad("the label is at most 31 bytes, without slashes"));
        }
        if o.version == Version::Ufs2 && (o.disk.is_some() || o.rotdelay > 0) {
            return Err(bad("rotational layout (disk geometry, rotdelay) is of UFS1 only"));
        }
        let frag = o.bsize / o.fsize;
        let up = |bytes: u32| bytes.div_ceil(o.fsize).next_multiple_of(frag);
        let sblkno = up(home(o.version) as u32 + SBLOCK_BYTES);
        let cblkno = sblkno + up(SBLOCK_BYTES);
        let maxcontig = o.maxcontig.unwrap_or((131072 / o.bsize).max(1));
        if maxcontig == 0 || maxcontig > 8192 {
            return Err(bad("maxcontig is from 1 to 8192 blocks"));
        }
        let (mut cgoffset, mut cgmask) = (0, u32::MAX);
        let (mut spc, mut nsect, mut ntrak, mut nrpos) = (0, 0, 1, 1);
        if let Some(d) = o.disk {
            if d.heads == 0 || d.sectors == 0 || d.positions == 0 || d.rpm < 60 {
                return Err(bad("a disk has heads, sectors and positions, and at least 60 revolutions a minute"));
            }
            if d.heads > 1024 || d.sectors > 16384 || d.positions > 32 {
                return Err(bad("a disk geometry has at most 1024 heads, 16384 sectors a track and 32 positions"));
            }
            (spc, nsect, ntrak, nrpos) = (d.heads * d.sectors, d.sectors, d.heads, d.positions);
            // Metadata of successive groups lies on successive tracks, starting again after a power of two of them.
            cgoffset = up(nsect * SECTOR);
            cgmask = u32::MAX << ntrak.next_power_of_two().trailing_zeros();
        }
        Ok(Shape {
            frag,
            sblkno,
            cblkno,
            iblkno: cblkno + frag,
            cpg: 1,
            spc,
            nsect,
            ntrak,
            nrpos,
            cgoffset,
            cgmask,
            contigsumsize: if maxcontig > 1 { maxcontig.min(MAX_CLUSTER) } else { 0 },
            maxcontig,
            inopb: o.bsize / o.version.inode_bytes(),
        })
    }

    /// Bytes of a cylinder group (`CGSIZE`).
    fn cg_bytes(&self, o: &MkfsOptions, fpg: u32, ipg: u32) -> u32 {
        let at = GroupOffsets::new(o.version, self.cpg, self.nrpos, ipg, fpg, self.frag, self.contigsumsize);
        let clusters = if self.contigsumsize > 0 { self.contigsumsize * 4 + (fpg / self.frag).div_ceil(8) } else { 0 };
        at.freeoff + fpg.div_ceil(8) + 4 + clusters
    }

    /// Inodes for groups of `fpg` fragments.
    fn ipg(&self, o: &MkfsOptions, fpg: u32) -> u32 {
        if let Some(ipg) = o.ipg {
            return ipg.next_multiple_of(self.inopb);
        }
        let density = u64::from(o.density.unwrap_or(4 * o.fsize).max(1));
        let bytes = u64::from(fpg.saturating_sub(self.iblkno)) * u64::from(o.fsize);
        // The inodes themselves take of the space that they are for.
        let inodes = bytes / (density + u64::from(o.version.inode_bytes()));
        inodes.clamp(1, 1 << 24).next_multiple_of(self.inopb.into()) as u32
    }

    /// Fragment of the first data.
    fn dblkno(&self, ipg: u32) -> u64 {
        u64::from(self.iblkno) + u64::from(ipg / self.inopb) * u64::from(self.frag)
    }

    /// Whether the maps of a group fit into a block, and its metadata into the group.
    fn fits(&self, o: &MkfsOptions, fpg: u32) -> bool {
        let ipg = self.ipg(o, fpg);
        let shift = u64::from(self.cgoffset) * u64::from(!self.cgmask);
        self.cg_bytes(o, fpg, ipg) <= o.bsize && self.dblkno(ipg) + shift + u64::from(self.frag) <= u64::from(fpg)
    }

    /// Fragments of a group.
    fn group_frags(&mut self, o: &MkfsOptions, size_frags: u64) -> Result<u32, FfsError> {
        let sectors_of_block = o.bsize / SECTOR;
        let fpg = match (o.group, o.disk) {
            (Some(GroupSize::Cylinders(cpg)), Some(_)) => {
                let sectors = u64::from(cpg) * u64::from(self.spc);
                if cpg == 0 || cpg > 4096 || !sectors.is_multiple_of(sectors_of_block.into()) {
                    let multiple = sectors_of_block >> self.spc.trailing_zeros().min(sectors_of_block.trailing_zeros());
                    return Err(bad(format!(
                        "groups of {cpg} cylinders of {} sectors are not whole blocks; use a multiple of {multiple}",
                        self.spc
                    )));
                }
                self.cpg = cpg;
                u32::try_from(sectors / u64::from(o.fsize / SECTOR)).unwrap_or(u32::MAX)
            }
            (Some(GroupSize::Cylinders(_)), None) => {
                return Err(bad("cylinders per group need a disk geometry (heads and sectors)"));
            }
            (Some(GroupSize::Fragments(fpg)), _) => fpg,
            (None, Some(_)) => return self.cylinders_that_fit(o),
            (None, None) => return self.largest_that_fits(o, size_frags),
        };
        if !fpg.is_multiple_of(self.frag) {
            return Err(bad(format!("fragments per group are a multiple of those of a block, {}", self.frag)));
        }
        if let (Some(d), Some(GroupSize::Fragments(_))) = (o.disk, o.group) {
            // Cylinders for the tables only: as many as the group reaches into.
            self.cpg = (fpg * (o.fsize / SECTOR)).div_ceil(d.heads * d.sectors);
        }
        if !self.fits(o, fpg) {
            return Err(bad(format!(
                "groups of {fpg} fragments with {} inodes do not work: the maps need {} of {} bytes, and data begins \
                 at fragment {}",
                self.ipg(o, fpg),
                self.cg_bytes(o, fpg, self.ipg(o, fpg)),
                o.bsize,
                self.dblkno(self.ipg(o, fpg))
            )));
        }
        Ok(fpg)
    }

    /// Newfs's 16 cylinders, or the nearest number whose sectors are whole blocks and whose maps fit.
    fn cylinders_that_fit(&mut self, o: &MkfsOptions) -> Result<u32, FfsError> {
        let sectors_of_block = o.bsize / SECTOR;
        let step = sectors_of_block >> self.spc.trailing_zeros().min(sectors_of_block.trailing_zeros());
        for cpg in (0..=16_u32.next_multiple_of(step)).rev().chain(17..64).filter(|n| *n > 0 && n % step == 0) {
            self.cpg = cpg;
            let fpg = cpg * self.spc / (o.fsize / SECTOR);
            if self.fits(o, fpg) {
                return Ok(fpg);
            }
        }
        Err(bad("no number of cylinders makes a group of this disk geometry and these blocks; name one"))
    }

    /// The largest groups whose maps fit into a block, but four of them where that is possible.
    fn largest_that_fits(&self, o: &MkfsOptions, size_frags: u64) -> Result<u32, FfsError> {
        let quarter = size_frags.div_ceil(MIN_GROUPS).next_multiple_of(self.frag.into());
        // Maps have a bit for each fragment, in at most a block.
        let most = u64::from(o.bsize) * 8;
        let mut fpg = quarter.min(most) as u32 / self.frag * self.frag;
        let small = fpg;
        while fpg > self.frag && self.cg_bytes(o, fpg, self.ipg(o, fpg)) > o.bsize {
            fpg -= (fpg / 64).next_multiple_of(self.frag).max(self.frag).min(fpg - self.frag);
        }
        if !self.fits(o, fpg) && fpg == small {
            // A quarter is too small for a group's metadata: fewer groups then.
            let whole = size_frags.next_multiple_of(self.frag.into()).min(most) as u32;
            for parts in [3, 2, 1] {
                let fpg = (whole / parts).next_multiple_of(self.frag);
                if self.fits(o, fpg) {
                    return Ok(fpg);
                }
            }
        }
        if self.fits(o, fpg) {
            return Ok(fpg);
        }
        Err(bad(format!(
            "{} bytes are too few for a file system with blocks of {} and {} inodes a group",
            o.size_bytes,
            o.bsize,
            self.ipg(o, fpg)
        )))
    }
}

/// The superblock, complete but for the totals.
fn superblock(o: &MkfsOptions, random: &mut Xoshiro256PlusPlus) -> Result<Superblock, FfsError> {
    let mut shape = Shape::new(o)?;
    let mut size_frags = o.size_bytes / u64::from(o.fsize);
    let most = if o.version == Version::Ufs1 { i32::MAX as u64 } else { 1 << 40 };
    if size_frags > most {
        return Err(bad(format!("{} has at most {most} fragments, not {size_frags}", o.version)));
    }
    let fpg = shape.group_frags(o, size_frags)?;
    let ipg = shape.ipg(o, fpg);
    let mut ncg = size_frags.div_ceil(fpg.into());
    let last = size_frags - (ncg - 1) * u64::from(fpg);
    let shift = u64::from(shape.cgoffset) * ((ncg - 1) & u64::from(!shape.cgmask));
    if last < shape.dblkno(ipg) + shift {
        // The last group would have no room for its own metadata.
        ncg -= 1;
        size_frags = ncg * u64::from(fpg);
    }
    if ncg == 0 {
        return Err(bad(format!("{} bytes are too few for one group with {ipg} inodes", o.size_bytes)));
    }
    let inodes = ncg * u64::from(ipg);
    if inodes > u64::from(u32::MAX) {
        return Err(bad(format!("{inodes} inodes cannot be numbered; ask for fewer with a larger density")));
    }
    let mut sb = Superblock::new(Layout { version: o.version, endian: o.endian });
    common_fields(&mut sb, o, &shape, fpg, ipg, ncg as u32, size_frags);
    sb.id = [o.time_s as i32, random.next_u32() as i32];
    for (place, byte) in sb.volname.0.iter_mut().zip(o.label.bytes()) {
        *place = byte;
    }
    if o.version == Version::Ufs1 {
        ufs1_fields(&mut sb, o, &shape, size_frags);
    }
    let needed = sb.csaddr as u64 + u64::from(sb.cssize as u32).div_ceil(o.fsize.into()) + 2 * u64::from(shape.frag);
    if needed > u64::from(fpg).min(size_frags) {
        return Err(bad("the first group has no room for the summaries of all groups; make groups larger"));
    }
    Ok(sb)
}

fn common_fields(sb: &mut Superblock, o: &MkfsOptions, s: &Shape, fpg: u32, ipg: u32, ncg: u32, size_frags: u64) {
    let log2 = |n: u32| n.trailing_zeros() as i32;
    let pointer = o.version.pointer_bytes();
    let up = |bytes: u32| bytes.next_multiple_of(o.fsize) as i32;
    sb.sblkno = s.sblkno as i32;
    sb.cblkno = s.cblkno as i32;
    sb.iblkno = s.iblkno as i32;
    sb.dblkno = s.dblkno(ipg) as i32;
    sb.ncg = ncg;
    (sb.bsize, sb.fsize, sb.frag) = (o.bsize as i32, o.fsize as i32, s.frag as i32);
    sb.minfree = o.minfree as i32;
    (sb.bmask, sb.fmask) = (!(o.bsize as i32 - 1), !(o.fsize as i32 - 1));
    (sb.qbmask, sb.qfmask) = (i64::from(o.bsize) - 1, i64::from(o.fsize) - 1);
    (sb.bshift, sb.fshift, sb.fragshift) = (log2(o.bsize), log2(o.fsize), log2(s.frag));
    sb.fsbtodb = log2(o.fsize / SECTOR);
    sb.maxcontig = s.maxcontig as i32;
    sb.contigsumsize = s.contigsumsize as i32;
    sb.maxbpg = o.maxbpg.unwrap_or(o.bsize / pointer) as i32;
    sb.sbsize = up(1376).min(SBLOCK_BYTES as i32);
    sb.nindir = (o.bsize / pointer) as i32;
    sb.inopb = s.inopb;
    sb.old_nspf = (o.fsize / SECTOR) as i32;
    sb.optim = i32::from(o.optimize_space);
    sb.cssize = up(ncg * 16);
    sb.cgsize = up(s.cg_bytes(o, fpg, ipg));
    (sb.ipg, sb.fpg) = (ipg, fpg as i32);
    sb.clean = 1;
    sb.old_flags = old_flags::UPDATED;
    sb.maxbsize = o.bsize as i32;
    sb.providersize = (o.size_bytes / u64::from(o.fsize)) as i64;
    (sb.sblockactualloc, sb.sblockloc) = (home(o.version) as i64, home(o.version) as i64);
    (sb.time, sb.size, sb.csaddr) = (o.time_s, size_frags as i64, sb.dblkno.into());
    sb.mtime = o.time_s;
    (sb.avgfilesize, sb.avgfpdir) = (o.avgfilesize, o.avgfpdir);
    sb.maxsymlinklen = 15 * pointer as i32;
    sb.old_inodefmt = 2;
    let n = u64::from(o.bsize / pointer);
    sb.maxfilesize = u64::from(o.bsize) * (12 + n + n * n + n * n * n) - 1;
}

fn ufs1_fields(sb: &mut Superblock, o: &MkfsOptions, s: &Shape, size_frags: u64) {
    let sectors_of_frag = u64::from(o.fsize / SECTOR);
    let spc = if s.spc > 0 { s.spc } else { (sb.fpg as u64 * sectors_of_frag).min(i32::MAX as u64) as u32 };
    let nsect = if s.nsect > 0 { s.nsect } else { spc };
    (sb.old_cgoffset, sb.old_cgmask) = (s.cgoffset as i32, s.cgmask as i32);
    sb.old_time = o.time_s as i32;
    (sb.old_size, sb.old_csaddr) = (size_frags as i32, sb.dblkno);
    sb.old_rotdelay = o.rotdelay as i32;
    sb.old_rps = o.disk.map_or(60, |d| d.rpm / 60) as i32;
    (sb.old_npsect, sb.old_nsect, sb.old_spc) = (nsect as i32, nsect as i32, spc as i32);
    (sb.old_interleave, sb.old_trackskew) = (1, 0);
    sb.spare2 = s.ntrak as i32;
    sb.old_cpg = s.cpg as i32;
    sb.old_ncyl = (size_frags * sectors_of_frag).div_ceil(spc.into()) as i32;
    sb.old_postblformat = 1;
    sb.old_nrpos = s.nrpos as i32;
    if s.ntrak > 1 && s.nrpos > 1 {
        rotational_tables(sb, o, s);
    }
}

/// The superblock's tables of blocks by rotational position: the first of each cylinder and position, and from each the
/// way to the next. Always behind the named fields: the wide ones are where 4.4BSD had its static table.
fn rotational_tables(sb: &mut Superblock, o: &MkfsOptions, s: &Shape) {
    let sectors_of_block = o.bsize / SECTOR;
    let cpc = sectors_of_block >> s.spc.trailing_zeros().min(sectors_of_block.trailing_zeros());
    let blocks = cpc * s.spc / sectors_of_block;
    let first_bytes = s.nrpos * cpc * 2;
    let total = 1376 + first_bytes + blocks;
    if total > SBLOCK_BYTES || s.nsect > 256 * sectors_of_block {
        return; // As newfs does: without tables, positions are not told apart.
    }
    let Ok(g) = sb.geometry(0) else { return };
    let mut first = vec![-1_i16; (s.nrpos * cpc) as usize];
    let mut next = vec![0_u8; blocks as usize];
    for block in (0..blocks).rev() {
        let at = block * s.frag;
        let index = g.cylinder_of(at) * s.nrpos + g.position_of(at);
        let (Some(head), Some(link)) = (first.get_mut(index as usize), next.get_mut(block as usize)) else { continue };
        *link = if *head < 0 { 0 } else { (i32::from(*head) - block as i32) as u8 };
        *head = block as i16;
    }
    let endian = sb.layout.endian;
    let space = sb.space_mut();
    for (i, value) in first.iter().enumerate() {
        value.put(endian, space, i * 2);
    }
    for (i, value) in next.iter().enumerate() {
        value.put(endian, space, first_bytes as usize + i);
    }
    sb.old_cpc = cpc as i32;
    (sb.old_postbloff, sb.old_rotbloff) = (1376, 1376 + first_bytes as i32);
    sb.sbsize = total.next_multiple_of(o.fsize).min(SBLOCK_BYTES) as i32;
}

/// A group with everything free but its metadata.
fn new_group(g: &Geometry, group: GroupNo, time_s: i64) -> CylinderGroup {
    let mut cg = CylinderGroup::new(g, group);
    cg.old_time = time_s as i32;
    cg.time = time_s;
    if g.layout.version == Version::Ufs2 {
        cg.initediblk = g.ipg.min(2 * g.inopb());
        cg.old_time = 0;
    }
    let (low, high) = metadata(g, group);
    for frag in 0..cg.ndblk {
        cg.free.put(frag as usize, frag < low || frag >= high);
    }
    if group.0 == 0 {
        cg.used_inodes.put_range(0, 2, true);
    }
    cg.recount(g);
    cg
}

/// The fragments of a group, from its base, that its metadata takes. In group 0 that is everything up to the end of the
/// group summaries.
pub(crate) fn metadata(g: &Geometry, group: GroupNo) -> (u32, u32) {
    let shift = (g.group_start(group).0 - g.group_base(group).0) as u32;
    if group.0 == 0 {
        let summaries = g.csaddr.plus(g.frags_of(g.cssize.into())).0;
        // A foreign file system may have them elsewhere; then only the metadata proper counts here.
        let high = if g.csaddr == g.group_data(group) { summaries.min(g.fpg.into()) as u32 } else { g.dblkno };
        return (0, high);
    }
    (shift + g.sblkno, shift + g.dblkno)
}

fn zero_inodes<S: Store + ?Sized>(
    store: &mut S,
    g: &Geometry,
    o: &MkfsOptions,
    go_on: GoOn<'_>,
) -> Result<(), FfsError> {
    if o.blank {
        return Ok(());
    }
    let count = if o.version == Version::Ufs2 { g.ipg.min(2 * g.inopb()) } else { g.ipg };
    let zeros = vec![0; g.bsize as usize];
    for c in 0..g.ncg {
        go_on()?;
        let at = g.byte_of(g.group_inodes(GroupNo(c)));
        for block in 0..count.div_ceil(g.inopb()) {
            write(store, at + u64::from(block) * u64::from(g.bsize), &zeros)?;
        }
    }
    Ok(())
}

/// The root directory, and `lost+found`: the first group holds them.
fn directories(
    g: &Geometry,
    groups: &mut [CylinderGroup],
    o: &MkfsOptions,
    random: &mut Xoshiro256PlusPlus,
) -> Result<Vec<NewDirectory>, FfsError> {
    let Some(group) = groups.first_mut() else { return Ok(Vec::new()) };
    let format = g.dir_format();
    let kind = FileType::Directory.entry_type();
    let mut root = fresh_chunk(format);
    insert(&mut root, format, ROOT_INO, kind, b".");
    insert(&mut root, format, ROOT_INO, kind, b"..");
    let mut make = |ino: Ino, bytes: Vec<u8>, nlink: i16| -> Result<NewDirectory, FfsError> {
        let frags = g.frags_of(bytes.len() as u64) as u32;
        let block = (0..g.group_frags(GroupNo(0)) / g.frag)
            .map(|b| b * g.frag)
            .find(|at| group.free.bits(*at as usize, g.frag as usize).count_ones() == g.frag)
            .ok_or_else(|| bad("the first group has no room for the root directory; make groups larger"))?;
        group.free.put_range(block as usize, frags as usize, false);
        group.used_inodes.put(ino.0 as usize, true);
        group.cs.ndir += 1;
        let now = Time { s: o.time_s, ns: 0 };
        let mut inode = Dinode {
            mode: FileType::Directory.mode_bits() | 0o755,
            nlink,
            size: bytes.len() as u64,
            blocks: u64::from(frags) * u64::from(g.fsize / SECTOR),
            atime: now,
            mtime: now,
            ctime: now,
            generation: random.next_u32() >> 1,
            ..Dinode::default()
        };
        inode.db[0] = block.into();
        if o.version == Version::Ufs2 {
            inode.birthtime = now;
        }
        Ok(NewDirectory { ino, inode, at: FragAddr(block.into()), bytes })
    };
    if o.lost_found {
        let ino = Ino(ROOT_INO.0 + 1);
        insert(&mut root, format, ino, kind, b"lost+found");
        let mut first = fresh_chunk(format);
        insert(&mut first, format, ino, kind, b".");
        insert(&mut first, format, ROOT_INO, kind, b"..");
        // A whole block, so that files can be saved into it without allocating.
        while first.len() < g.bsize as usize {
            first.extend(fresh_chunk(format));
        }
        let made = vec![make(ROOT_INO, root, 3)?, make(ino, first, 2)?];
        group.recount(g);
        return Ok(made);
    }
    debug_assert_eq!(root.len(), DIRBLKSIZ);
    let made = vec![make(ROOT_INO, root, 2)?];
    group.recount(g);
    Ok(made)
}
