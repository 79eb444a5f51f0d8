//! Whether everything in memory agrees: what fsck asks of an image, asked of the live structures.

use super::Ffs;
use super::inodes::Body;
use crate::format::{Bitmap, FragAddr, GroupNo, ROOT_INO, symlink_area_bytes};
use crate::mkfs::metadata;
use kernel::Ino;
use ufs::live::Piece;
use ufs::live::check::{self, Disagreement, note};

impl Ffs {
    /// Counts everything anew and compares: pieces of files with the free maps, the maps with the summaries, the names
    /// with the link counts. Takes time in proportion to the file system. What a crash of Soft Updates may have left is
    /// none until it has been given back.
    pub fn check(&self) -> Vec<Disagreement> {
        let mut found = Vec::new();
        self.check_groups(&mut found);
        self.check_space(&mut found);
        self.check_links(&mut found);
        found
    }

    fn check_groups(&self, found: &mut Vec<Disagreement>) {
        let mut total = crate::format::CsumTotal::default();
        for number in (0..self.g.ncg).map(GroupNo) {
            let Some(mut kept) = self.space.group(number) else { continue };
            kept.keep_block_map(&self.g);
            let mut counted = kept.clone();
            counted.recount(&self.g);
            total.add(&kept.cs);
            let same = (kept.cs.nbfree, kept.cs.nffree, kept.cs.nifree)
                == (counted.cs.nbfree, counted.cs.nffree, counted.cs.nifree);
            note(found, same, None, || format!("group {number}: counts {:?}, its maps say {:?}", kept.cs, counted.cs));
            let parts = [
                ("runs of fragments", kept.frsum[..].to_vec(), counted.frsum[..].to_vec()),
                ("clusters", kept.cluster_sum.clone(), counted.cluster_sum.clone()),
                ("blocks by cylinder", kept.block_totals.clone(), counted.block_totals.clone()),
            ];
            for (name, kept, counted) in parts {
                note(found, kept == counted, None, || {
                    format!("group {number}: {name} {kept:?}, its maps say {counted:?}")
                });
            }
            let same = kept.block_positions == counted.block_positions;
            note(found, same, None, || format!("group {number}: blocks by position differ from its maps"));
            let live = self.space.groups.get(number.0 as usize);
            let same = live.is_some_and(|live| live.cg.clusters == kept.clusters);
            note(found, same, None, || {
                format!("group {number}: the map of free blocks differs from that of fragments")
            });
        }
        let same = total.same(&self.space.total);
        note(found, same, None, || format!("totals {:?}, the groups have {total:?}", self.space.total));
    }

    /// Every piece of a file is used once and not free; nothing else is used.
    fn check_space(&self, found: &mut Vec<Disagreement>) {
        let g = &self.g;
        let mut used: Vec<Bitmap> = (0..g.ncg).map(|_| Bitmap::new(g.fpg as usize)).collect();
        for (number, map) in (0..).zip(&mut used) {
            let (low, high) = metadata(g, GroupNo(number));
            map.put_range(low as usize, (high - low) as usize, true);
        }
        for (ino, node) in self.inodes.iter() {
            let mut frags_of_file = 0;
            let mut use_up = |piece: Piece| {
                let frags = u64::from(piece.bytes >> g.fshift);
                let sound = g.holds(piece.addr, frags);
                note(found, sound, Some(ino), || format!("{frags} fragments at {} are outside", piece.addr));
                if !sound {
                    return;
                }
                let group = g.group_of(FragAddr(piece.addr.unsigned_abs()));
                let from = (piece.addr.unsigned_abs() - g.group_base(group).0) as usize;
                let Some(map) = used.get_mut(group.0 as usize) else { return };
                let twice = (from..from + frags as usize).any(|frag| map.get(frag));
                note(found, !twice, Some(ino), || format!("fragments at {} are used twice", piece.addr));
                map.put_range(from, frags as usize, true);
            };
            self.each_piece(ino, node, &mut |piece| {
                frags_of_file += u64::from(piece.bytes >> g.fshift);
                use_up(piece);
            });
            if self.crashed.is_some() {
                self.beyond(node).into_iter().for_each(use_up);
            }
            let counted = frags_of_file * u64::from(g.fsize / 512);
            note(found, counted == node.d.blocks, Some(ino), || {
                format!("holds {counted} sectors, its inode says {}", node.d.blocks)
            });
        }
        // What was given up and is nobody's yet.
        for (addr, frags) in self.journal.iter().flat_map(|journal| journal.given_up()) {
            let group = g.group_of(addr);
            if let Some(map) = used.get_mut(group.0 as usize) {
                map.put_range((addr.0 - g.group_base(group).0) as usize, frags as usize, true);
            }
        }
        for ((number, used), group) in (0_u32..).zip(&used).zip(&self.space.groups) {
            for frag in 0..g.group_frags(GroupNo(number)) as usize {
                let (used, free) = (used.get(frag), group.cg.free.get(frag));
                // A foreign file system may hold more than its files do; less it must not.
                let lost = !used && !free && self.crashed.is_some();
                note(found, used != free || lost, None, || {
                    let what = if used { "used and free" } else { "neither used nor free" };
                    format!("group {number}: fragment {frag} is {what}")
                });
            }
        }
    }

    /// Every inode in use has as many names as links, is marked as used, and is counted if it is a directory.
    fn check_links(&self, found: &mut Vec<Disagreement>) {
        let mut directories = vec![0; self.g.ncg as usize];
        for (ino, node) in self.inodes.iter() {
            let group = self.g.group_of_ino(Ino(ino)).0 as usize;
            match &node.body {
                Body::Directory(_) => {
                    if let Some(count) = directories.get_mut(group) {
                        *count += 1;
                    }
                }
                Body::Symlink(target) if node.d.is_short_symlink(&self.g) => {
                    let fits = target.len() <= symlink_area_bytes(self.g.layout.version);
                    note(found, fits, Some(ino), || "its target does not fit".to_owned());
                }
                Body::Symlink(_) | Body::File | Body::System => {}
            }
            let group = self.space.groups.get(group);
            let used = group.is_some_and(|group| group.cg.used_inodes.get((ino % self.g.ipg) as usize));
            note(found, used, Some(ino), || "is not marked as used".to_owned());
        }
        let most = if self.crashed.is_some() { check::Links::MayBeMore } else { check::Links::AreNames };
        check::links(self.inodes.iter(), None, most, found);
        for ((number, counted), cs) in (0_u32..).zip(directories).zip(&self.space.cs) {
            note(found, counted == cs.ndir, None, || {
                format!("group {number}: {} directories, {counted} there are", cs.ndir)
            });
        }
        let used = (0_i64..).zip(self.inodes.iter()).count() as i64 + i64::from(ROOT_INO.0);
        let free = i64::from(self.g.inodes()) - used;
        let same = free == self.space.total.nifree || self.crashed.is_some() && free > self.space.total.nifree;
        note(found, same, None, || format!("{free} free inodes, the totals say {}", self.space.total.nifree));
    }
}
