//! What the superblock says about allocation, in the units that it is used in.

use crate::format::{Geometry, Superblock};

/// Tuning parameters of a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuning {
    /// Blocks of one file in a group before it goes to another; at least 1.
    pub maxbpg: u64,
    /// Blocks that are laid out without a gap; at least 1.
    pub maxcontig: u64,
    /// Fragments, whole blocks of them, to leave free after `maxcontig` blocks.
    pub gap_frags: u64,
    /// Per cent of space held back.
    pub minfree: i64,
    /// Data fragments.
    pub dsize: i64,
    /// Fragments held back.
    pub reserve: i64,
    /// Fragments at the beginning of a group's data for metadata.
    pub metaspace: u64,
    /// Expected bytes of a file.
    pub avgfilesize: i64,
    /// Expected files of a directory.
    pub avgfpdir: i64,
}

impl Tuning {
    /// From a superblock. Values that make no sense count as their least or most.
    pub fn of(sb: &Superblock, g: &Geometry) -> Tuning {
        let at_least = |value: i32, least: u64| u64::try_from(value).unwrap_or(0).max(least);
        // ms * revolutions/s * sectors/revolution / (sectors/fragment * ms/s), in whole blocks.
        let sectors = at_least(sb.old_rotdelay, 0).saturating_mul(at_least(sb.old_rps, 0));
        let sectors = sectors.saturating_mul(u64::from(g.old_nsect));
        let gap = sectors / (u64::from(g.fsize / 512) * 1000);
        let gap = gap.min(g.fpg.into());
        let gap_frags = if sb.old_rotdelay > 0 { gap.next_multiple_of(g.frag.into()) } else { 0 };
        let dsize = sb.dsize_frags().clamp(0, i64::try_from(g.size_frags).unwrap_or(i64::MAX));
        let minfree = i64::from(sb.minfree).clamp(0, 99);
        let expected = |value: u32| i64::from(value).min(i32::MAX.into());
        Tuning {
            maxbpg: at_least(sb.maxbpg, 1),
            maxcontig: at_least(sb.maxcontig, 1),
            gap_frags: gap_frags.min(g.fpg.into()),
            minfree,
            dsize,
            reserve: dsize.saturating_mul(minfree) / 100,
            metaspace: u64::try_from(sb.metaspace).unwrap_or(0).min(u64::from(g.fpg - g.dblkno)),
            avgfilesize: expected(sb.avgfilesize),
            avgfpdir: expected(sb.avgfpdir),
        }
    }

    /// Fragments free for an ordinary user, of so many free; negative if root has used of the reserve.
    pub fn available(&self, free_frags: i64) -> i64 {
        free_frags - self.reserve
    }
}
