//! Where in a cylinder group its parts are.

use super::Version;

/// Bytes of a cylinder group's header.
pub(super) const HEADER_BYTES: usize = 168;

/// Where a group made now has its parts (`initcg` of newfs).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupOffsets {
    /// Free blocks by cylinder.
    pub btotoff: u32,
    /// Free blocks by position.
    pub boff: u32,
    /// Map of used inodes.
    pub iusedoff: u32,
    /// Map of free fragments.
    pub freeoff: u32,
    /// Cluster summary.
    pub clustersumoff: u32,
    /// Map of free blocks.
    pub clusteroff: u32,
    /// After everything: the bytes a group needs.
    pub nextfreeoff: u32,
}

impl GroupOffsets {
    /// For groups of `ipg` inodes and `fpg` fragments.
    pub fn new(
        version: Version,
        cpg: u32,
        nrpos: u32,
        ipg: u32,
        fpg: u32,
        frag: u32,
        contigsumsize: u32,
    ) -> GroupOffsets {
        let header = HEADER_BYTES as u32;
        let (btotoff, boff, iusedoff) = match version {
            Version::Ufs1 => (header, header + 4 * cpg, header + 4 * cpg + 2 * cpg * nrpos),
            Version::Ufs2 => (0, 0, header),
        };
        let freeoff = iusedoff + ipg.div_ceil(8);
        let free_end = freeoff + fpg.div_ceil(8);
        if contigsumsize == 0 {
            return GroupOffsets {
                btotoff,
                boff,
                iusedoff,
                freeoff,
                clustersumoff: 0,
                clusteroff: 0,
                nextfreeoff: free_end,
            };
        }
        // The summary is indexed from 1, so that its entry 0 may lie over the end of the free map.
        let clustersumoff = (free_end - 4).next_multiple_of(4);
        let clusteroff = clustersumoff + (contigsumsize + 1) * 4;
        let nextfreeoff = clusteroff + (fpg / frag).div_ceil(8);
        GroupOffsets { btotoff, boff, iusedoff, freeoff, clustersumoff, clusteroff, nextfreeoff }
    }
}
