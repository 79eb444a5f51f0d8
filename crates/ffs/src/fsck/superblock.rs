//! Before the phases: which superblock to believe, and putting the others right.

use super::report::{Finding, Phase, Problem, Report};
use crate::format::{CylinderGroup, Geometry, GroupNo, SB_SIZE_MAX, Superblock, SuperblockFields as F, Version, flags};
use crate::image::{Located, Search, locate};
use crate::{FfsError, Store};
use device::store::{read, write};
use std::fmt::Display;
use ufs::FieldDef;

/// Groups sampled to see whether a superblock fits the image.
const SAMPLED: u32 = 8;

/// The superblock that fits the image best: the standard one, unless another finds more cylinder groups as it expects
/// them, or as many and has more copies that agree with it.
pub(super) fn choose<S: Store>(store: &S) -> Result<Located, FfsError> {
    let first = locate(store, Search::Copies)?;
    let mut places: Vec<u64> = (0..first.geometry.ncg.min(SAMPLED)).map(|c| copy_at(&first, c)).collect();
    places.push(copy_at(&first, first.geometry.ncg - 1));
    places.extend([8192, 16384, 32768, 65536, 73728, 81920, 98304, 131072]);
    places.sort_unstable();
    places.dedup();
    places.retain(|at| *at != first.at_byte);
    let home_byte = first.home_byte;
    // Each with the number of those that agree with it, the standard one before any other.
    let mut found = vec![(first, 1)];
    for at in places {
        let Ok(other) = locate(store, Search::At(at)) else { continue };
        if other.home_byte != home_byte {
            continue;
        }
        match found.iter_mut().find(|(known, _)| essentials(&known.sb) == essentials(&other.sb)) {
            Some((_, votes)) => *votes += 1,
            None => found.push((other, 1)),
        }
    }
    let ranked = found.into_iter().map(|(located, votes)| (fit(store, &located), votes, located));
    let best = ranked.reduce(|best, next| if (next.0, next.1) > (best.0, best.1) { next } else { best });
    best.map(|(_, _, located)| located).ok_or_else(|| FfsError::NoFileSystem(String::new()))
}

fn copy_at(located: &Located, group: u32) -> u64 {
    located.sb.copy_at(&located.geometry, GroupNo(group))
}

/// The share of sampled groups that are where the superblock says, in thousandths.
fn fit<S: Store>(store: &S, located: &Located) -> u32 {
    let g = &located.geometry;
    let sampled: Vec<u32> = (0..g.ncg.min(SAMPLED)).chain([g.ncg / 2, g.ncg - 1]).collect();
    let found = sampled.iter().filter(|c| {
        let at = g.byte_of(g.group_block(GroupNo(**c)));
        let group = read(store, at, g.cgsize as usize).ok().and_then(|b| CylinderGroup::decode(&b, g, at).ok());
        let inodes = |group: &CylinderGroup| match g.layout.version {
            Version::Ufs1 => group.old_niblk == g.ipg as i16,
            Version::Ufs2 => group.niblk == g.ipg,
        };
        group.is_some_and(|group| group.cgx == **c && group.ndblk == g.group_frags(GroupNo(**c)) && inodes(&group))
    });
    (found.count() * 1000 / sampled.len()) as u32
}

/// The fields that never change in the life of a file system and that everything is found with.
fn essentials(sb: &Superblock) -> [i64; 24] {
    [
        sb.magic.into(),
        sb.sblkno.into(),
        sb.cblkno.into(),
        sb.iblkno.into(),
        sb.dblkno.into(),
        sb.old_cgoffset.into(),
        sb.old_cgmask.into(),
        sb.ncg.into(),
        sb.bsize.into(),
        sb.fsize.into(),
        sb.frag.into(),
        sb.sbsize.into(),
        sb.nindir.into(),
        sb.inopb.into(),
        sb.size_frags(),
        sb.csaddr(),
        sb.cssize.into(),
        sb.cgsize.into(),
        sb.ipg.into(),
        sb.fpg.into(),
        sb.contigsumsize.into(),
        sb.maxsymlinklen.into(),
        sb.old_inodefmt.into(),
        sb.old_cpg.into(),
    ]
}

/// What follows from them; in a copy it is what it was when the copy was written.
fn derived(sb: &Superblock) -> [i64; 6] {
    [sb.bmask, sb.fmask, sb.bshift, sb.fshift, sb.fragshift, sb.fsbtodb].map(i64::from)
}

/// Says what is wrong with the superblock, and puts right what follows from other fields.
pub(super) fn repaired<S: Store>(store: &mut S, chosen: Located, report: &mut Report) -> Result<Superblock, FfsError> {
    let Located { mut sb, geometry: g, at_byte, home_byte } = chosen;
    let mut add = |kind, at_byte: u64, message: String, repair: &str| {
        let (phase, repair) = (Phase::Superblock, Some(repair.to_owned()));
        report.add(Problem { phase, kind, ino: None, at_byte: Some(at_byte), message, repair });
    };
    if at_byte != home_byte {
        let message = format!("the superblock at byte {home_byte} is damaged or contradicts the groups");
        add(Finding::SuperblockDamaged, home_byte, message, &format!("written anew from the copy at byte {at_byte}"));
    }
    let mut field = |at, message: String, repair: &str| add(Finding::SuperblockField, at_byte + at, message, repair);
    mend(&mut sb, &g, home_byte, &mut field);
    if report.problem_count > 0 {
        write(store, home_byte, &sb.encode())?;
    }
    copies(store, &sb, report)?;
    Ok(sb)
}

/// Puts right what the superblock says of its own place.
fn places(sb: &mut Superblock, home_byte: u64, add: &mut dyn FnMut(u64, String, &str)) {
    let home = home_byte as i64;
    let ufs2 = sb.layout.version == Version::Ufs2;
    // UFS1 from before the field has 0.
    let right = sb.sblockloc == home || (!ufs2 && sb.sblockloc == 0);
    if !right && home != 0 {
        set(sb, F::sblockloc, home, add);
    }
    if sb.sblockactualloc != 0 {
        set(sb, F::sblockactualloc, home, add);
    }
}

/// Sets a field to what it should be, and tells of it.
fn set<T: Copy + PartialEq + Display>(
    sb: &mut Superblock,
    field: FieldDef<F, T>,
    expected: T,
    add: &mut dyn FnMut(u64, String, &str),
) {
    let value = (field.get_mut)(&mut sb.f);
    if *value != expected {
        add(field.at, format!("superblock: {} is {value}, and should be {expected}", field.name), "set");
        *value = expected;
    }
}

/// Puts right each field that follows from others or has no sense, and tells of it: its place, what is wrong, what is
/// done. The superblock belongs at `home_byte`.
pub(crate) fn mend(sb: &mut Superblock, g: &Geometry, home_byte: u64, add: &mut dyn FnMut(u64, String, &str)) {
    if sb.wide() {
        places(sb, home_byte, add);
    }
    let log2 = |n: u32| n.trailing_zeros() as i32;
    let pointer = g.layout.version.pointer_bytes();
    set(sb, F::inopb, g.inopb(), add);
    let mut derived: Vec<(FieldDef<F, i32>, i32)> = vec![
        (F::bmask, !(g.bsize as i32 - 1)),
        (F::fmask, !(g.fsize as i32 - 1)),
        (F::bshift, g.bshift as i32),
        (F::fshift, g.fshift as i32),
        (F::fragshift, g.fragshift as i32),
        (F::fsbtodb, log2(g.fsize / 512)),
        (F::nindir, (g.bsize / pointer) as i32),
    ];
    if !(1376..=SB_SIZE_MAX as i32).contains(&sb.sbsize) || sb.wide() && sb.sbsize % 512 != 0 {
        let bytes = 1376_u32.next_multiple_of(g.fsize).min(SB_SIZE_MAX as u32);
        derived.push((F::sbsize, bytes as i32));
    }
    if !(0..=99).contains(&sb.minfree) {
        derived.push((F::minfree, 8));
    }
    if !(0..=1).contains(&sb.optim) {
        derived.push((F::optim, 0));
    }
    if g.layout.version == Version::Ufs1 && !g.old_groups {
        derived.push((F::old_nspf, (g.fsize / 512) as i32));
        if sb.wide() && sb.old_cpg == 1 {
            // One cylinder a group: there are no heads and tracks.
            let spc = g.fpg.saturating_mul(g.fsize / 512) as i32;
            derived.extend([
                (F::old_rps, 60),
                (F::old_npsect, spc),
                (F::old_interleave, 1),
                (F::old_trackskew, 0),
                (F::old_nsect, spc),
                (F::old_spc, spc),
                (F::old_ncyl, g.ncg as i32),
                (F::old_cpc, 0),
                (F::old_nrpos, 1),
            ]);
        } else {
            let nsect = sb.old_nsect.max(1);
            if !(1..=nsect).contains(&sb.old_interleave) {
                derived.push((F::old_interleave, 1));
            }
            if !(nsect..=nsect.saturating_mul(2)).contains(&sb.old_npsect) {
                derived.push((F::old_npsect, nsect));
            }
        }
        if sb.wide() {
            derived.push((F::old_postblformat, 1));
        }
    }
    if sb.wide() {
        let area = crate::format::symlink_area_bytes(g.layout.version) as i32;
        // Without any, short links are in blocks, and stay there.
        if !g.old_inodes && sb.maxsymlinklen != 0 {
            derived.push((F::maxsymlinklen, area));
        }
        derived.push((F::cssize, (g.ncg * 16).next_multiple_of(g.fsize) as i32));
        if u32::try_from(sb.cgrotor).map_or(true, |group| group >= g.ncg) {
            derived.push((F::cgrotor, 0));
        }
        let bsize = g.bsize as i32;
        if sb.maxbsize < bsize || sb.maxbsize > 16 * bsize || sb.maxbsize & (sb.maxbsize - 1) != 0 {
            derived.push((F::maxbsize, bsize));
        }
    }
    for (field, expected) in derived {
        set(sb, field, expected, add);
    }
    if sb.wide() && sb.old_inodefmt >= 2 {
        let (qbmask, qfmask) = (i64::from(g.bsize) - 1, i64::from(g.fsize) - 1);
        if (sb.qbmask, sb.qfmask) != (qbmask, qfmask) {
            add(F::qbmask.at, "superblock: qbmask or qfmask is not bsize - 1 or fsize - 1".into(), "set");
            (sb.qbmask, sb.qfmask) = (qbmask, qfmask);
        }
        // The last byte that the pointers reach, which is what every system but the first to have the field puts there.
        set(sb, F::maxfilesize, g.max_file_bytes(), add);
    }
    if sb.wide() {
        if sb.flags & !flags::KNOWN != 0 {
            let message = format!("superblock: flags {:#x} has bits that no system knows", sb.flags);
            add(F::flags.at, message, "cleared");
            sb.flags &= flags::KNOWN;
        }
        if !(0..=i64::from(g.fpg / 2)).contains(&sb.metaspace) {
            let message = format!("superblock: metaspace is {} fragments of a group of {}", sb.metaspace, g.fpg);
            add(F::metaspace.at, message, "set to 0");
            sb.metaspace = 0;
        }
        if sb.clean == 1 && (sb.pendingblocks, sb.pendinginodes) != (0, 0) {
            let message = format!(
                "superblock: {} blocks and {} inodes are still to be freed, of a file system marked clean",
                sb.pendingblocks, sb.pendinginodes
            );
            add(F::pendingblocks.at, message, "set to 0");
            (sb.pendingblocks, sb.pendinginodes) = (0, 0);
        }
    }
}

/// Checks the copies in the groups against the superblock.
fn copies<S: Store>(store: &mut S, sb: &Superblock, report: &mut Report) -> Result<(), FfsError> {
    let g = sb.geometry(0)?;
    for c in 0..g.ncg {
        let at = sb.copy_at(&g, GroupNo(c));
        let bytes = read(store, at, sb.sb_bytes())?;
        let same = Superblock::decode(&bytes, at).is_ok_and(|copy| {
            copy.layout == sb.layout && essentials(&copy) == essentials(sb) && derived(&copy) == derived(sb)
        });
        if !same {
            report.add(Problem {
                phase: Phase::Superblock,
                kind: Finding::SuperblockCopy,
                ino: None,
                at_byte: Some(at),
                message: format!("the copy of the superblock in group {c} is damaged"),
                repair: Some("written anew".to_owned()),
            });
            write(store, at, &sb.encode())?;
        }
    }
    Ok(())
}

/// Marks a repaired file system as clean; one that nothing was wrong with stays as it is.
pub(super) fn finish<S: Store>(
    store: &mut S,
    sb: &mut Superblock,
    home_byte: u64,
    report: &Report,
) -> Result<(), FfsError> {
    if report.unrepaired > 0 || report.is_clean() && report.marked_clean {
        return Ok(());
    }
    sb.clean = 1;
    sb.fmod = 0;
    if sb.wide() {
        (sb.pendingblocks, sb.pendinginodes) = (0, 0);
        sb.flags &= !(flags::UNCLEAN | flags::NEEDSFSCK);
    }
    Ok(write(store, home_byte, &sb.encode())?)
}
