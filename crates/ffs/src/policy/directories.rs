//! Which group a new directory goes to (`ffs_dirpref`). Its files go where it is.

use super::{Directories, Tuning};
use crate::alloc::Space;
use crate::format::{Csum, GroupNo, Ino, ROOT_INO};
use rand_core::Rng;

/// The inode that a new directory should have: the first of a group.
pub(crate) fn directory_preference(
    space: &Space,
    tuning: &Tuning,
    policy: Directories,
    parent: Ino,
    random: &mut impl Rng,
) -> Ino {
    let group = match policy {
        Directories::Original => spread(space),
        Directories::Dirpref if parent == ROOT_INO => below_root(space, random),
        Directories::Dirpref => near_parent(space, tuning, parent),
    };
    Ino(group.0 * space.g.ipg)
}

/// Where a file's inode should be: beside its directory's.
pub(crate) fn file_preference(parent: Ino) -> Ino {
    parent
}

/// Keeps count of directories made in a group without files since then; done before the inode is looked for.
pub(crate) fn note_new_inode(space: &mut Space, preferred: Ino, directory: bool) {
    let group = preferred.0 / space.g.ipg;
    let Some(at) = space.groups.get_mut(group as usize) else { return };
    at.contigdirs = if directory { at.contigdirs.saturating_add(1) } else { at.contigdirs.saturating_sub(1) };
}

/// The original policy: of the groups with at least as many free inodes as the average, the first with the fewest
/// directories.
fn spread(space: &Space) -> GroupNo {
    let average = space.total.nifree / i64::from(space.g.ncg);
    fewest_directories(space, 0, |cs| i64::from(cs.nifree) >= average)
}

/// The first group with the fewest directories of those that will do, going round from `start`.
fn fewest_directories(space: &Space, start: usize, will_do: impl Fn(&Csum) -> bool) -> GroupNo {
    let mut best = start;
    let mut fewest = i64::from(space.g.ipg);
    for group in (start..space.cs.len()).chain(0..start) {
        let Some(cs) = space.cs.get(group) else { continue };
        if i64::from(cs.ndir) < fewest && will_do(cs) {
            (best, fewest) = (group, cs.ndir.into());
        }
    }
    GroupNo(best as u32)
}

/// Directories of the root are spread: from a random group on, the fewest directories among those with free inodes and
/// blocks at least average.
fn below_root(space: &Space, random: &mut impl Rng) -> GroupNo {
    let groups = i64::from(space.g.ncg);
    let (inodes, blocks) = (space.total.nifree / groups, space.total.nbfree / groups);
    let start = random.next_u32() % space.g.ncg;
    fewest_directories(space, start as usize, |cs| i64::from(cs.nifree) >= inodes && i64::from(cs.nbfree) >= blocks)
}

/// The first group from the parent's on that has not too many directories, and room for this one's files.
fn near_parent(space: &Space, tuning: &Tuning, parent: Ino) -> GroupNo {
    let g = &space.g;
    let groups = i64::from(g.ncg);
    let (ipg, bsize) = (i64::from(g.ipg), i64::from(g.bsize));
    let (avg_inodes, avg_blocks) = (space.total.nifree / groups, space.total.nbfree / groups);
    let avg_dirs = space.total.ndir / groups;
    let most_dirs = (avg_dirs + ipg / 16).min(ipg);
    let least_inodes = (avg_inodes - avg_inodes / 4).max(1);
    let least_blocks = (avg_blocks - avg_blocks / 4).max(1);
    let contiguous_most =
        contigdirs_limit(tuning, i64::from(g.fsize) * i64::from(g.fpg), avg_blocks * bsize, avg_dirs, ipg);
    let start = g.group_of_ino(parent).0 as usize;
    let round = || (start..space.cs.len()).chain(0..start);
    let good = round().find(|group| {
        let (Some(cs), Some(at)) = (space.cs.get(*group), space.groups.get(*group)) else { return false };
        i64::from(cs.ndir) < most_dirs
            && i64::from(cs.nifree) >= least_inodes
            && i64::from(cs.nbfree) >= least_blocks
            && i64::from(at.contigdirs) < contiguous_most
    });
    // Short of space: whatever has inodes.
    let backstop = || round().find(|group| space.cs.get(*group).is_some_and(|cs| i64::from(cs.nifree) >= avg_inodes));
    GroupNo(good.or_else(backstop).unwrap_or(start) as u32)
}

/// How many directories may be made in a group in a row: as many as its free space has room for.
fn contigdirs_limit(tuning: &Tuning, group_bytes: i64, free_bytes: i64, avg_dirs: i64, ipg: i64) -> i64 {
    let in_use = if avg_dirs > 0 { (group_bytes - free_bytes) / avg_dirs } else { 0 };
    let directory_bytes = (tuning.avgfilesize * tuning.avgfpdir).max(in_use);
    let by_space = if directory_bytes > 0 { (free_bytes / directory_bytes).min(255) } else { 0 };
    let by_inodes = if tuning.avgfpdir > 0 { ipg / tuning.avgfpdir } else { 255 };
    by_space.min(by_inodes).max(1)
}
