//! Phase 5: the cylinder groups' maps and counts, worked out from what the phases before have found.

use super::{Check, Contents, Finding, Kind, Phase, Place};
use crate::format::{
    Bitmap, Csum, CsumTotal, CylinderGroup, GroupFormat, GroupHeader as H, GroupNo, GroupOffsets, SuperblockFields,
    Version, group_cylinders,
};
use crate::mkfs::metadata;
use crate::{FfsError, Store};
use device::store::{read, write};
use std::collections::BTreeSet;
use std::fmt::Display;
use ufs::FieldDef;

impl<S: Store> Check<'_, S> {
    pub(super) fn groups(&mut self) -> Result<(), FfsError> {
        let (mut total, mut metadata_frags) = (CsumTotal::default(), 0);
        let summaries_at = self.g.byte_of(self.g.csaddr);
        let mut summaries = read(&self.store, summaries_at, self.g.cssize as usize)?;
        let mut summaries_changed = false;
        for c in 0..self.g.ncg {
            self.asked(Phase::Groups)?;
            let group = GroupNo(c);
            let expected = self.expected(group);
            self.compare(group, &expected)?;
            total.add(&expected.cs);
            let (low, high) = metadata(&self.g, group);
            metadata_frags += u64::from(high - low);
            let at = c as usize * Csum::BYTES;
            let place = summaries.get_mut(at..at + Csum::BYTES).unwrap_or_default();
            let found = Csum::decode(place, self.g.endian());
            if found != expected.cs {
                let message = format!("summary of group {c}: {}", difference(&found, &expected.cs));
                self.problem(Phase::Groups, Finding::Summary, Place::Byte(summaries_at + at as u64), message, "set");
                expected.cs.encode(place, self.g.endian());
                summaries_changed = true;
            }
        }
        if summaries_changed {
            write(&mut self.store, summaries_at, &summaries)?;
        }
        self.totals(&total)?;
        self.contents(&total, metadata_frags);
        Ok(())
    }

    fn totals(&mut self, total: &CsumTotal) -> Result<(), FfsError> {
        let found = self.sb.cstotal();
        let unused = (found.numclusters, found.spare);
        if found.same(total) && unused == Default::default() {
            return Ok(());
        }
        let at = self.home_byte
            + if self.sb.wide() { SuperblockFields::cstotal.at } else { SuperblockFields::old_cstotal.at };
        let wrong = differences(&[
            ("directories", found.ndir, total.ndir),
            ("free blocks", found.nbfree, total.nbfree),
            ("free inodes", found.nifree, total.nifree),
            ("free fragments", found.nffree, total.nffree),
            ("clusters, which nobody counts,", found.numclusters, 0),
        ]);
        let message = format!("totals in the superblock: {wrong}");
        self.problem(Phase::Groups, Finding::Totals, Place::Byte(at), message, "set");
        self.sb.set_cstotal(total);
        if self.sb.wide() {
            (self.sb.cstotal.numclusters, self.sb.cstotal.spare) = Default::default();
        }
        Ok(write(&mut self.store, self.home_byte, &self.sb.encode())?)
    }

    /// A group as it should be: what is in use as found, the rest as it is in the image.
    fn expected(&self, group: GroupNo) -> CylinderGroup {
        let g = &self.g;
        let on_disk = self.on_disk.get(group.0 as usize).and_then(Option::as_ref);
        let mut cg = on_disk.cloned().unwrap_or_else(|| CylinderGroup::new(g, group));
        if on_disk.is_none() {
            cg.time = self.sb.time();
            cg.old_time = self.sb.time() as i32;
        }
        cg.cgx = group.0;
        cg.ndblk = g.group_frags(group);
        let modern = cg.format == GroupFormat::Offsets;
        if modern {
            cg.nclusterblks = if g.contigsumsize > 0 { cg.ndblk / g.frag } else { 0 };
            // Without maps of clusters, or rotational tables, there is no place for them either.
            let usual = GroupOffsets::of(g);
            (cg.clustersumoff, cg.clusteroff) = (usual.clustersumoff, usual.clusteroff);
            if g.layout.version == Version::Ufs2 {
                (cg.old_btotoff, cg.old_boff) = (0, 0);
            }
        }
        let ipg = g.ipg;
        for rotor in [&mut cg.h.rotor, &mut cg.h.frotor] {
            *rotor = if *rotor < cg.h.ndblk { *rotor } else { 0 };
        }
        cg.irotor = if cg.irotor < ipg { cg.irotor } else { 0 };
        if g.layout.version == Version::Ufs2 {
            cg.niblk = ipg;
            let inited = self.inited.get(group.0 as usize).copied().unwrap_or(ipg);
            // What the group says stays, if it agrees with what is in use.
            let high = (0..ipg).rev().find(|i| self.in_use(group, *i)).map_or(0, |i| i + 1);
            if cg.initediblk > ipg || cg.initediblk < high || cg.initediblk == 0 {
                cg.initediblk = inited;
            }
            if modern {
                (cg.old_ncyl, cg.old_niblk) = (0, 0);
            }
        } else if modern && self.sb.wide() {
            cg.old_ncyl = group_cylinders(g, group) as i16;
            cg.old_niblk = ipg as i16;
            (cg.niblk, cg.initediblk) = (0, 0);
        }
        if modern {
            // Inodes without names have all been found by now.
            cg.unrefs = 0;
            if !g.group_hash {
                cg.ckhash = 0;
            }
        }
        // Bits behind the last of a map are nobody's, and clear.
        cg.free = Bitmap::new(g.fpg as usize);
        cg.used_inodes = Bitmap::new(ipg as usize);
        let base = g.group_base(group).0 as usize;
        for frag in 0..g.fpg {
            let free = frag < cg.ndblk && !self.claimed.get(base + frag as usize);
            cg.free.put(frag as usize, free);
        }
        let mut ndir = 0;
        for i in 0..ipg {
            let used = self.in_use(group, i);
            cg.used_inodes.put(i as usize, used);
            let ino = group.0 * ipg + i;
            ndir += i32::from(self.known.get(ino as usize).is_some_and(|k| k.kind == Kind::Dir));
        }
        let rotation = (cg.block_totals.clone(), cg.block_positions.clone());
        cg.recount(g);
        cg.cs.ndir = ndir;
        if self.sb.wide() && on_disk.is_some() {
            // Systems that keep the wide fields no longer keep these.
            (cg.block_totals, cg.block_positions) = rotation;
        }
        cg
    }

    fn in_use(&self, group: GroupNo, i: u32) -> bool {
        let ino = group.0 * self.g.ipg + i;
        ino < 2 || self.known.get(ino as usize).is_some_and(|k| k.kind != Kind::Free)
    }

    /// Says where a group in the image differs from what it should be, and writes it.
    fn compare(&mut self, group: GroupNo, expected: &CylinderGroup) -> Result<(), FfsError> {
        let at = self.g.byte_of(self.g.group_block(group));
        let bytes = expected.encode_plain(&self.g);
        let Some(found) = self.on_disk.get(group.0 as usize).cloned().flatten() else {
            return Ok(write(&mut self.store, at, &bytes)?); // Reported in phase 1.
        };
        let hash_is_wrong = found.hash_is_right(&self.g) == Some(false);
        let problems = self.report.problem_count;
        let hash_is_kept = self.g.group_hash || expected.format == GroupFormat::Fixed;
        let base = self.g.group_base(group).0;
        let of_group = base..base + u64::from(self.g.group_frags(group));
        let own: BTreeSet<u64> = self.filled.iter().cloned().flatten().filter(|addr| of_group.contains(addr)).collect();
        let taken = own.into_iter().map(|addr| (addr - base) as usize);
        let mut unmarked = 0;
        let mut say = |kind, offset: u64, message: String| {
            let message = format!("cylinder group {group}: {message}");
            self.problem(Phase::Groups, kind, Place::Byte(at + offset), message, "set");
        };
        let (f, e) = (&found, expected);
        if f.used_inodes != e.used_inodes {
            let (used, free) = bit_differences(&e.used_inodes, &f.used_inodes);
            let finding = Finding::InodeMap { used_as_free: used as u64 };
            say(finding, f.iusedoff.into(), format!("{used} inodes in use marked as free, {free} free ones as in use"));
        }
        if f.free != e.free {
            let (free, used) = bit_differences(&e.free, &f.free);
            unmarked = used as u64 - taken.filter(|frag| f.free.get(*frag) && !e.free.get(*frag)).count() as u64;
            let finding = Finding::BlockMap { used_as_free: used as u64 };
            say(
                finding,
                f.freeoff.into(),
                format!("{used} fragments in use marked as free, {free} free ones as in use"),
            );
        }
        if f.clusters != e.clusters || f.cluster_sum != e.cluster_sum {
            say(Finding::Clusters, f.clusteroff.into(), "the map or the summary of free blocks is wrong".to_owned());
        }
        if f.cs != e.cs {
            say(Finding::Counts, H::cs.at, difference(&f.cs, &e.cs));
        }
        if f.frsum != e.frsum {
            say(
                Finding::Counts,
                H::frsum.at,
                format!("counts of free fragments {:?}, should be {:?}", f.frsum, e.frsum),
            );
        }
        if (&f.block_totals, &f.block_positions) != (&e.block_totals, &e.block_positions) {
            say(
                Finding::Rotation,
                f.old_btotoff.unsigned_abs().into(),
                "counts of free blocks by position are wrong".to_owned(),
            );
        }
        let (found_header, right_header) = (&f.h, &e.h);
        let numbers = [
            changed(H::old_btotoff, found_header, right_header),
            changed(H::old_boff, found_header, right_header),
            changed(H::clustersumoff, found_header, right_header),
            changed(H::clusteroff, found_header, right_header),
            changed(H::old_ncyl, found_header, right_header),
            changed(H::old_niblk, found_header, right_header),
            changed(H::unrefs, found_header, right_header),
            changed(H::cgx, found_header, right_header),
            changed(H::ndblk, found_header, right_header),
            changed(H::rotor, found_header, right_header),
            changed(H::frotor, found_header, right_header),
            changed(H::irotor, found_header, right_header),
            changed(H::nclusterblks, found_header, right_header),
            changed(H::niblk, found_header, right_header),
            changed(H::initediblk, found_header, right_header),
            // One that is kept is seen to in phase 1.
            changed(H::ckhash, found_header, right_header).filter(|_| !hash_is_kept),
        ];
        for (at, message) in numbers.into_iter().flatten() {
            say(Finding::GroupField, at, message);
        }
        self.report.unmarked_frags += unmarked;
        if self.report.problem_count == problems && bytes != found.bytes() && !hash_is_wrong {
            let differs = bytes.iter().zip(found.bytes()).position(|(a, b)| a != b).unwrap_or(0);
            let message = format!("cylinder group {group}: bytes that no field has are not zero");
            self.problem(Phase::Groups, Finding::GroupField, Place::Byte(at + differs as u64), message, "set");
        }
        if bytes != found.bytes() {
            write(&mut self.store, at, &bytes)?;
        }
        Ok(())
    }

    fn contents(&mut self, total: &CsumTotal, metadata_frags: u64) {
        let count = |kind: Kind| self.known.iter().filter(|k| k.kind == kind).count() as u64;
        let free_blocks = total.nbfree.unsigned_abs();
        let in_part = total.nffree.unsigned_abs();
        let data = self.g.size_frags - metadata_frags;
        let free_frags = free_blocks * u64::from(self.g.frag) + in_part;
        self.report.contents = Contents {
            files: count(Kind::File),
            directories: count(Kind::Dir),
            used_frags: data.saturating_sub(free_frags),
            free_frags,
            free_in_part_blocks: in_part,
            free_blocks,
            fragmentation: if data == 0 { 0.0 } else { in_part as f64 / data as f64 },
        };
    }
}

/// Where a field of a group's header is not as it should be, and how.
fn changed<T: PartialEq + Display>(field: FieldDef<H, T>, found: &H, expected: &H) -> Option<(u64, String)> {
    let (found, expected) = ((field.get)(found), (field.get)(expected));
    (found != expected).then(|| (field.at, format!("{} is {found}, should be {expected}", field.name)))
}

/// How many bits only the first has set, and how many only the second.
fn bit_differences(a: &crate::format::Bitmap, b: &crate::format::Bitmap) -> (usize, usize) {
    let bits = a.capacity().max(b.capacity());
    let only =
        |x: &crate::format::Bitmap, y: &crate::format::Bitmap| (0..bits).filter(|i| x.get(*i) && !y.get(*i)).count();
    (only(a, b), only(b, a))
}

fn difference(found: &Csum, expected: &Csum) -> String {
    differences(&[
        ("directories", found.ndir.into(), expected.ndir.into()),
        ("free blocks", found.nbfree.into(), expected.nbfree.into()),
        ("free inodes", found.nifree.into(), expected.nifree.into()),
        ("free fragments", found.nffree.into(), expected.nffree.into()),
    ])
}

/// Of numbers with their names, as found and as they should be, those that differ.
fn differences(named: &[(&str, i64, i64)]) -> String {
    let wrong = named.iter().filter(|(_, found, expected)| found != expected);
    let shown: Vec<String> =
        wrong.map(|(name, found, expected)| format!("{name} {found}, should be {expected}")).collect();
    shown.join("; ")
}
