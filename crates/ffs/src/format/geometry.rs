//! Where things are: what follows from a superblock, checked once.

use super::{
    DirFormat, Endian, FragAddr, GroupNo, GroupOffsets, Ino, Layout, NDADDR, Superblock, SuperblockFields as F,
    Version, check_hashes,
};
use crate::FormatError;
use ufs::FieldDef;

/// Sizes and places that everything is found with. All of them are consistent with one another: a value of this type
/// can be computed with freely.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Format and byte order.
    pub layout: Layout,
    /// Bytes of a block, a power of two.
    pub bsize: u32,
    /// Bytes of a fragment, a power of two.
    pub fsize: u32,
    /// Fragments of a block: 1, 2, 4 or 8.
    pub frag: u32,
    /// log2 of `bsize`.
    pub bshift: u32,
    /// log2 of `fsize`.
    pub fshift: u32,
    /// log2 of `frag`.
    pub fragshift: u32,
    /// Cylinder groups.
    pub ncg: u32,
    /// Inodes of a group.
    pub ipg: u32,
    /// Fragments of a group.
    pub fpg: u32,
    /// Fragments of the file system.
    pub size_frags: u64,
    /// Fragment of a group's superblock, from its start.
    pub sblkno: u32,
    /// Fragment of its cylinder group block.
    pub cblkno: u32,
    /// Fragment of its inodes.
    pub iblkno: u32,
    /// Fragment of its first data.
    pub dblkno: u32,
    /// UFS1: fragments by which the metadata of successive groups is shifted.
    pub cgoffset: u32,
    /// UFS1: groups after which the shift starts again, as a mask.
    pub cgmask: u32,
    /// Where the group summaries are.
    pub csaddr: FragAddr,
    /// Bytes of the group summaries.
    pub cssize: u32,
    /// Bytes of a cylinder group.
    pub cgsize: u32,
    /// Sizes counted in a cluster summary; 0 for none.
    pub contigsumsize: u32,
    /// Longest symbolic link kept in an inode is shorter than this.
    pub maxsymlinklen: u32,
    /// 4.2BSD inodes (16-bit owners) and directories (no file types).
    pub old_inodes: bool,
    /// Cylinder groups carry check hashes.
    pub group_hash: bool,
    /// Inodes carry check hashes.
    pub inode_hash: bool,
    /// 4.2BSD cylinder groups (fixed tables).
    pub old_groups: bool,
    /// Cylinders of a group, for the rotational tables of UFS1.
    pub old_cpg: u32,
    /// Rotational positions, likewise.
    pub old_nrpos: u32,
    /// Sectors of a cylinder, likewise; at least 1.
    pub old_spc: u32,
    /// Sectors of a track, likewise; at least 1.
    pub old_nsect: u32,
    /// Sectors of a track with spares, likewise; at least 1.
    pub old_npsect: u32,
    /// Interleave of sectors, likewise.
    pub old_interleave: u32,
    /// Skew from track to track in sectors, likewise.
    pub old_trackskew: u32,
}

impl Geometry {
    /// Checks that the sizes and places of a superblock make sense together; `at_byte` is where it is, for the
    /// messages.
    pub fn new(sb: &Superblock, at_byte: u64) -> Result<Geometry, FormatError> {
        let layout = sb.layout;
        let wrong = |(field, at): (&'static str, u64), problem: String| {
            Err(FormatError::field("superblock", field, at_byte + at, problem))
        };
        let positive = |field: FieldDef<F, i32>| {
            let value = *(field.get)(&sb.f);
            let negative =
                |_| FormatError::field("superblock", field.name, at_byte + field.at, format!("{value} is negative"));
            u32::try_from(value).map_err(negative)
        };
        let (bsize, fsize) = (positive(F::bsize)?, positive(F::fsize)?);
        if !bsize.is_power_of_two() || !(4096..=65536).contains(&bsize) {
            return wrong(F::bsize.place(), format!("{bsize} is not a power of two from 4096 to 65536"));
        }
        if !fsize.is_power_of_two() || fsize < 512 || fsize > bsize || bsize / fsize > 8 {
            return wrong(
                F::fsize.place(),
                format!("{fsize} is not a power of two from 512, an eighth to all of {bsize}"),
            );
        }
        let frag = bsize / fsize;
        if sb.frag != frag as i32 {
            return wrong(F::frag.place(), format!("{}, but {bsize} / {fsize} is {frag}", sb.frag));
        }
        let (ncg, ipg, fpg) = (sb.ncg, sb.ipg, positive(F::fpg)?);
        if fpg < frag || fpg % frag != 0 {
            return wrong(F::fpg.place(), format!("{fpg} is not a multiple of frag, {frag}"));
        }
        let size = ("size", if sb.wide() { F::size.at } else { F::old_size.at });
        let Some(size_frags) = u64::try_from(sb.size_frags()).ok().filter(|n| *n <= 1 << 48) else {
            return wrong(size, format!("{} fragments cannot be", sb.size_frags()));
        };
        if ncg == 0 || size_frags <= u64::from(ncg - 1) * u64::from(fpg) || size_frags > u64::from(ncg) * u64::from(fpg)
        {
            return wrong(F::ncg.place(), format!("{ncg} groups of {fpg} fragments do not hold {size_frags}"));
        }
        let inopb = bsize / layout.version.inode_bytes();
        let inopf = (inopb / frag).max(1);
        if ipg == 0 || u64::from(ipg) * u64::from(ncg) > u64::from(u32::MAX) {
            return wrong(F::ipg.place(), format!("{ipg} inodes in each of {ncg} groups cannot be numbered"));
        }
        let sblkno = positive(F::sblkno)?;
        let cblkno = positive(F::cblkno)?;
        let iblkno = positive(F::iblkno)?;
        let dblkno = positive(F::dblkno)?;
        if sblkno >= cblkno {
            return wrong(F::cblkno.place(), format!("{cblkno} is not after sblkno, {sblkno}"));
        }
        if cblkno >= iblkno {
            return wrong(F::iblkno.place(), format!("{iblkno} is not after cblkno, {cblkno}"));
        }
        if u64::from(iblkno) + u64::from(ipg.div_ceil(inopf)) > u64::from(dblkno) || dblkno > fpg {
            let what = format!("{dblkno}: {ipg} inodes from {iblkno} on and a group of {fpg} leave no such place");
            return wrong(F::dblkno.place(), what);
        }
        let cgsize = positive(F::cgsize)?;
        if cgsize > bsize || cgsize < 168 {
            return wrong(F::cgsize.place(), format!("{cgsize} bytes are not a cylinder group in a block of {bsize}"));
        }
        let cssize = positive(F::cssize)?;
        if u64::from(cssize) < u64::from(ncg) * 16 || u64::from(cssize) > (u64::from(ncg) * 16).next_multiple_of(65536)
        {
            return wrong(F::cssize.place(), format!("{cssize} bytes do not hold {ncg} summaries of 16"));
        }
        let csaddr = u64::try_from(sb.csaddr()).unwrap_or(u64::MAX);
        if csaddr == 0 || csaddr.saturating_add(u64::from(cssize.div_ceil(fsize))) > size_frags {
            let at = if sb.wide() { F::csaddr.at } else { F::old_csaddr.at };
            return wrong(("csaddr", at), format!("{} is outside the file system", sb.csaddr()));
        }
        let (mut cgoffset, cgmask) = (0, sb.old_cgmask as u32);
        if layout.version == Version::Ufs1 {
            cgoffset = positive(F::old_cgoffset)?;
            let shift_max = u64::from(cgoffset) * u64::from(!cgmask).min(u64::from(ncg - 1));
            if shift_max + u64::from(dblkno) > u64::from(fpg) {
                let what = format!("{cgoffset} with mask {cgmask:#x} shifts metadata out of a group of {fpg}");
                return wrong(F::old_cgoffset.place(), what);
            }
        }
        let inode_format = sb.old_inodefmt;
        let old_inodes = layout.version == Version::Ufs1 && inode_format < 2;
        let pointers = 15 * layout.version.pointer_bytes();
        let maxsymlinklen = if old_inodes { 0 } else { positive(F::maxsymlinklen)? };
        if maxsymlinklen > pointers {
            let what = format!("{maxsymlinklen}, but an inode has room for {pointers}");
            return wrong(F::maxsymlinklen.place(), what);
        }
        let contigsumsize = u32::try_from(sb.contigsumsize).unwrap_or(0);
        if contigsumsize > 16384 {
            return wrong(F::contigsumsize.place(), format!("{contigsumsize} is too much"));
        }
        let ufs1 = layout.version == Version::Ufs1;
        let at_least_one = |value: i32| u32::try_from(value).unwrap_or(1).max(1);
        let mut geometry = Geometry {
            layout,
            bsize,
            fsize,
            frag,
            bshift: bsize.trailing_zeros(),
            fshift: fsize.trailing_zeros(),
            fragshift: frag.trailing_zeros(),
            ncg,
            ipg,
            fpg,
            size_frags,
            sblkno,
            cblkno,
            iblkno,
            dblkno,
            cgoffset,
            cgmask,
            csaddr: FragAddr(csaddr),
            cssize,
            cgsize,
            contigsumsize,
            maxsymlinklen,
            old_inodes,
            group_hash: sb.keeps(check_hashes::GROUP),
            inode_hash: sb.keeps(check_hashes::INODE),
            old_groups: ufs1 && !sb.wide() && sb.old_postblformat == -1,
            old_cpg: if ufs1 { u32::try_from(sb.old_cpg).unwrap_or(0).min(16384) } else { 0 },
            old_nrpos: if ufs1 { u32::try_from(sb.old_nrpos).unwrap_or(0).min(256) } else { 0 },
            old_spc: at_least_one(sb.old_spc),
            old_nsect: at_least_one(sb.old_nsect),
            old_npsect: at_least_one(sb.old_npsect),
            old_interleave: at_least_one(sb.old_interleave),
            old_trackskew: u32::try_from(sb.old_trackskew).unwrap_or(0),
        };
        if !geometry.old_groups && GroupOffsets::of(&geometry).nextfreeoff > cgsize {
            // Rotational tables that do not fit are not kept.
            (geometry.old_cpg, geometry.old_nrpos) = (0, 0);
            let needed = GroupOffsets::of(&geometry).nextfreeoff;
            if needed > cgsize {
                return wrong(F::cgsize.place(), format!("{cgsize} bytes do not hold a group's maps of {needed}"));
            }
        }
        let last = GroupNo(ncg - 1);
        if geometry.group_data(last).0 > size_frags {
            return wrong(size, format!("{size_frags} fragments end before the last group's data"));
        }
        Ok(geometry)
    }

    /// How its directories are written.
    pub fn dir_format(&self) -> DirFormat {
        DirFormat { endian: self.endian(), old: self.old_inodes }
    }

    /// Byte order.
    pub fn endian(&self) -> Endian {
        self.layout.endian
    }

    /// Inodes of a block.
    pub fn inopb(&self) -> u32 {
        self.bsize / self.layout.version.inode_bytes()
    }

    /// Pointers of an indirect block.
    pub fn nindir(&self) -> u64 {
        u64::from(self.bsize / self.layout.version.pointer_bytes())
    }

    /// Blocks that the pointers of an inode reach.
    pub fn max_lbn(&self) -> u64 {
        let n = self.nindir();
        NDADDR as u64 + n + n * n + n * n * n
    }

    /// Largest file in bytes.
    pub fn max_file_bytes(&self) -> u64 {
        (self.max_lbn() * u64::from(self.bsize) - 1).min(i64::MAX as u64)
    }

    /// Inodes of the file system.
    pub fn inodes(&self) -> u32 {
        self.ipg * self.ncg
    }

    /// Byte in the image of a fragment.
    pub fn byte_of(&self, frag: FragAddr) -> u64 {
        frag.0 << self.fshift
    }

    /// First fragment of a group (`cgbase`).
    pub fn group_base(&self, group: GroupNo) -> FragAddr {
        FragAddr(u64::from(self.fpg) * u64::from(group.0))
    }

    /// Where its metadata is counted from (`cgstart`).
    pub fn group_start(&self, group: GroupNo) -> FragAddr {
        self.group_base(group).plus(u64::from(self.cgoffset) * u64::from(group.0 & !self.cgmask))
    }

    /// Its cylinder group block (`cgtod`).
    pub fn group_block(&self, group: GroupNo) -> FragAddr {
        self.group_start(group).plus(self.cblkno.into())
    }

    /// Its inodes (`cgimin`).
    pub fn group_inodes(&self, group: GroupNo) -> FragAddr {
        self.group_start(group).plus(self.iblkno.into())
    }

    /// Its first data after the inodes (`cgdmin`).
    pub fn group_data(&self, group: GroupNo) -> FragAddr {
        self.group_start(group).plus(self.dblkno.into())
    }

    /// Fragments of a group: the last one may have fewer.
    pub fn group_frags(&self, group: GroupNo) -> u32 {
        let rest = self.size_frags.saturating_sub(self.group_base(group).0);
        rest.min(self.fpg.into()) as u32
    }

    /// The group of a fragment.
    pub fn group_of(&self, frag: FragAddr) -> GroupNo {
        GroupNo((frag.0 / u64::from(self.fpg)).min(u64::from(self.ncg - 1)) as u32)
    }

    /// The group of an inode.
    pub fn group_of_ino(&self, ino: Ino) -> GroupNo {
        GroupNo(ino.0 / self.ipg)
    }

    /// Byte in the image of an inode; `None` where there is no such inode.
    pub fn inode_at(&self, ino: Ino) -> Option<u64> {
        if ino.0 >= self.inodes() {
            return None;
        }
        let first = self.byte_of(self.group_inodes(self.group_of_ino(ino)));
        Some(first + u64::from(ino.0 % self.ipg) * u64::from(self.layout.version.inode_bytes()))
    }

    /// Fragments that `bytes` take, counted up.
    pub fn frags_of(&self, bytes: u64) -> u64 {
        bytes.div_ceil(self.fsize.into())
    }

    /// Bytes of block `lbn` of a file of `size` bytes (`blksize`): the last direct block may be a fragment.
    pub fn block_bytes(&self, size: u64, lbn: u64) -> u32 {
        if lbn >= NDADDR as u64 || size >= (lbn + 1) << self.bshift {
            return self.bsize;
        }
        let rest = size.saturating_sub(lbn << self.bshift);
        (rest.next_multiple_of(self.fsize.into())) as u32
    }

    /// Whether `frags` fragments from `addr` on are inside the file system.
    pub fn holds(&self, addr: i64, frags: u64) -> bool {
        u64::try_from(addr).is_ok_and(|a| a > 0 && a.saturating_add(frags) <= self.size_frags)
    }

    /// The cylinder, for rotational tables, of a fragment counted from its group's base (`cbtocylno`).
    pub fn cylinder_of(&self, frag: u32) -> u32 {
        (self.sector_of(frag) / u64::from(self.old_spc)) as u32
    }

    /// The rotational position of a fragment counted from its group's base (`cbtorpos`).
    pub fn position_of(&self, frag: u32) -> u32 {
        let in_cylinder = self.sector_of(frag) % u64::from(self.old_spc);
        let (track, sector) = (in_cylinder / u64::from(self.old_nsect), in_cylinder % u64::from(self.old_nsect));
        let turned = track * u64::from(self.old_trackskew) + sector * u64::from(self.old_interleave);
        (turned % u64::from(self.old_nsect) * u64::from(self.old_nrpos) / u64::from(self.old_npsect)) as u32
    }

    /// The sector of a fragment, both counted from the group's base.
    fn sector_of(&self, frag: u32) -> u64 {
        u64::from(frag) * u64::from(self.fsize / 512)
    }
}

impl Superblock {
    /// What everything is found with; an error where the fields make no sense. See [`Geometry::new`].
    pub fn geometry(&self, at_byte: u64) -> Result<Geometry, FormatError> {
        Geometry::new(self, at_byte)
    }

    /// Byte in the image of a group's copy of the superblock.
    pub fn copy_at(&self, geometry: &Geometry, group: GroupNo) -> u64 {
        geometry.byte_of(FragAddr(geometry.group_start(group).0 + u64::from(geometry.sblkno)))
    }
}

impl GroupOffsets {
    /// For the groups of a file system.
    pub fn of(g: &Geometry) -> GroupOffsets {
        GroupOffsets::new(g.layout.version, g.old_cpg, g.old_nrpos, g.ipg, g.fpg, g.frag, g.contigsumsize)
    }
}
