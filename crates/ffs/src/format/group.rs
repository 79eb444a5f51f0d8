//! Cylinder groups (`struct cg`): what is free in a group.

use super::group_offsets::{GroupOffsets, HEADER_BYTES};
use super::{Bitmap, Csum, Disk, Endian, Geometry, GroupNo, Version, check_hash, on_disk};
use crate::FormatError;
use ufs::FieldDef;

/// `CG_MAGIC`.
pub const CG_MAGIC: u32 = 0x0009_0255;
const HASH_AT: usize = 132;

on_disk! {
    /// The fields of a cylinder group's header.
    pub struct GroupHeader {
        /// [`CG_MAGIC`].
        4 magic: u32,
        /// Last written, seconds.
        8 old_time: i32,
        /// Which group this is.
        12 cgx: u32,
        /// UFS1: cylinders of this group.
        16 old_ncyl: i16,
        /// UFS1: inodes of this group.
        18 old_niblk: i16,
        /// Fragments of this group.
        20 ndblk: u32,
        /// What it has.
        24 cs: Csum,
        /// Fragment of the block allocated last.
        40 rotor: u32,
        /// Of the fragment allocated last.
        44 frotor: u32,
        /// Of the inode allocated last.
        48 irotor: u32,
        /// How many runs of 1 … 7 free fragments there are.
        52 frsum: [u32; 8],
        /// Byte of the free blocks by cylinder.
        84 old_btotoff: i32,
        /// Byte of the free blocks by cylinder and position.
        88 old_boff: i32,
        /// Byte of the map of used inodes.
        92 iusedoff: u32,
        /// Byte of the map of free fragments.
        96 freeoff: u32,
        /// Byte after everything.
        100 nextfreeoff: u32,
        /// Byte of the cluster summary.
        104 clustersumoff: u32,
        /// Byte of the map of free blocks.
        108 clusteroff: u32,
        /// Blocks in that map.
        112 nclusterblks: u32,
        /// UFS2: inodes of this group.
        116 niblk: u32,
        /// UFS2: inodes that have been written at least once.
        120 initediblk: u32,
        /// Unreferenced inodes.
        124 unrefs: u32,
        /// Check hash.
        132 ckhash: u32,
        /// Last written, seconds.
        136 time: i64,
    }
}

/// How the maps are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupFormat {
    /// At the offsets in the header (4.3BSD-Tahoe on).
    Offsets,
    /// At fixed places (4.2BSD).
    Fixed,
}

/// Where the parts of a 4.2BSD group are (`struct ocg`).
mod fixed {
    pub(super) const IUSED: usize = 724;
    pub(super) const IUSED_BYTES: usize = 256;
    pub(super) const MAGIC: usize = 980;
    pub(super) const FREE: usize = 984;
    /// The part of the header that both formats share.
    pub(super) const SHARED: usize = 84;
}

/// A cylinder group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CylinderGroup {
    /// The header.
    pub h: GroupHeader,
    /// How the maps are found.
    pub format: GroupFormat,
    /// Inodes in use.
    pub used_inodes: Bitmap,
    /// Fragments that are free.
    pub free: Bitmap,
    /// Blocks that are wholly free; empty where clusters are not kept.
    pub clusters: Bitmap,
    /// `cluster_sum[n]`: runs of n free blocks (of n or more in the last); `[0]` is not used. Empty where not kept.
    pub cluster_sum: Vec<u32>,
    /// UFS1: free blocks by cylinder; empty where there is no table.
    pub block_totals: Vec<u32>,
    /// UFS1: free blocks by cylinder and rotational position, `old_nrpos` a cylinder.
    pub block_positions: Vec<u16>,
    /// The bytes it was read from: what has no name is kept from here.
    raw: Vec<u8>,
}

impl std::ops::Deref for CylinderGroup {
    type Target = GroupHeader;
    fn deref(&self) -> &GroupHeader {
        &self.h
    }
}

impl std::ops::DerefMut for CylinderGroup {
    fn deref_mut(&mut self) -> &mut GroupHeader {
        &mut self.h
    }
}

/// The parts of a group as ranges of its bytes.
struct Parts {
    used_inodes: (usize, usize),
    free: (usize, usize),
    clusters: Option<Clusters>,
    rotation: Option<Rotation>,
}

struct Clusters {
    sum_at: usize,
    map: (usize, usize),
}

struct Rotation {
    totals_at: usize,
    totals: usize,
    positions_at: usize,
    positions: usize,
}

impl CylinderGroup {
    /// A group of zeros with the offsets that newfs gives it.
    pub fn new(g: &Geometry, group: GroupNo) -> CylinderGroup {
        let offsets = GroupOffsets::of(g);
        let ndblk = g.group_frags(group);
        let mut h = GroupHeader {
            magic: CG_MAGIC,
            cgx: group.0,
            ndblk,
            iusedoff: offsets.iusedoff,
            freeoff: offsets.freeoff,
            nextfreeoff: offsets.nextfreeoff,
            ..GroupHeader::default()
        };
        if g.contigsumsize > 0 {
            h.clustersumoff = offsets.clustersumoff;
            h.clusteroff = offsets.clusteroff;
            h.nclusterblks = ndblk / g.frag;
        }
        match g.layout.version {
            Version::Ufs1 => {
                h.old_btotoff = offsets.btotoff as i32;
                h.old_boff = offsets.boff as i32;
                // Both wrap in large groups, as BSD's do; nothing uses them but checks for equality.
                h.old_niblk = g.ipg as i16;
                h.old_ncyl = group_cylinders(g, group) as i16;
            }
            Version::Ufs2 => h.niblk = g.ipg,
        }
        let parts = parts(&h, g, 0).ok();
        let rotation = parts.and_then(|p| p.rotation);
        CylinderGroup {
            format: GroupFormat::Offsets,
            used_inodes: Bitmap::new(g.ipg as usize),
            free: Bitmap::new(g.fpg as usize),
            clusters: Bitmap::new(if g.contigsumsize > 0 { (g.fpg / g.frag) as usize } else { 0 }),
            cluster_sum: if g.contigsumsize > 0 { vec![0; g.contigsumsize as usize + 1] } else { Vec::new() },
            block_totals: vec![0; rotation.as_ref().map_or(0, |r| r.totals)],
            block_positions: vec![0; rotation.as_ref().map_or(0, |r| r.positions)],
            h,
            raw: vec![0; g.cgsize as usize],
        }
    }

    /// Reads one from the `cgsize` bytes at byte `at_byte` of the image.
    pub fn decode(bytes: &[u8], g: &Geometry, at_byte: u64) -> Result<CylinderGroup, FormatError> {
        let needed = g.cgsize as usize;
        let Some(bytes) = bytes.get(..needed) else {
            return Err(FormatError::Short { structure: "cylinder group".into(), at_byte, needed, found: bytes.len() });
        };
        let endian = g.endian();
        let mut h = GroupHeader::get(endian, bytes);
        let (format, magic_at) =
            if g.old_groups { (GroupFormat::Fixed, fixed::MAGIC) } else { (GroupFormat::Offsets, 4) };
        let magic = u32::get(endian, bytes, magic_at);
        if magic != CG_MAGIC {
            let at_byte = at_byte + magic_at as u64;
            return Err(FormatError::Magic {
                structure: "cylinder group".into(),
                at_byte,
                found: magic,
                expected: CG_MAGIC,
            });
        }
        if format == GroupFormat::Fixed {
            // The rest of what a new header has is rotational counts here.
            h = GroupHeader::get(endian, bytes.get(..fixed::SHARED).unwrap_or_default());
        }
        let parts = match format {
            GroupFormat::Offsets => parts(&h, g, at_byte)?,
            GroupFormat::Fixed => fixed_parts(g, at_byte)?,
        };
        let map = |(at, len): (usize, usize)| Bitmap::from_bytes(bytes.get(at..at + len).unwrap_or_default());
        let mut cluster_sum = Vec::new();
        if let Some(clusters) = &parts.clusters {
            // Entry 0 may lie over the free map and is nobody's.
            let counts = (1..=g.contigsumsize as usize).map(|n| u32::get(endian, bytes, clusters.sum_at + 4 * n));
            cluster_sum = std::iter::once(0).chain(counts).collect();
        }
        let (mut block_totals, mut block_positions) = (Vec::new(), Vec::new());
        if let Some(r) = &parts.rotation {
            block_totals = (0..r.totals).map(|i| u32::get(endian, bytes, r.totals_at + 4 * i)).collect();
            block_positions = (0..r.positions).map(|i| u16::get(endian, bytes, r.positions_at + 2 * i)).collect();
        }
        Ok(CylinderGroup {
            h,
            format,
            used_inodes: map(parts.used_inodes),
            free: map(parts.free),
            clusters: parts.clusters.as_ref().map(|c| map(c.map)).unwrap_or_default(),
            cluster_sum,
            block_totals,
            block_positions,
            raw: bytes.to_vec(),
        })
    }

    /// Its bytes; the check hash is worked out anew where one is kept.
    pub fn encode(&self, g: &Geometry) -> Vec<u8> {
        let mut bytes = self.raw.clone();
        let endian = g.endian();
        let parts = match self.format {
            GroupFormat::Offsets => {
                self.h.put(endian, &mut bytes);
                parts(&self.h, g, 0)
            }
            GroupFormat::Fixed => {
                self.h.put(endian, bytes.get_mut(..fixed::SHARED).unwrap_or_default());
                // The header's magic is elsewhere in this format, and so its place is what it was.
                if let (Some(place), Some(was)) = (bytes.get_mut(4..8), self.raw.get(4..8)) {
                    place.copy_from_slice(was);
                }
                fixed_parts(g, 0)
            }
        };
        let Ok(parts) = parts else { return bytes };
        let mut map = |map: &Bitmap, (at, len): (usize, usize)| {
            map.write_to(bytes.get_mut(at..at + len).unwrap_or_default());
        };
        map(&self.used_inodes, parts.used_inodes);
        map(&self.free, parts.free);
        if let Some(clusters) = &parts.clusters {
            map(&self.clusters, clusters.map);
            for (n, count) in self.cluster_sum.iter().enumerate().skip(1) {
                count.put(endian, &mut bytes, clusters.sum_at + 4 * n);
            }
        }
        if let Some(r) = &parts.rotation {
            for (i, count) in self.block_totals.iter().enumerate() {
                count.put(endian, &mut bytes, r.totals_at + 4 * i);
            }
            for (i, count) in self.block_positions.iter().enumerate() {
                count.put(endian, &mut bytes, r.positions_at + 2 * i);
            }
        }
        if g.group_hash {
            hash_of(&bytes).put(endian, &mut bytes, HASH_AT);
        }
        bytes
    }

    /// Its bytes with everything zero that no field or map of it takes, up to the end of its maps; behind that is
    /// nobody's. What BSD's fsck compares a group with, but for times and hashes.
    pub(crate) fn encode_plain(&self, g: &Geometry) -> Vec<u8> {
        let mut plain = self.clone();
        let end = (self.h.nextfreeoff as usize).min(plain.raw.len());
        if self.format == GroupFormat::Offsets
            && let Some(maps) = plain.raw.get_mut(..end)
        {
            maps.fill(0);
        }
        plain.encode(g)
    }

    /// The bytes it was read from.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.raw
    }

    /// Whether its parts are where newfs puts them; BSD's fsck takes anything else for damage.
    pub fn has_usual_offsets(&self, g: &Geometry) -> bool {
        let (h, at) = (&self.h, GroupOffsets::of(g));
        let clusters = (h.clustersumoff, h.clusteroff) == (at.clustersumoff, at.clusteroff) || g.contigsumsize == 0;
        let rotation = (h.old_btotoff, h.old_boff) == (at.btotoff as i32, at.boff as i32) || at.btotoff == 0;
        let maps = (h.iusedoff, h.freeoff, h.nextfreeoff) == (at.iusedoff, at.freeoff, at.nextfreeoff);
        self.format == GroupFormat::Fixed || maps && clusters && rotation
    }

    /// Whether the header is that of this group, and its numbers lie inside the group: what everything that is found by
    /// them relies on.
    pub(crate) fn is_of(&self, g: &Geometry, group: GroupNo) -> bool {
        let ndblk = g.group_frags(group);
        let clusters = g.contigsumsize == 0 || self.h.nclusterblks == ndblk / g.frag;
        let rotors = self.h.rotor < ndblk && self.h.frotor < ndblk && self.h.irotor < g.ipg;
        let inodes = g.layout.version == Version::Ufs1 || self.h.niblk == g.ipg && self.h.initediblk <= g.ipg;
        self.h.cgx == group.0 && self.h.ndblk == ndblk && clusters && rotors && inodes
    }

    /// Whether the check hash is as it should be; `None` where none is kept.
    pub fn hash_is_right(&self, g: &Geometry) -> Option<bool> {
        g.group_hash.then(|| hash_of(&self.raw) == self.h.ckhash)
    }

    /// Has a map of free blocks even where the format keeps none, so that blocks are found by it.
    pub(crate) fn keep_block_map(&mut self, g: &Geometry) {
        let ndblk = self.h.ndblk.min(g.fpg);
        self.clusters = Bitmap::new((g.fpg / g.frag) as usize);
        for block in 0..ndblk / g.frag {
            let free = self.free.bits((block * g.frag) as usize, g.frag as usize);
            self.clusters.put(block as usize, free.count_ones() == g.frag);
        }
    }

    /// Works out every count and the map of free blocks from the maps of free fragments and used inodes. `cs.ndir`
    /// stays: the maps do not know it.
    pub fn recount(&mut self, g: &Geometry) {
        let ndblk = self.h.ndblk.min(g.fpg);
        self.h.frsum = [0; 8];
        let (mut nbfree, mut nffree) = (0, 0);
        self.block_totals.fill(0);
        self.block_positions.fill(0);
        self.clusters = Bitmap::new(self.clusters.capacity());
        let keeps_clusters = self.clusters.capacity() > 0;
        let full = ((1_u16 << g.frag) - 1) as u8;
        for at in (0..ndblk).step_by(g.frag as usize) {
            let free = self.free.bits(at as usize, g.frag as usize);
            if free == full && at + g.frag <= ndblk {
                nbfree += 1;
                if keeps_clusters {
                    self.clusters.put((at / g.frag) as usize, true);
                }
                let cylinder = g.cylinder_of(at) as usize;
                if let Some(count) = self.block_totals.get_mut(cylinder) {
                    *count += 1;
                }
                let position = cylinder * g.old_nrpos as usize + g.position_of(at) as usize;
                if let Some(count) = self.block_positions.get_mut(position) {
                    *count = count.saturating_add(1);
                }
            } else if free != 0 {
                nffree += free.count_ones() as i32;
                count_runs(free, g.frag, &mut self.h.frsum);
            }
        }
        self.h.cs.nbfree = nbfree;
        self.h.cs.nffree = nffree;
        let used = (0..g.ipg as usize).filter(|i| self.used_inodes.get(*i)).count();
        self.h.cs.nifree = g.ipg as i32 - used as i32;
        self.count_clusters(g);
    }

    fn count_clusters(&mut self, g: &Geometry) {
        if self.cluster_sum.is_empty() {
            return;
        }
        self.cluster_sum.fill(0);
        let largest = g.contigsumsize as usize;
        // The map has no more, whatever the header says.
        let blocks = self.h.nclusterblks.min(g.fpg / g.frag) as usize;
        let mut run = 0;
        for block in 0..=blocks {
            // One past the end is never free, and ends the last run.
            if block < blocks && self.clusters.get(block) {
                run += 1;
            } else if run > 0 {
                if let Some(count) = self.cluster_sum.get_mut(run.min(largest)) {
                    *count += 1;
                }
                run = 0;
            }
        }
    }
}

/// Counts maximal runs of free fragments in a block that is not wholly free (`ffs_fragacct`).
fn count_runs(free: u8, frag: u32, frsum: &mut [u32; 8]) {
    let mut run = 0;
    for bit in 0..=frag {
        if bit < frag && free >> bit & 1 == 1 {
            run += 1;
        } else if run > 0 {
            if let Some(count) = frsum.get_mut(run) {
                *count += 1;
            }
            run = 0;
        }
    }
}

/// Cylinders of a group: as many as its fragments reach into, for the last one.
pub(crate) fn group_cylinders(g: &Geometry, group: GroupNo) -> u32 {
    let per_cylinder = (g.fpg / g.old_cpg.max(1)).max(1);
    if group.0 + 1 < g.ncg { g.old_cpg } else { g.group_frags(group).div_ceil(per_cylinder) }
}

fn hash_of(bytes: &[u8]) -> u32 {
    let mut bytes = bytes.to_vec();
    0_u32.put(Endian::Little, &mut bytes, HASH_AT);
    check_hash(&bytes)
}

/// The parts by the header's offsets: inside the group and apart from one another.
fn parts(h: &GroupHeader, g: &Geometry, at_byte: u64) -> Result<Parts, FormatError> {
    let wrong = |field: FieldDef<GroupHeader, u32>| {
        let value = (field.get)(h);
        let problem = format!("{value} puts that part outside the group's {} bytes or over another part", g.cgsize);
        Err(FormatError::field(format!("cylinder group {}", h.cgx), field.name, at_byte + field.at, problem))
    };
    let end = u64::from(g.cgsize);
    let (iused, iused_len) = (u64::from(h.iusedoff), u64::from(g.ipg.div_ceil(8)));
    let (free, free_len) = (u64::from(h.freeoff), u64::from(g.fpg.div_ceil(8)));
    if iused < HEADER_BYTES as u64 || iused + iused_len > free {
        return wrong(GroupHeader::iusedoff);
    }
    if free + free_len > end {
        return wrong(GroupHeader::freeoff);
    }
    let mut clusters = None;
    if g.contigsumsize > 0 {
        let (sum, map) = (u64::from(h.clustersumoff), u64::from(h.clusteroff));
        let map_len = u64::from((g.fpg / g.frag).div_ceil(8));
        if sum + 4 < free + free_len || sum + 4 * (u64::from(g.contigsumsize) + 1) > map {
            return wrong(GroupHeader::clustersumoff);
        }
        if map + map_len > end {
            return wrong(GroupHeader::clusteroff);
        }
        clusters = Some(Clusters { sum_at: sum as usize, map: (map as usize, map_len as usize) });
    }
    let mut rotation = None;
    if let (Version::Ufs1, Ok(totals_at), Ok(positions_at)) =
        (g.layout.version, usize::try_from(h.old_btotoff), usize::try_from(h.old_boff))
    {
        let (totals, positions) = (g.old_cpg as usize, g.old_cpg as usize * g.old_nrpos as usize);
        let fits = totals_at >= HEADER_BYTES
            && totals_at + 4 * totals <= positions_at
            && positions_at + 2 * positions <= iused as usize;
        rotation = fits.then_some(Rotation { totals_at, totals, positions_at, positions });
    }
    Ok(Parts {
        used_inodes: (iused as usize, iused_len as usize),
        free: (free as usize, free_len as usize),
        clusters,
        rotation,
    })
}

fn fixed_parts(g: &Geometry, at_byte: u64) -> Result<Parts, FormatError> {
    let (iused_len, free_len) = (g.ipg.div_ceil(8) as usize, g.fpg.div_ceil(8) as usize);
    if iused_len > fixed::IUSED_BYTES || fixed::FREE + free_len > g.cgsize as usize {
        let problem = format!("{} inodes and {} fragments do not fit a 4.2BSD cylinder group", g.ipg, g.fpg);
        return Err(FormatError::field("superblock", "ipg", at_byte, problem));
    }
    Ok(Parts { used_inodes: (fixed::IUSED, iused_len), free: (fixed::FREE, free_len), clusters: None, rotation: None })
}

#[cfg(test)]
mod tests {
    use super::count_runs;

    #[test]
    fn runs_of_free_fragments() {
        let mut frsum = [0; 8];
        count_runs(0b1011_0110, 8, &mut frsum);
        assert_eq!(frsum, [0, 1, 2, 0, 0, 0, 0, 0]);
        count_runs(0b0111, 4, &mut frsum);
        assert_eq!(frsum, [0, 1, 2, 1, 0, 0, 0, 0]);
    }
}
